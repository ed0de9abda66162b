/* The plane transforms of the cuda backend. Pieces, lines, rows and images lie in
 * device memory. planes_cuda_ranks.c moves data between ranks.
 *
 * A plane is transformed along v in batches of occupied lines. Those rows of them that
 * the image has are kept, transposed. They are transformed along u in batches,
 * multiplied by the w-screen and added to the image (planes_cuda_columns.c). No plane
 * is ever stored as a grid. */

#include "planes_cuda.h"

#include <math.h>

#include "tess_device.h"
#include "tess_device_comm.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_prefault.h"

/* Bytes of a batch of lines or columns. They are many times what fills the device, and
 * little compared with its memory. */
static const int64_t BATCH_BYTES = 256 << 20;
/* Bytes of a batch if all batches must have one size, however few lines there are. */
static const int64_t EVEN_BATCH_BYTES = 32 << 20;
/* Smaller images reach the host before a thread has begun to touch its memory. */
static const int64_t PREFAULT_BYTES = 32 << 20;

static void lines_free(line_list *lines)
{
    tess_free(lines->line);
    tess_free(lines->own);
    tess_free(lines->of_slab);
    *lines = (line_list){0};
}

/* ---- create, destroy ---- */

static int64_t image_bytes(const tess_planes *planes)
{
    return (planes->row_end - planes->row_first) * planes->opts.nx *
           planes->value_bytes / 2;
}

/* Zeroes the images and, for a model, makes room on the host. */
static tess_status cuda_clear(tess_planes *planes)
{
    tess_status status = TESS_OK;
    struct planes_of_device *cuda = planes->device;
    planes_columns_drop(planes);
    tess_prefault_destroy(cuda->host_rows);
    cuda->host_rows = NULL;
    for (int k = 0; k < planes->opts.num_images; ++k) {
        if (!cuda->image[k])
            TESS_TRY(tess_device_alloc(image_bytes(planes), "images", &cuda->image[k]));
        TESS_TRY(tess_device_zero(cuda->image[k], image_bytes(planes)));
        if (planes->opts.forward || planes->opts.place) continue;
        tess_free(cuda->host_image[k]);
        cuda->host_image[k] = tess_alloc_zero(image_bytes(planes), 1);
        if (!cuda->host_image[k]) TESS_FAIL(TESS_ERR_ALLOC, "model images");
        cuda->on_device[k] = false;
    }
cleanup:
    return status;
}

static tess_status make_images(tess_planes *planes)
{
    tess_status status = TESS_OK;
    struct planes_of_device *cuda = planes->device;
    const int count = planes->opts.num_images;
    cuda->image = tess_alloc_zero(count, sizeof *cuda->image);
    cuda->host_image = tess_alloc_zero(count, sizeof *cuda->host_image);
    cuda->on_device = tess_alloc_zero(count, sizeof *cuda->on_device);
    if (!cuda->image || !cuda->host_image || !cuda->on_device)
        TESS_FAIL(TESS_ERR_ALLOC, "images");
    TESS_TRY(cuda_clear(planes));
cleanup:
    return status;
}

/* Returns the number of lines of `length` in a batch: a multiple of 8 (see
 * plane_fft_execute), and no more than there are, unless lines must be rounded alike on
 * any number of ranks. */
static int64_t batch_of(const tess_planes *planes, int64_t length, int64_t most)
{
    const bool even = planes->opts.repeatable;
    int64_t count =
        (even ? EVEN_BATCH_BYTES : BATCH_BYTES) / (length * planes->value_bytes);
    if (count > most && !even) count = most;
    return (count + 7) / 8 * 8 > 8 ? (count + 7) / 8 * 8 : 8;
}

/* Makes rounds of lines short enough for one exchange. A rank sends the whole of its
 * own lines, or its rows of the lines of all slabs; the largest slab has up to one row
 * more than the mean. */
