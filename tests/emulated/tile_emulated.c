/* tess_tile_cuda.h in host memory, on the CPU's loops; see device_emulated.c. Brick
 * sums only, no whole planes. */
#include "tess_tile_cuda.h"

#include <string.h>

#include "device_emulated.h"
#include "locate.h"
#include "tess_mem.h"
#include "tess_samples.h"
#include "tile_tables.h"

struct tile_cuda_work {
    tess_brick_list bricks;
};

/* The samples as the CPU's functions want them. */
static tess_samples samples_of(const tess_device_samples *from)
{
    tess_samples to = {.is_double = from->is_double,
                       .num_pol = from->num_pol,
                       .num_weight = from->num_weight,
                       .num_rows = from->num_rows,
                       .num_vis = from->num_vis,
                       .vis = from->vis,
                       .inv_lambda = from->inv_lambda};
    memcpy(&to.uvw_m, &from->uvw_m, sizeof to.uvw_m);
    memcpy(&to.chan_base, &from->chan_base, sizeof to.chan_base);
    memcpy(&to.num_chan, &from->num_chan, sizeof to.num_chan);
    memcpy(&to.vis_first, &from->vis_first, sizeof to.vis_first);
    memcpy(&to.weight, &from->weight, sizeof to.weight);
    return to;
}

static void find_planes(const tess_grid_plan *plan, const tess_samples *samples,
                        const tess_brick_list *bricks, int64_t brick, int32_t *first,
                        int32_t *count)
{
    int64_t low = plan->num_planes, high = 0;
    for (int64_t r = bricks->first_run[brick]; r < bricks->first_run[brick + 1]; ++r) {
        const tess_run *run = &bricks->run[r];
        const tess_row_scale row =
            tess_row_scale_of(plan, samples->uvw_m + 3 * (int64_t)run->row);
        for (int32_t c = 0; c < run->count; ++c) {
            const double w = row.w * samples->inv_lambda[run->chan + c];
            const int64_t start =
                tess_plane_start(plan, tess_plane_coordinate(plan, w));
            if (start < low) low = start;
            if (start > high) high = start;
        }
    }
    *first = (int32_t)low;
    *count = (int32_t)(high - low) + plan->w_support;
}

tess_status tile_cuda_sort(const tess_grid_plan *plan, const tess_device_samples *from,
                           bool skip_ignored, struct CUstream_st *stream,
                           tile_cuda_list *list)
{
    tess_status status = TESS_OK;
    if (!device_emulated_waits(&status)) return status;
    const tess_samples samples = samples_of(from);
    (void)stream;
    memset(list, 0, sizeof *list);
    list->work = tess_alloc_zero(1, sizeof *list->work);
    if (!list->work) TESS_FAIL(TESS_ERR_ALLOC, "list");
    tess_brick_list *bricks = &list->work->bricks;
    TESS_TRY(tess_brick_list_append(plan, &samples, 0, samples.num_rows, skip_ignored,
                                    1, bricks));
    TESS_TRY(tess_brick_list_sort(bricks, 1));
    list->num_runs = bricks->num_runs;
    list->num_bricks = bricks->num_bricks;
    list->key = bricks->key;
    list->brick_vis = bricks->num_vis;
    list->plane_first = tess_alloc(list->num_bricks, sizeof *list->plane_first);
    list->num_planes = tess_alloc(list->num_bricks, sizeof *list->num_planes);
    if (!list->plane_first || !list->num_planes) TESS_FAIL(TESS_ERR_ALLOC, "list");
    for (int64_t b = 0; b < list->num_bricks; ++b) {
        list->num_vis += bricks->num_vis[b];
        find_planes(plan, &samples, bricks, b, &list->plane_first[b],
                    &list->num_planes[b]);
    }
cleanup:
    if (status != TESS_OK) tile_cuda_list_free(list);
    return status;
}

int64_t tess_device_sort_bytes(int64_t num_rows, int64_t num_vis)
{
    return 64 * num_rows + 8 * num_vis;
}

void tile_cuda_list_free(tile_cuda_list *list)
{
    if (list->work) {
        tess_brick_list_free(&list->work->bricks); /* keys and counts are its own */
    } else {
        tess_free(list->key);
        tess_free(list->brick_vis);
    }
    tess_free(list->work);
    tess_free(list->plane_first);
    tess_free(list->num_planes);
    memset(list, 0, sizeof *list);
}

/* A brick's tile in memory of its own, whose line ends the CPU's loops may touch. */
static tess_status on_brick(const tess_grid_plan *plan, const cuda_part *part,
                            int64_t brick, bool reverse, bool psf)
{
    tess_status status = TESS_OK;
    const tile_cuda_sums *sums = part->sums;
    const tess_brick_list *bricks = &part->list->work->bricks;
    const tess_samples samples = samples_of(part->samples);
    const tess_brick_sum *sum = &sums->brick[brick - part->first];
    const int64_t element = plan->is_double ? 8 : 4;
    const int64_t stride = 2 * tess_grid_brick_stride(plan);
    const int64_t cells = 2 * tess_grid_brick_lines(plan);
    const int64_t reals = 2 * tile_values(plan, sum, sums->num_pol);
    char *data = (char *)sums->data + 2 * sum->offset * element;
    char *tile = tess_alloc_zero(reals, (size_t)element);
    tile_taps *taps = tess_alloc(2, sizeof *taps);
    tile_job job;
    if (!tile || !taps) TESS_FAIL(TESS_ERR_ALLOC, "tile");
    tile_taps_fill(plan, taps);
    tile_job_for(plan, &samples, taps, sum, sums->num_pol, tile, &job);
    job.run = &bricks->run[bricks->first_run[brick]];
    job.count = bricks->num_vis[brick];
    job.psf = psf;
    job.vis_out = samples.vis;
    if (reverse) {
        for (int64_t k = 0; k < reals; k += stride)
            memcpy(tile + k * element, data + k * element, (size_t)(cells * element));
        tile_table_portable.degrid[plan->is_double][plan->kernel.support](&job);
    } else {
        tile_table_portable.grid[plan->is_double][plan->kernel.support](&job);
        for (int64_t k = 0; k < reals; ++k) {
            if (k % stride >= cells) continue;
            if (plan->is_double)
                ((double *)data)[k] += ((double *)tile)[k];
            else
                ((float *)data)[k] += ((float *)tile)[k];
        }
    }
cleanup:
    tess_free(tile);
    tess_free(taps);
    return status;
}

tess_status tile_cuda_grid(const tess_grid_plan *plan, const cuda_part *part, bool psf,
                           struct CUstream_st *stream)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status)) return status;
    (void)stream;
    for (int64_t b = part->first; b < part->end; ++b)
        TESS_TRY(on_brick(plan, part, b, false, psf));
cleanup:
    return status;
}

tess_status tile_cuda_degrid(const tess_grid_plan *plan, const cuda_part *part,
                             struct CUstream_st *stream)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status)) return status;
    (void)stream;
    for (int64_t b = part->first; b < part->end; ++b)
        TESS_TRY(on_brick(plan, part, b, true, false));
cleanup:
    return status;
}
