/* Parts the samples of a rank's slice by output, and takes those of an output. */
#include "sample_parts.h"

#include <string.h>

#include "tess_mem.h"

/* A block has no more samples than this, so that a core's cache holds it while it is
 * parted. Its rows are enough for each stretch to be many cache lines. */
enum { BLOCK_VIS = 1 << 16 };

/* ---- stretches ---- */

/* Counts the stretches of each output channel: count[num_channels]. */
static void count_stretches(const output_table *outputs, int64_t *count)
{
    for (int64_t k = 0; k < outputs->num_chan; ++k) {
        const int32_t channel = outputs->chan_output[k];
        if (channel >= 0 && (k == 0 || outputs->chan_output[k - 1] != channel))
            ++count[channel];
    }
}

static void list_stretches(const output_table *outputs, int64_t *next,
                           sample_parts *parts)
{
    for (int32_t k = 0, end; k < outputs->num_chan; k = end) {
        const int32_t channel = outputs->chan_output[k];
        end = k + 1;
        while (end < outputs->num_chan && outputs->chan_output[end] == channel)
            ++end;
        const int64_t number = channel < 0 ? -1 : next[channel]++;
        if (number >= 0) parts->stretch[number] = (channel_stretch){k, end};
        for (int32_t c = k; c < end; ++c)
            parts->table_stretch[c] = number;
    }
}

static tess_status find_stretches(const output_table *outputs, sample_parts *parts)
{
    tess_status status = TESS_OK;
    const int64_t channels = outputs->num_channels;
    int64_t *next = tess_alloc_zero(channels, sizeof *next), total = 0;
    parts->first_stretch = tess_alloc_zero(channels + 1, sizeof *parts->first_stretch);
    parts->table_stretch = tess_alloc(outputs->num_chan, sizeof *parts->table_stretch);
    if (!next || !parts->first_stretch || !parts->table_stretch)
        TESS_FAIL(TESS_ERR_ALLOC, "channels of %lld images", (long long)channels);
    count_stretches(outputs, next);
    for (int64_t k = 0; k < channels; ++k) {
        total += next[k];
        parts->first_stretch[k + 1] = total;
        next[k] = parts->first_stretch[k];
    }
    parts->stretch = tess_alloc(total, sizeof *parts->stretch);
    if (!parts->stretch) TESS_FAIL(TESS_ERR_ALLOC, "channels of images");
    list_stretches(outputs, next, parts);
cleanup:
    tess_free(next);
    return status;
}

/* The end of the stretch of a row's channels that begins at channel `begin`. Channels
 * of no output are stretches, too. */
static int32_t stretch_end(const sample_parts *parts, const tess_samples *samples,
                           int64_t row, int32_t begin)
{
    const int64_t *table = parts->table_stretch + samples->chan_base[row];
    int32_t end = begin + 1;
    while (end < samples->num_chan[row] && table[end] == table[begin])
        ++end;
    return end;
}

/* The first stretch of an output channel that ends behind channel `from` of the table.
 */
