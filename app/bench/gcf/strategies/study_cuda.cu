/* Runs the strategies for comparison on a GPU: the methods of the strategies, the
 * probes that all strategies have, copies and repetitions. */
#include "study_cuda.cuh"
#include "tess_gcf_cuda_warp.cuh"

namespace
{

enum { THREADS = 256 };

/* ---- warp ---- */

template <int HOW> struct add_otherwise {
    static constexpr bool pairs = false;
    template <typename C> __device__ static inline void add(C *to, C value)
    {
        study_add_cell<HOW>(to, value);
    }
};

template <typename R, int POLS> tess_status run_warps(const gcf_cuda_job &job)
{
    const tess_study_probes *probes = study_probes_of(job);
    const int threads = probes->block > 0 ? probes->block : (int)GCF_WARP_THREADS;
    if (probes->atomics == TESS_STUDY_NATIVE)
        return gcf_launch_by_warp<R, POLS, gcf_add_native>(job, threads);
    if (probes->atomics == TESS_STUDY_CAS)
        return gcf_launch_by_warp<R, POLS, add_otherwise<TESS_STUDY_CAS>>(job, threads);
    return gcf_launch_by_warp<R, POLS, add_otherwise<TESS_STUDY_PLAIN>>(job, threads);
}

tess_status grid_warp(const gcf_cuda_job &job)
{
    return GCF_BY_TYPE(job, run_warps, job);
}

/* ---- probes ---- */

tess_study_plan *plan_of(const gcf_cuda_job &job)
{
    return (tess_study_plan *)job.host.plan->opts.context;
}

unsigned blocks_for(int64_t threads)
{
    return (unsigned)((threads + THREADS - 1) / THREADS);
}

/* The order of points that the strategy likes, or the one asked for. */
template <bool DEGRID> gcf_cuda_order probed_order(const gcf_cuda_job &job)
{
    const gcf_device_method *base = plan_of(job)->base->device(DEGRID);
    const tess_gcf_sort sort = study_probes_of(job)->sort;
    gcf_cuda_order order = {};
    if (base->order) order = base->order(job);
    if (sort != TESS_GCF_SORT_CHOSEN) order.by_kernel = sort != TESS_GCF_SORT_TILE;
    order.by_layer = sort == TESS_GCF_SORT_LAYER;
    return order;
}

__global__ void split_kernel(int64_t count, const gcf_cuda_place *from,
                             gcf_cuda_arrays to)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (k >= count) return;
    to.u[k] = from[k].u;
    to.v[k] = from[k].v;
    to.kernel[k] = from[k].kernel;
    to.point[k] = from[k].point;
}

/* Points as arrays, in order, in memory that the caller frees. */
tess_status split(gcf_cuda_job *job, int32_t **memory)
{
    tess_status status = TESS_OK;
    gcf_cuda_arrays array;
    TESS_TRY(gcf_take(4 * job->count, "arrays of points", memory));
    array.u = *memory;
    array.v = array.u + job->count;
    array.kernel = (uint32_t *)(array.v + job->count);
    array.point = array.kernel + job->count;
    tess_launch(split_kernel, blocks_for(job->count), THREADS, 0, job->count, job->place,
               array);
    TESS_CUDA_LAUNCHED();
    job->array = array;
cleanup:
    return status;
}

/* Once, or as often as the plan's meter is to see. */
tess_status run_method(const gcf_device_method &method, const gcf_cuda_job &job)
{
    tess_status status = TESS_OK;
    tess_study_plan *plan = plan_of(job);
    if (!plan->metering) return method.run(job);
    TESS_TRY(tess_device_wait());
    plan->meter(plan->context, false);
    for (int k = 0; k < plan->repeat; ++k)
        TESS_TRY(method.run(job));
    TESS_TRY(tess_device_wait());
    plan->meter(plan->context, true);
    plan->metering = false;
cleanup:
    return status;
}

template <bool DEGRID> tess_status probed_run(const gcf_cuda_job &job)
{
    tess_status status = TESS_OK;
    gcf_cuda_job other = job;
    int32_t *memory = NULL;
    if (study_probes_of(job)->arrays && job.count > 0) {
        TESS_TRY(split(&other, &memory));
        TESS_CUDA(cudaEventRecord(job.host.sorted, tess_device_stream()));
    }
    TESS_TRY(run_method(*plan_of(job)->base->device(DEGRID), other));
    if (memory) TESS_TRY(tess_device_wait());
cleanup:
    tess_device_free(memory);
    return status;
}

