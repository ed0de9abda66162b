/* Convolution by transforms, with that of the PSF kept from frame to frame. The frame
 * is extended by what wraps around and then padded with zeros to lengths that transform
 * fast (5271 has a prime factor of 251): what wraps in the transform falls onto the
 * padding. */
#include <complex.h>
#include <string.h>

#include "frame_step.h"
#include "tess_convolve.h"
#include "tess_fft.h"
#include "tess_mem.h"
#include "tess_minmax.h"
#include "tess_omp.h"
#include "tess_tile.h"

/* Columns that are transformed together: a cache line of complex values. */
enum { BATCH = 8 };

/* Number of frames for which FFTW makes its plans: it decides how long FFTW looks for
 * the best plan. */
enum { FRAMES = 100 };

enum { ROW_FORWARD, COLUMN_FORWARD, COLUMN_BACK, ROW_BACK, NUM_FFTS };

struct frame_plan {
    frame_shape shape;
    int threads;
    int64_t lx, ly; /* lengths of the transforms */
    int64_t half;   /* lx/2 + 1 columns, rounded up to whole batches */
    tess_fft *fft[NUM_FFTS];
    float complex *spectrum; /* [ly][half] of the rows of the frame */
    float complex *kept;     /* [half][ly] conjugate transform of the PSF / (lx ly) */
    float complex *work;     /* [threads][work_values] */
    int64_t work_values;
};

static void destroy(frame_plan *plan)
{
    if (!plan) return;
    for (int k = 0; k < NUM_FFTS; ++k)
        tess_fft_destroy(plan->fft[k]);
    tess_free(plan->spectrum);
    tess_free(plan->kept);
    tess_free(plan->work);
    tess_free(plan);
}

static int64_t in_batches(int64_t count)
{
    return (count + BATCH - 1) / BATCH * BATCH;
}

/* ---- passes ---- */

/* A row of the frame, extended to both sides. */
static void extend(const frame_shape *shape, const float *from, float *line)
{
    const int64_t left = shape->kx / 2, right = shape->kx - 1 - left;
    memcpy(line, from + shape->nx - left, (size_t)left * sizeof *line);
    memcpy(line + left, from, (size_t)shape->nx * sizeof *line);
    memcpy(line + left + shape->nx, from, (size_t)right * sizeof *line);
}

static float complex *work_here(const frame_plan *plan)
{
    return plan->work + tess_omp_thread() * plan->work_values;
}

/* Rows of the extended frame to their spectra. */
static void rows_forward(const frame_plan *plan, const float *frame)
{
    const frame_shape *shape = &plan->shape;
    const int64_t rows = shape->ny + shape->ky - 1, columns = shape->nx + shape->kx - 1;
#pragma omp parallel for num_threads(plan->threads)
    for (int64_t y = 0; y < rows; ++y) {
        const int64_t row = frame_wrap(y - shape->ky / 2, shape->ny);
        float *line = (float *)work_here(plan);
        extend(shape, frame + row * shape->nx, line);
        memset(line + columns, 0, (size_t)(plan->lx - columns) * sizeof *line);
        tess_fft_execute(plan->fft[ROW_FORWARD], line, plan->spectrum + y * plan->half);
    }
}

/* The first `rows` values of BATCH columns, from the rows to a line for each column, or
 * back. */
static void turn(const frame_plan *plan, int64_t column, int64_t rows, bool back,
                 float complex *lines)
{
    const int64_t stride = in_batches(plan->ly);
    for (int64_t y = 0; y < rows; ++y) {
        float complex *row = plan->spectrum + y * plan->half + column;
        for (int k = 0; k < BATCH; ++k)
            if (back)
                row[k] = lines[k * stride + y];
            else
                lines[k * stride + y] = row[k];
    }
}

static void multiply(const float complex *kept, int64_t count, float complex *line)
{
    for (int64_t k = 0; k < count; ++k) {
        const float re = crealf(line[k]), im = cimagf(line[k]);
        const float kept_re = crealf(kept[k]), kept_im = cimagf(kept[k]);
        float *product = (float *)&line[k]; /* clang 14 has no CMPLXF */
        product[0] = re * kept_re - im * kept_im;
        product[1] = re * kept_im + im * kept_re;
    }
}

/* Columns forward, times the PSF's, and back: each batch while it is in cache. */
static void columns(const frame_plan *plan)
{
    const int64_t rows = plan->shape.ny + plan->shape.ky - 1;
    const int64_t stride = in_batches(plan->ly);
#pragma omp parallel for num_threads(plan->threads)
    for (int64_t column = 0; column < plan->half; column += BATCH) {
        float complex *lines = work_here(plan), *other = lines + BATCH * stride;
        turn(plan, column, rows, false, lines);
        for (int k = 0; k < BATCH; ++k) {
            float complex *line = lines + k * stride;
            for (int64_t y = rows; y < plan->ly; ++y)
                line[y] = 0;
            tess_fft_execute(plan->fft[COLUMN_FORWARD], line, other);
            multiply(plan->kept + (column + k) * plan->ly, plan->ly, other);
            tess_fft_execute(plan->fft[COLUMN_BACK], other, line);
        }
        turn(plan, column, plan->shape.ny, true, lines);
    }
}

