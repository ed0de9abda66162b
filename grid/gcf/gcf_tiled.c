/* Tiles: points are bucket-sorted by the 64 × 64 cells in which their footprints start,
 * and within a tile by kernel, so that a kernel that is used again is still in cache. A
 * tile is summed in a buffer of its own: convolutional gridding costs memory traffic,
 * not arithmetic (Humphreys & Cornwell 2011, SKA memo 132), so sums are kept near to
 * the processor, as on GPUs in registers (Romein 2012, doi:10.1145/2304576.2304620;
 * Merry 2016, arXiv:1605.07023, with several cells a thread). Studies of
 * tiled gridding on Xeon and Xeon Phi hand out tiles by cost and give the crowded
 * middle of the grid to several threads, each with its own copy: here every piece of
 * work has a buffer and adds it to the grid under the locks of the regions it covers.
 * `factored` uses the same pieces. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "gcf_factor.h"
#include "gcf_order.h"
#include "tess_counting.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_omp.h"

enum {
    TILE = 64,                   /* cells along each axis, or twice as many, … */
    MOST_BUFFER_BYTES = 1 << 20, /* … as long as buffers stay in cache */
    PIECES_A_THREAD = 8,         /* fewest pieces for each thread */
    PAYS = 4,                    /* cells of footprints for each cell of a buffer */
    PAYS_WELL = 16,
    FEW_TAPS_BYTES = 1 << 19, /* tables that stay in cache in any order */
    CACHE_LINE = 64,
    LINES_AHEAD = 8,
    BLOCK = 1024 /* points whose cost is summed up before tiles are cut */
};

/* Points [first, first + count) of the sorted places. */
typedef struct piece {
    int64_t first, count;
    double cost;
    bool sparse; /* goes without a buffer, after the others */
    bool whole;  /* a tile */
} piece;

/* Neighbouring pieces. One thread takes them in turn, and other threads take them only
 * when they have done their own. The part of the grid that the pieces share stays in
 * that thread's cache, and its locks are free. */
typedef struct band {
    _Alignas(CACHE_LINE) atomic_llong next;
    int64_t end;
} band;

/* A lock is alone in its cache line, because other threads take the locks of
 * neighbours. */
typedef struct region_lock {
    _Alignas(CACHE_LINE) atomic_flag taken;
} region_lock;

/* All points, sorted by tile. */
typedef struct tiling {
    int64_t side; /* of a tile [cells] */
    gcf_place *place;
    void *scratch; /* GCF_ORDER_BYTES for each place: unsorted ones, then pieces are
                      sorted in it */
    int64_t num_tiles_v, num_tiles;
    int64_t *tile_first; /* [num_tiles + 1] */
    int sorters;        /* threads that sort: no more than have a point for each tile */
    int64_t *places;    /* [sorters][num_tiles] */
    double *block_cost; /* of every BLOCK sorted points */
    piece *piece;       /* by band, in each the most expensive first */
    int64_t num_pieces;
    band *band;         /* one for each thread, of equal cost */
    int64_t max_values; /* of a piece's buffer, one pol */
    int64_t max_lines;
    region_lock *lock; /* of regions of TILE × TILE cells */
    int64_t num_locks_v;
} tiling;

static void tiling_free(tiling *tiles)
{
    tess_free(tiles->place);
    tess_free(tiles->scratch);
    tess_free(tiles->tile_first);
    tess_free(tiles->places);
    tess_free(tiles->block_cost);
    tess_free(tiles->piece);
    tess_free(tiles->band);
    tess_free(tiles->lock);
}

static int64_t tile_of(const tiling *tiles, const gcf_place *place)
{
    return place->u / tiles->side * tiles->num_tiles_v + place->v / tiles->side;
}

static double cost_of(const tess_gcf_plan *plan, const gcf_place *place)
{
    const double support = tess_gcf_plan_support(plan, place->plane);
    const int rank = tess_gcf_plan_rank(plan, place->plane);
    double cost = 0;
    if (rank == 0) return 4 * support * support;
    for (int r = 0; r < rank; ++r) {
        const double width = 2 * plan->factors[place->plane].half[r];
        cost += width * width;
    }
    return cost;
}

/* Places all points. Points that are left out get point −1, and their visibilities are
 * 0. */
