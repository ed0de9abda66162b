/* Major cycles. A minor loop cleans each polarisation's residual image; then the models
 * are subtracted from the visibilities, and new residual images are made. */
#include "majors_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "clean_inputs.h"
#include "image_kinds.h"
#include "imager_model.h"
#include "tess_mem.h"
#include "tess_words.h"

/* Cleaning has stalled when the peaks of so many major iterations in a row are not
 * below those before. */
enum { MOST_STALLED = 3 };

const char *majors_end_text(majors_end end)
{
    static const char *const text[] = {
        [MAJORS_THRESHOLD] = "the final threshold",
        [MAJORS_NMITER] = "the number of major iterations (--nmiter)",
        [MAJORS_NITER] = "the number of iterations (--niter)",
        [MAJORS_NEGATIVE] = "a negative component",
        [MAJORS_STALLED] = "a residual that no longer falls",
        [MAJORS_DIVERGED] = "divergence",
        [MAJORS_NOTHING] = "an image without anything to clean"};
    return text[end];
}

/* ---- set-up ---- */

static tess_clean_opts minor_opts(const tess_image_opts *opts,
                                  const struct imager_found *beam)
{
    tess_clean_opts minor = opts->clean.minor;
    minor.scale_px = opts->clean.scale_px;
    minor.scale_beam_px = beam->beam_expected;
    minor.beam = (tess_clean_beam){.major_px = beam->beam.major_rad / opts->scale_rad,
                                   .minor_px = beam->beam.minor_rad / opts->scale_rad,
                                   .angle_rad = beam->beam.pa_rad};
    minor.is_double = opts->gridding.accuracy < TESS_SINGLE_FILE_ACCURACY;
    minor.repeatable = opts->layout.reproducible;
    minor.threads = opts->layout.threads;
    return minor;
}

double majors_bytes(const tess_image_opts *opts, int num_pol, double uvw_max_lambda,
                    int ranks)
{
    const bool is_double = opts->gridding.accuracy < TESS_SINGLE_ACCURACY;
    const tess_clean_images images = {.nx = opts->nx,
                                      .ny = opts->ny,
                                      .num_rows = (opts->ny + ranks - 1) / ranks,
                                      .num_images = 1,
                                      .rows_are_double = is_double};
    const double beam_rad = uvw_max_lambda > 0 ? 1 / uvw_max_lambda : opts->scale_rad;
    const struct imager_found beam = {.beam.major_rad = beam_rad,
                                      .beam.minor_rad = beam_rad,
                                      .beam_expected = beam_rad / opts->scale_rad};
    const tess_clean_opts minor = minor_opts(opts, &beam);
    const double pixels = (double)images.num_rows * (double)opts->nx;
    const double kept = pixels * (8 + (is_double ? 8 : 4));
    double rank_bytes, node_bytes;
    tess_clean_bytes(&images, &minor, ranks, &rank_bytes, &node_bytes);
    return num_pol * (rank_bytes + node_bytes / ranks + kept);
}

static int64_t row_bytes(const imager_rows *rows)
{
    return rows->nx *
           (rows->is_double ? (int64_t)sizeof(double) : (int64_t)sizeof(float));
}

/* Local. */
static tess_status copy_rows(const imager_rows *from, imager_rows *to)
{
    tess_status status = TESS_OK;
    *to = majors_like_rows(from, from->is_double);
    to->value = tess_alloc(from->num_rows, (size_t)row_bytes(from));
    if (!to->value) TESS_FAIL(TESS_ERR_ALLOC, "rows of an image");
    memcpy(to->value, from->value, (size_t)(from->num_rows * row_bytes(from)));
cleanup:
    return status;
}

/* The object that cleans a polarisation, with its PSF and mask. Collective. */
static tess_status create_clean(majors *all, int pol, const imager_product *psf)
{
    tess_status status = TESS_OK;
    image_run *run = all->run;
    cleaned *image = &all->pol[pol];
    const int64_t channel = all->output % run->outputs.num_channels;
    uint8_t *mask = NULL;
    TESS_TRY(tess_clean_create(all->slabs, &all->images, &all->opts, &image->clean));
    TESS_TRY(tess_clean_set_psf(image->clean, 0, psf->rows.value));
    TESS_TRY(clean_inputs_mask(run, channel, pol, all->images.row_first,
                               all->images.num_rows, &mask));
    TESS_TRY(tess_clean_set_mask(image->clean, mask));
    image->goes_on = true;
    image->least_peak = INFINITY;
cleanup:
    tess_free(mask);
    return status;
}

