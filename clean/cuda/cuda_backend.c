/* The cuda backend: the residual images of a minor loop in the memory of a device. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cuda_borders.h"
#include "cuda_grids.h"
#include "cuda_local_rms.h"
#include "cuda_loop.h"
#include "cuda_noise.h"
#include "cuda_restore.h"
#include "cuda_rows.h"
#include "cuda_slot.h"
#include "cuda_spectra.h"
#include "tess_device.h"
#include "tess_log.h"
#include "tess_mem.h"

/* ---- what it takes ---- */

static bool cuda_lacks(const clean_setup *setup, char *text, int size)
{
    const double room = (double)tess_device_room();
    const int layers = clean_layers_count(setup);
    double least, all;
    if (layers > CUDA_MOST_LAYERS)
        snprintf(text, (size_t)size,
                 "%d images are cleaned together, and a device takes %d", layers,
                 CUDA_MOST_LAYERS);
    else if (setup->opts.method.cycle != TESS_CLEAN_CYCLE_list)
        snprintf(text, (size_t)size, "this minor cycle is written for them");
    else if (setup->comm && tess_comm_rank(setup->comm) > 0)
        return false; /* the device of rank 0 computes */
    else {
        cuda_work_bytes(setup, &least, &all);
        if (least <= room) return false;
        snprintf(text, (size_t)size,
                 "they would take %s of the device, and %s are free",
                 tess_mem_text(least), tess_mem_text(room));
    }
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
    TESS_TRY(cuda_work_create(setup, &work));
    for (int s = 0; status == TESS_OK && s < setup->num_scales; ++s)
        status = cuda_make_kernel(work, s);
    TESS_TRY(tess_comm_agree(setup->comm, status));
    *work_out = work;
    work = NULL;
cleanup:
    cuda_work_destroy(work);
    return status;
}

/* What has become of work of a rank, on all ranks, with what it found: `bytes` bytes.
 * Collective. */
static tess_status share_from(const clean_work *work, int from, tess_status status,
                              void *found, int64_t bytes)
{
    TESS_TRY(tess_comm_agree(work->setup->comm, status));
    if (work->ranks.num > 1)
        TESS_TRY(tess_comm_bcast(work->setup->comm, found, bytes, from));
cleanup:
    return status;
}

/* The same of the rank that leads. */
static tess_status share(const clean_work *work, tess_status status, void *found,
                         int64_t bytes)
{
    return share_from(work, 0, status, found, bytes);
}

/* ---- PSFs ---- */

static tess_status cuda_set_psf(clean_work *work, int image, const tess_rows *psf)
{
    tess_status status = TESS_OK;
    const int64_t scales = work->setup->num_scales;
    double *peak = work->psf_peak + image * scales;
    double *square = work->psf_square + image * scales;
    cuda_view view = {0};
    TESS_TRY(cuda_rows_gather(work, psf, &view));
    if (work->ranks.holds) status = cuda_make_psf(work, image, &view.pixels);
    TESS_TRY(share(work, status, peak, scales * (int64_t)sizeof *peak));
    TESS_TRY(share(work, status, square, scales * (int64_t)sizeof *square));
cleanup:
    cuda_rows_free(&view);
    return status;
}

static void cuda_psf_peaks(const clean_work *work, double *peak)
{
    clean_psf_peaks(work->setup, work->psf_peak, peak);
}

static tess_status cuda_psf_squares(clean_work *work, double *square)
{
    clean_psf_peaks(work->setup, work->psf_square, square);
    return TESS_OK;
}

/* ---- residuals ---- */

/* layers of the first slot += a residual image of the caller. */
static tess_status add_image(clean_work *work, int image, const cuda_pixels *pixels)
{
    tess_status status = TESS_OK;
    const cuda_layers *layers = &work->layers;
    const cuda_slot *slot = &work->slot[0];
    const int images = work->setup->images.num_images;
    for (int t = 0; layers->are_sums && t < layers->count; ++t)
        TESS_TRY(cuda_take(&work->shape, pixels, layers->weights[t * images + image],
                           slot->image[t], work->mask.is_nan));
    if (!layers->are_sums)
        TESS_TRY(
            cuda_take(&work->shape, pixels, 1, slot->image[image], work->mask.is_nan));
cleanup:
    return status;
}

