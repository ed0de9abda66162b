/* Runs the computing core from arrays to arrays, without files and weights. */
#include "pipeline.h"

#include <complex.h>
#include <math.h>
#include <string.h>

#include "core_backend.h"
#include "imager_job.h"
#include "imager_model.h"
#include "imager_passes.h"
#include "imager_product.h"
#include "imager_resources.h"
#include "imager_stages.h"
#include "imager_targets.h"
#include "output_table.h"
#include "predictor.h"
#include "sample_sets.h"
#include "steps_residual.h"
#include "tess_backend_choice.h"
#include "tess_const.h"
#include "tess_grid.h"
#include "tess_mem.h"
#include "tess_real.h"
#include "visset.h"

pipeline pipeline_share(const pipeline *with, int64_t *first)
{
    const int size = tess_comm_size(with->comm), rank = tess_comm_rank(with->comm);
    pipeline share = *with;
    *first = with->num_rows * rank / size;
    share.num_rows = with->num_rows * (rank + 1) / size - *first;
    share.uvw_m += 3 * *first;
    return share;
}

/* Samples at the rows' positions; values stay undefined. */
static tess_status make_samples(const pipeline *with, const double *inv_lambda,
                                tess_samples *samples)
{
    tess_status status = TESS_OK;
    const int64_t num_vis = with->num_rows * with->num_chan;
    samples->is_double = with->gridding.accuracy < TESS_SINGLE_ACCURACY;
    samples->num_pol = with->view ? with->num_corr : with->num_pol;
    samples->num_weight = 1;
    samples->inv_lambda = inv_lambda;
    samples->origins = with->origins;
    TESS_TRY(tess_samples_reserve(samples, with->num_rows, num_vis));
    samples->num_rows = with->num_rows;
    samples->num_vis = num_vis;
    if (with->num_rows > 0)
        memcpy(samples->uvw_m, with->uvw_m,
               (size_t)with->num_rows * 3 * sizeof *with->uvw_m);
    for (int64_t row = 0; row < with->num_rows; ++row) {
        samples->chan_base[row] = 0;
        samples->num_chan[row] = (int32_t)with->num_chan;
        samples->vis_first[row] = row * with->num_chan;
        if (with->origins) samples->origin[row] = with->first_origin + (int32_t)row;
    }
    for (int64_t k = 0; k < num_vis; ++k)
        tess_real_set(samples->weight, samples->is_double, k, 1);
cleanup:
    return status;
}

static double *make_inv_lambda(const pipeline *with)
{
    double *inv_lambda = tess_alloc(with->num_chan, sizeof *inv_lambda);
    for (int64_t c = 0; inv_lambda && c < with->num_chan; ++c)
        inv_lambda[c] = with->freq_hz[c] / TESS_SPEED_OF_LIGHT_M_S;
    return inv_lambda;
}

/* A job for these samples, as far as the extent of the data. Collective. */
static tess_status start_job(const pipeline *with, const tess_samples *samples,
                             bool skip_ignored, int num_images, tess_profile *profile,
                             imager_job *job)
{
    tess_status status = TESS_OK;
    *job = (imager_job){.comm = with->comm,
                        .layout = &with->layout,
                        .gridding = &with->gridding,
                        .geom = with->geom,
                        .num_pol = with->num_pol,
                        .num_images = num_images,
                        .profile = profile,
                        .extent = imager_extent_empty()};
    if (with->view) job->view = *with->view;
    TESS_TRY(imager_backend(with->comm, test_backend(), &job->backend));
    TESS_TRY(imager_rank_bytes(with->comm, &with->layout, &job->memory.rank_bytes));
    for (int64_t row = 0; row < samples->num_rows; ++row)
        imager_extent_add_row(samples, with->freq_hz, skip_ignored, row, 0,
                              samples->num_chan[row], &job->extent);
    TESS_TRY(imager_extent_sum(with->comm, &job->extent, 1));
cleanup:
    return status;
}

