/* Makes what the data need: gridding plan, partition, and how planes are shared. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "imager_job.h"
#include "tess_calibrate.h"
#include "tess_device_comm.h"
#include "tess_fits_kernels.h"
#include "tess_log.h"
#include "tess_mem.h"

/* Share of a rank's memory that tables of w-kernels may take. */
static const double TABLES_SHARE = 0.25;

tess_comm *imager_samples_team(const imager_job *job)
{
    return job->alone ? job->alone : job->comm;
}

tess_comm *imager_team(const imager_job *job)
{
    return job->shares_planes ? job->comm : imager_samples_team(job);
}

static tess_planes_opts planes_opts_of(const imager_job *job, bool forward,
                                       int fft_ranks)
{
    const tess_grid_plan *plan = job->plan;
    return (tess_planes_opts){
        .nx = job->geom.nx,
        .ny = job->geom.ny,
        .nu = plan->nu,
        .nv = plan->nv,
        .scale_rad = job->geom.scale_rad,
        .l0 = job->geom.l0,
        .m0 = job->geom.m0,
        .scale_m_rad = job->geom.scale_m_rad,
        .nm1_center = plan->nm1.center,
        .do_w = plan->opts.do_w,
        .is_double = plan->is_double,
        .forward = forward,
        .reuse = job->ranks.num_outputs > 1,
        .num_images = job->num_images,
        .threads = job->layout->threads,
        .fft_ranks = fft_ranks,
        .sum_over = job->alone && !job->shares_planes ? job->comm : NULL,
        .devices = job->alone && !job->shares_planes ? job->devices : NULL,
        .links = job->shares_planes ? job->devices : NULL,
        .num_planes = plan->num_planes *
                      (job->ranks.num_outputs > 1 ? job->ranks.num_outputs : 1),
        .repeatable = job->layout->reproducible};
}

/* Images of the job's model, and their planes. */
static tess_planes_opts model_opts_of(const imager_job *job, int fft_ranks)
{
    tess_planes_opts opts = planes_opts_of(job, false, fft_ranks);
    opts.num_images = job->model.num;
    return opts;
}

/* What all of these take on a rank [bytes]. */
static double planes_bytes(const imager_job *job, int fft_ranks)
{
    const tess_planes_opts opts = planes_opts_of(job, true, fft_ranks);
    const tess_planes_opts model = model_opts_of(job, fft_ranks);
    return tess_planes_bytes(&opts) +
           (job->model.is_shared ? tess_planes_bytes(&model) : 0);
}

/* The number of w-groups: as few as keep one plane of every rank's FFT in flight.
 * Cutting in w costs spilled planes, so that a group has at least 2W planes. */
static int choose_groups(const imager_job *job, int ranks)
{
    const tess_grid_plan *plan = job->plan;
    if (job->layout->forced.pw > 0) return job->layout->forced.pw;
    if (job->layout->reproducible) return 1;
    int limit = plan->num_planes / (2 * plan->w_support);
    if (limit > plan->num_blocks) limit = plan->num_blocks;
    const int wanted = (ranks + plan->block_planes * job->num_images - 1) /
                       (plan->block_planes * job->num_images);
    return tess_partition_divisor(ranks,
                                  wanted < limit ? wanted : (limit > 1 ? limit : 1));
}

/* The number of ranks that share a plane: 1 while there are planes for all ranks in
 * every step, else so many that all are equally busy; more if images or planes would
 * not fit otherwise. Images that groups of ranks have summed by themselves depend on
 * the number of groups, so that there is one group with --reproducible. */
static int choose_fft_ranks(const imager_job *job, int ranks, int num_groups)
{
    if (job->layout->forced.fft_ranks > 0) return job->layout->forced.fft_ranks;
    if (job->layout->reproducible) return ranks;
    const int at_once = job->plan->block_planes * num_groups * job->num_images;
    int fft_ranks = tess_partition_sharers(ranks, at_once > 1 ? at_once : 1);
    for (int f = fft_ranks; f <= ranks; ++f) {
        if (ranks % f != 0) continue;
        fft_ranks = f;
        if (planes_bytes(job, f) < 0.5 * (double)job->memory.rank_bytes) break;
    }
    return fft_ranks;
}

void imager_shares(const imager_job *job, int ranks, int *num_groups, int *fft_ranks)
{
    *num_groups = choose_groups(job, ranks);
    *fft_ranks = choose_fft_ranks(job, ranks, *num_groups);
}

/* Refuses forced groups of ranks with --reproducible: they would add up planes or
 * images in an order of their own. */
static tess_status check_reproducible(const imager_job *job)
{
    tess_status status = TESS_OK;
    if (!job->layout->reproducible) return TESS_OK;
    if (job->ranks.num_groups > 1 || job->ranks.fft_ranks != tess_comm_size(job->comm))
        TESS_FAIL(
            TESS_ERR_USAGE,
            "--reproducible has one w-group and planes shared by all %d ranks; leave "
            "out --force-pw and --force-fft-ranks",
            tess_comm_size(job->comm));
cleanup:
    return status;
}

