/* Sorts points by tile and kernel, as a strategy wants them. */
#include "gcf_cuda.cuh"

#include "tess_log.h"

namespace
{

enum { THREADS = 256, LAST_LANE = 31 };

unsigned blocks_for(int64_t threads)
{
    return (unsigned)((threads + THREADS - 1) / THREADS);
}

struct sort_args {
    int64_t count;
    const gcf_cuda_place *from;
    gcf_cuda_place *to;
    uint64_t *key;
    uint32_t *index;
    gcf_cuda_order order;
    int tiles_v, half_offsets, kernel_bits, bits; /* of all keys */
    const gcf_cuda_plane *plane;
    unsigned long long *entries; /* of lists of points that meet tiles; and points that
                                    are too narrow for them */
};

__device__ uint64_t key_of(const sort_args &args, const gcf_cuda_place &at, int tile_u,
                           int tile_v)
{
    const uint32_t mask = (1u << GCF_OFFSET_BITS) - 1;
    const uint64_t ou = at.kernel >> GCF_PLANE_BITS & mask;
    const uint64_t ov = at.kernel >> (GCF_PLANE_BITS + GCF_OFFSET_BITS) & mask;
    const uint64_t tile = (uint64_t)tile_u * args.tiles_v + tile_v;
    if (!args.order.by_kernel) return tile;
    if (args.order.by_layer) return tile << args.kernel_bits | gcf_plane_of(at.kernel);
    const uint64_t flips =
        (at.kernel & GCF_FLIP_U ? 2 : 0) | (at.kernel & GCF_FLIP_V ? 1 : 0);
    return tile << args.kernel_bits |
           (((gcf_plane_of(at.kernel) * args.half_offsets + ou) * args.half_offsets +
             ov) << 2 |
            flips);
}

/* A thread works on a point. Points that lie outside come last. */
__global__ void key_kernel(sort_args args)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (k >= args.count) return;
    const gcf_cuda_place at = args.from[k];
    const gcf_cuda_order by = args.order;
    const bool tiled = by.tile_u > 0;
    args.key[k] = at.kernel == GCF_OUTSIDE
                      ? (uint64_t)1 << args.bits
                      : key_of(args, at, tiled ? at.u / by.tile_u : 0,
                               tiled ? at.v / by.tile_v : 0);
    args.index[k] = (uint32_t)k;
}

/* A thread works on a point: it makes an entry for each tile that the footprint meets.
 * Entries are first counted, and then written. A warp takes one atomic operation. */
template <bool write> __global__ void meeting_kernel(sort_args args)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int lane = (int)threadIdx.x % (LAST_LANE + 1);
    gcf_cuda_place at = {0, 0, GCF_OUTSIDE, 0};
    if (k < args.count) at = args.from[k];
    int first_u = 0, first_v = 0, many_u = 0, many_v = 0;
    const int last =
        at.kernel == GCF_OUTSIDE ? 0 : args.plane[gcf_plane_of(at.kernel)].support - 1;
    const bool is_narrow = last > 0 && last < args.order.narrow;
    const unsigned narrow = __ballot_sync(0xffffffffu, is_narrow);
    if (!write && lane == 0 && narrow)
        atomicAdd(args.entries + 1, (unsigned long long)__popc(narrow));
    if (last > 0 && !is_narrow) {
        first_u = at.u / args.order.tile_u;
        first_v = at.v / args.order.tile_v;
        many_u = (at.u + last) / args.order.tile_u - first_u + 1;
        many_v = (at.v + last) / args.order.tile_v - first_v + 1;
    }
    unsigned long long mine = (unsigned long long)many_u * many_v, sum = mine,
                       place = 0;
    for (int by = 1; by <= LAST_LANE; by *= 2) {
        const unsigned long long before = __shfl_up_sync(0xffffffffu, sum, by);
        if (lane >= by) sum += before;
    }
    if (lane == LAST_LANE && sum > 0) place = atomicAdd(args.entries, sum);
    place = __shfl_sync(0xffffffffu, place, LAST_LANE) + sum - mine;
    for (int n = 0; write && n < (int)mine; ++n) {
        args.key[place + n] =
            key_of(args, at, first_u + n / many_v, first_v + n % many_v);
        args.index[place + n] = (uint32_t)k;
    }
}

__global__ void permute_kernel(sort_args args)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (k < args.count) args.to[k] = args.from[args.index[k]];
}

/* Computes first[t], the number of points of tiles before t, by bisection. */
__global__ void bookmark_kernel(int64_t count, const uint64_t *key, int shift,
                                int64_t tiles, uint32_t *first)
{
    const int64_t t = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (t > tiles) return;
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if ((int64_t)(key[middle] >> shift) < t)
            low = middle + 1;
        else
            high = middle;
    }
    first[t] = (uint32_t)low;
}

