/* Divides samples among images: by output channels and intervals of time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output_table.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_real.h"
#include "tess_samples.h"
#include "tess_select.h"
#include "tess_words.h"

/* Frequencies that are divided into outputs [out_first, + num_out): this many of them,
 * in ascending order, and the output of each. */
typedef struct band {
    const double *freq_hz;
    int32_t *out_of;
    int64_t num_freq;
    int64_t out_first, num_out;
} band;

/* The distance of a frequency from the one below it. */
typedef struct gap {
    double width_hz;
    int64_t at;
} gap;

/* Larger gaps come first, and of equal ones those of higher frequencies, as in WSClean.
 */
static int by_width(const void *a, const void *b)
{
    const gap *one = a, *other = b;
    if (one->width_hz < other->width_hz || one->width_hz > other->width_hz)
        return one->width_hz < other->width_hz ? 1 : -1;
    return one->at < other->at ? 1 : -1;
}

/* Output k of a band begins at k n/N, rounded down, as in WSClean. */
static void deal_equally(const band *part)
{
    for (int64_t k = 0; k < part->num_freq; ++k)
        part->out_of[k] =
            (int32_t)(part->out_first + ((k + 1) * part->num_out - 1) / part->num_freq);
}

/* Outputs of a band part at its largest gaps. */
static tess_status deal_at_gaps(const band *part)
{
    tess_status status = TESS_OK;
    const int64_t num_gaps = part->num_freq - 1;
    gap *gaps = tess_alloc_zero(part->num_freq, sizeof *gaps);
    if (!gaps) TESS_FAIL(TESS_ERR_ALLOC, "gaps between channels");
    for (int64_t k = 0; k < num_gaps; ++k)
        gaps[k] = (gap){part->freq_hz[k + 1] - part->freq_hz[k], k + 1};
    qsort(gaps, (size_t)num_gaps, sizeof *gaps, by_width);
    for (int64_t k = 0; k < part->num_freq; ++k) {
        part->out_of[k] = (int32_t)part->out_first;
        for (int64_t g = 0; g < part->num_out - 1; ++g)
            part->out_of[k] += gaps[g].at <= k;
    }
cleanup:
    tess_free(gaps);
    return status;
}

static tess_status deal_band(const band *part, bool at_gaps)
{
    tess_status status = TESS_OK;
    if (part->num_out > part->num_freq || part->num_out == 0)
        TESS_FAIL(
            TESS_ERR_USAGE,
            "--channel-division-frequencies: a part of the band has %lld "
            "channel%s for %lld of the output channels; change the frequencies or "
            "--channels-out",
            (long long)part->num_freq, part->num_freq == 1 ? "" : "s",
            (long long)part->num_out);
    if (at_gaps) return deal_at_gaps(part);
    deal_equally(part);
cleanup:
    return status;
}

/* Divides n frequencies, in ascending order. The parts of the band between the given
 * frequencies get outputs [g N/G, (g + 1) N/G), as in WSClean. */
static tess_status deal_bands(const tess_channel_division *division,
                              const double *freq_hz, int64_t n, int64_t num_out,
                              int32_t *out_of)
{
    tess_status status = TESS_OK;
    const int num_splits = division ? division->num_splits : 0;
    int64_t begin = 0, end;
    for (int g = 0; g <= num_splits; ++g, begin = end) {
        const int64_t first = num_out * g / (num_splits + 1);
        for (end = begin; end < n; ++end)
            if (g < num_splits && freq_hz[end] >= division->split_hz[g]) break;
        const band part = {.freq_hz = freq_hz + begin,
                           .out_of = out_of + begin,
                           .num_freq = end - begin,
                           .out_first = first,
                           .num_out = num_out * (g + 1) / (num_splits + 1) - first};
        TESS_TRY(deal_band(&part, division && division->at_gaps));
    }
cleanup:
    return status;
}

