/* Cuts the rows of a round into parcels, and packs these into messages to their owners.
 */
#include <string.h>

#include "exchange_message.h"
#include "tess_mem.h"

/* Bytes that are packed between two looks at the round in flight. */
enum { PROGRESS_BYTES = 256 << 10 };

int64_t exchange_row_bytes(const tess_exchange *exchange, int64_t count)
{
    const sample_bytes each = bytes_of_sample(exchange);
    return 2 * (int64_t)sizeof(parcel_header) +
           count * (each.vis + each.weight + (int64_t)sizeof(packed_piece) / 2);
}

/* The first thread alone advances rounds in flight, now and then. */
static void keep_moving(tess_exchange *exchange, int64_t bytes, int64_t *since)
{
    *since += bytes;
    if (*since < PROGRESS_BYTES) return;
    *since = 0;
    tess_exchange_progress(exchange);
}

/* ---- a round's parcels ---- */

static int32_t wanted_runs(const tess_exchange *exchange, const round_rows *rows,
                           int64_t row, tess_run *run)
{
    int32_t wanted = 0;
    const int32_t found =
        tess_runs_of_row(exchange->plan, rows->samples, row, rows->skip_ignored, run);
    if (!rows->filter) return found;
    for (int32_t k = 0; k < found; ++k)
        if (rows->filter(rows->context, run[k].brick)) run[wanted++] = run[k];
    return wanted;
}

/* Counts the samples of split bricks in the rows [first, end). With one thread the
 * counts are not needed. */
static void count_split(const tess_exchange *exchange, const round_rows *rows,
                        int64_t first, int64_t end, int threads, round_share *share)
{
    memset(share->split, 0, (size_t)exchange->num_split * sizeof *share->split);
    if (exchange->num_split == 0 || threads == 1) return;
    for (int64_t row = first; row < end; ++row) {
        const int32_t runs = wanted_runs(exchange, rows, row, share->run);
        for (int32_t k = 0; k < runs; ++k) {
            const int64_t split =
                tess_partition_split(exchange->partition, share->run[k].brick);
            if (split >= 0) share->split[split] += share->run[k].count;
        }
    }
}

/* Replaces the counts of each thread by those of the threads before it. */
static void number_split(tess_exchange *exchange, int threads)
{
    for (int64_t k = 0; k < exchange->num_split; ++k) {
        int64_t before = exchange->split_offset[k];
        for (int t = 0; t < threads; ++t) {
            const int64_t count = exchange->share[t].split[k];
            exchange->share[t].split[k] = before;
            before += count;
        }
    }
}

/* The next round begins where the last thread has ended. */
static void keep_split(tess_exchange *exchange, const round_share *last)
{
    memcpy(exchange->split_offset, last->split,
           (size_t)exchange->num_split * sizeof *last->split);
}

/* Sends `count` samples of a run, from sample `done` on, to a rank. They join the
 * previous samples of the row if these are sent to the same rank. */
static tess_status add_piece(const tess_run *run, int32_t done, int32_t count, int rank,
                             round_share *share)
{
    tess_status status = TESS_OK;
    if (tess_grow((void **)&share->piece, &share->capacity_pieces,
                  share->num_pieces + 1, sizeof *share->piece) ||
        tess_grow((void **)&share->parcel, &share->capacity_parcels,
                  share->num_parcels + 1, sizeof *share->parcel))
        TESS_FAIL(TESS_ERR_ALLOC, "exchange of visibilities");
    share->piece[share->num_pieces++] = (piece){run->brick, count, rank};
    ++share->count[rank].pieces;
    share->count[rank].samples += count;
    parcel *last = share->last[rank] < 0 ? NULL : &share->parcel[share->last[rank]];
    if (last && last->row == run->row &&
        last->first + last->count == run->first + done) {
        last->count += count;
        ++last->num_pieces;
        return TESS_OK;
    }
    ++share->count[rank].parcels;
    share->last[rank] = share->num_parcels;
    share->parcel[share->num_parcels++] = (parcel){.first = run->first + done,
                                                   .row = run->row,
                                                   .chan = run->chan + done,
                                                   .count = count,
                                                   .rank = rank,
                                                   .num_pieces = 1};
cleanup:
    return status;
}

/* Of `count` samples of a split brick, from number `ordinal` on, those up to the chunk
 * that has another owner. */
static int64_t same_owner(const tess_exchange *exchange, int64_t brick, int64_t ordinal,
                          int64_t count)
{
    const int64_t chunk = exchange->plan->opts.chunk;
    const int owner = tess_partition_owner(exchange->partition, brick, ordinal);
    int64_t end = chunk - ordinal % chunk;
    while (end < count &&
           tess_partition_owner(exchange->partition, brick, ordinal + end) == owner)
        end += chunk;
    return end < count ? end : count;
}

