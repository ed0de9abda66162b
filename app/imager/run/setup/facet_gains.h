/** @file facet_gains.h  (private to app/imager/run/)
 *  The gains of facets as factors of samples: what a facet's images take of the
 *  correlations of a sample, and the correlations of a facet's model.
 *
 *  A sample of antennas 1 and 2 has the correlations V = G1 B G2ᴴ of a source with the
 *  coherency B, where G are the Jones matrices of the facet. Its images take G1ᴴ V G2,
 *  the adjoint (Hamaker, Bregman and Sault 1996, A&AS 117, 137).
 */
#ifndef FACET_GAINS_H
#define FACET_GAINS_H

#include <complex.h>

#include "facet_table.h"
#include "tess_gains.h"
#include "tess_imager_opts.h"
#include "tess_polar.h"
#include "tess_samples.h"
#include "tess_take.h"

struct gain_cache;

/** Zeroed is empty; facet_gains_free. */
typedef struct facet_gains {
    const tess_gains *sources; /**< borrowed; NULL: all gains are 1 */
    int num_targets;
    const double *freq_hz;     /**< of the channel table; borrowed */
    int num_pol, num_corr;     /**< images, and values of a sample */
    int feed[TESS_MAX_POL][2]; /**< [num_corr] of antennas 1 and 2: 0 is X, 1 is Y */
    double complex taken[TESS_MAX_POL][TESS_MAX_POL]; /**< [num_pol][num_corr] without
                                                           gains */
    double complex made[TESS_MAX_POL][TESS_MAX_POL];  /**< [num_corr][num_pol] */
    double share[TESS_MAX_POL][TESS_MAX_POL]; /**< [num_pol][num_corr] of correlations
                                                 in the response of an image */
    bool predicts;    /**< samples get correlations, of models alone */
    bool is_diagonal; /**< no Jones matrix has anything off its diagonal */
    bool is_scalar;   /**< samples hold the polarisations of images, whose gain is the
                           mean of those of both feeds */
    int64_t num_chan; /**< of the channel table */
    int32_t num_antennas;
    int num_threads;
    bool is_linear;              /**< solutions are interpolated in time */
    const tess_origins *origins; /**< of rows; borrowed. NULL without sources */
    facet_table *table;          /**< or NULL: matrices are found row by row */
    struct gain_cache *cache;    /**< [num_threads] */
} facet_gains;

/** Images pol[num_pol] of samples with corr[num_corr]. Members that are borrowed, is_…,
 * and numbers of channels, antennas and threads are set. TESS_ERR_USAGE: an image that
 * they cannot make. TESS_ERR_ALLOC. Local. */
tess_status facet_gains_create(const tess_pol *pol, int num_pol, const tess_pol *corr,
                               int num_corr, facet_gains *gains);
void facet_gains_free(facet_gains *gains); /**< Local. */

/** Memory for gains that are kept, at most [bytes]. Local. */
double facet_gains_bytes(const facet_gains *gains);

/** Find the gains of a target that is worked on next, as an imager_view's `prepare`.
 *  Local. */
void facet_gains_prepare(const void *context, int target);

/** Number of targets that stay prepared, the last ones. Local. */
int facet_gains_num_prepared(const facet_gains *gains);

/** What images take of correlations, with the matrices of the target that has been
 *  prepared (imager_view.take). Local. */
bool facet_gains_give(const void *context, int target, tess_take *take);

/** Groups of rows with the same factors (imager_view.num_groups, .group). Local. */
int64_t facet_gains_num_groups(const facet_gains *gains);
int64_t facet_gains_group(const void *context, int32_t origin);

/** The factors of an imager_view, whose context is a facet_gains. A sample without a
 * solution has factors 0. */
void facet_gains_take(const void *context, int target, const tess_samples *samples,
                      int64_t row, double complex *factor);
void facet_gains_make(const void *context, int target, const tess_samples *samples,
                      int64_t row, double complex *factor);

/** Its response, as an imager_powers. */
void facet_gains_power(const void *context, int target, const tess_samples *samples,
                       int64_t row, double *power);

#endif
