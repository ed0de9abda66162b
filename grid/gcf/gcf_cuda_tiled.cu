/* tiled: the grid is cut into tiles whose sums stay in the registers of a block, as
 * many cells as they hold. A tile lists the points whose footprints meet it, in the
 * order of their kernels, so that those that read the same taps follow each other and
 * find them in L1: reading each tap from L2 (8 bytes for 8 FLOP in single precision)
 * would alone limit one polarisation to 6 TFLOP/s on an H200. Bucket sort by tile and
 * layer, and a crowded middle cut into pieces for several blocks, are those of the
 * studies of tiled gridding on the P100, Xeon and Xeon Phi; several cells a thread is
 * Merry 2016 (arXiv:1605.07023). A warp looks at a whole sub-tile for each entry of a
 * list: kernels that fill little of one are left to a warp each, and so are all points
 * where they are too few to be sorted. */
#include "gcf_cuda.cuh"
#include "tess_gcf_cuda_warp.cuh"

namespace
{

enum {
    LANES = 32,
    CUT_THREADS = 256,
    LEAST_ENTRIES = 256,
    PIECES_AN_SM = 24,
    SHAPE_DIVERGENT = 4
};

/* Warps of a block, which are a rectangle of sub-tiles; entries that wait in shared
 * memory; blocks on a multiprocessor; and the bytes of sums of a lane. All shapes hold
 * half of a multiprocessor's registers in sums. */
struct block_shape {
    int warps_u, warps_v, batch, blocks, sum_bytes;
};
__host__ __device__ constexpr block_shape shape_number(int number)
{
    return number == 1   ? block_shape{4, 4, 128, 1, 256}
           : number == 2 ? block_shape{4, 2, 128, 2, 256}
           : number == 3 ? block_shape{4, 4, 64, 2, 128}
           : number == 4 ? block_shape{4, 2, 64, 4, 128}
           : number == 5 ? block_shape{4, 2, 128, 2, 384}
                         : block_shape{2, 2, 128, 4, 256};
}
static_assert(TESS_GCF_SHAPES == 6, "all shapes are listed");

/* Taps that a thread loads at a time, for its cells. */
__host__ __device__ constexpr int together(int cells)
{
    return cells % 8 == 0 ? 8 : cells % 6 == 0 ? 6 : cells < 6 ? cells : 1;
}

/* The sub-tile of a warp: lanes LU × LV, and CELLS cells of each lane, one below the
 * other. */
template <typename R, int POLS, int SHAPE> struct shape {
    static constexpr block_shape BLOCK = shape_number(SHAPE);
    static constexpr int THREADS = BLOCK.warps_u * BLOCK.warps_v * LANES;
    static constexpr int BATCH = BLOCK.batch;
    static constexpr int CELLS = BLOCK.sum_bytes / (2 * (int)sizeof(R) * POLS);
    static constexpr int LV = CELLS >= 32 ? 32 : CELLS >= 8 ? 16 : 8;
    static constexpr int LU = LANES / LV;
    static constexpr int H = CELLS * LU, W = LV;
    static constexpr int TILE_U = BLOCK.warps_u * H, TILE_V = BLOCK.warps_v * W;
};

/* A point as a tile needs it. */
template <typename R, int POLS> struct entry { /* tap numbers are of the table */
    int offset;         /* of the tap at the tile's first cell, were there one */
    int step_u, step_v; /* from tap to tap */
    short low_u, high_u, low_v, high_v; /* the tile's cells that it covers */
    R vis[POLS][4]; /* (x, y, −sy, sx), s = −1 for conjugated kernels */
};

/* A part of a tile's list. */
struct piece {
    int tile;
    uint32_t first, count;
};

/* How lists are cut: into pieces of at most `most` entries; or, of tiles within
 * `radius` (unless 0) of the middle, into `pieces`, unless 0. Lists that are shorter
 * than `factor` times the mean are sparse. */
struct cutting {
    int most, pieces, radius;
    double factor;
    unsigned *count; /* of pieces, of sparse lists, of lists, of sparse entries */
    piece *out;      /* [room], sparse ones from the end */
    int64_t room;
};
enum { PIECES, SPARSE, LISTS, SPARSE_ENTRIES, COUNTERS };

__global__ void count_kernel(gcf_cuda_job job, unsigned *lists)
{
    const int t = (int)(blockIdx.x * CUT_THREADS + threadIdx.x);
    if (t < job.tiles_u * job.tiles_v && job.first[t + 1] > job.first[t])
        atomicAdd(lists, 1u);
}

__device__ uint32_t pieces_of(const gcf_cuda_job &job, const cutting &how, int tile,
                              uint32_t entries)
{
    if (how.pieces == 0) return (entries + how.most - 1) / how.most;
    const double u = (tile / job.tiles_v + 0.5) * job.order.tile_u - 0.5 * job.nu;
    const double v = (tile % job.tiles_v + 0.5) * job.order.tile_v - 0.5 * job.nv;
    if (how.radius > 0 && u * u + v * v > (double)how.radius * how.radius) return 1;
    return min(entries, (uint32_t)how.pieces);
}

/* A thread works on a tile. */
__global__ void cut_kernel(gcf_cuda_job job, cutting how)
{
    const int t = (int)(blockIdx.x * CUT_THREADS + threadIdx.x);
    if (t >= job.tiles_u * job.tiles_v) return;
    const uint32_t first = job.first[t], entries = job.first[t + 1] - first;
    if (entries == 0) return;
    if (how.factor > 0 &&
        (double)entries * how.count[LISTS] < how.factor * (double)job.count) {
        atomicAdd(&how.count[SPARSE_ENTRIES], entries);
        how.out[how.room - 1 - atomicAdd(&how.count[SPARSE], 1u)] = {t, first, entries};
        return;
    }
    const uint32_t pieces = pieces_of(job, how, t, entries);
    const unsigned at = atomicAdd(&how.count[PIECES], (unsigned)pieces);
    for (uint32_t k = 0; k < pieces; ++k) {
        const uint32_t begin = (uint32_t)((uint64_t)entries * k / pieces);
        const uint32_t end = (uint32_t)((uint64_t)entries * (k + 1) / pieces);
        how.out[at + k] = {t, first + begin, end - begin};
    }
}

/* A block works on a sparse list, and a warp on an entry at a time: its part of the
 * tile is added to the grid atomically. */
template <typename R, int POLS>
__global__ void __launch_bounds__(CUT_THREADS)
    sparse_kernel(gcf_cuda_job job, cutting how)
{
    typedef typename cuda_complex<R>::type C;
    if (blockIdx.x >= how.count[SPARSE]) return;
    const piece mine = how.out[how.room - 1 - blockIdx.x];
    const int u0 = mine.tile / job.tiles_v * job.order.tile_u;
    const int v0 = mine.tile % job.tiles_v * job.order.tile_v;
    const int lane = (int)threadIdx.x % LANES;
    for (uint32_t k = threadIdx.x / LANES; k < mine.count; k += CUT_THREADS / LANES) {
        const gcf_cuda_place at = gcf_place_of(job, mine.first + k);
        gcf_stamp<R, POLS> s;
        gcf_stamp_of<R, POLS>(job, at, &s);
        const int end_u = min(at.u + s.support, u0 + job.order.tile_u);
        const int end_v = min(at.v + s.support, v0 + job.order.tile_v);
        for (int u = max(at.u, u0); u < end_u; ++u)
            for (int v = max(at.v, v0) + lane; v < end_v; v += LANES) {
                const C tap = gcf_tap_of<R>(
                    s.taps, s.is_single, (u - at.u) * s.step_u + (v - at.v) * s.step_v);
                C *cell = (C *)job.cells + (int64_t)u * job.nv + v;
                for (int p = 0; p < POLS; ++p) {
                    C sum = {0, 0};
                    gcf_add_tap<R>(sum, tap, s.vis[p]);
                    add_complex(cell + p * job.pol_stride, sum);
                }
            }
    }
}

template <typename R, int POLS, int SHAPE>
__device__ void load(const gcf_cuda_job &job, const gcf_cuda_place &at, int u0, int v0,
                     entry<R, POLS> *out)
{
    typedef typename cuda_complex<R>::type C;
    typedef shape<R, POLS, SHAPE> S;
    const gcf_taps_view<R> taps = gcf_view<R>(job, at.kernel);
    const int u = at.u - u0, v = at.v - v0;
    out->offset = (int)(taps.first - (const C *)job.table.taps) - u * taps.step_u -
                  v * taps.step_v;
    out->step_u = taps.step_u;
    out->step_v = taps.step_v;
    out->low_u = (short)max(u, 0);
    out->high_u = (short)min(u + taps.support, S::TILE_U);
    out->low_v = (short)max(v, 0);
    out->high_v = (short)min(v + taps.support, S::TILE_V);
    for (int p = 0; p < POLS; ++p) {
        const C vis = gcf_vis_of<R, POLS>(job, at.point, p);
        out->vis[p][0] = vis.x;
        out->vis[p][1] = vis.y;
        out->vis[p][2] = -taps.sign * vis.y;
        out->vis[p][3] = taps.sign * vis.x;
    }
}

/* Adds the share of a point to a lane's cells (row + k·LU, column). Taps outside of the
 * footprint are the zero behind the table, so that loads need not wait for branches; or
 * DIVERGENT threads branch. */
template <typename R, int POLS, int SHAPE, typename T, bool DIVERGENT>
__device__ inline void
add(const void *taps, int zero, const entry<R, POLS> &e, int row, int column,
    typename cuda_complex<R>::type sum[shape<R, POLS, SHAPE>::CELLS][POLS])
{
    typedef typename cuda_complex<R>::type C;
    typedef shape<R, POLS, SHAPE> S;
    const int group = together(S::CELLS);
    static_assert(S::CELLS % group == 0, "groups are whole");
    const bool inside = column >= e.low_v && column < e.high_v;
    const unsigned lines = inside ? (unsigned)(e.high_u - e.low_u) : 0;
    const int down = row - e.low_u, step = S::LU * e.step_u;
    const int offset = e.offset + row * e.step_u + column * e.step_v;
    R vis[POLS][4];
    for (int p = 0; p < POLS; ++p)
        for (int k = 0; k < 4; ++k)
            vis[p][k] = e.vis[p][k];
    const int first = row / S::H * S::H; /* the same for all lanes */
#pragma unroll
    for (int g = 0; g < S::CELLS; g += group) {
        const int begin = first + g * S::LU;
        if (begin >= e.high_u || begin + group * S::LU <= e.low_u) continue;
        C tap[group];
#pragma unroll
        for (int k = 0; k < group; ++k) {
            const bool there = (unsigned)(down + (g + k) * S::LU) < lines;
            if (DIVERGENT && !there) continue;
            const int at = there ? offset + (g + k) * step : zero;
            const typename cuda_complex<T>::type read =
                __ldg((const typename cuda_complex<T>::type *)taps + at);
            tap[k].x = read.x;
            tap[k].y = read.y;
        }
#pragma unroll
        for (int k = 0; k < group; ++k)
#pragma unroll
            for (int p = 0; p < POLS; ++p)
                if (!DIVERGENT || (unsigned)(down + (g + k) * S::LU) < lines)
                    gcf_add_tap<R>(sum[g + k][p], tap[k], vis[p]);
    }
}

/* A block works on a piece, and a warp on a sub-tile. Entries wait in shared memory.
 * Each warp takes those that meet its sub-tile, and looks at 32 of them at a time. Sums
 * are added atomically at the end; cells to which nothing was added are left alone. The
 * expected limit is L2 if kernels are large and differ from point to point; else it is
 * instructions, half of which are FMAs. */
template <typename R, int POLS, int SHAPE, typename T, bool DIVERGENT>
__global__ void __launch_bounds__(shape<R, POLS, SHAPE>::THREADS,
                                  shape<R, POLS, SHAPE>::BLOCK.blocks)
    tile_kernel(gcf_cuda_job job, const void *taps, cutting how)
{
    typedef typename cuda_complex<R>::type C;
    typedef shape<R, POLS, SHAPE> S;
    __shared__ entry<R, POLS> batch[S::BATCH];
    if (blockIdx.x >= how.count[PIECES]) return;
    const piece mine = how.out[blockIdx.x];
    const int u0 = mine.tile / job.tiles_v * S::TILE_U;
    const int v0 = mine.tile % job.tiles_v * S::TILE_V;
    const int warp = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES;
    const int first_u = warp / S::BLOCK.warps_v * S::H;
    const int first_v = warp % S::BLOCK.warps_v * S::W;
    const int row = first_u + lane / S::LV, column = first_v + lane % S::LV;
    C sum[S::CELLS][POLS];
#pragma unroll
    for (int k = 0; k < S::CELLS; ++k)
#pragma unroll
        for (int p = 0; p < POLS; ++p)
            sum[k][p].x = sum[k][p].y = 0;
    for (uint32_t from = 0; from < mine.count; from += S::BATCH) {
        __syncthreads();
        if (threadIdx.x < S::BATCH) {
            if (from + threadIdx.x < mine.count)
                load<R, POLS, SHAPE>(job,
                                     gcf_place_of(job, mine.first + from + threadIdx.x),
                                     u0, v0, &batch[threadIdx.x]);
            else
                batch[threadIdx.x].high_u = batch[threadIdx.x].low_u = -1;
        }
        __syncthreads();
        for (int look = 0; look < S::BATCH; look += LANES) {
            const entry<R, POLS> &e = batch[look + lane];
            const bool meets = e.high_u > first_u && e.low_u < first_u + S::H &&
                               e.high_v > first_v && e.low_v < first_v + S::W;
            unsigned met = __ballot_sync(0xffffffffu, e.high_u > 0 && meets);
            for (; met != 0; met &= met - 1)
                add<R, POLS, SHAPE, T, DIVERGENT>(taps, (int)job.table.zero_tap,
                                                  batch[look + __ffs((int)met) - 1],
                                                  row, column, sum);
        }
    }
    C *cell = (C *)job.cells + (int64_t)(u0 + row) * job.nv + v0 + column;
#pragma unroll
    for (int k = 0; k < S::CELLS; ++k)
#pragma unroll
        for (int p = 0; p < POLS; ++p)
            /* beyond the grid there is something if a visibility is no number */
            if ((sum[k][p].x != 0 || sum[k][p].y != 0) && v0 + column < job.nv &&
                u0 + row + k * S::LU < job.nu)
                add_complex(cell + p * job.pol_stride + (int64_t)k * S::LU * job.nv,
                            sum[k][p]);
}

template <typename R, int POLS, int SHAPE>
void launch(const gcf_cuda_job &job, int64_t pieces, const cutting &how)
{
    const int threads = shape<R, POLS, SHAPE>::THREADS;
    if (job.table.single_taps)
        tess_launch(tile_kernel<R, POLS, SHAPE, float, false>, pieces, threads, 0, job,
                   job.table.single_taps, how);
    else
        tess_launch(tile_kernel<R, POLS, SHAPE, R, false>, pieces, threads, 0, job,
                   job.table.taps, how);
}

template <typename R, int POLS>
void launch_divergent(const gcf_cuda_job &job, int64_t pieces, const cutting &how)
{
    tess_launch(tile_kernel<R, POLS, SHAPE_DIVERGENT, R, true>, pieces,
               shape<R, POLS, SHAPE_DIVERGENT>::THREADS, 0, job, job.table.taps, how);
}

template <typename R, int POLS>
void launch_shape(const gcf_cuda_job &job, int number, int64_t pieces,
                  const cutting &how)
{
    switch (number) {
    case 1:
        launch<R, POLS, 1>(job, pieces, how);
        break;
    case 2:
        launch<R, POLS, 2>(job, pieces, how);
        break;
    case 3:
        launch<R, POLS, 3>(job, pieces, how);
        break;
    case 4:
        launch<R, POLS, 4>(job, pieces, how);
        break;
    case 5:
        launch<R, POLS, 5>(job, pieces, how);
        break;
    default:
        launch<R, POLS, 6>(job, pieces, how);
    }
}

const tess_gcf_tiling &tiling_of(const gcf_cuda_job &job)
{
    return *gcf_tiling_of(job.host.plan);
}

/* Chooses the shape of a block: the one that was asked for, or the one that was the
 * fastest on an H200. Many warps hide what reading taps costs. Many sums of a lane
 * share the cost of looking at points, which several polarisations already do. Small
 * blocks wait less for each other, and narrow kernels make few copies of the points in
 * their lists. */
int shape_of(const gcf_cuda_job &job)
{
    enum { NARROW = 32, WIDE = 64 };
    const int asked = job.host.plan->opts.shape;
    if (tiling_of(job).divergent) return SHAPE_DIVERGENT;
    if (asked > 0) return asked;
    if (job.num_pol == 4)
        return job.table.max_support > NARROW && job.table.max_support <= WIDE ? 6 : 2;
    if (!job.is_double) return job.table.max_support > NARROW ? 3 : 4;
    if (job.table.single_taps) return 4;
    return job.table.max_support > WIDE ? 1 : 6;
}

/* Questions about tiles are answered for tiles only. */
bool by_cost(const gcf_cuda_job &job)
{
    const tess_gcf_tiling &of = tiling_of(job);
    return of.narrow == 0 && !of.divergent && !of.by_tile && of.pieces == 0 &&
           of.tile_factor == 0 && job.host.plan->opts.shape == 0;
}

/* Finds the widest kernels that are not worth an entry in a list. On an H200, in single
 * precision and with one polarisation, an entry takes .5 to 1 ns and another .6 to be
 * sorted, and more if tiles are large, as for wide kernels. A cell to which a warp of
 * its own adds takes 4 to 6 ps for each polarisation, in double precision 15. */
int narrow_of(const gcf_cuda_job &job)
{
    enum { NARROW = 32, OF_NARROW = 16, OF_WIDE = 24 };
    const int cells = job.table.max_support > NARROW ? OF_WIDE : OF_NARROW;
    if (!by_cost(job)) return max(tiling_of(job).narrow, 0);
    return job.is_double ? 0 : cells / job.num_pol / TESS_GCF_STEP * TESS_GCF_STEP;
}

/* Whether a warp grids each point, before lists would be sorted. Tiles are faster as
 * soon as there are any: those of one to three points take half as long as atomic
 * additions. */
bool are_few(const gcf_cuda_job &job)
{
    const double cell_ps = job.is_double ? 15 : 6.5, sorting_ps = 300e6;
    return job.host.report && by_cost(job) &&
           (double)job.host.report->point_cells * job.num_pol * cell_ps < sorting_ps;
}

/* Finds the largest numbers of pieces and of sparse lists that there may be, and how to
 * cut them. */
tess_status plan_cuts(const gcf_cuda_job &job, int64_t *pieces, cutting *how)
{
    tess_status status = TESS_OK;
    const int64_t tiles = (int64_t)job.tiles_u * job.tiles_v;
    int sms = 0;
    TESS_CUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount,
                                     tess_device_number()));
    how->most = (int)max(job.count / (PIECES_AN_SM * sms), (int64_t)LEAST_ENTRIES);
    how->pieces = tiling_of(job).pieces;
    how->radius = tiling_of(job).center_radius;
    how->factor = tiling_of(job).tile_factor;
    *pieces = how->pieces > 0 ? min(tiles * how->pieces, job.count)
                              : job.count / how->most + tiles;
    how->room = *pieces + (how->factor > 0 ? tiles : 0);
    TESS_TRY(tess_device_alloc(how->room * (int64_t)sizeof *how->out, "pieces of tiles",
                               (void **)&how->out));
    TESS_TRY(tess_device_alloc(COUNTERS * sizeof *how->count, "counters",
                               (void **)&how->count));
    TESS_TRY(tess_device_zero(how->count, COUNTERS * sizeof *how->count));
