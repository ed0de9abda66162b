/* The order of work of a minor loop: thresholds, choice of scale, sub-minor loops, and
 * what is left to do when they end. It sees peaks and components only. */
#include <math.h>
#include <string.h>

#include "clean_object.h"
#include "tess_log.h"
#include "tess_mem.h"

/* A peak that reaches this multiple of the first peak means divergence. */
static const double DIVERGED = 4;

/* The most candidates of a list of a single scale: this many, or this part of the
 * image. A longer list is cleaned in several steps, each of which begins at .8 times
 * the peak that the step before has left. A component costs a pass over the list, and a
 * step two transforms of the image. */
enum { LONG_LIST = 1 << 16, SHARE_OF_IMAGE = 256 };
static const double STEP = 0.8;

/* A loop that begins at this multiple of its threshold is followed by another one if
 * places have gains of their own. */
static const double FAR_ABOVE = 2;

/* There, minor loops go down by no more than this part of their peaks, once a loop has
 * begun with more than this multiple of the threshold of the last one. */
static const double SHORT_STEP = 0.6, SLOW = 1.25;

typedef struct minor {
    tess_clean *clean;
    tess_clean_report *report;
    int best; /* the scale with the largest biased peak; −1: none */
    double psf_peak[TESS_CLEAN_MOST_SCALES];
    bool diverged, stopped, negative;
    double list_s;
} minor;

static double best_peak(const minor *run)
{
    return run->best < 0 ? 0 : run->clean->minor.peak[run->best];
}

/* ---- thresholds ---- */

/* How far a minor loop goes down from its peak, in proportion. What places with gains
 * of their own see of one another beside the PSF is like noise. The eigenvalues of such
 * a matrix are up to (1 + √γ)² times those that a loop takes them for, where there are
 * γ beams for each independent visibility (Marchenko & Pastur 1967). A step of more
 * than two over that makes a part of the residual larger. So steps are shortened when
 * the peak does not fall as it should. */
static double find_depth(tess_clean *clean)
{
    const tess_clean_opts *opts = &clean->setup.opts;
    clean_major_state *major = &clean->major;
    const double mgain =
        major->majors == 0 && opts->first_mgain > 0 ? opts->first_mgain : opts->mgain;
    if (clean_has_borders(&clean->setup) && major->threshold > 0 &&
        clean->minor.peak_start > SLOW * major->threshold)
        major->depth = SHORT_STEP;
    return major->depth > 0 ? fmin(mgain, major->depth) : mgain;
}

static void find_thresholds(minor *run, const clean_noise *noise)
{
    tess_clean *clean = run->clean;
    const tess_clean_opts *opts = &clean->setup.opts;
    clean_minor_state *state = &clean->minor;
    const double times = clean_records(clean) ? opts->auto_mask : opts->auto_threshold;
    const double by_noise = times > 0 ? noise->median + times * noise->sigma : 0;
    state->final_threshold = fmax(by_noise, opts->threshold_jy);
    state->peak_start = best_peak(run);
    state->threshold =
        fmax(state->peak_start * (1 - find_depth(clean)), state->final_threshold);
}

/* Iterations that all minor loops may still have. */
static int64_t left_of_all(const tess_clean *clean)
{
    return clean->setup.opts.niter - clean->major.iterations - clean->minor.iterations;
}

/* Iterations that this minor loop may still have. */
static int64_t left_of_loop(const tess_clean *clean)
{
    const int64_t all = left_of_all(clean), most = clean->setup.opts.method.most;
    const int64_t own = most - clean->minor.iterations;
    return most == 0 || all < own ? all : own;
}

/* ---- scales ---- */

/* Finds the peaks of the residual at the active scales, and keeps the image of the best
 * scale. Collective. */
static tess_status measure(minor *run)
{
    tess_status status = TESS_OK;
    tess_clean *clean = run->clean;
    clean_minor_state *state = &clean->minor;
    run->best = -1;
    if (clean->ops->share_scales)
        TESS_TRY(clean->ops->share_scales(clean->work, state->active));
    for (int s = 0; s < clean->setup.num_scales; ++s) {
        clean_peak peak;
        if (!state->active[s]) continue;
        TESS_TRY(clean->ops->measure(clean->work, s, &peak));
        state->peak[s] = peak.index < 0 ? 0 : fabs(peak.value) * clean->setup.bias[s];
        if (!(state->peak[s] > best_peak(run))) continue;
        run->best = s;
        run->negative = peak.value < 0;
        if (state->loops == 0) state->peak_index = peak.index;
        clean->ops->keep(clean->work);
    }
cleanup:
    return status;
}

