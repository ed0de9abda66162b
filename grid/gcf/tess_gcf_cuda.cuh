/** @file tess_gcf_cuda.cuh
 *  What a strategy on a GPU is made of, for those who write one: the table, points and
 *  cells in device memory, how points are sorted, and how kernels read taps. A strategy
 *  is a gcf_device_method for each direction, which its tess_gcf_strategy::cuda tells.
 */
#ifndef TESS_GCF_CUDA_CUH
#define TESS_GCF_CUDA_CUH

#include "tess_cuda_complex.cuh"
#include "tess_gcf_device.cuh"
#include "tess_gcf_strategy.h"

/** gcf_place in 16 bytes, to be loaded at once. */
struct __align__(16) gcf_cuda_place
{
    int32_t u, v;    /**< first cell of the footprint */
    uint32_t kernel; /**< plane, offsets and flags, see below; ~0: outside */
    uint32_t point;  /**< index in the points */
};

enum {
    GCF_PLANE_BITS = 12, /* TESS_GCF_MAX_PLANES */
    GCF_OFFSET_BITS = 6, /* TESS_GCF_MAX_OVERSAMPLING / 2, of the table read, or
                            TESS_GCF_MAX_UNEVEN */
    GCF_KERNEL_BITS = GCF_PLANE_BITS + 2 * GCF_OFFSET_BITS
};
static const uint32_t GCF_FLIP_U = 1u << GCF_KERNEL_BITS,
                      GCF_FLIP_V = 2u << GCF_KERNEL_BITS,
                      GCF_CONJUGATE = 4u << GCF_KERNEL_BITS, GCF_OUTSIDE = ~0u;

/** How a strategy wants its points. */
struct gcf_cuda_order {
    int tile_u, tile_v; /**< cells of the tiles that sort points; 0: not by tile */
    bool meeting;       /**< a tile lists all points whose footprints meet it, not just
                             those that start in it */
    bool by_kernel;     /**< and then by plane, offsets and flips, so that those that
                             read the same taps are neighbours; … */
    bool by_layer;      /**< … or by plane alone */
    int narrow; /**< meeting: but those of kernels up to so wide, which are in no
                     list; 0: none */
};

/** The same as gcf_cuda_place, an array each. */
struct gcf_cuda_arrays {
    int32_t *u, *v;
    uint32_t *kernel, *point;
};

/** The table of convolution functions, in device memory. */
struct gcf_cuda_table {
    const void *taps;        /**< complex, as tess_gcf::data, … */
    int64_t zero_tap;        /**< … and behind them a zero */
    const void *single_taps; /**< so too, in single precision; NULL: not asked for */
    const gcf_cuda_plane *plane;
    tess_gcf_formula formula; /**< instead of taps, for computed */
    int num_planes, half_offsets, oversampling;
    int min_support, max_support;
};

/** What a call on the host knows beside the job. */
struct gcf_cuda_host {
    const gcf_on_device *with; /**< the plan's tables and factors on the device */
    const tess_gcf_plan *plan;
    tess_gcf_report *report;
    cudaEvent_t sorted; /**< recorded again by strategies that prepare more */
};

/** Everything of a call, in device memory unless it says otherwise; passed to kernels
 * by value. */
struct gcf_cuda_job {
    gcf_cuda_table table;
    bool is_double;
    /* points inside of the grid, in order */
    const gcf_cuda_place *place;  /**< [count]; kernels read gcf_place_of() */
    gcf_cuda_arrays array;        /**< NULL, or instead of it */
    int64_t count;                /**< of points; of entries where tiles list those that
                                       meet them */
    const gcf_cuda_place *placed; /**< [num_placed] all points, as they came, those
                                     outside too */
    int64_t num_placed, num_narrow; /**< of them; and those that no tile lists */
    gcf_cuda_order order;
    int tiles_u, tiles_v;  /**< 0: not by tile */
    const uint32_t *first; /**< [tiles_u·tiles_v + 1] first point of each tile */
    void *vis;             /**< complex, by gcf_cuda_place::point: kernels read
                                gcf_vis_of(), and write gcf_vis_part() */
    bool planar;           /**< [num_pol][num_vis], else [num_vis][num_pol] */
    int64_t num_vis;       /**< all points, those outside too */
    double near_share;     /**< of points that lie a few cells from the one before, as
                                they came: near 1 for tracks */
    int num_pol;
    /* the grid */
    void *cells; /**< complex [num_pol][nu][nv] */
    int nu, nv;
    int64_t pol_stride; /**< from pol to pol [complex values] */
    gcf_cuda_host host; /**< kernels do not look at it */
};

