/** @file tess_gcf_strategy.h
 *  What a strategy of gridding with tables is made of, for those who write one: plans,
 *  points on their cells, and loops over them. Those of a GPU see a header of their
 *  own.
 */
#ifndef TESS_GCF_STRATEGY_H
#define TESS_GCF_STRATEGY_H

#include "tess_gcf_grid.h"

#ifdef __cplusplus
extern "C" {
#endif

/** (De)grids points with a plan, by its threads: reads the points' values and adds to
 *  the cells, or reads the cells and sets the points' values. */
typedef tess_status gcf_run(const tess_gcf_plan *plan, const tess_gcf_points *points,
                            const tess_gcf_cells *cells, bool degrid,
                            tess_gcf_report *report);

struct tess_gcf_strategy {
    const char *name;
    gcf_run *run; /**< on a CPU; NULL: there is no such strategy there */
    /** on a GPU: in a direction; NULL, or the result is: there is none */
    const struct gcf_device_method *(*device)(bool degrid);
    gcf_run *run_on_device; /**< points and cells on the host, with a GPU; NULL: they
                            are copied there, (de)gridded and copied back */
    bool is_factored;       /**< plans factor their kernels */
    bool wants_threads;     /**< see tess_gcf_strategy_wants_threads() */
};

/** The order of the points of a tile. */
typedef enum tess_gcf_sort {
    TESS_GCF_SORT_CHOSEN, /**< as the strategy chooses */
    TESS_GCF_SORT_TILE,   /**< not at all */
    TESS_GCF_SORT_LAYER,  /**< plane of w */
    TESS_GCF_SORT_KERNEL  /**< plane and offsets: neighbours read the same taps */
} tess_gcf_sort;

typedef struct gcf_job gcf_job;
typedef void gcf_function(const gcf_job *job);

/** How `tiled` sorts points and cuts tiles. All members zero are the usual way. */
typedef struct tess_gcf_tiling {
    tess_gcf_sort sort; /**< on a CPU */
    double tile_factor; /**< gridding: tiles that have fewer points than this factor
                           times the mean (of tiles that have any) are added to the grid
                           atomically */
    gcf_function *add_atomically; /**< on a CPU: that does this */
    int pieces;        /**< into how many pieces, for as many blocks or threads, tiles
                            are cut … */
    int center_radius; /**< … whose middle is within so many cells of the grid's; the
                            others are not cut */
    int narrow;        /**< gridding on a GPU: kernels of up to so many cells are added
                            by a warp for each point; 0: those, or all of few points,
                            that are faster so, unless tiles are not as usual; below:
                            none */
    bool divergent;    /**< gridding on a GPU: threads branch around taps outside of
                            footprints; else they read zeros there */
    bool by_tile;      /**< gridding on a GPU: tiles even where others are faster */
    int points; /**< degridding on a GPU: points of a piece that a block works on */
} tess_gcf_tiling;

struct tess_gcf_plan {
    const tess_gcf *gcf;
    tess_gcf_grid_opts opts;
    struct gcf_factors *factors; /**< [num_planes], of factored kernels only */
    float
        *single_taps; /**< on a CPU, with opts.single_taps: the table's taps, rounded */
    struct gcf_on_device *device; /**< tables and factors on a GPU, or NULL */
};

/** A point on its cells. */
typedef struct gcf_place {
    int64_t point; /**< index in the points */
    int32_t u, v;  /**< first cell of the footprint */
    uint16_t plane;
    uint8_t offset_u, offset_v; /**< of the table read: below half_offsets */
    bool flip_u, flip_v;        /**< it is read backwards */
    bool conjugate;             /**< w < 0 */
} gcf_place;

/** Place a point. The result is false if the footprint leaves the grid. */
bool gcf_place_point(const tess_gcf *gcf, const tess_gcf_points *points, int64_t point,
                     int64_t nu, int64_t nv, gcf_place *place);

/** Points to be gridded to, or degridded from, some cells. */
struct gcf_job {
    const tess_gcf *gcf;
    const struct gcf_table *table; /**< `factored`: its loops */
    const gcf_place *place;
    int64_t count;
    int num_pol;
    const void *taps; /**< of the table, see gcf_taps_of() */
    void *context;    /**< the plan's */
    void *vis;        /**< all points' */
    void *cells;      /**< cell (u0, v0) of the first pol */
    int64_t u0, v0;
    int64_t stride, pol_stride; /**< complex values between lines, and pols */
    int64_t lines, width;       /**< `factored`, to grid: of the cells, whole blocks */
    /** the same: called before, and after, a block of cells is added to; or NULL */
    void (*guard)(void *locks, int64_t u, int64_t v, bool take);
    void *locks;
};

/** Precision of points and cells, and of taps. */
enum { GCF_SINGLE, GCF_DOUBLE, GCF_MIXED, GCF_NUM_PRECISIONS };

/** The taps that the plan uses on a CPU. */
static inline const void *gcf_taps_of(const tess_gcf_plan *plan)
{
    return plan->single_taps ? plan->single_taps : plan->gcf->data;
}

/** The precision of the points, the cells and these taps: GCF_SINGLE, ... */
static inline int gcf_precision(const tess_gcf_plan *plan)
{
    return !plan->gcf->layout.is_double ? GCF_SINGLE
           : plan->single_taps          ? GCF_MIXED
                                        : GCF_DOUBLE;
}

/** First complex value of a place's footprint in the cells of a job. */
static inline int64_t gcf_first_cell(const gcf_job *job, const gcf_place *at, int pol)
{
    return pol * job->pol_stride + (at->u - job->u0) * job->stride + at->v - job->v0;
}

/** Points of a batch. */
enum { GCF_BATCH = 512 };

/** Run `function` over the batch that begins with point `first`. What it did is added
 *  to the report. Other threads may add to the same cells at the same time only if all
 *  do so atomically. */
void gcf_run_batch(const tess_gcf_plan *plan, const tess_gcf_points *points,
                   const tess_gcf_cells *cells, int64_t first, bool degrid,
                   gcf_function *function, tess_gcf_report *report);

/** Run `function` over all points in the order in which they come, by one thread. */
tess_status gcf_run_in_order(const tess_gcf_plan *plan, const tess_gcf_points *points,
                             const tess_gcf_cells *cells, bool degrid,
                             gcf_function *function, tess_gcf_report *report);

#ifdef __cplusplus
}
#endif
#endif
