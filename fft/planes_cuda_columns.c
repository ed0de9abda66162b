/* The second pass of the cuda backend's transforms: adds the rows of all lines of a
 * plane to the image. In prediction, the first pass: makes these rows from the image.
 *
 * Between linked devices, pieces of a plane go to the devices that have their lines,
 * and lines go to the devices that have their rows. Devices work while data are in
 * flight: when the pieces of a plane have been sent, the second pass of the plane
 * before the last one is enqueued, and then the first pass of this plane. Rows of two
 * planes exist then, if there is room for them. */

#include "planes_cuda.h"
#include "tess_device.h"
#include "tess_device_comm.h"
#include "tess_mem.h"

/* This many sets of rows are used in turn. */
static int sets_of(const tess_planes *planes)
{
    return planes->opts.links && planes->opts.forward ? 2 : 1;
}

tess_status planes_rows_create(tess_planes *planes)
{
    tess_status status = TESS_OK;
    struct planes_of_device *cuda = planes->device;
    const int64_t bytes = planes->opts.nu * (int64_t)sizeof(int32_t);
    for (int k = 0; k < sets_of(planes); ++k) {
        plane_rows *rows = &cuda->rows[k];
        TESS_TRY(tess_device_alloc(bytes, "w-planes", (void **)&rows->slot_of_line));
        TESS_TRY(tess_device_alloc(bytes, "w-planes", (void **)&rows->line_of_slot));
    }
cleanup:
    return status;
}

void planes_rows_destroy(tess_planes *planes)
{
    for (int k = 0; k < sets_of(planes); ++k) {
        plane_rows *rows = &planes->device->rows[k];
        tess_device_free(rows->values.data);
        tess_device_free(rows->slot_of_line);
        tess_device_free(rows->line_of_slot);
    }
}

/* ---- room ---- */

tess_status device_array_grow(device_array *array, int64_t bytes, const char *what)
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

/* Grows an array to the size that the largest plane needs, if memory is plentiful:
 * planes have more and more lines, and allocating gigabytes takes milliseconds. */
static tess_status grow_once(device_array *array, int64_t bytes, int64_t most,
                             const char *what)
{
    if (bytes <= array->bytes) return TESS_OK;
    if (most > bytes && most < tess_device_room() / 4) bytes = most;
    return device_array_grow(array, bytes, what);
}

/* Grows an array by half at least, so that a few steps lead from the first plane to the
 * largest one. Devices that share the memory of one image use this, because they must
 * not need more memory than planes do. */
static tess_status grow_by_half(device_array *array, int64_t bytes, int64_t most,
                                const char *what)
{
    const int64_t more = bytes + bytes / 2 < most ? bytes + bytes / 2 : most;
    if (bytes <= array->bytes) return TESS_OK;
    if (more < tess_device_room() / 4) bytes = more;
    return device_array_grow(array, bytes, what);
}

/* Chooses the set of rows that the waiting plane does not use. If there is no room for
 * a second set, the waiting plane is finished first, and leaves its set. */
static tess_status choose_rows(tess_planes *planes, int64_t bytes)
{
    struct planes_of_device *cuda = planes->device;
    const int64_t more = bytes - cuda->rows[1 - cuda->now].values.bytes;
    if (!cuda->rows[cuda->now].waiting.active) return TESS_OK;
    if (more > 0 && more > tess_device_room() / 2) return planes_columns_finish(planes);
    cuda->now = 1 - cuda->now;
    return TESS_OK;
}

/* Copies the slot of each line to the device. */
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

/* Makes room for all rows of this rank's lines. Linked devices need none in imaging,
 * where lines are sent from buffers; in prediction they need two rounds of lines in
 * turn. */
static tess_status make_own_rows(tess_planes *planes, const line_list *lines)
{
    const tess_planes_opts *opts = &planes->opts;
    const int64_t line_bytes = opts->ny * planes->value_bytes;
    int64_t own = lines->num_own, most = planes->line_end - planes->line_first;
    if (opts->links) own = most = opts->forward ? 0 : 2 * planes->device->batch_lines;
    return grow_once(&planes->device->own_rows, own * line_bytes, most * line_bytes,
                     "lines of a w-plane");
}

/* Makes room for this rank's rows of all lines of the group. */
static tess_status make_all_rows(tess_planes *planes, const line_list *lines)
{
    tess_status status = TESS_OK;
    struct planes_of_device *cuda = planes->device;
    const int64_t column = (planes->row_end - planes->row_first) * planes->value_bytes;
    const int64_t bytes = lines->num_lines * column, most = planes->opts.nu * column;
    TESS_TRY(choose_rows(planes, bytes));
    TESS_TRY((planes->opts.links ? grow_by_half : grow_once)(
        &cuda->rows[cuda->now].values, bytes, most, "rows of a w-plane"));
cleanup:
    return status;
}

