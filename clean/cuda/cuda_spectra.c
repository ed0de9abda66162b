/* Transforms between images and spectra on the device. */
#include "cuda_spectra.h"

#include "clean_scales.h"
#include "cuda_grids.h"
#include "tess_device.h"
#include "tess_log.h"
#include "tess_mem.h"

tess_status cuda_forward(clean_work *work, void *spectrum)
{
    work->transforms += 1;
    return tess_device_fft_forward(work->fft, work->plane, spectrum);
}

tess_status cuda_back(clean_work *work, const void *from, cuda_factors by)
{
    tess_status status = TESS_OK;
    by.scale /= (double)work->shape.lx * (double)work->shape.ly;
    TESS_TRY(cuda_multiply(&work->shape, from, &by, work->product));
    work->transforms += 1;
    TESS_TRY(tess_device_fft_back(work->fft, work->product, work->plane));
cleanup:
    return status;
}

tess_status cuda_make_image(clean_work *work, int scale, const void *spectrum,
                            const void *factor, void *image)
{
    tess_status status = TESS_OK;
    const cuda_factors by = {.kernel = scale < 0 ? NULL : work->scale[scale].kernel,
                             .scale = 1};
    if (scale >= 0 && work->scale[scale].grid >= 0)
        return cuda_grid_image(work, scale, spectrum, factor, image);
    TESS_TRY(cuda_back(work, spectrum, by));
    TESS_TRY(cuda_crop(&work->shape, work->plane, factor, image));
cleanup:
    return status;
}

/* ---- kernels and PSFs ---- */

/* Makes the table of a scale's kernel. */
static tess_status make_table(clean_work *work, int scale)
{
    tess_status status = TESS_OK;
    const clean_setup *setup = work->setup;
    const double alpha = setup->scale_px[scale];
    cuda_table *table = &work->scale[scale].table;
    void *there = NULL;
    table->half = clean_kernel_half(setup->opts.shape, alpha);
    const int64_t width = 2 * table->half + 1;
    TESS_TRY(tess_device_alloc(width * width * (int64_t)sizeof(double),
                               "kernel of a scale", &there));
    table->value = there;
    TESS_TRY(cuda_fill_table(setup->opts.shape == TESS_CLEAN_GAUSSIAN, alpha, table));
cleanup:
    return status;
}

tess_status cuda_make_kernel(clean_work *work, int scale)
{
    tess_status status = TESS_OK;
    TESS_TRY(make_table(work, scale));
    if (!work->ranks.holds || !(work->setup->scale_px[scale] > 0)) return TESS_OK;
    TESS_TRY(tess_device_alloc(work->bytes.spectrum / 2, "kernel of a scale",
                               &work->scale[scale].kernel));
    TESS_TRY(cuda_pad_table(&work->shape, &work->scale[scale].table, work->plane));
    TESS_TRY(cuda_forward(work, work->product));
    TESS_TRY(cuda_real_parts(&work->shape, work->product, work->scale[scale].kernel));
cleanup:
    return status;
}

/* The value of the plane at its origin. Waits. */
static tess_status origin_of(const clean_work *work, double *value)
{
    tess_status status = TESS_OK;
    double wide = 0;
    float single = 0;
    TESS_TRY(tess_device_download(work->shape.is_double ? (void *)&wide : &single,
                                  work->plane, work->bytes.real));
    *value = work->shape.is_double ? wide : (double)single;
cleanup:
    return status;
}

tess_status cuda_make_psf(clean_work *work, int image, const cuda_pixels *psf)
{
    tess_status status = TESS_OK;
    const int scales = work->setup->num_scales;
    double *peak = work->psf_peak + (int64_t)image * scales, centre;
    double *square = work->psf_square + (int64_t)image * scales;
    TESS_TRY(cuda_pad_centred(&work->shape, psf, work->plane));
    TESS_TRY(origin_of(work, &centre));
    TESS_TRY(cuda_forward(work, work->psf[image]));
    for (int s = 0; s < scales; ++s) {
        cuda_factors by = {.kernel = work->scale[s].kernel, .scale = 1};
        peak[s] = square[s] = centre;
        if (!by.kernel) continue;
        TESS_TRY(cuda_back(work, work->psf[image], by));
        TESS_TRY(origin_of(work, &peak[s]));
        if (work->setup->opts.method.scale_rule != TESS_CLEAN_BY_FIT) continue;
        by.power = 2;
        TESS_TRY(cuda_back(work, work->psf[image], by));
        TESS_TRY(origin_of(work, &square[s]));
    }
    cuda_forget_windows(work);
    work->layers.has_psf = false;
    work->has_grids = false;
cleanup:
    return status;
}

