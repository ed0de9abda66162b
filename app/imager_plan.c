/* What the data need: extent, gridding plan, partition, and how planes are shared. */
#include <math.h>
#include <stdio.h>

#include "imager.h"
#include "tess_log.h"
#include "tess_mem.h"

/* Share of the allowed memory that is planned for; the rest is for libraries, buffers of
 * the exchange, and the files' cache. */
static const double MEMORY_SHARE = 0.85;

tess_status imager_rank_bytes(tess_comm *comm, const tess_layout *layout, int64_t *bytes)
{
    tess_status status = TESS_OK;
    tess_comm *node = NULL;
    TESS_TRY(tess_comm_node(comm, &node));
    const int64_t node_bytes =
        layout->memory_bytes > 0 ? layout->memory_bytes : tess_mem_node_limit_bytes();
    *bytes = (int64_t)(MEMORY_SHARE * (double)node_bytes / tess_comm_size(node));
    TESS_TRY(tess_comm_allreduce_i64(comm, bytes, 1, TESS_MIN));
cleanup:
    tess_comm_free(node);
    return status;
}

/* ---- extent ---- */

imager_extent imager_extent_empty(void)
{
    return (imager_extent){.w_min_lambda = INFINITY, .freq_min = INFINITY};
}

static bool has_weight(const tess_samples *samples, int64_t sample)
{
    for (int k = 0; k < samples->num_weight; ++k) {
        const int64_t at = sample * samples->num_weight + k;
        if (samples->is_double ? ((const double *)samples->weight)[at] != 0
                               : ((const float *)samples->weight)[at] != 0)
            return true;
    }
    return false;
}

void imager_extent_add(const tess_samples *samples, const double *freq_hz,
                       bool skip_ignored, int threads, imager_extent *extent)
{
    int64_t count = 0;
    double w_min = extent->w_min_lambda, w_max = extent->w_max_lambda;
    double uvw2_max = extent->uvw_max_lambda * extent->uvw_max_lambda;
    double f_min = extent->freq_min, f_max = extent->freq_max, f_sum = 0;
    #pragma omp parallel for num_threads(threads) schedule(static) \
        reduction(+ : count, f_sum) reduction(min : w_min, f_min) \
        reduction(max : w_max, uvw2_max, f_max)
    for (int64_t row = 0; row < samples->num_rows; ++row) {
        const double *uvw_m = samples->uvw_m + 3 * row;
        const double w_m = fabs(uvw_m[2]);
        const double uvw2_m = uvw_m[0] * uvw_m[0] + uvw_m[1] * uvw_m[1] + w_m * w_m;
        for (int32_t c = 0; c < samples->num_chan[row]; ++c) {
            if (skip_ignored && !has_weight(samples, samples->vis_first[row] + c)) continue;
            const int32_t chan = samples->chan_base[row] + c;
            const double inv = samples->inv_lambda[chan];
            ++count;
            w_min = fmin(w_min, w_m * inv);
            w_max = fmax(w_max, w_m * inv);
            uvw2_max = fmax(uvw2_max, uvw2_m * inv * inv);
            f_sum += freq_hz[chan];
            f_min = fmin(f_min, freq_hz[chan]);
            f_max = fmax(f_max, freq_hz[chan]);
        }
    }
    extent->num_vis += count;
    extent->w_min_lambda = w_min;
    extent->w_max_lambda = w_max;
    extent->uvw_max_lambda = sqrt(uvw2_max);
    extent->freq_sum += f_sum;
    extent->freq_min = f_min;
    extent->freq_max = f_max;
}

