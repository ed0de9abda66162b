/* Finds which channels of a file make which channels of an axis. */
#include "regrid.h"

#include <math.h>

#include "tess_const.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_minmax.h"

/* Two channels are neighbours if their middles are no farther apart than this, in
 * widths: beyond, there is a gap, over which nothing is interpolated. */
static const double NEIGHBOURS = 1.5;

/* Parts of a channel that are nothing: rounding of frequencies, which have 16 digits,
 * over channels of 1e-7 of them. */
static const double NOTHING = 1e-6;

/* Channels of a file are as wide as the axis's if they differ by less than this: widths
 * change with the Doppler factor, by 1e-4 in a year. */
static const double SAME_WIDTH = 1e-3;

/* ---- pieces ---- */

static bool follows(const regrid_part *part, const int32_t *spw, int64_t c, int step)
{
    const double apart = part->freq_hz[c] - part->freq_hz[c - 1];
    const double width = 0.5 * (part->width_hz[c] + part->width_hz[c - 1]);
    return spw[c] == spw[c - 1] && apart * step > 0 &&
           fabs(apart) <= NEIGHBOURS * width;
}

tess_status regrid_split(regrid_part *part, const int32_t *spw)
{
    tess_status status = TESS_OK;
    int64_t capacity = 0;
    for (int64_t begin = 0, end; begin < part->num_chan; begin = end) {
        const bool falls = begin + 1 < part->num_chan &&
                           part->freq_hz[begin + 1] < part->freq_hz[begin];
        const int step = falls ? -1 : 1;
        for (end = begin + 1; end < part->num_chan && follows(part, spw, end, step);)
            ++end;
        if (tess_grow((void **)&part->piece, &capacity, part->num_pieces + 1,
                      sizeof *part->piece))
            TESS_FAIL(TESS_ERR_ALLOC, "pieces of spectral windows");
        part->piece[part->num_pieces++] =
            (regrid_piece){step > 0 ? begin : end - 1, end - begin, step, 1};
    }
cleanup:
    return status;
}

static double freq_of(const regrid_part *part, const regrid_piece *piece, int64_t k)
{
    return part->freq_hz[piece->first + k * piece->step];
}

/* The distance of channels of a piece, or the width of its only one. */
static double spacing_of(const regrid_part *part, const regrid_piece *piece)
{
    if (piece->num == 1) return part->width_hz[piece->first];
    return (freq_of(part, piece, piece->num - 1) - freq_of(part, piece, 0)) /
           (double)(piece->num - 1);
}

/* ---- the table: interpolation ---- */

/* Position on the axis of the middle of an entry, and the other way round. */
static double position_of(const regrid_table *table, int64_t entry)
{
    return ((double)entry + 0.5) / (double)table->sub - 0.5;
}

static double entry_at(const regrid_table *table, double freq_hz)
{
    const double position = channel_axis_position(&table->axis, freq_hz);
    return (position + 0.5) * (double)table->sub - 0.5;
}

static double narrowest_of(const regrid_part *part, int num_parts)
{
    double least = INFINITY;
    for (int p = 0; p < num_parts; ++p)
        for (int k = 0; k < part[p].num_pieces; ++k)
            least = fmin(least, spacing_of(&part[p], &part[p].piece[k]));
    return least;
}

static tess_status allocate(regrid_table *table, int64_t num)
{
    tess_status status = TESS_OK;
    table->num = num;
    table->freq_hz = tess_alloc(num, sizeof *table->freq_hz);
    table->width_hz = tess_alloc(num, sizeof *table->width_hz);
    table->inv_lambda = tess_alloc(num, sizeof *table->inv_lambda);
    table->output = tess_alloc(num, sizeof *table->output);
    if (!table->freq_hz || !table->width_hz || !table->inv_lambda || !table->output ||
        num > INT32_MAX)
        TESS_FAIL(TESS_ERR_ALLOC, "table of %lld channels", (long long)num);
cleanup:
    return status;
}

