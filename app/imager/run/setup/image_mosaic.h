/** @file image_mosaic.h  (private to app/imager/run/)
 *  The pointings of a mosaic: what each of them sees of the image is a patch, and a
 *  target of the job, which the samples of that pointing alone make.
 *
 *  With the dirty image D_p of a pointing, the sum W_p of its imaging weights and its
 *  primary beam B_p, the image of least variance is, in true flux,
 *
 *      F = Σ_p W_p B_p D_p / P,    P = Σ_p W_p B_p²
 *
 *  (Cornwell 1988, A&A 202, 316; Sault, Staveley-Smith and Brouw 1996, A&AS 120, 375,
 *  equation 8), and its noise is in proportion to 1/√P. Images are F times the beam of
 *  the mosaic, √(P / max P): their noise is even, and their fluxes are true where it is
 *  least. Each pointing predicts what its beam leaves of the true model.
 */
#ifndef IMAGE_MOSAIC_H
#define IMAGE_MOSAIC_H

#include "image_patches.h"
#include "image_primary_beam.h"
#include "image_run.h"

typedef struct image_mosaic {
    image_patches patches; /**< of pairs of kinds of dishes of pointings, those that see
                                pixels of the image */
    image_beam_of *beam_of;         /**< of each of these, in */
    const image_primary_beam *beam; /**< this; borrowed */
    int *patch_of;                  /**< [beam->num_sums]; −1: none */
    const tess_geom *geom;          /**< of the image; borrowed */
    double limit;                   /**< below this, the beam of a pointing is 0 */
    double reach;   /**< beyond this distance of a pointing, the beam of any pair of
                       dishes   is 0 [sine] */
    image_run *run; /**< borrowed */
    int64_t model_output;          /**< the output of */
    tess_rows model[TESS_MAX_POL]; /**< a model in true flux, to be predicted; or zeros
                                    */
    int64_t output;                /**< whose beams are kept: */
    struct tess_beam_mean **mean;  /**< [patches.num] NULL: not made, or no weights */
} image_mosaic;

/** Refuse what mosaics do not go together with. TESS_ERR_USAGE. Local. */
tess_status image_mosaic_check(const tess_image_opts *opts);

/** Make what pointings see of the image the targets of the run's job, if the options
 * ask for a mosaic, once the observations are open. TESS_ERR_INPUT: there is one
 * pointing, none sees the image, or one is beyond its horizon; errors as of
 * image_primary_beam_find(). Collective. */
tess_status image_mosaic_open(image_run *run);
void image_mosaic_free(image_mosaic *mosaic); /**< NULL is fine. Local. */

/** Free the model that is kept. Local. */
void image_mosaic_forget_model(image_mosaic *mosaic);

/** Weigh the pixels of a patch by the beam of its pointing in the images of an output,
 * whose samples have been weighed. Borrows the mosaic until another output's are asked
 * for. Errors of image_primary_beam_mean(). Local. */
tess_status image_mosaic_weigher(const image_run *run, int64_t output, int patch,
                                 patch_weigher *weigher);

/** Multiply the PSF of all samples, which lies in the middle of rows of an image, by
 * the overlap of pointings (pointing_overlap.h): that of an output whose beams have
 * been asked for, with the sums of weights of patches, weight[patches.num].
 * TESS_ERR_ALLOC. Local. */
tess_status image_mosaic_narrow_psf(const image_run *run, const double *weight,
                                    const tess_rows *psf);

#endif
