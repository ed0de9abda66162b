/* Moves pieces of planes between the ranks that grid them and the ranks that transform
 * them. The places of pieces are sent before their values, which the backend packs and
 * unpacks because they may lie in device memory. */
#include <stdlib.h>
#include <string.h>

#include "planes_object.h"
#include "tess_mem.h"

/* The place of a piece, which is sent before its values. */
typedef struct piece_header {
    int32_t line, num_lines, cell, num_cells;
    int64_t order;
} piece_header;

static int64_t values_of(const tess_piece *piece)
{
    return (int64_t)piece->num_lines * piece->num_cells;
}

/* Finds the part of a piece that lies in slab f. False: there is none. */
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

/* Visits every (job, piece, slab) part of this rank in a fixed order, which is the
 * order of packing and of unpacking what comes back. */
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

/* ---- this rank's parts, by rank ---- */

/* How much is sent to each rank. Parts that lie in this rank's own slab stay. */
typedef struct part_counts {
    int64_t *parts, *values; /* [P] */
    int64_t own, total_parts, total_values;
} part_counts;

static tess_status count_parts(const tess_planes *planes, const tess_plane_job *job,
                               part_counts *counts)
{
    tess_status status = TESS_OK;
    const int me = tess_comm_rank(planes->comm), size = tess_comm_size(planes->comm);
    part_walk walk = {0};
    tess_piece part;
    int rank;
    *counts = (part_counts){0};
    counts->parts = tess_alloc_zero(2 * size, sizeof *counts->parts);
    if (!counts->parts) TESS_FAIL(TESS_ERR_ALLOC, "pieces of planes");
    counts->values = counts->parts + size;
    while (next_part(planes, job, &walk, &part, &rank)) {
        if (rank == me) {
            ++counts->own;
            continue;
        }
        ++counts->parts[rank];
        counts->values[rank] += values_of(&part);
        ++counts->total_parts;
        counts->total_values += values_of(&part);
    }
cleanup:
    return status;
}

static int64_t *starts_of(const int64_t *count, int size)
{
    int64_t *start = tess_alloc(size, sizeof *start), total = 0;
    for (int k = 0; start && k < size; ++k) {
        start[k] = total;
        total += count[k];
    }
    return start;
}

/* Lists the parts for other ranks in order of rank, with the place of their values
 * among all of them, and in `own` the parts that lie in this rank's own slab. Either
 * list may be NULL. */
static tess_status list_parts(const tess_planes *planes, const tess_plane_job *job,
                              const part_counts *counts, plane_part *out,
                              tess_piece *own)
{
    tess_status status = TESS_OK;
    const int me = tess_comm_rank(planes->comm), size = tess_comm_size(planes->comm);
    int64_t *at = starts_of(counts->parts, size),
            *value = starts_of(counts->values, size);
    part_walk walk = {0};
    tess_piece part;
    int rank;
    if (!at || !value) TESS_FAIL(TESS_ERR_ALLOC, "pieces of planes");
    while (next_part(planes, job, &walk, &part, &rank)) {
        if (rank == me) {
            if (own) *own = part;
            if (own) own++->source = me;
            continue;
        }
        if (out) out[at[rank]++] = (plane_part){part, rank, value[rank]};
        value[rank] += values_of(&part);
    }
cleanup:
    tess_free(at);
    tess_free(value);
    return status;
}

/* ---- places ---- */

/* Sends the places of the parts, once all ranks have come to a good `status`.
 * `*received` gets the places that all ranks have sent, in order of rank. Collective.
 */
static tess_status exchange_places(const tess_planes *planes, tess_status status,
                                   const part_counts *counts, const plane_part *parts,
                                   piece_header **received, int64_t *received_bytes)
{
    const int size = tess_comm_size(planes->comm);
    piece_header *send = tess_alloc(counts->total_parts, sizeof *send);
    int64_t *bytes = tess_alloc(size, sizeof *bytes);
    void *all = NULL;
    if (!send || !bytes) status = TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(planes->comm, status));
    for (int64_t k = 0; k < counts->total_parts; ++k) {
        const tess_piece *piece = &parts[k].piece;
        send[k] = (piece_header){piece->line, piece->num_lines, piece->cell,
                                 piece->num_cells, piece->order};
    }
    for (int k = 0; k < size; ++k)
        bytes[k] = counts->parts[k] * (int64_t)sizeof *send;
    TESS_TRY(tess_comm_alltoallv(planes->comm, send, bytes, &all, received_bytes));
    *received = all;
cleanup:
    tess_free(send);
    tess_free(bytes);
    return status;
}

/* Adds the places that have arrived to the set. Their values will follow one another.
 */
