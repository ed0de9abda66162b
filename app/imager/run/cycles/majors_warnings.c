/* What the user should know of a CLEAN before it begins: thresholds, masks and scales
 * that do not do what is meant, and an accuracy that limits the dynamic range. */
#include "majors_private.h"

#include <math.h>
#include <stdio.h>

#include "clean_inputs.h"
#include "tess_log.h"
#include "tess_words.h"

/* Below so many σ a threshold lets noise be cleaned: of Gaussian noise 1.2 % of the
 * beams exceed it, so that each image has components where there are no sources. */
static const double NOISE_SIGMA = 2.5;

/* A mask of so large a share of the image holds more noise than sources. */
static const double WIDE_MASK = 0.25;

/* The largest error of a residual over ε times the peak, as measured: .045 and .015 at
 * 1e-3 and 1e-4, .09 below (100 Jy in 128 and 512 pixels). It is worth a warning at so
 * many times the noise, and does no harm at the last number. */
static const double ERROR_SHARE = 0.05, MOST_ERROR = 3, HARMLESS_ERROR = 0.5;

/* Share [%] of the beams of pure noise that exceed a threshold in σ. */
static double noisy_percent(double sigmas)
{
    return 100 * erfc(sigmas / sqrt(2));
}

/* The threshold in σ, and its option, down to which all that is not masked by the user
 * is cleaned; 0: no option sets it. */
static double open_sigmas(const tess_clean_opts *minor, const char **option)
{
    const bool masks = minor->auto_mask > 0;
    *option = masks ? "--auto-mask" : "--auto-threshold";
    return masks ? minor->auto_mask : minor->auto_threshold;
}

/* Whether --clean-border leaves so little of the image that it is a mask of a source.
 */
static bool is_bordered(const tess_clean_opts *minor)
{
    const double inside = 1 - 2 * minor->border_percent / 100;
    return inside * inside <= WIDE_MASK;
}

/* Whether the user says where components may be, or an automatic mask does. */
static bool has_mask(const tess_clean_choice *clean)
{
    return clean->fits_mask || clean->casa_mask || clean->mask ||
           clean->multithresh.finds;
}

static void warn_of_thresholds(const image_run *run)
{
    const tess_clean_choice *clean = &run->opts->clean;
    const tess_clean_opts *minor = &clean->minor;
    const char *option;
    const double sigmas = open_sigmas(minor, &option);
    if (minor->auto_mask > 0 && minor->auto_mask < minor->auto_threshold)
        tess_log_warn(
            "--auto-mask %g is below --auto-threshold %g: the whole image is cleaned "
            "to %g sigma before the mask is used, and inside it nothing is left to "
            "clean; the threshold should be the lower one, as in --auto-mask %g "
            "--auto-threshold %g",
            minor->auto_mask, minor->auto_threshold, minor->auto_mask,
            minor->auto_threshold, minor->auto_mask);
    else if (sigmas > 0 && sigmas < NOISE_SIGMA && !has_mask(clean) &&
             !is_bordered(minor))
        tess_log_warn(
            "%s %g lets noise be cleaned: where there is no source, %.2g %% of the "
            "beams exceed it and become components, which take from the residual and "
            "add to the fluxes of the model; use 3 or more%s",
            option, sigmas, noisy_percent(sigmas),
            minor->auto_mask > 0 ? "" : ", or --auto-mask 5 beside it");
}

static void warn_of_scales(const image_run *run)
{
    const tess_image_opts *opts = run->opts;
    const tess_clean_opts *minor = &opts->clean.minor;
    const double side = (double)(opts->nx < opts->ny ? opts->nx : opts->ny);
    int wide = 0;
    for (int s = 0; minor->multiscale && s < minor->num_scales; ++s)
        wide += 2 * ceil(opts->clean.scale_px[s] / 2) >= side;
    if (wide > 0)
        tess_log_warn(
            "--multiscale-scales: %d of %d scales, from %g pixels on, are as wide as "
            "the image of %lld x %lld pixels and are ignored: their components would "
            "reach beyond its edges; give smaller scales or a larger --size",
            wide, minor->num_scales, opts->clean.scale_px[minor->num_scales - wide],
            (long long)opts->nx, (long long)opts->ny);
}

void majors_warn_of_options(const image_run *run)
{
    if (!image_is_cleaned(run->opts) || tess_comm_rank(run->comm) != 0) return;
    warn_of_thresholds(run);
    warn_of_scales(run);
}

/* Whether this group has the first output that is cleaned: one warning stands for all.
 */