/* Channels of an axis are output channels. */
static tess_status take_axis(const tess_source_info *info, output_table *outputs)
{
    tess_status status = TESS_OK;
    outputs->num_chan = info->num_chan;
    outputs->chan_output = tess_alloc(info->num_chan, sizeof(int32_t));
    if (!outputs->chan_output) TESS_FAIL(TESS_ERR_ALLOC, "channels");
    memcpy(outputs->chan_output, info->axis->of_chan,
           (size_t)info->num_chan * sizeof(int32_t));
cleanup:
    return status;
}

/* Divides the frequencies of all observations into output channels. */
static tess_status deal_channels(const tess_source_info *info,
                                 const tess_channel_division *division,
                                 output_table *outputs)
{
    tess_status status = TESS_OK;
    const int64_t out = outputs->num_channels;
    double *freq_hz = tess_alloc(info->num_chan, sizeof *freq_hz);
    int32_t *out_of = tess_alloc_zero(info->num_chan, sizeof *out_of);
    outputs->num_chan = info->num_chan;
    outputs->chan_output = tess_alloc_zero(info->num_chan, sizeof(int32_t));
    if (!freq_hz || !out_of || !outputs->chan_output)
        TESS_FAIL(TESS_ERR_ALLOC, "channels");
    memcpy(freq_hz, info->freq_hz, (size_t)info->num_chan * sizeof *freq_hz);
    const int64_t n = tess_select_distinct(freq_hz, info->num_chan, 0);
    if (out > n)
        TESS_FAIL(TESS_ERR_USAGE, "--channels-out %lld: there %s only %lld channel%s",
                  (long long)out, n == 1 ? "is" : "are", (long long)n,
                  n == 1 ? "" : "s");
    TESS_TRY(deal_bands(division, freq_hz, n, out, out_of));
    for (int64_t k = 0; k < info->num_chan; ++k) {
        const double *at = bsearch(&info->freq_hz[k], freq_hz, (size_t)n,
                                   sizeof *freq_hz, tess_select_order);
        outputs->chan_output[k] = out_of[at - freq_hz];
    }
cleanup:
    tess_free(freq_hz);
    tess_free(out_of);
    return status;
}

/* Finds the times at which the intervals begin: each has the same number of
 * integrations. */
static tess_status deal_times(tess_source *source, const tess_selection *selection,
                              output_table *outputs)
{
    tess_status status = TESS_OK;
    const int64_t intervals = outputs->num_intervals, begin = selection->interval_first;
    int64_t end = selection->interval_end, count = 0;
    double *times = NULL;
    char range[48];
    outputs->interval_begin[0] = -INFINITY;
    outputs->interval_begin[intervals] = INFINITY;
    const tess_source_info *info = tess_source_info_of(source);
    const double half_s =
        0.5 *
        info->meta->integration_s; /* times are those of the middle of an integration */
    outputs->interval_span[0] = info->time_first - half_s;
    outputs->interval_span[1] = info->time_end + half_s;
    if (intervals == 1 && begin == 0 && end == 0) return TESS_OK;
    TESS_TRY(tess_source_times(source, &times, &count));
    if (end == 0 || end > count) end = count;
    if (begin >= end) {
        tess_words_range(begin, selection->interval_end, range, sizeof range);
        TESS_FAIL(TESS_ERR_USAGE,
                  "--intervals %s do not exist; there %s %lld integration%s", range,
                  count == 1 ? "is" : "are", (long long)count, count == 1 ? "" : "s");
    }
    if (intervals > end - begin)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--intervals-out %lld: there %s only %lld integration%s",
                  (long long)intervals, end - begin == 1 ? "is" : "are",
                  (long long)(end - begin), end - begin == 1 ? "" : "s");
    for (int64_t k = 0; k <= intervals; ++k) {
        const int64_t at = begin + (end - begin) * k / intervals;
        /* half a millisecond earlier, because times in files are rounded */
        outputs->interval_begin[k] = at < count ? times[at] - 5e-4 : (double)INFINITY;
        if (k < intervals) outputs->interval_span[2 * k] = times[at] - half_s;
        if (k > 0) outputs->interval_span[2 * k - 1] = times[at - 1] + half_s;
    }
