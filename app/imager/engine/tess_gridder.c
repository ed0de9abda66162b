/* Grids samples to one image, and degrids an image to samples, by the steps of the
 * engine on one rank. The library calls it for arrays in memory. */
#include "tess_gridder.h"

#include "imager_job.h"
#include "imager_window.h"
#include "tess_mem.h"

struct tess_gridder {
    tess_samples *samples; /* samples of the caller */
    tess_layout layout;
    tess_profile profile;
    imager_job job;
    tess_brick_list runs;
    tess_gridder_report report;
};

static void lap(double *mark, double *seconds)
{
    const double now = tess_time_now();
    *seconds += now - *mark;
    *mark = now;
}

tess_status tess_gridder_create(const tess_geom *geom, const tess_grid_opts *opts,
                                tess_samples *samples, bool forward,
                                tess_gridder **gridder)
{
    tess_status status = TESS_OK;
    double mark = tess_time_now();
    tess_gridder *made = tess_alloc_zero(1, sizeof *made);
    if (!made) TESS_FAIL(TESS_ERR_ALLOC, "gridder");
    imager_job *job = &made->job;
    made->samples = samples;
    made->layout.threads = opts->threads;
    job->layout = &made->layout;
    job->profile = &made->profile;
    job->geom = *geom;
    job->num_pol = job->num_images = job->ranks.num_groups = job->ranks.fft_ranks = 1;
    job->memory.rank_bytes = INT64_MAX; /* the caller has set no limit */
    TESS_TRY(tess_comm_self(&job->comm));
    TESS_TRY(tess_backend_find("cpu", &job->backend));
    TESS_TRY(tess_grid_plan_create(&job->geom, opts, job->backend, &job->plan));
    lap(&mark, &made->report.plan_s);
    TESS_TRY(
        tess_brick_list_make(job->plan, samples, samples->weight != NULL, &made->runs));
    lap(&mark, &made->report.sort_s);
    TESS_TRY(imager_job_partition(job, &made->runs, forward));
    lap(&mark, &made->report.plan_s);
    *gridder = made;
    made = NULL;
cleanup:
    tess_gridder_destroy(made);
    return status;
}

tess_status tess_gridder_image(tess_gridder *gridder)
{
    tess_status status = TESS_OK;
    tess_steps *steps = gridder->job.steps;
    int window;
    TESS_TRY(imager_plane_window(&gridder->job, 0, &gridder->runs, &window));
    TESS_TRY(window > 0 ? tess_steps_image_by_planes(steps, window, gridder->samples,
                                                     &gridder->runs, false)
                        : tess_steps_image(steps, 0, tess_steps_count(steps), true,
                                           gridder->samples, &gridder->runs, false));
cleanup:
    return status;
}

tess_status tess_gridder_predict(tess_gridder *gridder)
{
    tess_status status = TESS_OK;
    tess_steps *steps = gridder->job.steps;
    int window;
    TESS_TRY(imager_plane_window(&gridder->job, 0, &gridder->runs, &window));
    TESS_TRY(window > 0 ? tess_steps_predict_by_planes(steps, window, gridder->samples,
                                                       &gridder->runs)
                        : tess_steps_predict(steps, gridder->samples, &gridder->runs));
cleanup:
    return status;
}

const tess_grid_plan *tess_gridder_plan(const tess_gridder *gridder)
{
    return gridder->job.plan;
}

void *tess_gridder_pixels(const tess_gridder *gridder)
{
    return tess_planes_image(gridder->job.planes, 0);
}

void tess_gridder_report_make(const tess_gridder *gridder, tess_gridder_report *report)
{
    const tess_profile *profile = &gridder->profile;
    const double *seconds = profile->stage_seconds;
    *report = gridder->report;
    report->join_s = profile->join_s;
    report->fft_s =
        seconds[TESS_STAGE_FFT] + seconds[TESS_STAGE_REDUCE] - profile->join_s;
    report->grid_utilisation = profile->grid.utilisation;
}

void tess_gridder_destroy(tess_gridder *gridder)
{
    if (!gridder) return;
    tess_brick_list_free(&gridder->runs);
    imager_job_free(&gridder->job);
    tess_comm_free(gridder->job.comm);
    tess_free(gridder);
}