static void note_facts(const pipeline *with, const imager_job *job)
{
    double largest, mean;
    if (!with->facts) return;
    const tess_grid_plan *plan = job->plan;
    *with->facts =
        (pipeline_facts){.is_double = plan->is_double,
                         .do_w = plan->opts.do_w,
                         .num_planes = plan->num_planes,
                         .num_blocks = plan->num_blocks,
                         .num_groups = job->ranks.num_groups,
                         .fft_ranks = job->ranks.fft_ranks,
                         .kernel = plan->kernel,
                         .nu = plan->nu,
                         .nv = plan->nv,
                         .w_step_lambda = plan->w_step_lambda,
                         .nm1_center = plan->target.nm1_center,
                         .batch_vis = (job->batch ? job->batch->vis_capacity : 0) /
                                      job->num_pol / (plan->is_double ? 16 : 8)};
    tess_partition_balance(job->partition, &largest, &mean, &with->facts->num_split);
}

/* The ranks' rows as one image on all of them. Collective. */
static tess_status gather_rows(const pipeline *with, const tess_rows *rows,
                               double *image)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(with->comm);
    const int64_t row_bytes = rows->nx * (int64_t)sizeof *image;
    void *all = NULL;
    tess_rows view = {0};
    int64_t *first = tess_alloc(size, sizeof *first);
    int64_t *bytes = tess_alloc(size, sizeof *bytes);
    status = first && bytes ? tess_rows_view_as(rows, TESS_PIXEL_DOUBLE, 1, &view)
                            : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(with->comm, status));
    TESS_TRY(tess_comm_allgather(with->comm, &rows->row_first, sizeof *first, first));
    TESS_TRY(tess_comm_allgatherv(with->comm, view.value, rows->num_rows * row_bytes,
                                  &all, bytes));
    const char *from = all;
    for (int k = 0; k < size; ++k) {
        memcpy(image + first[k] * rows->nx, from, (size_t)bytes[k]);
        from += bytes[k];
    }
cleanup:
    tess_rows_free(&view);
    tess_free(all);
    tess_free(first);
    tess_free(bytes);
    return status;
}

static void fill_values(const double *vis, const double *weight, tess_samples *samples)
{
    const int64_t pols = samples->num_pol;
    for (int64_t k = 0; k < 2 * pols * samples->num_vis; ++k)
        tess_real_set(samples->vis, samples->is_double, k, vis[k]);
    for (int64_t k = 0; weight && k < samples->num_vis; ++k)
        tess_real_set(samples->weight, samples->is_double, k, weight[k]);
}

/* One set of samples in memory, still empty. */
static sample_sets kept_samples(const pipeline *with, tess_profile *profile)
{
    return (sample_sets){.in_memory = true,
                         .vis_scale = 1,
                         .weight_scale = 1,
                         .num_sets = 1,
                         .scratch = with->scratch,
                         .threads = with->layout.threads,
                         .profile = profile};
}

tess_status pipeline_image(const pipeline *with, const double *vis,
                           const double *weight, double *dirty, double *psf,
                           double *sum_weights)
{
    tess_status status = TESS_OK;
    const imager_stages no_stages = {.comm = with->comm};
    const int num_images = with->num_pol + (psf ? 1 : 0);
    const int64_t pixels = with->geom.nx * with->geom.ny;
    tess_profile profile = {0};
    imager_job job = {0};
    imager_product product[TESS_MAX_POL + 1] = {0};
    visset set = {0};
    const visset_request request = {.psf = psf != NULL};
    sample_sets data = kept_samples(with, &profile);
    double *inv_lambda = make_inv_lambda(with);
    status = inv_lambda ? make_samples(with, inv_lambda, &data.cached) : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(with->comm, status));
    fill_values(vis, weight, &data.cached);
    TESS_TRY(start_job(with, &data.cached, true, num_images, &profile, &job));
    TESS_TRY(imager_job_plan(&job));
    TESS_TRY(visset_create(&job, &data, true, &no_stages, &set));
    TESS_TRY(visset_image(&set, &request, &no_stages, product));
    note_facts(with, &job);
    for (int k = 0; k < num_images; ++k)
        TESS_TRY(gather_rows(with, &product[k].rows,
                             k < with->num_pol ? dirty + k * pixels : psf));
    if (sum_weights) *sum_weights = product[0].sum_weights;
