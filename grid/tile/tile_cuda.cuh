/* What the device kernels share: the plan as they want it, the sorted work, and where a
 * visibility lies. See tess_tile_cuda.h.
 *
 * A brick's visibilities are sorted to four *sub-tiles* of 8×8 start cells, so that
 * with a support of W a sub-tile's footprint is 8 + W − 1 cells wide: 16 up to W = 9,
 * which is a row of tensor-core tiles; and within a sub-tile by first plane, so that
 * neighbours touch the same planes. Visibilities of a sub-tile are numbered through and
 * handed out in *groups* of 32, one for each lane of a warp; a *chunk* is what one
 * block works on. */
#ifndef TESS_TILE_CUDA_CUH
#define TESS_TILE_CUDA_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#include "tess_cuda_complex.cuh"
#include "tess_tile_cuda.h"

enum {
    CUDA_SUB = 8,           /* start cells of a sub-tile, per axis */
    CUDA_GROUP = 32,        /* visibilities of a group */
    CUDA_CHUNK_GROUPS = 32, /* groups of a chunk, at most */
    CUDA_RUN_MAX = 64       /* visibilities of a run, at most */
};

/* Neighbouring channels of one row that start in one sub-tile. `bits`: index of the
 * first sample (40 bits), samples − 1 (6), and at 48 and 56 the lowest and highest
 * first plane relative to the brick's block, at most 255. */
struct __align__(16) cuda_run
{
    unsigned long long bits;
    int32_t row, chan;
};

__host__ __device__ inline int run_count(unsigned long long bits)
{
    return (int)(bits >> 40 & 63) + 1;
}

__host__ __device__ inline int64_t run_first(unsigned long long bits)
{
    return (int64_t)(bits & ((1ull << 40) - 1));
}

struct __align__(8) cuda_group
{
    uint32_t run;   /* where its first visibility is */
    uint16_t skip;  /* visibilities of that run before it */
    uint16_t count; /* ≤ 32 */
};

struct __align__(16) cuda_chunk
{
    int32_t brick, sub; /* in the list; 2·(half in u) + half in v */
    uint32_t first_group;
    int32_t num_groups;
};

struct __align__(16) cuda_brick
{
    int32_t tile_u, tile_v;
    int32_t plane_first, num_planes;
};

/* Device arrays of a list. */
struct tile_cuda_work {
    int64_t num_runs, num_groups, num_chunks;
    cuda_run *run;
    cuda_group *group;
    cuda_chunk *chunk;
    cuda_brick *brick;
    int most_planes; /* of any brick */
    void *memory;    /* that all of them lie in */
    cudaStream_t stream; /* in which they were made, and all work on them is done */
};

/* The plan's geometry. */
struct cuda_geometry {
    double scale_u, scale_v; /* cells per wavelength, signs included */
    double period_u, period_v, per_period_u, per_period_v;
    double half_support, half_w_support;
    double w_first, w_step, per_plane;
    double phase_l, phase_m, phase_nm1; /* tess_geom_phase */
    int32_t support, w_support;
    int32_t nu, nv;
    int32_t num_planes, block_planes;
    int32_t tiles_u, tiles_v;
    int32_t do_w;
};

struct cuda_view {
    const double *uvw_m, *inv_lambda;
    void *vis;
    const void *weight;
    int32_t num_pol, num_weight;
};

/* Arguments of the kernels, by value. */
struct cuda_args {
    cuda_geometry geometry;
    cuda_view samples;
    const cuda_run *run;
    const cuda_group *group;
    const cuda_chunk *chunk; /* of block 0 */
    const cuda_brick *brick;
    int64_t num_runs;
    /* the sums */
    void *data;
    const tess_brick_sum *sum; /* of brick `first_brick`; NULL: whole planes */
    int32_t first_brick;
    int32_t lines, stride;           /* of a brick sum */
    int32_t plane_first, num_planes; /* of whole planes */
    int32_t num_pol;                 /* of the sums */
    int32_t in_order;                /* warps add one after the other */
};

/* Tap polynomials. */
template <typename R> struct cuda_taps {
    int32_t degree;
    R coefficient[TESS_MAX_DEGREE + 1][TESS_MAX_SUPPORT];
};

/* Where the values of a sub-tile are: data[pol][plane][line][cell], complex. */
struct cuda_target {
    int64_t origin; /* of plane 0 of the brick, pol 0 [complex values] */
    int64_t pol_stride, plane_stride;
    int32_t line_stride;
    int32_t line, cell;           /* of the sub-tile's corner */
    int32_t num_lines, num_cells; /* where they wrap around */
};

