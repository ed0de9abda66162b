/* tiled, degridding: points are sorted by the tile in which their footprints start, and
 * there by kernel. A block keeps the cells that one part of its points' footprints can
 * meet, 32 cells wide, in shared memory; a warp keeps that part of a kernel's taps in
 * registers, for all points of the tile that read them, conjugated or not. A tap read
 * from L2 for every visibility and cell is what limits gridders with tables (Merry
 * 2016, arXiv:1605.07023, section 5): here both sides are used again, the cells by all
 * points of a tile, the taps by those that share a kernel, and tiles are made as large
 * as shared memory allows, because that decides how many do. The published
 * degridders give every visibility to a warp or block, and read the grid through
 * caches (gcf_cuda_degrid_gather.cu). */
#include "gcf_cuda.cuh"
#include "tess_gcf_cuda_degrid.cuh"
#include "tess_mem.h"

namespace
{

enum {
    WIDTH = GCF_WARP,         /* of a part of a footprint, a lane each */
    LEAST_SHARED = 99 * 1024, /* that a block may have, on any device, … */
    MOST_SHARED = 227 * 1024, /* … and on large ones */
    MOST_POINTS = 4096,       /* of a piece */
    CHUNK = 16                /* points that a warp takes at a time */
};

/* The differences between precisions and numbers of polarisations. */
template <typename R, int POLS, bool LARGE> struct shape {
    static constexpr int VALUE = 2 * (int)sizeof(R);
    /* lines of a part: taps take 32 to 128 registers */
    static constexpr int LINES = POLS * VALUE > 16 ? 16 : 32;
    static constexpr int THREADS = LINES * VALUE > 256 ? 384 : 512;
    static constexpr int LIMIT = LARGE ? MOST_SHARED : LEAST_SHARED;

    static constexpr int bytes(int tile)
    {
        return (tile + LINES - 1) * (tile + WIDTH - 1) * POLS * VALUE;
    }
    static constexpr int largest_tile(int tile)
    {
        return bytes(tile) <= LIMIT - 256 ? tile : largest_tile(tile - 1);
    }
    static constexpr int TILE = largest_tile(128);
    static constexpr int HEIGHT = TILE + LINES - 1, PITCH = TILE + WIDTH - 1;
    static constexpr int BYTES = HEIGHT * PITCH * POLS * VALUE;
};

/* The points of a tile, and the part of their footprints, which are the work of a
 * block. */
struct piece {
    uint32_t first, count;
    int32_t u, v; /* first cell of the tile */
};

/* Copies a value to shared memory, or 0, without waiting for it. */
template <typename C>
__device__ inline void copy_later(C *to, const C *from, bool there)
{
#ifdef SIMT_EMULATED
    to->x = there ? from->x : 0;
    to->y = there ? from->y : 0;
#else
    const unsigned address = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address),
                 "l"(from), "n"(sizeof(C)), "r"(there ? (int)sizeof(C) : 0)
                 : "memory");
#endif
}

__device__ inline void wait_for_copies(void)
{
#ifndef SIMT_EMULATED
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncthreads();
}

/* Copies the cells [u, u + HEIGHT) × [v, v + PITCH) of all polarisations. Cells beyond
 * the grid are zero. */
template <typename R, int POLS, bool LARGE>
__device__ void load_cells(const gcf_cuda_job &job, int u, int v,
                           typename cuda_complex<R>::type *cells)
{
    typedef typename cuda_complex<R>::type C;
    typedef shape<R, POLS, LARGE> S;
    const int lane = (int)threadIdx.x % GCF_WARP, warp = (int)threadIdx.x / GCF_WARP;
    for (int line = warp; line < POLS * S::HEIGHT; line += S::THREADS / GCF_WARP) {
        const int pol = line / S::HEIGHT, x = u + line % S::HEIGHT;
        const C *pol_cells = (const C *)job.cells + pol * job.pol_stride;
        for (int k = lane; k < S::PITCH; k += GCF_WARP) {
            const bool there = x < job.nu && v + k < job.nv;
            copy_later(&cells[line * S::PITCH + k],
                       pol_cells + (there ? (int64_t)x * job.nv + v + k : 0), there);
        }
    }
}

/* Loads a part of a kernel's taps: LINES lines from `line` on, of each line the cell of
 * a lane. Taps beyond the support are zero. */
