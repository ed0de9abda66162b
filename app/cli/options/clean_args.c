/* Parses the options for cleaning of tessera image and tessera plan. */
#include "groups.h"

#include <float.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "option_rules.h"
#include "options.h"
#include "tess_channels.h"
#include "tess_const.h"
#include "tess_log.h"
#include "tess_parse.h"

enum {
    OPT_NITER = 0x200,
    OPT_NMITER,
    OPT_CYCLE,
    OPT_GAIN,
    OPT_MGAIN,
    OPT_THRESHOLD,
    OPT_AUTO_THRESHOLD,
    OPT_AUTO_MASK,
    OPT_MASK_NMITER,
    OPT_MASK_ROUNDS,
    OPT_FITS_MASK,
    OPT_CASA_MASK,
    OPT_CHANNEL_MASK,
    OPT_HORIZON_MASK,
    OPT_MASK,
    OPT_PB_MASK,
    OPT_CYCLEFACTOR,
    OPT_MIN_FRACTION,
    OPT_MAX_FRACTION,
    OPT_CYCLENITER,
    OPT_MULTISCALE,
    OPT_SCALES,
    OPT_SCALE_BIAS,
    OPT_MAX_SCALES,
    OPT_SHAPE,
    OPT_SCALE_GAIN,
    OPT_SCALE_RULE,
    OPT_LOCAL_RMS,
    OPT_LOCAL_RMS_WINDOW,
    OPT_LOCAL_RMS_METHOD,
    OPT_LOCAL_RMS_STRENGTH,
    OPT_NO_NEGATIVE,
    OPT_STOP_NEGATIVE,
    OPT_BORDER,
    OPT_CONTINUE,
    OPT_BEAM_SIZE,
    OPT_BEAM_SHAPE,
    OPT_CIRCULAR_BEAM,
    OPT_THEORETIC_BEAM,
    OPT_BEAM_BOX,
    OPT_LOBE_BEAM,
    OPT_COMMON_BEAM,
    OPT_NO_DIRTY,
    OPT_FIRST_RESIDUAL,
    OPT_UPDATE_MODEL,
    OPT_ONLY_MODEL,
    OPT_MODEL_COLUMN,
    OPT_SAVE_SOURCES,
    OPT_JOIN_CHANNELS,
    OPT_JOIN_POLS,
    OPT_LINK_POLS,
    OPT_SQUARED,
    OPT_FIT,
    OPT_FIT_LOG,
    OPT_REFERENCE,
    OPT_CLEANED,
    OPT_MF_WEIGHTING,
    OPT_NO_MF_WEIGHTING,
};

