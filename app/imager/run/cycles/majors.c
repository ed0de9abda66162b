/* Major cycles. A minor loop cleans the residual image of each polarisation, or those
 * of channels and polarisations together; then the models are subtracted from the
 * visibilities, and new residual images are made. */
#include "majors_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "clean_inputs.h"
#include "image_kinds.h"
#include "spectral_maps.h"
#include "tess_common_beam.h"
#include "tess_mem.h"
#include "tess_words.h"

/* Cleaning has stalled if this number of major iterations in a row do not begin with a
 * smaller peak. */
enum { MOST_STALLED = 3 };

/* ---- set-up ---- */

/* Number of polarisations that are cleaned together. */
static int joined_pols(const image_run *run)
{
    return image_joins_pols(run->opts) ? run->num_pol : 1;
}

void majors_minor_need(const image_run *run, tess_clean_need *need)
{
    const tess_image_opts *opts = run->opts;
    const int ranks = tess_comm_size(run->comm);
    const double uvw_max_lambda = run->job.extent.uvw_max_lambda;
    const tess_join_choice *join = &opts->clean.join;
    const int channels = image_joins_channels(opts) ? (int)opts->channels_out : 1;
    const int pols = image_joins_pols(opts) ? run->num_pol : 1;
    const tess_clean_images images = {.nx = opts->nx,
                                      .ny = opts->ny,
                                      .num_rows = (opts->ny + ranks - 1) / ranks,
                                      .num_images = channels * pols,
                                      .places = majors_places(run),
                                      .join = {.num_pol = pols,
                                               .squared = join->squared,
                                               .spectrum = join->spectrum,
                                               .num_terms = join->num_terms,
                                               .num_cleaned = join->num_cleaned},
                                      .averages_are_double = opts->gridding.accuracy <
                                                             TESS_SINGLE_ACCURACY};
    const double beam_rad =
        fmax(opts->weights.taper.fwhm_rad,
             uvw_max_lambda > 0 ? 1 / uvw_max_lambda : opts->scale_rad);
    const struct image_found beam = {.beam.major_rad = beam_rad,
                                     .beam.minor_rad = beam_rad,
                                     .beam_expected = beam_rad / opts->scale_rad};
    const tess_clean_opts minor = majors_minor_opts(run, &beam);
    tess_clean_bytes(&images, &minor, ranks, need);
}

/* Models, residuals and what waits for files, on a rank. */
static double images_bytes(const image_run *run)
{
    const tess_image_opts *opts = run->opts;
    const int ranks = tess_comm_size(run->comm);
    const bool is_double = opts->gridding.accuracy < TESS_SINGLE_ACCURACY;
    const int channels = image_joins_channels(opts) ? (int)opts->channels_out : 1;
    const double pixels = (double)((opts->ny + ranks - 1) / ranks) * (double)opts->nx;
    const double kept = pixels * (8 + (is_double ? 8 : 4));
    /* dirty images, PSFs and restored images of channels that are cleaned together wait
     * until all are written, and so does a first residual */
    const int kinds = (channels > 1 ? 3 : 0) + opts->clean.first_residual;
    const double waiting = pixels * (is_double ? 8 : 4) * kinds;
    return run->num_pol * channels * (kept + waiting);
}

double majors_bytes(const image_run *run)
{
    const tess_image_opts *opts = run->opts;
    const int ranks = tess_comm_size(run->comm);
    const double pixels = (double)((opts->ny + ranks - 1) / ranks) * (double)opts->nx;
    tess_clean_need need;
    majors_minor_need(run, &need);
    const double loops =
        run->num_pol / joined_pols(run) * (need.rank_bytes + need.node_bytes / ranks);
    /* maps are made after the minor loops */
    return images_bytes(run) + majors_mask_bytes(run, pixels) +
           fmax(loops, spectral_maps_bytes(opts, pixels));
}

double majors_device_bytes(const image_run *run)
{
    tess_clean_need need;
    majors_minor_need(run, &need);
    return images_bytes(run) + run->num_pol / joined_pols(run) * need.device_bytes;
}

