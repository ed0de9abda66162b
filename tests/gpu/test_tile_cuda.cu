/* Device kernels against the CPU's tile loops in double precision: every support, both
 * precisions, one and three products, polarisations, PSF, brick sums and whole planes;
 * and, bit for bit, against themselves where the plan is repeatable.
 * Exits with 77 where there is no device.
 *
 * Tolerances, relative L2 over all planes: double 1e-13 (a few hundred roundings of
 * 1e-16, cancelling); three products 1e-6, the level of fp32 sums of hundreds of values
 * (each 6e-8); one product 5e-4: fp16 rounds two taps, their product and the value by
 * 2e-4 rms each. */
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

extern "C" {
#include "keys.h"
#include "tess_degrid.h"
#include "tess_grid.h"
#include "tess_samples.h"
extern const tess_grid_ops tess_grid_ops_cpu;
extern const tess_degrid_ops tess_degrid_ops_cpu;
}
#include "tess_tile_cuda.h"

static int num_failed, num_checked;

#define MUST(call)                                                                     \
    do {                                                                               \
        if ((call) != 0) {                                                             \
            fprintf(stderr, "%s:%d: %s failed: %s\n", __FILE__, __LINE__, #call,       \
                    tess_error_message());                                             \
            exit(1);                                                                   \
        }                                                                              \
    } while (0)

/* Uniform in [0, 1), the same everywhere. */
struct draws {
    uint64_t state;
    double next()
    {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        return (double)(state >> 11) * 0x1p-53;
    }
};

struct setting {
    int support;
    bool is_double;
    double accuracy; /* chooses the number of products */
    bool do_w, psf, whole_planes, per_pol_weights, shifted;
    int num_pol, block_planes;
    double unit;    /* of visibilities or grid; 0: 1 */
    double decades; /* range of the weights */
};

static double unit_of(const setting &with)
{
    return with.unit > 0 ? with.unit : 1;
}

/* Arrays in device memory. */
template <typename T> struct on_device {
    T *data = NULL;
    on_device(const std::vector<T> &from)
    {
        MUST(cudaMalloc(&data, from.size() * sizeof(T) + 16));
        MUST(cudaMemcpy(data, from.data(), from.size() * sizeof(T),
                        cudaMemcpyHostToDevice));
    }
    ~on_device()
    {
        cudaFree(data);
    }
    std::vector<T> get(size_t n) const
    {
        std::vector<T> out(n);
        MUST(cudaMemcpy(out.data(), data, n * sizeof(T), cudaMemcpyDeviceToHost));
        return out;
    }
};

static tess_grid_plan plan_for(const setting &with)
{
    tess_grid_plan plan;
    memset(&plan, 0, sizeof plan);
    tess_grid_opts_default(&plan.opts);
    plan.target.geom.nx = plan.target.geom.ny = 60;
    plan.target.geom.scale_rad = 1e-3;
    if (with.shifted) {
        plan.target.geom.scale_m_rad = 1.3e-3;
        plan.target.geom.l0 = 2e-2;
        plan.target.geom.m0 = -1.1e-2;
    }
    plan.opts.accuracy = with.accuracy;
    plan.opts.do_w = with.do_w;
    plan.opts.threads = 2;
    plan.is_double = with.is_double;
    tess_kernel_create(with.support, 1.8, &plan.kernel);
    plan.along_w = plan.kernel; /* as on devices */
    plan.nu = 108;
    plan.nv = 90;
    plan.keys = key_table_best();
    plan.tile = TESS_TILE;
    plan.footprint = with.support;
    plan.w_support = with.do_w ? with.support : 1;
    plan.num_planes = with.do_w ? with.support + 13 : 1;
    plan.block_planes = with.do_w ? with.block_planes : 1;
    plan.num_blocks = (plan.num_planes - plan.w_support) / plan.block_planes + 1;
    plan.w_step_lambda = 31.7;
    plan.w_first_lambda = 3.0 - 0.5 * with.support * plan.w_step_lambda;
    plan.target.nm1_center = with.do_w ? -9e-4 : 0;
    plan.target.phase =
        tess_geom_phase_of(&plan.target.geom, plan.target.nm1_center, with.do_w);
    plan.tiles_u = (plan.nu + TESS_TILE - 1) / TESS_TILE;
    plan.tiles_v = (plan.nv + TESS_TILE - 1) / TESS_TILE;
    plan.opts.chunk = 4096;
    return plan;
}

/* Samples in double precision. Rows of different lengths and places in the channel
 * table; coordinates that wrap around the grid; ignored samples, some of them NaN. */
