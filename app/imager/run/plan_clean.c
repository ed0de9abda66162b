/* Guesses how long cleaning takes, for `tessera plan`. */
#include "plan_clean.h"

#include <math.h>

#include "image_kinds.h"
#include "majors.h"

/* Of radio sources about as many are above a flux as its reciprocal says: N(> S) = P/S
 * below a peak P (Condon 1984, ApJ 287, 461, finds slopes about this one). Each takes
 * ln(S/T)/gain iterations down to a threshold T, all of them P/T/gain. */

/* Noise of robust and of uniform weights over that of natural ones, as usual arrays
 * have it. */
static const double ROBUST_NOISE = 1.3, UNIFORM_NOISE = 2;

/* Transforms of a major iteration: so many for each scale and beside (the whole jobs of
 * docs/results/clean.md have 127 at eight scales); and what a single scale takes, with
 * peaks and noise. */
static const double SCALE_TRANSFORMS = 12, OTHER_TRANSFORMS = 30, SINGLE_TRANSFORMS = 8;

/* A transform's side over that of the image. A real transform has half the operations
 * of a complex one, and passes over memory take as long again. */
static const double PADDED = 1.5;

/* Seconds of an iteration in one image, where lists of candidates are short. */
static const double ITERATION_S = 2e-5;

/* The same on a GPU of docs/results/gpu.md: seconds of a transform and its passes for
 * each cell, and of an iteration. */
static const double DEVICE_CELL_S = 1.8e-11, DEVICE_ITERATION_S = 4e-6;

/* Scales that an image has, if beams have about four pixels. */
static double num_scales(const tess_image_opts *opts)
{
    const tess_clean_opts *minor = &opts->clean.minor;
    const double side = (double)(opts->nx < opts->ny ? opts->nx : opts->ny);
    if (!minor->multiscale) return 1;
    if (minor->num_scales > 0) return minor->num_scales;
    return fmax(1, floor(log2(side / 16)) + 1);
}

/* The flux of a source that would give the visibilities the power that they have beyond
 * that of noise: the sources' brightest, unless it is one of many. Noise alone has
 * power 1 in two correlations that are combined, and 2 in one. */
static double peak_of(const image_run *run, const image_power *power)
{
    const tess_pol_mix mix =
        tess_pol_mix_of(&run->pol[0], run->info->corr, run->info->num_corr);
    const double noise = image_knows_noise(&run->output) ? (mix.num == 2 ? 1 : 2) : 0;
    const double signal = power->weighted - noise * power->count;
    const double least = 3 * sqrt(power->count); /* of chance */
    return power->weights > 0 ? sqrt(fmax(signal, least) / power->weights) : 0;
}

/* Noise of an image in which peaks are found. */
static double noise_of(const image_run *run, const image_power *power)
{
    const tess_image_weights *weights = &run->opts->weights;
    const double outputs =
        image_joins_channels(run->opts)
            ? (double)run->outputs.num / (double)run->outputs.num_channels
            : (double)run->outputs.num;
    const double sum = power->weights / outputs;
    const imager_product natural = {.sum_weights = sum, .variance = sum};
    const double factor = weights->weighting == TESS_UNIFORM  ? UNIFORM_NOISE
                          : weights->weighting == TESS_BRIGGS ? ROBUST_NOISE
                                                              : 1;
    return factor * image_expected_noise(&run->output, 0, &natural);
}