static int64_t first_behind(const sample_parts *parts, int64_t channel, int32_t from)
{
    int64_t low = parts->first_stretch[channel];
    int64_t high = parts->first_stretch[channel + 1];
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (parts->stretch[middle].end <= from)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- blocks ---- */

/* Whether an output channel has several stretches in the row. */
static bool is_mixed(const sample_parts *parts, const output_table *outputs,
                     const tess_samples *samples, int64_t row)
{
    const int32_t base = samples->chan_base[row], stop = base + samples->num_chan[row];
    for (int32_t c = base; c < stop;) {
        const int64_t number = parts->table_stretch[c];
        const int64_t end =
            number < 0 ? -1 : parts->first_stretch[outputs->chan_output[c] + 1];
        if (number + 1 < end && parts->stretch[number + 1].begin < stop) return true;
        c = number < 0 ? c + 1 : parts->stretch[number].end;
    }
    return false;
}

static bool same_channels(const tess_samples *samples, int64_t a, int64_t b)
{
    return samples->chan_base[a] == samples->chan_base[b] &&
           samples->num_chan[a] == samples->num_chan[b];
}

static tess_status add_block(sample_parts *parts, const sample_block *block)
{
    tess_status status = TESS_OK;
    if (tess_grow((void **)&parts->block, &parts->capacity, parts->num_blocks + 1,
                  sizeof *parts->block))
        TESS_FAIL(TESS_ERR_ALLOC, "samples of images");
    if (block->interval >= 0) {
        int64_t *first = &parts->first_block[block->interval];
        int64_t *end = &parts->end_block[block->interval];
        if (*end == 0) *first = parts->num_blocks;
        *end = parts->num_blocks + 1;
    }
    parts->block[parts->num_blocks++] = *block;
cleanup:
    return status;
}

static int64_t interval_of(const output_table *outputs, const double *row_time,
                           int64_t row)
{
    return row_time ? output_table_interval(outputs, row_time[row]) : 0;
}

static tess_status list_blocks(const output_table *outputs, const double *row_time,
                               const tess_samples *samples, sample_parts *parts)
{
    tess_status status = TESS_OK;
    bool mixed = false;
    const int64_t intervals = outputs->num_intervals;
    parts->first_block = tess_alloc_zero(intervals, sizeof *parts->first_block);
    parts->end_block = tess_alloc_zero(intervals, sizeof *parts->end_block);
    if (!parts->first_block || !parts->end_block)
        TESS_FAIL(TESS_ERR_ALLOC, "samples of intervals");
    for (int64_t row = 0, end; row < samples->num_rows; row = end) {
        const int64_t interval = interval_of(outputs, row_time, row);
        const int64_t most = 1 + BLOCK_VIS / (samples->num_chan[row] + 1);
        if (row == 0 || !same_channels(samples, row, row - 1))
            mixed = is_mixed(parts, outputs, samples, row);
        end = row + 1;
        while (!mixed && end < samples->num_rows && end - row < most &&
               same_channels(samples, row, end) &&
               interval_of(outputs, row_time, end) == interval)
            ++end;
        TESS_TRY(add_block(parts, &(sample_block){row, end - row, interval}));
    }
cleanup:
    return status;
}

/* ---- parting ---- */

/* Parts the elements of a block, [rows][channels] of `bytes` bytes each. `room` is
 * memory for all of them. */
static void part_elements(const sample_parts *parts, const tess_samples *samples,
                          const sample_block *block, int64_t bytes, char *data,
                          char *room)
{
    const int32_t channels = samples->num_chan[block->row_first];
    char *to = room;
    for (int32_t begin = 0, end; begin < channels; begin = end) {
        end = stretch_end(parts, samples, block->row_first, begin);
        const int64_t length = (end - begin) * bytes;
        const char *from = data + begin * bytes;
        for (int64_t row = 0; row < block->num_rows; ++row, to += length)
            memcpy(to, from + row * channels * bytes, (size_t)length);
    }
    memcpy(data, room, (size_t)(block->num_rows * channels * bytes));
}

static int64_t element_bytes(const tess_samples *samples)
{
    return samples->is_double ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
}

/* The most samples of a block. */
static int64_t most_vis(const sample_parts *parts, const tess_samples *samples)
{
    int64_t most = 0;
    for (int64_t k = 0; k < parts->num_blocks; ++k) {
        const sample_block *block = &parts->block[k];
        const int64_t vis = block->num_rows * samples->num_chan[block->row_first];
        if (vis > most) most = vis;
    }
    return most;
}

static tess_status part_blocks(const sample_parts *parts, int threads,
                               tess_samples *samples)
{
    tess_status status = TESS_OK;
    const int64_t element = element_bytes(samples);
    const int64_t vis = 2 * element * samples->num_pol;
    const int64_t weight = element * samples->num_weight;
    const int64_t most = most_vis(parts, samples) * (vis > weight ? vis : weight);
    bool complete = true;
#pragma omp parallel num_threads(threads) reduction(&& : complete)
    {
        char *room = tess_alloc(most, 1);
        complete = room != NULL;
#pragma omp for schedule(dynamic, 1)
        for (int64_t k = 0; k < parts->num_blocks; ++k) {
            const sample_block *block = &parts->block[k];
            const int64_t first = samples->vis_first[block->row_first];
            if (!complete || block->num_rows == 1) continue;
            part_elements(parts, samples, block, vis,
                          (char *)samples->vis + first * vis, room);
            part_elements(parts, samples, block, weight,
                          (char *)samples->weight + first * weight, room);
        }
        tess_free(room);
    }
    if (!complete) TESS_FAIL(TESS_ERR_ALLOC, "samples of images");
cleanup:
    return status;
}

tess_status sample_parts_start(const output_table *outputs, sample_parts *parts)
{
    *parts = (sample_parts){.end_output = outputs->num};
    return find_stretches(outputs, parts);
}

tess_status sample_parts_make(const output_table *outputs, const double *row_time,
                              int threads, tess_samples *samples, sample_parts *parts)
{
    tess_status status = TESS_OK;
    TESS_TRY(sample_parts_start(outputs, parts));
    TESS_TRY(list_blocks(outputs, row_time, samples, parts));
    TESS_TRY(part_blocks(parts, threads, samples));
cleanup:
    if (status != TESS_OK) sample_parts_free(parts);
    return status;
}

double sample_parts_bytes(const sample_parts *parts)
{
    const int64_t of_batch = parts->end_output - parts->first_output + 2;
    return (double)parts->capacity * (double)sizeof *parts->block +
           (double)parts->num_batches * (double)of_batch *
               (double)sizeof *parts->batch_vis;
}

void sample_parts_free(sample_parts *parts)
{
    tess_free(parts->stretch);
    tess_free(parts->first_stretch);
    tess_free(parts->table_stretch);
    tess_free(parts->block);
    tess_free(parts->first_block);
    tess_free(parts->end_block);
    tess_free(parts->batch_block);
    tess_free(parts->batch_vis);
    *parts = (sample_parts){0};
}

/* ---- taking ---- */

/* Finds the next stretch of channels that an output channel has in a block, from number
 * `*k` of all stretches on, in numbers of the rows' channels. Returns false if there is
 * none. */
static bool next_stretch(const sample_parts *parts, const tess_samples *from,
                         const sample_block *block, int64_t channel, int64_t *k,
                         channel_stretch *next)
{
    const int32_t base = from->chan_base[block->row_first];
    const int32_t stop = base + from->num_chan[block->row_first];
    if (*k >= parts->first_stretch[channel + 1]) return false;
    const channel_stretch *at = &parts->stretch[(*k)++];
    if (at->begin >= stop) return false;
    next->begin = at->begin > base ? at->begin - base : 0;
    next->end = (at->end < stop ? at->end : stop) - base;
    return true;
}

static int64_t first_in(const sample_parts *parts, const tess_samples *from,
                        const sample_block *block, int64_t channel)
{
    return first_behind(parts, channel, from->chan_base[block->row_first]);
}

/* Appends the samples of a stretch of a block's channels, which begin at `first`. */
static tess_status take_stretch(const tess_samples *from, const sample_block *block,
                                const channel_stretch *in, int64_t first,
                                tess_samples *out)
{
    tess_status status = TESS_OK;
    const int64_t rows = block->num_rows, row = block->row_first, at = out->num_rows;
    const int64_t length = in->end - in->begin, count = rows * length;
    const int64_t element = element_bytes(from);
    const int64_t vis = 2 * element * from->num_pol;
    const int64_t weight = element * from->num_weight;
    TESS_TRY(tess_samples_reserve(out, at + rows, out->num_vis + count));
    memcpy(out->uvw_m + 3 * at, from->uvw_m + 3 * row,
           (size_t)rows * 3 * sizeof *out->uvw_m);
    if (out->origins)
        memcpy(out->origin + at, from->origin + row,
               (size_t)rows * sizeof *out->origin);
    for (int64_t k = 0; k < rows; ++k) {
        out->chan_base[at + k] = from->chan_base[row] + in->begin;
        out->num_chan[at + k] = (int32_t)length;
        out->vis_first[at + k] = out->num_vis + k * length;
    }
    memcpy((char *)out->vis + out->num_vis * vis, (const char *)from->vis + first * vis,
           (size_t)(count * vis));
    memcpy((char *)out->weight + out->num_vis * weight,
           (const char *)from->weight + first * weight, (size_t)(count * weight));
    out->num_rows += rows;
    out->num_vis += count;
cleanup:
    return status;
}

/* The first sample of a stretch in memory. */
static int64_t first_of(const tess_samples *from, const sample_block *block,
                        const channel_stretch *in)
{
    return from->vis_first[block->row_first] + block->num_rows * in->begin;
}

/* Appends the samples that an output channel has in a block. Of samples from scratch,
 * they begin at `*at`, which moves on; NULL: of others. */
static tess_status take_block(const sample_parts *parts, const tess_samples *from,
                              const sample_block *block, int64_t channel, int64_t *at,
                              tess_samples *out)
{
    tess_status status = TESS_OK;
    channel_stretch in;
    int64_t k = first_in(parts, from, block, channel);
    while (next_stretch(parts, from, block, channel, &k, &in)) {
        TESS_TRY(
            take_stretch(from, block, &in, at ? *at : first_of(from, block, &in), out));
        if (at) *at += block->num_rows * (in.end - in.begin);
    }
cleanup:
    return status;
}

static tess_status take_batch(const sample_parts *parts, const output_table *outputs,
                              int64_t output, int64_t batch, const tess_samples *from,
                              tess_samples *out)
{
    tess_status status = TESS_OK;
    const int64_t of_batch = parts->end_output - parts->first_output + 1;
    const int64_t *first =
        parts->batch_vis + batch * of_batch + output - parts->first_output;
    int64_t at = first[0];
    for (int64_t k = parts->batch_block[batch];
         k < parts->batch_block[batch + 1] && at < first[1]; ++k)
        if (parts->block[k].interval == output / outputs->num_channels)
            TESS_TRY(take_block(parts, from, &parts->block[k],
                                output % outputs->num_channels, &at, out));
cleanup:
    return status;
}

tess_status sample_parts_take(const sample_parts *parts, const output_table *outputs,
                              int64_t output, const tess_samples *from,
                              tess_samples *out)
{
    tess_status status = TESS_OK;
    const int64_t interval = output / outputs->num_channels;
    const int64_t channel = output % outputs->num_channels;
    for (int64_t k = 0; k < parts->num_batches; ++k)
        TESS_TRY(take_batch(parts, outputs, output, k, from, out));
    if (parts->batch_block) return TESS_OK;
    for (int64_t k = parts->first_block[interval]; k < parts->end_block[interval]; ++k)
        if (parts->block[k].interval == interval)
            TESS_TRY(take_block(parts, from, &parts->block[k], channel, NULL, out));
cleanup:
    return status;
}

/* ---- to scratch ---- */

void sample_parts_count(const sample_parts *parts, const output_table *outputs,
                        const tess_samples *from, int64_t *first)
{
    memset(first, 0, (size_t)(outputs->num + 1) * sizeof *first);
    for (int64_t k = 0; k < parts->num_blocks; ++k) {
        const sample_block *block = &parts->block[k];
        const int32_t *of = outputs->chan_output + from->chan_base[block->row_first];
        int64_t *next = first + 1 + block->interval * outputs->num_channels;
        if (block->interval < 0) continue;
        for (int32_t c = 0; c < from->num_chan[block->row_first]; ++c)
            if (of[c] >= 0) next[of[c]] += block->num_rows;
    }
    for (int64_t k = 0; k < outputs->num; ++k)
        first[k + 1] += first[k];
}

/* Copies the first of `num` weights of each sample. */
static void copy_first_weights(const char *from, int64_t count, int num,
                               int64_t element, char *to)
{
    for (int64_t k = 0; k < count; ++k)
        memcpy(to + k * element, from + k * num * element, (size_t)element);
}

void sample_parts_gather(const sample_parts *parts, const output_table *outputs,
                         int64_t output, const tess_samples *from, bool one_weight,
                         char *vis_to, char *weight_to)
{
    const int64_t interval = output / outputs->num_channels;
    const int64_t channel = output % outputs->num_channels;
    const int64_t element = element_bytes(from);
    const int64_t vis = 2 * element * from->num_pol;
    const int64_t weight = element * from->num_weight;
    channel_stretch in;
    for (int64_t b = parts->first_block[interval]; b < parts->end_block[interval];
         ++b) {
        const sample_block *block = &parts->block[b];
        int64_t k = first_in(parts, from, block, channel);
        while (block->interval == interval &&
               next_stretch(parts, from, block, channel, &k, &in)) {
            const int64_t first = first_of(from, block, &in);
            const int64_t count = block->num_rows * (in.end - in.begin);
            const char *weights = (const char *)from->weight + first * weight;
            memcpy(vis_to, (const char *)from->vis + first * vis,
                   (size_t)(count * vis));
            if (one_weight)
                copy_first_weights(weights, count, from->num_weight, element,
                                   weight_to);
            else
                memcpy(weight_to, weights, (size_t)(count * weight));
            vis_to += count * vis;
            weight_to += count * (one_weight ? element : weight);
        }
    }
}