cleanup:
    for (int k = 0; k < num_images; ++k)
        tess_rows_free(&product[k].rows);
    visset_free(&set);
    tess_samples_free(&data.cached);
    imager_job_free(&job);
    tess_free(inv_lambda);
    return status;
}

/* This rank's rows of a model, as images lie. */
static tess_status take_model(const pipeline *with, const imager_job *job,
                              const double *image, tess_rows *rows)
{
    tess_status status = TESS_OK;
    const int64_t nx = job->geom.nx;
    int64_t first, count;
    tess_planes_final_rows(job->geom.ny, job->ranks.fft_ranks,
                           tess_comm_rank(with->comm), tess_comm_size(with->comm),
                           &first, &count);
    *rows = tess_rows_of(nx, job->geom.ny, first, count, TESS_PIXEL_DOUBLE);
    TESS_TRY(tess_rows_alloc(rows));
    memcpy(rows->value, image + first * nx, (size_t)(count * nx) * sizeof *image);
cleanup:
    return status;
}

static int model_images(const pipeline *with)
{
    return with->num_model > 0 ? with->num_model : with->num_pol;
}

/* How model images make up the values of samples, of which each has num_pol. */
static void set_mix(const pipeline *with, int num_pol, imager_job_model *model)
{
    for (int p = 0; p < num_pol; ++p)
        for (int k = 0; k < model->num; ++k) {
            const int at = 2 * (p * model->num + k);
            model->mix[p][k] =
                with->mix ? CMPLX(with->mix[at], with->mix[at + 1]) : p == k;
        }
}

/* The image of the set less a model. Collective. */
static tess_status residual_of(const pipeline *with, visset *set, const double *model,
                               double *residual, double *psf)
{
    tess_status status = TESS_OK;
    const imager_stages no_stages = {.comm = with->comm};
    const visset_request request = {.psf = psf != NULL, .less_model = true};
    const int64_t pixels = with->geom.nx * with->geom.ny;
    tess_rows rows[TESS_MAX_POL] = {0};
    imager_product product[TESS_MAX_POL + 1] = {0};
    for (int k = 0; k < model_images(with) && status == TESS_OK; ++k)
        status = take_model(with, set->job, model + k * pixels, &rows[k]);
    TESS_TRY(tess_comm_agree(with->comm, status));
    TESS_TRY(imager_model_set(set->job, rows));
    TESS_TRY(visset_image(set, &request, &no_stages, product));
    for (int k = 0; k < with->num_pol + (psf ? 1 : 0); ++k)
        TESS_TRY(gather_rows(with, &product[k].rows,
                             k < with->num_pol ? residual + k * pixels : psf));
cleanup:
    for (int k = 0; k <= TESS_MAX_POL; ++k)
        tess_rows_free(&product[k].rows);
    for (int k = 0; k < TESS_MAX_POL; ++k)
        tess_rows_free(&rows[k]);
    return status;
}

tess_status pipeline_residuals(const pipeline *with, const double *vis,
                               const double *weight, int num_models,
                               const double *model, double *residual, double *psf)
{
    tess_status status = TESS_OK;
    const imager_stages no_stages = {.comm = with->comm};
    const int64_t image = with->geom.nx * with->geom.ny;
    tess_profile profile = {0};
    imager_job job = {0};
    visset set = {0};
    sample_sets data = kept_samples(with, &profile);
    double *inv_lambda = make_inv_lambda(with);
    status = inv_lambda ? make_samples(with, inv_lambda, &data.cached) : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(with->comm, status));
    data.num_vis = data.cached.num_vis;
    fill_values(vis, weight, &data.cached);
    TESS_TRY(start_job(with, &data.cached, true, with->num_pol + (psf ? 1 : 0),
                       &profile, &job));
    job.worst_pixel = job.model.is_shared = true;
    job.model.num = model_images(with);
    set_mix(with, with->num_pol, &job.model);
    TESS_TRY(imager_job_plan(&job));
    TESS_TRY(visset_create(&job, &data, false, &no_stages, &set));
    for (int k = 0; k < num_models; ++k)
        TESS_TRY(residual_of(with, &set, model + k * job.model.num * image,
                             residual + k * with->num_pol * image,
                             k == 0 ? psf : NULL));
    note_facts(with, &job);
    if (with->facts) with->facts->spooled_passes = set.passes.num_reads;