/* Chooses the scales whose peaks are measured after a sub-minor loop at scale
 * `cleaned`: this scale, and those whose last peak exceeds (1 − gain) times its peak.
 */
static void activate(minor *run, int cleaned)
{
    clean_minor_state *state = &run->clean->minor;
    const double least = (1 - run->clean->setup.opts.gain) * state->peak[cleaned];
    for (int s = 0; s < run->clean->setup.num_scales; ++s)
        state->active[s] =
            s == cleaned || (run->psf_peak[s] > 0 && state->peak[s] > least);
}

/* ---- sub-minor loops ---- */

/* Reports progress. `peak` is multiplied by the bias of its scale. */
static void tell_peak(const minor *run, int64_t iterations, double peak)
{
    const tess_clean *clean = run->clean;
    const clean_minor_state *state = &clean->minor;
    const tess_clean_progress progress = {
        .iterations = state->iterations + iterations,
        .total_iterations = clean->major.iterations + state->iterations + iterations,
        .peak = peak,
        .peak_start = state->peak_start,
        .threshold = state->threshold,
        .scale_px = clean->setup.scale_px[run->best]};
    if (clean->calls.progress) clean->calls.progress(clean->calls.context, &progress);
}

/* Reports progress from inside a sub-minor loop, whose peak has no bias. */
static void tell(void *context, int64_t iterations, double peak)
{
    const minor *run = context;
    tell_peak(run, iterations, peak * run->clean->setup.bias[run->best]);
}

/* Chooses the lowest value of a single scale's candidates: the threshold, or a higher
 * value if the list would be too long. Collective. */
static tess_status single_threshold(minor *run, double *threshold)
{
    tess_status status = TESS_OK;
    tess_clean *clean = run->clean;
    const tess_clean_images *images = &clean->setup.images;
    const double most =
        fmax(LONG_LIST, (double)images->nx * (double)images->ny / SHARE_OF_IMAGE);
    double from = clean->minor.threshold;
    int64_t pixels;
    TESS_TRY(clean->ops->count(clean->work, run->best, from, &pixels));
    for (double next = STEP * best_peak(run); (double)pixels > most; next *= STEP) {
        if (next <= clean->minor.threshold) break;
        int64_t fewer;
        TESS_TRY(clean->ops->count(clean->work, run->best, next, &fewer));
        if ((double)fewer > most && from > clean->minor.threshold) break;
        from = next;
    }
    *threshold = from;
cleanup:
    return status;
}

static tess_status loop_threshold(minor *run, double *threshold)
{
    const tess_clean *clean = run->clean;
    if (!clean_is_multiscale(&clean->setup)) return single_threshold(run, threshold);
    *threshold = fmax((1 - clean->setup.opts.scale_gain) * best_peak(run),
                      clean->minor.threshold);
    return TESS_OK;
}

/* Finds components of the best scale, and subtracts them. Collective. */
static tess_status sub_minor(minor *run, double threshold)
{
    tess_status status = TESS_OK;
    tess_clean *clean = run->clean;
    clean_minor_state *state = &clean->minor;
    const clean_setup *setup = &clean->setup;
    const int scale = run->best;
    const double bias = setup->bias[scale];
    const int64_t before = clean->log.found.count;
    clean_components merged = {.num_images = setup->images.num_images};
    clean_loop loop = {.scale = scale,
                       .list_from = threshold / bias,
                       .until = threshold / bias,
                       .gain = setup->opts.gain / run->psf_peak[scale],
                       .diverged = DIVERGED * state->peak_start / bias,
                       .most = left_of_loop(clean),
                       .progress = tell,
                       .context = run};
    TESS_TRY(clean->ops->loop(clean->work, &loop, &clean->log.found));
    state->iterations += loop.iterations;
    state->scale_iterations[scale] += loop.iterations;
    run->list_s += loop.seconds;
    run->diverged = fabs(loop.peak.value) > loop.diverged;
    status = clean_log_close(&clean->log, scale);
    if (status == TESS_OK)
        status =
            clean_components_copy(&merged, &clean->log.found, before, loop.iterations);
    TESS_TRY(tess_comm_agree(setup->comm, status));
    if (!run->diverged) TESS_TRY(clean->ops->subtract(clean->work, scale, &merged));
cleanup:
    clean_components_free(&merged);
    return status;
}

static int most_threshold_loops(const tess_clean *clean)
{
    const int by_scales = 3 * clean->setup.num_scales / 2;
    if (!clean_is_multiscale(&clean->setup) && !clean->setup.opts.method.repeats)
        return 1;
    return by_scales > 8 ? by_scales : 8;
}

