/** @file patch_images.h  (private to app/imager/run/)
 *  The images of a set, made as wholes: those of patches are joined, and a model is
 *  shared out to them.
 */
#ifndef PATCH_IMAGES_H
#define PATCH_IMAGES_H

#include "image_run.h"
#include "imager_stages.h"
#include "visset.h"

/** Make the images of an output of a set as visset_image() does, made[num_pol] and then
 * PSFs. Patches are joined to one image, by their weights, and pixels of none are NaN;
 * its PSF is that of one patch, and 0 beyond. response[num_pol] (NULL: not wanted) gets
 * what an image is over to be in true flux: of facets with solutions, and of a mosaic,
 * of which `response` is the largest mean square of its beams by weight. Collective. */
tess_status patch_images_make(const image_run *run, int64_t output, visset *set,
                              const visset_request *request,
                              const imager_stages *stages, imager_product *made,
                              imager_product *response);

/** Make residual images less the model of the job, made[num_pol]. `is_hard`: without
 * slopes between facets, so that each pixel is that of one facet, as minor loops expect
 * of facets with gains of their own (tess_clean_places.likeness). Collective. */
tess_status patch_images_residual(const image_run *run, int64_t output, visset *set,
                                  bool is_hard, imager_product *made);

/** Takes the PSF of target `patch` in rows of an image, 1 in its middle and 0 beyond
 * the size of the patch. Collective. */
typedef tess_status patch_psf_taker(void *context, int patch, const tess_rows *psf);

/** Make the PSFs of all patches with their gains, one after the other. Collective. */
tess_status patch_images_psfs(const image_run *run, visset *set, patch_psf_taker *take,
                              void *context);

/** Make rows model[num_pol] the model of the job, as imager_model_set() does: of each
 * patch its pixels, over response[num_pol] where there is one, by the weights of the
 * patch in the output. Pointings of a mosaic get theirs when they are predicted.
 * Collective. */
tess_status patch_images_set_model(image_run *run, int64_t output,
                                   const tess_rows *model,
                                   const imager_product *response);

#endif