cleanup:
    visset_free(&set);
    tess_samples_free(&data.cached);
    imager_job_free(&job);
    tess_free(inv_lambda);
    return status;
}

/* Sets the model of the target at work. Collective. */
static tess_status set_model(const pipeline *with, imager_job *job, const double *model)
{
    tess_status status = TESS_OK;
    const int64_t pixels = job->geom.nx * job->geom.ny;
    tess_rows rows[TESS_MAX_POL] = {0};
    for (int k = 0; k < with->num_pol && status == TESS_OK; ++k)
        status = take_model(with, job, model + k * pixels, &rows[k]);
    TESS_TRY(tess_comm_agree(with->comm, status));
    TESS_TRY(imager_model_set(job, rows));
cleanup:
    for (int k = 0; k < TESS_MAX_POL; ++k)
        tess_rows_free(&rows[k]);
    return status;
}

/* The images of a source in the middle of one target after the other. Collective. */
static tess_status image_sources(const pipeline *with, visset *set,
                                 imager_product *product, pipeline_target *target)
{
    tess_status status = TESS_OK;
    const imager_stages no_stages = {.comm = with->comm};
    for (int t = 0; t < imager_job_num_targets(set->job); ++t) {
        const visset_request request = {
            .of_sources = true, .first_target = t, .num_targets = 1};
        imager_product *of = product + t * TESS_MAX_IMAGES;
        const int64_t pixels = target[t].geom.nx * target[t].geom.ny;
        if (!target[t].source) continue;
        for (int k = 0; k < TESS_MAX_IMAGES; ++k)
            tess_rows_free(&of[k].rows);
        TESS_TRY(visset_image(set, &request, &no_stages, product));
        for (int k = 0; k < with->num_pol; ++k)
            TESS_TRY(gather_rows(with, &of[k].rows, target[t].source + k * pixels));
    }
cleanup:
    return status;
}

/* The images of all targets of a set. Collective. */
static tess_status image_targets(const pipeline *with, visset *set,
                                 pipeline_target *target)
{
    tess_status status = TESS_OK;
    imager_job *job = set->job;
    const imager_stages no_stages = {.comm = with->comm};
    const visset_request request = {.psf = true, .less_model = target->model != NULL};
    const int num = imager_job_num_targets(job);
    imager_product *product = tess_alloc_zero(num * TESS_MAX_IMAGES, sizeof *product);
    TESS_TRY(tess_comm_agree(with->comm, product ? TESS_OK : TESS_ERR_ALLOC));
    for (int t = 0; t < num && target->model; ++t) {
        imager_job_aim(job, t);
        TESS_TRY(set_model(with, job, target[t].model));
    }
    imager_job_aim(job, 0);
    TESS_TRY(visset_image(set, &request, &no_stages, product));
    for (int t = 0; t < num; ++t) {
        const imager_product *of = product + t * TESS_MAX_IMAGES;
        const int64_t pixels = target[t].geom.nx * target[t].geom.ny;
        for (int k = 0; k < with->num_pol; ++k)
            TESS_TRY(gather_rows(with, &of[k].rows, target[t].image + k * pixels));
        TESS_TRY(gather_rows(with, &of[with->num_pol].rows, target[t].psf));
        for (int k = 0; k < with->num_pol; ++k) {
            target[t].counted[k] = of[k].counted;
            target[t].response[k] = of[k].response;
        }
    }
    TESS_TRY(image_sources(with, set, product, target));
cleanup:
    for (int k = 0; product && k < num * TESS_MAX_IMAGES; ++k)
        tess_rows_free(&product[k].rows);
    tess_free(product);
    return status;
}

