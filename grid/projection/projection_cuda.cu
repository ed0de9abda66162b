/* Implements tess_projection_cuda.h. Coordinates are rounded as the CPU's are,
 * operation by operation, so that a sample is placed on the same cells and reads the
 * same taps. */
#include "tess_gcf_device.cuh"

extern "C" {
#include "projection_plan.h"
}
#include "tess_const.h"
#include "tess_cuda_complex.cuh"
#include "tess_mem.h"
#include "tess_projection_cuda.h"

namespace
{

enum { THREADS = 256, LANES = 32 };

/* Points may take this share of the device memory, and this is the largest number of
 * points at a time. More points are not faster. */
const double POINTS_SHARE = 0.5;
const int64_t MOST_POINTS = (int64_t)1 << 25;

/* Lists of points that meet tiles have fewer than 2^31 entries. */
const int64_t MOST_ENTRY_BYTES = (int64_t)48 << 30;

/* The plan and the samples, as the kernels of the device need them. */
struct view {
    double scale_u, scale_v; /* cells per metre at 1/λ = 1, signs included */
    double half, period_u, period_v;
    int nu, nv, tile, tiles_v;
    const double *uvw_m, *inv_lambda;
    const int32_t *chan_base, *num_chan;
    const int64_t *vis_first;
    const void *vis, *weight;
    int num_pol, num_weight;
    bool is_double, skip_ignored;
};

/* A channel of a row. */
struct sample {
    int64_t index;
    double a, b, w; /* cells, wavelengths */
    bool there, conjugate;
};

view view_of(const tess_grid_plan *plan, const tess_device_samples *samples)
{
    view v = {};
    v.scale_u = plan->target.geom.scale_rad * (double)plan->nu;
    v.scale_v = tess_geom_scale_m(&plan->target.geom) * (double)plan->nv;
    v.half = 0.5 * plan->footprint;
    v.period_u = (double)plan->nu;
    v.period_v = (double)plan->nv;
    v.nu = (int)plan->nu;
    v.nv = (int)plan->nv;
    v.tile = plan->tile;
    v.tiles_v = (int)plan->tiles_v;
    v.uvw_m = samples->uvw_m;
    v.inv_lambda = samples->inv_lambda;
    v.chan_base = samples->chan_base;
    v.num_chan = samples->num_chan;
    v.vis_first = samples->vis_first;
    v.vis = samples->vis;
    v.weight = samples->weight;
    v.num_pol = samples->num_pol;
    v.num_weight = samples->num_weight;
    v.is_double = samples->is_double;
    return v;
}

__device__ double number_at(const void *array, bool is_double, int64_t k)
{
    return is_double ? ((const double *)array)[k] : (double)((const float *)array)[k];
}

__device__ bool is_ignored(const view &v, int64_t index)
{
    for (int k = 0; k < v.num_weight; ++k)
        if (number_at(v.weight, v.is_double, index * v.num_weight + k) != 0)
            return false;
    return true;
}

/* As tess_row_scale_of(). */
__device__ sample sample_at(const view &v, int64_t row, int chan)
{
    sample s = {0, 0, 0, 0, false, false};
    if (chan >= v.num_chan[row]) return s;
    s.index = v.vis_first[row] + chan;
    if (v.skip_ignored && is_ignored(v, s.index)) return s;
    const double *uvw = v.uvw_m + 3 * row, inv = v.inv_lambda[v.chan_base[row] + chan];
    s.there = true;
    s.conjugate = uvw[2] < 0;
    const double sign = s.conjugate ? -1 : 1;
    s.a = __dmul_rn(__dmul_rn(-sign * uvw[0], v.scale_u), inv);
    s.b = __dmul_rn(__dmul_rn(sign * uvw[1], v.scale_v), inv);
    s.w = __dmul_rn(sign * uvw[2], inv);
    return s;
}

/* Returns the first cell of the footprint, as tess_footprint_start() does. */
__device__ int start_of(double coordinate, double half, double period, int cells)
{
    const double start = ceil(__dadd_rn(coordinate, -half));
    const int cell = (int)(start - period * floor(start / period));
    return cell >= cells ? cell - cells : cell;
}

__device__ int64_t tile_of(const view &v, const sample &s)
{
    const int u = start_of(s.a, v.half, v.period_u, v.nu) / v.tile;
    const int w = start_of(s.b, v.half, v.period_v, v.nv) / v.tile;
    return (int64_t)u * v.tiles_v + w;
}

/* Returns the coordinate in the sum of a brick, as within() of projection.c does. */
__device__ double within(double coordinate, double half, double first, int tile,
                         double period)
{
    double start = __dadd_rn(__dadd_rn(coordinate, -half), -first);
    start = __dadd_rn(start, -__dmul_rn(period, floor(start / period)));
    if (start > 0.5 * (period + tile)) start = __dadd_rn(start, -period);
    return __dadd_rn(start, half);
}

/* ---- bricks ---- */

/* A thread works on a channel of a row. The neighbours of a warp that lie in the same
 * tile share one atomic operation. */
__global__ void count_kernel(view v, int64_t num_rows, int max_chan,
                             unsigned long long *count)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int64_t row = k / max_chan;
    const int lane = (int)threadIdx.x % LANES;
    int64_t mine = -1;
    if (row < num_rows) {
        const sample s = sample_at(v, row, (int)(k % max_chan));
        if (s.there) mine = tile_of(v, s);
    }
    const int64_t before = __shfl_up_sync(0xffffffffu, mine, 1);
    const bool begins = lane == 0 || before != mine;
    const unsigned heads = __ballot_sync(0xffffffffu, begins);
    if (!begins || mine < 0) return;
    const unsigned after = lane < LANES - 1 ? heads >> (lane + 1) : 0;
    const int many = after ? __ffs((int)after) : LANES - lane;
    atomicAdd(count + mine, (unsigned long long)many);
}