/** Coordinates of points to the device, to `*memory`, which the caller frees; their
 *  number and polarisations. */
tess_status gcf_cuda_upload_points(const tess_gcf_points *points, double **memory,
                                   gcf_device_points *there);

/** A strategy, one direction. */
struct gcf_device_method {
    gcf_cuda_order (*order)(const gcf_cuda_job &job); /**< NULL: as they come; the
                                                           table is known to it */
    /** Called when points are placed and before they are sorted: job.placed is set. Or
     *  NULL. */
    tess_status (*placed)(const gcf_cuda_job &job);
    /** Enqueue the kernels in tess_device_stream(). job->cells are added to;
     *  job->vis are set (those outside are 0 already). Not called for no points. */
    tess_status (*run)(const gcf_cuda_job &job);
};

/** Device memory for `count` of what it points to. */
template <typename T>
static tess_status gcf_take(int64_t count, const char *what, T **memory)
{
    return tess_device_alloc(count * (int64_t)sizeof **memory, what, (void **)memory);
}

/** function<R, POLS>(arguments) for the job's precision and polarisations. */
#define GCF_BY_TYPE(job, function, ...)                                                \
    ((job).is_double ? ((job).num_pol == 1   ? function<double, 1>(__VA_ARGS__)        \
                        : (job).num_pol == 2 ? function<double, 2>(__VA_ARGS__)        \
                                             : function<double, 4>(__VA_ARGS__))       \
                     : ((job).num_pol == 1   ? function<float, 1>(__VA_ARGS__)         \
                        : (job).num_pol == 2 ? function<float, 2>(__VA_ARGS__)         \
                                             : function<float, 4>(__VA_ARGS__)))

__host__ __device__ inline int gcf_plane_of(uint32_t kernel)
{
    return (int)(kernel & ((1u << GCF_PLANE_BITS) - 1));
}

/** Point number k, in order. */
__device__ inline gcf_cuda_place gcf_place_of(const gcf_cuda_job &job, int64_t k)
{
    if (!job.array.u) return job.place[k];
    return {job.array.u[k], job.array.v[k], job.array.kernel[k], job.array.point[k]};
}

/** Where a polarisation of a visibility lies [complex values]. */
template <int POLS>
__device__ inline int64_t gcf_vis_index(const gcf_cuda_job &job, uint32_t point,
                                        int pol)
{
    return POLS > 1 && job.planar ? pol * job.num_vis + point
                                  : (int64_t)point * POLS + pol;
}

template <typename R, int POLS>
__device__ inline typename cuda_complex<R>::type gcf_vis_of(const gcf_cuda_job &job,
                                                            uint32_t point, int pol)
{
    return ((const typename cuda_complex<R>::type *)
                job.vis)[gcf_vis_index<POLS>(job, point, pol)];
}

/** First tap of a point's kernel in a table: forwards, whatever its flips. */
template <typename T>
__device__ inline const typename cuda_complex<T>::type *
gcf_taps(const gcf_cuda_job &job, const void *table, const gcf_cuda_plane &plane,
         uint32_t kernel)
{
    const uint32_t mask = (1u << GCF_OFFSET_BITS) - 1;
    const int ou = (int)(kernel >> GCF_PLANE_BITS & mask);
    const int ov = (int)(kernel >> (GCF_PLANE_BITS + GCF_OFFSET_BITS) & mask);
    return (const typename cuda_complex<T>::type *)table + plane.offset +
           ((int64_t)ou * job.table.half_offsets + ov) * plane.support * plane.support;
}

/** Taps as a point on its cells reads them: tap (i, j) is at
 *  first[i · step_u + j · step_v], to be conjugated by `sign` of its imaginary part;
 *  in precision T. */
template <typename R, typename T = R> struct gcf_taps_view {
    const typename cuda_complex<T>::type *first;
    int step_u, step_v, support;
    R sign;
};

template <typename R, typename T = R>
__device__ inline gcf_taps_view<R, T> gcf_view(const gcf_cuda_job &job, uint32_t kernel)
{
    const gcf_cuda_plane plane = job.table.plane[gcf_plane_of(kernel)];
    gcf_taps_view<R, T> view;
    view.first = gcf_taps<T>(
        job, sizeof(T) == sizeof(R) ? job.table.taps : job.table.single_taps, plane,
        kernel);
    view.support = plane.support;
    view.step_u = kernel & GCF_FLIP_U ? -plane.support : plane.support;
    view.step_v = kernel & GCF_FLIP_V ? -1 : 1;
    if (kernel & GCF_FLIP_U) view.first += (plane.support - 1) * plane.support;
    if (kernel & GCF_FLIP_V) view.first += plane.support - 1;
    view.sign = kernel & GCF_CONJUGATE ? -1 : 1;
    return view;
}