static void place_all(const tess_gcf_plan *plan, const tess_gcf_points *points,
                      const tess_gcf_cells *cells, bool degrid, gcf_place *place,
                      tess_gcf_report *report)
{
    const tess_gcf *gcf = plan->gcf;
    const size_t bytes = gcf_value_bytes(gcf) * (size_t)points->num_pol;
    int64_t left_out = 0, point_cells = 0, ranks = 0, factored = 0;
#pragma omp parallel for num_threads(plan->opts.threads) \
    reduction(+ : left_out, point_cells, ranks, factored)
    for (int64_t k = 0; k < points->count; ++k)
        if (gcf_place_point(gcf, points, k, cells->nu, cells->nv, &place[k])) {
            const int64_t support = gcf->plane[place[k].plane].support;
            const int rank = tess_gcf_plan_rank(plan, place[k].plane);
            point_cells += support * support;
            ranks += rank;
            factored += rank > 0;
        } else {
            place[k].point = -1;
            ++left_out;
            if (degrid) memset((char *)points->vis + (size_t)k * bytes, 0, bytes);
        }
    report->left_out = left_out;
    report->point_cells = point_cells;
    report->point_ranks = ranks;
    report->points_factored = factored;
}

/* Counts the points of each tile, by thread, and the tiles that have any. */
static int64_t count_by_tile(const gcf_place *from, int64_t count, tiling *tiles)
{
    const int64_t digits = tiles->num_tiles;
    const int sorters = tiles->sorters;
    int64_t occupied = 0;
#pragma omp parallel num_threads(sorters) reduction(+ : occupied)
    {
#pragma omp for schedule(static, 1)
        for (int t = 0; t < sorters; ++t) {
            int64_t *mine = tiles->places + t * digits;
            const int64_t end = tess_share_first(count, t + 1, sorters);
            memset(mine, 0, (size_t)digits * sizeof *mine);
            for (int64_t k = tess_share_first(count, t, sorters); k < end; ++k)
                if (from[k].point >= 0) ++mine[tile_of(tiles, &from[k])];
        }
#pragma omp for schedule(static)
        for (int64_t d = 0; d < digits; ++d) {
            int64_t points = 0;
            for (int t = 0; t < sorters; ++t)
                points += tiles->places[t * digits + d];
            occupied += points > 0;
        }
    }
    return occupied;
}

static void set_side(const tess_gcf_cells *cells, int64_t side, tiling *tiles)
{
    tiles->side = side;
    tiles->num_tiles_v = (cells->nv + side - 1) / side;
    tiles->num_tiles = (cells->nu + side - 1) / side * tiles->num_tiles_v;
}

/* Sorts by tile, by a stable counting sort. If points are few for the kernels' size,
 * tiles are made larger, so that less of the work is clearing buffers and adding them
 * to the grid. */
static void sort_by_tile(const tess_gcf_plan *plan, int64_t count, int64_t point_cells,
                         const tess_gcf_points *points, const tess_gcf_cells *cells,
                         tiling *tiles)
{
    const gcf_place *from = tiles->scratch;
    const int sorters = tiles->sorters;
    const int64_t value = (int64_t)gcf_value_bytes(plan->gcf) * points->num_pol;
    for (int64_t side = TILE;; side *= 2) {
        set_side(cells, side, tiles);
        const int64_t occupied = count_by_tile(from, count, tiles);
        const int64_t now = side + plan->gcf->max_support, next = now + side;
        if (point_cells >= PAYS_WELL * occupied * now * now ||
            next * next * value > MOST_BUFFER_BYTES)
            break;
    }
    const int64_t digits = tiles->num_tiles;
    tiles->tile_first[digits] = tess_counts_to_places(tiles->places, digits, sorters);
    memcpy(tiles->tile_first, tiles->places,
           (size_t)digits * sizeof *tiles->tile_first);
#pragma omp parallel for num_threads(sorters) schedule(static, 1)
    for (int t = 0; t < sorters; ++t) {
        int64_t *place = tiles->places + t * digits;
        const int64_t end = tess_share_first(count, t + 1, sorters);
        for (int64_t k = tess_share_first(count, t, sorters); k < end; ++k)
            if (from[k].point >= 0)
                tiles->place[place[tile_of(tiles, &from[k])]++] = from[k];
    }
}