tess_status imager_extent_sum(tess_comm *comm, imager_extent *extent)
{
    tess_status status = TESS_OK;
    double least[2] = {extent->w_min_lambda, extent->freq_min};
    double most[3] = {extent->w_max_lambda, extent->uvw_max_lambda, extent->freq_max};
    TESS_TRY(tess_comm_allreduce_i64(comm, &extent->num_vis, 1, TESS_SUM));
    TESS_TRY(tess_comm_allreduce_f64(comm, &extent->freq_sum, 1, TESS_SUM));
    TESS_TRY(tess_comm_allreduce_f64(comm, least, 2, TESS_MIN));
    TESS_TRY(tess_comm_allreduce_f64(comm, most, 3, TESS_MAX));
    extent->w_min_lambda = least[0];
    extent->freq_min = least[1];
    extent->w_max_lambda = most[0];
    extent->uvw_max_lambda = most[1];
    extent->freq_max = most[2];
cleanup:
    return status;
}

/* ---- plan ---- */

static tess_planes_opts planes_opts_of(const imager_job *job, bool forward, int fft_ranks)
{
    const tess_grid_plan *plan = job->plan;
    return (tess_planes_opts){.nx = job->geom.nx,
                              .ny = job->geom.ny,
                              .nu = plan->nu,
                              .nv = plan->nv,
                              .scale_rad = job->geom.scale_rad,
                              .nm1_center = plan->nm1_center,
                              .do_w = plan->opts.do_w,
                              .is_double = plan->is_double,
                              .forward = forward,
                              .num_images = job->num_images,
                              .threads = job->layout->threads,
                              .fft_ranks = fft_ranks,
                              .num_planes = plan->num_planes};
}

/* w-groups: as few as keep one plane of every rank's FFT in flight; cutting in w costs
 * spilled planes, so a group has at least 2W of them. */
static int choose_groups(const imager_job *job)
{
    const tess_grid_plan *plan = job->plan;
    const int ranks = tess_comm_size(job->comm);
    if (job->layout->force_pw > 0) return job->layout->force_pw;
    int limit = plan->num_planes / (2 * plan->w_support);
    if (limit > plan->num_blocks) limit = plan->num_blocks;
    const int wanted = (ranks + plan->block_planes * job->num_images - 1) /
                       (plan->block_planes * job->num_images);
    return tess_partition_divisor(ranks, wanted < limit ? wanted : (limit > 1 ? limit : 1));
}

/* Ranks that share a plane: 1 while there are planes for all in every step, else so many
 * that all are busy; more when images or planes would not fit otherwise. */
static int choose_fft_ranks(const imager_job *job)
{
    const int ranks = tess_comm_size(job->comm);
    if (job->layout->force_fft_ranks > 0) return job->layout->force_fft_ranks;
    const int at_once = job->plan->block_planes * job->num_groups * job->num_images;
    int fft_ranks = ranks / tess_partition_divisor(ranks, at_once > 1 ? at_once : 1);
    for (int f = fft_ranks; f <= ranks; ++f) {
        if (ranks % f != 0) continue;
        const tess_planes_opts opts = planes_opts_of(job, true, f);
        fft_ranks = f;
        if (tess_planes_bytes(&opts) < 0.5 * (double)job->rank_bytes) break;
    }
    return fft_ranks;
}

static tess_status check_memory(const imager_job *job)
{
    tess_status status = TESS_OK;
    const tess_planes_opts opts = planes_opts_of(job, true, job->fft_ranks);
    const double needed = tess_planes_bytes(&opts);
    if (needed > (double)job->rank_bytes)
        TESS_FAIL(TESS_ERR_ALLOC,
                  "images of %lld x %lld pixels need %s on each of %d ranks, which may use "
                  "%s; use more nodes, --memory, or a smaller --size",
                  (long long)job->geom.nx, (long long)job->geom.ny, tess_mem_text(needed),
                  tess_comm_size(job->comm), tess_mem_text((double)job->rank_bytes));
cleanup:
    return status;
}

