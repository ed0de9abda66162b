/* Grids and degrids in double precision on the fp64 tensor cores, with every support.
 * These are the products of tile_cuda_tensor.cu with depth 4. A warp owns one of eight
 * planes; bricks of more planes take several passes. On a footprint of S = 8 + W − 1
 * cells, ROWS are those along u as whole tiles, and TILES the tiles of four complex
 * cells along v. */
#include "tile_cuda_batch.cuh"

namespace
{

enum {
    PLANES = 8, /* of a pass, one a warp */
    THREADS = 32 * PLANES
};

/* Distance of rows of which a warp reads four, eight bytes at a time. It is an odd
 * multiple of 4 doubles, so that there are no conflicts. */
__host__ __device__ constexpr int row_of(int values)
{
    return (values / 4) % 2 ? values : values + 4;
}

/* Computes c += a·b of 8 × 4 and 4 × 8. */
__device__ inline void multiply_add_8(double c[2], double a, double b)
{
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(c[0]), "+d"(c[1])
        : "d"(a), "d"(b));
}

/* Computes c += a·b of 16 × 4 and 4 × 8. */
__device__ inline void multiply_add_16(double c[4], double a0, double a1, double b)
{
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, "
        "{%6}, "
        "{%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a0), "d"(a1), "d"(b));
#else
    multiply_add_8(c, a0, b);
    multiply_add_8(c + 2, a1, b);
#endif
}

/* Finds the planes first … first + 7 that each four visibilities touch, as bits. */
__device__ inline void note_planes(int plane, int w_support, bool used, uint8_t *planes)
{
    unsigned bits = 0;
    if (used && plane > -w_support && plane < PLANES) {
        const unsigned footprint = (1u << w_support) - 1;
        bits = plane >= 0 ? footprint << plane : footprint >> -plane;
    }
    bits |= __shfl_xor_sync(0xffffffffu, bits, 1);
    bits |= __shfl_xor_sync(0xffffffffu, bits, 2);
    if (threadIdx.x % 4 == 0) planes[threadIdx.x / 4] = (uint8_t)bits;
}

/* Computes the taps in w of the planes of the pass, out[plane][b]. */
__device__ inline void taps_w(const double *coefficient, int degree, int w_support,
                              const batch_places<double> &place, int first, int count,
                              double *out)
{
    for (int k = threadIdx.x; k < PLANES * count; k += THREADS) {
        const int p = k / count, b = k % count, tap = first + p - place.offset[2][b];
        double value = 0;
        if (tap >= 0 && tap < w_support)
            value = w_support == 1 ? 1.0
                                   : tap_at(coefficient, degree, w_support, tap,
                                            place.fraction[2][b]);
        out[p * BATCH + b] = value;
    }
}

/* ---- gridding ---- */

template <int ROWS, int TILES> struct grid_shared {
    enum { U = row_of(ROWS), V = row_of(8 * TILES) };
    batch_places<double> place;
    double coefficient[(TESS_MAX_DEGREE + 1) * TESS_MAX_SUPPORT];
    double tap_u[BATCH * U];
    double tap_v[BATCH * V]; /* multiplied by the value, (re, im) */
    double tap_w[PLANES * BATCH];
    uint8_t planes[BATCH / 4];
};

/* A block grids a chunk of one polarisation. The plane of a warp stays in registers for
 * the chunk. The expected limit are the fp64 tensor cores. */
