/* Rows of finished images in either precision. */
#include "imager_rows.h"

#include <math.h>

#include "tess_mem.h"

void imager_pixels(const imager_rows *rows, int64_t first, int64_t count, double *out)
{
    for (int64_t k = 0; k < count; ++k)
        out[k] = imager_pixel(rows, first + k);
}

static int64_t num_pixels(const imager_rows *rows)
{
    return rows->num_rows * rows->nx;
}

void imager_rows_add_values(const double *value, int64_t pixels, double weight,
                            int threads, double *sum)
{
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t k = 0; k < pixels; ++k)
        sum[k] += weight * value[k];
}

/* Loops for each precision, since a choice at every pixel keeps loops from vectors. */
void imager_rows_add(const imager_rows *rows, double weight, int threads, double *sum)
{
    const int64_t pixels = num_pixels(rows);
    const float *single = rows->value;
    if (rows->is_double) {
        imager_rows_add_values(rows->value, pixels, weight, threads, sum);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t k = 0; k < pixels; ++k)
        sum[k] += weight * (double)single[k];
}

void imager_rows_to_single(const imager_rows *rows, int threads, float *out)
{
    const int64_t pixels = num_pixels(rows);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t k = 0; k < pixels; ++k)
        out[k] = (float)imager_pixel(rows, k);
}

tess_status imager_rows_zero(int64_t row_first, int64_t num_rows, int64_t nx,
                             imager_rows *rows)
{
    tess_status status = TESS_OK;
    *rows = (imager_rows){row_first, num_rows, nx, true, NULL};
    rows->value = tess_alloc_zero(num_rows * nx, sizeof(double));
    if (!rows->value) TESS_FAIL(TESS_ERR_ALLOC, "no memory for rows of an image");
cleanup:
    return status;
}

void imager_rows_blank(const imager_rows *rows)
{
    const int64_t pixels = rows->num_rows * rows->nx;
    for (int64_t k = 0; k < pixels; ++k)
        if (rows->is_double)
            ((double *)rows->value)[k] = (double)NAN;
        else
            ((float *)rows->value)[k] = NAN;
}

void imager_rows_free(imager_rows *rows)
{
    tess_free(rows->value);
    *rows = (imager_rows){0};
}