/* Cuts a run into pieces of at most MOST_OF_PIECE samples. A run of a split brick is
 * also cut where the owner of its chunks changes, and not at each chunk: tracks
 * (tess_tracks.h) are made of whole runs, and are the same on any number of ranks. */
static tess_status add_run(const tess_exchange *exchange, const tess_run *run,
                           round_share *share)
{
    tess_status status = TESS_OK;
    const int64_t split = exchange->num_split > 0
                              ? tess_partition_split(exchange->partition, run->brick)
                              : -1;
    for (int32_t done = 0; done < run->count;) {
        int64_t ordinal = 0, count = run->count - done;
        if (count > MOST_OF_PIECE) count = MOST_OF_PIECE;
        if (split >= 0) {
            ordinal = tess_partition_split_first(exchange->partition, split) +
                      share->split[split];
            count = same_owner(exchange, run->brick, ordinal, count);
            share->split[split] += count;
        }
        TESS_TRY(add_piece(
            run, done, (int32_t)count,
            tess_partition_owner(exchange->partition, run->brick, ordinal), share));
        done += (int32_t)count;
    }
cleanup:
    return status;
}

static tess_status make_parcels(const tess_exchange *exchange, const round_rows *rows,
                                int64_t first, int64_t end, round_share *share)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(exchange->comm);
    share->num_parcels = share->num_pieces = 0;
    for (int rank = 0; rank < size; ++rank) {
        share->count[rank] = (round_count){0};
        share->last[rank] = -1;
    }
    for (int64_t row = first; row < end; ++row) {
        const int32_t runs = wanted_runs(exchange, rows, row, share->run);
        for (int32_t k = 0; k < runs; ++k)
            TESS_TRY(add_run(exchange, &share->run[k], share));
    }
cleanup:
    return status;
}

/* ---- places of parcels ---- */

tess_status exchange_reserve(tess_exchange *exchange, const round_count *more)
{
    tess_status status = TESS_OK;
    tess_brick_list *bricks = &exchange->bricks;
    TESS_TRY(tess_samples_reserve(&exchange->samples,
                                  exchange->samples.num_rows + more->parcels,
                                  exchange->samples.num_vis + more->samples));
    if (tess_grow((void **)&bricks->run, &bricks->capacity_runs,
                  bricks->num_runs + more->pieces, sizeof *bricks->run))
        TESS_FAIL(TESS_ERR_ALLOC, "exchange of visibilities");
cleanup:
    return status;
}

/* Replaces the counts of each thread for each rank by those of the threads before it.
 * Returns their sums. */
static void number_parcels(tess_exchange *exchange, int threads, round_count *total)
{
    const int size = tess_comm_size(exchange->comm);
    for (int rank = 0; rank < size; ++rank) {
        total[rank] = (round_count){0};
        for (int t = 0; t < threads; ++t) {
            const round_count here = exchange->share[t].count[rank];
            exchange->share[t].count[rank] = total[rank];
            add_count(&total[rank], &here);
        }
    }
}

tess_status exchange_log_round(tess_exchange *exchange)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(exchange->comm);
    if (tess_grow((void **)&exchange->rounds, &exchange->capacity_rounds,
                  exchange->num_rounds + 1, sizeof *exchange->rounds))
        TESS_FAIL(TESS_ERR_ALLOC, "exchange of visibilities");
    round_log *log = &exchange->rounds[exchange->num_rounds];
    *log = (round_log){.first_parcel = exchange->num_sent};
    log->received = tess_alloc_zero(2 * size, sizeof *log->received);
    if (!log->received) TESS_FAIL(TESS_ERR_ALLOC, "exchange of visibilities");
    log->place = log->received + size;
    ++exchange->num_rounds;
cleanup:
    return status;
}

/* Notes the parcels of each rank, for the way back. */
static tess_status log_round(tess_exchange *exchange, const round_count *total,
                             int64_t *first_sent)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(exchange->comm);
    TESS_TRY(exchange_log_round(exchange));
    round_log *log = &exchange->rounds[exchange->num_rounds - 1];
    for (int rank = 0; rank < size; ++rank) {
        first_sent[rank] = log->first_parcel + log->num_parcels;
        log->num_parcels += total[rank].parcels;
    }
    if (exchange->with_data) return TESS_OK;
    if (tess_grow((void **)&exchange->sent, &exchange->capacity_sent,
                  exchange->num_sent + log->num_parcels, sizeof *exchange->sent))
        TESS_FAIL(TESS_ERR_ALLOC, "exchange of visibilities");
    exchange->num_sent += log->num_parcels;
