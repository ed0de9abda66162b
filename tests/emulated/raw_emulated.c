/* raw_device.h in host memory; see device_emulated.c. */
#include "raw_device.h"

#include <math.h>
#include <string.h>

#include "device_emulated.h"
#include "raw_sample.h"

static unsigned long long bits_of(double value)
{
    unsigned long long bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void put(const void *array, bool is_double, int64_t at, double value)
{
    void *to;
    memcpy(&to, &array, sizeof to);
    if (is_double)
        ((double *)to)[at] = value;
    else
        ((float *)to)[at] = (float)value;
}

static double stored(bool is_double, double weight)
{
    return is_double ? weight : (double)(float)weight;
}

static void note_vis(bool is_double, double part, raw_sums *sums)
{
    const unsigned long long bits = bits_of(fabs(stored(is_double, part)));
    if (bits > sums->vis_max_bits) sums->vis_max_bits = bits;
}

static void add(const raw_recipe *recipe, const raw_row *at,
                const double weight[RAW_MAX_POL], int num_weight, int64_t chan,
                bool is_double, raw_sums *sums, unsigned long long *good_of_chan)
{
    bool unlike = false;
    const double inv = recipe->inv_lambda[chan], *uvw_m = at->uvw_m;
    const double w = fabs(uvw_m[2]) * inv;
    const double length2 =
        (uvw_m[0] * uvw_m[0] + uvw_m[1] * uvw_m[1] + uvw_m[2] * uvw_m[2]) * inv * inv;
    ++sums->good;
    ++good_of_chan[recipe->chan_base + chan];
    if (bits_of(w) < sums->w_min_bits) sums->w_min_bits = bits_of(w);
    if (bits_of(w) > sums->w_max_bits) sums->w_max_bits = bits_of(w);
    if (bits_of(length2) > sums->uvw2_max_bits) sums->uvw2_max_bits = bits_of(length2);
    for (int p = 0; p < num_weight; ++p) {
        const unsigned long long bits = bits_of(stored(is_double, weight[p]));
        if (bits > sums->weight_max_bits) sums->weight_max_bits = bits;
        sums->weight[p] += stored(is_double, weight[p]);
        unlike = unlike || stored(is_double, weight[p]) != stored(is_double, weight[0]);
    }
    sums->unlike += unlike;
}

static void note_beyond(const raw_recipe *recipe, const raw_row *at, int64_t chan,
                        raw_sums *sums)
{
    const unsigned long long bits =
        bits_of(uv_range_reach(at->uvw_m, recipe->inv_lambda[chan]));
    if (bits > sums->beyond_bits) sums->beyond_bits = bits;
}

static void put_row(const raw_recipe *recipe, const tess_device_samples *to,
                    int64_t row, int64_t first, const raw_row *at,
                    const unsigned char *bytes)
{
    const int32_t chans = (int32_t)recipe->num_chan;
    for (int k = 0; k < 3; ++k)
        put(to->uvw_m, true, 3 * row + k, at->uvw_m[k]);
    memcpy((void *)(uintptr_t)(to->chan_base + row), &recipe->chan_base, sizeof chans);
    memcpy((void *)(uintptr_t)(to->num_chan + row), &chans, sizeof chans);
    memcpy((void *)(uintptr_t)(to->vis_first + row), &first, sizeof first);
    if (!to->origin) return;
    const int32_t origin = raw_origin_of(recipe, at, bytes);
    memcpy((void *)(uintptr_t)(to->origin + row), &origin, sizeof origin);
}

static unsigned char *bytes_of(const raw_recipe *recipe, const raw_rows *rows,
                               int64_t row)
{
    return (unsigned char *)rows->bytes + row * recipe->row_bytes;
}

tess_status raw_decode(const raw_recipe *recipe, const raw_rows *rows,
                       const tess_device_samples *to, raw_sums *sums,
                       unsigned long long *good_of_chan)
{
    tess_status status = TESS_OK;
    const bool shared = to->num_weight == 1;
    if (!device_emulated_enqueues(&status)) return status;
    for (int64_t row = 0; row < rows->num_rows; ++row) {
        const unsigned char *bytes = bytes_of(recipe, rows, row);
        const raw_row at = raw_row_of(recipe, bytes);
        const int64_t first = rows->vis_at + row * recipe->num_chan;
        const unsigned long long r = (unsigned long long)(rows->row_at + row);
        if (!at.known && r < sums->bad_row) sums->bad_row = r;
        put_row(recipe, to, rows->row_at + row, first, &at, bytes);
        for (int64_t c = 0; c < recipe->num_chan; ++c) {
            const raw_place place = raw_place_of(recipe, &at, c);
            double weight[RAW_MAX_POL], smallest = INFINITY;
            int reason = -1, any = 0;
            for (int p = 0; p < recipe->num_pol; ++p) {
                const int64_t k = (first + c) * recipe->num_pol + p;
                const raw_sample value = raw_sample_of(recipe, &place, bytes, c, p);
                put(to->vis, to->is_double, 2 * k, value.re);
                put(to->vis, to->is_double, 2 * k + 1, value.im);
                note_vis(to->is_double, value.re, sums);
                note_vis(to->is_double, value.im, sums);
                if (!shared) put(to->weight, to->is_double, k, value.weight);
                weight[p] = value.weight;
                smallest = fmin(smallest, value.weight);
                if (reason < 0) reason = value.reason;
                any += value.reason < 0;
            }
            if (shared) {
                put(to->weight, to->is_double, first + c, smallest);
                weight[0] = smallest;
            }
            if (shared ? reason >= 0 : any == 0) {
                ++sums->ignored[reason];
                if (reason == TESS_IGNORED_BEYOND_UV) note_beyond(recipe, &at, c, sums);
            } else
                add(recipe, &at, weight, to->num_weight, c, to->is_double, sums,
                    good_of_chan);
        }
    }
    return TESS_OK;
}

tess_status raw_first_weights(const tess_device_samples *samples, void *first)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status)) return status;
    const int64_t n = samples->num_weight;
    for (int64_t k = 0; k < samples->num_vis; ++k)
        put(first, samples->is_double, k,
            samples->is_double ? ((const double *)samples->weight)[k * n]
                               : (double)((const float *)samples->weight)[k * n]);
    return TESS_OK;
}

