/* The cpu backend: its memory, and the residual images of a minor loop in this memory.
 */
#include <math.h>

#include "clean_scales.h"
#include "cpu_borders.h"
#include "cpu_grids.h"
#include "cpu_layers.h"
#include "cpu_list.h"
#include "cpu_loop.h"
#include "cpu_noise.h"
#include "cpu_slot.h"
#include "cpu_spectra.h"
#include "cpu_window.h"
#include "tess_exact.h"
#include "tess_mem.h"
#include "tess_real.h"

/* A job makes about this many transforms, by which the effort of planning FFTs is
 * chosen. */
enum { USES = 100 };

static int num_slots(const clean_work *work)
{
    return clean_is_multiscale(work->setup) ? 2 : 1;
}

static bool has_own_mean(const clean_setup *setup)
{
    return setup->images.num_images > 1 ||
           setup->opts.local.kind != TESS_CLEAN_GLOBAL_RMS;
}

static tess_convolve_opts transforms_of(const clean_setup *setup)
{
    const tess_clean_images *images = &setup->images;
    return (tess_convolve_opts){.nx = images->nx,
                                .ny = images->ny,
                                .row_first = images->row_first,
                                .num_rows = images->num_rows,
                                .reach = clean_reach(setup),
                                .uses = USES,
                                .is_double = setup->opts.is_double,
                                .repeatable = setup->opts.repeatable,
                                .threads = setup->opts.threads};
}

/* ---- memory ---- */

static tess_status allocate_slots(clean_work *work)
{
    tess_status status = TESS_OK;
    const int layers = work->layers.count;
    for (int k = 0; k < num_slots(work); ++k) {
        cpu_slot *slot = &work->slot[k];
        slot->scale = -1;
        slot->image = k > 0 && clean_has_mean(work->setup)
                          ? work->slot[0].image
                          : cpu_arrays_create(layers, work->pixels, work->real_bytes);
        if (!slot->image) TESS_FAIL(TESS_ERR_ALLOC, "residual images to clean");
        slot->mean = has_own_mean(work->setup)
                         ? tess_alloc_zero(work->pixels, work->real_bytes)
                         : slot->image[0];
        slot->row_peak =
            tess_alloc(work->setup->images.num_rows, sizeof *slot->row_peak);
        if (!slot->mean || !slot->row_peak)
            TESS_FAIL(TESS_ERR_ALLOC, "mean residual image to clean");
    }
cleanup:
    return status;
}

static tess_status allocate(clean_work *work)
{
    tess_status status = TESS_OK;
    const clean_setup *setup = work->setup;
    const int images = setup->images.num_images;
    const int psfs = images * clean_num_psf_places(setup);
    const size_t line = cpu_line_bytes(work);
    TESS_TRY(cpu_layers_create(work));
    TESS_TRY(allocate_slots(work));
    work->psf = cpu_arrays_create(psfs, work->columns, line);
    if (work->layers.basis)
        work->mean.spectrum = work->layers.residual[0];
    else if (clean_has_mean(setup))
        work->mean.spectrum = tess_alloc_zero(work->columns, line);
    work->kernel = tess_alloc_zero(setup->num_scales, sizeof *work->kernel);
    work->psf_peak = tess_alloc_zero((int64_t)psfs * setup->num_scales, sizeof(double));
    work->allowed = tess_alloc_zero(work->pixels, 1);
    work->is_nan = tess_alloc_zero(work->pixels, 1);
    work->room.view = tess_alloc_zero(images, sizeof *work->room.view);
    work->room.allowed = tess_alloc_zero(setup->opts.threads, (size_t)setup->images.nx);
    work->room.joined = tess_alloc_zero(2 * setup->opts.threads * setup->images.nx,
                                        sizeof *work->room.joined);
    if (!work->room.joined || !work->psf || !work->kernel || !work->psf_peak ||
        !work->allowed || !work->is_nan || !work->room.view || !work->room.allowed ||
        (clean_has_mean(setup) && !work->mean.spectrum))
        TESS_FAIL(TESS_ERR_ALLOC, "spectra of images to clean");
    if (setup->opts.local.kind != TESS_CLEAN_GLOBAL_RMS) {
        work->factor.rows = tess_alloc_zero(work->pixels, work->real_bytes);
        if (!work->factor.rows)
            TESS_FAIL(TESS_ERR_ALLOC, "local rms of images to clean");
    }
cleanup:
    return status;
}

static void drop_views(clean_work *work)
{
    for (int k = 0; work->room.view && k < work->setup->images.num_images; ++k)
        tess_rows_free(&work->room.view[k]);
}

