/* Makes samples less a model.
 *
 * Residuals of a major cycle are the data less the visibilities of the whole model.
 * They are never the residuals of the previous cycle less the visibilities of its new
 * components, so that rounding errors do not accumulate from cycle to cycle. */
#include "residual.h"

#include <complex.h>
#include <math.h>

#include "imager_targets.h"
#include "imager_window.h"
#include "predictor.h"
#include "tess_mem.h"
#include "tess_real.h"

static int64_t value_bytes(const tess_samples *samples)
{
    return samples->is_double ? 16 : 8;
}

/* Whether residuals take the place of predictions in memory: a sample has as many of
 * both. */
static bool in_place(const imager_job *job, const tess_samples *samples)
{
    return job->model.num == samples->num_pol;
}

double residual_bytes(const imager_job *job, const tess_samples *samples)
{
    int values = job->model.num + (in_place(job, samples) ? 0 : samples->num_pol);
    /* what the models of earlier targets have left, while the next is subtracted */
    if (imager_job_num_targets(job) > 1) values += samples->num_pol;
    return (double)samples->num_vis * values * (double)value_bytes(samples);
}

/* Number of samples of a batch. Copies of one polarisation and its predictions take 20
 * MB, which is little beside the sums of bricks and stays in the cache of a server's
 * processor. A thread gets enough for some tens of pieces of work
 * (TESS_CHUNKS_PER_PIECE chunks), so that the end of a batch, where threads wait for
 * the last one, is short. */
enum { BATCH_VIS = 1 << 20, THREAD_VIS = 1 << 18 };

/* Share of a rank's memory that a batch may take; it makes batches smaller if there is
 * little memory. */
static const double BATCH_SHARE = 1.0 / 32;

/* Bytes of a sample that is copied and predicted. */
static double batch_vis_bytes(const imager_job *job, const tess_samples *samples)
{
    return (double)(tess_samples_vis_bytes(samples) +
                    job->model.num * value_bytes(samples));
}

static int64_t batch_vis(const imager_job *job, const tess_samples *samples)
{
    const int64_t least = (int64_t)job->layout->threads * THREAD_VIS;
    const int64_t wanted = least > BATCH_VIS ? least : BATCH_VIS;
    const int64_t allowed = 1 + (int64_t)(BATCH_SHARE * (double)job->memory.rank_bytes /
                                          batch_vis_bytes(job, samples));
    if (job->layout->forced.batch_vis > 0) return job->layout->forced.batch_vis;
    return wanted < allowed ? wanted : allowed;
}

static double batch_bytes(const imager_job *job, const tess_samples *samples)
{
    const int64_t most = batch_vis(job, samples);
    const double num_vis = (double)(most < samples->num_vis ? most : samples->num_vis);
    return num_vis * batch_vis_bytes(job, samples);
}

tess_status residual_choose(imager_job *job, const tess_samples *samples,
                            const tess_brick_list *bricks, double other_bytes,
                            residual_way *way)
{
    tess_status status = TESS_OK;
    const tess_forced *forced = &job->layout->forced;
    imager_sums_size sums;
    int window = 0;
    *way = (residual_way){.bytes = residual_bytes(job, samples)};
    /* several targets share the residuals */
    if (job->backend->grid->load || forced->batch_vis < 0 || forced->plane_window > 0 ||
        imager_job_num_targets(job) > 1)
        return TESS_OK;
    TESS_TRY(imager_own_sums(job, bricks, &sums));
    const double of_model = sums.all * job->model.num / job->num_images;
    const double of_batch = of_model + batch_bytes(job, samples);
    double need[2] = {way->bytes + fmax(sums.all, of_model), of_batch + sums.all};
    TESS_TRY(tess_comm_allreduce_f64(imager_team(job), need, 2, TESS_MAX));
    if (need[1] >= need[0] && forced->batch_vis == 0) return TESS_OK;
    if (forced->batch_vis == 0)
        TESS_TRY(imager_plane_window(job, other_bytes + of_batch, bricks, &window));
    if (window == 0) *way = (residual_way){true, of_batch, of_model};
cleanup:
    return status;
}