tess_status raw_scale(const tess_device_samples *samples, double vis_factor,
                      double weight_factor)
{
    tess_status status = TESS_OK;
    const struct {
        const void *array;
        int64_t count;
        double factor;
    } part[] = {
        {samples->vis, 2 * samples->num_vis * samples->num_pol, vis_factor},
        {samples->weight, samples->num_vis * samples->num_weight, weight_factor}};
    if (!device_emulated_enqueues(&status)) return status;
    for (int j = 0; j < 2; ++j)
        for (int64_t k = 0; k < part[j].count; ++k)
            put(part[j].array, samples->is_double, k,
                part[j].factor * (samples->is_double
                                      ? ((const double *)part[j].array)[k]
                                      : (double)((const float *)part[j].array)[k]));
    return TESS_OK;
}

tess_status raw_add_frequencies(const tess_device_samples *samples, double *sum)
{
    tess_status status = TESS_OK;
    const int64_t n = samples->num_weight;
    if (!device_emulated_enqueues(&status)) return status;
    for (int64_t row = 0; row < samples->num_rows; ++row)
        for (int64_t k = 0; k < samples->num_chan[row] * n; ++k) {
            const int64_t at = samples->vis_first[row] * n + k;
            const double weight = samples->is_double
                                      ? ((const double *)samples->weight)[at]
                                      : (double)((const float *)samples->weight)[at];
            *sum += weight * samples->inv_lambda[samples->chan_base[row] + k / n];
        }
    return TESS_OK;
}

tess_status raw_positions(const raw_recipe *recipe, const raw_rows *rows,
                          double inv_min, double inv_max, const tess_device_samples *to,
                          raw_sums *sums)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status)) return status;
    for (int64_t row = 0; row < rows->num_rows; ++row) {
        const unsigned char *bytes = bytes_of(recipe, rows, row);
        const raw_row at = raw_row_of(recipe, bytes);
        const unsigned long long r = (unsigned long long)(rows->row_at + row);
        const double w_m = fabs(at.uvw_m[2]);
        if (!at.known && r < sums->bad_row) sums->bad_row = r;
        put_row(recipe, to, rows->row_at + row, rows->vis_at + row * recipe->num_chan,
                &at, bytes);
        if (bits_of(w_m * inv_min) < sums->w_min_bits)
            sums->w_min_bits = bits_of(w_m * inv_min);
        if (bits_of(w_m * inv_max) > sums->w_max_bits)
            sums->w_max_bits = bits_of(w_m * inv_max);
        if (at.reason != RAW_NO_POSITION)
            sums->good += (unsigned long long)recipe->num_chan;
    }
    return TESS_OK;
}

tess_status raw_encode(const raw_recipe *recipe, const raw_mixing *mixing,
                       const raw_rows *rows, const tess_device_samples *from)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status)) return status;
    const int n = mixing->num_stokes;
    for (int64_t k = 0; k < rows->num_rows * recipe->num_chan; ++k) {
        unsigned char *bytes = bytes_of(recipe, rows, k / recipe->num_chan);
        raw_row at;
        double vis[4][2];
        const bool somewhere = raw_position_of(recipe, bytes, &at);
        for (int j = 0; j < 2 * n; ++j) {
            const int64_t index = 2 * (rows->vis_at + k) * n + j;
            vis[j / 2][j % 2] = from->is_double
                                    ? ((const double *)from->vis)[index]
                                    : (double)((const float *)from->vis)[index];
        }
        raw_replace(recipe, mixing, somewhere ? &at : NULL, vis, k % recipe->num_chan,
                    bytes);
    }
    return TESS_OK;
}
