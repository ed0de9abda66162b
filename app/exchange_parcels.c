/* Rounds of an exchange: runs as parcels in messages, and messages as rows. */
#include <string.h>

#include "exchange_parcels.h"
#include "tess_mem.h"

/* Bytes packed between two looks at the round in flight. */
enum { PROGRESS_BYTES = 256 << 10 };

/* Runs below which a round is not worth sharing by threads. */
enum { RUNS_PER_THREAD = 64 };

/* A message is a message_head, headers, then visibilities and weights of all parcels,
 * so that values arrive as they are kept. */
typedef struct parcel_header {
    int64_t brick;
    double uvw_m[3];
    int32_t chan, count;
} parcel_header;

typedef struct message_head {
    int64_t num_parcels, num_samples;
} message_head;

/* Bytes of a sample's visibilities and of its weights, 0 without data. */
typedef struct sample_bytes {
    int64_t vis, weight;
} sample_bytes;

static sample_bytes bytes_of_sample(const tess_exchange *exchange)
{
    const tess_samples *samples = &exchange->samples;
    const int64_t element = samples->is_double ? 8 : 4;
    if (!exchange->with_data) return (sample_bytes){0, 0};
    return (sample_bytes){2 * element * samples->num_pol,
                          element * samples->num_weight};
}

static int64_t message_bytes(const tess_exchange *exchange, const message_head *head)
{
    const sample_bytes each = bytes_of_sample(exchange);
    if (head->num_parcels == 0) return 0;
    return (int64_t)sizeof *head + head->num_parcels * (int64_t)sizeof(parcel_header) +
           head->num_samples * (each.vis + each.weight);
}

int64_t exchange_parcel_bytes(const tess_exchange *exchange, int64_t count)
{
    const sample_bytes each = bytes_of_sample(exchange);
    return (int64_t)sizeof(parcel_header) + count * (each.vis + each.weight);
}

/* Let the round in flight move on now and then; the first thread alone. */
static void keep_moving(tess_exchange *exchange, int64_t bytes, int64_t *since)
{
    *since += bytes;
    if (*since < PROGRESS_BYTES) return;
    *since = 0;
    tess_flight_progress(exchange->flying.flight);
}

/* ---- a round's parcels ---- */

static bool is_left_out(const round_runs *runs, int64_t k)
{
    return runs->filter && !runs->filter(runs->context, runs->run[k].brick);
}

/* Samples of split bricks among the runs [first, end). */
static void count_split(const tess_exchange *exchange, const round_runs *runs,
                        int64_t first, int64_t end, int64_t *count)
{
    memset(count, 0, (size_t)exchange->num_split * sizeof *count);
    if (exchange->num_split == 0) return;
    for (int64_t k = first; k < end; ++k) {
        const int64_t split =
            tess_partition_split(exchange->partition, runs->run[k].brick);
        if (split >= 0 && !is_left_out(runs, k)) count[split] += runs->run[k].count;
    }
}

/* Counts of each thread become what comes before it; the last sums are kept. */
static void number_split(tess_exchange *exchange, int threads)
{
    for (int64_t k = 0; k < exchange->num_split; ++k)
        for (int t = 0; t < threads; ++t) {
            const int64_t count = exchange->share[t].split[k];
            exchange->share[t].split[k] = exchange->split_offset[k];
            exchange->split_offset[k] += count;
        }
}

static tess_status add_parcel(round_share *share, const parcel *item)
{
    tess_status status = TESS_OK;
    if (tess_grow((void **)&share->parcel, &share->capacity, share->count + 1,
                  sizeof *share->parcel))
        TESS_FAIL(TESS_ERR_ALLOC, "exchange of visibilities");
    share->parcel[share->count++] = *item;
    ++share->num[item->rank];
    share->values[item->rank] += item->count;
cleanup:
    return status;
}

/* A run of a whole brick is one parcel; a run of a split brick is cut where its chunks
 * change owner. */
