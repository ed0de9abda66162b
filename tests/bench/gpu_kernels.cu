/* Speed and accuracy of the device kernels alone, data on the device:
 *   gpu_kernels [integrations] [accuracy ...]       MeerKAT-like tracks, 4096² of 2"
 *   gpu_kernels random [points] [accuracy ...]      points without order in a 512³ grid
 * One CSV line for each of sort, grid and degrid: median of several runs after a
 * warm-up, visibilities per second, useful arithmetic (4 W² W_w FLOP a visibility), and
 * the relative L2 error against the CPU in double precision (of a smaller set, same
 * plan). */
#include <algorithm>
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

extern "C" {
#include "tess_const.h"
#include "tess_degrid.h"
#include "tess_grid.h"
#include "tess_samples.h"
#include "tess_sim_layout.h"
extern const tess_grid_ops tess_grid_ops_cpu;
extern const tess_degrid_ops tess_degrid_ops_cpu;
}
#include "tess_tile_cuda.h"

enum { REPEATS = 7, CHECKED_INTEGRATIONS = 10 };

#define MUST(call)                                                                     \
    do {                                                                               \
        const int must_result = (int)(call);                                           \
        if (must_result != 0) {                                                        \
            fprintf(stderr, "%s:%d: %s gives %d: %s\n", __FILE__, __LINE__, #call,     \
                    must_result, tess_error_message());                                \
            exit(1);                                                                   \
        }                                                                              \
    } while (0)

