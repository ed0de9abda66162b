/** @file tess_study.h
 *  Strategies of gridding with tables that studies have published, beside those of
 *  tess_gcf_grid.h: to be compared with one another, in all the variants that the
 *  studies had.
 */
#ifndef TESS_STUDY_H
#define TESS_STUDY_H

#include "tess_gcf_strategy.h"

#ifdef __cplusplus
extern "C" {
#endif

/** tess_study_there() tells which backends and directions have a strategy. */
typedef enum tess_study_strategy {
    TESS_STUDY_SERIAL,   /**< one thread, point after point, as the points come */
    TESS_STUDY_ATOMIC,   /**< threads share the points, cells are added to atomically */
    TESS_STUDY_TILED,    /**< points sorted into tiles, summed in private buffers */
    TESS_STUDY_FACTORED, /**< as `tiled`, with kernels as sums of a few products */
    /* on a GPU alone */
    TESS_STUDY_SCATTER,  /**< a block a point; to degrid, a thread a cell */
    TESS_STUDY_GATHER,   /**< a thread a cell, points by tile; to degrid, a warp a point
                          */
    TESS_STUDY_WINDOW,   /**< sums stay in registers while a window moves along a track;
                            points that do not come in tracks are sorted by tile */
    TESS_STUDY_COARSE,   /**< as `window`, several cells a thread, tiles in parallel */
    TESS_STUDY_WARP,     /**< a warp a point, cells are added to atomically */
    TESS_STUDY_COMPUTED, /**< kernels of a formula are computed, not read; on a GPU to
                            degrid, on a CPU both */
    /* on a CPU alone */
    TESS_STUDY_PRIVATE, /**< threads share the points, each with a whole grid of its own
                         */
    TESS_STUDY_NUM_STRATEGIES
} tess_study_strategy;

/** How threads add to a cell that other threads may add to at the same time. */
typedef enum tess_study_atomics {
    TESS_STUDY_NATIVE, /**< by the processor's fastest atomic instruction */
    TESS_STUDY_CAS,    /**< compare and swap, one part of a number at a time */
    TESS_STUDY_PLAIN   /**< not atomically: the sums are WRONG; to measure the time only
                        */
} tess_study_atomics;

/** Variants of the strategies that studies have compared. With all members zero, a
 *  strategy works in its usual way. tess_study_check_probes() refuses a variant that
 * the strategy does not have. */
typedef struct tess_study_probes {
    tess_study_atomics atomics; /**< gridding: scatter, warp, window, coarse; atomic */
    tess_gcf_sort sort;         /**< strategies by tile */
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
} tess_study_probes;

typedef struct tess_study_opts {
    tess_gcf_backend backend;
    tess_study_strategy strategy;
    int threads;
    double factor_error; /**< this and the next four: see tess_gcf_grid_opts */
    int max_rank;
    int least_cells;
    int shape;
    bool single_taps;
    bool merge;
    bool fast_math; /**< computed: by the device's fast sine, cosine and exponential in
                         single precision, which are off by some 1e-6, on a CPU by short
                         series, off by some 1e-7 */
    tess_study_probes probes;
} tess_study_opts;

/** A table, a strategy, and what the strategy prepares once. */
typedef struct tess_study_plan tess_study_plan;

/** A box of cells: lines along u, cells of each along v. */
typedef struct tess_study_box {
    int64_t u, v, lines, cells;
} tess_study_box;

/** What a call took on a GPU beside its report. */
typedef struct tess_study_copies {
    double copy_s;      /**< copies to it and back, and its memory; … */
    double cells_s;     /**< … the grid's alone, of copy_s */
    tess_study_box box; /**< active_box: what was cleared and copied */
} tess_study_copies;

/** As tess_gcf_grid_opts_default(). */
void tess_study_opts_default(tess_study_opts *opts);

/** "serial", …; NULL past the end. */
const char *tess_study_name(tess_study_strategy strategy);

/** Whether a backend of this build has the strategy in this direction. */
bool tess_study_there(tess_gcf_backend backend, tess_study_strategy strategy,
                      bool degrid);

/** The strategy in its usual way, for plans of tess_gcf_grid.h. */
const tess_gcf_strategy *tess_study_strategy_of(tess_study_strategy strategy);

/** TESS_ERR_USAGE if a probe of the options has no meaning for the strategy on the
 *  backend in this direction, or is outside of its limits. */
tess_status tess_study_check_probes(const tess_study_opts *opts, bool degrid);

/** As tess_gcf_plan_create(). `computed` takes a table of tess_gcf_create_formula(). */
tess_status tess_study_plan_create(const tess_gcf *gcf, const tess_study_opts *opts,
                                   tess_study_plan **plan);

/** NULL is fine. */
void tess_study_plan_destroy(tess_study_plan *plan);

/** The plan of tess_gcf_grid.h that it is made of. */
const tess_gcf_plan *tess_study_core(const tess_study_plan *plan);

/** As tess_gcf_grid() and tess_gcf_degrid(). Degridding needs no atomic additions,
 *  because every point has a value of its own: with `atomic`, threads only share the
 *  points. */
tess_status tess_study_grid(tess_study_plan *plan, const tess_gcf_points *points,
                            tess_gcf_cells *cells, tess_gcf_report *report);
tess_status tess_study_degrid(tess_study_plan *plan, const tess_gcf_cells *cells,
                              const tess_gcf_points *points, tess_gcf_report *report);

/** Of the plan's last call. */
tess_study_copies tess_study_plan_copies(const tess_study_plan *plan);

/** Let later calls repeat their work after they have finished it. `meter` is called
 *  before the repetitions and, with `is_over`, after them; they leave the result
 *  undefined. On a GPU, only the strategy's kernels are repeated. 0 times ends this. */
typedef void tess_study_meter(void *context, bool is_over);
void tess_study_plan_repeat(tess_study_plan *plan, int times, tess_study_meter *meter,
                            void *context);

/** Lock host memory into place, so that a GPU copies to and from it directly. Unlock it
 *  before it is freed. The result is false if the memory cannot be locked; it can be
 *  used all the same. Local. */
bool tess_study_lock(void *memory, int64_t bytes);
void tess_study_unlock(void *memory);

/** How many footprints of points cover each cell: map[nu][nv]. TESS_ERR_ALLOC. Local.
 */
tess_status tess_study_updates(const tess_gcf *gcf, const tess_gcf_points *points,
                               int64_t nu, int64_t nv, float *map);

/** Scale the kernels so that the taps of each plane and pair of offsets sum to 1: a
 *  grid of ones is then read off as ones. Kernels of a formula are a table's
 *  afterwards. TESS_ERR_USAGE where a sum is 0. */
tess_status tess_study_normalise(tess_gcf *gcf);

#ifdef __cplusplus
}
#endif
#endif
