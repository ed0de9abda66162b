#include "exchange.h"

#include <string.h>

#include "tess_mem.h"

/* Bytes a rank sends in one round; receivers get about as much. Two rounds are on their
 * way at a time: one flies while the next is packed, and the one before is unpacked. */
enum { ROUND_BYTES = 24 << 20 };

/* Bytes packed or unpacked between two looks at the round in flight. */
enum { PROGRESS_BYTES = 256 << 10 };

/* A run, or a part of one, and where it goes. */
typedef struct parcel {
    int64_t run, first, count; /* samples [first, first + count) of the set */
    int32_t chan_offset;
    int rank;
} parcel;

typedef struct parcel_header {
    int64_t brick;
    double uvw_m[3];
    int32_t chan, count;
    int64_t values; /* samples that follow: count, or 0 */
} parcel_header;

/* What one round moved, for the way back. */
typedef struct round_log {
    int64_t first_parcel, num_parcels; /* in exchange->sent */
    int64_t first_received;            /* sample index of its first arrival */
    int64_t *sent, *received;          /* [P] samples */
} round_log;

/* A round on its way. */
typedef struct round_flight {
    bool active;
    tess_flight *flight;
    char *send;     /* parcels by rank, those of this rank among them */
    int64_t *bytes; /* [4][P]: sent, received, where each rank's begin, place */
    int64_t log;    /* number of the round */
} round_flight;

struct tess_exchange {
    tess_comm *comm;
    const tess_grid_plan *plan;
    const tess_partition *partition;
    bool with_data;
    int64_t round_bytes;
    round_flight flying;  /* the round that has not been unpacked */
    tess_samples samples; /* received */
    tess_brick_list bricks;
    int64_t *split_offset; /* [num_split] samples of split bricks sent so far */
    int64_t num_split;
    parcel *sent; /* prediction: all parcels, in order of packing */
    int64_t num_sent, capacity_sent;
    round_log *rounds;
    int64_t num_rounds, capacity_rounds;
};

tess_status tess_exchange_create(tess_comm *comm, const tess_grid_plan *plan,
                                 const tess_partition *partition, bool with_data,
                                 const tess_samples *like, int64_t round_bytes,
                                 tess_exchange **exchange_out)
{
    tess_status status = TESS_OK;
    double largest, mean;
    tess_exchange *exchange = tess_alloc_zero(1, sizeof *exchange);
    if (!exchange) TESS_FAIL(TESS_ERR_ALLOC, "exchange");
    exchange->comm = comm;
    exchange->plan = plan;
    exchange->partition = partition;
    exchange->with_data = with_data;
    exchange->round_bytes = round_bytes > 0 ? round_bytes : ROUND_BYTES;
    exchange->samples = (tess_samples){.is_double = like->is_double,
                                       .num_pol = like->num_pol,
                                       .num_weight = like->num_weight,
                                       .inv_lambda = like->inv_lambda};
    tess_partition_balance(partition, &largest, &mean, &exchange->num_split);
    exchange->split_offset =
        tess_alloc_zero(exchange->num_split, sizeof *exchange->split_offset);
    if (!exchange->split_offset) TESS_FAIL(TESS_ERR_ALLOC, "exchange");
    *exchange_out = exchange;
    exchange = NULL;
cleanup:
    tess_exchange_destroy(exchange);
    return status;
}

void tess_exchange_reset(tess_exchange *exchange)
{
    exchange->samples.num_rows = exchange->samples.num_vis = 0;
    tess_brick_list_free(&exchange->bricks);
    memset(exchange->split_offset, 0,
           (size_t)exchange->num_split * sizeof *exchange->split_offset);
    for (int64_t k = 0; k < exchange->num_rounds; ++k)
        tess_free(exchange->rounds[k].sent);
    exchange->num_rounds = exchange->num_sent = 0;
}

static void flight_end(round_flight *round)
{
    tess_flight_finish(&round->flight, NULL);
    tess_free(round->send);
    tess_free(round->bytes);
    *round = (round_flight){0};
}