cleanup:
    tess_free(times);
    return status;
}

/* Finds the range of the channels of each output channel, so that a cube of many
 * channels does not look at all of them for each. */
static void find_ranges(output_table *outputs)
{
    for (int64_t k = 0; k < outputs->num_chan; ++k) {
        if (outputs->chan_output[k] < 0) continue;
        int64_t *range = &outputs->chan_range[2 * outputs->chan_output[k]];
        if (range[1] == 0) range[0] = k;
        range[1] = k + 1;
    }
}

static tess_status allocate(output_table *outputs)
{
    tess_status status = TESS_OK;
    const int64_t intervals = outputs->num_intervals;
    outputs->chan_range =
        tess_alloc_zero(2 * outputs->num_channels, sizeof *outputs->chan_range);
    outputs->interval_begin =
        tess_alloc(intervals + 1, sizeof *outputs->interval_begin);
    outputs->interval_span = tess_alloc_zero(2 * intervals, sizeof(double));
    outputs->extent = tess_alloc(outputs->num, sizeof *outputs->extent);
    outputs->num_held = tess_alloc_zero(outputs->num, sizeof *outputs->num_held);
    if (!outputs->interval_begin || !outputs->interval_span || !outputs->extent ||
        !outputs->num_held || !outputs->chan_range)
        TESS_FAIL(TESS_ERR_ALLOC, "list of %lld images", (long long)outputs->num);
    find_ranges(outputs);
    for (int64_t k = 0; k < outputs->num; ++k)
        outputs->extent[k] = imager_extent_empty();
cleanup:
    return status;
}

tess_status output_table_create(tess_comm *comm, tess_source *source,
                                const tess_selection *selection, int64_t num_channels,
                                int64_t num_intervals,
                                const tess_channel_division *division,
                                output_table *outputs)
{
    tess_status status = TESS_OK;
    *outputs = (output_table){.num_channels = num_channels,
                              .num_intervals = num_intervals,
                              .num = num_channels * num_intervals};
    const tess_source_info *info = tess_source_info_of(source);
    status =
        info->axis ? take_axis(info, outputs) : deal_channels(info, division, outputs);
    if (status == TESS_OK) status = allocate(outputs);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(deal_times(source, selection, outputs));
cleanup:
    return status;
}

void output_table_free(output_table *outputs)
{
    tess_free(outputs->chan_output);
    tess_free(outputs->chan_range);
    tess_free(outputs->interval_begin);
    tess_free(outputs->interval_span);
    tess_free(outputs->extent);
    tess_free(outputs->num_held);
    *outputs = (output_table){0};
}

int64_t output_table_interval(const output_table *outputs, double time)
{
    const double *begin = outputs->interval_begin;
    int64_t low = 0, high = outputs->num_intervals;
    if (!(time >= begin[0]) || !(time < begin[high])) return -1;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        *(time >= begin[middle] ? &low : &high) = middle;
    }
    return low;
}

int64_t output_table_of(const output_table *outputs, double time, int64_t chan)
{
    const int64_t interval = output_table_interval(outputs, time);
    return interval < 0 ? -1
                        : interval * outputs->num_channels + outputs->chan_output[chan];
}

/* The end of the channels of a row, from `begin` on, that belong to one output channel
 * without a gap. */
static int32_t stretch_end(const output_table *outputs, const tess_samples *samples,
                           int64_t row, int32_t begin)
{
    const int32_t num = samples->num_chan[row];
    const int32_t *output = outputs->chan_output + samples->chan_base[row];
    int32_t end = begin + 1;
    if (outputs->num_channels == 1) return num;
    while (end < num && output[end] == output[begin])
        ++end;
    return end;
}

