/* The cuda backend: the residual images of a minor loop in the memory of a device. */
#include <math.h>
#include <stdio.h>

#include "cuda_local_rms.h"
#include "cuda_loop.h"
#include "cuda_noise.h"
#include "cuda_rows.h"
#include "cuda_slot.h"
#include "cuda_spectra.h"
#include "tess_device.h"
#include "tess_log.h"
#include "tess_mem.h"

/* ---- what it takes ---- */

static bool cuda_lacks(const clean_setup *setup, int num_ranks, char *text, int size)
{
    const clean_join *join = &setup->join;
    const double room = (double)tess_device_room();
    double least, all;
    if (num_ranks > 1) {
        snprintf(text, (size_t)size, "its rows are shared by %d ranks", num_ranks);
        return true;
    }
    if (join->spectrum.kind == TESS_CLEAN_LOG_POLYNOMIAL) {
        snprintf(text, (size_t)size, "logarithmic spectra are fitted there");
        return true;
    }
    if (clean_layers_count(setup) > CUDA_MOST_LAYERS) {
        snprintf(text, (size_t)size, "%d images are cleaned together, and not %d",
                 clean_layers_count(setup), CUDA_MOST_LAYERS);
        return true;
    }
    if (setup->opts.method.cycle != TESS_CLEAN_CYCLE_list) {
        snprintf(text, (size_t)size, "this algorithm is written for processors");
        return true;
    }
    cuda_work_bytes(setup, &least, &all);
    if (least <= room) return false;
    snprintf(text, (size_t)size, "the device has no room for it: %s wanted, %s there",
             tess_mem_text(least), tess_mem_text(room));
    return true;
}

static void cuda_bytes(const clean_setup *setup, int num_ranks, double *rank_bytes,
                       double *node_bytes)
{
    (void)num_ranks;
    *rank_bytes = (double)setup->images.ny * CUDA_ROW_BYTES;
    *node_bytes = 0;
}

static double cuda_device_bytes(const clean_setup *setup)
{
    double least, all;
    cuda_work_bytes(setup, &least, &all);
    return all;
}

static tess_status cuda_create(const clean_setup *setup, clean_work **work_out)
{
    tess_status status = TESS_OK;
    clean_work *work = NULL;
    status = cuda_work_create(setup, &work);
    for (int s = 0; status == TESS_OK && s < setup->num_scales; ++s)
        status = cuda_make_kernel(work, s);
    TESS_TRY(tess_comm_agree(setup->comm, status));
    *work_out = work;
    work = NULL;
cleanup:
    cuda_work_destroy(work);
    return status;
}

/* ---- PSFs ---- */

static tess_status cuda_set_psf(clean_work *work, int image, const tess_rows *psf)
{
    tess_status status = TESS_OK;
    cuda_view view = {0};
    TESS_TRY(cuda_rows_view(psf, &view));
    TESS_TRY(cuda_make_psf(work, image, &view.pixels));
cleanup:
    cuda_rows_free(&view);
    return tess_comm_agree(work->setup->comm, status);
}

static void cuda_psf_peaks(const clean_work *work, double *peak)
{
    clean_psf_peaks(work->setup, work->psf_peak, peak);
}

/* ---- residuals ---- */

/* layers of the first slot += a residual image of the caller. */
static tess_status take_image(clean_work *work, int image, const tess_rows *residual)
{
    tess_status status = TESS_OK;
    const cuda_layers *layers = &work->layers;
    const cuda_slot *slot = &work->slot[0];
    const int images = work->setup->images.num_images;
    cuda_view view = {0};
    TESS_TRY(cuda_rows_view(residual, &view));
    for (int t = 0; layers->are_sums && t < layers->count; ++t)
        TESS_TRY(cuda_take(&work->shape, &view.pixels,
                           layers->weights[t * images + image], slot->image[t],
                           work->is_nan));
    if (!layers->are_sums)
        TESS_TRY(
            cuda_take(&work->shape, &view.pixels, 1, slot->image[image], work->is_nan));
cleanup:
    cuda_rows_free(&view);
    return status;
}

static tess_status take_masks(clean_work *work, const clean_begin *begin)
{
    tess_status status = TESS_OK;
    const int64_t pixels = work->shape.nx * work->shape.ny;
    cuda_view mask = {0};
    if (begin->mask) TESS_TRY(cuda_rows_view(begin->mask, &mask));
    TESS_TRY(cuda_allow(&work->shape, &mask.pixels, work->is_nan, work->allowed));
    work->found = NULL;
    if (begin->found) {
        TESS_TRY(tess_device_upload(work->found_rows, begin->found,
                                    pixels * (int64_t)sizeof *begin->found));
        work->found = work->found_rows;
    }
cleanup:
    cuda_rows_free(&mask);
    return status;
}