/* This rank's rows of an image that is cleaned, in double precision and without memory,
 * where the dirty images live. */
static tess_rows rows_of(const majors *all)
{
    tess_rows rows = tess_rows_of(all->images.nx, all->images.ny, all->images.row_first,
                                  all->images.num_rows, TESS_PIXEL_DOUBLE);
    rows.place = all->place;
    return rows;
}

/* ---- groups ---- */

/* The FITS code of total intensity; codes of Stokes parameters are above 0. */
enum { STOKES_I = 1 };

/* The factor of each polarisation in the sum of squares of several. Thresholds then
 * mean the flux of a source, as in WSClean: it is a half for correlations, and one over
 * their number for Stokes parameters without I. WSClean leaves it out where XY and YX
 * are a complex image. */
static double pol_share(const image_run *run, const bool *linked)
{
    int stokes = 0, count = 0;
    bool has_i = false;
    for (int p = 0; p < run->num_pol; ++p) {
        if (!linked[p]) continue;
        if (run->pol[p].both) return 1;
        ++count;
        stokes += run->pol[p].code > 0;
        has_i = has_i || run->pol[p].code == STOKES_I;
    }
    if (stokes == count) return has_i ? 1 : 1.0 / count;
    return count > 1 ? 0.5 : 1;
}

static bool is_linked(const image_run *run, int pol)
{
    const tess_join_choice *join = &run->opts->clean.join;
    for (int k = 0; k < join->num_linked; ++k)
        if ((int)join->linked[k] == run->pol[pol].code) return true;
    return join->num_linked == 0;
}

/* Puts the rows of a group's images into the arrays that calls take. */
static void gather_rows(const majors *all, const cleaned *group)
{
    for (int c = 0; c < all->num_channels; ++c)
        for (int p = 0; p < group->num_pol; ++p) {
            const int k = c * group->num_pol + p;
            all->residual[k] = all->channel[c].residual[group->first_pol + p];
            all->model[k] = all->channel[c].model[group->first_pol + p];
        }
}

/* The union of the channels' masks of the group's polarisations. Collective. */
static tess_status join_masks(const majors *all, const cleaned *group,
                              tess_rows *joined)
{
    tess_status status = TESS_OK;
    const image_run *run = all->run;
    tess_rows mask = {0};
    for (int c = 0; c < all->num_channels; ++c)
        for (int p = 0; p < group->num_pol; ++p) {
            if (!is_linked(run, group->first_pol + p) && group->num_pol > 1) continue;
            /* a channel without data has no primary beam that bounds its mask */
            if (!all->channel[c].has_data &&
                (joined->value || c < all->num_channels - 1))
                continue;
            mask = rows_of(all);
            TESS_TRY(clean_inputs_mask(run, all->channel[c].output,
                                       group->first_pol + p, &mask));
            if (!joined->value) {
                *joined = mask;
                mask = (tess_rows){0};
            }
            for (int64_t k = 0; k < tess_rows_count(&mask); ++k)
                if (tess_rows_pixel(&mask, k) != 0) tess_rows_set(joined, k, 1);
            tess_rows_free(&mask);
        }
cleanup:
    tess_rows_free(&mask);
    return status;
}

/* " of t0001-0003-Q": what is cleaned by itself, as the names of its files have it; ""
 * for the only image. */
static const char *of_group(const majors *all, const cleaned *group, char *text,
                            size_t size)
{
    const output_table *outputs = &all->run->outputs;
    const int64_t output = all->channel[0].output;
    char interval[24] = "", channel[24] = "", pol[8] = "";
    int length;
    if (outputs->num_intervals > 1)
        snprintf(interval, sizeof interval, "-t%04lld",
                 (long long)(output / outputs->num_channels));
    if (outputs->num_channels > 1 && !image_joins_channels(all->run->opts))
        snprintf(channel, sizeof channel, "-%04lld",
                 (long long)(output % outputs->num_channels));
    if (all->num_groups > 1) tess_pol_name(&all->run->pol[group->first_pol], pol);
    length =
        snprintf(text, size, " of%s%s%s%s", interval, channel, pol[0] ? "-" : "", pol);
    text[3] = ' '; /* in place of the first '-', or of the end */
    return length > 3 ? text : "";
}

