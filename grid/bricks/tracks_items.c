/* Lists what tracks are made of: the runs of a brick, or the rows of all samples, by
 * baseline, channels and time. See tess_tracks.h. */
#include "tracks_items.h"

#include <math.h>

#include "tess_counting.h"
#include "tess_mem.h"
#include "tess_minmax.h"
#include "tess_omp.h"
#include "tracks.h"

enum {
    RUNS_OF_SHARE = 32768, /* of a brick, whose baselines are shared out beyond that */
    ROWS_OF_SHARE = 2048   /* of all, at least; a baseline is not cut */
};

/* ---- order of rows ---- */

/* The pairs of antennas that an interval may have. */
static int32_t num_pairs(const tess_origins *origins)
{
    return origins->most_antennas * origins->most_antennas;
}

/* Baselines are pairs of antennas of a stretch of time and of a field. There are no
 * more of them than origins. */
static int32_t num_baselines(const tess_origins *origins)
{
    return origins->num_stretches * origins->num_fields * num_pairs(origins);
}

static int32_t interval_of(const tess_samples *samples, int64_t row)
{
    const tess_origins *origins = samples->origins;
    return samples->origin[row] / num_pairs(origins) % origins->num_intervals;
}

static int32_t baseline_of(const tess_samples *samples, int64_t row)
{
    const tess_origins *origins = samples->origins;
    const int32_t pairs = num_pairs(origins), number = samples->origin[row];
    const int32_t field = number / pairs / origins->num_intervals;
    const int32_t stretch = tess_origins_stretch_of(origins, interval_of(samples, row));
    return (stretch * origins->num_fields + field) * pairs + number % pairs;
}

/* A number of a row, of which there are so many. */
typedef struct row_digit {
    int32_t (*of)(const tess_samples *samples, int64_t row);
    int64_t num;
} row_digit;

/* Rows of equal digits stay in their order. `from` NULL: the order of the samples. */
static tess_status sort_rows(const tess_samples *samples, const row_digit *digit,
                             int most_threads, const int32_t *from, int32_t *to)
{
    tess_status status = TESS_OK;
    const int64_t num = samples->num_rows;
    /* counts of all threads are no more than rows */
    const int threads = (int)tess_clamp_i64(num / digit->num, 1, most_threads);
    int64_t *place = tess_alloc_zero(threads * digit->num, sizeof *place);
    if (!place) TESS_FAIL(TESS_ERR_ALLOC, "rows of baselines");
#pragma omp parallel num_threads(threads)
    {
        const int share = tess_omp_thread(), shares = tess_omp_threads();
        const int64_t first = tess_share_first(num, share, shares);
        const int64_t end = tess_share_first(num, share + 1, shares);
        int64_t *own = place + share * digit->num;
        for (int64_t k = first; k < end; ++k)
            ++own[digit->of(samples, from ? from[k] : k)];
#pragma omp barrier
#pragma omp single
        tess_counts_to_places(place, digit->num, shares);
        for (int64_t k = first; k < end; ++k) {
            const int64_t row = from ? from[k] : k;
            to[own[digit->of(samples, row)]++] = (int32_t)row;
        }
    }
cleanup:
    tess_free(place);
    return status;
}

/* Rows of a file are in the order of time, as a rule; those of other ranks are not. */
static bool is_in_time(const tess_samples *samples, int threads)
{
    bool in_time = true;
#pragma omp parallel for num_threads(threads) reduction(&& : in_time)
    for (int64_t k = 1; k < samples->num_rows; ++k)
        in_time = in_time && interval_of(samples, k - 1) <= interval_of(samples, k);
    return in_time;
}

/* From the first to the last sample that counts. */
static row_span used_span(const tess_samples *samples, int64_t row)
{
    const int64_t first = samples->vis_first[row];
    row_span span = {0, samples->num_chan[row]};
    while (span.begin < span.end && tess_samples_ignored(samples, first + span.begin))
        ++span.begin;
    while (span.begin < span.end && tess_samples_ignored(samples, first + span.end - 1))
        --span.end;
    return span;
}

static double w_lambda_of(const tess_samples *samples, int64_t row, int32_t chan)
{
    const double inv_lambda = samples->inv_lambda[samples->chan_base[row] + chan];
    return fabs(samples->uvw_m[3 * row + 2]) * inv_lambda;
}

/* Adds a row's channels to those of others. Few rows add any, so few threads wait. */
static void widen(row_span *band, row_span span)
{
    row_span now;
#pragma omp atomic read
    now.begin = band->begin;
#pragma omp atomic read
    now.end = band->end;
    if (span.begin >= now.begin && span.end <= now.end) return;
#pragma omp critical(widen_band)
    {
        now.begin = span.begin < band->begin ? span.begin : band->begin;
        now.end = span.end > band->end ? span.end : band->end;
#pragma omp atomic write
        band->begin = now.begin;
#pragma omp atomic write
        band->end = now.end;
    }
}