/* ---- survey ---- */

/* What one thread has found in the survey. */
typedef struct found {
    imager_extent *extent; /* [num] */
    int64_t *num_held;     /* [num] */
} found;

static void survey_row(const output_table *outputs, const tess_samples *samples,
                       int64_t row, int64_t interval, const double *freq_hz, found *own)
{
    for (int32_t begin = 0, end; begin < samples->num_chan[row]; begin = end) {
        end = stretch_end(outputs, samples, row, begin);
        const int64_t output = interval * outputs->num_channels +
                               outputs->chan_output[samples->chan_base[row] + begin];
        own->num_held[output] += end - begin;
        imager_extent_add_row(samples, freq_hz, true, row, begin, end,
                              &own->extent[output]);
    }
}

tess_status output_table_add(output_table *outputs, const tess_samples *samples,
                             const double *row_time, const double *freq_hz, int threads)
{
    tess_status status = TESS_OK;
    bool complete = true;
#pragma omp parallel num_threads(threads)
    {
        found own = {tess_alloc(outputs->num, sizeof *own.extent),
                     tess_alloc_zero(outputs->num, sizeof *own.num_held)};
        const bool ready = own.extent && own.num_held;
        for (int64_t k = 0; ready && k < outputs->num; ++k)
            own.extent[k] = imager_extent_empty();
#pragma omp for schedule(static) nowait
        for (int64_t row = 0; row < samples->num_rows; ++row) {
            const int64_t k =
                row_time ? output_table_interval(outputs, row_time[row]) : 0;
            if (ready && k >= 0) survey_row(outputs, samples, row, k, freq_hz, &own);
        }
#pragma omp critical(tess_imager_outputs)
        {
            for (int64_t k = 0; ready && k < outputs->num; ++k) {
                imager_extent_join(&outputs->extent[k], &own.extent[k]);
                outputs->num_held[k] += own.num_held[k];
            }
            complete = complete && ready;
        }
        tess_free(own.extent);
        tess_free(own.num_held);
    }
    if (!complete)
        TESS_FAIL(TESS_ERR_ALLOC, "survey of %lld images", (long long)outputs->num);
cleanup:
    return status;
}

tess_status output_table_sum(tess_comm *comm, output_table *outputs)
{
    return imager_extent_sum(comm, outputs->extent, outputs->num);
}

/* Writes the number of an output like "t0001-0003", as file names have it; "" for the
 * only output. */
static void output_name(const output_table *outputs, int64_t output, char text[64])
{
    const int64_t channels = outputs->num_channels;
    const bool has_time = outputs->num_intervals > 1, has_channel = channels > 1;
    char time[24] = "", channel[24] = "";
    if (has_time)
        snprintf(time, sizeof time, "t%04lld", (long long)(output / channels));
    if (has_channel)
        snprintf(channel, sizeof channel, "%04lld", (long long)(output % channels));
    snprintf(text, 64, "%s%s%s", time, has_time && has_channel ? "-" : "", channel);
}

/* The end of the outputs, from `first` on without a gap, that all have visibilities, or
 * all have none. */
static int64_t like_until(const output_table *outputs, int64_t first)
{
    int64_t end = first + 1;
    while (end < outputs->num &&
           (outputs->extent[end].num_vis == 0) == (outputs->extent[first].num_vis == 0))
        ++end;
    return end;
}

void output_table_warn(const output_table *outputs)
{
    enum { MOST_STRETCHES = 8 };
    char list[MOST_STRETCHES * 160 + 8] = "", first[64], last[64];
    int64_t empty = 0, stretches = 0;
    for (int64_t k = 0, end; k < outputs->num; k = end) {
        end = like_until(outputs, k);
        if (outputs->extent[k].num_vis > 0) continue;
        const size_t used = strlen(list);
        empty += end - k;
        if (stretches++ >= MOST_STRETCHES) continue;
        output_name(outputs, k, first);
        output_name(outputs, end - 1, last);
        snprintf(list + used, sizeof list - used, "%s%s%s%s", used > 0 ? ", " : "",
                 first, end - k > 1 ? " to " : "", end - k > 1 ? last : "");
    }
    if (empty > 0)
        tess_log_warn(
            "no usable visibilities in %lld of %lld outputs, whose pixels are "
            "NaN: %s%s",
            (long long)empty, (long long)outputs->num, list,
            stretches > MOST_STRETCHES ? ", ..." : "");
}