int64_t blocks_for(int64_t threads)
{
    return (threads + THREADS - 1) / THREADS;
}

tess_status list_counts(const uint64_t *count, int64_t tiles, tile_cuda_list *list)
{
    tess_status status = TESS_OK;
    int64_t bricks = 0, n = 0;
    for (int64_t t = 0; t < tiles; ++t)
        bricks += count[t] > 0;
    list->key = (int64_t *)tess_alloc(bricks, sizeof *list->key);
    list->brick_vis = (int64_t *)tess_alloc(bricks, sizeof *list->brick_vis);
    list->plane_first = (int32_t *)tess_alloc(bricks, sizeof *list->plane_first);
    list->num_planes = (int32_t *)tess_alloc(bricks, sizeof *list->num_planes);
    if (!list->key || !list->brick_vis || !list->plane_first || !list->num_planes)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for %lld bricks", (long long)bricks);
    for (int64_t t = 0; t < tiles; ++t) {
        if (count[t] == 0) continue;
        list->key[n] = t;
        list->brick_vis[n] = (int64_t)count[t];
        list->num_vis += list->brick_vis[n];
        list->plane_first[n] = 0;
        list->num_planes[n++] = 1;
    }
    list->num_bricks = n;
cleanup:
    return status;
}

/* ---- points ---- */

/* The rows [row, row + num_rows). `line` has, for each row and channel, the line at
 * which the brick of its tile begins, plus 1; or 0. */
struct batch {
    view v;
    int64_t row, num_rows;
    int max_chan;
    const int32_t *tile_line;
    double *u, *coordinate_v, *w;
    int32_t *line;
};

__global__ void line_kernel(int64_t count, const int64_t *key,
                            const tess_brick_sum *brick, int64_t stride,
                            int32_t *tile_line)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (k < count) tile_line[key[k]] = (int32_t)(brick[k].offset / stride) + 1;
}

/* A thread works on a channel of a row, which it makes a point. The point has no place
 * if it is not wanted. */
__global__ void point_kernel(batch b)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (k >= b.num_rows * b.max_chan) return;
    const view &v = b.v;
    const sample s = sample_at(v, b.row + k / b.max_chan, (int)(k % b.max_chan));
    const int64_t tile = s.there ? tile_of(v, s) : 0;
    const int32_t line = s.there ? b.tile_line[tile] : 0;
    b.u[k] = b.coordinate_v[k] = -1; /* no footprint lies inside there */
    b.w[k] = 0;
    b.line[k] = line - 1;
    if (line == 0) return;
    const int64_t u = tile / v.tiles_v * v.tile, w = tile % v.tiles_v * v.tile;
    b.u[k] = within(s.a, v.half, (double)u, v.tile, v.period_u);
    b.coordinate_v[k] = within(s.b, v.half, (double)w, v.tile, v.period_v);
    b.w[k] = s.w;
}

