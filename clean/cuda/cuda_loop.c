/* Runs sub-minor loops on the device, launch after launch, and takes their components.
 * Adds components to models. */
#include "cuda_loop.h"

#include <math.h>
#include <string.h>

#include "cuda_borders.h"
#include "cuda_noise.h"
#include "cuda_rows.h"
#include "cuda_slot.h"
#include "cuda_spectra.h"
#include "tess_device.h"
#include "tess_log.h"
#include "tess_mem.h"

/* Components of a launch. Progress is told between launches. */
enum { EACH_LAUNCH = 1 << 15 };

/* The components of a launch, on the device and on the host, and the pixels of the
 * list. */
typedef struct taken {
    void *place_there, *value_there;
    int32_t *place, *x, *y;
    double *value, *flux;
} taken;

static tess_status allocate(const clean_work *work, int64_t count, taken *made)
{
    tess_status status = TESS_OK;
    const int64_t layers = work->layers.count;
    made->place = tess_alloc(EACH_LAUNCH, sizeof *made->place);
    made->value = tess_alloc(EACH_LAUNCH * layers, sizeof *made->value);
    made->flux = tess_alloc(work->setup->images.num_images, sizeof *made->flux);
    made->x = tess_alloc(count, sizeof *made->x);
    made->y = tess_alloc(count, sizeof *made->y);
    if (!made->place || !made->value || !made->flux || !made->x || !made->y)
        TESS_FAIL(TESS_ERR_ALLOC, "components");
    TESS_TRY(tess_device_alloc(EACH_LAUNCH * (int64_t)sizeof *made->place, "components",
                               &made->place_there));
    TESS_TRY(tess_device_alloc(EACH_LAUNCH * layers * (int64_t)sizeof *made->value,
                               "components", &made->value_there));
cleanup:
    return status;
}

static void free_taken(taken *made)
{
    tess_device_free(made->place_there);
    tess_device_free(made->value_there);
    tess_free(made->place);
    tess_free(made->value);
    tess_free(made->flux);
    tess_free(made->x);
    tess_free(made->y);
}

/* The fluxes in images of a component with these values in layers. */
static void find_flux(const clean_work *work, const double *value, double *flux)
{
    const int images = work->setup->images.num_images;
    const cuda_layers *layers = &work->layers;
    if (!layers->are_sums) {
        memcpy(flux, value, (size_t)images * sizeof *flux);
        return;
    }
    for (int c = 0; c < images; ++c) {
        flux[c] = 0;
        for (int t = 0; t < layers->count; ++t)
            flux[c] += layers->basis[t * images + c] * value[t];
    }
}

/* Appends the components of a launch. */
static tess_status take(const clean_work *work, int64_t count, taken *made,
                        clean_components *found)
{
    tess_status status = TESS_OK;
    const int64_t layers = work->layers.count, nx = work->shape.nx;
    TESS_TRY(tess_device_download(made->place, made->place_there,
                                  count * (int64_t)sizeof *made->place));
    TESS_TRY(tess_device_download(made->value, made->value_there,
                                  count * layers * (int64_t)sizeof *made->value));
    for (int64_t k = 0; k < count; ++k) {
        const int32_t at = made->place[k];
        find_flux(work, made->value + k * layers, made->flux);
        TESS_TRY(
            clean_components_add(found, made->y[at] * nx + made->x[at], made->flux));
    }
cleanup:
    return status;
}

static cuda_cycle cycle_of(const clean_work *work, const clean_loop *loop,
                           const cuda_list *list, const taken *made)
{
    const tess_clean_opts *opts = &work->setup->opts;
    return (cuda_cycle){.list = *list,
                        .window = work->scale[loop->scale].window,
                        .is_double = work->shape.is_double,
                        .sums = work->layers.are_sums,
                        .join = work->joined.join,
                        .fit = work->layers.fit,
                        .logs = work->layers.logs.places,
                        .noise = work->layers.logs.noise,
                        .has_data = work->layers.has_data,
                        .likeness = work->borders.likeness,
                        .num_places = work->setup->borders.num,
                        .positive = opts->no_negative,
                        .stop_negative = opts->stop_negative,
                        .gain = loop->gain,
                        .until = loop->until,
                        .diverged = loop->diverged,
                        .place = made->place_there,
                        .value = made->value_there};
}

/* Launches until the loop is done. */
static tess_status run(const clean_work *work, clean_loop *loop, const cuda_list *list,
                       taken *made, clean_components *found)
{
    tess_status status = TESS_OK;
    cuda_cycle cycle = cycle_of(work, loop, list, made);
    cuda_cycle_end end;
    do {
        const int64_t left = loop->most - loop->iterations;
        cycle.most = left < EACH_LAUNCH ? left : EACH_LAUNCH;
        TESS_TRY(cuda_cycle_run(&cycle, &end));
        TESS_TRY(take(work, end.iterations, made, found));
        loop->iterations += end.iterations;
        loop->peak = (clean_peak){end.peak, end.place};
        if (loop->progress && !end.done && end.iterations > 0)
            loop->progress(loop->context, loop->iterations, fabs(end.peak));
    } while (!end.done && loop->iterations < loop->most);
    if (loop->peak.index >= 0)
        loop->peak.index =
            made->y[loop->peak.index] * work->shape.nx + made->x[loop->peak.index];
cleanup:
    return status;
}

