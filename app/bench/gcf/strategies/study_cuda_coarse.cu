/* coarse: Merry 2016 (arXiv:1605.07023). Romein's window (gcf_cuda_window.cu) with
 * threads made coarser: each owns a square of neighbouring cells of the window and not
 * one, so that where a point lies, and its visibility, are looked up once for all of
 * them; and the window is cut into tiles that different blocks work on in parallel. */
#include "study_cuda.cuh"

namespace
{

enum { THREADS = 128, BATCH = 64, PIECE = 8 * BATCH };

/* Cells of a square along each axis: sums stay in registers. */
template <typename R, int POLS> struct square {
    static constexpr int SIDE = POLS * sizeof(R) <= 2 * sizeof(float) ? 4 : 2;
};

template <typename R, int POLS, int SIDE, int HOW>
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
                /* cells of no footprint, maybe beyond the grid, have got nothing, or
                 * what is no number */
                if ((to->x != 0 || to->y != 0) &&
                    (unsigned)(u + i) < (unsigned)job.nu &&
                    (unsigned)(v + j) < (unsigned)job.nv)
                    study_add_cell<HOW>((C *)job.cells + p * job.pol_stride +
                                            (int64_t)(u + i) * job.nv + v + j,
                                        *to);
                to->x = to->y = 0;
            }
}

/* Points of a block, in shared memory in batches. */
template <typename R, int POLS> struct points {
    gcf_stamp<R, POLS> batch[BATCH];
    int remainder[BATCH][2]; /* of the square that u and v lie in */
};

/* Points [begin, end) on a thread's square (a, b) of the window. Outside of a footprint
 * a tap is the zero behind the table, so that loads need not wait for branches. */
template <typename R, int POLS, int SIDE, int HOW, typename B>
__device__ inline void do_square(const gcf_cuda_job &job, int window, int a, int b,
                                 int64_t begin, int64_t end, points<R, POLS> &of)
{
    typedef typename cuda_complex<R>::type C;
    const void *const zero = gcf_zero_of<R>(job);
    int current_u = -1, current_v = -1;
    C sum[SIDE][SIDE][POLS];
#pragma unroll
    for (int i = 0; i < SIDE * SIDE * POLS; ++i) {
        C *to = &sum[i / (SIDE * POLS)][i / POLS % SIDE][i % POLS];
        to->x = to->y = 0;
    }
    for (int64_t from = begin; from < end; from += BATCH) {
        const int count = (int)min(end - from, (int64_t)BATCH);
        __syncthreads();
        for (int k = (int)threadIdx.x; k < count; k += B::threads()) {
            gcf_stamp_of<R, POLS>(job, gcf_place_of(job, from + k), &of.batch[k]);
            of.remainder[k][0] = of.batch[k].u / SIDE * SIDE % window;
            of.remainder[k][1] = of.batch[k].v / SIDE * SIDE % window;
            if (!B::any) break; /* there are as many threads */
        }
        __syncthreads();
        for (int n = 0; n < count && a < window; ++n) {
            const gcf_stamp<R, POLS> &s = of.batch[n];
            int i = a - of.remainder[n][0], j = b - of.remainder[n][1];
            if (i < 0) i += window;
            if (j < 0) j += window;
            i -= s.u % SIDE;
            j -= s.v % SIDE; /* taps of the square's first cell */
            if (i >= s.support || j >= s.support) continue;
            if (s.u + i != current_u || s.v + j != current_v) {
                if (current_u >= 0)
                    flush<R, POLS, SIDE, HOW>(job, current_u, current_v, sum);
                current_u = s.u + i;
                current_v = s.v + j;
            }
#pragma unroll
            for (int x = 0; x < SIDE; ++x) {
                C tap[SIDE]; /* of a line, asked for together */
#pragma unroll
                for (int y = 0; y < SIDE; ++y) {
                    const bool inside = (unsigned)(i + x) < (unsigned)s.support &&
                                        (unsigned)(j + y) < (unsigned)s.support;
                    tap[y] = gcf_tap_of<R>(
                        inside ? s.taps : zero, s.is_single,
                        inside ? (i + x) * s.step_u + (j + y) * s.step_v : 0);
                }
#pragma unroll
                for (int y = 0; y < SIDE; ++y)
#pragma unroll
                    for (int p = 0; p < POLS; ++p)
                        gcf_add_tap<R>(sum[x][y][p], tap[y], s.vis[p]);
            }
        }
    }
    if (current_u >= 0) flush<R, POLS, SIDE, HOW>(job, current_u, current_v, sum);
}

