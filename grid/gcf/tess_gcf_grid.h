/** @file tess_gcf_grid.h
 *  Gridding and degridding with tables of convolution functions, as w-projection uses
 *  them:
 *
 *      grid:   grid[p][x][y] += Σ_k vis[k][p] · G_k(x − u_k, y − v_k)
 *      degrid: vis[k][p] = Σ_xy conj(G_k(x − u_k, y − v_k)) · grid[p][x][y]
 *
 *  G_k is the kernel of w_k's plane (its conjugate where w_k < 0); u_k and v_k are
 *  rounded to 1/Q cell. Degridding is the adjoint of gridding. A point is left out if
 *  any cell of its footprint lies outside of the grid: it adds nothing to the grid, and
 *  its degridded value is 0.
 *
 *  A strategy is a way to form these sums. All strategies give the same sums to
 *  rounding. There are two here; others can be made with tess_gcf_strategy.h.
 */
#ifndef TESS_GCF_GRID_H
#define TESS_GCF_GRID_H

#include "tess_gcf.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TESS_GCF_MAX_POL = 4, TESS_GCF_SHAPES = 6 };

typedef enum tess_gcf_backend { TESS_GCF_CPU, TESS_GCF_DEVICE } tess_gcf_backend;

typedef struct tess_gcf_strategy tess_gcf_strategy;

/** Points are sorted into tiles, which are summed in private buffers. */
extern const tess_gcf_strategy tess_gcf_tiled;

/** The same, with kernels as sums of a few products of one-dimensional factors. */
extern const tess_gcf_strategy tess_gcf_factored;

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

typedef struct tess_gcf_grid_opts {
    tess_gcf_backend backend;
    const tess_gcf_strategy *strategy;
    int threads;
    double factor_error; /**< factored: of a kernel, relative to its L2 norm */
    int max_rank;        /**< factored: kernels that need more products are taken from
                              their table, … */
    int least_cells;  /**< … and those with fewer cells of support a product: vectors
                           of a table's taps are then faster */
    int shape;        /**< tiled gridding on a GPU: how a block's threads lie, from 1 to
                           TESS_GCF_SHAPES; 0: chosen */
    bool single_taps; /**< taps of a table in double precision are read in single, half
                           the traffic; sums are then good to 1e-7. Not of factors. */
    bool merge; /**< points that meet the same taps are made one before, on the host */
    const struct tess_gcf_tiling *tiling; /**< tiled: how points are sorted and tiles
                                               are cut, if not in the usual way */
    void *context; /**< of a strategy that is not of this module, or NULL */
} tess_gcf_grid_opts;

/** A table, a strategy, and what the strategy prepares once. */
typedef struct tess_gcf_plan tess_gcf_plan;

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
                                 GPU without copies to it and back, and its memory */
    double busy_share;      /**< of the threads' time in the latter */
    bool kept_order;        /**< on a GPU: points were not sorted */
    int64_t points_atomic;  /**< tiled: points (on a GPU, those of wide kernels once for
                                 each tile that they meet) that were added atomically */
} tess_gcf_report;

/** The defaults: strategy `tiled` on the CPU, one thread; for `factored`, kernels to
 *  1e-4 in up to 6 products of at least 32 cells. */
void tess_gcf_grid_opts_default(tess_gcf_grid_opts *opts);

/** "tiled", … */
const char *tess_gcf_strategy_name(const tess_gcf_strategy *strategy);

/** Whether a backend of this build has the strategy in this direction. */
bool tess_gcf_strategy_there(tess_gcf_backend backend,
                             const tess_gcf_strategy *strategy, bool degrid);

/** Whether the strategy is about how threads share the points of one call, so that
 *  callers do not make calls from several threads instead. */
bool tess_gcf_strategy_wants_threads(const tess_gcf_strategy *strategy);

/** Make a plan. The table belongs to the caller and must outlive the plan. For
 *  `factored`, the kernels are factored here. On a GPU, the device is selected and the
 *  table copied to it. TESS_ERR_USAGE for options outside of their limits or a strategy
 *  that is not there in any direction, TESS_ERR_ALLOC, TESS_ERR_RESOURCE without a GPU.
 *  Local. */
tess_status tess_gcf_plan_create(const tess_gcf *gcf, const tess_gcf_grid_opts *opts,
                                 tess_gcf_plan **plan);

/** Set the number of threads of later calls, in place of that of the options. */
void tess_gcf_plan_set_threads(tess_gcf_plan *plan, int threads);

/** Add points to a grid. TESS_ERR_USAGE for an impossible num_pol or grid, or a
 *  strategy that is not there in this direction, TESS_ERR_ALLOC, TESS_ERR_RESOURCE; the
 *  grid is then undefined. `report` may be NULL. Local. */
tess_status tess_gcf_grid(const tess_gcf_plan *plan, const tess_gcf_points *points,
                          tess_gcf_cells *cells, tess_gcf_report *report);

/** Set the values of points from a grid. Errors as of tess_gcf_grid(). */
tess_status tess_gcf_degrid(const tess_gcf_plan *plan, const tess_gcf_cells *cells,
                            const tess_gcf_points *points, tess_gcf_report *report);

/** The number of products that replace a plane's table; 0: the table is used. */
int tess_gcf_plan_rank(const tess_gcf_plan *plan, int plane);

/** Cells along each axis that points of a plane are gridded to on a CPU: its table's
 *  support, or less where what lies outside of its products is below factor_error. */
int tess_gcf_plan_support(const tess_gcf_plan *plan, int plane);

/** Bytes of all factors. */
int64_t tess_gcf_plan_factor_bytes(const tess_gcf_plan *plan);

/** The fastest strategy on this processor or device, for kernels of one width. */
typedef struct tess_gcf_tuning {
    tess_gcf_backend backend;
    bool degrid, is_double;
    int num_pol;
    int support;
    const tess_gcf_strategy *strategy; /**< tess_gcf_tiled or tess_gcf_factored */
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
