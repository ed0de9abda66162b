/* Grids so that sums are added in one order, whichever block is the first to be done.
 *
 * A brick's chunks, in their order, are cut into *parts* of equally many. Every part
 * has sums of its own: the first one the brick's, the others in memory beside. A launch
 * takes the next chunk of each part, so that no two of its blocks add to the same cell;
 * launches of a stream follow one another. In the end the parts are added to the brick
 * in order. Parts and chunks depend on nothing but the brick's visibilities. */
#include <stdlib.h>

#include "tess_cuda.h"
#include "tess_mem.h"
#include "tile_cuda.cuh"

namespace
{

enum {
    THREADS = 256,
    PART_CHUNKS = 16, /* of a part, as long as a brick has no more parts than */
    MOST_PARTS = 64
};

/* Memory for the sums of further parts, at most, unless one brick takes more. */
const int64_t EXTRA_BYTES = (int64_t)512 << 20;

struct brick_part {
    int64_t first_chunk, num_chunks; /* of the list */
    int64_t offset;                  /* of a further part's sums */
    int32_t brick;                   /* of the list */
};

/* A brick's further parts: their sums lie one after the other. */
struct brick_rest {
    int64_t offset, num_values;
    int32_t brick, num_parts;
};

/* Parts that are gridded side by side. */
struct part_list {
    brick_part *part;
    int64_t count, capacity;
};

/* The state of the functions below. */
struct ordered_grid {
    const tess_grid_plan *plan;
    const tile_cuda_list *list;
    int64_t first, end; /* bricks */
    int num_pol;        /* to be gridded */
    int64_t sums_pol;   /* there are in the sums */
    cuda_args args;
    cudaStream_t stream;
};

int64_t chunks_of_brick(const tile_cuda_list *list, int64_t brick)
{
    return list->first_chunk[brick + 1] - list->first_chunk[brick];
}

int64_t chunks_of_part(int64_t chunks)
{
    const int64_t least = (chunks + MOST_PARTS - 1) / MOST_PARTS;
    return least > PART_CHUNKS ? least : (int64_t)PART_CHUNKS;
}

int64_t values_of_brick(const ordered_grid &grid, int64_t brick)
{
    return grid.sums_pol * grid.list->num_planes[brick] * grid.args.lines *
           grid.args.stride;
}

/* Puts the longest parts first, so that those that have a chunk left are the first of
 * all. */
int by_length(const void *a, const void *b)
{
    const brick_part *x = (const brick_part *)a, *y = (const brick_part *)b;
    if (x->num_chunks != y->num_chunks) return x->num_chunks > y->num_chunks ? -1 : 1;
    return (x->first_chunk > y->first_chunk) - (x->first_chunk < y->first_chunk);
}

tess_status add_part(part_list *parts, const brick_part &part)
{
    tess_status status = TESS_OK;
    if (tess_grow((void **)&parts->part, &parts->capacity, parts->count + 1,
                  sizeof *parts->part))
        TESS_FAIL(TESS_ERR_ALLOC, "parts of bricks");
    parts->part[parts->count++] = part;
cleanup:
    return status;
}

/* The host's array may be changed when this returns. A device that shares the page tables
 * of the host reads pageable memory where it lies, and not before its turn comes. */
template <typename T>
tess_status copy_to_device(const T *host, int64_t count, cudaStream_t stream, T **out)
{
    tess_status status = TESS_OK;
    const size_t bytes = (size_t)count * sizeof *host;
    TESS_CUDA(cudaMallocAsync(out, bytes, stream));
    TESS_CUDA(cudaMemcpyAsync(*out, host, bytes, cudaMemcpyHostToDevice, stream));
    TESS_CUDA(cudaStreamSynchronize(stream));
cleanup:
    return status;
}

void release(void *memory, cudaStream_t stream)
{
    if (memory) (void)cudaFreeAsync(memory, stream);
}

/* A thread works on a part: it makes the part a brick, and says where its sums are. */
__global__ void place_parts_kernel(cuda_args args, const brick_part *part,
                                   int64_t count, bool further, cuda_brick *brick,
                                   tess_brick_sum *sum)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (k >= count) return;
    brick[k] = args.brick[part[k].brick];
    sum[k] = args.sum[part[k].brick - args.first_brick];
    if (further) sum[k].offset = part[k].offset;
}