/* Minor loops of an output or, if these are joined, of all. */
static double minor_seconds(const image_run *run, const plan_clean *guess)
{
    const tess_image_opts *opts = run->opts;
    const tess_join_choice *join = &opts->clean.join;
    const bool is_double = opts->gridding.accuracy < TESS_SINGLE_ACCURACY;
    const double scales = num_scales(opts);
    const double cells = PADDED * PADDED * (double)opts->nx * (double)opts->ny;
    const double threads = (double)opts->layout.threads * tess_comm_size(run->comm);
    const bool on_device = guess->need.device_bytes > 0;
    const double iteration_s = on_device ? DEVICE_ITERATION_S : ITERATION_S;
    double transform_s =
        5 * cells * log2(cells) * run->job.plan->costs.fft_flop_s[is_double] / threads;
    const double transforms =
        scales > 1 ? SCALE_TRANSFORMS * scales + OTHER_TRANSFORMS : SINGLE_TRANSFORMS;
    double images = image_joins_pols(opts) ? run->num_pol : 1;
    if (on_device) transform_s = DEVICE_CELL_S * cells * (is_double ? 2 : 1);
    if (image_joins_channels(opts))
        images *= join->spectrum != TESS_CLEAN_EACH_CHANNEL && join->num_terms > 0
                      ? join->num_terms
                      : (double)opts->channels_out;
    return images *
           (guess->majors * transforms * transform_s + guess->iterations * iteration_s);
}

/* Adds residual images: a prediction of the models, and the images of polarisations
 * without PSFs, for each major iteration. */
static void add_majors(const image_run *run, bool kept, imager_estimate *estimate,
                       plan_clean *guess)
{
    static const tess_stage stages[] = {TESS_STAGE_GRID, TESS_STAGE_FFT,
                                        TESS_STAGE_REDUCE};
    const double share = 2.0 * run->num_pol / run->job.num_images;
    for (size_t k = 0; k < sizeof stages / sizeof *stages; ++k) {
        const double more = guess->majors * share * estimate->seconds[stages[k]];
        estimate->seconds[stages[k]] += more;
        guess->major_s += more;
    }
    if (!kept) {
        const double more = guess->majors * estimate->seconds[TESS_STAGE_READ] / 3;
        estimate->seconds[TESS_STAGE_READ] += more;
        guess->major_s += more;
    }
}

/* The part of a peak that a minor loop takes. --cyclefactor counts in the highest
 * sidelobe of a PSF that a plan does not make: .1 of the peak is usual. */
static double mgain_of(const tess_clean_choice *clean)
{
    const double usual_sidelobe = .1;
    const tess_cycle_choice *cycle = &clean->cycle;
    if (!(cycle->factor > 0)) return clean->minor.mgain;
    return 1 - fmin(fmax(cycle->factor * usual_sidelobe, cycle->min_fraction),
                    cycle->max_fraction);
}

tess_status plan_clean_guess(const image_run *run, const image_power *own, bool kept,
                             imager_estimate *estimate, plan_clean *guess)
{
    tess_status status = TESS_OK;
    const tess_clean_choice *clean = &run->opts->clean;
    const tess_clean_opts *minor = &clean->minor;
    image_power power = *own;
    const double groups = image_joins_channels(run->opts)
                              ? (double)run->outputs.num_intervals
                              : ceil((double)run->outputs.num / run->teams.num);
    *guess = (plan_clean){0};
    if (!image_is_cleaned(run->opts)) return TESS_OK;
    majors_minor_need(run, &guess->need);
    TESS_TRY(tess_comm_allreduce_f64(run->teams.all, &power.weighted, 3, TESS_SUM));
    guess->peak_jy = peak_of(run, &power);
    guess->noise_jy = noise_of(run, &power);
    const double sigmas = minor->auto_threshold > 0 ? minor->auto_threshold : 1;
    const double threshold = fmax(minor->threshold_jy, sigmas * guess->noise_jy);
    const double range = fmax(guess->peak_jy / threshold, 1);
    guess->majors = ceil(log(range) / -log(1 - fmin(mgain_of(clean), .99))) + 1 +
                    (minor->auto_mask > 0);
    if (clean->nmiter > 0) guess->majors = fmin(guess->majors, (double)clean->nmiter);
    guess->iterations = fmin((double)minor->niter, ceil(range / minor->gain));
    add_majors(run, kept, estimate, guess);
    guess->minor_s = groups * minor_seconds(run, guess);
    estimate->seconds[TESS_STAGE_CLEAN] += guess->minor_s;
    estimate->total_s += guess->major_s + guess->minor_s;
cleanup:
    return status;
}
