/** @file prepare.h  (private to app/imager/)
 *  From a block of a file to samples for the gridder: polarisations, flags, limits,
 *  phase centre.
 */
#ifndef TESS_PREPARE_H
#define TESS_PREPARE_H

#include "tess_origin.h"
#include "tess_polar.h"
#include "tess_profile.h"
#include "tess_vis.h"
#include "uv_range.h"

typedef struct tess_samples tess_samples; /* tess_samples.h */

/** Time steps of which every second one is wanted. */
typedef struct tess_steps {
    double *time; /**< [num] of the rows, ascending [MJD s] */
    int64_t num;
    int first; /**< 0 or 1 */
} tess_steps;

/** What rows of one observation need to know where they come from. */
typedef struct tess_row_origins {
    const tess_origins *origins; /**< NULL: rows need not know */
    int num_antennas;            /**< of the observation */
    const int32_t *antenna;      /**< [num_antennas] their numbers in origins */
    int32_t field, stretch;      /**< of time, which has all rows */
} tess_row_origins;

/** What the rows of one segment of one observation need. */
typedef struct tess_recipe {
    int num_pol;
    tess_pol_mix mix[2 * TESS_MAX_POL];
    bool shared_weight;       /**< one weight a sample: the smallest of its pols' */
    int32_t chan_base;        /**< of the segment in the channel table */
    const double *inv_lambda; /**< [num_chan] of the segment */
    const bool *chan_wanted;  /**< [num_chan], or NULL for all */
    uv_range range;
    double time_first, time_end; /**< wanted times [first, end) MJD s */
    const tess_steps *steps;     /**< or NULL: all of them */
    bool rotate;
    double rotation[3][3]; /**< uvw' = rotation · uvw */
    bool turns;     /**< with `rotate`: phases are relative to a direction of the new
                         centre's frame */
    double turn[3]; /**< its l, m and n − 1 */
    tess_row_origins origins;
} tess_recipe;

/** Where a row's visibilities lie in the frame of the images: uvw of the file, rotated.
 *  Local. */
void tess_recipe_uvw(const tess_recipe *recipe, const double uvw_m[3],
                     double moved_m[3]);

/** Whether rows of this time are wanted. Local. */
bool tess_recipe_wants(const tess_recipe *recipe, double time);

/** Append the block's rows to the samples; rows without any good sample are left out.
 *  Ignored visibilities are counted in the profile, the others as visibilities.
 *  `row_time` (may be NULL) receives the times of the appended rows; it must have room
 *  for all rows of samples->capacity_rows. Local. */
tess_status tess_prepare_block(const tess_recipe *recipe, const tess_vis_block *block,
                               int num_threads, tess_samples *samples, double *row_time,
                               tess_profile *profile);

/** For prediction: append the positions of all rows with finite uvw, whatever their
 *  flags, with room for the visibilities; block_row[k] is the block's row of appended
 *  row k. Local. */
tess_status tess_prepare_positions(const tess_recipe *recipe,
                                   const tess_vis_block *block, tess_samples *samples,
                                   int64_t *block_row);

/** Phase factor that undoes the rotation for a row and channel, and the turn: predicted
 *  visibilities of the new centre times it are those of the old. */
void tess_rotation_phase(const tess_recipe *recipe, const double uvw_m[3],
                         double inv_lambda, double *re, double *im);

#endif
