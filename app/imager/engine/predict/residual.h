/** @file residual.h  (private to app/imager/)
 *  Samples less a model, and images of them. Visibilities are predicted where the
 *  samples are, at the owners of their bricks, and nothing is sent.
 *
 *  There are two ways. Either all residuals are made and then gridded, or the residuals
 *  of some samples at a time (steps_residual.h). The second way holds the sums of the
 *  model beside those of the samples, instead of an array of all residuals.
 */
#ifndef TESS_RESIDUAL_H
#define TESS_RESIDUAL_H

#include "imager_job.h"
#include "tess_samples.h"

/** Bytes that residual_make() takes beside samples like these. Local. */
double residual_bytes(const imager_job *job, const tess_samples *samples);

/** How images of residuals are made. */
typedef struct residual_way {
    bool in_batches; /**< residual_image() makes the images; otherwise residual_make()
                        makes the residuals */
    double bytes; /**< memory beside the samples and the sums that are gridded into */
    double
        sums_bytes; /**< of `bytes`, those for sums of the model; 0 unless in_batches */
} residual_way;

/** Choose the way for all samples that this rank owns. It is in batches if that takes
 * less memory on the rank that needs most: if an array of all residuals is larger than
 * a batch and the sums of the model (or those of the samples, if these are smaller). It
 * is not in batches on a backend that sorts samples, nor where the sums of some planes
 * at a time are held beside `other_bytes` (imager_plane_window). `tessera plan` calls
 * this, too: only the kind and number of the samples matter, and keys and numbers of
 * the bricks. Collective in the job's team. */
tess_status residual_choose(imager_job *job, const tess_samples *samples,
                            const tess_brick_list *bricks, double other_bytes,
                            residual_way *way);

/** Grid and transform the samples less `vis_scale` times those of the job's model, in
 *  batches. Memory for a batch stays with the job. Collective in the job's team. */
tess_status residual_image(imager_job *job, const tess_samples *samples,
                           const tess_brick_list *bricks, double vis_scale, bool psf);

/** Make a view of owned samples that has visibilities of its own: those of the samples
 * less `vis_scale` times the sum of those of the models of all targets, which have been
 * set. The samples stay
 * as they are. Visibilities of samples that are in no brick are undefined. `bricks` are
 * those of the samples; a backend that sorts samples sorts them once more. This rank
 * holds `other_bytes` meanwhile. Free the view with residual_free(). Collective in the
 * job's team. */
tess_status residual_make(imager_job *job, const tess_samples *samples,
                          const tess_brick_list *bricks, double vis_scale,
                          double other_bytes, tess_samples *residual);

/** Set `residual` to `samples` less `factor` times what model->mix makes of the
 * visibilities [num_vis][model->num] `predicted`. `residual` may be `samples`. Local.
 */
void residual_subtract(const imager_job_model *model, double factor, int threads,
                       const tess_samples *samples, const tess_samples *predicted,
                       tess_samples *residual);

/** As residual_make(), for samples that a backend holds: no sample is copied from or to
 * the host's memory. `held` is the list of the samples; `derived` becomes that of the
 * residuals (tess_grid_ops), which lasts as long as `held` does. Collective in the
 * job's team. */
tess_status residual_make_held(imager_job *job, const tess_samples *samples,
                               const tess_brick_list *held, double vis_scale,
                               double other_bytes, tess_brick_list *derived);

/** Whether this rank's backend has room for what residual_make_held() takes beside
 * brick sums. Local. */
bool residual_has_room(const imager_job *job, const tess_samples *samples,
                       const tess_brick_list *held);

void residual_free(tess_samples *residual); /**< Zeros are fine. Local. */

#endif