/* Computes the costs of blocks of sorted points, and their sum. */
static double sum_blocks(const tess_gcf_plan *plan, tiling *tiles)
{
    const int64_t count = tiles->tile_first[tiles->num_tiles];
    const int64_t blocks = (count + BLOCK - 1) / BLOCK;
    double total = 0;
#pragma omp parallel for num_threads(tiles->sorters)
    for (int64_t b = 0; b < blocks; ++b) {
        double cost = 0;
        for (int64_t k = b * BLOCK; k < count && k < (b + 1) * BLOCK; ++k)
            cost += cost_of(plan, &tiles->place[k]);
        tiles->block_cost[b] = cost;
    }
    for (int64_t b = 0; b < blocks; ++b)
        total += tiles->block_cost[b];
    return total;
}

/* Computes the cost of the sorted points [*at, end), or of as many points as come to
 * `most`. *at moves behind them. */
static double take_cost(const tess_gcf_plan *plan, const tiling *tiles, int64_t end,
                        double most, int64_t *at)
{
    double cost = 0;
    while (*at < end && cost < most) {
        const double block = tiles->block_cost[*at / BLOCK];
        if (*at % BLOCK == 0 && *at + BLOCK <= end && cost + block < most) {
            cost += block;
            *at += BLOCK;
        } else
            cost += cost_of(plan, &tiles->place[(*at)++]);
    }
    return cost;
}

/* Puts the most expensive pieces first, by powers of two, and neighbours together. */
static int dearest_first(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    const int of_x = ilogb(x->cost), of_y = ilogb(y->cost);
    if (of_x != of_y) return of_x < of_y ? 1 : -1;
    return (x->first > y->first) - (x->first < y->first);
}

/* Computes the cost of the pieces of a tile: one of so many, or `limit`. */
static double piece_cost(const tess_gcf_plan *plan, const tess_gcf_cells *cells,
                         const tiling *tiles, int64_t tile, double limit)
{
    const tess_gcf_tiling *how = gcf_tiling_of(plan);
    const double side = (double)tiles->side;
    const double u = side * ((double)(tile / tiles->num_tiles_v) + 0.5);
    const double v = side * ((double)(tile % tiles->num_tiles_v) + 0.5);
    int64_t at = tiles->tile_first[tile];
    if (how->pieces == 0) return limit;
    if (how->center_radius > 0 &&
        hypot(u - 0.5 * (double)cells->nu, v - 0.5 * (double)cells->nv) >
            how->center_radius)
        return HUGE_VAL;
    return take_cost(plan, tiles, tiles->tile_first[tile + 1], HUGE_VAL, &at) /
           how->pieces;
}

/* Returns the number of points below which a tile is sparse. */
static double sparse_below(const tess_gcf_plan *plan, const tiling *tiles)
{
    int64_t occupied = 0;
    for (int64_t t = 0; t < tiles->num_tiles; ++t)
        occupied += tiles->tile_first[t + 1] > tiles->tile_first[t];
    return occupied > 0
               ? gcf_tiling_of(plan)->tile_factor *
                     (double)tiles->tile_first[tiles->num_tiles] / (double)occupied
               : 0;
}

/* Cuts tiles that cost more than `limit`. */
static tess_status cut(const tess_gcf_plan *plan, const tess_gcf_cells *cells,
                       double limit, tiling *tiles)
{
    tess_status status = TESS_OK;
    const double few = sparse_below(plan, tiles);
    int64_t capacity = 0;
    for (int64_t t = 0; t < tiles->num_tiles; ++t) {
        const int64_t begin = tiles->tile_first[t], end = tiles->tile_first[t + 1];
        const double most = piece_cost(plan, cells, tiles, t, limit);
        const bool sparse = (double)(end - begin) < few;
        for (int64_t k = begin; k < end;) {
            piece one = {.first = k, .sparse = sparse};
            one.cost = take_cost(plan, tiles, end, most, &k);
            one.count = k - one.first;
            one.whole = one.count == end - begin;
            if (tess_grow((void **)&tiles->piece, &capacity, tiles->num_pieces + 1,
                          sizeof *tiles->piece) != 0)
                TESS_FAIL(TESS_ERR_ALLOC, "pieces of tiles");
            tiles->piece[tiles->num_pieces++] = one;
        }
    }
cleanup:
    return status;
}

/* Lists pieces in the order of tiles, as one band for each thread. */
static void deal_out(int threads, tiling *tiles)
{
    double total = 0, before = 0;
    int64_t k = 0;
    for (int64_t p = 0; p < tiles->num_pieces; ++p)
        total += tiles->piece[p].cost;
    for (int b = 0; b < threads; ++b) {
        const int64_t first = k;
        for (; k < tiles->num_pieces &&
               (b == threads - 1 || before < total * (b + 1) / threads);
             ++k)
            before += tiles->piece[k].cost;
        if (k > first + 1)
            qsort(&tiles->piece[first], (size_t)(k - first), sizeof *tiles->piece,
                  dearest_first);
        atomic_init(&tiles->band[b].next, first);
        tiles->band[b].end = k;
    }
}

