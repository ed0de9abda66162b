/* Convolves an image of one beam to a wider one. The Gaussian between both is
 * multiplied as its own transform, so that it may be narrower than a pixel, or have no
 * width along one axis. */
#include <math.h>
#include <string.h>

#include "clean_gaussian.h"
#include "clean_opts.h"
#include "tess_common_beam.h"
#include "tess_const.h"
#include "tess_mem.h"
#include "tess_real.h"

typedef struct widening {
    tess_convolve *plan;
    bool is_double;
    int64_t first_column, length;
    clean_widths between;  /* of the Gaussian [pixels²] */
    double factor;         /* of its sum */
    double step_x, step_y; /* cycles per pixel from line to line of the spectrum */
    tess_rows image;       /* a view of the rows */
    void *spectrum;
} widening;

static size_t column_bytes(const widening *job)
{
    return (size_t)job->length * (job->is_double ? 16 : 8);
}

static bool give_image(void *context, int64_t row, void *line)
{
    const widening *job = context;
    const int64_t nx = job->image.nx;
    for (int64_t k = 0; k < nx; ++k) {
        const double value = tess_rows_pixel(&job->image, row * nx + k);
        tess_real_set(line, job->is_double, k, isfinite(value) ? value : 0);
    }
    return true;
}

static void take_column(void *context, int64_t column, void *line)
{
    const widening *job = context;
    memcpy((char *)job->spectrum + (size_t)column * column_bytes(job), line,
           column_bytes(job));
}

/* The transform of a Gaussian of squared widths W at spatial frequency k is
 * exp(−π² kᵀ W k / (4 ln 2)). */
static bool give_column(void *context, int64_t column, void *line)
{
    const widening *job = context;
    const char *from = (const char *)job->spectrum + (size_t)column * column_bytes(job);
    const clean_widths *w = &job->between;
    const double scale = TESS_PI * TESS_PI / (4 * log(2));
    const double x = (double)(job->first_column + column) * job->step_x;
    for (int64_t k = 0; k < job->length; ++k) {
        const int64_t wave = 2 * k <= job->length ? k : k - job->length;
        const double y = (double)wave * job->step_y;
        const double by =
            job->factor *
            exp(-scale * (w->xx * x * x + w->yy * y * y + 2 * w->xy * x * y));
        for (int part = 0; part < 2; ++part)
            tess_real_set(line, job->is_double, 2 * k + part,
                          by * tess_real_at(from, job->is_double, 2 * k + part));
    }
    return true;
}

static void take_image(void *context, int64_t row, void *line)
{
    const widening *job = context;
    const int64_t nx = job->image.nx;
    for (int64_t k = 0; k < nx; ++k)
        if (!isnan(tess_rows_pixel(&job->image, row * nx + k)))
            tess_rows_set(&job->image, row * nx + k,
                          tess_real_at(line, job->is_double, k));
}

static clean_widths widths_of(const tess_clean_beam *beam)
{
    return clean_widths_of(beam->major_px, beam->minor_px, beam->angle_rad);
}

/* A value per beam grows with the area of the beam. */
static void find_shape(widening *job, const tess_clean_beam *from,
                       const tess_clean_beam *to)
{
    const clean_widths a = widths_of(from), c = widths_of(to);
    job->between = (clean_widths){c.xx - a.xx, c.yy - a.yy, c.xy - a.xy};
    job->factor = sqrt(clean_widths_determinant(&c) / clean_widths_determinant(&a));
}

static bool same_beam(const tess_clean_beam *a, const tess_clean_beam *b)
{
    const clean_widths one = widths_of(a), other = widths_of(b);
    const double apart =
        fabs(one.xx - other.xx) + fabs(one.yy - other.yy) + fabs(one.xy - other.xy);
    return apart <= 1e-12 * (one.xx + one.yy);
}

/* Convolves the view. Collective. */
static tess_status convolve(tess_comm *comm, const tess_clean_opts *opts, widening *job)
{
    enum { USES = 2 };
    tess_status status = TESS_OK;
    const tess_convolve_opts transforms = clean_transforms_of(&job->image, opts, USES);
    int64_t columns, lx, ly;
    TESS_TRY(tess_convolve_create(comm, &transforms, &job->plan));
    tess_convolve_columns(job->plan, &job->first_column, &columns, &job->length);
    tess_convolve_lengths(&transforms, &lx, &ly);
    job->step_x = 1 / (double)lx;
    job->step_y = 1 / (double)ly;
    job->spectrum = tess_alloc(columns, column_bytes(job));
    TESS_TRY(tess_comm_agree(comm, job->spectrum ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_convolve_forward(job->plan, false, give_image, take_column, job));
    TESS_TRY(tess_convolve_inverse(job->plan, NULL, give_column, take_image, job));
cleanup:
    tess_convolve_destroy(job->plan);
    tess_free(job->spectrum);
    return status;
}

tess_status tess_common_beam_widen(tess_comm *comm, const tess_clean_opts *opts,
                                   const tess_clean_beam *from,
                                   const tess_clean_beam *to, const tess_rows *image)
{
    tess_status status = TESS_OK;
    widening job = {.is_double = opts->is_double};
    if (same_beam(from, to)) return TESS_OK;
    find_shape(&job, from, to);
    status = tess_rows_check_whole(image, "an image that gets another beam");
    if (status == TESS_OK) status = tess_rows_edit(image, true, &job.image);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(convolve(comm, opts, &job));
    TESS_TRY(tess_comm_agree(comm, tess_rows_put_back(image, &job.image)));
cleanup:
    tess_rows_free(&job.image);
    return status;
}