#define LISTED(name) " " #name
static const struct argp_option clean_options[] = {
    {"niter", OPT_NITER, "N", 0,
     "Clean with at most N minor iterations in all (default 0: do not clean)", 0},
    {"mgain", OPT_MGAIN, "M", 0,
     "Make a new residual image from the visibilities when the peak has fallen to 1 - "
     "M "
     "of what it was (default 0.8)",
     0},
    {"threshold", OPT_THRESHOLD, "FLUX", 0, "Stop at this residual peak, like 2mJy", 0},
    {"auto-threshold", OPT_AUTO_THRESHOLD, "K", 0,
     "Stop at a residual peak of K times the noise, which is measured anew in each "
     "major "
     "iteration",
     0},
    {"auto-mask", OPT_AUTO_MASK, "K", 0,
     "Clean to K times the noise first, then to the threshold where components were "
     "found",
     0},
    {"cyclefactor", OPT_CYCLEFACTOR, "F", OPTION_HIDDEN,
     "In place of --mgain: make a new residual image when the peak has fallen to F "
     "times the highest sidelobe of the PSF, of what it was",
     0},
    {"min-psf-fraction", OPT_MIN_FRACTION, "X", OPTION_HIDDEN,
     "... but not above this share of it (default 0.05)", 0},
    {"max-psf-fraction", OPT_MAX_FRACTION, "X", OPTION_HIDDEN,
     "... and at this share at the latest (default 0.8)", 0},
    {"cycleniter", OPT_CYCLENITER, "N", OPTION_HIDDEN,
     "Make a new residual image after N minor iterations (default 0: no limit)", 0},
    {"mask", OPT_MASK, "FILE", 0,
     "Look for components only within these regions, of CASA (#CRTF) or ds9, or where "
     "this image is not 0",
     0},
    {"pb-mask", OPT_PB_MASK, "LEVEL", 0,
     "Look for components only where --primary-beam is above this", 0},
    {"fits-mask", OPT_FITS_MASK, "FILE", 0,
     "Look for components only where this image is not 0; in each channel where its "
     "plane of a cube is not 0",
     0},
    {"casa-mask", OPT_CASA_MASK, "FILE", OPTION_HIDDEN,
     "The same with an image of CASA", 0},
    {"channel-mask", OPT_CHANNEL_MASK, "LIST", 0,
     "Look for components in these output channels only: numbers from 0 like 10~20;30, "
     "or frequencies like 1420.1~1420.9MHz",
     0},
    {"horizon-mask", OPT_HORIZON_MASK, "ANGLE", OPTION_HIDDEN,
     "Look for no components so close to the horizon, like 5deg", 0},
    {"multiscale", OPT_MULTISCALE, NULL, 0,
     "Clean extended emission with components of several sizes", 0},
    {"multiscale-scales", OPT_SCALES, "LIST", 0,
     "Sizes of components [pixels], like 0,8,24 (default points and 4, 8, 16 ... "
     "beams)",
     0},
    {"nmiter", OPT_NMITER, "N", 0,
     "At most N major iterations (default 20; 0: no limit)", 0},
    {"auto-mask-nmiter", OPT_MASK_NMITER, "N", OPTION_HIDDEN,
     "At most N of them inside the automatic mask (default 0: no limit)", 0},
    {"force-mask-rounds", OPT_MASK_ROUNDS, "N", OPTION_HIDDEN,
     "Add to the automatic mask in N of them, if these find anything (default 1, of a "
     "--mosaic 10)",
     0},
    {"minor-cycle", OPT_CYCLE, "NAME", OPTION_HIDDEN,
     "Algorithm that finds components:" TESS_CLEAN_CYCLES(LISTED) " (default list)", 0},
    {"gain", OPT_GAIN, "G", OPTION_HIDDEN,
     "Share of a peak that a minor iteration subtracts (default 0.1)", 0},
    {"multiscale-scale-bias", OPT_SCALE_BIAS, "B", OPTION_HIDDEN,
     "The smaller, the more are large scales preferred to small ones (default 0.6)", 0},
    {"multiscale-choice", OPT_SCALE_RULE, "bias|fit", OPTION_HIDDEN,
     "Which scale is next: the one of the largest biased peak (default), or the one "
     "that lowers the residual most",
     0},
    {"multiscale-max-scales", OPT_MAX_SCALES, "N", OPTION_HIDDEN,
     "At most N scales by the beam (default 0: no limit)", 0},
    {"multiscale-shape", OPT_SHAPE, "tapered-quadratic|gaussian", OPTION_HIDDEN,
     "Shape of components (default tapered-quadratic)", 0},
    {"multiscale-gain", OPT_SCALE_GAIN, "G", OPTION_HIDDEN,
     "A scale is cleaned until its peak has fallen by this share (default 0.2)", 0},
    {"local-rms", OPT_LOCAL_RMS, NULL, 0,
     "Measure the noise around each pixel instead of over the whole image", 0},
    {"local-rms-window", OPT_LOCAL_RMS_WINDOW, "N", OPTION_HIDDEN,
     "FWHM of the window of --local-rms in beams (default 25)", 0},
    {"local-rms-method", OPT_LOCAL_RMS_METHOD, "rms|rms-with-min", OPTION_HIDDEN,
     "The window's rms (default), or at least 0.3 times the depth of its minimum", 0},
    {"local-rms-strength", OPT_LOCAL_RMS_STRENGTH, "F", OPTION_HIDDEN,
     "The search divides by the local noise to this power (default 1)", 0},
    {"no-negative", OPT_NO_NEGATIVE, NULL, 0, "No negative components", 0},
    {"stop-negative", OPT_STOP_NEGATIVE, NULL, OPTION_HIDDEN,
     "Stop at the first negative component", 0},
    {"clean-border", OPT_BORDER, "P", OPTION_HIDDEN,
     "No components within P percent of the width and height at each edge (default 0)",
     0},
    {"continue", OPT_CONTINUE, NULL, 0,
     "Go on from NAME-model.fits of an earlier run; needs --overwrite to replace its "
     "images",
     0},
    {"beam-size", OPT_BEAM_SIZE, "ANGLE", 0,
     "Restore with a circular beam of this FWHM, like 6asec (default: fitted to the "
     "PSF)",
     0},
    {"beam-shape", OPT_BEAM_SHAPE, "MAJ,MIN,PA", OPTION_HIDDEN,
     "Restore with this beam, like 8asec,6asec,30deg", 0},
    {"circular-beam", OPT_CIRCULAR_BEAM, NULL, OPTION_HIDDEN,
     "Restore with a circular beam, which is fitted to the PSF", 0},
    {"theoretic-beam", OPT_THEORETIC_BEAM, NULL, OPTION_HIDDEN,
     "Restore with a circular beam that is not fitted: as wide as the longest baseline "
     "lets expect, or as --taper-gaussian",
     0},
    {"common-beam", OPT_COMMON_BEAM, NULL, 0,
     "Restore all output channels with one beam, the smallest that contains those of "
     "all, and convolve their residuals to it",
     0},
    {"beam-fitting-size", OPT_BEAM_BOX, "F", OPTION_HIDDEN,
     "Fit the beam in a box of F times the beam that is expected (default 10)", 0},
    {"lobe-beam", OPT_LOBE_BEAM, NULL, OPTION_HIDDEN,
     "Fit the beam to the pixels of the main lobe above 0.35 alone, as CASA does", 0},
    {"no-dirty", OPT_NO_DIRTY, NULL, OPTION_HIDDEN, "Do not write the dirty image", 0},
    {"save-first-residual", OPT_FIRST_RESIDUAL, NULL, OPTION_HIDDEN,
     "Also write the residual image after the first major iteration", 0},
    {"update-model", OPT_UPDATE_MODEL, NULL, 0,
     "Write the model's visibilities to MODEL_DATA of the MeasurementSets", 0},
    {"model-column", OPT_MODEL_COLUMN, "NAME", OPTION_HIDDEN,
     "Write them to this column (default MODEL_DATA)", 0},
    {"predict-models", OPT_ONLY_MODEL, NULL, OPTION_HIDDEN,
     "Write the visibilities of the models NAME-model.fits, NAME-0000-model.fits ... "
     "of "
     "these channels, intervals and Stokes parameters, and make no images",
     0},
    {"save-source-list", OPT_SAVE_SOURCES, NULL, 0,
     "Write the components as a list of sources, NAME-sources.txt, which predict, "
     "simulate, DP3 and WSClean read; those of --multiscale are Gaussians",
     0},
    {"join-channels", OPT_JOIN_CHANNELS, NULL, 0,
     "Clean all channels of --channels-out together: components are found in their "
     "weighted mean",
     0},
    {"join-polarizations", OPT_JOIN_POLS, NULL, 0,
     "Clean all images of --stokes together: components are found in the root of the "
     "sum of their squares",
     0},
    {"link-polarizations", OPT_LINK_POLS, "LIST", OPTION_HIDDEN,
     "Clean all images of --stokes together, and find components in these", 0},
    {"squared-channel-joining", OPT_SQUARED, NULL, OPTION_HIDDEN,
     "Find components in the root of the mean square of the channels", 0},
    {"fit-spectral-pol", OPT_FIT, "N", 0,
     "Fit the channels of each component by a polynomial in frequency with N terms", 0},
    {"fit-spectral-log-pol", OPT_FIT_LOG, "N", OPTION_HIDDEN,
     "The same with a polynomial of logarithms", 0},
    {"reference-freq", OPT_REFERENCE, "FREQ|middle", OPTION_HIDDEN,
     "Where spectra have their first term: a frequency, or the middle of the band "
     "(default: the mean of the channels by weight)",
     0},
    {"deconvolution-channels", OPT_CLEANED, "M", OPTION_HIDDEN,
     "Clean averages of the channels, M in all, and give all channels the fitted "
     "values",
     0},
    {"mf-weighting", OPT_MF_WEIGHTING, NULL, OPTION_HIDDEN,
     "Weigh all channels by the density of all together (default with "
     "--join-channels)",
     0},
    {"no-mf-weighting", OPT_NO_MF_WEIGHTING, NULL, OPTION_HIDDEN,
     "Weigh each channel by its own density (default without --join-channels)", 0},
    {0},
};
#undef LISTED

