/* Moves blocks, each packed into one message: a header, and then the arrays. Doubles
 * come before smaller types, so that everything in a message that starts aligned is
 * aligned. */
#include "vis_gather.h"

#include <string.h>

#include "tess_mem.h"

enum { ALIGNMENT = 64, NUM_PARTS = 7 };

/* The blocks of other ranks that rank 0 holds at a time have at most this size. A
 * larger block travels alone. */
static const int64_t max_group_bytes = INT64_C(256) << 20;

typedef struct header {
    int64_t row_first, num_rows, num_chan;
    int64_t segment, num_corr;
} header;

/* The arrays of a block in the order of the message, and the bytes of each. */
typedef struct parts {
    void *array[NUM_PARTS];
    int64_t bytes[NUM_PARTS];
    int first, end; /* parts before and from there on do not travel */
} parts;

static parts parts_of(const tess_vis_block *block, vis_carried carried)
{
    const int vis = NUM_PARTS - 1, weight = vis - 1;
    const int64_t rows = block->num_rows;
    const int64_t cells = rows * block->num_chan * block->num_corr;
    const int64_t f64 = (int64_t)sizeof(double), f32 = (int64_t)sizeof(float);
    const int64_t i32 = (int64_t)sizeof(int32_t);
    return (parts){
        .array = {block->uvw_m, block->time_mjd_s, block->integration_s,
                  block->antenna1, block->antenna2, block->weight, block->vis},
        .bytes = {3 * rows * f64, rows * f64, rows * f64, rows * i32, rows * i32,
                  cells * f32, 2 * cells * f32},
        .first = carried == VIS_CARRY_ALL      ? 0
                 : carried == VIS_CARRY_WEIGHT ? weight
                                               : vis,
        .end = carried == VIS_CARRY_WEIGHT ? weight + 1 : NUM_PARTS,
    };
}

static int64_t packed_bytes(const tess_vis_block *block, vis_carried carried)
{
    if (block->num_rows == 0) return 0;
    const parts all = parts_of(block, carried);
    int64_t bytes = (int64_t)sizeof(header);
    for (int k = all.first; k < all.end; ++k)
        bytes += all.bytes[k];
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void pack(const tess_vis_block *block, vis_carried carried, char *message)
{
    const header head = {block->row_first, block->num_rows, block->num_chan,
                         block->segment, block->num_corr};
    const parts all = parts_of(block, carried);
    memcpy(message, &head, sizeof head);
    message += sizeof head;
    for (int k = all.first; k < all.end; ++k) {
        memcpy(message, all.array[k], (size_t)all.bytes[k]);
        message += all.bytes[k];
    }
}

/* Makes a block whose arrays lie in the message. */
static tess_vis_block unpack(char *message, vis_carried carried)
{
    header head;
    memcpy(&head, message, sizeof head);
    tess_vis_block block = {
        .segment = (int)head.segment,
        .row_first = head.row_first,
        .num_rows = head.num_rows,
        .num_chan = head.num_chan,
        .num_corr = (int)head.num_corr,
    };
    char *at[NUM_PARTS] = {NULL};
    const parts all = parts_of(&block, carried);
    message += sizeof head;
    for (int k = all.first; k < all.end; ++k) {
        at[k] = message;
        message += all.bytes[k];
    }
    block.uvw_m = (double *)(void *)at[0];
    block.time_mjd_s = (double *)(void *)at[1];
    block.integration_s = (double *)(void *)at[2];
    block.antenna1 = (int32_t *)(void *)at[3];
    block.antenna2 = (int32_t *)(void *)at[4];
    block.weight = (float *)(void *)at[5];
    block.vis = (float *)(void *)at[6];
    return block;
}

/* Hands the messages that rank 0 has received to the sink, until it fails. */
static tess_status sink_messages(char *message, const int64_t *bytes, int num_ranks,
                                 vis_carried carried, vis_sink sink, void *context)
{
    tess_status status = TESS_OK;
    for (int rank = 0; rank < num_ranks; ++rank) {
        if (bytes[rank] == 0) continue;
        const tess_vis_block block = unpack(message, carried);
        TESS_TRY(sink(context, &block));
        message += bytes[rank];
    }
cleanup:
    return status;
}

/* Finds the first rank after `first` that no longer fits into one group of messages. */
static int group_end(const int64_t *bytes, int first, int num_ranks)
{
    int64_t sum = bytes[first];
    int end = first + 1;
    while (end < num_ranks && sum + bytes[end] <= max_group_bytes)
        sum += bytes[end++];
    return end;
}

tess_status vis_gather(tess_comm *comm, const tess_vis_block *block,
                       vis_carried carried, vis_sink sink, void *context)
{
    tess_status status = TESS_OK, sunk = TESS_OK;
    const int rank = tess_comm_rank(comm), num_ranks = tess_comm_size(comm);
    const int64_t own = rank == 0 ? 0 : packed_bytes(block, carried);
    void *received = NULL;
    char *message = tess_alloc(own, 1);
    int64_t *bytes = tess_alloc_zero(num_ranks, sizeof *bytes);
    int64_t *group_bytes = tess_alloc_zero(num_ranks, sizeof *group_bytes);
    if (!message || !bytes || !group_bytes)
        status = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                   "no memory to send %lld rows",
                                   (long long)block->num_rows);
    TESS_TRY(tess_comm_agree(comm, status));
    if (own > 0) pack(block, carried, message);
    if (rank == 0 && block->num_rows > 0) sunk = sink(context, block);
    TESS_TRY(tess_comm_allgather(comm, &own, sizeof own, bytes));
    for (int first = 1, end; first < num_ranks; first = end) {
        end = group_end(bytes, first, num_ranks);
        const int64_t send = rank >= first && rank < end ? own : 0;
        TESS_TRY(tess_comm_gatherv(comm, message, send, 0, &received, group_bytes));
        /* after a failure, the messages of the other ranks are still received, so that
         * no rank hangs */
        if (rank == 0 && sunk == TESS_OK)
            sunk =
                sink_messages(received, group_bytes, num_ranks, carried, sink, context);
        tess_free(received);
        received = NULL;
    }
    TESS_TRY(tess_comm_agree(comm, sunk));
cleanup:
    tess_free(received);
    tess_free(group_bytes);
    tess_free(bytes);
    tess_free(message);
    return status;
}