double imager_planes_bytes(const imager_job *job)
{
    return planes_bytes(job, job->ranks.fft_ranks);
}

double imager_team_bytes(const imager_job *job, int ranks)
{
    int num_groups, fft_ranks;
    imager_shares(job, ranks, &num_groups, &fft_ranks);
    const double pixels = (double)job->geom.nx * (double)job->geom.ny;
    return planes_bytes(job, fft_ranks) +
           (double)sizeof(double) * job->num_images * pixels / ranks;
}

static tess_status check_memory(const imager_job *job)
{
    tess_status status = TESS_OK;
    const double needed = imager_planes_bytes(job);
    if (needed > (double)job->memory.rank_bytes)
        TESS_FAIL(
            TESS_ERR_ALLOC,
            "images of %lld x %lld pixels need %s on each of %d ranks, which may use "
            "%s; use more nodes, --memory, or a smaller --size",
            (long long)job->geom.nx, (long long)job->geom.ny, tess_mem_text(needed),
            tess_comm_size(job->comm), tess_mem_text((double)job->memory.rank_bytes));
cleanup:
    return status;
}

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
    tess_grid_plan_destroy(job->plan);
    job->plan = NULL;
    status = tess_grid_plan_create(&job->geom, opts, job->backend, &job->plan);
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
                                         .spacing = file->is_linear ? TESS_GCF_LINEAR
                                                                    : TESS_GCF_SQRT,
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
        if (first == (turn == 0))
            status = tess_grid_plan_create(&job->geom, opts, job->backend, &job->plan);
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
        (gridding->w_mode == TESS_W_AUTO &&
         !tess_grid_w_negligible(&job->geom, opts.w_max_lambda, gridding->accuracy));
    opts.num_vis =
        layout->forced.num_vis > 0 ? layout->forced.num_vis : job->extent.num_vis;
    opts.num_pol = job->num_images;
    opts.threads = layout->threads;
    opts.block_planes = layout->forced.block_planes;
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

tess_status imager_job_share(imager_job *job)
{
    tess_status status = TESS_OK;
    /* the devices of a team are not those that are connected */
    if (job->ranks.num_teams > 1) job->shares_planes = false;
    const int ranks = tess_comm_size(imager_team(job));
    job->ranks.num_groups = job->shares_planes ? 1 : choose_groups(job, ranks);
    if (job->shares_planes)
        job->ranks.fft_ranks = ranks;
    else if (job->ranks.fft_ranks == 0)
        job->ranks.fft_ranks = choose_fft_ranks(job, ranks, job->ranks.num_groups);
    if (ranks % job->ranks.num_groups != 0)
        TESS_FAIL(TESS_ERR_USAGE, "--force-pw %d does not divide %d ranks",
                  job->ranks.num_groups, ranks);
    if (ranks % job->ranks.fft_ranks != 0)
        TESS_FAIL(TESS_ERR_USAGE, "--force-fft-ranks %d does not divide %d ranks",
                  job->ranks.fft_ranks, ranks);
    TESS_TRY(check_reproducible(job));
    TESS_TRY(check_memory(job));
cleanup:
    return status;
}

/* Makes planes for a first set of images, or prepares the same planes for the next set.
 * Collective. */
static tess_status set_up_planes(imager_job *job, const tess_planes_opts *opts,
                                 tess_planes **planes)
{
    tess_status status = TESS_OK;
    double mark = tess_time_now();
    if (*planes) {
        tess_planes_set_slabs(*planes, opts->slab_line);
        /* a model stays in the planes for the next samples */
        if (opts->forward) status = tess_planes_clear(*planes);
        TESS_TRY(tess_comm_agree(imager_team(job), status));
    } else {
        TESS_TRY(
            tess_planes_create(imager_team(job), job->backend->planes, opts, planes));
        ++job->profile->transforms;
    }
cleanup:
    tess_profile_lap(job->profile, TESS_STAGE_PLAN, &mark);
    return status;
}

/* Frees what depends on the bricks of one set of images. */
static void free_partition(imager_job *job)
{
    imager_job_part part;
    imager_job_take_part(job, &part);
    imager_job_part_free(&part);
}

void imager_job_take_part(imager_job *job, imager_job_part *part)
{
    *part =
        (imager_job_part){job->partition, job->steps, job->model.steps, job->slab_line};
    job->partition = NULL;
    job->steps = job->model.steps = NULL;
    job->slab_line = NULL;
}

