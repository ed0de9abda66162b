/* The caller's rows on the device: see cuda_rows.h. */
#include "cuda_rows.h"

#include <string.h>

#include "tess_device.h"
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

/* ---- of several ranks ---- */

/* The whole image in host memory of the rank that leads. */
static tess_rows whole_of(const tess_rows *rows, void *value)
{
    tess_rows whole = tess_rows_of(rows->nx, rows->ny, 0, rows->ny, rows->type);
    whole.value = value;
    return whole;
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
    if (work->num_ranks == 1) return cuda_rows_view(rows, view);
    bytes = tess_alloc_zero(work->num_ranks, sizeof *bytes);
    status = bytes ? tess_rows_view(rows, &own) : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_gatherv(comm, own.value, tess_rows_bytes(rows), 0, &all, bytes));
    whole = whole_of(rows, all);
    if (work->leads) status = cuda_rows_view(&whole, view);
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
    const int size = work->num_ranks;
    const int64_t line = rows->nx * tess_pixel_bytes(rows->type);
    tess_rows whole = whole_of(rows, NULL);
    void *recv = NULL;
    int64_t *bytes = NULL;
    if (size == 1) return cuda_rows_put_back(rows, view);
    bytes = tess_alloc_zero(2 * (int64_t)size, sizeof *bytes);
    if (!bytes) status = TESS_ERR_ALLOC;
    if (status == TESS_OK && work->leads) {
        status = tess_rows_alloc(&whole);
        if (status == TESS_OK) status = cuda_rows_put_back(&whole, view);
        for (int k = 0; k < size; ++k)
            bytes[k] = work->rows_of[k] * line;
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