/* A model of zero, or the one of an earlier run. Collective. */
static tess_status begin_model(majors *all, int pol)
{
    tess_status status = TESS_OK;
    image_run *run = all->run;
    const int64_t channels = run->outputs.num_channels;
    cleaned *image = &all->pol[pol];
    const double *model;
    status = imager_rows_zero(all->images.row_first, all->images.num_rows,
                              all->images.nx, &image->model);
    TESS_TRY(tess_comm_agree(run->comm, status));
    if (!run->opts->clean.continues || majors_can_continue(all)) return TESS_OK;
    all->has_model = true;
    TESS_TRY(clean_inputs_model(run, run->comm, all->output / channels,
                                all->output % channels, pol, &image->model));
    model = image->model.value;
    if (image->clean) tess_clean_mark_model(image->clean, &model);
cleanup:
    return status;
}

/* Progress of a minor loop: the share of the way from its peak to its threshold, on a
 * logarithmic scale. Local. */
static void tell_progress(void *context, const tess_clean_progress *now)
{
    majors *all = context;
    const double way = log(now->peak_start / now->threshold);
    const double share = way > 0 && now->peak > 0 && now->threshold > 0
                             ? log(now->peak_start / now->peak) / way
                             : 0;
    if (!(share > all->share && share <= 1)) return;
    tess_progress_add(&all->progress, 100 * (share - all->share));
    all->share = share;
}

/* Between sub-minor loops: the components so far may be saved. What was subtracted from
 * one part of a cross-hand is in the residual of the other, which is not: such are
 * saved between major iterations only. Collective. */
static tess_status look(void *context, bool *stop)
{
    const majors *all = context;
    const image_run *run = all->run;
    *stop = false;
    for (int p = 0; p < run->num_pol; ++p)
        if (run->pol[p].imaginary) return TESS_OK;
    return imager_checkpoint_cleaned(run->job.checkpoint);
}

/* Ranks that share planes in groups have rows in another order than their own: clean/
 * wants slabs in the order of ranks. Collective. */
static tess_status order_ranks(majors *all)
{
    const image_run *run = all->run;
    const int shared = run->job.ranks.fft_ranks, size = tess_comm_size(run->comm);
    const int rank = tess_comm_rank(run->comm), groups = size / shared;
    all->slabs = run->comm;
    if (shared == 1 || shared == size) return TESS_OK;
    return tess_comm_split(run->comm, 0, rank % shared * groups + rank / shared,
                           &all->slabs);
}

static tess_status set_up(majors *all, const imager_product *made,
                          const struct imager_found *beam)
{
    tess_status status = TESS_OK;
    const image_run *run = all->run;
    const imager_rows *rows = &made[0].rows;
    const bool one_psf = run->job.num_images == run->num_pol + 1;
    const tess_clean_calls calls = {
        .progress = tell_progress, .look = look, .context = all};
    all->images = (tess_clean_images){.nx = rows->nx,
                                      .ny = run->opts->ny,
                                      .row_first = rows->row_first,
                                      .num_rows = rows->num_rows,
                                      .num_images = 1,
                                      .rows_are_double = rows->is_double};
    all->opts = minor_opts(run->opts, beam);
    all->opts.ops = run->job.backend->clean;
    TESS_TRY(order_ranks(all));
    for (int p = 0; p < run->num_pol; ++p) {
        if (made[p].sum_weights > 0)
            TESS_TRY(create_clean(all, p, &made[run->num_pol + (one_psf ? 0 : p)]));
        if (all->pol[p].clean) tess_clean_set_calls(all->pol[p].clean, &calls);
        TESS_TRY(begin_model(all, p));
    }
    if (majors_can_continue(all)) TESS_TRY(majors_continue(all));
    imager_checkpoint_cycle(run->job.checkpoint, majors_save, all);
cleanup:
    return status;
}

/* ---- residual images ---- */

