/** @file tess_imager.h
 *  The order of work for `tessera image`, `predict` and `plan`: reading, weights,
 *  partition, gridding, FFT, writing. No arithmetic of its own.
 */
#ifndef TESS_IMAGER_H
#define TESS_IMAGER_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"
#include "tess_fits.h"
#include "tess_profile.h"
#include "tess_projection.h"
#include "tess_vis.h"
#include "tess_weight.h"

typedef enum tess_w_mode {
    TESS_W_AUTO,
    TESS_W_STACKING,
    TESS_W_PROJECTION,
    TESS_W_NONE
} tess_w_mode;

enum { TESS_MAX_POL = 8 };

/** Which visibilities take part; shared by image, predict and plan. */
typedef struct tess_selection {
    const char
        *data_column;  /**< --datacolumn, NULL = CORRECTED_DATA if there, else DATA */
    const char *field; /**< --field, NULL */
    int spw[64];       /**< --spw 0,2,3 */
    int num_spw;
    int64_t chan_first, chan_end; /**< --channels A:B, [A, B); end 0 = all */
    double uv_min_lambda,
        uv_max_lambda; /**< --uvrange MIN:MAX wavelengths; max 0 = none */
    int64_t interval_first, interval_end; /**< --intervals A:B timesteps; end 0 = all */
    bool has_center;                      /**< --center RA,DEC */
    double center_ra_rad, center_dec_rad;
    bool positions_only; /**< set by predict: the data column need not be there */
    bool uvw_only;       /**< set by predict into a column: nothing else of rows */
} tess_selection;

/** Choices that tests and scaling studies take from the planner (--force-pw 2 ...).
 *  --help-all lists the options. Zero means that the planner chooses. */
typedef struct tess_forced {
    int pw;            /**< w-groups */
    int fft_ranks;     /**< ranks that share one plane's FFT (slabs); divides the number
                            of ranks */
    int teams;         /**< teams of ranks that make outputs side by side */
    int block_planes;  /**< w-planes per brick */
    int plane_window;  /**< w-planes whose sums are held at a time */
    int64_t batch_vis; /**< residuals that are held at a time; -1: all */
    int64_t chunk;     /**< visibilities per chunk of a brick */
    int split;         /**< 1: cut bricks at chunk borders even when they are not hot */
    int passes;        /**< passes over the data */
    int scratch;       /**< 1: keep data in --scratch, even if that is slower */
    double w_min_lambda, w_max_lambda; /**< plan for at least this range of |w|; maximum
                                            0: the range of the data */
    int64_t round_bytes; /**< bytes that a rank sends in one round of the exchange */
    int64_t num_vis;     /**< plan for this number of visibilities in an image */
    int nccl;            /**< 1: sum images by NCCL, however small they are */
} tess_forced;

/** How work is laid out. */
typedef struct tess_layout {
    int threads;          /**< --threads, per rank; 0: the planner chooses */
    int64_t memory_bytes; /**< --memory, per node; 0: what the job may use */
    bool reproducible;    /**< --reproducible: the same sums on any number of ranks and
                               threads */
    bool calibrate;       /**< plan large runs by costs measured on this machine */
    tess_forced forced;
} tess_layout;

/** Gridding of one plan; shared by image, predict and plan. */
typedef struct tess_gridding {
    double accuracy;                 /**< --accuracy, default 1e-4 */
    tess_w_mode w_mode;              /**< --w auto|stacking|projection|none */
    const char *backend;             /**< --backend auto|cpu, default "auto" */
    tess_projection_opts projection; /**< --strategy, --oversampling,
                                          --w-spacing, --no-kernel-cache */
    const char *gcf, *write_gcf;     /**< --gcf, --write-gcf, or NULL */
    bool overwrite_gcf;              /**< may there be a file of write_gcf's name? */
    const char *only_projection;     /**< option given that --w projection alone has */
} tess_gridding;