static void fit_rounds(tess_planes *planes)
{
    struct planes_of_device *cuda = planes->device;
    const int64_t slabs = planes->opts.fft_ranks;
    const int64_t rows = (planes->opts.ny + slabs - 1) / slabs * slabs;
    const int64_t most = tess_device_comm_room(planes->opts.links) /
                         (rows * planes->value_bytes) / 8 * 8;
    if (cuda->batch_lines > most) cuda->batch_lines = most;
}

static tess_status cuda_create(tess_planes *planes)
{
    tess_status status = TESS_OK;
    const tess_planes_opts *opts = &planes->opts;
    const int64_t rows = planes->row_end - planes->row_first;
    struct planes_of_device *cuda = planes->device = tess_alloc_zero(1, sizeof *cuda);
    if (!cuda) TESS_FAIL(TESS_ERR_ALLOC, "plane transform");
    cuda->shape = (plane_shape){.nx = opts->nx,
                                .ny = opts->ny,
                                .nu = opts->nu,
                                .nv = opts->nv,
                                .scale_rad = opts->scale_rad,
                                .scale_m_rad = opts->scale_m_rad > 0 ? opts->scale_m_rad
                                                                     : opts->scale_rad,
                                .l0 = opts->l0,
                                .m0 = opts->m0,
                                .nm1_center = opts->nm1_center,
                                .do_w = opts->do_w,
                                .is_double = opts->is_double};
    tess_device_threads(opts->threads);
    if (opts->links) TESS_TRY(planes_parts_create(planes));
    TESS_TRY(make_images(planes));
    cuda->batch_lines = batch_of(planes, opts->nv, opts->nu);
    cuda->batch_rows = batch_of(planes, opts->nu, rows);
    if (opts->links) fit_rounds(planes);
    const int64_t values_v = cuda->batch_lines * opts->nv;
    const int64_t values_u = cuda->batch_rows * opts->nu;
    const int64_t values = values_v > values_u ? values_v : values_u;
    const int64_t table_bytes = opts->nu * (int64_t)sizeof(int32_t);
    TESS_TRY(tess_device_alloc(values * planes->value_bytes, "w-planes", &cuda->batch));
    TESS_TRY(planes_rows_create(planes));
    TESS_TRY(
        tess_device_alloc(table_bytes, "w-planes", (void **)&cuda->own_slot_of_line));
    TESS_TRY(plane_fft_create(opts->nv, cuda->batch_lines, opts->is_double,
                              opts->repeatable, &cuda->fft_v));
    TESS_TRY(plane_fft_create(opts->nu, cuda->batch_rows, opts->is_double,
                              opts->repeatable, &cuda->fft_u));
cleanup:
    return status;
}

static void cuda_destroy(tess_planes *planes)
{
    struct planes_of_device *cuda = planes->device;
    if (!cuda) return;
    for (int k = 0; k < planes->opts.num_images; ++k) {
        if (cuda->image) tess_device_free(cuda->image[k]);
        if (cuda->host_image) tess_free(cuda->host_image[k]);
    }
    tess_prefault_destroy(cuda->host_rows);
    tess_free(cuda->send);
    tess_free(cuda->take);
    tess_free(cuda->image);
    tess_free(cuda->host_image);
    tess_free(cuda->on_device);
    plane_fft_destroy(cuda->fft_u);
    plane_fft_destroy(cuda->fft_v);
    tess_device_free(cuda->batch);
    tess_device_free(cuda->own_rows.data);
    tess_device_free(cuda->piece.data);
    tess_device_free(cuda->line_pieces.data);
    planes_rows_destroy(planes);
    tess_device_free(cuda->own_slot_of_line);
    tess_free(cuda);
}

static void *cuda_image(tess_planes *planes, int image)
{
    return planes->opts.forward ? planes->device->image[image]
                                : planes->device->host_image[image];
}

/* ---- lines of a plane ---- */

