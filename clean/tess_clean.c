/* The object of a CLEAN: creation, PSFs and masks. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "clean_object.h"
#include "clean_opts.h"
#include "tess_log.h"
#include "tess_mem.h"

bool clean_records(const tess_clean *clean)
{
    return clean->setup.opts.auto_mask > 0 && clean->major.phase == 1;
}

bool clean_is_masked(const tess_clean *clean)
{
    return clean->setup.opts.auto_mask > 0 && clean->major.phase == 2;
}

/* Everything but the communicator, the join and the backend's memory. */
static void setup_fill(clean_setup *setup, const tess_clean_images *images,
                       const tess_clean_opts *opts)
{
    setup->images = *images;
    setup->images.num_images = clean_join_count(images);
    setup->opts = *opts;
    setup->num_scales = tess_clean_scales(images, opts, setup->scale_px, setup->bias);
    setup->opts.scale_px = NULL;
    setup->images.weight = NULL;
    setup->images.join = (tess_clean_join){0};
    setup->border_x = (int64_t)lround(opts->border_percent / 100 * (double)images->nx);
    setup->border_y = (int64_t)lround(opts->border_percent / 100 * (double)images->ny);
}

/* Rows of an average of channels, without memory. */
static tess_rows average_rows(const tess_clean_images *images)
{
    return tess_rows_of(images->nx, images->ny, images->row_first, images->num_rows,
                        tess_pixel_of(images->averages_are_double));
}

/* Memory for averages of channels. */
static tess_status allocate_averages(tess_clean *clean)
{
    tess_status status = TESS_OK;
    const tess_clean_images *images = &clean->setup.images;
    clean->average = tess_alloc_zero(images->num_images, sizeof *clean->average);
    if (!clean->average) TESS_FAIL(TESS_ERR_ALLOC, "averages of channels");
    for (int k = 0; k < images->num_images; ++k) {
        clean->average[k] = average_rows(images);
        TESS_TRY(tess_rows_alloc_zero(&clean->average[k]));
    }
cleanup:
    return status;
}

static tess_status allocate(tess_clean *clean, const tess_clean_images *given)
{
    tess_status status = TESS_OK;
    const tess_clean_images *images = &clean->setup.images;
    clean->log.found.num_images = images->num_images;
    clean->has_psf = tess_alloc_zero(given->num_images, sizeof *clean->has_psf);
    if (clean->setup.opts.auto_mask > 0) {
        clean->found =
            tess_alloc_zero(images->num_rows * images->nx, sizeof *clean->found);
        if (!clean->found) TESS_FAIL(TESS_ERR_ALLOC, "automatic mask");
    }
    if (!clean->has_psf) TESS_FAIL(TESS_ERR_ALLOC, "images to clean");
    TESS_TRY(clean_join_create(given, &clean->setup.join));
    if (clean_join_averages(&clean->setup.join)) TESS_TRY(allocate_averages(clean));
    TESS_TRY(
        clean_borders_create(images, clean->setup.opts.threads, &clean->setup.borders));
    for (int k = 0; k < given->num_images; ++k)
        clean->has_psf[k] = !(clean->setup.join.average[k] > 0);
cleanup:
    return status;
}

/* The backend of the options, or that of processors if the first can't do it. Then
 * `text` says why. Local. */
static const tess_clean_ops *ops_for(const clean_setup *setup, char *text, int size)
{
    const tess_clean_ops *ops = setup->opts.method.ops;
    text[0] = '\0';
    if (!ops) return &tess_clean_ops_cpu;
    if (ops != &tess_clean_ops_cpu && clean_num_psf_places(setup) > 1) {
        snprintf(text, (size_t)size, "there are PSFs of %d places",
                 clean_num_psf_places(setup));
        return &tess_clean_ops_cpu;
    }
    return ops->lacks && ops->lacks(setup, text, size) ? &tess_clean_ops_cpu : ops;
}