static tess_status add_places(const tess_planes *planes, const piece_header *header,
                              const int64_t *header_bytes, piece_set *set)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(planes->comm);
    const int64_t own = set->num_pieces;
    int64_t total = own;
    for (int rank = 0; rank < size; ++rank)
        total += header_bytes[rank] / (int64_t)sizeof *header;
    tess_piece *grown = tess_alloc(total, sizeof *grown);
    if (!grown) TESS_FAIL(TESS_ERR_ALLOC, "pieces of planes");
    if (own > 0) memcpy(grown, set->piece, (size_t)own * sizeof *grown);
    tess_free(set->piece);
    set->piece = grown;
    for (int rank = 0; rank < size; ++rank) {
        const int64_t count = header_bytes[rank] / (int64_t)sizeof *header;
        set->value_bytes[rank] = 0;
        for (int64_t k = 0; k < count; ++k, ++header) {
            tess_piece *piece = &set->piece[set->num_pieces++];
            *piece = (tess_piece){.line = header->line,
                                  .num_lines = header->num_lines,
                                  .cell = header->cell,
                                  .num_cells = header->num_cells,
                                  .stride = header->num_cells,
                                  .order = header->order,
                                  .source = rank};
            set->value_bytes[rank] += values_of(piece) * planes->value_bytes;
        }
    }
cleanup:
    return status;
}

/* ---- values ---- */

static void free_values(rank_values *values)
{
    tess_free(values->part);
    tess_free(values->first);
    *values = (rank_values){0};
}

static tess_status make_values(const tess_planes *planes, rank_values *values)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(planes->comm);
    values->part = tess_alloc_zero(size, sizeof *values->part);
    values->first = tess_alloc_zero(size + 1, sizeof *values->first);
    if (!values->part || !values->first) TESS_FAIL(TESS_ERR_ALLOC, "pieces of planes");
cleanup:
    return status;
}

/* Sends the values of all ranks: send_bytes[P] to each rank, and recv_bytes[P] arrive.
 * Collective. */
static tess_status send_values(const tess_planes *planes, const int64_t *send_bytes,
                               int64_t *recv_bytes, rank_values *arrived)
{
    tess_status status = TESS_OK;
    TESS_TRY(
        tess_outbox_send(planes->pieces_box, send_bytes, recv_bytes, arrived->part));
    for (int k = 0; k < tess_comm_size(planes->comm); ++k)
        arrived->first[k + 1] = arrived->first[k] + recv_bytes[k] / planes->value_bytes;
cleanup:
    return status;
}

/* Sends the values of the parts. Collective. */
static tess_status exchange_values(const tess_planes *planes, const part_counts *counts,
                                   const plane_part *parts, piece_set *set,
                                   rank_values *arrived)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(planes->comm);
    void *room;
    int64_t *bytes = tess_alloc(size, sizeof *bytes);
    TESS_TRY(tess_comm_agree(planes->comm, bytes ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_outbox_room(planes->pieces_box,
                              counts->total_values * planes->value_bytes, &room));
    status = planes->ops->pack(planes, parts, counts->total_parts, counts->total_values,
                               room);
    TESS_TRY(tess_comm_agree(planes->comm, status));
    for (int k = 0; k < size; ++k)
        bytes[k] = counts->values[k] * planes->value_bytes;
    TESS_TRY(send_values(planes, bytes, set->value_bytes, arrived));
cleanup:
    tess_free(bytes);
    return status;
}

static int64_t received_bytes(const tess_planes *planes, const piece_set *set)
{
    int64_t total = 0;
    for (int k = 0; k < tess_comm_size(planes->comm); ++k)
        total += set->value_bytes[k];
    return total;
}

/* Points the pieces from other ranks, which are listed by rank, to their values. They
 * follow one another in `values` or, if that is NULL, lie where they have arrived. */
static void point_to_values(const tess_planes *planes, int64_t own, char *values,
                            const rank_values *arrived, piece_set *set)
{
    int source = -1;
    char *at = values;
    for (int64_t k = own; k < set->num_pieces; ++k) {
        tess_piece *piece = &set->piece[k];
        if (!values && piece->source != source) at = arrived->part[piece->source];
        source = piece->source;
        piece->data = at;
        at += values_of(piece) * planes->value_bytes;
    }
}

/* Gives the pieces from other ranks memory: that of the backend, into which their
 * values have arrived, or in prediction room from which their values will be sent back.
 * Collective. */
static tess_status place_values(const tess_planes *planes, int64_t own,
                                const rank_values *arrived, piece_set *set)
{
    tess_status status = TESS_OK;
    const int64_t bytes = received_bytes(planes, set);
    void *values = NULL;
    if (planes->ops->values_in) {
        status = planes->ops->values_in(planes, arrived, bytes / planes->value_bytes,
                                        &set->values);
        tess_outbox_drop(planes->pieces_box);
        set->free_values = planes->ops->values_free;
        values = set->values;
    } else if (!arrived)
        status = tess_outbox_room(planes->pieces_box, bytes, &values);
    TESS_TRY(tess_comm_agree(planes->comm, status));
    point_to_values(planes, own, values, arrived, set);
cleanup:
    return status;
}

