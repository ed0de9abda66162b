/* Components of places with gains of their own, on the device: as cpu_borders.c. */
#include "cuda_borders.h"

#include "cuda_spectra.h"
#include "tess_device.h"
#include "tess_mem.h"

tess_status cuda_borders_list(const clean_work *work, cuda_list *list)
{
    tess_status status = TESS_OK;
    void *there = NULL;
    TESS_TRY(tess_device_alloc(list->count * (int64_t)sizeof *list->of, "candidates",
                               &there));
    list->of = there;
    TESS_TRY(cuda_find_places(&work->shape, work->borders.place, list));
cleanup:
    return status;
}

/* ---- components ---- */

/* Components in device memory, and the model of their values in a layer. */
typedef struct placed {
    cuda_components merged;
    double *here; /* host, [count] */
    void *index, *flux, *model, *used;
    int32_t *is_used; /* host, [places] */
} placed;

static tess_status place_components(const clean_work *work,
                                    const clean_components *merged, placed *made)
{
    tess_status status = TESS_OK;
    const int64_t bytes = merged->count * (int64_t)sizeof(int64_t);
    const int num = work->setup->borders.num;
    made->here = tess_alloc(merged->count, sizeof *made->here);
    made->is_used = tess_alloc(num, sizeof *made->is_used);
    if (!made->here || !made->is_used) TESS_FAIL(TESS_ERR_ALLOC, "components");
    TESS_TRY(tess_device_alloc(bytes, "components", &made->index));
    TESS_TRY(tess_device_alloc(bytes, "components", &made->flux));
    TESS_TRY(tess_device_alloc(num * (int64_t)sizeof *made->is_used, "components",
                               &made->used));
    TESS_TRY(
        tess_device_alloc(work->shape.nx * work->shape.ny * (int64_t)sizeof(double),
                          "model of components", &made->model));
    TESS_TRY(tess_device_upload(made->index, merged->index, bytes));
    made->merged = (cuda_components){merged->count, made->index, made->flux};
cleanup:
    return status;
}

static void free_placed(placed *made)
{
    tess_device_free(made->index);
    tess_device_free(made->flux);
    tess_device_free(made->used);
    tess_device_free(made->model);
    tess_free(made->here);
    tess_free(made->is_used);
}

/* Makes the model of a layer, and finds the places that it has pixels in. Waits. */
static tess_status make_model(const clean_work *work, int scale, int layer,
                              const clean_components *merged, placed *at)
{
    tess_status status = TESS_OK;
    const cuda_shape *shape = &work->shape;
    const int64_t used = work->setup->borders.num * (int64_t)sizeof *at->is_used;
    for (int64_t k = 0; k < merged->count; ++k)
        at->here[k] = merged->flux[k * merged->num_images + layer];
    TESS_TRY(tess_device_upload(at->flux, at->here,
                                merged->count * (int64_t)sizeof *at->here));
    TESS_TRY(
        tess_device_zero(at->model, shape->nx * shape->ny * (int64_t)sizeof(double)));
    TESS_TRY(cuda_add_components(shape->nx, 0, shape->ny, &at->merged,
                                 &work->scale[scale].table, at->model));
    TESS_TRY(tess_device_zero(at->used, used));
    TESS_TRY(cuda_mark_places(shape, at->model, work->borders.place, at->used));
    TESS_TRY(tess_device_download(at->is_used, at->used, used));
cleanup:
    return status;
}

/* Subtracts what pixels see of a place's part of the model. */
static tess_status subtract_place(clean_work *work, int layer, int place,
                                  const void *model)
{
    tess_status status = TESS_OK;
    const cuda_factors by = {.psf = work->psf[layer], .scale = 1};
    const double *seen =
        work->borders.likeness + (int64_t)place * work->setup->borders.num;
    TESS_TRY(
        cuda_pad_place(&work->shape, model, work->borders.place, place, work->plane));
    TESS_TRY(cuda_forward(work, work->product));
    TESS_TRY(cuda_back(work, work->product, by));
    TESS_TRY(cuda_crop_seen(&work->shape, work->plane, work->borders.place, seen,
                            work->slot[0].image[layer]));
cleanup:
    return status;
}

tess_status cuda_borders_subtract(clean_work *work, int scale,
                                  const clean_components *merged)
{
    tess_status status = TESS_OK;
    const bool multiscale = clean_is_multiscale(work->setup);
    placed at = {0};
    if (merged->count == 0) return TESS_OK;
    if (multiscale) TESS_TRY(cuda_make_plain(work, &work->slot[0]));
    TESS_TRY(place_components(work, merged, &at));
    for (int k = 0; k < work->layers.count; ++k) {
        if (!cuda_layer_has_data(work, k)) continue;
        TESS_TRY(make_model(work, scale, k, merged, &at));
        for (int place = 0; place < work->setup->borders.num; ++place)
            if (at.is_used[place]) TESS_TRY(subtract_place(work, k, place, at.model));
    }
    if (multiscale) TESS_TRY(cuda_make_residual(work, &work->slot[0]));
cleanup:
    free_placed(&at);
    return status;
}
