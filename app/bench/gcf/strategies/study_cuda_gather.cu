/* gather: a thread for each cell of the grid and those below it in a stripe; points are
 * sorted by tile, and bookmarks tell where each tile's begin, so that a block looks
 * only through those whose footprints may reach it. Tiles may be cut into stripes,
 * which are gridded one after another. Nothing is added atomically, and the sums do not
 * depend on the order of execution. The study of scatter, gather and moving windows on
 * Kepler (2016; github.com/NVIDIA/SKA-gpu-grid) found it the fastest in most cases. */
#include "study_cuda.cuh"

namespace
{

enum { TILE = 32, CELLS_USUAL = 4, BATCH = 128 };

/* The part of each tile that a launch grids: lines from `first` on, shared out to
 * `blocks` blocks. */
struct stripe {
    int first, blocks;
};

/* A block a tile (WHOLE), or a part of its stripe; CELLS cells a thread, points in
 * shared memory in batches. Expected limit: L2, that every thread reads a tap from for
 * each point and cell, and the tests which points reach it. */
template <typename R, int POLS, int CELLS, bool WHOLE, int BLOCKS>
__global__ void __launch_bounds__(TILE *TILE / CELLS, BLOCKS)
    gather_kernel(gcf_cuda_job job, stripe of)
{
    typedef typename cuda_complex<R>::type C;
    const int LINES = WHOLE ? TILE / CELLS : (int)blockDim.x / TILE; /* of threads */
    const int tile = WHOLE ? (int)blockIdx.x : (int)blockIdx.x / of.blocks;
    const int part = WHOLE ? 0 : (int)blockIdx.x % of.blocks;
    __shared__ gcf_stamp<R, POLS> batch[BATCH];
    const int tile_u = tile / job.tiles_v, tile_v = tile % job.tiles_v;
    const int u = tile_u * TILE + (WHOLE ? 0 : of.first + part * LINES * CELLS) +
                  (int)threadIdx.x / TILE;
    const int v = tile_v * TILE + (int)threadIdx.x % TILE;
    const int reach = (job.table.max_support - 1 + TILE - 1) / TILE; /* tiles */
    C sum[CELLS][POLS];
    for (int k = 0; k < CELLS; ++k)
        for (int p = 0; p < POLS; ++p)
            sum[k][p].x = sum[k][p].y = 0;
    for (int line = max(tile_u - reach, 0); line <= tile_u; ++line) {
        const uint32_t *bookmark = job.first + (int64_t)line * job.tiles_v;
        const uint32_t end = bookmark[tile_v + 1];
        for (uint32_t from = bookmark[max(tile_v - reach, 0)]; from < end;
             from += BATCH) {
            const int count = (int)min(end - from, (uint32_t)BATCH);
            __syncthreads();
            for (int k = (int)threadIdx.x; k < count; k += (int)blockDim.x) {
                gcf_stamp_of<R, POLS>(job, gcf_place_of(job, from + k), &batch[k]);
                if (WHOLE) break; /* there are as many threads */
            }
            __syncthreads();
            for (int k = 0; k < count; ++k) {
                const gcf_stamp<R, POLS> &s = batch[k];
                const int i = u - s.u, j = v - s.v;
                if ((unsigned)j >= (unsigned)s.support) continue;
#pragma unroll
                for (int n = 0; n < CELLS; ++n) {
                    const int below = i + n * LINES;
                    if ((unsigned)below >= (unsigned)s.support) continue;
                    const C tap = gcf_tap_of<R>(s.taps, s.is_single,
                                                below * s.step_u + j * s.step_v);
                    for (int p = 0; p < POLS; ++p)
                        gcf_add_tap<R>(sum[n][p], tap, s.vis[p]);
                }
            }
        }
    }
    for (int n = 0; n < CELLS; ++n)
        for (int p = 0; p < POLS; ++p) {
            /* cells that nothing reached may be another part's, see tess_gcf_device.h
             */
            if (u + n * LINES >= job.nu || v >= job.nv ||
                (sum[n][p].x == 0 && sum[n][p].y == 0))
                continue;
            C *cell = (C *)job.cells + p * job.pol_stride +
                      (int64_t)(u + n * LINES) * job.nv + v;
            cell->x += sum[n][p].x;
            cell->y += sum[n][p].y;
        }
}

/* Stripes are launched one after another, as the study has them. */
template <typename R, int POLS, int CELLS, int BLOCKS = 0>
tess_status launch(const gcf_cuda_job &job)
{
    tess_status status = TESS_OK;
    const tess_study_probes *probes = study_probes_of(job);
    const int64_t tiles = (int64_t)job.tiles_u * job.tiles_v;
    const int stripes = max(probes->stripes, 1), lines = TILE / stripes;
    const int most = TILE * lines / CELLS; /* threads that a stripe has work for */
    const int threads = probes->block > 0 ? min(probes->block, most) : most;
    const bool whole = threads == TILE * TILE / CELLS;
    const stripe all = {0, most / threads};
    if (whole)
        tess_launch(gather_kernel<R, POLS, CELLS, true, BLOCKS>, tiles, threads, 0, job,
                   all);
    for (int k = 0; k < stripes && !whole; ++k) {
        const stripe of = {k * lines, all.blocks};
        tess_launch(gather_kernel<R, POLS, CELLS, false, 0>, tiles * of.blocks, threads,
                   0, job, of);
    }
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

template <typename R, int POLS> tess_status run(const gcf_cuda_job &job)
{
    const int cells = study_probes_of(job)->cells > 0 ? study_probes_of(job)->cells
                                                      : (int)CELLS_USUAL;
    if (study_probes_of(job)->bounds == STUDY_FEW_BLOCKS)
        return launch<R, POLS, CELLS_USUAL, STUDY_FEW_BLOCKS>(job);
    if (study_probes_of(job)->bounds == STUDY_MANY_BLOCKS)
        return launch<R, POLS, CELLS_USUAL, STUDY_MANY_BLOCKS>(job);
    return cells == 2   ? launch<R, POLS, 2>(job)
           : cells == 4 ? launch<R, POLS, 4>(job)
                        : launch<R, POLS, 8>(job);
}

} // namespace

gcf_cuda_order study_grid_gather_order(const gcf_cuda_job &)
{
    return {TILE, TILE, false, false, false, 0};
}

tess_status study_grid_gather(const gcf_cuda_job &job)
{
    return GCF_BY_TYPE(job, run, job);
}
