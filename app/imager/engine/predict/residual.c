/* Makes samples less a model.
 *
 * Residuals of a major cycle are the data less the visibilities of the whole model.
 * They are never the residuals of the previous cycle less the visibilities of its new
 * components, so that rounding errors do not accumulate from cycle to cycle. */
#include "residual.h"

#include <complex.h>
#include <math.h>
#include <string.h>

#include "imager_targets.h"
#include "imager_window.h"
#include "predictor.h"
#include "steps_residual.h"
#include "tess_degrid.h"
#include "tess_mem.h"
#include "tess_real.h"

/* ---- one sample after the other ---- */

static double complex value_of(const tess_samples *samples, int64_t at)
{
    return CMPLX(tess_real_at(samples->vis, samples->is_double, 2 * at),
                 tess_real_at(samples->vis, samples->is_double, 2 * at + 1));
}

static void put_value(tess_samples *samples, int64_t at, double complex value)
{
    tess_real_set(samples->vis, samples->is_double, 2 * at, creal(value));
    tess_real_set(samples->vis, samples->is_double, 2 * at + 1, cimag(value));
}

/* Subtracts `factor` times the visibilities of the model from one sample. */
static void subtract_sample(const imager_job_model *model, double factor,
                            const tess_samples *samples, const tess_samples *predicted,
                            int64_t sample, tess_samples *residual)
{
    double complex value[IMAGER_MAX_MODEL];
    for (int k = 0; k < model->num; ++k)
        value[k] = factor * value_of(predicted, sample * model->num + k);
    for (int p = 0; p < samples->num_pol; ++p) {
        const int64_t at = sample * samples->num_pol + p;
        double complex sum = 0;
        for (int k = 0; k < model->num; ++k)
            sum += model->mix[p][k] * value[k];
        put_value(residual, at, value_of(samples, at) - sum);
    }
}

/* Sets `residual` to `samples` less `factor` times what model->mix makes of the
 * visibilities [num_vis][model->num] `predicted`. `residual` may be `samples`. */
static void subtract_all(const imager_job_model *model, double factor, int threads,
                         const tess_samples *samples, const tess_samples *predicted,
                         tess_samples *residual)
{
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t k = 0; k < samples->num_vis; ++k)
        subtract_sample(model, factor, samples, predicted, k, residual);
}

/* ---- the choice ---- */

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
    if (imager_job_num_targets(job) > 1 || job->view.counts) values += samples->num_pol;
    return (double)samples->num_vis * values * (double)value_bytes(samples);
}