/* ---- values ---- */

static tess_status take_flux(const tess_option_rule *rule, const char *text,
                             void *value)
{
    (void)rule;
    return tess_parse_flux(text, value);
}

/* Copies up to the next comma; returns what follows it, or NULL. */
static const char *next_word(const char *text, char *word, size_t size)
{
    const size_t length = strcspn(text, ",");
    snprintf(word, size, "%.*s", (int)(length < size ? length : size - 1), text);
    return text[length] == ',' ? text + length + 1 : NULL;
}

/* --multiscale-scales. `value` is the whole input. */
static tess_status take_scales(const tess_option_rule *rule, const char *text,
                               void *value)
{
    tess_status status = TESS_OK;
    tess_clean_choice *choice = &((tess_image_opts *)value)->clean;
    double scale[TESS_CLEAN_MOST_SCALES];
    int num = 0;
    char word[64];
    (void)rule;
    for (const char *rest = text; rest; ++num) {
        if (num == TESS_CLEAN_MOST_SCALES)
            TESS_FAIL(TESS_ERR_USAGE, "'%s' are more than %d scales", text,
                      TESS_CLEAN_MOST_SCALES);
        rest = next_word(rest, word, sizeof word);
        TESS_TRY(tess_parse_number(word, 0, DBL_MAX, &scale[num]));
        if (num > 0 && scale[num] <= scale[num - 1])
            TESS_FAIL(TESS_ERR_USAGE, "'%s' are not ascending scales, like 0,8,24",
                      text);
    }
    memcpy(choice->scale_px, scale, (size_t)num * sizeof *scale);
    choice->minor.num_scales = num;
cleanup:
    return status;
}

