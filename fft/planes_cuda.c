/* The cuda backend's plane transforms: lines, rows and images live in device memory,
 * and pieces are device memory as well. Several ranks exchange through host memory.
 *
 * A plane is transformed along v in batches of occupied lines, of which the image's
 * rows are kept, transposed; then along u in batches of those rows, multiplied by the
 * w-screen and added to the image. No plane is ever stored as a grid. */
#include <string.h>

#include "planes_device.h"
#include "planes_object.h"
#include "tess_device.h"
#include "tess_device_comm.h"
#include "tess_log.h"
#include "tess_mem.h"

/* Bytes of a batch of lines or columns: many times what fills the device, little
 * against its memory. */
static const int64_t BATCH_BYTES = 256 << 20;
/* The same when batches must always be of one size, however few there are. */
static const int64_t EVEN_BATCH_BYTES = 32 << 20;

/* Device memory that grows as needed. */
typedef struct device_array {
    void *data;
    int64_t bytes;
} device_array;

struct planes_cuda {
    plane_shape shape;
    void **image;      /* [num_images] sums, or model */
    void **host_image; /* [num_images] prediction: where the caller puts the model */
    bool *on_device;   /* [num_images] is the host's model there? */
    plane_fft *fft_u, *fft_v;
    int64_t batch_lines, batch_rows;
    void *batch;           /* [batch_lines][nv], or [batch_rows][nu] */
    device_array own_rows; /* [ny][own slots] */
    device_array all_rows; /* F > 1: [own rows][slots of the group] */
    device_array piece, line_pieces;
    int32_t *slot_of_line, *line_of_slot; /* [nu] of the group's slots */
    int32_t *own_slot_of_line;            /* [nu] of this rank's */
};

/* Lines of the plane that is transformed, and which of them are this rank's. */
typedef struct line_list {
    int32_t *line; /* [num_lines] of the group, in order of slab */
    int64_t num_lines;
    int32_t *own; /* [num_own]; F = 1: equals `line` */
    int64_t num_own;
    int64_t *of_slab; /* [F] number of lines */
} line_list;

static void lines_free(line_list *lines)
{
    tess_free(lines->line);
    tess_free(lines->own);
    tess_free(lines->of_slab);
    *lines = (line_list){0};
}

/* At least this many bytes, contents undefined. */
static tess_status grow(device_array *array, int64_t bytes, const char *what)
{
    tess_status status = TESS_OK;
    if (bytes <= array->bytes) return TESS_OK;
    tess_device_free(array->data);
    *array = (device_array){0};
    TESS_TRY(tess_device_alloc(bytes, what, &array->data));
    array->bytes = bytes;
cleanup:
    return status;
}

/* ---- create, destroy ---- */

static int64_t image_bytes(const tess_planes *planes)
{
    return (planes->row_end - planes->row_first) * planes->opts.nx *
           planes->value_bytes / 2;
}

