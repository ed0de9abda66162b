/* Sends visibilities from the ranks that read them to the owners of their bricks, in
 * rounds of bounded size. */
#include "exchange.h"

#include <string.h>

#include "exchange_parcels.h"
#include "tess_mem.h"

/* Bytes that a rank sends in one round, and that all ranks send together. With these
 * numbers, cores of a node read messages from their caches. */
enum {
    LEAST_ROUND_BYTES = 1 << 20,
    ROUND_BYTES = 10 << 20,
    ALL_ROUND_BYTES = 40 << 20
};

/* A rank must have this many bytes to send for a window to be made, because making one
 * takes a dozen collective calls. */
enum { WINDOW_FROM_BYTES = 4 << 20 };

static int64_t round_bytes_of(int64_t asked, int ranks)
{
    const int64_t share = ALL_ROUND_BYTES / ranks;
    if (asked > 0) return asked;
    return share < LEAST_ROUND_BYTES ? LEAST_ROUND_BYTES
           : share < ROUND_BYTES     ? share
                                     : ROUND_BYTES;
}

int64_t tess_exchange_flight_bytes(int ranks)
{
    /* memory of this rank's window, and views of the other ranks' windows */
    return 2 * WINDOW_PARTS * round_bytes_of(0, ranks);
}

static tess_status make_shares(tess_exchange *exchange)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(exchange->comm);
    exchange->share = tess_alloc_zero(exchange->threads, sizeof *exchange->share);
    if (!exchange->share) TESS_FAIL(TESS_ERR_ALLOC, "exchange");
    for (int t = 0; t < exchange->threads; ++t) {
        round_share *share = &exchange->share[t];
        share->split = tess_alloc_zero(exchange->num_split, sizeof *share->split);
        share->last = tess_alloc(size, sizeof *share->last);
        share->count = tess_alloc(size, sizeof *share->count);
        if (!share->split || !share->last || !share->count)
            TESS_FAIL(TESS_ERR_ALLOC, "exchange");
    }
cleanup:
    return status;
}

static void free_shares(tess_exchange *exchange)
{
    for (int t = 0; exchange->share && t < exchange->threads; ++t) {
        tess_free(exchange->share[t].run);
        tess_free(exchange->share[t].parcel);
        tess_free(exchange->share[t].piece);
        tess_free(exchange->share[t].split);
        tess_free(exchange->share[t].last);
        tess_free(exchange->share[t].count);
    }
    tess_free(exchange->share);
}

static tess_status make_rounds(tess_exchange *exchange)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(exchange->comm);
    for (int k = 0; k < ROUNDS_FLYING; ++k) {
        round_flight *round = &exchange->flying[k];
        TESS_TRY(tess_flight_create(exchange->comm, &round->flight));
        round->bytes = tess_alloc_zero(3 * size, sizeof *round->bytes);
        if (!round->bytes) TESS_FAIL(TESS_ERR_ALLOC, "exchange");
    }
cleanup:
    return status;
}

/* Allocates everything except the window. Local. */
static tess_status make_exchange(const tess_grid_plan *plan, const tess_samples *like,
                                 tess_exchange *exchange)
{
    tess_status status = TESS_OK;
    double largest, mean;
    if (plan->num_blocks * plan->tiles_u * plan->tiles_v >> 48 != 0)
        TESS_FAIL(TESS_ERR_INTERNAL, "keys of bricks are longer than 48 bits");
    exchange->plan = plan;
    exchange->threads = plan->opts.threads > 1 ? plan->opts.threads : 1;
    exchange->samples = tess_samples_like(like);
    tess_partition_balance(exchange->partition, &largest, &mean, &exchange->num_split);
    exchange->split_offset =
        tess_alloc_zero(exchange->num_split, sizeof *exchange->split_offset);
    if (!exchange->split_offset) TESS_FAIL(TESS_ERR_ALLOC, "exchange");
    TESS_TRY(make_shares(exchange));
    TESS_TRY(make_rounds(exchange));
cleanup:
    return status;
}