int bits_of(uint64_t values)
{
    int bits = 0;
    while ((uint64_t)1 << bits < values)
        ++bits;
    return bits;
}

tess_status make_room(int64_t count, gcf_cuda_sorted *c)
{
    tess_status status = TESS_OK;
    TESS_TRY(gcf_take(count, "places of points", &c->place));
    for (int k = 0; k < 2; ++k) {
        TESS_TRY(gcf_take(count, "keys of points", &c->key[k]));
        TESS_TRY(gcf_take(count, "order of points", &c->index[k]));
    }
cleanup:
    return status;
}

/* Makes the keys of the entries of tiles. Returns how many there are, and how many
 * points are left out of all lists. */
tess_status list_meetings(sort_args *args, int64_t *entries, int64_t *narrow,
                          gcf_cuda_sorted *c)
{
    tess_status status = TESS_OK;
    unsigned long long counted[2] = {0, 0}, found;
    TESS_TRY(gcf_take(2, "counters", &c->entries));
    TESS_TRY(tess_device_zero(c->entries, sizeof counted));
    args->entries = c->entries;
    tess_launch(meeting_kernel<false>, blocks_for(args->count), THREADS, 0, *args);
    TESS_CUDA_LAUNCHED();
    TESS_TRY(tess_device_download(counted, args->entries, sizeof counted));
    found = counted[0];
    *narrow = (int64_t)counted[1];
    *entries = (int64_t)found;
    if (found == 0) goto cleanup;
    if (found > INT32_MAX)
        TESS_FAIL(TESS_ERR_RESOURCE,
                  "%llu entries in lists of a grid's tiles: at most %d", found,
                  INT32_MAX);
    TESS_TRY(make_room((int64_t)found, c));
    args->key = c->key[0];
    args->index = c->index[0];
    TESS_TRY(tess_device_zero(args->entries, sizeof *args->entries));
    tess_launch(meeting_kernel<true>, blocks_for(args->count), THREADS, 0, *args);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

} // namespace

tess_status gcf_cuda_sort(int64_t all, gcf_cuda_job *job, gcf_cuda_sorted *c)
{
    tess_status status = TESS_OK;
    const gcf_cuda_order order = job->order;
    int64_t tiles = 0, entries = all;
    sort_args args = {};
    job->place = job->placed;
    job->tiles_u = order.tile_u > 0 ? (job->nu + order.tile_u - 1) / order.tile_u : 0;
    job->tiles_v = order.tile_u > 0 ? (job->nv + order.tile_v - 1) / order.tile_v : 0;
    tiles = (int64_t)job->tiles_u * job->tiles_v;
    if (tiles == 0 && !order.by_kernel && all == job->count) return TESS_OK;
    args.count = all;
    args.from = job->placed;
    args.order = order;
    args.tiles_v = job->tiles_v;
    args.half_offsets = job->table.half_offsets;
    args.plane = job->table.plane;
    if (order.by_kernel && order.by_layer)
        args.kernel_bits = bits_of((uint64_t)job->table.num_planes);
    else if (order.by_kernel)
        args.kernel_bits =
            2 + bits_of((uint64_t)job->table.num_planes * job->table.half_offsets *
                        (uint64_t)job->table.half_offsets);
    args.bits = args.kernel_bits + (tiles > 0 ? bits_of((uint64_t)tiles) : 0);
    if (order.meeting) {
        TESS_TRY(list_meetings(&args, &entries, &job->num_narrow, c));
        job->count = entries;
        if (entries == 0) goto cleanup;
    } else {
        TESS_TRY(make_room(all, c));
        args.key = c->key[0];
        args.index = c->index[0];
        tess_launch(key_kernel, blocks_for(all), THREADS, 0, args);
        TESS_CUDA_LAUNCHED();
    }
    TESS_TRY(gcf_cuda_sort_pairs(c->key, c->index, entries, args.bits + 1));
    args.count = entries;
    args.to = c->place;
    args.index = c->index[1];
    tess_launch(permute_kernel, blocks_for(entries), THREADS, 0, args);
    TESS_CUDA_LAUNCHED();
    job->place = c->place;
    if (tiles > 0) {
        TESS_TRY(gcf_take(tiles + 1, "bookmarks of tiles", &c->first));
        tess_launch(bookmark_kernel, blocks_for(tiles + 1), THREADS, 0, job->count,
                   (const uint64_t *)c->key[1], args.kernel_bits, tiles, c->first);
        TESS_CUDA_LAUNCHED();
        job->first = c->first;
    }
cleanup:
    return status;
}

void gcf_cuda_sorted_free(gcf_cuda_sorted *c)
{
    void *memory[] = {c->place,    c->key[0], c->key[1], c->index[0],
                      c->index[1], c->first,  c->entries};
    for (size_t k = 0; k < sizeof memory / sizeof *memory; ++k)
        tess_device_free(memory[k]);
}
