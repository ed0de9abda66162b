/** @file residual.h  (private to app/imager/)
 *  Samples less a model, and images of them.
 *
 *  A model that has the images' pixels is that of the job's targets: what is subtracted
 *  is the sum over targets. Its visibilities are predicted where the samples are, at
 *  the owners of their bricks, and nothing is sent. A model of other pixels has a
 *  predictor, with a plan of its own, whose prediction is exchanged between ranks.
 *
 *  There are two ways. residual_make() makes residual samples beside the samples, in
 *  the host's memory or in that of a device. The other way streams: there is never an
 *  array of all residuals. Samples that are read are subtracted from set after set,
 *  before they are sent (residual_of_set); samples at their owners batch after batch,
 *  while they are gridded (residual_image, steps_residual.h). The latter holds the sums
 *  of the model beside those of the samples.
 */
#ifndef TESS_RESIDUAL_H
#define TESS_RESIDUAL_H

#include "imager_job.h"
#include "tess_samples.h"

struct imager_predictor;

/** Bytes that residual_make() takes beside samples like these. Local. */
double residual_bytes(const imager_job *job, const tess_samples *samples);

/** Bytes of the residuals that it makes. Local. */
double residual_made_bytes(const tess_samples *samples);

/** How images of residuals are made. */
typedef struct residual_way {
    bool in_batches; /**< residual_image() makes the images; otherwise residual_make()
                        makes the residuals */
    double bytes; /**< memory beside the samples and the sums that are gridded into */
    double
        sums_bytes; /**< of `bytes`, those for sums of the model; 0 unless in_batches */
    int planes; /**< planes whose sums are held at a time while residual_make() predicts
                     the job's model; 0: all */
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

/** As residual_choose(), but not in batches. */
tess_status residual_choose_array(imager_job *job, const tess_samples *samples,
                                  const tess_brick_list *bricks, double other_bytes,
                                  residual_way *way);

/** Grid and transform the samples less `vis_scale` times those of the job's model, in
 *  batches. Memory for a batch stays with the job. Collective in the job's team. */
tess_status residual_image(imager_job *job, const tess_samples *samples,
                           const tess_brick_list *bricks, double vis_scale, bool psf);

/** Samples that this rank owns, where they are. */
typedef struct residual_source {
    const tess_samples *samples;
    const tess_brick_list *bricks; /**< of the samples */
    bool held; /**< the backend holds the samples as `bricks`: none of them is copied
                    from or to the host's memory */
    int first_target, end_target; /**< of targets that take rows, those whose residuals
                                       are made: samples of others are undefined */
} residual_source;

/** Residual samples. */
typedef struct residual_samples {
    tess_samples samples; /**< has visibilities of its own, and borrows all else; those
                               of samples that are in no brick are undefined. NULL if
                               the backend holds them */
    tess_brick_list held; /**< the list of what the backend holds (tess_grid_ops), which
                               lasts as long as that of the source, or zeros */
} residual_samples;

/** Make the samples less `vis_scale` times a model: that of `predictor`, or of all the
 * job's targets (NULL), which have been set. The samples stay as they are. A backend
 * that sorts samples, but does not hold these, sorts them once more. The sums of
 * `planes_at_once` planes are held at a time while the job's model is predicted (0:
 * those of all). Samples that the backend holds have no predictor. Collective in the
 * job's team; with a predictor, in the job. */
tess_status residual_make(imager_job *job, struct imager_predictor *predictor,
                          const residual_source *from, double vis_scale,
                          int planes_at_once, residual_samples *to);

void residual_free(residual_samples *residual); /**< Zeros are fine. Local. */

/** Whether this rank's backend has room for what residual_make() takes beside brick
 * sums and `other_bytes`, of samples that it holds. Local. */
bool residual_has_room(const imager_job *job, const tess_samples *samples,
                       const tess_brick_list *held, double other_bytes);

/** Subtract `vis_scale` times the model of a predictor from samples at any positions,
 * in place. Collective in the predictor's ranks. */
tess_status residual_of_set(struct imager_predictor *predictor, double vis_scale,
                            tess_samples *samples);

#endif