static bool goes_on(const minor *run)
{
    const tess_clean *clean = run->clean;
    const clean_minor_state *state = &clean->minor;
    if (run->diverged || run->stopped || run->best < 0) return false;
    if (state->threshold_loops >= most_threshold_loops(clean)) return false;
    if (run->negative && clean->setup.opts.stop_negative) return false;
    return best_peak(run) > state->threshold && left_of_loop(clean) > 0;
}

static tess_status look(minor *run)
{
    const tess_clean_calls *calls = &run->clean->calls;
    return calls->look ? calls->look(calls->context, &run->stopped) : TESS_OK;
}

/* Collective. */
static tess_status all_loops(minor *run)
{
    tess_status status = TESS_OK;
    clean_minor_state *state = &run->clean->minor;
    while (goes_on(run)) {
        const int scale = run->best;
        const int64_t before = state->iterations;
        double threshold;
        TESS_TRY(loop_threshold(run, &threshold));
        TESS_TRY(sub_minor(run, threshold));
        if (run->diverged) break;
        ++state->loops;
        if (threshold == state->threshold || state->iterations == before)
            ++state->threshold_loops;
        activate(run, scale);
        TESS_TRY(measure(run));
        if (best_peak(run) > DIVERGED * state->peak_start) run->diverged = true;
        if (!goes_on(run)) continue;
        tell_peak(run, 0, best_peak(run));
        TESS_TRY(look(run));
    }
cleanup:
    return status;
}

/* ---- begin and end ---- */

/* Subtracts the components of a state that was taken inside a minor loop. Collective.
 */
static tess_status replay(minor *run)
{
    tess_status status = TESS_OK;
    tess_clean *clean = run->clean;
    const clean_log *log = &clean->log;
    clean_components merged = {.num_images = clean->setup.images.num_images};
    int64_t from = 0;
    for (int64_t k = 0; k < log->num_loops; ++k) {
        clean_components_clear(&merged);
        TESS_TRY(tess_comm_agree(
            clean->setup.comm,
            clean_components_copy(&merged, &log->found, from, log->loop[k].count)));
        TESS_TRY(clean->ops->subtract(clean->work, (int)log->loop[k].scale, &merged));
        from += log->loop[k].count;
    }
cleanup:
    clean_components_free(&merged);
    return status;
}

/* Sets the biases by which the scale of the best fit has the largest peak. Collective.
 */
static tess_status fit_biases(tess_clean *clean)
{
    tess_status status = TESS_OK;
    clean_setup *setup = &clean->setup;
    double square[TESS_CLEAN_MOST_SCALES];
    if (setup->opts.method.scale_rule != TESS_CLEAN_BY_FIT) return TESS_OK;
    TESS_TRY(clean->ops->psf_squares(clean->work, square));
    for (int s = 0; s < setup->num_scales; ++s)
        setup->bias[s] = square[s] > 0 ? 1 / sqrt(square[s]) : 0;
cleanup:
    return status;
}

static tess_status begin(minor *run, const tess_rows *residual)
{
    tess_status status = TESS_OK;
    tess_clean *clean = run->clean;
    const bool resumed = clean->log.num_loops > 0;
    const clean_begin data = {.residual = residual,
                              .mask = clean->has_mask ? &clean->mask : NULL,
                              .found = clean_is_masked(clean) ? clean->found : NULL,
                              .local_rms = clean->setup.opts.local.kind !=
                                               TESS_CLEAN_GLOBAL_RMS &&
                                           !clean_is_masked(clean)};
    clean_noise noise;
    for (int k = 0; k < clean->setup.join.num_out * clean->setup.join.num_pol; ++k)
        if (!clean->has_psf[k]) TESS_FAIL(TESS_ERR_USAGE, "image %d has no PSF", k);
    clean->ops->psf_peaks(clean->work, run->psf_peak);
    TESS_TRY(clean->ops->begin(clean->work, &data, &noise));
    TESS_TRY(fit_biases(clean));
    if (resumed) {
        TESS_TRY(replay(run));
        TESS_TRY(measure(run));
        return status;
    }
    clean->minor = (clean_minor_state){.sigma = noise.sigma, .peak_index = -1};
    for (int s = 0; s < clean->setup.num_scales; ++s)
        clean->minor.active[s] = run->psf_peak[s] > 0 && clean->setup.bias[s] > 0;
    TESS_TRY(measure(run));
    find_thresholds(run, &noise);
cleanup:
    return status;
}

