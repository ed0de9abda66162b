#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>

#include "info.h"
#include "tess_const.h"
#include "tess_mem.h"

/* Samples of one block read: some tens of MB. */
enum { BLOCK_SAMPLES = 1 << 22, MAX_BLOCK_ROWS = 1 << 16 };

/* ---- channels ---- */

static void widen(double low, double high, double *min, double *max)
{
    if (*max == 0 || low < *min) *min = low;
    if (*max == 0 || high > *max) *max = high;
}

/* A window descends when the channel after the first one has a lower frequency. */
static double signed_width(const tess_vis_segment *segment, int64_t first)
{
    const int64_t next = first + 1;
    const bool descends = next < segment->num_chan &&
                          segment->chan_spw[next] == segment->chan_spw[first] &&
                          segment->freq_hz[next] < segment->freq_hz[first];
    return descends ? -segment->chan_width_hz[first] : segment->chan_width_hz[first];
}

static tess_status add_segment(const tess_vis_segment *segment, int number,
                               int64_t *capacity, tess_info *info)
{
    tess_status status = TESS_OK;
    for (int64_t c = 0; c < segment->num_chan; ++c) {
        const double half = 0.5 * segment->chan_width_hz[c];
        const double low = segment->freq_hz[c] - half,
                     high = segment->freq_hz[c] + half;
        if (c == 0 || segment->chan_spw[c] != segment->chan_spw[c - 1]) {
            void *array = info->spw;
            if (tess_grow(&array, capacity, info->num_spw + 1, sizeof *info->spw))
                TESS_FAIL(TESS_ERR_ALLOC, "spectral windows");
            info->spw = array;
            info->spw[info->num_spw++] =
                (tess_info_spw){.spw = segment->chan_spw[c],
                                .segment = number,
                                .chan_first = c,
                                .chan_width_hz = signed_width(segment, c)};
        }
        tess_info_spw *spw = &info->spw[info->num_spw - 1];
        ++spw->num_chan;
        widen(low, high, &spw->freq_min_hz, &spw->freq_max_hz);
        widen(low, high, &info->freq_min_hz, &info->freq_max_hz);
    }
cleanup:
    return status;
}

/* ---- rows ---- */

/* Distinct time stamps, kept sorted: observations have thousands, rows come in runs. */
typedef struct time_list {
    double *time;
    int64_t count, capacity;
} time_list;

static tess_status add_time(time_list *list, double time)
{
    tess_status status = TESS_OK;
    enum { SAME_S_INVERSE = 1000 }; /* UVFITS keeps times to about a millisecond */
    const double slack = 1.0 / SAME_S_INVERSE;
    int64_t low = 0, high = list->count;
    if (high > 0 && time > list->time[high - 1] + slack) low = high;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (list->time[middle] < time - slack)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < list->count && fabs(list->time[low] - time) <= slack) goto cleanup;
    void *array = list->time;
    if (tess_grow(&array, &list->capacity, list->count + 1, sizeof *list->time))
        TESS_FAIL(TESS_ERR_ALLOC, "list of times");
    list->time = array;
    for (int64_t k = list->count; k > low; --k)
        list->time[k] = list->time[k - 1];
    list->time[low] = time;
    ++list->count;
cleanup:
    return status;
}

static void add_baseline(const double *uvw_m, double max_freq_hz, tess_info *info)
{
    const double uv = hypot(uvw_m[0], uvw_m[1]), length = hypot(uv, uvw_m[2]);
    const double per_m = max_freq_hz / TESS_SPEED_OF_LIGHT_M_S;
    if (!isfinite(length)) return;
    widen(length, length, &info->min_baseline_m, &info->max_baseline_m);
    info->max_uv_lambda = fmax(info->max_uv_lambda, uv * per_m);
    info->max_w_lambda = fmax(info->max_w_lambda, fabs(uvw_m[2]) * per_m);
}

static void count_samples(const tess_vis_block *block, tess_info *info)
{
    const int64_t samples = block->num_rows * block->num_chan * block->num_corr;
    info->samples += samples;
    for (int64_t k = 0; k < samples; ++k) {
        const float weight = block->weight[k];
        if (weight == TESS_WEIGHT_FLAGGED)
            ++info->flagged;
        else if (!isfinite(weight) || !isfinite(block->vis[2 * k]) ||
                 !isfinite(block->vis[2 * k + 1]))
            ++info->not_finite;
        else if (weight <= 0)
            ++info->weight_not_positive;
    }
}

