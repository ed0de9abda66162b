/** @file tess_grid.h
 *  The gridding plan and the gridder: visibilities to brick sums.
 *
 *  w-stacking (Arras et al. 2021, arXiv:2010.10122): visibilities are spread with one
 *  separable kernel over a (u,v,w) grid of w-planes; each plane is Fourier transformed,
 *  multiplied by its w-screen and summed.
 *
 *  A plan may use w-projection in place of w-stacking: one plane, and tables of
 *  w-kernels (tess_projection.h).
 *
 *  The unit of work is a *brick*: a tile of TESS_TILE × TESS_TILE cells (w-projection:
 *  more) over a block of w-planes, with the visibilities whose footprint starts there.
 *  A *brick sum* is what these visibilities add to the grid: the tile plus a halo of W
 *  − 1 cells and planes. The work of a brick is cut into chunks of `chunk` visibilities
 *  in (row, channel) order. Brick keys and chunks depend neither on the number of ranks
 *  nor on that of threads.
 */
#ifndef TESS_GRID_H
#define TESS_GRID_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_backend.h"
#include "tess_bricks.h"
#include "tess_costs.h"
#include "tess_geom.h"
#include "tess_kernel.h"
#include "tess_log.h"
#include "tess_status.h"
#include "tess_take.h"
#include "tess_trace.h"

enum {
    TESS_TILE = 16,
    TESS_CHUNKS_PER_PIECE = 16 /**< at most, in a piece of work: a brick with more is
                                  shared by threads */
};

/** Images of a smaller ε are made in double precision: the rounding of single precision
 *  (kernel values, FFT, sums of many visibilities) comes to a few 1e-6. */
#define TESS_SINGLE_ACCURACY 9e-6
/** Files of images, and transforms while they are cleaned, are double for a smaller ε:
 * a finer promise is more than single precision stores. */
#define TESS_SINGLE_FILE_ACCURACY 1e-6

/** Precision of grid and images. Auto is single for ε ≥ TESS_SINGLE_ACCURACY. */
typedef enum tess_precision {
    TESS_PRECISION_AUTO,
    TESS_PRECISION_SINGLE,
    TESS_PRECISION_DOUBLE
} tess_precision;

/** What a plan is made for. tess_grid_opts_default() sets the defaults. */
typedef struct tess_grid_opts {
    double accuracy;      /**< ε: relative L2 error of the image */
    bool worst_pixel;     /**< for prediction: ε holds for the visibilities of every
                               single pixel, not for a field of them on average … */
    bool mean_visibility; /**< … for their relative L2 error, not for each of them */
    bool do_w;            /**< false: the field is narrow, w is ignored */
    double w_min_lambda, w_max_lambda; /**< range of |w| over the visibilities */
    double w_span_lambda; /**< smallest w_max − w_min of what becomes one image, when
                               several share the plan; < 0: w_max − w_min */
    int64_t num_vis;      /**< for the cost model */
    int num_pol;          /**< grids of equal geometry (Stokes, PSF) */
    int threads;
    int block_planes;   /**< w-planes per brick; 0: chosen */
    bool kernel_planes; /**< planes lie as the kernel of u and v needs them, also where
                             fewer would do */
    int64_t chunk; /**< visibilities per chunk; 0: chosen, as the plan's opts say */
    tess_precision precision;
    double padding_min, padding_max; /**< grid size over image size within; 0: chosen */
    int support;                     /**< of the kernel; 0: chosen */
    bool repeatable; /**< sums whose order depends on the visibilities alone, where
                          bricks are whole: on a device (cpu: as the bricks are cut) */
    const tess_costs *costs; /**< to choose by, copied; NULL: tess_costs_builtin */
    const struct tess_projection_opts *projection; /**< w-projection; NULL: w-stacking.
                                                 `do_w` is then false. Copied */
} tess_grid_opts;

/** What the images of a frame have in common: the largest of each. */
typedef struct tess_grid_field {
    int64_t nx, ny;  /**< pixels of the longest row and of the highest column */
    double nm1_min;  /**< smallest n − 1 of any pixel */
    double nm1_half; /**< half of the widest range of n − 1 that an image has */
    /** Share of the pixels that n − 1 puts at each of a kernel's places along w: of all
     * images the one with most pixels there. */
    double place_share[TESS_KERNEL_PLACES];
} tess_grid_field;