void tess_exchange_destroy(tess_exchange *exchange)
{
    if (!exchange) return;
    flight_end(&exchange->flying);
    for (int64_t k = 0; k < exchange->num_rounds; ++k)
        tess_free(exchange->rounds[k].sent);
    tess_free(exchange->rounds);
    tess_free(exchange->sent);
    tess_samples_free(&exchange->samples);
    tess_brick_list_free(&exchange->bricks);
    tess_free(exchange->split_offset);
    tess_free(exchange);
}

static int64_t parcel_bytes(const tess_exchange *exchange, int64_t count)
{
    return (int64_t)sizeof(parcel_header) +
           (exchange->with_data ? count * tess_samples_vis_bytes(&exchange->samples)
                                : 0);
}

/* ---- a round's parcels ---- */

typedef struct parcel_list {
    parcel *parcel;
    int64_t count, capacity;
    int64_t bytes;
} parcel_list;

/* A run of a whole brick is one parcel; a run of a split brick is cut where its chunks
 * change owner. */
static tess_status add_run(tess_exchange *exchange, const tess_brick_list *runs,
                           int64_t k, parcel_list *list)
{
    tess_status status = TESS_OK;
    const tess_run *run = &runs->run[k];
    const int64_t split = tess_partition_split(exchange->partition, run->brick);
    const int64_t chunk = exchange->plan->chunk;
    for (int32_t done = 0; done < run->count;) {
        int64_t ordinal = 0, count = run->count - done;
        if (split >= 0) {
            ordinal = tess_partition_split_first(exchange->partition, split) +
                      exchange->split_offset[split];
            const int64_t to_border = chunk - ordinal % chunk;
            if (count > to_border) count = to_border;
            exchange->split_offset[split] += count;
        }
        if (tess_grow((void **)&list->parcel, &list->capacity, list->count + 1,
                      sizeof *list->parcel))
            TESS_FAIL(TESS_ERR_ALLOC, "exchange of visibilities");
        list->parcel[list->count++] = (parcel){
            .run = k,
            .first = run->first + done,
            .count = count,
            .chan_offset = done,
            .rank = tess_partition_owner(exchange->partition, run->brick, ordinal)};
        list->bytes += parcel_bytes(exchange, count);
        done += (int32_t)count;
    }
cleanup:
    return status;
}

static tess_status next_parcels(tess_exchange *exchange, const tess_brick_list *runs,
                                tess_exchange_filter *filter, const void *context,
                                int64_t *next_run, parcel_list *list)
{
    tess_status status = TESS_OK;
    list->count = list->bytes = 0;
    while (*next_run < runs->num_runs && list->bytes < exchange->round_bytes) {
        const int64_t k = (*next_run)++;
        if (filter && !filter(context, runs->run[k].brick)) continue;
        TESS_TRY(add_run(exchange, runs, k, list));
    }
cleanup:
    return status;
}

/* Note what goes where, for the way back. */
static tess_status log_round(tess_exchange *exchange, const parcel_list *list,
                             round_log **log_out)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(exchange->comm);
    if (tess_grow((void **)&exchange->rounds, &exchange->capacity_rounds,
                  exchange->num_rounds + 1, sizeof *exchange->rounds))
        TESS_FAIL(TESS_ERR_ALLOC, "exchange of visibilities");
    round_log *log = &exchange->rounds[exchange->num_rounds];
    *log = (round_log){.first_parcel = exchange->num_sent, .num_parcels = list->count};
    log->sent = tess_alloc_zero(2 * size, sizeof *log->sent);
    if (!log->sent) TESS_FAIL(TESS_ERR_ALLOC, "exchange of visibilities");
    log->received = log->sent + size;
    ++exchange->num_rounds;
    if (!exchange->with_data) {
        if (tess_grow((void **)&exchange->sent, &exchange->capacity_sent,
                      exchange->num_sent + list->count, sizeof *exchange->sent))
            TESS_FAIL(TESS_ERR_ALLOC, "exchange of visibilities");
        /* in order of rank, as the replies will be */
        for (int rank = 0; rank < size; ++rank)
            for (int64_t k = 0; k < list->count; ++k)
                if (list->parcel[k].rank == rank)
                    exchange->sent[exchange->num_sent++] = list->parcel[k];
    }
    for (int64_t k = 0; k < list->count; ++k)
        log->sent[list->parcel[k].rank] += list->parcel[k].count;
    *log_out = log;
