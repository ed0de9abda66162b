/* factored: kernels as sums of a few products (gcf_factor.c), on a GPU. Tables of
 * factors are one-dimensional, kilobytes that L1 holds, where those of kernels stream
 * through L2; and a tile of cells, with all points that meet it, is a complex matrix
 * product. Where the error asked for allows, it is done on tensor cores
 * (gcf_cuda_factored_tensor.cu), else by the kernels here. No study of tabulated
 * functions does this.
 *
 * Here are also the factors on the device, the entries that points become, and what is
 * done with points whose kernels do not factor. */
#include "gcf_cuda_factored.cuh"
#include "gcf_factor.h"

#include <cmath>

#include "tess_mem.h"

enum {
    LINES = 16, /* cells of a warp along u, without tensor cores */
    BATCH = 8,  /* entries whose columns are in shared memory */
    MOST = 1024 /* entries of an item: crowded cells have several warps */
};

/* Of the error asked for, these parts are left by fp16, and by adding in tensor cores:
 * they truncate, so that 24 additions of one sign lose 7e-7 (tile_cuda_tensor.cu), and
 * an item has up to 384. */
static const double LEAST_ONE_PRODUCT = 1e-3, LEAST_THREE_PRODUCTS = 3e-5;

/* A plane on the device. */
struct factored_plane {
    uint32_t first;              /* tap of the first line */
    int32_t rank, support, line; /* taps from line to line */
};

struct gcf_cuda_factors {
    const void *columns, *rows;
    uint32_t *high, *low;
    const factored_plane *plane;
    const float *scale;   /* [num_planes][GCF_MAX_RANK] of products, powers of two */
    int largest_exponent; /* of these */
    int products;         /* on tensor cores; 0: not on them */
    bool all_factored;
};

