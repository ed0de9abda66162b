/** @file majors.h  (private to app/imager/run/)
 *  Major cycles: minor loops on the residual images of an output, and residual images
 * of the models that these have made (Schwab 1984, AJ 89, 1076).
 */
#ifndef TESS_MAJORS_H
#define TESS_MAJORS_H

#include "image_run.h"
#include "imager_summary.h"
#include "visset.h"

/** Why an image is cleaned no further. */
typedef enum majors_end {
    MAJORS_THRESHOLD,
    MAJORS_NMITER,
    MAJORS_NITER,
    MAJORS_NEGATIVE,
    MAJORS_STALLED,
    MAJORS_DIVERGED,
    MAJORS_NOTHING
} majors_end;

/** "the final threshold": for the log. Local. */
const char *majors_end_text(majors_end end);

/** What cleaning keeps on a rank beside the images that are written [bytes], for
 *  `num_pol` polarisations over so many ranks. `uvw_max_lambda`: the longest baseline,
 *  which scales by the beam go by. Local. */
double majors_bytes(const tess_image_opts *opts, int num_pol, double uvw_max_lambda,
                    int ranks);

/** Clean the images of an output, each polarisation by itself. `made`: its dirty images
 *  and PSFs, which become products; product: all kinds, in the order of
 * run->output.kinds. found[num_pol] has the beam and gets what was done. The residuals
 * are of the data less the whole models. TESS_ERR_INPUT: mask or model to continue are
 * not of this image. Collective. */
tess_status majors_clean(image_run *run, visset *set, int64_t output,
                         imager_product *made, imager_product *product,
                         struct imager_found *found);

#endif