/* --link-polarizations. `value` is the whole input. */
static tess_status take_linked(const tess_option_rule *rule, const char *text,
                               void *value)
{
    tess_join_choice *join = &((tess_image_opts *)value)->clean.join;
    (void)rule;
    join->polarizations = true;
    return tess_parse_stokes(text, join->linked, &join->num_linked);
}

/* --fit-spectral-pol, --fit-spectral-log-pol. `value` is the whole input. */
static tess_status take_fit(const tess_option_rule *rule, const char *text, void *value)
{
    tess_status status = TESS_OK;
    tess_join_choice *join = &((tess_image_opts *)value)->clean.join;
    const tess_clean_spectrum spectrum =
        rule->key == OPT_FIT_LOG ? TESS_CLEAN_LOG_POLYNOMIAL : TESS_CLEAN_POLYNOMIAL;
    if (join->spectrum != TESS_CLEAN_EACH_CHANNEL && join->spectrum != spectrum)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--fit-spectral-pol and --fit-spectral-log-pol: there "
                  "may be one fit");
    TESS_TRY(tess_take_int(rule, text, &join->num_terms));
    join->spectrum = spectrum;
cleanup:
    return status;
}

/* --reference-freq: below 0 is the middle of the band. */
static tess_status take_reference(const tess_option_rule *rule, const char *text,
                                  void *value)
{
    double *reference_hz = value;
    (void)rule;
    if (strcmp(text, "middle") != 0) return tess_parse_frequency(text, reference_hz);
    *reference_hz = -1;
    return TESS_OK;
}

/* --channel-mask. */
static tess_status take_channels(const tess_option_rule *rule, const char *text,
                                 void *value)
{
    tess_status status = TESS_OK;
    tess_channel_list list;
    TESS_TRY(tess_parse_channels(text, &list));
    if (strchr(text, ':') || list.num == 0)
        TESS_FAIL(TESS_ERR_USAGE,
                  "'%s' are no output channels; write them like 10~20;30, or as "
                  "frequencies like 1420.1~1420.9MHz",
                  text);
    TESS_TRY(tess_take_text(rule, text, value));
cleanup:
    return status;
}

/* --beam-size. `value` is the beam. */
static tess_status take_beam_size(const tess_option_rule *rule, const char *text,
                                  void *value)
{
    tess_status status = TESS_OK;
    tess_beam_choice *beam = value;
    double size_rad;
    (void)rule;
    TESS_TRY(tess_parse_scale(text, &size_rad));
    beam->major_rad = beam->minor_rad = size_rad;
    beam->pa_rad = 0;
cleanup:
    return status;
}

/* --beam-shape. `value` is the beam. */
static tess_status take_beam_shape(const tess_option_rule *rule, const char *text,
                                   void *value)
{
    tess_status status = TESS_OK;
    tess_beam_choice *beam = value;
    tess_fits_beam found;
    (void)rule;
    TESS_TRY(tess_parse_beam(text, &found));
    beam->major_rad = found.major_rad;
    beam->minor_rad = found.minor_rad;
    beam->pa_rad = found.pa_rad;
cleanup:
    return status;
}

#define WORD(name) #name,
static const char *const cycles[] = {TESS_CLEAN_CYCLES(WORD) NULL};
#undef WORD
static const char *const rules[] = {"bias", "fit", NULL};
static const char *const shapes[] = {"tapered-quadratic", "gaussian", NULL};
/* The first word names the noise of the whole image, which --local-rms changes. */
static const char *const methods[] = {"", "rms", "rms-with-min", NULL};

#define AT(member)    offsetof(tess_image_opts, clean.member)
#define MINOR(member) offsetof(tess_image_opts, clean.minor.member)
#define MAX_WHOLE     9007199254740992.0 /* up to 2^53 a double is exact */
#define LEAST         DBL_MIN            /* above 0 */

enum { MAX_MAJORS = 1 << 20 };