struct sample_set {
    std::vector<double> uvw, inv_lambda, vis, weight;
    std::vector<int32_t> chan_base, num_chan;
    std::vector<int64_t> vis_first;
    int64_t num_vis = 0;

    sample_set(const setting &with, const tess_grid_plan &plan, int rows,
               bool may_ignore)
    {
        draws draw = {(uint64_t)with.support * 977 + with.num_pol};
        const int channels = 150;
        const int weights = with.per_pol_weights ? with.num_pol : 1;
        for (int c = 0; c < channels; ++c)
            inv_lambda.push_back(4.0 * (1 + 0.004 * c));
        const double w_max = 12.5 * plan.w_step_lambda / (4.0 * 1.6);
        for (int r = 0; r < rows; ++r) {
            /* a third of the rows in one place, so that a brick has several chunks */
            const bool crowd = r % 3 == 0;
            const double extent = 0.65 / (plan.target.geom.scale_rad * 4.0);
            for (int k = 0; k < 2; ++k)
                uvw.push_back(crowd ? 0.02 * extent * draw.next()
                                    : extent * (2 * draw.next() - 1));
            uvw.push_back(w_max * (2 * draw.next() - 1));
            const int count = 1 + (int)(draw.next() * (r % 5 == 0 ? channels : 12));
            chan_base.push_back((int)(draw.next() * (channels - count)));
            num_chan.push_back(count);
            vis_first.push_back(num_vis);
            num_vis += count;
        }
        for (int64_t k = 0; k < num_vis; ++k) {
            const bool ignored = may_ignore && draw.next() < 0.1;
            for (int j = 0; j < weights; ++j)
                weight.push_back(ignored ? 0 : pow(10, -with.decades * draw.next()));
            for (int j = 0; j < 2 * with.num_pol; ++j)
                vis.push_back(ignored && k % 2 ? NAN
                                               : unit_of(with) * (2 * draw.next() - 1));
        }
        if (!with.is_double) {
            /* the same numbers for both precisions */
            for (double &x : vis)
                x = (float)x;
            for (double &x : weight)
                x = (float)x;
        }
    }

    tess_samples host(const setting &with, std::vector<double> &vis_of)
    {
        tess_samples s;
        memset(&s, 0, sizeof s);
        s.is_double = true;
        s.num_pol = with.num_pol;
        s.num_weight = with.per_pol_weights ? with.num_pol : 1;
        s.num_rows = (int64_t)chan_base.size();
        s.num_vis = num_vis;
        s.uvw_m = uvw.data();
        s.chan_base = chan_base.data();
        s.num_chan = num_chan.data();
        s.vis_first = vis_first.data();
        s.vis = vis_of.data();
        s.weight = weight.data();
        s.inv_lambda = inv_lambda.data();
        return s;
    }
};

/* Values of brick sums to or from whole planes[pol][plane][nu][nv]. */
template <typename R, typename Do>
static void each_cell(const tess_grid_plan &plan, const tess_brick_sums &sums, R *data,
                      double *planes, Do act)
{
    const int64_t lines = tess_grid_brick_lines(&plan);
    const int64_t stride = tess_grid_brick_stride(&plan);
    for (int64_t b = 0; b < sums.num_bricks; ++b) {
        const tess_brick_sum *sum = &sums.brick[b];
        int64_t block, tile_u, tile_v;
        tess_grid_brick_of_key(&plan, sum->key, &block, &tile_u, &tile_v);
        for (int pol = 0; pol < sums.num_pol; ++pol)
            for (int p = 0; p < sum->num_planes; ++p)
                for (int64_t i = 0; i < lines; ++i)
                    for (int64_t j = 0; j < lines; ++j) {
                        const int64_t from =
                            sum->offset +
                            ((((int64_t)pol * sum->num_planes + p) * lines) + i) *
                                stride +
                            j;
                        const int64_t u = (tile_u * TESS_TILE + i) % plan.nu;
                        const int64_t v = (tile_v * TESS_TILE + j) % plan.nv;
                        const int64_t to =
                            ((((int64_t)pol * plan.num_planes + sum->plane_first + p) *
                              plan.nu) +
                             u) *
                                plan.nv +
                            v;
                        for (int k = 0; k < 2; ++k)
                            act(data[2 * from + k], planes[2 * to + k]);
                    }
    }
}