/* Makes bands without channels. */
static tess_status make_bands(const tess_samples *samples, int threads, row_span **band)
{
    tess_status status = TESS_OK;
    int32_t num_chan = 0;
#pragma omp parallel for num_threads(threads) reduction(max : num_chan)
    for (int64_t row = 0; row < samples->num_rows; ++row)
        if (samples->chan_base[row] >= num_chan) num_chan = samples->chan_base[row] + 1;
    *band = tess_alloc(num_chan, sizeof **band);
    if (!*band) TESS_FAIL(TESS_ERR_ALLOC, "channels of baselines");
    for (int32_t c = 0; c < num_chan; ++c)
        (*band)[c] = (row_span){INT32_MAX, 0};
cleanup:
    return status;
}

/* Finds the channels that count, and the range of |w|, for which the plan has planes.
 */
static void find_used(const tess_samples *samples, int threads, tracks_order *order)
{
    double least = INFINITY, most = 0;
#pragma omp parallel for num_threads(threads) reduction(min                            \
                                                        : least) reduction(max         \
                                                                           : most)
    for (int64_t row = 0; row < samples->num_rows; ++row) {
        const row_span span = used_span(samples, row);
        if (span.begin == span.end) continue;
        widen(&order->band[samples->chan_base[row]], span);
        const double a = w_lambda_of(samples, row, span.begin);
        const double b = w_lambda_of(samples, row, span.end - 1);
        least = fmin(least, fmin(a, b));
        most = fmax(most, fmax(a, b));
    }
    order->least_w_lambda = least;
    order->most_w_lambda = most;
}

tess_status tracks_order_rows(const tess_samples *samples, int threads,
                              tracks_order *order)
{
    tess_status status = TESS_OK;
    const tess_origins *origins = samples->origins;
    const row_digit time = {interval_of, origins->num_intervals};
    const row_digit baseline = {baseline_of, num_baselines(origins)};
    const bool in_time = is_in_time(samples, threads);
    int32_t *row = tess_alloc(samples->num_rows, sizeof *row);
    int32_t *by_time = in_time ? NULL : tess_alloc(samples->num_rows, sizeof *by_time);
    if (!row || (!in_time && !by_time)) TESS_FAIL(TESS_ERR_ALLOC, "rows of baselines");
    if (!in_time) TESS_TRY(sort_rows(samples, &time, threads, NULL, by_time));
    TESS_TRY(sort_rows(samples, &baseline, threads, by_time, row));
    TESS_TRY(make_bands(samples, threads, &order->band));
    find_used(samples, threads, order);
    order->row = row;
    row = NULL;
cleanup:
    tess_free(row);
    tess_free(by_time);
    return status;
}

void tracks_order_free(tracks_order *order)
{
    tess_free(order->row);
    tess_free(order->band);
}

/* ---- shares ---- */

tess_status tracks_share_bricks(const tess_brick_list *bricks, track_shares *shares)
{
    tess_status status = TESS_OK;
    const int64_t most = bricks->num_bricks + bricks->num_runs / RUNS_OF_SHARE;
    shares->share = tess_alloc(most, sizeof *shares->share);
    if (!shares->share) TESS_FAIL(TESS_ERR_ALLOC, "tracks of baselines");
    for (int64_t b = 0; b < bricks->num_bricks; ++b) {
        const int64_t runs = bricks->first_run[b + 1] - bricks->first_run[b];
        const int64_t parts = 1 + runs / RUNS_OF_SHARE;
        for (int64_t k = 0; k < parts; ++k)
            shares->share[shares->num++] =
                (track_share){.brick = b, .part = k, .num_parts = parts};
    }
cleanup:
    return status;
}

tess_status tracks_share_rows(const tess_samples *samples, const tracks_order *order,
                              track_shares *shares)
{
    tess_status status = TESS_OK;
    const int64_t num = samples->num_rows, most = num / ROWS_OF_SHARE + 1;
    shares->share = tess_alloc(most, sizeof *shares->share);
    if (!shares->share) TESS_FAIL(TESS_ERR_ALLOC, "tracks of baselines");
    for (int64_t k = 0, end; k < num; k = end) {
        end = k + ROWS_OF_SHARE < num ? k + ROWS_OF_SHARE : num;
        while (end < num && baseline_of(samples, order->row[end]) ==
                                baseline_of(samples, order->row[end - 1]))
            ++end;
        shares->share[shares->num++] =
            (track_share){.brick = -1, .first = k, .end = end};
    }
cleanup:
    return status;
}

/* ---- items ---- */

/* Items, or their number alone. */
typedef struct item_sink {
    track_item *item; /* or NULL */
    int64_t num;
} item_sink;