/** The grid correction of the field, a factor for each axis. */
typedef struct tess_grid_correction {
    double *u;                       /**< [field.nx] h(x) of the columns */
    double *v;                       /**< [field.ny] h(y) of the rows */
    double w[TESS_CORRECTION_TERMS]; /**< see tess_kernel_correction_fit */
} tess_grid_correction;

/** An image that is made of visibilities on the grid of a frame. */
typedef struct tess_grid_target {
    tess_geom geom;    /**< its pixels and its centre */
    double nm1_center; /**< middle of its range of n − 1; w-phases are taken from it */
    tess_geom_phase phase; /**< that visibilities are gridded with */
    const double
        *correct_u; /**< [geom.nx] its part of the field's correction; borrowed */
    const double *correct_v; /**< [geom.ny] */
} tess_grid_target;

/** A plan is two things. The *frame* says where a visibility goes: the cells and the
 *  size of the grid, the kernel, planes and bricks. The *target* is the image that is
 *  made of it. Plans of tess_grid_plan_create_targets() have one frame, and so the same
 *  bricks: samples that were sent and sorted by one of these plans are gridded by all
 *  of them. */
typedef struct tess_grid_plan {
    tess_grid_target target;
    const struct tess_grid_plan
        *frame; /**< the plan that owns the tables; NULL: this */
    tess_grid_field field;
    tess_grid_opts opts;
    tess_costs costs;    /**< opts.costs */
    bool is_double;      /**< precision of grid, visibilities and images */
    tess_kernel kernel;  /**< along u and v */
    tess_kernel along_w; /**< the same, or tess_kernel_between_planes() */
    struct tess_projection *projection; /**< w-kernels, or NULL */
    int64_t nu, nv;                     /**< grid size [cells] */
    int tile;      /**< cells of a brick along each axis, a multiple of TESS_TILE */
    int footprint; /**< cells that visibilities are spread over along each axis, at
                        most: kernel.support, or of the widest w-kernel, and two */
    int w_support; /**< along_w.support, or 1 without w */
    int num_planes;
    int block_planes, num_blocks;
    double w_first_lambda;    /**< of plane 0 */
    double w_step_lambda;     /**< between planes */
    int64_t tiles_u, tiles_v; /**< tiles along each axis; the last may be partial */
    tess_grid_correction correction;
    double error_estimate; /**< relative L2 error expected of an image, or largest one
                                of a pixel's visibilities (worst_pixel) */
    const tess_backend *backend;
    const struct key_table *keys; /**< for this processor */
} tess_grid_plan;

/** Sum over a brick's visibilities (grid), or the values around it (degrid). Data are
 *  data[pol][plane][line][row_stride] complex of the plan's precision, lines =
 *  tile + footprint − 1; only planes are stored that the brick touches and the step
 *  wants. */
typedef struct tess_brick_sum {
    int64_t key;
    int32_t plane_first, num_planes;       /**< stored; there may be none */
    int32_t touched_first, touched_planes; /**< what the brick touches */
    int64_t offset; /**< of its data in the step's arena [complex values] */
} tess_brick_sum;

/** Memory of finished sums, which the sums of the next planes use again. Getting new
 *  memory takes as long as gridding does in double precision. */
typedef struct tess_brick_arena {
    void *data; /**< from tess_alloc, or NULL */
    int64_t num_values;
} tess_brick_arena;

/** Brick sums of one step, in order of key. */
typedef struct tess_brick_sums {
    int64_t num_bricks;
    tess_brick_sum *brick; /**< [num_bricks] */
    void *data;            /**< the arena, in memory of the backend's */
    int64_t num_values;    /**< complex values in the arena */
    int64_t capacity;      /**< number of values for which there is room; backend cpu */
    int num_pol;
    int32_t window_first, window_planes; /**< in: planes wanted; 0: all. Backend cpu */
    tess_brick_arena *spare;     /**< in: taken for the arena, or freed when it is too
                                      small, and empty then; or NULL. Backend cpu */
    void (*release)(void *data); /**< gives the arena back; NULL: tess_free */
} tess_brick_sums;