template <typename R, int LINES, typename T>
__device__ inline void load_taps(const gcf_taps_view<R, T> &view, int line, int cell,
                                 typename cuda_complex<R>::type *tap)
{
    const typename cuda_complex<T>::type *from =
        view.first + (int64_t)line * view.step_u + cell * view.step_v;
#pragma unroll
    for (int i = 0; i < LINES; ++i) {
        tap[i].x = tap[i].y = 0;
        if (line + i < view.support && cell < view.support) {
            const typename cuda_complex<T>::type read = __ldg(from + i * view.step_u);
            tap[i].x = read.x;
            tap[i].y = read.y;
        }
    }
}

/* A block works on one part of the footprints of a piece. Warps take chunks of its
 * points, and a lane looks up one point. The cells are in shared memory, 99 or 227 KiB
 * (two blocks of 113 on a multiprocessor are 10 to 25 % slower), and the taps in
 * registers. Atomic: the parts of a point, if it has several. The expected limit is
 * shared memory, 8 bytes for each cell, polarisation and point, which leaves half of
 * the arithmetic units' rate; and taps from L2, if few points share a kernel. */
template <typename R, int POLS, bool LARGE, typename T>
__global__ void __launch_bounds__(shape<R, POLS, LARGE>::THREADS, 1)
    tiled_kernel(gcf_cuda_job job, const piece *pieces, int parts_u, int parts_v)
{
    typedef typename cuda_complex<R>::type C;
    typedef shape<R, POLS, LARGE> S;
    C *cells = (C *)tess_shared();
    __shared__ uint32_t taken;
    const int parts = parts_u * parts_v, lane = (int)threadIdx.x % GCF_WARP;
    const int part = (int)(blockIdx.x % (unsigned)parts);
    const piece mine = pieces[blockIdx.x / (unsigned)parts];
    const int line = part / parts_v * S::LINES, column = part % parts_v * WIDTH;
    uint32_t held = GCF_OUTSIDE;
    C tap[S::LINES];
    if (threadIdx.x == 0) taken = 0;
    load_cells<R, POLS, LARGE>(job, mine.u + line, mine.v + column, cells);
    wait_for_copies();
    for (;;) {
        uint32_t from = 0;
        if (lane == 0) from = atomicAdd(&taken, (uint32_t)CHUNK);
        from = __shfl_sync(GCF_ALL_LANES, from, 0);
        if (from >= mine.count) break;
        const int count = (int)min((uint32_t)CHUNK, mine.count - from);
        gcf_cuda_place looked_up = {0, 0, GCF_OUTSIDE, 0};
        int offset = -1; /* of its first cell; none, for narrow kernels */
        if (lane < count) {
            looked_up = gcf_place_of(job, mine.first + from + (uint32_t)lane);
            const int support = job.table.plane[gcf_plane_of(looked_up.kernel)].support;
            if (line < support && column < support)
                offset = (looked_up.u - mine.u) * S::PITCH + looked_up.v - mine.v;
        }
        for (int k = 0; k < count; ++k) {
            const int first_cell = __shfl_sync(GCF_ALL_LANES, offset, k);
            const uint32_t flags = __shfl_sync(GCF_ALL_LANES, looked_up.kernel, k);
            const uint32_t point = __shfl_sync(GCF_ALL_LANES, looked_up.point, k);
            const uint32_t kernel = flags & ~GCF_CONJUGATE;
            if (first_cell < 0) continue;
            if (kernel != held) {
                load_taps<R, S::LINES>(gcf_view<R, T>(job, kernel), line, column + lane,
                                       tap);
                held = kernel;
            }
            const C *cell = cells + first_cell + lane;
            C re[POLS] = {}, im[POLS] = {}; /* Σ re(tap)·cell, Σ im(tap)·cell */
#pragma unroll
            for (int i = 0; i < S::LINES; ++i)
#pragma unroll
                for (int p = 0; p < POLS; ++p) {
                    const C value = cell[(p * S::HEIGHT + i) * S::PITCH];
                    re[p].x += tap[i].x * value.x;
                    re[p].y += tap[i].x * value.y;
                    im[p].x += tap[i].y * value.x;
                    im[p].y += tap[i].y * value.y;
                }
            /* conj(tap)·cell, or tap·cell: kernels of w < 0 share the taps of w > 0 */
            const R sign = flags & GCF_CONJUGATE ? -1 : 1;
#pragma unroll
            for (int p = 0; p < POLS; ++p) {
                re[p].x += sign * im[p].y;
                re[p].y -= sign * im[p].x;
            }
            const R total = gcf_sum_parts<POLS>((R *)re, lane);
            if (gcf_stores<POLS>(lane)) {
                R *to = gcf_vis_part<R, POLS>(job, point, gcf_part_of<POLS>(lane));
                if (parts == 1)
                    *to = total;
                else
                    atomicAdd(to, total);
            }
        }
    }
}

