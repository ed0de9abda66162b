/* Allocates, scales and lists the arrays of prepared visibilities. */
#include "tess_samples.h"

#include <string.h>

#include "locate.h"
#include "tess_mem.h"

static int64_t element_size(const tess_samples *samples)
{
    return samples->is_double ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
}

tess_samples tess_samples_like(const tess_samples *samples)
{
    return (tess_samples){.is_double = samples->is_double,
                          .num_pol = samples->num_pol,
                          .num_weight = samples->num_weight,
                          .inv_lambda = samples->inv_lambda,
                          .origins = samples->origins};
}

/* Bytes of a row in `origin`. */
static int64_t origin_bytes(const tess_samples *samples)
{
    return samples->origins ? (int64_t)sizeof *samples->origin : 0;
}

int64_t tess_samples_row_bytes(const tess_samples *samples)
{
    return (int64_t)(3 * sizeof *samples->uvw_m + sizeof *samples->chan_base +
                     sizeof *samples->num_chan + sizeof *samples->vis_first) +
           origin_bytes(samples);
}

int64_t tess_samples_vis_bytes(const tess_samples *samples)
{
    return element_size(samples) * (2 * samples->num_pol + samples->num_weight);
}

void tess_samples_list(const tess_samples *samples,
                       tess_samples_part parts[TESS_SAMPLES_PARTS])
{
    const int64_t rows = samples->num_rows, vis = samples->num_vis;
    const int64_t element = element_size(samples);
    const tess_samples_part all[TESS_SAMPLES_PARTS] = {
        {samples->uvw_m, rows * 3 * (int64_t)sizeof *samples->uvw_m},
        {samples->chan_base, rows * (int64_t)sizeof *samples->chan_base},
        {samples->num_chan, rows * (int64_t)sizeof *samples->num_chan},
        {samples->vis_first, rows * (int64_t)sizeof *samples->vis_first},
        {samples->origin, rows * origin_bytes(samples)},
        {samples->vis, vis * 2 * element * samples->num_pol},
        {samples->weight, vis * element * samples->num_weight}};
    for (int k = 0; k < TESS_SAMPLES_PARTS; ++k)
        parts[k] = all[k];
}

tess_status tess_samples_check_rows(int64_t num_rows)
{
    tess_status status = TESS_OK;
    if (num_rows > INT32_MAX)
        TESS_FAIL(TESS_ERR_RESOURCE,
                  "%lld rows of visibilities on one rank, which can number %lld; use "
                  "more ranks, or a smaller --memory, with which data are read in "
                  "parts",
                  (long long)num_rows, (long long)INT32_MAX);
cleanup:
    return status;
}

static tess_status reserve_rows(tess_samples *samples, int64_t num_rows)
{
    tess_status status = TESS_OK;
    int64_t capacity[5] = {samples->capacity_rows, samples->capacity_rows,
                           samples->capacity_rows, samples->capacity_rows,
                           samples->capacity_rows};
    if (tess_grow((void **)&samples->uvw_m, &capacity[0], num_rows,
                  3 * sizeof(double)) ||
        tess_grow((void **)&samples->chan_base, &capacity[1], num_rows,
                  sizeof(int32_t)) ||
        tess_grow((void **)&samples->num_chan, &capacity[2], num_rows,
                  sizeof(int32_t)) ||
        tess_grow((void **)&samples->vis_first, &capacity[3], num_rows,
                  sizeof(int64_t)) ||
        (samples->origins &&
         tess_grow((void **)&samples->origin, &capacity[4], num_rows, sizeof(int32_t))))
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for %lld rows of visibilities",
                  (long long)num_rows);
    samples->capacity_rows = capacity[3];
cleanup:
    return status;
}

tess_status tess_samples_reserve(tess_samples *samples, int64_t num_rows,
                                 int64_t num_vis)
{
    tess_status status = TESS_OK;
    const size_t element = (size_t)element_size(samples);
    int64_t vis = samples->capacity_vis, weight = samples->capacity_vis;
    TESS_TRY(tess_samples_check_rows(num_rows));
    if (num_rows > samples->capacity_rows) TESS_TRY(reserve_rows(samples, num_rows));
    if (tess_grow(&samples->vis, &vis, num_vis,
                  2 * element * (size_t)samples->num_pol) ||
        tess_grow(&samples->weight, &weight, num_vis,
                  element * (size_t)samples->num_weight))
        TESS_FAIL(
            TESS_ERR_ALLOC, "no memory for %lld visibilities (%s)", (long long)num_vis,
            tess_mem_text((double)num_vis * (double)tess_samples_vis_bytes(samples)));
    samples->capacity_vis = weight;
cleanup:
    return status;
}

void tess_samples_free(tess_samples *samples)
{
    tess_free(samples->uvw_m);
    tess_free(samples->chan_base);
    tess_free(samples->num_chan);
    tess_free(samples->vis_first);
    tess_free(samples->origin);
    tess_free(samples->vis);
    tess_free(samples->weight);
    if (samples->resident) samples->resident->release(samples->resident);
    memset(samples, 0, sizeof *samples);
}

static void multiply(void *array, bool is_double, int64_t count, double factor,
                     int num_threads)
{
    double *full = array;
    float *single = array;
    if (factor == 1) return;
#pragma omp parallel for num_threads(num_threads) schedule(static)
    for (int64_t k = 0; k < count; ++k)
        if (is_double)
            full[k] *= factor;
        else /* the factor may be beyond single precision */
            single[k] = (float)((double)single[k] * factor);
}

tess_status tess_samples_scale(tess_samples *samples, double vis_factor,
                               double weight_factor, int num_threads)
{
    if (vis_factor == 1 && weight_factor == 1) return TESS_OK;
    if (samples->resident)
        return samples->resident->scale(samples->resident, vis_factor, weight_factor);
    multiply(samples->vis, samples->is_double, 2 * samples->num_vis * samples->num_pol,
             vis_factor, num_threads);
    multiply(samples->weight, samples->is_double,
             samples->num_vis * samples->num_weight, weight_factor, num_threads);
    return TESS_OK;
}

int32_t tess_samples_longest_row(const tess_samples *samples, int64_t row_first,
                                 int64_t row_end)
{
    int32_t most = 0;
    for (int64_t row = row_first; row < row_end; ++row)
        if (samples->num_chan[row] > most) most = samples->num_chan[row];
    return most;
}

bool tess_samples_in_order(const tess_samples *samples)
{
    int64_t first = INT64_MAX, end = 0, falls = 0, rises = 0;
    for (int64_t row = 0; row < samples->num_rows; ++row) {
        const int64_t base = samples->chan_base[row];
        if (samples->num_chan[row] == 0) continue;
        if (base < first) first = base;
        if (base + samples->num_chan[row] > end) end = base + samples->num_chan[row];
    }
    if (end == 0) return true; /* no channels */
    for (int64_t c = first + 1; c < end; ++c) {
        rises += samples->inv_lambda[c] > samples->inv_lambda[c - 1];
        falls += samples->inv_lambda[c] < samples->inv_lambda[c - 1];
    }
    return rises == 0 || falls == 0;
}

bool tess_samples_one_weight(const tess_samples *samples)
{
    const int n = samples->num_weight;
    if (n == 1) return true;
    for (int64_t k = 0; k < samples->num_vis * n; ++k)
        if (tess_samples_weight(samples, k) != tess_samples_weight(samples, k - k % n))
            return false;
    return true;
}