cleanup:
    return status;
}

template <typename R, int POLS> tess_status run_tiles(const gcf_cuda_job &job)
{
    tess_status status = TESS_OK;
    const int64_t tiles = (int64_t)job.tiles_u * job.tiles_v;
    const int64_t blocks = (tiles + CUT_THREADS - 1) / CUT_THREADS;
    unsigned found[COUNTERS] = {};
    int64_t pieces = 0;
    cutting how = {};
    if (job.table.zero_tap > INT32_MAX / 2)
        TESS_FAIL(TESS_ERR_RESOURCE, "'tiled' on a GPU: tables of at most %d taps",
                  INT32_MAX / 2);
    TESS_TRY(plan_cuts(job, &pieces, &how));
    if (how.factor > 0)
        tess_launch(count_kernel, blocks, CUT_THREADS, 0, job, &how.count[LISTS]);
    tess_launch(cut_kernel, blocks, CUT_THREADS, 0, job, how);
    TESS_CUDA_LAUNCHED();
    if (tiling_of(job).divergent)
        launch_divergent<R, POLS>(job, pieces, how);
    else
        launch_shape<R, POLS>(job, shape_of(job), pieces, how);
    TESS_CUDA_LAUNCHED();
    if (how.factor > 0) {
        tess_launch(sparse_kernel<R, POLS>, tiles, CUT_THREADS, 0, job, how);
        TESS_CUDA_LAUNCHED();
        TESS_TRY(tess_device_download(found, how.count, sizeof found));
        job.host.report->points_atomic += found[SPARSE_ENTRIES];
    }
cleanup:
    tess_device_free(how.out);
    tess_device_free(how.count);
    return status;
}