void imager_job_put_part(imager_job *job, imager_job_part *part)
{
    job->partition = part->partition;
    job->steps = part->steps;
    job->model.steps = part->model_steps;
    job->slab_line = part->slab_line;
    *part = (imager_job_part){0};
    tess_planes_set_slabs(job->planes, job->slab_line);
    if (job->model.planes) tess_planes_set_slabs(job->model.planes, job->slab_line);
}

void imager_job_part_free(imager_job_part *part)
{
    tess_steps_destroy(part->steps);
    tess_steps_destroy(part->model_steps);
    tess_partition_destroy(part->partition);
    tess_free(part->slab_line);
    *part = (imager_job_part){0};
}

/* No brick has so many visibilities. */
static const int64_t WHOLE_BRICK = (int64_t)1 << 48;

int64_t imager_part_vis(const imager_job *job)
{
    if (job->backend->grid->load) return WHOLE_BRICK;
    return job->plan->chunk * TESS_CHUNKS_PER_PIECE;
}

/* A run costs as much as so many visibilities: its row may be anywhere in memory, and
 * its batch is not full. Gridding 29 million MeerKAT visibilities, support 5, took 77
 * ns for each, 220 ns for each run, and .3 ns for each byte of brick sums. */
static const double VIS_OF_RUN = 2.8;

/* Time that a brick takes beside its visibilities, with its cells in new memory [s]. */
static double brick_cost_s(const tess_grid_plan *plan)
{
    const double cells = fmin(plan->num_planes, plan->w_support + 2) *
                         (double)tess_grid_brick_lines(plan) *
                         (double)tess_grid_brick_stride(plan) * plan->opts.num_pol;
    return tess_grid_cost_brick(plan) +
           cells * (plan->is_double ? 16 : 8) / plan->costs.touch_bytes_s;
}

/* Every output has a partition of its own. */
static void note_balance(imager_job *job)
{
    double largest, mean;
    int64_t split;
    tess_partition_balance(job->partition, &largest, &mean, &split);
    job->profile->grid.predicted_largest_s += largest;
    job->profile->grid.predicted_mean_s += mean;
}

/* Makes planes and steps for the partition. Collective. */
static tess_status set_up_steps(imager_job *job, const tess_planes_opts *opts,
                                tess_planes **planes, tess_steps **steps)
{
    tess_status status = TESS_OK;
    TESS_TRY(set_up_planes(job, opts, planes));
    status = tess_steps_create(imager_team(job), job->plan, job->partition,
                               job->ranks.num_groups, *planes, job->profile, steps);
    TESS_TRY(tess_comm_agree(imager_team(job), status));
cleanup:
    return status;
}