/** The taps view of a table that is read in either precision: `first` and its steps go
 *  with gcf_tap_of(). */
template <typename R> struct gcf_either_view {
    const void *first;
    int step_u, step_v, support, is_single;
    R sign;
};

template <typename R>
__device__ inline gcf_either_view<R> gcf_view_either(const gcf_cuda_job &job,
                                                     uint32_t kernel)
{
    const bool is_single = sizeof(R) == sizeof(double) && job.table.single_taps;
    gcf_either_view<R> view;
    if (is_single) {
        const gcf_taps_view<R, float> of = gcf_view<R, float>(job, kernel);
        view = {of.first, of.step_u, of.step_v, of.support, 1, of.sign};
    } else {
        const gcf_taps_view<R> of = gcf_view<R>(job, kernel);
        view = {of.first, of.step_u, of.step_v, of.support, 0, of.sign};
    }
    return view;
}

/** The tap that lies `at` values behind the first one. */
template <typename R>
__device__ inline typename cuda_complex<R>::type gcf_tap_of(const void *first,
                                                            int is_single, int64_t at)
{
    typedef typename cuda_complex<R>::type C;
    if (sizeof(R) == sizeof(double) && is_single) {
        const float2 tap = __ldg((const float2 *)first + at);
        return {(R)tap.x, (R)tap.y};
    }
    return __ldg((const C *)first + at);
}

/** The zero behind the table that gcf_view_either() reads. */
template <typename R> __device__ inline const void *gcf_zero_of(const gcf_cuda_job &job)
{
    typedef typename cuda_complex<R>::type C;
    if (sizeof(R) == sizeof(double) && job.table.single_taps)
        return (const float2 *)job.table.single_taps + job.table.zero_tap;
    return (const C *)job.table.taps + job.table.zero_tap;
}

/** A point to be gridded, as threads that share it want it. */
template <typename R, int POLS> struct gcf_stamp {
    const void *taps; /**< see gcf_either_view */
    int step_u, step_v, support, u, v, is_single;
    R vis[POLS][4]; /**< (x, y, −sy, sx), s = −1 for conjugated kernels: what a tap's
                         parts are multiplied with */
};

template <typename R, int POLS>
__device__ inline void gcf_stamp_of(const gcf_cuda_job &job, const gcf_cuda_place &at,
                                    gcf_stamp<R, POLS> *out)
{
    typedef typename cuda_complex<R>::type C;
    const gcf_either_view<R> view = gcf_view_either<R>(job, at.kernel);
    out->taps = view.first;
    out->is_single = view.is_single;
    out->step_u = view.step_u;
    out->step_v = view.step_v;
    out->support = view.support;
    out->u = at.u;
    out->v = at.v;
    for (int p = 0; p < POLS; ++p) {
        const C vis = gcf_vis_of<R, POLS>(job, at.point, p);
        out->vis[p][0] = vis.x;
        out->vis[p][1] = vis.y;
        out->vis[p][2] = -view.sign * vis.y;
        out->vis[p][3] = view.sign * vis.x;
    }
}

/** sum += the tap times the visibility of a stamp's row. */
template <typename R>
__device__ inline void gcf_add_tap(typename cuda_complex<R>::type &sum,
                                   typename cuda_complex<R>::type tap, const R vis[4])
{
    sum.x += tap.x * vis[0];
    sum.y += tap.x * vis[1];
    sum.x += tap.y * vis[2];
    sum.y += tap.y * vis[3];
}

/** sum += a·b, and conj(a)·b. */
template <typename C> __device__ inline void gcf_add_product(C &sum, C a, C b)
{
    sum.x += a.x * b.x;
    sum.x -= a.y * b.y;
    sum.y += a.x * b.y;
    sum.y += a.y * b.x;
}

template <typename C> __device__ inline void gcf_add_conjugate_product(C &sum, C a, C b)
{
    sum.x += a.x * b.x;
    sum.x += a.y * b.y;
    sum.y += a.x * b.y;
    sum.y -= a.y * b.x;
}

#endif