/* ---- the active box ---- */

/* Atomics of a warp where it has more to say than others have said. */
__device__ void warp_largest(int x, int *most)
{
    for (int k = 16; k > 0; k /= 2)
        x = max(x, __shfl_down_sync(0xffffffffu, x, k));
    if (threadIdx.x % 32 == 0 && x > *(volatile int *)most) atomicMax(most, x);
}

/* A point a thread: the largest −u, −v, u and v beyond, of footprints. */
__global__ void box_kernel(int64_t count, const gcf_cuda_place *place,
                           const gcf_cuda_plane *plane, int *box)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    int low_u = INT32_MIN, low_v = INT32_MIN, end_u = INT32_MIN, end_v = INT32_MIN;
    if (k < count && place[k].kernel != GCF_OUTSIDE) {
        const int support = plane[gcf_plane_of(place[k].kernel)].support;
        low_u = -place[k].u;
        low_v = -place[k].v;
        end_u = place[k].u + support;
        end_v = place[k].v + support;
    }
    warp_largest(low_u, &box[0]);
    warp_largest(low_v, &box[1]);
    warp_largest(end_u, &box[2]);
    warp_largest(end_v, &box[3]);
}

/* The box of all footprints. */
tess_status find_box(const gcf_cuda_job &job, tess_study_box *box)
{
    static const int lowest[4] = {INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN};
    tess_status status = TESS_OK;
    int found[4], *extremes = NULL;
    TESS_TRY(gcf_take(4, "a box", &extremes));
    TESS_TRY(tess_device_upload(extremes, lowest, sizeof lowest));
    tess_launch(box_kernel, blocks_for(job.num_placed), THREADS, 0, job.num_placed,
               job.placed, job.table.plane, extremes);
    TESS_CUDA_LAUNCHED();
    TESS_TRY(tess_device_download(found, extremes, sizeof found));
    if (job.count > 0)
        *box = {-found[0], -found[1], (int64_t)found[2] + found[0],
                (int64_t)found[3] + found[1]};
cleanup:
    tess_device_free(extremes);
    return status;
}

/* A grid on the host, and what of it is on the device. */
struct host_grid {
    const tess_gcf_cells *cells;
    const study_memory *memory;
    tess_study_box box;
    bool whole;        /* the box is the whole grid */
    double box_copy_s; /* amid placing and sorting */
};

/* Cells of the box up or down, which waits; their time is reported. */
tess_status copy_cells(const gcf_cuda_job &job, bool up, const host_grid &host,
                       tess_study_copies *copies)
{
    tess_status status = TESS_OK;
    double start = 0;
    TESS_TRY(tess_device_wait());
    start = tess_time_now();
    TESS_TRY(study_copy_cells(job, up, host.cells->data, &host.box, host.memory));
    TESS_TRY(tess_device_wait());
    copies->cells_s += tess_time_now() - start;
cleanup:
    return status;
}

/* The box of all footprints, and its cells on the device. Degridders also read cells
 * around it, which taps of 0 then meet: these must be numbers. */
tess_status copy_box(const gcf_cuda_job &job, bool degrid)
{
    tess_status status = TESS_OK;
    tess_study_plan *plan = plan_of(job);
    host_grid *host = (host_grid *)plan->host;
    const int64_t bytes =
        job.pol_stride * job.num_pol * (int64_t)gcf_value_bytes(job.host.plan->gcf);
    double start = 0;
    if (host->whole || plan->metering) return TESS_OK;
    TESS_TRY(find_box(job, &host->box));
    plan->copies.box = host->box;
    start = tess_time_now();
    if (degrid) TESS_TRY(tess_device_zero(job.cells, bytes));
    TESS_TRY(copy_cells(job, true, *host, &plan->copies));
    host->box_copy_s = tess_time_now() - start;
cleanup:
    return status;
}

tess_status placed_to_grid(const gcf_cuda_job &job)
{
    return copy_box(job, false);
}

tess_status placed_to_degrid(const gcf_cuda_job &job)
{
    return copy_box(job, true);
}

const gcf_device_method grid_method[TESS_STUDY_NUM_STRATEGIES] = {
    {}, /* serial, atomic, tiled, factored */
    {},
    {},
    {},
    {NULL, NULL, study_grid_scatter},
    {study_grid_gather_order, NULL, study_grid_gather},
    {study_grid_window_order, NULL, study_grid_window},
    {study_grid_window_order, NULL, study_grid_coarse},
    {NULL, NULL, grid_warp},
};

