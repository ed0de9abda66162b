/** @file tess_gcf_grid.h
 *  Gridding and degridding with tables of convolution functions. There are several
 *  strategies: those that studies have published, and `factored`, which is tessera's
 *  own. All give the same sums to rounding:
 *
 *      grid:   grid[p][x][y] += Σ_k vis[k][p] · G_k(x − u_k, y − v_k)
 *      degrid: vis[k][p] = Σ_xy conj(G_k(x − u_k, y − v_k)) · grid[p][x][y]
 *
 *  G_k is the kernel of w_k's plane (its conjugate where w_k < 0); u_k and v_k are
 *  rounded to 1/Q cell. Degridding is the adjoint of gridding. A point is left out if
 *  any cell of its footprint lies outside of the grid: it adds nothing to the grid, and
 *  its degridded value is 0.
 */
#ifndef TESS_GCF_GRID_H
#define TESS_GCF_GRID_H

#include "tess_gcf.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TESS_GCF_MAX_POL = 4, TESS_GCF_SHAPES = 6 };

typedef enum tess_gcf_backend { TESS_GCF_CPU, TESS_GCF_CUDA } tess_gcf_backend;

/** tess_gcf_strategy_there() tells which backends and directions have a strategy. */
typedef enum tess_gcf_strategy {
    TESS_GCF_SERIAL,   /**< one thread, point after point, as the points come */
    TESS_GCF_ATOMIC,   /**< threads share the points, cells are added to atomically */
    TESS_GCF_TILED,    /**< points sorted into tiles, summed in private buffers */
    TESS_GCF_FACTORED, /**< as `tiled`, with kernels as sums of a few products */
    /* on a GPU alone */
    TESS_GCF_SCATTER, /**< a block a point; to degrid, a thread a cell */
    TESS_GCF_GATHER,  /**< a thread a cell, points by tile; to degrid, a warp a point */
    TESS_GCF_WINDOW,  /**< sums stay in registers while a window moves along a track;
                           points that do not come in tracks are sorted by tile */
    TESS_GCF_COARSE,  /**< as `window`, several cells a thread, tiles in parallel */
    TESS_GCF_WARP,    /**< a warp a point, cells are added to atomically */
    TESS_GCF_COMPUTED, /**< kernels of a formula are computed, not read; on a GPU to
                            degrid, on a CPU both */
    /* on a CPU alone */
    TESS_GCF_PRIVATE, /**< threads share the points, each with a whole grid of its own
                       */
    TESS_GCF_NUM_STRATEGIES
} tess_gcf_strategy;

/** Visibilities and their positions. Their precision is that of the table. */
typedef struct tess_gcf_points {
    int64_t count;
    const double *u, *v; /**< [count] grid coordinates [cells] */
    const double *w;     /**< [count] wavelengths; NULL: all 0 */
    void *vis;           /**< complex [count][num_pol] */
    int num_pol;         /**< 1, 2 or 4 */
} tess_gcf_points;

typedef struct tess_gcf_cells {
    int64_t nu, nv;
    void *data; /**< complex [num_pol][nu][nv] */
} tess_gcf_cells;

/** How threads add to a cell that other threads may add to at the same time. */
typedef enum tess_gcf_atomics {
    TESS_GCF_NATIVE, /**< by the processor's fastest atomic instruction */
    TESS_GCF_CAS,    /**< compare and swap, one part of a number at a time */
    TESS_GCF_PLAIN /**< not atomically: the sums are WRONG; to measure the time only */
} tess_gcf_atomics;

/** The order of the points of a tile. */
typedef enum tess_gcf_sort {
    TESS_GCF_SORT_CHOSEN, /**< as the strategy chooses */
    TESS_GCF_SORT_TILE,   /**< not at all */
    TESS_GCF_SORT_LAYER,  /**< plane of w */
    TESS_GCF_SORT_KERNEL  /**< plane and offsets: neighbours read the same taps */
} tess_gcf_sort;

/** Variants of the strategies that studies have compared. With all members zero, a
 *  strategy works in its usual way. tess_gcf_check_probes() refuses a variant that the
 *  strategy does not have. */
