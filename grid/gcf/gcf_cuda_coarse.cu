/* coarse: Merry 2016 (arXiv:1605.07023). Romein's window (gcf_cuda_window.cu) with
 * threads made coarser: each owns a square of neighbouring cells of the window and not
 * one, so that where a point lies, and its visibility, are looked up once for all of
 * them; and the window is cut into tiles that different blocks work on in parallel. */
#include "gcf_cuda.cuh"

namespace
{

enum { THREADS = 128, BATCH = 64, PIECE = 8 * BATCH };

/* Cells of a square along each axis: sums stay in registers. */
template <typename R, int POLS> struct square {
    static constexpr int SIDE = POLS * sizeof(R) <= 2 * sizeof(float) ? 4 : 2;
};

template <typename R, int POLS, int SIDE>
__device__ inline void flush(const gcf_cuda_job &job, int u, int v,
                             typename cuda_complex<R>::type sum[SIDE][SIDE][POLS])
{
    typedef typename cuda_complex<R>::type C;
#pragma unroll
    for (int i = 0; i < SIDE; ++i)
#pragma unroll
        for (int j = 0; j < SIDE; ++j)
#pragma unroll
            for (int p = 0; p < POLS; ++p) {
                C *to = &sum[i][j][p];
                /* cells of no footprint, maybe beyond the grid, have got nothing */
                if (to->x != 0 || to->y != 0)
                    add_complex((C *)job.cells + p * job.pol_stride +
                                    (int64_t)(u + i) * job.nv + v + j,
                                *to);
                to->x = to->y = 0;
            }
}

/* A block a piece of the points and a tile of the window, THREADS squares; points in
 * shared memory in batches. `window` is a multiple of a square and holds a footprint
 * wherever it begins in a square. Expected limit: L1, for taps. */
template <typename R, int POLS>
__global__ void __launch_bounds__(THREADS)
    coarse_kernel(gcf_cuda_job job, int window, int tiles)
{
    typedef typename cuda_complex<R>::type C;
    const int SIDE = square<R, POLS>::SIDE;
    __shared__ gcf_stamp<R, POLS> batch[BATCH];
    __shared__ int remainder[BATCH][2]; /* of the square that u and v lie in */
    const int squares = window / SIDE;
    const int mine = (int)blockIdx.x % tiles * THREADS + (int)threadIdx.x;
    const int a = mine / squares * SIDE, b = mine % squares * SIDE;
    const int64_t begin = (int64_t)(blockIdx.x / tiles) * PIECE;
    const int64_t end = min(begin + PIECE, job.count);
    int current_u = -1, current_v = -1;
    C sum[SIDE][SIDE][POLS];
#pragma unroll
    for (int i = 0; i < SIDE * SIDE * POLS; ++i) {
        C *to = &sum[i / (SIDE * POLS)][i / POLS % SIDE][i % POLS];
        to->x = to->y = 0;
    }
    for (int64_t from = begin; from < end; from += BATCH) {
        const int count = (int)min(end - from, (int64_t)BATCH), k = (int)threadIdx.x;
        __syncthreads();
        if (k < count) {
            gcf_stamp_of<R, POLS>(job, job.place[from + k], &batch[k]);
            remainder[k][0] = batch[k].u / SIDE * SIDE % window;
            remainder[k][1] = batch[k].v / SIDE * SIDE % window;
        }
        __syncthreads();
        for (int n = 0; n < count && a < window; ++n) {
            const gcf_stamp<R, POLS> &s = batch[n];
            int i = a - remainder[n][0], j = b - remainder[n][1];
            if (i < 0) i += window;
            if (j < 0) j += window;
            i -= s.u % SIDE;
            j -= s.v % SIDE; /* taps of the square's first cell */
            if (i >= s.support || j >= s.support) continue;
            if (s.u + i != current_u || s.v + j != current_v) {
                if (current_u >= 0)
                    flush<R, POLS, SIDE>(job, current_u, current_v, sum);
                current_u = s.u + i;
                current_v = s.v + j;
            }
#pragma unroll
            for (int x = 0; x < SIDE; ++x)
#pragma unroll
                for (int y = 0; y < SIDE; ++y) {
                    if ((unsigned)(i + x) >= (unsigned)s.support ||
                        (unsigned)(j + y) >= (unsigned)s.support)
                        continue;
                    const C tap =
                        __ldg(s.taps + (i + x) * s.step_u + (j + y) * s.step_v);
#pragma unroll
                    for (int p = 0; p < POLS; ++p)
                        gcf_add_tap<R>(sum[x][y][p], tap, s.vis[p]);
                }
        }
    }
    if (current_u >= 0) flush<R, POLS, SIDE>(job, current_u, current_v, sum);
}

template <typename R, int POLS> tess_status run(const gcf_cuda_job &job)
{
    tess_status status = TESS_OK;
    const int side = square<R, POLS>::SIDE;
    const int squares = (job.max_support + side - 1 + side - 1) / side;
    const int tiles = (squares * squares + THREADS - 1) / THREADS;
    gcf_launch(coarse_kernel<R, POLS>, (job.count + PIECE - 1) / PIECE * tiles, THREADS,
               0, job, squares * side, tiles);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

} // namespace

tess_status gcf_cuda_grid_coarse(const gcf_cuda_job &job)
{
    return GCF_BY_TYPE(job, run, job);
}
