/* Subtracts a model from samples that a backend holds, as a GPU does. The samples are
 * degridded, subtracted from and gridded in the backend's memory. */
#include <complex.h>

#include "imager_targets.h"
#include "predictor.h"
#include "residual.h"
#include "tess_degrid.h"

static double sums_bytes(const imager_job *job, const tess_brick_list *held,
                         int num_images)
{
    return (double)job->backend->degrid->sums_bytes(job->plan, held, 0,
                                                    held->num_bricks, num_images);
}

bool residual_has_room(const imager_job *job, const tess_samples *samples,
                       const tess_brick_list *held)
{
    const double room = (double)job->backend->degrid->sums_room(job->plan, held) -
                        (double)tess_planes_more_bytes(job->planes);
    const int most =
        job->model.num > job->num_images ? job->model.num : job->num_images;
    return room >= residual_bytes(job, samples) + sums_bytes(job, held, most);
}

/* Predicts the model's visibilities at the samples. Collective. */
static tess_status predict(imager_job *job, const tess_samples *samples,
                           double other_bytes, tess_brick_list *predicted)
{
    tess_samples shape = *samples;
    shape.num_pol = job->model.num;
    shape.vis = NULL; /* the visibilities stay with the backend */
    tess_steps_restart(job->model.steps);
    return imager_predict_owned(job, job->model.steps, other_bytes, &shape, predicted);
}

static tess_status subtract(const imager_job *job, double factor, int num_pol,
                            const tess_brick_list *held,
                            const tess_brick_list *predicted, tess_brick_list *residual)
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
    return job->backend->grid->subtract(&what, held, predicted, residual);
}

/* Makes `from`, which is held or derived from what is held, less the model of the
 * target at work. Collective. */
static tess_status subtract_target(imager_job *job, const tess_samples *samples,
                                   const tess_brick_list *held,
                                   const tess_brick_list *from, double vis_scale,
                                   double other_bytes, tess_brick_list *derived)
{
    tess_status status = TESS_OK;
    const tess_grid_ops *ops = job->backend->grid;
    const bool in_place = job->model.num == samples->num_pol;
    tess_brick_list predicted = {0}, other = {0};
    tess_brick_list *residual = in_place ? &predicted : &other;
    status = ops->derive(held, job->model.num, &predicted);
    if (status == TESS_OK && !in_place)
        status = ops->derive(held, samples->num_pol, &other);
    TESS_TRY(tess_comm_agree(imager_team(job), status));
    TESS_TRY(predict(job, samples, other_bytes, &predicted));
    double mark = tess_time_now();
    status = subtract(job, vis_scale / job->model.scale, samples->num_pol, from,
                      &predicted, residual);
    TESS_TRY(tess_comm_agree(imager_team(job), status));
    tess_profile_lap(job->profile, TESS_STAGE_GRID, &mark);
    *derived = *residual;
    *residual = (tess_brick_list){0};
cleanup:
    tess_brick_list_free(&predicted);
    tess_brick_list_free(&other);
    return status;
}

tess_status residual_make_held(imager_job *job, const tess_samples *samples,
                               const tess_brick_list *held, double vis_scale,
                               double other_bytes, tess_brick_list *derived)
{
    tess_status status = TESS_OK;
    const int aim = job->targets.aim;
    *derived = (tess_brick_list){0};
    for (int k = 0; k < imager_job_num_targets(job); ++k) {
        tess_brick_list less = {0};
        imager_job_aim(job, k);
        TESS_TRY(subtract_target(job, samples, held, k > 0 ? derived : held, vis_scale,
                                 other_bytes, &less));
        tess_brick_list_free(derived);
        *derived = less;
    }
cleanup:
    imager_job_aim(job, aim);
    if (status != TESS_OK) tess_brick_list_free(derived);
    return status;
}