tess_status imager_job_plan(imager_job *job)
{
    tess_status status = TESS_OK;
    const tess_gridding *gridding = job->gridding;
    tess_grid_opts opts;
    tess_grid_opts_default(&opts);
    opts.accuracy = gridding->accuracy;
    opts.do_w = gridding->w_mode == TESS_W_STACKING ||
                (gridding->w_mode == TESS_W_AUTO &&
                 !tess_grid_w_negligible(&job->geom, job->extent.w_max_lambda,
                                         gridding->accuracy));
    opts.w_min_lambda = job->extent.w_min_lambda;
    opts.w_max_lambda = job->extent.w_max_lambda;
    opts.num_vis = job->extent.num_vis;
    opts.num_pol = job->num_images;
    opts.threads = job->layout->threads;
    opts.block_planes = job->layout->force_block_planes;
    opts.chunk = job->layout->force_chunk;
    status = tess_grid_plan_create(&job->geom, &opts, job->backend, &job->plan);
    TESS_TRY(tess_comm_agree(job->comm, status));
    const int ranks = tess_comm_size(job->comm);
    job->num_groups = choose_groups(job);
    job->fft_ranks = job->fft_ranks > 0 ? job->fft_ranks : choose_fft_ranks(job);
    if (ranks % job->num_groups != 0)
        TESS_FAIL(TESS_ERR_USAGE, "--force-pw %d does not divide %d ranks",
                  job->num_groups, ranks);
    if (ranks % job->fft_ranks != 0)
        TESS_FAIL(TESS_ERR_USAGE, "--force-fft-ranks %d does not divide %d ranks",
                  job->fft_ranks, ranks);
    TESS_TRY(check_memory(job));
cleanup:
    return status;
}

tess_status imager_job_partition(imager_job *job, const tess_brick_list *bricks,
                                 bool forward)
{
    tess_status status = TESS_OK;
    const tess_grid_plan *plan = job->plan;
    const tess_partition_opts opts = {.num_blocks = plan->num_blocks,
                                      .bricks_per_block = plan->tiles_u * plan->tiles_v,
                                      .num_groups = job->num_groups,
                                      .chunk = plan->chunk,
                                      .cost_vis_s = tess_grid_cost_vis(plan),
                                      .cost_brick_s = tess_grid_cost_brick(plan),
                                      .always_split = job->layout->force_split > 0};
    tess_planes_opts planes = planes_opts_of(job, forward, job->fft_ranks);
    int64_t *slab_line = tess_alloc(job->fft_ranks + 1, sizeof *slab_line);
    TESS_TRY(tess_comm_agree(job->comm, slab_line ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_partition_create(job->comm, &opts, bricks->key, bricks->num_vis,
                                   bricks->num_bricks, &job->partition));
    TESS_TRY(tess_slabs_choose(job->comm, plan, bricks, job->fft_ranks, slab_line));
    planes.slab_line = slab_line;
    TESS_TRY(tess_planes_create(job->comm, job->backend->planes, &planes, &job->planes));
    status = tess_steps_create(job->comm, plan, job->partition, job->num_groups,
                               job->planes, job->profile, &job->steps);
    TESS_TRY(tess_comm_agree(job->comm, status));
cleanup:
    tess_free(slab_line);
    return status;
}

void imager_job_log(const imager_job *job)
{
    char text[512];
    double largest = 0, mean = 0;
    int64_t split = 0;
    const int ranks = tess_comm_size(job->comm);
    tess_grid_plan_text(job->plan, text, sizeof text);
    tess_log_info("plan: %s", text);
    tess_partition_balance(job->partition, &largest, &mean, &split);
    if (ranks > 1)
        tess_log_info("partition: %d w-group%s of %d ranks, FFT groups of %d, %lld split "
                      "bricks, predicted imbalance %.1f %%",
                      job->num_groups, job->num_groups == 1 ? "" : "s",
                      ranks / job->num_groups, job->fft_ranks, (long long)split,
                      mean > 0 ? 100 * (largest / mean - 1) : 0);
    snprintf(job->profile->plan, sizeof job->profile->plan,
             "%s; %d w-groups, FFT groups of %d ranks", text, job->num_groups,
             job->fft_ranks);
}

void imager_job_free(imager_job *job)
{
    tess_steps_destroy(job->steps);
    tess_planes_destroy(job->planes);
    tess_partition_destroy(job->partition);
    tess_grid_plan_destroy(job->plan);
    job->steps = NULL;
    job->planes = NULL;
    job->partition = NULL;
    job->plan = NULL;
}