static tess_status scan_block(const tess_vis_block *block, double max_freq_hz,
                              time_list *times, tess_info *info)
{
    tess_status status = TESS_OK;
    for (int64_t r = 0; r < block->num_rows; ++r) {
        const double time = block->time_mjd_s[r];
        if (isfinite(time) && (r == 0 || time != block->time_mjd_s[r - 1]))
            TESS_TRY(add_time(times, time));
        if (block->antenna1[r] == block->antenna2[r])
            ++info->num_auto;
        else
            add_baseline(block->uvw_m + 3 * r, max_freq_hz, info);
    }
    info->num_rows += block->num_rows;
cleanup:
    return status;
}

static tess_status scan_segment(tess_vis_reader *reader, int number, bool flags,
                                time_list *times, tess_info *info)
{
    tess_status status = TESS_OK;
    tess_vis_block block = {0};
    const tess_vis_segment *segment = &tess_vis_reader_meta(reader)->segment[number];
    double max_freq_hz = 0;
    for (int64_t c = 0; c < segment->num_chan; ++c)
        max_freq_hz = fmax(max_freq_hz, segment->freq_hz[c]);
    int64_t step = BLOCK_SAMPLES / (segment->num_chan * segment->num_corr + 1) + 1;
    if (step > MAX_BLOCK_ROWS) step = MAX_BLOCK_ROWS;
    for (int64_t row = 0; row < segment->num_rows; row += step) {
        const int64_t left = segment->num_rows - row;
        TESS_TRY(
            tess_vis_read(reader, number, row, left < step ? left : step, 1, &block));
        TESS_TRY(scan_block(&block, max_freq_hz, times, info));
        if (flags) count_samples(&block, info);
    }
cleanup:
    tess_vis_block_free(&block);
    return status;
}

/* ---- what to image ---- */

/* A pixel of 1/(5 max |uv|) puts some five pixels across the beam; the field is that
 * of the largest dish, or a few hundred beams where that is unknown or too much. */
static void suggest(const tess_vis_meta *meta, tess_info *info)
{
    enum {
        PIXELS_PER_BEAM = 5,
        VLBI_SIZE = 512,
        USUAL_SIZE = 1024,
        MAX_SIZE = 4096,
        STEP = 256
    };
    const double vlbi_m = 300e3; /* beyond it the dish's field is never filled */
    if (!(info->max_uv_lambda > 0)) return;
    double diameter = 0;
    for (int k = 0; k < meta->num_antennas; ++k)
        diameter = fmax(diameter, meta->antenna[k].diameter_m);
    const double scale = 1 / (PIXELS_PER_BEAM * info->max_uv_lambda);
    double size = USUAL_SIZE;
    if (info->max_baseline_m > vlbi_m)
        size = VLBI_SIZE;
    else if (diameter > 0 && info->freq_min_hz > 0) {
        const double wavelength = TESS_SPEED_OF_LIGHT_M_S / info->freq_min_hz;
        size = STEP * ceil(1.2 * wavelength / diameter / scale / STEP);
    }
    size = fmin(size, MAX_SIZE);
    size = fmin(size, 2 * floor(1 / scale)); /* the horizon */
    if (size < 2) return;
    /* two digits are enough of a hint */
    const double unit = pow(10, floor(log10(scale / TESS_RAD_PER_ASEC)) - 1);
    info->scale_rad =
        fmax(1, floor(scale / TESS_RAD_PER_ASEC / unit)) * unit * TESS_RAD_PER_ASEC;
    info->size = (int64_t)size;
}

tess_status tess_info_scan(tess_vis_reader *reader, bool flags, tess_info *info)
{
    tess_status status = TESS_OK;
    const tess_vis_meta *meta = tess_vis_reader_meta(reader);
    time_list times = {0};
    int64_t capacity = 0;
    info->has_flags = flags;
    for (int s = 0; s < meta->num_segments; ++s) {
        TESS_TRY(add_segment(&meta->segment[s], s, &capacity, info));
        TESS_TRY(scan_segment(reader, s, flags, &times, info));
    }
    info->num_times = times.count;
    if (times.count > 0) {
        /* time stamps are centres of integrations */
        const double half = 0.5 * meta->integration_s;
        info->time_start_mjd_s = times.time[0] - half;
        info->time_end_mjd_s = times.time[times.count - 1] + half;
    }
    suggest(meta, info);
cleanup:
    tess_free(times.time);
    return status;
}

void tess_info_free(tess_info *info)
{
    tess_free(info->spw);
    *info = (tess_info){0};
}
