/* Multiplies samples in device memory by gains of antennas, or sets a source in their
 * place. Each value of 8 bytes is read or written once: 24 bytes and two matrices,
 * which the cache holds, for a sample of two correlations. At 2.4 TB/s this takes .3 ms
 * for 29 M samples. */
#include "tess_cuda.h" /* first */

#include "take_cuda.h"
#include "tess_cuda_complex.cuh"
#include "tess_cuda_launch.cuh"

namespace
{

enum { THREADS = 256 };

/* What a thread works with; see tess_take and tess_device_samples. */
struct take_args {
    tess_take take;
    const double *jones; /* device, as the next */
    const int32_t *time;
    tess_origins origins;
    int64_t num_rows;
    int32_t max_chan;
    const int32_t *chan_base, *num_chan, *origin;
    const int64_t *vis_first;
};

__device__ inline double2 times(double2 a, double2 b)
{
    return make_double2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

__device__ inline double2 conjugate(double2 a)
{
    return make_double2(a.x, -a.y);
}

__device__ inline void add(double2 *sum, double2 a)
{
    sum->x += a.x;
    sum->y += a.y;
}

/* The matrices of both antennas of a sample. */
__device__ void find_matrices(const take_args &by, int64_t row, int32_t c,
                              double2 first[4], double2 second[4])
{
    const tess_origin of = tess_origin_of(&by.origins, by.origin[row]);
    const int64_t antenna0 = by.time[of.interval] * (int64_t)by.origins.num_antennas;
    const int64_t chan = by.chan_base[row] + c, chans = by.take.num_chan;
    const int64_t one = (antenna0 + of.antenna1) * chans + chan;
    const int64_t two = (antenna0 + of.antenna2) * chans + chan;
    for (int k = 0; k < 4; ++k) {
        first[k] = ((const double2 *)by.jones)[4 * one + k];
        second[k] = ((const double2 *)by.jones)[4 * two + k];
    }
}

/* value[num_corr] := those of G1ᴴ V G2. Each is the sum over the correlations of the
 * sample times the conjugate of an entry of the Kronecker product of both matrices. */
__device__ void undo_gains(const take_args &by, const double2 first[4],
                           const double2 second[4], double2 value[TESS_TAKE_MOST])
{
    const int num = by.take.num_corr;
    double2 out[TESS_TAKE_MOST];
    const double2 xx = times(first[0], conjugate(second[0]));
    const double2 yy = times(first[3], conjugate(second[3]));
    const double2 mean = make_double2(0.5 * (xx.x + yy.x), 0.5 * (xx.y + yy.y));
    for (int to = 0; to < num; ++to) {
        out[to] = make_double2(0, 0);
        if (by.take.is_scalar) add(&out[to], times(conjugate(mean), value[to]));
        for (int from = 0; from < num && !by.take.is_scalar; ++from) {
            const int *a = by.take.feed[from], *b = by.take.feed[to];
            const double2 pair =
                times(first[2 * a[0] + b[0]], conjugate(second[2 * a[1] + b[1]]));
            add(&out[to], times(conjugate(pair), value[from]));
        }
    }
    for (int to = 0; to < num; ++to)
        value[to] = out[to];
}

/* A thread works on a channel of a row. The limit is memory. */
template <typename R>
__global__ void take_kernel(take_args by, const void *from, void *to)
{
    typedef typename cuda_complex<R>::type complex;
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int64_t row = k / by.max_chan;
    const int32_t c = (int32_t)(k % by.max_chan);
    double2 value[TESS_TAKE_MOST], first[4], second[4];
    if (row >= by.num_rows || c >= by.num_chan[row]) return;
    const int64_t sample = by.vis_first[row] + c;
    for (int q = 0; q < by.take.num_corr; ++q) {
        const complex v = ((const complex *)from)[sample * by.take.num_corr + q];
        value[q] = make_double2((double)v.x, (double)v.y);
    }
    if (by.jones) {
        find_matrices(by, row, c, first, second);
        undo_gains(by, first, second, value);
    }
    for (int p = 0; p < by.take.num_pol; ++p) {
        double2 sum = make_double2(0, 0);
        for (int q = 0; q < by.take.num_corr; ++q)
            add(&sum,
                times(make_double2(by.take.taken[p][q][0], by.take.taken[p][q][1]),
                      value[q]));
        complex out;
        out.x = (R)sum.x;
        out.y = (R)sum.y;
        ((complex *)to)[sample * by.take.num_pol + p] = out;
    }
}

/* A thread works on a channel of a row. The limit is memory. */
template <typename R>
__global__ void source_kernel(tess_device_samples of, tess_geom_phase phase)
{
    typedef typename cuda_complex<R>::type complex;
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int64_t row = k / of.max_chan;
    const int32_t c = (int32_t)(k % of.max_chan);
    if (row >= of.num_rows || c >= of.num_chan[row]) return;
    const double *uvw_m = of.uvw_m + 3 * row;
    const double path_m =
        uvw_m[0] * phase.l + uvw_m[1] * phase.m + uvw_m[2] * phase.nm1;
    const double turns = path_m * of.inv_lambda[of.chan_base[row] + c];
    double sine, cosine;
    sincospi(2 * (turns - rint(turns)), &sine, &cosine);
    complex out;
    out.x = (R)cosine;
    out.y = (R)sine;
    for (int p = 0; p < of.num_pol; ++p)
        ((complex *)of.vis)[(of.vis_first[row] + c) * of.num_pol + p] = out;
}

int64_t blocks_of(const tess_device_samples *samples)
{
    return (samples->num_rows * samples->max_chan + THREADS - 1) / THREADS;
}

take_args args_of(const tess_take *take, const tess_device_samples *from)
{
    take_args by = {};
    by.take = *take;
    by.num_rows = from->num_rows;
    by.max_chan = from->max_chan;
    by.chan_base = from->chan_base;
    by.num_chan = from->num_chan;
    by.origin = from->origin;
    by.vis_first = from->vis_first;
    if (take->jones) by.origins = *take->origins;
    return by;
}

/* Copies the matrices, and the times of intervals. */
tess_status copy_table(const tess_take *take, const void **jones, const void **time)
{
    tess_status status = TESS_OK;
    const tess_origins *origins = take->origins;
    const int64_t matrices = take->num_times * origins->num_antennas * take->num_chan;
    TESS_TRY(tess_device_copy_of(take->jones, matrices * 8 * (int64_t)sizeof(double),
                                 "gains of antennas", jones));
    TESS_TRY(tess_device_copy_of(take->time,
                                 origins->num_intervals * (int64_t)sizeof(int32_t),
                                 "gains of antennas", time));
cleanup:
    return status;
}

} // namespace

tess_status take_cuda(const tess_take *take, const tess_device_samples *from,
                      const tess_device_samples *to)
{
    tess_status status = TESS_OK;
    const int64_t blocks = blocks_of(from);
    const void *jones = NULL, *time = NULL;
    take_args by = args_of(take, from);
    if (from->num_vis == 0) return TESS_OK;
    if (take->num_pol > TESS_TAKE_MOST || take->num_corr > TESS_TAKE_MOST ||
        (take->jones && !from->origin))
        TESS_FAIL(TESS_ERR_INTERNAL, "%d values of %d correlations", take->num_pol,
                  take->num_corr);
    if (take->jones) TESS_TRY(copy_table(take, &jones, &time));
    by.jones = (const double *)jones;
    by.time = (const int32_t *)time;
    if (from->is_double)
        tess_launch(take_kernel<double>, blocks, THREADS, 0, by, from->vis, to->vis);
    else
        tess_launch(take_kernel<float>, blocks, THREADS, 0, by, from->vis, to->vis);
    TESS_CUDA_LAUNCHED();
cleanup:
    tess_device_free((void *)jones);
    tess_device_free((void *)time);
    return status;
}

tess_status source_cuda(const tess_geom_phase *phase,
                        const tess_device_samples *samples)
{
    tess_status status = TESS_OK;
    const int64_t blocks = blocks_of(samples);
    if (samples->num_vis == 0) return TESS_OK;
    if (samples->is_double)
        tess_launch(source_kernel<double>, blocks, THREADS, 0, *samples, *phase);
    else
        tess_launch(source_kernel<float>, blocks, THREADS, 0, *samples, *phase);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}
