/** @file run_samples.h  (private to app/imager/run/)
 *  How the samples of a run are kept, and what they tell before images are made.
 */
#ifndef TESS_RUN_SAMPLES_H
#define TESS_RUN_SAMPLES_H

#include "image_run.h"

/** Subtract a model of other pixels than the images' from samples, if there is one.
 * Collective. */
tess_status image_subtract_early(image_run *run, tess_samples *samples);

/** Find whether `bytes` bytes fit into the memory of every rank. Collective. */
tess_status image_fits_all(const image_run *run, double bytes, bool *fits);

/** Memory of a rank when all samples are kept [bytes]: with several outputs, the
 * samples of one are copied and sent at a time. */
double image_cached_bytes(const image_run *run);

/** Check that samples stay in memory (`kept`), or on scratch where the backend works on
 * those. TESS_ERR_RESOURCE refuses `what` otherwise. Local. */
tess_status image_check_kept(const image_run *run, bool kept, const char *what);

/** Choose what the source reads from here on: the times and channels of all outputs, or
 * of outputs [first, end). Local. */
void image_want_all(image_run *run);
void image_want_outputs(image_run *run, int64_t first, int64_t end);

/** In DATA_PER_OUTPUT, hold the samples of outputs [first, end): read them from scratch
 * or from the observations, with those of further outputs if there is memory, unless
 * they are held. Nothing in other modes. Collective. */
tess_status image_hold_outputs(image_run *run, int64_t first, int64_t end);

/** Whether weights have a density; tapers are factors of its cells. Local. */
bool image_has_density(const tess_image_weights *weights);

/** Make an empty density for the weights that the options ask for; NULL for natural
 * ones without a taper. `weight_scale`: factor by which the weights of samples have
 * been multiplied. Collective. */
tess_status image_create_density(const image_run *run, int num_weight,
                                 double weight_scale, tess_density **density);

/** Power of the visibilities of the first polarisation. Weights are natural. */
typedef struct image_power {
    double weighted, weights; /**< Σ w |V|², Σ w */
    double count;             /**< of visibilities with weight */
} image_power;

/** Survey the data: read them once to learn what the outputs are made of, and to make
 * the density of a single output. Those of this rank are added to `*power`; NULL:
 * nobody asks for it. Collective. */
tess_status image_survey_blocks(image_run *run, image_power *power);

/** Bytes of the largest output that this rank may have to hold. Local. */
double image_largest_output_bytes(const image_run *run);

/** Find what one plan for all outputs must cover, and how many images each has.
 * Collective. */
tess_status image_finish_survey(image_run *run);

/** Decide how samples are kept, and find their extents, weights and number of images.
 * Reads the data once; all of them stay if they fit. Collective. */
tess_status image_first_pass(image_run *run);

/** Read the data a first time, and plan the images of them. `keeper`: what needs
 * samples that are kept, for the message of a refusal (image_check_kept); NULL: nothing
 * does. Collective. */
tess_status image_read_and_plan(image_run *run, const char *keeper);

#endif