/* Makes the PSF between two layers. */
static tess_status make_pair(clean_work *work, int t, int u)
{
    tess_status status = TESS_OK;
    const cuda_layers *layers = &work->layers;
    const int images = work->setup->images.num_images;
    void *to = layers->psf[clean_layers_psf(t, u)];
    TESS_TRY(tess_device_zero(to, work->bytes.spectrum));
    for (int c = 0; c < images; ++c) {
        const cuda_factors share = {.scale = layers->weights[t * images + c] *
                                             layers->basis[u * images + c]};
        if (cuda_has_data(work, c))
            TESS_TRY(cuda_add_product(&work->shape, work->psf[c], &share, to));
    }
cleanup:
    return status;
}

tess_status cuda_begin_layers(clean_work *work)
{
    tess_status status = TESS_OK;
    cuda_layers *layers = &work->layers;
    if (!layers->are_sums) return TESS_OK;
    for (int t = 0; t < layers->count; ++t) {
        for (int u = 0; !layers->has_psf && u <= t; ++u)
            TESS_TRY(make_pair(work, t, u));
        TESS_TRY(tess_device_zero(layers->sum[t], work->bytes.spectrum));
    }
    layers->has_psf = true;
cleanup:
    return status;
}

void cuda_forget_windows(clean_work *work)
{
    for (int s = 0; s < work->setup->num_scales; ++s) {
        tess_device_free(work->scale[s].window.value);
        work->scale[s].window.value = NULL;
    }
}

void cuda_spare_windows(clean_work *work)
{
    int64_t bytes = 0;
    for (int s = 0; s < work->setup->num_scales; ++s) {
        const cuda_window window = cuda_window_of(work->setup, s);
        bytes += cuda_window_bytes(work->setup, &window);
    }
    if (bytes > tess_device_room()) cuda_forget_windows(work);
}

/* Takes memory for PSFs of a scale. Those of other scales give room if there is none.
 */
static tess_status take_window(clean_work *work, int64_t bytes, void **value)
{
    if (bytes > tess_device_room()) cuda_forget_windows(work);
    return tess_device_alloc(bytes, "PSFs of a scale", value);
}

tess_status cuda_make_window(clean_work *work, int scale)
{
    tess_status status = TESS_OK;
    cuda_window made = cuda_window_of(work->setup, scale);
    void *const *psf = work->layers.are_sums ? work->layers.psf : work->psf;
    if (work->scale[scale].window.value) return TESS_OK;
    TESS_TRY(take_window(work, cuda_window_bytes(work->setup, &made), &made.value));
    for (int side = 0; side < made.width; ++side) {
        const cuda_factors by = {
            .kernel = work->scale[scale].kernel, .power = 2, .scale = 1};
        TESS_TRY(cuda_back(work, psf[side], by));
        TESS_TRY(cuda_crop_window(&work->shape, work->plane, side, &made));
    }
    work->scale[scale].window = made;
    made.value = NULL;
cleanup:
    tess_device_free(made.value);
    return status;
}

/* ---- residuals ---- */

/* Adds factor · share of a layer's values to those of the mean, if this has a spectrum
 * of its own. The first of layers that are sums is the mean. */
static tess_status add_to_mean(clean_work *work, int layer, const void *from,
                               cuda_factors by)
{
    if (!work->mean.spectrum || work->layers.are_sums) return TESS_OK;
    by.scale *= work->setup->join.share[layer];
    if (by.scale == 0) return TESS_OK;
    return cuda_add_product(&work->shape, from, &by, work->mean.spectrum);
}

tess_status cuda_make_residual(clean_work *work, const cuda_slot *slot)
{
    tess_status status = TESS_OK;
    if (work->mean.spectrum && !work->layers.are_sums)
        TESS_TRY(tess_device_zero(work->mean.spectrum, work->bytes.spectrum));
    for (int k = 0; k < work->layers.count; ++k) {
        void *spectrum = work->layers.residual[k];
        if (!cuda_layer_has_data(work, k)) continue;
        TESS_TRY(cuda_pad(&work->shape, slot->image[k], false, work->plane));
        TESS_TRY(cuda_forward(work, spectrum));
        TESS_TRY(add_to_mean(work, k, spectrum, (cuda_factors){.scale = 1}));
    }
cleanup:
    return status;
}

/* The images of a slot := the residuals at a scale (−1: as they are). */
static tess_status make_layers(clean_work *work, cuda_slot *slot, int scale)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < work->layers.count; ++k)
        if (cuda_layer_has_data(work, k))
            TESS_TRY(cuda_make_image(work, scale, work->layers.residual[k], NULL,
                                     slot->image[k]));
cleanup:
    return status;
}

tess_status cuda_make_images(clean_work *work, cuda_slot *slot)
{
    tess_status status = TESS_OK;
    if (work->mean.scale == slot->scale && work->mean.version == slot->version)
        return TESS_OK;
    TESS_TRY(make_layers(work, slot, slot->scale));
    work->mean.scale = slot->scale;
    work->mean.version = slot->version;
cleanup:
    return status;
}

tess_status cuda_make_plain(clean_work *work, cuda_slot *slot)
{
    slot->scale = -1;
    work->mean.scale = -1;
    return make_layers(work, slot, -1);
}