/* The model that is subtracted from a batch. */
typedef struct subtraction {
    const imager_job *job;
    double factor;
} subtraction;

static void subtract_from_batch(const void *context, const tess_samples *predicted,
                                tess_samples *samples)
{
    const subtraction *what = context;
    residual_subtract(&what->job->model, what->factor, what->job->layout->threads,
                      samples, predicted, samples);
}

tess_status residual_image(imager_job *job, const tess_samples *samples,
                           const tess_brick_list *bricks, double vis_scale, bool psf)
{
    const subtraction what = {job, vis_scale / job->model.scale};
    const tess_steps_model model = {.steps = job->model.steps,
                                    .num_images = job->model.num,
                                    .subtract = subtract_from_batch,
                                    .context = &what,
                                    .batch_vis = batch_vis(job, samples),
                                    .keep_whole = job->layout->reproducible,
                                    .batch = &job->batch};
    return tess_steps_residual(job->steps, &model, samples, bricks, psf);
}

/* Predicts the model's visibilities at the samples. Collective. */
static tess_status predict(imager_job *job, const tess_brick_list *bricks,
                           double other_bytes, tess_samples *predicted)
{
    tess_status status = TESS_OK;
    tess_brick_list own = {0};
    if (job->backend->grid->load) {
        status = job->backend->grid->load(job->plan, predicted, true, &own);
        TESS_TRY(tess_comm_agree(imager_team(job), status));
        bricks = &own;
    }
    tess_steps_restart(job->model.steps);
    TESS_TRY(
        imager_predict_owned(job, job->model.steps, other_bytes, predicted, bricks));
cleanup:
    tess_brick_list_free(&own);
    return status;
}

/* Makes samples less the model of the target at work. Collective. */
static tess_status subtract_target(imager_job *job, const tess_samples *samples,
                                   const tess_brick_list *bricks, double vis_scale,
                                   double other_bytes, tess_samples *residual)
{
    tess_status status = TESS_OK;
    const imager_job_model *model = &job->model;
    const int64_t bytes = value_bytes(samples);
    /* rows and positions are borrowed */
    tess_samples predicted = *samples;
    *residual = *samples;
    predicted.num_pol = model->num;
    predicted.vis = tess_alloc(samples->num_vis * model->num, (size_t)bytes);
    residual->vis =
        in_place(job, samples)
            ? predicted.vis
            : tess_alloc(samples->num_vis * samples->num_pol, (size_t)bytes);
    TESS_TRY(tess_comm_agree(
        imager_team(job), predicted.vis && residual->vis ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(
        predict(job, bricks, other_bytes + residual_bytes(job, samples), &predicted));
    double mark = tess_time_now();
    residual_subtract(model, vis_scale / model->scale, job->layout->threads, samples,
                      &predicted, residual);
    tess_profile_lap(job->profile, TESS_STAGE_GRID, &mark);
cleanup:
    if (predicted.vis != residual->vis) tess_free(predicted.vis);
    if (status != TESS_OK) residual_free(residual);
    return status;
}

tess_status residual_make(imager_job *job, const tess_samples *samples,
                          const tess_brick_list *bricks, double vis_scale,
                          double other_bytes, tess_samples *residual)
{
    tess_status status = TESS_OK;
    const int aim = job->targets.aim;
    *residual = *samples;
    for (int k = 0; k < imager_job_num_targets(job); ++k) {
        tess_samples less = {0};
        imager_job_aim(job, k);
        status = subtract_target(job, residual, bricks, vis_scale, other_bytes, &less);
        if (k > 0) residual_free(residual);
        *residual = less;
        TESS_TRY(status);
    }
cleanup:
    imager_job_aim(job, aim);
    return status;
}

void residual_free(tess_samples *residual)
{
    tess_free(residual->vis);
    *residual = (tess_samples){0};
}
