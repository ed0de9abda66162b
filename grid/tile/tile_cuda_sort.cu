/* Makes runs of rows and bricks of runs on the device, as brick_sort.c does on the host.
 *
 * Runs (not visibilities) are sorted: rows of neighbouring channels share a sub-tile
 * most of the time. Every channel's key is worked out, which costs less than finding
 * borders. */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <string.h>

#include "tess_cuda.h"
#include "tess_mem.h"
#include "tile_cuda.cuh"

namespace
{

enum { THREADS = 256 };

/* What the kernels that make runs need. */
struct sort_args {
    cuda_geometry geometry;
    cuda_view samples;
    bool is_double, skip_ignored;
    bool by_plane; /* runs end where the first plane changes */
    int64_t num_rows;
    int32_t num_segments; /* pieces of CUDA_RUN_MAX channels of the longest row */
    int plane_bits;       /* of the key below the sub-tile */
    const int32_t *chan_base, *num_chan;
    const int64_t *vis_first;
};

__device__ bool is_ignored(const sort_args &args, int64_t sample)
{
    for (int k = 0; k < args.samples.num_weight; ++k) {
        const int64_t at = sample * args.samples.num_weight + k;
        const bool zero = args.is_double
                              ? ((const double *)args.samples.weight)[at] == 0
                              : ((const float *)args.samples.weight)[at] == 0;
        if (!zero) return false;
    }
    return true;
}

/* First cell of the footprint, in [0, period). Rounded as by keys_isa.c, without fused
 * multiply-adds: a sample goes to the rank that owns its brick, by the keys of the
 * processor. */
__device__ int start_cell(double metres, double scale, double to_lambda,
                          double half_support, double period, double per_period,
                          int cells)
{
    const double coordinate = __dmul_rn(__dmul_rn(metres, scale), to_lambda);
    const double start = ceil(__dsub_rn(coordinate, half_support));
    int cell = (int)(start - period * floor(start * per_period));
    /* start/period may be rounded across an integer */
    cell = cell < 0 ? cell + cells : cell;
    return cell >= cells ? cell - cells : cell;
}

/* Computes (brick, sub-tile) of a sample, and its first plane relative to the brick's
 * block. */
__device__ int64_t sub_tile_of(const cuda_geometry &g, double u, double v, double w,
                               double inv_lambda, int *plane)
{
    const double to_lambda = w < 0 ? -inv_lambda : inv_lambda;
    const int line = start_cell(u, g.scale_u, to_lambda, g.half_support, g.period_u,
                                g.per_period_u, g.nu);
    const int cell = start_cell(v, g.scale_v, to_lambda, g.half_support, g.period_v,
                                g.per_period_v, g.nv);
    int start = 0;
    if (g.do_w) {
        const double above = __dsub_rn(__dmul_rn(w, to_lambda), g.w_first);
        const double d = __dsub_rn(__ddiv_rn(above, g.w_step), g.half_w_support);
        start = (int)fmin(fmax(ceil(d), 0.0), (double)(g.num_planes - g.w_support));
    }
    const int block = start / g.block_planes;
    *plane = start - block * g.block_planes;
    const int64_t brick =
        ((int64_t)block * g.tiles_u + line / TESS_TILE) * g.tiles_v + cell / TESS_TILE;
    return 4 * brick + 2 * (line / CUDA_SUB % 2) + cell / CUDA_SUB % 2;
}

/* A thread cuts up to CUDA_RUN_MAX channels of a row into runs: it counts them first,
 * and writes them afterwards. The expected limit is memory (weights are read twice). */
template <bool write>
__global__ void make_runs_kernel(sort_args args, uint32_t *count, const uint32_t *place,
                                 uint64_t *key_out, cuda_run *run_out)
{
    const int64_t thread = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int64_t row = thread / args.num_segments;
    if (row >= args.num_rows) return;
    const int first = (int)(thread % args.num_segments) * CUDA_RUN_MAX;
    const int rest = args.num_chan[row] - first;
    const int channels = rest < CUDA_RUN_MAX ? rest : CUDA_RUN_MAX;
    const int base = args.chan_base[row] + first;
    const int64_t sample = args.vis_first[row] + first;
    const double u = args.samples.uvw_m[3 * row], v = args.samples.uvw_m[3 * row + 1];
    const double w = args.samples.uvw_m[3 * row + 2];
    uint32_t runs = 0;
    const uint32_t at = write ? place[thread] : 0;
    int64_t current = -1; /* sub-tile of the run being made; −1: none */
    int begin = 0, first_plane = 0, low = 0, high = 0;
    for (int c = 0; c <= channels; ++c) {
        int64_t here = -1;
        int plane = 0;
        if (c < channels && !(args.skip_ignored && is_ignored(args, sample + c)))
            here = sub_tile_of(args.geometry, u, v, w,
                               args.samples.inv_lambda[base + c], &plane);
        if (here == current && !(args.by_plane && plane != first_plane)) {
            low = min(low, plane);
            high = max(high, plane);
            continue;
        }
        if (current >= 0) {
            if (write) {
                key_out[at + runs] = (uint64_t)current << args.plane_bits | first_plane;
                cuda_run run;
                run.bits = (unsigned long long)(sample + begin) |
                           (unsigned long long)(c - begin - 1) << 40 |
                           (unsigned long long)min(low, 255) << 48 |
                           (unsigned long long)min(high, 255) << 56;
                run.row = (int32_t)row;
                run.chan = base + begin;
                run_out[at + runs] = run;
            }
            ++runs;
        }
        current = here;
        begin = c;
        first_plane = low = high = plane;
    }
    if (!write) count[thread] = runs;
}

/* Running totals along the sorted runs, before each run: sub-tiles that have begun, and
 * visibilities. */
struct run_totals {
    int64_t sub_tiles, vis;
};

struct add_runs {
    __host__ __device__ run_totals operator()(run_totals a, run_totals b) const
    {
        return {a.sub_tiles + b.sub_tiles, a.vis + b.vis};
    }
};

struct run_counts {
    const uint64_t *key;
    const cuda_run *run;
    int plane_bits;