static const tess_option_rule clean_rules[] = {
    {OPT_NITER, tess_take_int64, .offset = MINOR(niter), .max = MAX_WHOLE},
    {OPT_NMITER, tess_take_int64, .offset = AT(nmiter), .max = MAX_MAJORS},
    {OPT_CYCLE, tess_take_word, .offset = MINOR(method.cycle), .words = cycles},
    {OPT_GAIN, tess_take_number, .offset = MINOR(gain), .min = LEAST, .max = 1},
    {OPT_MGAIN, tess_take_number, .offset = MINOR(mgain), .min = LEAST, .max = 1,
     .given = AT(cycle.mgain_given)},
    {OPT_CYCLEFACTOR, tess_take_number, .offset = AT(cycle.factor), .min = LEAST,
     .max = DBL_MAX},
    {OPT_MIN_FRACTION, tess_take_number, .offset = AT(cycle.min_fraction), .max = 0.99,
     .given = AT(cycle.has_limits)},
    {OPT_MAX_FRACTION, tess_take_number, .offset = AT(cycle.max_fraction), .max = 0.99,
     .given = AT(cycle.has_limits)},
    {OPT_CYCLENITER, tess_take_int64, .offset = MINOR(method.most), .max = MAX_WHOLE},
    {OPT_THRESHOLD, take_flux, .offset = MINOR(threshold_jy)},
    {OPT_AUTO_THRESHOLD, tess_take_number, .offset = MINOR(auto_threshold),
     .max = DBL_MAX},
    {OPT_AUTO_MASK, tess_take_number, .offset = MINOR(auto_mask), .max = DBL_MAX},
    {OPT_MASK_NMITER, tess_take_int64, .offset = AT(mask_nmiter), .max = MAX_MAJORS},
    {OPT_MASK_ROUNDS, tess_take_int, .offset = MINOR(mask_rounds), .min = 1,
     .max = MAX_MAJORS, .given = AT(rounds_given)},
    {OPT_FITS_MASK, tess_take_text, .offset = AT(fits_mask)},
    {OPT_CASA_MASK, tess_take_text, .offset = AT(casa_mask)},
    {OPT_CHANNEL_MASK, take_channels, .offset = AT(channel_mask)},
    {OPT_HORIZON_MASK, tess_take_scale, .offset = AT(horizon_rad)},
    {OPT_MASK, tess_take_text, .offset = AT(mask)},
    {OPT_PB_MASK, tess_take_number, .offset = AT(pb_mask), .min = LEAST, .max = 1},
    {OPT_MULTISCALE, tess_take_flag, .offset = MINOR(multiscale)},
    {OPT_SCALES, take_scales, .offset = 0},
    {OPT_SCALE_BIAS, tess_take_number, .offset = MINOR(scale_bias), .min = LEAST,
     .max = 1},
    {OPT_SCALE_RULE, tess_take_word, .offset = MINOR(method.scale_rule),
     .words = rules},
    {OPT_MAX_SCALES, tess_take_int, .offset = MINOR(most_scales),
     .max = TESS_CLEAN_MOST_SCALES},
    {OPT_SHAPE, tess_take_word, .offset = MINOR(shape), .words = shapes,
     .given = AT(shape_given)},
    {OPT_SCALE_GAIN, tess_take_number, .offset = MINOR(scale_gain), .min = LEAST,
     .max = 0.999},
    {OPT_LOCAL_RMS, tess_take_flag, .offset = AT(local_rms)},
    {OPT_LOCAL_RMS_WINDOW, tess_take_number, .offset = MINOR(local.window_beams),
     .min = LEAST, .max = DBL_MAX},
    {OPT_LOCAL_RMS_METHOD, tess_take_word, .offset = MINOR(local.kind), .min = 1,
     .words = methods, .given = AT(local_rms)},
    {OPT_LOCAL_RMS_STRENGTH, tess_take_number, .offset = MINOR(local.strength),
     .max = DBL_MAX, .given = AT(local_rms)},
    {OPT_NO_NEGATIVE, tess_take_flag, .offset = MINOR(no_negative)},
    {OPT_STOP_NEGATIVE, tess_take_flag, .offset = MINOR(stop_negative)},
    {OPT_BORDER, tess_take_number, .offset = MINOR(border_percent), .max = 49.999},
    {OPT_CONTINUE, tess_take_flag, .offset = AT(continues)},
    {OPT_BEAM_SIZE, take_beam_size, .offset = AT(beam)},
    {OPT_BEAM_SHAPE, take_beam_shape, .offset = AT(beam)},
    {OPT_CIRCULAR_BEAM, tess_take_flag, .offset = AT(beam.circular)},
    {OPT_THEORETIC_BEAM, tess_take_flag, .offset = AT(beam.theoretic)},
    {OPT_BEAM_BOX, tess_take_number, .offset = AT(beam.box_beams), .min = LEAST,
     .max = DBL_MAX},
    {OPT_LOBE_BEAM, tess_take_flag, .offset = AT(beam.of_lobe)},
    {OPT_COMMON_BEAM, tess_take_flag, .offset = AT(beam.common)},
    {OPT_NO_DIRTY, tess_take_flag, .offset = offsetof(tess_image_opts, no_dirty)},
    {OPT_FIRST_RESIDUAL, tess_take_flag, .offset = AT(first_residual)},
    {OPT_UPDATE_MODEL, tess_take_flag, .offset = AT(update_model)},
    {OPT_ONLY_MODEL, tess_take_flag, .offset = AT(only_model)},
    {OPT_MODEL_COLUMN, tess_take_text, .offset = AT(model_column)},
    {OPT_SAVE_SOURCES, tess_take_flag, .offset = AT(save_sources)},
    {OPT_JOIN_CHANNELS, tess_take_flag, .offset = AT(join.channels)},
    {OPT_JOIN_POLS, tess_take_flag, .offset = AT(join.polarizations)},
    {OPT_LINK_POLS, take_linked, .offset = 0},
    {OPT_SQUARED, tess_take_flag, .offset = AT(join.squared)},
    {OPT_FIT, take_fit, .offset = 0, .min = 1, .max = TESS_CLEAN_MOST_TERMS},
    {OPT_FIT_LOG, take_fit, .offset = 0, .min = 1, .max = TESS_CLEAN_MOST_TERMS},
    {OPT_REFERENCE, take_reference, .offset = AT(join.reference_hz)},
    {OPT_CLEANED, tess_take_int, .offset = AT(join.num_cleaned), .min = 1,
     .max = 1 << 20},
    {OPT_MF_WEIGHTING, tess_take_flag,
     .offset = offsetof(tess_image_opts, weights.shared_density)},
    {OPT_NO_MF_WEIGHTING, tess_take_flag,
     .offset = offsetof(tess_image_opts, weights.own_density)},
    {0},
};