static tess_status add_run(const tess_exchange *exchange, const tess_run *run,
                           int64_t number, round_share *share)
{
    tess_status status = TESS_OK;
    const int64_t split = exchange->num_split > 0
                              ? tess_partition_split(exchange->partition, run->brick)
                              : -1;
    const int64_t chunk = exchange->plan->chunk;
    for (int32_t done = 0; done < run->count;) {
        int64_t ordinal = 0, count = run->count - done;
        if (split >= 0) {
            ordinal = tess_partition_split_first(exchange->partition, split) +
                      share->split[split];
            const int64_t to_border = chunk - ordinal % chunk;
            if (count > to_border) count = to_border;
            share->split[split] += count;
        }
        const parcel item = {
            .run = number,
            .first = run->first + done,
            .count = count,
            .chan_offset = done,
            .rank = tess_partition_owner(exchange->partition, run->brick, ordinal)};
        TESS_TRY(add_parcel(share, &item));
        done += (int32_t)count;
    }
cleanup:
    return status;
}

static tess_status make_parcels(const tess_exchange *exchange, const round_runs *runs,
                                int64_t first, int64_t end, round_share *share)
{
    tess_status status = TESS_OK;
    share->count = 0;
    memset(share->num, 0,
           2 * (size_t)tess_comm_size(exchange->comm) * sizeof *share->num);
    for (int64_t k = first; k < end; ++k)
        if (!is_left_out(runs, k)) TESS_TRY(add_run(exchange, &runs->run[k], k, share));
cleanup:
    return status;
}

/* ---- where parcels come to lie ---- */

tess_status exchange_reserve(tess_exchange *exchange, int64_t num_rows, int64_t num_vis)
{
    tess_status status = TESS_OK;
    tess_brick_list *bricks = &exchange->bricks;
    TESS_TRY(tess_samples_reserve(&exchange->samples,
                                  exchange->samples.num_rows + num_rows,
                                  exchange->samples.num_vis + num_vis));
    if (tess_grow((void **)&bricks->run, &bricks->capacity_runs,
                  bricks->num_runs + num_rows, sizeof *bricks->run))
        TESS_FAIL(TESS_ERR_ALLOC, "exchange of visibilities");
cleanup:
    return status;
}

/* The k-th arrival is a row of its own, of one run. */
static void put_row(tess_exchange *exchange, int64_t k, int64_t first,
                    const parcel_header *header, int source)
{
    tess_samples *samples = &exchange->samples;
    memcpy(samples->uvw_m + 3 * k, header->uvw_m, sizeof header->uvw_m);
    samples->chan_base[k] = header->chan;
    samples->num_chan[k] = header->count;
    samples->vis_first[k] = first;
    exchange->bricks.run[k] = (tess_run){.brick = header->brick,
                                         .first = first,
                                         .row = (int32_t)k,
                                         .chan = header->chan,
                                         .count = header->count,
                                         .source = source};
}

static void arrived(tess_exchange *exchange, const message_head *head)
{
    exchange->samples.num_rows += head->num_parcels;
    exchange->samples.num_vis += head->num_samples;
    exchange->bricks.num_runs += head->num_parcels;
}

/* Counts of each thread for each rank become what comes before it; their sums. */
static void number_parcels(tess_exchange *exchange, int threads, message_head *total)
{
    const int size = tess_comm_size(exchange->comm);
    for (int rank = 0; rank < size; ++rank) {
        total[rank] = (message_head){0};
        for (int t = 0; t < threads; ++t) {
            round_share *share = &exchange->share[t];
            const int64_t num = share->num[rank], values = share->values[rank];
            share->num[rank] = total[rank].num_parcels;
            share->values[rank] = total[rank].num_samples;
            total[rank].num_parcels += num;
            total[rank].num_samples += values;
        }
    }
}

/* Note what goes where, for the way back. */
static tess_status log_round(tess_exchange *exchange, const message_head *total,
                             int64_t *first_sent)
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
    for (int rank = 0; rank < size; ++rank) {
        first_sent[rank] = log->first_parcel + log->num_parcels;
        log->num_parcels += total[rank].num_parcels;
    }
    if (exchange->with_data) return TESS_OK;
    if (tess_grow((void **)&exchange->sent, &exchange->capacity_sent,
                  exchange->num_sent + log->num_parcels, sizeof *exchange->sent))
        TESS_FAIL(TESS_ERR_ALLOC, "exchange of visibilities");
    exchange->num_sent += log->num_parcels;
