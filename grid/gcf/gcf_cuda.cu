/* What every strategy on a GPU begins and ends with: the table on the device, points
 * placed on their cells and sorted, times, copies. */
#include "gcf_cuda.cuh"

#include "tess_log.h"
#include "tess_mem.h"

struct gcf_cuda {
    const tess_gcf_plan *plan;
    void *taps, *single_taps;
    gcf_cuda_plane *plane;
    gcf_cuda_factors *factors;
};

namespace
{

enum { THREADS = 256, LAST_LANE = 31, COUNTERS = 4, NEAR = 8 };

const gcf_cuda_method none = {NULL, NULL};

gcf_cuda_method grid_method(tess_gcf_strategy strategy)
{
    switch (strategy) {
    case TESS_GCF_SCATTER:
        return {NULL, gcf_cuda_grid_scatter};
    case TESS_GCF_WARP:
        return {NULL, gcf_cuda_grid_warp};
    case TESS_GCF_GATHER:
        return {gcf_cuda_grid_gather_order, gcf_cuda_grid_gather};
    case TESS_GCF_WINDOW:
        return {gcf_cuda_grid_window_order, gcf_cuda_grid_window};
    case TESS_GCF_COARSE:
        return {gcf_cuda_grid_window_order, gcf_cuda_grid_coarse};
    case TESS_GCF_TILED:
        return {gcf_cuda_grid_tiled_order, gcf_cuda_grid_tiled};
    case TESS_GCF_FACTORED:
        return {gcf_cuda_factored_order, gcf_cuda_grid_factored};
    default:
        return none;
    }
}

gcf_cuda_method degrid_method(tess_gcf_strategy strategy)
{
    switch (strategy) {
    case TESS_GCF_TILED:
        return {gcf_cuda_degrid_tiled_order, gcf_cuda_degrid_tiled};
    case TESS_GCF_GATHER:
        return {NULL, gcf_cuda_degrid_gather};
    case TESS_GCF_SCATTER:
        return {gcf_cuda_degrid_scatter_order, gcf_cuda_degrid_scatter};
    case TESS_GCF_WINDOW:
        return {NULL, gcf_cuda_degrid_window};
    case TESS_GCF_COMPUTED:
        return {NULL, gcf_cuda_degrid_computed};
    case TESS_GCF_FACTORED:
        return {gcf_cuda_factored_order, gcf_cuda_degrid_factored};
    default:
        return none;
    }
}

gcf_cuda_method method_of(tess_gcf_strategy strategy, bool degrid)
{
    return degrid ? degrid_method(strategy) : grid_method(strategy);
}

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
    gcf_cuda_place *place;
    unsigned long long *left_out, *point_cells, *near;
    void *zero; /* visibilities of points outside become 0; or NULL */
    int vis_bytes;
};

__device__ bool place_axis(const place_args &args, int support, double at, int cells,
                           int *first, int *offset, bool *flip)
{
    const int q = args.oversampling;
    const double fine = floor(__dadd_rn(__dmul_rn(at, (double)q), 0.5));
    if (!(fine >= 0 && fine < (double)q * (double)cells)) return false;
    const int64_t whole = (int64_t)fine;
    const int cell = (int)(whole / q) + 1 - support / 2, part = (int)(whole % q);
    if (cell < 0 || cell + support > cells) return false;
    *first = cell;
    *flip = part >= args.half_offsets;
    *offset = *flip ? q - part : part;
    return true;
}

__device__ unsigned long long warp_sum(unsigned long long x)
{
    for (int k = 16; k > 0; k /= 2)
        x += __shfl_down_sync(0xffffffffu, x, k);
    return x;
}

/* Does a point lie within NEAR cells of that of the lane before? The first lane's does
 * not count. */
__device__ bool is_near(const gcf_cuda_place &at)
{
    const int before_u = __shfl_up_sync(0xffffffffu, at.u, 1);
    const int before_v = __shfl_up_sync(0xffffffffu, at.v, 1);
    const uint32_t before = __shfl_up_sync(0xffffffffu, at.kernel, 1);
    return threadIdx.x % (LAST_LANE + 1) > 0 && at.kernel != GCF_OUTSIDE &&
           before != GCF_OUTSIDE && abs(at.u - before_u) <= NEAR &&
           abs(at.v - before_v) <= NEAR;
}