void tess_grid_opts_default(tess_grid_opts *opts);

/** Choose support, padding, planes and bricks for the accuracy at least cost. Errors:
 *  TESS_ERR_USAGE (no kernel reaches the accuracy), TESS_ERR_ALLOC. Local. */
tess_status tess_grid_plan_create(const tess_geom *geom, const tess_grid_opts *opts,
                                  const tess_backend *backend, tess_grid_plan **plan);

/** Make plan[num_targets] of one frame for images geom[num_targets], whose pixels and
 *  whose turned direction are the same. The accuracy holds for each image. The first
 *  plan owns the tables of all of them, and is destroyed last. Errors as above, and
 *  TESS_ERR_USAGE for images that cannot share a frame: of other pixels, or several
 *  with w-projection, whose kernels are those of one field. Local. */
tess_status tess_grid_plan_create_targets(const tess_geom *geom, int num_targets,
                                          const tess_grid_opts *opts,
                                          const tess_backend *backend,
                                          tess_grid_plan **plan);
void tess_grid_plan_destroy(tess_grid_plan *plan); /**< NULL is fine */

/** Whether w may be ignored, because the phase 2π w (n−1) stays below ε/3. */
bool tess_grid_w_negligible(const tess_geom *geom, double w_max_lambda,
                            double accuracy);

/** The relative L2 error of an image or a prediction that is due to rounding. */
double tess_grid_rounding(const tess_grid_plan *plan);

/** "6160x6160 grid, 9 planes, support 6, ..." for logs. */
void tess_grid_plan_text(const tess_grid_plan *plan, char *text, int size);

/** Lines (and stored cells per line) of a brick sum. */
int tess_grid_brick_lines(const tess_grid_plan *plan);
int tess_grid_brick_stride(const tess_grid_plan *plan);

/** The key of a brick, and the brick of a key. */
int64_t tess_grid_brick_key(const tess_grid_plan *plan, int64_t block, int64_t tile_u,
                            int64_t tile_v);
void tess_grid_brick_of_key(const tess_grid_plan *plan, int64_t key, int64_t *block,
                            int64_t *tile_u, int64_t *tile_v);

/** Correction along w times those of column and row: what image row j is multiplied by
 *  after the planes are summed, out[nx]. Pixels beyond the horizon get NaN. */
void tess_grid_correction_row(const tess_grid_plan *plan, int64_t j, double *out);

/** Estimated seconds, on one thread, of gridding one visibility, of one brick sum's
 *  handling, of one plane's transform, and of all that depends on the plan; for the
 *  planner. */
double tess_grid_cost_vis(const tess_grid_plan *plan);
double tess_grid_cost_brick(const tess_grid_plan *plan);
double tess_grid_cost_plane(const tess_grid_plan *plan, double occupied_lines);
double tess_grid_cost(const tess_grid_plan *plan);

/** The same on a device, on all of it: of a visibility sorted and gridded, and of a
 *  plane transformed. */
double tess_grid_device_cost_vis(const tess_grid_plan *plan);
double tess_grid_device_cost_plane(const tess_grid_plan *plan);

/** What gridding reports about its work. */
typedef struct tess_grid_report {
    tess_progress *progress; /**< moved on by visibilities, or NULL */
    double busy_share;       /**< out: share of the threads' time spent gridding */
    int64_t merged;          /**< out: samples whose kernel values were another's */
    tess_trace *trace;       /**< gets a span of each thread, or NULL */
} tess_grid_report;

/** What of a model is in a sample's visibilities: `factor` times, for polarisation p,
 *  the sum over the model images k of mix[p][k] times the visibility of image k. */
typedef struct tess_subtraction {
    double factor;
    int num_pol, num_model;
    const double *mix; /**< [num_pol][num_model][2], complex */
} tess_subtraction;