typedef struct tess_gcf_probes {
    tess_gcf_atomics atomics; /**< gridding: scatter, warp, window, coarse; atomic */
    tess_gcf_sort sort;       /**< strategies by tile */
    double tile_factor; /**< gridding, tiled: tiles that have fewer points than this
                           factor times the mean (of tiles that have any) are added to
                           the grid atomically */
    int narrow;        /**< gridding, tiled on a GPU: kernels of up to so many cells are
                            added atomically, as `warp` does; 0: those, or all of few
                            points, that are faster so, unless other ways of tiles are
                            asked for; below: none */
    int pieces;        /**< tiled: into how many pieces, for as many blocks or threads,
                            tiles are cut … */
    int center_radius; /**< … whose middle is within so many cells of the grid's; the
                            others are not cut */
    bool cube; /**< gridding, serial: taps are read from a cube of quarters of planes in
                    steps of 1/Q cell, all as wide as the widest, as the study of tiles
                    on Xeon, Phi and P100 has them before it reorders them */
    bool active_box; /**< on a GPU: of the grid, only the box of all footprints is
                          cleared and copied */
    bool managed;    /**< on a GPU: visibilities and grid are in memory that moves
                          between host and device by itself; refused above half of
                          the device's free memory */
    bool arrays; /**< on a GPU: an array each for u, v, kernel and number of the points,
                      and for each polarisation, instead of one of structs */
    bool divergent; /**< gridding on a GPU, tiled: threads branch around taps outside of
                         footprints; else they read zeros there */
    bool serial_tiles; /**< coarse: a block does all tiles of a window, one after
                            another; else a block each */
    int bin;   /**< window, coarse: cells of the window, at least the widest kernel */
    int block; /**< on a GPU: threads of a block, 32 to 512, a multiple of 32: scatter,
                    warp, window, coarse, and gather (a power of two, which with cells
                    and stripes covers at most a tile of 32² cells); to degrid, gather
                    and computed */
    int stripes; /**< gridding on a GPU, gather: 1, 2, 4 or 8, which tiles of 32 lines
                    are cut into; each is a launch of its own */
    int bounds;  /**< gridding on a GPU, gather, window, coarse: registers for at least
                    so  many blocks on a multiprocessor, 4 or 8 */
    int cells; /**< cells a thread, at a time: gather 2, 4, 8, to degrid 1, 2, 4; coarse
                  (along each axis) 1, 2, 4 */
    int points; /**< window and coarse, tiled to degrid: points of a piece that a block
                     works on */
} tess_gcf_probes;

typedef struct tess_gcf_grid_opts {
    tess_gcf_backend backend;
    tess_gcf_strategy strategy;
    int threads;
    double factor_error; /**< factored: of a kernel, relative to its L2 norm */
    int max_rank;        /**< factored: kernels that need more products are taken from
                              their table, … */
    int least_cells;  /**< … and those with fewer cells of support a product: vectors
                           of a table's taps are then faster */
    int shape;        /**< tiled gridding on a GPU: how a block's threads lie, from 1 to
                           TESS_GCF_SHAPES; 0: chosen */
    bool fast_math;   /**< computed: by the device's fast sine, cosine and exponential
                           in single precision, which are off by some 1e-6, on a CPU
                           by short series, off by some 1e-7 */
    bool single_taps; /**< strategies with tables: taps of one in double precision are
                           read in single, half the traffic; sums are then good to 1e-7
                       */
    bool merge; /**< points that meet the same taps are made one before, on the host */
    tess_gcf_probes probes;
} tess_gcf_grid_opts;

/** A table, a strategy, and what the strategy prepares once. */
typedef struct tess_gcf_plan tess_gcf_plan;

/** A box of cells: lines along u, cells of each along v. */
typedef struct tess_gcf_box {
    int64_t u, v, lines, cells;
} tess_gcf_box;

/** What a call of tess_gcf_grid() or tess_gcf_degrid() did. */
typedef struct tess_gcf_report {
    int64_t left_out;    /**< points outside of the grid */
    int64_t merged;      /**< points that the others were merged into, or their number;
                              what follows is about them */
    int64_t point_cells; /**< Σ S² over them: work is 8 FLOP each and pol … */
    int64_t all_cells;   /**< … and over all points, merged or not */
    int64_t point_ranks; /**< Σ of factored kernels' ranks over their points */
    int64_t points_factored;
    double sort_s, seconds; /**< placing and sorting points; (de)gridding itself; on a
                                 GPU without … */
    double copy_s;          /**< … copies to it and back, and its memory; … */
    double cells_s;         /**< … the grid's alone, of copy_s */
    double busy_share;      /**< of the threads' time in the latter */
    bool kept_order;        /**< on a GPU: points were not sorted */
    tess_gcf_box box;       /**< active_box: what was cleared and copied */
    int64_t points_atomic;  /**< tiled: points (on a GPU, those of wide kernels once for
                                 each tile that they meet) that were added atomically */
} tess_gcf_report;

/** The defaults: strategy `tiled` on the CPU, one thread; for `factored`, kernels to
 *  1e-4 in up to 6 products of at least 32 cells. */
void tess_gcf_grid_opts_default(tess_gcf_grid_opts *opts);