tess_status tess_exchange_create(tess_comm *comm, const tess_grid_plan *plan,
                                 const tess_partition *partition, bool with_data,
                                 const tess_samples *like, int64_t round_bytes,
                                 tess_exchange **exchange_out)
{
    tess_status status = TESS_ERR_ALLOC;
    tess_exchange *exchange = tess_alloc_zero(1, sizeof *exchange);
    if (exchange) {
        exchange->comm = comm;
        exchange->partition = partition;
        exchange->with_data = with_data;
        exchange->round_bytes = round_bytes_of(round_bytes, tess_comm_size(comm));
        exchange->window_from = round_bytes > 0 ? 0 : WINDOW_FROM_BYTES;
        status = make_exchange(plan, like, exchange);
    }
    TESS_TRY(status);
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
    exchange->sorted = false;
}

static void round_end(round_flight *round)
{
    if (round->active) tess_flight_finish(round->flight, NULL);
    tess_free(round->own_send);
    round->own_send = round->send = NULL;
    round->active = false;
}

static void free_rounds(tess_exchange *exchange)
{
    for (int64_t ago = ROUNDS_FLYING; ago > 0; --ago) {
        round_flight *round = exchange_round_before(exchange, ago);
        round_end(round);
        tess_flight_free(round->flight);
        tess_free(round->bytes);
    }
}

void tess_exchange_destroy(tess_exchange *exchange)
{
    if (!exchange) return;
    free_rounds(exchange);
    for (int64_t k = 0; k < exchange->num_rounds; ++k)
        tess_free(exchange->rounds[k].received);
    tess_window_free(exchange->window);
    tess_free(exchange->rounds);
    tess_free(exchange->sent);
    tess_samples_free(&exchange->samples);
    tess_brick_list_free(&exchange->bricks);
    tess_free(exchange->split_offset);
    free_shares(exchange);
    tess_free(exchange);
}

/* ---- rounds ---- */

/* Takes what a round has brought, in the order of ranks. Collective, except after a
 * failure to unpack. */
static tess_status land(tess_exchange *exchange, round_flight *round)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(exchange->comm);
    if (!round->active || round->log < 0) goto cleanup;
    void **message = tess_alloc(size, sizeof *message);
    round_log *log = &exchange->rounds[round->log];
    status = message ? tess_flight_wait(round->flight, message) : TESS_ERR_ALLOC;
    for (int rank = 0; rank < size && status == TESS_OK; ++rank) {
        if (round->bytes[size + rank] == 0) continue;
        log->place[rank] =
            (round_count){exchange->samples.num_rows, exchange->bricks.num_runs,
                          exchange->samples.num_vis};
        status = exchange_unpack(exchange, message[rank], rank, &log->received[rank]);
    }
    tess_free(message);
cleanup:
    round_end(round);
    return status;
}

/* A rank that has failed sends empty rounds, for which others wait. */
static void leave_empty(const tess_exchange *exchange, round_flight *round)
{
    memset(round->bytes, 0,
           3 * (size_t)tess_comm_size(exchange->comm) * sizeof *round->bytes);
    round->log = -1;
}

/* Waits until all ranks have started this round. Collective. */
static tess_status settle(round_flight *round)
{
    const tess_status status =
        round->active ? tess_flight_settle(round->flight) : TESS_OK;
    if (status != TESS_OK) round->log = -1;
    return status;
}

/* Starts a packed round, waits until all ranks have started the previous one, and
 * unpacks the round before that. Collective, except after a failure to unpack. */