static void cpu_destroy(clean_work *work)
{
    if (!work) return;
    const int images = work->setup->images.num_images;
    drop_views(work);
    tess_free(work->room.view);
    for (int k = 0; k < 2; ++k) {
        if (has_own_mean(work->setup)) tess_free(work->slot[k].mean);
        if (k == 0 || !clean_has_mean(work->setup))
            cpu_arrays_free(work->slot[k].image, work->layers.count);
        tess_free(work->slot[k].row_peak);
    }
    cpu_arrays_free(work->psf, images * clean_num_psf_places(work->setup));
    if (!work->layers.basis) tess_free(work->mean.spectrum);
    cpu_layers_free(work);
    cpu_arrays_free(work->kernel, work->setup->num_scales);
    cpu_window_free(work->window);
    cpu_grids_free(work->grids);
    tess_convolve_destroy(work->plan);
    tess_free(work->psf_peak);
    tess_free(work->allowed);
    tess_free(work->is_nan);
    tess_free(work->room.allowed);
    tess_free(work->room.joined);
    tess_free(work->factor.rows);
    tess_free(work);
}

static tess_status cpu_create(const clean_setup *setup, clean_work **work_out)
{
    tess_status status = TESS_OK;
    const tess_convolve_opts transforms = transforms_of(setup);
    int64_t first;
    clean_work *work = tess_alloc_zero(1, sizeof *work);
    TESS_TRY(tess_comm_agree(setup->comm, work ? TESS_OK : TESS_ERR_ALLOC));
    work->setup = setup;
    work->vector = cpu_vector_best();
    work->is_double = setup->opts.is_double;
    work->real_bytes = work->is_double ? 8 : 4;
    work->pixels = setup->images.num_rows * setup->images.nx;
    TESS_TRY(tess_convolve_create(setup->comm, &transforms, &work->plan));
    tess_convolve_columns(work->plan, &first, &work->columns, &work->length);
    TESS_TRY(tess_comm_agree(setup->comm, allocate(work)));
    TESS_TRY(tess_comm_agree(setup->comm, cpu_grids_create(setup, &work->grids)));
    TESS_TRY(cpu_window_create(work, &work->window));
    for (int s = 0; s < setup->num_scales; ++s)
        TESS_TRY(cpu_make_kernel(work, s));
    *work_out = work;
    work = NULL;
cleanup:
    cpu_destroy(work);
    return status;
}

static void cpu_bytes(const clean_setup *setup, int num_ranks, double *rank_bytes,
                      double *node_bytes)
{
    const clean_work like = {.setup = setup};
    const tess_convolve_opts transforms = transforms_of(setup);
    const double real_bytes = setup->opts.is_double ? 8 : 4;
    const bool sums = clean_layers_are_sums(setup);
    const double images = setup->images.num_images, layers = clean_layers_count(setup);
    const double pixels = (double)(setup->images.num_rows * setup->images.nx);
    double plan, spectrum, kernels = 0;
    tess_convolve_bytes(&transforms, &plan, &spectrum);
    for (int s = 0; s < setup->num_scales; ++s)
        kernels += setup->scale_px[s] > 0 ? 0.5 : 0;
    const double means = has_own_mean(setup) ? num_slots(&like) : 0;
    const double sets = clean_has_mean(setup) ? 1 : num_slots(&like);
    const double spectra = images * clean_num_psf_places(setup) + layers + kernels +
                           (sums                    ? layers + clean_layers_psfs(setup)
                            : clean_has_mean(setup) ? 1
                                                    : 0);
    *rank_bytes = plan + spectrum * spectra / num_ranks +
                  pixels * ((sets * layers + means) * real_bytes + 2);
    if (setup->opts.local.kind != TESS_CLEAN_GLOBAL_RMS)
        *rank_bytes += pixels * real_bytes;
    *rank_bytes += cpu_window_kept_bytes(setup) / num_ranks;
    *rank_bytes += cpu_grids_bytes(setup, &transforms) + cpu_borders_bytes(setup);
    *node_bytes = cpu_window_bytes(setup);
}

/* ---- PSFs ---- */

/* Adds Σ PSF(x) K(x) around the centre, over this rank's rows. This is the
 * convolution's value at the centre, because the kernel is even. */
