/** @file residual.h  (private to app/imager/)
 *  Samples less a model: visibilities are predicted where the samples are, at the
 * owners of their bricks, and nothing is sent.
 */
#ifndef TESS_RESIDUAL_H
#define TESS_RESIDUAL_H

#include "imager_job.h"
#include "tess_samples.h"

/** Bytes that residual_make() takes beside samples like these. Local. */
double residual_bytes(const imager_job *job, const tess_samples *samples);

/** A view of owned samples, which stay as they are, with visibilities of its own: those
 *  of the samples less `vis_scale` times those of the job's model, which is set. Of
 *  samples that no brick has they are undefined. `bricks`: of the samples; a backend
 *  that sorts samples by itself sorts them once more. `other_bytes` are held beside. To
 *  be freed with residual_free(). Collective in the job's team. */
tess_status residual_make(imager_job *job, const tess_samples *samples,
                          const tess_brick_list *bricks, double vis_scale,
                          double other_bytes, tess_samples *residual);
/** residual := samples less `factor` times what model->mix makes of the visibilities
 *  [num_vis][model->num] predicted; `residual` may be `samples`. Local. */
void residual_subtract(const imager_job_model *model, double factor, int threads,
                       const tess_samples *samples, const tess_samples *predicted,
                       tess_samples *residual);
/** residual_make() where a backend holds the samples: none of them is copied from or to
 *  the host's memory. `held` is the list of the samples; `derived` becomes that of the
 *  residuals (tess_grid_ops), which lasts as long as `held` does. Collective in the
 *  job's team. */
tess_status residual_make_held(imager_job *job, const tess_samples *samples,
                               const tess_brick_list *held, double vis_scale,
                               double other_bytes, tess_brick_list *derived);
/** Whether this rank's backend has room for what residual_make_held() takes, with brick
 *  sums beside. Local. */
bool residual_has_room(const imager_job *job, const tess_samples *samples,
                       const tess_brick_list *held);

void residual_free(tess_samples *residual); /**< Zeros are fine. Local. */

#endif