/* Images of zero, and for a model room on the host. */
static tess_status cuda_clear(tess_planes *planes)
{
    tess_status status = TESS_OK;
    struct planes_cuda *cuda = planes->cuda;
    for (int k = 0; k < planes->opts.num_images; ++k) {
        if (!cuda->image[k])
            TESS_TRY(tess_device_alloc(image_bytes(planes), "images", &cuda->image[k]));
        TESS_TRY(tess_device_zero(cuda->image[k], image_bytes(planes)));
        if (planes->opts.forward) continue;
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
    struct planes_cuda *cuda = planes->cuda;
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

/* Lines of `length` in a batch: a multiple of 8 (see plane_fft_execute), no more than
 * there are, unless they are to be rounded alike on any number of ranks. */
static int64_t batch_of(const tess_planes *planes, int64_t length, int64_t most)
{
    const bool even = planes->opts.repeatable;
    int64_t count =
        (even ? EVEN_BATCH_BYTES : BATCH_BYTES) / (length * planes->value_bytes);
    if (count > most && !even) count = most;
    return (count + 7) / 8 * 8 > 8 ? (count + 7) / 8 * 8 : 8;
}

static tess_status cuda_create(tess_planes *planes)
{
    tess_status status = TESS_OK;
    const tess_planes_opts *opts = &planes->opts;
    const int64_t rows = planes->row_end - planes->row_first;
    struct planes_cuda *cuda = planes->cuda = tess_alloc_zero(1, sizeof *cuda);
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
    TESS_TRY(make_images(planes));
    cuda->batch_lines = batch_of(planes, opts->nv, opts->nu);
    cuda->batch_rows = batch_of(planes, opts->nu, rows);
    const int64_t values_v = cuda->batch_lines * opts->nv;
    const int64_t values_u = cuda->batch_rows * opts->nu;
    const int64_t values = values_v > values_u ? values_v : values_u;
    const int64_t table_bytes = opts->nu * (int64_t)sizeof(int32_t);
    TESS_TRY(tess_device_alloc(values * planes->value_bytes, "w-planes", &cuda->batch));
    TESS_TRY(tess_device_alloc(table_bytes, "w-planes", (void **)&cuda->slot_of_line));
    TESS_TRY(tess_device_alloc(table_bytes, "w-planes", (void **)&cuda->line_of_slot));
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
    struct planes_cuda *cuda = planes->cuda;
    if (!cuda) return;
    for (int k = 0; k < planes->opts.num_images; ++k) {
        if (cuda->image) tess_device_free(cuda->image[k]);
        if (cuda->host_image) tess_free(cuda->host_image[k]);
    }
    tess_free(cuda->image);
    tess_free(cuda->host_image);
    tess_free(cuda->on_device);
    plane_fft_destroy(cuda->fft_u);
    plane_fft_destroy(cuda->fft_v);
    tess_device_free(cuda->batch);
    tess_device_free(cuda->own_rows.data);
    tess_device_free(cuda->all_rows.data);
    tess_device_free(cuda->piece.data);
    tess_device_free(cuda->line_pieces.data);
    tess_device_free(cuda->slot_of_line);
    tess_device_free(cuda->line_of_slot);
    tess_device_free(cuda->own_slot_of_line);
    tess_free(cuda);
}

static void *cuda_image(tess_planes *planes, int image)
{
    return planes->opts.forward ? planes->cuda->image[image]
                                : planes->cuda->host_image[image];
}

/* ---- lines of a plane ---- */

/* Put on the device which slot each line has. */
static tess_status upload_slots(const tess_planes *planes, const int32_t *line,
                                int64_t num_lines, int32_t *slot_of_line)
{
    tess_status status = TESS_OK;
    int32_t *slot = tess_alloc(planes->opts.nu, sizeof *slot);
    if (!slot) TESS_FAIL(TESS_ERR_ALLOC, "lines of w-planes");
    for (int64_t k = 0; k < planes->opts.nu; ++k)
        slot[k] = -1;
    for (int64_t k = 0; k < num_lines; ++k)
        slot[line[k]] = (int32_t)k;
    TESS_TRY(tess_device_upload(slot_of_line, slot,
                                planes->opts.nu * (int64_t)sizeof *slot));
cleanup:
    tess_free(slot);
    return status;
}

/* The lines of the group, and all tables of them. Collective within the group. */
static tess_status find_lines(tess_planes *planes, const piece_set *pieces,
                              line_list *lines)
{
    tess_status status = TESS_OK;
    const int slabs = planes->opts.fft_ranks;
    struct planes_cuda *cuda = planes->cuda;
    void *gathered = NULL;
    lines->of_slab = tess_alloc_zero(slabs, sizeof *lines->of_slab);
    status = lines->of_slab ? pieces_lines(planes, pieces, &lines->own, &lines->num_own)
                            : TESS_ERR_ALLOC;
    if (slabs > 1) TESS_TRY(tess_comm_agree(planes->group, status));
    TESS_TRY(status);
    TESS_TRY(tess_comm_allgatherv(planes->group, lines->own,
                                  lines->num_own * (int64_t)sizeof *lines->own,
                                  &gathered, lines->of_slab));
    lines->line = gathered;
    for (int f = 0; f < slabs; ++f) {
        lines->of_slab[f] /= (int64_t)sizeof *lines->line;
        lines->num_lines += lines->of_slab[f];
    }
    TESS_TRY(upload_slots(planes, lines->line, lines->num_lines, cuda->slot_of_line));
    TESS_TRY(upload_slots(planes, lines->own, lines->num_own, cuda->own_slot_of_line));
    TESS_TRY(tess_device_upload(cuda->line_of_slot, lines->line,
                                lines->num_lines * (int64_t)sizeof *lines->line));
cleanup:
    return status;
}

/* Pieces that may cover any of the own lines [first, end). */
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
    TESS_TRY(grow(&planes->cuda->piece, bytes, "pieces of w-planes"));
    TESS_TRY(tess_device_upload(planes->cuda->piece.data, pieces->piece, bytes));
cleanup:
    return status;
}

/* Own lines [first, first + count) := their pieces in order. */
static tess_status sum_in_order(tess_planes *planes, const piece_set *pieces,
                                const line_list *lines, int64_t first, int64_t count)
{
    tess_status status = TESS_OK;
    struct planes_cuda *cuda = planes->cuda;
    const int64_t bytes = count * (int64_t)sizeof(plane_line);
    plane_line *line = tess_alloc(count, sizeof *line);
    if (!line) TESS_FAIL(TESS_ERR_ALLOC, "lines of w-planes");
    for (int64_t k = 0; k < count; ++k) {
        line[k].line = lines->own[first + k];
        pieces_near(pieces, line[k].line, &line[k].begin, &line[k].stop);
    }
    TESS_TRY(grow(&cuda->line_pieces, bytes, "pieces of w-planes"));
    TESS_TRY(tess_device_upload(cuda->line_pieces.data, line, bytes));
    TESS_TRY(plane_sum_pieces(&cuda->shape, cuda->piece.data, cuda->line_pieces.data,
                              count, cuda->batch));
cleanup:
    tess_free(line);
    return status;
}

/* Own lines [first, first + count) := their pieces. */
static tess_status sum_pieces(tess_planes *planes, const piece_set *pieces,
                              const line_list *lines, int64_t first, int64_t count)
{
    tess_status status = TESS_OK;
    struct planes_cuda *cuda = planes->cuda;
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

/* Imaging, first pass: pieces → lines → transform along v → image rows. Prediction,
 * last pass: the reverse. */
static tess_status transform_lines(tess_planes *planes, const piece_set *pieces,
                                   const line_list *lines)
{
    tess_status status = TESS_OK;
    struct planes_cuda *cuda = planes->cuda;
    const plane_shape *shape = &cuda->shape;
    const int64_t stride = lines->num_own;
    TESS_TRY(upload_pieces(planes, pieces));
    const tess_piece *piece = cuda->piece.data;
    for (int64_t first = 0; first < lines->num_own; first += cuda->batch_lines) {
        int64_t begin, stop, count = lines->num_own - first;
        if (count > cuda->batch_lines) count = cuda->batch_lines;
        if (planes->opts.forward) {
            TESS_TRY(sum_pieces(planes, pieces, lines, first, count));
            TESS_TRY(plane_fft_execute(cuda->fft_v, cuda->batch, count, true));
            TESS_TRY(plane_crop(shape, cuda->batch, count, cuda->own_rows.data, stride,
                                first));
        } else {
            pieces_of_lines(pieces, lines, first, first + count, &begin, &stop);
            TESS_TRY(plane_pad(shape, cuda->own_rows.data, stride, first, count,
                               cuda->batch));
            TESS_TRY(plane_fft_execute(cuda->fft_v, cuda->batch, count, false));
            TESS_TRY(plane_take_pieces(shape, piece + begin, stop - begin,
                                       cuda->own_slot_of_line, first, count,
                                       cuda->batch));
        }
    }
cleanup:
    return status;
}

/* Imaging, second pass: rows of all lines → transform along u → w-screen → image; in
 * prediction the reverse. */
static tess_status transform_columns(tess_planes *planes, const tess_plane_job *job,
                                     const line_list *lines)
{
    tess_status status = TESS_OK;
    struct planes_cuda *cuda = planes->cuda;
    const plane_shape *shape = &cuda->shape;
    const int64_t rows = planes->row_end - planes->row_first, stride = lines->num_lines;
    void *values =
        planes->opts.fft_ranks > 1 ? cuda->all_rows.data : cuda->own_rows.data;
    for (int64_t first = 0; first < rows; first += cuda->batch_rows) {
        const int64_t count =
            rows - first < cuda->batch_rows ? rows - first : cuda->batch_rows;
        char *image = (char *)cuda->image[job->image] +
                      first * planes->opts.nx * planes->value_bytes / 2;
        if (planes->opts.forward) {
            TESS_TRY(plane_spread(shape, values, stride, first, count,
                                  cuda->slot_of_line, cuda->batch));
            TESS_TRY(plane_fft_execute(cuda->fft_u, cuda->batch, count, true));
            TESS_TRY(plane_accumulate(shape, job->w_lambda, cuda->batch,
                                      planes->row_first + first, count, image));
        } else {
            TESS_TRY(plane_unscreen(shape, job->w_lambda, image,
                                    planes->row_first + first, count, cuda->batch));
            TESS_TRY(plane_fft_execute(cuda->fft_u, cuda->batch, count, false));
            TESS_TRY(plane_gather(shape, cuda->batch, first, count, cuda->line_of_slot,
                                  lines->num_lines, values, stride));
        }
    }
cleanup:
    return status;
}

/* ---- transpose inside a group, through host memory ---- */

/* Rows of slab f. */
static int64_t rows_of_slab(const tess_planes *planes, int slab)
{
    const int64_t ny = planes->opts.ny, slabs = planes->opts.fft_ranks;
    return planes_share(ny, slab + 1, slabs) - planes_share(ny, slab, slabs);
}

/* Bytes that this rank's lines × the rows of each slab take, and the group's lines of
 * each slab × this rank's rows. */
static void transpose_bytes(const tess_planes *planes, const line_list *lines,
                            int64_t *by_lines, int64_t *by_rows)
{
    const int64_t rows = planes->row_end - planes->row_first;
    for (int f = 0; f < planes->opts.fft_ranks; ++f) {
        by_lines[f] = lines->num_own * rows_of_slab(planes, f) * planes->value_bytes;
        by_rows[f] = lines->of_slab[f] * rows * planes->value_bytes;
    }
}

/* Blocks [own rows][lines of slab f], one after the other in host memory, and their
 * place in all_rows. */
static tess_status move_blocks(tess_planes *planes, const line_list *lines, char *host,
                               bool to_device)
{
    tess_status status = TESS_OK;
    const int64_t rows = planes->row_end - planes->row_first,
                  bytes = planes->value_bytes;
    char *at = planes->cuda->all_rows.data;
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

/* Imaging: own lines × all rows become all lines × own rows. Collective in the
 * group. */
static tess_status transpose_to_rows(tess_planes *planes, const line_list *lines)
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
                 ? tess_device_download(send, planes->cuda->own_rows.data, own_bytes)
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

/* Prediction: all lines × own rows become own lines × all rows. */
static tess_status transpose_to_lines(tess_planes *planes, const line_list *lines)
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
    TESS_TRY(tess_device_upload(planes->cuda->own_rows.data, received, own_bytes));
cleanup:
    tess_free(bytes);
    tess_free(send);
    tess_free(received);
    return status;
}

static tess_status make_rows(tess_planes *planes, const line_list *lines)
{
    tess_status status = TESS_OK;
    const int64_t rows = planes->row_end - planes->row_first,
                  bytes = planes->value_bytes;
    TESS_TRY(grow(&planes->cuda->own_rows, lines->num_own * planes->opts.ny * bytes,
                  "lines of a w-plane"));
    if (planes->opts.fft_ranks > 1)
        TESS_TRY(grow(&planes->cuda->all_rows, lines->num_lines * rows * bytes,
                      "rows of a w-plane"));
cleanup:
    return status;
}

/* As if bricks covered all lines. */
static int64_t cuda_more_bytes(const tess_planes *planes)
{
    const struct planes_cuda *cuda = planes->cuda;
    const int64_t lines =
        (planes->opts.nu + planes->opts.fft_ranks - 1) / planes->opts.fft_ranks;
    const int64_t rows = planes->row_end - planes->row_first;
    int64_t bytes =
        lines * planes->opts.ny * planes->value_bytes - cuda->own_rows.bytes;
    if (planes->opts.fft_ranks > 1)
        bytes += planes->opts.nu * rows * planes->value_bytes - cuda->all_rows.bytes;
    return bytes > 0 ? bytes : 0;
}

/* ---- a batch of planes, one per group ---- */

/* End of a step that has come to `status` here: waits for the device, whose errors may
 * show only then, and has all ranks hear of any. Notes what the time since `*mark` was
 * spent on. Collective. */
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

static tess_status cuda_accumulate(tess_planes *planes, const tess_plane_job *job,
                                   tess_planes_times *times)
{
    tess_status status = TESS_OK;
    const tess_plane_job *mine = &job[planes->group_index];
    piece_set pieces = {0};
    line_list lines = {0};
    double mark = tess_time_now();
    TESS_TRY(pieces_exchange(planes, job, true, &pieces));
    if (mine->active) status = find_lines(planes, &pieces, &lines);
    if (status == TESS_OK && mine->active) status = make_rows(planes, &lines);
    TESS_TRY(end_step(planes, status, times, planes_exchanged, &mark));
    if (mine->active) status = transform_lines(planes, &pieces, &lines);
    TESS_TRY(end_step(planes, status, times, planes_transformed, &mark));
    if (mine->active) status = transpose_to_rows(planes, &lines);
    TESS_TRY(end_step(planes, status, times, planes_exchanged, &mark));
    if (mine->active) status = transform_columns(planes, mine, &lines);
    TESS_TRY(end_step(planes, status, times, planes_transformed, &mark));
cleanup:
    pieces_free(&pieces);
    lines_free(&lines);
    return status;
}

static tess_status upload_model(tess_planes *planes, int image)
{
    tess_status status = TESS_OK;
    struct planes_cuda *cuda = planes->cuda;
    if (cuda->on_device[image]) return TESS_OK;
    TESS_TRY(tess_device_upload(cuda->image[image], cuda->host_image[image],
                                image_bytes(planes)));
    cuda->on_device[image] = true;
    tess_free(cuda->host_image[image]);
    cuda->host_image[image] = NULL;
cleanup:
    return status;
}

static tess_status cuda_place(tess_planes *planes, int image, void **rows)
{
    *rows = planes->cuda->image[image];
    return upload_model(planes, image);
}

static tess_status cuda_fetch(tess_planes *planes, int image, void *rows)
{
    return tess_device_download(rows, planes->cuda->image[image], image_bytes(planes));
}

/* Of a model nothing waits on the host any more. */
static tess_status cuda_put_back(tess_planes *planes, int image, const void *rows)
{
    struct planes_cuda *cuda = planes->cuda;
    cuda->on_device[image] = true;
    tess_free(cuda->host_image[image]);
    cuda->host_image[image] = NULL;
    return tess_device_upload(cuda->image[image], rows, image_bytes(planes));
}

static tess_status cuda_extract(tess_planes *planes, const tess_plane_job *job,
                                tess_planes_times *times)
{
    tess_status status = TESS_OK;
    const tess_plane_job *mine = &job[planes->group_index];
    piece_set pieces = {0};
    line_list lines = {0};
    double mark = tess_time_now();
    TESS_TRY(pieces_exchange(planes, job, false, &pieces));
    if (mine->active) status = find_lines(planes, &pieces, &lines);
    if (status == TESS_OK && mine->active) status = make_rows(planes, &lines);
    if (status == TESS_OK && mine->active) status = upload_model(planes, mine->image);
    TESS_TRY(end_step(planes, status, times, planes_exchanged, &mark));
    if (mine->active) status = transform_columns(planes, mine, &lines);
    TESS_TRY(end_step(planes, status, times, planes_transformed, &mark));
    if (mine->active) status = transpose_to_lines(planes, &lines);
    TESS_TRY(end_step(planes, status, times, planes_exchanged, &mark));
    if (mine->active) status = transform_lines(planes, &pieces, &lines);
    TESS_TRY(end_step(planes, status, times, planes_transformed, &mark));
    status = pieces_return(planes, job, &pieces);
    TESS_TRY(end_step(planes, status, times, planes_exchanged, &mark));
cleanup:
    pieces_free(&pieces);
    lines_free(&lines);
    return status;
}

/* Sum an image on the devices, and bring this rank's rows here. Collective over
 * planes->sums. */
static tess_status sum_on_devices(tess_planes *planes, const void *image,
                                  int64_t *row_first, int64_t *num_rows, void **rows)
{
    tess_status status = TESS_OK;
    const int ranks = tess_comm_size(planes->sums);
    const int64_t row_bytes = planes->opts.nx * planes->value_bytes / 2;
    int64_t first, count;
    void *slab = NULL, *host = NULL;
    int64_t *counts = tess_alloc(ranks, sizeof *counts);
    planes_sum_share(planes, tess_comm_rank(planes->sums), &first, &count);
    host = tess_alloc(count * row_bytes, 1);
    status = tess_device_alloc(count * row_bytes, "images", &slab);
    if (status == TESS_OK && (!counts || !host)) status = TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(planes->sums, status));
    for (int k = 0; k < ranks; ++k) {
        int64_t begin;
        planes_sum_share(planes, k, &begin, &counts[k]);
        counts[k] *= planes->opts.nx;
    }
    TESS_TRY(tess_device_comm_reduce_scatter(planes->opts.devices, image, slab, counts,
                                             planes->opts.is_double));
    status = tess_device_download(host, slab, count * row_bytes);
    TESS_TRY(tess_comm_agree(planes->sums, status)); /* the sum itself may fail there */
    *row_first = first;
    *num_rows = count;
    *rows = host;
    host = NULL;
cleanup:
    tess_free(counts);
    tess_free(host);
    tess_device_free(slab);
    return status;
}

static tess_status sum_on_hosts(tess_planes *planes, const void *image,
                                int64_t *row_first, int64_t *num_rows, void **rows)
{
    tess_status status = TESS_OK;
    void *host = tess_alloc(image_bytes(planes), 1);
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
    struct planes_cuda *cuda = planes->cuda;
    if (planes->opts.devices)
        TESS_TRY(sum_on_devices(planes, cuda->image[image], row_first, num_rows, rows));
    else
        TESS_TRY(sum_on_hosts(planes, cuda->image[image], row_first, num_rows, rows));
    if (!planes->opts.reuse) {
        tess_device_free(cuda->image[image]);
        cuda->image[image] = NULL;
    }
cleanup:
    return status;
}

/* ---- exchange of pieces ---- */

/* The parts, their values in a dense buffer on the device, and room for both. */
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

static tess_status cuda_pack(const tess_planes *planes, const plane_part *part,
                             int64_t count, int64_t num_values, void *host)
{
    tess_status status = TESS_OK;
    packing with;
    TESS_TRY(packing_create(planes, part, count, num_values, &with));
    TESS_TRY(plane_pack(&planes->cuda->shape, with.part, count, with.values));
    TESS_TRY(tess_device_download(host, with.values, num_values * planes->value_bytes));
cleanup:
    packing_free(&with);
    return status;
}

/* What came from the ranks, to the device. */
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

static tess_status cuda_unpack(const tess_planes *planes, const plane_part *part,
                               int64_t count, const rank_values *from)
{
    tess_status status = TESS_OK;
    packing with;
    const int64_t num_values = from->first[tess_comm_size(planes->comm)];
    TESS_TRY(packing_create(planes, part, count, num_values, &with));
    TESS_TRY(upload(planes, from, with.values));
    TESS_TRY(plane_unpack(&planes->cuda->shape, with.part, count, with.values));
cleanup:
    packing_free(&with);
    return status;
}

static tess_status cuda_values_in(const tess_planes *planes, const rank_values *from,
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

static tess_status cuda_values_out(const tess_planes *planes, void *values,
                                   int64_t num_values, void *host)
{
    const tess_status status =
        tess_device_download(host, values, num_values * planes->value_bytes);
    tess_device_free(values);
    return status;
}

const tess_planes_ops tess_planes_ops_cuda = {.create = cuda_create,
                                              .destroy = cuda_destroy,
                                              .image = cuda_image,
                                              .place = cuda_place,
                                              .clear = cuda_clear,
                                              .fetch = cuda_fetch,
                                              .put_back = cuda_put_back,
                                              .accumulate = cuda_accumulate,
                                              .extract = cuda_extract,
                                              .reduce = cuda_reduce,
                                              .more_bytes = cuda_more_bytes,
                                              .pack = cuda_pack,
                                              .unpack = cuda_unpack,
                                              .values_in = cuda_values_in,
                                              .values_out = cuda_values_out,
                                              .values_free = tess_device_free};