static void add_peak(const clean_work *work, const tess_rows *psf, const double *kernel,
                     int64_t half, tess_exact *sum)
{
    const tess_clean_images *images = &work->setup->images;
    for (int64_t dy = -half; dy <= half; ++dy) {
        const int64_t row = images->ny / 2 + dy - images->row_first;
        if (row < 0 || row >= images->num_rows) continue;
        for (int64_t dx = -half; dx <= half; ++dx) {
            const int64_t x = images->nx / 2 + dx;
            if (x < 0 || x >= images->nx) continue;
            const double value = tess_rows_pixel(psf, row * images->nx + x);
            if (isfinite(value))
                tess_exact_add(
                    sum, value * kernel[(dy + half) * (2 * half + 1) + dx + half]);
        }
    }
}

static tess_status psf_peak(clean_work *work, int number, int scale,
                            const tess_rows *psf)
{
    tess_status status = TESS_OK;
    const clean_setup *setup = work->setup;
    const double alpha = setup->scale_px[scale];
    const int64_t half = clean_kernel_half(setup->opts.shape, alpha);
    tess_exact *sum = tess_alloc_zero(1, sizeof *sum);
    double *kernel = tess_alloc((2 * half + 1) * (2 * half + 1), sizeof *kernel);
    TESS_TRY(tess_comm_agree(setup->comm, sum && kernel ? TESS_OK : TESS_ERR_ALLOC));
    clean_kernel_fill(setup->opts.shape, alpha, kernel);
    add_peak(work, psf, kernel, half, sum);
    TESS_TRY(
        tess_comm_allreduce_i64(setup->comm, sum->word, TESS_EXACT_WORDS, TESS_SUM));
    work->psf_peak[number * setup->num_scales + scale] = tess_exact_value(sum);
cleanup:
    tess_free(sum);
    tess_free(kernel);
    return status;
}

static tess_status cpu_set_psf(clean_work *work, int number, const tess_rows *psf)
{
    tess_status status = TESS_OK;
    tess_rows view = {0};
    TESS_TRY(tess_comm_agree(work->setup->comm, tess_rows_view(psf, &view)));
    TESS_TRY(cpu_make_psf(work, number, &view));
    for (int s = 0; s < work->setup->num_scales; ++s)
        TESS_TRY(psf_peak(work, number, s, &view));
    cpu_window_forget(work->window);
    cpu_grids_forget(work->grids);
    work->layers.has_psf = false;
cleanup:
    tess_rows_free(&view);
    return status;
}

static void cpu_psf_peaks(const clean_work *work, double *peak)
{
    clean_psf_peaks(work->setup, work->psf_peak, peak);
}

/* The mean PSF of several layers that are sums is that between the first ones. */
static tess_status cpu_psf_squares(clean_work *work, double *square)
{
    tess_status status = TESS_OK;
    const clean_setup *setup = work->setup;
    const int scales = setup->num_scales;
    const int num = clean_layers_are_sums(setup) ? 1 : setup->images.num_images;
    double *own = tess_alloc_zero((int64_t)num * scales, sizeof *own);
    TESS_TRY(tess_comm_agree(setup->comm, own ? TESS_OK : TESS_ERR_ALLOC));
    for (int s = 0; s < scales; ++s) {
        TESS_TRY(cpu_window_fill(work, s));
        for (int k = 0; k < num; ++k)
            if (cpu_layer_has_data(work, k))
                own[k * scales + s] = cpu_window_centre(work, k);
    }
    if (clean_layers_are_sums(setup))
        memcpy(square, own, (size_t)scales * sizeof *own);
    else
        clean_psf_peaks(setup, own, square);
cleanup:
    tess_free(own);
    return status;
}

/* ---- residuals ---- */

/* Views the caller's images that have data. Local. */
static tess_status view_images(clean_work *work, const tess_rows *residual)
{
    tess_status status = TESS_OK;
    for (int i = 0; i < work->setup->images.num_images; ++i)
        if (cpu_has_data(work, i))
            TESS_TRY(tess_rows_edit(&residual[i], true, &work->room.view[i]));
cleanup:
    return status;
}

/* Gives the caller's images what has been changed in their views. Local. */
static tess_status put_images_back(clean_work *work, const tess_rows *residual)
{
    tess_status status = TESS_OK;
    for (int i = 0; i < work->setup->images.num_images; ++i)
        if (cpu_has_data(work, i))
            TESS_TRY(tess_rows_put_back(&residual[i], &work->room.view[i]));
cleanup:
    return status;
}

/* A pixel of one of the caller's images; 0, and *is_nan becomes true, if it is NaN. */
static double pixel_of(const clean_work *work, int image, int64_t k, bool *is_nan)
{
    const double value = tess_rows_pixel(&work->room.view[image], k);
    if (isfinite(value)) return value;
    *is_nan = true;
    return 0;
}

/* Puts a pixel of the caller's images into the first slot. True: one of the images has
 * NaN there, which counts as 0. */