/* Says why the minor loop ended. A loop down to the final threshold has reached its end
 * even if the last transforms raised other pixels above it, or if it was repeated as
 * often as is allowed: further major iterations would find little. The last component
 * before the major threshold may bring the peak below the final one. Then a single
 * scale is done, but a multiscale loop goes on, as in WSClean, and measures σ anew. */
static tess_clean_end end_of(const minor *run)
{
    const tess_clean *clean = run->clean;
    const clean_minor_state *state = &clean->minor;
    const bool at_final = state->threshold == state->final_threshold;
    const bool is_above = best_peak(run) > state->threshold;
    if (run->diverged) return TESS_CLEAN_DIVERGED;
    if (run->stopped) return TESS_CLEAN_STOPPED;
    if (run->best < 0) return TESS_CLEAN_NOTHING;
    if (is_above && left_of_all(clean) <= 0) return TESS_CLEAN_NITER;
    if (is_above && left_of_loop(clean) <= 0) return TESS_CLEAN_MOST;
    if (is_above && run->negative && clean->setup.opts.stop_negative)
        return TESS_CLEAN_NEGATIVE;
    if (at_final || (best_peak(run) <= state->final_threshold &&
                     !clean_is_multiscale(&clean->setup)))
        return TESS_CLEAN_FINAL_THRESHOLD;
    return is_above && clean_is_multiscale(&clean->setup) ? TESS_CLEAN_LOOPS
                                                          : TESS_CLEAN_MAJOR_THRESHOLD;
}

/* Marks the pixels of a scale's components in the automatic mask. */
static void mark(tess_clean *clean, int scale, const clean_components *merged)
{
    const tess_clean_images *images = &clean->setup.images;
    const int64_t first = images->row_first * images->nx;
    const int64_t end = first + images->num_rows * images->nx;
    for (int64_t k = clean_components_from(merged, first);
         k < merged->count && merged->index[k] < end; ++k)
        clean->found[merged->index[k] - first] |= UINT32_C(1) << scale;
}

/* Takes the components of a scale: those to be added to the caller's models, `wide`,
 * and what becomes of them beside this. Local. */
static tess_status take_scale(minor *run, int scale, clean_components *wide)
{
    tess_status status = TESS_OK;
    tess_clean *clean = run->clean;
    const clean_setup *setup = &clean->setup;
    clean_components merged = {.num_images = setup->images.num_images};
    TESS_TRY(clean_log_of_scale(&clean->log, scale, &merged));
    for (int64_t c = 0; c < merged.count; ++c)
        run->report->scale_flux_jy[scale] +=
            clean_join_mean(&setup->join, merged.flux + c * merged.num_images);
    run->report->flux_jy += run->report->scale_flux_jy[scale];
    if (merged.count == 0) return TESS_OK;
    if (clean->average)
        TESS_TRY(clean_log_spread(&clean->log, scale, &setup->join, wide));
    if (clean_records(clean)) mark(clean, scale, &merged);
    TESS_TRY(clean_keep(clean, scale, &merged));
    if (clean->average) goto cleanup;
    *wide = merged;
    merged = (clean_components){0};
cleanup:
    clean_components_free(&merged);
    return status;
}

/* Adds the components to the models. Local. */
static tess_status add_found(minor *run, const tess_rows *model)
{
    tess_status status = TESS_OK;
    const tess_clean *clean = run->clean;
    const clean_setup *setup = &clean->setup;
    clean_components wide[TESS_CLEAN_MOST_SCALES];
    int64_t any = 0;
    for (int s = 0; s < setup->num_scales; ++s)
        wide[s] =
            (clean_components){.num_images = setup->join.num_out * setup->join.num_pol};
    for (int s = 0; s < setup->num_scales; ++s) {
        TESS_TRY(take_scale(run, s, &wide[s]));
        any += wide[s].count;
    }
    if (any > 0) TESS_TRY(clean->ops->add(clean->work, wide, model));
cleanup:
    for (int s = 0; s < setup->num_scales; ++s)
        clean_components_free(&wide[s]);
    return status;
}

static void fill_report(const minor *run)
{
    const tess_clean *clean = run->clean;
    const clean_minor_state *state = &clean->minor;
    tess_clean_report *report = run->report;
    report->end = end_of(run);
    report->phase = clean->major.phase;
    report->iterations = state->iterations;
    report->loops = state->loops;
    report->num_scales = clean->setup.num_scales;
    for (int s = 0; s < clean->setup.num_scales; ++s) {
        report->scale_px[s] = clean->setup.scale_px[s];
        report->scale_iterations[s] = state->scale_iterations[s];
    }
    report->peak_start = state->peak_start;
    report->peak_index = state->peak_index;
    report->peak_end = best_peak(run);
    report->sigma = state->sigma;
    report->threshold = state->threshold;
    report->final_threshold = state->final_threshold;
    report->list_s = run->list_s;
}