/* ---- components ---- */

/* Components in device memory: their pixels, and values of a layer. */
typedef struct placed {
    int64_t count;
    double *here; /* host */
    void *index, *value;
} placed;

static tess_status place_components(const clean_components *merged, placed *made)
{
    tess_status status = TESS_OK;
    const int64_t bytes = merged->count * (int64_t)sizeof(int64_t);
    made->count = merged->count;
    made->here = tess_alloc(merged->count, sizeof *made->here);
    if (!made->here) TESS_FAIL(TESS_ERR_ALLOC, "components");
    TESS_TRY(tess_device_alloc(bytes, "components", &made->index));
    TESS_TRY(tess_device_alloc(bytes, "components", &made->value));
    TESS_TRY(tess_device_upload(made->index, merged->index, bytes));
cleanup:
    return status;
}

static void free_placed(placed *made)
{
    tess_device_free(made->index);
    tess_device_free(made->value);
    tess_free(made->here);
}

/* The value in a layer of a component with these values in images. */
static double layer_value(const clean_work *work, int layer, const double *flux)
{
    const int images = work->setup->images.num_images;
    double sum = 0;
    if (!work->layers.are_sums) return flux[layer];
    for (int c = 0; c < images; ++c)
        sum += work->layers.weights[layer * images + c] * flux[c];
    return sum;
}

/* product := the spectrum of a layer's components, without their kernel. */
static tess_status transform_layer(clean_work *work, int layer,
                                   const clean_components *merged, const placed *at)
{
    tess_status status = TESS_OK;
    for (int64_t k = 0; k < at->count; ++k)
        at->here[k] = layer_value(work, layer, merged->flux + k * merged->num_images);
    TESS_TRY(
        tess_device_upload(at->value, at->here, at->count * (int64_t)sizeof *at->here));
    TESS_TRY(cuda_scatter(&work->shape, at->count, at->index, at->value, work->plane));
    TESS_TRY(cuda_forward(work, work->product));
cleanup:
    return status;
}

/* With several scales, the product is subtracted from the spectrum of the residual. */
static tess_status subtract_spectrum(clean_work *work, int layer, const void *kernel)
{
    tess_status status = TESS_OK;
    const cuda_layers *layers = &work->layers;
    cuda_factors by = {.kernel = kernel, .scale = 1};
    if (layers->are_sums)
        TESS_TRY(
            cuda_add_product(&work->shape, work->product, &by, layers->sum[layer]));
    by.scale = -1;
    for (int u = 0; layers->are_sums && u < layers->count; ++u) {
        by.psf = layers->psf[clean_layers_psf(layer, u)];
        TESS_TRY(
            cuda_add_product(&work->shape, work->product, &by, layers->residual[u]));
    }
    if (layers->are_sums) return TESS_OK;
    by.psf = work->psf[layer];
    TESS_TRY(
        cuda_add_product(&work->shape, work->product, &by, layers->residual[layer]));
    TESS_TRY(add_to_mean(work, layer, work->product, by));
cleanup:
    return status;
}

/* With one scale, the product becomes an image at once. */
static tess_status subtract_image(clean_work *work, int layer)
{
    tess_status status = TESS_OK;
    const cuda_factors by = {.psf = work->psf[layer], .scale = 1};
    TESS_TRY(cuda_back(work, work->product, by));
    TESS_TRY(cuda_crop_less(&work->shape, work->plane, work->slot[0].image[layer]));
cleanup:
    return status;
}

tess_status cuda_subtract(clean_work *work, int scale, const clean_components *merged)
{
    tess_status status = TESS_OK;
    placed at = {0};
    if (merged->count == 0) return TESS_OK;
    TESS_TRY(place_components(merged, &at));
    for (int k = 0; k < work->layers.count; ++k) {
        if (!cuda_layer_has_data(work, k)) continue;
        TESS_TRY(transform_layer(work, k, merged, &at));
        if (clean_is_multiscale(work->setup))
            TESS_TRY(subtract_spectrum(work, k, work->scale[scale].kernel));
        else
            TESS_TRY(subtract_image(work, k));
    }
cleanup:
    free_placed(&at);
    return status;
}

tess_status cuda_make_change(clean_work *work, int image)
{
    tess_status status = TESS_OK;
    const cuda_layers *layers = &work->layers;
    const int images = work->setup->images.num_images;
    void *sum = NULL;
    TESS_TRY(tess_device_alloc(work->bytes.spectrum, "spectra of models", &sum));
    TESS_TRY(tess_device_zero(sum, work->bytes.spectrum));
    for (int t = 0; t < layers->count; ++t) {
        const cuda_factors share = {.scale = layers->basis[t * images + image]};
        TESS_TRY(cuda_add_product(&work->shape, layers->sum[t], &share, sum));
    }
    TESS_TRY(cuda_back(work, sum, (cuda_factors){.psf = work->psf[image], .scale = 1}));
cleanup:
    tess_device_free(sum);
    return status;
}