static bool take_pixel(const clean_work *work, int64_t k)
{
    bool is_nan = false;
    for (int i = 0; i < work->setup->images.num_images; ++i)
        if (cpu_has_data(work, i))
            tess_real_set(work->slot[0].image[i], work->is_double, k,
                          pixel_of(work, i, k, &is_nan));
    return is_nan;
}

/* As take_pixel(), into the layers of the first slot. */
static bool take_layers(const clean_work *work, int64_t k)
{
    const int num_images = work->setup->images.num_images;
    const cpu_layers *layers = &work->layers;
    double sum[TESS_CLEAN_MOST_TERMS];
    bool is_nan = false;
    for (int t = 0; t < layers->count; ++t)
        sum[t] = 0;
    for (int i = 0; i < num_images; ++i) {
        if (!cpu_has_data(work, i)) continue;
        const double value = pixel_of(work, i, k, &is_nan);
        for (int t = 0; t < layers->count; ++t)
            sum[t] += layers->weights[t * num_images + i] * value;
    }
    for (int t = 0; t < layers->count; ++t)
        tess_real_set(work->slot[0].image[t], work->is_double, k, sum[t]);
    return is_nan;
}

/* Puts the caller's rows into the first slot. A pixel that is NaN becomes 0 there, and
 * gets no components, as one outside the mask (NULL: there is none). */
static void take_rows(clean_work *work, const tess_rows *mask)
{
    const bool in_layers = work->layers.basis != NULL;
    int64_t num_valid = 0;
#pragma omp parallel for schedule(static) num_threads(work->setup->opts.threads)       \
    reduction(+ : num_valid)
    for (int64_t k = 0; k < work->pixels; ++k) {
        const bool is_nan = in_layers ? take_layers(work, k) : take_pixel(work, k);
        work->is_nan[k] = is_nan;
        work->allowed[k] = !is_nan && (!mask || tess_rows_pixel(mask, k) != 0);
        num_valid += !is_nan;
    }
    work->num_valid = num_valid;
}

/* Takes residuals and mask. Local. */
static tess_status take_images(clean_work *work, const clean_begin *begin)
{
    tess_status status = TESS_OK;
    tess_rows mask = {0};
    TESS_TRY(view_images(work, begin->residual));
    if (begin->mask) TESS_TRY(tess_rows_view(begin->mask, &mask));
    take_rows(work, begin->mask ? &mask : NULL);
cleanup:
    drop_views(work);
    tess_rows_free(&mask);
    return status;
}

/* The noise of what is searched, without signs. */
static tess_status measure_magnitudes(const clean_work *work, cpu_slot *slot,
                                      clean_noise *noise)
{
    const bool is_signed = work->setup->join.is_signed;
    if (is_signed) cpu_slot_magnitude(work, slot);
    const tess_status status = cpu_deviation(work, slot->mean, noise);
    if (is_signed) cpu_slot_mean(work, slot);
    return status;
}

static tess_status cpu_begin(clean_work *work, const clean_begin *begin,
                             clean_noise *noise)
{
    tess_status status = TESS_OK;
    const tess_convolve_opts transforms = transforms_of(work->setup);
    cpu_slot *slot = &work->slot[0];
    TESS_TRY(tess_comm_agree(work->setup->comm, take_images(work, begin)));
    TESS_TRY(cpu_grids_choose(work, &transforms));
    cpu_layers_begin(work);
    work->found = begin->found;
    work->version = 0;
    work->slot[1].scale = -1;
    slot->scale = 0;
    slot->version = 0;
    work->mean.scale = work->setup->scale_px[0] > 0 ? -1 : 0;
    work->mean.version = 0;
    work->kept = num_slots(work) - 1;
    work->factor.used = NULL;
    cpu_slot_linear(work, slot);
    TESS_TRY(cpu_deviation(work, slot->mean, noise));
    noise->median = 0;
    if (begin->local_rms) {
        TESS_TRY(cpu_local_rms(work, slot->mean, &noise->sigma));
        work->factor.used = work->factor.rows;
    }
    cpu_slot_mean(work, slot);
    /* the median of roots or squares of noise is not 0 */
    if (!clean_join_is_linear(&work->setup->join))
        TESS_TRY(measure_magnitudes(work, slot, noise));
    if (slot->mean == slot->image[0]) cpu_slot_peaks(work, slot);
    if (clean_is_multiscale(work->setup)) TESS_TRY(cpu_make_residual(work, slot));
    if (work->setup->scale_px[0] > 0) slot->scale = -1; /* the scale 0 is not cleaned */
cleanup:
    return status;
}

