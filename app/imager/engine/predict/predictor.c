/* Predicts visibilities from model images. */
#include "predictor.h"

#include <math.h>
#include <string.h>

#include "device_share.h"
#include "exchange.h"
#include "imager_passes.h"
#include "imager_resources.h"
#include "imager_targets.h"
#include "imager_window.h"
#include "rows_exchange.h"
#include "tess_backend_choice.h"
#include "tess_mem.h"
#include "tess_real.h"
#include "tess_samples.h"

/* With --reproducible all planes are summed at once, so that sums are rounded in one
 * order. */
tess_status imager_predict_window(imager_job *job, double other_bytes,
                                  const tess_brick_list *bricks, int *planes_at_once)
{
    if (!job->layout->reproducible)
        return imager_plane_window(job, other_bytes, bricks, planes_at_once);
    /* a device always holds the sums of all planes */
    *planes_at_once = job->plan->num_planes > 1 && !job->backend->start
                          ? job->layout->forced.plane_window
                          : 0;
    return TESS_OK;
}

tess_status imager_predict_owned(tess_steps *steps, int planes_at_once,
                                 tess_samples *owned, const tess_brick_list *bricks)
{
    return planes_at_once > 0
               ? tess_steps_predict_by_planes(steps, planes_at_once, owned, bricks)
               : tess_steps_predict(steps, owned, bricks);
}

/* Puts the correlations of the target at work, which are times `factor`, beside those
 * of the other targets. Local. */
static void put_apart(const imager_job *job, const tess_samples *correlations,
                      double factor, tess_samples *owned)
{
    const int64_t values = 2 * (int64_t)correlations->num_pol;
    const int64_t all = 2 * (int64_t)owned->num_pol;
    const int64_t first = job->targets.aim * values;
#pragma omp parallel for num_threads(job->layout->threads) schedule(static)
    for (int64_t sample = 0; sample < owned->num_vis; ++sample)
        for (int64_t k = 0; k < values; ++k)
            tess_real_set(owned->vis, owned->is_double, sample * all + first + k,
                          factor * tess_real_at(correlations->vis, owned->is_double,
                                                sample * values + k));
}

/* Makes the correlations of the target at work apart from others. Local. */
static tess_status make_apart(const imager_job *job, const tess_samples *images,
                              tess_samples *owned)
{
    tess_status status = TESS_OK;
    tess_samples correlations = *owned; /* positions are borrowed */
    correlations.num_pol = owned->num_pol / imager_job_num_targets(job);
    correlations.vis = tess_alloc(correlations.num_vis * correlations.num_pol,
                                  owned->is_double ? 16 : 8);
    if (!correlations.vis) TESS_FAIL(TESS_ERR_ALLOC, "correlations of a facet");
    TESS_TRY(
        imager_view_apply(job, job->view.from_model, images, NULL, 1, &correlations));
    put_apart(job, &correlations, 1 / job->model.scale, owned);
cleanup:
    tess_free(correlations.vis);
    return status;
}

/* Predicts the images of the target at work, and adds the correlations that the view
 * makes of them. Collective. */
static tess_status add_target(imager_job *job, int planes, bool skip_ignored,
                              const tess_brick_list *bricks, tess_samples *images,
                              tess_samples *owned)
{
    tess_status status = TESS_OK;
    tess_brick_list loaded = {0};
    const bool loads = job->backend->grid->load != NULL;
    if (loads)
        status = job->backend->grid->load(job->plan, images, skip_ignored, &loaded);
    TESS_TRY(tess_comm_agree(imager_team(job), status));
    tess_steps_restart(job->steps);
    TESS_TRY(
        imager_predict_owned(job->steps, planes, images, loads ? &loaded : bricks));
    status = job->view.is_apart
                 ? make_apart(job, images, owned)
                 : imager_view_apply(job, job->view.from_model, images, owned,
                                     -1 / job->model.scale, owned);
    TESS_TRY(tess_comm_agree(imager_team(job), status));
cleanup:
    tess_brick_list_free(&loaded);
    return status;
}

/* Predicts the correlations of all targets. Collective. */
static tess_status predict_targets(imager_job *job, int planes, bool skip_ignored,
                                   const tess_brick_list *bricks, tess_samples *owned)
{
    tess_status status = TESS_OK;
    const size_t value_bytes = owned->is_double ? 16 : 8;
    tess_samples images = *owned; /* positions are borrowed */
    int first, end;
    images.num_pol = job->num_pol;
    images.vis = tess_alloc(images.num_vis * images.num_pol, value_bytes);
    TESS_TRY(tess_comm_agree(imager_team(job), images.vis ? TESS_OK : TESS_ERR_ALLOC));
    if (owned->num_vis > 0)
        memset(owned->vis, 0, (size_t)(owned->num_vis * owned->num_pol) * value_bytes);
    imager_job_predicted(job, &first, &end);
    for (int k = first; k < end; ++k) {
        imager_job_aim(job, k);
        TESS_TRY(add_target(job, planes, skip_ignored, bricks, &images, owned));
    }
cleanup:
    imager_job_aim(job, 0);
    tess_free(images.vis);
    return status;
}