static tess_status make_parts_of_axis(regrid_table *table, regrid_part *part,
                                      int num_parts, double doppler)
{
    tess_status status = TESS_OK;
    double middle_hz, width_hz;
    const double narrowest = narrowest_of(part, num_parts) * doppler;
    channel_axis_band(&table->axis, 0, &middle_hz, &width_hz);
    const double sub = ceil(width_hz / narrowest - SAME_WIDTH);
    table->sub = sub < 1 ? 1 : (int64_t)fmin(sub, INT32_MAX);
    if (table->sub > INT32_MAX / table->axis.num)
        TESS_FAIL(TESS_ERR_ALLOC, "table of %.3g channels",
                  sub * (double)table->axis.num);
    TESS_TRY(allocate(table, table->axis.num * table->sub));
    const double half = 0.5 / (double)table->sub;
    for (int64_t k = 0; k < table->num; ++k) {
        const double at = position_of(table, k);
        table->freq_hz[k] = channel_axis_freq(&table->axis, at);
        table->width_hz[k] = fabs(channel_axis_freq(&table->axis, at + half) -
                                  channel_axis_freq(&table->axis, at - half));
        table->inv_lambda[k] = table->freq_hz[k] / TESS_SPEED_OF_LIGHT_M_S;
        table->output[k] = (int32_t)(k / table->sub);
    }
    for (int p = 0; p < num_parts; ++p)
        for (int k = 0; k < part[p].num_pieces; ++k) {
            regrid_piece *piece = &part[p].piece[k];
            const double spacing = spacing_of(&part[p], piece) * doppler;
            const double share = table->width_hz[0] / spacing;
            piece->share = share < 1 - SAME_WIDTH ? share : 1;
        }
cleanup:
    return status;
}

/* ---- the table: pairs ---- */

/* The channels [low, high] of the axis that a channel of a file falls into: the one in
 * which its middle lies, or, if it is wider than these, those whose middles it covers.
 * low > high: none. */
static void falls_into(const regrid_table *table, const regrid_part *part, int64_t chan,
                       double doppler, int64_t *low, int64_t *high)
{
    const channel_axis *axis = &table->axis;
    const double freq = part->freq_hz[chan] * doppler;
    const double half = 0.5 * part->width_hz[chan] * doppler;
    const double one = channel_axis_position(axis, freq - half);
    const double other = channel_axis_position(axis, freq + half);
    const double from = fmin(one, other), to = fmax(one, other);
    const double limit = 2.0 * (double)axis->num + 2;
    if (to - from <= 1 + SAME_WIDTH) {
        const double at = floor(channel_axis_position(axis, freq) + 0.5);
        *low = *high = (int64_t)fmin(fmax(at, -limit), limit);
    } else {
        *low = (int64_t)fmin(fmax(ceil(from), -limit), limit);
        *high = (int64_t)fmin(fmax(ceil(to) - 1, -limit), limit);
    }
}

/* Finds the layers of a part: how many channels of the axis a channel may fall into,
 * for any of the Doppler factors. Channels off the axis count as the first beside it.
 */
static tess_status find_layers(const regrid_table *table, regrid_part *part)
{
    tess_status status = TESS_OK;
    const int64_t last = table->axis.num - 1;
    part->first = tess_alloc(part->num_chan, sizeof *part->first);
    if (!part->first) TESS_FAIL(TESS_ERR_ALLOC, "channels of the axis");
    part->num_layers = 1;
    part->most_vis = 0;
    for (int64_t c = 0; c < part->num_chan; ++c) {
        int64_t low[2], high[2];
        for (int k = 0; k < 2; ++k)
            falls_into(table, part, c, part->bounds[k], &low[k], &high[k]);
        const int64_t from = tess_clamp_i64(tess_min_i64(low[0], low[1]), 0, last);
        const int64_t to = tess_clamp_i64(tess_max_i64(high[0], high[1]), 0, last);
        part->first[c] = from;
        part->num_layers = tess_max_i64(part->num_layers, to - from + 1);
        const bool is_wide = high[0] > low[0] || high[1] > low[1];
        if (tess_max_i64(high[0], high[1]) < 0 || tess_min_i64(low[0], low[1]) > last)
            continue;
        part->most_vis +=
            is_wide ? tess_max_i64(high[0] - low[0], high[1] - low[1]) + 2 : 1;
    }
cleanup:
    return status;
}

