/** @file tess_tile_cuda.h  (for degrid/ and the cuda backend)
 *  The innermost work on a GPU: rows of visibilities sorted to bricks, visibilities to
 *  brick sums (or whole w-planes) and back. Geometry, folding, w-phases, weights and
 *  polarisations are those of the CPU's tile loops; only the order of sums differs,
 * which changes from run to run within rounding, unless the plan is `repeatable`: brick
 * sums then depend on the bricks' visibilities and the order of their rows alone.
 *
 *  Pointers marked *device* are device memory of the current CUDA device. Calls take a
 *  stream (cudaStream_t is struct CUstream_st *; NULL is the default stream), enqueue
 * work there and return without waiting unless they say otherwise. Nothing here is
 * thread-safe on one list; several streams may read one list. Memory that calls need
 * for themselves is taken and given back in stream order (cudaMallocAsync).
 *
 *  Needs compute capability 8.0; 9.0 adds whole values at once to the sums.
 *
 *  All fail with TESS_ERR_ALLOC when device memory is short and TESS_ERR_RESOURCE when
 *  the device reports anything else. All are Local.
 */
#ifndef TESS_TILE_CUDA_H
#define TESS_TILE_CUDA_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "tess_device_samples.h"
#include "tess_grid.h"

struct CUstream_st;

/** Runs in order of brick, and the bricks: what tess_brick_list is to the CPU. The
 * arrays below are host memory; runs and the list of work stay on the device. */
typedef struct tile_cuda_list {
    int64_t num_vis, num_runs, num_bricks;
    int64_t *key;         /**< [num_bricks] ascending brick keys */
    int64_t *brick_vis;   /**< [num_bricks] samples */
    int32_t *plane_first; /**< [num_bricks] first w-plane touched */
    int32_t *num_planes;  /**< [num_bricks] planes from there */
    int64_t *first_chunk; /**< [num_bricks + 1] work items, for tile_cuda_grid */
    int64_t device_bytes; /**< held on the device */
    struct tile_cuda_work *work;
} tile_cuda_list;

/** Where the grid's values are: brick sums in an arena, or whole planes.
 *
 *  Brick sums: data[brick.offset + ...] as tess_brick_sum says,
 * [pol][plane][line][stride], lines = tess_grid_brick_lines(), stride =
 * tess_grid_brick_stride(); `brick` is a device copy of the step's tess_brick_sum, one
 * for each brick of the call, in list order. Offsets are even. Cells of a line beyond
 * `lines` are neither written nor read.
 *
 *  Whole planes: `brick` is NULL and data[num_pol][num_planes][nu][nv] holds the planes
 *  [plane_first, plane_first + num_planes) of the plan, which must cover every plane
 * that the bricks touch. Saves the arena and its assembly when memory is plenty. */
typedef struct tile_cuda_sums {
    void *data; /**< device, complex of the plan's precision, 16-byte aligned */
    int num_pol;
    const tess_brick_sum *brick;     /**< device, or NULL */
    int64_t num_values;              /**< of brick sums, the step's arena */
    int32_t plane_first, num_planes; /**< whole planes only */
} tile_cuda_sums;

/** A part of a step: samples, their list, and the sums of its bricks [first, end). */
typedef struct cuda_part {
    const tess_device_samples *samples;
    const tile_cuda_list *list;
    int64_t first, end;
    const tile_cuda_sums *sums;
} cuda_part;

/** Cut all rows into runs, sort them, list bricks and work. `skip_ignored`: samples
 * whose weights are all 0 are left out. Waits for the stream. `*list` is filled only on
 * success; free with tile_cuda_list_free. */
tess_status tile_cuda_sort(const tess_grid_plan *plan,
                           const tess_device_samples *samples, bool skip_ignored,
                           struct CUstream_st *stream, tile_cuda_list *list);

/** Add the visibilities of the part's bricks to its sums, which the caller has zeroed.
 * `psf`: pols [samples->num_pol, + num_weight) get the weights. */
tess_status tile_cuda_grid(const tess_grid_plan *plan, const cuda_part *part, bool psf,
                           struct CUstream_st *stream);

/** samples->vis of the part's bricks := the grid's values times kernel and w-phase.
 * samples->num_pol == sums->num_pol; weights play no part. */
tess_status tile_cuda_degrid(const tess_grid_plan *plan, const cuda_part *part,
                             struct CUstream_st *stream);

/** Waits for the list's users; an empty list is fine. */
void tile_cuda_list_free(tile_cuda_list *list);

#ifdef __cplusplus
}
#endif
#endif