/* Of the data less the models. Collective. */
static tess_status make_residuals(majors *all)
{
    tess_status status = TESS_OK;
    image_run *run = all->run;
    const imager_stages no_stages = {.comm = run->comm};
    const visset_request request = {.less_model = true};
    imager_product made[TESS_MAX_IMAGES] = {0};
    imager_rows model[TESS_MAX_POL];
    for (int p = 0; p < run->num_pol; ++p) {
        model[p] = all->pol[p].model;
        imager_rows_free(&all->pol[p].residual);
    }
    TESS_TRY(imager_model_set(&run->job, model));
    TESS_TRY(visset_image(all->set, &request, &no_stages, made));
    for (int p = 0; p < run->num_pol; ++p)
        all->pol[p].residual = made[p].rows;
    all->changed = false;
cleanup:
    return status;
}

/* The residuals to begin with: dirty images, or those less the model that is continued.
 * Collective. */
static tess_status begin_residuals(majors *all, imager_product *made)
{
    tess_status status = TESS_OK;
    const image_run *run = all->run;
    if (all->has_model) return make_residuals(all);
    for (int p = 0; p < run->num_pol && status == TESS_OK; ++p) {
        if (run->opts->no_dirty) {
            all->pol[p].residual = made[p].rows;
            made[p].rows = (imager_rows){0};
        } else
            status = copy_rows(&made[p].rows, &all->pol[p].residual);
    }
    TESS_TRY(tess_comm_agree(run->comm, status));
cleanup:
    return status;
}

/* ---- one major iteration ---- */

static majors_end end_of(tess_clean_end end)
{
    switch (end) {
    case TESS_CLEAN_NITER:
        return MAJORS_NITER;
    case TESS_CLEAN_NEGATIVE:
        return MAJORS_NEGATIVE;
    case TESS_CLEAN_DIVERGED:
        return MAJORS_DIVERGED;
    case TESS_CLEAN_NOTHING:
        return MAJORS_NOTHING;
    default:
        return MAJORS_THRESHOLD;
    }
}

/* Whether a minor loop's residual began as high as earlier ones, time after time. */
static bool has_stalled(cleaned *image, const tess_clean_report *report,
                        bool same_phase)
{
    const bool falls = report->peak_start < image->least_peak || !same_phase;
    image->num_stalled = falls ? 0 : image->num_stalled + 1;
    if (falls) image->least_peak = report->peak_start;
    return image->num_stalled >= MOST_STALLED;
}

static void add_scales(const tess_clean_report *report, char *text, size_t size)
{
    size_t used = strlen(text);
    const char *before = ", scales";
    for (int s = 0; report->num_scales > 1 && s < report->num_scales && used < size;
         ++s) {
        if (report->scale_iterations[s] == 0) continue;
        used += (size_t)snprintf(text + used, size - used, "%s %.4g (%lld)", before,
                                 report->scale_px[s],
                                 (long long)report->scale_iterations[s]);
        before = ",";
    }
}

/* "major 2 of Q: 123 iterations, scales 0 (100), 12.3 (23), peak 1.2 to 0.3 Jy/beam, …"
 */
static void tell_major(const majors *all, int pol)
{
    const cleaned *image = &all->pol[pol];
    const tess_clean_report *report = &image->report;
    char text[400], name[8] = "", from[48], to[48], threshold[48], rms[48];
    tess_words_flux(report->peak_start, 4, from, sizeof from);
    tess_words_flux(report->peak_end, 4, to, sizeof to);
    tess_words_flux(report->threshold, 4, threshold, sizeof threshold);
    tess_words_flux(report->rms, 3, rms, sizeof rms);
    tess_pol_name(&all->run->pol[pol], name);
    snprintf(text, sizeof text, "major %lld%s%s: %lld iteration%s",
             (long long)image->num_majors, all->run->num_pol > 1 ? " of " : "",
             all->run->num_pol > 1 ? name : "", (long long)report->iterations,
             report->iterations == 1 ? "" : "s");
    add_scales(report, text, sizeof text);
    tess_log_info("%s, peak %s to %s, threshold %s, rms %s, flux %.5g Jy, %.2f s%s",
                  text, from, to, threshold, rms, report->flux_jy, report->total_s,
                  report->phase == 2 ? ", automatic mask" : "");
    tess_log_detail("major %lld%s%s: %d sub-minor loop%s, ended by %s; %.0f transforms "
                    "%.2f s, lists %.2f s",
                    (long long)image->num_majors, all->run->num_pol > 1 ? " of " : "",
                    all->run->num_pol > 1 ? name : "", report->loops,
                    report->loops == 1 ? "" : "s", tess_clean_end_text(report->end),
                    report->transforms, report->transform_s, report->list_s);
}