/* Predicts the samples that this rank owns. The samples that it has read, `other`, take
 * up memory meanwhile. Collective. */
static tess_status predict_beside(imager_job *job, const tess_samples *other,
                                  bool skip_ignored, tess_samples *owned,
                                  const tess_brick_list *bricks)
{
    tess_status status = TESS_OK;
    int planes;
    const double bytes = imager_base_bytes(job) + imager_planes_bytes(job) +
                         imager_samples_bytes(owned) +
                         (other != owned ? imager_samples_bytes(other) : 0) +
                         (double)bricks->num_runs * (double)sizeof(tess_run);
    TESS_TRY(imager_predict_window(job, bytes, bricks, &planes));
    if (job->view.from_model)
        TESS_TRY(predict_targets(job, planes, skip_ignored, bricks, owned));
    else
        TESS_TRY(imager_predict_owned(job->steps, planes, owned, bricks));
cleanup:
    return status;
}

tess_status imager_job_predict(imager_job *job, tess_samples *samples,
                               bool skip_ignored, const tess_brick_list *runs)
{
    tess_status status = TESS_OK;
    tess_exchange *exchange = NULL;
    tess_samples *owned = samples;
    tess_brick_list *bricks;
    double mark = tess_time_now();
    if (tess_comm_size(imager_samples_team(job)) == 1) {
        status = predict_beside(job, samples, skip_ignored, samples, runs);
        return tess_comm_agree(job->comm, status);
    }
    status = tess_exchange_create(job->comm, job->plan, job->partition, false, samples,
                                  job->layout->forced.round_bytes, &exchange);
    TESS_TRY(tess_comm_agree(job->comm, status));
    TESS_TRY(tess_exchange_send(exchange, samples, skip_ignored, NULL, NULL));
    tess_profile_lap(job->profile, TESS_STAGE_EXCHANGE, &mark);
    status =
        tess_exchange_complete(exchange, imager_sort_threads(job), &owned, &bricks);
    TESS_TRY(tess_comm_agree(job->comm, status));
    tess_profile_lap(job->profile, TESS_STAGE_SORT, &mark);
    TESS_TRY(predict_beside(job, samples, skip_ignored, owned, bricks));
    mark = tess_time_now();
    TESS_TRY(tess_exchange_return(exchange, samples));
    tess_profile_lap(job->profile, TESS_STAGE_EXCHANGE, &mark);
cleanup:
    tess_exchange_destroy(exchange);
    return status;
}

tess_status imager_predictor_create(tess_comm *comm, const imager_model *model,
                                    const tess_gridding *gridding,
                                    const tess_layout *layout, tess_profile *profile,
                                    imager_predictor *predictor)
{
    tess_status status = TESS_OK;
    predictor->model = *model;
    predictor->loaded = predictor->weighed = -1;
    predictor->job = (imager_job){.comm = comm,
                                  .layout = layout,
                                  .gridding = gridding,
                                  .geom = model->geom,
                                  .worst_pixel = true,
                                  .num_pol = model->num_stokes,
                                  .num_images = model->num_stokes,
                                  .profile = profile,
                                  .extent = imager_extent_empty()};
    imager_model_warn(model, comm);
    TESS_TRY(imager_backend(comm, gridding->backend, &predictor->job.backend));
    TESS_TRY(imager_rank_bytes(comm, layout, &predictor->job.memory.rank_bytes));
cleanup:
    return status;
}

void imager_predictor_free(imager_predictor *predictor)
{
    imager_job_free(&predictor->job);
    tess_comm_free(predictor->job.alone);
    predictor->job.alone = NULL;
    imager_model_close(&predictor->model);
}

/* Channels of a row, and the smallest and largest 1/λ [1/m] of them. */
typedef struct channel_range {
    int32_t chan_base, num_chan;
    double min_inv_lambda, max_inv_lambda;
} channel_range;

/* `range` is the range of the previous row, since most rows have the same channels. */
static void range_of_row(const tess_samples *samples, int64_t row, channel_range *range)
{
    const int32_t chan_base = samples->chan_base[row],
                  num_chan = samples->num_chan[row];
    if (range->chan_base == chan_base && range->num_chan == num_chan) return;
    *range = (channel_range){chan_base, num_chan, INFINITY, -INFINITY};
    for (int32_t c = 0; c < num_chan; ++c) {
        const double inv_lambda = samples->inv_lambda[chan_base + c];
        range->min_inv_lambda = fmin(range->min_inv_lambda, inv_lambda);
        range->max_inv_lambda = fmax(range->max_inv_lambda, inv_lambda);
    }
}