/* A thread works on a part: it takes the part's chunk of this round. */
__global__ void pick_chunks_kernel(const cuda_chunk *from, const brick_part *part,
                                   int64_t count, int64_t round, cuda_chunk *out)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (k >= count) return;
    cuda_chunk chunk = from[part[k].first_chunk + round];
    chunk.brick = (int32_t)k;
    out[k] = chunk;
}

/* A block adds a brick, and each of its threads adds every THREADS-th value. The limit
 * is memory. */
template <typename R>
__global__ void add_rest_kernel(cuda_args args, const brick_rest *rest,
                                const void *extra)
{
    typedef typename cuda_complex<R>::type complex;
    const brick_rest mine = rest[blockIdx.x];
    complex *to = (complex *)args.data + args.sum[mine.brick - args.first_brick].offset;
    const complex *from = (const complex *)extra + mine.offset;
    for (int64_t k = threadIdx.x; k < mine.num_values; k += THREADS) {
        complex sum = to[k];
        for (int p = 0; p < mine.num_parts; ++p) {
            const complex value = from[p * mine.num_values + k];
            sum.x += value.x;
            sum.y += value.y;
        }
        to[k] = sum;
    }
}

unsigned blocks_for(int64_t threads)
{
    return (unsigned)((threads + THREADS - 1) / THREADS);
}

/* Grids the parts, round by round, to sums in `data`. */
tess_status grid_parts(const ordered_grid &grid, part_list *parts, bool further,
                       void *data)
{
    tess_status status = TESS_OK;
    const cuda_chunk *all = grid.list->work->chunk;
    int64_t left = parts->count;
    brick_part *part = NULL;
    cuda_brick *brick = NULL;
    tess_brick_sum *sum = NULL;
    cuda_chunk *chunk = NULL;
    cuda_args args = grid.args;
    if (left == 0) return TESS_OK;
    qsort(parts->part, (size_t)left, sizeof *parts->part, by_length);
    TESS_TRY(copy_to_device(parts->part, left, grid.stream, &part));
    TESS_CUDA(cudaMallocAsync(&brick, (size_t)left * sizeof *brick, grid.stream));
    TESS_CUDA(cudaMallocAsync(&sum, (size_t)left * sizeof *sum, grid.stream));
    TESS_CUDA(cudaMallocAsync(&chunk, (size_t)left * sizeof *chunk, grid.stream));
    place_parts_kernel<<<blocks_for(left), THREADS, 0, grid.stream>>>(
        grid.args, part, left, further, brick, sum);
    TESS_CUDA_LAUNCHED();
    args.chunk = chunk;
    args.brick = brick;
    args.sum = sum;
    args.first_brick = 0;
    args.data = data;
    for (int64_t round = 0; round < parts->part[0].num_chunks; ++round) {
        while (parts->part[left - 1].num_chunks <= round)
            --left;
        pick_chunks_kernel<<<blocks_for(left), THREADS, 0, grid.stream>>>(
            all, part, left, round, chunk);
        TESS_CUDA_LAUNCHED();
        TESS_CUDA(launch_grid_chunks(grid.plan, grid.list, grid.num_pol, left, args,
                                     grid.stream));
    }
cleanup:
    release(part, grid.stream);
    release(brick, grid.stream);
    release(sum, grid.stream);
    release(chunk, grid.stream);
    return status;
}