__device__ inline cuda_target target_of(const cuda_args &args, const cuda_chunk &chunk,
                                        const cuda_brick &brick)
{
    cuda_target at;
    at.line = (chunk.sub >> 1) * CUDA_SUB;
    at.cell = (chunk.sub & 1) * CUDA_SUB;
    if (args.sum) {
        const tess_brick_sum sum = args.sum[chunk.brick - args.first_brick];
        at.line_stride = args.stride;
        at.plane_stride = (int64_t)args.lines * args.stride;
        at.pol_stride = sum.num_planes * at.plane_stride;
        at.origin =
            sum.offset + (brick.plane_first - sum.plane_first) * at.plane_stride;
        at.num_lines = at.num_cells = 1 << 30;
    } else {
        at.line += brick.tile_u * TESS_TILE;
        at.cell += brick.tile_v * TESS_TILE;
        at.line_stride = args.geometry.nv;
        at.plane_stride = (int64_t)args.geometry.nu * args.geometry.nv;
        at.pol_stride = args.num_planes * at.plane_stride;
        at.origin = (brick.plane_first - args.plane_first) * at.plane_stride;
        at.num_lines = args.geometry.nu;
        at.num_cells = args.geometry.nv;
    }
    return at;
}

/* Returns the index of a cell of the sub-tile within polarisation 0 and plane 0. */
__device__ inline int64_t target_index(const cuda_target &at, int u, int v)
{
    int line = at.line + u, cell = at.cell + v;
    if (line >= at.num_lines) line -= at.num_lines;
    if (cell >= at.num_cells) cell -= at.num_cells;
    return (int64_t)line * at.line_stride + cell;
}

/* The visibility of a lane of a warp that works on a group. */
struct cuda_slot {
    int64_t sample;
    int32_t row, chan;
    bool used;
};

/* Lanes hold the runs of the group, and a bit for the first slot of each run tells the
 * other lanes where to look. All lanes of the warp must call. */
__device__ inline cuda_slot slot_of_lane(const cuda_args &args, int64_t index)
{
    const unsigned all = 0xffffffffu;
    const int lane = threadIdx.x & 31;
    const cuda_group group = args.group[index];
    const int64_t mine = (int64_t)group.run + lane;
    cuda_run run = {};
    int count = CUDA_GROUP;
    if (mine < args.num_runs) {
        run = args.run[mine];
        count = run_count(run.bits);
    }
    if (lane == 0) count -= group.skip;
    int end = count;
    for (int step = 1; step < 32; step *= 2) {
        const int before = __shfl_up_sync(all, end, step);
        if (lane >= step) end += before;
    }
    const int start = end - count;
    const unsigned starts = __reduce_or_sync(all, start < 32 ? 1u << start : 0u);
    const int from = __popc(starts & (all >> (31 - lane))) - 1;
    const unsigned long long bits = __shfl_sync(all, run.bits, from);
    const int row = __shfl_sync(all, run.row, from);
    const int chan = __shfl_sync(all, run.chan, from);
    const int offset =
        lane - __shfl_sync(all, start, from) + (from == 0 ? (int)group.skip : 0);
    cuda_slot slot;
    slot.used = lane < group.count;
    slot.sample = run_first(bits) + offset;
    slot.row = row;
    slot.chan = chan + offset;
    return slot;
}

/* Computes the offset of a footprint's first cell from `origin`, and the kernel
 * fraction there, as axis_offset() of the CPU does. */
__device__ inline int axis_place(double coordinate, double half_support, double origin,
                                 double period, double per_period, int last,
                                 double *fraction)
{
    double d = coordinate - half_support - origin;
    d -= period * floor(d * per_period + 0.5);
    double start = ceil(d);
    start = start < 0 ? 0 : start > last ? last : start;
    *fraction = start - d;
    return (int)start;
}

/* The place of a visibility in its sub-tile. */
struct cuda_place {
    int u, v, plane; /* offsets of the footprint; plane within the brick */
    double fraction_u, fraction_v, fraction_w;
    double turns; /* of the centre's phase, within ±½ */
    bool conjugate;
};

__device__ inline cuda_place place_of(const cuda_args &args, const cuda_brick &brick,
                                      int sub, int row, int chan)
{
    const cuda_geometry &g = args.geometry;
    const double *uvw = args.samples.uvw_m + 3 * (int64_t)row;
    const double inv_lambda = args.samples.inv_lambda[chan];
    const double u = uvw[0], v = uvw[1], w = uvw[2];
    cuda_place out;
    out.conjugate = w < 0;
    const double to_lambda = out.conjugate ? -inv_lambda : inv_lambda;
    const double line = brick.tile_u * TESS_TILE + (sub >> 1) * CUDA_SUB;
    const double cell = brick.tile_v * TESS_TILE + (sub & 1) * CUDA_SUB;
    out.u = axis_place(u * g.scale_u * to_lambda, g.half_support, line, g.period_u,
                       g.per_period_u, CUDA_SUB - 1, &out.fraction_u);
    out.v = axis_place(v * g.scale_v * to_lambda, g.half_support, cell, g.period_v,
                       g.per_period_v, CUDA_SUB - 1, &out.fraction_v);
    out.plane = 0;
    out.fraction_w = 0;
    const double turns = (u * g.phase_l + v * g.phase_m + w * g.phase_nm1) * to_lambda;
    out.turns = turns - rint(turns);
    if (g.do_w) {
        const double d = (w * to_lambda - g.w_first) * g.per_plane - g.half_w_support -
                         brick.plane_first;
        const double last = brick.num_planes - g.w_support;
        double start = ceil(d);
        start = start < 0 ? 0 : start > last ? last : start;
        out.fraction_w = start - d;
        out.plane = (int)start;
    }
    return out;
}