/* Puts the caller's rows into the first slot. A pixel that is NaN becomes 0 there, and
 * gets no components, as one outside the mask. */
static tess_status take_images(clean_work *work, const clean_begin *begin)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_device_zero(work->is_nan, work->shape.nx * work->shape.ny));
    for (int k = 0; k < work->layers.count; ++k)
        TESS_TRY(tess_device_zero(work->slot[0].image[k], work->image_bytes));
    for (int i = 0; i < work->setup->images.num_images; ++i)
        if (cuda_has_data(work, i)) TESS_TRY(take_image(work, i, &begin->residual[i]));
    TESS_TRY(take_masks(work, begin));
cleanup:
    return status;
}

/* Measures the noise, and fills the mean of the first slot. */
static tess_status measure_noise(clean_work *work, bool local_rms, clean_noise *noise)
{
    tess_status status = TESS_OK;
    cuda_slot *slot = &work->slot[0];
    work->factor = NULL;
    TESS_TRY(cuda_slot_linear(work, slot));
    TESS_TRY(cuda_deviation(work, slot->mean, noise));
    noise->median = 0;
    if (local_rms) {
        TESS_TRY(cuda_local_rms(work, slot->mean, &noise->sigma));
        work->factor = work->factor_rows;
    }
    /* the median of roots or squares of noise is not 0 */
    if (!clean_join_is_linear(&work->setup->join)) {
        TESS_TRY(cuda_slot_magnitude(work, slot));
        TESS_TRY(cuda_deviation(work, slot->mean, noise));
    }
    TESS_TRY(cuda_slot_mean(work, slot));
cleanup:
    return status;
}

static tess_status cuda_begin(clean_work *work, const clean_begin *begin,
                              clean_noise *noise)
{
    tess_status status = TESS_OK;
    cuda_slot *slot = &work->slot[0];
    work->version = 0;
    work->slot[1].scale = -1;
    slot->scale = 0;
    slot->version = 0;
    work->mean_scale = work->setup->scale_px[0] > 0 ? -1 : 0;
    work->mean_version = 0;
    work->kept = cuda_num_slots(work->setup) - 1;
    TESS_TRY(take_images(work, begin));
    TESS_TRY(cuda_begin_layers(work));
    TESS_TRY(measure_noise(work, begin->local_rms, noise));
    if (clean_is_multiscale(work->setup)) TESS_TRY(cuda_make_residual(work, slot));
    if (work->setup->scale_px[0] > 0) slot->scale = -1; /* the scale 0 is not cleaned */
cleanup:
    return tess_comm_agree(work->setup->comm, status);
}

/* The slot that holds the residual at a scale, or NULL. */
static cuda_slot *slot_with(clean_work *work, int scale)
{
    for (int k = 0; k < cuda_num_slots(work->setup); ++k)
        if (work->slot[k].scale == scale && work->slot[k].version == work->version)
            return &work->slot[k];
    return NULL;
}

static tess_status cuda_measure(clean_work *work, int scale, clean_peak *peak)
{
    tess_status status = TESS_OK;
    const double start = tess_time_now();
    cuda_slot *slot = slot_with(work, scale);
    if (!slot) {
        slot = &work->slot[clean_is_multiscale(work->setup) ? !work->kept : 0];
        TESS_TRY(cuda_make_scale(work, scale, slot));
    }
    work->measured = (int)(slot - work->slot);
    TESS_TRY(cuda_slot_peak(work, slot, peak));
    work->transform_s += tess_time_now() - start;
cleanup:
    return tess_comm_agree(work->setup->comm, status);
}

static void cuda_keep(clean_work *work)
{
    work->kept = work->measured;
}

static tess_status cuda_count(clean_work *work, int scale, double from, int64_t *pixels)
{
    (void)scale;
    return tess_comm_agree(
        work->setup->comm,
        cuda_slot_count(work, &work->slot[work->kept], from, pixels));
}

static tess_status cuda_loop_agreed(clean_work *work, clean_loop *loop,
                                    clean_components *found)
{
    return tess_comm_agree(work->setup->comm, cuda_loop(work, loop, found));
}