cleanup:
    return status;
}

/* Append one parcel to what has been received; `vis` and `weight` are looked at with
 * data only. */
static tess_status append(tess_exchange *exchange, const parcel_header *header,
                          const char *vis, const char *weight, int source)
{
    tess_status status = TESS_OK;
    tess_samples *samples = &exchange->samples;
    tess_brick_list *bricks = &exchange->bricks;
    const int64_t row = samples->num_rows, first = samples->num_vis;
    const int64_t element = samples->is_double ? 8 : 4;
    const int64_t vis_bytes = 2 * element * samples->num_pol;
    const int64_t weight_bytes = element * samples->num_weight;
    TESS_TRY(tess_samples_reserve(samples, row + 1, first + header->count));
    if (tess_grow((void **)&bricks->run, &bricks->capacity_runs, bricks->num_runs + 1,
                  sizeof *bricks->run))
        TESS_FAIL(TESS_ERR_ALLOC, "exchange of visibilities");
    memcpy(samples->uvw_m + 3 * row, header->uvw_m, sizeof header->uvw_m);
    samples->chan_base[row] = header->chan;
    samples->num_chan[row] = header->count;
    samples->vis_first[row] = first;
    bricks->run[bricks->num_runs++] = (tess_run){.brick = header->brick,
                                                 .first = first,
                                                 .row = (int32_t)row,
                                                 .chan = header->chan,
                                                 .count = header->count,
                                                 .source = source};
    if (exchange->with_data) {
        memcpy((char *)samples->vis + first * vis_bytes, vis,
               (size_t)(header->count * vis_bytes));
        memcpy((char *)samples->weight + first * weight_bytes, weight,
               (size_t)(header->count * weight_bytes));
    }
    ++samples->num_rows;
    samples->num_vis += header->count;
cleanup:
    return status;
}

/* Let the round in flight move on now and then. */
static void keep_moving(tess_exchange *exchange, int64_t bytes, int64_t *since)
{
    *since += bytes;
    if (*since < PROGRESS_BYTES) return;
    *since = 0;
    tess_flight_progress(exchange->flying.flight);
}

void tess_exchange_progress(tess_exchange *exchange)
{
    tess_flight_progress(exchange->flying.flight);
}

static tess_status unpack(tess_exchange *exchange, const char *message, int64_t bytes,
                          int source, int64_t *num_received)
{
    tess_status status = TESS_OK;
    const tess_samples *samples = &exchange->samples;
    const int64_t element = samples->is_double ? 8 : 4;
    const int64_t vis_bytes = 2 * element * samples->num_pol;
    int64_t since = 0;
    for (int64_t at = 0; at < bytes;) {
        parcel_header header;
        memcpy(&header, message + at, sizeof header);
        const char *vis = message + at + sizeof header;
        TESS_TRY(
            append(exchange, &header, vis, vis + header.count * vis_bytes, source));
        at += parcel_bytes(exchange, header.count);
        *num_received += header.count;
        keep_moving(exchange, parcel_bytes(exchange, header.count), &since);
    }
cleanup:
    return status;
}

/* ---- rounds ---- */

static parcel_header header_of(const tess_samples *samples, const tess_run *run,
                               const parcel *item)
{
    parcel_header header = {.brick = run->brick,
                            .chan = run->chan + item->chan_offset,
                            .count = (int32_t)item->count};
    memcpy(header.uvw_m, samples->uvw_m + 3 * (int64_t)run->row, sizeof header.uvw_m);
    return header;
}