static void fill_pairs(regrid_table *table, const regrid_part *part)
{
    const int64_t last = table->axis.num - 1;
    for (int64_t k = 0; k < part->num_layers * part->num_chan; ++k) {
        const int64_t c = k % part->num_chan, at = part->base + k;
        const int64_t output = tess_min_i64(part->first[c] + k / part->num_chan, last);
        channel_axis_band(&table->axis, output, &table->freq_hz[at],
                          &table->width_hz[at]);
        table->inv_lambda[at] = part->freq_hz[c] / TESS_SPEED_OF_LIGHT_M_S;
        table->output[at] = (int32_t)output;
    }
}

static tess_status make_pairs(regrid_table *table, regrid_part *part, int num_parts)
{
    tess_status status = TESS_OK;
    int64_t num = 0;
    table->sub = 1;
    for (int p = 0; p < num_parts; ++p) {
        TESS_TRY(find_layers(table, &part[p]));
        part[p].base = num;
        num += part[p].num_layers * part[p].num_chan;
    }
    TESS_TRY(allocate(table, num));
    for (int p = 0; p < num_parts; ++p)
        fill_pairs(table, &part[p]);
cleanup:
    return status;
}

/* ---- stretches ---- */

static tess_status begin_stretch(regrid_lists *lists, int64_t base, double scale,
                                 int64_t num)
{
    tess_status status = TESS_OK;
    if (tess_grow((void **)&lists->stretch, &lists->capacity_stretches,
                  lists->num_stretches + 1, sizeof *lists->stretch) ||
        tess_grow((void **)&lists->entry, &lists->capacity_entries,
                  lists->num_entries + num, sizeof *lists->entry))
        TESS_FAIL(TESS_ERR_ALLOC, "channels of the axis");
    lists->stretch[lists->num_stretches++] = (regrid_stretch){
        .base = base, .first = lists->num_entries, .num = num, .scale = scale, .share = 1};
cleanup:
    return status;
}

/* The value at a frequency of the file, which lies within the piece; *k is a channel of
 * the piece that is near. */
static regrid_entry between(const regrid_part *part, const regrid_piece *piece,
                            double freq_hz, int64_t *k)
{
    while (*k > 0 && freq_of(part, piece, *k) > freq_hz)
        --*k;
    while (*k + 2 < piece->num && freq_of(part, piece, *k + 1) <= freq_hz)
        ++*k;
    const double below = freq_of(part, piece, *k);
    const double part_of = (freq_hz - below) / (freq_of(part, piece, *k + 1) - below);
    const int64_t chan = piece->first + *k * piece->step;
    const int64_t next = chan + piece->step;
    if (part_of < NOTHING) return (regrid_entry){(int32_t)chan, (int32_t)chan, 0};
    if (part_of > 1 - NOTHING) return (regrid_entry){(int32_t)next, (int32_t)next, 0};
    return (regrid_entry){(int32_t)chan, (int32_t)next, (float)part_of};
}

/* The entries [low, end) of the table between two frequencies of the axis, within
 * `ends`. */
static void entries_within(const regrid_table *table, double one_hz, double other_hz,
                           const int64_t ends[2], int64_t *low, int64_t *end)
{
    const double one = entry_at(table, one_hz), other = entry_at(table, other_hz);
    const double from = ceil(fmin(one, other) - NOTHING);
    const double to = floor(fmax(one, other) + NOTHING) + 1;
    *low = (int64_t)fmin(fmax(from, (double)ends[0]), (double)ends[1]);
    *end = (int64_t)fmin(fmax(to, (double)*low), (double)ends[1]);
}

