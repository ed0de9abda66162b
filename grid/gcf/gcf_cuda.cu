/* The work that every strategy on a GPU begins and ends with: it brings the table to
 * the device, places points on their cells, sorts them, and takes times. */
#include "gcf_cuda.cuh"

#include "tess_log.h"
#include "tess_mem.h"

struct gcf_on_device {
    const tess_gcf_plan *plan;
    void *taps, *single_taps;
    gcf_cuda_plane *plane;
    gcf_cuda_factors *factors;
};

namespace
{

enum { THREADS = 256, LAST_LANE = 31, COUNTERS = 3, EVENTS = 3, NEAR = 8 };

unsigned blocks_for(int64_t threads)
{
    return (unsigned)((threads + THREADS - 1) / THREADS);
}

/* What the placing kernel needs, as gcf_grid.c has it. */
struct place_args {
    int64_t count;
    const double *u, *v, *w; /* w may be NULL */
    const int32_t *line;     /* or NULL */
    gcf_cuda_planes planes;
    int oversampling, half_offsets, lines, nv;
    bool is_uneven;
    gcf_cuda_place *place;
    unsigned long long *left_out, *point_cells, *near;
    void *zero; /* visibilities of points outside become 0; or NULL */
    int num_pol, vis_bytes;
    bool planar;
};

/* Computes a footprint on one axis, as gcf_place.c does. */
struct axis_place {
    int first, offset;
    bool flip;
};

__device__ bool place_axis(const place_args &args, int support, double at, int cells,
                           bool conjugate, axis_place *to)
{
    const int q = args.oversampling;
    const double fine = floor(__dadd_rn(__dmul_rn(at, (double)q), 0.5));
    if (!(fine >= 0 && fine < (double)q * (double)cells)) return false;
    const int64_t whole = (int64_t)fine;
    const int cell = (int)(whole / q) + 1 - support / 2, part = (int)(whole % q);
    if (cell < 0 || cell + support > cells) return false;
    to->first = cell;
    to->flip = args.is_uneven ? conjugate : part >= args.half_offsets;
    to->offset = to->flip ? q - part : part;
    return true;
}

/* Places point k. Returns its support, or 0 if it lies outside. */
__device__ int place_point(const place_args &args, int64_t k, gcf_cuda_place *at)
{
    const double w = args.w ? args.w[k] : 0;
    if (!isfinite(w)) return 0;
    const int plane = gcf_nearest_plane(args.planes, w);
    const int support = args.planes.plane[plane].support;
    axis_place u, v;
    if (!place_axis(args, support, args.u[k], args.lines, w < 0, &u) ||
        !place_axis(args, support, args.v[k], args.nv, w < 0, &v))
        return 0;
    at->kernel = (uint32_t)(plane | u.offset << GCF_PLANE_BITS |
                            v.offset << (GCF_PLANE_BITS + GCF_OFFSET_BITS));
    at->kernel |= (u.flip ? GCF_FLIP_U : 0) | (v.flip ? GCF_FLIP_V : 0) |
                  (w < 0 ? GCF_CONJUGATE : 0);
    at->u = u.first + (args.line ? args.line[k] : 0);
    at->v = v.first;
    return support;
}

__device__ unsigned long long warp_sum(unsigned long long x)
{
    for (int k = 16; k > 0; k /= 2)
        x += __shfl_down_sync(0xffffffffu, x, k);
    return x;
}

/* Whether a point lies within NEAR cells of the point of the lane before. That of the
 * first lane does not count. */
__device__ bool is_near(const gcf_cuda_place &at)
{
    const int before_u = __shfl_up_sync(0xffffffffu, at.u, 1);
    const int before_v = __shfl_up_sync(0xffffffffu, at.v, 1);
    const uint32_t before = __shfl_up_sync(0xffffffffu, at.kernel, 1);
    return threadIdx.x % (LAST_LANE + 1) > 0 && at.kernel != GCF_OUTSIDE &&
           before != GCF_OUTSIDE && abs(at.u - before_u) <= NEAR &&
           abs(at.v - before_v) <= NEAR;
}

__device__ void zero_vis(const place_args &args, int64_t k)
{
    for (int p = 0; p < args.num_pol; ++p) {
        const int64_t at = args.planar ? p * args.count + k : k * args.num_pol + p;
        char *vis = (char *)args.zero + at * args.vis_bytes;
        for (int b = 0; b < args.vis_bytes; b += 8)
            *(double *)(vis + b) = 0;
    }
}

/* A thread works on a point. */
__global__ void place_kernel(place_args args)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    unsigned long long outside = 0, cells = 0;
    gcf_cuda_place at = {0, 0, GCF_OUTSIDE, (uint32_t)k};
    if (k < args.count) {
        const int support = place_point(args, k, &at);
        if (support > 0) {
            cells = (unsigned long long)support * support;
        } else {
            outside = 1;
            if (args.zero) zero_vis(args, k);
        }
        args.place[k] = at;
    }
    const unsigned near = __ballot_sync(0xffffffffu, is_near(at));
    outside = warp_sum(outside);
    cells = warp_sum(cells);
    if (threadIdx.x % 32 == 0) {
        if (outside > 0) atomicAdd(args.left_out, outside);
        if (cells > 0) atomicAdd(args.point_cells, cells);
        if (near) atomicAdd(args.near, (unsigned long long)__popc(near));
    }
}