static int in_order(const void *a, const void *b)
{
    const tess_piece *x = a, *y = b;
    if (x->order != y->order) return x->order < y->order ? -1 : 1;
    if (x->source != y->source) return x->source < y->source ? -1 : 1;
    return (x->serial > y->serial) - (x->serial < y->serial);
}

/* Sorts the pieces of one bucket. Pieces of a single rank are mostly in order. */
static void sort_bucket(tess_piece *piece, int64_t count)
{
    for (int64_t k = 1; k < count; ++k) {
        if (in_order(&piece[k - 1], &piece[k]) <= 0) continue;
        qsort(piece, (size_t)count, sizeof *piece, in_order);
        return;
    }
}

/* Sorts pieces by bucket, by counting and without moving values, and inside a bucket in
 * the order of tess_piece. Then the pieces of a line are added in the same order,
 * whatever ranks and passes over data they come from. A piece may begin in the bucket
 * before, and a slab may cut it off so that it begins in the line's own bucket; it
 * still comes before those that begin there. Linked devices add pieces as they arrive,
 * unless sums must be repeatable. */
static tess_status sort_to_buckets(const tess_planes *planes, piece_set *set)
{
    tess_status status = TESS_OK;
    const int64_t lines = planes->line_end - planes->line_first;
    const bool is_ordered = planes->opts.repeatable || !planes->opts.links;
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
        set->piece[k].serial = k; /* pieces of a rank are in the order of its list */
        sorted[set->bucket[b + 1]++] = set->piece[k];
    }
    tess_free(set->piece);
    set->piece = sorted;
    for (int64_t b = 0; is_ordered && b < set->num_buckets; ++b)
        sort_bucket(sorted + set->bucket[b], set->bucket[b + 1] - set->bucket[b]);
cleanup:
    return status;
}

/* Computes the bytes that are sent to each rank, or come back from it. */
static int64_t *bytes_of(const tess_planes *planes, const part_counts *counts)
{
    const int size = tess_comm_size(planes->comm);
    int64_t *bytes = tess_alloc(size, sizeof *bytes);
    for (int k = 0; bytes && k < size; ++k)
        bytes[k] = counts->values[k] * planes->value_bytes;
    return bytes;
}

/* Sends the values of the parts from device to device, bytes[P] to each rank, once all
 * ranks have come to a good `status`. Collective. */
static tess_status send_linked(tess_planes *planes, tess_status status, int64_t own,
                               const part_counts *counts, const plane_part *parts,
                               const int64_t *bytes, piece_set *set)
{
    TESS_TRY(planes->ops->send(planes, status, parts, counts->total_parts, bytes,
                               set->value_bytes, &set->values));
    set->free_values = planes->ops->values_free;
    point_to_values(planes, own, set->values, NULL, set);
cleanup:
    return status;
}

/* Sends and receives the pieces of several ranks, once all ranks have come to a good
 * `status`. Collective. */
static tess_status exchange_pieces(tess_planes *planes, tess_status status,
                                   const tess_plane_job *job, const part_counts *counts,
                                   bool with_data, piece_set *set)
{
    const int size = tess_comm_size(planes->comm);
    const int64_t own = set->num_pieces;
    piece_header *header = NULL;
    rank_values arrived = {0};
    int64_t *header_bytes = tess_alloc(size, sizeof *header_bytes);
    int64_t *send_bytes = status == TESS_OK ? bytes_of(planes, counts) : NULL;
    plane_part *parts = tess_alloc(counts->total_parts, sizeof *parts);
    set->value_bytes = tess_alloc_zero(size, sizeof *set->value_bytes);
    if (status == TESS_OK)
        status = header_bytes && send_bytes && parts && set->value_bytes
                     ? list_parts(planes, job, counts, parts, NULL)
                     : TESS_ERR_ALLOC;
    if (status == TESS_OK) status = make_values(planes, &arrived);
    TESS_TRY(exchange_places(planes, status, counts, parts, &header, header_bytes));
    status = add_places(planes, header, header_bytes, set);
    if (with_data && planes->opts.links) {
        TESS_TRY(send_linked(planes, status, own, counts, parts, send_bytes, set));
        goto cleanup;
    }
    TESS_TRY(tess_comm_agree(planes->comm, status));
    if (with_data) TESS_TRY(exchange_values(planes, counts, parts, set, &arrived));
    TESS_TRY(place_values(planes, own, with_data ? &arrived : NULL, set));
cleanup:
    tess_free(header);
    tess_free(header_bytes);
    tess_free(send_bytes);
    tess_free(parts);
    free_values(&arrived);
    return status;
}