#undef AT
#undef MINOR

static void set_defaults(struct argp_state *state, tess_clean_choice *choice)
{
    tess_clean_opts_default(&choice->minor);
    choice->nmiter = 20;
    choice->cycle.min_fraction = 0.05; /* as CASA's tclean */
    choice->cycle.max_fraction = 0.8;
    tess_cli_default(state, "niter", "0");
}

/* The option's name when it says how to clean, and is of no use without --niter. */
static const char *needs_niter(int key)
{
    static const int others[] = {
        OPT_NITER,        OPT_BEAM_SIZE,    OPT_BEAM_SHAPE,      OPT_CIRCULAR_BEAM,
        OPT_NO_DIRTY,     OPT_MF_WEIGHTING, OPT_NO_MF_WEIGHTING, OPT_ONLY_MODEL,
        OPT_MODEL_COLUMN, OPT_BEAM_BOX,     OPT_THEORETIC_BEAM,  OPT_LOBE_BEAM};
    for (size_t k = 0; k < sizeof others / sizeof *others; ++k)
        if (key == others[k]) return NULL;
    const struct argp_option *option = clean_options;
    while (option->key != key)
        ++option;
    return option->name;
}

static error_t parse_clean(int key, char *arg, struct argp_state *state)
{
    tess_image_opts *opts = state->input;
    tess_status status = TESS_OK;
    if (key == ARGP_KEY_INIT) {
        set_defaults(state, &opts->clean);
        state->child_inputs[0] = opts;
        return 0;
    }
    if (!tess_option_take(clean_rules, key, arg, opts, &status))
        return ARGP_ERR_UNKNOWN;
    if (needs_niter(key)) opts->clean.needs_niter = needs_niter(key);
    return tess_cli_result(state, clean_options, key, arg, status);
}

static const struct argp_child clean_children[] = {
    {&tess_mask_argp, 0, "Automatic masks:", 3}, {0}};

const struct argp tess_clean_argp = {
    .options = clean_options, .parser = parse_clean, .children = clean_children};

/* ---- options together ---- */

/* Refuses options that say how to clean where nothing is cleaned. */
static tess_status check_idle(const tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    if (opts->clean.needs_niter)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--%s is for cleaning, which needs --niter N, like --niter 100000",
                  opts->clean.needs_niter);
    if (opts->no_dirty && !opts->make_psf)
        TESS_FAIL(TESS_ERR_USAGE, "--no-dirty with --no-psf leaves nothing to write");
cleanup:
    return status;
}