static tess_status launch(tess_exchange *exchange, round_flight *round)
{
    tess_status status = TESS_OK;
    const int64_t size = tess_comm_size(exchange->comm);
    TESS_TRY(tess_flight_start(round->flight, TESS_OK, exchange->window, round->send,
                               round->bytes + 2 * size, round->bytes,
                               round->bytes + size));
    round->active = true;
    ++exchange->num_started;
    status = settle(exchange_round_before(exchange, 2));
    const tess_status landed = land(exchange, exchange_round_before(exchange, 3));
    if (status == TESS_OK) status = landed;
cleanup:
    return status;
}

/* The end of the rows from `first` on that fill a round, which has at least one row. */
static int64_t end_of_round(const tess_exchange *exchange, const tess_samples *samples,
                            int64_t first)
{
    int64_t end = first;
    for (int64_t bytes = 0; end < samples->num_rows; ++end) {
        bytes += exchange_row_bytes(exchange, samples->num_chan[end]);
        if (bytes > exchange->round_bytes && end > first) break;
    }
    return end;
}

/* Number of rounds of the rank that has most of them. Makes the window for what is to
 * be sent, if that is worth it. Collective. */
static tess_status prepare_rounds(tess_exchange *exchange, const tess_samples *samples,
                                  int64_t *rounds)
{
    tess_status status = TESS_OK;
    int64_t most[2] = {0, 0}; /* numbers of rounds and of bytes */
    for (int64_t row = 0; row < samples->num_rows; ++most[0])
        row = end_of_round(exchange, samples, row);
    for (int64_t row = 0; row < samples->num_rows; ++row)
        most[1] += exchange_row_bytes(exchange, samples->num_chan[row]);
    TESS_TRY(tess_comm_allreduce_i64(exchange->comm, most, 2, TESS_MAX));
    *rounds = most[0];
    if (exchange->window || most[1] < exchange->window_from ||
        tess_comm_size(exchange->comm) == 1)
        return TESS_OK;
    TESS_TRY(tess_window_create(exchange->comm, WINDOW_PARTS * exchange->round_bytes,
                                &exchange->window));
cleanup:
    return status;
}

tess_status tess_exchange_expect(tess_exchange *exchange, int64_t num_rows,
                                 int64_t num_runs, int64_t num_vis)
{
    /* too much may have been expected; only what arrives can be too much */
    const int64_t rows = num_rows < INT32_MAX ? num_rows : INT32_MAX;
    return exchange_reserve(exchange, &(round_count){rows, num_runs, num_vis});
}

tess_status tess_exchange_send(tess_exchange *exchange, const tess_samples *samples,
                               bool skip_ignored, tess_exchange_filter *filter,
                               const void *context)
{
    tess_status status = TESS_OK;
    round_rows part = {.samples = samples,
                       .skip_ignored = skip_ignored,
                       .filter = filter,
                       .context = context};
    int64_t rounds;
    TESS_TRY(prepare_rounds(exchange, samples, &rounds));
    for (int64_t k = 0; k < rounds; ++k) {
        round_flight *round = exchange_round_before(exchange, 0);
        part.first = part.end;
        part.end = end_of_round(exchange, samples, part.first);
        if (status == TESS_OK) status = exchange_pack(exchange, &part, round);
        if (tess_comm_size(exchange->comm) == 1) {
            round_end(round);
            continue;
        }
        if (status != TESS_OK) {
            tess_comm_note(status);
            leave_empty(exchange, round);
        }
        const tess_status launched = launch(exchange, round);
        if (status == TESS_OK) status = launched;
    }
    TESS_TRY(tess_comm_agree(exchange->comm, status));
cleanup:
    return status;
}

/* Puts values of rows, of some bytes each, in order of source. */
static tess_status order_values(const tess_exchange *exchange, void *values,
                                size_t bytes)
{
    tess_status status = TESS_OK;
    char *copy = tess_alloc(exchange->samples.num_rows, bytes), *to = values;
    if (!copy) TESS_FAIL(TESS_ERR_ALLOC, "sorting of visibilities");
    memcpy(copy, values, (size_t)exchange->samples.num_rows * bytes);
    for (int source = 0; source < tess_comm_size(exchange->comm); ++source)
        for (int64_t k = 0; k < exchange->num_rounds; ++k) {
            const round_log *log = &exchange->rounds[k];
            const size_t count = (size_t)log->received[source].parcels * bytes;
            if (count > 0)
                memcpy(to, copy + (size_t)log->place[source].parcels * bytes, count);
            to += count;
        }
cleanup:
    tess_free(copy);
    return status;
}

