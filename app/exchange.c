#include "exchange.h"

#include <string.h>

#include "tess_mem.h"

/* Bytes a rank sends in one round; receivers get about as much. */
enum { ROUND_BYTES = 48 << 20 };

/* A run, or a part of one, and where it goes. */
typedef struct parcel {
    int64_t run, first, count;   /* samples [first, first + count) of the set */
    int32_t chan_offset;
    int rank;
} parcel;

typedef struct parcel_header {
    int64_t brick;
    double uvw_m[3];
    int32_t chan, count;
    int64_t values;              /* samples that follow: count, or 0 */
} parcel_header;

/* What one round moved, for the way back. */
typedef struct round_log {
    int64_t first_parcel, num_parcels; /* in exchange->sent */
    int64_t first_received;            /* sample index of its first arrival */
    int64_t *sent, *received;          /* [P] samples */
} round_log;

struct tess_exchange {
    tess_comm *comm;
    const tess_grid_plan *plan;
    const tess_partition *partition;
    bool with_data;
    tess_samples samples;        /* received */
    tess_brick_list bricks;
    int64_t *split_offset;       /* [num_split] samples of split bricks sent so far */
    int64_t num_split;
    parcel *sent;                /* prediction: all parcels, in order of packing */
    int64_t num_sent, capacity_sent;
    round_log *rounds;
    int64_t num_rounds, capacity_rounds;
};

tess_status tess_exchange_create(tess_comm *comm, const tess_grid_plan *plan,
                                 const tess_partition *partition, bool with_data,
                                 const tess_samples *like, tess_exchange **exchange_out)
{
    tess_status status = TESS_OK;
    double largest, mean;
    tess_exchange *exchange = tess_alloc_zero(1, sizeof *exchange);
    if (!exchange) TESS_FAIL(TESS_ERR_ALLOC, "exchange");
    exchange->comm = comm;
    exchange->plan = plan;
    exchange->partition = partition;
    exchange->with_data = with_data;
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
    for (int64_t k = 0; k < exchange->num_rounds; ++k) tess_free(exchange->rounds[k].sent);
    exchange->num_rounds = exchange->num_sent = 0;
}

void tess_exchange_destroy(tess_exchange *exchange)
{
    if (!exchange) return;
    for (int64_t k = 0; k < exchange->num_rounds; ++k) tess_free(exchange->rounds[k].sent);
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
           (exchange->with_data ? count * tess_samples_vis_bytes(&exchange->samples) : 0);
}

/* ---- a round's parcels ---- */

typedef struct parcel_list {
    parcel *parcel;
    int64_t count, capacity;
    int64_t bytes;
} parcel_list;

/* A run of a whole brick is one parcel; a run of a split brick is cut where its chunks
 * change owner. */
static tess_status add_run(tess_exchange *exchange, const tess_brick_list *runs, int64_t k,
                           parcel_list *list)
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
    while (*next_run < runs->num_runs && list->bytes < ROUND_BYTES) {
        const int64_t k = (*next_run)++;
        if (filter && !filter(context, runs->run[k].brick)) continue;
        TESS_TRY(add_run(exchange, runs, k, list));
    }
cleanup:
    return status;
}