/* Whether nothing is set in a mask of a group, beside which others have masks of their
 * own: channels without a line. Where it is the only mask, it is refused when it is
 * used. Collective. */
static tess_status is_left_out(const majors *all, const tess_rows *mask, bool *is_empty)
{
    tess_status status = TESS_OK;
    int64_t set = 0;
    const bool is_only =
        all->num_groups == 1 && all->run->outputs.num == all->num_channels;
    if (is_only) return TESS_OK;
    for (int64_t k = 0; k < tess_rows_count(mask); ++k)
        set += tess_rows_pixel(mask, k) != 0;
    TESS_TRY(tess_comm_allreduce_i64(all->slabs, &set, 1, TESS_SUM));
    *is_empty = set == 0;
cleanup:
    return status;
}

/* Cleans a group within the user's masks, which bound automatic ones. `*is_empty`:
 * there is nothing to clean. Collective. */
static tess_status take_masks(const majors *all, cleaned *group, bool *is_empty)
{
    tess_status status = TESS_OK;
    tess_rows mask = {0};
    if (clean_inputs_have_mask(all->run)) {
        TESS_TRY(join_masks(all, group, &mask));
        if (group->first_pol == 0) TESS_TRY(majors_warn_of_mask(all, &mask));
    }
    if (all->run->opts->clean.multithresh.finds) {
        TESS_TRY(majors_mask_begin(all, group, &mask));
    } else if (mask.value) {
        TESS_TRY(is_left_out(all, &mask, is_empty));
        if (*is_empty) goto cleanup;
        TESS_TRY(tess_comm_agree(all->slabs, tess_rows_move(&mask, all->place)));
        TESS_TRY(tess_clean_set_mask(group->clean, &mask));
    }
cleanup:
    tess_rows_free(&mask);
    return status;
}

/* Describes the images of a group; arrays are borrowed. */
static tess_clean_images group_images(const majors *all, const cleaned *group,
                                      bool *linked)
{
    const image_run *run = all->run;
    const tess_join_choice *join = &run->opts->clean.join;
    tess_clean_images images = all->images;
    images.num_images = all->num_channels * group->num_pol;
    images.weight = all->weight;
    for (int p = 0; p < group->num_pol; ++p)
        linked[p] = group->num_pol == 1 || is_linked(run, group->first_pol + p);
    images.join = (tess_clean_join){.num_pol = group->num_pol, .linked = linked};
    if (group->num_pol > 1) images.join.pol_share = pol_share(run, linked);
    images.join.is_signed = all->run->opts->clean.minor.no_negative ||
                            all->run->opts->clean.minor.stop_negative;
    if (group->num_pol > 1 || all->num_channels > 1)
        images.join.squared = join->squared;
    if (all->num_channels == 1) return images;
    images.join.spectrum = join->spectrum;
    images.join.num_terms = join->num_terms;
    images.join.freq_hz = all->freq_hz;
    images.join.nu0_hz = majors_reference_hz(run);
    images.join.num_cleaned = join->num_cleaned;
    return images;
}

/* Finds the weights of a group's images; returns whether any image that is searched has
 * data. */
static bool find_weights(const majors *all, const cleaned *group)
{
    bool any = false;
    for (int c = 0; c < all->num_channels; ++c) {
        all->freq_hz[c] = all->channel[c].freq_hz;
        for (int p = 0; p < group->num_pol; ++p) {
            const int pol = group->first_pol + p;
            const double weight = majors_weight(all, c, pol);
            all->weight[c * group->num_pol + p] = weight;
            any = any ||
                  (weight > 0 && (group->num_pol == 1 || is_linked(all->run, pol)));
        }
    }
    return any;
}