/* Device memory of a call. */
struct call {
    gcf_cuda_place *place;
    unsigned long long *counter;
    gcf_cuda_sorted sorted;
    cudaEvent_t event[EVENTS]; /* begun, sorted, done */
};

void call_free(call *c)
{
    void *memory[] = {c->place, c->counter};
    for (size_t k = 0; k < sizeof memory / sizeof *memory; ++k)
        tess_device_free(memory[k]);
    gcf_cuda_sorted_free(&c->sorted);
    for (int k = 0; k < EVENTS; ++k)
        if (c->event[k]) (void)cudaEventDestroy(c->event[k]);
}

tess_status place_all(const gcf_on_device *with, const gcf_device_points *points,
                      const gcf_device_cells *cells, gcf_cuda_job *job, bool degrid,
                      call *c, tess_gcf_report *report)
{
    tess_status status = TESS_OK;
    unsigned long long counter[COUNTERS] = {0};
    double pairs = 0;
    place_args args;
    args.count = points->count;
    args.u = points->u;
    args.v = points->v;
    args.w = points->w;
    args.line = points->line;
    args.planes = gcf_cuda_planes_of(with);
    args.oversampling = job->table.oversampling;
    args.half_offsets = job->table.half_offsets;
    args.is_uneven = with->plan->gcf->layout.is_uneven;
    args.lines = (int)cells->part_lines;
    args.nv = job->nv;
    args.place = c->place;
    args.left_out = c->counter;
    args.point_cells = c->counter + 1;
    args.near = c->counter + 2;
    args.zero = degrid ? job->vis : NULL;
    args.vis_bytes = (int)gcf_value_bytes(with->plan->gcf);
    args.num_pol = job->num_pol;
    args.planar = job->planar;
    tess_launch(place_kernel, blocks_for(points->count), THREADS, 0, args);
    TESS_CUDA_LAUNCHED();
    TESS_TRY(tess_device_download(counter, c->counter, sizeof counter));
    report->left_out = (int64_t)counter[0];
    report->point_cells = (int64_t)counter[1];
    job->placed = c->place;
    job->num_placed = points->count;
    job->count = points->count - report->left_out;
    pairs = (double)job->count * LAST_LANE / (LAST_LANE + 1); /* of lanes */
    job->near_share = pairs > 0 ? (double)counter[2] / pairs : 0;
cleanup:
    return status;
}

tess_status begin(int64_t count, call *c)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < EVENTS; ++k)
        TESS_CUDA(cudaEventCreate(&c->event[k]));
    TESS_TRY(gcf_take(count, "places of points", &c->place));
    TESS_TRY(gcf_take(COUNTERS, "counters", &c->counter));
    TESS_TRY(tess_device_zero(c->counter, COUNTERS * sizeof *c->counter));
