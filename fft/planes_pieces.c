/* Moves pieces of planes between the ranks that grid them and the ranks that transform
 * them. A message has the places of pieces and behind them their values, which the
 * backend packs and unpacks because they may lie in device memory. */
#include <stdlib.h>
#include <string.h>

#include "planes_object.h"
#include "tess_mem.h"

/* The place of a piece. */
typedef struct piece_header {
    int32_t line, num_lines, cell, num_cells;
    int64_t plane, order;
} piece_header;

/* What a message begins with. The places of the pieces follow, and then their values
 * from a multiple of ALIGNMENT bytes on. */
typedef struct message_head {
    int64_t num_pieces;
} message_head;

enum { ALIGNMENT = 64 };

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
    for (; walk->job < tess_planes_jobs(planes); ++walk->job, walk->piece = 0) {
        const tess_plane_job *current = &job[walk->job];
        if (!current->active) continue;
        for (; walk->piece < current->num_pieces; ++walk->piece, walk->slab = 0)
            while (walk->slab < slabs) {
                const int slab = walk->slab++;
                if (!clip(planes, &current->piece[walk->piece], slab, part)) continue;
                *rank = walk->job % planes->num_groups * slabs + slab;
                part->plane = walk->job / planes->num_groups;
                return true;
            }
    }
    return false;
}

/* ---- this rank's parts, by rank ---- */

