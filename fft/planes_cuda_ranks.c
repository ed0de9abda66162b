/* Moves data of planes between the ranks of the cuda backend: pieces go to the ranks
 * that transform their lines, and lines are sent between the two passes of a transform.
 * Linked devices exchange data directly; other devices send through host memory. */

#include "planes_cuda.h"
#include "tess_device.h"
#include "tess_device_comm.h"
#include "tess_mem.h"

/* ---- lines and rows, through host memory ---- */

/* The number of rows of slab f. */
static int64_t rows_of_slab(const tess_planes *planes, int slab)
{
    const int64_t ny = planes->opts.ny, slabs = planes->opts.fft_ranks;
    return planes_share(ny, slab + 1, slabs) - planes_share(ny, slab, slabs);
}

/* Computes bytes of a transpose: of this rank's lines × the rows of each slab, and of
 * the lines of each slab × this rank's rows. */
static void transpose_bytes(const tess_planes *planes, const line_list *lines,
                            int64_t *by_lines, int64_t *by_rows)
{
    const int64_t rows = planes->row_end - planes->row_first;
    for (int f = 0; f < planes->opts.fft_ranks; ++f) {
        by_lines[f] = lines->num_own * rows_of_slab(planes, f) * planes->value_bytes;
        by_rows[f] = lines->of_slab[f] * rows * planes->value_bytes;
    }
}

/* Copies between the rows of all lines and blocks [own rows][lines of slab f], which
 * follow one another in host memory. */
static tess_status move_blocks(tess_planes *planes, const line_list *lines, char *host,
                               bool to_device)
{
    tess_status status = TESS_OK;
    const int64_t rows = planes->row_end - planes->row_first,
                  bytes = planes->value_bytes;
    char *at = planes->device->rows[planes->device->now].values.data;
    for (int f = 0; f < planes->opts.fft_ranks; ++f) {
        const int64_t width = lines->of_slab[f] * bytes,
                      stride = lines->num_lines * bytes;
        if (to_device)
            TESS_TRY(tess_device_upload_rows(at, stride, host, width, width, rows));
        else
            TESS_TRY(tess_device_download_rows(host, width, at, stride, width, rows));
        host += width * rows;
        at += width;
    }
cleanup:
    return status;
}

tess_status planes_transpose_to_rows(tess_planes *planes, const line_list *lines)
{
    tess_status status = TESS_OK;
    const int slabs = planes->opts.fft_ranks;
    const int64_t own_bytes = lines->num_own * planes->opts.ny * planes->value_bytes;
    int64_t *bytes = NULL;
    void *send = NULL, *received = NULL;
    if (slabs == 1) return TESS_OK;
    bytes = tess_alloc(3 * slabs, sizeof *bytes);
    send = tess_alloc(own_bytes, 1);
    status = bytes && send
                 ? tess_device_download(send, planes->device->own_rows.data, own_bytes)
                 : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(planes->group, status));
    transpose_bytes(planes, lines, bytes, bytes + slabs);
    TESS_TRY(
        tess_comm_alltoallv(planes->group, send, bytes, &received, bytes + 2 * slabs));
    TESS_TRY(move_blocks(planes, lines, received, true));
cleanup:
    tess_free(bytes);
    tess_free(send);
    tess_free(received);
    return status;
}

tess_status planes_transpose_to_lines(tess_planes *planes, const line_list *lines)
{
    tess_status status = TESS_OK;
    const int slabs = planes->opts.fft_ranks;
    const int64_t rows = planes->row_end - planes->row_first;
    const int64_t own_bytes = lines->num_own * planes->opts.ny * planes->value_bytes;
    int64_t *bytes = NULL;
    void *send = NULL, *received = NULL;
    if (slabs == 1) return TESS_OK;
    bytes = tess_alloc(3 * slabs, sizeof *bytes);
    send = tess_alloc(lines->num_lines * rows, (size_t)planes->value_bytes);
    status = bytes && send ? move_blocks(planes, lines, send, false) : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(planes->group, status));
    transpose_bytes(planes, lines, bytes, bytes + slabs);
    TESS_TRY(tess_comm_alltoallv(planes->group, send, bytes + slabs, &received,
                                 bytes + 2 * slabs));
    TESS_TRY(tess_device_upload(planes->device->own_rows.data, received, own_bytes));
cleanup:
    tess_free(bytes);
    tess_free(send);
    tess_free(received);
    return status;
}

/* ---- lines and rows, between linked devices ---- */

