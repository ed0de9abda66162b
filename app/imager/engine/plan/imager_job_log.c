/* Logs the plan of a job, and measures the error of w-projection. */
#include <math.h>
#include <stdio.h>

#include "imager_job.h"
#include "imager_targets.h"
#include "tess_const.h"
#include "tess_device_comm.h"
#include "tess_log.h"
#include "tess_text.h"

/* Warns if w-projection is expected to miss the accuracy that is asked for. */
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
    if (job->ranks.shares_planes)
        tess_log_detail("devices share w-planes %s",
                        tess_device_comm_text(job->ranks.devices));
    if (job->alone && job->worst_pixel)
        tess_log_detail("every rank predicts what it has read%s",
                        job->ranks.shares_planes ? "" : ", from the whole model");
    else if (job->alone && job->ranks.shares_planes)
        tess_log_detail("every rank grids what it has read");
    else if (job->alone)
        tess_log_detail("every rank images what it has read; images are summed %s",
                        tess_device_comm_text(job->ranks.devices));
}

/* Transforms that take longer than this are told of before they begin [s]. */
static const double LONG_S = 3600;
/* Share of the grid's lines that bricks cover, which costs of planes ask for. */
static const double LINES_COVERED = 0.7;
/* A plan of many planes, of which so few have visibilities, is told of: some rows lie
 * far from all others. Few baselines of sound data may leave planes empty, too, but
 * have no plan of so many. */
enum { MANY = 10000, SPARSE = 16 };

static double transforms_s(const imager_job *job, int64_t planes)
{
    const tess_grid_plan *plan = job->plan;
    const double outputs =
        job->ranks.num_outputs > 1
            ? (double)job->ranks.num_outputs / fmax(1, job->ranks.num_teams)
            : 1;
    const double images = (double)planes * job->num_images * outputs;
    const double ranks = tess_comm_size(imager_team(job));
    if (job->backend->start) return tess_grid_device_cost_plane(plan) * images / ranks;
    return tess_grid_cost_plane(plan, LINES_COVERED) * images /
           (ranks * job->layout->threads);
}

/* What may be done about a large |w|: a prediction is of all rows. */
static const char *advice_on_w(const imager_job *job)
{
    return job->worst_pixel ? "" : "; --maxuvw-m leaves out longer baselines";
}

/* Phases that --w none may leave out without a warning [rad]: those to which a field is
 * taken for flat (Thompson, Moran & Swenson 2017, section 3.1). They cost a source at
 * most 0.5 % of its peak. */
static const double FLAT_PHASE = 0.1;

/* Warns if --w none leaves out phases that matter at the corners of the images. */
static void warn_of_no_w(const imager_job *job)
{
    const double w_rad = TESS_TWO_PI * job->extent.w_max_lambda;
    double depth = 0; /* largest |n - 1| of the images */
    char radius[32];
    for (int k = 0; k < imager_job_num_targets(job); ++k)
        depth = fmax(depth, fabs(tess_geom_nm1_min(imager_job_geom(job, k))));
    if (w_rad * depth <= FLAT_PHASE) return;
    tess_text_angle_below(acos(fmax(-1, 1 - FLAT_PHASE / w_rad)), radius,
                          sizeof radius);
    tess_log_warn(
        "--w none leaves out phases of up to %.2g rad at the image's corners, "
        "and of more than %g rad beyond %s from the phase centre, where "
        "sources are smeared; --w auto corrects them",
        w_rad * depth, FLAT_PHASE, radius);
}

/* Warns if the transforms of the w-planes take hours, or if few of them are needed. */
static void warn_of_planes(const imager_job *job)
{
    const tess_grid_plan *plan = job->plan;
    const int64_t planes = tess_steps_touched(job->steps);
    const double seconds = transforms_s(job, planes), w = job->extent.w_max_lambda;
    if (seconds > LONG_S)
        tess_log_warn(
            "the transforms of %lld w-planes take about %.2g hours, because |w| "
            "reaches %.3g wavelengths; fewer pixels or a coarser --accuracy "
            "take less time%s",
            (long long)planes, seconds / 3600, w, advice_on_w(job));
    else if (plan->num_planes > MANY && plan->num_planes / SPARSE > planes)
        tess_log_warn(
            "visibilities lie in %lld of %d w-planes: |w| of some rows reaches "
            "%.3g wavelengths, far from all others, as of damaged rows%s",
            (long long)planes, plan->num_planes, w, advice_on_w(job));
}

void imager_job_warn_of_w(const imager_job *job)
{
    if (tess_comm_rank(job->comm) != 0) return;
    if (job->gridding->w_mode == TESS_W_NONE)
        warn_of_no_w(job);
    else if (job->plan->opts.do_w)
        warn_of_planes(job);
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
    imager_job_warn_of_w(job);
    snprintf(job->profile->plan, sizeof job->profile->plan,
             "%s; %d teams, %d w-groups, FFT groups of %d ranks", text,
             job->ranks.num_teams > 1 ? job->ranks.num_teams : 1, job->ranks.num_groups,
             job->ranks.fft_ranks);
}