    __host__ __device__ run_totals operator()(int64_t k) const
    {
        const bool begins = k == 0 || key[k] >> plane_bits != key[k - 1] >> plane_bits;
        return {begins, run_count(run[k].bits)};
    }
};

/* A sub-tile: its key, and the number of visibilities before it. */
struct sub_tile {
    int64_t key, vis;
};

__global__ void list_sub_tiles_kernel(int64_t num_runs, const uint64_t *key,
                                      int plane_bits, const run_totals *after,
                                      const cuda_run *run, sub_tile *out)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (k >= num_runs) return;
    const int64_t mine = (int64_t)(key[k] >> plane_bits);
    if (k == 0 || (int64_t)(key[k - 1] >> plane_bits) != mine)
        out[after[k].sub_tiles - 1] = {mine, after[k].vis - run_count(run[k].bits)};
    if (k == num_runs - 1) out[after[k].sub_tiles] = {-1, after[k].vis};
}

/* Running totals along the sub-tiles, up to each sub-tile and with it. */
struct sub_totals {
    int64_t groups, chunks, bricks;
};

struct add_subs {
    __host__ __device__ sub_totals operator()(sub_totals a, sub_totals b) const
    {
        return {a.groups + b.groups, a.chunks + b.chunks, a.bricks + b.bricks};
    }
};

struct sub_counts {
    const sub_tile *sub;

    __host__ __device__ sub_totals operator()(int64_t k) const
    {
        const int64_t vis = sub[k + 1].vis - sub[k].vis;
        const int64_t groups = (vis + CUDA_GROUP - 1) / CUDA_GROUP;
        return {groups, (groups + CUDA_CHUNK_GROUPS - 1) / CUDA_CHUNK_GROUPS,
                k == 0 || sub[k].key / 4 != sub[k - 1].key / 4};
    }
};