double residual_made_bytes(const tess_samples *samples)
{
    return (double)samples->num_vis * samples->num_pol * (double)value_bytes(samples);
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

/* Sets the way to batches where these are better. Collective. */
static tess_status choose_batches(imager_job *job, const tess_samples *samples,
                                  const tess_brick_list *bricks, double other_bytes,
                                  residual_way *way)
{
    tess_status status = TESS_OK;
    const tess_forced *forced = &job->layout->forced;
    imager_sums_size sums;
    int window = 0;
    /* several targets share the residuals, and take their views of them */
    if (job->backend->grid->load || forced->batch_vis < 0 || forced->plane_window > 0 ||
        imager_job_num_targets(job) > 1 || job->view.num_pol > 0)
        return TESS_OK;
    TESS_TRY(imager_own_sums(job, bricks, &sums));
    const double of_model = sums.all * job->model.num / job->num_images;
    const double of_batch = of_model + batch_bytes(job, samples);
    double need[2] = {way->bytes + fmax(sums.all, of_model), of_batch + sums.all};
    TESS_TRY(tess_comm_allreduce_f64(imager_team(job), need, 2, TESS_MAX));
    if (need[1] >= need[0] && forced->batch_vis == 0) return TESS_OK;
    if (forced->batch_vis == 0)
        TESS_TRY(imager_plane_window(job, other_bytes + of_batch, bricks, &window));
    if (window == 0) *way = (residual_way){true, of_batch, of_model, 0};
cleanup:
    return status;
}

tess_status residual_choose_array(imager_job *job, const tess_samples *samples,
                                  const tess_brick_list *bricks, double other_bytes,
                                  residual_way *way)
{
    *way = (residual_way){.bytes = residual_bytes(job, samples)};
    return imager_predict_window(job, other_bytes + way->bytes, bricks, &way->planes);
}

tess_status residual_choose(imager_job *job, const tess_samples *samples,
                            const tess_brick_list *bricks, double other_bytes,
                            residual_way *way)
{
    tess_status status = TESS_OK;
    *way = (residual_way){.bytes = residual_bytes(job, samples)};
    TESS_TRY(choose_batches(job, samples, bricks, other_bytes, way));
    if (!way->in_batches)
        TESS_TRY(residual_choose_array(job, samples, bricks, other_bytes, way));
cleanup:
    return status;
}

/* ---- batch after batch ---- */

/* The model that is subtracted from a batch. */
typedef struct subtraction {
    const imager_job *job;
    double factor;
} subtraction;

static void subtract_from_batch(const void *context, const tess_samples *predicted,
                                tess_samples *samples)
{
    const subtraction *what = context;
    subtract_all(&what->job->model, what->factor, what->job->layout->threads, samples,
                 predicted, samples);
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

/* ---- set after set ---- */

tess_status residual_of_set(imager_predictor *predictor, double vis_scale,
                            tess_samples *samples)
{
    tess_status status = TESS_OK;
    const imager_model *model = &predictor->model;
    /* the same rows with room for the model's Stokes parameters; positions are
     * borrowed */
    tess_samples predicted = *samples;
    predicted.num_pol = model->num_stokes;
    predicted.vis =
        tess_alloc(samples->num_vis * model->num_stokes, (size_t)value_bytes(samples));
    TESS_TRY(
        tess_comm_agree(predictor->job.comm, predicted.vis ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(imager_predictor_run(predictor, &predicted));
    subtract_all(&predictor->mix, vis_scale / model->scale,
                 predictor->job.layout->threads, samples, &predicted, samples);
cleanup:
    tess_free(predicted.vis);
    return status;
}

/* ---- residual samples ---- */

static double sums_bytes(const imager_job *job, const tess_brick_list *held,
                         int num_images)
{
    return (double)job->backend->degrid->sums_bytes(job->plan, held, 0,
                                                    held->num_bricks, num_images);
}

bool residual_has_room(const imager_job *job, const tess_samples *samples,
                       const tess_brick_list *held, double other_bytes)
{
    const double room = (double)job->backend->degrid->sums_room(job->plan, held) -
                        (double)tess_planes_more_bytes(job->planes) - other_bytes;
    const int most =
        job->model.num > job->num_images ? job->model.num : job->num_images;
    return room >= residual_bytes(job, samples) + sums_bytes(job, held, most);
}

/* Makes room for `num_pol` values of each sample, where the samples are. Local. */
static tess_status make_values(const imager_job *job, const residual_source *from,
                               int num_pol, residual_samples *values)
{
    tess_samples *samples = &values->samples;
    *samples = *from->samples; /* rows and positions are borrowed */
    samples->num_pol = num_pol;
    samples->vis = NULL;
    if (from->held)
        return job->backend->grid->derive(from->bricks, num_pol, &values->held);
    samples->vis = tess_alloc(samples->num_vis * num_pol, (size_t)value_bytes(samples));
    return samples->vis ? TESS_OK : TESS_ERR_ALLOC;
}

/* Predicts the visibilities of the model of the target at work. Collective. */
static tess_status predict(imager_job *job, const residual_source *from,
                           int planes_at_once, residual_samples *predicted)
{
    tess_status status = TESS_OK;
    tess_brick_list own = {0};
    const tess_brick_list *bricks = from->held ? &predicted->held : from->bricks;
    if (!from->held && job->backend->grid->load) {
        status = job->backend->grid->load(job->plan, &predicted->samples, true, &own);
        TESS_TRY(tess_comm_agree(imager_team(job), status));
        bricks = &own;
    }
    tess_steps_restart(job->model.steps);
    TESS_TRY(imager_predict_owned(job->model.steps, planes_at_once, &predicted->samples,
                                  bricks));
cleanup:
    tess_brick_list_free(&own);
    return status;
}

/* Subtracts predictions that the backend holds. Local. */
static tess_status subtract_held(const imager_job *job, double factor, int num_pol,
                                 const tess_brick_list *held,
                                 const tess_brick_list *predicted, tess_brick_list *out)
{
    const imager_job_model *model = &job->model;
    double mix[2 * TESS_MAX_POL][IMAGER_MAX_MODEL][2];
    double *next = &mix[0][0][0];
    for (int p = 0; p < num_pol; ++p)
        for (int k = 0; k < model->num; ++k) {
            *next++ = creal(model->mix[p][k]);
            *next++ = cimag(model->mix[p][k]);
        }
    const tess_subtraction what = {factor, num_pol, model->num, &mix[0][0][0]};
    return job->backend->grid->subtract(&what, held, predicted, out);
}

/* Subtracts predictions that are in the host's memory. Local. */
static tess_status subtract_here(const imager_job *job, double factor,
                                 const tess_samples *samples,
                                 const tess_samples *predicted, tess_samples *out)
{
    if (job->view.from_model)
        return imager_view_apply(job, job->view.from_model, predicted, samples, factor,
                                 out);
    subtract_all(&job->model, factor, job->layout->threads, samples, predicted, out);
    return TESS_OK;
}

/* Makes what earlier targets have left of the samples, `left` (the first target: NULL),
 * less the model of the target at work. Collective. */
static tess_status subtract_target(imager_job *job, const residual_source *from,
                                   const residual_samples *left, double vis_scale,
                                   int planes_at_once, residual_samples *to)
{
    tess_status status = TESS_OK;
    const tess_samples *samples = from->samples;
    const double factor = vis_scale / job->model.scale;
    residual_samples predicted = {0}, other = {0};
    residual_samples *out = in_place(job, samples) ? &predicted : &other;
    status = make_values(job, from, job->model.num, &predicted);
    if (status == TESS_OK && out == &other)
        status = make_values(job, from, samples->num_pol, &other);
    TESS_TRY(tess_comm_agree(imager_team(job), status));
    TESS_TRY(predict(job, from, planes_at_once, &predicted));
    double mark = tess_time_now();
    if (from->held)
        status = subtract_held(job, factor, samples->num_pol,
                               left ? &left->held : from->bricks, &predicted.held,
                               &out->held);
    else
        status = subtract_here(job, factor, left ? &left->samples : samples,
                               &predicted.samples, &out->samples);
    TESS_TRY(tess_comm_agree(imager_team(job), status));
    tess_profile_lap(job->profile, TESS_STAGE_GRID, &mark);
    *to = *out;
    *out = (residual_samples){0};
cleanup:
    residual_free(&predicted);
    residual_free(&other);
    return status;
}

/* Predicts the rows of the target at work, of which wanted[num_rows] tells. A backend
 * that sorts predicts all rows. Collective. */
static tess_status predict_rows(imager_job *job, const residual_source *from,
                                int planes_at_once, bool *wanted,
                                residual_samples *predicted)
{
    tess_status status = TESS_OK;
    tess_brick_list own = {0};
    residual_source rows = *from;
    imager_view_want(job, from->samples, wanted);
    if (!job->backend->grid->load) {
        status = tess_brick_list_pick(from->bricks, wanted, &own);
        rows.bricks = &own;
    }
    TESS_TRY(tess_comm_agree(imager_team(job), status));
    TESS_TRY(predict(job, &rows, planes_at_once, predicted));
cleanup:
    tess_brick_list_free(&own);
    return status;
}

/* Subtracts `factor` times what is predicted of the rows that are wanted. */
static void subtract_rows(const imager_job *job, double factor, const bool *wanted,
                          const tess_samples *predicted, tess_samples *residual)
{
#pragma omp parallel for num_threads(job->layout->threads) schedule(static)
    for (int64_t row = 0; row < residual->num_rows; ++row)
        for (int32_t c = 0; wanted[row] && c < residual->num_chan[row]; ++c)
            subtract_sample(&job->model, factor, residual, predicted,
                            residual->vis_first[row] + c, residual);
}

/* Copies the visibilities of the rows that are wanted. */
static void copy_rows(const imager_job *job, const bool *wanted,
                      const tess_samples *samples, tess_samples *to)
{
    const int64_t bytes = samples->num_pol * value_bytes(samples);
#pragma omp parallel for num_threads(job->layout->threads) schedule(static)
    for (int64_t row = 0; row < samples->num_rows; ++row)
        if (wanted[row] && samples->num_chan[row] > 0)
            memcpy((char *)to->vis + samples->vis_first[row] * bytes,
                   (const char *)samples->vis + samples->vis_first[row] * bytes,
                   (size_t)(samples->num_chan[row] * bytes));
}

/* Makes the samples less the models of targets that take some rows each. Collective. */
static tess_status subtract_by_rows(imager_job *job, const residual_source *from,
                                    double vis_scale, int planes_at_once,
                                    residual_samples *to)
{
    tess_status status = TESS_OK;
    const int aim = job->targets.aim;
    const tess_samples *samples = from->samples;
    residual_samples predicted = {0};
    bool *wanted = tess_alloc(samples->num_rows, sizeof *wanted);
    status = wanted ? make_values(job, from, samples->num_pol, to) : TESS_ERR_ALLOC;
    if (status == TESS_OK) status = make_values(job, from, job->model.num, &predicted);
    TESS_TRY(tess_comm_agree(imager_team(job), status));
    for (int k = from->first_target; k < from->end_target; ++k) {
        if (job->view.set_model) TESS_TRY(job->view.set_model(job->view.context, k));
        imager_job_aim(job, k);
        TESS_TRY(predict_rows(job, from, planes_at_once, wanted, &predicted));
        imager_job_drop_planes(job, job->model.planes);
        double mark = tess_time_now();
        copy_rows(job, wanted, samples, &to->samples);
        subtract_rows(job, vis_scale / job->model.scale, wanted, &predicted.samples,
                      &to->samples);
        tess_profile_lap(job->profile, TESS_STAGE_GRID, &mark);
    }
cleanup:
    imager_job_aim(job, aim);
    residual_free(&predicted);
    tess_free(wanted);
    return status;
}

/* Makes the samples less the models of all targets. Collective. */
static tess_status subtract_targets(imager_job *job, const residual_source *from,
                                    double vis_scale, int planes_at_once,
                                    residual_samples *to)
{
    tess_status status = TESS_OK;
    const int aim = job->targets.aim;
    for (int k = 0; k < imager_job_num_targets(job); ++k) {
        residual_samples less = {0};
        imager_job_aim(job, k);
        TESS_TRY(subtract_target(job, from, k > 0 ? to : NULL, vis_scale,
                                 planes_at_once, &less));
        residual_free(to);
        *to = less;
    }
cleanup:
    imager_job_aim(job, aim);
    return status;
}

/* Makes the samples less the model of a predictor, from a copy of them. Collective. */
static tess_status subtract_predicted(imager_job *job, imager_predictor *predictor,
                                      const residual_source *from, double vis_scale,
                                      residual_samples *to)
{
    tess_status status = TESS_OK;
    const tess_samples *samples = from->samples;
    const int64_t bytes = samples->num_vis * samples->num_pol * value_bytes(samples);
    TESS_TRY(tess_comm_agree(job->comm, make_values(job, from, samples->num_pol, to)));
    if (bytes > 0) memcpy(to->samples.vis, samples->vis, (size_t)bytes);
    TESS_TRY(residual_of_set(predictor, vis_scale, &to->samples));
cleanup:
    return status;
}

tess_status residual_make(imager_job *job, imager_predictor *predictor,
                          const residual_source *from, double vis_scale,
                          int planes_at_once, residual_samples *to)
{
    tess_status status = TESS_OK;
    *to = (residual_samples){0};
    TESS_TRY(predictor ? subtract_predicted(job, predictor, from, vis_scale, to)
             : job->view.counts
                 ? subtract_by_rows(job, from, vis_scale, planes_at_once, to)
                 : subtract_targets(job, from, vis_scale, planes_at_once, to));
cleanup:
    if (status != TESS_OK) residual_free(to);
    return status;
}

void residual_free(residual_samples *residual)
{
    tess_brick_list_free(&residual->held);
    tess_free(residual->samples.vis);
    residual->samples = (tess_samples){0};
}