namespace
{

enum { THREADS = 256 };

/* ---- the factors ---- */

/* Exponent of the largest part of the lines of a product: the lines are below
 * 2^exponent. */
int exponent_of(const tess_gcf_plan *plan, int plane, int which, int term)
{
    const tess_gcf *gcf = plan->gcf;
    const int support = gcf->plane[plane].support, q = gcf->layout.oversampling;
    double most = 0;
    int exponent = 0;
    for (int o = 0; o < q; ++o) {
        const int64_t at = (int64_t)term * q * gcf_factor_line(support);
        const char *line = (const char *)gcf_factor_at(plan, plane, which, o) +
                           at * (int64_t)gcf_value_bytes(gcf);
        for (int k = 0; k < 2 * support; ++k)
            most = std::fmax(most, std::fabs(gcf->layout.is_double
                                                 ? ((const double *)line)[k]
                                                 : (double)((const float *)line)[k]));
    }
    if (most > 0) (void)std::frexp(most, &exponent);
    return exponent;
}

/* Writes the lines of a product, times 2^−exponent. */
template <typename R>
void copy_lines(const tess_gcf_plan *plan, int plane, int which, int term, int exponent,
                const factored_plane &to, R *values)
{
    const tess_gcf *gcf = plan->gcf;
    const int support = gcf->plane[plane].support, q = gcf->layout.oversampling;
    const R scale = (R)std::ldexp(1.0, -exponent);
    for (int o = 0; o < q; ++o) {
        const R *line = (const R *)gcf_factor_at(plan, plane, which, o) +
                        2 * ((int64_t)term * q * gcf_factor_line(support));
        R *out = values + 2 * ((int64_t)to.first + ((int64_t)term * q + o) * to.line);
        for (int k = 0; k < 2 * support; ++k)
            out[k] = scale * line[k];
    }
}

/* Finds where planes lie. Returns the number of values of a table. */
int64_t place_planes(const tess_gcf_plan *plan, factored_plane *plane, bool *all)
{
    const tess_gcf *gcf = plan->gcf;
    int64_t values = FACTORED_PAD;
    *all = true;
    for (int p = 0; p < gcf->layout.num_planes; ++p) {
        plane[p].first = (uint32_t)values;
        plane[p].rank = tess_gcf_plan_rank(plan, p);
        plane[p].support = gcf->plane[p].support;
        plane[p].line = gcf->plane[p].support + FACTORED_PAD;
        values += (int64_t)plane[p].rank * gcf->layout.oversampling * plane[p].line;
        *all = *all && plane[p].rank > 0;
    }
    return values;
}

template <typename R>
tess_status make_tables(const tess_gcf_plan *plan, const factored_plane *plane,
                        int64_t values, float *scale, gcf_cuda_factors *made)
{
    tess_status status = TESS_OK;
    const int64_t bytes = values * 2 * (int64_t)sizeof(R);
    R *columns = (R *)tess_alloc_zero(2 * values, sizeof *columns);
    R *rows = (R *)tess_alloc_zero(2 * values, sizeof *rows);
    if (!columns || !rows) TESS_FAIL(TESS_ERR_ALLOC, "factors of kernels");
    for (int p = 0; p < plan->gcf->layout.num_planes; ++p)
        for (int r = 0; r < plane[p].rank; ++r) {
            const int a = exponent_of(plan, p, 0, r), b = exponent_of(plan, p, 1, r);
            copy_lines<R>(plan, p, 0, r, a, plane[p], columns);
            copy_lines<R>(plan, p, 1, r, b, plane[p], rows);
            scale[p * GCF_MAX_RANK + r] = (float)std::ldexp(1.0, a + b);
            if (a + b > made->largest_exponent) made->largest_exponent = a + b;
        }
    TESS_TRY(tess_device_copy_of(columns, bytes, "factors of kernels", &made->columns));
    TESS_TRY(tess_device_copy_of(rows, bytes, "factors of kernels", &made->rows));
cleanup:
    tess_free(columns);
    tess_free(rows);
    return status;
}

tess_status make_halves(int64_t values, gcf_cuda_factors *made)
{
    tess_status status = TESS_OK;
    const int64_t bytes = values * (int64_t)sizeof *made->high;
    TESS_TRY(tess_device_alloc(bytes, "factors in halves", (void **)&made->high));
    TESS_TRY(tess_device_alloc(bytes, "factors in halves", (void **)&made->low));
    TESS_TRY(factored_halves(made->rows, values, made->high, made->low));
cleanup:
    return status;
}

/* ---- points become entries ---- */

struct entry_args {
    const gcf_cuda_place *place; /* sorted */
    int64_t count;
    const factored_plane *plane;
    const float *scale;
    int oversampling, num_pol;
    bool tensor, degrid;
    const void *vis;
    const uint32_t *before; /* [count + 1] entries before each point */
    int64_t num_entries;
    void *entry;
    double gain; /* visibilities are multiplied with */
};

/* What is counted: points with entries, all entries, and the bits of the largest part
 * of a visibility. */
enum { POINTS, ENTRIES, LARGEST, COUNTERS };

/* Counts the entries of every point, for the scan, and all of them. */
__global__ void rank_kernel(entry_args args, uint32_t *rank,
                            unsigned long long *counter)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    int mine = 0;
    if (k < args.count) mine = args.plane[gcf_plane_of(args.place[k].kernel)].rank;
    if (k <= args.count) rank[k] = (uint32_t)mine;
    const unsigned with = __ballot_sync(GCF_ALL_LANES, mine > 0);
    for (int step = 1; step < GCF_WARP; step *= 2)
        mine += __shfl_xor_sync(GCF_ALL_LANES, mine, step);
    if (threadIdx.x % GCF_WARP > 0 || !with) return;
    atomicAdd(&counter[POINTS], (unsigned long long)__popc(with));
    atomicAdd(&counter[ENTRIES], (unsigned long long)mine);
}

__device__ inline int full_offset(int oversampling, uint32_t kernel, int shift,
                                  uint32_t flip)
{
    const int offset = (int)(kernel >> shift & ((1u << GCF_OFFSET_BITS) - 1));
    return kernel & flip ? oversampling - offset : offset;
}