static void pack(const tess_exchange *exchange, const tess_samples *samples,
                 const tess_run *run, const parcel *item, char *to)
{
    const int64_t element = samples->is_double ? 8 : 4;
    const int64_t vis = 2 * element * samples->num_pol;
    const int64_t weight = element * samples->num_weight;
    parcel_header header = {.brick = run->brick,
                            .chan = run->chan + item->chan_offset,
                            .count = (int32_t)item->count};
    memcpy(header.uvw_m, samples->uvw_m + 3 * (int64_t)run->row, sizeof header.uvw_m);
    memcpy(to, &header, sizeof header);
    if (!exchange->with_data) return;
    to += sizeof header;
    memcpy(to, (const char *)samples->vis + item->first * vis,
           (size_t)(item->count * vis));
    to += item->count * vis;
    memcpy(to, (const char *)samples->weight + item->first * weight,
           (size_t)(item->count * weight));
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

static tess_status unpack(tess_exchange *exchange, const char *message, int64_t bytes,
                          int source, int64_t *num_received)
{
    tess_status status = TESS_OK;
    tess_samples *samples = &exchange->samples;
    tess_brick_list *bricks = &exchange->bricks;
    const int64_t element = samples->is_double ? 8 : 4;
    const int64_t vis = 2 * element * samples->num_pol;
    const int64_t weight = element * samples->num_weight;
    for (int64_t at = 0; at < bytes;) {
        parcel_header header;
        memcpy(&header, message + at, sizeof header);
        at += (int64_t)sizeof header;
        const int64_t row = samples->num_rows, first = samples->num_vis;
        TESS_TRY(tess_samples_reserve(samples, row + 1, first + header.count));
        if (tess_grow((void **)&bricks->run, &bricks->capacity_runs, bricks->num_runs + 1,
                      sizeof *bricks->run))
            TESS_FAIL(TESS_ERR_ALLOC, "exchange of visibilities");
        memcpy(samples->uvw_m + 3 * row, header.uvw_m, sizeof header.uvw_m);
        samples->chan_base[row] = header.chan;
        samples->num_chan[row] = header.count;
        samples->vis_first[row] = first;
        bricks->run[bricks->num_runs++] = (tess_run){.brick = header.brick,
                                                     .first = first,
                                                     .row = (int32_t)row,
                                                     .chan = header.chan,
                                                     .count = header.count,
                                                     .source = source};
        if (exchange->with_data) {
            memcpy((char *)samples->vis + first * vis, message + at,
                   (size_t)(header.count * vis));
            at += header.count * vis;
            memcpy((char *)samples->weight + first * weight, message + at,
                   (size_t)(header.count * weight));
            at += header.count * weight;
        }
        ++samples->num_rows;
        samples->num_vis += header.count;
        *num_received += header.count;
    }
cleanup:
    return status;
}

static tess_status send_round(tess_exchange *exchange, const tess_samples *samples,
                              const tess_brick_list *runs, const parcel_list *list)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(exchange->comm);
    round_log *log = NULL;
    char *send = tess_alloc(list->bytes, 1);
    void *received = NULL;
    int64_t *bytes = tess_alloc_zero(3 * size, sizeof *bytes);
    status = send && bytes ? log_round(exchange, list, &log) : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(exchange->comm, status));
    int64_t *recv_bytes = bytes + size, *at = bytes + 2 * size;
    for (int64_t k = 0; k < list->count; ++k)
        bytes[list->parcel[k].rank] += parcel_bytes(exchange, list->parcel[k].count);
    for (int rank = 1; rank < size; ++rank) at[rank] = at[rank - 1] + bytes[rank - 1];
    for (int64_t k = 0; k < list->count; ++k) {
        const parcel *item = &list->parcel[k];
        pack(exchange, samples, &runs->run[item->run], item, send + at[item->rank]);
        at[item->rank] += parcel_bytes(exchange, item->count);
    }
    TESS_TRY(tess_comm_alltoallv(exchange->comm, send, bytes, &received, recv_bytes));
    log->first_received = exchange->samples.num_vis;
    const char *message = received;
    for (int rank = 0; rank < size && status == TESS_OK; ++rank) {
        status = unpack(exchange, message, recv_bytes[rank], rank, &log->received[rank]);
        message += recv_bytes[rank];
    }
    TESS_TRY(tess_comm_agree(exchange->comm, status));
cleanup:
    tess_free(send);
    tess_free(received);
    tess_free(bytes);
    return status;
}

tess_status tess_exchange_send(tess_exchange *exchange, const tess_samples *samples,
                               const tess_brick_list *runs, tess_exchange_filter *filter,
                               const void *context)
{
    tess_status status = TESS_OK;
    parcel_list list = {0};
    int64_t next_run = 0, more = 1;
    while (more) {
        status = next_parcels(exchange, runs, filter, context, &next_run, &list);
        TESS_TRY(tess_comm_agree(exchange->comm, status));
        TESS_TRY(send_round(exchange, samples, runs, &list));
        more = next_run < runs->num_runs;
        TESS_TRY(tess_comm_allreduce_i64(exchange->comm, &more, 1, TESS_MAX));
    }
cleanup:
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
    TESS_TRY(order_by_source(&exchange->bricks, tess_comm_size(exchange->comm)));
    TESS_TRY(tess_brick_list_sort(&exchange->bricks, num_threads));
    *samples = &exchange->samples;
    *bricks = &exchange->bricks;
cleanup:
    return status;
}

static tess_status return_round(tess_exchange *exchange, const round_log *log,
                                tess_samples *samples)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(exchange->comm);
    const int64_t vis = (samples->is_double ? 16 : 8) * samples->num_pol;
    int64_t *bytes = tess_alloc_zero(2 * size, sizeof *bytes);
    void *received = NULL;
    TESS_TRY(tess_comm_agree(exchange->comm, bytes ? TESS_OK : TESS_ERR_ALLOC));
    for (int rank = 0; rank < size; ++rank) bytes[rank] = log->received[rank] * vis;
    TESS_TRY(tess_comm_alltoallv(exchange->comm,
                                 (const char *)exchange->samples.vis +
                                     log->first_received * vis,
                                 bytes, &received, bytes + size));
    const char *from = received;
    for (int64_t k = 0; k < log->num_parcels; ++k) {
        const parcel *item = &exchange->sent[log->first_parcel + k];
        memcpy((char *)samples->vis + item->first * vis, from, (size_t)(item->count * vis));
        from += item->count * vis;
    }
cleanup:
    tess_free(bytes);
    tess_free(received);
    return status;
}

tess_status tess_exchange_return(tess_exchange *exchange, tess_samples *samples)
{
    tess_status status = TESS_OK;
    for (int64_t k = 0; k < exchange->num_rounds; ++k)
        TESS_TRY(return_round(exchange, &exchange->rounds[k], samples));
cleanup:
    return status;
}
