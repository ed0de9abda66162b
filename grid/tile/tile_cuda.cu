/* Chooses the device kernels; see tess_tile_cuda.h. */
#include <cmath>

#include "tile_cuda.cuh"

#include <string.h>

#include "tess_cuda.h"

cuda_geometry cuda_geometry_of(const tess_grid_plan *plan)
{
    cuda_geometry g;
    memset(&g, 0, sizeof g);
    g.scale_u = -plan->target.geom.scale_rad * (double)plan->nu;
    g.scale_v = tess_geom_scale_m(&plan->target.geom) * (double)plan->nv;
    g.period_u = (double)plan->nu;
    g.period_v = (double)plan->nv;
    g.per_period_u = 1 / g.period_u;
    g.per_period_v = 1 / g.period_v;
    g.half_support = 0.5 * plan->kernel.support;
    g.half_w_support = 0.5 * plan->w_support;
    g.w_first = plan->w_first_lambda;
    g.w_step = plan->w_step_lambda;
    g.per_plane = 1 / plan->w_step_lambda;
    g.phase_l = plan->target.phase.l;
    g.phase_m = plan->target.phase.m;
    g.phase_nm1 = plan->target.phase.nm1;
    g.support = plan->kernel.support;
    g.w_support = plan->w_support;
    g.nu = (int32_t)plan->nu;
    g.nv = (int32_t)plan->nv;
    g.num_planes = plan->num_planes;
    g.block_planes = plan->block_planes;
    g.tiles_u = (int32_t)plan->tiles_u;
    g.tiles_v = (int32_t)plan->tiles_v;
    g.do_w = plan->opts.do_w;
    return g;
}

cuda_view cuda_view_of(const tess_device_samples *samples)
{
    return {samples->uvw_m,  samples->inv_lambda, samples->vis,
            samples->weight, samples->num_pol,    samples->num_weight};
}