/* A thread works on a point and polarisation. */
template <typename R> __global__ void entry_kernel(entry_args args)
{
    typedef typename cuda_complex<R>::type C;
    const int64_t n = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int64_t k = n % args.count;
    const int pol = (int)(n / args.count);
    if (pol >= (args.degrid ? 1 : args.num_pol)) return;
    const gcf_cuda_place at = args.place[k];
    const factored_plane plane = args.plane[gcf_plane_of(at.kernel)];
    const int q = args.oversampling;
    const int ou = full_offset(q, at.kernel, GCF_PLANE_BITS, GCF_FLIP_U);
    const int ov =
        full_offset(q, at.kernel, GCF_PLANE_BITS + GCF_OFFSET_BITS, GCF_FLIP_V);
    const bool conjugate = (at.kernel & GCF_CONJUGATE) != 0;
    factored_entry<R> *out =
        (factored_entry<R> *)args.entry + pol * args.num_entries + args.before[k];
    C vis = {1, 0};
    if (!args.degrid)
        vis = ((const C *)args.vis)[(int64_t)at.point * args.num_pol + pol];
    if (args.tensor && conjugate && !args.degrid) vis.y = -vis.y;
    for (int r = 0; r < plane.rank; ++r) {
        const double scale =
            args.gain * (double)args.scale[gcf_plane_of(at.kernel) * GCF_MAX_RANK + r];
        factored_entry<R> one;
        one.u = at.u;
        one.v = at.v;
        one.column = plane.first + (uint32_t)((r * q + ou) * plane.line);
        one.row = plane.first + (uint32_t)((r * q + ov) * plane.line);
        one.info = (uint32_t)plane.support | (conjugate ? FACTORED_CONJUGATE : 0);
        one.point = at.point;
        one.value.x = (R)scale * vis.x;
        one.value.y = (R)scale * vis.y;
        out[r] = one;
    }
}

/* Finds the first entries of squares from the first points. */
__global__ void start_kernel(int64_t squares, const uint32_t *first,
                             const uint32_t *before, uint32_t *start)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (k <= squares) start[k] = before[first[k]];
}

/* Finds the largest part of all visibilities, as bits: those of floats ≥ 0 are in
 * order. What is no number does not count. */
__global__ void largest_kernel(int64_t parts, const float *vis, unsigned *largest)
{
    float most = 0;
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < parts;
         k += (int64_t)gridDim.x * THREADS)
        if (isfinite(vis[k])) most = fmaxf(most, fabsf(vis[k]));
    for (int with = 1; with < GCF_WARP; with *= 2)
        most = fmaxf(most, __shfl_xor_sync(GCF_ALL_LANES, most, with));
    unsigned bits;
    memcpy(&bits, &most, sizeof bits);
    if (threadIdx.x % GCF_WARP == 0) atomicMax(largest, bits);
}

/* Counts the items of every tile, for the scan. */
__global__ void count_items_kernel(factored_args args, int64_t tiles, uint32_t *count)
{
    const int64_t tile = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (tile > tiles) return;
    uint32_t entries = 0;
    int u, v;
    if (tile < tiles) {
        factored_corner(args, (uint32_t)tile, &u, &v);
        const factored_reach reach = factored_reach_of(args, u, v);
        for (int row = reach.first_u; row < reach.end_u; ++row) {
            uint32_t first, end;
            factored_run(args, reach, row, &first, &end);
            entries += end - first;
        }
    }
    count[tile] = (entries + MOST - 1) / MOST;
}

/* The scan tells which items are those of a tile. */
__global__ void item_kernel(int64_t tiles, const uint32_t *before, factored_item *item)
{
    const int64_t tile = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (tile >= tiles) return;
    for (uint32_t k = before[tile]; k < before[tile + 1]; ++k) {
        factored_item one;
        one.tile = (uint32_t)tile;
        one.first = (k - before[tile]) * (uint32_t)MOST;
        one.end = one.first + (uint32_t)MOST; /* or where the runs end */
        one.unused = 0;
        item[k] = one;
    }
}

/* ---- without tensor cores ---- */