/* Measures the noise of values that are multiplied by the gain, for the fit of
 * logarithms. */
static tess_status find_noise(const clean_work *work, const cuda_slot *slot,
                              double gain)
{
    tess_status status = TESS_OK;
    const int pols = work->setup->join.num_pol;
    double *noise = NULL;
    if (!work->layers.logs.noise) return TESS_OK;
    noise = tess_alloc(pols, sizeof *noise);
    if (!noise) TESS_FAIL(TESS_ERR_ALLOC, "noise of channels");
    TESS_TRY(cuda_channel_noise(work, slot, noise));
    for (int p = 0; p < pols; ++p)
        noise[p] *= gain * gain;
    TESS_TRY(tess_device_upload(work->layers.logs.noise, noise,
                                pols * (int64_t)sizeof *noise));
    TESS_TRY(tess_device_wait());
cleanup:
    tess_free(noise);
    return status;
}

tess_status cuda_loop(clean_work *work, clean_loop *loop, clean_components *found)
{
    tess_status status = TESS_OK;
    cuda_slot *slot = &work->slot[work->kept];
    cuda_list list = {0};
    taken made = {0};
    if (work->mean.spectrum) TESS_TRY(cuda_make_images(work, slot));
    TESS_TRY(find_noise(work, slot, loop->gain));
    TESS_TRY(cuda_make_window(work, loop->scale));
    TESS_TRY(tess_device_wait());
    const double start = tess_time_now();
    TESS_TRY(cuda_list_make(work, slot, loop->list_from, &list));
    if (work->borders.place && !(work->setup->scale_px[loop->scale] > 0))
        TESS_TRY(cuda_borders_list(work, &list));
    TESS_TRY(allocate(work, list.count, &made));
    TESS_TRY(
        tess_device_download(made.x, list.x, list.count * (int64_t)sizeof *list.x));
    TESS_TRY(
        tess_device_download(made.y, list.y, list.count * (int64_t)sizeof *list.y));
    TESS_TRY(run(work, loop, &list, &made, found));
    loop->seconds = tess_time_now() - start;
cleanup:
    cuda_list_free(&list);
    free_taken(&made);
    return status;
}

/* ---- models ---- */

/* A scale's components in device memory: their pixels, and fluxes image by image. */
typedef struct uploaded {
    void *index, *flux;
} uploaded;

static tess_status upload(const clean_components *merged, uploaded *made)
{
    tess_status status = TESS_OK;
    const int64_t count = merged->count, images = merged->num_images;
    double *flux = tess_alloc(count * images, sizeof *flux);
    if (!flux) TESS_FAIL(TESS_ERR_ALLOC, "components");
    for (int64_t k = 0; k < count; ++k)
        for (int64_t i = 0; i < images; ++i)
            flux[i * count + k] = merged->flux[k * images + i];
    TESS_TRY(tess_device_alloc(count * (int64_t)sizeof(int64_t), "components",
                               &made->index));
    TESS_TRY(tess_device_upload(made->index, merged->index,
                                count * (int64_t)sizeof(int64_t)));
    TESS_TRY(tess_device_alloc(count * images * (int64_t)sizeof *flux, "components",
                               &made->flux));
    TESS_TRY(
        tess_device_upload(made->flux, flux, count * images * (int64_t)sizeof *flux));
cleanup:
    tess_free(flux);
    return status;
}

/* Adds the components of all scales to the model of an image. */
static tess_status add_image(const clean_work *work, const clean_components *merged,
                             const uploaded *there, int image, const tess_rows *model)
{
    tess_status status = TESS_OK;
    cuda_view view = {0};
    TESS_TRY(cuda_rows_view(model, &view));
    for (int s = 0; s < work->setup->num_scales; ++s) {
        const cuda_components own = {merged[s].count, there[s].index,
                                     (const double *)there[s].flux +
                                         image * merged[s].count};
        if (own.count == 0) continue;
        TESS_TRY(cuda_add_components(work->shape.nx, model->row_first, model->num_rows,
                                     &own, &work->scale[s].table, view.pixels.value));
    }
    TESS_TRY(cuda_rows_put_back(model, &view));
cleanup:
    cuda_rows_free(&view);
    return status;
}

tess_status cuda_add(clean_work *work, const clean_components *merged,
                     const tess_rows *model)
{
    tess_status status = TESS_OK;
    const int scales = work->setup->num_scales;
    int64_t any = 0;
    uploaded *there = tess_alloc_zero(scales, sizeof *there);
    if (!there) TESS_FAIL(TESS_ERR_ALLOC, "components");
    for (int s = 0; s < scales; ++s) {
        any += merged[s].count;
        if (merged[s].count > 0) TESS_TRY(upload(&merged[s], &there[s]));
    }
    for (int k = 0; any > 0 && k < merged[0].num_images; ++k)
        TESS_TRY(add_image(work, merged, there, k, &model[k]));
cleanup:
    for (int s = 0; there && s < scales; ++s) {
        tess_device_free(there[s].index);
        tess_device_free(there[s].flux);
    }
    tess_free(there);
    return status;
}