/* Lists the channels [chan, end) of a row, cut at multiples of TRACK_CHANS. */
static void list_channels(int32_t baseline, int32_t row, int32_t chan, int32_t end,
                          item_sink *to)
{
    for (int32_t c = chan, next; c < end; c = next) {
        next = (c / TRACK_CHANS + 1) * TRACK_CHANS;
        if (next > end) next = end;
        if (to->item) to->item[to->num] = (track_item){baseline, row, c, next - c};
        ++to->num;
    }
}

/* Runs are in the order of time, also where other ranks have sent their rows. */
static void list_runs(const tess_samples *samples, const tess_brick_list *bricks,
                      const track_share *share, item_sink *to)
{
    const int64_t end = bricks->first_run[share->brick + 1];
    for (int64_t r = bricks->first_run[share->brick]; r < end; ++r) {
        const tess_run *run = &bricks->run[r];
        const int32_t baseline = baseline_of(samples, run->row);
        if (baseline % share->num_parts != share->part) continue;
        list_channels(baseline, run->row, run->chan, run->chan + run->count, to);
    }
}

static bool has_planes(const tess_samples *samples, const tracks_order *order,
                       int64_t row, int32_t chan)
{
    const double w = w_lambda_of(samples, row, chan);
    return w >= order->least_w_lambda && w <= order->most_w_lambda;
}

/* The channels of a row, if any of its samples counts: also those that do not, so that
 * rows of a baseline have the same channels whatever is flagged. Left out are channels
 * at the ends of the band that count in no row, and those for whose w the plan has no
 * planes; axes u and v are periodic. */
static row_span planned_span(const tess_samples *samples, const tracks_order *order,
                             int64_t row)
{
    const row_span band = order->band[samples->chan_base[row]];
    row_span span = used_span(samples, row);
    if (span.begin == span.end) return span;
    while (span.begin > band.begin && has_planes(samples, order, row, span.begin - 1))
        --span.begin;
    while (span.end < samples->num_chan[row] && span.end < band.end &&
           has_planes(samples, order, row, span.end))
        ++span.end;
    return span;
}

static void list_rows(const tess_samples *samples, const tracks_order *order,
                      const track_share *share, item_sink *to)
{
    for (int64_t k = share->first; k < share->end; ++k) {
        const int32_t row = order->row[k], chan = samples->chan_base[row];
        const row_span span = planned_span(samples, order, row);
        if (span.begin == span.end) continue;
        list_channels(baseline_of(samples, row), row, chan + span.begin,
                      chan + span.end, to);
    }
}

static int64_t list_share(const tess_samples *samples, const tess_brick_list *bricks,
                          const tracks_order *order, const track_share *share,
                          track_item *item)
{
    item_sink to = {.item = item};
    if (share->brick >= 0)
        list_runs(samples, bricks, share, &to);
    else
        list_rows(samples, order, share, &to);
    return to.num;
}

/* Byte k of what items are sorted by, from the least significant one on: the number of
 * channels, the first channel, the baseline. */
enum { KEY_BYTES = 9 };
static inline unsigned key_byte(const track_item *of, int k)
{
    if (k == 0) return (unsigned)of->count; /* at most TRACK_CHANS */
    return (uint32_t)(k < 5 ? of->chan : of->baseline) >> (8 * ((k - 1) % 4)) & 255;
}

/* Sorts by a byte of the key, if that differs: the sorted items are to[num]. Items of
 * equal bytes stay in their order. */
static bool sort_by_byte(const track_item *from, int64_t num, int k, track_item *to)
{
    int64_t next[257] = {0};
    for (int64_t i = 0; i < num; ++i)
        ++next[key_byte(&from[i], k) + 1];
    for (int b = 1; b <= 256; ++b) {
        if (next[b] == num) return false;
        next[b] += next[b - 1];
    }
    for (int64_t i = 0; i < num; ++i)
        to[next[key_byte(&from[i], k)]++] = from[i];
    return true;
}

/* Sorts item[num] by baseline, then channels. `other` has room for as many; the sorted
 * items are in the one that is returned. */
static const track_item *sort_items(track_item *item, int64_t num, track_item *other)
{
    for (int k = 0; num > 1 && k < KEY_BYTES; ++k) {
        track_item *const swapped = other;
        if (!sort_by_byte(item, num, k, other)) continue;
        other = item;
        item = swapped;
    }
    return item;
}

tess_status tracks_list_items(const tess_samples *samples,
                              const tess_brick_list *bricks, const tracks_order *order,
                              const track_share *share, track_items *items)
{
    tess_status status = TESS_OK;
    const int64_t num = list_share(samples, bricks, order, share, NULL);
    track_item *room = tess_alloc(2 * num, sizeof *room);
    if (!room) TESS_FAIL(TESS_ERR_ALLOC, "baselines of a brick");
    list_share(samples, bricks, order, share, room);
    *items = (track_items){room, sort_items(room, num, room + num), num};
cleanup:
    return status;
}
