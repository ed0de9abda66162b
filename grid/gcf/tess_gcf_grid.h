/** @file tess_gcf_grid.h
 *  Gridding and degridding with tables of convolution functions, by the strategies that
 *  studies of it have published and one of our own. All give the same sums to rounding:
 *
 *      grid:   grid[p][x][y] += Σ_k vis[k][p] · G_k(x − u_k, y − v_k)
 *      degrid: vis[k][p] = Σ_xy conj(G_k(x − u_k, y − v_k)) · grid[p][x][y]
 *
 *  G_k being the kernel of w_k's plane (its conjugate where w_k < 0), with u_k and v_k
 *  rounded to 1/Q cell. Degridding is the adjoint of gridding. Points whose footprint
 *  does not lie inside the grid as a whole are left out: they add nothing, and 0 is
 * read off for them.
 */
#ifndef TESS_GCF_GRID_H
#define TESS_GCF_GRID_H

#include "tess_gcf.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TESS_GCF_MAX_POL = 4, TESS_GCF_SHAPES = 6 };

typedef enum tess_gcf_backend { TESS_GCF_CPU, TESS_GCF_CUDA } tess_gcf_backend;

/** Not every one is there on both backends and in both directions:
 *  tess_gcf_strategy_there(). */
typedef enum tess_gcf_strategy {
    TESS_GCF_SERIAL,   /**< one thread, point after point, as the points come */
    TESS_GCF_ATOMIC,   /**< threads share the points, cells are added to atomically */
    TESS_GCF_TILED,    /**< points sorted into tiles, summed in private buffers */
    TESS_GCF_FACTORED, /**< so too, with kernels as sums of a few products */
    /* on a GPU alone */
    TESS_GCF_SCATTER, /**< a block a point; to degrid, a thread a cell */
    TESS_GCF_GATHER,  /**< a thread a cell, points by tile; to degrid, a warp a point */
    TESS_GCF_WINDOW,  /**< sums stay in registers while a window moves along a track;
                           points that do not come in tracks are sorted by tile */
    TESS_GCF_COARSE,  /**< so too, several cells a thread, tiles in parallel */
    TESS_GCF_WARP,    /**< a warp a point, cells are added to atomically */
    TESS_GCF_COMPUTED, /**< kernels of a formula are computed, not read; to degrid */
    TESS_GCF_NUM_STRATEGIES
} tess_gcf_strategy;

/** Visibilities and where they lie; precision is the table's. */
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
                           in single precision, which are off by some 1e-6 */
    bool single_taps; /**< tiled on a GPU: taps of a table in double precision are read
                           in single, half the traffic; sums are then good to 1e-7 */
    bool merge; /**< on the CPU: points that meet the same taps are made one before */
} tess_gcf_grid_opts;

/** A strategy for a table, with what it prepares once. */
typedef struct tess_gcf_plan tess_gcf_plan;

/** What a call did. */
typedef struct tess_gcf_report {
    int64_t left_out;    /**< points outside of the grid */
    int64_t merged;      /**< points that the others were merged into, or their number;
                              what follows is about them */
    int64_t point_cells; /**< Σ S² over them: work is 8 FLOP each and pol */
    int64_t point_ranks; /**< Σ of factored kernels' ranks over their points */
    int64_t points_factored;
    double sort_s, seconds; /**< placing and sorting points; (de)gridding itself; on a
                                 GPU without … */
    double copy_s;          /**< … copies to it and back, and its memory; … */
    double cells_s;         /**< … the grid's alone, of copy_s */
    double busy_share;      /**< of the threads' time in the latter */
    bool kept_order;        /**< on a GPU: points were not sorted */
} tess_gcf_report;

/** On the CPU: tiled, one thread, kernels to 1e-4 in up to 6 products of at least
 *  32 cells. */
void tess_gcf_grid_opts_default(tess_gcf_grid_opts *opts);

/** "serial", …; NULL past the end. */
const char *tess_gcf_strategy_name(tess_gcf_strategy strategy);

/** Does a backend of this build have it, in this direction? */
bool tess_gcf_strategy_there(tess_gcf_backend backend, tess_gcf_strategy strategy,
                             bool degrid);

/** The table is the caller's and must outlive the plan. `factored` takes its kernels
 *  apart here; a GPU is taken, and the table copied to it. TESS_ERR_USAGE for options
 *  outside of their limits or a strategy that is not there in any direction,
 *  TESS_ERR_ALLOC, TESS_ERR_RESOURCE without a GPU. Local. */
tess_status tess_gcf_plan_create(const tess_gcf *gcf, const tess_gcf_grid_opts *opts,
                                 tess_gcf_plan **plan);

/** Threads of the calls that follow, in place of those of the options. */
void tess_gcf_plan_set_threads(tess_gcf_plan *plan, int threads);

/** Add points to a grid. TESS_ERR_USAGE for an impossible num_pol or grid, or a
 * strategy that is not there in this direction, TESS_ERR_ALLOC, TESS_ERR_RESOURCE; the
 * grid is then undefined. `report` may be NULL. Local. */
tess_status tess_gcf_grid(const tess_gcf_plan *plan, const tess_gcf_points *points,
                          tess_gcf_cells *cells, tess_gcf_report *report);

/** Read points off a grid; errors alike. There is no atomic degridding: nothing is
 *  added to in common, threads share the points and `atomic` does just that. */
tess_status tess_gcf_degrid(const tess_gcf_plan *plan, const tess_gcf_cells *cells,
                            const tess_gcf_points *points, tess_gcf_report *report);

/** Products that a plane is made of; 0: it is taken from its table. */
int tess_gcf_plan_rank(const tess_gcf_plan *plan, int plane);

/** Bytes of all factors. */
int64_t tess_gcf_plan_factor_bytes(const tess_gcf_plan *plan);

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

/** Keep what was found for one backend, in place of what there was, in the folder of
 *  tess_cache.h, a file for each processor and each kind of GPU. On a GPU, one has been
 *  taken. TESS_ERR_IO. Local. */
tess_status tess_gcf_tuning_write(const tess_gcf_tuning *tuning, int count);

/** What was kept for the direction, precision and backend of `wanted` and what is
 *  nearest to its polarisations and then to its support; false, `*found` being
 *  untouched, where there is nothing for this processor or device. Local. */
bool tess_gcf_tuned(const tess_gcf_tuning *wanted, tess_gcf_tuning *found);

/** NULL is fine. */
void tess_gcf_plan_destroy(tess_gcf_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
