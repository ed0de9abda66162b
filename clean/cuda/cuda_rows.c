/* The caller's rows on the device: see cuda_rows.h. */
#include "cuda_rows.h"

#include <string.h>

#include "tess_device.h"
#include "tess_device_comm.h"
#include "tess_mem.h"

tess_status cuda_rows_view(const tess_rows *rows, cuda_view *view)
{
    tess_status status = TESS_OK;
    const int64_t bytes = tess_rows_bytes(rows);
    *view = (cuda_view){
        .pixels = {.value = rows->value, .bytes = (int)tess_pixel_bytes(rows->type)}};
    if (rows->place || bytes == 0) return TESS_OK;
    TESS_TRY(tess_device_alloc(bytes, "rows of an image", &view->copy));
    view->pixels.value = view->copy;
    TESS_TRY(tess_device_upload(view->copy, rows->value, bytes));
cleanup:
    return status;
}

tess_status cuda_rows_put_back(const tess_rows *rows, const cuda_view *view)
{
    if (!view->copy) return TESS_OK;
    return tess_device_download(rows->value, view->copy, tess_rows_bytes(rows));
}

void cuda_rows_free(cuda_view *view)
{
    tess_device_free(view->copy);
    *view = (cuda_view){0};
}

/* ---- of several ranks, from device to device ---- */

/* Whether the rows of an image, which live in the same place on all ranks, need not
 * pass through host memory. */
static bool are_linked(const clean_work *work, const tess_rows *rows)
{
    return rows->place && tess_device_comm_moves(work->setup->opts.method.links);
}

/* The rows of each rank in a whole image: all[P]. */
static void find_spans(const clean_work *work, const tess_rows *rows, void *whole,
                       tess_device_span *all)
{
    char *at = whole;
    for (int k = 0; k < work->ranks.num; ++k) {
        all[k].at = at;
        all[k].bytes = work->ranks.rows_of[k] * rows->nx * tess_pixel_bytes(rows->type);
        at += all[k].bytes;
    }
}

/* Every rank sends its rows to those that hold images, or gets them from the first one,
 * which leads. The array that is not named here stays empty. */
static void find_arrays(const clean_work *work, const tess_rows *rows, void *whole,
                        bool gathers, tess_device_span *send, tess_device_span *take)
{
    const tess_device_span own = {rows->value, tess_rows_bytes(rows)};
    const bool has_whole = gathers ? work->ranks.holds : work->ranks.leads;
    if (has_whole) find_spans(work, rows, whole, gathers ? take : send);
    if (!gathers) take[0] = own;
    for (int k = 0; gathers && k < work->ranks.num; ++k)
        if (k == 0 || work->ranks.shares) send[k] = own;
}

/* Moves rows of all ranks to `whole`, or from there. Collective. */
static tess_status move_linked(const clean_work *work, const tess_rows *rows,
                               void *whole, bool gathers)
{
    tess_status status = TESS_OK;
    const int ranks = work->ranks.num;
    tess_device_span *send = tess_alloc_zero(2 * (int64_t)ranks, sizeof *send);
    TESS_TRY(tess_comm_agree(work->setup->comm, send ? TESS_OK : TESS_ERR_ALLOC));
    find_arrays(work, rows, whole, gathers, send, send + ranks);
    TESS_TRY(tess_device_comm_move(work->setup->opts.method.links, rows->place, send,
                                   send + ranks));
cleanup:
    tess_free(send);
    return status;
}

static tess_status gather_linked(const clean_work *work, const tess_rows *rows,
                                 cuda_view *view)
{
    tess_status status = TESS_OK;
    const int64_t bytes = rows->nx * rows->ny * tess_pixel_bytes(rows->type);
    *view = (cuda_view){.pixels.bytes = (int)tess_pixel_bytes(rows->type)};
    if (work->ranks.holds)
        status = tess_device_alloc(bytes, "rows of an image", &view->copy);
    TESS_TRY(tess_comm_agree(work->setup->comm, status));
    view->pixels.value = view->copy;
    TESS_TRY(move_linked(work, rows, view->copy, true));
cleanup:
    return status;
}

/* ---- of several ranks ---- */

/* The whole image in host memory. */
static tess_rows whole_of(const tess_rows *rows, void *value)
{
    tess_rows whole = tess_rows_of(rows->nx, rows->ny, 0, rows->ny, rows->type);
    whole.value = value;
    return whole;
}

/* The rows of all ranks, on those that hold images. Collective. */
static tess_status gather_here(const clean_work *work, const tess_rows *own, void **all,
                               int64_t *bytes)
{
    tess_comm *comm = work->setup->comm;
    if (work->ranks.shares)
        return tess_comm_allgatherv(comm, own->value, tess_rows_bytes(own), all, bytes);
    return tess_comm_gatherv(comm, own->value, tess_rows_bytes(own), 0, all, bytes);
}

tess_status cuda_rows_gather(const clean_work *work, const tess_rows *rows,
                             cuda_view *view)
{
    tess_status status = TESS_OK;
    tess_comm *comm = work->setup->comm;
    tess_rows own = {0}, whole = {0};
    void *all = NULL;
    int64_t *bytes = NULL;
    *view = (cuda_view){0};
    if (work->ranks.num == 1) return cuda_rows_view(rows, view);
    if (are_linked(work, rows)) return gather_linked(work, rows, view);
    bytes = tess_alloc_zero(work->ranks.num, sizeof *bytes);
    status = bytes ? tess_rows_view(rows, &own) : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(gather_here(work, &own, &all, bytes));
    whole = whole_of(rows, all);
    if (work->ranks.holds) status = cuda_rows_view(&whole, view);
    TESS_TRY(tess_comm_agree(comm, status));
cleanup:
    tess_rows_free(&own);
    tess_free(all);
    tess_free(bytes);
    return status;
}

tess_status cuda_rows_scatter(const clean_work *work, const cuda_view *view,
                              const tess_rows *rows)
{
    tess_status status = TESS_OK;
    tess_comm *comm = work->setup->comm;
    const int size = work->ranks.num;
    const int64_t line = rows->nx * tess_pixel_bytes(rows->type);
    tess_rows whole = whole_of(rows, NULL);
    void *recv = NULL;
    int64_t *bytes = NULL;
    if (size == 1) return cuda_rows_put_back(rows, view);
    if (are_linked(work, rows)) return move_linked(work, rows, view->copy, false);
    bytes = tess_alloc_zero(2 * (int64_t)size, sizeof *bytes);
    if (!bytes) status = TESS_ERR_ALLOC;
    if (status == TESS_OK && work->ranks.leads) {
        status = tess_rows_alloc(&whole);
        if (status == TESS_OK) status = cuda_rows_put_back(&whole, view);
        for (int k = 0; k < size; ++k)
            bytes[k] = work->ranks.rows_of[k] * line;
    }
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_alltoallv(comm, whole.value, bytes, &recv, bytes + size));
    if (rows->place)
        status = rows->place->upload(rows->value, recv, tess_rows_bytes(rows));
    else
        memcpy(rows->value, recv, (size_t)tess_rows_bytes(rows));
    TESS_TRY(tess_comm_agree(comm, status));
cleanup:
    tess_rows_free(&whole);
    tess_free(recv);
    tess_free(bytes);
    return status;
}