struct tess_image_meta;

/** An image that is finished: float (or double) pixels of rows [row_first, + num_rows)
 *  on this rank, to be copied. `channel` −1: mean over output channels. */
typedef struct tess_image_product {
    const char *kind;         /**< "dirty", "psf" */
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
    const char *folder;   /**< --checkpoint DIR that all ranks see; NULL: nowhere */
    double every_s;       /**< --checkpoint-every, 0 = only when stopped */
    double max_time_s;    /**< --max-time: end before so long after the start;
                               0 = before the batch job's end */
    bool resume;          /**< --resume */
    const char *identity; /**< lines "name = value" of what determines the images:
                               options and inputs; a checkpoint is continued only
                               when they are the same */
} tess_checkpoint_opts;

typedef struct tess_image_opts {
    const char *const *obs; /**< observations */
    int num_obs;
    const char *output;     /**< -o NAME; NULL: no files, `take` gets all */
    tess_image_taker *take; /**< or NULL */
    void *take_context;
    int64_t nx, ny;           /**< --size */
    double scale_rad;         /**< --scale */
    tess_weighting weighting; /**< --weight, default briggs:0 */
    double robust;
    double rank_filter;          /**< --weighting-rank-filter, 0 = off (default) */
    bool first_density;          /**< --density first; default own */
    int num_pol;                 /**< --stokes */
    tess_corr pol[TESS_MAX_POL]; /**< FITS codes asked for, default I */
    tess_selection selection;
    tess_gridding gridding;
    tess_layout layout;
    int64_t channels_out;  /**< default 1 */
    int64_t intervals_out; /**< default 1 */
    bool make_psf;         /**< --no-psf */
    bool overwrite, preview;
    const char *beside[3]; /**< other files that the run writes, or NULL: no image may
                                have their names */
    const char *subtract;  /**< --subtract MODEL.fits, or NULL */
    const tess_fits_pixels *subtract_pixels; /**< or a model in memory, or NULL */
    const char *dump_stages;                 /**< --dump-stages DIR, or NULL */
    const char *scratch; /**< --scratch DIR, on each node, or NULL */
    tess_checkpoint_opts checkpoint;
    const char *command_line; /**< for HISTORY */
    const char *used_options; /**< text of the used options, written to NAME.conf */
} tess_image_opts;

/** Takes predicted blocks as they are made, in the order of their rows. A block has
 *  positions, times, antennas and visibilities, to be copied. Local. */
typedef tess_status tess_predict_taker(void *context, const tess_vis_meta *meta,
                                       const tess_vis_block *block);

typedef struct tess_predict_opts {
    const char *obs;
    const char *model; /**< --model FITS (Stokes I, or a STOKES axis of I,Q,U,V) */
    const tess_fits_pixels *pixels; /**< where that is NULL: a model in memory */
    const char *output;             /**< -o OUT.uvfits, or NULL */
    const char *column;             /**< --column of the MS, or NULL */
    tess_predict_taker *take;       /**< gets all where there is neither of them */
    void *take_context;
    tess_selection selection;
    tess_gridding gridding;
    tess_layout layout;
    bool overwrite;
    const char *command_line;
} tess_predict_opts;

/** Make the images. Errors as in README's table of exit statuses; TESS_ERR_STOPPED when
 *  a checkpoint was written instead. Collective. */
tess_status tess_imager_image(tess_comm *comm, const tess_image_opts *opts,
                              tess_profile *profile);

/** Print partition, planes, support, memory per rank and estimated time per stage on
 *  stdout (rank 0); reads uvw only. Collective. */
tess_status tess_imager_plan(tess_comm *comm, const tess_image_opts *opts,
                             tess_profile *profile);

/** Predict visibilities from a model image. Collective. */
tess_status tess_imager_predict(tess_comm *comm, const tess_predict_opts *opts,
                                tess_profile *profile);

#endif
