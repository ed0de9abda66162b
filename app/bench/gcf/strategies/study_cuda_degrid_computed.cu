/* computed, degridding: gather, with kernels of a formula (tess_gcf_formula) computed
 * for each visibility and cell instead of read: no table streams through L2, but an
 * exponential, a sine, a cosine and two square roots take the place of 8 bytes. Studies
 * of degridding on GPUs for the SKA measured kernels of this form, with the device's
 * fast functions and without. */
#include "study_cuda.cuh"
#include "tess_gcf_cuda_degrid.cuh"

namespace
{

enum { THREADS = 256, MOST_THREADS = 512 };

/* What a kernel has besides, bit by bit. */
enum { NOTHING = 0, PHASE = 1, SINE = 2 };

/* e^x and (cos, sin) of 2π·turns. FAST: 2 ulp and more for large |x|, and 2^−21 for
 * angles within a turn (CUDA C++ Programming Guide, section on intrinsic functions). */
template <bool FAST> __device__ inline float exponential(float x)
{
    return FAST ? __expf(x) : expf(x);
}

template <bool FAST> __device__ inline double exponential(double x)
{
    return exp(x);
}

template <bool FAST> __device__ inline float2 circle(float turns)
{
    float2 out;
    const float part = turns - rintf(turns);
    if (FAST)
        __sincosf(6.28318530718f * part, &out.y, &out.x);
    else
        sincospif(2 * part, &out.y, &out.x);
    return out;
}

template <bool FAST> __device__ inline double2 circle(double turns)
{
    double2 out;
    sincospi(2 * (turns - rint(turns)), &out.y, &out.x);
    return out;
}

template <bool FAST> __device__ inline float sine(float turns)
{
    const float part = turns - rintf(turns);
    return FAST ? __sinf(6.28318530718f * part) : sinpif(2 * part);
}

template <bool FAST> __device__ inline double sine(double turns)
{
    return sinpi(2 * (turns - rint(turns)));
}

/* The formula in the kernel's precision. */
template <typename R> struct formula {
    R log_peak, decay, step, w, turns, ripple;
};

/* G at r² = x² + y², conjugated by sign(w). */
template <bool FAST, int EXTRA, typename R>
__device__ inline typename cuda_complex<R>::type value_of(const formula<R> &of, R r2)
{
    const R r = sqrt(r2);
    R size = exponential<FAST>(of.log_peak - of.decay * r);
    if (EXTRA & SINE) size *= 1 + R(0.5) * sine<FAST>(of.ripple * r);
    const R l2 = of.step * of.step * r2;
    auto out = circle<FAST>(of.w * (l2 / (1 + sqrt(1 - l2))));
    if (EXTRA & PHASE) {
        const auto turn = circle<FAST>(of.turns * r2), before = out;
        out.x = before.x * turn.x - before.y * turn.y;
        out.y = before.x * turn.y + before.y * turn.x;
    }
    out.x *= size;
    out.y *= size;
    return out;
}

/* The distance of a footprint's first tap from the visibility, along an axis [cells].
 */
__device__ inline double first_tap(const gcf_cuda_job &job, int support,
                                   uint32_t kernel, int shift, uint32_t flip)
{
    const int offset = (int)(kernel >> shift & ((1u << GCF_OFFSET_BITS) - 1));
    const int full = kernel & flip ? job.table.oversampling - offset : offset;
    return 1 - support / 2 - (double)full / job.table.oversampling;
}

/* A point a warp, lanes over the cells of its footprint, line by line. Nothing is
 * atomic. Expected limit: special functions, 5 a cell. */
template <typename R, int POLS, bool FAST, int EXTRA>
__global__ void __launch_bounds__(MOST_THREADS) computed_kernel(gcf_cuda_job job)
{
    typedef typename cuda_complex<R>::type C;
    const int lane = (int)threadIdx.x % GCF_WARP;
    const int64_t k = gcf_point_of_warp(job);
    if (k < 0) return;
    const gcf_cuda_place at = gcf_place_of(job, k);
    const gcf_cuda_plane plane = job.table.plane[gcf_plane_of(at.kernel)];
    const int support = plane.support;
    const R x0 = (R)first_tap(job, support, at.kernel, GCF_PLANE_BITS, GCF_FLIP_U);
    const R y0 = (R)first_tap(job, support, at.kernel, GCF_PLANE_BITS + GCF_OFFSET_BITS,
                              GCF_FLIP_V);
    formula<R> of;
    of.log_peak = (R)job.table.formula.log_peak;
    of.decay = (R)job.table.formula.decay;
    of.step = (R)job.table.formula.step;
    /* all phases turn the other way where w < 0 */
    const R way = at.kernel & GCF_CONJUGATE ? -1 : 1;
    of.w = way * (R)plane.w;
    of.turns = way * (R)job.table.formula.turns;
    of.ripple = (R)job.table.formula.ripple;
    const C *cells = (const C *)job.cells + (int64_t)at.u * job.nv + at.v;
    C sum[POLS] = {};
    for (int n = lane; n < support * support; n += GCF_WARP) {
        const int i = n / support, j = n % support;
        const R x = x0 + (R)i, y = y0 + (R)j;
        const C tap = value_of<FAST, EXTRA>(of, x * x + y * y);
#pragma unroll
        for (int p = 0; p < POLS; ++p)
            gcf_add_conjugate_product(
                sum[p], tap,
                __ldg(cells + p * job.pol_stride + (int64_t)i * job.nv + j));
    }
    gcf_store_point<POLS>(job, at.point, sum);
}

template <typename R, int POLS, bool FAST> tess_status launch(const gcf_cuda_job &job)
{
    const bool phase = job.table.formula.turns != 0,
               sine = job.table.formula.ripple != 0;
    return study_launch_warps(job,
                              phase && sine
                                  ? computed_kernel<R, POLS, FAST, PHASE | SINE>
                              : phase ? computed_kernel<R, POLS, FAST, PHASE>
                              : sine  ? computed_kernel<R, POLS, FAST, SINE>
                                      : computed_kernel<R, POLS, FAST, NOTHING>,
                              THREADS);
}

template <typename R, int POLS> tess_status run(const gcf_cuda_job &job)
{
    return study_is_fast(job.host.plan->opts.context) ? launch<R, POLS, true>(job)
                                                      : launch<R, POLS, false>(job);
}

} // namespace

tess_status study_degrid_computed(const gcf_cuda_job &job)
{
    return GCF_BY_TYPE(job, run, job);
}