tess_status planes_parts_create(tess_planes *planes)
{
    tess_status status = TESS_OK;
    struct planes_of_device *cuda = planes->device;
    const int size = tess_comm_size(planes->comm);
    cuda->send = tess_alloc_zero(size, sizeof *cuda->send);
    cuda->take = tess_alloc_zero(size, sizeof *cuda->take);
    if (!cuda->send || !cuda->take) TESS_FAIL(TESS_ERR_ALLOC, "exchange over ranks");
cleanup:
    return status;
}

/* Empties the parts of an exchange. */
static void clear_parts(const tess_planes *planes)
{
    for (int k = 0; k < tess_comm_size(planes->comm); ++k) {
        planes->device->send[k] = (tess_device_part){0};
        planes->device->take[k] = (tess_device_rows){0};
    }
}

static tess_status exchange_parts(const tess_planes *planes, tess_status status)
{
    return tess_device_comm_exchange(planes->opts.links, status, planes->device->send,
                                     planes->device->take);
}

int64_t planes_rounds(const tess_planes *planes, const line_list *lines)
{
    const int64_t batch = planes->device->batch_lines;
    int64_t most = 0;
    for (int f = 0; f < planes->opts.fft_ranks; ++f)
        if (lines->of_slab[f] > most) most = lines->of_slab[f];
    return (most + batch - 1) / batch;
}

/* Returns the number of lines of a slab in a round. */
static int64_t round_lines(const tess_planes *planes, const line_list *lines, int slab,
                           int64_t round)
{
    const int64_t batch = planes->device->batch_lines;
    const int64_t left = lines->of_slab[slab] - round * batch;
    return left < 0 ? 0 : left < batch ? left : batch;
}

void planes_round(const tess_planes *planes, const line_list *lines, int64_t round,
                  int64_t *first, int64_t *count)
{
    *first = round * planes->device->batch_lines;
    *count = round_lines(planes, lines, planes->slab, round);
}

tess_status planes_line_buffer(tess_planes *planes, void **buffer)
{
    return tess_device_comm_buffer(planes->opts.links, buffer);
}

/* Returns the first row of slab f. */
static int64_t first_row(const tess_planes *planes, int slab)
{
    return planes_share(planes->opts.ny, slab, planes->opts.fft_ranks);
}

/* Returns where the lines of a slab of a round begin in a row of all lines [bytes]. */
static int64_t column_of(const tess_planes *planes, const line_list *lines, int slab,
                         int64_t round)
{
    int64_t at = round * planes->device->batch_lines;
    for (int f = 0; f < slab; ++f)
        at += lines->of_slab[f];
    return at * planes->value_bytes;
}

tess_status planes_send_lines(tess_planes *planes, tess_status status,
                              const line_list *lines, int64_t round)
{
    const int64_t bytes = planes->value_bytes,
                  rows = planes->row_end - planes->row_first;
    const int64_t own = round_lines(planes, lines, planes->slab, round);
    struct planes_of_device *cuda = planes->device;
    char *rows_of_all = cuda->rows[cuda->now].values.data;
    clear_parts(planes);
    for (int f = 0; f < planes->opts.fft_ranks; ++f) {
        const int64_t count = round_lines(planes, lines, f, round);
        cuda->send[f] = (tess_device_part){first_row(planes, f) * own * bytes,
                                           rows_of_slab(planes, f) * own * bytes};
        if (rows_of_all)
            cuda->take[f] =
                (tess_device_rows){rows_of_all + column_of(planes, lines, f, round),
                                   lines->num_lines * bytes, count * bytes, rows};
    }
    return exchange_parts(planes, status);
}

void *planes_round_rows(const tess_planes *planes, int64_t round)
{
    const struct planes_of_device *cuda = planes->device;
    return (char *)cuda->own_rows.data +
           round % 2 * cuda->batch_lines * planes->opts.ny * planes->value_bytes;
}

/* Packs this rank's rows of the lines of a round, slab after slab, into the buffer of
 * the next exchange. */
static tess_status pack_rows(tess_planes *planes, const line_list *lines, int64_t round)
{
    tess_status status = TESS_OK;
    const int64_t bytes = planes->value_bytes,
                  rows = planes->row_end - planes->row_first;
    const char *rows_of_all = planes->device->rows[planes->device->now].values.data;
    int64_t at = 0;
    void *buffer;
    TESS_TRY(tess_device_comm_buffer(planes->opts.links, &buffer));
    for (int f = 0; f < planes->opts.fft_ranks; ++f) {
        const int64_t width = round_lines(planes, lines, f, round) * bytes;
        planes->device->send[f] = (tess_device_part){at, width * rows};
        if (width > 0)
            TESS_TRY(
                tess_device_copy_rows((char *)buffer + at, width,
                                      rows_of_all + column_of(planes, lines, f, round),
                                      lines->num_lines * bytes, width, rows));
        at += width * rows;
    }
cleanup:
    return status;
}