static void rows_back(const frame_plan *plan, float *out)
{
    const frame_shape *shape = &plan->shape;
#pragma omp parallel for num_threads(plan->threads)
    for (int64_t y = 0; y < shape->ny; ++y) {
        float *line = (float *)work_here(plan);
        tess_fft_execute(plan->fft[ROW_BACK], plan->spectrum + y * plan->half, line);
        memcpy(out + y * shape->nx, line, (size_t)shape->nx * sizeof *line);
    }
}

static tess_status execute(frame_plan *plan, const float *frame, float *out)
{
    rows_forward(plan, frame);
    columns(plan);
    rows_back(plan, out);
    return TESS_OK;
}

/* ---- plans ---- */

/* The PSF's transform, conjugate since footprints begin, and do not end, at their
 * pixel. Columns beyond lx/2 + 1 only fill the last batch. */
static void transform_psf(frame_plan *plan, const float *psf)
{
    const frame_shape *shape = &plan->shape;
    const float scale = (float)(1 / ((double)plan->lx * (double)plan->ly));
    float complex *line = plan->work, *other = line + in_batches(plan->ly);
    for (int64_t j = 0; j < shape->ky; ++j) {
        float *row = (float *)plan->work;
        memset(row, 0, (size_t)plan->lx * sizeof *row);
        for (int64_t i = 0; i < shape->kx; ++i)
            row[i] = scale * psf[j * shape->kx + i];
        tess_fft_execute(plan->fft[ROW_FORWARD], row, plan->spectrum + j * plan->half);
    }
    for (int64_t column = 0; column < plan->lx / 2 + 1; ++column) {
        memset(line, 0, (size_t)plan->ly * sizeof *line);
        for (int64_t j = 0; j < shape->ky; ++j)
            line[j] = plan->spectrum[j * plan->half + column];
        tess_fft_execute(plan->fft[COLUMN_FORWARD], line, other);
        for (int64_t y = 0; y < plan->ly; ++y)
            plan->kept[column * plan->ly + y] = conjf(other[y]);
    }
}

static tess_status make_ffts(frame_plan *plan)
{
    tess_status status = TESS_OK;
    const int64_t rows = FRAMES * plan->ly, lines = FRAMES * plan->half;
    TESS_TRY(
        tess_fft_create_real(plan->lx, true, false, rows, &plan->fft[ROW_FORWARD]));
    TESS_TRY(tess_fft_create(plan->ly, true, false, lines, &plan->fft[COLUMN_FORWARD]));
    TESS_TRY(tess_fft_create(plan->ly, false, false, lines, &plan->fft[COLUMN_BACK]));
    TESS_TRY(tess_fft_create_real(plan->lx, false, false, rows, &plan->fft[ROW_BACK]));
cleanup:
    return status;
}

static tess_status create(const frame_shape *shape, const float *psf, int threads,
                          frame_plan **plan_out)
{
    tess_status status = TESS_OK;
    frame_plan *plan = tess_alloc_zero(1, sizeof *plan);
    if (!plan) TESS_FAIL(TESS_ERR_ALLOC, "convolution by transforms");
    plan->shape = *shape;
    plan->threads = threads;
    plan->lx = tess_convolve_length(shape->nx + shape->kx - 1);
    plan->ly = tess_convolve_length(shape->ny + shape->ky - 1);
    plan->half = in_batches(plan->lx / 2 + 1);
    /* a batch of columns and one more, or a row of real values */
    plan->work_values =
        in_batches(tess_max_i64((BATCH + 1) * in_batches(plan->ly), plan->lx / 2 + 1));
    plan->spectrum = tess_alloc_zero(plan->ly * plan->half, sizeof *plan->spectrum);
    plan->kept = tess_alloc_zero(plan->half * plan->ly, sizeof *plan->kept);
    plan->work = tess_alloc(threads * plan->work_values, sizeof *plan->work);
    if (!plan->spectrum || !plan->kept || !plan->work)
        TESS_FAIL(TESS_ERR_ALLOC, "transforms of %lld × %lld pixels",
                  (long long)plan->lx, (long long)plan->ly);
    TESS_TRY(make_ffts(plan));
    transform_psf(plan, psf);
    *plan_out = plan;
    plan = NULL;
cleanup:
    destroy(plan);
    return status;
}

const frame_step frame_step_fft = {.name = "fft",
                                   .what = "FFTW, the PSF's transform is kept",
                                   .threaded = true,
                                   .transform = true,
                                   .create = create,
                                   .execute = execute,
                                   .destroy = destroy};
