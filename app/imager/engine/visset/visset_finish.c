/* Makes images from sums over all planes: applies the grid correction and 1/ΣW, and
 * takes each rank's rows. */
#include <math.h>

#include "imager_job.h"
#include "imager_product.h"
#include "imager_stages.h"
#include "sample_sets.h"
#include "tess_mem.h"
#include "visset_private.h"

/* Counts the pixels of a row above the horizon that are not finite. */
static int64_t count_bad(const imager_job *job, const tess_rows *rows, int64_t row)
{
    const tess_geom *geom = &job->geom;
    const double m = tess_geom_m(geom, rows->row_first + row);
    int64_t bad = 0;
    for (int64_t i = 0; i < geom->nx; ++i) {
        if (isfinite(tess_rows_pixel(rows, row * rows->nx + i))) continue;
        const double l = tess_geom_l(geom, i);
        bad += l * l + m * m < 1;
    }
    return bad;
}

static void correct_row(const tess_rows *rows, int64_t row, const double *correction,
                        double factor)
{
    const int64_t first = row * rows->nx;
    if (rows->type == TESS_PIXEL_DOUBLE) {
        double *value = (double *)rows->value + first;
        for (int64_t i = 0; i < rows->nx; ++i)
            value[i] *= correction[i] * factor;
    } else {
        float *value = (float *)rows->value + first;
        for (int64_t i = 0; i < rows->nx; ++i)
            value[i] = (float)((double)value[i] * (correction[i] * factor));
    }
}

/* Correct the rows, and count the pixels that are not finite. */
static tess_status correct_rows(const imager_job *job, double factor,
                                const tess_rows *image, int64_t *num_bad)
{
    tess_status status = TESS_OK;
    int64_t bad = 0;
    bool complete = true;
    tess_rows view, *rows = &view;
    TESS_TRY(tess_rows_edit(image, true, &view));
#pragma omp parallel num_threads(job->layout->threads) reduction(+ : bad) \
        reduction(&& : complete)
    {
        double *correction = tess_alloc(rows->nx, sizeof *correction);
        complete = correction != NULL;
#pragma omp for schedule(dynamic, 16)
        for (int64_t k = 0; k < rows->num_rows; ++k) {
            if (!complete) continue;
            tess_grid_correction_row(job->plan, rows->row_first + k, correction);
            correct_row(rows, k, correction, factor);
            bad += count_bad(job, rows, k);
        }
        tess_free(correction);
    }
    TESS_TRY(tess_rows_put_back(image, &view));
    if (!complete) TESS_FAIL(TESS_ERR_ALLOC, "grid correction of an image's rows");
    *num_bad = bad;
cleanup:
    return status;
}

/* The sums of this rank's planes are corrected where they lie, if the backend does
 * that. Stages that are written out show sums before. Collective. */
static tess_status correct_sums(imager_job *job, int image, double factor,
                                const imager_stages *stages, bool *done,
                                int64_t *num_bad)
{
    int64_t first, count;
    *done = job->backend->grid->correct && !stages->folder;
    if (!*done) return TESS_OK;
    tess_planes_rows(job->planes, &first, &count);
    return tess_comm_agree(
        job->comm,
        job->backend->grid->correct(job->plan, factor, false, first, count,
                                    tess_planes_image(job->planes, image), num_bad));
}

/* Values that pass every check of one visibility may still overflow together.
 * Collective. */
static tess_status check_finite(const imager_job *job, int64_t num_bad,
                                double sum_weights)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_comm_allreduce_i64(job->comm, &num_bad, 1, TESS_SUM));
    if (num_bad > 0 || !isfinite(sum_weights))
        TESS_FAIL(
            TESS_ERR_INPUT,
            "%lld pixels of the image are not finite (sum of weights %.3g): some "
            "weights or visibilities are so large that their products overflow %s "
            "precision; flag them or mend the weights",
            (long long)num_bad, sum_weights,
            job->plan->is_double ? "double" : "single");
cleanup:
    return status;
}

/* Takes the rows of an image that the sum of all planes leaves to this rank.
 * Collective. */
static tess_status take_rows(imager_job *job, int image, tess_rows *rows)
{
    return tess_comm_agree(job->comm, tess_planes_reduce(job->planes, image, rows));
}

/* What the view of the target at work does to sources of an image. */
static void note_response(const visset *set, int image, imager_product *product)
{
    const imager_responses *all = &set->sums.responses;
    const double sum = set->sums.weight[set->sums.num_weight == 1 ? 0 : image];
    product->counted = product->response = 1;
    product->unsolved = 0;
    if (!all->sum || image >= set->job->num_pol) return;
    const imager_response *own = &all->sum[set->job->targets.aim];
    product->unsolved = all->unsolved[set->job->targets.aim];
    product->counted = sum > 0 ? own->counted[image] / sum : 0;
    product->response =
        own->counted[image] > 0 ? own->power[image] / own->counted[image] : 0;
}

tess_status visset_finish(visset *set, const visset_request *request,
                          const imager_stages *stages, imager_product *product)
{
    tess_status status = TESS_OK;
    imager_job *job = set->job;
    const sample_sets *data = set->data;
    const imager_sums *sums = &set->sums;
    const int num_images = job->num_pol + (request->psf ? sums->num_weight : 0);
    double mark = tess_time_now();
    TESS_TRY(tess_comm_agree(job->comm, tess_planes_finish(job->planes)));
    tess_profile_lap(job->profile, TESS_STAGE_FFT, &mark);
    for (int k = 0; k < num_images; ++k) {
        const bool is_psf = k >= job->num_pol;
        const int weight = is_psf ? k - job->num_pol : (sums->num_weight == 1 ? 0 : k);
        const bool has_unit = !is_psf && !request->of_sources;
        const double sum = sums->weight[weight];
        const double unit = has_unit ? data->vis_scale : 1;
        const double factor = sum > 0 ? 1 / sum / unit : 0;
        int64_t num_bad = 0;
        bool done;
        mark = tess_time_now();
        TESS_TRY(correct_sums(job, k, factor, stages, &done, &num_bad));
        tess_profile_lap(job->profile, TESS_STAGE_CORRECT, &mark);
        TESS_TRY(take_rows(job, k, &product[k].rows));
        tess_profile_lap(job->profile, TESS_STAGE_REDUCE, &mark);
        TESS_TRY(imager_stages_write(stages, "1-transformed", k, &job->geom,
                                     &product[k].rows));
        product[k].sum_weights = sum / data->weight_scale;
        product[k].effective_vis = sum > 0 ? sum / sums->largest[weight] : 0;
        note_response(set, k, &product[k]);
        if (!done) status = correct_rows(job, factor, &product[k].rows, &num_bad);
        if (status == TESS_OK && !(sum > 0)) status = tess_rows_blank(&product[k].rows);
        TESS_TRY(tess_comm_agree(job->comm, status));
        TESS_TRY(check_finite(job, num_bad, product[k].sum_weights));
        tess_profile_lap(job->profile, TESS_STAGE_CORRECT, &mark);
        TESS_TRY(imager_stages_write(stages, "2-corrected", k, &job->geom,
                                     &product[k].rows));
    }
cleanup:
    return status;
}