tess_status planes_fetch_lines(tess_planes *planes, tess_status status,
                               const line_list *lines, int64_t round)
{
    const int64_t width =
        round_lines(planes, lines, planes->slab, round) * planes->value_bytes;
    clear_parts(planes);
    if (status == TESS_OK) status = pack_rows(planes, lines, round);
    for (int f = 0; f < planes->opts.fft_ranks && width > 0; ++f)
        planes->device->take[f] = (tess_device_rows){
            (char *)planes_round_rows(planes, round) + first_row(planes, f) * width,
            width, width, rows_of_slab(planes, f)};
    return exchange_parts(planes, status);
}

/* ---- exchange of pieces ---- */

/* Parts of pieces, their values in a dense buffer on the device, and room for both. */
typedef struct packing {
    void *part, *values;
} packing;

static void packing_free(packing *with)
{
    tess_device_free(with->part);
    tess_device_free(with->values);
}

static tess_status packing_create(const tess_planes *planes, const plane_part *part,
                                  int64_t count, int64_t num_values, packing *with)
{
    tess_status status = TESS_OK;
    const int64_t bytes = count * (int64_t)sizeof *part;
    *with = (packing){0};
    TESS_TRY(tess_device_alloc(bytes, "pieces of w-planes", &with->part));
    TESS_TRY(tess_device_alloc(num_values * planes->value_bytes, "pieces of w-planes",
                               &with->values));
    TESS_TRY(tess_device_upload(with->part, part, bytes));
cleanup:
    return status;
}

tess_status planes_cuda_pack(const tess_planes *planes, const plane_part *part,
                             int64_t count, int64_t num_values, void *host)
{
    tess_status status = TESS_OK;
    packing with;
    TESS_TRY(packing_create(planes, part, count, num_values, &with));
    TESS_TRY(plane_pack(&planes->device->shape, with.part, count, with.values));
    TESS_TRY(tess_device_download(host, with.values, num_values * planes->value_bytes));
cleanup:
    packing_free(&with);
    return status;
}

/* Copies what the ranks have sent to the device. */
static tess_status upload(const tess_planes *planes, const rank_values *from,
                          void *values)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < tess_comm_size(planes->comm); ++k) {
        const int64_t bytes =
            (from->first[k + 1] - from->first[k]) * planes->value_bytes;
        char *to = (char *)values + from->first[k] * planes->value_bytes;
        if (bytes > 0) TESS_TRY(tess_device_upload(to, from->part[k], bytes));
    }
cleanup:
    return status;
}

tess_status planes_cuda_unpack(const tess_planes *planes, const plane_part *part,
                               int64_t count, const rank_values *from)
{
    tess_status status = TESS_OK;
    packing with;
    const int64_t num_values = from->first[tess_comm_size(planes->comm)];
    TESS_TRY(packing_create(planes, part, count, num_values, &with));
    TESS_TRY(upload(planes, from, with.values));
    TESS_TRY(plane_unpack(&planes->device->shape, with.part, count, with.values));
cleanup:
    packing_free(&with);
    return status;
}

tess_status planes_cuda_values_in(const tess_planes *planes, const rank_values *from,
                                  int64_t num_values, void **values)
{
    tess_status status = TESS_OK;
    void *made = NULL;
    TESS_TRY(tess_device_alloc(num_values * planes->value_bytes, "pieces of w-planes",
                               &made));
    if (from) TESS_TRY(upload(planes, from, made));
    *values = made;
    made = NULL;
cleanup:
    tess_device_free(made);
    return status;
}

tess_status planes_cuda_values_out(const tess_planes *planes, void *values,
                                   int64_t num_values, void *host)
{
    const tess_status status =
        tess_device_download(host, values, num_values * planes->value_bytes);
    tess_device_free(values);
    return status;
}

/* ---- pieces, between linked devices ---- */

/* Replaces numbers of bytes by the largest of all ranks. Collective. */
static tess_status most_bytes(const tess_planes *planes, const int64_t *bytes,
                              int64_t *most)
{
    *most = 0;
    for (int k = 0; k < tess_comm_size(planes->comm); ++k)
        if (bytes[k] > *most) *most = bytes[k];
    return tess_comm_allreduce_i64(planes->comm, most, 1, TESS_MAX);
}