/* Computes columns of BATCH entries on the warp's lines, times the entries' values. */
template <typename R>
__device__ inline void
load_columns(const factored_args &args, const factored_walk &walk,
             const factored_entry<R> *entry, int count, bool degrid,
             typename cuda_complex<R>::type (*column)[LINES])
{
    typedef typename cuda_complex<R>::type C;
    const int lane = (int)threadIdx.x % GCF_WARP;
    __syncwarp();
    for (int k = lane; k < count * LINES; k += GCF_WARP) {
        const factored_entry<R> one = entry[k / LINES];
        const int x = walk.u + k % LINES - one.u;
        C a = {0, 0}, product = {0, 0};
        if (x >= 0 && x < (int)(one.info & ~FACTORED_CONJUGATE))
            a = __ldg((const C *)args.columns + (int64_t)one.column + x);
        if (one.info & FACTORED_CONJUGATE) a.y = -a.y;
        if (degrid)
            product = a;
        else
            gcf_add_product(product, a, one.value);
        column[k / LINES][k % LINES] = product;
    }
    __syncwarp();
}

/* Returns a lane's tap of the row of an entry, and whether the entry meets the warp's
 * cells. */
template <typename R>
__device__ inline bool load_row(const factored_args &args, const factored_walk &walk,
                                const factored_entry<R> &one,
                                typename cuda_complex<R>::type *row)
{
    typedef typename cuda_complex<R>::type C;
    const int support = (int)(one.info & ~FACTORED_CONJUGATE);
    const int y = walk.v + (int)threadIdx.x % GCF_WARP - one.v;
    row->x = row->y = 0;
    if (one.u + support <= walk.u || one.u >= walk.u + LINES ||
        one.v + support <= walk.v || one.v >= walk.v + FACTORED_WIDTH)
        return false;
    if (y >= 0 && y < support)
        *row = __ldg((const C *)args.rows + (int64_t)one.row + y);
    if (one.info & FACTORED_CONJUGATE) row->y = -row->y;
    return true;
}

/* A warp grids its item on 16 × 32 cells, and a lane works on a column of them, in
 * registers. The factors of their lines are in shared memory (4 or 8 KiB for a block).
 * Atomic: one addition for every cell and item. The expected limit is arithmetic: 64
 * fused multiply-adds for every 16 reads of 8 or 16 bytes that all lanes share. */
template <typename R>
__global__ void __launch_bounds__(FACTORED_THREADS) grid_kernel(factored_args args)
{
    typedef typename cuda_complex<R>::type C;
    __shared__ C columns[FACTORED_WARPS][BATCH][LINES];
    C(*column)[LINES] = columns[threadIdx.x / GCF_WARP];
    factored_walk walk;
    uint32_t first, end;
    C sum[LINES] = {};
    if (!factored_begin(args, &walk)) return;
    const factored_entry<R> *entry =
        (const factored_entry<R> *)args.entry + walk.pol * args.num_entries;
    while (factored_next(args, &walk, &first, &end))
        for (uint32_t e = first; e < end; e += BATCH) {
            const int count = (int)min((uint32_t)BATCH, end - e);
            load_columns<R>(args, walk, entry + e, count, false, column);
            for (int k = 0; k < count; ++k) {
                C row;
                if (!load_row<R>(args, walk, entry[e + (uint32_t)k], &row)) continue;
#pragma unroll
                for (int i = 0; i < LINES; ++i)
                    gcf_add_product(sum[i], column[k][i], row);
            }
        }
    C *cells = (C *)args.cells + walk.pol * args.pol_stride;
    const int y = walk.v + (int)threadIdx.x % GCF_WARP;
#pragma unroll
    for (int i = 0; i < LINES; ++i)
        if (walk.u + i < args.nu && y < args.nv)
            add_complex(cells + (int64_t)(walk.u + i) * args.nv + y, sum[i]);
}

