/* Chooses the way in which ranks sum and exchange arrays of their devices. */
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
    int64_t room;
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