/* How much is sent to each rank. Parts that lie in this rank's own slab stay. */
typedef struct part_counts {
    int64_t *parts, *values; /* [P] */
    int64_t own, total_parts;
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

/* Lists the parts for other ranks in order of rank, with the place of their values,
 * which begin at value[P] for each rank and follow one another from there, and in `own`
 * the parts that lie in this rank's own slab. Either list may be NULL. */
static tess_status list_parts(const tess_planes *planes, const tess_plane_job *job,
                              const part_counts *counts, int64_t *value,
                              plane_part *out, tess_piece *own)
{
    tess_status status = TESS_OK;
    const int me = tess_comm_rank(planes->comm);
    int64_t *at = starts_of(counts->parts, tess_comm_size(planes->comm));
    part_walk walk = {0};
    tess_piece part;
    int rank;
    if (!at) TESS_FAIL(TESS_ERR_ALLOC, "pieces of planes");
    while (next_part(planes, job, &walk, &part, &rank)) {
        if (rank == me && own) {
            *own = part;
            own++->source = me;
        }
        if (rank == me || !out) continue;
        out[at[rank]++] = (plane_part){part, rank, value[rank]};
        value[rank] += values_of(&part);
    }
cleanup:
    tess_free(at);
    return status;
}

/* ---- messages ---- */

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

/* Bytes of the places of pieces, from which on their values follow. */
static int64_t places_bytes(int64_t num_pieces)
{
    const int64_t bytes =
        (int64_t)sizeof(message_head) + num_pieces * (int64_t)sizeof(piece_header);
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* This rank's messages to all ranks, and what it gets from them. */
typedef struct mail {
    part_counts counts;
    plane_part *part;
    int64_t *bytes, *value, *received; /* [P] bytes of the messages, places of their
                                          values, bytes from each rank */
    int64_t total_bytes;
    rank_values arrived;
} mail;

static void mail_free(mail *out)
{
    tess_free(out->counts.parts);
    tess_free(out->part);
    tess_free(out->bytes);
    free_values(&out->arrived);
}

/* Lays out the messages and lists their parts. Values that are not sent with the places
 * follow one another without gaps. Local. */
static tess_status mail_create(const tess_planes *planes, const tess_plane_job *job,
                               bool with_values, mail *out)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(planes->comm);
    int64_t dense = 0;
    out->part = tess_alloc(out->counts.total_parts, sizeof *out->part);
    out->bytes = tess_alloc_zero(3 * size, sizeof *out->bytes);
    if (!out->part || !out->bytes) TESS_FAIL(TESS_ERR_ALLOC, "pieces of planes");
    out->value = out->bytes + size;
    out->received = out->value + size;
    for (int k = 0; k < size; ++k) {
        const int64_t values = out->counts.values[k] * planes->value_bytes;
        out->value[k] = dense;
        dense += out->counts.values[k];
        if (out->counts.parts[k] == 0) continue;
        out->bytes[k] = places_bytes(out->counts.parts[k]);
        if (with_values) {
            out->value[k] = (out->total_bytes + out->bytes[k]) / planes->value_bytes;
            out->bytes[k] += (values + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        }
        out->total_bytes += out->bytes[k];
    }
    TESS_TRY(make_values(planes, &out->arrived));
    TESS_TRY(list_parts(planes, job, &out->counts, out->value, out->part, NULL));
cleanup:
    return status;
}

/* Writes the places of the parts of each message. */
static void write_places(const tess_planes *planes, const mail *out, char *room)
{
    const plane_part *part = out->part;
    for (int k = 0; k < tess_comm_size(planes->comm); room += out->bytes[k++]) {
        const message_head head = {out->counts.parts[k]};
        piece_header *header = (piece_header *)(void *)(room + sizeof head);
        if (out->bytes[k] > 0) memcpy(room, &head, sizeof head);
        for (int64_t p = 0; p < head.num_pieces; ++p, ++part) {
            const tess_piece *piece = &part->piece;
            *header++ =
                (piece_header){piece->line,      piece->num_lines, piece->cell,
                               piece->num_cells, piece->plane,     piece->order};
        }
    }
}

/* Sends the messages. Collective. */
static tess_status mail_send(const tess_planes *planes, bool with_values,
                             tess_status *own, mail *out)
{
    tess_status status = TESS_OK;
    void *room;
    TESS_TRY(tess_outbox_room(planes->pieces_box, *own, out->total_bytes, &room));
    if (with_values)
        *own = planes->ops->pack(planes, out->part, out->counts.total_parts,
                                 out->total_bytes / planes->value_bytes, room);
    if (*own == TESS_OK) write_places(planes, out, room);
    TESS_TRY(tess_outbox_send(planes->pieces_box, *own, out->bytes, out->received,
                              out->arrived.part));
cleanup:
    return status;
}

static int64_t pieces_in(const mail *in, int rank)
{
    message_head head = {0};
    if (in->received[rank] > 0) memcpy(&head, in->arrived.part[rank], sizeof head);
    return head.num_pieces;
}

/* Adds the places of a message to the set. */
static void add_places(const tess_planes *planes, const piece_header *header,
                       int64_t count, int source, piece_set *set)
{
    for (int64_t k = 0; k < count; ++k, ++header) {
        tess_piece *piece = &set->piece[set->num_pieces++];
        *piece = (tess_piece){.line = header->line,
                              .num_lines = header->num_lines,
                              .cell = header->cell,
                              .num_cells = header->num_cells,
                              .stride = header->num_cells,
                              .order = header->order,
                              .plane = (int)header->plane,
                              .source = source};
        set->value_bytes[source] += values_of(piece) * planes->value_bytes;
    }
}

/* Adds the places that have arrived to the set, and finds the values that have arrived
 * with them. Local. */
static tess_status mail_read(const tess_planes *planes, mail *in, piece_set *set)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(planes->comm);
    const int64_t own = set->num_pieces;
    int64_t total = own;
    for (int rank = 0; rank < size; ++rank)
        total += pieces_in(in, rank);
    tess_piece *grown = tess_alloc(total, sizeof *grown);
    if (!grown) TESS_FAIL(TESS_ERR_ALLOC, "pieces of planes");
    if (own > 0) memcpy(grown, set->piece, (size_t)own * sizeof *grown);
    tess_free(set->piece);
    set->piece = grown;
    for (int rank = 0; rank < size; ++rank) {
        const int64_t count = pieces_in(in, rank);
        char *message = in->arrived.part[rank];
        in->arrived.first[rank + 1] = in->arrived.first[rank];
        if (count == 0) continue;
        add_places(planes,
                   (const piece_header *)(void *)(message + sizeof(message_head)),
                   count, rank, set);
        in->arrived.part[rank] = message + places_bytes(count);
        in->arrived.first[rank + 1] += set->value_bytes[rank] / planes->value_bytes;
    }
cleanup:
    return status;
}

/* ---- values ---- */

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
static tess_status place_values(const tess_planes *planes, int64_t num_own,
                                const rank_values *arrived, tess_status *own,
                                piece_set *set)
{
    tess_status status = TESS_OK;
    void *values = NULL;
    if (planes->ops->values_in) {
        if (*own == TESS_OK)
            *own = planes->ops->values_in(
                planes, arrived, received_bytes(planes, set) / planes->value_bytes,
                &set->values);
        tess_outbox_drop(planes->pieces_box);
        set->free_values = planes->ops->values_free;
        values = set->values;
    } else if (!arrived)
        TESS_TRY(tess_outbox_room(planes->pieces_box, *own,
                                  *own == TESS_OK ? received_bytes(planes, set) : 0,
                                  &values));
    if (*own == TESS_OK) point_to_values(planes, num_own, values, arrived, set);
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

/* The bucket in which a piece begins. */
static int64_t bucket_of(const piece_set *set, const tess_piece *piece)
{
    return piece->plane * set->of_plane +
           (piece->line - set->line_first) / PIECE_BUCKET;
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
    set->nu = planes->opts.nu;
    set->of_plane = lines / PIECE_BUCKET + 1;
    set->num_buckets = planes->batch * set->of_plane;
    set->bucket = tess_alloc_zero(set->num_buckets + 2, sizeof *set->bucket);
    tess_piece *sorted = tess_alloc(set->num_pieces, sizeof *sorted);
    if (!set->bucket || !sorted) {
        tess_free(sorted);
        TESS_FAIL(TESS_ERR_ALLOC, "pieces of planes");
    }
    int64_t *count = set->bucket + 2;
    for (int64_t k = 0; k < set->num_pieces; ++k)
        ++count[bucket_of(set, &set->piece[k])];
    for (int64_t b = 1; b <= set->num_buckets + 1; ++b)
        set->bucket[b] += set->bucket[b - 1];
    for (int64_t k = 0; k < set->num_pieces; ++k) {
        const int64_t b = bucket_of(set, &set->piece[k]);
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

/* Sends the values of the parts from device to device, once all ranks have come to a
 * good `*own`. Collective. */
static tess_status send_linked(tess_planes *planes, int64_t num_own, const mail *out,
                               tess_status *own, piece_set *set)
{
    tess_status status = TESS_OK;
    int64_t *bytes = out->received; /* has been read */
    for (int k = 0; k < tess_comm_size(planes->comm); ++k)
        bytes[k] = out->counts.values[k] * planes->value_bytes;
    TESS_TRY(planes->ops->send(planes, *own, out->part, out->counts.total_parts, bytes,
                               set->value_bytes, &set->values));
    set->free_values = planes->ops->values_free;
    point_to_values(planes, num_own, set->values, NULL, set);
cleanup:
    return status;
}

/* Sends and receives the pieces of several ranks. `out` has the counts of the parts.
 * Collective. */
static tess_status exchange_pieces(tess_planes *planes, const tess_plane_job *job,
                                   bool with_data, tess_status *own, mail *out,
                                   piece_set *set)
{
    tess_status status = TESS_OK;
    const int64_t num_own = set->num_pieces;
    const bool linked = with_data && planes->opts.links;
    const bool with_values = with_data && !linked;
    if (*own == TESS_OK) *own = mail_create(planes, job, with_values, out);
    set->value_bytes =
        tess_alloc_zero(tess_comm_size(planes->comm), sizeof *set->value_bytes);
    if (!set->value_bytes && *own == TESS_OK) *own = TESS_ERR_ALLOC;
    TESS_TRY(mail_send(planes, with_values, own, out));
    *own = mail_read(planes, out, set);
    TESS_TRY(linked ? send_linked(planes, num_own, out, own, set)
                    : place_values(planes, num_own, with_data ? &out->arrived : NULL,
                                   own, set));
cleanup:
    return status;
}

/* Counts the parts, and lists those that lie in this rank's own slab. Local. */
static tess_status list_own(const tess_planes *planes, const tess_plane_job *job,
                            part_counts *counts, piece_set *set)
{
    tess_status status = TESS_OK;
    TESS_TRY(count_parts(planes, job, counts));
    set->num_pieces = counts->own;
    set->piece = tess_alloc(counts->own, sizeof *set->piece);
    if (!set->piece) TESS_FAIL(TESS_ERR_ALLOC, "pieces of planes");
    TESS_TRY(list_parts(planes, job, counts, NULL, NULL, set->piece));
cleanup:
    return status;
}

tess_status pieces_exchange(tess_planes *planes, const tess_plane_job *job,
                            bool with_data, tess_status *own, piece_set *set)
{
    tess_status status = TESS_OK;
    mail out = {0};
    if (*own == TESS_OK) *own = list_own(planes, job, &out.counts, set);
    if (tess_comm_size(planes->comm) > 1)
        TESS_TRY(exchange_pieces(planes, job, with_data, own, &out, set));
    if (*own == TESS_OK) *own = sort_to_buckets(planes, set);
cleanup:
    mail_free(&out);
    return status;
}

/* Moves the filled pieces of other ranks to the room from which they are sent. Pieces
 * on the host are already there. Collective. */
static tess_status leave_values(const tess_planes *planes, tess_status *own,
                                piece_set *set)
{
    tess_status status = TESS_OK;
    void *room, *values = set->values;
    if (!planes->ops->values_out) return TESS_OK;
    const int64_t bytes = *own == TESS_OK ? received_bytes(planes, set) : 0;
    TESS_TRY(tess_outbox_room(planes->pieces_box, *own, bytes, &room));
    set->values = NULL;
    *own = planes->ops->values_out(planes, values, bytes / planes->value_bytes, room);
cleanup:
    return status;
}

/* What comes back to this rank. Local. */
static tess_status expect_values(const tess_planes *planes, const tess_plane_job *job,
                                 mail *out)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(planes->comm);
    TESS_TRY(count_parts(planes, job, &out->counts));
    out->part = tess_alloc(out->counts.total_parts, sizeof *out->part);
    out->bytes = starts_of(out->counts.values, size);
    if (!out->part || !out->bytes) TESS_FAIL(TESS_ERR_ALLOC, "pieces of planes");
    TESS_TRY(list_parts(planes, job, &out->counts, out->bytes, out->part, NULL));
    for (int k = 0; k < size; ++k)
        out->bytes[k] = out->counts.values[k] * planes->value_bytes;
    TESS_TRY(make_values(planes, &out->arrived));
cleanup:
    return status;
}

tess_status pieces_return(tess_planes *planes, const tess_plane_job *job,
                          tess_status *own, piece_set *set)
{
    tess_status status = TESS_OK;
    mail back = {0};
    rank_values *reply = &back.arrived;
    const int size = tess_comm_size(planes->comm);
    if (size == 1) return TESS_OK;
    if (*own == TESS_OK) *own = expect_values(planes, job, &back);
    if (planes->opts.links) {
        TESS_TRY(tess_comm_agree(planes->comm, *own));
        *own = planes->ops->send_back(planes, back.part, back.counts.total_parts,
                                      set->values, set->value_bytes, back.bytes);
        goto cleanup;
    }
    TESS_TRY(leave_values(planes, own, set));
    TESS_TRY(tess_outbox_send(planes->pieces_box, *own, set->value_bytes, back.bytes,
                              reply->part));
    for (int k = 0; k < size; ++k)
        reply->first[k + 1] = reply->first[k] + back.bytes[k] / planes->value_bytes;
    *own = planes->ops->unpack(planes, back.part, back.counts.total_parts, reply);
cleanup:
    mail_free(&back);
    return status;
}

void pieces_near(const piece_set *set, int64_t line, int64_t *begin, int64_t *end)
{
    const int64_t here = (line % set->nu - set->line_first) / PIECE_BUCKET;
    const int64_t b = line / set->nu * set->of_plane + here;
    *begin = set->bucket[here > 0 ? b - 1 : b];
    *end = set->bucket[b + 1];
}

tess_status pieces_lines(const tess_planes *planes, const piece_set *set,
                         int32_t **lines, int64_t *num_lines)
{
    tess_status status = TESS_OK;
    const int64_t span = planes->line_end - planes->line_first;
    const int64_t all = planes->batch * span;
    int32_t *line = tess_alloc(all, sizeof *line);
    char *covered = tess_alloc_zero(all, 1);
    int64_t count = 0;
    if (!covered || !line) TESS_FAIL(TESS_ERR_ALLOC, "list of lines");
    for (int64_t k = 0; k < set->num_pieces; ++k)
        memset(covered + set->piece[k].plane * span +
                   (set->piece[k].line - planes->line_first),
               1, (size_t)set->piece[k].num_lines);
    for (int p = 0; p < planes->batch; ++p)
        for (int64_t k = 0; k < span; ++k)
            if (covered[p * span + k])
                line[count++] = (int32_t)(p * planes->opts.nu + planes->line_first + k);
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