imager_extent output_table_union(const output_table *outputs)
{
    imager_extent total = imager_extent_empty();
    int64_t filled = 0;
    double span = INFINITY;
    for (int64_t k = 0; k < outputs->num; ++k) {
        const imager_extent *extent = &outputs->extent[k];
        if (extent->num_vis == 0) continue;
        imager_extent_join(&total, extent);
        span = fmin(span, extent->w_max_lambda - extent->w_min_lambda);
        ++filled;
    }
    if (filled > 0) {
        total.num_vis = (total.num_vis + filled - 1) / filled;
        total.w_span_lambda = span;
    }
    return total;
}

/* ---- choosing ---- */

/* Copies one stretch of a row's channels as a row of its own. */
static tess_status copy_stretch(const tess_samples *from, int64_t row, int32_t begin,
                                int32_t end, tess_samples *out)
{
    tess_status status = TESS_OK;
    const int64_t at = out->num_rows, n = end - begin;
    const int64_t element = from->is_double ? 8 : 4;
    const int64_t vis = 2 * element * from->num_pol,
                  weight = element * from->num_weight;
    const int64_t first = from->vis_first[row] + begin;
    TESS_TRY(tess_samples_reserve(out, at + 1, out->num_vis + n));
    memcpy(out->uvw_m + 3 * at, from->uvw_m + 3 * row, 3 * sizeof(double));
    out->chan_base[at] = from->chan_base[row] + begin;
    out->num_chan[at] = (int32_t)n;
    out->vis_first[at] = out->num_vis;
    if (out->origins) out->origin[at] = from->origin[row];
    memcpy((char *)out->vis + out->num_vis * vis, (const char *)from->vis + first * vis,
           (size_t)(n * vis));
    memcpy((char *)out->weight + out->num_vis * weight,
           (const char *)from->weight + first * weight, (size_t)(n * weight));
    out->num_vis += n;
    ++out->num_rows;
cleanup:
    return status;
}

/* Finds the next channels without a gap, from `begin` of `row` on, that belong to an
 * output. Returns false if no row below `end_row` has such channels. */
typedef struct stretch {
    int64_t row;
    int32_t begin, end;
} stretch;

static bool next_stretch(const output_table *outputs, int64_t output,
                         const tess_samples *from, const double *row_time,
                         int64_t end_row, stretch *at)
{
    const int64_t interval = output / outputs->num_channels;
    const int64_t channel = output % outputs->num_channels;
    for (at->begin = at->end; at->row < end_row; ++at->row, at->begin = 0) {
        const int64_t row = at->row;
        if (row_time && output_table_interval(outputs, row_time[row]) != interval)
            continue;
        for (; at->begin < from->num_chan[row]; at->begin = at->end) {
            at->end = stretch_end(outputs, from, row, at->begin);
            if (outputs->chan_output[from->chan_base[row] + at->begin] == channel)
                return true;
        }
    }
    return false;
}

tess_status output_table_choose_rows(const output_table *outputs, int64_t output,
                                     const tess_samples *from, const double *row_time,
                                     tess_samples *out)
{
    tess_status status = TESS_OK;
    stretch at = {0};
    while (next_stretch(outputs, output, from, row_time, from->num_rows, &at))
        TESS_TRY(copy_stretch(from, at.row, at.begin, at.end, out));
cleanup:
    return status;
}