/* The facts about a brick that a list tells the host. */
struct brick_facts {
    int64_t key, first_vis, first_chunk;
    int32_t low, high; /* first planes, relative to the block */
};

/* A thread works on a sub-tile: it writes the chunks, which are as equal in length as
 * possible, and the facts of the brick if its sub-tile is the first one. */
__global__ void list_chunks_kernel(int64_t num_subs, const sub_tile *sub,
                                   const sub_totals *with, cuda_chunk *chunk,
                                   brick_facts *brick)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (k >= num_subs) return;
    const sub_totals before = k > 0 ? with[k - 1] : sub_totals{0, 0, 0};
    const int64_t groups = with[k].groups - before.groups;
    const int64_t chunks = with[k].chunks - before.chunks;
    for (int64_t c = 0; c < chunks; ++c) {
        const int64_t first = groups * c / chunks, end = groups * (c + 1) / chunks;
        cuda_chunk out;
        out.brick = (int32_t)(with[k].bricks - 1);
        out.sub = (int32_t)(sub[k].key % 4);
        out.first_group = (uint32_t)(before.groups + first);
        out.num_groups = (int32_t)(end - first);
        chunk[before.chunks + c] = out;
    }
    if (with[k].bricks != before.bricks)
        brick[before.bricks] = {sub[k].key / 4, sub[k].vis, before.chunks, 1 << 30, -1};
}

/* A thread works on a run: it writes the groups that begin in the run, and widens the
 * planes of its brick. That takes one atomic for a warp, because runs are in the order
 * of bricks. */
__global__ void list_groups_kernel(int64_t num_runs, const run_totals *after,
                                   const cuda_run *run, const sub_tile *sub,
                                   const sub_totals *with, cuda_group *group,
                                   brick_facts *brick)
{
    const unsigned all = 0xffffffffu;
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const bool here = k < num_runs;
    int low = 1 << 30, high = -1, mine = -1;
    if (here) {
        const unsigned long long bits = run[k].bits;
        const int count = run_count(bits);
        const int64_t s = after[k].sub_tiles - 1;
        const int64_t begin = after[k].vis - count - sub[s].vis;
        const int64_t total = sub[s + 1].vis - sub[s].vis;
        const int64_t first = s > 0 ? with[s - 1].groups : 0;
        int64_t g = (begin + CUDA_GROUP - 1) / CUDA_GROUP;
        for (; g * CUDA_GROUP < begin + count; ++g) {
            const int64_t left = total - g * CUDA_GROUP;
            cuda_group out;
            out.run = (uint32_t)k;
            out.skip = (uint16_t)(g * CUDA_GROUP - begin);
            out.count = (uint16_t)(left < CUDA_GROUP ? left : CUDA_GROUP);
            group[first + g] = out;
        }
        low = (int)(bits >> 48 & 255);
        high = (int)(bits >> 56);
        mine = (int)(with[s].bricks - 1);
    }
    const int last = __shfl_sync(all, mine, 31);
    if (__all_sync(all, mine == last) && last >= 0) {
        low = __reduce_min_sync(all, low);
        high = __reduce_max_sync(all, high);
        if ((threadIdx.x & 31) != 0) mine = -1;
    }
    if (mine >= 0) {
        atomicMin(&brick[mine].low, low);
        atomicMax(&brick[mine].high, high);
    }
}