/* A point a thread. */
__global__ void place_kernel(place_args args)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    unsigned long long outside = 0, cells = 0;
    gcf_cuda_place at = {0, 0, GCF_OUTSIDE, (uint32_t)k};
    if (k < args.count) {
        const double w = args.w ? args.w[k] : 0;
        int offset_u, offset_v;
        bool flip_u, flip_v;
        const int plane = isfinite(w) ? gcf_nearest_plane(args.planes, w) : 0;
        const int support = args.planes.plane[plane].support;
        if (isfinite(w) &&
            place_axis(args, support, args.u[k], args.lines, &at.u, &offset_u,
                       &flip_u) &&
            place_axis(args, support, args.v[k], args.nv, &at.v, &offset_v, &flip_v)) {
            at.kernel = (uint32_t)(plane | offset_u << GCF_PLANE_BITS |
                                   offset_v << (GCF_PLANE_BITS + GCF_OFFSET_BITS));
            at.kernel |= (flip_u ? GCF_FLIP_U : 0) | (flip_v ? GCF_FLIP_V : 0) |
                         (w < 0 ? GCF_CONJUGATE : 0);
            if (args.line) at.u += args.line[k];
            cells = (unsigned long long)support * support;
        } else {
            outside = 1;
            char *vis = (char *)args.zero + k * args.vis_bytes;
            for (int b = 0; args.zero && b < args.vis_bytes; b += 8)
                *(double *)(vis + b) = 0;
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

/* ---- sorting ---- */

struct sort_args {
    int64_t count;
    const gcf_cuda_place *from;
    gcf_cuda_place *to;
    uint64_t *key;
    uint32_t *index;
    gcf_cuda_order order;
    int tiles_v, half_offsets, kernel_bits, bits; /* of all keys */
    const gcf_cuda_plane *plane;
    unsigned long long *entries; /* of lists of points that meet tiles */
};

__device__ uint64_t key_of(const sort_args &args, const gcf_cuda_place &at, int tile_u,
                           int tile_v)
{
    const uint32_t mask = (1u << GCF_OFFSET_BITS) - 1;
    const uint64_t ou = at.kernel >> GCF_PLANE_BITS & mask;
    const uint64_t ov = at.kernel >> (GCF_PLANE_BITS + GCF_OFFSET_BITS) & mask;
    const uint64_t tile = (uint64_t)tile_u * args.tiles_v + tile_v;
    if (!args.order.by_kernel) return tile;
    const uint64_t flips =
        (at.kernel & GCF_FLIP_U ? 2 : 0) | (at.kernel & GCF_FLIP_V ? 1 : 0);
    return tile << args.kernel_bits |
           (((gcf_plane_of(at.kernel) * args.half_offsets + ou) * args.half_offsets +
             ov) << 2 |
            flips);
}

/* A point a thread; those outside come last. */
__global__ void key_kernel(sort_args args)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (k >= args.count) return;
    const gcf_cuda_place at = args.from[k];
    const gcf_cuda_order by = args.order;
    const bool tiled = by.tile_u > 0;
    args.key[k] = at.kernel == GCF_OUTSIDE
                      ? (uint64_t)1 << args.bits
                      : key_of(args, at, tiled ? at.u / by.tile_u : 0,
                               tiled ? at.v / by.tile_v : 0);
    args.index[k] = (uint32_t)k;
}

/* A point a thread: an entry for each tile that its footprint meets; first they are
 * counted, then written. One atomic a warp. */
template <bool write> __global__ void meeting_kernel(sort_args args)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int lane = (int)threadIdx.x % (LAST_LANE + 1);
    gcf_cuda_place at = {0, 0, GCF_OUTSIDE, 0};
    if (k < args.count) at = args.from[k];
    int first_u = 0, first_v = 0, many_u = 0, many_v = 0;
    if (at.kernel != GCF_OUTSIDE) {
        const int last = args.plane[gcf_plane_of(at.kernel)].support - 1;
        first_u = at.u / args.order.tile_u;
        first_v = at.v / args.order.tile_v;
        many_u = (at.u + last) / args.order.tile_u - first_u + 1;
        many_v = (at.v + last) / args.order.tile_v - first_v + 1;
    }
    unsigned long long mine = (unsigned long long)many_u * many_v, sum = mine,
                       place = 0;
    for (int by = 1; by <= LAST_LANE; by *= 2) {
        const unsigned long long before = __shfl_up_sync(0xffffffffu, sum, by);
        if (lane >= by) sum += before;
    }
    if (lane == LAST_LANE && sum > 0) place = atomicAdd(args.entries, sum);
    place = __shfl_sync(0xffffffffu, place, LAST_LANE) + sum - mine;
    for (int n = 0; write && n < (int)mine; ++n) {
        args.key[place + n] =
            key_of(args, at, first_u + n / many_v, first_v + n % many_v);
        args.index[place + n] = (uint32_t)k;
    }
}

