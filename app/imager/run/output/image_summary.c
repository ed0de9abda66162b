/* The last lines of `tessera image`, in an astronomer's words. */
#define _GNU_SOURCE
#include "image_summary.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "image_found.h"
#include "tess_beam.h"
#include "tess_const.h"
#include "tess_geom.h"
#include "tess_log.h"
#include "tess_words.h"

/* The most files that are named. */
enum { MOST_FILES = 8 };

/* A residual of so many times the expected noise is told to be one. At the second
 * number it is worth a warning: it is not noise whose weights are somewhat off. */
static const double SEVERAL = 3, FAR_ABOVE_NOISE = 10;

/* "the final threshold" */
static const char *end_text(image_end end)
{
    static const char *const text[] = {
        [IMAGE_END_THRESHOLD] = "the final threshold",
        [IMAGE_END_NMITER] = "the number of major iterations (--nmiter)",
        [IMAGE_END_MASK_NMITER] =
            "the number of major iterations in the mask (--auto-mask-nmiter)",
        [IMAGE_END_NITER] = "the number of iterations (--niter)",
        [IMAGE_END_NEGATIVE] = "a negative component",
        [IMAGE_END_STALLED] = "a residual that no longer falls",
        [IMAGE_END_DIVERGED] = "divergence",
        [IMAGE_END_NOTHING] = "an image without anything to clean",
        [IMAGE_END_UNMASKED] = "an automatic mask without a pixel",
        [IMAGE_END_STOPPED] = "the caller's word"};
    return text[end];
}

/* ---- what is told ---- */