static tess_status cuda_subtract_merged(clean_work *work, int scale,
                                        clean_components *merged)
{
    tess_status status = TESS_OK;
    const double start = tess_time_now();
    TESS_TRY(clean_components_merge(merged));
    TESS_TRY(cuda_subtract(work, scale, merged));
    ++work->version;
    if (!clean_is_multiscale(work->setup)) {
        work->slot[0].version = work->version;
        TESS_TRY(cuda_slot_mean(work, &work->slot[0]));
    }
    work->transform_s += tess_time_now() - start;
cleanup:
    return tess_comm_agree(work->setup->comm, status);
}

/* ---- end ---- */

/* The slot that has the residual itself at the end of a minor loop. */
static tess_status plain_slot(clean_work *work, cuda_slot **slot)
{
    tess_status status = TESS_OK;
    *slot = &work->slot[0];
    if (!clean_is_multiscale(work->setup)) return TESS_OK;
    /* the residual at scale 0, whether or not this scale is cleaned */
    *slot = work->setup->scale_px[0] > 0 ? NULL : slot_with(work, 0);
    if (*slot) {
        if (work->mean_spectrum) TESS_TRY(cuda_make_images(work, *slot));
        return status;
    }
    *slot = &work->slot[!work->kept];
    TESS_TRY(cuda_make_plain(work, *slot));
cleanup:
    return status;
}

/* Gives an image its residual, and adds it to the mean. */
static tess_status give_image(clean_work *work, int image, const cuda_slot *slot,
                              const tess_rows *residual, double *mean)
{
    tess_status status = TESS_OK;
    cuda_view view = {0};
    TESS_TRY(cuda_rows_view(residual, &view));
    if (work->version > 0 && work->layers.are_sums) {
        TESS_TRY(cuda_make_change(work, image));
        TESS_TRY(cuda_put_less(&work->shape, work->plane, &view.pixels));
    } else if (work->version > 0)
        TESS_TRY(
            cuda_put(&work->shape, slot->image[image], work->is_nan, &view.pixels));
    if (work->setup->join.share[image] > 0)
        TESS_TRY(cuda_add_pixels(&work->shape, &view.pixels,
                                 work->setup->join.share[image], mean));
    if (work->version > 0) TESS_TRY(cuda_rows_put_back(residual, &view));
cleanup:
    cuda_rows_free(&view);
    return status;
}

/* Gives the caller its rows back, which stay as they are if no component was found. */
static tess_status give_images(clean_work *work, const tess_rows *residual, double *rms)
{
    tess_status status = TESS_OK;
    const int64_t bytes = work->shape.nx * work->shape.ny * (int64_t)sizeof(double);
    cuda_pixels mean = {.bytes = sizeof(double)};
    cuda_slot *slot = NULL;
    cuda_row_sum sum;
    if (work->version > 0 && !work->layers.are_sums) TESS_TRY(plain_slot(work, &slot));
    TESS_TRY(tess_device_alloc(bytes, "mean residual", &mean.value));
    TESS_TRY(tess_device_zero(mean.value, bytes));
    for (int i = 0; i < work->setup->images.num_images; ++i)
        if (cuda_has_data(work, i))
            TESS_TRY(give_image(work, i, slot, &residual[i], mean.value));
    TESS_TRY(cuda_sums(work, &mean, &sum));
    *rms = sum.count > 0 ? sqrt(sum.squares / (double)sum.count) : 0;
cleanup:
    tess_device_free(mean.value);
    return status;
}

static tess_status cuda_finish(clean_work *work, const tess_rows *residual, double *rms)
{
    return tess_comm_agree(work->setup->comm, give_images(work, residual, rms));
}

static void cuda_spent(const clean_work *work, double *transforms, double *seconds)
{
    *transforms = work->transforms;
    *seconds = work->transform_s;
}

extern const tess_clean_ops tess_clean_ops_cuda;

const tess_clean_ops tess_clean_ops_cuda = {.name = "cuda",
                                            .lacks = cuda_lacks,
                                            .create = cuda_create,
                                            .destroy = cuda_work_destroy,
                                            .set_psf = cuda_set_psf,
                                            .psf_peaks = cuda_psf_peaks,
                                            .begin = cuda_begin,
                                            .measure = cuda_measure,
                                            .keep = cuda_keep,
                                            .count = cuda_count,
                                            .loop = cuda_loop_agreed,
                                            .subtract = cuda_subtract_merged,
                                            .finish = cuda_finish,
                                            .add = cuda_add,
                                            .spent = cuda_spent,
                                            .bytes = cuda_bytes,
                                            .device_bytes = cuda_device_bytes};
