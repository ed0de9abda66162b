/** @file gcf_grid.h  (private to grid/gcf/)
 *  Points placed on cells, the innermost loops that work on them, and the strategies.
 *  The loops are compiled from one source (gcf_isa.c) for each instruction set and
 *  picked at run time.
 */
#ifndef TESS_GCF_GRID_PRIVATE_H
#define TESS_GCF_GRID_PRIVATE_H

#ifdef _OPENMP
#include <omp.h>
#endif

#include "gcf.h"
#include "tess_gcf_grid.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Number of this thread in its team. */
static inline int gcf_thread(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

/** A point on its cells. */
typedef struct gcf_place {
    int64_t point; /**< index in the points */
    int32_t u, v;  /**< first cell of the footprint */
    uint16_t plane;
    uint8_t offset_u, offset_v; /**< of the table read: below half_offsets */
    bool flip_u, flip_v;        /**< it is read backwards */
    bool conjugate;             /**< w < 0 */
} gcf_place;

/** Points to be gridded to, or degridded from, some cells. */
typedef struct gcf_job {
    const tess_gcf *gcf;
    const struct gcf_table *table; /**< `factored`: its loops */
    const gcf_place *place;
    int64_t count;
    int num_pol;
    const void *taps; /**< of the table, see gcf_taps_of() */
    const void *cube; /**< grid_cube: the plan's */
    void *vis;        /**< all points' */
    void *cells;      /**< cell (u0, v0) of the first pol */
    int64_t u0, v0;
    int64_t stride, pol_stride; /**< complex values between lines, and pols */
    int64_t lines, width;       /**< `factored`, to grid: of the cells, whole blocks */
    /** the same: called before, and after, a block of cells is added to; or NULL */
    void (*guard)(void *locks, int64_t u, int64_t v, bool take);
    void *locks;
} gcf_job;

typedef void gcf_function(const gcf_job *job);

enum {
    GCF_BLOCK_LINES = 8, /**< what products are formed in: most lines … */
    GCF_BLOCK_CELLS =
        16, /**< … and cells of a block, and zeros around a factor's taps */
    GCF_MOST_PRODUCTS = 512, /**< worked on together */
    GCF_MAX_RANK = 12
};

/** Taps of a factor to be split into real parts, imaginary parts and their sums, for as
 *  many cells together as vectors have lanes. */
typedef struct gcf_split {
    const void *taps; /**< complex [support], zeros GCF_BLOCK_CELLS around */
    int support;
    int shift; /**< of the first tap in the first block */
    bool conjugate;
    const void *vis; /**< a column's: taps are multiplied by it */
    void *out;       /**< [blocks][3][lanes] */
} gcf_split;

/** A product column[x] · row[y] of split factors. */
typedef struct gcf_product {
    const void *column, *row;
    int32_t line, end_line; /**< the column's, which begins where lanes do */
    int32_t first, end;     /**< the row's blocks of lanes */
} gcf_product;

/** A product that meets the lines in work. */
typedef struct gcf_met {
    const void *column, *row;
    int64_t first;
} gcf_met;

/** Cells, of a buffer or the grid itself, and products to be added to them. */
typedef struct gcf_product_job {
    const gcf_product *product;
    int64_t count;      /**< up to GCF_MOST_PRODUCTS */
    const gcf_job *job; /**< its lines, width and stride are meant, and its guard */
    void *cells;        /**< of one pol */
    /** work memory: [count]; for each block of cells, which of them meet it, and how
     *  many do: [width / lanes][GCF_MOST_PRODUCTS], [width / lanes] */
    gcf_met *met;
    uint16_t *list, *block_count;
} gcf_product_job;

/** A point's factors and a buffer to read it off. */
typedef struct gcf_dot_job {
    int rank, support;
    const uint16_t *half; /**< [rank] cells of a term on either side of the middle */
    bool conjugate;       /**< the kernel is (w < 0): it is then conjugated twice */
    const void *column, *row;      /**< complex [rank][·] at the first tap */
    int64_t column_step, row_step; /**< complex values from term to term */
    const void *cells;             /**< the footprint's first cell */
    int64_t stride;
    double value[2]; /**< out */
} gcf_dot_job;

/** Precision of points and cells, and of taps. */
enum { GCF_SINGLE, GCF_DOUBLE, GCF_MIXED, GCF_NUM_PRECISIONS };

/** Functions of one instruction set: of tables by precision, others by [is_double]. */
typedef struct gcf_table {
    /** loops as one writes them */
    gcf_function *grid_plain[GCF_NUM_PRECISIONS], *degrid_plain[GCF_NUM_PRECISIONS];
    gcf_function *grid_atomic[GCF_NUM_PRECISIONS];
    gcf_function *grid_cube[2]; /**< with taps from a cube */
    /** kernels of a formula, computed; [is_double][with fast functions, in single] */
    gcf_function *grid_computed[2][2], *grid_computed_atomic[2][2];
    gcf_function *degrid_computed[2][2];
    /** vectors of cells */
    gcf_function *grid[GCF_NUM_PRECISIONS], *degrid[GCF_NUM_PRECISIONS];
    int lanes[2];
    void (*split_column[2])(const gcf_split *split, bool add);
    void (*split_row[2])(const gcf_split *split);
    void (*multiply[2])(const gcf_product_job *job);
    void (*dot[2])(gcf_dot_job *job);
} gcf_table;

extern const gcf_table gcf_table_portable;
#if defined(__x86_64__)
extern const gcf_table gcf_table_avx2;
extern const gcf_table gcf_table_knl;
extern const gcf_table gcf_table_avx512;
#endif

/** The table for this processor, see tess_isa_best(). */
const gcf_table *gcf_table_best(void);

/** Tables and factors on a GPU, see gcf_cuda.h. */
typedef struct gcf_cuda gcf_cuda;

/** A plane as Σ_r column_r(x)·row_r(y), both tabulated for all Q offsets. */
typedef struct gcf_factors {
    int rank; /**< 0: not factored */
    int skip; /**< taps at either end of all lines that are left out, being 0 */
    uint16_t half[GCF_MAX_RANK]; /**< taps so many cells or more from the middle are 0,
                                      of each term; S/2: none. On a GPU always that */
    double error;                /**< relative, of the products */
    void *data; /**< complex [2][rank][Q][gcf_factor_line(S)]: columns, rows; zeros
                     around the taps */
} gcf_factors;

struct tess_gcf_plan {
    const tess_gcf *gcf;
    tess_gcf_grid_opts opts;
    gcf_factors *factors; /**< [num_planes], factored alone */
    /** complex [num_planes][C][C], C = max_support·Q/2 + 1, where that is asked for */
    void *cube;
    float *single_taps; /**< the table's, on a CPU, where they are asked for */
    gcf_cuda *cuda;     /**< on that backend */
    int repeat;         /**< as of tess_gcf_plan_repeat() */
    tess_gcf_meter *meter;
    void *context;
};

/** Taps that a plan's points are gridded with, and the precision that this makes. */
static inline const void *gcf_taps_of(const tess_gcf_plan *plan)
{
    return plan->single_taps ? plan->single_taps : plan->gcf->data;
}

static inline int gcf_precision(const tess_gcf_plan *plan)
{
    return !plan->gcf->layout.is_double ? GCF_SINGLE
           : plan->single_taps          ? GCF_MIXED
                                        : GCF_DOUBLE;
}

/** Footprints that points of a plane have: of its table, or narrower, of its factors.
 */
static inline int gcf_skip(const tess_gcf_plan *plan, int plane)
{
    return plan->factors ? plan->factors[plane].skip : 0;
}

static inline int64_t gcf_factor_line(int support)
{
    return support + 2 * GCF_BLOCK_CELLS;
}

/** Take all planes apart, in parallel. */
tess_status gcf_factor_planes(tess_gcf_plan *plan);

/** Factor lines of a plane at an offset, at the first tap: column, or row, of the first
 * term; terms are Q lines apart. */
const void *gcf_factor_at(const tess_gcf_plan *plan, int plane, int which, int offset);

/** Where a point lies; false when its footprint leaves the grid. */
bool gcf_place_point(const tess_gcf *gcf, const tess_gcf_points *points, int64_t point,
                     int64_t nu, int64_t nv, gcf_place *place);

/** Sort places by a key, stably; `scratch` is memory of GCF_ORDER_BYTES for each. */
enum { GCF_ORDER_BYTES = 32 };
typedef uint64_t gcf_key(const void *context, const gcf_place *place);
void gcf_order(gcf_place *place, int64_t count, gcf_key *key, const void *context,
               void *scratch);

/** Points of which no two meet the same taps, and what they stand for. */
typedef struct gcf_merged {
    tess_gcf_points points;
    int64_t *group;      /**< [points merged] index in `points`; −1: left out */
    int64_t left_out;    /**< outside of the grid */
    int64_t all_cells;   /**< Σ S² over all points that are not */
    double *coordinates; /**< private: of `points` */
} gcf_merged;

/** Merge points: sums of their values, or (degrid) none yet. `*merged` ends with
 *  gcf_merged_free(). TESS_ERR_ALLOC. */
tess_status gcf_merge(const tess_gcf *gcf, const tess_gcf_points *points,
                      const tess_gcf_cells *cells, bool degrid, gcf_merged *merged);

/** Values of merged points to those that they stand for, vis[count][num_pol]. */
void gcf_unmerge(const tess_gcf *gcf, const gcf_merged *merged, int64_t count,
                 void *vis);
void gcf_merged_free(gcf_merged *merged);

/** GCF_BATCH points from `first` on, or those there are, as they come, by one of the
 *  plain loops; nobody else adds to the cells meanwhile, but by atomics. What was done
 *  is added to the report. */
enum { GCF_BATCH = 512 };
void gcf_run_batch(const tess_gcf_plan *plan, const tess_gcf_points *points,
                   const tess_gcf_cells *cells, int64_t first, bool degrid,
                   gcf_function *function, tess_gcf_report *report);

/** All points so, batch after batch, by one thread. */
tess_status gcf_run_in_order(const tess_gcf_plan *plan, const tess_gcf_points *points,
                             const tess_gcf_cells *cells, bool degrid,
                             gcf_function *function, tess_gcf_report *report);

/** All points so, by threads that share them; `function` adds atomically where there
 * are several. */
tess_status gcf_run_shared(const tess_gcf_plan *plan, const tess_gcf_points *points,
                           const tess_gcf_cells *cells, bool degrid,
                           gcf_function *function, tess_gcf_report *report);

/** Strategies, in both directions: the direction tells which of points and cells is
 *  written. */
tess_status gcf_run_serial(const tess_gcf_plan *plan, const tess_gcf_points *points,
                           const tess_gcf_cells *cells, bool degrid,
                           tess_gcf_report *report);
tess_status gcf_run_atomic(const tess_gcf_plan *plan, const tess_gcf_points *points,
                           const tess_gcf_cells *cells, bool degrid,
                           tess_gcf_report *report);
tess_status gcf_run_private(const tess_gcf_plan *plan, const tess_gcf_points *points,
                            const tess_gcf_cells *cells, bool degrid,
                            tess_gcf_report *report);
tess_status gcf_run_computed(const tess_gcf_plan *plan, const tess_gcf_points *points,
                             const tess_gcf_cells *cells, bool degrid,
                             tess_gcf_report *report);
tess_status gcf_run_tiled(const tess_gcf_plan *plan, const tess_gcf_points *points,
                          const tess_gcf_cells *cells, bool degrid,
                          tess_gcf_report *report);

/** The points of a tile, all of factored planes, to or from cells of which the first
 * is (job->u0, job->v0); `work` as of gcf_factored_work_bytes(). */
void gcf_factored_grid(const tess_gcf_plan *plan, const gcf_job *job, void *work);
void gcf_factored_degrid(const tess_gcf_plan *plan, const gcf_job *job);
int64_t gcf_factored_work_bytes(const tess_gcf_plan *plan, int64_t lines,
                                int64_t cells);
/** Are so few points best added to the grid itself? Buffers are worth it where products
 *  are many. */
bool gcf_factored_direct(const tess_gcf_plan *plan, const gcf_place *place,
                         int64_t count);

#ifdef __cplusplus
}
#endif
#endif
