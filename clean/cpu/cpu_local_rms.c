/* Computes the local noise, which is the square root of residual² convolved with a wide
 * Gaussian, and the factor by which the search divides it out. */
#include "cpu_noise.h"

#include <math.h>
#include <string.h>

#include "clean_scales.h"
#include "cpu_columns.h"
#include "tess_const.h"
#include "tess_mem.h"
#include "tess_real.h"

/* σ is at least this share of the deepest negative value in the window. */
static const double OF_MINIMUM = 0.3;

typedef struct local {
    clean_work *work;
    const void *rows;
    double steepness; /* the window is height · exp(−steepness · r²), r in pixels */
    double height;    /* makes the sum of the window 1 */
} local;

/* Width of the window (FWHM) [pixels]. */
static double window_px(const clean_work *work)
{
    const tess_clean_opts *opts = &work->setup->opts;
    return opts->local.window_beams * clean_beam_px(opts);
}

static void find_shape(local *job)
{
    const double width_px = window_px(job->work);
    job->steepness = 4 * log(2) / (width_px * width_px);
    job->height = job->steepness / TESS_PI;
}

static bool give_square(void *context, int64_t row, void *line)
{
    const local *job = context;
    const clean_work *work = job->work;
    const int64_t nx = work->setup->images.nx;
    for (int64_t x = 0; x < nx; ++x) {
        const double value = tess_real_at(job->rows, work->is_double, row * nx + x);
        tess_real_set(line, work->is_double, x, value * value);
    }
    return true;
}

static bool give_valid(void *context, int64_t row, void *line)
{
    const local *job = context;
    const clean_work *work = job->work;
    const int64_t nx = work->setup->images.nx;
    for (int64_t x = 0; x < nx; ++x)
        tess_real_set(line, work->is_double, x, work->is_nan[row * nx + x] ? 0 : 1);
    return true;
}

static void take_spectrum(void *context, int64_t column, void *line)
{
    const local *job = context;
    memcpy(cpu_column(job->work, job->work->layers.residual[0], column), line,
           cpu_line_bytes(job->work));
}

static bool give_gaussian(void *context, int64_t row, void *line)
{
    const local *job = context;
    const tess_clean_images *images = &job->work->setup->images;
    const double y = (double)(images->row_first + row - images->ny / 2);
    for (int64_t k = 0; k < images->nx; ++k) {
        const double x = (double)(k - images->nx / 2);
        tess_real_set(line, job->work->is_double, k,
                      job->height * exp(-job->steepness * (x * x + y * y)));
    }
    return true;
}

static void take_gaussian(void *context, int64_t column, void *line)
{
    const local *job = context;
    cpu_column_times(job->work, line, NULL,
                     cpu_column(job->work, job->work->layers.residual[0], column));
}

static bool give_product(void *context, int64_t column, void *line)
{
    const local *job = context;
    memcpy(line, cpu_column(job->work, job->work->layers.residual[0], column),
           cpu_line_bytes(job->work));
    return true;
}

static void take_sigma(void *context, int64_t row, void *line)
{
    const local *job = context;
    const clean_work *work = job->work;
    const int64_t nx = work->setup->images.nx;
    for (int64_t x = 0; x < nx; ++x) {
        const double square = tess_real_at(line, work->is_double, x);
        tess_real_set(work->factor.rows, work->is_double, row * nx + x,
                      sqrt(square > 0 ? square : 0));
    }
}

/* Divides σ by the square root of the share of the window that has pixels, which `line`
 * holds. */
static void take_share(void *context, int64_t row, void *line)
{
    const local *job = context;
    const clean_work *work = job->work;
    const int64_t nx = work->setup->images.nx;
    for (int64_t x = 0; x < nx; ++x) {
        const double share = tess_real_at(line, work->is_double, x);
        const double sigma =
            tess_real_at(work->factor.rows, work->is_double, row * nx + x);
        tess_real_set(work->factor.rows, work->is_double, row * nx + x,
                      share > 0 ? sigma / sqrt(share) : 0);
    }
}

/* Convolves the rows that `give` gives with the window. Collective. */
static tess_status convolve(local *job, tess_convolve_give *give,
                            tess_convolve_take *take)
{
    tess_status status = TESS_OK;
    tess_convolve *plan = job->work->plan;
    TESS_TRY(tess_convolve_forward(plan, false, give, take_spectrum, job));
    TESS_TRY(tess_convolve_forward(plan, true, give_gaussian, take_gaussian, job));
    TESS_TRY(tess_convolve_inverse(plan, NULL, give_product, take, job));
cleanup:
    return status;
}

/* ---- the floor by minima ---- */

