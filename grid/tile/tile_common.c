/* The work that gridding and degridding share around the innermost loops. */
#include <stdlib.h>
#include <string.h>

#include "tess_isa.h"
#include "tess_mem.h"
#include "tess_samples.h"
#include "tile_tables.h"

const tile_table *tile_table_best(void)
{
    static const tile_table *const table[TESS_NUM_ISA] = TESS_ISA_TABLES(tile_table);
    return table[tess_isa_best()];
}

/* Computes the even and the odd part of the taps j and W − 1 − j, which are mirror
 * images of each other. */
static void fill_half_taps(const tess_kernel *kernel, tile_taps *taps)
{
    const int support = kernel->support;
    for (int d = 0; d <= kernel->degree; ++d)
        for (int j = 0; j < (support + 1) / 2; ++j) {
            const double sign = d % 2 == 0 ? 1 : -1;
            const double c = 0.5 * (kernel->coefficient[d][j] +
                                    sign * kernel->coefficient[d][support - 1 - j]);
            if (d % 2 == 0)
                taps->single.even[d / 2][j] = (float)(taps->full.even[d / 2][j] = c);
            else
                taps->single.odd[d / 2][j] = (float)(taps->full.odd[d / 2][j] = c);
        }
}

static void fill_taps(const tess_kernel *kernel, tile_taps *taps)
{
    memset(taps, 0, sizeof *taps);
    taps->degree = kernel->degree;
    taps->half_terms = kernel->degree / 2 + 1;
    fill_half_taps(kernel, taps);
    for (int d = 0; d <= kernel->degree; ++d)
        for (int j = 0; j < kernel->support; ++j) {
            const double c = kernel->coefficient[d][j];
            double *full = &taps->full.pairs[d][2 * j];
            float *single = &taps->single.pairs[d][2 * j];
            full[0] = full[1] = c;
            single[0] = single[1] = (float)c;
        }
}

void tile_taps_fill(const tess_grid_plan *plan, tile_taps taps[2])
{
    fill_taps(&plan->kernel, &taps[0]);
    fill_taps(&plan->along_w, &taps[1]);
}

int64_t tile_work_bytes(const tess_grid_plan *plan)
{
    /* index, place, key and order; kernel fractions and phase */
    const int64_t bytes = 8 + 4 + 2 + 2 + 5 * (plan->is_double ? 8 : 4);
    return (TILE_SORTED * bytes + 63) / 64 * 64;
}

int64_t tile_values(const tess_grid_plan *plan, const tess_brick_sum *sum, int num_pol)
{
    return (int64_t)num_pol * sum->num_planes * tess_grid_brick_lines(plan) *
           tess_grid_brick_stride(plan);
}

tile_samples tile_samples_of(const tess_samples *samples)
{
    return (tile_samples){.is_double = samples->is_double,
                          .num_pol = samples->num_pol,
                          .num_weight = samples->num_weight,
                          .uvw_m = samples->uvw_m,
                          .inv_lambda = samples->inv_lambda,
                          .vis = samples->vis,
                          .weight = samples->weight};
}

void tile_job_for(const tess_grid_plan *plan, const tess_samples *samples,
                  const tile_taps *taps, const tess_brick_sum *sum, int num_pol,
                  void *data, tile_job *job)
{
    int64_t block, tile_u, tile_v;
    tess_grid_brick_of_key(plan, sum->key, &block, &tile_u, &tile_v);
    *job = (tile_job){.plan = plan,
                      .samples = tile_samples_of(samples),
                      .taps = taps,
                      .cell_u = tile_u * plan->tile,
                      .cell_v = tile_v * plan->tile,
                      .plane_first = sum->touched_first,
                      .num_planes = sum->touched_planes,
                      .kept_first = sum->plane_first - sum->touched_first,
                      .kept_planes = sum->num_planes,
                      .num_pol = num_pol,
                      .data = data};
}

/* Orders pieces by their cost. In w-stacking, a visibility costs the same wherever it
 * lies, and a buffer, which is cleared once for each piece, costs nearly the same for
 * all pieces. So the order is that of the numbers of visibilities. */
static int larger_first(const void *a, const void *b)
{
    const tile_piece *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return x->brick < y->brick ? -1 : x->brick > y->brick;
}