const gcf_device_method degrid_method[TESS_STUDY_NUM_STRATEGIES] = {
    {},
    {},
    {},
    {},
    {study_degrid_scatter_order, NULL, study_degrid_scatter},
    {NULL, NULL, study_degrid_gather},
    {NULL, NULL, study_degrid_window},
    {}, /* coarse, warp */
    {},
    {NULL, NULL, study_degrid_computed},
};

/* The job of a call, as far as copies need it. */
gcf_cuda_job job_of(const tess_gcf_plan *plan, const gcf_device_points *points,
                    const gcf_device_cells *cells)
{
    gcf_cuda_job job = {};
    job.is_double = plan->gcf->layout.is_double;
    job.planar = points->planar;
    job.num_vis = points->count;
    job.num_pol = points->num_pol;
    job.nv = (int)cells->nv;
    job.pol_stride = cells->pol_stride;
    job.host.plan = plan;
    return job;
}

/* Repeats the kernels of a call that is done. */
tess_status repeat(tess_study_plan *plan, const gcf_device_points *points,
                   const gcf_device_cells *cells, bool degrid)
{
    tess_status status = TESS_OK;
    tess_gcf_report unused = {};
    plan->metering = true;
    TESS_TRY(gcf_device_run_there(tess_gcf_plan_device(plan->core), points, cells,
                                  degrid, &unused));
    if (plan->metering) { /* there are no kernels without points */
        plan->meter(plan->context, false);
        plan->meter(plan->context, true);
    }
cleanup:
    plan->metering = false;
    return status;
}

} // namespace

const gcf_device_method *study_device_method(tess_study_strategy strategy, bool degrid)
{
    const gcf_device_method *method = (degrid ? degrid_method : grid_method) + strategy;
    return method->run ? method : NULL;
}

const gcf_device_method *study_device_probed(bool degrid)
{
    static const gcf_device_method method[2] = {
        {probed_order<false>, placed_to_grid, probed_run<false>},
        {probed_order<true>, placed_to_degrid, probed_run<true>}};
    return &method[degrid];
}

tess_status study_device_run(const tess_gcf_plan *core, const tess_gcf_points *points,
                             const tess_gcf_cells *cells, bool degrid,
                             tess_gcf_report *report)
{
    tess_status status = TESS_OK;
    const double start = tess_time_now();
    tess_study_plan *plan = (tess_study_plan *)core->opts.context;
    gcf_device_points there = {};
    gcf_device_cells grid = {};
    study_memory memory = {};
    host_grid host = {};
    gcf_cuda_job job;
    double *coordinates = NULL;
    if (!plan->base->device(degrid))
        TESS_FAIL(TESS_ERR_USAGE, "no strategy '%s' to %s on a GPU", plan->base->name,
                  degrid ? "degrid" : "grid");
    if (points->count == 0) return TESS_OK;
    TESS_TRY(gcf_cuda_upload_points(points, &coordinates, &there));
    there.planar = plan->opts.probes.arrays;
    grid.part_lines = grid.nu = cells->nu;
    grid.nv = cells->nv;
    grid.pol_stride = cells->nu * cells->nv;
    job = job_of(core, &there, &grid);
    host.cells = cells;
    host.memory = &memory;
    host.whole = !plan->opts.probes.active_box;
    TESS_TRY(study_memory_take(job, &memory));
    if (!degrid) TESS_TRY(study_copy_vis(job, true, points->vis, &memory));
    there.vis = memory.vis;
    grid.data = memory.cells;
    if (host.whole) {
        host.box = {0, 0, cells->nu, cells->nv};
        TESS_TRY(copy_cells(job, true, host, &plan->copies));
    }
    plan->host = &host;
    TESS_TRY(gcf_device_run_there(core->device, &there, &grid, degrid, report));
    report->sort_s -= host.box_copy_s;
    TESS_TRY(degrid ? study_copy_vis(job, false, points->vis, &memory)
                    : copy_cells(job, false, host, &plan->copies));
    plan->copies.copy_s = tess_time_now() - start - report->sort_s - report->seconds;
    if (plan->repeat > 0) TESS_TRY(repeat(plan, &there, &grid, degrid));
cleanup:
    study_memory_free(&memory);
    tess_device_free(coordinates);
    return status;
}