/* What a minor loop takes for the PSF between places with gains of their own is right
 * on average alone. So the next residual has up to a half of the peak that a loop began
 * with, wherever the loop has ended: one that began far above its threshold leaves more
 * than that. */
static bool ends_early(const tess_clean *clean)
{
    return clean_has_borders(&clean->setup) && clean->minor.iterations > 0 &&
           clean->major.iterations < clean->setup.opts.niter &&
           clean->minor.peak_start > FAR_ABOVE * clean->minor.final_threshold;
}

/* Whether another minor loop makes sense. May end the first phase of automatic masking.
 * The noise of an image with the sidelobes of bright sources is higher than that of the
 * next residual image, so that the mask may have to be recorded for longer. */
static bool goes_on_after(tess_clean *clean, tess_clean_end end)
{
    if (end == TESS_CLEAN_FINAL_THRESHOLD && ends_early(clean)) return true;
    if (end == TESS_CLEAN_FINAL_THRESHOLD && clean_records(clean)) {
        if (clean->major.majors < clean->setup.opts.mask_rounds &&
            clean->minor.iterations > 0)
            return true;
        clean->major.phase = 2;
        clean->major.threshold = 0; /* other pixels are cleaned now */
        return true;
    }
    return end == TESS_CLEAN_MAJOR_THRESHOLD || end == TESS_CLEAN_LOOPS ||
           end == TESS_CLEAN_MOST;
}

static tess_status finish(minor *run, const tess_rows *residual, const tess_rows *model)
{
    tess_status status = TESS_OK;
    tess_clean *clean = run->clean;
    fill_report(run);
    if (run->diverged || run->stopped) {
        run->report->iterations = run->stopped ? clean->minor.iterations : 0;
        run->report->total_iterations =
            clean->major.iterations + run->report->iterations;
        if (run->diverged) clean_log_clear(&clean->log);
        return TESS_OK;
    }
    TESS_TRY(tess_comm_agree(clean->setup.comm, add_found(run, model)));
    TESS_TRY(clean->ops->finish(clean->work, residual, &run->report->rms));
    clean->major.iterations += clean->minor.iterations;
    ++clean->major.majors;
    /* of a loop that has come down to it */
    clean->major.threshold = run->report->end == TESS_CLEAN_MAJOR_THRESHOLD ||
                                     run->report->end == TESS_CLEAN_FINAL_THRESHOLD
                                 ? clean->minor.threshold
                                 : 0;
    run->report->total_iterations = clean->major.iterations;
    run->report->again = goes_on_after(clean, run->report->end);
    clean_log_clear(&clean->log);
cleanup:
    return status;
}

/* Checks the rows that the caller gives. Local. */
static tess_status check_all(const tess_clean *clean, const tess_rows *residual,
                             const tess_rows *model)
{
    tess_status status = TESS_OK;
    const clean_join *join = &clean->setup.join;
    for (int k = 0; k < join->num_out * join->num_pol; ++k) {
        TESS_TRY(clean_check_rows(clean, &model[k]));
        if (join->average[k] > 0) TESS_TRY(clean_check_rows(clean, &residual[k]));
        if (model[k].type != TESS_PIXEL_DOUBLE)
            TESS_FAIL(TESS_ERR_USAGE, "models are in double precision");
    }
cleanup:
    return status;
}

tess_status tess_clean_minor(tess_clean *clean, const tess_rows *residual,
                             const tess_rows *model, tess_clean_report *report)
{
    tess_status status = TESS_OK;
    const double start = tess_time_now();
    double transforms, seconds;
    minor run = {.clean = clean, .report = report};
    *report = (tess_clean_report){0};
    clean->ops->spent(clean->work, &transforms, &seconds);
    status = check_all(clean, residual, model);
    if (clean->average && status == TESS_OK) {
        status = clean_average_rows(clean, residual);
        residual = clean->average;
    }
    TESS_TRY(tess_comm_agree(clean->setup.comm, status));
    TESS_TRY(begin(&run, residual));
    TESS_TRY(all_loops(&run));
    TESS_TRY(finish(&run, residual, model));
    clean->ops->spent(clean->work, &report->transforms, &report->transform_s);
    report->transforms -= transforms;
    report->transform_s -= seconds;
    report->total_s = tess_time_now() - start;
cleanup:
    return status;
}