/* Returns how much of `bytes` bytes lies in [begin, begin + most). */
static int64_t part_of(int64_t bytes, int64_t begin, int64_t most)
{
    const int64_t left = bytes - begin;
    return left < 0 ? 0 : left < most ? left : most;
}

/* Fills one round of move_values: the bytes [begin, begin + share) of what goes to each
 * rank. */
static tess_status fill_round(const tess_planes *planes, const char *from,
                              const int64_t *send_bytes, int64_t begin, int64_t share,
                              tess_device_part *send)
{
    tess_status status = TESS_OK;
    void *buffer;
    TESS_TRY(tess_device_comm_buffer(planes->opts.links, &buffer));
    for (int k = 0; k < tess_comm_size(planes->comm); ++k) {
        const int64_t bytes = part_of(send_bytes[k], begin, share);
        send[k] = (tess_device_part){k * share, bytes};
        if (bytes > 0)
            TESS_TRY(tess_device_copy_rows((char *)buffer + k * share, bytes,
                                           from + begin, bytes, bytes, 1));
        from += send_bytes[k];
    }
cleanup:
    return status;
}

/* Sends dense values, in order of rank, from device to device. What arrives is dense
 * and in order of rank as well, after tess_device_comm_arrive. `status` is that of
 * tess_device_comm_exchange. Collective. */
static tess_status move_values(const tess_planes *planes, tess_status status,
                               const void *from, const int64_t *send_bytes, void *to,
                               const int64_t *recv_bytes)
{
    const int size = tess_comm_size(planes->comm);
    /* a share holds whole values, and is aligned as device memory is */
    const int64_t share = tess_device_comm_room(planes->opts.links) / size / 256 * 256;
    int64_t most = 0;
    const tess_status told = most_bytes(planes, send_bytes, &most);
    if (told != TESS_OK || most == 0) goto cleanup;
    for (int64_t begin = 0; begin < most; begin += share) {
        char *at = to;
        clear_parts(planes);
        if (status == TESS_OK)
            status = fill_round(planes, from, send_bytes, begin, share,
                                planes->device->send);
        for (int k = 0; k < size; ++k) {
            const int64_t bytes = part_of(recv_bytes[k], begin, share);
            planes->device->take[k] =
                (tess_device_rows){at + begin, bytes, bytes, bytes > 0};
            at += recv_bytes[k];
        }
        TESS_TRY(exchange_parts(planes, status));
    }
    return TESS_OK;
cleanup:
    return tess_comm_agree(planes->comm, told != TESS_OK ? told : status);
}

static int64_t total_of(const tess_planes *planes, const int64_t *bytes)
{
    int64_t total = 0;
    for (int k = 0; k < tess_comm_size(planes->comm); ++k)
        total += bytes[k];
    return total;
}

tess_status planes_cuda_send(const tess_planes *planes, tess_status status,
                             const plane_part *part, int64_t count,
                             const int64_t *send_bytes, const int64_t *recv_bytes,
                             void **values)
{
    packing with = {0};
    void *came = NULL;
    if (status == TESS_OK)
        status =
            packing_create(planes, part, count,
                           total_of(planes, send_bytes) / planes->value_bytes, &with);
    if (status == TESS_OK)
        status = tess_device_alloc(total_of(planes, recv_bytes), "pieces of w-planes",
                                   &came);
    if (status == TESS_OK)
        status = plane_pack(&planes->device->shape, with.part, count, with.values);
    TESS_TRY(move_values(planes, status, with.values, send_bytes, came, recv_bytes));
    *values = came;
    came = NULL;
cleanup:
    packing_free(&with);
    tess_device_free(came);
    return status;
}

tess_status planes_cuda_send_back(const tess_planes *planes, const plane_part *part,
                                  int64_t count, const void *values,
                                  const int64_t *send_bytes, const int64_t *recv_bytes)
{
    packing with;
    tess_status status = packing_create(
        planes, part, count, total_of(planes, recv_bytes) / planes->value_bytes, &with);
    TESS_TRY(move_values(planes, status, values, send_bytes, with.values, recv_bytes));
    TESS_TRY(
        tess_comm_agree(planes->comm, tess_device_comm_arrive(planes->opts.links)));
    TESS_TRY(plane_unpack(&planes->device->shape, with.part, count, with.values));
cleanup:
    packing_free(&with);
    return status;
}