/* Lists the lines of the group if `status` is good on all its ranks. Collective within
 * the group. */
static tess_status find_lines(tess_planes *planes, tess_status status,
                              const piece_set *pieces, line_list *lines)
{
    const int slabs = planes->opts.fft_ranks;
    lines->of_slab = tess_alloc_zero(slabs, sizeof *lines->of_slab);
    if (status == TESS_OK)
        status = lines->of_slab
                     ? pieces_lines(planes, pieces, &lines->own, &lines->num_own)
                     : TESS_ERR_ALLOC;
    TESS_TRY(planes_gather_lines(planes, status, lines->own, lines->num_own,
                                 &lines->line, lines->of_slab));
    for (int f = 0; f < slabs; ++f)
        lines->num_lines += lines->of_slab[f];
cleanup:
    return status;
}

/* Finds the pieces that may cover any of this rank's lines [first, end). */
static void pieces_of_lines(const piece_set *pieces, const line_list *lines,
                            int64_t first, int64_t end, int64_t *begin, int64_t *stop)
{
    int64_t unused;
    pieces_near(pieces, lines->own[first], begin, &unused);
    pieces_near(pieces, lines->own[end - 1], &unused, stop);
}

static tess_status upload_pieces(tess_planes *planes, const piece_set *pieces)
{
    tess_status status = TESS_OK;
    const int64_t bytes = pieces->num_pieces * (int64_t)sizeof *pieces->piece;
    TESS_TRY(device_array_grow(&planes->device->piece, bytes, "pieces of w-planes"));
    TESS_TRY(tess_device_upload(planes->device->piece.data, pieces->piece, bytes));
cleanup:
    return status;
}

/* Sums the pieces of this rank's lines [first, first + count), in the order of the
 * pieces. */
static tess_status sum_in_order(tess_planes *planes, const piece_set *pieces,
                                const line_list *lines, int64_t first, int64_t count)
{
    tess_status status = TESS_OK;
    struct planes_of_device *cuda = planes->device;
    const int64_t bytes = count * (int64_t)sizeof(plane_line);
    plane_line *line = tess_alloc(count, sizeof *line);
    if (!line) TESS_FAIL(TESS_ERR_ALLOC, "lines of w-planes");
    for (int64_t k = 0; k < count; ++k) {
        line[k].line = lines->own[first + k];
        pieces_near(pieces, line[k].line, &line[k].begin, &line[k].stop);
    }
    TESS_TRY(device_array_grow(&cuda->line_pieces, bytes, "pieces of w-planes"));
    TESS_TRY(tess_device_upload(cuda->line_pieces.data, line, bytes));
    TESS_TRY(plane_sum_pieces(&cuda->shape, cuda->piece.data, cuda->line_pieces.data,
                              count, cuda->batch));
cleanup:
    tess_free(line);
    return status;
}

/* Sums the pieces of this rank's lines [first, first + count). */
static tess_status sum_pieces(tess_planes *planes, const piece_set *pieces,
                              const line_list *lines, int64_t first, int64_t count)
{
    tess_status status = TESS_OK;
    struct planes_of_device *cuda = planes->device;
    const tess_piece *piece = cuda->piece.data;
    int64_t begin, stop;
    if (planes->opts.repeatable)
        return sum_in_order(planes, pieces, lines, first, count);
    pieces_of_lines(pieces, lines, first, first + count, &begin, &stop);
    TESS_TRY(
        tess_device_zero(cuda->batch, count * planes->opts.nv * planes->value_bytes));
    TESS_TRY(plane_add_pieces(&cuda->shape, piece + begin, stop - begin,
                              cuda->own_slot_of_line, first, count, cuda->batch));
cleanup:
    return status;
}

/* Rows of which each transformed line is a column: rows[ny][stride], where the first
 * line of a batch has column `column`. */
typedef struct column_place {
    void *rows;
    int64_t stride, column;
} column_place;

