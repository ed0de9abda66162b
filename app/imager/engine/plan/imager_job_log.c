/* Logs the plan of a job, and measures the error of w-projection. */
#include <math.h>
#include <stdio.h>

#include "imager_job.h"
#include "tess_device_comm.h"
#include "tess_log.h"

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