__global__ void permute_kernel(sort_args args)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (k < args.count) args.to[k] = args.from[args.index[k]];
}

/* first[t]: points of tiles before t, by bisection. */
__global__ void bookmark_kernel(int64_t count, const uint64_t *key, int shift,
                                int64_t tiles, uint32_t *first)
{
    const int64_t t = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (t > tiles) return;
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if ((int64_t)(key[middle] >> shift) < t)
            low = middle + 1;
        else
            high = middle;
    }
    first[t] = (uint32_t)low;
}

/* Device memory of a call. */
struct call {
    gcf_cuda_place *place[2];
    uint64_t *key[2];
    uint32_t *index[2], *first;
    unsigned long long *counter;
    cudaEvent_t event[3]; /* begun, sorted, done */
};

void call_free(call *c)
{
    void *memory[] = {c->place[0], c->place[1], c->key[0], c->key[1],
                      c->index[0], c->index[1], c->first,  c->counter};
    for (size_t k = 0; k < sizeof memory / sizeof *memory; ++k)
        tess_device_free(memory[k]);
    for (int k = 0; k < 3; ++k)
        if (c->event[k]) (void)cudaEventDestroy(c->event[k]);
}

template <typename T> tess_status take(int64_t count, const char *what, T **memory)
{
    return tess_device_alloc(count * (int64_t)sizeof **memory, what, (void **)memory);
}

tess_status place_all(const gcf_cuda *with, const gcf_cuda_points *points,
                      const gcf_cuda_cells *cells, gcf_cuda_job *job, bool degrid,
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
    args.oversampling = job->oversampling;
    args.half_offsets = job->half_offsets;
    args.lines = (int)cells->part_lines;
    args.nv = job->nv;
    args.place = c->place[0];
    args.left_out = c->counter;
    args.point_cells = c->counter + 1;
    args.near = c->counter + 3;
    args.zero = degrid ? job->vis : NULL;
    args.vis_bytes = (int)gcf_value_bytes(with->plan->gcf) * job->num_pol;
    gcf_launch(place_kernel, blocks_for(points->count), THREADS, 0, args);
    TESS_CUDA_LAUNCHED();
    TESS_TRY(tess_device_download(counter, c->counter, sizeof counter));
    report->left_out = (int64_t)counter[0];
    report->point_cells = (int64_t)counter[1];
    job->count = points->count - report->left_out;
    pairs = (double)job->count * LAST_LANE / (LAST_LANE + 1); /* of lanes */
    job->near_share = pairs > 0 ? (double)counter[3] / pairs : 0;
cleanup:
    return status;
}

int bits_of(uint64_t values)
{
    int bits = 0;
    while ((uint64_t)1 << bits < values)
        ++bits;
    return bits;
}

tess_status make_room(int64_t count, call *c)
{
    tess_status status = TESS_OK;
    TESS_TRY(take(count, "places of points", &c->place[1]));
    for (int k = 0; k < 2; ++k) {
        TESS_TRY(take(count, "keys of points", &c->key[k]));
        TESS_TRY(take(count, "order of points", &c->index[k]));
    }
cleanup:
    return status;
}

