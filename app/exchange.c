#include "exchange.h"

#include <string.h>

#include "exchange_parcels.h"
#include "tess_mem.h"

/* Bytes a rank sends in one round; receivers get about as much. Two rounds are on their
 * way at a time: one flies while the next is packed, and the one before is unpacked. */
enum { ROUND_BYTES = 24 << 20 };

static tess_status make_shares(tess_exchange *exchange)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(exchange->comm);
    exchange->share = tess_alloc_zero(exchange->threads, sizeof *exchange->share);
    if (!exchange->share) TESS_FAIL(TESS_ERR_ALLOC, "exchange");
    for (int t = 0; t < exchange->threads; ++t) {
        round_share *share = &exchange->share[t];
        share->split = tess_alloc(exchange->num_split, sizeof *share->split);
        share->num = tess_alloc(2 * size, sizeof *share->num);
        if (!share->split || !share->num) TESS_FAIL(TESS_ERR_ALLOC, "exchange");
        share->values = share->num + size;
    }
cleanup:
    return status;
}

static void free_shares(tess_exchange *exchange)
{
    for (int t = 0; exchange->share && t < exchange->threads; ++t) {
        tess_free(exchange->share[t].parcel);
        tess_free(exchange->share[t].split);
        tess_free(exchange->share[t].num);
    }
    tess_free(exchange->share);
}

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
    exchange->threads = plan->opts.threads > 1 ? plan->opts.threads : 1;
    exchange->round_bytes = round_bytes > 0 ? round_bytes : ROUND_BYTES;
    exchange->samples = (tess_samples){.is_double = like->is_double,
                                       .num_pol = like->num_pol,
                                       .num_weight = like->num_weight,
                                       .inv_lambda = like->inv_lambda};
    tess_partition_balance(partition, &largest, &mean, &exchange->num_split);
    exchange->split_offset =
        tess_alloc_zero(exchange->num_split, sizeof *exchange->split_offset);
    if (!exchange->split_offset) TESS_FAIL(TESS_ERR_ALLOC, "exchange");
    TESS_TRY(make_shares(exchange));
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
        tess_free(exchange->rounds[k].received);
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
        tess_free(exchange->rounds[k].received);
    tess_free(exchange->rounds);
    tess_free(exchange->sent);
    tess_samples_free(&exchange->samples);
    tess_brick_list_free(&exchange->bricks);
    tess_free(exchange->split_offset);
    free_shares(exchange);
    tess_free(exchange);
}

void tess_exchange_progress(tess_exchange *exchange)
{
    tess_flight_progress(exchange->flying.flight);
}

/* ---- rounds ---- */

/* Take what a round has brought, in order of rank. Collective, but for failures to
 * unpack. */
static tess_status land(tess_exchange *exchange, round_flight *round)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(exchange->comm);
    void *received = NULL;
    if (!round->active) return TESS_OK;
    TESS_TRY(tess_flight_finish(&round->flight, &received));
    const char *message = received;
    round_log *log = &exchange->rounds[round->log];
    for (int rank = 0; rank < size && status == TESS_OK; ++rank) {
        const int64_t bytes = round->bytes[size + rank];
        if (bytes == 0) continue;
        log->place[rank] = exchange->samples.num_vis;
        status = exchange_unpack(exchange, message, rank);
        log->received[rank] = exchange->samples.num_vis - log->place[rank];
        message += bytes;
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
    const int size = tess_comm_size(exchange->comm);
    round_flight before = exchange->flying;
    status = tess_flight_start(exchange->comm, round->send, round->bytes + 2 * size,
                               round->bytes, round->bytes + size, &round->flight);
    if (status == TESS_OK) {
        exchange->flying = *round;
        *round = (round_flight){0};
        status = land(exchange, &before);
    }
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

/* Runs that fill a round from `first` on; one at least. */
static int64_t end_of_round(const tess_exchange *exchange, const tess_brick_list *runs,
                            int64_t first)
{
    int64_t end = first;
    for (int64_t bytes = 0; end < runs->num_runs && bytes < exchange->round_bytes;
         ++end)
        bytes += exchange_parcel_bytes(exchange, runs->run[end].count);
    return end;
}

/* What others send is about as much as this rank does. */
static tess_status expect(tess_exchange *exchange, const tess_brick_list *runs)
{
    int64_t samples = 0;
    for (int64_t k = 0; k < runs->num_runs; ++k)
        samples += runs->run[k].count;
    return exchange_reserve(exchange, runs->num_runs + runs->num_runs / 8,
                            samples + samples / 8);
}

tess_status tess_exchange_send(tess_exchange *exchange, const tess_samples *samples,
                               const tess_brick_list *runs,
                               tess_exchange_filter *filter, const void *context)
{
    tess_status status = filter ? TESS_OK : expect(exchange, runs);
    const bool alone = tess_comm_size(exchange->comm) == 1;
    round_runs part = {
        .samples = samples, .run = runs->run, .filter = filter, .context = context};
    round_flight round = {0};
    int64_t more = 1;
    while (more) {
        part.first = part.end;
        part.end = end_of_round(exchange, runs, part.first);
        if (status == TESS_OK) status = exchange_pack(exchange, &part, &round);
        more = part.end < runs->num_runs;
        TESS_TRY(alone ? status : agree(exchange->comm, status, &more));
        if (alone)
            flight_end(&round);
        else /* a failure to unpack is agreed on with the next round */
            status = launch(exchange, &round);
    }
    TESS_TRY(tess_comm_agree(exchange->comm, status));
cleanup:
    flight_end(&round);
    return status;
}

/* Runs in order of source; the stable sort to bricks then leaves each brick's runs in
 * order of (source, row, channel), which is that of one rank reading everything. */
static tess_status order_by_source(tess_brick_list *bricks, int size)
{
    tess_status status = TESS_OK;
    tess_run *ordered = tess_alloc(bricks->num_runs, sizeof *ordered);
    int64_t *next = tess_alloc_zero(size + 1, sizeof *next);
    if (!ordered || !next) TESS_FAIL(TESS_ERR_ALLOC, "sorting of visibilities");
    for (int64_t k = 0; k < bricks->num_runs; ++k)
        ++next[bricks->run[k].source + 1];
    for (int source = 1; source < size; ++source)
        next[source] += next[source - 1];
    for (int64_t k = 0; k < bricks->num_runs; ++k)
        ordered[next[bricks->run[k].source]++] = bricks->run[k];
    tess_free(bricks->run);
    bricks->run = ordered;
    bricks->capacity_runs = bricks->num_runs;
    ordered = NULL;
cleanup:
    tess_free(ordered);
    tess_free(next);
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
    int64_t *begin = bytes + 2 * size;
    for (int rank = 0; rank < size; ++rank) {
        bytes[rank] = rank == own ? 0 : log->received[rank] * vis;
        begin[rank] = log->place[rank] * vis;
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
