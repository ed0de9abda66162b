/* Compares convolutions with the literal sum, within bounds of rounding errors. */
#include "frame_step.h"

#include <math.h>

#include "tess_convolve.h"

static const double UNIT = 0x1p-24; /* unit roundoff of single precision */

static double gamma_of(double terms)
{
    return terms * UNIT / (1 - terms * UNIT);
}

static double sum_of(const float *value, int64_t count)
{
    double sum = 0;
    for (int64_t k = 0; k < count; ++k)
        sum += fabs((double)value[k]);
    return sum;
}

static double largest_of(const float *value, int64_t count)
{
    double largest = 0;
    for (int64_t k = 0; k < count; ++k)
        largest = fmax(largest, fabs((double)value[k]));
    return largest;
}

static double rms_of(const float *value, int64_t count)
{
    double sum = 0;
    for (int64_t k = 0; k < count; ++k)
        sum += (double)value[k] * (double)value[k];
    return sqrt(sum / (double)count);
}

/* The largest difference and its rms; NAN where a value is not finite. */
static void differences(const float *a, const float *b, int64_t count, double *largest,
                        double *rms)
{
    double sum = 0;
    *largest = 0;
    for (int64_t k = 0; k < count; ++k) {
        const double by = fabs((double)a[k] - (double)b[k]);
        sum += by * by;
        if (!(by <= *largest)) *largest = by;
    }
    *rms = sqrt(sum / (double)count);
    if (isnan(*rms)) *largest = NAN;
}

/* A pixel appears at most twice along each axis of the extended frame, whose norm is so
 * at most twice that of the frame. */
static double transform_bound(const frame_shape *shape)
{
    const double lx = (double)tess_convolve_length(shape->nx + shape->kx - 1);
    const double ly = (double)tess_convolve_length(shape->ny + shape->ky - 1);
    return 2 * UNIT * (3 * 6.7 * log2(lx * ly) + 4);
}

frame_error frame_compare(const frame_step *step, const frame_shape *shape,
                          const float *psf, const float *frame, const float *literal,
                          const float *out)
{
    const int64_t pixels = shape->nx * shape->ny, taps = shape->kx * shape->ky;
    const double sum = sum_of(psf, taps), one = gamma_of((double)taps);
    double largest, rms;
    differences(literal, out, pixels, &largest, &rms);
    if (step->transform)
        return (frame_error){.difference = rms / (sum * rms_of(frame, pixels)),
                             .bound = one + transform_bound(shape)};
    return (frame_error){.difference = largest / (sum * largest_of(frame, pixels)),
                         .bound = 2 * one};
}