/* A minor loop of one polarisation. Collective. */
static tess_status clean_one(majors *all, int pol)
{
    tess_status status = TESS_OK;
    cleaned *image = &all->pol[pol];
    double *model = image->model.value;
    const tess_clean_report *report = &image->report;
    const int phase = image->report.phase;
    const bool first = tess_comm_rank(all->run->comm) == 0;
    all->share = 0;
    tess_progress_start(&all->progress, "cleaning", " %", 100);
    status =
        tess_clean_minor(image->clean, &image->residual.value, &model, &image->report);
    tess_progress_finish(&all->progress);
    TESS_TRY(status);
    ++image->num_majors;
    image->is_done = true;
    if (report->iterations > 0) all->has_model = all->changed = true;
    image->iterations = report->total_iterations;
    image->goes_on = report->again;
    image->end = end_of(report->end);
    if (first) tell_major(all, pol);
    if (image->goes_on && has_stalled(image, report, report->phase == phase)) {
        image->goes_on = false;
        image->end = MAJORS_STALLED;
    }
    if (image->end == MAJORS_DIVERGED && first)
        tess_log_warn(
            "cleaning diverged in major iteration %lld: the image is left as it "
            "was before; a smaller --gain, --mgain or a mask may help",
            (long long)image->num_majors);
cleanup:
    return status;
}

/* Minor loops of all polarisations that go on and have had none in this major
 * iteration. Collective. */
static tess_status clean_all(majors *all)
{
    tess_status status = TESS_OK;
    image_run *run = all->run;
    double mark = tess_time_now();
    for (int p = 0; p < run->num_pol; ++p)
        if (all->pol[p].goes_on && !all->pol[p].is_done) TESS_TRY(clean_one(all, p));
    ++all->num;
    for (int p = 0; p < run->num_pol; ++p)
        all->pol[p].is_done = false;
    tess_profile_lap(run->profile, TESS_STAGE_CLEAN, &mark);
    TESS_TRY(imager_checkpoint_cleaned(run->job.checkpoint));
cleanup:
    return status;
}

static bool any_goes_on(const majors *all)
{
    for (int p = 0; p < all->run->num_pol; ++p)
        if (all->pol[p].goes_on) return true;
    return false;
}

static void stop_all(majors *all, majors_end end)
{
    for (int p = 0; p < all->run->num_pol; ++p)
        if (all->pol[p].goes_on) {
            all->pol[p].goes_on = false;
            all->pol[p].end = end;
        }
}

/* Copies of the residuals after the first major iteration. Collective. */
static tess_status keep_first(majors *all)
{
    tess_status status = TESS_OK;
    const image_run *run = all->run;
    if (!run->opts->clean.first_residual || all->has_first) return TESS_OK;
    all->has_first = true;
    for (int p = 0; p < run->num_pol && status == TESS_OK; ++p)
        status = copy_rows(&all->pol[p].residual, &all->first[p].rows);
    return tess_comm_agree(run->comm, status);
}

static tess_status all_majors(majors *all)
{
    tess_status status = TESS_OK;
    const int64_t nmiter = all->run->opts->clean.nmiter;
    for (;;) {
        if (all->num > 0) TESS_TRY(keep_first(all));
        if (nmiter > 0 && all->num >= nmiter) stop_all(all, MAJORS_NMITER);
        if (!any_goes_on(all)) break;
        TESS_TRY(clean_all(all));
        if (all->changed) TESS_TRY(make_residuals(all));
    }
    TESS_TRY(keep_first(all));
cleanup:
    return status;
}

/* ---- what is left ---- */

/* Collective. */
static tess_status restore(const majors *all, int pol, imager_rows *image)
{
    tess_status status = TESS_OK;
    const cleaned *from = &all->pol[pol];
    TESS_TRY(tess_comm_agree(all->run->comm, copy_rows(&from->residual, image)));
    if (!from->clean) return TESS_OK;
    TESS_TRY(tess_clean_restore(all->slabs, &all->images, &all->opts, &all->opts.beam,
                                from->model.value, image->value, image->value));
cleanup:
    return status;
}

/* Sum of the model, the same on all ranks. Collective. */
static tess_status model_flux(const majors *all, int pol, double *flux_jy)
{
    const imager_rows *rows = &all->pol[pol].model;
    double sum = 0;
    for (int64_t k = 0; k < rows->num_rows * rows->nx; ++k)
        sum += imager_pixel(rows, k);
    *flux_jy = sum;
    return tess_comm_allreduce_f64(all->run->comm, flux_jy, 1, TESS_SUM);
}