/* Sums the pieces of this rank's lines [first, first + count), transforms the lines
 * along v, and makes them columns. */
static tess_status rows_of_pieces(tess_planes *planes, const piece_set *pieces,
                                  const line_list *lines, int64_t first, int64_t count,
                                  const column_place *to)
{
    tess_status status = TESS_OK;
    struct planes_of_device *cuda = planes->device;
    TESS_TRY(sum_pieces(planes, pieces, lines, first, count));
    TESS_TRY(plane_fft_execute(cuda->fft_v, cuda->batch, count, true));
    TESS_TRY(
        plane_crop(&cuda->shape, cuda->batch, count, to->rows, to->stride, to->column));
cleanup:
    return status;
}

/* Does the reverse of rows_of_pieces. */
static tess_status pieces_of_rows(tess_planes *planes, const piece_set *pieces,
                                  const line_list *lines, int64_t first, int64_t count,
                                  const column_place *from)
{
    tess_status status = TESS_OK;
    struct planes_of_device *cuda = planes->device;
    const plane_shape *shape = &cuda->shape;
    const tess_piece *piece = cuda->piece.data;
    int64_t begin, stop;
    pieces_of_lines(pieces, lines, first, first + count, &begin, &stop);
    TESS_TRY(
        plane_pad(shape, from->rows, from->stride, from->column, count, cuda->batch));
    TESS_TRY(plane_fft_execute(cuda->fft_v, cuda->batch, count, false));
    TESS_TRY(plane_take_pieces(shape, piece + begin, stop - begin,
                               cuda->own_slot_of_line, first, count, cuda->batch));
cleanup:
    return status;
}

/* The first pass of imaging: makes rows of all this rank's lines from pieces. The last
 * pass of prediction is the reverse. */
static tess_status transform_lines(tess_planes *planes, const piece_set *pieces,
                                   const line_list *lines)
{
    tess_status status = TESS_OK;
    struct planes_of_device *cuda = planes->device;
    const int64_t stride = lines->num_own;
    TESS_TRY(upload_pieces(planes, pieces));
    for (int64_t first = 0; first < lines->num_own; first += cuda->batch_lines) {
        int64_t count = lines->num_own - first;
        const column_place place = {cuda->own_rows.data, stride, first};
        if (count > cuda->batch_lines) count = cuda->batch_lines;
        if (planes->opts.forward)
            TESS_TRY(rows_of_pieces(planes, pieces, lines, first, count, &place));
        else
            TESS_TRY(pieces_of_rows(planes, pieces, lines, first, count, &place));
    }
cleanup:
    return status;
}

/* Imaging between linked devices: sends the lines of a round. Meanwhile the device
 * transforms the next round, or columns of earlier planes. Collective. */
static tess_status send_lines(tess_planes *planes, tess_status status,
                              const piece_set *pieces, const line_list *lines)
{
    const int64_t rounds = planes_rounds(planes, lines);
    if (status == TESS_OK) status = upload_pieces(planes, pieces);
    for (int64_t round = 0; round < rounds; ++round) {
        int64_t first, count;
        void *buffer = NULL;
        planes_round(planes, lines, round, &first, &count);
        if (status == TESS_OK) status = planes_line_buffer(planes, &buffer);
        if (status == TESS_OK && count > 0)
            status = rows_of_pieces(planes, pieces, lines, first, count,
                                    &(column_place){buffer, count, 0});
        TESS_TRY(planes_send_lines(planes, status, lines, round));
    }
cleanup:
    return status;
}

/* Prediction between linked devices: fetches the lines of the next round while the
 * device transforms those of this round. Collective. */