/* Where a parcel's values are. */
static void values_of(const tess_samples *samples, const parcel *item, const char **vis,
                      const char **weight)
{
    const int64_t element = samples->is_double ? 8 : 4;
    *vis = (const char *)samples->vis + item->first * 2 * element * samples->num_pol;
    *weight =
        (const char *)samples->weight + item->first * element * samples->num_weight;
}

static void pack(const tess_exchange *exchange, const tess_samples *samples,
                 const tess_run *run, const parcel *item, char *to)
{
    const int64_t element = samples->is_double ? 8 : 4;
    const int64_t vis_bytes = 2 * element * samples->num_pol * item->count;
    const int64_t weight_bytes = element * samples->num_weight * item->count;
    const parcel_header header = header_of(samples, run, item);
    const char *vis, *weight;
    memcpy(to, &header, sizeof header);
    if (!exchange->with_data) return;
    values_of(samples, item, &vis, &weight);
    memcpy(to + sizeof header, vis, (size_t)vis_bytes);
    memcpy(to + sizeof header + vis_bytes, weight, (size_t)weight_bytes);
}

/* Parcels into the round's send buffer, by rank. */
static tess_status pack_round(tess_exchange *exchange, const tess_samples *samples,
                              const tess_brick_list *runs, const parcel_list *list,
                              round_flight *round)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(exchange->comm);
    int64_t since = 0;
    round_log *log = NULL;
    round->active = true;
    round->log = exchange->num_rounds;
    round->send = tess_alloc(list->bytes, 1);
    round->bytes = tess_alloc_zero(4 * size, sizeof *round->bytes);
    if (!round->send || !round->bytes)
        TESS_FAIL(TESS_ERR_ALLOC, "exchange of visibilities");
    TESS_TRY(log_round(exchange, list, &log));
    int64_t *bytes = round->bytes, *begin = bytes + 2 * size, *at = bytes + 3 * size;
    for (int64_t k = 0; k < list->count; ++k)
        bytes[list->parcel[k].rank] += parcel_bytes(exchange, list->parcel[k].count);
    for (int rank = 1; rank < size; ++rank)
        begin[rank] = begin[rank - 1] + bytes[rank - 1];
    memcpy(at, begin, (size_t)size * sizeof *at);
    for (int64_t k = 0; k < list->count; ++k) {
        const parcel *item = &list->parcel[k];
        const int64_t length = parcel_bytes(exchange, item->count);
        pack(exchange, samples, &runs->run[item->run], item,
             round->send + at[item->rank]);
        at[item->rank] += length;
        keep_moving(exchange, length, &since);
    }
cleanup:
    return status;
}

/* Take what a round has brought, in order of rank; this rank's own parcels never left
 * the send buffer. Collective, but for failures to unpack. */
static tess_status land(tess_exchange *exchange, round_flight *round)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(exchange->comm),
              own = tess_comm_rank(exchange->comm);
    void *received = NULL;
    if (!round->active) return TESS_OK;
    TESS_TRY(tess_flight_finish(&round->flight, &received));
    const char *message = received;
    exchange->rounds[round->log].first_received = exchange->samples.num_vis;
    for (int rank = 0; rank < size && status == TESS_OK; ++rank) {
        const int64_t arrived = round->bytes[size + rank];
        const bool here = rank == own;
        status = unpack(exchange,
                        here ? round->send + round->bytes[2 * size + rank] : message,
                        here ? round->bytes[own] : arrived, rank,
                        &exchange->rounds[round->log].received[rank]);
        message += arrived;
    }
cleanup:
    tess_free(received);
    flight_end(round);
    return status;
}

/* Start a packed round, and unpack the one before while it flies. Collective, but for
 * failures to unpack. */
