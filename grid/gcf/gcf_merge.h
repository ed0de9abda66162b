/** @file gcf_merge.h  (private to grid/gcf/)
 *  Merges points that use the same taps of the table and lie on the same cells.
 */
#ifndef TESS_GCF_MERGE_H
#define TESS_GCF_MERGE_H

#include "tess_gcf_strategy.h"

/** Merged points, and which points each of them stands for. */
typedef struct gcf_merged {
    tess_gcf_points points;
    int64_t *group;      /**< [points before] index in `points`; −1: left out */
    int64_t left_out;    /**< number of points whose footprint leaves the grid */
    int64_t all_cells;   /**< Σ S² over all points that are not left out */
    double *coordinates; /**< private: memory of u, v and w of `points` */
} gcf_merged;

/** Merge points. To grid, the value of a merged point is the sum of the values; to
 *  degrid, it has none yet. End `*merged` with gcf_merged_free(). TESS_ERR_ALLOC. */
tess_status gcf_merge(const tess_gcf *gcf, const tess_gcf_points *points,
                      const tess_gcf_cells *cells, bool degrid, gcf_merged *merged);

/** Copy the values of merged points to the points that they stand for,
 *  vis[count][num_pol]. */
void gcf_unmerge(const tess_gcf *gcf, const gcf_merged *merged, int64_t count,
                 void *vis);

void gcf_merged_free(gcf_merged *merged);
#endif