/* Computes the phase of what lies between planes, as projection_phase() does. */
struct phases {
    gcf_cuda_planes planes;
    double nm1_mean;
};

__device__ void phase_of(const phases &by, double w, double *sine, double *cosine)
{
    const double between = w - by.planes.plane[gcf_nearest_plane(by.planes, w)].w;
    sincospi(-2 * between * by.nm1_mean, sine, cosine);
}

/* The polarisations [first, first + together) of the sums. */
struct values {
    phases by;
    int first, together;
    void *vis; /* of points */
};

/* A thread works on a point: it multiplies the point's weighted visibilities, or its
 * weights, by the point's phase. */
template <typename R> __global__ void load_kernel(batch b, values to)
{
    typedef typename cuda_complex<R>::type C;
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (k >= b.num_rows * b.max_chan) return;
    const view &v = b.v;
    C *out = (C *)to.vis + k * to.together;
    const bool wanted = b.line[k] >= 0;
    double sine = 0, cosine = 1;
    sample s = {0, 0, 0, 0, false, false};
    if (wanted) {
        s = sample_at(v, b.row + k / b.max_chan, (int)(k % b.max_chan));
        phase_of(to.by, s.w, &sine, &cosine);
    }
    for (int p = 0; p < to.together; ++p) {
        const int pol = to.first + p;
        const bool ones = pol >= v.num_pol;
        const int weight = v.num_weight == 1 ? 0 : ones ? pol - v.num_pol : pol;
        double w = 0, re = 0, im = 0;
        if (wanted) w = (double)((const R *)v.weight)[s.index * v.num_weight + weight];
        if (w != 0) {
            C vis;
            vis.x = 1;
            vis.y = 0;
            if (!ones) vis = ((const C *)v.vis)[s.index * v.num_pol + pol];
            re = w * (double)vis.x;
            im = s.conjugate ? -w * (double)vis.y : w * (double)vis.y;
        }
        out[p].x = (R)(re * cosine - im * sine);
        out[p].y = (R)(re * sine + im * cosine);
    }
}

/* A thread works on a point: it undoes the phase of what was predicted for the point,
 * and writes it to the point's sample. */
template <typename R> __global__ void store_kernel(batch b, values from, void *vis)
{
    typedef typename cuda_complex<R>::type C;
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (k >= b.num_rows * b.max_chan || b.line[k] < 0) return;
    const sample s = sample_at(b.v, b.row + k / b.max_chan, (int)(k % b.max_chan));
    double sine, cosine;
    phase_of(from.by, s.w, &sine, &cosine);
    for (int p = 0; p < from.together; ++p) {
        const C sum = ((const C *)from.vis)[k * from.together + p];
        const double im = sum.y * cosine - sum.x * sine;
        C out;
        out.x = (R)(sum.x * cosine + sum.y * sine);
        out.y = (R)(s.conjugate ? -im : im);
        ((C *)vis)[s.index * b.v.num_pol + from.first + p] = out;
    }
}

/* ---- a call ---- */

struct call {
    const tess_grid_plan *plan;
    const tess_device_samples *samples;
    const gcf_on_device *with;
    bool degrid;
    batch rows;
    values part;
    gcf_device_cells cells; /* of pol 0 */
    void *keys;
    int32_t *tile_line;
};

int64_t value_bytes(const tess_grid_plan *plan)
{
    return plan->is_double ? 16 : 8;
}

