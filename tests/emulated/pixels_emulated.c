/* device_pixels.h in host memory; see device_emulated.c. */
#include "device_pixels.h"

#include <math.h>
#include <string.h>

#include "device_emulated.h"

static double value_of(const tess_pixels *of, int64_t row, int64_t column)
{
    const int64_t k = row * of->stride + column;
    if (of->type == TESS_PIXEL_DOUBLE) return ((const double *)of->value)[k];
    if (of->type == TESS_PIXEL_MASK) return ((const uint8_t *)of->value)[k];
    return (double)((const float *)of->value)[k];
}

static void put(const tess_pixels *to, int64_t row, int64_t column, double value)
{
    const int64_t k = row * to->stride + column;
    if (to->type == TESS_PIXEL_DOUBLE)
        ((double *)to->value)[k] = value;
    else if (to->type == TESS_PIXEL_MASK)
        ((uint8_t *)to->value)[k] = (uint8_t)value;
    else
        ((float *)to->value)[k] = (float)value;
}

tess_status device_pixels_mix(const tess_mixture *how, const tess_pixels *from,
                              const tess_pixels *to)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status)) return status;
    for (int64_t j = 0; j < to->num_rows; ++j)
        for (int64_t i = 0; i < to->num_cols; ++i) {
            double value = how->constant;
            if (how->own < 0 || how->own > 0) value += how->own * value_of(to, j, i);
            if (how->weight < 0 || how->weight > 0)
                value += how->weight * value_of(from, j, i);
            put(to, j, i, how->is_finite && !isfinite(value) ? 0.0 : value);
        }
    return TESS_OK;
}

tess_status device_pixels_sum(const tess_pixels *of, tess_pixel_sums *sums)
{
    tess_status status = TESS_OK;
    *sums = (tess_pixel_sums){0, 0};
    if (!device_emulated_waits(&status)) return status;
    for (int64_t j = 0; j < of->num_rows; ++j)
        for (int64_t i = 0; i < of->num_cols; ++i) {
            const double value = value_of(of, j, i);
            sums->sum += value;
            if (isfinite(value)) sums->largest = fmax(sums->largest, fabs(value));
        }
    return TESS_OK;
}

static void measure_row(const tess_pixels *of, int64_t j, tess_row_measure *row)
{
    *row = (tess_row_measure){.most_at = -1, .least_at = -1};
    for (int64_t i = 0; i < of->num_cols; ++i) {
        const double value = value_of(of, j, i);
        if (!isfinite(value)) continue;
        if (row->count == 0 || value > row->most) {
            row->most = value;
            row->most_at = i;
        }
        if (row->count == 0 || value < row->least) {
            row->least = value;
            row->least_at = i;
        }
        ++row->count;
        row->sum += value;
        row->squares += value * value;
    }
}

tess_status device_pixels_measure(const tess_pixels *of, tess_row_measure *row)
{
    tess_status status = TESS_OK;
    if (!device_emulated_waits(&status)) return status;
    for (int64_t j = 0; j < of->num_rows; ++j)
        measure_row(of, j, &row[j]);
    return TESS_OK;
}

static uint64_t key_of(bool is_double, double value)
{
    if (is_double) {
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
    }
    const float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
}

tess_status device_pixels_count(const tess_pixels *of, const tess_pixel_order *order,
                                int64_t bins[TESS_PIXEL_BINS])
{
    tess_status status = TESS_OK;
    memset(bins, 0, TESS_PIXEL_BINS * sizeof *bins);
    if (!device_emulated_waits(&status)) return status;
    for (int64_t j = 0; j < of->num_rows; ++j)
        for (int64_t i = 0; i < of->num_cols; ++i) {
            double value = value_of(of, j, i);
            if (!isfinite(value)) continue;
            if (order->distances) value = fabs(value - order->centre);
            const uint64_t key =
                key_of(of->type == TESS_PIXEL_DOUBLE, value) >> order->shift;
            if (key >> TESS_PIXEL_BITS == order->prefix)
                ++bins[key & (TESS_PIXEL_BINS - 1)];
        }
    return TESS_OK;
}