tess_status pieces_exchange(tess_planes *planes, const tess_plane_job *job,
                            bool with_data, piece_set *set)
{
    tess_status status = TESS_OK;
    part_counts counts = {0};
    status = count_parts(planes, job, &counts);
    if (status == TESS_OK) {
        set->num_pieces = counts.own;
        set->piece = tess_alloc(counts.own, sizeof *set->piece);
        status = set->piece ? list_parts(planes, job, &counts, NULL, set->piece)
                            : TESS_ERR_ALLOC;
    }
    if (tess_comm_size(planes->comm) > 1)
        TESS_TRY(exchange_pieces(planes, status, job, &counts, with_data, set));
    TESS_TRY(status);
    TESS_TRY(planes_agree(planes, sort_to_buckets(planes, set)));
cleanup:
    tess_free(counts.parts);
    return status;
}

/* Moves the filled pieces of other ranks to the room from which they are sent. Pieces
 * on the host are already there. Collective. */
static tess_status leave_values(const tess_planes *planes, piece_set *set)
{
    tess_status status = TESS_OK;
    const int64_t bytes = received_bytes(planes, set);
    void *room, *values = set->values;
    if (!planes->ops->values_out) return TESS_OK;
    TESS_TRY(tess_outbox_room(planes->pieces_box, bytes, &room));
    set->values = NULL;
    status = planes->ops->values_out(planes, values, bytes / planes->value_bytes, room);
    TESS_TRY(tess_comm_agree(planes->comm, status));
cleanup:
    return status;
}

tess_status pieces_return(tess_planes *planes, const tess_plane_job *job,
                          piece_set *set)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(planes->comm);
    part_counts counts = {0};
    plane_part *parts = NULL;
    rank_values reply = {0};
    int64_t *bytes = NULL;
    if (size == 1) return TESS_OK;
    bytes = tess_alloc(size, sizeof *bytes);
    status = bytes ? count_parts(planes, job, &counts) : TESS_ERR_ALLOC;
    if (status == TESS_OK) {
        parts = tess_alloc(counts.total_parts, sizeof *parts);
        status = parts ? list_parts(planes, job, &counts, parts, NULL) : TESS_ERR_ALLOC;
    }
    if (status == TESS_OK) status = make_values(planes, &reply);
    TESS_TRY(tess_comm_agree(planes->comm, status));
    if (planes->opts.links) {
        tess_free(bytes);
        bytes = bytes_of(planes, &counts);
        TESS_TRY(tess_comm_agree(planes->comm, bytes ? TESS_OK : TESS_ERR_ALLOC));
        status = planes->ops->send_back(planes, parts, counts.total_parts, set->values,
                                        set->value_bytes, bytes);
        goto cleanup;
    }
    TESS_TRY(leave_values(planes, set));
    TESS_TRY(send_values(planes, set->value_bytes, bytes, &reply));
    status = planes->ops->unpack(planes, parts, counts.total_parts, &reply);
    TESS_TRY(tess_comm_agree(planes->comm, status));
cleanup:
    tess_free(counts.parts);
    tess_free(parts);
    tess_free(bytes);
    free_values(&reply);
    return status;
}

void pieces_near(const piece_set *set, int64_t line, int64_t *begin, int64_t *end)
{
    const int64_t b = (line - set->line_first) / PIECE_BUCKET;
    *begin = set->bucket[b > 0 ? b - 1 : 0];
    *end = set->bucket[b + 1];
}

tess_status pieces_lines(const tess_planes *planes, const piece_set *set,
                         int32_t **lines, int64_t *num_lines)
{
    tess_status status = TESS_OK;
    const int64_t span = planes->line_end - planes->line_first;
    int32_t *line = tess_alloc(span, sizeof *line);
    char *covered = tess_alloc_zero(span, 1);
    int64_t count = 0;
    if (!covered || !line) TESS_FAIL(TESS_ERR_ALLOC, "list of lines");
    for (int64_t k = 0; k < set->num_pieces; ++k)
        memset(covered + (set->piece[k].line - planes->line_first), 1,
               (size_t)set->piece[k].num_lines);
    for (int64_t k = 0; k < span; ++k)
        if (covered[k]) line[count++] = (int32_t)(planes->line_first + k);
    *lines = line;
    *num_lines = count;
    line = NULL;
cleanup:
    tess_free(covered);
    tess_free(line);
    return status;
}

void pieces_free(piece_set *set)
{
    tess_free(set->piece);
    tess_free(set->bucket);
    if (set->values) set->free_values(set->values);
    tess_free(set->value_bytes);
    *set = (piece_set){0};
}