tess_status planes_rows_place(tess_planes *planes, const line_list *lines)
{
    tess_status status = TESS_OK;
    struct planes_of_device *cuda = planes->device;
    TESS_TRY(make_own_rows(planes, lines));
    if (planes->opts.fft_ranks > 1) TESS_TRY(make_all_rows(planes, lines));
    plane_rows *rows = &cuda->rows[cuda->now];
    rows->num_lines = lines->num_lines;
    TESS_TRY(upload_slots(planes, lines->line, lines->num_lines, rows->slot_of_line));
    TESS_TRY(upload_slots(planes, lines->own, lines->num_own, cuda->own_slot_of_line));
    if (!planes->opts.forward)
        TESS_TRY(tess_device_upload(rows->line_of_slot, lines->line,
                                    lines->num_lines * (int64_t)sizeof *lines->line));
cleanup:
    return status;
}

int64_t planes_cuda_more_bytes(const tess_planes *planes)
{
    const struct planes_of_device *cuda = planes->device;
    const int64_t lines =
        (planes->opts.nu + planes->opts.fft_ranks - 1) / planes->opts.fft_ranks;
    const int64_t rows = planes->row_end - planes->row_first;
    if (!cuda) /* since tess_planes_drop() */
        return (int64_t)tess_planes_device_bytes(planes->ops, &planes->opts);
    int64_t bytes =
        lines * planes->opts.ny * planes->value_bytes - cuda->own_rows.bytes;
    if (planes->opts.fft_ranks > 1)
        bytes +=
            planes->opts.nu * rows * planes->value_bytes - cuda->rows[0].values.bytes;
    return bytes > 0 ? bytes : 0;
}

/* ---- columns ---- */

/* Transforms the rows [first, first + count), counted from this rank's first, along u,
 * multiplies them by the w-screen and adds them to the image. In prediction the
 * reverse. */
static tess_status transform_batch(tess_planes *planes, const tess_plane_job *job,
                                   const plane_rows *rows, int64_t first, int64_t count)
{
    tess_status status = TESS_OK;
    struct planes_of_device *cuda = planes->device;
    const plane_shape *shape = &cuda->shape;
    const int64_t image_row = planes->row_first + first;
    void *all_rows =
        planes->opts.fft_ranks > 1 ? rows->values.data : cuda->own_rows.data;
    void *values = (char *)all_rows + first * rows->num_lines * planes->value_bytes;
    char *image = (char *)cuda->image[job->image] +
                  first * planes->opts.nx * planes->value_bytes / 2;
    if (planes->opts.forward) {
        TESS_TRY(plane_spread(shape, values, rows->num_lines, count, rows->slot_of_line,
                              cuda->batch));
        TESS_TRY(plane_fft_execute(cuda->fft_u, cuda->batch, count, true));
        TESS_TRY(plane_accumulate(shape, job->w_lambda, cuda->batch, image_row, count,
                                  image));
    } else {
        TESS_TRY(
            plane_unscreen(shape, job->w_lambda, image, image_row, count, cuda->batch));
        TESS_TRY(plane_fft_execute(cuda->fft_u, cuda->batch, count, false));
        TESS_TRY(plane_gather(shape, cuda->batch, count, rows->line_of_slot,
                              rows->num_lines, values, rows->num_lines));
    }
cleanup:
    return status;
}

static tess_status transform(tess_planes *planes, const tess_plane_job *job,
                             const plane_rows *rows)
{
    tess_status status = TESS_OK;
    const int64_t count = planes->row_end - planes->row_first,
                  batch = planes->device->batch_rows;
    for (int64_t first = 0; first < count; first += batch)
        TESS_TRY(transform_batch(planes, job, rows, first,
                                 count - first < batch ? count - first : batch));
cleanup:
    return status;
}

tess_status planes_columns(tess_planes *planes, const tess_plane_job *job)
{
    return transform(planes, job, &planes->device->rows[planes->device->now]);
}

/* ---- columns of planes that wait ---- */

void planes_columns_later(tess_planes *planes, const tess_plane_job *job)
{
    planes->device->rows[planes->device->now].waiting = *job;
}

static tess_status transform_waiting(tess_planes *planes, plane_rows *rows)
{
    if (!rows->waiting.active) return TESS_OK;
    rows->waiting.active = false;
    return transform(planes, &rows->waiting, rows);
}

/* The lines of this plane were sent before pieces for which the stream already waits.
 */
tess_status planes_columns_next(tess_planes *planes)
{
    return transform_waiting(planes, &planes->device->rows[1 - planes->device->now]);
}

tess_status planes_columns_finish(tess_planes *planes)
{
    tess_status status = TESS_OK;
    plane_rows *last = &planes->device->rows[planes->device->now];
    TESS_TRY(planes_columns_next(planes));
    if (!last->waiting.active) return TESS_OK;
    TESS_TRY(tess_device_comm_arrive(planes->opts.links));
    TESS_TRY(transform_waiting(planes, last));
cleanup:
    return status;
}

void planes_columns_drop(tess_planes *planes)
{
    for (int k = 0; k < 2; ++k)
        planes->device->rows[k].waiting.active = false;
}
