/** @file study_cuda.cuh  (private to app/bench/gcf/strategies/)
 *  What the strategies for comparison share on a GPU: ways of adding to cells, launch
 *  bounds, and the probes of a job.
 */
#ifndef TESS_STUDY_CUDA_CUH
#define TESS_STUDY_CUDA_CUH

#include "study_plan.h"
#include "tess_gcf_cuda.cuh"
#include "tess_gcf_cuda_degrid.cuh"
#include "tess_log.h"

/** The probes of a job's plan. */
inline const tess_study_probes *study_probes_of(const gcf_cuda_job &job)
{
    return study_probes_in(job.host.plan->opts.context);
}

enum { STUDY_MOST_THREADS = 512, STUDY_FEW_BLOCKS = 4, STUDY_MANY_BLOCKS = 8 };

/** Launch bounds of a kernel. Blocks have MOST threads; with ANY they have at most
 * MOST. BLOCKS blocks have registers on a multiprocessor at a time; 0: the compiler
 * chooses, which differs from 1. */
template <int MOST, int BLOCKS = 0, bool ANY = false> struct study_bounds {
    static constexpr int most = MOST, blocks = BLOCKS;
    static constexpr bool any = ANY;
    __device__ static int threads()
    {
        return ANY ? (int)blockDim.x : MOST;
    }
};

/** Add to a number by compare and swap. */
__device__ inline void study_add_cas(float *to, float value)
{
    unsigned *bits = (unsigned *)to, seen = __float_as_uint(*to), expected;
    do {
        expected = seen;
        seen = atomicCAS(bits, expected,
                         __float_as_uint(__uint_as_float(expected) + value));
    } while (seen != expected);
}

__device__ inline void study_add_cas(double *to, double value)
{
    typedef unsigned long long word;
    word *bits = (word *)to, seen = (word)__double_as_longlong(*to), expected;
    do {
        expected = seen;
        const double sum = __longlong_as_double((long long)expected) + value;
        seen = atomicCAS(bits, expected, (word)__double_as_longlong(sum));
    } while (seen != expected);
}

/** Add to a cell as a tess_study_atomics says. */
template <int HOW, typename C> __device__ inline void study_add_cell(C *to, C value)
{
    if (HOW == TESS_STUDY_NATIVE) {
        add_complex(to, value);
    } else if (HOW == TESS_STUDY_CAS) {
        study_add_cas(&to->x, value.x);
        study_add_cas(&to->y, value.y);
    } else {
        to->x += value.x;
        to->y += value.y;
    }
}

/** function<R, POLS, HOW>(arguments) for the job's way of adding. */
#define STUDY_BY_ATOMICS(job, R, POLS, function, ...)                                  \
    (study_probes_of(job)->atomics == TESS_STUDY_NATIVE                                \
         ? function<R, POLS, TESS_STUDY_NATIVE>(__VA_ARGS__)                           \
     : study_probes_of(job)->atomics == TESS_STUDY_CAS                                 \
         ? function<R, POLS, TESS_STUDY_CAS>(__VA_ARGS__)                              \
         : function<R, POLS, TESS_STUDY_PLAIN>(__VA_ARGS__))

/** Launch a kernel of a warp for each point, `threads` or what was asked for a block.
 */
template <typename K>
static tess_status study_launch_warps(const gcf_cuda_job &job, K kernel, int threads)
{
    tess_status status = TESS_OK;
    const int block =
        study_probes_of(job)->block > 0 ? study_probes_of(job)->block : threads;
    const int warps = block / GCF_WARP;
    tess_launch(kernel, (job.count + warps - 1) / warps, block, 0, job);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

/** Visibilities and grid of a call on the device; zeroed before. */
struct study_memory {
    void *vis, *cells;
    bool managed;
};
tess_status study_memory_take(const gcf_cuda_job &job, study_memory *memory);
void study_memory_free(study_memory *memory);

/** All visibilities, [num_vis][num_pol] `here` on the host, up or (waits) down. */
tess_status study_copy_vis(const gcf_cuda_job &job, bool up, void *here,
                           const study_memory *memory);

/** The cells of a box of a grid `here`, so too. */
tess_status study_copy_cells(const gcf_cuda_job &job, bool up, void *here,
                             const tess_study_box *box, const study_memory *memory);

/* Gridding, a file each. */
gcf_cuda_order study_grid_gather_order(const gcf_cuda_job &job);
tess_status study_grid_gather(const gcf_cuda_job &job);
gcf_cuda_order study_grid_window_order(const gcf_cuda_job &job);
tess_status study_grid_window(const gcf_cuda_job &job);
tess_status study_grid_coarse(const gcf_cuda_job &job);
tess_status study_grid_scatter(const gcf_cuda_job &job);

/* Degridding, alike. */
gcf_cuda_order study_degrid_scatter_order(const gcf_cuda_job &job);
tess_status study_degrid_scatter(const gcf_cuda_job &job);
tess_status study_degrid_gather(const gcf_cuda_job &job);
tess_status study_degrid_window(const gcf_cuda_job &job);
tess_status study_degrid_computed(const gcf_cuda_job &job);
#endif