cleanup:
    return status;
}

/* Fills in what is known of a job without points and cells. */
gcf_cuda_job job_with(const gcf_on_device *with, int num_pol)
{
    const tess_gcf *gcf = with->plan->gcf;
    gcf_cuda_job job = {};
    job.table.taps = with->taps;
    job.table.single_taps = with->single_taps;
    job.table.zero_tap = gcf->num_values;
    job.table.plane = with->plane;
    job.table.formula = gcf->formula;
    job.table.num_planes = gcf->layout.num_planes;
    job.table.half_offsets = gcf->half_offsets;
    job.table.oversampling = gcf->layout.oversampling;
    job.table.max_support = job.table.min_support = gcf->max_support;
    for (int p = 0; p < job.table.num_planes; ++p)
        if (gcf->plane[p].support < job.table.min_support)
            job.table.min_support = gcf->plane[p].support;
    job.is_double = gcf->layout.is_double;
    job.num_pol = num_pol;
    job.host.with = with;
    job.host.plan = with->plan;
    return job;
}

gcf_cuda_job job_of(const gcf_on_device *with, const gcf_device_points *points,
                    const gcf_device_cells *cells)
{
    gcf_cuda_job job = job_with(with, points->num_pol);
    job.vis = points->vis;
    job.num_vis = points->count;
    job.planar = points->planar;
    job.cells = cells->data;
    job.nu = (int)cells->nu;
    job.nv = (int)cells->nv;
    job.pol_stride = cells->pol_stride;
    return job;
}

tess_status times(const call &c, tess_gcf_report *report)
{
    tess_status status = TESS_OK;
    float ms[2] = {0, 0};
    for (int k = 0; k < 2; ++k)
        TESS_CUDA(cudaEventElapsedTime(&ms[k], c.event[k], c.event[k + 1]));
    report->sort_s = 1e-3 * (double)ms[0];
    report->seconds = 1e-3 * (double)ms[1];
    report->busy_share = 1;
cleanup:
    return status;
}

} // namespace

const gcf_cuda_factors *gcf_cuda_factors_of(const gcf_on_device *with)
{
    return with->factors;
}

/* Brings the values of a table to the device, with a zero behind them. */
static tess_status upload_taps(const void *from, int64_t bytes, int64_t value_bytes,
                               void **to)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_device_alloc(bytes + value_bytes, "w-kernels", to));
    TESS_TRY(tess_device_upload(*to, from, bytes));
    TESS_TRY(tess_device_zero((char *)*to + bytes, value_bytes));
cleanup:
    return status;
}

/* Makes a table of double precision one of single precision. */
static tess_status upload_single(const tess_gcf *gcf, void **to)
{
    tess_status status = TESS_OK;
    const int64_t values = 2 * gcf->num_values, value_bytes = 2 * sizeof(float);
    float *single = (float *)tess_alloc(values, sizeof *single);
    if (!single) TESS_FAIL(TESS_ERR_ALLOC, "w-kernels in single precision");
    for (int64_t k = 0; k < values; ++k)
        single[k] = (float)((const double *)gcf->data)[k];
    TESS_TRY(upload_taps(single, gcf->num_values * value_bytes, value_bytes, to));
cleanup:
    tess_free(single);
    return status;
}