/* Chooses the same backend on all ranks. Collective. */
static tess_status choose_ops(tess_clean *clean)
{
    tess_status status = TESS_OK;
    char text[256];
    tess_comm *comm = clean->setup.comm;
    const tess_clean_ops *wanted = clean->setup.opts.method.ops;
    clean->ops = ops_for(&clean->setup, text, sizeof text);
    int64_t lacks = wanted && clean->ops != wanted;
    TESS_TRY(tess_comm_allreduce_i64(comm, &lacks, 1, TESS_MAX));
    if (!lacks) return TESS_OK;
    clean->ops = &tess_clean_ops_cpu;
    tess_log_info("minor loops run on processors, because %s",
                  text[0] ? text : "the device of another rank has no room");
cleanup:
    return status;
}

tess_status tess_clean_create(tess_comm *comm, const tess_clean_images *images,
                              const tess_clean_opts *opts, tess_clean **clean_out)
{
    tess_status status = TESS_OK;
    tess_clean *clean = NULL;
    TESS_TRY(tess_comm_agree(comm, clean_opts_check(images, opts)));
    clean = tess_alloc_zero(1, sizeof *clean);
    TESS_TRY(tess_comm_agree(comm, clean ? TESS_OK : TESS_ERR_ALLOC));
    setup_fill(&clean->setup, images, opts);
    clean->setup.comm = comm;
    clean->major.phase = 1;
    TESS_TRY(tess_comm_agree(comm, allocate(clean, images)));
    if (clean->average && clean_num_psf_places(&clean->setup) > 1)
        TESS_FAIL(TESS_ERR_USAGE, "averages of channels have no PSFs of places");
    TESS_TRY(choose_ops(clean));
    TESS_TRY(clean->ops->create(&clean->setup, &clean->work));
    *clean_out = clean;
    clean = NULL;
cleanup:
    tess_clean_destroy(clean);
    return status;
}

void tess_clean_destroy(tess_clean *clean)
{
    if (!clean) return;
    if (clean->work) clean->ops->destroy(clean->work);
    for (int k = 0; clean->average && k < clean->setup.images.num_images; ++k)
        tess_rows_free(&clean->average[k]);
    tess_free(clean->average);
    for (int s = 0; clean->kept && s < clean->setup.num_scales; ++s)
        clean_components_free(&clean->kept[s]);
    tess_free(clean->kept);
    clean_components_free(&clean->log.found);
    tess_free(clean->log.loop);
    clean_join_free(&clean->setup.join);
    clean_borders_free(&clean->setup.borders);
    tess_rows_free(&clean->mask);
    tess_free(clean->found);
    tess_free(clean->has_psf);
    tess_free(clean);
}

void tess_clean_bytes(const tess_clean_images *images, const tess_clean_opts *opts,
                      int num_ranks, tess_clean_need *need)
{
    clean_setup setup = {0};
    const tess_rows average = average_rows(images);
    char text[256];
    int terms;
    setup_fill(&setup, images, opts);
    clean_join_outline(images, &terms, &setup.join);
    const tess_clean_ops *ops = ops_for(&setup, text, sizeof text);
    *need = (tess_clean_need){.backend = ops->name};
    ops->bytes(&setup, num_ranks, &need->rank_bytes, &need->node_bytes);
    if (ops->device_bytes) need->device_bytes = ops->device_bytes(&setup);
    if (setup.images.num_images != images->num_images)
        need->rank_bytes +=
            (double)setup.images.num_images * (double)tess_rows_bytes(&average);
    if (clean_has_borders(&setup))
        need->rank_bytes += (double)(images->num_rows * images->nx) * sizeof(int16_t);
    if (opts->auto_mask > 0)
        need->rank_bytes += (double)(images->num_rows * images->nx) * sizeof(uint32_t);
}