/* A group whose mask is empty is not cleaned. Local. */
static void leave_out(const majors *all, cleaned *group)
{
    char of[64];
    tess_clean_destroy(group->clean);
    group->clean = NULL;
    group->end = IMAGE_END_UNMASKED;
    if (tess_comm_rank(all->run->comm) == 0)
        tess_log_info("nothing%s is cleaned: its mask is empty",
                      of_group(all, group, of, sizeof of));
}

/* Creates the object that cleans a group, with its PSFs and mask. Collective. */
static tess_status create_clean(majors *all, cleaned *group)
{
    tess_status status = TESS_OK;
    bool linked[TESS_MAX_POL], is_empty = false;
    tess_clean_opts opts;
    const image_run *run = all->run;
    if (!find_weights(all, group)) return TESS_OK;
    if (!clean_inputs_cleans(run, all->channel->output % run->outputs.num_channels))
        return TESS_OK;
    const tess_clean_images images = group_images(all, group, linked);
    TESS_TRY(majors_group_opts(all, group, &opts));
    TESS_TRY(tess_clean_create(all->slabs, &images, &opts, &group->clean));
    if (all->run->opts->clean.save_sources)
        TESS_TRY(tess_comm_agree(all->slabs, tess_clean_keep_components(group->clean)));
    for (int c = 0; c < all->num_channels; ++c)
        for (int p = 0; p < group->num_pol; ++p)
            if (majors_weight(all, c, group->first_pol + p) > 0)
                TESS_TRY(tess_clean_set_psf(
                    group->clean, c * group->num_pol + p,
                    &majors_psf(all, c, group->first_pol + p)->rows));
    TESS_TRY(majors_give_psfs(all, group));
    TESS_TRY(take_masks(all, group, &is_empty));
    if (is_empty) {
        leave_out(all, group);
        return TESS_OK;
    }
    group->goes_on = true;
    group->least_peak = INFINITY;
cleanup:
    return status;
}

/* Makes models of zero, or reads those of an earlier run. Collective. */
static tess_status begin_models(majors *all)
{
    tess_status status = TESS_OK;
    image_run *run = all->run;
    const int64_t channels = run->outputs.num_channels;
    for (int k = 0; k < majors_num_images(all) && status == TESS_OK; ++k) {
        tess_rows *model = &all->channel[k / run->num_pol].model[k % run->num_pol];
        *model = rows_of(all);
        status = tess_rows_alloc_zero(model);
    }
    TESS_TRY(tess_comm_agree(run->comm, status));
    if (!run->opts->clean.continues || majors_can_continue(all)) return TESS_OK;
    all->has_model = true;
    for (int k = 0; k < majors_num_images(all); ++k) {
        group_channel *c = &all->channel[k / run->num_pol];
        TESS_TRY(clean_inputs_model(run, run->comm, c->output / channels,
                                    c->output % channels, k % run->num_pol,
                                    &c->model[k % run->num_pol]));
    }
    for (int g = 0; g < all->num_groups; ++g) {
        gather_rows(all, &all->group[g]);
        if (all->group[g].clean)
            TESS_TRY(tess_comm_agree(
                run->comm, tess_clean_mark_model(all->group[g].clean, all->model)));
    }
cleanup:
    return status;
}

/* Shows the progress of a minor loop: the share of the way from its peak to its
 * threshold, on a logarithmic scale. Local. */
static void tell_progress(void *context, const tess_clean_progress *now)
{
    majors *all = context;
    const double way = log(now->peak_start / now->threshold);
    const double share = way > 0 && now->peak > 0 && now->threshold > 0
                             ? log(now->peak_start / now->peak) / way
                             : 0;
    tess_progress_reach(&all->progress, (double)now->iterations, fmin(share, 1));
}

/* Between sub-minor loops, saves the components so far. Not so for cross-hands: what
 * was subtracted from the real part is also in the residual of the imaginary part,
 * which no checkpoint has. They are saved between major iterations only. Collective. */