static bool is_first(const majors *all)
{
    const output_table *outputs = &all->run->outputs;
    int64_t first = 0;
    while (first < outputs->num - 1 &&
           (outputs->extent[first].num_vis == 0 ||
            !clean_inputs_cleans(all->run, first % outputs->num_channels)))
        ++first;
    return all->channel[0].output <= first &&
           first < all->channel[0].output + all->num_channels;
}

tess_status majors_warn_of_mask(const majors *all, const tess_rows *mask)
{
    tess_status status = TESS_OK;
    const image_run *run = all->run;
    const tess_clean_choice *clean = &run->opts->clean;
    const char *option;
    const double sigmas = open_sigmas(&clean->minor, &option);
    const double pixels = (double)run->opts->nx * (double)run->opts->ny;
    int64_t count = 0;
    if (!is_first(all) || !has_mask(clean)) return TESS_OK;
    if (!(sigmas > 0 && sigmas < NOISE_SIGMA)) return TESS_OK;
    for (int64_t k = 0; k < tess_rows_count(mask); ++k)
        count += tess_rows_pixel(mask, k) > 0;
    TESS_TRY(tess_comm_allreduce_i64(all->slabs, &count, 1, TESS_SUM));
    const double share = (double)count / pixels;
    if (share > WIDE_MASK && tess_comm_rank(run->comm) == 0)
        tess_log_warn(
            "the mask lets noise be cleaned: it has %.2g %% of the image, where %.2g "
            "%% of the beams without a source exceed %s %g and become components; use "
            "a mask of the sources alone, or 3 or more",
            100 * share, noisy_percent(sigmas), option, sigmas);
cleanup:
    return status;
}

/* ---- accuracy ---- */

/* A number of one digit that is not larger: 3.7e-5 becomes 3e-5. */
static double round_down(double value)
{
    const double unit = pow(10, floor(log10(value)));
    return floor(value / unit * (1 + 1e-12)) * unit;
}

/* Finds the noise that weights let expect in the image of a polarisation, of all
 * channels together, and the largest |pixel| of the channels' dirty images. Collective.
 */
static tess_status find_range(const majors *all, int pol, double *noise, double *peak)
{
    tess_status status = TESS_OK;
    const image_run *run = all->run;
    const tess_density *shared = run->densities.shared;
    imager_product joint = {0};
    *peak = 0;
    for (int c = 0; c < all->num_channels; ++c) {
        const group_channel *channel = &all->channel[c];
        const tess_rows *dirty = channel->made[pol].rows.value
                                     ? &channel->made[pol].rows
                                     : &channel->residual[pol];
        struct image_found found = {0};
        if (!channel->has_data) continue;
        TESS_TRY(image_found_measure(run->comm, dirty, run->opts->layout.threads, false,
                                     &found));
        *peak = fmax(*peak, fabs(found.peak_jy));
        joint.sum_weights += channel->made[pol].sum_weights;
        joint.variance += channel->made[pol].variance;
    }
    if (shared)
        joint.variance =
            tess_density_variance(shared, image_num_psf(run) == 1 ? 0 : pol) /
            run->densities.scale;
    *noise = image_expected_noise(&run->output, pol, &joint);
cleanup:
    return status;
}

tess_status majors_warn_of_accuracy(const majors *all)
{
    tess_status status = TESS_OK;
    const image_run *run = all->run;
    const double accuracy = run->opts->gridding.accuracy;
    double worst = 0, of_noise = 0, of_peak = 0;
    char peak_text[48], noise_text[48];
    if (!image_knows_noise(&run->output) || all->num > 0 || !is_first(all))
        return TESS_OK;
    for (int p = 0; p < run->num_pol; ++p) {
        double noise, peak;
        TESS_TRY(find_range(all, p, &noise, &peak));
        if (!image_may_have_noise(peak, noise) || !(peak / noise > worst)) continue;
        worst = peak / noise;
        of_noise = noise;
        of_peak = peak;
    }
    const double error = ERROR_SHARE * accuracy * of_peak;
    if (!(error > MOST_ERROR * of_noise) ||
        error < run->opts->clean.minor.threshold_jy / MOST_ERROR ||
        tess_comm_rank(run->comm) != 0)
        return TESS_OK;
    tess_words_flux(of_peak, 3, peak_text, sizeof peak_text);
    tess_words_flux(of_noise, 3, noise_text, sizeof noise_text);
    tess_log_warn(
        "--accuracy %g limits the dynamic range: beside a peak of %s, residuals are "
        "wrong by up to about %.2g times the noise of %s that the weights let expect; "
        "--accuracy %.0e would do",
        accuracy, peak_text, error / of_noise, noise_text,
        round_down(HARMLESS_ERROR / ERROR_SHARE / worst));
cleanup:
    return status;
}