int pols_together(int left)
{
    return left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

/* Lines of tiles. */
tess_status find_lines(const tile_cuda_list *list, int64_t first, int64_t end,
                       const tile_cuda_sums *sums, call *c)
{
    tess_status status = TESS_OK;
    const tess_grid_plan *plan = c->plan;
    const int64_t count = end - first, stride = tess_grid_brick_stride(plan);
    const int64_t bytes = plan->tiles_u * plan->tiles_v * (int64_t)sizeof *c->tile_line;
    const void *keys = NULL;
    if (sums->num_values / stride > INT32_MAX)
        TESS_FAIL(TESS_ERR_RESOURCE, "%lld lines of brick sums on a GPU: at most %d",
                  (long long)(sums->num_values / stride), INT32_MAX);
    TESS_TRY(tess_device_alloc(bytes, "bricks", (void **)&c->tile_line));
    TESS_TRY(tess_device_zero(c->tile_line, bytes));
    TESS_TRY(tess_device_copy_of(list->key + first, count * (int64_t)sizeof *list->key,
                                 "bricks", &keys));
    c->keys = (void *)(uintptr_t)keys;
    tess_launch(line_kernel, blocks_for(count), THREADS, 0, count,
               (const int64_t *)c->keys, sums->brick, stride, c->tile_line);
    TESS_CUDA_LAUNCHED();
    c->rows.tile_line = c->tile_line;
cleanup:
    return status;
}

/* The sums seen as one grid: the lines of a polarisation are followed by those of the
 * brick's other polarisations. */
void lay_out(const tile_cuda_sums *sums, call *c)
{
    const int64_t stride = tess_grid_brick_stride(c->plan);
    const int64_t lines = tess_grid_brick_lines(c->plan);
    c->cells.part_lines = lines;
    c->cells.nu = sums->num_values / stride - (sums->num_pol - 1) * lines;
    c->cells.nv = stride;
    c->cells.pol_stride = lines * stride;
    c->cells.data = sums->data;
}

/* Allocates arrays for as many rows at a time as memory allows. */
tess_status make_room(int num_pol, call *c)
{
    tess_status status = TESS_OK;
    const int together = pols_together(num_pol);
    const int64_t own = 3 * (int64_t)sizeof(double) + (int64_t)sizeof(int32_t) +
                        together * value_bytes(c->plan);
    const int64_t theirs = gcf_device_point_bytes(c->with, together, c->degrid);
    const int64_t chan = c->samples->max_chan > 0 ? c->samples->max_chan : 1;
    int64_t most =
        (int64_t)(POINTS_SHARE * (double)tess_device_room()) / (own + theirs);
    int64_t points;
    most = most < MOST_POINTS ? most : MOST_POINTS;
    if (c->plan->opts.chunk > 0 && c->plan->opts.chunk < most)
        most = c->plan->opts.chunk; /* asked for */
    most = most < MOST_ENTRY_BYTES / theirs ? most : MOST_ENTRY_BYTES / theirs;
    c->rows.max_chan = (int)chan;
    c->rows.num_rows = most / chan < 1 ? 1 : most / chan;
    if (c->rows.num_rows > c->samples->num_rows)
        c->rows.num_rows = c->samples->num_rows;
    points = c->rows.num_rows * chan;
    TESS_TRY(tess_device_alloc(points * (int64_t)sizeof(double), "points",
                               (void **)&c->rows.u));
    TESS_TRY(tess_device_alloc(points * (int64_t)sizeof(double), "points",
                               (void **)&c->rows.coordinate_v));
    TESS_TRY(tess_device_alloc(points * (int64_t)sizeof(double), "points",
                               (void **)&c->rows.w));
    TESS_TRY(tess_device_alloc(points * (int64_t)sizeof(int32_t), "points",
                               (void **)&c->rows.line));
    TESS_TRY(tess_device_alloc(points * together * value_bytes(c->plan), "points",
                               &c->part.vis));
cleanup:
    return status;
}

void call_free(call *c)
{
    void *memory[] = {c->rows.u,    c->rows.coordinate_v, c->rows.w,
                      c->rows.line, c->part.vis,          c->keys,
                      c->tile_line};
    for (size_t k = 0; k < sizeof memory / sizeof *memory; ++k)
        tess_device_free(memory[k]);
}

/* Some polarisations of some rows. */
tess_status do_part(const call *c)
{
    tess_status status = TESS_OK;
    const int64_t count = c->rows.num_rows * c->rows.max_chan;
    const bool is_double = c->plan->is_double;
    tess_gcf_report report = {};
    gcf_device_points points = {};
    gcf_device_cells cells = c->cells;
    points.count = count;
    points.u = c->rows.u;
    points.v = c->rows.coordinate_v;
    points.w = c->rows.w;
    points.line = c->rows.line;
    points.vis = c->part.vis;
    points.num_pol = c->part.together;
    cells.data =
        (char *)cells.data + c->part.first * cells.pol_stride * value_bytes(c->plan);
    if (!c->degrid) {
        tess_launch(is_double ? load_kernel<double> : load_kernel<float>,
                   blocks_for(count), THREADS, 0, c->rows, c->part);
        TESS_CUDA_LAUNCHED();
    }
    TESS_TRY(gcf_device_run_there(c->with, &points, &cells, c->degrid, &report));
    if (c->degrid) {
        tess_launch(is_double ? store_kernel<double> : store_kernel<float>,
                   blocks_for(count), THREADS, 0, c->rows, c->part, c->samples->vis);
        TESS_CUDA_LAUNCHED();
    }
cleanup:
    return status;
}

tess_status run(call *c, const cuda_part *part, int num_pol)
{
    tess_status status = TESS_OK;
    const int64_t first = part->first, end = part->end;
    if (end == first || c->samples->num_rows == 0) return TESS_OK;
    c->with = tess_gcf_plan_device(c->plan->projection->gridder);
    c->part.by.planes = gcf_cuda_planes_of(c->with);
    c->part.by.nm1_mean = c->plan->projection->nm1_mean;
    c->rows.v = view_of(c->plan, c->samples);
    c->rows.v.skip_ignored = !c->degrid;
    lay_out(part->sums, c);
    TESS_TRY(find_lines(part->list, first, end, part->sums, c));
    TESS_TRY(make_room(num_pol, c));
    for (int64_t at_once = c->rows.num_rows; c->rows.row < c->samples->num_rows;
         c->rows.row += at_once) {
        const int64_t left = c->samples->num_rows - c->rows.row;
        c->rows.num_rows = left < at_once ? left : at_once;
        tess_launch(point_kernel, blocks_for(c->rows.num_rows * c->rows.max_chan),
                   THREADS, 0, c->rows);
        TESS_CUDA_LAUNCHED();
        for (int pol = 0; pol < num_pol; pol += c->part.together) {
            c->part.first = pol;
            c->part.together = pols_together(num_pol - pol);
            TESS_TRY(do_part(c));
        }
    }
    TESS_TRY(tess_device_wait());
cleanup:
    call_free(c);
    return status;
}

} // namespace

