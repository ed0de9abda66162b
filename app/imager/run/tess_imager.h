/** @file tess_imager.h
 *  The order of work for `tessera image` and `plan`: reading, weights,
 *  partition, gridding, FFT, writing. No arithmetic of its own.
 */
#ifndef TESS_IMAGER_H
#define TESS_IMAGER_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_channel_opts.h"
#include "tess_clean_choice.h"
#include "tess_comm.h"
#include "tess_fits.h"
#include "tess_imager_opts.h"
#include "tess_profile.h"
#include "tess_weight.h"

struct tess_image_meta;

/** An image that is finished: float (or double) pixels of rows [row_first, + num_rows)
 *  on this rank, to be copied. `channel` −1: mean over output channels. */
typedef struct tess_image_product {
    const char *kind;         /**< "dirty", "psf", "model", "residual", "image" */
    const char *polarisation; /**< "I" */
    int64_t interval, channel;
    const struct tess_image_meta *meta;
    bool is_double;
    int64_t row_first, num_rows;
    const void *pixel;
} tess_image_product;

/** Takes products as they are made. Local. */
typedef tess_status tess_image_taker(void *context, const tess_image_product *product);

/** When to save what has been done, to continue from there. */
typedef struct tess_checkpoint_opts {
    const char *folder; /**< --checkpoint DIR that all ranks see; NULL: nowhere */
    double every_s;     /**< --checkpoint-every, 0 = only when stopped */
    double max_time_s; /**< --max-time: end before this time after the start; 0 = before
                          the batch job's end */
    bool resume;       /**< --resume */
    const char *identity; /**< lines "name = value" of options and inputs: a checkpoint
                               is continued only when they are the same */
} tess_checkpoint_opts;

/** How visibilities are weighted. */
typedef struct tess_image_weights {
    tess_weighting weighting; /**< --weight, default briggs:0 */
    double robust;
    double rank_filter;           /**< --weighting-rank-filter, 0 = off (default) */
    int64_t rank_cells;           /**< --weighting-rank-filter-size, 0: 16 */
    bool first_density;           /**< --density first; default own */
    double padding, super_weight; /**< 0: 1.2, 1 */
    int64_t box_cells;            /**< --density-box, default 0 */
    tess_spectral_frame density_frame; /**< --density-frame: cells of the density count
                                          frequencies in it */
    tess_taper taper; /**< --taper-gaussian …; its ends are those of --uvrange */
    bool shared_density, own_density; /**< --mf-weighting, --no-mf-weighting */
} tess_image_weights;

/** What is written beside the images, and into their headers. */
typedef struct tess_image_beside {
    bool preview;                    /**< --preview */
    bool as_wsclean, dirty_as_image; /**< --wsclean-files, --dirty-as-image */
    bool cube;                       /**< --cube */
    bool weights;                    /**< --store-imaging-weights */
    tess_beam_correction primary_beam;
    const char *reserved[3]; /**< other files that the run writes, or NULL: no image may
                                  have their names */
    const char *dump_stages; /**< --dump-stages DIR, or NULL */
    const char *command_line; /**< for HISTORY */
    const char *typed;        /**< the command line of WSClean before it, or NULL */
    const char *used_options; /**< text of the used options, written to NAME.conf */
    bool is_first; /**< an image that another run begins with: no last lines of a log */
} tess_image_beside;

/** A model whose visibilities are subtracted first. */
typedef struct tess_subtract_choice {
    const char *model; /**< --subtract MODEL.fits, or NULL */
    int terms;         /**< --subtract-spectral-pol; 0: the nearest channel */
    const tess_fits_pixels *pixels; /**< or a model in memory, or NULL */
} tess_subtract_choice;

typedef struct tess_image_opts {
    const char *const *obs; /**< observations */
    int num_obs;
    const char *output;     /**< -o NAME; NULL: no files, `take` gets all */
    tess_image_taker *take; /**< or NULL */
    void *take_context;
    int64_t nx, ny;   /**< --size */
    double scale_rad; /**< --scale */
    tess_image_weights weights;
    int num_pol;                 /**< --stokes */
    tess_corr pol[TESS_MAX_POL]; /**< FITS codes asked for, default I */
    tess_selection selection;
    tess_gridding gridding;
    tess_layout layout;
    int64_t channels_out; /**< default 1; with an axis, the number of its channels */
    tess_channel_opts channels;
    int64_t intervals_out; /**< default 1 */
    bool make_psf;         /**< --no-psf */
    bool no_dirty;         /**< --no-dirty */
    tess_clean_choice clean;
    bool overwrite;
    tess_image_beside beside;
    tess_subtract_choice subtract;
    const char *scratch; /**< --scratch DIR, on each node, or NULL */
    tess_checkpoint_opts checkpoint;
} tess_image_opts;

/** Make the images. Errors as in README's table of exit statuses; TESS_ERR_STOPPED when
 *  a checkpoint was written instead. Collective. */
tess_status tess_imager_image(tess_comm *comm, const tess_image_opts *opts,
                              tess_profile *profile);

/** Print partition, planes, support, memory per rank and estimated time per stage on
 *  stdout (rank 0); reads uvw only. Collective. */
tess_status tess_imager_plan(tess_comm *comm, const tess_image_opts *opts,
                             tess_profile *profile);

/** TESS_ERR_IO when `path` cannot be written (tess_out_check_target), or is one of the
 *  inputs of the run. Local. */
tess_status tess_image_check_output(const tess_image_opts *opts, const char *path,
                                    bool overwrite);

/** With an axis, take its number of channels as that of the outputs; it may depend on
 *  the data, which are then opened, and stay open for the first run with these options.
 *  TESS_ERR_USAGE, and errors of opening them. Collective. */
tess_status tess_imager_take_axis(tess_comm *comm, tess_image_opts *opts);
void tess_imager_drop_axis(tess_image_opts *opts); /**< closes them. Local. */

/** Where --size or --scale is not given with --predict-models, take that of the first
 *  model. TESS_ERR_IO, TESS_ERR_INPUT, TESS_ERR_ALLOC. Collective. */
tess_status tess_imager_take_model_size(tess_comm *comm, tess_image_opts *opts);

#endif