/** The backend's functions for gridding. */
struct tess_grid_ops {
    /** Take the samples to where the backend works and sort them there: fills
     *  everything of the list but `run`, `first_run`. NULL: the backend works on host
     *  memory and wants runs (tess_brick_list_make chooses). The samples stay borrowed
     *  until the list is freed. */
    tess_status (*load)(const tess_grid_plan *plan, const tess_samples *samples,
                        bool skip_ignored, tess_brick_list *list);
    /** The number of samples like these that `load` certainly has memory for before
     *  images and planes are there. NULL, as the next one: there is no limit. */
    int64_t (*most_vis)(const tess_grid_plan *plan, const tess_samples *like);
    /** The same once images and planes are there, beside `bytes` of other needs; or a
     *  quarter of the memory that is left, if these are larger than they should be. */
    int64_t (*most_beside)(const tess_grid_plan *plan, const tess_samples *like,
                           double bytes);
    /** Whether all samples of a list that `load` has filled stay where the backend
     *  works until the list is freed, so that using it copies none of them. NULL, as
     *  the next two, without `load`. */
    bool (*holds)(const tess_brick_list *list);
    /** The samples of a list that is held, with `num_pol` visibilities of their own,
     *  which are undefined and stay where the backend works. All else is borrowed from
     *  `of`, and the order is the same. Prediction writes to these visibilities, and
     *  gridding reads them. */
    tess_status (*derive)(const tess_brick_list *of, int num_pol,
                          tess_brick_list *derived);
    /** The visibilities of `residual` become those of `from` less those of `predicted`,
     *  which are those of the model images. Both lists are derived from `from`, and may
     *  be the same one. */
    tess_status (*subtract)(const tess_subtraction *what, const tess_brick_list *from,
                            const tess_brick_list *predicted,
                            tess_brick_list *residual);
    /** The visibilities of `to` become what an image takes of those of `from`, from
     *  which it is derived. NULL without `load`. */
    tess_status (*take)(const tess_take *what, const tess_brick_list *from,
                        tess_brick_list *to);
    /** The visibilities of `to`, a list that is derived, become those of a source of
     *  1 Jy of this phase, all values of each. NULL without `load`. */
    tess_status (*set_source)(const tess_geom_phase *phase, tess_brick_list *to);
    /** Lay out brick sums for the bricks [first, end) of the list: planes touched,
     *  offsets; allocate the arena, zeroed. */
    tess_status (*begin)(const tess_grid_plan *plan, const tess_samples *samples,
                         const tess_brick_list *bricks, int64_t first, int64_t end,
                         tess_brick_sums *sums);
    /** Grid those bricks. `psf`: grid ones instead of visibilities as well, into pols
     *  [num_pol of samples, + num_weight). */
    tess_status (*grid)(const tess_grid_plan *plan, const tess_samples *samples,
                        const tess_brick_list *bricks, int64_t first, bool psf,
                        tess_brick_sums *sums, tess_grid_report *report);
    /** Multiply rows [row_first, + num_rows) of an image, rows[num_rows][nx] of the
     *  plan's precision in memory of the backend's, by the grid correction and
     *  `factor`. Pixels beyond the horizon become NaN; `is_model`: 0, as all that is
     *  not finite. `*num_bad`: pixels above the horizon that are not finite. NULL: the
     *  rows are in host memory, where tess_grid_correction_row serves. */
    tess_status (*correct)(const tess_grid_plan *plan, double factor, bool is_model,
                           int64_t row_first, int64_t num_rows, void *rows,
                           int64_t *num_bad);
};

/** Release the arena and list of a step. */
void tess_brick_sums_free(tess_brick_sums *sums);

/** Cut all rows into runs and sort them, or what the plan's backend does instead; see
 *  tess_brick_list_append. Local. */
tess_status tess_brick_list_make(const tess_grid_plan *plan,
                                 const tess_samples *samples, bool skip_ignored,
                                 tess_brick_list *list);

/** Call begin, then grid, of the plan's backend. Only the window and `spare` of `*sums`
 *  are used as input. */
tess_status tess_grid_execute(const tess_grid_plan *plan, const tess_samples *samples,
                              const tess_brick_range *bricks, bool psf,
                              tess_brick_sums *sums, tess_grid_report *report);

#endif