static tess_status look(void *context, bool *stop)
{
    const majors *all = context;
    image_run *run = all->run;
    *stop = false;
    for (int p = 0; p < run->num_pol; ++p)
        if (run->pol[p].imaginary) return TESS_OK;
    return image_checkpoint_cleaned(image_run_checkpoint(run));
}

/* The smallest beam of all channels, which determines the scales. */
static struct image_found joined_beam(const majors *all)
{
    struct image_found beam = channel_group_first(all->channels)->found[0];
    for (int c = 0; c < all->num_channels; ++c) {
        const struct image_found *other = &all->channel[c].found[0];
        if (all->channel[c].has_data && other->beam_expected > 0 &&
            other->beam_expected < beam.beam_expected)
            beam = *other;
    }
    return beam;
}

static tess_status allocate(majors *all)
{
    tess_status status = TESS_OK;
    const int count = majors_num_images(all);
    all->residual = tess_alloc_zero(count, sizeof *all->residual);
    all->model = tess_alloc_zero(count, sizeof *all->model);
    all->weight = tess_alloc_zero(count, sizeof *all->weight);
    all->freq_hz = tess_alloc_zero(all->num_channels, sizeof *all->freq_hz);
    if (!all->residual || !all->model || !all->weight || !all->freq_hz)
        TESS_FAIL(TESS_ERR_ALLOC, "images that are cleaned together");
cleanup:
    return status;
}

static tess_status set_up(majors *all)
{
    tess_status status = TESS_OK;
    const image_run *run = all->run;
    const tess_rows *rows = &channel_group_first(all->channels)->made[0].rows;
    const struct image_found beam = joined_beam(all);
    const tess_clean_calls calls = {
        .progress = tell_progress, .look = look, .context = all};
    all->images =
        (tess_clean_images){.nx = rows->nx,
                            .ny = run->opts->ny,
                            .row_first = rows->row_first,
                            .num_rows = rows->num_rows,
                            .num_images = 1,
                            .places = majors_own_places(all),
                            .averages_are_double = rows->type == TESS_PIXEL_DOUBLE};
    all->place = rows->place;
    all->opts = majors_minor_opts(run, &beam);
    TESS_TRY(tess_comm_agree(run->comm, allocate(all)));
    TESS_TRY(majors_order_ranks(run, &all->slabs));
    all->num_groups = run->num_pol / joined_pols(run);
    for (int g = 0; g < all->num_groups; ++g) {
        cleaned *group = &all->group[g];
        group->num_pol = joined_pols(run);
        group->first_pol = g * group->num_pol;
        TESS_TRY(create_clean(all, group));
        if (group->clean) tess_clean_set_calls(group->clean, &calls);
    }
    TESS_TRY(begin_models(all));
    if (majors_can_continue(all)) TESS_TRY(majors_continue(all));
    image_checkpoint_cycle(image_run_checkpoint(all->run), majors_save, all);
cleanup:
    return status;
}

/* ---- residual images ---- */

static bool any_goes_on(const majors *all)
{
    for (int g = 0; g < all->num_groups; ++g)
        if (all->group[g].goes_on) return true;
    return false;
}

/* Whether there have been as many major iterations as are allowed. */
static bool has_had_all(const majors *all)
{
    const int64_t nmiter = all->run->opts->clean.nmiter;
    return nmiter > 0 && all->num >= nmiter;
}

/* Makes residuals for the next minor loops or, after the last ones, for files. These
 * have slopes between facets. Collective. */
static tess_status make_residuals(majors *all)
{
    all->is_hard = all->likeness && any_goes_on(all) && !has_had_all(all);
    return majors_make_residuals(all);
}

/* Makes the first residuals: dirty images, less the model if one is continued.
 * Collective. */
static tess_status begin_residuals(majors *all)
{
    tess_status status = TESS_OK;
    const image_run *run = all->run;
    if (all->has_model) return make_residuals(all);
    for (int k = 0; k < majors_num_images(all) && status == TESS_OK; ++k) {
        group_channel *c = &all->channel[k / run->num_pol];
        const int p = k % run->num_pol;
        if (!c->has_data) continue;
        if (run->opts->no_dirty) {
            c->residual[p] = c->made[p].rows;
            c->made[p].rows = (tess_rows){0};
        } else
            status = tess_rows_copy(&c->made[p].rows, &c->residual[p]);
    }
    TESS_TRY(tess_comm_agree(run->comm, status));
cleanup:
    return status;
}

