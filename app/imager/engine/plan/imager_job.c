/* Shares planes among ranks, and makes the partition of a set of samples, with planes
 * and steps. */
#include <math.h>

#include "imager_job.h"
#include "imager_targets.h"
#include "steps_residual.h"
#include "tess_device_comm.h"
#include "tess_mem.h"

tess_comm *imager_samples_team(const imager_job *job)
{
    return job->alone ? job->alone : job->comm;
}

tess_comm *imager_team(const imager_job *job)
{
    return job->ranks.shares_planes ? job->comm : imager_samples_team(job);
}

const tess_place *imager_rows_place(const imager_job *job)
{
    const bool on_device =
        job->layout->forced.device_rows == TESS_IMAGES_THERE || job->memory.device_rows;
    return on_device ? job->backend->place : NULL;
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
        .nm1_center = plan->target.nm1_center,
        .do_w = plan->opts.do_w,
        .is_double = plan->is_double,
        .forward = forward,
        .reuse = job->ranks.num_outputs > 1,
        .num_images = job->num_images,
        .threads = job->layout->threads,
        .place = imager_rows_place(job),
        .pixels = job->memory.pixels,
        .fft_ranks = fft_ranks,
        .sum_over = job->alone && !job->ranks.shares_planes ? job->comm : NULL,
        .devices = job->alone && !job->ranks.shares_planes ? job->ranks.devices : NULL,
        .links = job->ranks.shares_planes ? job->ranks.devices : NULL,
        .num_planes = plan->num_planes *
                      (job->ranks.num_outputs > 1 ? job->ranks.num_outputs : 1),
        .repeatable = job->layout->reproducible};
}

/* Images of the job's model, and their planes. */
static tess_planes_opts model_opts_of(const imager_job *job, int fft_ranks)
{
    tess_planes_opts opts = planes_opts_of(job, false, fft_ranks);
    opts.num_images = job->model.num;
    if (!job->model.by_rows) opts.place = NULL;
    opts.pixels = NULL;
    return opts;
}

/* Memory that planes take [bytes]. */
typedef struct planes_need {
    double all;
    double work; /* of all: what planes have while they are at work */
} planes_need;

typedef planes_need need_of_planes(const imager_job *job, const tess_planes_opts *opts);

static planes_need need_here(const imager_job *job, const tess_planes_opts *opts)
{
    (void)job;
    return (planes_need){tess_planes_bytes(opts), tess_planes_work_bytes(opts)};
}

/* A device's lines stay. */
static planes_need need_there(const imager_job *job, const tess_planes_opts *opts)
{
    return (planes_need){tess_planes_device_bytes(job->backend->planes, opts), 0};
}

/* What all of these take on a rank [bytes], or those of the largest target. Targets are
 * at work one after the other. */
static double planes_bytes(const imager_job *job, int fft_ranks,
                           need_of_planes *need_of, bool in_turn)
{
    double stay = 0, most = 0, most_work = 0;
    for (int k = 0; k < imager_job_num_targets(job); ++k) {
        tess_planes_opts opts = planes_opts_of(job, true, fft_ranks);
        tess_planes_opts model = model_opts_of(job, fft_ranks);
        opts.nx = model.nx = imager_job_geom(job, k)->nx;
        opts.ny = model.ny = imager_job_geom(job, k)->ny;
        /* targets in turn have predicted before they are gridded */
        planes_need need = need_of(job, &opts);
        if (job->model.is_shared) {
            const planes_need of_model = need_of(job, &model);
            need.all += of_model.all;
            need.work += of_model.work;
        }
        stay += need.all - need.work;
        most = fmax(most, need.all);
        most_work = fmax(most_work, need.work);
    }
    return in_turn ? most : stay + most_work;
}

static double host_bytes(const imager_job *job, int fft_ranks)
{
    return planes_bytes(job, fft_ranks, need_here, imager_job_in_turn(job));
}

double imager_device_planes_bytes(const imager_job *job, bool in_turn)
{
    return planes_bytes(job, job->ranks.fft_ranks, need_there, in_turn);
}

/* The share of a device that the planes of all targets may take beside images, samples
 * and sums of bricks. */
static const double PLANES_SHARE = 0.5;