__global__ void finish_bricks_kernel(cuda_geometry g, int64_t num_bricks,
                                     brick_facts *facts, cuda_brick *brick)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (k >= num_bricks) return;
    int64_t key = facts[k].key;
    cuda_brick out;
    out.tile_v = (int32_t)(key % g.tiles_v);
    key /= g.tiles_v;
    out.tile_u = (int32_t)(key % g.tiles_u);
    const int block = (int)(key / g.tiles_u);
    const int last =
        min(g.block_planes, g.num_planes - g.w_support + 1 - block * g.block_planes) -
        1;
    /* 255 stands for that or more */
    const int low = facts[k].low >= 255 ? 255 : facts[k].low;
    const int high = facts[k].high >= 255 ? last : facts[k].high;
    facts[k].low = out.plane_first = block * g.block_planes + low;
    facts[k].high = out.num_planes = high - low + g.w_support;
    brick[k] = out;
}

unsigned blocks_for(int64_t threads)
{
    return (unsigned)((threads + THREADS - 1) / THREADS);
}

/* Parts of one allocation, each 256-byte aligned. */
struct layout {
    size_t size = 0;

    size_t add(int64_t count, size_t bytes)
    {
        const size_t at = size;
        size = (size + (size_t)count * bytes + 255) / 256 * 256;
        return at;
    }
};

/* Counts the bits that a number takes. */
int bits_of(uint64_t number)
{
    int bits = 0;
    while (number >> bits)
        ++bits;
    return bits;
}

/* Device memory of a sort, which is given back in the order of the stream. */
struct sort_memory {
    void *count, *key[2], *run[2], *sub, *with, *facts, *scratch, *kept;
};

void release(void **pointer, cudaStream_t stream)
{
    if (*pointer) (void)cudaFreeAsync(*pointer, stream);
    *pointer = NULL;
}

template <typename T>
tess_status fetch(const void *from, int64_t index, cudaStream_t stream, T *out)
{
    tess_status status = TESS_OK;
    TESS_CUDA(cudaMemcpyAsync(out, (const T *)from + index, sizeof *out,
                              cudaMemcpyDeviceToHost, stream));
    TESS_CUDA(cudaStreamSynchronize(stream));
cleanup:
    return status;
}

/* Computes running totals `out` of what `counts` says of 0, 1, ... n − 1. */
template <typename Counts, typename Sum, typename Add>
tess_status scan(Counts counts, Add add, int64_t n, Sum *out, void **scratch,
                 cudaStream_t stream)
{
    tess_status status = TESS_OK;
    size_t bytes = 0;
    auto in =
        thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), counts);
    TESS_CUDA(cub::DeviceScan::InclusiveScan(NULL, bytes, in, out, add, n, stream));
    TESS_CUDA(cudaMallocAsync(scratch, bytes, stream));
    TESS_CUDA(cub::DeviceScan::InclusiveScan(*scratch, bytes, in, out, add, n, stream));
cleanup:
    release(scratch, stream);
    return status;
}

/* Makes the unsorted runs of all rows: key[0], run[0]. */
tess_status make_runs(const sort_args &args, sort_memory *memory, int64_t *num_runs,
                      cudaStream_t stream)
{
    tess_status status = TESS_OK;
    const int64_t threads = args.num_rows * args.num_segments;
    uint32_t last_count = 0, last_place = 0, *count = NULL, *place = NULL;
    size_t bytes = 0;
    if (threads >= (int64_t)1 << 38)
        TESS_FAIL(TESS_ERR_RESOURCE, "too many rows for one device: %lld",
                  (long long)args.num_rows);
    TESS_CUDA(
        cudaMallocAsync(&memory->count, 2 * (size_t)threads * sizeof *count, stream));
    count = (uint32_t *)memory->count;
    place = count + threads;
    make_runs_kernel<false>
        <<<blocks_for(threads), THREADS, 0, stream>>>(args, count, NULL, NULL, NULL);
    TESS_CUDA_LAUNCHED();
    TESS_CUDA(
        cub::DeviceScan::ExclusiveSum(NULL, bytes, count, place, threads, stream));
    TESS_CUDA(cudaMallocAsync(&memory->scratch, bytes, stream));
    TESS_CUDA(cub::DeviceScan::ExclusiveSum(memory->scratch, bytes, count, place,
                                            threads, stream));
    TESS_TRY(fetch(count, threads - 1, stream, &last_count));
    TESS_TRY(fetch(place, threads - 1, stream, &last_place));
    *num_runs = (int64_t)last_place + last_count;
    if (*num_runs == 0) goto cleanup;
    for (int k = 0; k < 2; ++k) {
        TESS_CUDA(cudaMallocAsync(&memory->key[k], (size_t)*num_runs * 8, stream));
        TESS_CUDA(cudaMallocAsync(&memory->run[k], (size_t)*num_runs * sizeof(cuda_run),
                                  stream));
    }
    make_runs_kernel<true><<<blocks_for(threads), THREADS, 0, stream>>>(
        args, NULL, place, (uint64_t *)memory->key[0], (cuda_run *)memory->run[0]);
    TESS_CUDA_LAUNCHED();
cleanup:
    release(&memory->scratch, stream);
    release(&memory->count, stream);
    return status;
}