/* A window of one channel has nothing to interpolate between. It is at its own
 * frequency in each part of the axis that it covers, or in the one that it lies in. */
static tess_status append_single(const regrid_table *table, const regrid_part *part,
                                 const regrid_piece *piece, double doppler,
                                 const int64_t ends[2], regrid_lists *lists)
{
    tess_status status = TESS_OK;
    int64_t low, end;
    const double freq = part->freq_hz[piece->first];
    const double half = 0.5 * part->width_hz[piece->first];
    entries_within(table, (freq - half) * doppler, (freq + half) * doppler, ends, &low,
                   &end);
    if (low == end || piece->share >= 1) {
        const double at = floor(entry_at(table, freq * doppler) + 0.5);
        if (!(at >= (double)ends[0] && at < (double)ends[1])) return TESS_OK;
        low = (int64_t)at;
        end = low + 1;
    }
    for (int64_t k = low; k < end; ++k) {
        TESS_TRY(begin_stretch(lists, k, freq / table->freq_hz[k], 1));
        lists->stretch[lists->num_stretches - 1].share = piece->share;
        lists->entry[lists->num_entries++] =
            (regrid_entry){(int32_t)piece->first, (int32_t)piece->first, 0};
    }
cleanup:
    return status;
}

static tess_status append_interpolated(const regrid_table *table,
                                       const regrid_part *part,
                                       const regrid_piece *piece, double doppler,
                                       const int64_t ends[2], regrid_lists *lists)
{
    tess_status status = TESS_OK;
    int64_t low, end, near = 0;
    if (piece->num == 1) return append_single(table, part, piece, doppler, ends, lists);
    entries_within(table, freq_of(part, piece, 0) * doppler,
                   freq_of(part, piece, piece->num - 1) * doppler, ends, &low, &end);
    if (low == end) return TESS_OK;
    TESS_TRY(begin_stretch(lists, low, 1 / doppler, end - low));
    lists->stretch[lists->num_stretches - 1].share = piece->share;
    const double guess = (table->freq_hz[low] / doppler - freq_of(part, piece, 0)) /
                         spacing_of(part, piece);
    near = tess_clamp_i64((int64_t)guess, 0, piece->num - 2);
    for (int64_t k = low; k < end; ++k)
        lists->entry[lists->num_entries++] =
            between(part, piece, table->freq_hz[k] / doppler, &near);
cleanup:
    return status;
}

/* Whether channel `chan` falls into the channel of the axis of a layer. */
static bool is_in_layer(const regrid_table *table, const regrid_part *part,
                        const regrid_lists *lists, int64_t layer, int64_t chan)
{
    const int64_t output = part->first[chan] + layer;
    return output < table->axis.num && output >= lists->low[chan] &&
           output <= lists->high[chan];
}

static tess_status append_layer(const regrid_table *table, const regrid_part *part,
                                int64_t layer, const bool *wanted, regrid_lists *lists)
{
    tess_status status = TESS_OK;
    const int64_t base = part->base + layer * part->num_chan;
    for (int p = 0; p < part->num_pieces; ++p) {
        const regrid_piece *piece = &part->piece[p];
        const int64_t begin =
            piece->step > 0 ? piece->first : piece->first - piece->num + 1;
        regrid_stretch *open = NULL;
        for (int64_t c = begin; c < begin + piece->num; ++c) {
            if (!is_in_layer(table, part, lists, layer, c) ||
                (wanted && !wanted[base + c])) {
                open = NULL;
                continue;
            }
            if (!open) {
                TESS_TRY(begin_stretch(lists, base + c, 1, begin + piece->num - c));
                open = &lists->stretch[lists->num_stretches - 1];
                open->num = 0;
            }
            ++open->num;
            lists->entry[lists->num_entries++] =
                (regrid_entry){(int32_t)c, (int32_t)c, 0};
        }
    }
cleanup:
    return status;
}