/* Append to a text of limited size. */
__attribute__((format(printf, 3, 4))) static void add(char *text, size_t size,
                                                      const char *format, ...)
{
    const size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    if (used < size) vsnprintf(text + used, size - used, format, args);
    va_end(args);
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* " and 2 more observations" */
static void add_others(char *text, size_t size, int num_obs)
{
    if (num_obs > 1)
        add(text, size, " and %d more observation%s", num_obs - 1,
            num_obs > 2 ? "s" : "");
}

static void tell_observation(const image_files *output)
{
    const tess_source_info *info = output->info;
    const tess_vis_meta *meta = info->meta;
    const double *span = output->outputs->interval_span;
    const double end_s = span[2 * output->outputs->num_intervals - 1];
    char text[400], start[48], end[48], band[64];
    double centre_hz, width_hz;
    snprintf(text, sizeof text, "%s", meta->object[0] ? meta->object : "unnamed field");
    if (meta->telescope[0]) add(text, sizeof text, ", %s", meta->telescope);
    tess_words_time(span[0], start, sizeof start);
    tess_words_time(end_s, end, sizeof end);
    const bool same_day = strncmp(start, end, strlen("YYYY-MM-DD")) == 0;
    start[strcspn(start, ".")] = end[strcspn(end, ".")] = '\0';
    if (span[0] > 0 && end_s > 0)
        add(text, sizeof text, ", %s to %s UTC", start,
            same_day ? end + strlen("YYYY-MM-DD ") : end);
    output_table_band(output->outputs, info, -1, &centre_hz, &width_hz);
    tess_words_band(centre_hz - width_hz / 2, centre_hz + width_hz / 2, band,
                    sizeof band);
    add(text, sizeof text, ", %s", band);
    tess_words_tell("observation", "%s", text);
}

static void tell_column(const image_files *output)
{
    const char *less = output->opts->selection.subtract_column;
    const tess_source_info *info = output->info;
    char text[400];
    if (info->data_column[0])
        snprintf(text, sizeof text, "%s of %.200s", info->data_column,
                 name_of(info->meta->path));
    else
        snprintf(text, sizeof text, "none, %.200s is %s", name_of(info->meta->path),
                 info->meta->format);
    if (less) add(text, sizeof text, ", less its %s", less);
    if (output->opts->selection.continuum.subtracts)
        add(text, sizeof text, ", less the continuum");
    add_others(text, sizeof text, output->opts->num_obs);
    tess_words_tell("data column", "%s", text);
}

/* `unsolved`: visibilities that facets leave out, once for each facet. */
static void tell_counts(const image_counts *counts, int64_t unsolved)
{
    static const char *const reason[TESS_NUM_IGNORED] = {
        [TESS_IGNORED_FLAGGED] = "flagged",
        [TESS_IGNORED_WEIGHT] = "of weight 0 or less",
        [TESS_IGNORED_NOT_FINITE] = "not finite",
        [TESS_IGNORED_AUTOCORR] = "autocorrelations",
        [TESS_IGNORED_BEYOND_UV] = "beyond the grid (too long for --scale)",
        [TESS_IGNORED_UVRANGE] = "outside --uvrange"};
    char text[512] = "";
    int64_t ignored = 0;
    for (int k = 0; k < TESS_NUM_IGNORED; ++k) {
        if (counts->ignored[k] == 0) continue;
        add(text, sizeof text, "%s%lld %s", ignored > 0 ? ", " : "",
            (long long)counts->ignored[k], reason[k]);
        ignored += counts->ignored[k];
    }
    if (ignored > 0)
        tess_words_tell("visibilities", "%lld used, %lld ignored: %s",
                        (long long)counts->used, (long long)ignored, text);
    else
        tess_words_tell("visibilities", "%lld used, none ignored",
                        (long long)counts->used);
    if (unsolved > 0)
        tess_words_tell("no solution", "%lld visibilities, once for each facet",
                        (long long)unsolved);
}

static void tell_weighting(const tess_image_opts *opts)
{
    const tess_taper *taper = &opts->weights.taper;
    char text[128];
    if (opts->weights.weighting == TESS_BRIGGS)
        snprintf(text, sizeof text, "Briggs, robust %g", opts->weights.robust);
    else
        snprintf(text, sizeof text, "%s",
                 opts->weights.weighting == TESS_UNIFORM ? "uniform" : "natural");
    if (opts->weights.weighting != TESS_NATURAL && opts->weights.rank_filter > 0)
        add(text, sizeof text, ", rank filter %g", opts->weights.rank_filter);
    if (taper->minor_rad > 0)
        add(text, sizeof text, ", tapered to %.3g x %.3g arcsec",
            taper->fwhm_rad / TESS_RAD_PER_ASEC, taper->minor_rad / TESS_RAD_PER_ASEC);
    else if (taper->fwhm_rad > 0)
        add(text, sizeof text, ", tapered to %.3g arcsec",
            taper->fwhm_rad / TESS_RAD_PER_ASEC);
    if (taper->outer_lambda > 0 || taper->inner_lambda > 0)
        add(text, sizeof text, ", tapered at the ends of --uvrange");
    if (taper->edge_lambda > 0 || taper->edge_tukey_lambda > 0)
        add(text, sizeof text, ", tapered at the edges of the grid");
    tess_words_tell("weighting", "%s", text);
}

/* ---- images ---- */

/* "t0001-0003-Q" as in file names, "" for the only image. */
static void image_name(const image_files *output, int64_t number, char text[64])
{
    const image_found_table *summary = output->summary;
    const int64_t pol = number % summary->num_pol;
    const int64_t place = number / summary->num_pol % summary->num_channels;
    const int64_t interval = number / summary->num_pol / summary->num_channels;
    char name[8];
    text[0] = '\0';
    if (summary->num_intervals > 1) add(text, 64, "t%04lld", (long long)interval);
    if (summary->num_channels > 1 && place == summary->num_channels - 1)
        add(text, 64, "%sMFS", text[0] ? "-" : "");
    else if (summary->num_channels > 1)
        add(text, 64, "%s%04lld", text[0] ? "-" : "", (long long)place);
    tess_pol_name(&output->pol[pol], name);
    if (summary->num_pol > 1) add(text, 64, "%s%s", text[0] ? "-" : "", name);
}

/* Extremes of a number over the images. */
typedef struct range {
    double low, high;
    int64_t first_low, first_high; /* images, -1: none */
} range;

static range range_of(const image_found_table *summary, size_t member)
{
    range r = {INFINITY, -INFINITY, -1, -1};
    for (int64_t k = 0; k < image_found_count(summary); ++k) {
        const struct image_found *found = &summary->image[k];
        const double value = *(const double *)((const char *)found + member);
        const bool is_beam = member <= offsetof(struct image_found, beam.pa_rad);
        if (!(found->has_data > 0) || isnan(value) ||
            (is_beam && !(found->beam.major_rad > 0)))
            continue;
        if (value < r.low) {
            r.low = value;
            r.first_low = k;
        }
        if (value > r.high) {
            r.high = value;
            r.first_high = k;
        }
    }
    return r;
}

#define RANGE(summary, name) range_of(summary, offsetof(struct image_found, name))

/* "8.75" or "8.75 to 8.9" */
static void add_span(char *text, size_t size, const range *r, double unit)
{
    char low[32], high[32];
    snprintf(low, sizeof low, "%.3g", r->low / unit);
    snprintf(high, sizeof high, "%.3g", r->high / unit);
    if (strcmp(low, high) == 0)
        add(text, size, "%s", low);
    else
        add(text, size, "(%s to %s)", low, high);
}

static void tell_beams(const image_files *output)
{
    const image_found_table *summary = output->summary;
    const range major = RANGE(summary, beam.major_rad),
                minor = RANGE(summary, beam.minor_rad),
                pa = RANGE(summary, beam.pa_rad);
    char text[256] = "";
    double unit_rad;
    if (major.first_high < 0) {
        tess_words_tell("beam", "%s",
                        output->opts->make_psf ? "none could be fitted"
                                               : "not fitted, as --no-psf is given");
        return;
    }
    const char *unit = tess_words_angle_unit(major.high, &unit_rad);
    add_span(text, sizeof text, &major, unit_rad);
    add(text, sizeof text, " x ");
    add_span(text, sizeof text, &minor, unit_rad);
    add(text, sizeof text, " %s, PA ", unit);
    add_span(text, sizeof text, &pa, TESS_RAD_PER_DEG);
    add(text, sizeof text, " deg");
    tess_words_tell("beam", "%s", text);
}

/* Where a pixel is on the sky, as precisely as its size; "" beyond the horizon. SIN
 * projection: FITS paper II, section 5.1.5. */
static void position_text(const image_files *output, double number, char *text,
                          size_t size)
{
    const tess_image_opts *opts = output->opts;
    const tess_geom geom = {.nx = opts->nx,
                            .ny = opts->ny,
                            .scale_rad = opts->scale_rad,
                            .l0 = output->info->turn[0],
                            .m0 = output->info->turn[1]};
    const double l = tess_geom_l(&geom, (int64_t)number % opts->nx);
    const double m = tess_geom_m(&geom, (int64_t)number / opts->nx);
    const double n2 = 1 - l * l - m * m;
    const double lmn1[3] = {l, m, sqrt(fmax(n2, 0)) - 1};
    double ra, dec;
    tess_sky_place(lmn1, output->info->ra_rad, output->info->dec_rad, &ra, &dec);
    const double places = -log10(opts->scale_rad / TESS_RAD_PER_ASEC);
    const int decimals = places < 0 ? 0 : places > 8 ? 9 : 1 + (int)places;
    char ra_text[48], dec_text[48];
    text[0] = '\0';
    if (n2 < 0) return;
    tess_words_ra(ra, decimals + 1, ra_text, sizeof ra_text);
    tess_words_dec(dec, decimals, dec_text, sizeof dec_text);
    snprintf(text, size, " at %s %s", ra_text, dec_text);
}

/* "1738 iterations in 6 majors, 12.3 Jy, to the final threshold of 2.1 mJy/beam" */
static void cleaned_text(const struct image_found *found, char *text, size_t size)
{
    char flux[64];
    snprintf(text, size, "%.0f iteration%s in %.0f major%s, %.4g Jy, until %s",
             found->iterations, found->iterations == 1 ? "" : "s", found->majors,
             found->majors > 1 ? "s" : "", found->flux_jy,
             end_text((image_end)found->clean_end));
    if (!((image_end)found->clean_end == IMAGE_END_THRESHOLD)) return;
    tess_words_flux(found->threshold_jy, 3, flux, sizeof flux);
    add(text, size, " of %s", flux);
    if (found->residual_deviation_jy > 0)
        add(text, size, ", %.2g sigma of the residual",
            found->threshold_jy / found->residual_deviation_jy);
}

/* "peak 3.1 mJy/beam, rms 0.21 mJy/beam, 1.4826 MAD 0.2 mJy/beam" */
static void residual_text(const struct image_found *found, char *text, size_t size)
{
    char peak[64], rms[64], deviation[64];
    tess_words_flux(found->residual_peak_jy, 4, peak, sizeof peak);
    tess_words_flux(found->residual_rms_jy, 3, rms, sizeof rms);
    tess_words_flux(found->residual_deviation_jy, 3, deviation, sizeof deviation);
    snprintf(text, size, "peak %s, rms %s, 1.4826 MAD %s", peak, rms, deviation);
    if (found->residual_deviation_jy > SEVERAL * found->noise_jy &&
        image_may_have_noise(found->peak_jy, found->noise_jy))
        add(text, size, ", %.3g times the expected noise",
            found->residual_deviation_jy / found->noise_jy);
}

/* "1.4826 MAD 0.2 mJy/beam, dynamic range 5.3e+03, flux 12.3 Jy": the flux is the sum
 * of the pixels over the beam's area. */
static void restored_text(const image_files *output, const struct image_found *found,
                          char *text, size_t size)
{
    char deviation[64];
    const double scale_rad = output->opts->scale_rad;
    const tess_fits_beam beam = image_found_restored(found);
    const double beam_pixels =
        TESS_GAUSSIAN_AREA * beam.major_rad * beam.minor_rad / (scale_rad * scale_rad);
    tess_words_flux(found->deviation_jy, 3, deviation, sizeof deviation);
    snprintf(text, size, "1.4826 MAD %s", deviation);
    if (found->deviation_jy > 0)
        add(text, size, ", dynamic range %.4g",
            fabs(found->peak_jy) / found->deviation_jy);
    if (beam_pixels > 0) add(text, size, ", flux %.4g Jy", found->sum_jy / beam_pixels);
}

static void tell_restored(const image_files *output, const struct image_found *found)
{
    char text[256];
    if (!(found->majors > 0)) return;
    restored_text(output, found, text, sizeof text);
    tess_words_tell("restored", "%s", text);
}

static void tell_cleaned(const struct image_found *found)
{
    char text[256];
    if (!(found->majors > 0)) return;
    cleaned_text(found, text, sizeof text);
    tess_words_tell("cleaned", "%s", text);
    residual_text(found, text, sizeof text);
    tess_words_tell("residual", "%s", text);
}

static void tell_only_image(const image_files *output, const struct image_found *found)
{
    char flux[64], at[128];
    tess_words_flux(found->peak_jy, 4, flux, sizeof flux);
    position_text(output, found->peak_pixel, at, sizeof at);
    tell_cleaned(found);
    tess_words_tell("peak", "%s%s", flux, at);
    tess_words_flux(found->rms_jy, 3, flux, sizeof flux);
    tess_words_tell("rms", "%s", flux);
    tess_words_flux(found->noise_jy, 3, flux, sizeof flux);
    if (isnan(found->noise_jy))
        tess_words_tell("noise",
                        "not known from the weights of another Stokes parameter");
    else
        tess_words_tell("noise", "%s expected from the weights", flux);
    tell_restored(output, found);
}

static void tell_each_image(const image_files *output)
{
    const image_found_table *summary = output->summary;
    for (int64_t k = 0; k < image_found_count(summary); ++k) {
        const struct image_found *found = &summary->image[k];
        char name[64], peak[64], rms[64], noise[96], text[256];
        if (!(found->made > 0)) continue;
        image_name(output, k, name);
        if (!(found->has_data > 0)) {
            tess_words_tell(name, "no data");
            continue;
        }
        tess_words_flux(found->peak_jy, 4, peak, sizeof peak);
        tess_words_flux(found->rms_jy, 3, rms, sizeof rms);
        tess_words_flux(found->noise_jy, 3, noise, sizeof noise);
        if (isnan(found->noise_jy)) snprintf(noise, sizeof noise, "unknown");
        tess_words_tell(name, "peak %s, rms %s, noise expected from the weights %s",
                        peak, rms, noise);
        if (!(found->majors > 0)) continue;
        cleaned_text(found, text, sizeof text);
        tess_words_tell("", "%s", text);
        restored_text(output, found, text, sizeof text);
        tess_words_tell("", "%s", text);
        residual_text(found, text, sizeof text);
        tess_words_tell("", "residual: %s", text);
    }
}

/* "0.7 Jy/beam (0003-Q) to 1.5 Jy/beam (MFS-I)" */
static void tell_range(const image_files *output, const char *label, int digits,
                       const range *r, const char *more)
{
    char low[64], high[64], low_name[64], high_name[64];
    if (r->first_low < 0) {
        tess_words_tell(label, "unknown");
        return;
    }
    tess_words_flux(r->low, digits, low, sizeof low);
    tess_words_flux(r->high, digits, high, sizeof high);
    image_name(output, r->first_low, low_name);
    image_name(output, r->first_high, high_name);
    if (strcmp(low, high) == 0)
        tess_words_tell(label, "%s%s", low, more);
    else
        tess_words_tell(label, "%s (%s) to %s (%s)%s", low, low_name, high, high_name,
                        more);
}

static void tell_images(const image_files *output)
{
    const image_found_table *summary = output->summary;
    int64_t made = 0, without = 0, last = 0;
    for (int64_t k = 0; k < image_found_count(summary); ++k) {
        if (!(summary->image[k].made > 0)) continue;
        ++made;
        without += !(summary->image[k].has_data > 0);
        last = k;
    }
    if (image_found_count(summary) > made)
        tess_words_tell("images", "%lld, and %lld made before this run continued",
                        (long long)made,
                        (long long)(image_found_count(summary) - made));
    else if (made > 1)
        tess_words_tell("images", "%lld%s", (long long)made,
                        without > 0 ? ", some of them without data" : "");
    if (made == 0) return;
    tell_beams(output);
    if (image_found_count(summary) == 1) {
        tell_only_image(output, &summary->image[last]);
    } else if (image_found_has_lines(summary)) {
        tell_each_image(output);
    } else {
        const range peak = RANGE(summary, peak_jy), rms = RANGE(summary, rms_jy),
                    noise = RANGE(summary, noise_jy);
        /* all channels were cleaned as their mean was */
        if (image_joins_channels(output->opts)) {
            tell_cleaned(image_found_at(summary, 0, -1, 0));
            tell_restored(output, image_found_at(summary, 0, -1, 0));
        }
        tell_range(output, "peak", 4, &peak, "");
        tell_range(output, "rms", 3, &rms, "");
        tell_range(output, "noise", 3, &noise, " expected from the weights");
    }
}

/* ---- warnings ---- */

/* Why, and what helps. */
static void why_no_beam(const image_files *output, const struct image_found *found,
                        char *text, size_t size)
{
    const tess_image_opts *opts = output->opts;
    const int64_t side = opts->nx < opts->ny ? opts->nx : opts->ny;
    switch ((tess_beam_failure)(int)found->beam_failure) {
    case TESS_BEAM_FEW_PIXELS:
        snprintf(text, size, "%lld x %lld pixels are too few; choose a larger --size",
                 (long long)opts->nx, (long long)opts->ny);
        break;
    case TESS_BEAM_ENDLESS:
        if (found->beam_expected > 0.5 * (double)side)
            snprintf(text, size,
                     "its main lobe, of about %.3g pixels, is as wide as the image; "
                     "choose a larger --size or --scale",
                     found->beam_expected);
        else
            snprintf(text, size,
                     "its main lobe does not fall off in one direction, in which the "
                     "visibilities have next to no resolution; use more of them, or a "
                     "larger --size");
        break;
    case TESS_BEAM_NARROW:
        snprintf(text, size,
                 "its main lobe is less than two pixels across; choose a smaller "
                 "--scale");
        break;
    case TESS_BEAM_COLLAPSED:
    case TESS_BEAM_FOUND:
        snprintf(text, size,
                 "its main lobe is not like a Gaussian, and the fit did not "
                 "converge");
        break;
    }
    if (!(found->beam_expected > 0))
        snprintf(text, size,
                 "all visibilities have baselines of length 0, which see no structure");
}

static void warn_of_beams(const image_files *output)
{
    const image_found_table *summary = output->summary;
    const struct image_found *first = NULL;
    int64_t failed = 0, made = 0;
    char why[256], name[64] = "", others[128] = "";
    for (int64_t k = 0; k < image_found_count(summary); k += summary->num_pol) {
        const struct image_found *found = &summary->image[k];
        made += found->made > 0;
        if (!(found->made > 0 && found->beam_failure > 0)) continue;
        if (failed++ == 0) {
            first = found;
            image_name(output, k, name);
        }
    }
    if (!first) return;
    why_no_beam(output, first, why, sizeof why);
    if (made > 1)
        snprintf(others, sizeof others, "s of %lld of %lld outputs, like %s",
                 (long long)failed, (long long)made, name);
    tess_log_warn(
        "no beam could be fitted to the PSF%s: %s. %s", others, why,
        image_is_cleaned(output->opts)
            ? "Images are restored with a circular beam as wide as the longest "
              "baseline lets expect; --beam-size sets another"
            : "The headers have no BMAJ");
}

/* The deviation of an image's residual over the noise that is expected, if cleaning
 * went down to what the residual has everywhere, and was not stopped before; else 0. */
static double ends_above_noise(const struct image_found *found)
{
    const image_end end = (image_end)found->clean_end;
    const double left = found->residual_deviation_jy > 0 ? found->residual_deviation_jy
                                                         : found->residual_rms_jy;
    if (!(found->made > 0 && found->majors > 0)) return 0;
    if (!image_may_have_noise(found->peak_jy, found->noise_jy)) return 0;
    if (end != IMAGE_END_THRESHOLD && end != IMAGE_END_STALLED) return 0;
    if (end == IMAGE_END_THRESHOLD && found->threshold_jy > FAR_ABOVE_NOISE * left)
        return 0;
    return left / found->noise_jy;
}

/* Cleaning may end as it should, and leave sidelobes that no component removes: they
 * raise σ, and with it the threshold. */
static void warn_of_endings(const image_files *output)
{
    const image_found_table *summary = output->summary;
    int64_t worst = -1, count = 0;
    double times = FAR_ABOVE_NOISE;
    char name[64] = "", left[48], others[48] = "";
    if (!image_knows_noise(output)) return;
    for (int64_t k = 0; k < image_found_count(summary); ++k) {
        const double above = ends_above_noise(&summary->image[k]);
        count += above > FAR_ABOVE_NOISE;
        if (!(above > times)) continue;
        times = above;
        worst = k;
    }
    if (worst < 0) return;
    if (image_found_count(summary) > 1) {
        image_name(output, worst, name);
        add(others, sizeof others, " of %s", name);
    }
    if (count > 1)
        add(others, sizeof others, " (and of %lld more)", (long long)count - 1);
    tess_words_flux(times * summary->image[worst].noise_jy, 3, left, sizeof left);
    tess_log_warn(
        "cleaning ended at its threshold, but not at the noise: the residual%s is "
        "%s, %.3g times the noise that the weights let expect. Sidelobes are left, of "
        "sources outside the image (try a larger --size, or --subtract a model of "
        "them), of what a mask leaves out, of bright sources between pixels (a smaller "
        "--scale), of errors of calibration (self-calibrate), or of --accuracy %g (a "
        "smaller one); or the weights are not 1/sigma^2",
        others, left, times, output->opts->gridding.accuracy);
}

/* Whether the automatic mask of an image has never had a pixel, though there are peaks
 * above its threshold of noise. */
static bool lacks_mask(const image_files *output, const struct image_found *found)
{
    const double noise = output->opts->clean.multithresh.opts.noise;
    return found->made > 0 && found->majors > 0 && !(found->iterations > 0) &&
           (image_end)found->clean_end == IMAGE_END_UNMASKED &&
           found->residual_deviation_jy > 0 &&
           fabs(found->residual_peak_jy) > noise * found->residual_deviation_jy;
}

/* Where the PSF has high sidelobes, all peaks may lie below the threshold of sidelobes.
 */
static void warn_of_masks(const image_files *output)
{
    const image_found_table *summary = output->summary;
    int64_t first = -1, count = 0;
    char name[64] = "", others[48] = "";
    for (int64_t k = 0; k < image_found_count(summary); ++k) {
        if (!lacks_mask(output, &summary->image[k])) continue;
        if (count++ == 0) first = k;
    }
    if (count == 0) return;
    if (image_found_count(summary) > 1) {
        image_name(output, first, name);
        add(others, sizeof others, " of %s", name);
    }
    if (count > 1) add(others, sizeof others, " and %lld more", (long long)count - 1);
    tess_log_warn(
        "nothing was cleaned%s: the mask of --auto-multithresh has no pixel, but there "
        "are peaks above its --noise-threshold. Sidelobes of the PSF may be as high as "
        "they are: try a --sidelobe-threshold below %g; or all regions are smaller "
        "than --min-beam-frac allows",
        others, output->opts->clean.multithresh.opts.sidelobe);
}

/* ---- files ---- */

/* Names of the files; of many images the first and the last. */
static void tell_files(const image_files *output)
{
    char text[1400] = "", **names = NULL;
    int64_t count = 0;
    const tess_image_opts *opts = output->opts;
    if (!opts->output) return;
    if (image_files_names(output, &names, &count) != TESS_OK)
        return; /* the images are there, whatever is said of them */
    if (count > MOST_FILES)
        snprintf(text, sizeof text, "%s ... %s (%lld files)", name_of(names[0]),
                 name_of(names[count - 1]), (long long)count);
    for (int64_t k = 0; k < count && count <= MOST_FILES; ++k)
        add(text, sizeof text, "%s%s", k > 0 ? ", " : "", name_of(names[k]));
    if (opts->beside.used_options) /* of the command line: it has a log, too */
        add(text, sizeof text, ", %s.conf, %s.log", name_of(opts->output),
            name_of(opts->output));
    const char *name = name_of(opts->output);
    if (name > opts->output)
        add(text, sizeof text, " in %.*s", (int)(name - opts->output), opts->output);
    tess_words_tell("files", "%s", text);
    image_files_names_free(names, count);
}

/* ---- all of it ---- */

tess_status image_summary_tell(tess_comm *all, const image_files *output,
                               const image_counts *counts)
{
    tess_status status = TESS_OK;
    const int64_t numbers = (int64_t)(sizeof(struct image_found) / sizeof(double));
    double seconds = tess_time_now() - output->profile->start_s;
    int64_t unsolved = output->profile->grid.unsolved;
    TESS_TRY(tess_comm_allreduce_f64(all, (double *)output->summary->image,
                                     numbers * image_found_count(output->summary),
                                     TESS_SUM));
    TESS_TRY(tess_comm_allreduce_f64(all, &seconds, 1, TESS_MAX));
    TESS_TRY(tess_comm_allreduce_i64(all, &unsolved, 1, TESS_SUM));
    if (tess_comm_rank(all) != 0) return TESS_OK;
    warn_of_beams(output);
    warn_of_endings(output);
    warn_of_masks(output);
    tell_observation(output);
    tell_column(output);
    tell_counts(counts, unsolved);
    tell_weighting(output->opts);
    tell_images(output);
    tess_words_tell("seconds", "%.2f", seconds);
    tell_files(output);
cleanup:
    return status;
}