cleanup:
    return status;
}

/* The places of the parcels of a round, for all threads. */
typedef struct round_places {
    round_count *total; /* [P] */
    char **
        message; /* [P] message to each rank; NULL: it is this rank, or there is none */
    int64_t *first_sent; /* [P] first parcel of each rank in exchange->sent */
    round_count own;     /* where this rank's own parcels begin */
} round_places;

static void free_places(round_places *places)
{
    tess_free(places->total);
    tess_free(places->message);
    tess_free(places->first_sent);
}

/* Makes memory for all messages of a round: that of the window, if it is large enough.
 */
static tess_status take_buffer(const tess_exchange *exchange, int64_t bytes,
                               round_flight *round)
{
    tess_status status = TESS_OK;
    const int64_t part = exchange->round_bytes;
    if (exchange->window && bytes <= part) {
        const int64_t turn = exchange->num_started % WINDOW_PARTS;
        round->send = (char *)tess_window_own(exchange->window) + turn * part;
        return TESS_OK;
    }
    round->send = round->own_send = tess_alloc(bytes, 1);
    if (!round->send) TESS_FAIL(TESS_ERR_ALLOC, "exchange of visibilities");
cleanup:
    return status;
}

static tess_status lay_out_messages(tess_exchange *exchange, round_places *places,
                                    round_flight *round)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(exchange->comm),
              own = tess_comm_rank(exchange->comm);
    int64_t all = 0;
    memset(round->bytes, 0, 3 * (size_t)size * sizeof *round->bytes);
    for (int rank = 0; rank < size; ++rank) {
        round->bytes[2 * size + rank] = all;
        if (rank != own)
            round->bytes[rank] = message_bytes(exchange, &places->total[rank]);
        all += round->bytes[rank];
    }
    TESS_TRY(take_buffer(exchange, all, round));
    for (int rank = 0; rank < size; ++rank) {
        if (round->bytes[rank] == 0) continue;
        places->message[rank] = round->send + round->bytes[2 * size + rank];
        memcpy(places->message[rank], &places->total[rank], sizeof *places->total);
    }
cleanup:
    return status;
}

static tess_status lay_out(tess_exchange *exchange, int threads, round_places *places,
                           round_flight *round)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(exchange->comm),
              own = tess_comm_rank(exchange->comm);
    places->total = tess_alloc(size, sizeof *places->total);
    places->message = tess_alloc_zero(size, sizeof *places->message);
    places->first_sent = tess_alloc(size, sizeof *places->first_sent);
    round->log = exchange->num_rounds;
    if (!places->total || !places->message || !places->first_sent)
        TESS_FAIL(TESS_ERR_ALLOC, "exchange of visibilities");
    number_parcels(exchange, threads, places->total);
    TESS_TRY(log_round(exchange, places->total, places->first_sent));
    TESS_TRY(lay_out_messages(exchange, places, round));
    TESS_TRY(exchange_reserve(exchange, &places->total[own]));
    places->own = received_so_far(exchange);
    arrived(exchange, &places->total[own]);
    exchange->rounds[round->log].place[own] = places->own;
    exchange->rounds[round->log].received[own] = places->total[own];
cleanup:
    return status;
}

/* ---- packing ---- */

static parcel_header header_of(const round_rows *rows, const parcel *item)
{
    parcel_header header = {
        .chan = item->chan, .count = item->count, .num_pieces = item->num_pieces};
    memcpy(header.uvw_m, rows->samples->uvw_m + 3 * (int64_t)item->row,
           sizeof header.uvw_m);
    if (rows->samples->origins) header.origin = rows->samples->origin[item->row];
    return header;
}

/* Puts a parcel into the message of its rank behind what comes `before` it there, or to
 * its place if it stays on this rank. */
static void pack_parcel(tess_exchange *exchange, const round_rows *rows,
                        const parcel *item, const round_places *places,
                        const round_count *before)
{
    const sample_bytes each = bytes_of_sample(exchange);
    const parcel_header header = header_of(rows, item);
    char *vis = exchange->samples.vis, *weight = exchange->samples.weight;
    int64_t at = before->samples;
    if (!exchange->with_data)
        exchange->sent[places->first_sent[item->rank] + before->parcels] = *item;
    char *message = places->message[item->rank];
    if (message) {
        const message_parts parts = parts_of(exchange, &places->total[item->rank]);
        memcpy(message + parts.header + before->parcels * (int64_t)sizeof header,
               &header, sizeof header);
        vis = message + parts.vis;
        weight = message + parts.weight;
    } else {
        const round_count here = plus(places->own, before);
        put_row(exchange, &here, &header);
        at = here.samples;
    }
    if (!exchange->with_data) return;
    memcpy(vis + at * each.vis,
           (const char *)rows->samples->vis + item->first * each.vis,
           (size_t)(item->count * each.vis));
    memcpy(weight + at * each.weight,
           (const char *)rows->samples->weight + item->first * each.weight,
           (size_t)(item->count * each.weight));
}

