/** @file patch_images.h  (private to app/imager/run/)
 *  The images of a set, made as wholes: those of patches are joined, and a model is
 *  shared out to them.
 */
#ifndef PATCH_IMAGES_H
#define PATCH_IMAGES_H

#include "image_run.h"
#include "imager_stages.h"
#include "visset.h"

/** Make the images of a set as visset_image() does, made[num_pol] and then PSFs. Facets
 * are joined to one image, by their weights, and pixels of none are NaN; its PSF is
 * that of one facet, and 0 beyond. With solutions, response[num_pol] (NULL: not wanted)
 * gets what an image is over to be in true flux. Collective. */
tess_status patch_images_make(const image_run *run, visset *set,
                              const visset_request *request,
                              const imager_stages *stages, imager_product *made,
                              imager_product *response);

/** Make rows model[num_pol] the model of the job, as imager_model_set() does: of each
 * facet its pixels, over response[num_pol]. Collective. */
tess_status patch_images_set_model(image_run *run, const tess_rows *model,
                                   const imager_product *response);

#endif