/* What was done, for headers and the last lines. Collective. */
static tess_status note(const majors *all, int pol, struct imager_found *found)
{
    tess_status status = TESS_OK;
    const cleaned *image = &all->pol[pol];
    struct imager_found residual = {0};
    TESS_TRY(model_flux(all, pol, &found->flux_jy));
    TESS_TRY(imager_summary_measure(all->run->comm, &image->residual,
                                    all->run->opts->layout.threads, &residual));
    found->residual_rms_jy = residual.rms_jy;
    found->majors = (double)image->num_majors;
    found->iterations = (double)image->iterations;
    found->threshold_jy = image->report.final_threshold;
    found->num_scales = image->report.num_scales;
    found->clean_end = image->end;
cleanup:
    return status;
}

/* Images as they are written; what is not, stays with `made`. Collective. */
static tess_status take_products(majors *all, imager_product *made,
                                 imager_product *product, struct imager_found *found)
{
    tess_status status = TESS_OK;
    const image_run *run = all->run;
    const image_kinds *kinds = &run->output.kinds;
    imager_product *dirty = product + image_kinds_place(kinds, IMAGE_DIRTY);
    imager_product *psf = product + image_kinds_place(kinds, IMAGE_PSF);
    imager_product *model = product + image_kinds_place(kinds, IMAGE_MODEL);
    imager_product *residual = product + image_kinds_place(kinds, IMAGE_RESIDUAL);
    imager_product *restored = product + image_kinds_place(kinds, IMAGE_RESTORED);
    for (int k = 0; k < kinds->num[IMAGE_DIRTY]; ++k) {
        dirty[k].rows = made[k].rows;
        made[k].rows = (imager_rows){0};
    }
    for (int k = 0; k < kinds->num[IMAGE_PSF]; ++k) {
        psf[k] = made[run->num_pol + k];
        made[run->num_pol + k].rows = (imager_rows){0};
    }
    for (int p = 0; p < run->num_pol; ++p) {
        TESS_TRY(restore(all, p, &restored[p].rows));
        TESS_TRY(note(all, p, &found[p]));
        model[p].rows = all->pol[p].model;
        residual[p].rows = all->pol[p].residual;
        all->pol[p].model = all->pol[p].residual = (imager_rows){0};
    }
cleanup:
    return status;
}

/* Weights of the products of a polarisation are those of its dirty image. */
static void take_weights(const image_kinds *kinds, const imager_product *made,
                         imager_product *product)
{
    for (int kind = 0; kind < NUM_IMAGE_KINDS; ++kind) {
        imager_product *of_kind = product + image_kinds_place(kinds, kind);
        for (int k = 0; kind != IMAGE_PSF && k < kinds->num[kind]; ++k) {
            of_kind[k].sum_weights = made[k].sum_weights;
            of_kind[k].variance = made[k].variance;
        }
    }
}

static void free_all(majors *all)
{
    for (int p = 0; p < all->run->num_pol; ++p) {
        tess_clean_destroy(all->pol[p].clean);
        imager_rows_free(&all->pol[p].model);
        imager_rows_free(&all->pol[p].residual);
    }
    if (all->slabs != all->run->comm) tess_comm_free(all->slabs);
}

tess_status majors_clean(image_run *run, visset *set, int64_t output,
                         imager_product *made, imager_product *product,
                         struct imager_found *found)
{
    tess_status status = TESS_OK;
    const image_kinds *kinds = &run->output.kinds;
    majors all = {.run = run,
                  .set = set,
                  .output = output,
                  .first = product + image_kinds_place(kinds, IMAGE_FIRST_RESIDUAL)};
    double mark = tess_time_now();
    TESS_TRY(set_up(&all, made, found));
    tess_profile_lap(run->profile, TESS_STAGE_CLEAN, &mark);
    TESS_TRY(begin_residuals(&all, made));
    TESS_TRY(all_majors(&all));
    mark = tess_time_now();
    TESS_TRY(take_products(&all, made, product, found));
    take_weights(kinds, made, product);
    tess_profile_lap(run->profile, TESS_STAGE_CLEAN, &mark);
cleanup:
    imager_checkpoint_cycle(run->job.checkpoint, NULL, NULL);
    free_all(&all);
    return status;
}