/* Sorts by key, stably. The result ends up in key[0], run[0]. */
tess_status sort_runs(sort_memory *memory, int64_t num_runs, int key_bits,
                      cudaStream_t stream)
{
    tess_status status = TESS_OK;
    size_t bytes = 0;
    cub::DoubleBuffer<uint64_t> keys((uint64_t *)memory->key[0],
                                     (uint64_t *)memory->key[1]);
    cub::DoubleBuffer<cuda_run> runs((cuda_run *)memory->run[0],
                                     (cuda_run *)memory->run[1]);
    TESS_CUDA(cub::DeviceRadixSort::SortPairs(NULL, bytes, keys, runs, num_runs, 0,
                                              key_bits, stream));
    TESS_CUDA(cudaMallocAsync(&memory->scratch, bytes, stream));
    TESS_CUDA(cub::DeviceRadixSort::SortPairs(memory->scratch, bytes, keys, runs,
                                              num_runs, 0, key_bits, stream));
    memory->key[0] = keys.Current();
    memory->key[1] = keys.Alternate();
    memory->run[0] = runs.Current();
    memory->run[1] = runs.Alternate();
cleanup:
    release(&memory->scratch, stream);
    return status;
}

/* Finds where the parts of a list's kept memory begin. */
struct kept_layout {
    size_t group, chunk, brick, size;
};

kept_layout kept_layout_of(const sub_totals &totals)
{
    layout all;
    kept_layout out;
    out.group = all.add(totals.groups, sizeof(cuda_group));
    out.chunk = all.add(totals.chunks, sizeof(cuda_chunk));
    out.brick = all.add(totals.bricks, sizeof(cuda_brick));
    out.size = all.size;
    return out;
}