void gcf_device_name(char *name, int size)
{
    name[0] = '\0';
    if (!tess_device_present()) return;
    tess_device_text(name, size);
    for (char *c = name; *c; ++c) {
        const bool plain = (*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') ||
                           (*c >= 'a' && *c <= 'z');
        if (*c == ',') { /* the memory that is free follows */
            *c = '\0';
            break;
        }
        if (!plain) *c = '-';
    }
}

tess_status gcf_device_create(const tess_gcf_plan *plan, gcf_on_device **out)
{
    tess_status status = TESS_OK;
    const tess_gcf *gcf = plan->gcf;
    const int anywhere = -1;
    gcf_cuda_plane *plane = NULL;
    gcf_on_device *made = (gcf_on_device *)tess_alloc_zero(1, sizeof *made);
    if (!made) TESS_FAIL(TESS_ERR_ALLOC, "gridding plan");
    made->plan = plan;
    if (!tess_device_present())
        TESS_FAIL(TESS_ERR_RESOURCE, "gridding on a GPU: there is none that will do");
    TESS_TRY(tess_device_start(&anywhere, 0, 1));
    tess_device_threads(plan->opts.threads);
    plane = (gcf_cuda_plane *)tess_alloc_zero(gcf->layout.num_planes, sizeof *plane);
    if (!plane) TESS_FAIL(TESS_ERR_ALLOC, "planes of w-kernels");
    for (int p = 0; p < gcf->layout.num_planes; ++p) {
        plane[p].offset = gcf->plane[p].offset;
        plane[p].support = gcf->plane[p].support;
        plane[p].w = gcf->plane[p].w_lambda;
    }
    TESS_TRY(tess_device_copy_of(plane, gcf->layout.num_planes * (int64_t)sizeof *plane,
                                 "planes of w-kernels", (const void **)&made->plane));
    TESS_TRY(upload_taps(gcf->data, tess_gcf_bytes(gcf), (int64_t)gcf_value_bytes(gcf),
                         &made->taps));
    if (plan->opts.single_taps && gcf->layout.is_double)
        TESS_TRY(upload_single(gcf, &made->single_taps));
    if (plan->factors) TESS_TRY(gcf_cuda_factors_create(plan, &made->factors));
    *out = made;
    made = NULL;
cleanup:
    tess_free(plane);
    gcf_device_destroy(made);
    return status;
}

void gcf_device_destroy(gcf_on_device *made)
{
    if (!made) return;
    tess_device_free(made->taps);
    tess_device_free(made->single_taps);
    tess_device_free(made->plane);
    gcf_cuda_factors_destroy(made->factors);
    tess_free(made);
}

gcf_cuda_planes gcf_cuda_planes_of(const gcf_on_device *with)
{
    const tess_gcf *gcf = with->plan->gcf;
    gcf_cuda_planes planes;
    planes.plane = with->plane;
    planes.count = gcf->layout.num_planes;
    planes.by_root = gcf->layout.spacing == TESS_GCF_SQRT;
    planes.scale = gcf->scale;
    return planes;
}

/* Allocates places, keys and indices, which are sorted from one array to another, and
 * what sorting takes: for each point, or, if tiles list the points that meet them, for
 * each entry of these lists; and for entries of factors. */
int64_t gcf_device_point_bytes(const gcf_on_device *with, int num_pol, bool degrid)
{
    enum { PLACE = 16, SORTED = 2 * (8 + 4) + 16, ENTRY = 48 };
    const gcf_cuda_job job = job_with(with, num_pol);
    const gcf_device_method *method = with->plan->opts.strategy->device(degrid);
    gcf_cuda_order order = {};
    int64_t entries = 1, rank = 0;
    if (method && method->order) order = method->order(job);
    if (order.meeting)
        entries = ((int64_t)job.table.max_support / order.tile_u + 2) *
                  (job.table.max_support / order.tile_v + 2);
    for (int p = 0; p < job.table.num_planes; ++p)
        if (tess_gcf_plan_rank(with->plan, p) > rank)
            rank = tess_gcf_plan_rank(with->plan, p);
    return PLACE + (PLACE + SORTED) * entries + ENTRY * rank * (degrid ? 1 : num_pol);
}

tess_status gcf_device_run_there(const gcf_on_device *with,
                                 const gcf_device_points *points,
                                 const gcf_device_cells *cells, bool degrid,
                                 tess_gcf_report *report)
{
    tess_status status = TESS_OK;
    const tess_gcf_strategy *strategy = with->plan->opts.strategy;
    const gcf_device_method *method = strategy->device(degrid);
    gcf_cuda_job job = job_of(with, points, cells);
    call c = {};
    if (!method)
        TESS_FAIL(TESS_ERR_USAGE, "no strategy '%s' to %s on a GPU", strategy->name,
                  degrid ? "degrid" : "grid");
    if (points->count > INT32_MAX || cells->nu > INT32_MAX || cells->nv > INT32_MAX)
        TESS_FAIL(TESS_ERR_USAGE,
                  "%lld points at a time on %lld × %lld cells of a GPU: at most %d of "
                  "each",
                  (long long)points->count, (long long)cells->nu, (long long)cells->nv,
                  INT32_MAX);
    if (points->count == 0) goto cleanup;
    TESS_TRY(begin(points->count, &c));
    TESS_CUDA(cudaEventRecord(c.event[0], tess_device_stream()));
    TESS_TRY(place_all(with, points, cells, &job, degrid, &c, report));
    job.host.report = report;
    job.host.sorted = c.event[1];
    if (method->order) job.order = method->order(job);
    report->kept_order = job.order.tile_u == 0 && !job.order.by_kernel;
    if (method->placed) TESS_TRY(method->placed(job));
    if (job.count > 0) TESS_TRY(gcf_cuda_sort(points->count, &job, &c.sorted));
    TESS_CUDA(cudaEventRecord(c.event[1], tess_device_stream()));
    if (job.count > 0 || job.num_narrow > 0) TESS_TRY(method->run(job));
    TESS_CUDA(cudaEventRecord(c.event[2], tess_device_stream()));
    TESS_TRY(tess_device_wait());
    TESS_TRY(times(c, report));
cleanup:
    call_free(&c);
    return status;
}

tess_status gcf_cuda_upload_points(const tess_gcf_points *points, double **memory,
                                   gcf_device_points *there)
{
    tess_status status = TESS_OK;
    const int64_t count = points->count, bytes = count * (int64_t)sizeof(double);
    const double *const from[3] = {points->u, points->v, points->w};
    there->count = count;
    there->num_pol = points->num_pol;
    TESS_TRY(gcf_take(3 * count, "coordinates of points", memory));
    for (int k = 0; k < 3; ++k)
        if (from[k]) TESS_TRY(tess_device_upload(*memory + k * count, from[k], bytes));
    there->u = *memory;
    there->v = *memory + count;
    there->w = points->w ? *memory + 2 * count : NULL;
cleanup:
    return status;
}

tess_status gcf_device_run(const tess_gcf_plan *plan, const tess_gcf_points *points,
                           const tess_gcf_cells *cells, bool degrid,
                           tess_gcf_report *report)
{
    tess_status status = TESS_OK;
    const int64_t value = (int64_t)gcf_value_bytes(plan->gcf) * points->num_pol;
    const int64_t vis_bytes = points->count * value;
    const int64_t cell_bytes = cells->nu * cells->nv * value;
    gcf_device_points there = {};
    gcf_device_cells grid = {};
    double *coordinates = NULL;
    if (points->count == 0) return TESS_OK;
    TESS_TRY(gcf_cuda_upload_points(points, &coordinates, &there));
    TESS_TRY(tess_device_alloc(vis_bytes, "visibilities", &there.vis));
    TESS_TRY(tess_device_alloc(cell_bytes, "a grid", &grid.data));
    if (!degrid) TESS_TRY(tess_device_upload(there.vis, points->vis, vis_bytes));
    TESS_TRY(tess_device_upload(grid.data, cells->data, cell_bytes));
    grid.part_lines = grid.nu = cells->nu;
    grid.nv = cells->nv;
    grid.pol_stride = cells->nu * cells->nv;
    TESS_TRY(gcf_device_run_there(plan->device, &there, &grid, degrid, report));
    TESS_TRY(degrid ? tess_device_download(points->vis, there.vis, vis_bytes)
                    : tess_device_download(cells->data, grid.data, cell_bytes));
cleanup:
    tess_device_free(there.vis);
    tess_device_free(grid.data);
    tess_device_free(coordinates);
    return status;
}