static double relative(const std::vector<double> &a, const std::vector<double> &b)
{
    double difference = 0, norm = 0;
    for (size_t k = 0; k < a.size(); ++k) {
        difference += (a[k] - b[k]) * (a[k] - b[k]);
        norm += b[k] * b[k];
    }
    return sqrt(difference / norm);
}

/* `slack`: how many times the tolerance of hundreds of values. */
static void report(const setting &with, const char *what, double error,
                   double slack = 1)
{
    const double least = with.is_double                               ? 1e-13
                         : with.accuracy >= 5e-3 && with.support <= 9 ? 5e-4
                                                                      : 1e-6;
    const double limit = slack * least;
    const bool failed = !(error <= limit);
    ++num_checked;
    num_failed += failed;
    if (failed || getenv("TESS_VERBOSE"))
        printf("%s support %2d %s products %s pols %d psf %d w %d block %d whole %d: "
               "%s %.2e (limit %.0e)\n",
               failed ? "FAILED" : "ok", with.support,
               with.is_double ? "double" : "single", with.accuracy >= 5e-3 ? "1" : "3",
               with.num_pol, with.psf, with.do_w, with.block_planes, with.whole_planes,
               what, error, limit);
}

/* The step of all bricks: layout as the host's, from the device's list. */
static tess_brick_sums lay_out(const tess_grid_plan &plan, const tile_cuda_list &list,
                               int num_pol, std::vector<tess_brick_sum> &bricks)
{
    tess_brick_sums sums;
    memset(&sums, 0, sizeof sums);
    for (int64_t b = 0; b < list.num_bricks; ++b) {
        tess_brick_sum sum = {};
        sum.key = list.key[b];
        sum.plane_first = list.plane_first[b];
        sum.num_planes = list.num_planes[b];
        sum.offset = sums.num_values;
        sums.num_values += (int64_t)num_pol * sum.num_planes *
                           tess_grid_brick_lines(&plan) * tess_grid_brick_stride(&plan);
        bricks.push_back(sum);
    }
    sums.brick = bricks.data();
    sums.num_bricks = list.num_bricks;
    sums.num_pol = num_pol;
    return sums;
}

/* Samples in device memory. */
template <typename R> struct device_samples {
    on_device<double> uvw, inv_lambda;
    on_device<int32_t> chan_base, num_chan;
    on_device<int64_t> vis_first;
    on_device<R> vis, weight;
    tess_device_samples view = {};

    device_samples(const setting &with, const sample_set &set)
        : uvw(set.uvw), inv_lambda(set.inv_lambda), chan_base(set.chan_base),
          num_chan(set.num_chan), vis_first(set.vis_first),
          vis(std::vector<R>(set.vis.begin(), set.vis.end())),
          weight(std::vector<R>(set.weight.begin(), set.weight.end()))
    {
        view.is_double = with.is_double;
        view.num_pol = with.num_pol;
        view.num_weight = with.per_pol_weights ? with.num_pol : 1;
        view.max_chan = 150;
        view.num_rows = (int64_t)set.chan_base.size();
        view.num_vis = set.num_vis;
        view.uvw_m = uvw.data;
        view.chan_base = chan_base.data;
        view.num_chan = num_chan.data;
        view.vis_first = vis_first.data;
        view.vis = vis.data;
        view.weight = weight.data;
        view.inv_lambda = inv_lambda.data;
    }
};

