/* Reads through an observation and collects its windows, times, baselines and flags,
 * for info_print.c to print. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"
#include "tess_const.h"
#include "tess_mem.h"

/* The samples that are read at a time take some tens of MB. */
enum { BLOCK_SAMPLES = 1 << 22, MAX_BLOCK_ROWS = 1 << 16 };

/* ---- channels ---- */

static void widen(double low, double high, double *min, double *max)
{
    if (*max == 0 || low < *min) *min = low;
    if (*max == 0 || high > *max) *max = high;
}

/* The width of a channel. It is negative if the next channel of the window has a lower
 * frequency. */
static double signed_width(const tess_vis_segment *segment, int64_t first)
{
    const int64_t next = first + 1;
    const bool descends = next < segment->num_chan &&
                          segment->chan_spw[next] == segment->chan_spw[first] &&
                          segment->freq_hz[next] < segment->freq_hz[first];
    return descends ? -segment->chan_width_hz[first] : segment->chan_width_hz[first];
}

/* Finds the window of these channels, which another field may have added before, or
 * adds it. */
static tess_status find_window(const tess_vis_segment *segment, int64_t first,
                               tess_info *info, int *found)
{
    tess_status status = TESS_OK;
    const size_t corr_bytes = (size_t)segment->num_corr * sizeof *segment->corr;
    for (int k = 0; k < info->num_spw; ++k) {
        const tess_info_spw *spw = &info->spw[k];
        if (spw->spw == segment->chan_spw[first] &&
            spw->num_corr == segment->num_corr &&
            memcmp(spw->corr, segment->corr, corr_bytes) == 0) {
            *found = k;
            return TESS_OK;
        }
    }
    void *array = info->spw;
    if (tess_grow(&array, &info->capacity_spw, info->num_spw + 1, sizeof *info->spw))
        TESS_FAIL(TESS_ERR_ALLOC, "spectral windows");
    info->spw = array;
    tess_info_spw *spw = &info->spw[info->num_spw];
    *spw = (tess_info_spw){.spw = segment->chan_spw[first],
                           .first_hz = segment->freq_hz[first],
                           .chan_width_hz = signed_width(segment, first),
                           .num_corr = segment->num_corr};
    memcpy(spw->corr, segment->corr, corr_bytes);
    *found = info->num_spw++;
cleanup:
    return status;
}

/* Finds the window of each channel of a segment, and adds the segment to each window.
 */
static tess_status add_channels(const tess_vis_segment *segment, int *window,
                                tess_info *info)
{
    tess_status status = TESS_OK;
    for (int64_t c = 0, first = 0; c < segment->num_chan; ++c) {
        const double half = 0.5 * segment->chan_width_hz[c];
        const double low = segment->freq_hz[c] - half,
                     high = segment->freq_hz[c] + half;
        if (c == 0 || segment->chan_spw[c] != segment->chan_spw[first]) {
            first = c;
            TESS_TRY(find_window(segment, c, info, &window[c]));
            info->spw[window[c]].num_rows += segment->num_rows;
        }
        window[c] = window[first];
        tess_info_spw *spw = &info->spw[window[c]];
        if (spw->num_chan < c - first + 1) spw->num_chan = c - first + 1;
        widen(low, high, &spw->freq_min_hz, &spw->freq_max_hz);
        widen(low, high, &info->freq_min_hz, &info->freq_max_hz);
    }
cleanup:
    return status;
}

/* ---- rows ---- */

/* Adds a time stamp to the sorted list, unless the list has it. The list is short, and
 * consecutive rows mostly have the same or a later time. */
static tess_status add_time(tess_info *info, double time)
{
    tess_status status = TESS_OK;
    enum { SAME_S_INVERSE = 1000 }; /* UVFITS stores times to about 1 ms */
    const double slack = 1.0 / SAME_S_INVERSE;
    int64_t low = 0, high = info->num_times;
    if (high > 0 && time > info->time[high - 1] + slack) low = high;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (info->time[middle] < time - slack)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < info->num_times && fabs(info->time[low] - time) <= slack) goto cleanup;
    void *array = info->time;
    if (tess_grow(&array, &info->capacity_times, info->num_times + 1,
                  sizeof *info->time))
        TESS_FAIL(TESS_ERR_ALLOC, "list of times");
    info->time = array;
    for (int64_t k = info->num_times; k > low; --k)
        info->time[k] = info->time[k - 1];
    info->time[low] = time;
    ++info->num_times;
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

static void count_sample(const float *vis, float weight, tess_info_samples *samples)
{
    ++samples->all;
    if (weight == TESS_WEIGHT_FLAGGED)
        ++samples->flagged;
    else if (!isfinite(weight) || !isfinite(vis[0]) || !isfinite(vis[1]))
        ++samples->not_finite;
    else if (weight <= 0)
        ++samples->weight_not_positive;
}

/* Counts the samples of a block in count[window]. */
static void count_samples(const tess_vis_block *block, const int *window,
                          tess_info_samples *count)
{
    for (int64_t r = 0; r < block->num_rows; ++r)
        for (int64_t c = 0; c < block->num_chan; ++c) {
            const int64_t first = (r * block->num_chan + c) * block->num_corr;
            for (int64_t k = first; k < first + block->num_corr; ++k)
                count_sample(block->vis + 2 * k, block->weight[k], &count[window[c]]);
        }
}

