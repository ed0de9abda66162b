/** @file exchange_message.h  (private to app/imager/engine/exchange/)
 *  The message of a round to one rank, and how its parts become rows and runs there.
 */
#ifndef TESS_EXCHANGE_MESSAGE_H
#define TESS_EXCHANGE_MESSAGE_H

#include <string.h>

#include "exchange_parcels.h"

/* Threads share a round only if it has more rows than this. */
enum { ROWS_PER_THREAD = 16 };

/* A message is a round_count, headers, pieces, then visibilities and weights of all
 * parcels, so that values arrive in the form in which they are kept. For a sample of 12
 * bytes, in runs of three and parcels of ten, that is 19 bytes. */
typedef struct parcel_header {
    double uvw_m[3];
    int32_t chan, count, num_pieces, origin;
} parcel_header;

/* A piece in a message: 48 bits of the brick's key, and its number of samples. */
typedef struct packed_piece {
    uint32_t brick_low;
    uint16_t brick_high, count;
} packed_piece;

enum { MOST_OF_PIECE = UINT16_MAX };

/* Bytes of a sample's visibilities and of its weights; 0 without data. */
typedef struct sample_bytes {
    int64_t vis, weight;
} sample_bytes;

static inline sample_bytes bytes_of_sample(const tess_exchange *exchange)
{
    const tess_samples *samples = &exchange->samples;
    const int64_t element = samples->is_double ? 8 : 4;
    if (!exchange->with_data) return (sample_bytes){0, 0};
    return (sample_bytes){2 * element * samples->num_pol,
                          element * samples->num_weight};
}

/* Where the parts of a message begin. */
typedef struct message_parts {
    int64_t header, piece, vis, weight, end;
} message_parts;

static inline message_parts parts_of(const tess_exchange *exchange,
                                     const round_count *count)
{
    const sample_bytes each = bytes_of_sample(exchange);
    message_parts parts = {.header = sizeof *count};
    parts.piece = parts.header + count->parcels * (int64_t)sizeof(parcel_header);
    parts.vis = parts.piece + count->pieces * (int64_t)sizeof(packed_piece);
    parts.weight = parts.vis + count->samples * each.vis;
    parts.end = parts.weight + count->samples * each.weight;
    return parts;
}

static inline int64_t message_bytes(const tess_exchange *exchange,
                                    const round_count *count)
{
    return count->parcels == 0 ? 0 : parts_of(exchange, count).end;
}

static inline round_count received_so_far(const tess_exchange *exchange)
{
    return (round_count){exchange->samples.num_rows, exchange->bricks.num_runs,
                         exchange->samples.num_vis};
}

static inline void arrived(tess_exchange *exchange, const round_count *count)
{
    exchange->samples.num_rows += count->parcels;
    exchange->bricks.num_runs += count->pieces;
    exchange->samples.num_vis += count->samples;
}

static inline void add_count(round_count *to, const round_count *count)
{
    to->parcels += count->parcels;
    to->pieces += count->pieces;
    to->samples += count->samples;
}

/* Makes a row of a parcel. `at`: the place of the row and of its samples. */
static inline void put_row(tess_exchange *exchange, const round_count *at,
                           const parcel_header *header)
{
    tess_samples *samples = &exchange->samples;
    memcpy(samples->uvw_m + 3 * at->parcels, header->uvw_m, sizeof header->uvw_m);
    samples->chan_base[at->parcels] = header->chan;
    samples->num_chan[at->parcels] = header->count;
    samples->vis_first[at->parcels] = at->samples;
    if (samples->origins) samples->origin[at->parcels] = header->origin;
}

/* Makes a run of a piece of the parcel that begins at its sample `done`. */
static inline void put_run(tess_exchange *exchange, const round_count *at, int32_t chan,
                           int32_t done, const piece *item, int source)
{
    exchange->bricks.run[at->pieces] = (tess_run){.brick = item->brick,
                                                  .first = at->samples + done,
                                                  .row = (int32_t)at->parcels,
                                                  .chan = chan + done,
                                                  .count = item->count,
                                                  .source = source};
}

static inline round_count plus(round_count a, const round_count *b)
{
    add_count(&a, b);
    return a;
}

#endif