/* Makes sub-tiles, groups, chunks and bricks of the sorted runs. */
tess_status index_runs(const sort_args &args, sort_memory *memory, int64_t num_runs,
                       sub_totals *totals, kept_layout *kept, int64_t *num_vis,
                       cudaStream_t stream)
{
    tess_status status = TESS_OK;
    const uint64_t *key = (const uint64_t *)memory->key[0];
    const cuda_run *run = (const cuda_run *)memory->run[0];
    run_totals *after = NULL, all_runs;
    sub_tile *sub = NULL;
    sub_totals *with = NULL;
    brick_facts *facts = NULL;
    int64_t subs = 0;
    char *base = NULL;
    /* the spare runs of the sort make room for the totals */
    static_assert(sizeof(run_totals) <= sizeof(cuda_run), "totals in place of runs");
    after = (run_totals *)memory->run[1];
    TESS_TRY(scan(run_counts{key, run, args.plane_bits}, add_runs(), num_runs, after,
                  &memory->scratch, stream));
    TESS_TRY(fetch(after, num_runs - 1, stream, &all_runs));
    subs = all_runs.sub_tiles;
    *num_vis = all_runs.vis;
    TESS_CUDA(cudaMallocAsync(&memory->sub, (size_t)(subs + 1) * sizeof *sub, stream));
    TESS_CUDA(cudaMallocAsync(&memory->with, (size_t)subs * sizeof *with, stream));
    sub = (sub_tile *)memory->sub;
    with = (sub_totals *)memory->with;
    list_sub_tiles_kernel<<<blocks_for(num_runs), THREADS, 0, stream>>>(
        num_runs, key, args.plane_bits, after, run, sub);
    TESS_CUDA_LAUNCHED();
    TESS_TRY(scan(sub_counts{sub}, add_subs(), subs, with, &memory->scratch, stream));
    TESS_TRY(fetch(with, subs - 1, stream, totals));
    *kept = kept_layout_of(*totals);
    TESS_CUDA(cudaMallocAsync(&memory->kept, kept->size, stream));
    TESS_CUDA(cudaMallocAsync(&memory->facts, (size_t)totals->bricks * sizeof *facts,
                              stream));
    base = (char *)memory->kept;
    facts = (brick_facts *)memory->facts;
    list_chunks_kernel<<<blocks_for(subs), THREADS, 0, stream>>>(
        subs, sub, with, (cuda_chunk *)(base + kept->chunk), facts);
    TESS_CUDA_LAUNCHED();
    list_groups_kernel<<<blocks_for(num_runs), THREADS, 0, stream>>>(
        num_runs, after, run, sub, with, (cuda_group *)(base + kept->group), facts);
    TESS_CUDA_LAUNCHED();
    finish_bricks_kernel<<<blocks_for(totals->bricks), THREADS, 0, stream>>>(
        args.geometry, totals->bricks, facts, (cuda_brick *)(base + kept->brick));
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

/* Allocates the host's arrays of a list. */
tess_status describe_bricks(const sort_memory *memory, const sub_totals &totals,
                            cudaStream_t stream, tile_cuda_list *list)
{
    tess_status status = TESS_OK;
    const int64_t n = totals.bricks;
    brick_facts *facts = (brick_facts *)tess_alloc(n, sizeof *facts);
    list->key = (int64_t *)tess_alloc(n, sizeof *list->key);
    list->brick_vis = (int64_t *)tess_alloc(n, sizeof *list->brick_vis);
    list->plane_first = (int32_t *)tess_alloc(n, sizeof *list->plane_first);
    list->num_planes = (int32_t *)tess_alloc(n, sizeof *list->num_planes);
    list->first_chunk = (int64_t *)tess_alloc(n + 1, sizeof *list->first_chunk);
    if (!facts || !list->key || !list->brick_vis || !list->plane_first ||
        !list->num_planes || !list->first_chunk)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for %lld bricks", (long long)n);
    if (n > 0)
        TESS_CUDA(cudaMemcpyAsync(facts, memory->facts, (size_t)n * sizeof *facts,
                                  cudaMemcpyDeviceToHost, stream));
    TESS_CUDA(cudaStreamSynchronize(stream));
    for (int64_t k = 0; k < n; ++k) {
        const int64_t next = k + 1 < n ? facts[k + 1].first_vis : list->num_vis;
        list->key[k] = facts[k].key;
        list->brick_vis[k] = next - facts[k].first_vis;
        list->plane_first[k] = facts[k].low;
        list->num_planes[k] = facts[k].high;
        list->first_chunk[k] = facts[k].first_chunk;
        if (facts[k].high > list->work->most_planes)
            list->work->most_planes = facts[k].high;
    }
    list->first_chunk[n] = totals.chunks;
cleanup:
    tess_free(facts);
    return status;
}

} // namespace

int64_t tess_device_sort_bytes(int64_t num_rows, int64_t num_vis)
{
    /* no run has less than one sample, and a tenth is for the sort's own needs */
    const int64_t segments = num_rows + num_vis / CUDA_RUN_MAX;
    return 8 * segments + 2 * (8 + (int64_t)sizeof(cuda_run)) * num_vis * 11 / 10 +
           (int64_t)(sizeof(cuda_group) + sizeof(sub_tile) + sizeof(sub_totals)) *
               num_vis;
}

