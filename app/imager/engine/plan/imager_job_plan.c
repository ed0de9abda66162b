/* Makes the gridding plan of a job, by built-in costs or by those of the machine. */
#include <math.h>

#include "imager_job.h"
#include "imager_targets.h"
#include "tess_calibrate.h"
#include "tess_fits_kernels.h"
#include "tess_gcf.h"
#include "tess_log.h"
#include "tess_mem.h"

/* Share of a rank's memory that tables of w-kernels may take. */
static const double TABLES_SHARE = 0.25;

/* Time of one core above which a run is planned by costs that were measured on the
 * machine; measuring takes a quarter of a second, once [s]. The decision is made by the
 * built-in costs and the size of the whole run, so that the plan is the same on any
 * number of ranks and threads. */
static const double CALIBRATE_FROM_S = 5;

static tess_status measured_costs(imager_job *job)
{
    if (job->costs.measured) return TESS_OK;
    return tess_calibrate(job->comm, TESS_CALIBRATE_ONCE, job->layout->threads,
                          &job->costs);
}

/* Replaces a plan by one that is made by measured costs, if the run is large enough for
 * that to matter. Devices have costs of their own. */
static tess_status plan_by_machine(imager_job *job, tess_grid_opts *opts)
{
    tess_status status = TESS_OK;
    const double runs = job->ranks.num_outputs > 1 ? (double)job->ranks.num_outputs : 1;
    if (!job->layout->calibrate || job->backend->start || opts->projection ||
        runs * tess_grid_cost(job->plan) < CALIBRATE_FROM_S)
        return TESS_OK;
    TESS_TRY(measured_costs(job));
    opts->costs = &job->costs;
    status = imager_job_create_plans(job, opts);
    TESS_TRY(tess_comm_agree(job->comm, status));
cleanup:
    return status;
}

tess_status imager_job_calibrate(imager_job *job)
{
    tess_status status = TESS_OK;
    if (!job->layout->calibrate || job->backend->start) return TESS_OK;
    TESS_TRY(measured_costs(job));
    job->plan->costs = job->costs;
cleanup:
    return status;
}

/* Reads a user's kernels, for the time of planning. Collective. */
static tess_status read_kernels(const imager_job *job, tess_fits_kernels *file,
                                tess_projection_kernels *kernels)
{
    tess_status status = tess_fits_kernels_read(job->gridding->gcf, file);
    TESS_TRY(tess_comm_agree(job->comm, status));
    *kernels = (tess_projection_kernels){.support = file->support,
                                         .oversampling = file->oversampling,
                                         .num_planes = file->num_planes,
                                         .is_linear = file->is_linear,
                                         .is_uneven = file->is_uneven,
                                         .w_max_lambda = file->w_max_lambda,
                                         .field_l = file->field_l,
                                         .field_m = file->field_m,
                                         .value = file->value};
cleanup:
    return status;
}

/* Writes the plan's kernels to a file of the same kind. Local. */
static tess_status write_kernels(const imager_job *job, const char *path)
{
    tess_status status = TESS_OK;
    const tess_gcf *gcf = tess_projection_table(job->plan);
    const tess_gcf_layout *layout = &gcf->layout;
    tess_fits_kernels file = {.support = gcf->max_support,
                              .oversampling = layout->oversampling,
                              .num_planes = layout->num_planes,
                              .is_linear = layout->spacing == TESS_GCF_LINEAR,
                              .is_double = layout->is_double,
                              .w_max_lambda = layout->w_max_lambda,
                              .field_l = (double)job->plan->nu * job->geom.scale_rad,
                              .field_m = (double)job->plan->nv *
                                         tess_geom_scale_m(&job->geom)};
    const int64_t half = tess_fits_kernels_half(&file);
    file.value = tess_alloc_zero(layout->num_planes * half * half, 2 * sizeof(double));
    if (!file.value) TESS_FAIL(TESS_ERR_ALLOC, "%s: convolution functions", path);
    if (layout->is_uneven)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--write-gcf: only kernels that are even are written");
    for (int p = 0; p < layout->num_planes; ++p) {
        const int most = gcf->plane[p].support * layout->oversampling / 2;
        for (int64_t k = 0; k < half * half; ++k)
            if (k / half <= most && k % half <= most)
                tess_gcf_value(gcf, p, (int)(k / half), (int)(k % half),
                               file.value + 2 * (p * half * half + k));
    }
    TESS_TRY(tess_fits_kernels_write(path, job->gridding->overwrite_gcf, &file));
    tess_log_info("wrote %s", path);
cleanup:
    tess_fits_kernels_free(&file);
    return status;
}

/* On a node, one rank computes tables of w-kernels; the others find them in the cache.
 * Collective. */