/* Whether a polarisation is imaged. */
static bool is_imaged(const tess_image_opts *opts, tess_corr code)
{
    for (int k = 0; k < opts->num_pol; ++k)
        if (opts->pol[k] == code) return true;
    return false;
}

/* Numbers of channels and terms. */
static tess_status check_channels(const tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    const tess_join_choice *join = &opts->clean.join;
    const int64_t cleaned =
        join->num_cleaned > 0 ? join->num_cleaned : opts->channels_out;
    const bool fits = join->spectrum != TESS_CLEAN_EACH_CHANNEL;
    if (!join->channels && (fits || join->num_cleaned > 0))
        TESS_FAIL(TESS_ERR_USAGE, "--%s needs --join-channels",
                  fits ? "fit-spectral-pol" : "deconvolution-channels");
    if (fits && join->num_terms > cleaned)
        TESS_FAIL(TESS_ERR_USAGE,
                  "%d spectral terms cannot be fitted to %lld channel%s; use fewer "
                  "terms or more --channels-out",
                  join->num_terms, (long long)cleaned, cleaned == 1 ? "" : "s");
    if (!fits && (join->reference_hz < 0 || join->reference_hz > 0))
        TESS_FAIL(TESS_ERR_USAGE, "--reference-freq is of the spectra of "
                                  "--fit-spectral-pol, which it needs");
    if (join->num_cleaned > opts->channels_out)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--deconvolution-channels %d: there are %lld channels",
                  join->num_cleaned, (long long)opts->channels_out);
    if (join->num_cleaned > 0 && join->num_cleaned < opts->channels_out && !fits)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--deconvolution-channels needs --fit-spectral-pol, by which all "
                  "channels get their values");
cleanup:
    return status;
}

/* Options for cleaning together, and with one another. */
static tess_status check_join(const tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    const tess_join_choice *join = &opts->clean.join;
    const tess_clean_opts *minor = &opts->clean.minor;
    for (int k = 0; k < join->num_linked; ++k)
        if (!is_imaged(opts, join->linked[k]))
            TESS_FAIL(TESS_ERR_USAGE,
                      "--link-polarizations names an image that --stokes does not "
                      "make");
    if (join->squared && !join->channels && !join->polarizations)
        TESS_FAIL(TESS_ERR_USAGE, "--squared-channel-joining needs --join-channels or "
                                  "--join-polarizations");
    if (join->squared && (minor->no_negative || minor->stop_negative))
        TESS_FAIL(TESS_ERR_USAGE,
                  "--no-negative and --stop-negative: the peak of squares has no "
                  "sign; leave them out");
    TESS_TRY(check_channels(opts));
cleanup:
    return status;
}

/* Which density weighs the channels, and joins of a single image, which are none. */
static tess_status choose_join(tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    tess_join_choice *join = &opts->clean.join;
    tess_image_weights *weights = &opts->weights;
    if (weights->shared_density && weights->own_density)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--mf-weighting and --no-mf-weighting exclude each other");
    if (join->channels && opts->clean.minor.niter > 0 && !weights->own_density)
        weights->shared_density = true;
    if (opts->channels_out == 1) weights->shared_density = false;
    if (opts->clean.minor.niter == 0) return TESS_OK;
    if (join->channels && opts->channels_out == 1)
        tess_log_info(
            "--join-channels: there is one channel; --channels-out makes more");
    if (join->polarizations && opts->num_pol == 1)
        tess_log_info("--join-polarizations: --stokes makes one image");
cleanup:
    return status;
}

/* A list of sources is of Stokes I, and its extended sources are Gaussians. */
static tess_status choose_sources(tess_image_opts *opts, bool is_plan)
{
    tess_status status = TESS_OK;
    tess_clean_choice *choice = &opts->clean;
    enum { STOKES_I = 1 };
    if (!choice->save_sources) return TESS_OK;
    if (!opts->output && !is_plan)
        TESS_FAIL(TESS_ERR_USAGE, "--save-source-list needs files: -o NAME");
    if (!is_imaged(opts, STOKES_I))
        TESS_FAIL(TESS_ERR_USAGE, "--save-source-list is of Stokes I, which --stokes "
                                  "does not make");
    if (choice->minor.multiscale && choice->shape_given &&
        choice->minor.shape != TESS_CLEAN_GAUSSIAN)
        TESS_FAIL(TESS_ERR_USAGE, "--save-source-list needs components that are "
                                  "Gaussians: --multiscale-shape gaussian");
    choice->minor.shape = TESS_CLEAN_GAUSSIAN;
    if (choice->continues)
        tess_log_warn(
            "--save-source-list: components of the model that is continued are "
            "not in the list");
cleanup:
    return status;
}