/* ---- one major iteration ---- */

static image_end end_of(tess_clean_end end)
{
    switch (end) {
    case TESS_CLEAN_NITER:
        return IMAGE_END_NITER;
    case TESS_CLEAN_NEGATIVE:
        return IMAGE_END_NEGATIVE;
    case TESS_CLEAN_DIVERGED:
        return IMAGE_END_DIVERGED;
    case TESS_CLEAN_NOTHING:
        return IMAGE_END_NOTHING;
    default:
        return IMAGE_END_THRESHOLD;
    }
}

/* Whether several minor loops in a row have begun with a residual as high as earlier
 * ones. */
static bool has_stalled(cleaned *group, const tess_clean_report *report,
                        bool same_phase)
{
    const bool falls = report->peak_start < group->least_peak || !same_phase;
    group->num_stalled = falls ? 0 : group->num_stalled + 1;
    if (falls) group->least_peak = report->peak_start;
    return group->num_stalled >= MOST_STALLED;
}

/* Whether the allowed number of major iterations inside the automatic mask is used up.
 */
static bool has_used_mask(const majors *all, const cleaned *group)
{
    const int64_t most = all->run->opts->clean.mask_nmiter;
    return most > 0 && group->num_masked >= most;
}

/* Whether an automatic mask of the next residual may have more: until a minor loop
 * finds nothing above the final threshold in it. */
