/* Sends the samples of a round to the teams that make its outputs, in one message from
 * each rank to each rank. */
#include <string.h>

#include "team_parcel.h"
#include "tess_mem.h"

/* ---- messages ---- */

/* The arrays of samples that are sent: those of rows, and those of samples. A message
 * has them in this order for each output, behind a heading. */
enum { UVW, CHAN_BASE, NUM_CHAN, ORIGIN, ROW_ARRAYS, VIS = ROW_ARRAYS, WEIGHT, ARRAYS };

typedef struct sent_array {
    char *data;
    int64_t bytes; /* of an element */
} sent_array;

typedef struct sent_arrays {
    sent_array of[ARRAYS];
} sent_arrays;

/* What a message tells of an output. */
typedef struct heading {
    int64_t num_rows, num_vis;
    bool is_same[ROW_ARRAYS]; /* the array is that of the output before it, and is not
                                 sent: channels of a cube mostly have the same rows */
} heading;

static sent_arrays arrays_of(const tess_samples *samples)
{
    const int64_t element = samples->is_double ? 8 : 4;
    sent_arrays arrays = {
        .of = {[UVW] = {(char *)samples->uvw_m, 3 * sizeof(double)},
               [CHAN_BASE] = {(char *)samples->chan_base, sizeof(int32_t)},
               [NUM_CHAN] = {(char *)samples->num_chan, sizeof(int32_t)},
               [ORIGIN] = {(char *)samples->origin,
                           samples->origins ? (int64_t)sizeof(int32_t) : 0},
               [VIS] = {samples->vis, 2 * element * samples->num_pol},
               [WEIGHT] = {samples->weight, element * samples->num_weight}}};
    return arrays;
}

static int64_t array_bytes(const sent_array *array, int k, const heading *head)
{
    return array->bytes * (k < ROW_ARRAYS ? head->num_rows : head->num_vis);
}

static bool is_sent(int k, const heading *head)
{
    return k >= ROW_ARRAYS || !head->is_same[k];
}

/* Bytes of an output, with its heading. */
static int64_t message_bytes(const tess_samples *samples, const heading *head)
{
    const sent_arrays arrays = arrays_of(samples);
    int64_t bytes = (int64_t)sizeof *head;
    for (int k = 0; k < ARRAYS; ++k)
        if (is_sent(k, head)) bytes += array_bytes(&arrays.of[k], k, head);
    return bytes;
}

/* ---- packing ---- */

int64_t team_parcel_bytes_of(const tess_samples *like, int64_t num_rows,
                             int64_t num_vis, bool again)
{
    const heading head = {.num_rows = num_rows,
                          .num_vis = num_vis,
                          .is_same = {[UVW] = again, [ORIGIN] = again}};
    return message_bytes(like, &head);
}

tess_status team_parcel_create(const imager_teams *teams, const tess_samples *like,
                               int64_t bytes, team_parcel *parcel)
{
    tess_status status = TESS_OK;
    parcel->like = tess_samples_like(like);
    parcel->first = tess_alloc_zero(teams->num + 1, sizeof *parcel->first);
    if (!parcel->first || tess_grow((void **)&parcel->message, &parcel->capacity, bytes,
                                    sizeof *parcel->message))
        TESS_FAIL(TESS_ERR_ALLOC, "samples of %d teams", teams->num);
cleanup:
    return status;
}

static bool is_equal(const sent_array *a, const sent_array *b, int64_t bytes)
{
    return bytes == 0 || memcmp(a->data, b->data, (size_t)bytes) == 0;
}

/* Tells which arrays of rows are those of the output before it. */
static heading heading_of(const tess_samples *samples, const tess_samples *before)
{
    const sent_arrays own = arrays_of(samples), other = arrays_of(before);
    heading head;
    memset(&head, 0, sizeof head); /* its gaps, too, are sent */
    head.num_rows = samples->num_rows;
    head.num_vis = samples->num_vis;
    for (int k = 0; k < ROW_ARRAYS && before->num_rows == head.num_rows; ++k)
        head.is_same[k] =
            is_equal(&own.of[k], &other.of[k], array_bytes(&own.of[k], k, &head));
    return head;
}

static void append(team_parcel *parcel, const void *data, int64_t bytes)
{
    if (bytes > 0) memcpy(parcel->message + parcel->bytes, data, (size_t)bytes);
    parcel->bytes += bytes;
}

tess_status team_parcel_add(team_parcel *parcel, tess_samples *samples)
{
    tess_status status = TESS_OK;
    const heading head = heading_of(samples, &parcel->before);
    const sent_arrays arrays = arrays_of(samples);
    const int64_t bytes = message_bytes(samples, &head);
    if (tess_grow((void **)&parcel->message, &parcel->capacity, parcel->bytes + bytes,
                  sizeof *parcel->message))
        TESS_FAIL(TESS_ERR_ALLOC, "samples of teams");
    append(parcel, &head, (int64_t)sizeof head);
    for (int k = 0; k < ARRAYS; ++k)
        if (is_sent(k, &head))
            append(parcel, arrays.of[k].data, array_bytes(&arrays.of[k], k, &head));
    tess_samples_free(&parcel->before);
    parcel->before = *samples;
    *samples = (tess_samples){0};
cleanup:
    return status;
}

