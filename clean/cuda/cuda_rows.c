/* The caller's rows on the device. */
#include "cuda_rows.h"

#include "tess_device.h"

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