tess_status imager_job_partition(imager_job *job, const tess_brick_list *bricks,
                                 bool forward)
{
    tess_status status = TESS_OK;
    const tess_grid_plan *plan = job->plan;
    const tess_partition_opts opts = {
        .num_blocks = plan->num_blocks,
        .bricks_per_block = plan->tiles_u * plan->tiles_v,
        .num_groups = job->ranks.num_groups,
        .chunk = job->layout->reproducible ? imager_part_vis(job) : plan->chunk,
        .cost_vis_s = tess_grid_cost_vis(plan),
        .cost_run_s = VIS_OF_RUN * tess_grid_cost_vis(plan),
        .cost_brick_s = brick_cost_s(plan),
        .always_split = job->layout->forced.split > 0};
    tess_planes_opts planes = planes_opts_of(job, forward, job->ranks.fft_ranks);
    tess_planes_opts model = model_opts_of(job, job->ranks.fft_ranks);
    double mark = tess_time_now();
    free_partition(job);
    job->slab_line = tess_alloc(job->ranks.fft_ranks + 1, sizeof *job->slab_line);
    TESS_TRY(
        tess_comm_agree(imager_team(job), job->slab_line ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_partition_create(imager_samples_team(job), &opts, bricks->key,
                                   bricks->num_vis, bricks->first_run,
                                   bricks->num_bricks, &job->partition));
    note_balance(job);
    TESS_TRY(tess_slabs_choose(imager_team(job), plan, bricks, job->ranks.fft_ranks,
                               job->slab_line));
    planes.slab_line = model.slab_line = job->slab_line;
    tess_profile_lap(job->profile, TESS_STAGE_PARTITION, &mark);
    TESS_TRY(set_up_steps(job, &planes, &job->planes, &job->steps));
    if (forward && job->model.is_shared)
        TESS_TRY(set_up_steps(job, &model, &job->model.planes, &job->model.steps));
cleanup:
    return status;
}

/* W-projection keeps no accuracy. */
static void warn_of_error(const imager_job *job)
{
    const tess_grid_plan *plan = job->plan;
    if (!plan->projection || plan->error_estimate <= plan->opts.accuracy ||
        tess_comm_rank(job->comm) != 0)
        return;
    tess_log_warn("w-projection is expected to be %.1e off, which is more than the "
                  "accuracy of %.0e: %s, and --w stacking keeps any accuracy",
                  plan->error_estimate, plan->opts.accuracy,
                  tess_projection_advice(plan));
}

tess_status imager_job_measure(imager_job *job, const tess_samples *samples,
                               bool weighted)
{
    tess_projection_error one;
    tess_status status = TESS_OK;
    if (!job->plan->projection || job->told.measured) return TESS_OK;
    TESS_TRY(tess_projection_measure(job->plan, samples, weighted, &one));
    job->told.error.error += one.error;
    job->told.error.norm += one.norm;
    job->told.error.num_vis += one.num_vis;
cleanup:
    return status;
}

tess_status imager_job_tell_error(imager_job *job)
{
    tess_status status = TESS_OK;
    double sums[3] = {job->told.error.error, job->told.error.norm,
                      (double)job->told.error.num_vis};
    if (!job->plan->projection || job->told.measured) return TESS_OK;
    job->told.measured = true;
    TESS_TRY(tess_comm_allreduce_f64(job->comm, sums, 3, TESS_SUM));
    if (!(sums[1] > 0)) return TESS_OK;
    job->profile->projection_error = sqrt(sums[0] / sums[1]);
    tess_log_info("w-projection: measured error %.2e, against direct sums over %lld "
                  "visibilities at 256 pixels each",
                  job->profile->projection_error, (long long)sums[2]);
    TESS_TRY(tess_projection_accept(job->plan, job->profile->projection_error));
cleanup:
    return status;
}

/* Says how many sets of images share the plan. */
static void log_outputs(const imager_job *job, int ranks)
{
    if (job->ranks.num_teams > 1)
        tess_log_info(
            "      for %lld sets of images, one after the other, of each of %d "
            "teams of %d rank%s",
            (long long)job->ranks.num_outputs, job->ranks.num_teams, ranks,
            ranks == 1 ? "" : "s");
    else if (job->ranks.num_outputs > 1)
        tess_log_info("      for all of %lld sets of images",
                      (long long)job->ranks.num_outputs);
}

/* Says how ranks share bricks, planes and images. */
static void log_shares(const imager_job *job, int ranks)
{
    double largest = 0, mean = 0;
    int64_t split = 0;
    tess_partition_balance(job->partition, &largest, &mean, &split);
    if (ranks > 1)
        tess_log_detail(
            "partition: %d w-group%s of %d ranks, FFT groups of %d, %lld split "
            "bricks, predicted imbalance %.1f %%",
            job->ranks.num_groups, job->ranks.num_groups == 1 ? "" : "s",
            ranks / job->ranks.num_groups, job->ranks.fft_ranks, (long long)split,
            mean > 0 ? 100 * (largest / mean - 1) : 0);
    if (job->alone && job->worst_pixel)
        tess_log_detail("every rank predicts what it has read%s",
                        job->shares_planes ? "" : ", from the whole model");
    else if (job->alone && job->shares_planes)
        tess_log_detail("every rank grids what it has read");
    else if (job->alone)
        tess_log_detail("every rank images what it has read; images are summed %s",
                        tess_device_comm_text(job->devices));
}

void imager_job_log(imager_job *job)
{
    char text[512];
    const int ranks = tess_comm_size(imager_samples_team(job));
    if (job->told.plan) return;
    job->told.plan = true;
    tess_grid_plan_text(job->plan, text, sizeof text);
    tess_log_info("plan: %s", text);
    warn_of_error(job);
    log_outputs(job, ranks);
    log_shares(job, ranks);
    snprintf(job->profile->plan, sizeof job->profile->plan,
             "%s; %d teams, %d w-groups, FFT groups of %d ranks", text,
             job->ranks.num_teams > 1 ? job->ranks.num_teams : 1, job->ranks.num_groups,
             job->ranks.fft_ranks);
}

void imager_job_note_held(imager_job *job)
{
    int64_t image, plane;
    if (!job->planes) return;
    tess_planes_held(job->planes, &image, &plane);
    if (job->backend->held) job->profile->device_bytes = job->backend->held();
    if (image > job->profile->image_slab_bytes) job->profile->image_slab_bytes = image;
    if (plane > job->profile->plane_slab_bytes) job->profile->plane_slab_bytes = plane;
}

void imager_job_free(imager_job *job)
{
    free_partition(job);
    imager_job_note_held(job);
    tess_planes_destroy(job->planes);
    tess_planes_destroy(job->model.planes);
    tess_device_comm_destroy(job->devices);
    tess_grid_plan_destroy(job->plan);
    tess_steps_batch_free(&job->batch);
    job->planes = job->model.planes = NULL;
    job->model.is_set = false;
    job->devices = NULL;
    job->shares_planes = false;
    job->plan = NULL;
    job->told.plan = job->told.measured = false;
    job->told.error = (tess_projection_error){0};
}