/** "serial", …; NULL past the end. */
const char *tess_gcf_strategy_name(tess_gcf_strategy strategy);

/** Whether a backend of this build has the strategy in this direction. */
bool tess_gcf_strategy_there(tess_gcf_backend backend, tess_gcf_strategy strategy,
                             bool degrid);

/** TESS_ERR_USAGE if a probe of the options has no meaning for the strategy on the
 *  backend in this direction, or is outside of its limits. */
tess_status tess_gcf_check_probes(const tess_gcf_grid_opts *opts, bool degrid);

/** Make a plan. The table belongs to the caller and must outlive the plan. For
 *  `factored`, the kernels are factored here. On a GPU, the device is selected and the
 *  table copied to it. TESS_ERR_USAGE for options outside of their limits or a strategy
 *  that is not there in any direction, TESS_ERR_ALLOC, TESS_ERR_RESOURCE without a GPU.
 *  Local. */
tess_status tess_gcf_plan_create(const tess_gcf *gcf, const tess_gcf_grid_opts *opts,
                                 tess_gcf_plan **plan);

/** Set the number of threads of later calls, in place of that of the options. */
void tess_gcf_plan_set_threads(tess_gcf_plan *plan, int threads);

/** Lock host memory into place, so that a GPU copies to and from it directly. Unlock it
 *  before it is freed. The result is false if the memory cannot be locked; it can be
 *  used all the same. Local.
 */
bool tess_gcf_lock(void *memory, int64_t bytes);
void tess_gcf_unlock(void *memory);

/** Add points to a grid. TESS_ERR_USAGE for an impossible num_pol or grid, or a
 *  strategy that is not there in this direction, TESS_ERR_ALLOC, TESS_ERR_RESOURCE; the
 *  grid is then undefined. `report` may be NULL. Local. */
tess_status tess_gcf_grid(const tess_gcf_plan *plan, const tess_gcf_points *points,
                          tess_gcf_cells *cells, tess_gcf_report *report);

/** Set the values of points from a grid. Errors as of tess_gcf_grid(). Degridding needs
 *  no atomic additions, because every point has a value of its own: with `atomic`,
 *  threads only share the points. */
tess_status tess_gcf_degrid(const tess_gcf_plan *plan, const tess_gcf_cells *cells,
                            const tess_gcf_points *points, tess_gcf_report *report);

/** Let later calls repeat their work after they have finished it. `meter` is called
 *  before the repetitions and, with `is_over`, after them; they leave the result
 *  undefined. On a GPU, only the strategy's kernels are repeated. 0 times ends this. */
typedef void tess_gcf_meter(void *context, bool is_over);
void tess_gcf_plan_repeat(tess_gcf_plan *plan, int times, tess_gcf_meter *meter,
                          void *context);

/** The number of products that replace a plane's table; 0: the table is used. */
int tess_gcf_plan_rank(const tess_gcf_plan *plan, int plane);

/** Cells along each axis that points of a plane are gridded to on a CPU: its table's
 *  support, or less where what lies outside of its products is below factor_error. */
int tess_gcf_plan_support(const tess_gcf_plan *plan, int plane);

/** Bytes of all factors. */
int64_t tess_gcf_plan_factor_bytes(const tess_gcf_plan *plan);

/** How many footprints of points cover each cell: map[nu][nv]. TESS_ERR_ALLOC. Local.
 */
tess_status tess_gcf_updates(const tess_gcf *gcf, const tess_gcf_points *points,
                             int64_t nu, int64_t nv, float *map);

/** The fastest strategy on this processor or device, for kernels of one width. */
typedef struct tess_gcf_tuning {
    tess_gcf_backend backend;
    bool degrid, is_double;
    int num_pol;
    int support;
    tess_gcf_strategy strategy;
    int shape; /**< of its blocks, see tess_gcf_grid_opts; 0: it chooses */
    double gflops;
} tess_gcf_tuning;

/** Save the results for one backend in the folder of tess_cache.h, in a file for each
 *  processor and each kind of GPU; earlier results are replaced. For a GPU, a device
 *  must have been selected. TESS_ERR_IO. Local. */
tess_status tess_gcf_tuning_write(const tess_gcf_tuning *tuning, int count);

/** Find the saved result for the direction, precision and backend of `wanted` that is
 *  nearest to its number of polarisations and then to its support. The result is false,
 *  and `*found` untouched, if nothing was saved for this processor or device. Local. */
bool tess_gcf_tuned(const tess_gcf_tuning *wanted, tess_gcf_tuning *found);

/** NULL is fine. */
void tess_gcf_plan_destroy(tess_gcf_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