/* Collective. */
static tess_status take_image(clean_work *work, int image, const tess_rows *residual)
{
    tess_status status = TESS_OK;
    cuda_view view = {0};
    TESS_TRY(cuda_rows_gather(work, residual, &view));
    if (work->ranks.holds) status = add_image(work, image, &view.pixels);
    TESS_TRY(tess_comm_agree(work->setup->comm, status));
cleanup:
    cuda_rows_free(&view);
    return status;
}

/* Takes the user's mask, and the automatic one. Collective. */
static tess_status take_masks(clean_work *work, const clean_begin *begin)
{
    tess_status status = TESS_OK;
    const tess_clean_images *images = &work->setup->images;
    /* words of a mask are as wide as single precision */
    tess_rows found = tess_rows_of(images->nx, images->ny, images->row_first,
                                   images->num_rows, TESS_PIXEL_SINGLE);
    cuda_view mask = {0};
    cuda_rows_free(&work->mask.found);
    if (begin->mask) TESS_TRY(cuda_rows_gather(work, begin->mask, &mask));
    if (work->ranks.holds)
        status = cuda_allow(&work->shape, &mask.pixels, work->mask.is_nan,
                            work->mask.allowed);
    TESS_TRY(tess_comm_agree(work->setup->comm, status));
    found.value = (void *)(uintptr_t)begin->found;
    if (begin->found) TESS_TRY(cuda_rows_gather(work, &found, &work->mask.found));
cleanup:
    cuda_rows_free(&mask);
    return status;
}

static tess_status clear_images(clean_work *work)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_device_zero(work->mask.is_nan, work->shape.nx * work->shape.ny));
    for (int k = 0; k < work->layers.count; ++k)
        TESS_TRY(tess_device_zero(work->slot[0].image[k], work->bytes.image));
cleanup:
    return status;
}

/* Puts the caller's rows into the first slot. A pixel that is NaN becomes 0 there, and
 * gets no components, as one outside the mask. Collective. */