static tess_status scan_block(const tess_vis_block *block, double max_freq_hz,
                              tess_info *info)
{
    tess_status status = TESS_OK;
    for (int64_t r = 0; r < block->num_rows; ++r) {
        const double time = block->time_mjd_s[r];
        if (isfinite(time) && (r == 0 || time != block->time_mjd_s[r - 1]))
            TESS_TRY(add_time(info, time));
        if (block->antenna1[r] == block->antenna2[r])
            ++info->num_auto;
        else
            add_baseline(block->uvw_m + 3 * r, max_freq_hz, info);
    }
    info->num_rows += block->num_rows;
cleanup:
    return status;
}

/* Reads a segment in blocks. `count` is NULL, or has an element for each window. */
static tess_status scan_segment(tess_vis_reader *reader, int number, const int *window,
                                tess_info_samples *count, tess_info *info)
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
        TESS_TRY(scan_block(&block, max_freq_hz, info));
        if (count) count_samples(&block, window, count);
    }
cleanup:
    tess_vis_block_free(&block);
    return status;
}

/* ---- samples ---- */

static void add_samples(const tess_info_samples *more, tess_info_samples *to)
{
    to->all += more->all;
    to->flagged += more->flagged;
    to->weight_not_positive += more->weight_not_positive;
    to->not_finite += more->not_finite;
}

/* Adds the counts of each window to the total and, for a field >= 0, to that field. */
static tess_status add_counts(const tess_info_samples *count, int field,
                              tess_info *info)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < info->num_spw; ++k) {
        if (count[k].all == 0) continue;
        add_samples(&count[k], &info->samples);
        if (field < 0) continue;
        int at = 0;
        while (at < info->num_cells &&
               (info->cell[at].field != field || info->cell[at].spw != k))
            ++at;
        if (at == info->num_cells) {
            void *array = info->cell;
            if (tess_grow(&array, &info->capacity_cells, at + 1, sizeof *info->cell))
                TESS_FAIL(TESS_ERR_ALLOC, "fields and spectral windows");
            info->cell = array;
            info->cell[info->num_cells++] = (tess_info_cell){.field = field, .spw = k};
        }
        add_samples(&count[k], &info->cell[at].samples);
    }
cleanup:
    return status;
}

/* ---- what to image ---- */

/* Suggests a scale and a size. A pixel of 1/(5 max |uv|) puts about five pixels across
 * the beam. The image covers the field of view of the largest dish, or a few hundred
 * beams if that field is unknown or too large. */
static void suggest(const tess_vis_meta *meta, tess_info *info)
{
    enum {
        PIXELS_PER_BEAM = 5,
        VLBI_SIZE = 512,
        USUAL_SIZE = 1024,
        MAX_SIZE = 4096,
        STEP = 256
    };
    const double vlbi_m = 300e3; /* longer arrays cannot fill the dish's field */
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
    size = fmin(size, 2 * floor(1 / scale)); /* up to the horizon */
    if (size < 2) return;
    /* The suggested scale has two digits. */
    const double unit = pow(10, floor(log10(scale / TESS_RAD_PER_ASEC)) - 1);
    info->scale_rad =
        fmax(1, floor(scale / TESS_RAD_PER_ASEC / unit)) * unit * TESS_RAD_PER_ASEC;
    info->size = (int64_t)size;
}

static tess_status add_segment(tess_vis_reader *reader, int number, bool flags,
                               int field, tess_info *info)
{
    tess_status status = TESS_OK;
    const tess_vis_segment *segment = &tess_vis_reader_meta(reader)->segment[number];
    int *window = tess_alloc_zero(segment->num_chan, sizeof *window);
    tess_info_samples *count = NULL;
    if (!window) TESS_FAIL(TESS_ERR_ALLOC, "channels");
    TESS_TRY(add_channels(segment, window, info));
    if (flags) {
        count = tess_alloc_zero(info->num_spw, sizeof *count);
        if (!count) TESS_FAIL(TESS_ERR_ALLOC, "spectral windows");
    }
    TESS_TRY(scan_segment(reader, number, window, count, info));
    if (flags) TESS_TRY(add_counts(count, field, info));
cleanup:
    tess_free(window);
    tess_free(count);
    return status;
}

tess_status tess_info_add(tess_vis_reader *reader, bool flags, bool by_field,
                          tess_info *info)
{
    tess_status status = TESS_OK;
    const tess_vis_meta *meta = tess_vis_reader_meta(reader);
    const int field = by_field ? meta->field_selected : -1;
    info->has_flags = flags;
    info->num_rows_total = meta->num_rows_total;
    for (int s = 0; s < meta->num_segments; ++s)
        TESS_TRY(add_segment(reader, s, flags, field, info));
cleanup:
    return status;
}

void tess_info_finish(const tess_vis_meta *meta, tess_info *info)
{
    if (info->num_times > 0) {
        /* A time stamp is the centre of an integration. */
        const double half = 0.5 * meta->integration_s;
        info->time_start_mjd_s = info->time[0] - half;
        info->time_end_mjd_s = info->time[info->num_times - 1] + half;
    }
    suggest(meta, info);
}

void tess_info_free(tess_info *info)
{
    tess_free(info->spw);
    tess_free(info->cell);
    tess_free(info->time);
    *info = (tess_info){0};
}