static tess_status launch(tess_exchange *exchange, round_flight *round)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(exchange->comm),
              own = tess_comm_rank(exchange->comm);
    round_flight before = exchange->flying;
    const int64_t own_bytes = round->bytes[own];
    round->bytes[own] = 0;
    status = tess_flight_start(exchange->comm, round->send, round->bytes + 2 * size,
                               round->bytes, round->bytes + size, &round->flight);
    round->bytes[own] = own_bytes;
    if (status == TESS_OK) {
        exchange->flying = *round;
        *round = (round_flight){0};
        status = land(exchange, &before);
    }
    return status;
}

/* One rank: parcels go straight to where they are wanted. */
static tess_status keep_own(tess_exchange *exchange, const tess_samples *samples,
                            const tess_brick_list *runs, const parcel_list *list)
{
    tess_status status = TESS_OK;
    round_log *log = NULL;
    TESS_TRY(log_round(exchange, list, &log));
    log->first_received = exchange->samples.num_vis;
    log->received[0] = log->sent[0];
    for (int64_t k = 0; k < list->count; ++k) {
        const parcel *item = &list->parcel[k];
        const parcel_header header = header_of(samples, &runs->run[item->run], item);
        const char *vis = NULL, *weight = NULL;
        if (exchange->with_data) values_of(samples, item, &vis, &weight);
        TESS_TRY(append(exchange, &header, vis, weight, 0));
    }
cleanup:
    return status;
}

/* Agree on failures and on whether anybody has more to send. Collective. */
static tess_status agree(tess_comm *comm, tess_status status, int64_t *more)
{
    int64_t flags[2] = {status != TESS_OK, *more};
    const tess_status reduced = tess_comm_allreduce_i64(comm, flags, 2, TESS_MAX);
    *more = flags[1];
    if (status != TESS_OK) return status;
    return reduced != TESS_OK ? reduced : flags[0] ? TESS_ERR_PEER : TESS_OK;
}

tess_status tess_exchange_send(tess_exchange *exchange, const tess_samples *samples,
                               const tess_brick_list *runs,
                               tess_exchange_filter *filter, const void *context)
{
    tess_status status = TESS_OK;
    const bool alone = tess_comm_size(exchange->comm) == 1;
    parcel_list list = {0};
    round_flight round = {0};
    int64_t next_run = 0, more = 1;
    while (more) {
        if (status == TESS_OK)
            status = next_parcels(exchange, runs, filter, context, &next_run, &list);
        if (status == TESS_OK && alone)
            status = keep_own(exchange, samples, runs, &list);
        else if (status == TESS_OK)
            status = pack_round(exchange, samples, runs, &list, &round);
        more = next_run < runs->num_runs;
        TESS_TRY(alone ? status : agree(exchange->comm, status, &more));
        /* a failure to unpack is agreed on with the next round */
        if (!alone) status = launch(exchange, &round);
    }
    TESS_TRY(tess_comm_agree(exchange->comm, status));
cleanup:
    flight_end(&round);
    tess_free(list.parcel);
    return status;
}

/* Runs in order of source; the stable sort to bricks then leaves each brick's runs in
 * order of (source, row, channel), which is that of one rank reading everything. */
static tess_status order_by_source(tess_brick_list *bricks, int size)
{
    tess_status status = TESS_OK;
    tess_run *ordered = tess_alloc(bricks->num_runs, sizeof *ordered);
    if (!ordered) TESS_FAIL(TESS_ERR_ALLOC, "sorting of visibilities");
    int64_t at = 0;
    for (int source = 0; source < size; ++source)
        for (int64_t k = 0; k < bricks->num_runs; ++k)
            if (bricks->run[k].source == source) ordered[at++] = bricks->run[k];
    tess_free(bricks->run);
    bricks->run = ordered;
    bricks->capacity_runs = bricks->num_runs;
cleanup:
    return status;
}

