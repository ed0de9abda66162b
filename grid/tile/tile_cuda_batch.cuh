/* The parts that the device kernels without fp16 share: four warps place batches of
 * visibilities, and all threads compute taps one by one. */
#ifndef TESS_TILE_CUDA_BATCH_CUH
#define TESS_TILE_CUDA_BATCH_CUH

#include "tile_cuda.cuh"

namespace
{

enum {
    BATCH_GROUPS = 4,
    BATCH = BATCH_GROUPS * CUDA_GROUP, /* visibilities in shared memory at a time */
};

/* The places and values of a batch, in shared memory. */
template <typename R> struct batch_places {
    R fraction[3][BATCH]; /* u, v, w */
    int offset[3][BATCH];
    typename cuda_complex<R>::type value[BATCH];
};

template <typename R>
__device__ void copy_taps(const cuda_taps<R> &taps, int support, R *coefficient)
{
    for (int k = threadIdx.x; k < (taps.degree + 1) * support; k += blockDim.x)
        coefficient[k] = taps.coefficient[k / support][k % support];
}

template <typename R>
__device__ R tap_at(const R *coefficient, int degree, int support, int tap, R fraction)
{
    const R y = 2 * fraction - 1;
    R value = coefficient[degree * support + tap];
    for (int d = degree - 1; d >= 0; --d)
        value = value * y + coefficient[d * support + tap];
    return value;
}

/* Computes the taps of one axis for a batch, dense: out[b][cell], 0 outside the
 * footprint. */
template <typename R>
__device__ void dense_taps(const R *coefficient, int degree, int support,
                           const R *fraction, const int *offset, int count, int cells,
                           R *out)
{
    for (int k = threadIdx.x; k < count * cells; k += blockDim.x) {
        const int b = k / cells, tap = k % cells - offset[b];
        out[k] = tap >= 0 && tap < support
                     ? tap_at(coefficient, degree, support, tap, fraction[b])
                     : R(0);
    }
}

/* Warps 0 … BATCH_GROUPS − 1 place a group each. Slots that are not used get the value
 * 0. Returns the slot of this thread. */
template <typename R>
__device__ cuda_slot place_batch(const cuda_args &args, const cuda_chunk &chunk,
                                 const cuda_brick &brick, int group, cuda_place *place,
                                 batch_places<R> *out)
{
    const int warp = threadIdx.x / 32;
    cuda_slot slot = {};
    if (warp >= BATCH_GROUPS || group + warp >= chunk.num_groups) return slot;
    slot = slot_of_lane(args, (int64_t)chunk.first_group + group + warp);
    *place = cuda_place{};
    if (slot.used) *place = place_of(args, brick, chunk.sub, slot.row, slot.chan);
    const int b = threadIdx.x;
    out->offset[0][b] = place->u;
    out->offset[1][b] = place->v;
    out->offset[2][b] = place->plane;
    out->fraction[0][b] = (R)place->fraction_u;
    out->fraction[1][b] = (R)place->fraction_v;
    out->fraction[2][b] = (R)place->fraction_w;
    return slot;
}

/* Counts the slots of a chunk's batch that begins at `group`. */
__device__ int batch_count(const cuda_chunk &chunk, int group)
{
    const int groups = min(BATCH_GROUPS, chunk.num_groups - group);
    return groups * CUDA_GROUP;
}

template <typename R> cuda_taps<R> taps_of(const tess_kernel *kernel)
{
    cuda_taps<R> taps;
    taps.degree = kernel->degree;
    for (int d = 0; d <= TESS_MAX_DEGREE; ++d)
        for (int j = 0; j < TESS_MAX_SUPPORT; ++j)
            taps.coefficient[d][j] = (R)kernel->coefficient[d][j];
    return taps;
}

} // namespace

#endif