/* Does the reverse, with the cells in registers. Atomic: the share of an entry. */
template <typename R>
__global__ void __launch_bounds__(FACTORED_THREADS) degrid_kernel(factored_args args)
{
    typedef typename cuda_complex<R>::type C;
    __shared__ C columns[FACTORED_WARPS][BATCH][LINES];
    C(*column)[LINES] = columns[threadIdx.x / GCF_WARP];
    const int lane = (int)threadIdx.x % GCF_WARP;
    factored_walk walk;
    uint32_t first, end;
    C cell[LINES] = {};
    if (!factored_begin(args, &walk)) return;
    const factored_entry<R> *entry = (const factored_entry<R> *)args.entry;
#pragma unroll
    for (int i = 0; i < LINES; ++i)
        if (walk.u + i < args.nu && walk.v + lane < args.nv)
            cell[i] = ((const C *)
                           args.cells)[walk.pol * args.pol_stride +
                                       (int64_t)(walk.u + i) * args.nv + walk.v + lane];
    while (factored_next(args, &walk, &first, &end))
        for (uint32_t e = first; e < end; e += BATCH) {
            const int count = (int)min((uint32_t)BATCH, end - e);
            load_columns<R>(args, walk, entry + e, count, true, column);
            for (int k = 0; k < count; ++k) {
                const factored_entry<R> one = entry[e + (uint32_t)k];
                C row, sum = {0, 0}, vis = {0, 0};
                if (!load_row<R>(args, walk, one, &row)) continue;
#pragma unroll
                for (int i = 0; i < LINES; ++i)
                    gcf_add_conjugate_product(sum, column[k][i], cell[i]);
                gcf_add_conjugate_product(vis, row, sum);
                const R total = gcf_sum_parts<1>((R *)&vis, lane);
                if (gcf_stores<1>(lane))
                    atomicAdd((R *)args.vis +
                                  2 * ((int64_t)one.point * args.num_pol + walk.pol) +
                                  gcf_part_of<1>(lane),
                              total * one.value.x);
            }
        }
}

/* ---- points whose kernels do not factor ---- */

/* A warp works on a point, and reads its taps from the table, as in strategy warp.
 * Points that factor are skipped. Atomic: every cell and polarisation. */
template <typename R, int POLS>
__global__ void __launch_bounds__(THREADS)
    table_kernel(gcf_cuda_job job, const factored_plane *plane, bool degrid)
{
    typedef typename cuda_complex<R>::type C;
    const int lane = (int)threadIdx.x % GCF_WARP;
    const int64_t k =
        (int64_t)blockIdx.x * (THREADS / GCF_WARP) + threadIdx.x / GCF_WARP;
    if (k >= job.count) return;
    const gcf_cuda_place at = job.place[k];
    if (plane[gcf_plane_of(at.kernel)].rank > 0) return;
    const gcf_taps_view<R> taps = gcf_view<R>(job, at.kernel);
    C *cells = (C *)job.cells + (int64_t)at.u * job.nv + at.v;
    C vis[POLS] = {};
    for (int p = 0; p < POLS && !degrid; ++p)
        vis[p] = ((const C *)job.vis)[(int64_t)at.point * POLS + p];
    for (int n = lane; n < taps.support * taps.support; n += GCF_WARP) {
        const int i = n / taps.support, j = n % taps.support;
        C tap = __ldg(taps.first + i * taps.step_u + j * taps.step_v);
        tap.y *= taps.sign;
#pragma unroll
        for (int p = 0; p < POLS; ++p) {
            C *cell = cells + p * job.pol_stride + (int64_t)i * job.nv + j;
            if (degrid) {
                gcf_add_conjugate_product(vis[p], tap, *cell);
            } else {
                C product = {0, 0};
                gcf_add_product(product, tap, vis[p]);
                add_complex(cell, product);
            }
        }
    }
    if (!degrid) return;
    const R total = gcf_sum_parts<POLS>((R *)vis, lane);
    if (gcf_stores<POLS>(lane))
        *gcf_vis_part<R, POLS>(job, at.point, gcf_part_of<POLS>(lane)) = total;
}

