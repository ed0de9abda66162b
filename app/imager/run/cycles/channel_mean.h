/** @file channel_mean.h  (private to app/imager/run/)
 *  Means over the output channels of an interval, by weight.
 */
#ifndef TESS_CHANNEL_MEAN_H
#define TESS_CHANNEL_MEAN_H

#include "image_run.h"
#include "mean_sources.h"

/** Means of the current interval, kept as sums until the end. */
typedef struct channel_mean {
    imager_product product[TESS_MAX_IMAGES];
    imager_extent extent;
    mean_sources sources; /**< with a list of sources of channels that are cleaned one
                               by one */
    bool started;
} channel_mean;

/** Take up the mean of a run that continues in the middle of an interval. Collective.
 */
tess_status channel_mean_continue(image_run *run, channel_mean *mean);

/** Begin the means with zero, unless they have begun. TESS_ERR_ALLOC. Collective. */
tess_status channel_mean_start(image_run *run, channel_mean *mean);

/** Add the products of a channel by weight; products without weights are skipped.
 * Errors of tess_rows_add(). Local. */
tess_status channel_mean_add(const image_run *run, const imager_product *product,
                             channel_mean *mean);

/** Add the products of this rank's channel to `own`, the sums of the channels of its
 * team. Errors of tess_rows_add(), TESS_ERR_ALLOC. Local. */
tess_status channel_mean_add_own(const image_run *run, const imager_product *product,
                                 channel_mean *own);

/** Add the sums of all teams to the mean, and free them. Collective. */
tess_status channel_mean_join(image_run *run, channel_mean *own, channel_mean *mean);

/** Complete the mean of an interval: divide by weights and find the beam,
 * found[num_pol]. If channels were cleaned together, as found[] tells, the restored
 * images become those of the mean model, with the beam of the mean PSF. Collective. */
tess_status channel_mean_finish(image_run *run, int64_t interval, channel_mean *mean,
                                struct image_found *found);

/** Write the mean of the interval, and begin anew. Collective. */
tess_status channel_mean_write(image_run *run, int64_t interval, channel_mean *mean,
                               const struct image_found *found);

/** Free the sums. Local. */
void channel_mean_free(image_run *run, channel_mean *mean);

#endif