static tess_status fetch_lines(tess_planes *planes, const piece_set *pieces,
                               const line_list *lines)
{
    tess_status status = upload_pieces(planes, pieces);
    const int64_t rounds = planes_rounds(planes, lines);
    if (rounds == 0) return status;
    TESS_TRY(planes_fetch_lines(planes, status, lines, 0));
    for (int64_t round = 0; round < rounds; ++round) {
        int64_t first, count;
        planes_round(planes, lines, round, &first, &count);
        if (status == TESS_OK) status = tess_device_comm_arrive(planes->opts.links);
        if (round + 1 < rounds)
            TESS_TRY(planes_fetch_lines(planes, status, lines, round + 1));
        if (status == TESS_OK && count > 0)
            status = pieces_of_rows(
                planes, pieces, lines, first, count,
                &(column_place){planes_round_rows(planes, round), count, 0});
    }
cleanup:
    return status;
}

static tess_status upload_model(tess_planes *planes, int image)
{
    tess_status status = TESS_OK;
    struct planes_of_device *cuda = planes->device;
    if (cuda->on_device[image]) return TESS_OK;
    TESS_TRY(tess_device_upload(cuda->image[image], cuda->host_image[image],
                                image_bytes(planes)));
    cuda->on_device[image] = true;
    tess_free(cuda->host_image[image]);
    cuda->host_image[image] = NULL;
cleanup:
    return status;
}

/* Has a thread touch the host memory for the rows of all images (tess_prefault.h). */
static void prefault_rows(tess_planes *planes)
{
    struct planes_of_device *cuda = planes->device;
    if (cuda->host_rows || tess_comm_size(planes->sums) > 1) return;
    if (planes->opts.place) return;
    if (image_bytes(planes) < PREFAULT_BYTES) return;
    cuda->host_rows = tess_prefault_start(planes->opts.num_images, image_bytes(planes));
}

/* ---- a batch of planes, one per group ---- */

/* Ends a step whose results the host needs: waits for the device, and tells all ranks
 * of any error. The step has come to `status` on this rank. Notes what the time since
 * `*mark` was spent on. Collective. */
static tess_status end_step(const tess_planes *planes, tess_status status,
                            tess_planes_times *times,
                            void (*note)(tess_planes_times *times, double *mark),
                            double *mark)
{
    if (status == TESS_OK) status = tess_device_wait();
    status = planes_agree(planes, status);
    note(times, mark);
    return status;
}

/* Ends a plane, all of whose work has been enqueued: waits for the plane before, so
 * that the device works on this plane while the host prepares the next. Errors of the
 * device show one plane later, or when the image is fetched. Collective. */
static tess_status end_plane(const tess_planes *planes, tess_status status,
                             tess_planes_times *times, double *mark)
{
    if (status == TESS_OK) status = tess_device_turn();
    status = planes_agree(planes, status);
    planes_transformed(times, mark);
    return status;
}

/* Prepares a plane: lists its lines, makes room for their rows, copies a model to the
 * device, and enqueues second passes of earlier planes. Linked devices agree on the
 * status in the exchange that follows. Collective. */
static tess_status prepare_plane(tess_planes *planes, const tess_plane_job *mine,
                                 const piece_set *pieces, line_list *lines)
{
    tess_status status = planes->opts.forward ? planes_columns_next(planes) : TESS_OK;
    if (mine->active) status = find_lines(planes, status, pieces, lines);
    if (status == TESS_OK && mine->active) status = planes_rows_place(planes, lines);
    if (status == TESS_OK && mine->active && !planes->opts.forward)
        status = upload_model(planes, mine->image);
    return planes->opts.links ? status : planes_agree(planes, status);
}

/* Makes rows of all lines from the pieces, in a group that shares the plane through
 * host memory. */
static tess_status rows_through_host(tess_planes *planes, const piece_set *pieces,
                                     const line_list *lines, bool active,
                                     tess_planes_times *times, double *mark)
{
    tess_status status = TESS_OK;
    if (active) status = transform_lines(planes, pieces, lines);
    if (planes->opts.fft_ranks == 1) return status;
    TESS_TRY(end_step(planes, status, times, planes_transformed, mark));
    if (active) status = planes_transpose_to_rows(planes, lines);
    TESS_TRY(end_step(planes, status, times, planes_exchanged, mark));
cleanup:
    return status;
}