tess_status tile_cuda_sort(const tess_grid_plan *plan, const tess_device_samples *samples,
                           bool skip_ignored, struct CUstream_st *stream,
                           tile_cuda_list *list_out)
{
    tess_status status = TESS_OK;
    tile_cuda_list list = {};
    sort_memory memory = {};
    sort_args args = {};
    sub_totals totals = {0, 0, 0};
    kept_layout kept = {};
    const int64_t keys = 4 * (int64_t)plan->num_blocks * plan->tiles_u * plan->tiles_v;
    args.geometry = cuda_geometry_of(plan);
    args.samples = cuda_view_of(samples);
    args.is_double = samples->is_double;
    args.skip_ignored = skip_ignored;
    /* the order of samples is then the same however rows are cut */
    args.by_plane = plan->opts.repeatable;
    args.num_rows = samples->num_rows;
    args.num_segments = (samples->max_chan + CUDA_RUN_MAX - 1) / CUDA_RUN_MAX;
    args.plane_bits = bits_of((uint64_t)plan->block_planes - 1);
    args.chan_base = samples->chan_base;
    args.num_chan = samples->num_chan;
    args.vis_first = samples->vis_first;
    if (samples->num_vis >= (int64_t)1 << 32)
        TESS_FAIL(TESS_ERR_RESOURCE, "more than 2^32 visibilities at once on a device");
    list.work = (tile_cuda_work *)tess_alloc_zero(1, sizeof *list.work);
    if (!list.work) TESS_FAIL(TESS_ERR_ALLOC, "sorted runs");
    if (args.num_rows > 0 && args.num_segments > 0)
        TESS_TRY(make_runs(args, &memory, &list.num_runs, stream));
    if (list.num_runs > 0) {
        TESS_TRY(sort_runs(&memory, list.num_runs,
                           bits_of((uint64_t)keys - 1) + args.plane_bits, stream));
        TESS_TRY(index_runs(args, &memory, list.num_runs, &totals, &kept, &list.num_vis,
                            stream));
    }
    list.num_bricks = totals.bricks;
    TESS_TRY(describe_bricks(&memory, totals, stream, &list));
    list.work->stream = stream;
    list.work->num_runs = list.num_runs;
    list.work->num_groups = totals.groups;
    list.work->num_chunks = totals.chunks;
    list.work->run = (cuda_run *)memory.run[0];
    list.work->memory = memory.kept;
    list.work->group = (cuda_group *)((char *)memory.kept + kept.group);
    list.work->chunk = (cuda_chunk *)((char *)memory.kept + kept.chunk);
    list.work->brick = (cuda_brick *)((char *)memory.kept + kept.brick);
    list.device_bytes = list.num_runs * (int64_t)sizeof(cuda_run) + (int64_t)kept.size;
    memory.run[0] = memory.kept = NULL;
    *list_out = list;
    list = tile_cuda_list{};
cleanup:
    for (int k = 0; k < 2; ++k) {
        release(&memory.key[k], stream);
        release(&memory.run[k], stream);
    }
    release(&memory.sub, stream);
    release(&memory.with, stream);
    release(&memory.facts, stream);
    release(&memory.kept, stream);
    tile_cuda_list_free(&list);
    return status;
}

void tile_cuda_list_free(tile_cuda_list *list)
{
    if (list->work) {
        void *run = list->work->run;
        release(&run, list->work->stream);
        release(&list->work->memory, list->work->stream);
    }
    tess_free(list->work);
    tess_free(list->key);
    tess_free(list->brick_vis);
    tess_free(list->plane_first);
    tess_free(list->num_planes);
    tess_free(list->first_chunk);
    *list = tile_cuda_list{};
}