tess_status clean_check_rows(const tess_clean *clean, const tess_rows *rows)
{
    tess_status status = TESS_OK;
    const tess_clean_images *images = &clean->setup.images;
    if (rows->nx != images->nx || rows->ny != images->ny ||
        !tess_rows_are_whole(rows) || rows->row_first != images->row_first ||
        rows->num_rows != images->num_rows)
        TESS_FAIL(TESS_ERR_USAGE, "rows of an image are not those that are cleaned");
cleanup:
    return status;
}

/* average[k] += share · rows; NaN counts as 0 or, with `keeps_nan`, stays. */
static tess_status add_rows(const tess_clean *clean, int k, const tess_rows *rows,
                            double share, bool keeps_nan)
{
    tess_status status = TESS_OK;
    const tess_rows *sum = &clean->average[k];
    tess_rows view = {0};
    TESS_TRY(clean_check_rows(clean, rows));
    TESS_TRY(tess_rows_view(rows, &view));
    for (int64_t i = 0; i < tess_rows_count(&view); ++i) {
        const double value = tess_rows_pixel(&view, i);
        if (!keeps_nan && !isfinite(value)) continue;
        tess_rows_set(sum, i, tess_rows_pixel(sum, i) + share * value);
    }
cleanup:
    tess_rows_free(&view);
    return status;
}

static void clear_rows(const tess_rows *rows)
{
    const int64_t bytes = tess_rows_bytes(rows);
    if (bytes > 0) memset(rows->value, 0, (size_t)bytes);
}

/* The image that is cleaned with one of the caller's. */
static int cleaned_image(const clean_join *join, int image)
{
    const int pols = join->num_pol;
    return clean_join_channel(join, image / pols) * pols + image % pols;
}

tess_status clean_average_rows(const tess_clean *clean, const tess_rows *rows)
{
    tess_status status = TESS_OK;
    const clean_join *join = &clean->setup.join;
    for (int k = 0; k < clean->setup.images.num_images; ++k)
        clear_rows(&clean->average[k]);
    for (int i = 0; i < join->num_out * join->num_pol; ++i)
        if (join->average[i] > 0)
            TESS_TRY(add_rows(clean, cleaned_image(join, i), &rows[i], join->average[i],
                              true));
cleanup:
    return status;
}

/* Whether no PSF of the channels that are averaged with this image is missing. */
static bool is_complete(const tess_clean *clean, int k)
{
    const clean_join *join = &clean->setup.join;
    for (int i = 0; i < join->num_out * join->num_pol; ++i)
        if (cleaned_image(join, i) == k && !clean->has_psf[i]) return false;
    return true;
}

static void forget_psfs(tess_clean *clean, int k)
{
    const clean_join *join = &clean->setup.join;
    for (int i = 0; i < join->num_out * join->num_pol; ++i)
        if (cleaned_image(join, i) == k && join->average[i] > 0)
            clean->has_psf[i] = false;
    clear_rows(&clean->average[k]);
}

/* The PSF of a cleaned channel is the average of its channels'. Collective. */
static tess_status average_psf(tess_clean *clean, int image, const tess_rows *psf)
{
    tess_status status = TESS_OK;
    const clean_join *join = &clean->setup.join;
    const int k = cleaned_image(join, image);
    if (is_complete(clean, k)) forget_psfs(clean, k); /* they are given anew */
    status = add_rows(clean, k, psf, join->average[image], false);
    TESS_TRY(tess_comm_agree(clean->setup.comm, status));
    clean->has_psf[image] = true;
    if (is_complete(clean, k))
        TESS_TRY(clean->ops->set_psf(clean->work, k, &clean->average[k]));
cleanup:
    return status;
}

/* The value at the centre, if this rank has that, else −∞. Local. */
static tess_status centre_of(const tess_rows *psf, double *value)
{
    tess_status status = TESS_OK;
    tess_rows view = {0};
    const int64_t row = psf->ny / 2 - psf->row_first;
    *value = -INFINITY;
    if (row < 0 || row >= psf->num_rows) return TESS_OK;
    TESS_TRY(tess_rows_view_some(psf, row, 1, &view));
    const double centre = tess_rows_pixel(&view, psf->nx / 2);
    if (!isnan(centre)) *value = centre;
cleanup:
    tess_rows_free(&view);
    return status;
}