static tess_status take_images(clean_work *work, const clean_begin *begin)
{
    tess_status status = work->ranks.holds ? clear_images(work) : TESS_OK;
    TESS_TRY(tess_comm_agree(work->setup->comm, status));
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
    work->mask.factor = NULL;
    TESS_TRY(cuda_slot_linear(work, slot));
    TESS_TRY(cuda_deviation(work, slot->mean, noise));
    noise->median = 0;
    if (local_rms) {
        TESS_TRY(cuda_local_rms(work, slot->mean, &noise->sigma));
        work->mask.factor = work->mask.factor_rows;
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

/* What a minor loop begins with, when images and masks are there. */
static tess_status begin_here(clean_work *work, bool local_rms, clean_noise *noise)
{
    tess_status status = TESS_OK;
    cuda_slot *slot = &work->slot[0];
    slot->scale = 0;
    slot->version = 0;
    work->slot[1].scale = -1;
    work->mean.scale = work->setup->scale_px[0] > 0 ? -1 : 0;
    work->mean.version = 0;
    work->kept = cuda_num_slots(work->setup) - 1;
    TESS_TRY(cuda_begin_layers(work));
    TESS_TRY(cuda_grids_choose(work));
    TESS_TRY(measure_noise(work, local_rms, noise));
    if (clean_is_multiscale(work->setup)) TESS_TRY(cuda_make_residual(work, slot));
    if (work->setup->scale_px[0] > 0) slot->scale = -1; /* the scale 0 is not cleaned */
cleanup:
    return status;
}

static tess_status cuda_begin(clean_work *work, const clean_begin *begin,
                              clean_noise *noise)
{
    tess_status status = TESS_OK;
    work->version = 0;
    TESS_TRY(take_images(work, begin));
    if (work->ranks.holds) status = begin_here(work, begin->local_rms, noise);
    TESS_TRY(share(work, status, noise, sizeof *noise));
cleanup:
    return status;
}

/* The slot that holds the residual at a scale, or NULL. */
static cuda_slot *slot_with(clean_work *work, int scale)
{
    for (int k = 0; k < cuda_num_slots(work->setup); ++k)
        if (work->slot[k].scale == scale && work->slot[k].version == work->version)
            return &work->slot[k];
    return NULL;
}

static tess_status measure_here(clean_work *work, int scale, clean_peak *peak)
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
    return status;
}

/* Measures the active scales of this rank, and keeps the image of the best one, as the
 * order of work does with those of a rank alone. */
static tess_status measure_own(clean_work *work, const uint8_t *active)
{
    tess_status status = TESS_OK;
    const clean_setup *setup = work->setup;
    double best = 0;
    for (int s = 0; s < setup->num_scales; ++s) {
        clean_peak *peak = &work->ranks.peak[s];
        if (!active[s] || !cuda_owns(work, s)) continue;
        TESS_TRY(measure_here(work, s, peak));
        if (peak->index < 0 || !(fabs(peak->value) * setup->bias[s] > best)) continue;
        best = fabs(peak->value) * setup->bias[s];
        work->kept = work->measured;
    }
cleanup:
    return status;
}

static tess_status cuda_share_scales(clean_work *work, const uint8_t *active)
{
    tess_status status = TESS_OK;
    const int scales = work->setup->num_scales;
    if (!work->ranks.shares) return TESS_OK;
    status = measure_own(work, active);
    TESS_TRY(tess_comm_agree(work->setup->comm, status));
    TESS_TRY(tess_comm_allgather(work->setup->comm, work->ranks.peak,
                                 scales * (int64_t)sizeof *work->ranks.peak,
                                 work->ranks.peak + scales));
cleanup:
    return status;
}

static tess_status cuda_measure(clean_work *work, int scale, clean_peak *peak)
{
    const int64_t row = cuda_owner_of(work, scale) + 1;
    tess_status status = TESS_OK;
    if (work->ranks.shares) {
        *peak = work->ranks.peak[row * work->setup->num_scales + scale];
        return TESS_OK;
    }
    if (work->ranks.leads) status = measure_here(work, scale, peak);
    return share(work, status, peak, sizeof *peak);
}

static void cuda_keep(clean_work *work)
{
    if (!work->ranks.shares) work->kept = work->measured;
}

static tess_status cuda_count(clean_work *work, int scale, double from, int64_t *pixels)
{
    const cuda_slot *slot = &work->slot[work->kept];
    const tess_status status =
        cuda_owns(work, scale) ? cuda_slot_count(work, slot, from, pixels) : TESS_OK;
    return share_from(work, cuda_owner_of(work, scale), status, pixels, sizeof *pixels);
}

/* Tells other ranks the components of a scale that its owner has found. Collective. */
static tess_status share_found(const clean_work *work, int scale, int64_t count,
                               clean_components *found)
{
    tess_status status = TESS_OK;
    const int owner = cuda_owner_of(work, scale);
    tess_comm *comm = work->setup->comm;
    const int64_t images = found->num_images;
    clean_components some = {.num_images = found->num_images, .count = count};
    if (work->ranks.num == 1 || count == 0) return TESS_OK;
    some.index = tess_alloc(count, sizeof *some.index);
    some.flux = tess_alloc(count * images, sizeof *some.flux);
    TESS_TRY(tess_comm_agree(comm, some.index && some.flux ? TESS_OK : TESS_ERR_ALLOC));
    if (cuda_owns(work, scale)) {
        const int64_t first = found->count - count;
        memcpy(some.index, found->index + first, (size_t)count * sizeof *some.index);
        memcpy(some.flux, found->flux + first * images,
               (size_t)(count * images) * sizeof *some.flux);
    }
    TESS_TRY(
        tess_comm_bcast(comm, some.index, count * (int64_t)sizeof *some.index, owner));
    TESS_TRY(tess_comm_bcast(comm, some.flux,
                             count * images * (int64_t)sizeof *some.flux, owner));
    if (!cuda_owns(work, scale)) status = clean_components_copy(found, &some, 0, count);
    TESS_TRY(tess_comm_agree(comm, status));
cleanup:
    clean_components_free(&some);
    return status;
}

static tess_status cuda_loop_shared(clean_work *work, clean_loop *loop,
                                    clean_components *found)
{
    struct {
        int64_t iterations;
        clean_peak peak;
        double seconds;
    } end = {0};
    tess_status status =
        cuda_owns(work, loop->scale) ? cuda_loop(work, loop, found) : TESS_OK;
    end.iterations = loop->iterations;
    end.peak = loop->peak;
    end.seconds = loop->seconds;
    TESS_TRY(
        share_from(work, cuda_owner_of(work, loop->scale), status, &end, sizeof end));
    loop->iterations = end.iterations;
    loop->peak = end.peak;
    loop->seconds = end.seconds;
    TESS_TRY(share_found(work, loop->scale, end.iterations, found));
cleanup:
    return status;
}

static tess_status subtract_here(clean_work *work, int scale,
                                 const clean_components *merged)
{
    tess_status status = TESS_OK;
    const double start = tess_time_now();
    TESS_TRY(clean_has_borders(work->setup) ? cuda_borders_subtract(work, scale, merged)
                                            : cuda_subtract(work, scale, merged));
    if (!clean_is_multiscale(work->setup)) {
        work->slot[0].version = work->version;
        TESS_TRY(cuda_slot_mean(work, &work->slot[0]));
    }
    work->transform_s += tess_time_now() - start;
cleanup:
    return status;
}

static tess_status cuda_subtract_merged(clean_work *work, int scale,
                                        clean_components *merged)
{
    tess_status status = clean_components_merge(merged);
    ++work->version;
    if (status == TESS_OK && work->ranks.holds)
        status = subtract_here(work, scale, merged);
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
        if (work->mean.spectrum) TESS_TRY(cuda_make_images(work, *slot));
        return status;
    }
    *slot = &work->slot[!work->kept];
    TESS_TRY(cuda_make_plain(work, *slot));
cleanup:
    return status;
}