static tess_status cuda_accumulate(tess_planes *planes, const tess_plane_job *job,
                                   tess_status *own, tess_planes_times *times)
{
    tess_status status = TESS_OK;
    const tess_plane_job *mine = &job[planes->group_index];
    piece_set pieces = {0};
    line_list lines = {0};
    double mark = tess_time_now();
    prefault_rows(planes);
    TESS_TRY(pieces_exchange(planes, job, true, own, &pieces));
    TESS_TRY(planes_agree(planes, *own));
    status = prepare_plane(planes, mine, &pieces, &lines);
    planes_exchanged(times, &mark);
    if (planes->opts.links) {
        if (status == TESS_OK) status = tess_device_comm_arrive(planes->opts.links);
        status = send_lines(planes, status, &pieces, &lines);
        if (status == TESS_OK) planes_columns_later(planes, mine);
    } else {
        TESS_TRY(status);
        TESS_TRY(
            rows_through_host(planes, &pieces, &lines, mine->active, times, &mark));
        if (mine->active) status = planes_columns(planes, mine);
    }
    TESS_TRY(end_plane(planes, status, times, &mark));
cleanup:
    pieces_free(&pieces);
    lines_free(&lines);
    return status;
}

static tess_status cuda_place(tess_planes *planes, int image, void **rows)
{
    *rows = planes->device->image[image];
    return upload_model(planes, image);
}

static tess_status cuda_fetch(tess_planes *planes, int image, void *rows)
{
    tess_status status = TESS_OK;
    TESS_TRY(planes_columns_finish(planes));
    TESS_TRY(
        tess_device_download(rows, planes->device->image[image], image_bytes(planes)));
cleanup:
    return status;
}

/* Puts the rows of an image back onto the device. The host's copy, if there is one, is
 * freed. */
static tess_status cuda_put_back(tess_planes *planes, int image, const void *rows)
{
    struct planes_of_device *cuda = planes->device;
    cuda->on_device[image] = true;
    tess_free(cuda->host_image[image]);
    cuda->host_image[image] = NULL;
    return tess_device_upload(cuda->image[image], rows, image_bytes(planes));
}

/* Fills pieces from rows of all lines, in a group that shares the plane through host
 * memory. */
static tess_status lines_through_host(tess_planes *planes, const piece_set *pieces,
                                      const line_list *lines, bool active,
                                      tess_planes_times *times, double *mark)
{
    tess_status status = TESS_OK;
    if (planes->opts.fft_ranks > 1) {
        TESS_TRY(end_step(planes, status, times, planes_transformed, mark));
        if (active) status = planes_transpose_to_lines(planes, lines);
        TESS_TRY(end_step(planes, status, times, planes_exchanged, mark));
    }
    return active ? transform_lines(planes, pieces, lines) : TESS_OK;
cleanup:
    return status;
}

static tess_status cuda_extract(tess_planes *planes, const tess_plane_job *job,
                                tess_status *own, tess_planes_times *times)
{
    tess_status status = TESS_OK;
    const tess_plane_job *mine = &job[planes->group_index];
    piece_set pieces = {0};
    line_list lines = {0};
    double mark = tess_time_now();
    TESS_TRY(pieces_exchange(planes, job, false, own, &pieces));
    TESS_TRY(planes_agree(planes, *own));
    status = prepare_plane(planes, mine, &pieces, &lines);
    planes_exchanged(times, &mark);
    if (status == TESS_OK && mine->active) status = planes_columns(planes, mine);
    TESS_TRY(planes_agree(planes, status));
    if (planes->opts.links)
        status = fetch_lines(planes, &pieces, &lines);
    else
        status =
            lines_through_host(planes, &pieces, &lines, mine->active, times, &mark);
    *own = status;
    TESS_TRY(pieces_return(planes, job, own, &pieces));
    TESS_TRY(end_plane(planes, *own, times, &mark));
cleanup:
    pieces_free(&pieces);
    lines_free(&lines);
    return status;
}