/* out[x] := the least of line[x − half … x + half] within [0, count). */
static void minima(const double *line, int64_t count, int64_t half, double *out)
{
    for (int64_t x = 0; x < count; ++x) {
        const int64_t begin = x - half < 0 ? 0 : x - half;
        const int64_t end = x + half < count ? x + half : count - 1;
        /* the least value of the window before has left the window: search all of it */
        if (x > 0 && begin > 0 && out[x - 1] == line[begin - 1]) {
            out[x] = line[begin];
            for (int64_t k = begin; k <= end; ++k)
                if (line[k] < out[x]) out[x] = line[k];
        } else {
            out[x] = x > 0 ? out[x - 1] : line[begin];
            for (int64_t k = x > 0 ? end : begin; k <= end; ++k)
                if (line[k] < out[x]) out[x] = line[k];
        }
    }
}

/* Computes the minima along x of the whole image, on every rank, because minima along y
 * need the rows of all ranks. The array is of single precision, and there is only one
 * at a time. Collective. */
static tess_status all_row_minima(const local *job, float **all)
{
    tess_status status = TESS_OK;
    const clean_work *work = job->work;
    const tess_clean_images *images = &work->setup->images;
    tess_comm *comm = work->setup->comm;
    const int64_t nx = images->nx, half = (int64_t)(window_px(work) / 2);
    double *line = tess_alloc(2 * nx, sizeof *line);
    float *own = tess_alloc(work->pixels, sizeof *own);
    int64_t *bytes = tess_alloc_zero(tess_comm_size(comm), sizeof *bytes);
    void *gathered = NULL;
    TESS_TRY(tess_comm_agree(comm, line && own && bytes ? TESS_OK : TESS_ERR_ALLOC));
    for (int64_t row = 0; row < images->num_rows; ++row) {
        for (int64_t x = 0; x < nx; ++x)
            line[x] = tess_real_at(job->rows, work->is_double, row * nx + x);
        minima(line, nx, half, line + nx);
        for (int64_t x = 0; x < nx; ++x)
            own[row * nx + x] = (float)line[nx + x];
    }
    TESS_TRY(tess_comm_allgatherv(comm, own, work->pixels * (int64_t)sizeof *own,
                                  &gathered, bytes));
    *all = gathered;
cleanup:
    tess_free(line);
    tess_free(own);
    tess_free(bytes);
    return status;
}

static tess_status raise_to_minima(const local *job)
{
    tess_status status = TESS_OK;
    const clean_work *work = job->work;
    const tess_clean_images *images = &work->setup->images;
    const int64_t nx = images->nx, ny = images->ny,
                  half = (int64_t)(window_px(work) / 2);
    float *all = NULL;
    double *line = NULL;
    TESS_TRY(all_row_minima(job, &all));
    line = tess_alloc(2 * ny, sizeof *line);
    TESS_TRY(tess_comm_agree(work->setup->comm, line ? TESS_OK : TESS_ERR_ALLOC));
    for (int64_t x = 0; x < nx; ++x) {
        for (int64_t y = 0; y < ny; ++y)
            line[y] = all[y * nx + x];
        minima(line, ny, half, line + ny);
        for (int64_t row = 0; row < images->num_rows; ++row) {
            const double floor = OF_MINIMUM * fabs(line[ny + images->row_first + row]);
            if (tess_real_at(work->factor.rows, work->is_double, row * nx + x) < floor)
                tess_real_set(work->factor.rows, work->is_double, row * nx + x, floor);
        }
    }
cleanup:
    tess_free(all);
    tess_free(line);
    return status;
}

/* The factor of the search: 1 where the noise is lowest, and less where it is higher.
 */
static double factor_of(double lowest, double sigma, double strength)
{
    const double share = sigma > 0 ? lowest / sigma : 1;
    return strength == 1 ? share : pow(share, strength);
}

tess_status cpu_local_rms(clean_work *work, const void *rows, double *least)
{
    tess_status status = TESS_OK;
    const tess_clean_opts *opts = &work->setup->opts;
    local job = {.work = work, .rows = rows};
    double lowest = INFINITY;
    find_shape(&job);
    TESS_TRY(convolve(&job, give_square, take_sigma));
    /* near edges and the horizon a part of the window has no pixels */
    TESS_TRY(convolve(&job, give_valid, take_share));
    if (opts->local.kind == TESS_CLEAN_LOCAL_RMS_WITH_MIN)
        TESS_TRY(raise_to_minima(&job));
    for (int64_t k = 0; k < work->pixels; ++k) {
        const double sigma = tess_real_at(work->factor.rows, work->is_double, k);
        if (!work->is_nan[k] && sigma < lowest) lowest = sigma;
    }
    TESS_TRY(tess_comm_allreduce_f64(work->setup->comm, &lowest, 1, TESS_MIN));
    for (int64_t k = 0; k < work->pixels; ++k) {
        const double sigma = tess_real_at(work->factor.rows, work->is_double, k);
        tess_real_set(work->factor.rows, work->is_double, k,
                      factor_of(lowest, sigma, opts->local.strength));
    }
    *least = isfinite(lowest) ? lowest : 0;
cleanup:
    return status;
}