/* When minor loops end: as --mgain says, or as --cyclefactor does. */
static tess_status check_cycle(const tess_cycle_choice *cycle)
{
    tess_status status = TESS_OK;
    const bool has = cycle->factor > 0;
    if (has && cycle->mgain_given)
        TESS_FAIL(TESS_ERR_USAGE, "--cyclefactor takes the place of --mgain; leave one "
                                  "of them out");
    if (!has && cycle->has_limits)
        TESS_FAIL(TESS_ERR_USAGE, "--min-psf-fraction and --max-psf-fraction are for "
                                  "--cyclefactor");
    if (cycle->min_fraction > cycle->max_fraction)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--min-psf-fraction %g is above --max-psf-fraction %g",
                  cycle->min_fraction, cycle->max_fraction);
cleanup:
    return status;
}

/* Masks, of which there may be one file. */
static tess_status check_masks(const tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    const tess_clean_choice *choice = &opts->clean;
    if ((choice->fits_mask != NULL) + (choice->casa_mask != NULL) +
            (choice->mask != NULL) >
        1)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--mask, --fits-mask and --casa-mask: there may be one mask");
    if (choice->horizon_rad >= 90 * TESS_RAD_PER_DEG)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--horizon-mask leaves nothing; give less than 90deg");
    if (choice->channel_mask && choice->join.channels)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--channel-mask chooses channels that are cleaned one "
                  "by one: no --join-channels");
    TESS_TRY(tess_mask_args_check(opts));
cleanup:
    return status;
}

/* One beam for all channels: not with a beam that is given, and not with checkpoints of
 * channels that are cleaned one by one, which would not hold the PSFs of the others. */
static tess_status check_beam(const tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    const tess_beam_choice *beam = &opts->clean.beam;
    if (beam->of_lobe && (beam->circular || beam->theoretic))
        TESS_FAIL(TESS_ERR_USAGE,
                  "--lobe-beam fits an ellipse: no --circular-beam and no "
                  "--theoretic-beam");
    if (!beam->common) return TESS_OK;
    if (beam->major_rad > 0)
        TESS_FAIL(TESS_ERR_USAGE, "--common-beam is found of the PSFs: no --beam-size "
                                  "and no --beam-shape");
    if (opts->checkpoint.folder && !opts->clean.join.channels)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--common-beam goes with --checkpoint only if --join-channels cleans "
                  "the channels together; tessera restore --common-beam restores "
                  "cubes afterwards");
cleanup:
    return status;
}

tess_status tess_clean_args_check(tess_image_opts *opts, bool is_plan)
{
    tess_status status = TESS_OK;
    tess_clean_choice *choice = &opts->clean;
    tess_clean_opts *minor = &choice->minor;
    TESS_TRY(choose_join(opts));
    if (choice->only_model && (minor->niter > 0 || opts->checkpoint.folder ||
                               opts->beside.weights || is_plan))
        TESS_FAIL(TESS_ERR_USAGE, "--predict-models makes no images: no --niter, no "
                                  "--checkpoint, no --store-imaging-weights, and no "
                                  "plan");
    if (choice->only_model && !opts->output)
        TESS_FAIL(TESS_ERR_USAGE, "--predict-models needs files: -o NAME");
    TESS_TRY(check_beam(opts));
    if (minor->niter == 0) return check_idle(opts);
    TESS_TRY(check_join(opts));
    if (!opts->make_psf)
        TESS_FAIL(TESS_ERR_USAGE, "--niter needs the PSF: no --no-psf");
    if (opts->subtract.model && choice->update_model)
        TESS_FAIL(TESS_ERR_USAGE, "--update-model would write the model of what "
                                  "--subtract leaves; subtract a column with "
                                  "--subtract-column, or leave one of them out");
    if (opts->beside.dump_stages)
        TESS_FAIL(TESS_ERR_USAGE, "--dump-stages shows dirty images only: no --niter");
    if (!opts->output && !is_plan && (choice->continues || choice->update_model))
        TESS_FAIL(TESS_ERR_USAGE, "--continue and --update-model need files: -o NAME");
    TESS_TRY(check_masks(opts));
    TESS_TRY(check_cycle(&choice->cycle));
    if (!minor->multiscale && minor->num_scales > 0)
        TESS_FAIL(TESS_ERR_USAGE, "--multiscale-scales needs --multiscale");
    TESS_TRY(choose_sources(opts, is_plan));
    if (choice->local_rms && minor->local.kind == TESS_CLEAN_GLOBAL_RMS)
        minor->local.kind = TESS_CLEAN_LOCAL_RMS;
cleanup:
    return status;
}