template <int ROWS, int TILES>
__global__ void __launch_bounds__(THREADS, 2)
    grid_double_kernel(const __grid_constant__ cuda_args args,
                       const __grid_constant__ cuda_taps<double> taps)
{
    extern __shared__ __align__(16) unsigned char memory[];
    typedef grid_shared<ROWS, TILES> all;
    all &shared = *(all *)memory;
    const int support = args.geometry.support, w_support = args.geometry.w_support;
    const int side = CUDA_SUB + support - 1;
    const cuda_chunk chunk = args.chunk[blockIdx.x];
    const cuda_brick brick = args.brick[chunk.brick];
    const cuda_target target = target_of(args, chunk, brick);
    const int pol = blockIdx.y, warp = threadIdx.x / 32;
    const int row = threadIdx.x % 32 / 4, column = threadIdx.x % 4;
    copy_taps(taps, support, shared.coefficient);
    for (int first = 0; first < brick.num_planes; first += PLANES) {
        double sum[TILES][ROWS / 4] = {};
        for (int group = 0; group < chunk.num_groups; group += BATCH_GROUPS) {
            const int count = batch_count(chunk, group);
            __syncthreads();
            if ((int)threadIdx.x < count) {
                cuda_place place;
                const cuda_slot slot = place_batch<double>(args, chunk, brick, group,
                                                           &place, &shared.place);
                double2 value = {0, 0};
                if (slot.used) value = value_of<double>(args, place, slot.sample, pol);
                shared.place.value[threadIdx.x] = value;
                note_planes(place.plane - first, w_support,
                            value.x != 0 || value.y != 0, shared.planes);
            }
            __syncthreads();
            for (int k = threadIdx.x; k < count * ROWS; k += THREADS) {
                const int b = k / ROWS, u = k % ROWS,
                          tap = u - shared.place.offset[0][b];
                shared.tap_u[b * all::U + u] =
                    tap >= 0 && tap < support
                        ? tap_at(shared.coefficient, taps.degree, support, tap,
                                 shared.place.fraction[0][b])
                        : 0.0;
            }
            for (int k = threadIdx.x; k < count * 4 * TILES; k += THREADS) {
                const int b = k / (4 * TILES), v = k % (4 * TILES);
                const int tap = v - shared.place.offset[1][b];
                const double2 value = shared.place.value[b];
                const double t = tap >= 0 && tap < support
                                     ? tap_at(shared.coefficient, taps.degree, support,
                                              tap, shared.place.fraction[1][b])
                                     : 0.0;
                *(double2 *)&shared.tap_v[b * all::V + 2 * v] =
                    make_double2(t * value.x, t * value.y);
            }
            taps_w(shared.coefficient, taps.degree, w_support, shared.place, first,
                   count, shared.tap_w);
            __syncthreads();
            for (int step = 0; step < count / 4; ++step) {
                if (!(shared.planes[step] >> warp & 1)) continue;
                const int b = 4 * step + column;
                const double w = shared.tap_w[warp * BATCH + b];
                const double *u = &shared.tap_u[b * all::U + row];
                const double *v = &shared.tap_v[b * all::V + row];
                double a[ROWS / 8];
                #pragma unroll
                for (int m = 0; m < ROWS / 8; ++m)
                    a[m] = w * u[8 * m];
                #pragma unroll
                for (int n = 0; n < TILES; ++n) {
                    const double value = v[8 * n];
                    multiply_add_16(sum[n], a[0], a[1], value);
                    if (ROWS == 24) multiply_add_8(sum[n] + 4, a[ROWS / 8 - 1], value);
                }
            }
        }
        if (first + warp >= brick.num_planes) continue;
        double2 *out = (double2 *)args.data + target.origin + pol * target.pol_stride +
                       (first + warp) * target.plane_stride;
        #pragma unroll
        for (int m = 0; m < ROWS / 8; ++m)
            #pragma unroll
            for (int n = 0; n < TILES; ++n) {
                const int u = 8 * m + row, v = 4 * n + column;
                if (u < side && v < side)
                    add_complex(out + target_index(target, u, v),
                                make_double2(sum[n][2 * m], sum[n][2 * m + 1]));
            }
    }
}

/* ---- degridding ---- */

template <int TILES> struct degrid_shared {
    enum { ROW = row_of(4 * TILES) };
    batch_places<double> place;
    double coefficient[(TESS_MAX_DEGREE + 1) * TESS_MAX_SUPPORT];
    double tap_u[BATCH * ROW], tap_v[BATCH * ROW];
    double tap_w[PLANES * BATCH];
    double2 part[PLANES][BATCH];
    uint8_t planes[BATCH / 4];
};