/* Keys of tiles' entries; how many there are. */
tess_status list_meetings(sort_args *args, int64_t *entries, call *c)
{
    tess_status status = TESS_OK;
    unsigned long long found = 0;
    args->entries = c->counter + 2;
    gcf_launch(meeting_kernel<false>, blocks_for(args->count), THREADS, 0, *args);
    TESS_CUDA_LAUNCHED();
    TESS_TRY(tess_device_download(&found, args->entries, sizeof found));
    if (found > INT32_MAX)
        TESS_FAIL(TESS_ERR_RESOURCE,
                  "%llu entries in lists of a grid's tiles: at most %d", found,
                  INT32_MAX);
    TESS_TRY(make_room((int64_t)found, c));
    args->key = c->key[0];
    args->index = c->index[0];
    TESS_TRY(tess_device_zero(args->entries, sizeof *args->entries));
    gcf_launch(meeting_kernel<true>, blocks_for(args->count), THREADS, 0, *args);
    TESS_CUDA_LAUNCHED();
    *entries = (int64_t)found;
cleanup:
    return status;
}

/* Points in the order asked for, those outside behind the end. */
tess_status sort(int64_t all, gcf_cuda_job *job, call *c)
{
    tess_status status = TESS_OK;
    const gcf_cuda_order order = job->order;
    int64_t tiles = 0, entries = all;
    sort_args args = {};
    job->place = c->place[0];
    job->tiles_u = order.tile_u > 0 ? (job->nu + order.tile_u - 1) / order.tile_u : 0;
    job->tiles_v = order.tile_u > 0 ? (job->nv + order.tile_v - 1) / order.tile_v : 0;
    tiles = (int64_t)job->tiles_u * job->tiles_v;
    if (tiles == 0 && !order.by_kernel && all == job->count) return TESS_OK;
    args.count = all;
    args.from = c->place[0];
    args.order = order;
    args.tiles_v = job->tiles_v;
    args.half_offsets = job->half_offsets;
    args.plane = job->plane;
    if (order.by_kernel)
        args.kernel_bits = 2 + bits_of((uint64_t)job->num_planes * job->half_offsets *
                                       (uint64_t)job->half_offsets);
    args.bits = args.kernel_bits + (tiles > 0 ? bits_of((uint64_t)tiles) : 0);
    if (order.meeting) {
        TESS_TRY(list_meetings(&args, &entries, c));
        job->count = entries;
    } else {
        TESS_TRY(make_room(all, c));
        args.key = c->key[0];
        args.index = c->index[0];
        gcf_launch(key_kernel, blocks_for(all), THREADS, 0, args);
        TESS_CUDA_LAUNCHED();
    }
    TESS_TRY(gcf_cuda_sort_pairs(c->key, c->index, entries, args.bits + 1));
    args.count = entries;
    args.to = c->place[1];
    args.index = c->index[1];
    gcf_launch(permute_kernel, blocks_for(entries), THREADS, 0, args);
    TESS_CUDA_LAUNCHED();
    job->place = c->place[1];
    if (tiles > 0) {
        TESS_TRY(take(tiles + 1, "bookmarks of tiles", &c->first));
        gcf_launch(bookmark_kernel, blocks_for(tiles + 1), THREADS, 0, job->count,
                   (const uint64_t *)c->key[1], args.kernel_bits, tiles, c->first);
        TESS_CUDA_LAUNCHED();
        job->first = c->first;
    }
cleanup:
    return status;
}

tess_status begin(int64_t count, call *c)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < 3; ++k)
        TESS_CUDA(cudaEventCreate(&c->event[k]));
    TESS_TRY(take(count, "places of points", &c->place[0]));
    TESS_TRY(take(COUNTERS, "counters", &c->counter));
    TESS_TRY(tess_device_zero(c->counter, COUNTERS * sizeof *c->counter));
cleanup:
    return status;
}

