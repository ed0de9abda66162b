/* Pieces of planes on their way between the ranks that grid them and the ranks that
 * transform them. */
#include <string.h>

#include "planes.h"
#include "tess_mem.h"

/* What travels ahead of a piece's values. */
typedef struct piece_header {
    int32_t line, num_lines, cell, num_cells;
} piece_header;

static int64_t data_bytes(const tess_planes *planes, const tess_piece *piece)
{
    return (int64_t)piece->num_lines * piece->num_cells * planes->value_bytes;
}

/* The part of a piece that lies in slab f; false when there is none. */
static bool clip(const tess_planes *planes, const tess_piece *piece, int slab,
                 tess_piece *part)
{
    const int64_t first = planes->slab_line[slab], end = planes->slab_line[slab + 1];
    int64_t begin = piece->line, stop = begin + piece->num_lines;
    if (begin < first) begin = first;
    if (stop > end) stop = end;
    if (begin >= stop) return false;
    *part = *piece;
    part->line = (int32_t)begin;
    part->num_lines = (int32_t)(stop - begin);
    part->data = (char *)piece->data +
                 (begin - piece->line) * piece->stride * planes->value_bytes;
    return true;
}

/* Visit every (job, piece, slab) part of this rank in a fixed order: the order of packing,
 * and of unpacking what comes back. */
typedef struct part_walk {
    int job, slab;
    int64_t piece;
} part_walk;

static bool next_part(const tess_planes *planes, const tess_plane_job *job,
                      part_walk *walk, tess_piece *part, int *rank)
{
    const int slabs = planes->opts.fft_ranks;
    for (; walk->job < planes->num_groups; ++walk->job, walk->piece = 0) {
        const tess_plane_job *current = &job[walk->job];
        if (!current->active) continue;
        for (; walk->piece < current->num_pieces; ++walk->piece, walk->slab = 0)
            while (walk->slab < slabs) {
                const int slab = walk->slab++;
                if (!clip(planes, &current->piece[walk->piece], slab, part)) continue;
                *rank = walk->job * slabs + slab;
                return true;
            }
    }
    return false;
}

static void pack_values(const tess_planes *planes, const tess_piece *part, char *to)
{
    const size_t row = (size_t)(part->num_cells * planes->value_bytes);
    for (int64_t k = 0; k < part->num_lines; ++k)
        memcpy(to + (size_t)k * row,
               (const char *)part->data + k * part->stride * planes->value_bytes, row);
}

static void unpack_values(const tess_planes *planes, const tess_piece *part,
                          const char *from)
{
    const size_t row = (size_t)(part->num_cells * planes->value_bytes);
    for (int64_t k = 0; k < part->num_lines; ++k)
        memcpy((char *)part->data + k * part->stride * planes->value_bytes,
               from + (size_t)k * row, row);
}

/* Bytes for each rank, and the number of parts this rank keeps. */
static int64_t measure_parts(const tess_planes *planes, const tess_plane_job *job,
                             bool with_data, int64_t *bytes)
{
    const int me = tess_comm_rank(planes->comm);
    part_walk walk = {0};
    tess_piece part;
    int rank;
    int64_t kept = 0;
    while (next_part(planes, job, &walk, &part, &rank)) {
        if (rank == me)
            ++kept;
        else
            bytes[rank] += (int64_t)sizeof(piece_header) +
                           (with_data ? data_bytes(planes, &part) : 0);
    }
    return kept;
}

static void pack_parts(const tess_planes *planes, const tess_plane_job *job,
                       bool with_data, char **at, tess_piece *own)
{
    const int me = tess_comm_rank(planes->comm);
    part_walk walk = {0};
    tess_piece part;
    int rank;
    while (next_part(planes, job, &walk, &part, &rank)) {
        if (rank == me) {
            *own++ = part;
            continue;
        }
        const piece_header header = {part.line, part.num_lines, part.cell, part.num_cells};
        memcpy(at[rank], &header, sizeof header);
        at[rank] += sizeof header;
        if (!with_data) continue;
        pack_values(planes, &part, at[rank]);
        at[rank] += data_bytes(planes, &part);
    }
}

static char **starts_of(char *buffer, const int64_t *bytes, int count)
{
    char **at = tess_alloc(count, sizeof *at);
    for (int k = 0; at && k < count; ++k) {
        at[k] = buffer;
        buffer += bytes[k];
    }
    return at;
}

/* One rank's message becomes pieces. */
static tess_status read_message(const tess_planes *planes, bool with_data, int rank,
                                char *message, piece_set *set, int64_t *capacity)
{
    tess_status status = TESS_OK;
    for (int64_t at = 0; at < set->received_bytes[rank];) {
        piece_header header;
        memcpy(&header, message + at, sizeof header);
        at += (int64_t)sizeof header;
        if (tess_grow((void **)&set->piece, capacity, set->num_pieces + 1,
                      sizeof *set->piece))
            TESS_FAIL(TESS_ERR_ALLOC, "pieces of planes");
        tess_piece *piece = &set->piece[set->num_pieces++];
        *piece = (tess_piece){.line = header.line,
                              .num_lines = header.num_lines,
                              .cell = header.cell,
                              .num_cells = header.num_cells,
                              .stride = header.num_cells,
                              .data = with_data ? message + at : NULL};
        set->reply_bytes[rank] += data_bytes(planes, piece);
        if (with_data) at += data_bytes(planes, piece);
    }
cleanup:
    return status;
}