/* The extent in w of all samples, also of flagged ones, because every row is predicted.
 */
static imager_extent extent_in_w(const tess_samples *samples)
{
    imager_extent extent = imager_extent_empty();
    if (samples->resident) {
        extent.num_vis = samples->num_vis;
        extent.w_min_lambda = samples->resident->w_min_lambda;
        extent.w_max_lambda = samples->resident->w_max_lambda;
        return extent;
    }
    channel_range range = {.num_chan = -1};
    for (int64_t row = 0; row < samples->num_rows; ++row) {
        const double w_m = fabs(samples->uvw_m[3 * row + 2]);
        range_of_row(samples, row, &range);
        if (range.num_chan == 0) continue;
        extent.w_min_lambda = fmin(extent.w_min_lambda, w_m * range.min_inv_lambda);
        extent.w_max_lambda = fmax(extent.w_max_lambda, w_m * range.max_inv_lambda);
        extent.num_vis += range.num_chan;
    }
    return extent;
}

static double span_of(const imager_extent *extent)
{
    return extent->w_max_lambda - extent->w_min_lambda;
}

/* Makes a plan that covers these samples and all earlier ones, unless the present plan
 * already does. */
static tess_status plan_for(imager_predictor *predictor, const imager_extent *extent)
{
    tess_status status = TESS_OK;
    imager_job *job = &predictor->job;
    imager_extent *planned = &job->extent;
    if (predictor->whole && job->plan) return TESS_OK;
    /* With --reproducible a plan must not depend on which samples came before. */
    const bool anew =
        (predictor->rows || predictor->model.cube) && job->layout->reproducible;
    if (anew && job->plan && extent->num_vis == planned->num_vis &&
        extent->w_min_lambda == planned->w_min_lambda &&
        extent->w_max_lambda == planned->w_max_lambda)
        return TESS_OK;
    if (!anew && job->plan && extent->w_min_lambda >= planned->w_min_lambda &&
        extent->w_max_lambda <= planned->w_max_lambda &&
        span_of(extent) >= planned->w_span_lambda)
        return TESS_OK;
    imager_job_free(job);
    job->ranks.fft_ranks = 0; /* imager_job_share() chooses it anew */
    if (anew) *planned = imager_extent_empty();
    imager_extent_join(planned, extent);
    planned->num_vis = extent->num_vis;
    if (planned->w_span_lambda < 0 || span_of(extent) < planned->w_span_lambda)
        planned->w_span_lambda = span_of(extent);
    if (predictor->model.parts.num > 0)
        TESS_TRY(tess_comm_agree(
            job->comm, imager_job_set_targets(job, predictor->model.parts.geom,
                                              predictor->model.parts.num)));
    TESS_TRY(imager_job_plan(job));
    TESS_TRY(device_share_choose(job));
cleanup:
    return status;
}

/* The plan must accept the smallest span of w that a part can have: the span of |w| [m]
 * at the lowest frequency. */
tess_status imager_predictor_expect(imager_predictor *predictor,
                                    const tess_samples *samples)
{
    tess_status status = TESS_OK;
    imager_job *job = &predictor->job;
    if (predictor->whole || job->plan || job->layout->reproducible) return TESS_OK;
    imager_extent extent = extent_in_w(samples);
    /* largest −|w| [m], |w| [m] and −1/λ [1/m] over all ranks */
    double most[3] = {-INFINITY, -INFINITY, -INFINITY};
    channel_range range = {.num_chan = -1};
    for (int64_t row = 0; row < samples->num_rows; ++row) {
        const double w_m = fabs(samples->uvw_m[3 * row + 2]);
        range_of_row(samples, row, &range);
        most[0] = fmax(most[0], -w_m);
        most[1] = fmax(most[1], w_m);
        most[2] = fmax(most[2], -range.min_inv_lambda);
    }
    TESS_TRY(tess_comm_allreduce_f64(job->comm, most, 3, TESS_MAX));
    TESS_TRY(imager_extent_sum(job->comm, &extent, 1));
    if (extent.num_vis == 0) return TESS_OK;
    imager_extent_join(&job->extent, &extent);
    job->extent.w_span_lambda = (most[1] + most[0]) * -most[2];
cleanup:
    return status;
}

/* Allocates the images of the model planes again if a device has taken those of the
 * part before. Collective. */
static tess_status make_room(imager_job *job)
{
    tess_status status = TESS_OK;
    for (int k = imager_job_num_targets(job) - 1; k >= 0; --k) {
        imager_job_aim(job, k);
        if (status == TESS_OK && !tess_planes_image(job->planes, 0))
            status = tess_planes_clear(job->planes);
    }
    return tess_comm_agree(job->comm, status);
}