cleanup:
    return status;
}

/* Where the parcels of a round go, all threads' together. */
typedef struct round_places {
    message_head *total; /* [P] */
    char **headers;      /* [P] in the send buffer; NULL: the own */
    int64_t *first_sent; /* [P] in exchange->sent */
    int64_t row, sample; /* of the own */
} round_places;

static void free_places(round_places *places)
{
    tess_free(places->total);
    tess_free(places->headers);
    tess_free(places->first_sent);
}

static tess_status lay_out(tess_exchange *exchange, int threads, round_places *places,
                           round_flight *round)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(exchange->comm),
              own = tess_comm_rank(exchange->comm);
    int64_t all = 0;
    places->total = tess_alloc(size, sizeof *places->total);
    places->headers = tess_alloc_zero(size, sizeof *places->headers);
    places->first_sent = tess_alloc(size, sizeof *places->first_sent);
    round->bytes = tess_alloc_zero(3 * size, sizeof *round->bytes);
    round->log = exchange->num_rounds;
    round->active = true;
    if (!places->total || !places->headers || !places->first_sent || !round->bytes)
        TESS_FAIL(TESS_ERR_ALLOC, "exchange of visibilities");
    number_parcels(exchange, threads, places->total);
    TESS_TRY(log_round(exchange, places->total, places->first_sent));
    for (int rank = 0; rank < size; ++rank) {
        round->bytes[2 * size + rank] = all;
        if (rank != own)
            round->bytes[rank] = message_bytes(exchange, &places->total[rank]);
        all += round->bytes[rank];
    }
    round->send = tess_alloc(all, 1);
    if (!round->send) TESS_FAIL(TESS_ERR_ALLOC, "exchange of visibilities");
    for (int rank = 0; rank < size; ++rank) {
        if (round->bytes[rank] == 0) continue;
        char *message = round->send + round->bytes[2 * size + rank];
        memcpy(message, &places->total[rank], sizeof *places->total);
        places->headers[rank] = message + sizeof *places->total;
    }
    TESS_TRY(exchange_reserve(exchange, places->total[own].num_parcels,
                              places->total[own].num_samples));
    places->row = exchange->samples.num_rows;
    places->sample = exchange->samples.num_vis;
    arrived(exchange, &places->total[own]);
    exchange->rounds[round->log].place[own] = places->sample;
    exchange->rounds[round->log].received[own] = places->total[own].num_samples;
cleanup:
    return status;
}

/* ---- packing ---- */

static parcel_header header_of(const round_runs *runs, const parcel *item)
{
    const tess_run *run = &runs->run[item->run];
    parcel_header header = {.brick = run->brick,
                            .chan = run->chan + item->chan_offset,
                            .count = (int32_t)item->count};
    memcpy(header.uvw_m, runs->samples->uvw_m + 3 * (int64_t)run->row,
           sizeof header.uvw_m);
    return header;
}

/* One parcel to the number-th place of its rank's message, behind `before` samples, or
 * where own ones are wanted. */
static void pack(tess_exchange *exchange, const round_runs *runs, const parcel *item,
                 const round_places *places, int64_t number, int64_t before)
{
    const sample_bytes each = bytes_of_sample(exchange);
    const parcel_header header = header_of(runs, item);
    const message_head *total = &places->total[item->rank];
    char *vis = exchange->samples.vis, *weight = exchange->samples.weight;
    if (!exchange->with_data)
        exchange->sent[places->first_sent[item->rank] + number] = *item;
    if (places->headers[item->rank]) {
        char *headers = places->headers[item->rank];
        memcpy(headers + number * (int64_t)sizeof header, &header, sizeof header);
        vis = headers + total->num_parcels * (int64_t)sizeof header;
        weight = vis + total->num_samples * each.vis;
    } else {
        before += places->sample;
        put_row(exchange, places->row + number, before, &header,
                tess_comm_rank(exchange->comm));
    }
    if (!exchange->with_data) return;
    memcpy(vis + before * each.vis,
           (const char *)runs->samples->vis + item->first * each.vis,
           (size_t)(item->count * each.vis));
    memcpy(weight + before * each.weight,
           (const char *)runs->samples->weight + item->first * each.weight,
           (size_t)(item->count * each.weight));
}