/* Computes the sine and the cosine of 2π·turns, |turns| ≤ ½. */
__device__ inline void sincos_turns(float turns, float *sine, float *cosine)
{
    sincospif(2 * turns, sine, cosine);
}

__device__ inline void sincos_turns(double turns, double *sine, double *cosine)
{
    sincospi(2 * turns, sine, cosine);
}

/* Computes weight × visibility × e^{−2πi turns}; 0 where the weight is 0, whatever the
 * visibility is. */
template <typename R>
__device__ inline typename cuda_complex<R>::type
value_of(const cuda_args &args, const cuda_place &at, int64_t sample, int pol)
{
    typedef typename cuda_complex<R>::type complex;
    const cuda_view &s = args.samples;
    const R *weight = (const R *)s.weight + sample * s.num_weight;
    complex vis = {1, 0}, value = {0, 0};
    R w;
    if (pol < s.num_pol) {
        vis = ((const complex *)s.vis)[sample * s.num_pol + pol];
        if (at.conjugate) vis.y = -vis.y;
        w = weight[s.num_weight == 1 ? 0 : pol];
    } else
        w = weight[pol - s.num_pol];
    R sine, cosine;
    sincos_turns((R)at.turns, &sine, &cosine);
    if (w != 0) {
        value.x = w * (vis.x * cosine + vis.y * sine);
        value.y = w * (vis.y * cosine - vis.x * sine);
    }
    return value;
}

/* Stores a degridded sum as the visibility that it is: with e^{+2πi w (n_c − 1)}, and
 * unfolded. */
template <typename R>
__device__ inline typename cuda_complex<R>::type
vis_of(typename cuda_complex<R>::type sum, R sine, R cosine, bool conjugate)
{
    typename cuda_complex<R>::type vis;
    vis.x = sum.x * cosine - sum.y * sine;
    vis.y = sum.x * sine + sum.y * cosine;
    if (conjugate) vis.y = -vis.y;
    return vis;
}

cuda_geometry cuda_geometry_of(const tess_grid_plan *plan);
cuda_view cuda_view_of(const tess_device_samples *samples);

/* Grids the chunks of args with the kernel that the plan needs. */
cudaError_t launch_grid_chunks(const tess_grid_plan *plan, const tile_cuda_list *list,
                               int num_pol, int64_t num_chunks, const cuda_args &args,
                               cudaStream_t stream);

/* Add the bricks [first, end) of the list to brick sums, args.sum, so that these do not
 * depend on the order in which blocks end. */
tess_status tile_cuda_grid_in_order(const tess_grid_plan *plan,
                                    const tile_cuda_list *list, int64_t first,
                                    int64_t end, int num_pol, const cuda_args &args,
                                    cudaStream_t stream);

/* Launch kernels; each function is in a file of its own. A launch covers `num_chunks`
 * chunks. */
cudaError_t launch_grid_any(const tess_kernel *kernel, int num_pol, int64_t num_chunks,
                            const cuda_args &args, cudaStream_t stream);
cudaError_t launch_degrid_any(const tess_kernel *kernel, int num_pol,
                              int64_t num_chunks, const cuda_args &args,
                              cudaStream_t stream);
cudaError_t launch_grid_double(const tess_kernel *kernel, int num_pol,
                               int64_t num_chunks, const cuda_args &args,
                               cudaStream_t stream);
cudaError_t launch_degrid_double(const tess_kernel *kernel, int num_pol,
                                 int64_t num_chunks, const cuda_args &args,
                                 cudaStream_t stream);

/* Tensor cores, single precision: `products` 1 or 3, `most_planes` of any brick. */
typedef cudaError_t tensor_function(const tess_kernel *kernel, int products,
                                    int most_planes, int num_pol, int64_t num_chunks,
                                    const cuda_args &args, cudaStream_t stream);
enum { TENSOR_MAX_SUPPORT = 9 };
tensor_function launch_grid_tensor_4, launch_grid_tensor_5, launch_grid_tensor_6,
    launch_grid_tensor_7, launch_grid_tensor_8, launch_grid_tensor_9;
tensor_function launch_degrid_tensor_4, launch_degrid_tensor_5, launch_degrid_tensor_6,
    launch_degrid_tensor_7, launch_degrid_tensor_8, launch_degrid_tensor_9;

#endif