/* Puts the part of the model that the target at work predicts onto its planes: rows of
 * the model go to the ranks that have these rows of the target. Collective. */
static tess_status put_part(imager_predictor *predictor)
{
    tess_status status = TESS_OK;
    imager_job *job = &predictor->job;
    const imager_model *model = &predictor->model;
    const int64_t *begin = model->parts.first[job->targets.aim];
    tess_rows own[4] = {0};
    for (int p = 0; p < model->num_stokes; ++p) {
        own[p] = imager_model_rows(job);
        TESS_TRY(tess_comm_agree(job->comm, tess_rows_alloc_zero(&own[p])));
        tess_rows part = own[p];
        part.nx = model->geom.nx;
        part.ny = model->geom.ny;
        part.row_first += begin[1];
        part.col_first = begin[0];
        TESS_TRY(imager_rows_exchange(job->comm, &predictor->rows[p], &part));
        status = imager_model_weigh(job, model, &own[p]);
        TESS_TRY(tess_comm_agree(job->comm, status));
    }
    TESS_TRY(
        imager_model_put(job, own, model->num_stokes, job->planes, &job->model.scale));
cleanup:
    for (int p = 0; p < 4; ++p)
        tess_rows_free(&own[p]);
    return status;
}

/* Puts the rows of the model onto the planes of all targets. Collective. */
static tess_status put_rows(imager_predictor *predictor)
{
    tess_status status = TESS_OK;
    imager_job *job = &predictor->job;
    imager_model *model = &predictor->model;
    int first, end;
    if (model->parts.num == 0)
        return imager_model_put(job, predictor->rows, model->num_stokes, job->planes,
                                &model->scale);
    imager_job_predicted(job, &first, &end);
    for (int k = first; k < end; ++k) {
        imager_job_aim(job, k);
        TESS_TRY(put_part(predictor));
    }
    /* targets have scales of their own, which a view undoes */
    model->scale = job->view.from_model ? 1 : job->model.scale;
cleanup:
    imager_job_aim(job, 0);
    return status;
}

/* Loads the image of the current part onto the model planes, unless it is there.
 * Collective. */
static tess_status load_part(imager_predictor *predictor, bool fresh)
{
    tess_status status = TESS_OK;
    imager_model *model = &predictor->model;
    if (fresh && model->cube) { /* a new image, whose pixels are still to be checked */
        model->is_checked = false;
        model->scale = 1;
    }
    if (fresh) TESS_TRY(make_room(&predictor->job));
    if (fresh)
        TESS_TRY(model->parts.num > 0 ? imager_model_load_parts(&predictor->job, model)
                                      : imager_model_load(&predictor->job, model,
                                                          predictor->job.planes));
    if (fresh) predictor->loaded_scale = model->scale;
    model->scale = predictor->loaded_scale;
    predictor->loaded = model->part;
cleanup:
    return status;
}

tess_status imager_predictor_run_part(imager_predictor *predictor,
                                      tess_samples *samples)
{
    tess_status status = TESS_OK;
    imager_job *job = &predictor->job;
    tess_brick_list runs = {0};
    const bool skip_ignored = predictor->whole != NULL;
    double mark;
    imager_extent extent = extent_in_w(samples);
    TESS_TRY(imager_extent_sum(job->comm, &extent, 1));
    if (extent.num_vis == 0) return TESS_OK;
    TESS_TRY(plan_for(predictor, predictor->whole ? predictor->whole : &extent));
    const bool fresh = !job->planes || predictor->loaded != predictor->model.part;
    mark = tess_time_now();
    status = imager_sort(job, samples, skip_ignored,
                         tess_comm_size(imager_samples_team(job)) == 1, &runs);
    TESS_TRY(tess_comm_agree(job->comm, status));
    tess_profile_lap(job->profile, TESS_STAGE_SORT, &mark);
    status = imager_job_partition(job, &runs, false);
    TESS_TRY(tess_comm_agree(job->comm, status));
    imager_job_log(job);
    mark = tess_time_now();
    if (predictor->rows)
        TESS_TRY(put_rows(predictor));
    else
        TESS_TRY(load_part(predictor, fresh));
    tess_profile_lap(job->profile, TESS_STAGE_CORRECT, &mark);
    status = imager_job_measure(job, samples, skip_ignored);
    TESS_TRY(tess_comm_agree(job->comm, status));
    TESS_TRY(imager_job_tell_error(job));
    TESS_TRY(imager_job_predict(job, samples, skip_ignored, &runs));
cleanup:
    tess_brick_list_free(&runs);
    return status;
}
