/** @file majors.h  (private to app/imager/run/)
 *  Major cycles: minor loops on the residual images of an output, and residual images
 * of the models that these have made (Schwab 1984, AJ 89, 1076).
 */
#ifndef TESS_MAJORS_H
#define TESS_MAJORS_H

#include "channel_rounds.h"
#include "image_run.h"
#include "imager_summary.h"
#include "majors_end.h"
#include "visset.h"

/** An output that is cleaned by itself, or with all channels of its interval. */
typedef struct majors_channel {
    int64_t output;
    bool has_data;
    visset *set; /**< NULL if this rank does not make its images. One of several
                    channels has left the job (visset_leave) */
    imager_product *made;    /**< its dirty images and PSFs, which become products */
    imager_product *product; /**< all kinds, in the order of run->output.kinds */
    struct imager_found
        *found;     /**< [num_pol] with the beam; cleaning adds its results */
    double freq_hz; /**< mean frequency by weight; 0: there are no weights, and
                       majors_clean takes the middle of the band */
    imager_rows model[TESS_MAX_POL], residual[TESS_MAX_POL]; /**< while it is cleaned */
} majors_channel;

/** Memory that cleaning takes on each of `ranks` beside the images that are written
 * [bytes], for `num_pol` polarisations. `uvw_max_lambda`: the longest baseline, which
 * determines beam and scales. Local. */
double majors_bytes(const tess_image_opts *opts, int num_pol, double uvw_max_lambda,
                    int ranks);

/** Clean the images of an output, or of channels together; polarisations each by itself
 * or together. `rounds`: the rounds in which teams make residual images; NULL: all
 * ranks make them. The final residuals are those of the data less the whole models.
 * TESS_ERR_INPUT: the mask, or the model that is continued, has other pixels.
 * Collective. */
tess_status majors_clean(image_run *run, majors_channel *channel, int num_channels,
                         const channel_rounds *rounds);

/** Sum of a model's pixels over all ranks. Collective. */
tess_status majors_flux(tess_comm *comm, const imager_rows *rows, double *flux_jy);

/** image := model ∗ beam + residual. The rows lie as those of a team's images, and
 * residual and image have one precision. Collective. */
tess_status majors_restore(const image_run *run, const tess_fits_beam *beam,
                           const imager_rows *model, const imager_rows *residual,
                           const imager_rows *image);

#endif