tess_status tess_clean_set_psf(tess_clean *clean, int image, const tess_rows *psf)
{
    return tess_clean_set_psf_of(clean, image, 0, psf);
}

tess_status tess_clean_set_psf_of(tess_clean *clean, int image, int place,
                                  const tess_rows *psf)
{
    tess_status status = TESS_OK;
    tess_comm *comm = clean->setup.comm;
    double centre;
    if (!(clean->setup.join.average[image] > 0)) return TESS_OK;
    status = clean_check_rows(clean, psf);
    if (status == TESS_OK) status = centre_of(psf, &centre);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_allreduce_f64(comm, &centre, 1, TESS_MAX));
    if (!(centre > 0))
        TESS_FAIL(TESS_ERR_INPUT, "the PSF is not positive at its centre");
    if (clean->average) return average_psf(clean, image, psf);
    TESS_TRY(clean->ops->set_psf(clean->work,
                                 place * clean->setup.images.num_images + image, psf));
    if (place == 0) clean->has_psf[image] = true;
cleanup:
    return status;
}

/* Copies a mask, and counts what is set in it. Local. */
static tess_status copy_mask(const tess_clean *clean, const tess_rows *from,
                             tess_rows *mask, int64_t *set)
{
    tess_status status = TESS_OK;
    tess_rows view = {0};
    TESS_TRY(clean_check_rows(clean, from));
    TESS_TRY(tess_rows_copy(from, mask));
    TESS_TRY(tess_rows_view(from, &view));
    for (int64_t k = 0; k < tess_rows_count(&view); ++k)
        *set += tess_rows_pixel(&view, k) != 0;
cleanup:
    tess_rows_free(&view);
    return status;
}

tess_status tess_clean_set_mask(tess_clean *clean, const tess_rows *mask)
{
    tess_status status = TESS_OK;
    tess_comm *comm = clean->setup.comm;
    int64_t set = 0;
    tess_rows copy = {0};
    if (mask) status = copy_mask(clean, mask, &copy, &set);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_allreduce_i64(comm, &set, 1, TESS_SUM));
    if (set == 0 && mask) TESS_FAIL(TESS_ERR_INPUT, "nothing is set in the mask");
    tess_rows_free(&clean->mask);
    clean->mask = copy;
    clean->has_mask = mask != NULL;
    copy = (tess_rows){0};
cleanup:
    tess_rows_free(&copy);
    return status;
}

double tess_clean_reference_hz(const tess_clean *clean)
{
    return clean->setup.join.spectrum.nu0_hz;
}

static tess_status mark_rows(tess_clean *clean, const tess_rows *model)
{
    tess_status status = TESS_OK;
    tess_rows view = {0};
    TESS_TRY(clean_check_rows(clean, model));
    TESS_TRY(tess_rows_view(model, &view));
    for (int64_t k = 0; k < tess_rows_count(&view); ++k) {
        const double value = tess_rows_pixel(&view, k);
        if (value != 0 && isfinite(value)) clean->found[k] |= 1;
    }
cleanup:
    tess_rows_free(&view);
    return status;
}

tess_status tess_clean_mark_model(tess_clean *clean, const tess_rows *model)
{
    tess_status status = TESS_OK;
    if (!clean->found || clean->setup.num_scales > 1) return TESS_OK;
    for (int i = 0; i < clean->setup.join.num_out * clean->setup.join.num_pol; ++i)
        TESS_TRY(mark_rows(clean, &model[i]));
cleanup:
    return status;
}

void tess_clean_set_calls(tess_clean *clean, const tess_clean_calls *calls)
{
    clean->calls = *calls;
}