/* Makes pieces of tiles with their points. This is done on the host, because there are
 * few. */
tess_status make_pieces(const gcf_cuda_job &job, piece **out, int64_t *num_pieces)
{
    tess_status status = TESS_OK;
    const int64_t tiles = (int64_t)job.tiles_u * job.tiles_v;
    const int asked = gcf_tiling_of(job.host.plan)->points;
    const uint32_t points = (uint32_t)(asked > 0 ? asked : (int)MOST_POINTS);
    const int64_t most = tiles + job.count / points;
    uint32_t *first = (uint32_t *)tess_alloc(tiles + 1, sizeof *first);
    piece *made = (piece *)tess_alloc(most, sizeof *made);
    int64_t n = 0;
    if (!first || !made) TESS_FAIL(TESS_ERR_ALLOC, "tiles of points");
    TESS_TRY(
        tess_device_download(first, job.first, (tiles + 1) * (int64_t)sizeof *first));
    for (int64_t t = 0; t < tiles; ++t)
        for (uint32_t k = first[t]; k < first[t + 1]; k += points) {
            const uint32_t left = first[t + 1] - k;
            made[n].first = k;
            made[n].count = left < points ? left : points;
            made[n].u = (int)(t / job.tiles_v) * job.order.tile_u;
            made[n++].v = (int)(t % job.tiles_v) * job.order.tile_v;
        }
    *num_pieces = n;
    *out = made;
    made = NULL;
cleanup:
    tess_free(first);
    tess_free(made);
    return status;
}

template <typename R, int POLS, bool LARGE, typename T>
tess_status run(const gcf_cuda_job &job)
{
    tess_status status = TESS_OK;
    typedef shape<R, POLS, LARGE> S;
    const int parts_u = (job.table.max_support + S::LINES - 1) / S::LINES;
    const int parts_v = (job.table.max_support + WIDTH - 1) / WIDTH;
    const int64_t vis_bytes = job.num_vis * 2 * POLS * (int64_t)sizeof(R);
    int64_t num_pieces = 0;
    piece *pieces = NULL;
    const void *on_device = NULL;
    TESS_TRY(make_pieces(job, &pieces, &num_pieces));
    TESS_TRY(tess_device_copy_of(pieces, num_pieces * (int64_t)sizeof *pieces,
                                 "tiles of points", &on_device));
    TESS_TRY(tess_device_zero(job.vis, vis_bytes));
    TESS_CUDA(cudaFuncSetAttribute(tiled_kernel<R, POLS, LARGE, T>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   S::BYTES));
    TESS_CUDA(cudaEventRecord(job.host.sorted, tess_device_stream()));
    tess_launch(tiled_kernel<R, POLS, LARGE, T>, num_pieces * parts_u * parts_v,
               S::THREADS, S::BYTES, job, (const piece *)on_device, parts_u, parts_v);
    TESS_CUDA_LAUNCHED();
cleanup:
    tess_free(pieces);
    tess_device_free((void *)(uintptr_t)on_device);
    return status;
}

bool is_large(void)
{
    int bytes = 0;
    if (cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                               tess_device_number()) != cudaSuccess)
        (void)cudaGetLastError();
    return bytes >= MOST_SHARED;
}

template <typename R, int POLS> int tile_for(bool large)
{
    return large ? shape<R, POLS, true>::TILE : shape<R, POLS, false>::TILE;
}

template <typename R, int POLS, typename T>
tess_status run_with(const gcf_cuda_job &job)
{
    return is_large() ? run<R, POLS, true, T>(job) : run<R, POLS, false, T>(job);
}

template <typename R, int POLS> tess_status run_on(const gcf_cuda_job &job)
{
    return job.table.single_taps ? run_with<R, POLS, float>(job)
                                 : run_with<R, POLS, R>(job);
}

gcf_cuda_order order(const gcf_cuda_job &job)
{
    const int tile = GCF_BY_TYPE(job, tile_for, is_large());
    return {tile, tile, false, true, false, 0};
}

tess_status degrid(const gcf_cuda_job &job)
{
    return GCF_BY_TYPE(job, run_on, job);
}

} // namespace

const gcf_device_method *gcf_cuda_degrid_tiled(void)
{
    static const gcf_device_method method = {order, NULL, degrid};
    return &method;
}