static bool may_find_more(const majors *all, const tess_clean_report *report)
{
    return all->run->opts->clean.multithresh.finds &&
           report->end == TESS_CLEAN_FINAL_THRESHOLD && report->iterations > 0;
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

/* ", 4 channels joined" */
static const char *joined_text(const majors *all, const cleaned *group, char *text,
                               size_t size)
{
    int with_data = 0;
    for (int c = 0; c < all->num_channels; ++c)
        with_data += all->channel[c].has_data;
    text[0] = '\0';
    if (all->num_channels > 1 && group->num_pol > 1)
        snprintf(text, size, ", %d channels of %d polarisations joined", with_data,
                 group->num_pol);
    else if (all->num_channels > 1)
        snprintf(text, size, ", %d channels joined", with_data);
    else if (group->num_pol > 1)
        snprintf(text, size, ", %d polarisations joined", group->num_pol);
    return text;
}

/* "major 2 of Q: 123 iterations, scales 0 (100), 12.3 (23), peak 1.2 to 0.3 Jy/beam, …"
 */
static void tell_major(const majors *all, const cleaned *group)
{
    const tess_clean_report *report = &group->report;
    char text[400], of[64], from[48], to[48], threshold[48], rms[48], joined[64];
    tess_words_flux(report->peak_start, 4, from, sizeof from);
    tess_words_flux(report->peak_end, 4, to, sizeof to);
    tess_words_flux(report->threshold, 4, threshold, sizeof threshold);
    tess_words_flux(report->rms, 3, rms, sizeof rms);
    snprintf(text, sizeof text, "major %lld%s: %lld iteration%s",
             (long long)group->num_majors, of_group(all, group, of, sizeof of),
             (long long)report->iterations, report->iterations == 1 ? "" : "s");
    add_scales(report, text, sizeof text);
    tess_log_info("%s, peak %s to %s, threshold %s, rms %s, flux %.5g Jy, %.2f s%s%s",
                  text, from, to, threshold, rms, report->flux_jy, report->total_s,
                  joined_text(all, group, joined, sizeof joined),
                  report->phase == 2 ? ", automatic mask" : "");
    tess_log_detail("major %lld%s: %d sub-minor loop%s, ended by %s; %.0f transforms "
                    "%.2f s, lists %.2f s",
                    (long long)group->num_majors, of_group(all, group, of, sizeof of),
                    report->loops, report->loops == 1 ? "" : "s",
                    tess_clean_end_text(report->end), report->transforms,
                    report->transform_s, report->list_s);
}

/* The image was cleaned to the threshold of the first phase, if that was the lower one.
 */
static void keep_reached(const majors *all, double reached, tess_clean_report *report)
{
    if (reached > 0 && all->opts.auto_mask < all->opts.auto_threshold)
        report->final_threshold = fmin(reached, report->final_threshold);
}

/* Ends cleaning of a group whose automatic mask is empty: without iterations, of which
 * the watcher is told, too. Collective. */
static tess_status leave_unmasked(const majors *all, cleaned *group)
{
    char of[64];
    group->report.iterations = 0;
    group->report.peak_start = group->report.peak_end;
    ++group->num_majors;
    group->is_done = true;
    group->goes_on = false;
    group->end = IMAGE_END_UNMASKED;
    group->masks.is_ready = false;
    if (tess_comm_rank(all->run->comm) == 0)
        tess_log_info("major %lld%s: the mask is empty", (long long)group->num_majors,
                      of_group(all, group, of, sizeof of));
    return majors_tell_watcher(all, group);
}

/* Runs a minor loop of a group. Collective. */
static tess_status clean_one(majors *all, cleaned *group)
{
    tess_status status = TESS_OK;
    const tess_clean_report *report = &group->report;
    const int phase = group->report.phase;
    const double reached = group->report.final_threshold;
    const bool first = tess_comm_rank(all->run->comm) == 0;
    char of[64];
    bool is_empty;
    TESS_TRY(majors_mask_update(all, group, &is_empty));
    if (is_empty) return leave_unmasked(all, group);
    gather_rows(all, group);
    tess_progress_start(&all->progress, "cleaning", " iterations", 0);
    status = tess_clean_minor(group->clean, all->residual, all->model, &group->report);
    tess_progress_finish(&all->progress);
    TESS_TRY(status);
    ++group->num_majors;
    group->num_masked += report->phase == 2;
    group->is_done = true;
    majors_mask_end(group);
    if (report->iterations > 0) all->has_model = all->changed = true;
    group->iterations = report->total_iterations;
    group->goes_on = report->again || may_find_more(all, report);
    if (report->phase == 2) keep_reached(all, reached, &group->report);
    group->end = end_of(report->end);
    if (first) tell_major(all, group);
    if (group->goes_on && has_stalled(group, report, report->phase == phase)) {
        group->goes_on = false;
        group->end = IMAGE_END_STALLED;
    }
    if (group->goes_on && has_used_mask(all, group)) {
        group->goes_on = false;
        group->end = IMAGE_END_MASK_NMITER;
    }
    if (group->end == IMAGE_END_DIVERGED && first)
        tess_log_warn(
            "cleaning diverged in major iteration %lld%s: the image is left as it "
            "was before; a smaller --gain or --mgain, a mask, or a larger --size may "
            "help",
            (long long)group->num_majors, of_group(all, group, of, sizeof of));
    TESS_TRY(majors_tell_watcher(all, group));
cleanup:
    return status;
}

/* Runs minor loops of all groups that are not finished and have had none in this major
 * iteration. Collective. */
static tess_status clean_all(majors *all)
{
    tess_status status = TESS_OK;
    image_run *run = all->run;
    double mark = tess_time_now();
    for (int g = 0; g < all->num_groups; ++g)
        if (all->group[g].goes_on && !all->group[g].is_done)
            TESS_TRY(clean_one(all, &all->group[g]));
    ++all->num;
    for (int g = 0; g < all->num_groups; ++g)
        all->group[g].is_done = false;
    tess_profile_lap(run->profile, TESS_STAGE_CLEAN, &mark);
    TESS_TRY(image_checkpoint_cleaned(image_run_checkpoint(run)));
cleanup:
    return status;
}

static void stop_all(majors *all, image_end end)
{
    for (int g = 0; g < all->num_groups; ++g)
        if (all->group[g].goes_on) {
            all->group[g].goes_on = false;
            all->group[g].end = end;
        }
}

/* Copies the residuals after the first major iteration. Collective. */
static tess_status keep_first(majors *all)
{
    tess_status status = TESS_OK;
    const image_run *run = all->run;
    if (!run->opts->clean.first_residual || all->has_first) return TESS_OK;
    all->has_first = true;
    for (int k = 0; k < majors_num_images(all) && status == TESS_OK; ++k) {
        const int c = k / run->num_pol, p = k % run->num_pol;
        tess_rows *to = &majors_product(all, c, IMAGE_FIRST_RESIDUAL, p)->rows;
        if (all->channel[c].has_data)
            status = tess_rows_copy(&all->channel[c].residual[p], to);
    }
    return tess_comm_agree(run->comm, status);
}

static tess_status all_majors(majors *all)
{
    tess_status status = TESS_OK;
    for (;;) {
        if (all->num > 0) TESS_TRY(keep_first(all));
        if (has_had_all(all)) stop_all(all, IMAGE_END_NMITER);
        if (!any_goes_on(all)) break;
        TESS_TRY(clean_all(all));
        if (all->changed) TESS_TRY(make_residuals(all));
    }
    TESS_TRY(keep_first(all));
    if (all->is_hard) TESS_TRY(make_residuals(all)); /* the last loop found nothing */
cleanup:
    return status;
}

/* ---- all ---- */

static void free_all(majors *all)
{
    for (int g = 0; g < all->num_groups; ++g) {
        tess_clean_destroy(all->group[g].clean);
        majors_mask_free(&all->group[g]);
    }
    for (int k = 0; k < majors_num_images(all); ++k) {
        group_channel *c = &all->channel[k / all->run->num_pol];
        tess_rows_free(&c->model[k % all->run->num_pol]);
        tess_rows_free(&c->residual[k % all->run->num_pol]);
    }
    tess_free(all->residual);
    tess_free(all->model);
    tess_free(all->weight);
    tess_free(all->freq_hz);
    tess_free(all->likeness);
    if (all->slabs && all->slabs != all->run->comm) tess_comm_free(all->slabs);
}

/* Channels without weights have the frequency of the middle of their band. Local. */
static void find_frequencies(majors *all)
{
    const image_run *run = all->run;
    for (int c = 0; c < all->num_channels; ++c) {
        group_channel *channel = &all->channel[c];
        double centre_hz, width_hz;
        if (channel->freq_hz > 0) continue;
        output_table_band(&run->outputs, run->info,
                          channel->output % run->outputs.num_channels, &centre_hz,
                          &width_hz);
        channel->freq_hz = centre_hz;
    }
}

tess_status majors_clean(channel_group *group)
{
    tess_status status = TESS_OK;
    image_run *run = group->run;
    majors all = {.run = run,
                  .channels = group,
                  .channel = group->channel,
                  .num_channels = group->num_channels};
    double mark = tess_time_now();
    find_frequencies(&all);
    TESS_TRY(majors_compare_gains(&all));
    TESS_TRY(set_up(&all));
    tess_profile_lap(run->profile, TESS_STAGE_CLEAN, &mark);
    TESS_TRY(begin_residuals(&all));
    TESS_TRY(majors_warn_of_accuracy(&all));
    TESS_TRY(all_majors(&all));
    if (run->opts->clean.save_sources)
        TESS_TRY(component_list_make(&all, &run->output.sources));
    mark = tess_time_now();
    tess_progress_start(&all.progress, "restoring", " channels", all.num_channels);
    for (int c = 0; c < all.num_channels; ++c) {
        TESS_TRY(majors_take_products(&all, c));
        tess_progress_add(&all.progress, 1);
    }
    tess_progress_finish(&all.progress);
    tess_profile_lap(run->profile, TESS_STAGE_CLEAN, &mark);
cleanup:
    image_checkpoint_cycle(image_run_checkpoint(run), NULL, NULL);
    free_all(&all);
    return status;
}