/* A block degrids a chunk of one polarisation. Tensor cores compute T[k, (u, re or im)]
 * = Σ_v tap_v(k, v) G[u, v] of a warp's plane, while the values of the grid stay in
 * registers; plain FMAs do the rest. The thread that has placed a visibility adds the
 * shares of the warps. What several passes find is added up in global memory. The
 * expected limit are the fp64 tensor cores. */
template <int TILES>
__global__ void __launch_bounds__(THREADS, TILES > 5 ? 1 : 2)
    degrid_double_kernel(const __grid_constant__ cuda_args args,
                         const __grid_constant__ cuda_taps<double> taps)
{
    extern __shared__ __align__(16) unsigned char memory[];
    typedef degrid_shared<TILES> all;
    all &shared = *(all *)memory;
    const int support = args.geometry.support, w_support = args.geometry.w_support;
    const int side = CUDA_SUB + support - 1;
    const cuda_chunk chunk = args.chunk[blockIdx.x];
    const cuda_brick brick = args.brick[chunk.brick];
    const cuda_target target = target_of(args, chunk, brick);
    const int pol = blockIdx.y, warp = threadIdx.x / 32;
    const int row = threadIdx.x % 32 / 4, column = threadIdx.x % 4;
    copy_taps(taps, support, shared.coefficient);
    for (int first = 0; first < brick.num_planes; first += PLANES) {
        double grid[TILES][TILES]; /* tiles along u, depth along v */
        const double2 *from = (const double2 *)args.data + target.origin +
                              pol * target.pol_stride +
                              (first + warp) * target.plane_stride;
        #pragma unroll
        for (int n = 0; n < TILES; ++n)
            #pragma unroll
            for (int k = 0; k < TILES; ++k) {
                const int u = 4 * n + row / 2, v = 4 * k + column;
                double2 value = {0, 0};
                if (first + warp < brick.num_planes && u < side && v < side)
                    value = from[target_index(target, u, v)];
                grid[n][k] = row % 2 ? value.y : value.x;
            }
        for (int group = 0; group < chunk.num_groups; group += BATCH_GROUPS) {
            const int count = batch_count(chunk, group);
            cuda_place place = {};
            cuda_slot slot = {};
            __syncthreads();
            if ((int)threadIdx.x < count) {
                slot = place_batch<double>(args, chunk, brick, group, &place,
                                           &shared.place);
                note_planes(place.plane - first, w_support, slot.used, shared.planes);
            }
            __syncthreads();
            for (int k = threadIdx.x; k < count * 4 * TILES; k += THREADS) {
                const int b = k / (4 * TILES), cell = k % (4 * TILES);
                #pragma unroll
                for (int axis = 0; axis < 2; ++axis) {
                    const int tap = cell - shared.place.offset[axis][b];
                    (axis == 0 ? shared.tap_u : shared.tap_v)[b * all::ROW + cell] =
                        tap >= 0 && tap < support
                            ? tap_at(shared.coefficient, taps.degree, support, tap,
                                     shared.place.fraction[axis][b])
                            : 0.0;
                }
            }
            taps_w(shared.coefficient, taps.degree, w_support, shared.place, first,
                   count, shared.tap_w);
            __syncthreads();
            for (int step = 0; step < count / 16; ++step) {
                const int b = 16 * step + row;
                const uint32_t planes = *(const uint32_t *)&shared.planes[4 * step];
                double re[2] = {}, im[2] = {};
                if (planes & 0x01010101u << warp) {
                    const double *v = &shared.tap_v[b * all::ROW + column];
                    const double *u = &shared.tap_u[b * all::ROW + column];
                    double a[TILES][2];
                    #pragma unroll
                    for (int k = 0; k < TILES; ++k) {
                        a[k][0] = v[4 * k];
                        a[k][1] = v[8 * all::ROW + 4 * k];
                    }
                    #pragma unroll
                    for (int n = 0; n < TILES; ++n) {
                        double t[4] = {};
                        #pragma unroll
                        for (int k = 0; k < TILES; ++k)
                            multiply_add_16(t, a[k][0], a[k][1], grid[n][k]);
                        const double low = u[4 * n], high = u[8 * all::ROW + 4 * n];
                        re[0] += low * t[0];
                        im[0] += low * t[1];
                        re[1] += high * t[2];
                        im[1] += high * t[3];
                    }
                    #pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        const double w = shared.tap_w[warp * BATCH + b + 8 * half];
                        re[half] *= w;
                        im[half] *= w;
                        #pragma unroll
                        for (int with = 1; with < 4; with *= 2) {
                            re[half] += __shfl_xor_sync(0xffffffffu, re[half], with);
                            im[half] += __shfl_xor_sync(0xffffffffu, im[half], with);
                        }
                    }
                }
                if (column == 0)
                    for (int half = 0; half < 2; ++half)
                        shared.part[warp][b + 8 * half] =
                            make_double2(re[half], im[half]);
            }
            __syncthreads();
            if (slot.used) {
                double2 sum = {0, 0};
                double sine, cosine;
                for (int k = 0; k < PLANES; ++k) {
                    sum.x += shared.part[k][threadIdx.x].x;
                    sum.y += shared.part[k][threadIdx.x].y;
                }
                sincos_turns(place.turns, &sine, &cosine);
                double2 vis = vis_of<double>(sum, sine, cosine, place.conjugate);
                double2 *out = (double2 *)args.samples.vis +
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

typedef void kernel_function(const cuda_args args, const cuda_taps<double> taps);

cudaError_t launch(kernel_function *function, size_t bytes, const tess_kernel *kernel,
                   int num_pol, int64_t num_chunks, const cuda_args &args,
                   cudaStream_t stream)
{
    const cudaError_t error = cudaFuncSetAttribute(
        function, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error != cudaSuccess) return error;
    function<<<dim3((unsigned)num_chunks, (unsigned)num_pol), THREADS, bytes, stream>>>(
        args, taps_of<double>(kernel));
    return cudaGetLastError();
}

} // namespace

cudaError_t launch_grid_double(const tess_kernel *kernel, int num_pol,
                               int64_t num_chunks, const cuda_args &args,
                               cudaStream_t stream)
{
    /* footprints up to 12, 16, 20 and 24 cells */
    switch ((CUDA_SUB + kernel->support - 1 + 3) / 4) {
    case 3:
        return launch(grid_double_kernel<16, 3>, sizeof(grid_shared<16, 3>), kernel,
                      num_pol, num_chunks, args, stream);
    case 4:
        return launch(grid_double_kernel<16, 4>, sizeof(grid_shared<16, 4>), kernel,
                      num_pol, num_chunks, args, stream);
    case 5:
        return launch(grid_double_kernel<24, 5>, sizeof(grid_shared<24, 5>), kernel,
                      num_pol, num_chunks, args, stream);
    default:
        return launch(grid_double_kernel<24, 6>, sizeof(grid_shared<24, 6>), kernel,
                      num_pol, num_chunks, args, stream);
    }
}

cudaError_t launch_degrid_double(const tess_kernel *kernel, int num_pol,
                                 int64_t num_chunks, const cuda_args &args,
                                 cudaStream_t stream)
{
    switch ((CUDA_SUB + kernel->support - 1 + 3) / 4) {
    case 3:
        return launch(degrid_double_kernel<3>, sizeof(degrid_shared<3>), kernel,
                      num_pol, num_chunks, args, stream);
    case 4:
        return launch(degrid_double_kernel<4>, sizeof(degrid_shared<4>), kernel,
                      num_pol, num_chunks, args, stream);
    case 5:
        return launch(degrid_double_kernel<5>, sizeof(degrid_shared<5>), kernel,
                      num_pol, num_chunks, args, stream);
    default:
        return launch(degrid_double_kernel<6>, sizeof(degrid_shared<6>), kernel,
                      num_pol, num_chunks, args, stream);
    }
}