/* Sums an image on the devices. `*slab` gets this rank's rows, in device memory.
 * Collective over planes->sums. */
static tess_status sum_on_devices(tess_planes *planes, const void *image, void **slab)
{
    tess_status status = TESS_OK;
    const int ranks = tess_comm_size(planes->sums);
    const int64_t row_bytes = planes->opts.nx * planes->value_bytes / 2;
    int64_t first, count;
    void *made = NULL;
    int64_t *counts = tess_alloc(ranks, sizeof *counts);
    planes_sum_share(planes, tess_comm_rank(planes->sums), &first, &count);
    status = tess_device_alloc(count * row_bytes, "images", &made);
    if (status == TESS_OK && !counts) status = TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(planes->sums, status));
    for (int k = 0; k < ranks; ++k) {
        int64_t begin;
        planes_sum_share(planes, k, &begin, &counts[k]);
        counts[k] *= planes->opts.nx;
    }
    TESS_TRY(tess_device_comm_reduce_scatter(planes->opts.devices, image, made, counts,
                                             planes->opts.is_double));
    *slab = made;
    made = NULL;
cleanup:
    tess_free(counts);
    tess_device_free(made);
    return status;
}

/* The same, with a copy of the rows on the host. */
static tess_status sum_to_host(tess_planes *planes, const void *image,
                               int64_t *row_first, int64_t *num_rows, void **rows)
{
    tess_status status = TESS_OK;
    const int64_t row_bytes = planes->opts.nx * planes->value_bytes / 2;
    int64_t first, count;
    void *slab = NULL, *host = NULL;
    planes_sum_share(planes, tess_comm_rank(planes->sums), &first, &count);
    host = tess_alloc(count * row_bytes, 1);
    TESS_TRY(tess_comm_agree(planes->sums, host ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(sum_on_devices(planes, image, &slab));
    status = tess_device_download(host, slab, count * row_bytes);
    TESS_TRY(
        tess_comm_agree(planes->sums, status)); /* the sum may fail on one rank alone */
    *row_first = first;
    *num_rows = count;
    *rows = host;
    host = NULL;
cleanup:
    tess_free(host);
    tess_device_free(slab);
    return status;
}

static tess_status sum_on_hosts(tess_planes *planes, int which, int64_t *row_first,
                                int64_t *num_rows, void **rows)
{
    tess_status status = TESS_OK;
    const void *image = planes->device->image[which];
    void *host = tess_prefault_take(planes->device->host_rows, which);
    if (!host) host = tess_alloc(image_bytes(planes), 1);
    if (!host)
        status =
            tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__, "an image");
    else
        status = tess_device_download(host, image, image_bytes(planes));
    TESS_TRY(tess_comm_agree(planes->sums, planes_agree(planes, status)));
    TESS_TRY(planes_reduce_rows(planes, host, row_first, num_rows, rows));
    if (tess_comm_size(planes->sums) == 1) host = NULL;
cleanup:
    tess_free(host);
    return status;
}

static tess_status cuda_reduce(tess_planes *planes, int image, int64_t *row_first,
                               int64_t *num_rows, void **rows)
{
    tess_status status = TESS_OK;
    struct planes_of_device *cuda = planes->device;
    TESS_TRY(tess_comm_agree(planes->sums, planes_columns_finish(planes)));
    if (planes->opts.devices)
        TESS_TRY(sum_to_host(planes, cuda->image[image], row_first, num_rows, rows));
    else
        TESS_TRY(sum_on_hosts(planes, image, row_first, num_rows, rows));
    if (!planes->opts.reuse) {
        tess_device_free(cuda->image[image]);
        cuda->image[image] = NULL;
    }
cleanup:
    return status;
}

static bool cuda_keeps(const tess_planes *planes)
{
    return planes->opts.devices || tess_comm_size(planes->sums) == 1;
}

/* A copy of an image. Local. */
static tess_status copy_image(const tess_planes *planes, int image, void **copy)
{
    tess_status status = TESS_OK;
    const int64_t row_bytes = planes->opts.nx * planes->value_bytes / 2;
    void *made = NULL;
    TESS_TRY(tess_device_alloc(image_bytes(planes), "rows of an image", &made));
    TESS_TRY(tess_device_copy_rows(made, row_bytes, planes->device->image[image],
                                   row_bytes, row_bytes,
                                   planes->row_end - planes->row_first));
    *copy = made;
    made = NULL;
cleanup:
    tess_device_free(made);
    return status;
}

static tess_status cuda_reduce_there(tess_planes *planes, int image, tess_rows *rows)
{
    tess_status status = TESS_OK;
    struct planes_of_device *cuda = planes->device;
    status = planes_columns_finish(planes);
    if (planes->opts.devices) {
        TESS_TRY(tess_comm_agree(planes->sums, status));
        TESS_TRY(sum_on_devices(planes, cuda->image[image], &rows->value));
    } else if (planes->opts.reuse) {
        if (status == TESS_OK) status = copy_image(planes, image, &rows->value);
        TESS_TRY(planes_agree(planes, status));
    } else {
        TESS_TRY(planes_agree(planes, status));
        rows->value = cuda->image[image];
        cuda->image[image] = NULL;
    }
    if (planes->opts.reuse) return TESS_OK;
    tess_device_free(cuda->image[image]);
    cuda->image[image] = NULL;
cleanup:
    return status;
}

static tess_status cuda_put_rows(tess_planes *planes, int image, const tess_rows *rows,
                                 double scale)
{
    struct planes_of_device *cuda = planes->device;
    const tess_mixture scaled = {.weight = scale, .is_finite = true};
    const tess_pixels from = tess_rows_pixels(rows);
    tess_pixels to = from;
    to.value = cuda->image[image];
    to.type = tess_pixel_of(planes->opts.is_double);
    cuda->on_device[image] = true;
    return rows->place->mix(&scaled, &from, &to);
}

/* Images, lines of a plane, and a batch of lines beside what transforms along each axis
 * take, which is about as much as that. */
static double cuda_bytes(const tess_planes_opts *opts)
{
    enum { BATCHES = 3 };
    const double value = opts->is_double ? 16 : 8;
    const double plane = (double)opts->nu * (double)opts->nv * value;
    const double most = (double)(opts->repeatable ? EVEN_BATCH_BYTES : BATCH_BYTES);
    return tess_planes_bytes(opts) +
           BATCHES * (opts->repeatable ? most : fmin(plane, most));
}

const tess_planes_ops tess_planes_ops_cuda = {.create = cuda_create,
                                              .destroy = cuda_destroy,
                                              .image = cuda_image,
                                              .place = cuda_place,
                                              .clear = cuda_clear,
                                              .fetch = cuda_fetch,
                                              .put_back = cuda_put_back,
                                              .accumulate = cuda_accumulate,
                                              .finish = planes_columns_finish,
                                              .extract = cuda_extract,
                                              .reduce = cuda_reduce,
                                              .keeps = cuda_keeps,
                                              .reduce_there = cuda_reduce_there,
                                              .put_rows = cuda_put_rows,
                                              .more_bytes = planes_cuda_more_bytes,
                                              .bytes = cuda_bytes,
                                              .pack = planes_cuda_pack,
                                              .unpack = planes_cuda_unpack,
                                              .values_in = planes_cuda_values_in,
                                              .values_out = planes_cuda_values_out,
                                              .values_free = tess_device_free,
                                              .send = planes_cuda_send,
                                              .send_back = planes_cuda_send_back};