/* What is known of a job without points and cells. */
gcf_cuda_job job_with(const gcf_cuda *with, int num_pol)
{
    const tess_gcf *gcf = with->plan->gcf;
    gcf_cuda_job job = {};
    job.taps = with->taps;
    job.single_taps = with->single_taps;
    job.zero_tap = gcf->num_values;
    job.plane = with->plane;
    job.formula = gcf->formula;
    job.num_planes = gcf->layout.num_planes;
    job.half_offsets = gcf->half_offsets;
    job.oversampling = gcf->layout.oversampling;
    job.max_support = job.min_support = gcf->max_support;
    for (int p = 0; p < job.num_planes; ++p)
        if (gcf->plane[p].support < job.min_support)
            job.min_support = gcf->plane[p].support;
    job.is_double = gcf->layout.is_double;
    job.num_pol = num_pol;
    job.with = with;
    return job;
}

gcf_cuda_job job_of(const gcf_cuda *with, const gcf_cuda_points *points,
                    const gcf_cuda_cells *cells)
{
    gcf_cuda_job job = job_with(with, points->num_pol);
    job.vis = points->vis;
    job.num_vis = points->count;
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

/* Host arrays on the device. */
struct copies {
    void *u, *v, *w, *vis, *cells;
};

tess_status copies_make(const tess_gcf_points *points, const tess_gcf_cells *cells,
                        int64_t value, bool degrid, copies *to, tess_gcf_report *report)
{
    tess_status status = TESS_OK;
    double start = 0;
    const int64_t line = points->count * (int64_t)sizeof(double);
    const int64_t cell_bytes = cells->nu * cells->nv * value;
    const void *const from[3] = {points->u, points->v, points->w};
    void **const out[3] = {&to->u, &to->v, &to->w};
    for (int k = 0; k < 3; ++k) {
        if (!from[k]) continue;
        TESS_TRY(tess_device_alloc(line, "coordinates of points", out[k]));
        TESS_TRY(tess_device_upload(*out[k], from[k], line));
    }
    TESS_TRY(tess_device_alloc(points->count * value, "visibilities", &to->vis));
    TESS_TRY(tess_device_alloc(cell_bytes, "a grid", &to->cells));
    if (!degrid)
        TESS_TRY(tess_device_upload(to->vis, points->vis, points->count * value));
    TESS_TRY(tess_device_wait());
    start = tess_time_now();
    TESS_TRY(tess_device_upload(to->cells, cells->data, cell_bytes));
    TESS_TRY(tess_device_wait());
    report->cells_s = tess_time_now() - start;
cleanup:
    return status;
}

void copies_free(const copies &c)
{
    void *const memory[] = {c.u, c.v, c.w, c.vis, c.cells};
    for (size_t k = 0; k < sizeof memory / sizeof *memory; ++k)
        tess_device_free(memory[k]);
}

} // namespace

bool gcf_cuda_has(tess_gcf_strategy strategy, bool degrid)
{
    return method_of(strategy, degrid).run != NULL;
}

const gcf_cuda_factors *gcf_cuda_factors_of(const gcf_cuda *with)
{
    return with->factors;
}

const tess_gcf_plan *gcf_cuda_plan_of(const gcf_cuda *with)
{
    return with->plan;
}

/* Values of a table on the device, a zero behind them. */
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

/* A table of double precision in single. */
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

void gcf_cuda_device_name(char *name, int size)
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

tess_status gcf_cuda_create(const tess_gcf_plan *plan, gcf_cuda **out)
{
    tess_status status = TESS_OK;
    const tess_gcf *gcf = plan->gcf;
    gcf_cuda_plane *plane = NULL;
    gcf_cuda *made = (gcf_cuda *)tess_alloc_zero(1, sizeof *made);
    if (!made) TESS_FAIL(TESS_ERR_ALLOC, "gridding plan");
    made->plan = plan;
    if (!tess_device_present())
        TESS_FAIL(TESS_ERR_RESOURCE, "gridding on a GPU: there is none that will do");
    TESS_TRY(tess_device_start(0, 1));
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
    gcf_cuda_destroy(made);
    return status;
}

void gcf_cuda_destroy(gcf_cuda *made)
{
    if (!made) return;
    tess_device_free(made->taps);
    tess_device_free(made->single_taps);
    tess_device_free(made->plane);
    gcf_cuda_factors_destroy(made->factors);
    tess_free(made);
}