template <typename R>
static void check_direction(const setting &with, bool degrid, int rows)
{
    tess_grid_plan plan = plan_for(with), full = plan;
    full.is_double = true;
    sample_set set(with, plan, rows, !degrid);
    const int num_pol =
        with.num_pol +
        (with.psf && !degrid ? (with.per_pol_weights ? with.num_pol : 1) : 0);
    const size_t plane_values =
        (size_t)2 * num_pol * plan.num_planes * plan.nu * plan.nv;
    /* the truth */
    std::vector<double> vis = set.vis, planes(plane_values);
    tess_samples samples = set.host(with, vis);
    tess_brick_list bricks;
    memset(&bricks, 0, sizeof bricks);
    MUST(tess_brick_list_append(&full, &samples, 0, samples.num_rows, !degrid, 2,
                                &bricks));
    MUST(tess_brick_list_sort(&bricks, 2));
    tess_brick_sums sums;
    tess_grid_report ignored_report = {NULL, 0};
    memset(&sums, 0, sizeof sums);
    sums.num_pol = num_pol;
    MUST(
        tess_grid_ops_cpu.begin(&full, &samples, &bricks, 0, bricks.num_bricks, &sums));
    if (degrid) {
        draws draw = {5};
        for (double &x : planes) {
            x = unit_of(with) * draw.next();
            if (!with.is_double) x = (float)x;
        }
        memset(sums.data, 0, (size_t)sums.num_values * 16);
        each_cell(full, sums, (double *)sums.data, planes.data(),
                  [](double &cell, double &plane) { cell = plane; });
        MUST(tess_degrid_ops_cpu.degrid(&full, &samples, &bricks, 0, &sums,
                                        &ignored_report));
    } else {
        MUST(tess_grid_ops_cpu.grid(&full, &samples, &bricks, 0, with.psf, &sums,
                                    &ignored_report));
        each_cell(full, sums, (double *)sums.data, planes.data(),
                  [](double &cell, double &plane) { plane += cell; });
    }
    /* the device */
    device_samples<R> on_gpu(with, set);
    const tess_device_samples &device = on_gpu.view;
    tile_cuda_list list;
    MUST(tile_cuda_sort(&plan, &device, !degrid, NULL, &list));
    std::vector<tess_brick_sum> table;
    tess_brick_sums on = lay_out(plan, list, num_pol, table);
    on_device<tess_brick_sum> device_table(table);
    tile_cuda_sums target = {};
    target.num_pol = num_pol;
    std::vector<R> values(with.whole_planes ? plane_values : 2 * on.num_values);
    if (degrid && with.whole_planes)
        values.assign(planes.begin(), planes.end());
    else if (degrid) {
        for (R &x : values)
            x = (R)NAN; /* what must not be read */
        each_cell(plan, on, values.data(), planes.data(),
                  [](R &cell, double &plane) { cell = (R)plane; });
    }
    on_device<R> data(values);
    target.data = data.data;
    if (with.whole_planes)
        target.num_planes = plan.num_planes;
    else
        target.brick = device_table.data;
    /* in two calls, to try the range of bricks */
    const int64_t middle = list.num_bricks / 3;
    for (int half = 0; half < 2; ++half) {
        const int64_t first = half ? middle : 0, end = half ? list.num_bricks : middle;
        tile_cuda_sums sums = target;
        if (sums.brick) sums.brick += first;
        const cuda_part part = {&device, &list, first, end, &sums};
        if (degrid)
            MUST(tile_cuda_degrid(&plan, &part, NULL));
        else
            MUST(tile_cuda_grid(&plan, &part, with.psf, NULL));
    }
    MUST(cudaDeviceSynchronize());
    if (degrid) {
        const std::vector<R> got = on_gpu.vis.get(set.vis.size());
        report(with, "degrid",
               relative(std::vector<double>(got.begin(), got.end()), vis));
    } else {
        std::vector<R> got = data.get(values.size());
        std::vector<double> sum(plane_values);
        if (with.whole_planes)
            sum.assign(got.begin(), got.end());
        else
            each_cell(plan, on, got.data(), sum.data(),
                      [](R &cell, double &plane) { plane += (double)cell; });
        report(with, "grid", relative(sum, planes));
    }
    int64_t total = 0;
    for (int64_t b = 0; b < list.num_bricks; ++b)
        total += list.brick_vis[b];
    if (total != list.num_vis || (degrid && total != set.num_vis)) {
        printf("FAILED support %d: %lld of %lld visibilities listed\n", with.support,
               (long long)total, (long long)set.num_vis);
        ++num_failed;
    }
    tile_cuda_list_free(&list);
    tess_brick_sums_free(&sums);
    tess_brick_list_free(&bricks);
}

static void check(const setting &with, int rows)
{
    for (int degrid = 0; degrid < 2; ++degrid)
        with.is_double ? check_direction<double>(with, degrid, rows)
                       : check_direction<float>(with, degrid, rows);
}

/* Every row in two pieces, as ranks send them to each other. */
static sample_set cut_rows(const sample_set &set)
{
    sample_set cut = set;
    draws draw = {3};
    cut.uvw.clear();
    cut.chan_base.clear();
    cut.num_chan.clear();
    cut.vis_first.clear();
    for (size_t r = 0; r < set.chan_base.size(); ++r) {
        const int head = (int)(draw.next() * set.num_chan[r]);
        for (int k = 0; k < 2; ++k) {
            const int first = k ? head : 0, end = k ? set.num_chan[r] : head;
            if (first == end) continue;
            cut.uvw.insert(cut.uvw.end(), &set.uvw[3 * r], &set.uvw[3 * r] + 3);
            cut.chan_base.push_back(set.chan_base[r] + first);
            cut.num_chan.push_back(end - first);
            cut.vis_first.push_back(set.vis_first[r] + first);
        }
    }
    return cut;
}