tess_status projection_cuda_list(const tess_grid_plan *plan,
                                 const tess_device_samples *samples, bool skip_ignored,
                                 tile_cuda_list *out)
{
    tess_status status = TESS_OK;
    const int64_t tiles = plan->tiles_u * plan->tiles_v;
    const int64_t bytes = tiles * (int64_t)sizeof(uint64_t);
    const int chan = samples->max_chan > 0 ? samples->max_chan : 1;
    tile_cuda_list list = {};
    void *on_device = NULL;
    uint64_t *count = (uint64_t *)tess_alloc_zero(tiles, sizeof *count);
    view v = view_of(plan, samples);
    v.skip_ignored = skip_ignored;
    if (!count) TESS_FAIL(TESS_ERR_ALLOC, "counts of bricks");
    TESS_TRY(tess_device_alloc(bytes, "counts of bricks", &on_device));
    TESS_TRY(tess_device_zero(on_device, bytes));
    if (samples->num_rows > 0) {
        tess_launch(count_kernel, blocks_for(samples->num_rows * chan), THREADS, 0, v,
                   samples->num_rows, chan, (unsigned long long *)on_device);
        TESS_CUDA_LAUNCHED();
    }
    TESS_TRY(tess_device_download(count, on_device, bytes));
    TESS_TRY(list_counts(count, tiles, &list));
    *out = list;
    list = tile_cuda_list{};
cleanup:
    tess_device_free(on_device);
    tess_free(count);
    tile_cuda_list_free(&list);
    return status;
}

tess_status projection_cuda_grid(const tess_grid_plan *plan, const cuda_part *part,
                                 bool psf)
{
    const tess_device_samples *samples = part->samples;
    call c = {};
    c.plan = plan;
    c.samples = samples;
    return run(&c, part, samples->num_pol + (psf ? samples->num_weight : 0));
}

tess_status projection_cuda_degrid(const tess_grid_plan *plan, const cuda_part *part)
{
    call c = {};
    c.plan = plan;
    c.samples = part->samples;
    c.degrid = true;
    return run(&c, part, part->samples->num_pol);
}
