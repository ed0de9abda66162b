/** @file imager_view.h  (private to app/imager/)
 *  Views of correlations that have been kept apart.
 */
#ifndef TESS_IMAGER_VIEW_H
#define TESS_IMAGER_VIEW_H

#include "imager_job.h"

/** Set the visibilities of `to` to sums over those of `from`, which has the same rows,
 * times these factors of the job's view for the target at work. With `less`, of as many
 * values as `to`, they become those of `less` less `scale` times these sums.
 * TESS_ERR_ALLOC. Local. */
tess_status imager_view_apply(const imager_job *job, imager_factors *factors,
                              const tess_samples *from, const tess_samples *less,
                              double scale, tess_samples *to);

#endif
