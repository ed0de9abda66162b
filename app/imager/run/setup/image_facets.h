/** @file image_facets.h  (private to app/imager/run/)
 *  The facets of a run's images: each is a target of the job, with its own centre and
 *  its own gains, and all are parts of one image.
 *
 *  A facet's image is Σ W ḡ1 g2 V / ΣW over √R, where R is its response: the mean of
 *  |g1 g2|² by weight. Its noise is then as without gains, and its image over √R is in
 *  true flux. R is that of a source of 1 Jy, whose visibilities have the gains, and
 *  whose image takes them (imager_product.response).
 */
#ifndef IMAGE_FACETS_H
#define IMAGE_FACETS_H

#include "facet_gains.h"
#include "image_run.h"
#include "tess_facets.h"

typedef struct image_facets {
    tess_facets facets;
    tess_solutions *solutions;   /**< NULL: all gains are 1 */
    tess_pol held[TESS_MAX_POL]; /**< polarisations of samples: correlations, if there
                                      are solutions */
    int num_held;
    facet_gains gains;
    int psf_facet; /**< whose PSF is that of the image: the largest */
} image_facets;

/** Refuse what facets do not go together with. TESS_ERR_USAGE. Local. */
tess_status image_facets_check(const tess_image_opts *opts);

/** Read the facets and solutions that are asked for, once the observations are open,
 * and make them the targets of the job. Errors of tess_facets_create() and
 * tess_facets_solutions(). Collective. */
tess_status image_facets_open(image_run *run);
void image_facets_free(image_facets *facets); /**< NULL is fine. Local. */

/** The polarisations of samples, and their number. Local. */
const tess_pol *image_held_pols(const image_run *run, int *num);

#endif