/* All brick sums of the samples. */
template <typename R>
static std::vector<R> brick_sums(const setting &with, const tess_grid_plan &plan,
                                 const sample_set &set, int num_pol)
{
    device_samples<R> on_gpu(with, set);
    tile_cuda_list list;
    MUST(tile_cuda_sort(&plan, &on_gpu.view, true, NULL, &list));
    std::vector<tess_brick_sum> table;
    const tess_brick_sums on = lay_out(plan, list, num_pol, table);
    on_device<tess_brick_sum> device_table(table);
    on_device<R> data(std::vector<R>((size_t)(2 * on.num_values)));
    tile_cuda_sums target = {};
    target.data = data.data;
    target.num_pol = num_pol;
    target.brick = device_table.data;
    const cuda_part all = {&on_gpu.view, &list, 0, list.num_bricks, &target};
    MUST(tile_cuda_grid(&plan, &all, with.psf, NULL));
    MUST(cudaDeviceSynchronize());
    const std::vector<R> got = data.get((size_t)(2 * on.num_values));
    tile_cuda_list_free(&list);
    return got;
}

/* A repeatable plan: the same bits again and again, and from rows that are cut. */
template <typename R> static void check_repeatable(const setting &with, int rows)
{
    tess_grid_plan plan = plan_for(with);
    const sample_set set(with, plan, rows, true), cut = cut_rows(set);
    const int num_pol = with.num_pol + (with.psf ? 1 : 0);
    const std::vector<R> free_order = brick_sums<R>(with, plan, set, num_pol);
    plan.opts.repeatable = true;
    const std::vector<R> first = brick_sums<R>(with, plan, set, num_pol);
    /* crowds of 10^5 values, each order with roundings of its own */
    report(with, "repeatable",
           relative(std::vector<double>(first.begin(), first.end()),
                    std::vector<double>(free_order.begin(), free_order.end())),
           4);
    for (int k = 0; k < 3; ++k) {
        const std::vector<R> again =
            brick_sums<R>(with, plan, k < 2 ? set : cut, num_pol);
        const bool same =
            again.size() == first.size() &&
            memcmp(again.data(), first.data(), first.size() * sizeof first[0]) == 0;
        report(with, k < 2 ? "the same again" : "the same of cut rows",
               same ? 0 : INFINITY);
    }
}

/* Single precision by one product, and by three; double precision. */
static setting setting_of(int support, int precision)
{
    setting with = {};
    with.support = support;
    with.is_double = precision == 2;
    with.accuracy = precision == 0 ? 1e-2 : 1e-4;
    return with;
}

static void check_order(int support, int rows)
{
    for (int precision = 0; precision < 3; ++precision)
        for (int do_w = 0; do_w < 2; ++do_w) {
            setting with = setting_of(support, precision);
            with.do_w = do_w;
            with.num_pol = 2;
            with.psf = true;
            with.block_planes = 3;
            with.decades = 1;
            /* crowds of several parts of 16 chunks */
            with.is_double ? check_repeatable<double>(with, 20 * rows)
                           : check_repeatable<float>(with, 20 * rows);
        }
}

static void check_support(int support, int rows)
{
    for (int precision = 0; precision < 3; ++precision) {
        setting with = setting_of(support, precision);
        with.do_w = true;
        with.num_pol = 1;
        with.block_planes = 8;
        check(with, rows);
        with.unit = precision == 0 ? 1e26 : 1e-26; /* Jy as W/m²/Hz, say */
        check(with, rows);
        with.unit = 0;
        with.psf = true;
        with.num_pol = 3;
        with.whole_planes = with.shifted = true;
        check(with, rows);
        with.per_pol_weights = true;
        with.whole_planes = false;
        with.block_planes = 14;
        with.decades = precision == 1 ? 10 : 1;
        check(with, rows);
        with.do_w = false;
        check(with, rows);
    }
}

int main(int argc, char **argv)
{
    int devices = 0, rows = 1500;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("no CUDA device: skipped\n");
        return 77;
    }
    if (argc > 1) rows = atoi(argv[1]);
    for (int support = TESS_MIN_SUPPORT; support <= TESS_MAX_SUPPORT; ++support)
        if (argc < 3 || support == atoi(argv[2])) {
            check_support(support, rows);
            check_order(support, rows);
        }
    printf("%d of %d comparisons failed\n", num_failed, num_checked);
    return num_failed ? 1 : 0;
}
