/** @file tess_imager_opts.h
 *  What images, predictions and plans are asked for alike: how visibilities are
 *  gridded, and how the work is laid out; which take part is in tess_selection.h.
 */
#ifndef TESS_IMAGER_OPTS_H
#define TESS_IMAGER_OPTS_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_facet_choice.h"
#include "tess_projection.h"
#include "tess_selection.h"

typedef enum tess_w_mode {
    TESS_W_AUTO,
    TESS_W_STACKING,
    TESS_W_PROJECTION,
    TESS_W_NONE
} tess_w_mode;

/** Polarisations of a run, and images of all kinds that it makes of an output. */
enum { TESS_MAX_POL = 8, TESS_MAX_IMAGES = 8 * TESS_MAX_POL };

/** How several devices share the work: each makes whole images, which are summed; or
 * they share w-planes. */
typedef enum tess_device_planes {
    TESS_WHOLE_IMAGES = 1,
    TESS_SHARED_PLANES
} tess_device_planes;

/** Where the images of a run live. */
typedef enum tess_images_home {
    TESS_IMAGES_THERE = 1,
    TESS_IMAGES_HERE
} tess_images_home;

/** Choices that tests and scaling studies take from the planner. The environment
 *  variable TESS_FORCE sets them: docs/design/forced.md. Zero means that the planner
 *  chooses. */
typedef struct tess_forced {
    int pw;            /**< w-groups */
    int fft_ranks;     /**< ranks that share one plane's FFT (slabs); divides the number
                            of ranks */
    int teams;         /**< teams of ranks that make outputs side by side */
    int thread_teams;  /**< teams of a rank's threads that do so */
    int block_planes;  /**< w-planes per brick */
    int kernel_planes; /**< 1: planes lie as the kernel of u and v needs them, also
                          where fewer would do, so that backends have the same */
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
    int nccl;            /**< 1: connect GPUs by NCCL, however small images are */
    int device_planes;   /**< tess_device_planes */
    int device_rows;     /**< tess_images_home: on the device, or in host memory */
    int clean_grids;     /**< tess_clean_grids */
    int tracks; /**< facets grid nodes of tracks: 1: whatever it costs, 2: never */
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
    tess_facet_choice facets;
} tess_gridding;

/** Correction for the primary beam. */
typedef struct tess_beam_correction {
    const char
        *model;    /**< --primary-beam, as tess_primary_beam.h lists them; or NULL */
    bool corrects; /**< --pbcor */
    double limit;  /**< --pb-limit, default 0.2 */
    double pointing_limit; /**< --pointing-limit, default 0.02: of a pointing of a
                                mosaic */
} tess_beam_correction;

#endif