tess_status pipeline_targets(const pipeline *with, const double *vis,
                             const double *weight, pipeline_target *target,
                             int num_targets, int only, int times)
{
    tess_status status = TESS_OK;
    const imager_stages no_stages = {.comm = with->comm};
    tess_profile profile = {0};
    imager_job job = {0};
    visset set = {0};
    imager_targets hidden = {0};
    sample_sets data = kept_samples(with, &profile);
    double *inv_lambda = make_inv_lambda(with);
    tess_geom geom[8];
    status = inv_lambda ? make_samples(with, inv_lambda, &data.cached) : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(with->comm, status));
    data.num_vis = data.cached.num_vis;
    fill_values(vis, weight, &data.cached);
    TESS_TRY(start_job(with, &data.cached, true, with->num_pol + 1, &profile, &job));
    for (int t = 0; t < num_targets; ++t)
        geom[t] = target[t].geom;
    TESS_TRY(imager_job_set_targets(&job, geom, num_targets));
    job.worst_pixel = job.model.is_shared = target->model != NULL;
    job.model.num = target->model ? with->num_pol : 0;
    set_mix(with, data.cached.num_pol, &job.model);
    TESS_TRY(imager_job_plan(&job));
    if (only >= 0) {
        imager_job_aim(&job, only);
        hidden = job.targets;
        job.targets = (imager_targets){0};
    }
    TESS_TRY(visset_create(&job, &data, times == 1, &no_stages, &set));
    for (int k = 0; k < times; ++k)
        TESS_TRY(image_targets(with, &set, target + (only >= 0 ? only : 0)));
    note_facts(with, &job);
    if (with->facts) with->facts->spooled_passes = set.passes.num_reads;
cleanup:
    visset_free(&set);
    if (hidden.target) job.targets = hidden;
    tess_samples_free(&data.cached);
    imager_job_free(&job);
    tess_free(inv_lambda);
    return status;
}

/* This rank's rows of the model times the grid correction, unless the backend does
 * that. */
static tess_status load_model(const imager_job *job, const double *image)
{
    tess_status status = TESS_OK;
    const int64_t nx = job->geom.nx;
    int64_t first, count;
    double *correction = tess_alloc(nx, sizeof *correction);
    if (!correction) TESS_FAIL(TESS_ERR_ALLOC, "model rows");
    tess_planes_rows(job->planes, &first, &count);
    for (int pol = 0; pol < job->num_pol; ++pol)
        for (int64_t row = 0; row < count; ++row) {
            const double *from = image + (pol * job->geom.ny + first + row) * nx;
            tess_grid_correction_row(job->plan, first + row, correction);
            for (int64_t i = 0; i < nx; ++i) {
                const double value =
                    from[i] * (job->backend->grid->correct ? 1 : correction[i]);
                tess_real_set(tess_planes_image(job->planes, pol), job->plan->is_double,
                              row * nx + i, isfinite(value) ? value : 0.0);
            }
        }
cleanup:
    tess_free(correction);
    return status;
}

tess_status pipeline_predict(const pipeline *with, const double *image, double *vis)
{
    tess_status status = TESS_OK;
    tess_profile profile = {0};
    imager_job job = {0};
    tess_samples samples = {0};
    tess_brick_list runs = {0};
    double *inv_lambda = make_inv_lambda(with);
    status = inv_lambda ? make_samples(with, inv_lambda, &samples) : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(with->comm, status));
    TESS_TRY(start_job(with, &samples, false, with->num_pol, &profile, &job));
    job.worst_pixel = !with->adjoint;
    TESS_TRY(imager_job_plan(&job));
    status = imager_sort(&job, &samples, false, tess_comm_size(with->comm) == 1, &runs);
    TESS_TRY(tess_comm_agree(with->comm, status));
    TESS_TRY(imager_job_partition(&job, &runs, false));
    note_facts(with, &job);
    status = load_model(&job, image);
    if (status == TESS_OK)
        status = imager_model_place(&job, job.planes, job.num_images);
    TESS_TRY(tess_comm_agree(with->comm, status));
    TESS_TRY(imager_job_predict(&job, &samples, false, &runs));
    for (int64_t k = 0; k < 2 * samples.num_pol * samples.num_vis; ++k)
        vis[k] = tess_real_at(samples.vis, samples.is_double, k);
cleanup:
    tess_brick_list_free(&runs);
    tess_samples_free(&samples);
    imager_job_free(&job);
    tess_free(inv_lambda);
    return status;
}