/* All messages, in rank order. Without values, room for them is made in that order. */
static tess_status read_messages(const tess_planes *planes, bool with_data,
                                 piece_set *set)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(planes->comm);
    const int64_t own = set->num_pieces;
    int64_t capacity = own, values = 0;
    char *message = set->received;
    for (int rank = 0; rank < size; ++rank) {
        TESS_TRY(read_message(planes, with_data, rank, message, set, &capacity));
        message += set->received_bytes[rank];
        values += set->reply_bytes[rank];
    }
    if (with_data) return TESS_OK;
    tess_free(set->received);
    set->received = tess_alloc(values, 1);
    if (!set->received) TESS_FAIL(TESS_ERR_ALLOC, "pieces of planes");
    char *at = set->received;
    for (int64_t k = own; k < set->num_pieces; ++k) {
        set->piece[k].data = at;
        at += data_bytes(planes, &set->piece[k]);
    }
cleanup:
    return status;
}

/* Order pieces by bucket, keeping their order inside one: sums over pieces are then
 * formed in the order of brick and rank. (Counting sort; values do not move.) */
static tess_status sort_to_buckets(const tess_planes *planes, piece_set *set)
{
    tess_status status = TESS_OK;
    const int64_t lines = planes->line_end - planes->line_first;
    set->line_first = planes->line_first;
    set->num_buckets = lines / PIECE_BUCKET + 1;
    set->bucket = tess_alloc_zero(set->num_buckets + 2, sizeof *set->bucket);
    tess_piece *sorted = tess_alloc(set->num_pieces, sizeof *sorted);
    if (!set->bucket || !sorted) {
        tess_free(sorted);
        TESS_FAIL(TESS_ERR_ALLOC, "pieces of planes");
    }
    int64_t *count = set->bucket + 2;
    for (int64_t k = 0; k < set->num_pieces; ++k) {
        const int64_t b = (set->piece[k].line - set->line_first) / PIECE_BUCKET;
        ++count[b];
    }
    for (int64_t b = 1; b <= set->num_buckets + 1; ++b)
        set->bucket[b] += set->bucket[b - 1];
    for (int64_t k = 0; k < set->num_pieces; ++k) {
        const int64_t b = (set->piece[k].line - set->line_first) / PIECE_BUCKET;
        sorted[set->bucket[b + 1]++] = set->piece[k];
    }
    tess_free(set->piece);
    set->piece = sorted;
cleanup:
    return status;
}

tess_status pieces_exchange(tess_planes *planes, const tess_plane_job *job,
                            bool with_data, piece_set *set)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(planes->comm);
    char *send = NULL, **at = NULL;
    int64_t total = 0;
    set->reply_bytes = tess_alloc_zero(size, sizeof *set->reply_bytes);
    set->sent_bytes = tess_alloc_zero(size, sizeof *set->sent_bytes);
    set->received_bytes = tess_alloc_zero(size, sizeof *set->received_bytes);
    if (!set->sent_bytes || !set->received_bytes || !set->reply_bytes)
        status = TESS_ERR_ALLOC;
    else {
        set->num_pieces = measure_parts(planes, job, with_data, set->sent_bytes);
        for (int k = 0; k < size; ++k) total += set->sent_bytes[k];
        send = tess_alloc(total, 1);
        at = send ? starts_of(send, set->sent_bytes, size) : NULL;
        set->piece = tess_alloc(set->num_pieces, sizeof *set->piece);
        if (!at || !set->piece)
            status = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                       "no memory to send %s of w-planes",
                                       tess_mem_text((double)total));
    }
    if (size > 1) TESS_TRY(tess_comm_agree(planes->comm, status));
    if (status != TESS_OK) goto cleanup;
    pack_parts(planes, job, with_data, at, set->piece);
    if (size > 1) {
        TESS_TRY(tess_comm_alltoallv(planes->comm, send, set->sent_bytes, &set->received,
                                     set->received_bytes));
        status = read_messages(planes, with_data, set);
    }
    if (status == TESS_OK) status = sort_to_buckets(planes, set);
    if (size > 1) TESS_TRY(tess_comm_agree(planes->comm, status));
cleanup:
    tess_free(send);
    tess_free(at);
    return status;
}

tess_status pieces_return(tess_planes *planes, const tess_plane_job *job, piece_set *set)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(planes->comm), me = tess_comm_rank(planes->comm);
    int64_t *recv_bytes = NULL;
    void *reply = NULL;
    char **at = NULL;
    if (size == 1) return TESS_OK;
    recv_bytes = tess_alloc_zero(size, sizeof *recv_bytes);
    TESS_TRY(tess_comm_agree(planes->comm, recv_bytes ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_comm_alltoallv(planes->comm, set->received, set->reply_bytes, &reply,
                                 recv_bytes));
    at = starts_of(reply, recv_bytes, size);
    TESS_TRY(tess_comm_agree(planes->comm, at ? TESS_OK : TESS_ERR_ALLOC));
    part_walk walk = {0};
    tess_piece part;
    int rank;
    while (next_part(planes, job, &walk, &part, &rank)) {
        if (rank == me) continue;
        unpack_values(planes, &part, at[rank]);
        at[rank] += data_bytes(planes, &part);
    }
cleanup:
    tess_free(recv_bytes);
    tess_free(reply);
    tess_free(at);
    return status;
}

void pieces_near(const piece_set *set, int64_t line, int64_t *begin, int64_t *end)
{
    const int64_t b = (line - set->line_first) / PIECE_BUCKET;
    *begin = set->bucket[b > 0 ? b - 1 : 0];
    *end = set->bucket[b + 1];
}

void pieces_free(piece_set *set)
{
    tess_free(set->piece);
    tess_free(set->bucket);
    tess_free(set->received);
    tess_free(set->received_bytes);
    tess_free(set->reply_bytes);
    tess_free(set->sent_bytes);
    *set = (piece_set){0};
}
