/** @file gains.h  (private to app/gains/)
 *  What gains are made of.
 */
#ifndef GAINS_H
#define GAINS_H

#include "tess_gains.h"
#include "tess_primary_beam.h"

/** The time (MJD) [s] at which the matrices of an interval are computed. Local. */
double gains_middle(const tess_gains *gains, int64_t interval);

/* ---- gain_beam.c ---- */

typedef struct gain_beam gain_beam;

/** The beams of all antennas in the directions of facets. Collective. */
tess_status gain_beam_create(tess_comm *comm, const tess_facets *facets,
                             const tess_gains_opts *opts, gain_beam **beam);
void gain_beam_destroy(gain_beam *beam); /**< NULL is fine. Local. */

tess_gain_shape gain_beam_shape(const gain_beam *beam);

/** Where updates begin (MJD) [s], ascending: [*num], at least 1. Local. */
const double *gain_beam_updates(const gain_beam *beam, int64_t *num);

/** The matrix at a time. Local, thread-safe. */
void gain_beam_jones(const gain_beam *beam, double time_mjd_s, int64_t antenna,
                     int64_t facet, double freq_hz, double jones[4][2]);

/* ---- gain_shift.c ---- */

typedef struct gain_shift gain_shift;

/** What phases of shifted sources depend on. TESS_ERR_INPUT: an antenna without a
 * position, a time out of range; TESS_ERR_ALLOC. Local. */
tess_status gain_shift_create(const tess_facets *facets, const tess_vis_meta *meta,
                              gain_shift **shift);
void gain_shift_destroy(gain_shift *shift); /**< NULL is fine. Local. */

/** The phase [rad] by which an antenna sees a facet's source shifted by this much in l
 * and m. Local, thread-safe. */
double gain_shift_phase(const gain_shift *shift, double time_mjd_s, int64_t antenna,
                        int64_t facet, double freq_hz, const double by[2]);

/* ---- gain_intervals.c ---- */

/** Intervals of time. */
typedef struct gain_intervals {
    double *end_mjd_s; /**< [num], ascending; the last is INFINITY */
    int64_t num;
    double limits[2]; /**< first and last time that is of interest */
} gain_intervals;

/** Where gains come from; NULL: none from there. */
typedef struct gain_sources {
    tess_solutions *solutions;
    tess_aterms *aterms;
    gain_shift *shift; /**< of the a-terms */
    gain_beam *beam;
} gain_sources;

/** Intervals within which none of them changes. TESS_ERR_ALLOC. Local. */
tess_status gain_intervals_find(const tess_gains_opts *opts,
                                const gain_sources *sources, gain_intervals *intervals);

/** A time within an interval, at which its matrices are computed. Local. */
double gain_intervals_middle(const gain_intervals *intervals, int64_t interval);

#endif