/* The channels of a row, from `begin` on, that belong to outputs [first, end) without a
 * gap; `row_output` is the number of the first output of the row's interval. */
static bool next_in_range(const output_table *outputs, const tess_samples *from,
                          int64_t row, int64_t row_output, int64_t first, int64_t end,
                          stretch *at)
{
    const int32_t *output = outputs->chan_output + from->chan_base[row];
    const int32_t num = from->num_chan[row];
    const int64_t low = first - row_output, high = end - row_output;
    for (at->begin = at->end; at->begin < num; ++at->begin)
        if (output[at->begin] >= low && output[at->begin] >= 0 &&
            output[at->begin] < high)
            break;
    at->end = at->begin;
    while (at->end < num && output[at->end] >= low && output[at->end] >= 0 &&
           output[at->end] < high)
        ++at->end;
    return at->begin < num;
}

tess_status output_table_choose_range(const output_table *outputs, int64_t first,
                                      int64_t end, const tess_samples *from,
                                      const double *row_time, tess_samples *out,
                                      double **out_time)
{
    tess_status status = TESS_OK;
    int64_t capacity = *out_time ? out->num_rows : 0;
    for (int64_t row = 0; row < from->num_rows; ++row) {
        const int64_t interval = output_table_interval(outputs, row_time[row]);
        stretch at = {0};
        while (interval >= 0 &&
               next_in_range(outputs, from, row, interval * outputs->num_channels,
                             first, end, &at)) {
            TESS_TRY(copy_stretch(from, row, at.begin, at.end, out));
            if (tess_grow((void **)out_time, &capacity, out->num_rows,
                          sizeof **out_time))
                TESS_FAIL(TESS_ERR_ALLOC, "times of rows");
            (*out_time)[out->num_rows - 1] = row_time[row];
        }
    }
cleanup:
    return status;
}

void output_table_put_back(const output_table *outputs, int64_t output,
                           const tess_samples *chosen, const double *row_time,
                           double factor, tess_samples *to)
{
    const int64_t values = 2 * (int64_t)to->num_pol;
    int64_t taken = 0;
    stretch at = {0};
    while (next_stretch(outputs, output, to, row_time, to->num_rows, &at)) {
        const int64_t first = (to->vis_first[at.row] + at.begin) * values;
        const int64_t count = (at.end - at.begin) * values;
        for (int64_t k = 0; k < count; ++k)
            tess_real_set(to->vis, to->is_double, first + k,
                          factor * tess_real_at(chosen->vis, to->is_double, taken + k));
        taken += count;
    }
}

void output_table_band(const output_table *outputs, const tess_source_info *info,
                       int64_t channel, double *centre_hz, double *width_hz)
{
    double low = INFINITY, high = 0;
    if (info->axis) {
        channel_axis_band(info->axis, channel, centre_hz, width_hz);
        return;
    }
    const bool one = channel >= 0 && outputs->chan_range;
    const int64_t first = one ? outputs->chan_range[2 * channel] : 0;
    const int64_t end = one ? outputs->chan_range[2 * channel + 1] : outputs->num_chan;
    for (int64_t k = first; k < end; ++k) {
        if (channel >= 0 && outputs->chan_output[k] != channel) continue;
        low = fmin(low, info->freq_hz[k] - 0.5 * info->width_hz[k]);
        high = fmax(high, info->freq_hz[k] + 0.5 * info->width_hz[k]);
    }
    *centre_hz = 0.5 * (low + high);
    *width_hz = high - low;
}

void output_table_channels(const output_table *outputs, int64_t channel, bool *wanted)
{
    for (int64_t k = 0; k < outputs->num_chan; ++k)
        wanted[k] = outputs->chan_output[k] == channel;
}

int64_t output_table_most_vis(const output_table *outputs)
{
    int64_t most = 0;
    for (int64_t k = 0; k < outputs->num; ++k)
        if (outputs->extent[k].num_vis > most) most = outputs->extent[k].num_vis;
    return most;
}
