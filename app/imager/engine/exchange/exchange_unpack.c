/* Unpacks the messages of a round into rows and runs. */
#include <string.h>

#include "exchange_message.h"

/* Parcels [first, end) of a message, which one thread unpacks. The first parcel is put
 * at `at`. */
typedef struct landing {
    const char *header, *piece; /* the first parcel's */
    int64_t first, end;
    round_count at;
} landing;

static void count_parcels(const landing *part, round_count *count)
{
    *count = (round_count){.parcels = part->end - part->first};
    for (int64_t k = 0; k < count->parcels; ++k) {
        parcel_header header;
        memcpy(&header, part->header + k * (int64_t)sizeof header, sizeof header);
        count->pieces += header.num_pieces;
        count->samples += header.count;
    }
}

static void take_parcels(tess_exchange *exchange, const landing *part, int source)
{
    round_count at = part->at;
    const char *from = part->piece;
    for (int64_t k = 0; k < part->end - part->first; ++k) {
        parcel_header header;
        memcpy(&header, part->header + k * (int64_t)sizeof header, sizeof header);
        put_row(exchange, &at, &header);
        for (int32_t p = 0, done = 0; p < header.num_pieces; ++p) {
            packed_piece packed;
            memcpy(&packed, from, sizeof packed);
            from += sizeof packed;
            const piece item = {.brick =
                                    (int64_t)packed.brick_high << 32 | packed.brick_low,
                                .count = packed.count};
            put_run(exchange, &at, header.chan, done, &item, source);
            done += item.count;
            ++at.pieces;
        }
        ++at.parcels;
        at.samples += header.count;
    }
}

/* Copies bytes; threads share them. */
static void copy_values(char *to, const char *from, int64_t bytes, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; ++t) {
        const int64_t first = bytes * t / threads, end = bytes * (t + 1) / threads;
        memcpy(to + first, from + first, (size_t)(end - first));
    }
}

/* The part of a message's parcels that thread t of `threads` unpacks. */
static landing landing_of(const char *header, int64_t parcels, int t, int threads)
{
    const int64_t first = parcels * t / threads;
    return (landing){.header = header + first * (int64_t)sizeof(parcel_header),
                     .first = first,
                     .end = parcels * (t + 1) / threads};
}

/* Finds what the shares of a message before each thread's share hold, in
 * exchange->share[t].count[source]. */
static void count_before(tess_exchange *exchange, const char *header, int64_t parcels,
                         int source, int threads)
{
    round_count before = {0};
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
    for (int t = 0; t < threads; ++t) {
        const landing part = landing_of(header, parcels, t, threads);
        if (threads > 1) count_parcels(&part, &exchange->share[t].count[source]);
    }
    for (int t = 0; t < threads; ++t) {
        const round_count here = exchange->share[t].count[source];
        exchange->share[t].count[source] = before;
        if (threads > 1) add_count(&before, &here);
    }
}

tess_status exchange_unpack(tess_exchange *exchange, const char *message, int source,
                            round_count *received)
{
    tess_status status = TESS_OK;
    round_count count;
    const sample_bytes each = bytes_of_sample(exchange);
    const round_count at = received_so_far(exchange);
    memcpy(&count, message, sizeof count);
    TESS_TRY(exchange_reserve(exchange, &count));
    const int64_t most = 1 + count.parcels / ROWS_PER_THREAD;
    const int threads = most < exchange->threads ? (int)most : exchange->threads;
    const message_parts parts = parts_of(exchange, &count);
    const char *header = message + parts.header;
    count_before(exchange, header, count.parcels, source, threads);
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
    for (int t = 0; t < threads; ++t) {
        landing part = landing_of(header, count.parcels, t, threads);
        const round_count *skip = &exchange->share[t].count[source];
        part.piece =
            message + parts.piece + skip->pieces * (int64_t)sizeof(packed_piece);
        part.at = plus(at, skip);
        take_parcels(exchange, &part, source);
    }
    copy_values((char *)exchange->samples.vis + at.samples * each.vis,
                message + parts.vis, count.samples * each.vis, threads);
    copy_values((char *)exchange->samples.weight + at.samples * each.weight,
                message + parts.weight, count.samples * each.weight, threads);
    arrived(exchange, &count);
    *received = count;
    tess_exchange_progress(exchange);
cleanup:
    return status;
}