static tess_status create_plan(imager_job *job, const tess_grid_opts *opts)
{
    tess_status status = TESS_OK;
    tess_comm *node = NULL;
    const bool in_turn =
        opts->projection && opts->projection->cached && !opts->projection->kernels;
    if (in_turn) TESS_TRY(tess_comm_node(job->comm, &node));
    const bool first = !in_turn || tess_comm_rank(node) == 0;
    for (int turn = 0; turn <= in_turn; ++turn) {
        if (first == (turn == 0)) status = imager_job_create_plans(job, opts);
        TESS_TRY(tess_comm_agree(job->comm, status));
    }
cleanup:
    tess_comm_free(node);
    return status;
}

/* Limits tables of w-kernels to a share of the memory of ranks and devices, the same on
 * all ranks. Collective. */
static tess_status bound_tables(const imager_job *job, tess_projection_opts *projection)
{
    tess_status status = TESS_OK;
    int64_t room = job->memory.rank_bytes;
    if (job->backend->room && job->backend->room() < room) room = job->backend->room();
    TESS_TRY(tess_comm_allreduce_i64(job->comm, &room, 1, TESS_MIN));
    room = (int64_t)(TABLES_SHARE * (double)room);
    if (room < projection->most_bytes && !job->layout->reproducible)
        projection->most_bytes = room;
cleanup:
    return status;
}

/* The range of w that the plan covers. */
static void take_w_range(const imager_job *job, tess_grid_opts *opts)
{
    const imager_extent *extent = &job->extent;
    opts->w_min_lambda = extent->w_min_lambda;
    opts->w_max_lambda = extent->w_max_lambda;
    opts->w_span_lambda = extent->w_span_lambda < 0
                              ? extent->w_max_lambda - extent->w_min_lambda
                              : extent->w_span_lambda;
    if (job->layout->forced.w_max_lambda > 0) {
        opts->w_min_lambda = fmin(opts->w_min_lambda, job->layout->forced.w_min_lambda);
        opts->w_max_lambda = fmax(opts->w_max_lambda, job->layout->forced.w_max_lambda);
    }
}

/* Whether w may be ignored in the images of all targets. */
static bool is_w_negligible(const imager_job *job, double w_max_lambda)
{
    for (int k = 0; k < imager_job_num_targets(job); ++k)
        if (!tess_grid_w_negligible(imager_job_geom(job, k), w_max_lambda,
                                    job->gridding->accuracy))
            return false;
    return true;
}

static tess_grid_opts grid_opts_of(const imager_job *job)
{
    const tess_gridding *gridding = job->gridding;
    const tess_layout *layout = job->layout;
    tess_grid_opts opts;
    tess_grid_opts_default(&opts);
    opts.accuracy = gridding->accuracy;
    opts.worst_pixel = job->worst_pixel;
    take_w_range(job, &opts);
    opts.do_w =
        gridding->w_mode == TESS_W_STACKING ||
        (gridding->w_mode == TESS_W_AUTO && !is_w_negligible(job, opts.w_max_lambda));
    opts.num_vis =
        layout->forced.num_vis > 0 ? layout->forced.num_vis : job->extent.num_vis;
    opts.num_pol = job->num_images;
    opts.threads = layout->threads;
    opts.block_planes = layout->forced.block_planes;
    opts.kernel_planes = layout->forced.kernel_planes > 0;
    opts.chunk = layout->forced.chunk;
    opts.repeatable = layout->reproducible;
    return opts;
}

tess_status imager_job_plan(imager_job *job)
{
    tess_status status = TESS_OK;
    const tess_gridding *gridding = job->gridding;
    double mark = tess_time_now();
    tess_fits_kernels file = {0};
    tess_projection_kernels kernels;
    tess_projection_opts projection = gridding->projection;
    tess_grid_opts opts = grid_opts_of(job);
    if (gridding->w_mode == TESS_W_PROJECTION) {
        TESS_TRY(bound_tables(job, &projection));
        projection.tuned = job->layout->calibrate;
        opts.projection = &projection;
    }
    if (opts.projection && gridding->gcf) {
        TESS_TRY(read_kernels(job, &file, &kernels));
        projection.kernels = &kernels;
    }
    TESS_TRY(create_plan(job, &opts));
    if (opts.projection && gridding->write_gcf) {
        if (tess_comm_rank(job->comm) == 0)
            status = write_kernels(job, gridding->write_gcf);
        TESS_TRY(tess_comm_agree(job->comm, status));
    }
    TESS_TRY(plan_by_machine(job, &opts));
    TESS_TRY(imager_job_share(job));
    ++job->profile->plans;
cleanup:
    tess_fits_kernels_free(&file);
    tess_profile_lap(job->profile, TESS_STAGE_PLAN, &mark);
    return status;
}
