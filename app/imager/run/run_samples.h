/** @file run_samples.h  (private to app/imager/run/)
 *  How the samples of a run are kept, and what they tell before images are made.
 */
#ifndef TESS_RUN_SAMPLES_H
#define TESS_RUN_SAMPLES_H

#include "image_run.h"

/** Take a model of other pixels out of samples. Collective. */
tess_status image_subtract_early(image_run *run, tess_samples *samples);

/** Whether that fits on every rank. Collective. */
tess_status image_fits_all(const image_run *run, double bytes, bool *fits);

/** Memory when all samples are kept; with several outputs, those of one are copied and
 * sent at a time. */
double image_cached_bytes(const image_run *run);

/** Samples stay in memory (`kept`), or on scratch where the backend can work on those;
 *  else TESS_ERR_RESOURCE, by which `what` is refused. Local. */
tess_status image_check_kept(const image_run *run, bool kept, const char *what);

/** Read those of all outputs, or of one: times and channels. Local. */
void image_want_all(image_run *run);
void image_want_output(image_run *run, int64_t output);

/** Whether weights have a density: tapers are factors of its cells. Local. */
bool image_has_density(const tess_image_weights *weights);

/** An empty density for the weights asked for, of samples whose weights have been
 *  multiplied by `weight_scale`; NULL with natural ones without a taper.
 *  Collective. */
tess_status image_create_density(const image_run *run, int num_weight,
                                 double weight_scale, tess_density **density);

/** Read everything once to learn what the outputs are made of, and the density of a
 * single one. Collective. */
tess_status image_survey_blocks(image_run *run);

/** The largest output that this rank may have to hold. */
double image_largest_output_bytes(const image_run *run);

/** What one plan for all outputs must cover, and how many images it has. Collective. */
tess_status image_finish_survey(image_run *run);

/** How samples are kept, and what they tell: extents, weights, number of images. Data
 * are read once here; all of them stay if they fit. Collective. */
tess_status image_first_pass(image_run *run);

#endif