/* How the window is shared out: `parallel` blocks for its tiles. */
struct window_shape {
    int window, tiles, parallel, piece;
};

/* A block a piece of the points and a tile of the window (or tiles, in turn), a thread
 * a square each. The window is a multiple of a square and holds a footprint wherever it
 * begins in a square. Expected limit: L1, for taps. */
template <typename R, int POLS, int SIDE, int HOW, typename B>
__global__ void __launch_bounds__(B::most, B::blocks)
    coarse_kernel(gcf_cuda_job job, window_shape of)
{
    __shared__ points<R, POLS> shared;
    const int squares = of.window / SIDE;
    const int64_t begin = (int64_t)(blockIdx.x / of.parallel) * of.piece;
    const int64_t end = min(begin + of.piece, job.count);
    for (int tile = (int)blockIdx.x % of.parallel; tile < of.tiles;
         tile += of.parallel) {
        const int mine = tile * B::threads() + (int)threadIdx.x;
        do_square<R, POLS, SIDE, HOW, B>(job, of.window, mine / squares * SIDE,
                                         mine % squares * SIDE, begin, end, shared);
    }
}

template <typename R, int POLS, int SIDE, int HOW, typename B>
tess_status launch_bounded(const gcf_cuda_job &job)
{
    tess_status status = TESS_OK;
    const tess_study_probes *probes = study_probes_of(job);
    const int threads = probes->block > 0 ? probes->block : (int)THREADS;
    const int widest = max(job.table.max_support, probes->bin);
    const int squares = (widest + SIDE - 1 + SIDE - 1) / SIDE;
    const int tiles = (squares * squares + threads - 1) / threads;
    const int piece = probes->points > 0 ? probes->points : (int)PIECE;
    const window_shape of = {squares * SIDE, tiles, probes->serial_tiles ? 1 : tiles,
                             piece};
    tess_launch(coarse_kernel<R, POLS, SIDE, HOW, B>,
               (job.count + piece - 1) / piece * of.parallel, threads, 0, job, of);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

template <typename R, int POLS, int SIDE, int HOW>
tess_status launch_squares(const gcf_cuda_job &job)
{
    return launch_bounded<R, POLS, SIDE, HOW, study_bounds<THREADS>>(job);
}

template <typename R, int POLS, int HOW> tess_status launch(const gcf_cuda_job &job)
{
    return launch_squares<R, POLS, square<R, POLS>::SIDE, HOW>(job);
}

/* Squares as usual, in blocks compiled otherwise. */
template <typename R, int POLS, typename B>
tess_status launch_other(const gcf_cuda_job &job)
{
    return launch_bounded<R, POLS, square<R, POLS>::SIDE, TESS_STUDY_NATIVE, B>(job);
}

template <typename R, int POLS> tess_status run(const gcf_cuda_job &job)
{
    const tess_study_probes *probes = study_probes_of(job);
    const int cells = probes->cells;
    if (probes->block > 0)
        return launch_other<R, POLS, study_bounds<STUDY_MOST_THREADS, 0, true>>(job);
    if (probes->bounds == STUDY_FEW_BLOCKS)
        return launch_other<R, POLS, study_bounds<THREADS, STUDY_FEW_BLOCKS>>(job);
    if (probes->bounds == STUDY_MANY_BLOCKS)
        return launch_other<R, POLS, study_bounds<THREADS, STUDY_MANY_BLOCKS>>(job);
    return cells == 1   ? launch_squares<R, POLS, 1, TESS_STUDY_NATIVE>(job)
           : cells == 2 ? launch_squares<R, POLS, 2, TESS_STUDY_NATIVE>(job)
           : cells == 4 ? launch_squares<R, POLS, 4, TESS_STUDY_NATIVE>(job)
                        : STUDY_BY_ATOMICS(job, R, POLS, launch, job);
}

} // namespace

tess_status study_grid_coarse(const gcf_cuda_job &job)
{
    return GCF_BY_TYPE(job, run, job);
}