tess_status regrid_append(const regrid_table *table, const regrid_part *part,
                          double doppler, const bool *wanted, const int64_t ends[2],
                          regrid_lists *lists)
{
    tess_status status = TESS_OK;
    if (!table->nearest) {
        for (int p = 0; p < part->num_pieces; ++p)
            TESS_TRY(append_interpolated(table, part, &part->piece[p], doppler, ends,
                                         lists));
        return TESS_OK;
    }
    for (int64_t c = 0; c < part->num_chan; ++c)
        falls_into(table, part, c, doppler, &lists->low[c], &lists->high[c]);
    for (int64_t layer = 0; layer < part->num_layers; ++layer)
        TESS_TRY(append_layer(table, part, layer, wanted, lists));
cleanup:
    return status;
}

/* ---- how much there is ---- */

/* Parts of the axis that a piece covers, at most: they are as many for any Doppler
 * factor if the axis is linear in frequency, and else nearly. */
static int64_t most_entries(const regrid_table *table, const regrid_part *part,
                            const regrid_piece *piece, double doppler)
{
    const double half = piece->num == 1 ? 0.5 * part->width_hz[piece->first] : 0;
    const double low = entry_at(table, (freq_of(part, piece, 0) - half) * doppler);
    const double high =
        entry_at(table, (freq_of(part, piece, piece->num - 1) + half) * doppler);
    return (int64_t)fmin(fabs(high - low) + 3, (double)table->num);
}

/* Finds how many rows and samples are made of a row. */
static tess_status count_most(const regrid_table *table, regrid_part *part)
{
    tess_status status = TESS_OK;
    regrid_lists lists = {.low = tess_alloc(part->num_chan, sizeof(int64_t)),
                          .high = tess_alloc(part->num_chan, sizeof(int64_t))};
    if (!lists.low || !lists.high) TESS_FAIL(TESS_ERR_ALLOC, "channels of the axis");
    part->most_rows = 1;
    for (int k = 0; k < 2; ++k) {
        lists.num_entries = lists.num_stretches = 0;
        TESS_TRY(regrid_append(table, part, part->bounds[k], NULL,
                               (int64_t[2]){0, table->num}, &lists));
        part->most_rows = tess_max_i64(part->most_rows, lists.num_stretches);
    }
    for (int p = 0; p < part->num_pieces && !table->nearest; ++p)
        part->most_vis +=
            tess_max_i64(most_entries(table, part, &part->piece[p], part->bounds[0]),
                         most_entries(table, part, &part->piece[p], part->bounds[1]));
cleanup:
    regrid_lists_free(&lists);
    return status;
}

tess_status regrid_table_make(regrid_table *table, regrid_part *part, int num_parts,
                              double doppler)
{
    tess_status status = TESS_OK;
    if (table->nearest)
        TESS_TRY(make_pairs(table, part, num_parts));
    else
        TESS_TRY(make_parts_of_axis(table, part, num_parts, doppler));
    for (int p = 0; p < num_parts; ++p)
        TESS_TRY(count_most(table, &part[p]));
cleanup:
    return status;
}

void regrid_table_free(regrid_table *table)
{
    tess_free(table->freq_hz);
    tess_free(table->width_hz);
    tess_free(table->inv_lambda);
    tess_free(table->output);
    *table = (regrid_table){0};
}

void regrid_part_free(regrid_part *part)
{
    tess_free(part->piece);
    tess_free(part->first);
    *part = (regrid_part){0};
}

void regrid_lists_free(regrid_lists *lists)
{
    tess_free(lists->entry);
    tess_free(lists->stretch);
    tess_free(lists->low);
    tess_free(lists->high);
    *lists = (regrid_lists){0};
}