/* The slot that holds the residual at a scale, or NULL. */
static cpu_slot *slot_with(clean_work *work, int scale)
{
    for (int k = 0; k < num_slots(work); ++k)
        if (work->slot[k].scale == scale && work->slot[k].version == work->version)
            return &work->slot[k];
    return NULL;
}

static tess_status cpu_measure(clean_work *work, int scale, clean_peak *peak)
{
    tess_status status = TESS_OK;
    cpu_slot *slot = slot_with(work, scale);
    if (!slot) {
        slot = &work->slot[clean_is_multiscale(work->setup) ? !work->kept : 0];
        TESS_TRY(cpu_make_scale(work, scale, slot));
    }
    work->measured = (int)(slot - work->slot);
    TESS_TRY(cpu_slot_peak(work, slot, peak));
cleanup:
    return status;
}

static void cpu_keep(clean_work *work)
{
    work->kept = work->measured;
}

static void put_rows(const clean_work *work, const cpu_slot *slot)
{
    const clean_setup *setup = work->setup;
    for (int i = 0; i < setup->images.num_images; ++i) {
        const tess_rows *rows = &work->room.view[i];
        if (!cpu_has_data(work, i)) continue;
#pragma omp parallel for schedule(static) num_threads(setup->opts.threads)
        for (int64_t k = 0; k < work->pixels; ++k) {
            if (work->is_nan[k] && !isfinite(tess_rows_pixel(rows, k))) continue;
            tess_rows_set(rows, k, tess_real_at(slot->image[i], work->is_double, k));
        }
    }
}

/* Gives the caller its rows back, which stay as they are if no component was found. */
static tess_status cpu_finish(clean_work *work, const tess_rows *residual, double *rms)
{
    tess_status status = TESS_OK;
    cpu_slot *slot = &work->slot[0];
    TESS_TRY(tess_comm_agree(work->setup->comm, view_images(work, residual)));
    if (work->version > 0 && work->layers.basis) {
        TESS_TRY(cpu_layers_finish(work));
    } else if (work->version > 0) {
        if (clean_is_multiscale(work->setup)) {
            /* the residual at scale 0, whether or not this scale is cleaned */
            slot = work->setup->scale_px[0] > 0 ? NULL : slot_with(work, 0);
            if (slot) {
                TESS_TRY(cpu_make_images(work, slot));
            } else {
                slot = &work->slot[!work->kept];
                TESS_TRY(cpu_make_plain(work, slot));
            }
        }
        put_rows(work, slot);
    }
    TESS_TRY(cpu_rms(work, rms));
    if (work->version > 0) status = put_images_back(work, residual);
    TESS_TRY(tess_comm_agree(work->setup->comm, status));
    tess_convolve_rest(work->plan);
cleanup:
    drop_views(work);
    return status;
}

static void cpu_spent(const clean_work *work, double *transforms, double *seconds)
{
    double coarser, coarser_s;
    tess_convolve_spent(work->plan, transforms, seconds);
    cpu_grids_spent(work->grids, &coarser, &coarser_s);
    *transforms += coarser;
    *seconds += coarser_s;
}

/* Finds components by the algorithm of the options. Collective. */
static tess_status cpu_loop(clean_work *work, clean_loop *loop, clean_components *found)
{
    typedef tess_status cycle(clean_work *, clean_loop *, clean_components *);
#define CYCLE(name) cpu_cycle_##name,
    static cycle *const cycles[] = {TESS_CLEAN_CYCLES(CYCLE)};
#undef CYCLE
    return cycles[work->setup->opts.method.cycle](work, loop, found);
}

static tess_status cpu_subtract_any(clean_work *work, int scale,
                                    clean_components *merged)
{
    return clean_has_borders(work->setup) ? cpu_borders_subtract(work, scale, merged)
                                          : cpu_subtract(work, scale, merged);
}

const tess_clean_ops tess_clean_ops_cpu = {.name = "cpu",
                                           .create = cpu_create,
                                           .destroy = cpu_destroy,
                                           .set_psf = cpu_set_psf,
                                           .psf_peaks = cpu_psf_peaks,
                                           .psf_squares = cpu_psf_squares,
                                           .begin = cpu_begin,
                                           .measure = cpu_measure,
                                           .keep = cpu_keep,
                                           .count = cpu_count,
                                           .loop = cpu_loop,
                                           .subtract = cpu_subtract_any,
                                           .finish = cpu_finish,
                                           .add = cpu_add,
                                           .spent = cpu_spent,
                                           .bytes = cpu_bytes};