/* Makes runs of the pieces of parcels that stay on this rank; the first is put at `at`.
 */
static void put_own_runs(tess_exchange *exchange, const round_share *share,
                         round_count at)
{
    const int own = tess_comm_rank(exchange->comm);
    int64_t next = 0;
    for (int64_t k = 0; k < share->num_parcels; ++k) {
        const parcel *item = &share->parcel[k];
        if (item->rank != own) continue;
        for (int32_t p = 0, done = 0; p < item->num_pieces; ++p) {
            while (share->piece[next].rank != own)
                ++next;
            put_run(exchange, &at, item->chan, done, &share->piece[next], own);
            done += share->piece[next++].count;
            ++at.pieces;
        }
        ++at.parcels;
        at.samples += item->count;
    }
}

static void pack_pieces(const tess_exchange *exchange, round_share *share,
                        const round_places *places)
{
    for (int64_t k = 0; k < share->num_pieces; ++k) {
        const piece *item = &share->piece[k];
        char *message = places->message[item->rank];
        if (!message) continue;
        char *to = message + parts_of(exchange, &places->total[item->rank]).piece;
        const packed_piece packed = {.brick_low = (uint32_t)item->brick,
                                     .brick_high = (uint16_t)(item->brick >> 32),
                                     .count = (uint16_t)item->count};
        memcpy(to + share->count[item->rank].pieces++ * (int64_t)sizeof packed, &packed,
               sizeof packed);
    }
}

static void pack_share(tess_exchange *exchange, const round_rows *rows,
                       round_share *share, const round_places *places, bool moves)
{
    int64_t since = 0;
    const int own = tess_comm_rank(exchange->comm);
    put_own_runs(exchange, share, plus(places->own, &share->count[own]));
    pack_pieces(exchange, share, places);
    for (int64_t k = 0; k < share->num_parcels; ++k) {
        const parcel *item = &share->parcel[k];
        round_count *before = &share->count[item->rank];
        pack_parcel(exchange, rows, item, places, before);
        ++before->parcels;
        before->samples += item->count;
        if (moves)
            keep_moving(exchange, exchange_row_bytes(exchange, item->count), &since);
    }
}

/* Makes room for the runs of a row in each share. */
static tess_status reserve_runs(tess_exchange *exchange, const round_rows *rows,
                                int threads)
{
    tess_status status = TESS_OK;
    const int64_t most =
        tess_samples_longest_row(rows->samples, rows->first, rows->end);
    for (int t = 0; t < threads; ++t)
        if (tess_grow((void **)&exchange->share[t].run,
                      &exchange->share[t].capacity_run, most,
                      sizeof *exchange->share[t].run))
            TESS_FAIL(TESS_ERR_ALLOC, "exchange of visibilities");
cleanup:
    return status;
}

tess_status exchange_pack(tess_exchange *exchange, const round_rows *rows,
                          round_flight *round)
{
    tess_status status = TESS_OK;
    const int64_t count = rows->end - rows->first, most = 1 + count / ROWS_PER_THREAD;
    const int threads = most < exchange->threads ? (int)most : exchange->threads;
    round_places places = {0};
    TESS_TRY(reserve_runs(exchange, rows, threads));
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; ++t)
        count_split(exchange, rows, rows->first + count * t / threads,
                    rows->first + count * (t + 1) / threads, threads,
                    &exchange->share[t]);
    number_split(exchange, threads);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; ++t)
        exchange->share[t].status =
            make_parcels(exchange, rows, rows->first + count * t / threads,
                         rows->first + count * (t + 1) / threads, &exchange->share[t]);
    for (int t = 0; t < threads; ++t)
        TESS_TRY(exchange->share[t].status);
    keep_split(exchange, &exchange->share[threads - 1]);
    TESS_TRY(lay_out(exchange, threads, &places, round));
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; ++t)
        pack_share(exchange, rows, &exchange->share[t], &places, t == 0);
cleanup:
    free_places(&places);
    return status;
}

void tess_exchange_progress(tess_exchange *exchange)
{
    for (int64_t ago = ROUNDS_FLYING - 1; ago > 0; --ago) {
        const round_flight *round = exchange_round_before(exchange, ago);
        if (round->active) tess_flight_progress(round->flight);
    }
}
