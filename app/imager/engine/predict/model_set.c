/* Puts a model that the ranks hold by rows, as finished images lie, onto the model
 * planes. */
#include <complex.h>
#include <math.h>

#include "imager_job.h"
#include "imager_model.h"
#include "imager_product.h"
#include "tess_mem.h"
#include "tess_real.h"
#include "tess_scale.h"

/* Makes all of this rank's rows those of the planes, in the plan's precision. Local. */
static tess_status prepare_rows(const imager_job *job, const tess_rows *rows,
                                double scale, tess_rows *out)
{
    tess_status status = TESS_OK;
    const int64_t nx = rows->nx;
    bool complete = true;
    tess_rows view = {0};
    *out = tess_rows_like(rows, tess_pixel_of(job->plan->is_double));
    TESS_TRY(tess_rows_alloc(out));
    TESS_TRY(tess_rows_view(rows, &view));
#pragma omp parallel num_threads(job->layout->threads) reduction(&& : complete)
    {
        double *pixel = tess_alloc(2 * nx, sizeof *pixel);
        complete = pixel != NULL;
#pragma omp for schedule(dynamic, 16)
        for (int64_t k = 0; k < rows->num_rows; ++k) {
            if (!pixel) continue;
            tess_rows_doubles(&view, k * nx, nx, pixel);
            imager_model_put_row(job, scale, rows->row_first + k, pixel, pixel + nx,
                                 tess_rows_at(out, k * nx));
        }
        tess_free(pixel);
    }
    if (!complete) TESS_FAIL(TESS_ERR_ALLOC, "rows of a model");
cleanup:
    tess_rows_free(&view);
    return status;
}

/* Puts one image of a model onto the planes. Rows that live where the planes are go
 * there as they are; the backend corrects them. Collective. */
static tess_status put_model(const imager_job *job, const tess_rows *rows, double scale,
                             int image, tess_planes *planes)
{
    tess_status status = TESS_OK;
    tess_rows prepared = {0};
    if (rows->place && job->backend->grid->correct)
        return tess_planes_scatter(planes, image, rows, scale);
    status = prepare_rows(job, rows, scale, &prepared);
    TESS_TRY(tess_comm_agree(job->comm, status));
    TESS_TRY(tess_planes_scatter(planes, image, &prepared, 1));
cleanup:
    tess_rows_free(&prepared);
    return status;
}

tess_rows imager_model_rows(const imager_job *job)
{
    int64_t first, count;
    tess_comm *comm = job->alone ? job->comm : imager_team(job);
    const bool whole = job->alone && !job->ranks.shares_planes;
    tess_planes_final_rows(job->geom.ny, whole ? 1 : job->ranks.fft_ranks,
                           tess_comm_rank(comm), tess_comm_size(comm), &first, &count);
    return tess_rows_of(job->geom.nx, job->geom.ny, first, count, TESS_PIXEL_DOUBLE);
}

/* Whether rows are those that images leave to this rank. */
static bool lie_as_images(const imager_job *job, const tess_rows *rows)
{
    const tess_rows own = imager_model_rows(job);
    return rows->row_first == own.row_first && rows->num_rows == own.num_rows &&
           rows->nx == own.nx && tess_rows_are_whole(rows);
}

tess_status imager_model_put(const imager_job *job, const tess_rows *rows, int num,
                             tess_planes *planes, double *scale)
{
    tess_status status = TESS_OK;
    double largest = 0;
    for (int k = 0; k < num && status == TESS_OK; ++k) {
        tess_pixel_sums sums = {0, 0};
        status =
            lie_as_images(job, &rows[k])
                ? tess_rows_sum(&rows[k], &sums)
                : tess_error_record(TESS_ERR_INTERNAL, __FILE__, __LINE__, __func__,
                                    "rows of a model lie on another rank");
        largest = fmax(largest, sums.largest);
    }
    TESS_TRY(tess_comm_agree(job->comm, status));
    TESS_TRY(tess_comm_allreduce_f64(job->comm, &largest, 1, TESS_MAX));
    *scale = tess_scale_for(largest, job->plan->is_double);
    for (int k = 0; k < num; ++k)
        TESS_TRY(put_model(job, &rows[k], *scale, k, planes));
    status = imager_model_place(job, planes, num);
    TESS_TRY(tess_comm_agree(job->comm, status));
cleanup:
    return status;
}

/* The factor with which image `from` is in the samples of polarisation `to`. The
 * visibilities of a cross-hand alone are those of its real image plus i times those of
 * its imaginary image. The samples of the imaginary image are −i times those of the
 * real one. */
static double complex share_of(const tess_pol *to, const tess_pol *from)
{
    if (to->code != from->code) return 0;
    if (to->both) return to->imaginary == from->imaginary ? 1 : 0;
    return (to->imaginary ? CMPLX(0, -1) : 1) * (from->imaginary ? CMPLX(0, 1) : 1);
}

void imager_model_expect(imager_job *job, const tess_pol *pol, int num_pol)
{
    imager_job_model *model = &job->model;
    model->num = num_pol;
    model->is_shared = model->by_rows = true;
    job->worst_pixel = true;
    for (int p = 0; p < num_pol; ++p)
        for (int k = 0; k < num_pol; ++k)
            model->mix[p][k] = share_of(&pol[p], &pol[k]);
}

void imager_model_mix(const imager_model *model, const tess_pol *pol, int num_pol,
                      imager_job_model *to)
{
    to->num = model->num_stokes;
    for (int p = 0; p < num_pol; ++p) {
        double complex stokes[4];
        tess_pol_from_stokes(pol[p].code, stokes);
        for (int k = 0; k < to->num; ++k)
            to->mix[p][k] =
                stokes[model->stokes[k] - 1] * (pol[p].imaginary ? CMPLX(0, -1) : 1);
    }
}

tess_status imager_model_set(imager_job *job, const tess_rows *rows)
{
    tess_status status = TESS_OK;
    imager_job_model *model = &job->model;
    TESS_TRY(imager_model_put(job, rows, model->num, model->planes, &model->scale));
    model->is_set = true;
cleanup:
    return status;
}

void imager_model_put_row(const imager_job *job, double scale, int64_t row,
                          const double *pixel, double *correction, void *out)
{
    const bool here = !job->backend->grid->correct;
    if (here) tess_grid_correction_row(job->plan, row, correction);
    for (int64_t i = 0; i < job->geom.nx; ++i) {
        const double value = pixel[i] * (here ? scale * correction[i] : scale);
        tess_real_set(out, job->plan->is_double, i, isfinite(value) ? value : 0.0);
    }
}

tess_status imager_model_place(const imager_job *job, tess_planes *planes, int num)
{
    tess_status status = TESS_OK;
    int64_t first, count, zeroed;
    if (!job->backend->grid->correct) return TESS_OK;
    tess_planes_rows(planes, &first, &count);
    for (int k = 0; k < num; ++k) {
        void *rows;
        TESS_TRY(tess_planes_place(planes, k, &rows));
        TESS_TRY(job->backend->grid->correct(job->plan, 1, true, first, count, rows,
                                             &zeroed));
    }
cleanup:
    return status;
}