template <typename R, int POLS>
tess_status run_table(const gcf_cuda_job &job, const gcf_cuda_factors &with,
                      bool degrid)
{
    tess_status status = TESS_OK;
    const int warps = THREADS / GCF_WARP;
    tess_launch(table_kernel<R, POLS>, (job.count + warps - 1) / warps, THREADS, 0, job,
               with.plane, degrid);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

/* ---- a call ---- */

struct work {
    uint32_t *rank, *before, *start, *count, *items_before;
    unsigned long long *counter; /* [COUNTERS] */
    void *entry;
    factored_item *item;
};

void work_free(work *w)
{
    void *memory[] = {w->rank,         w->before,  w->start, w->count,
                      w->items_before, w->counter, w->entry, w->item};
    for (size_t k = 0; k < sizeof memory / sizeof *memory; ++k)
        tess_device_free(memory[k]);
}

template <typename T> tess_status take(int64_t count, T **memory)
{
    return tess_device_alloc(count * (int64_t)sizeof **memory, "entries of points",
                             (void **)memory);
}

int64_t blocks_for(int64_t threads)
{
    return (threads + THREADS - 1) / THREADS;
}

/* For tensor cores, visibilities are multiplied by 2^this, so that the largest product
 * with a column stays below 2^14. */
int gain_of(const gcf_cuda_factors &with, unsigned largest)
{
    float most;
    int exponent = 0;
    memcpy(&most, &largest, sizeof most);
    if (most > 0) (void)std::frexp(most, &exponent);
    return max(-110,
               min(110, FACTORED_VALUE_EXPONENT - exponent - with.largest_exponent));
}

/* Counts the entries before each point, and all of them, and finds the exponent of the
 * gain. */
tess_status count_entries(const gcf_cuda_job &job, const gcf_cuda_factors &with,
                          bool degrid, entry_args *args, work *w, int *gain)
{
    tess_status status = TESS_OK;
    unsigned long long counter[COUNTERS] = {};
    const int64_t parts = 2 * job.num_vis * job.num_pol;
    TESS_TRY(take(job.count + 1, &w->rank));
    TESS_TRY(take(job.count + 1, &w->before));
    TESS_TRY(take(COUNTERS, &w->counter));
    TESS_TRY(tess_device_zero(w->counter, sizeof counter));
    tess_launch(rank_kernel, blocks_for(job.count + 1), THREADS, 0, *args, w->rank,
               w->counter);
    TESS_CUDA_LAUNCHED();
    TESS_TRY(gcf_cuda_scan(w->rank, w->before, job.count + 1));
    if (with.products > 0 && !degrid) {
        tess_launch(largest_kernel, min(blocks_for(parts), (int64_t)2048), THREADS, 0,
                   parts, (const float *)job.vis, (unsigned *)(w->counter + LARGEST));
        TESS_CUDA_LAUNCHED();
    }
    TESS_TRY(tess_device_download(counter, w->counter, sizeof counter));
    /* they are numbered by 32 bits */
    if (counter[ENTRIES] > INT32_MAX)
        TESS_FAIL(TESS_ERR_RESOURCE,
                  "%llu products of kernels and points on a GPU: at most %d at a time",
                  counter[ENTRIES], INT32_MAX);
    *gain =
        with.products > 0 && !degrid ? gain_of(with, (unsigned)counter[LARGEST]) : 0;
    args->before = w->before;
    args->num_entries = (int64_t)counter[ENTRIES];
    args->gain = std::ldexp(1.0, *gain);
    job.host.report->point_ranks = args->num_entries;
    job.host.report->points_factored = (int64_t)counter[POINTS];
cleanup:
    return status;
}

tess_status make_entries(const gcf_cuda_job &job, const gcf_cuda_factors &with,
                         bool degrid, factored_args *out, work *w)
{
    tess_status status = TESS_OK;
    const int pols = degrid ? 1 : job.num_pol;
    const int64_t squares = (int64_t)job.tiles_u * job.tiles_v;
    int gain = 0;
    entry_args args = {};
    args.place = job.place;
    args.count = job.count;
    args.plane = with.plane;
    args.scale = with.scale;
    args.oversampling = job.table.oversampling;
    args.num_pol = job.num_pol;
    args.tensor = with.products > 0;
    args.degrid = degrid;
    args.vis = job.vis;
    TESS_TRY(count_entries(job, with, degrid, &args, w, &gain));
    if (job.is_double)
        TESS_TRY(take(pols * args.num_entries, (factored_entry<double> **)&w->entry));
    else
        TESS_TRY(take(pols * args.num_entries, (factored_entry<float> **)&w->entry));
    args.entry = w->entry;
    tess_launch(job.is_double ? entry_kernel<double> : entry_kernel<float>,
               blocks_for(pols * job.count), THREADS, 0, args);
    TESS_CUDA_LAUNCHED();
    TESS_TRY(take(squares + 1, &w->start));
    tess_launch(start_kernel, blocks_for(squares + 1), THREADS, 0, squares, job.first,
               (const uint32_t *)w->before, w->start);
    TESS_CUDA_LAUNCHED();
    out->entry = w->entry;
    out->num_entries = degrid ? 0 : args.num_entries; /* all pols have the same */
    out->start = w->start;
    out->unit = (float)std::ldexp(1.0, -gain - FACTORED_ROW_EXPONENT);
cleanup:
    return status;
}

tess_status make_items(factored_args *args, work *w)
{
    tess_status status = TESS_OK;
    const int64_t tiles_u =
        (args->nu + 2 * args->tile_lines - 1) / (2 * args->tile_lines);
    const int64_t tiles = 4 * tiles_u * args->tiles_v;
    uint32_t items = 0;
    TESS_TRY(take(tiles + 1, &w->count));
    TESS_TRY(take(tiles + 1, &w->items_before));
    tess_launch(count_items_kernel, blocks_for(tiles + 1), THREADS, 0, *args, tiles,
               w->count);
    TESS_CUDA_LAUNCHED();
    TESS_TRY(gcf_cuda_scan(w->count, w->items_before, tiles + 1));
    TESS_TRY(tess_device_download(&items, w->items_before + tiles, sizeof items));
    TESS_TRY(take((int64_t)items + 1, &w->item));
    tess_launch(item_kernel, blocks_for(tiles), THREADS, 0, tiles,
               (const uint32_t *)w->items_before, w->item);
    TESS_CUDA_LAUNCHED();
    args->item = w->item;
    args->num_items = items;
cleanup:
    return status;
}

tess_status launch(const gcf_cuda_job &job, const gcf_cuda_factors &with, bool degrid,
                   const factored_args &args)
{
    tess_status status = TESS_OK;
    const int64_t blocks =
        (args.num_items * args.num_pol + FACTORED_WARPS - 1) / FACTORED_WARPS;
    if (blocks == 0) goto cleanup;
    if (with.products > 0 && degrid)
        TESS_TRY(factored_degrid_tensor(args, with.products));
    else if (with.products > 0)
        TESS_TRY(factored_grid_tensor(args, with.products));
    else if (degrid)
        tess_launch(job.is_double ? degrid_kernel<double> : degrid_kernel<float>, blocks,
                   FACTORED_THREADS, 0, args);
    else
        tess_launch(job.is_double ? grid_kernel<double> : grid_kernel<float>, blocks,
                   FACTORED_THREADS, 0, args);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

tess_status run(const gcf_cuda_job &job, bool degrid)
{
    tess_status status = TESS_OK;
    const gcf_cuda_factors &with = *gcf_cuda_factors_of(job.host.with);
    const int64_t vis_bytes = job.num_vis * job.num_pol * (job.is_double ? 16 : 8);
    work w = {};
    factored_args args = {};
    args.columns = with.columns;
    args.rows = with.rows;
    args.row_high = with.high;
    args.row_low = with.low;
    args.starts_u = job.tiles_u;
    args.starts_v = job.tiles_v;
    args.max_support = job.table.max_support;
    args.num_pol = job.num_pol;
    args.tile_lines = with.products > 0 ? 32 : LINES;
    args.tiles_v = (job.nv + 2 * FACTORED_WIDTH - 1) / (2 * FACTORED_WIDTH);
    args.vis = job.vis;
    args.cells = job.cells;
    args.nu = job.nu;
    args.nv = job.nv;
    args.pol_stride = job.pol_stride;
    if (degrid) TESS_TRY(tess_device_zero(job.vis, vis_bytes));
    TESS_TRY(make_entries(job, with, degrid, &args, &w));
    TESS_TRY(make_items(&args, &w));
    TESS_CUDA(cudaEventRecord(job.host.sorted, tess_device_stream()));
    TESS_TRY(launch(job, with, degrid, args));
    if (!with.all_factored) TESS_TRY(GCF_BY_TYPE(job, run_table, job, with, degrid));
cleanup:
    work_free(&w);
    return status;
}

} // namespace

double gcf_device_factor_error(const tess_gcf *gcf, double error)
{
    return !gcf->layout.is_double && error >= LEAST_ONE_PRODUCT ? 0.95 * error : error;
}

tess_status gcf_cuda_factors_create(const tess_gcf_plan *plan, gcf_cuda_factors **out)
{
    tess_status status = TESS_OK;
    const tess_gcf *gcf = plan->gcf;
    const int planes = gcf->layout.num_planes;
    int64_t values = 0;
    gcf_cuda_factors *made = (gcf_cuda_factors *)tess_alloc_zero(1, sizeof *made);
    factored_plane *plane = (factored_plane *)tess_alloc_zero(planes, sizeof *plane);
    float *scale = (float *)tess_alloc_zero(planes, GCF_MAX_RANK * sizeof *scale);
    if (!made || !plane || !scale) TESS_FAIL(TESS_ERR_ALLOC, "factors of kernels");
    made->largest_exponent = -1000;
    if (!gcf->layout.is_double)
        made->products = plan->opts.factor_error >= 0.95 * LEAST_ONE_PRODUCT ? 1
                         : plan->opts.factor_error >= LEAST_THREE_PRODUCTS   ? 3
                                                                             : 0;
    values = place_planes(plan, plane, &made->all_factored);
    if (values > INT32_MAX)
        TESS_FAIL(TESS_ERR_USAGE, "%lld values of factors: too many for a GPU",
                  (long long)values);
    if (gcf->layout.is_double)
        TESS_TRY(make_tables<double>(plan, plane, values, scale, made));
    else
        TESS_TRY(make_tables<float>(plan, plane, values, scale, made));
    if (made->products > 0) TESS_TRY(make_halves(values, made));
    TESS_TRY(tess_device_copy_of(plane, planes * (int64_t)sizeof *plane,
                                 "planes of w-kernels", (const void **)&made->plane));
    TESS_TRY(tess_device_copy_of(scale, planes * GCF_MAX_RANK * (int64_t)sizeof *scale,
                                 "scales of factors", (const void **)&made->scale));
    *out = made;
    made = NULL;
cleanup:
    tess_free(plane);
    tess_free(scale);
    gcf_cuda_factors_destroy(made);
    return status;
}

void gcf_cuda_factors_destroy(gcf_cuda_factors *made)
{
    if (!made) return;
    tess_device_free((void *)(uintptr_t)made->columns);
    tess_device_free((void *)(uintptr_t)made->rows);
    tess_device_free(made->high);
    tess_device_free(made->low);
    tess_device_free((void *)(uintptr_t)made->plane);
    tess_device_free((void *)(uintptr_t)made->scale);
    tess_free(made);
}

static gcf_cuda_order order(const gcf_cuda_job &)
{
    return {FACTORED_START, FACTORED_START, false, false, false, 0};
}

static tess_status grid(const gcf_cuda_job &job)
{
    return run(job, false);
}

static tess_status degrid_points(const gcf_cuda_job &job)
{
    return run(job, true);
}

const gcf_device_method *gcf_device_factored(bool degrid)
{
    static const gcf_device_method method[2] = {{order, NULL, grid},
                                                {order, NULL, degrid_points}};
    return &method[degrid];
}
