/** @file tess_gains.h
 *  Gains of antennas in the directions of facets, from all sources of them: solutions
 *  of calibrations and beams of stations in h5parm files (tess_solutions.h), a-terms in
 *  images (tess_aterms.h), primary beams (tess_primary_beam.h).
 *
 *  A Jones matrix is the product S A E: the primary beam E stands between the sky and
 *  a-terms A and solutions S.
 *
 *  Time is divided into intervals, within which matrices are the same: they end where
 *  the nearest values of solutions and a-terms change, and where beams are updated.
 * With linear interpolation they last for a step that is asked for. Phases of shifted
 * sources are those of a time inside of them. A sample needs the
 * number of its interval, and of its antennas, to find its matrices.
 *
 *  A beam that turns has the parallactic angle of the middle of an update, as the
 *  middle of the antennas sees it, or each antenna where these are far apart. Matrices
 *  of beams are in the frame of the feeds. A beam is 0 beyond the horizon of the
 *  pointing centre, and beyond the end of a formula or of a file.
 *
 *  Every rank holds all values.
 */
#ifndef TESS_GAINS_H
#define TESS_GAINS_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_aterms.h"
#include "tess_comm.h"
#include "tess_facets.h"
#include "tess_solutions.h"
#include "tess_status.h"
#include "tess_vis.h"

/** Primary beams of `--facet-beam`. */
typedef struct tess_gain_beam_opts {
    const char *model; /**< of tess_beam_models.h; NULL: none */
    double update_s;   /**< time after which a beam that turns is computed anew, from
                            the begin of each period on */
} tess_gain_beam_opts;

/** Which gains, for what. Texts and arrays belong to the caller. */
typedef struct tess_gains_opts {
    const tess_vis_meta *meta; /**< whose antennas, telescope, pointing and times; NULL:
                                    antennas and times of the solutions */
    int num_periods;           /**< 0: one, the times of the meta */
    const double (*period_mjd_s)[2]; /**< [num_periods] begin and end of what there are
                                          visibilities of, ascending */
    int64_t num_chan;
    const double *freq_hz;         /**< [num_chan] */
    tess_solutions_opts solutions; /**< num_files 0: none. Its antennas, directions,
                                        times and frequencies need not be filled in */
    double step_s;      /**< the longest interval with linear interpolation */
    const char *aterms; /**< configuration of a-terms, which needs a meta; NULL: none */
    tess_gain_beam_opts beam;
} tess_gains_opts;

typedef struct tess_gains tess_gains;

/** Errors of tess_facets_solutions(), tess_aterms_read() and tess_primary_beam_open().
 * TESS_ERR_INPUT: a line of "antennas:FILE" is not valid, or no line fits an antenna.
 * Collective. */
tess_status tess_gains_create(tess_comm *comm, const tess_facets *facets,
                              const tess_gains_opts *opts, tess_gains **gains);
void tess_gains_destroy(tess_gains *gains); /**< NULL is fine. Local. */

/** The most general of the matrices. Local. */
tess_gain_shape tess_gains_shape(const tess_gains *gains);

/** Where matrices come from, or NULL: none from there. Local. */
const tess_solutions *tess_gains_solutions(const tess_gains *gains);

/** Whether a value may not count: solutions or a-terms lack some. Local. */
bool tess_gains_lack(const tess_gains *gains);

/** Whether matrices change within intervals: sources are shifted, whose phases turn
 * with the Earth. Local. */
bool tess_gains_turn(const tess_gains *gains);

/** Number of antennas; 0: those of the solutions do not differ. Local. */
int64_t tess_gains_num_antennas(const tess_gains *gains);

/** Number of intervals, at least 1. Local. */
int64_t tess_gains_num_intervals(const tess_gains *gains);

/** The last time (MJD) [s] of an interval; that of the last one is infinite. Local. */
double tess_gains_interval_end(const tess_gains *gains, int64_t interval);

/** The interval of a time. Local, thread-safe. */
int64_t tess_gains_interval(const tess_gains *gains, double time_mjd_s);

/** The Jones matrix (XX, XY, YX, YY: real and imaginary parts) of an interval, an
 *  antenna (as numbered in the meta), a facet and a frequency. False, and a matrix of
 *  zeros: a value does not count, nor do visibilities of this antenna. Local,
 *  thread-safe. */
bool tess_gains_jones(const tess_gains *gains, int64_t interval, int64_t antenna,
                      int64_t facet, double freq_hz, double jones[4][2]);

/** The same at any time (MJD) [s]: solutions are interpolated to it where that is asked
 *  for. Local, thread-safe. */
bool tess_gains_jones_at(const tess_gains *gains, double time_mjd_s, int64_t antenna,
                         int64_t facet, double freq_hz, double jones[4][2]);

/** How much gains change within a facet, estimated from its neighbours: a source beside
 *  the facet's direction is imaged with the gains of this direction. */
typedef struct tess_gain_change {
    int64_t neighbour; /**< the facet towards which gains change fastest; −1: none */
    double away_rad;   /**< its direction from this one's */
    double difference; /**< between visibilities with its gains and with these, in
                            proportion to them: the rms over baselines, times and
                            frequencies. 1.4: they have nothing in common */
    double corner_rad; /**< the farthest vertex from the direction */
    double error;      /**< of visibilities of a source there, if gains change evenly */
} tess_gain_change;

/** change[num_facets], from the six nearest facets of each, at no more than so many
 * intervals and frequencies that are spread over all and over freq_hz[num_freq].
 * TESS_ERR_ALLOC. Local. */
tess_status tess_gains_changes(const tess_gains *gains, const tess_facets *facets,
                               int64_t most_intervals, int64_t num_freq,
                               const double *freq_hz, tess_gain_change *change);

/** Visibilities whose gains are compared: those of all baselines between some antennas,
 *  at some times and frequencies. */
typedef struct tess_gain_part {
    int64_t num_antennas;
    const int32_t *antenna; /**< [num_antennas] as numbered in the meta; NULL: all */
    double time_mjd_s[2];   /**< from, to (MJD) [s] */
    int64_t num_freq;
    const double *freq_hz; /**< [num_freq] */
    double num_vis;        /**< so many count, more than 0 */
} tess_gain_part;

/** How alike the gains of directions 0 to num−1 are in these parts: likeness[num][num],
 *  the mean over visibilities of the products of those of both, in proportion to those
 *  with themselves, from −1 to 1: what the image of one shows of a source in the other.
 *  At a few times and frequencies that are spread over all visibilities, fewer of them
 *  for many directions. A matrix of inner products, without negative eigenvalues; of
 *  1000 directions it has 8 MB. Without visibilities all of it is 1. TESS_ERR_ALLOC.
 *  Local. */
tess_status tess_gains_likeness(const tess_gains *gains, int num, int num_parts,
                                const tess_gain_part *part, double *likeness);

#endif