tess_status imager_job_choose_turns(imager_job *job)
{
    tess_status status = TESS_OK;
    imager_targets *targets = &job->targets;
    if (!job->backend->room || !targets->may_turn) return TESS_OK;
    int64_t lacks =
        !job->ranks.shares_planes && imager_device_planes_bytes(job, false) >
                                         PLANES_SHARE * (double)job->backend->room();
    TESS_TRY(tess_comm_allreduce_i64(job->comm, &lacks, 1, TESS_MAX));
    targets->in_turn = lacks != 0;
cleanup:
    return status;
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

/* The number of ranks that share a plane. It is 1 while there are planes for all ranks
 * in every step. Otherwise it is the number with which all ranks are equally busy, or
 * more if images or planes would not fit. With --reproducible there is one group,
 * because sums of images over groups of ranks depend on the number of groups. */
static int choose_fft_ranks(const imager_job *job, int ranks, int num_groups)
{
    if (job->layout->forced.fft_ranks > 0) return job->layout->forced.fft_ranks;
    if (job->layout->reproducible) return ranks;
    const int at_once = job->plan->block_planes * num_groups * job->num_images;
    int fft_ranks = tess_partition_sharers(ranks, at_once > 1 ? at_once : 1);
    for (int f = fft_ranks; f <= ranks; ++f) {
        if (ranks % f != 0) continue;
        fft_ranks = f;
        if (host_bytes(job, f) < 0.5 * (double)job->memory.rank_bytes) break;
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
            "out pw and fft-ranks of TESS_FORCE",
            tess_comm_size(job->comm));
cleanup:
    return status;
}

double imager_planes_bytes(const imager_job *job)
{
    return host_bytes(job, job->ranks.fft_ranks);
}

double imager_team_bytes(const imager_job *job, int ranks)
{
    int num_groups, fft_ranks;
    imager_shares(job, ranks, &num_groups, &fft_ranks);
    const double pixels =
        (double)job->geom.nx * (double)job->geom.ny * imager_job_num_targets(job);
    return host_bytes(job, fft_ranks) +
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

tess_status imager_job_share(imager_job *job)
{
    tess_status status = TESS_OK;
    /* the devices of a team are not those that are connected */
    if (job->ranks.num_teams > 1) job->ranks.shares_planes = false;
    const int ranks = tess_comm_size(imager_team(job));
    job->ranks.num_groups = job->ranks.shares_planes ? 1 : choose_groups(job, ranks);
    if (job->ranks.shares_planes)
        job->ranks.fft_ranks = ranks;
    else if (job->ranks.fft_ranks == 0)
        job->ranks.fft_ranks = choose_fft_ranks(job, ranks, job->ranks.num_groups);
    if (ranks % job->ranks.num_groups != 0)
        TESS_FAIL(TESS_ERR_USAGE, "TESS_FORCE: pw=%d does not divide %d ranks",
                  job->ranks.num_groups, ranks);
    if (ranks % job->ranks.fft_ranks != 0)
        TESS_FAIL(TESS_ERR_USAGE, "TESS_FORCE: fft-ranks=%d does not divide %d ranks",
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
        if (opts->forward && !imager_job_in_turn(job))
            status = tess_planes_clear(*planes);
        TESS_TRY(tess_comm_agree(imager_team(job), status));
    } else {
        TESS_TRY(
            tess_planes_create(imager_team(job), job->backend->planes, opts, planes));
        imager_job_drop_planes(job, *planes);
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
    for (int k = imager_job_num_targets(job) - 1; k >= 0; --k) {
        imager_job_aim(job, k);
        tess_planes_set_slabs(job->planes, job->slab_line);
        if (job->model.planes) tess_planes_set_slabs(job->model.planes, job->slab_line);
    }
}

void imager_job_part_free(imager_job_part *part)
{
    tess_steps_destroy(part->steps);
    tess_steps_destroy(part->model_steps);
    tess_partition_destroy(part->partition);
    tess_free(part->slab_line);
    *part = (imager_job_part){0};
}

/* More visibilities than any brick has. */
static const int64_t WHOLE_BRICK = (int64_t)1 << 48;

int64_t imager_part_vis(const imager_job *job)
{
    if (job->backend->grid->load) return WHOLE_BRICK;
    return job->plan->opts.chunk * TESS_CHUNKS_PER_PIECE;
}

/* A run costs as much as this number of visibilities, because its row may be anywhere
 * in memory, and its batch is not full. Gridding 29 million MeerKAT visibilities,
 * support 5, took 77 ns for each, 220 ns for each run, and .3 ns for each byte of brick
 * sums. */
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

/* Makes the planes of the target at work, and those of its model. Collective. */
static tess_status set_up_target(imager_job *job, bool forward)
{
    tess_status status = TESS_OK;
    tess_planes_opts planes = planes_opts_of(job, forward, job->ranks.fft_ranks);
    tess_planes_opts model = model_opts_of(job, job->ranks.fft_ranks);
    planes.slab_line = model.slab_line = job->slab_line;
    TESS_TRY(set_up_planes(job, &planes, &job->planes));
    if (forward && job->model.is_shared)
        TESS_TRY(set_up_planes(job, &model, &job->model.planes));
cleanup:
    return status;
}

/* Makes the steps of the partition. Collective. */
static tess_status create_steps(imager_job *job, const tess_brick_list *bricks,
                                tess_planes *planes, tess_steps **steps)
{
    return tess_steps_create(imager_team(job), job->plan, job->partition, bricks,
                             job->ranks.num_groups, planes, job->profile, steps);
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
        .chunk = job->layout->reproducible ? imager_part_vis(job) : plan->opts.chunk,
        .cost_vis_s = tess_grid_cost_vis(plan),
        .cost_run_s = VIS_OF_RUN * tess_grid_cost_vis(plan),
        .cost_brick_s = brick_cost_s(plan),
        .always_split = job->layout->forced.split > 0};
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
    tess_profile_lap(job->profile, TESS_STAGE_PARTITION, &mark);
    for (int k = imager_job_num_targets(job) - 1; k >= 0; --k) {
        imager_job_aim(job, k);
        TESS_TRY(set_up_target(job, forward));
    }
    TESS_TRY(create_steps(job, bricks, job->planes, &job->steps));
    if (forward && job->model.is_shared)
        TESS_TRY(create_steps(job, bricks, job->model.planes, &job->model.steps));
cleanup:
    return status;
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
    imager_job_free_targets(job);
    tess_planes_destroy(job->planes);
    tess_planes_destroy(job->model.planes);
    tess_device_comm_destroy(job->ranks.devices);
    tess_steps_batch_free(&job->batch);
    job->planes = job->model.planes = NULL;
    job->model.is_set = false;
    job->ranks.devices = NULL;
    job->ranks.shares_planes = false;
    job->told.plan = job->told.measured = false;
    job->told.error = (tess_projection_error){0};
}