namespace
{

/* Errors of products of fp16 halves. One product is wrong by 3.6e-4 (rms; the factors
 * and the product of A, and the values of B, are each rounded, 2e-4 a time), and three
 * products by a few 1e-7. */
const double ONE_PRODUCT_ERROR = 3.6e-4;
/* One product may take this share of ε, so that devices differ from CPUs by no more.
 * Beside the plan's 0.73 ε it adds 1 %. */
const double ONE_PRODUCT_SHARE = 0.1;

/* Returns how many products of halves the accuracy needs. The grid correction raises
 * errors of the grid as it raises rounding: by its rms over the field, or by its value
 * in the worst pixel. */
int products_of(const tess_grid_plan *plan)
{
    const tess_kernel &kernel = plan->kernel;
    const double gain =
        plan->opts.worst_pixel ? kernel.largest_gain : kernel.amplification;
    const double error = ONE_PRODUCT_ERROR * pow(gain, plan->opts.do_w ? 3 : 2);
    return error <= ONE_PRODUCT_SHARE * plan->opts.accuracy ? 1 : 3;
}

tensor_function *const grid_tensor[TENSOR_MAX_SUPPORT + 1] = {NULL,
                                                              NULL,
                                                              NULL,
                                                              NULL,
                                                              launch_grid_tensor_4,
                                                              launch_grid_tensor_5,
                                                              launch_grid_tensor_6,
                                                              launch_grid_tensor_7,
                                                              launch_grid_tensor_8,
                                                              launch_grid_tensor_9};
tensor_function *const degrid_tensor[TENSOR_MAX_SUPPORT + 1] = {NULL,
                                                                NULL,
                                                                NULL,
                                                                NULL,
                                                                launch_degrid_tensor_4,
                                                                launch_degrid_tensor_5,
                                                                launch_degrid_tensor_6,
                                                                launch_degrid_tensor_7,
                                                                launch_degrid_tensor_8,
                                                                launch_degrid_tensor_9};

cuda_args args_of(const tess_grid_plan *plan, const tess_device_samples *samples,
                  const tile_cuda_list *list, int64_t first, const tile_cuda_sums *sums)
{
    cuda_args args;
    memset(&args, 0, sizeof args);
    args.geometry = cuda_geometry_of(plan);
    args.samples = cuda_view_of(samples);
    args.run = list->work->run;
    args.group = list->work->group;
    args.chunk = list->work->chunk + list->first_chunk[first];
    args.brick = list->work->brick;
    args.num_runs = list->work->num_runs;
    args.data = sums->data;
    args.sum = sums->brick;
    args.first_brick = (int32_t)first;
    args.lines = tess_grid_brick_lines(plan);
    args.stride = tess_grid_brick_stride(plan);
    args.plane_first = sums->plane_first;
    args.num_planes = sums->num_planes;
    args.num_pol = sums->num_pol;
    args.in_order = plan->opts.repeatable;
    return args;
}

/* Returns the most planes of any brick of the list, or of any brick at all if a list
 * must not decide. */
int most_planes_of(const tess_grid_plan *plan, const tile_cuda_list *list)
{
    const int most = plan->block_planes + plan->w_support - 1;
    if (!plan->opts.repeatable) return list->work->most_planes;
    return most < plan->num_planes ? most : plan->num_planes;
}

/* Counts the chunks of the bricks [first, end), of which there may be none. */
tess_status count_chunks(const tile_cuda_list *list, int64_t first, int64_t end,
                         int64_t *chunks)
{
    tess_status status = TESS_OK;
    *chunks = end > first ? list->first_chunk[end] - list->first_chunk[first] : 0;
    if (*chunks > INT32_MAX)
        TESS_FAIL(TESS_ERR_RESOURCE, "too much work for one launch: %lld chunks",
                  (long long)*chunks);
cleanup:
    return status;
}

/* Launches the kernels for the plan's precision and support. */
cudaError_t launch_chunks(const tess_grid_plan *plan, const tile_cuda_list *list,
                          bool degrid, int num_pol, int64_t num_chunks,
                          const cuda_args &args, cudaStream_t stream)
{
    const tess_kernel *kernel = &plan->kernel;
    if (plan->is_double)
        return (degrid ? launch_degrid_double
                       : launch_grid_double)(kernel, num_pol, num_chunks, args, stream);
    if (kernel->support > TENSOR_MAX_SUPPORT)
        return (degrid ? launch_degrid_any : launch_grid_any)(kernel, num_pol,
                                                              num_chunks, args, stream);
    return (degrid ? degrid_tensor : grid_tensor)[kernel->support](
        kernel, products_of(plan), most_planes_of(plan, list), num_pol, num_chunks,
        args, stream);
}

} // namespace

cudaError_t launch_grid_chunks(const tess_grid_plan *plan, const tile_cuda_list *list,
                               int num_pol, int64_t num_chunks, const cuda_args &args,
                               cudaStream_t stream)
{
    return launch_chunks(plan, list, false, num_pol, num_chunks, args, stream);
}

tess_status tile_cuda_grid(const tess_grid_plan *plan, const cuda_part *part, bool psf,
                           struct CUstream_st *stream)
{
    tess_status status = TESS_OK;
    const tess_device_samples *samples = part->samples;
    const tile_cuda_list *list = part->list;
    const int64_t first = part->first, end = part->end;
    const int num_pol = samples->num_pol + (psf ? samples->num_weight : 0);
    int64_t chunks;
    cuda_args args;
    TESS_TRY(count_chunks(list, first, end, &chunks));
    if (chunks == 0) return TESS_OK;
    args = args_of(plan, samples, list, first, part->sums);
    if (plan->opts.repeatable && part->sums->brick)
        return tile_cuda_grid_in_order(plan, list, first, end, num_pol, args, stream);
    TESS_CUDA(launch_grid_chunks(plan, list, num_pol, chunks, args, stream));
cleanup:
    return status;
}

tess_status tile_cuda_degrid(const tess_grid_plan *plan, const cuda_part *part,
                             struct CUstream_st *stream)
{
    tess_status status = TESS_OK;
    const tess_device_samples *samples = part->samples;
    int64_t chunks;
    TESS_TRY(count_chunks(part->list, part->first, part->end, &chunks));
    if (chunks == 0) return TESS_OK;
    TESS_CUDA(launch_chunks(plan, part->list, true, samples->num_pol, chunks,
                            args_of(plan, samples, part->list, part->first, part->sums),
                            stream));
cleanup:
    return status;
}