/* Lists the first parts of all bricks. */
tess_status grid_first_parts(const ordered_grid &grid)
{
    tess_status status = TESS_OK;
    part_list parts = {};
    for (int64_t b = grid.first; b < grid.end; ++b) {
        const int64_t chunks = chunks_of_brick(grid.list, b);
        const int64_t each = chunks_of_part(chunks);
        TESS_TRY(add_part(&parts, {grid.list->first_chunk[b],
                                   chunks < each ? chunks : each, 0, (int32_t)b}));
    }
    TESS_TRY(grid_parts(grid, &parts, false, grid.args.data));
cleanup:
    tess_free(parts.part);
    return status;
}

/* Lists the further parts of bricks from `*brick` on, as many as there is memory for.
 */
tess_status list_further_parts(const ordered_grid &grid, int64_t *brick,
                               part_list *parts, brick_rest *rest, int64_t *num_rests,
                               int64_t *num_values)
{
    tess_status status = TESS_OK;
    const int64_t most = EXTRA_BYTES / (grid.plan->is_double ? 16 : 8);
    parts->count = *num_rests = *num_values = 0;
    for (; *brick < grid.end; ++*brick) {
        const int64_t chunks = chunks_of_brick(grid.list, *brick);
        const int64_t each = chunks_of_part(chunks);
        const int64_t further = (chunks - 1) / each,
                      values = values_of_brick(grid, *brick);
        if (further == 0) continue;
        if (*num_values > 0 && *num_values + further * values > most) break;
        rest[(*num_rests)++] = {*num_values, values, (int32_t)*brick, (int32_t)further};
        for (int64_t p = 1; p <= further; ++p) {
            const int64_t left = chunks - p * each;
            TESS_TRY(add_part(parts, {grid.list->first_chunk[*brick] + p * each,
                                      left < each ? left : each, *num_values,
                                      (int32_t)*brick}));
            *num_values += values;
        }
    }
cleanup:
    return status;
}

/* Grids these further parts, and adds them to their bricks. */
tess_status grid_further_parts(const ordered_grid &grid, part_list *parts,
                               const brick_rest *rest, int64_t num_rests,
                               int64_t num_values)
{
    tess_status status = TESS_OK;
    const size_t bytes = (size_t)num_values * (grid.plan->is_double ? 16 : 8);
    void *extra = NULL;
    brick_rest *on_device = NULL;
    TESS_CUDA(cudaMallocAsync(&extra, bytes, grid.stream));
    TESS_CUDA(cudaMemsetAsync(extra, 0, bytes, grid.stream));
    TESS_TRY(copy_to_device(rest, num_rests, grid.stream, &on_device));
    TESS_TRY(grid_parts(grid, parts, true, extra));
    if (grid.plan->is_double)
        add_rest_kernel<double><<<(unsigned)num_rests, THREADS, 0, grid.stream>>>(
            grid.args, on_device, extra);
    else
        add_rest_kernel<float><<<(unsigned)num_rests, THREADS, 0, grid.stream>>>(
            grid.args, on_device, extra);
    TESS_CUDA_LAUNCHED();
cleanup:
    release(extra, grid.stream);
    release(on_device, grid.stream);
    return status;
}

} // namespace

tess_status tile_cuda_grid_in_order(const tess_grid_plan *plan,
                                    const tile_cuda_list *list, int64_t first,
                                    int64_t end, int num_pol, const cuda_args &args,
                                    cudaStream_t stream)
{
    tess_status status = TESS_OK;
    const ordered_grid grid = {plan,    list,         first, end,
                               num_pol, args.num_pol, args,  stream};
    part_list parts = {};
    int64_t num_rests, num_values;
    brick_rest *rest = (brick_rest *)tess_alloc(end - first, sizeof *rest);
    if (!rest) TESS_FAIL(TESS_ERR_ALLOC, "parts of bricks");
    TESS_TRY(grid_first_parts(grid));
    for (int64_t brick = first; brick < end;) {
        TESS_TRY(
            list_further_parts(grid, &brick, &parts, rest, &num_rests, &num_values));
        if (parts.count > 0)
            TESS_TRY(grid_further_parts(grid, &parts, rest, num_rests, num_values));
    }
cleanup:
    tess_free(parts.part);
    tess_free(rest);
    return status;
}