void team_parcel_end_team(team_parcel *parcel)
{
    parcel->first[++parcel->num] = parcel->bytes;
    tess_samples_free(&parcel->before);
}

void team_parcel_free(team_parcel *parcel)
{
    tess_samples_free(&parcel->before);
    tess_free(parcel->message);
    tess_free(parcel->first);
    *parcel = (team_parcel){0};
}

/* ---- unpacking ---- */

/* The message of a rank, as far as it has not been read. */
typedef struct letter {
    const char *at, *end;
    int64_t row; /* of the rank's rows in the output that was read last */
} letter;

static bool has_output(const letter *from)
{
    return from->at < from->end;
}

static heading read_heading(const letter *from)
{
    heading head;
    memcpy(&head, from->at, sizeof head);
    return head;
}

/* Makes room for an output's samples of all ranks. */
static tess_status make_room(const letter *from, int ranks, tess_samples *to)
{
    int64_t rows = 0, vis = 0;
    for (int k = 0; k < ranks; ++k) {
        if (!has_output(&from[k])) continue;
        const heading head = read_heading(&from[k]);
        rows += head.num_rows;
        vis += head.num_vis;
    }
    return tess_samples_reserve(to, rows, vis);
}

/* Appends the next output of a rank's message. `before`: the output before it. */
static void read_output(letter *from, const tess_samples *before, tess_samples *to)
{
    const heading head = read_heading(from);
    const sent_arrays arrays = arrays_of(to), others = arrays_of(before);
    from->at += sizeof head;
    for (int k = 0; k < ARRAYS; ++k) {
        const sent_array *array = &arrays.of[k];
        const int64_t bytes = array_bytes(array, k, &head);
        const int64_t first = k < ROW_ARRAYS ? to->num_rows : to->num_vis;
        const bool sent = is_sent(k, &head);
        if (bytes == 0) continue;
        memcpy(array->data + first * array->bytes,
               sent ? from->at : others.of[k].data + from->row * array->bytes,
               (size_t)bytes);
        if (sent) from->at += bytes;
    }
    from->row = to->num_rows;
    to->num_rows += head.num_rows;
    to->num_vis += head.num_vis;
}

static void index_rows(tess_samples *samples)
{
    int64_t at = 0;
    for (int64_t row = 0; row < samples->num_rows; ++row) {
        samples->vis_first[row] = at;
        at += samples->num_chan[row];
    }
}

/* Reads the outputs in the messages of all ranks, bytes[ranks], which lie one behind
 * the other. */
static tess_status unpack(const tess_samples *like, const char *message,
                          const int64_t *bytes, int ranks, int num, tess_samples *to)
{
    tess_status status = TESS_OK;
    const tess_samples none = tess_samples_like(like);
    letter *from = tess_alloc_zero(ranks, sizeof *from);
    if (!from) TESS_FAIL(TESS_ERR_ALLOC, "samples of a team");
    for (int k = 0; k < ranks; message += bytes[k++])
        from[k] = (letter){.at = message, .end = message + bytes[k]};
    for (int t = 0; t < num; ++t) {
        to[t] = none;
        TESS_TRY(make_room(from, ranks, &to[t]));
        for (int k = 0; k < ranks; ++k)
            if (has_output(&from[k]))
                read_output(&from[k], t > 0 ? &to[t - 1] : &none, &to[t]);
        index_rows(&to[t]);
    }
cleanup:
    tess_free(from);
    return status;
}

/* ---- sending ---- */

/* The bytes of the message to each rank. Ranks of equal number / teams, which hold
 * neighbouring rows, send to one member, so that the members hold rows in their order
 * on any number of ranks. */
static void address(const imager_teams *teams, const team_parcel *parcel,
                    int64_t *bytes)
{
    const int member = tess_comm_rank(teams->all) / teams->num;
    for (int g = 0; g < teams->num; ++g)
        bytes[g * teams->members + member] = parcel->first[g + 1] - parcel->first[g];
}

tess_status imager_teams_send(const imager_teams *teams, tess_status status,
                              team_parcel *parcel, int num, tess_samples *to)
{
    const int ranks = tess_comm_size(teams->all);
    void *arrived = NULL;
    int64_t *bytes = tess_alloc_zero(2 * (int64_t)ranks, sizeof *bytes);
    if (status == TESS_OK && !bytes) status = TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(teams->all, status));
    while (parcel->num < teams->num)
        team_parcel_end_team(parcel);
    address(teams, parcel, bytes);
    TESS_TRY(tess_comm_alltoallv(teams->all, parcel->message, bytes, &arrived,
                                 bytes + ranks));
    tess_free(parcel->message);
    parcel->message = NULL;
    status = unpack(&parcel->like, arrived, bytes + ranks, ranks, num, to);
    TESS_TRY(tess_comm_agree(teams->all, status));
cleanup:
    for (int k = 0; arrived && k < num && status != TESS_OK; ++k)
        tess_samples_free(&to[k]);
    tess_free(arrived);
    tess_free(bytes);
    return status;
}
