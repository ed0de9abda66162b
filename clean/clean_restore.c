/* Restores an image: convolves the model with the beam, and adds the residual. */
#include <math.h>
#include <string.h>

#include "clean_gaussian.h"
#include "clean_ops.h"
#include "clean_opts.h"
#include "tess_mem.h"
#include "tess_real.h"

typedef struct restoring {
    tess_convolve *plan;
    bool is_double;
    int64_t length;
    clean_exponent exponent;
    tess_rows model, residual, image; /* views */
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
    const tess_rows *rows = &job->image;
    const clean_exponent *e = &job->exponent;
    const double y = (double)(rows->row_first + row - rows->ny / 2);
    for (int64_t k = 0; k < rows->nx; ++k) {
        const double x = (double)(k - rows->nx / 2);
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
    const int64_t nx = job->model.nx;
    bool any = false;
    for (int64_t k = 0; k < nx; ++k) {
        double value = tess_rows_pixel(&job->model, row * nx + k);
        if (!isfinite(value)) value = 0;
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
    const int64_t nx = job->image.nx;
    for (int64_t k = 0; k < nx; ++k)
        tess_rows_set(&job->image, row * nx + k,
                      tess_real_at(line, job->is_double, k) +
                          tess_rows_pixel(&job->residual, row * nx + k));
}

static void copy_residual(const restoring *job)
{
    for (int64_t k = 0; k < tess_rows_count(&job->image); ++k)
        tess_rows_set(&job->image, k, tess_rows_pixel(&job->residual, k));
}

/* The convolution of the views. Collective. */
static tess_status convolve(tess_comm *comm, const tess_clean_opts *opts,
                            restoring *job)
{
    enum { USES = 3 };
    tess_status status = TESS_OK;
    const tess_convolve_opts transforms = clean_transforms_of(&job->image, opts, USES);
    int64_t first, columns;
    TESS_TRY(tess_convolve_create(comm, &transforms, &job->plan));
    tess_convolve_columns(job->plan, &first, &columns, &job->length);
    job->spectrum = tess_alloc(columns * job->length, job->is_double ? 16 : 8);
    TESS_TRY(tess_comm_agree(comm, job->spectrum ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_convolve_forward(job->plan, true, give_beam, take_beam, job));
    TESS_TRY(tess_convolve_forward(job->plan, false, give_model, take_model, job));
    TESS_TRY(tess_convolve_inverse(job->plan, NULL, give_product, take_image, job));
cleanup:
    tess_convolve_destroy(job->plan);
    tess_free(job->spectrum);
    return status;
}

static bool are_alike(const tess_rows *a, const tess_rows *b)
{
    return a->nx == b->nx && a->ny == b->ny && a->row_first == b->row_first &&
           a->num_rows == b->num_rows && tess_rows_are_whole(a) &&
           tess_rows_are_whole(b);
}

/* Local. */
static tess_status check_rows(const tess_rows *model, const tess_rows *residual,
                              const tess_rows *image)
{
    tess_status status = TESS_OK;
    if (!are_alike(model, image) || !are_alike(residual, image))
        TESS_FAIL(TESS_ERR_USAGE, "model, residual and image have other rows");
cleanup:
    return status;
}

/* Local. */
static tess_status view_all(const tess_rows *model, const tess_rows *residual,
                            const tess_rows *image, restoring *job)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_rows_view(model, &job->model));
    TESS_TRY(tess_rows_view(residual, &job->residual));
    TESS_TRY(tess_rows_edit(image, false, &job->image));
cleanup:
    return status;
}

tess_status tess_clean_restore(tess_comm *comm, const tess_clean_opts *opts,
                               const tess_clean_beam *beam, const tess_rows *model,
                               const tess_rows *residual, const tess_rows *image)
{
    tess_status status = TESS_OK;
    restoring job = {.is_double = opts->is_double};
    const tess_clean_ops *ops = opts->method.ops;
    const bool has_beam = beam->major_px > 0 && beam->minor_px > 0;
    bool done = false;
    TESS_TRY(tess_comm_agree(comm, check_rows(model, residual, image)));
    if (has_beam) find_shape(&job, beam);
    if (has_beam && ops && ops->restore)
        TESS_TRY(
            ops->restore(comm, opts, &job.exponent, model, residual, image, &done));
    if (done) return TESS_OK;
    TESS_TRY(tess_comm_agree(comm, view_all(model, residual, image, &job)));
    if (has_beam) {
        TESS_TRY(convolve(comm, opts, &job));
    } else {
        copy_residual(&job);
    }
    TESS_TRY(tess_comm_agree(comm, tess_rows_put_back(image, &job.image)));
cleanup:
    tess_rows_free(&job.model);
    tess_rows_free(&job.residual);
    tess_rows_free(&job.image);
    return status;
}