template <typename R, int POLS, int SHAPE> gcf_cuda_order order_of_shape(void)
{
    gcf_cuda_order by = {};
    by.tile_u = shape<R, POLS, SHAPE>::TILE_U;
    by.tile_v = shape<R, POLS, SHAPE>::TILE_V;
    by.meeting = by.by_kernel = true;
    return by;
}

template <typename R, int POLS> gcf_cuda_order order(int number)
{
    return number == 1   ? order_of_shape<R, POLS, 1>()
           : number == 2 ? order_of_shape<R, POLS, 2>()
           : number == 3 ? order_of_shape<R, POLS, 3>()
           : number == 4 ? order_of_shape<R, POLS, 4>()
           : number == 5 ? order_of_shape<R, POLS, 5>()
                         : order_of_shape<R, POLS, 6>();
}

/* A warp grids each point. */
template <typename R, int POLS> tess_status run_warps(const gcf_cuda_job &job)
{
    return gcf_launch_by_warp<R, POLS, gcf_add_native>(job, GCF_WARP_THREADS);
}

/* A warp grids each point that no tile lists. */
tess_status run_narrow(const gcf_cuda_job &job)
{
    gcf_cuda_job narrow = job;
    narrow.place = job.placed;
    narrow.array = gcf_cuda_arrays();
    narrow.count = job.num_placed;
    return GCF_BY_TYPE(narrow, run_warps, narrow);
}

gcf_cuda_order grid_order(const gcf_cuda_job &job)
{
    gcf_cuda_order by = {};
    const int narrow = narrow_of(job);
    if (narrow >= job.table.max_support || are_few(job)) return by; /* as they come */
    by = GCF_BY_TYPE(job, order, shape_of(job));
    by.narrow = narrow;
    return by;
}

tess_status grid(const gcf_cuda_job &job)
{
    tess_status status = TESS_OK;
    const bool by_tile = job.order.tile_u > 0;
    job.host.report->points_atomic = by_tile ? job.num_narrow : job.count;
    if (!by_tile) return GCF_BY_TYPE(job, run_warps, job);
    if (job.count > 0) TESS_TRY(GCF_BY_TYPE(job, run_tiles, job));
    if (job.num_narrow > 0) TESS_TRY(run_narrow(job));
cleanup:
    return status;
}

} // namespace

const gcf_device_method *gcf_device_tiled(bool degrid)
{
    static const gcf_device_method method = {grid_order, NULL, grid};
    return degrid ? gcf_cuda_degrid_tiled() : &method;
}