/* Takes the next piece of a band, or of the bands behind it when it is done; there are
 * `behind` of these. NULL: no piece is left. */
static const piece *next_piece(tiling *tiles, int own, int threads, int *behind)
{
    for (; *behind < threads; ++*behind) {
        band *from = &tiles->band[(own + *behind) % threads];
        const int64_t k =
            atomic_fetch_add_explicit(&from->next, 1, memory_order_relaxed);
        if (k < from->end) return &tiles->piece[k];
    }
    return NULL;
}

static int64_t up_to(int64_t n, int64_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

/* Threads clear and add up a count for each tile. The tiles have to be fewer than the
 * points that threads count. */
static int sorters_for(int64_t count, int64_t num_tiles, int threads)
{
    const int64_t most = count / num_tiles;
    return most < 1 ? 1 : most < threads ? (int)most : threads;
}

/* Divides the grid into tiles, and allocates what sorting `count` points to them needs.
 * TESS_ERR_ALLOC. */
static tess_status tiling_allocate(const tess_gcf_cells *cells, int64_t count,
                                   int threads, tiling *tiles)
{
    tess_status status = TESS_OK;
    set_side(cells, TILE, tiles);
    tiles->num_locks_v = tiles->num_tiles_v;
    tiles->sorters = sorters_for(count, tiles->num_tiles, threads);
    tiles->scratch = tess_alloc(count, GCF_ORDER_BYTES);
    tiles->place = tess_alloc(count, sizeof *tiles->place);
    tiles->tile_first = tess_alloc(tiles->num_tiles + 1, sizeof *tiles->tile_first);
    tiles->lock = tess_alloc(tiles->num_tiles, sizeof *tiles->lock);
    tiles->places =
        tess_alloc(tiles->sorters * tiles->num_tiles, sizeof *tiles->places);
    tiles->block_cost = tess_alloc(count / BLOCK + 1, sizeof *tiles->block_cost);
    tiles->band = tess_alloc(threads, sizeof *tiles->band);
    if (!tiles->scratch || !tiles->place || !tiles->tile_first || !tiles->lock ||
        !tiles->places || !tiles->block_cost || !tiles->band)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory to sort %lld points", (long long)count);
    for (int64_t t = 0; t < tiles->num_tiles; ++t)
        atomic_flag_clear(&tiles->lock[t].taken);
cleanup:
    return status;
}

/* Computes the cost of the largest piece that threads share evenly, from a total cost.
 * One thread cuts nothing. A piece is not smaller than what pays for the cells around a
 * tile of `side` lines. */
static double cost_of_piece(double total, int threads, int64_t side)
{
    const double least = PAYS_WELL * (double)side * (double)side;
    const double share = total / (PIECES_A_THREAD * threads);
    if (threads == 1) return total + 1;
    return share > least ? share : least;
}

static tess_status tiling_make(const tess_gcf_plan *plan, const tess_gcf_points *points,
                               const tess_gcf_cells *cells, bool degrid, tiling *tiles,
                               tess_gcf_report *report)
{
    tess_status status = TESS_OK;
    const int threads = plan->opts.threads;
    TESS_TRY(tiling_allocate(cells, points->count, threads, tiles));
    place_all(plan, points, cells, degrid, tiles->scratch, report);
    sort_by_tile(plan, points->count, report->point_cells, points, cells, tiles);
    const double total = sum_blocks(plan, tiles);
    const int64_t side = tiles->side - 1 + plan->gcf->max_support;
    TESS_TRY(cut(plan, cells, cost_of_piece(total, threads, side), tiles));
    deal_out(threads, tiles);
    tiles->max_lines = up_to(side, GCF_BLOCK_LINES) + GCF_BLOCK_LINES;
    tiles->max_values =
        tiles->max_lines * (up_to(side, GCF_BLOCK_CELLS) + GCF_BLOCK_CELLS);
cleanup:
    return status;
}

/* ---- a piece ---- */

/* Computes the key by which the points of a tile are sorted. */
typedef struct sorting {
    const tess_gcf_plan *plan;
    int64_t side; /* of tiles: a power of two */
    bool by_layer, by_kernel;
} sorting;

/* Puts points of factored planes first: by the cell and offset along v and the plane,
 * on which their rows lie, and then along u. Other points are sorted by kernel, if at
 * all. */
static uint64_t key_of(const void *context, const gcf_place *place)
{
    const sorting *by = context;
    const uint64_t inside = (uint64_t)by->side - 1, plane = place->plane;
    if (tess_gcf_plan_rank(by->plan, place->plane) > 0) {
        const uint64_t first =
            ((uint64_t)place->v & inside) + (uint64_t)gcf_skip(by->plan, place->plane);
        const uint64_t row = plane << 8 | (uint64_t)place->offset_v << 2 |
                             (uint64_t)place->flip_v << 1 | (uint64_t)place->conjugate;
        return (first << 20 | row) << 20 | ((uint64_t)place->u & inside);
    }
    return UINT64_C(1) << 63 |
           (by->by_kernel
                ? plane << 16 | (uint64_t)place->offset_u << 8 | place->offset_v
            : by->by_layer ? plane
                           : 0);
}

/* Counts the points of factored planes. */
static int64_t sort_piece(const tess_gcf_plan *plan, const tiling *tiles,
                          const piece *which)
{
    const tess_gcf_sort sort = gcf_tiling_of(plan)->sort;
    const sorting by = {.plan = plan,
                        .side = tiles->side,
                        .by_layer = sort == TESS_GCF_SORT_LAYER,
                        .by_kernel = sort == TESS_GCF_SORT_KERNEL ||
                                     (sort == TESS_GCF_SORT_CHOSEN &&
                                      tess_gcf_bytes(plan->gcf) > FEW_TAPS_BYTES)};
    gcf_place *place = tiles->place + which->first;
    int64_t front = 0;
    if (plan->factors || by.by_layer || by.by_kernel)
        gcf_order(place, which->count, key_of, &by,
                  (char *)tiles->scratch + which->first * GCF_ORDER_BYTES);
    while (plan->factors && front < which->count &&
           tess_gcf_plan_rank(plan, place[front].plane) > 0)
        ++front;
    return front;
}

/* Finds the box of a piece's footprints, in cells of the grid. */
typedef struct box {
    int64_t u, v, lines, cells;
} box;

static box box_of(const tess_gcf_plan *plan, const gcf_place *place, int64_t count)
{
    int64_t end_u = 0, end_v = 0;
    box around = {.u = INT64_MAX, .v = INT64_MAX};
    for (int64_t k = 0; k < count; ++k) {
        const int skip = gcf_skip(plan, place[k].plane);
        const int64_t u = place[k].u + skip, v = place[k].v + skip;
        const int64_t support = tess_gcf_plan_support(plan, place[k].plane);
        if (u < around.u) around.u = u;
        if (v < around.v) around.v = v;
        if (u + support > end_u) end_u = u + support;
        if (v + support > end_v) end_v = v + support;
    }
    around.lines = end_u - around.u;
    around.cells = end_v - around.v;
    return around;
}

static void add_line(bool is_double, const void *from, int64_t cells, void *to)
{
    if (is_double) {
        const double *f = from;
        double *t = to;
        for (int64_t k = 0; k < 2 * cells; ++k)
            t[k] += f[k];
    } else {
        const float *f = from;
        float *t = to;
        for (int64_t k = 0; k < 2 * cells; ++k)
            t[k] += f[k];
    }
}

/* Prefetches lines of the grid. They are pages apart, which processors do not foresee.
 */
static void fetch_line(const void *line, int64_t bytes)
{
    for (int64_t at = 0; at < bytes + CACHE_LINE - 1; at += CACHE_LINE)
        __builtin_prefetch((const char *)line + at, 1);
}

/* Adds the part of a buffer that lies in a region of the grid to the grid. */
static void add_region(const gcf_job *job, const box *around, const box *region,
                       const tess_gcf_cells *cells)
{
    const size_t bytes = gcf_value_bytes(job->gcf);
    for (int pol = 0; pol < job->num_pol; ++pol)
        for (int64_t line = region->u; line < region->u + region->lines; ++line) {
            const int64_t from = pol * job->pol_stride +
                                 (line - around->u) * job->stride + region->v -
                                 around->v;
            const int64_t to = (pol * cells->nu + line) * cells->nv + region->v;
            if (line + LINES_AHEAD < region->u + region->lines)
                fetch_line((const char *)cells->data +
                               (size_t)(to + LINES_AHEAD * cells->nv) * bytes,
                           region->cells * (int64_t)bytes);
            add_line(job->gcf->layout.is_double,
                     (const char *)job->cells + (size_t)from * bytes, region->cells,
                     (char *)cells->data + (size_t)to * bytes);
        }
}

static void take(region_lock *lock)
{
    while (atomic_flag_test_and_set_explicit(&lock->taken, memory_order_acquire)) {
    }
}

static void release(region_lock *lock)
{
    atomic_flag_clear_explicit(&lock->taken, memory_order_release);
}

/* Adds a buffer to the grid, one region after the other. */
static void add_to_grid(const gcf_job *job, const box *around, tiling *tiles,
                        const tess_gcf_cells *cells)
{
    const int64_t end_u = around->u + around->lines, end_v = around->v + around->cells;
    for (int64_t u = around->u; u < end_u; u = (u / TILE + 1) * TILE)
        for (int64_t v = around->v; v < end_v; v = (v / TILE + 1) * TILE) {
            const int64_t next_u = (u / TILE + 1) * TILE,
                          next_v = (v / TILE + 1) * TILE;
            const box region = {.u = u,
                                .v = v,
                                .lines = (next_u < end_u ? next_u : end_u) - u,
                                .cells = (next_v < end_v ? next_v : end_v) - v};
            region_lock *lock = &tiles->lock[u / TILE * tiles->num_locks_v + v / TILE];
            take(lock);
            add_region(job, around, &region, cells);
            release(lock);
        }
}

/* Locks all regions of a box, always in the same order, so that threads do not wait for
 * each other in a circle. */
static void for_regions(const box *around, tiling *tiles, void (*what)(region_lock *))
{
    for (int64_t u = around->u / TILE; u * TILE < around->u + around->lines; ++u)
        for (int64_t v = around->v / TILE; v * TILE < around->v + around->cells; ++v)
            what(&tiles->lock[u * tiles->num_locks_v + v]);
}

static void copy_from_grid(const gcf_job *job, const box *around,
                           const tess_gcf_cells *cells)
{
    const size_t bytes = gcf_value_bytes(job->gcf);
    for (int pol = 0; pol < job->num_pol; ++pol)
        for (int64_t line = 0; line < around->lines; ++line)
            memcpy((char *)job->cells +
                       (size_t)(pol * job->pol_stride + line * job->stride) * bytes,
                   (const char *)cells->data +
                       (size_t)((pol * cells->nu + around->u + line) * cells->nv +
                                around->v) *
                           bytes,
                   (size_t)around->cells * bytes);
}

/* Whether it is faster to use a buffer that is added to the grid or filled from it. */
static bool buffer_pays(const tess_gcf_plan *plan, const gcf_place *place,
                        int64_t count, const box *around)
{
    int64_t work = 0;
    for (int64_t k = 0; k < count; ++k) {
        const int64_t support = plan->gcf->plane[place[k].plane].support;
        work += support * support;
    }
    return work >= PAYS * around->lines * around->cells;
}

/* Grids or degrids points directly on the grid, to which no other thread adds
 * meanwhile. */
static void do_sparse_piece(gcf_job *job, const tess_gcf_cells *cells,
                            gcf_function *function)
{
    job->cells = cells->data;
    job->u0 = job->v0 = 0;
    job->stride = cells->nv;
    job->pol_stride = cells->nu * cells->nv;
    function(job);
}

/* Takes or releases the lock of a block, which lies in one region. */
static void guard_block(void *context, int64_t u, int64_t v, bool taken)
{
    const tiling *tiles = context;
    (taken ? take : release)(&tiles->lock[u / TILE * tiles->num_locks_v + v / TILE]);
}

/* Finds the blocks that hold a box. They begin where blocks of the grid do, as far as
 * possible. */
static void widen_to_blocks(box *around)
{
    const int64_t lines = around->u % GCF_BLOCK_LINES;
    const int64_t cells = around->v % GCF_BLOCK_CELLS;
    around->u -= lines;
    around->lines += lines;
    around->v -= cells;
    around->cells += cells;
}

/* Whether a tile's points are added to the grid itself, block by block. This is so if
 * they are few and the blocks do not leave the grid. Pieces of a tile would wait for
 * each other. */
static bool goes_direct(const tess_gcf_plan *plan, const tess_gcf_cells *cells,
                        const piece *which, const gcf_job *job)
{
    return which->whole && job->count == which->count &&
           job->u0 + job->lines <= cells->nu && job->v0 + job->width <= cells->nv &&
           gcf_factored_direct(plan, job->place, job->count);
}

static void do_direct(const tess_gcf_plan *plan, const tess_gcf_cells *cells,
                      const gcf_job *job, tiling *tiles, void *work)
{
    gcf_job direct = *job;
    direct.cells = (char *)cells->data +
                   (size_t)(job->u0 * cells->nv + job->v0) * gcf_value_bytes(plan->gcf);
    direct.stride = cells->nv;
    direct.pol_stride = cells->nu * cells->nv;
    direct.guard = guard_block;
    direct.locks = tiles;
    gcf_factored_grid(plan, &direct, work);
}

/* Memory of a thread: the cells around a piece, and what products of matrices need. */
typedef struct thread_memory {
    void *buffer, *work;
} thread_memory;

/* Works on the first `count` points of a piece, in a buffer of the cells around the
 * piece. */
static gcf_job job_in_buffer(const tess_gcf_plan *plan, const tess_gcf_points *points,
                             const gcf_place *place, int64_t count, const box *around,
                             void *buffer)
{
    const int64_t lines = up_to(around->lines, GCF_BLOCK_LINES);
    const int64_t stride = up_to(around->cells, GCF_BLOCK_CELLS);
    return (gcf_job){.gcf = plan->gcf,
                     .table = gcf_table_best(),
                     .taps = gcf_taps_of(plan),
                     .place = place,
                     .count = count,
                     .num_pol = points->num_pol,
                     .vis = points->vis,
                     .cells = buffer,
                     .u0 = around->u,
                     .v0 = around->v,
                     .stride = stride,
                     .pol_stride = lines * stride,
                     .lines = lines,
                     .width = stride};
}

static void do_piece(const tess_gcf_plan *plan, const tess_gcf_points *points,
                     const tess_gcf_cells *cells, bool degrid, tiling *tiles,
                     const piece *which, const thread_memory *memory)
{
    const gcf_table *table = gcf_table_best();
    gcf_function *function =
        (degrid ? table->degrid : table->grid)[gcf_precision(plan)];
    gcf_place *place = tiles->place + which->first;
    const int64_t front = sort_piece(plan, tiles, which);
    box around = box_of(plan, place, which->count);
    if (front > 0 && !degrid) widen_to_blocks(&around);
    gcf_job job = job_in_buffer(plan, points, place, front, &around, memory->buffer);
    if (!degrid && front > 0 && goes_direct(plan, cells, which, &job)) {
        do_direct(plan, cells, &job, tiles, memory->work);
        return;
    }
    if (front == 0 && !buffer_pays(plan, place, which->count, &around)) {
        job.count = which->count;
        if (!degrid) for_regions(&around, tiles, take);
        do_sparse_piece(&job, cells, function);
        if (!degrid) for_regions(&around, tiles, release);
        return;
    }
    if (degrid)
        copy_from_grid(&job, &around, cells);
    else
        memset(memory->buffer, 0,
               (size_t)(job.pol_stride * job.num_pol) * gcf_value_bytes(plan->gcf));
    if (front > 0 && degrid) gcf_factored_degrid(plan, &job);
    if (front > 0 && !degrid) gcf_factored_grid(plan, &job, memory->work);
    job.place = place + front;
    job.count = which->count - front;
    function(&job);
    if (!degrid) add_to_grid(&job, &around, tiles, cells);
}

/* Pieces of sparse tiles are added to the grid atomically, when all others are done. */
static void do_sparse_pieces(const tess_gcf_plan *plan, const tess_gcf_points *points,
                             const tess_gcf_cells *cells, const tiling *tiles,
                             int64_t *count)
{
    int64_t done = 0;
#pragma omp for schedule(dynamic, 1) nowait
    for (int64_t k = 0; k < tiles->num_pieces; ++k) {
        const piece *which = &tiles->piece[k];
        gcf_job job = {.gcf = plan->gcf,
                       .taps = gcf_taps_of(plan),
                       .place = tiles->place + which->first,
                       .count = which->count,
                       .num_pol = points->num_pol,
                       .vis = points->vis};
        if (!which->sparse) continue;
        do_sparse_piece(&job, cells, gcf_tiling_of(plan)->add_atomically);
        done += which->count;
    }
    *count = done;
}

/* Whether taps and cells stay in cache without sorting. One thread then need not sort.
 */
static bool is_small(const tess_gcf_plan *plan, const tess_gcf_points *points,
                     const tess_gcf_cells *cells)
{
    const tess_gcf_tiling *how = gcf_tiling_of(plan);
    const int64_t value = (int64_t)gcf_value_bytes(plan->gcf) * points->num_pol;
    for (int p = 0; plan->factors && p < plan->gcf->layout.num_planes; ++p)
        if (tess_gcf_plan_rank(plan, p) > 0) return false;
    return plan->opts.threads == 1 && tess_gcf_bytes(plan->gcf) <= MOST_BUFFER_BYTES &&
           cells->nu * cells->nv * value <= MOST_BUFFER_BYTES &&
           how->sort == TESS_GCF_SORT_CHOSEN && how->pieces == 0 &&
           how->tile_factor == 0;
}

/* Memory of all threads. */
typedef struct all_memory {
    char *buffers, *works;
    int64_t buffer_bytes, work_bytes; /* of one thread */
} all_memory;

/* Allocates the memory, which is to be freed with free_memory, also after a failure.
 * TESS_ERR_ALLOC. */
static tess_status make_memory(const tess_gcf_plan *plan, const tiling *tiles,
                               int num_pol, all_memory *memory)
{
    tess_status status = TESS_OK;
    const int64_t value_bytes = num_pol * (int64_t)gcf_value_bytes(plan->gcf);
    memory->buffer_bytes = up_to(tiles->max_values * value_bytes, 64);
    memory->work_bytes = gcf_factored_work_bytes(plan, tiles->max_lines,
                                                 tiles->max_values / tiles->max_lines);
    memory->buffers = tess_alloc(plan->opts.threads, (size_t)memory->buffer_bytes);
    memory->works = tess_alloc(plan->opts.threads, (size_t)memory->work_bytes);
    if (!memory->buffers || !memory->works)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for tile buffers");
cleanup:
    return status;
}

static void free_memory(all_memory *memory)
{
    tess_free(memory->buffers);
    tess_free(memory->works);
}

/* Does all pieces by all threads, and returns how long the threads have worked, in all.
 * `sparse` counts the points that were added to the grid atomically. */
static double do_pieces(const tess_gcf_plan *plan, const tess_gcf_points *points,
                        const tess_gcf_cells *cells, bool degrid, tiling *tiles,
                        const all_memory *memory, int64_t *sparse)
{
    const int threads = plan->opts.threads;
    double busy = 0;
    int64_t atomic_points = 0;
#pragma omp parallel num_threads(threads) reduction(+ : busy, atomic_points)
    {
        double begin = tess_time_now();
        const int thread = tess_omp_thread();
        const thread_memory own = {memory->buffers + thread * memory->buffer_bytes,
                                   memory->works + thread * memory->work_bytes};
        const piece *which;
        for (int behind = 0;
             (which = next_piece(tiles, thread, threads, &behind)) != NULL;)
            if (!which->sparse)
                do_piece(plan, points, cells, degrid, tiles, which, &own);
        busy += tess_time_now() - begin;
        if (gcf_tiling_of(plan)->tile_factor > 0) {
#pragma omp barrier
            begin = tess_time_now();
            do_sparse_pieces(plan, points, cells, tiles, &atomic_points);
            busy += tess_time_now() - begin;
        }
    }
    *sparse = atomic_points;
    return busy;
}

tess_status gcf_run_tiled(const tess_gcf_plan *plan, const tess_gcf_points *points,
                          const tess_gcf_cells *cells, bool degrid,
                          tess_gcf_report *report)
{
    tess_status status = TESS_OK;
    tiling tiles = {0};
    all_memory memory = {0};
    double start = tess_time_now();
    if (is_small(plan, points, cells)) {
        const gcf_table *table = gcf_table_best();
        return gcf_run_in_order(
            plan, points, cells, degrid,
            (degrid ? table->degrid : table->grid)[gcf_precision(plan)], report);
    }
    TESS_TRY(tiling_make(plan, points, cells, degrid, &tiles, report));
    TESS_TRY(make_memory(plan, &tiles, points->num_pol, &memory));
    report->sort_s = tess_time_now() - start;
    start = tess_time_now();
    const double busy =
        do_pieces(plan, points, cells, degrid, &tiles, &memory, &report->points_atomic);
    const double wall = tess_time_now() - start;
    report->busy_share = wall > 0 ? busy / (wall * plan->opts.threads) : 1;
cleanup:
    free_memory(&memory);
    tiling_free(&tiles);
    return status;
}