gcf_cuda_planes gcf_cuda_planes_of(const gcf_cuda *with)
{
    const tess_gcf *gcf = with->plan->gcf;
    gcf_cuda_planes planes;
    planes.plane = with->plane;
    planes.count = gcf->layout.num_planes;
    planes.by_root = gcf->layout.spacing == TESS_GCF_SQRT;
    planes.scale = gcf->scale;
    return planes;
}

/* Places, keys and indices, sorted from one array to another, and what sorting takes;
 * of lists of points that meet tiles, for each of them; entries of factors. */
int64_t gcf_cuda_point_bytes(const gcf_cuda *with, int num_pol, bool degrid)
{
    enum { PLACE = 16, SORTED = 2 * (8 + 4) + 16, ENTRY = 48 };
    const gcf_cuda_job job = job_with(with, num_pol);
    const gcf_cuda_method method = method_of(with->plan->opts.strategy, degrid);
    gcf_cuda_order order = {};
    int64_t entries = 1, rank = 0;
    if (method.order) order = method.order(job);
    if (order.meeting)
        entries = ((int64_t)job.max_support / order.tile_u + 2) *
                  (job.max_support / order.tile_v + 2);
    for (int p = 0; p < job.num_planes; ++p)
        if (tess_gcf_plan_rank(with->plan, p) > rank)
            rank = tess_gcf_plan_rank(with->plan, p);
    return PLACE + (PLACE + SORTED) * entries + ENTRY * rank * (degrid ? 1 : num_pol);
}

tess_status gcf_cuda_run_there(const gcf_cuda *with, const gcf_cuda_points *points,
                               const gcf_cuda_cells *cells, bool degrid,
                               tess_gcf_report *report)
{
    tess_status status = TESS_OK;
    const gcf_cuda_method method = method_of(with->plan->opts.strategy, degrid);
    gcf_cuda_job job = job_of(with, points, cells);
    call c = {};
    if (!method.run)
        TESS_FAIL(TESS_ERR_USAGE, "no strategy '%s' to %s on a GPU",
                  tess_gcf_strategy_name(with->plan->opts.strategy),
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
    job.report = report;
    job.sorted = c.event[1];
    if (method.order) job.order = method.order(job);
    report->kept_order = job.order.tile_u == 0 && !job.order.by_kernel;
    if (job.count > 0) TESS_TRY(sort(points->count, &job, &c));
    TESS_CUDA(cudaEventRecord(c.event[1], tess_device_stream()));
    if (job.count > 0) TESS_TRY(method.run(job));
    TESS_CUDA(cudaEventRecord(c.event[2], tess_device_stream()));
    TESS_TRY(tess_device_wait());
    TESS_TRY(times(c, report));
cleanup:
    call_free(&c);
    return status;
}

tess_status gcf_cuda_run(const gcf_cuda *with, const tess_gcf_points *points,
                         const tess_gcf_cells *cells, bool degrid,
                         tess_gcf_report *report)
{
    tess_status status = TESS_OK;
    const int64_t value =
        (int64_t)gcf_value_bytes(with->plan->gcf) * (int64_t)points->num_pol;
    const double start = tess_time_now();
    copies on = {};
    gcf_cuda_points there = {};
    gcf_cuda_cells grid = {};
    if (points->count > 0)
        TESS_TRY(copies_make(points, cells, value, degrid, &on, report));
    there.count = points->count;
    there.u = (const double *)on.u;
    there.v = (const double *)on.v;
    there.w = (const double *)on.w;
    there.vis = on.vis;
    there.num_pol = points->num_pol;
    grid.part_lines = grid.nu = cells->nu;
    grid.nv = cells->nv;
    grid.pol_stride = cells->nu * cells->nv;
    grid.data = on.cells;
    TESS_TRY(gcf_cuda_run_there(with, &there, &grid, degrid, report));
    if (points->count == 0) goto cleanup;
    if (degrid) {
        TESS_TRY(tess_device_download(points->vis, on.vis, points->count * value));
    } else {
        const double worked = tess_time_now();
        TESS_TRY(tess_device_download(cells->data, on.cells, grid.pol_stride * value));
        report->cells_s += tess_time_now() - worked;
    }
    report->copy_s = tess_time_now() - start - report->sort_s - report->seconds;
cleanup:
    copies_free(on);
    return status;
}