/* Changes a residual image of the caller, and adds it to the mean. */
static tess_status change_image(clean_work *work, int image, const cuda_slot *slot,
                                const cuda_pixels *pixels, double *mean)
{
    tess_status status = TESS_OK;
    const double share_of = work->setup->join.share[image];
    if (work->version > 0 && work->layers.are_sums) {
        TESS_TRY(cuda_make_change(work, image));
        TESS_TRY(cuda_put_less(&work->shape, work->plane, pixels));
    } else if (work->version > 0)
        TESS_TRY(cuda_put(&work->shape, slot->image[image], work->mask.is_nan, pixels));
    if (share_of > 0) TESS_TRY(cuda_add_pixels(&work->shape, pixels, share_of, mean));
cleanup:
    return status;
}

/* Gives the caller its rows of an image back, which stay as they are if no component
 * was found. Collective. */
static tess_status give_image(clean_work *work, int image, const cuda_slot *slot,
                              const tess_rows *residual, double *mean)
{
    tess_status status = TESS_OK;
    cuda_view view = {0};
    TESS_TRY(cuda_rows_gather(work, residual, &view));
    if (work->ranks.leads) status = change_image(work, image, slot, &view.pixels, mean);
    TESS_TRY(tess_comm_agree(work->setup->comm, status));
    if (work->version > 0) TESS_TRY(cuda_rows_scatter(work, &view, residual));
cleanup:
    cuda_rows_free(&view);
    return status;
}

/* Makes the residual itself, and a mean of zeros. */
static tess_status prepare_end(clean_work *work, cuda_slot **slot, cuda_pixels *mean)
{
    tess_status status = TESS_OK;
    const int64_t bytes = work->shape.nx * work->shape.ny * (int64_t)sizeof(double);
    if (work->version > 0 && !work->layers.are_sums) TESS_TRY(plain_slot(work, slot));
    TESS_TRY(tess_device_alloc(bytes, "mean residual", &mean->value));
    TESS_TRY(tess_device_zero(mean->value, bytes));
cleanup:
    return status;
}

static tess_status cuda_finish(clean_work *work, const tess_rows *residual, double *rms)
{
    tess_status status = TESS_OK;
    cuda_pixels mean = {.bytes = sizeof(double)};
    cuda_slot *slot = NULL;
    cuda_row_sum sum = {0};
    if (work->ranks.leads) status = prepare_end(work, &slot, &mean);
    TESS_TRY(tess_comm_agree(work->setup->comm, status));
    for (int i = 0; i < work->setup->images.num_images; ++i)
        if (cuda_has_data(work, i))
            TESS_TRY(give_image(work, i, slot, &residual[i], mean.value));
    if (work->ranks.leads) status = cuda_sums(work, &mean, &sum);
    *rms = sum.count > 0 ? sqrt(sum.squares / (double)sum.count) : 0;
    TESS_TRY(share(work, status, rms, sizeof *rms));
    cuda_spare_windows(work);
cleanup:
    tess_device_free(mean.value);
    return status;
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
                                            .psf_squares = cuda_psf_squares,
                                            .begin = cuda_begin,
                                            .share_scales = cuda_share_scales,
                                            .measure = cuda_measure,
                                            .keep = cuda_keep,
                                            .count = cuda_count,
                                            .loop = cuda_loop_shared,
                                            .subtract = cuda_subtract_merged,
                                            .finish = cuda_finish,
                                            .add = cuda_add,
                                            .spent = cuda_spent,
                                            .bytes = cuda_bytes,
                                            .device_bytes = cuda_device_bytes,
                                            .restore = cuda_restore};
