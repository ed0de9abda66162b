/* Chooses the way in which ranks sum and exchange arrays of their devices, and moves
 * arrays in as many exchanges as they need. */
#include "device_comm_ways.h"

#include "tess_log.h"
#include "tess_mem.h"

/* The ways that this build has, the preferred one first. */
static const struct {
    unsigned bit;
    const device_comm_way *way;
} ways[] = {
#ifdef TESS_HAVE_PEERS
    {TESS_SUM_BY_PEERS, &device_comm_peers},
#endif
#ifdef TESS_HAVE_NCCL
    {TESS_SUM_BY_NCCL, &device_comm_nccl},
#endif
    {0, NULL}};

struct tess_device_comm {
    const device_comm_way *way;
    void *state;
    tess_comm *comm; /* borrowed */
    int64_t room, moved;
};

/* Devices read 16 bytes at a time, from addresses that are multiples of 16 alone. Of
 * two buffers that lie one behind the other, the second begins at a multiple of what
 * device memory is aligned to. */
enum { BUFFER_ALIGNMENT = 256 };

static tess_device_comm_opts aligned(const tess_device_comm_opts *opts)
{
    tess_device_comm_opts out = *opts;
    out.exchange_bytes = (opts->exchange_bytes + BUFFER_ALIGNMENT - 1) /
                         BUFFER_ALIGNMENT * BUFFER_ALIGNMENT;
    return out;
}

tess_status tess_device_comm_create(tess_comm *comm, const tess_device_comm_opts *opts,
                                    tess_device_comm **device_comm)
{
    tess_status status = TESS_OK;
    const tess_device_comm_opts wanted = aligned(opts);
    tess_device_comm *made = NULL;
    if (tess_comm_size(comm) == 1) return TESS_OK;
    made = tess_alloc_zero(1, sizeof *made);
    TESS_TRY(tess_comm_agree(comm, made ? TESS_OK : TESS_ERR_ALLOC));
    for (int k = 0; ways[k].way && !made->state; ++k) {
        if (!(opts->allowed & ways[k].bit)) continue;
        made->way = ways[k].way;
        TESS_TRY(tess_comm_agree(comm, made->way->create(comm, &wanted, &made->state)));
    }
    if (!made->state) goto cleanup;
    made->room = wanted.exchange_bytes;
    made->comm = comm;
    *device_comm = made;
    made = NULL;
cleanup:
    tess_device_comm_destroy(made);
    return status;
}

tess_status tess_device_comm_reduce_scatter(tess_device_comm *device_comm,
                                            const void *values, void *out,
                                            const int64_t *counts, bool is_double)
{
    return device_comm->way->reduce_scatter(device_comm->state, values, out, counts,
                                            is_double);
}

int64_t tess_device_comm_room(const tess_device_comm *device_comm)
{
    return device_comm->room;
}

tess_status tess_device_comm_buffer(tess_device_comm *device_comm, void **buffer)
{
    return device_comm->way->buffer(device_comm->state, buffer);
}

tess_status tess_device_comm_exchange(tess_device_comm *device_comm, tess_status status,
                                      const tess_device_part *send,
                                      const tess_device_rows *take)
{
    return device_comm->way->exchange(device_comm->state, status, send, take);
}

tess_status tess_device_comm_arrive(tess_device_comm *device_comm)
{
    return device_comm->way->arrive(device_comm->state);
}

/* ---- arrays ---- */

/* Every rank has a part of the buffer, which begins at a multiple of what device memory
 * is aligned to. */
static int64_t part_room(const tess_device_comm *device_comm)
{
    const int64_t share = device_comm->room / tess_comm_size(device_comm->comm);
    return share / BUFFER_ALIGNMENT * BUFFER_ALIGNMENT;
}

bool tess_device_comm_moves(const tess_device_comm *device_comm)
{
    return device_comm && part_room(device_comm) > 0;
}

int64_t tess_device_comm_moved(const tess_device_comm *device_comm)
{
    return device_comm->moved;
}

/* Arrays that are moved, part by part. */
typedef struct movement {
    const tess_place *place;
    const tess_device_span *send, *take;
    tess_device_part *part; /* [P] of the buffer */
    tess_device_rows *rows; /* [P] where parts go */
    int64_t each, done;
} movement;

/* What is moved of an array in the next exchange. */
static tess_device_span next_of(const movement *of, const tess_device_span *array)
{
    const int64_t left = array->bytes - of->done;
    if (left <= 0) return (tess_device_span){0};
    return (tess_device_span){(char *)array->at + of->done,
                              left < of->each ? left : of->each};
}

/* Fills the parts of the buffer, and tells where what comes goes. */
static tess_status fill(const movement *of, int ranks, char *buffer)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < ranks; ++k) {
        const tess_device_span from = next_of(of, &of->send[k]),
                               to = next_of(of, &of->take[k]);
        of->part[k] = (tess_device_part){k * of->each, from.bytes};
        of->rows[k] = (tess_device_rows){to.at, to.bytes, to.bytes, to.bytes > 0};
        if (from.bytes > 0)
            TESS_TRY(of->place->copy_rows(buffer + of->part[k].first, from.bytes,
                                          from.at, from.bytes, from.bytes, 1));
    }
cleanup:
    return status;
}

/* The largest array that any rank sends. Collective. */
static tess_status largest_sent(tess_comm *comm, const tess_device_span *send,
                                int64_t *bytes)
{
    *bytes = 0;
    for (int k = 0; k < tess_comm_size(comm); ++k)
        if (send[k].bytes > *bytes) *bytes = send[k].bytes;
    return tess_comm_allreduce_i64(comm, bytes, 1, TESS_MAX);
}

tess_status tess_device_comm_move(tess_device_comm *device_comm,
                                  const tess_place *place, const tess_device_span *send,
                                  const tess_device_span *take)
{
    tess_status status = TESS_OK;
    tess_comm *comm = device_comm->comm;
    const int ranks = tess_comm_size(comm);
    int64_t most;
    movement of = {.place = place,
                   .send = send,
                   .take = take,
                   .part = tess_alloc_zero(ranks, sizeof *of.part),
                   .rows = tess_alloc_zero(ranks, sizeof *of.rows),
                   .each = part_room(device_comm)};
    TESS_TRY(tess_comm_agree(comm, of.part && of.rows ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(largest_sent(comm, send, &most));
    for (; of.done < most; of.done += of.each) {
        void *buffer = NULL;
        status = tess_device_comm_buffer(device_comm, &buffer);
        if (status == TESS_OK) status = fill(&of, ranks, buffer);
        TESS_TRY(tess_device_comm_exchange(device_comm, status, of.part, of.rows));
    }
    TESS_TRY(tess_comm_agree(comm, tess_device_comm_arrive(device_comm)));
    for (int k = 0; k < ranks; ++k)
        if (k != tess_comm_rank(comm)) device_comm->moved += take[k].bytes;
cleanup:
    tess_free(of.part);
    tess_free(of.rows);
    return status;
}

const char *tess_device_comm_text(const tess_device_comm *device_comm)
{
    return device_comm ? device_comm->way->text : "through host memory";
}

void tess_device_comm_destroy(tess_device_comm *device_comm)
{
    if (!device_comm) return;
    if (device_comm->state) device_comm->way->destroy(device_comm->state);
    tess_free(device_comm);
}