tess_status tess_exchange_complete(tess_exchange *exchange, int num_threads,
                                   tess_samples **samples, tess_brick_list **bricks)
{
    tess_status status = TESS_OK;
    round_flight last = exchange->flying;
    exchange->flying = (round_flight){0};
    status = land(exchange, &last);
    TESS_TRY(tess_comm_agree(exchange->comm, status));
    if (exchange->plan->backend->grid->load) { /* sorts where it works */
        tess_brick_list_free(&exchange->bricks);
        TESS_TRY(exchange->plan->backend->grid->load(exchange->plan, &exchange->samples,
                                                     exchange->with_data,
                                                     &exchange->bricks));
    } else {
        TESS_TRY(order_by_source(&exchange->bricks, tess_comm_size(exchange->comm)));
        TESS_TRY(tess_brick_list_sort(&exchange->bricks, num_threads));
    }
    *samples = &exchange->samples;
    *bricks = &exchange->bricks;
cleanup:
    return status;
}

/* ---- the way back ---- */

/* Values of a round on their way to those who asked. */
typedef struct reply {
    const round_log *log;
    tess_flight *flight;
    int64_t *bytes; /* [3][P]: sent, received, where each rank's begin */
} reply;

/* Start to return a round; values go straight from where they were predicted.
 * Collective. */
static tess_status reply_start(tess_exchange *exchange, const round_log *log,
                               int64_t vis, reply *out)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(exchange->comm),
              own = tess_comm_rank(exchange->comm);
    int64_t *bytes = tess_alloc_zero(3 * size, sizeof *bytes);
    *out = (reply){.log = log, .bytes = bytes};
    TESS_TRY(tess_comm_agree(exchange->comm, bytes ? TESS_OK : TESS_ERR_ALLOC));
    int64_t *begin = bytes + 2 * size, at = log->first_received * vis;
    for (int rank = 0; rank < size; ++rank) {
        bytes[rank] = rank == own ? 0 : log->received[rank] * vis;
        begin[rank] = at;
        at += log->received[rank] * vis;
    }
    TESS_TRY(tess_flight_start(exchange->comm, exchange->samples.vis, begin, bytes,
                               bytes + size, &out->flight));
cleanup:
    return status;
}

/* Put a round's values where they were asked for: parcels are listed by rank. */
static tess_status reply_finish(tess_exchange *exchange, int64_t vis, reply *in,
                                tess_samples *samples)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(exchange->comm),
              own = tess_comm_rank(exchange->comm);
    void *received = NULL;
    if (!in->log) return TESS_OK;
    TESS_TRY(tess_flight_finish(&in->flight, &received));
    const char *arrived = received;
    const char *here = (const char *)exchange->samples.vis + in->bytes[2 * size + own];
    for (int64_t k = 0; k < in->log->num_parcels; ++k) {
        const parcel *item = &exchange->sent[in->log->first_parcel + k];
        const char **from = item->rank == own ? &here : &arrived;
        const int64_t bytes = item->count * vis;
        memcpy((char *)samples->vis + item->first * vis, *from, (size_t)bytes);
        *from += bytes;
    }
cleanup:
    tess_free(received);
    tess_free(in->bytes);
    *in = (reply){0};
    return status;
}

tess_status tess_exchange_return(tess_exchange *exchange, tess_samples *samples)
{
    tess_status status = TESS_OK;
    const int64_t vis = (samples->is_double ? 16 : 8) * samples->num_pol;
    reply flying = {0}, next = {0};
    for (int64_t k = 0; k < exchange->num_rounds; ++k) {
        TESS_TRY(reply_start(exchange, &exchange->rounds[k], vis, &next));
        TESS_TRY(reply_finish(exchange, vis, &flying, samples));
        flying = next;
        next = (reply){0};
    }
    TESS_TRY(reply_finish(exchange, vis, &flying, samples));
cleanup:
    tess_flight_finish(&flying.flight, NULL);
    tess_flight_finish(&next.flight, NULL);
    tess_free(flying.bytes);
    tess_free(next.bytes);
    return status;
}
