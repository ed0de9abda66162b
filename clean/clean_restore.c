/* Restores an image: convolves the model with the beam, and adds the residual. */
#include <math.h>
#include <string.h>

#include "clean_gaussian.h"
#include "tess_clean.h"
#include "tess_convolve.h"
#include "tess_mem.h"
#include "tess_real.h"

typedef struct restoring {
    const tess_clean_images *images;
    tess_convolve *plan;
    bool is_double;
    int64_t length;
    clean_exponent exponent;
    const double *model;
    const void *residual;
    void *image;
    void *spectrum;
} restoring;

static void find_shape(restoring *job, const tess_clean_beam *beam)
{
    const clean_widths widths =
        clean_widths_of(beam->major_px, beam->minor_px, beam->angle_rad);
    job->exponent = clean_exponent_of(&widths);
}

static bool give_beam(void *context, int64_t row, void *line)
{
    const restoring *job = context;
    const tess_clean_images *images = job->images;
    const clean_exponent *e = &job->exponent;
    const double y = (double)(images->row_first + row - images->ny / 2);
    for (int64_t k = 0; k < images->nx; ++k) {
        const double x = (double)(k - images->nx / 2);
        tess_real_set(
            line, job->is_double, k,
            exp(-(e->along_x * x * x + e->along_y * y * y + e->across * x * y)));
    }
    return true;
}

static void *column_of(const restoring *job, int64_t column)
{
    return (char *)job->spectrum +
           (size_t)(column * job->length) * (job->is_double ? 16 : 8);
}

static void take_beam(void *context, int64_t column, void *line)
{
    const restoring *job = context;
    memcpy(column_of(job, column), line,
           (size_t)job->length * (job->is_double ? 16 : 8));
}

static bool give_model(void *context, int64_t row, void *line)
{
    const restoring *job = context;
    const double *from = job->model + row * job->images->nx;
    bool any = false;
    for (int64_t k = 0; k < job->images->nx; ++k) {
        const double value = isfinite(from[k]) ? from[k] : 0;
        any = any || value != 0;
        tess_real_set(line, job->is_double, k, value);
    }
    return any;
}

#define MULTIPLY(REAL, SUFFIX)                                                         \
    static void multiply_##SUFFIX(void *spectrum, const void *line, int64_t length)    \
    {                                                                                  \
        REAL *restrict to = spectrum;                                                  \
        const REAL *restrict by = line;                                                \
        for (int64_t k = 0; k < 2 * length; k += 2) {                                  \
            const REAL re = to[k], im = to[k + 1];                                     \
            to[k] = re * by[k] - im * by[k + 1];                                       \
            to[k + 1] = re * by[k + 1] + im * by[k];                                   \
        }                                                                              \
    }
MULTIPLY(float, single)
MULTIPLY(double, double)

static void take_model(void *context, int64_t column, void *line)
{
    const restoring *job = context;
    (job->is_double ? multiply_double : multiply_single)(column_of(job, column), line,
                                                         job->length);
}

static bool give_product(void *context, int64_t column, void *line)
{
    const restoring *job = context;
    memcpy(line, column_of(job, column),
           (size_t)job->length * (job->is_double ? 16 : 8));
    return true;
}

static void take_image(void *context, int64_t row, void *line)
{
    const restoring *job = context;
    const bool rows_are_double = job->images->rows_are_double;
    for (int64_t k = 0; k < job->images->nx; ++k) {
        const int64_t at = row * job->images->nx + k;
        tess_real_set(job->image, rows_are_double, at,
                      tess_real_at(line, job->is_double, k) +
                          tess_real_at(job->residual, rows_are_double, at));
    }
}

static void copy_residual(const restoring *job)
{
    const tess_clean_images *images = job->images;
    if (job->image == job->residual) return;
    memcpy(job->image, job->residual,
           (size_t)(images->num_rows * images->nx) *
               (images->rows_are_double ? sizeof(double) : sizeof(float)));
}

tess_status tess_clean_restore(tess_comm *comm, const tess_clean_images *images,
                               const tess_clean_opts *opts, const tess_clean_beam *beam,
                               const double *model, const void *residual, void *image)
{
    enum { USES = 3 };
    tess_status status = TESS_OK;
    const tess_convolve_opts transforms = {.nx = images->nx,
                                           .ny = images->ny,
                                           .row_first = images->row_first,
                                           .num_rows = images->num_rows,
                                           .uses = USES,
                                           .is_double = opts->is_double,
                                           .repeatable = opts->repeatable,
                                           .threads = opts->threads};
    restoring job = {.images = images,
                     .is_double = opts->is_double,
                     .model = model,
                     .residual = residual,
                     .image = image};
    int64_t first, columns;
    if (!(beam->major_px > 0 && beam->minor_px > 0)) {
        copy_residual(&job);
        return TESS_OK;
    }
    find_shape(&job, beam);
    TESS_TRY(tess_convolve_create(comm, &transforms, &job.plan));
    tess_convolve_columns(job.plan, &first, &columns, &job.length);
    job.spectrum = tess_alloc(columns * job.length, job.is_double ? 16 : 8);
    TESS_TRY(tess_comm_agree(comm, job.spectrum ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_convolve_forward(job.plan, true, give_beam, take_beam, &job));
    TESS_TRY(tess_convolve_forward(job.plan, false, give_model, take_model, &job));
    TESS_TRY(tess_convolve_inverse(job.plan, NULL, give_product, take_image, &job));
cleanup:
    tess_convolve_destroy(job.plan);
    tess_free(job.spectrum);
    return status;
}