static void pack_share(tess_exchange *exchange, const round_runs *runs,
                       round_share *share, const round_places *places, bool moves)
{
    int64_t since = 0;
    for (int64_t k = 0; k < share->count; ++k) {
        const parcel *item = &share->parcel[k];
        pack(exchange, runs, item, places, share->num[item->rank]++,
             share->values[item->rank]);
        share->values[item->rank] += item->count;
        if (moves)
            keep_moving(exchange, exchange_parcel_bytes(exchange, item->count), &since);
    }
}

tess_status exchange_pack(tess_exchange *exchange, const round_runs *runs,
                          round_flight *round)
{
    tess_status status = TESS_OK;
    const int64_t count = runs->end - runs->first;
    const int64_t most = 1 + count / RUNS_PER_THREAD;
    const int threads = most < exchange->threads ? (int)most : exchange->threads;
    round_places places = {0};
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; ++t)
        count_split(exchange, runs, runs->first + count * t / threads,
                    runs->first + count * (t + 1) / threads, exchange->share[t].split);
    number_split(exchange, threads);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; ++t)
        exchange->share[t].status =
            make_parcels(exchange, runs, runs->first + count * t / threads,
                         runs->first + count * (t + 1) / threads, &exchange->share[t]);
    for (int t = 0; t < threads; ++t)
        TESS_TRY(exchange->share[t].status);
    TESS_TRY(lay_out(exchange, threads, &places, round));
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; ++t)
        pack_share(exchange, runs, &exchange->share[t], &places, t == 0);
cleanup:
    free_places(&places);
    return status;
}

/* ---- unpacking ---- */

/* Headers [first, end) of a message to rows, behind `before` samples of it; with
 * `count` they are only counted. */
static void take_headers(tess_exchange *exchange, const char *headers, int64_t first,
                         int64_t end, int64_t before, int source, int64_t *count)
{
    const int64_t row = exchange->samples.num_rows, sample = exchange->samples.num_vis;
    for (int64_t k = first; k < end; ++k) {
        parcel_header header;
        memcpy(&header, headers + k * (int64_t)sizeof header, sizeof header);
        if (count)
            *count += header.count;
        else
            put_row(exchange, row + k, sample + before, &header, source);
        before += header.count;
    }
}

/* Copy by threads. */
static void copy_values(char *to, const char *from, int64_t bytes, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; ++t) {
        const int64_t first = bytes * t / threads, end = bytes * (t + 1) / threads;
        memcpy(to + first, from + first, (size_t)(end - first));
    }
}

tess_status exchange_unpack(tess_exchange *exchange, const char *message, int source)
{
    tess_status status = TESS_OK;
    message_head head;
    const sample_bytes each = bytes_of_sample(exchange);
    memcpy(&head, message, sizeof head);
    TESS_TRY(exchange_reserve(exchange, head.num_parcels, head.num_samples));
    const int64_t count = head.num_parcels, most = 1 + count / RUNS_PER_THREAD;
    const int threads = most < exchange->threads ? (int)most : exchange->threads;
    const char *headers = message + sizeof head;
    const char *vis = headers + count * (int64_t)sizeof(parcel_header);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; ++t) {
        exchange->share[t].count = 0;
        take_headers(exchange, headers, count * t / threads, count * (t + 1) / threads,
                     0, source, &exchange->share[t].count);
    }
    for (int64_t t = 0, before = 0; t < threads; ++t) {
        const int64_t here = exchange->share[t].count;
        exchange->share[t].count = before;
        before += here;
    }
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; ++t)
        take_headers(exchange, headers, count * t / threads, count * (t + 1) / threads,
                     exchange->share[t].count, source, NULL);
    copy_values((char *)exchange->samples.vis + exchange->samples.num_vis * each.vis,
                vis, head.num_samples * each.vis, threads);
    copy_values(
        (char *)exchange->samples.weight + exchange->samples.num_vis * each.weight,
        vis + head.num_samples * each.vis, head.num_samples * each.weight, threads);
    arrived(exchange, &head);
    tess_flight_progress(exchange->flying.flight);
cleanup:
    return status;
}