int64_t tile_queue_take(tile_queue *queue)
{
    int64_t piece;
#pragma omp atomic capture
    piece = queue->num_taken++;
    return piece;
}

/* Takes a piece ahead for a thread. No idle thread can have such a piece. The pieces
 * that follow a small one are small themselves, some .2 ms of work at most, and the
 * last of them are left to idle threads. */
int64_t tile_queue_take_ahead(tile_queue *queue, int64_t now)
{
    enum { SMALL = 4096, LAST = 4 };
    int64_t taken;
#pragma omp atomic read
    taken = queue->num_taken;
    const bool is_last = queue->num_pieces - taken < LAST * queue->threads;
    if (is_last || queue->piece[now].count > SMALL) return -1;
    const int64_t next = tile_queue_take(queue); /* other threads may have been
                                                    faster */
    return next < queue->num_pieces ? next : -1;
}

/* The buffer that is worked on is to stay in the second cache. This is half of 512 KiB,
 * and no server processor with AVX2 has a smaller one. */
enum { MOST_FETCHED = 256 << 10 };

void tile_job_fetch(const tess_grid_plan *plan, const tess_brick_sum *sum,
                    const tile_piece *piece, const void *data, tile_job *job)
{
    const int64_t values = tile_values(plan, sum, job->num_pol);
    const int64_t bytes = values * (plan->is_double ? 16 : 8);
    const int64_t support = plan->kernel.support;
    const int64_t footprint = support * support * plan->w_support * job->num_pol;
    if (bytes > MOST_FETCHED || piece->count * footprint < values) return;
    job->next = data;
    job->next_bytes = bytes;
}

void tile_advance(const tess_brick_list *bricks, int64_t count, int64_t *run,
                  int64_t *skip)
{
    while (count > 0) {
        const int64_t here = bricks->run[*run].count - *skip;
        if (here > count) {
            *skip += count;
            return;
        }
        count -= here;
        *skip = 0;
        ++*run;
    }
}

/* Makes the pieces of one brick: walks its runs and cuts after every
 * TESS_CHUNKS_PER_PIECE chunks. */
static void cut_brick(const tess_grid_plan *plan, const tess_brick_list *bricks,
                      int64_t brick, tile_piece *piece, int64_t num_pieces,
                      int64_t *extra)
{
    const int64_t length = plan->opts.chunk * TESS_CHUNKS_PER_PIECE;
    int64_t run = bricks->first_run[brick], skip = 0;
    for (int64_t k = 0; k < num_pieces; ++k) {
        const int64_t rest = bricks->num_vis[brick] - k * length;
        const int64_t count = rest < length ? rest : length;
        piece[k] = (tile_piece){.brick = brick,
                                .chunk_first = k * TESS_CHUNKS_PER_PIECE,
                                .num_chunks =
                                    (count + plan->opts.chunk - 1) / plan->opts.chunk,
                                .run = run,
                                .skip = skip,
                                .count = count,
                                .extra = k > 0 ? ++*extra : 0};
        /* the runs of the last piece need not be walked, and most bricks are one piece
         */
        if (k + 1 < num_pieces) tile_advance(bricks, count, &run, &skip);
    }
}

tess_status tile_pieces_make(const tess_grid_plan *plan, const tess_brick_list *bricks,
                             int64_t first, int64_t end, tile_piece **pieces_out,
                             int64_t *num_pieces, int64_t *num_extra)
{
    tess_status status = TESS_OK;
    const int64_t length = plan->opts.chunk * TESS_CHUNKS_PER_PIECE;
    int64_t total = 0, extra = 0, at = 0;
    for (int64_t b = first; b < end; ++b)
        total += (bricks->num_vis[b] + length - 1) / length;
    tile_piece *pieces = tess_alloc(total, sizeof *pieces);
    if (!pieces)
        TESS_FAIL(TESS_ERR_ALLOC, "work list of %lld pieces", (long long)total);
    for (int64_t b = first; b < end; ++b) {
        const int64_t here = (bricks->num_vis[b] + length - 1) / length;
        cut_brick(plan, bricks, b, pieces + at, here, &extra);
        at += here;
    }
    qsort(pieces, (size_t)total, sizeof *pieces, larger_first);
    *pieces_out = pieces;
    *num_pieces = total;
    *num_extra = extra;
cleanup:
    return status;
}