/* Puts rows in order of source, as order_by_source, for a backend that sorts rows.
 * Their samples stay where they are. */
static tess_status order_rows(tess_exchange *exchange)
{
    tess_status status = TESS_OK;
    tess_samples *samples = &exchange->samples;
    if (tess_comm_size(exchange->comm) == 1 || samples->num_rows == 0) return TESS_OK;
    TESS_TRY(order_values(exchange, samples->uvw_m, 3 * sizeof *samples->uvw_m));
    TESS_TRY(order_values(exchange, samples->chan_base, sizeof *samples->chan_base));
    TESS_TRY(order_values(exchange, samples->num_chan, sizeof *samples->num_chan));
    TESS_TRY(order_values(exchange, samples->vis_first, sizeof *samples->vis_first));
    if (samples->origins)
        TESS_TRY(order_values(exchange, samples->origin, sizeof *samples->origin));
cleanup:
    return status;
}

/* Puts runs in order of source. The stable sort to bricks then leaves each brick's runs
 * in the order of (source, row, channel), as if one rank had read everything. Runs that
 * arrived together stay together. */
static tess_status order_by_source(tess_exchange *exchange)
{
    tess_status status = TESS_OK;
    tess_brick_list *bricks = &exchange->bricks;
    const int size = tess_comm_size(exchange->comm);
    int64_t at = 0;
    if (size == 1 || exchange->num_rounds < 1) return TESS_OK;
    tess_run *ordered = tess_alloc(bricks->capacity_runs, sizeof *ordered);
    if (!ordered) TESS_FAIL(TESS_ERR_ALLOC, "sorting of visibilities");
    for (int source = 0; source < size; ++source)
        for (int64_t k = 0; k < exchange->num_rounds; ++k) {
            const round_log *log = &exchange->rounds[k];
            const int64_t count = log->received[source].pieces;
            if (count == 0) continue;
            memcpy(ordered + at, bricks->run + log->place[source].pieces,
                   (size_t)count * sizeof *ordered);
            at += count;
        }
    bricks->spare = bricks->run;
    bricks->run = ordered;
cleanup:
    return status;
}

tess_status tess_exchange_drain(tess_exchange *exchange)
{
    tess_status status = settle(exchange_round_before(exchange, 1));
    for (int64_t ago = 2; ago > 0; --ago) {
        const tess_status landed = land(exchange, exchange_round_before(exchange, ago));
        if (status == TESS_OK) status = landed;
    }
    return tess_comm_agree(exchange->comm, status);
}

tess_status tess_exchange_complete(tess_exchange *exchange, int num_threads,
                                   tess_samples **samples, tess_brick_list **bricks)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_exchange_drain(exchange));
    tess_window_free(exchange->window); /* later work may need the memory */
    exchange->window = NULL;
    if (exchange->plan->backend->grid
            ->load) { /* the backend sorts the samples where it works on them */
        tess_brick_list_free(&exchange->bricks);
        if (exchange->plan->opts.repeatable) TESS_TRY(order_rows(exchange));
        TESS_TRY(exchange->plan->backend->grid->load(exchange->plan, &exchange->samples,
                                                     exchange->with_data,
                                                     &exchange->bricks));
    } else {
        TESS_TRY(order_by_source(exchange));
        TESS_TRY(tess_brick_list_sort(&exchange->bricks, num_threads));
    }
    exchange->sorted = true;
    *samples = &exchange->samples;
    *bricks = &exchange->bricks;
cleanup:
    return status;
}
