/* Grids and degrids with every support and both precisions. These kernels are the
 * reference for those on tensor cores, and double precision and supports above 9 use
 * them. */
#include "tile_cuda_batch.cuh"

namespace
{

enum {
    GRID_PLANES = 16,  /* planes in a thread's registers */
    DEGRID_PLANES = 8, /* planes of the tile in shared memory */
    DEGRID_THREADS = 256,
    MAX_SIDE = CUDA_SUB + TESS_MAX_SUPPORT - 1
};

template <typename R> struct grid_shared {
    batch_places<R> place;
    R coefficient[(TESS_MAX_DEGREE + 1) * TESS_MAX_SUPPORT];
    alignas(16) R tap_w[BATCH * GRID_PLANES];
};

/* A block grids a chunk. Each thread owns a cell (u, v) of the sub-tile's footprint and
 * keeps its planes in registers. Taps are dense in shared memory, and warps whose cells
 * a visibility does not touch skip it. The only atomics add the sums to the target at
 * the end. The expected limit are FMAs: 2 for each cell and plane, of which two thirds
 * are wasted. */
template <typename R>
__global__ void __launch_bounds__((MAX_SIDE * MAX_SIDE + 31) / 32 * 32)
    grid_any_kernel(const __grid_constant__ cuda_args args,
                    const __grid_constant__ cuda_taps<R> taps)
{
    typedef typename cuda_complex<R>::type complex;
    extern __shared__ __align__(16) unsigned char memory[];
    grid_shared<R> &shared = *(grid_shared<R> *)memory;
    const int support = args.geometry.support, w_support = args.geometry.w_support;
    const int side = CUDA_SUB + support - 1;
    complex *tap_v = (complex *)(memory + sizeof shared); /* multiplied by the value */
    R *tap_u = (R *)(tap_v + BATCH * side);
    const cuda_chunk chunk = args.chunk[blockIdx.x];
    const cuda_brick brick = args.brick[chunk.brick];
    const cuda_target target = target_of(args, chunk, brick);
    const int pol = blockIdx.y;
    const bool mine = (int)threadIdx.x < side * side;
    const int u = mine ? threadIdx.x / side : 0, v = mine ? threadIdx.x % side : 0;
    copy_taps(taps, support, shared.coefficient);
    for (int first = 0; first < brick.num_planes; first += GRID_PLANES) {
        complex sum[GRID_PLANES];
        for (int p = 0; p < GRID_PLANES; ++p)
            sum[p].x = sum[p].y = 0;
        for (int group = 0; group < chunk.num_groups; group += BATCH_GROUPS) {
            const int count = batch_count(chunk, group);
            cuda_place place;
            __syncthreads();
            const cuda_slot slot =
                place_batch<R>(args, chunk, brick, group, &place, &shared.place);
            if ((int)threadIdx.x < count) {
                shared.place.offset[2][threadIdx.x] -= first;
                complex value = {0, 0};
                if (slot.used) value = value_of<R>(args, place, slot.sample, pol);
                shared.place.value[threadIdx.x] = value;
            }
            __syncthreads();
            dense_taps(shared.coefficient, taps.degree, support,
                       shared.place.fraction[0], shared.place.offset[0], count, side,
                       tap_u);
            for (int k = threadIdx.x; k < count * side; k += blockDim.x) {
                const int b = k / side, tap = k % side - shared.place.offset[1][b];
                const complex value = shared.place.value[b];
                R t = 0;
                if (tap >= 0 && tap < support)
                    t = tap_at(shared.coefficient, taps.degree, support, tap,
                               shared.place.fraction[1][b]);
                tap_v[k].x = t * value.x;
                tap_v[k].y = t * value.y;
            }
            if (w_support > 1)
                dense_taps(shared.coefficient, taps.degree, w_support,
                           shared.place.fraction[2], shared.place.offset[2], count,
                           (int)GRID_PLANES, shared.tap_w);
            else
                for (int k = threadIdx.x; k < count * GRID_PLANES; k += blockDim.x)
                    shared.tap_w[k] = k % GRID_PLANES == 0;
            __syncthreads();
            for (int b = 0; b < count; ++b) {
                const R a = tap_u[b * side + u];
                const complex c = tap_v[b * side + v];
                const R x = a * c.x, y = a * c.y;
                if (!__any_sync(0xffffffffu, x != 0 || y != 0)) continue;
                #pragma unroll
                for (int p = 0; p < GRID_PLANES; ++p) {
                    const R w = shared.tap_w[b * GRID_PLANES + p];
                    sum[p].x += w * x;
                    sum[p].y += w * y;
                }
            }
        }
        if (mine) {
            complex *out = (complex *)args.data + target.origin +
                           pol * target.pol_stride + target_index(target, u, v);
            #pragma unroll
            for (int p = 0; p < GRID_PLANES; ++p)
                if (first + p < brick.num_planes)
                    add_complex(out + (first + p) * target.plane_stride, sum[p]);
        }
    }
}

template <typename R> struct degrid_shared {
    batch_places<R> place;
    R coefficient[(TESS_MAX_DEGREE + 1) * TESS_MAX_SUPPORT];
    R tap_u[BATCH * TESS_MAX_SUPPORT], tap_v[BATCH * TESS_MAX_SUPPORT];
    R tap_w[BATCH * DEGRID_PLANES];
};

/* A block degrids a chunk, some planes at a time. The values of the sub-tile are in
 * shared memory, a warp works on a visibility, and its lanes work on the cells of the
 * footprint. If the planes of a visibility lie in several passes, the one thread that
 * owns it adds up the parts in global memory. The expected limit is reading shared
 * memory. */
template <typename R>
__global__ void __launch_bounds__(DEGRID_THREADS)
    degrid_any_kernel(const __grid_constant__ cuda_args args,
                      const __grid_constant__ cuda_taps<R> taps)
{
    typedef typename cuda_complex<R>::type complex;
    extern __shared__ __align__(16) unsigned char memory[];
    degrid_shared<R> &shared = *(degrid_shared<R> *)memory;
    complex *tile = (complex *)(memory + sizeof shared);
    const int support = args.geometry.support, w_support = args.geometry.w_support;
    const int side = CUDA_SUB + support - 1, cells = support * support;
    const cuda_chunk chunk = args.chunk[blockIdx.x];
    const cuda_brick brick = args.brick[chunk.brick];
    const cuda_target target = target_of(args, chunk, brick);
    const int pol = blockIdx.y, lane = threadIdx.x & 31;
    copy_taps(taps, support, shared.coefficient);
    for (int first = 0; first < brick.num_planes; first += DEGRID_PLANES) {
        const int planes = min((int)DEGRID_PLANES, brick.num_planes - first);
        __syncthreads();
        for (int k = threadIdx.x; k < planes * side * side; k += DEGRID_THREADS) {
            const int p = k / (side * side), u = k / side % side, v = k % side;
            tile[k] =
                ((const complex *)args.data)[target.origin + pol * target.pol_stride +
                                             (first + p) * target.plane_stride +
                                             target_index(target, u, v)];
        }
        for (int group = 0; group < chunk.num_groups; group += BATCH_GROUPS) {
            const int count = batch_count(chunk, group);
            cuda_place place;
            __syncthreads();
            const cuda_slot slot =
                place_batch<R>(args, chunk, brick, group, &place, &shared.place);
            __syncthreads();
            for (int k = threadIdx.x; k < count * support; k += DEGRID_THREADS) {
                const int b = k / support, tap = k % support;
                shared.tap_u[k] = tap_at(shared.coefficient, taps.degree, support, tap,
                                         shared.place.fraction[0][b]);
                shared.tap_v[k] = tap_at(shared.coefficient, taps.degree, support, tap,
                                         shared.place.fraction[1][b]);
            }
            for (int k = threadIdx.x; k < count * DEGRID_PLANES; k += DEGRID_THREADS) {
                const int b = k / DEGRID_PLANES, p = k % DEGRID_PLANES;
                const int tap = first + p - shared.place.offset[2][b];
                R value = 0;
                if (tap >= 0 && tap < w_support)
                    value = w_support == 1
                                ? R(1)
                                : tap_at(shared.coefficient, taps.degree, support, tap,
                                         shared.place.fraction[2][b]);
                shared.tap_w[k] = value;
            }
            __syncthreads();
            for (int b = threadIdx.x / 32; b < count; b += DEGRID_THREADS / 32) {
                const int start = shared.place.offset[2][b] - first;
                const int low = max(start, 0), high = min(start + w_support, planes);
                const complex *corner =
                    tile + shared.place.offset[0][b] * side + shared.place.offset[1][b];
                R re = 0, im = 0;
                for (int k = lane; k < cells; k += 32) {
                    const int i = k / support, j = k % support;
                    const complex *cell = corner + i * side + j;
                    R x = 0, y = 0;
                    for (int p = low; p < high; ++p) {
                        const complex value = cell[p * side * side];
                        const R w = shared.tap_w[b * DEGRID_PLANES + p];
                        x += w * value.x;
                        y += w * value.y;
                    }
                    const R w =
                        shared.tap_u[b * support + i] * shared.tap_v[b * support + j];
                    re += w * x;
                    im += w * y;
                }
                for (int step = 16; step > 0; step /= 2) {
                    re += __shfl_xor_sync(0xffffffffu, re, step);
                    im += __shfl_xor_sync(0xffffffffu, im, step);
                }
                if (lane == 0) {
                    complex sum;
                    sum.x = re;
                    sum.y = im;
                    shared.place.value[b] = sum;
                }
            }
            __syncthreads();
            if (slot.used) {
                R sine, cosine;
                sincos_turns((R)place.turns, &sine, &cosine);
                complex vis = vis_of<R>(shared.place.value[threadIdx.x], sine, cosine,
                                        place.conjugate);
                complex *out = (complex *)args.samples.vis +
                               slot.sample * args.samples.num_pol + pol;
                if (first > 0) {
                    vis.x += out->x;
                    vis.y += out->y;
                }
                *out = vis;
            }
        }
    }
}

template <typename R>
cudaError_t launch_grid(const tess_kernel *kernel, int num_pol, int64_t num_chunks,
                        const cuda_args &args, cudaStream_t stream)
{
    const int side = CUDA_SUB + kernel->support - 1;
    const int threads = (side * side + 31) / 32 * 32;
    const size_t bytes = sizeof(grid_shared<R>) + (size_t)3 * BATCH * side * sizeof(R);
    const cudaError_t error = cudaFuncSetAttribute(
        grid_any_kernel<R>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error != cudaSuccess) return error;
    grid_any_kernel<R>
        <<<dim3((unsigned)num_chunks, (unsigned)num_pol), threads, bytes, stream>>>(
            args, taps_of<R>(kernel));
    return cudaGetLastError();
}

template <typename R>
cudaError_t launch_degrid(const tess_kernel *kernel, int num_pol, int64_t num_chunks,
                          const cuda_args &args, cudaStream_t stream)
{
    const int side = CUDA_SUB + kernel->support - 1;
    const size_t bytes =
        sizeof(degrid_shared<R>) + (size_t)2 * DEGRID_PLANES * side * side * sizeof(R);
    const cudaError_t error = cudaFuncSetAttribute(
        degrid_any_kernel<R>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error != cudaSuccess) return error;
    degrid_any_kernel<R><<<dim3((unsigned)num_chunks, (unsigned)num_pol),
                           DEGRID_THREADS, bytes, stream>>>(args, taps_of<R>(kernel));
    return cudaGetLastError();
}

} // namespace

cudaError_t launch_grid_any(const tess_kernel *kernel, int num_pol, int64_t num_chunks,
                            const cuda_args &args, cudaStream_t stream)
{
    return launch_grid<float>(kernel, num_pol, num_chunks, args, stream);
}

cudaError_t launch_degrid_any(const tess_kernel *kernel, int num_pol,
                              int64_t num_chunks, const cuda_args &args,
                              cudaStream_t stream)
{
    return launch_degrid<float>(kernel, num_pol, num_chunks, args, stream);
}