template <typename T> T *to_device(const std::vector<T> &from)
{
    T *data = NULL;
    MUST(cudaMalloc(&data, from.size() * sizeof(T) + 16));
    MUST(
        cudaMemcpy(data, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
    return data;
}

/* Numbers in (−1, 1), or all ones. */
template <typename R> __global__ void fill_kernel(R *out, int64_t count, bool ones)
{
    const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= count) return;
    uint64_t x = (uint64_t)(k + 1) * 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    out[k] = ones ? R(1) : (R)((double)(x >> 11) * 0x1p-52 - 1);
}

template <typename R> R *filled(int64_t count, bool ones)
{
    R *out = NULL;
    MUST(cudaMalloc(&out, (size_t)count * sizeof(R) + 16));
    fill_kernel<<<(unsigned)((count + 255) / 256), 256>>>(out, count, ones);
    MUST(cudaGetLastError());
    return out;
}

struct tracks {
    std::vector<double> uvw, inv_lambda;
    std::vector<int32_t> chan_base, num_chan;
    std::vector<int64_t> vis_first;
    double w_max = 0;
};

/* Declination −30°, 16 channels of 4 MHz around 1.28 GHz, 8 s integrations. */
static tracks meerkat(int integrations)
{
    tracks out;
    const int channels = 16;
    const tess_layout_antenna *antenna = tess_layout_meerkat.antenna;
    const double dec = -TESS_PI / 6, longitude = 21.4439 * TESS_PI / 180;
    for (int c = 0; c < channels; ++c)
        out.inv_lambda.push_back((1.28e9 + (c - 7.5) * 4e6) / TESS_SPEED_OF_LIGHT_M_S);
    for (int t = 0; t < integrations; ++t) {
        /* the same range of hour angles whatever their number */
        const double hours = -1 + (t + 0.5) * 2.0 / integrations;
        const double h = hours * TESS_PI / 12 - longitude;
        for (int i = 0; i < tess_layout_meerkat.num_antennas; ++i)
            for (int j = i + 1; j < tess_layout_meerkat.num_antennas; ++j) {
                double b[3];
                for (int k = 0; k < 3; ++k)
                    b[k] = antenna[j].xyz_m[k] - antenna[i].xyz_m[k];
                const double along = cos(h) * b[0] - sin(h) * b[1];
                out.uvw.push_back(sin(h) * b[0] + cos(h) * b[1]);
                out.uvw.push_back(-sin(dec) * along + cos(dec) * b[2]);
                out.uvw.push_back(cos(dec) * along + sin(dec) * b[2]);
                out.w_max =
                    fmax(out.w_max, fabs(out.uvw.back()) * out.inv_lambda.back());
                out.chan_base.push_back(0);
                out.num_chan.push_back(channels);
                out.vis_first.push_back((int64_t)out.vis_first.size() * channels);
            }
    }
    return out;
}

static tracks random_points(int64_t count, const tess_grid_plan *plan)
{
    tracks out;
    uint64_t state = 1;
    out.inv_lambda.push_back(1);
    const double u_max = 0.49 / plan->target.geom.scale_rad;
    const double w_max = (plan->num_planes - plan->w_support - 1) * plan->w_step_lambda;
    for (int64_t k = 0; k < count; ++k) {
        double x[3];
        for (int j = 0; j < 3; ++j) {
            state = state * 6364136223846793005ull + 1442695040888963407ull;
            x[j] = (double)(state >> 11) * 0x1p-53;
        }
        out.uvw.push_back(u_max * (2 * x[0] - 1));
        out.uvw.push_back(u_max * (2 * x[1] - 1));
        out.uvw.push_back(w_max * x[2]);
        out.chan_base.push_back(0);
        out.num_chan.push_back(1);
        out.vis_first.push_back(k);
    }
    return out;
}

static tess_device_samples upload(const tracks &from, bool is_double)
{
    tess_device_samples s = {};
    s.is_double = is_double;
    s.num_pol = s.num_weight = 1;
    s.max_chan = (int32_t)from.inv_lambda.size();
    s.num_rows = (int64_t)from.chan_base.size();
    s.num_vis = s.num_rows * s.max_chan;
    s.uvw_m = to_device(from.uvw);
    s.chan_base = to_device(from.chan_base);
    s.num_chan = to_device(from.num_chan);
    s.vis_first = to_device(from.vis_first);
    s.inv_lambda = to_device(from.inv_lambda);
    if (is_double) {
        s.vis = filled<double>(2 * s.num_vis, false);
        s.weight = filled<double>(s.num_vis, true);
    } else {
        s.vis = filled<float>(2 * s.num_vis, false);
        s.weight = filled<float>(s.num_vis, true);
    }
    return s;
}

static void release(tess_device_samples *s)
{
    cudaFree((void *)s->uvw_m);
    cudaFree((void *)s->chan_base);
    cudaFree((void *)s->num_chan);
    cudaFree((void *)s->vis_first);
    cudaFree((void *)s->inv_lambda);
    cudaFree(s->vis);
    cudaFree((void *)s->weight);
}

/* An arena, or whole planes, with room for the list's bricks. */
struct room {
    tile_cuda_sums sums = {};
    std::vector<tess_brick_sum> table;
    tess_brick_sum *device_table = NULL;
    int64_t values = 0;
    size_t bytes = 0;
};

static room make_room(const tess_grid_plan *plan, const tile_cuda_list &list,
                      bool whole_planes)
{
    room out;
    out.sums.num_pol = 1;
    if (whole_planes) {
        out.values = plan->num_planes * plan->nu * plan->nv;
        out.sums.num_planes = plan->num_planes;
    } else {
        for (int64_t b = 0; b < list.num_bricks; ++b) {
            tess_brick_sum sum = {};
            sum.key = list.key[b];
            sum.plane_first = list.plane_first[b];
            sum.num_planes = list.num_planes[b];
            sum.offset = out.values;
            out.values += (int64_t)sum.num_planes * tess_grid_brick_lines(plan) *
                          tess_grid_brick_stride(plan);
            out.table.push_back(sum);
        }
        out.device_table = to_device(out.table);
        out.sums.brick = out.device_table;
    }
    out.bytes = (size_t)out.values * (plan->is_double ? 16 : 8);
    MUST(cudaMalloc(&out.sums.data, out.bytes));
    return out;
}

static void release(room *r)
{
    cudaFree(r->sums.data);
    cudaFree(r->device_table);
}

template <typename Do> double median_seconds(Do act)
{
    std::vector<double> seconds;
    cudaEvent_t begin, end;
    MUST(cudaEventCreate(&begin));
    MUST(cudaEventCreate(&end));
    for (int k = 0; k <= REPEATS; ++k) {
        float ms = 0;
        MUST(cudaEventRecord(begin));
        act();
        MUST(cudaEventRecord(end));
        MUST(cudaEventSynchronize(end));
        MUST(cudaEventElapsedTime(&ms, begin, end));
        if (k > 0) seconds.push_back(1e-3 * ms);
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    std::sort(seconds.begin(), seconds.end());
    return seconds[REPEATS / 2];
}

template <typename R>
static double compare(const void *device, const double *truth, int64_t count)
{
    std::vector<R> got((size_t)count);
    double difference = 0, norm = 0;
    MUST(cudaMemcpy(got.data(), device, (size_t)count * sizeof(R),
                    cudaMemcpyDeviceToHost));
    for (int64_t k = 0; k < count; ++k) {
        difference += ((double)got[k] - truth[k]) * ((double)got[k] - truth[k]);
        norm += truth[k] * truth[k];
    }
    return sqrt(difference / norm);
}

/* Errors of grid and degrid against the CPU in double precision. */
static void measure_errors(const tess_grid_plan *plan, const tracks &from,
                           double error[2])
{
    tess_grid_plan full = *plan;
    full.is_double = true;
    tess_device_samples device = upload(from, plan->is_double);
    tile_cuda_list list;
    MUST(tile_cuda_sort(plan, &device, false, NULL, &list));
    room place = make_room(plan, list, false);
    MUST(cudaMemset(place.sums.data, 0, place.bytes));
    const cuda_part all = {&device, &list, 0, list.num_bricks, &place.sums};
    MUST(tile_cuda_grid(plan, &all, false, NULL));
    MUST(cudaDeviceSynchronize());
    std::vector<double> vis((size_t)(2 * device.num_vis)),
        ones((size_t)device.num_vis, 1.0);
    if (plan->is_double)
        MUST(
            cudaMemcpy(vis.data(), device.vis, vis.size() * 8, cudaMemcpyDeviceToHost));
    else {
        std::vector<float> single(vis.size());
        MUST(cudaMemcpy(single.data(), device.vis, vis.size() * 4,
                        cudaMemcpyDeviceToHost));
        std::copy(single.begin(), single.end(), vis.begin());
    }
    tess_samples host = {};
    host.is_double = true;
    host.num_pol = host.num_weight = 1;
    host.num_rows = device.num_rows;
    host.num_vis = device.num_vis;
    host.uvw_m = (double *)from.uvw.data();
    host.chan_base = (int32_t *)from.chan_base.data();
    host.num_chan = (int32_t *)from.num_chan.data();
    host.vis_first = (int64_t *)from.vis_first.data();
    host.inv_lambda = from.inv_lambda.data();
    host.vis = vis.data();
    host.weight = ones.data();
    tess_brick_list bricks = {};
    MUST(tess_brick_list_append(&full, &host, 0, host.num_rows, false,
                                plan->opts.threads, &bricks));
    MUST(tess_brick_list_sort(&bricks, plan->opts.threads));
    tess_brick_sums sums = {};
    sums.num_pol = 1;
    MUST(tess_grid_ops_cpu.begin(&full, &host, &bricks, 0, bricks.num_bricks, &sums));
    tess_grid_report report = {NULL, 0};
    MUST(tess_grid_ops_cpu.grid(&full, &host, &bricks, 0, false, &sums, &report));
    /* strides differ between precisions: in the device's layout */
    const int64_t lines = tess_grid_brick_lines(plan);
    const int64_t stride = tess_grid_brick_stride(plan);
    const int64_t full_stride = tess_grid_brick_stride(&full);
    std::vector<double> truth((size_t)(2 * place.values), 0.0);
    for (int64_t b = 0; b < sums.num_bricks; ++b) {
        if (sums.brick[b].key != list.key[b] ||
            sums.brick[b].plane_first != list.plane_first[b] ||
            sums.brick[b].num_planes != list.num_planes[b]) {
            fprintf(stderr, "brick %lld differs\n", (long long)b);
            exit(1);
        }
        const double *data = (const double *)sums.data;
        for (int64_t k = 0; k < sums.brick[b].num_planes * lines; ++k)
            memcpy(&truth[2 * (place.table[b].offset + k * stride)],
                   data + 2 * (sums.brick[b].offset + k * full_stride),
                   (size_t)lines * 16);
    }
    error[0] = plan->is_double
                   ? compare<double>(place.sums.data, truth.data(), 2 * place.values)
                   : compare<float>(place.sums.data, truth.data(), 2 * place.values);
    /* back: from those sums */
    MUST(tess_degrid_ops_cpu.degrid(&full, &host, &bricks, 0, &sums, &report));
    if (plan->is_double)
        MUST(cudaMemcpy(place.sums.data, truth.data(), place.bytes,
                        cudaMemcpyHostToDevice));
    else {
        std::vector<float> single(truth.begin(), truth.end());
        MUST(cudaMemcpy(place.sums.data, single.data(), place.bytes,
                        cudaMemcpyHostToDevice));
    }
    MUST(tile_cuda_degrid(plan, &all, NULL));
    MUST(cudaDeviceSynchronize());
    error[1] = plan->is_double
                   ? compare<double>(device.vis, vis.data(), 2 * device.num_vis)
                   : compare<float>(device.vis, vis.data(), 2 * device.num_vis);
    tess_brick_sums_free(&sums);
    tess_brick_list_free(&bricks);
    tile_cuda_list_free(&list);
    release(&place);
    release(&device);
}

static void print_line(const char *set, const tess_grid_plan *plan, double accuracy,
                       const char *what, int64_t num_vis, double seconds, double error)
{
    const double w = plan->kernel.support;
    printf("%s,%.0e,%d,%d,%s,%.3f,%.3f,%.2f,%.1e\n", set, accuracy,
           plan->kernel.support, plan->num_planes, what, 1e3 * seconds,
           1e-9 * (double)num_vis / seconds,
           1e-12 * 4 * w * w * plan->w_support * (double)num_vis / seconds, error);
    fflush(stdout);
}

static void measure(const char *set, const tess_grid_plan *plan, double accuracy,
                    const tracks &from, const double error[2], bool whole_planes)
{
    tess_device_samples samples = upload(from, plan->is_double);
    tile_cuda_list list = {};
    const double sort = median_seconds([&] {
        tile_cuda_list_free(&list);
        MUST(tile_cuda_sort(plan, &samples, true, NULL, &list));
    });
    print_line(set, plan, accuracy, "sort", samples.num_vis, sort, 0);
    room place = make_room(plan, list, whole_planes);
    printf("# %s: %lld runs, %lld bricks, %lld chunks, %.2f GB of sums\n", set,
           (long long)list.num_runs, (long long)list.num_bricks,
           (long long)list.first_chunk[list.num_bricks], 1e-9 * (double)place.bytes);
    const cuda_part all = {&samples, &list, 0, list.num_bricks, &place.sums};
    /* zeroing is part of it */
    const double grid = median_seconds([&] {
        MUST(cudaMemsetAsync(place.sums.data, 0, place.bytes));
        MUST(tile_cuda_grid(plan, &all, false, NULL));
    });
    print_line(set, plan, accuracy, "grid", samples.num_vis, grid, error[0]);
    const double degrid =
        median_seconds([&] { MUST(tile_cuda_degrid(plan, &all, NULL)); });
    print_line(set, plan, accuracy, "degrid", samples.num_vis, degrid, error[1]);
    tile_cuda_list_free(&list);
    release(&place);
    release(&samples);
}

static bool quick()
{
    return getenv("TESS_BENCH_QUICK") != NULL;
}

static void bench_tracks(int integrations, double accuracy)
{
    const tracks from = meerkat(integrations);
    tess_geom geom = {};
    geom.nx = geom.ny = 4096;
    geom.scale_rad = 2.0 / 3600 * TESS_PI / 180;
    tess_grid_opts opts;
    tess_grid_plan *plan = NULL;
    double error[2] = {};
    tess_grid_opts_default(&opts);
    opts.accuracy = accuracy;
    opts.w_max_lambda = from.w_max;
    opts.num_vis = (int64_t)from.chan_base.size() * 16;
    opts.threads = 8;
    MUST(tess_grid_plan_create(&geom, &opts, NULL, &plan));
    if (!quick()) measure_errors(plan, meerkat(CHECKED_INTEGRATIONS), error);
    measure("meerkat", plan, accuracy, from, error, false);
    if (!quick()) measure("meerkat, whole planes", plan, accuracy, from, error, true);
    tess_grid_plan_destroy(plan);
}

/* Support as cuFINUFFT has it for this tolerance with its upsampling of 2, on a grid of
 * 512 cells along each axis. */
static void bench_random(int64_t count, double accuracy)
{
    const int support = (int)ceil(log10(1 / accuracy)) + 1;
    double error[2] = {};
    tess_geom geom = {};
    tess_grid_opts opts;
    tess_grid_plan *plan = NULL;
    tess_grid_opts_default(&opts);
    geom.nx = geom.ny = 256;
    geom.scale_rad = 1e-3;
    opts.accuracy = 10 * accuracy; /* a plan also counts w and rounding */
    opts.precision = accuracy < 9e-6 ? TESS_PRECISION_DOUBLE : TESS_PRECISION_SINGLE;
    opts.support = support < TESS_MIN_SUPPORT ? TESS_MIN_SUPPORT : support;
    opts.padding_min = opts.padding_max = 2;
    opts.w_max_lambda = 1;
    opts.threads = 8;
    MUST(tess_grid_plan_create(&geom, &opts, NULL, &plan));
    plan->opts.accuracy = accuracy;
    plan->nu = plan->nv = plan->num_planes = 512;
    plan->tiles_u = plan->tiles_v = 512 / plan->tile;
    plan->block_planes = 8;
    plan->num_blocks = (plan->num_planes - plan->w_support) / plan->block_planes + 1;
    plan->w_step_lambda = 1;
    plan->w_first_lambda = -0.5 * plan->w_support;
    if (!quick()) measure_errors(plan, random_points(count / 20, plan), error);
    measure("random", plan, accuracy, random_points(count, plan), error, true);
    tess_grid_plan_destroy(plan);
}

int main(int argc, char **argv)
{
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("no CUDA device: skipped\n");
        return 77;
    }
    const bool random = argc > 1 && strcmp(argv[1], "random") == 0;
    const int at = random ? 2 : 1;
    const int64_t size = argc > at ? atoll(argv[at]) : random ? 10000000 : 900;
    std::vector<double> accuracies;
    for (int k = at + 1; k < argc; ++k)
        accuracies.push_back(atof(argv[k]));
    if (accuracies.empty()) accuracies = {1e-2, 1e-3, 1e-4, 1e-5, 1e-8};
    printf("set,accuracy,support,planes,what,ms,Gvis/s,useful TFLOP/s,error\n");
    for (double accuracy : accuracies)
        random ? bench_random(size, accuracy) : bench_tracks((int)size, accuracy);
    return 0;
}
