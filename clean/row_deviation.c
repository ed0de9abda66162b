/* The median of an image that is distributed by rows, and the median absolute deviation
 * from it, exactly the same on any number of ranks. Medians are found by counting the
 * values in intervals of their bits, 16 bits at a time. */
#include "row_deviation.h"

#include <math.h>
#include <string.h>

#include "tess_mem.h"
#include "tess_omp.h"
#include "tess_real.h"

enum { BITS = 16, BINS = 1 << BITS };

/* Pixels of this rank, and those of all ranks whose order is asked for. */
typedef struct pixels {
    tess_comm *comm;
    const row_pixels *rows;
    int64_t *bins; /* [threads][BINS]; the first is that of row_values */
} pixels;

static bool counts(const row_pixels *rows, int64_t k)
{
    return rows->is_blank ? !rows->is_blank[k]
                          : isfinite(tess_real_at(rows->value, rows->is_double, k));
}

/* Whole numbers in the order of the values. */
static uint64_t key_of(const row_values *from, const row_pixels *rows, int64_t k)
{
    const bool is_double = from->is_double;
    double value = tess_real_at(rows->value, is_double, k);
    if (from->distances) value = fabs(value - from->centre);
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

static double value_of(const row_values *from, uint64_t key)
{
    if (from->is_double) {
        const uint64_t bits = key >> 63 ? key & ~(UINT64_C(1) << 63) : ~key;
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    const uint32_t low = (uint32_t)key;
    const uint32_t bits = low >> 31 ? low & ~(UINT32_C(1) << 31) : ~low;
    float single;
    memcpy(&single, &bits, sizeof single);
    return (double)single;
}

/* Counts pixels of host memory over all ranks: see row_values. Collective. */
static tess_status count_pixel_bins(row_values *from, uint64_t prefix, int shift)
{
    pixels *all = from->context;
    const row_pixels *rows = all->rows;
#pragma omp parallel num_threads(rows->threads)
    {
        int64_t *bins = all->bins + (int64_t)tess_omp_thread() * BINS;
        memset(bins, 0, BINS * sizeof *bins);
#pragma omp for schedule(static)
        for (int64_t k = 0; k < rows->count; ++k) {
            if (!counts(rows, k)) continue;
            const uint64_t key = key_of(from, rows, k), high = key >> shift;
            if (high >> BITS == prefix) ++bins[high & (BINS - 1)];
        }
        /* there may be fewer than were asked for */
        const int team = tess_omp_threads();
#pragma omp for schedule(static)
        for (int64_t b = 0; b < BINS; ++b)
            for (int t = 1; t < team; ++t)
                all->bins[b] += all->bins[(int64_t)t * BINS + b];
    }
    return tess_comm_allreduce_i64(all->comm, all->bins, BINS, TESS_SUM);
}

/* The bin in which the value of rank `*place` lies, and its rank there. */
static int64_t bin_of(const row_values *from, int64_t *place)
{
    int64_t bin = 0;
    const int64_t last = ((int64_t)1 << from->bits) - 1;
    while (bin < last && *place >= from->bins[bin])
        *place -= from->bins[bin++];
    return bin;
}

/* The value of rank `place` from below, and the next unless NULL. Collective. */
static tess_status select_pair(row_values *from, int64_t place, double *value,
                               double *next)
{
    tess_status status = TESS_OK;
    const int bits = from->is_double ? 64 : 32;
    const int64_t bins = (int64_t)1 << from->bits;
    uint64_t prefix = 0;
    int64_t left = place;
    for (int shift = bits - from->bits; shift >= 0; shift -= from->bits) {
        TESS_TRY(from->count_bins(from, prefix, shift));
        prefix = prefix << from->bits | (uint64_t)bin_of(from, &left);
    }
    *value = value_of(from, prefix);
    if (!next) return TESS_OK;
    *next = *value;
    int64_t bin = (int64_t)(prefix & (uint64_t)(bins - 1));
    if (left + 1 < from->bins[bin] || place + 1 >= from->count) return TESS_OK;
    while (++bin < bins)
        if (from->bins[bin] > 0) {
            *next = value_of(from, (prefix & ~(uint64_t)(bins - 1)) | (uint64_t)bin);
            return TESS_OK;
        }
    TESS_TRY(select_pair(from, place + 1, next, NULL));
cleanup:
    return status;
}

/* Collective. */
static tess_status median(row_values *from, double *value)
{
    tess_status status = TESS_OK;
    double low, high;
    TESS_TRY(select_pair(from, (from->count - 1) / 2, &low, &high));
    *value = from->count % 2 ? low : 0.5 * (low + high);
cleanup:
    return status;
}

static int64_t count_pixels(const row_pixels *rows)
{
    int64_t count = 0;
#pragma omp parallel for schedule(static) reduction(+ : count) num_threads(rows->threads)
    for (int64_t k = 0; k < rows->count; ++k)
        count += counts(rows, k);
    return count;
}

tess_status row_values_deviation(row_values *from, double *middle, double *deviation)
{
    tess_status status = TESS_OK;
    *middle = *deviation = 0;
    from->distances = false;
    if (from->count == 0) return TESS_OK;
    TESS_TRY(median(from, middle));
    from->distances = true;
    from->centre = *middle;
    TESS_TRY(median(from, deviation));
cleanup:
    return status;
}

tess_status row_deviation(tess_comm *comm, const row_pixels *rows, double *middle,
                          double *deviation)
{
    tess_status status = TESS_OK;
    pixels all = {.comm = comm, .rows = rows};
    row_values from = {.is_double = rows->is_double,
                       .bits = BITS,
                       .count_bins = count_pixel_bins,
                       .context = &all};
    from.bins = all.bins = tess_alloc((int64_t)rows->threads * BINS, sizeof *all.bins);
    TESS_TRY(tess_comm_agree(comm, all.bins ? TESS_OK : TESS_ERR_ALLOC));
    from.count = count_pixels(rows);
    TESS_TRY(tess_comm_allreduce_i64(comm, &from.count, 1, TESS_SUM));
    TESS_TRY(row_values_deviation(&from, middle, deviation));
cleanup:
    tess_free(all.bins);
    return status;
}
