/* Parses the options of automatic masks that several thresholds find, as CASA's tclean
 * has them (auto-multithresh). */
#include "groups.h"

#include <float.h>
#include <stddef.h>

#include "option_rules.h"
#include "tess_parse.h"

enum {
    OPT_MULTITHRESH = 0x300,
    OPT_SIDELOBE,
    OPT_NOISE,
    OPT_LOW_NOISE,
    OPT_NEGATIVE,
    OPT_SMOOTH,
    OPT_BEAM_FRAC,
    OPT_CUT,
    OPT_GROW,
    OPT_GROW_PRUNE,
    OPT_CHANGE,
    OPT_FAST_NOISE
};

static const struct argp_option mask_options[] = {
    {"auto-multithresh", OPT_MULTITHRESH, NULL, 0,
     "Clean within masks that are found in each residual image: regions above several "
     "times the noise and the sidelobes, which grow (Kepley et al. 2020); written as "
     "NAME-mask.fits",
     0},
    {"sidelobe-threshold", OPT_SIDELOBE, "K", OPTION_HIDDEN,
     "Mask what is above K times the highest sidelobe of the PSF times the peak "
     "(default 3)",
     0},
    {"noise-threshold", OPT_NOISE, "K", OPTION_HIDDEN,
     "... and above K times the noise (default 5)", 0},
    {"low-noise-threshold", OPT_LOW_NOISE, "K", OPTION_HIDDEN,
     "Masks grow to pixels above K times the noise (default 1.5)", 0},
    {"negative-threshold", OPT_NEGATIVE, "K", OPTION_HIDDEN,
     "Mask absorption below K times the noise, too (default 0: no)", 0},
    {"smooth-factor", OPT_SMOOTH, "F", OPTION_HIDDEN,
     "Masks are convolved with a beam F times as wide (default 1)", 0},
    {"min-beam-frac", OPT_BEAM_FRAC, "F", OPTION_HIDDEN,
     "Regions of less than F of the beam's area are left out (default 0.3)", 0},
    {"cut-threshold", OPT_CUT, "F", OPTION_HIDDEN,
     "Convolved masks end at F of their largest value (default 0.01)", 0},
    {"grow-iterations", OPT_GROW, "N", OPTION_HIDDEN,
     "Masks grow by at most N pixels in a major iteration (default 75)", 0},
    {"grow-prune", OPT_GROW_PRUNE, "yes|no", OPTION_HIDDEN,
     "What has grown has to have --min-beam-frac, too (default yes)", 0},
    {"min-percent-change", OPT_CHANGE, "P", OPTION_HIDDEN,
     "Keep a mask once it changes by less than P percent at the final threshold "
     "(default -1: find it anew)",
     0},
    {"fast-noise", OPT_FAST_NOISE, "yes|no", OPTION_HIDDEN,
     "The noise is that of the whole image, or of what is outside the mask (default "
     "yes)",
     0},
    {0},
};

static tess_status take_yes(const tess_option_rule *rule, const char *text, void *value)
{
    tess_status status = TESS_OK;
    bool *is_yes = value;
    int word = 0;
    TESS_TRY(tess_take_word(rule, text, &word));
    *is_yes = word == 0;
cleanup:
    return status;
}

static const char *const answers[] = {"yes", "no", NULL};

#define AT(member) offsetof(tess_image_opts, clean.multithresh.opts.member)

static const tess_option_rule mask_rules[] = {
    {OPT_MULTITHRESH, tess_take_flag,
     .offset = offsetof(tess_image_opts, clean.multithresh.finds)},
    {OPT_SIDELOBE, tess_take_number, .offset = AT(sidelobe), .max = DBL_MAX},
    {OPT_NOISE, tess_take_number, .offset = AT(noise), .max = DBL_MAX},
    {OPT_LOW_NOISE, tess_take_number, .offset = AT(low_noise), .max = DBL_MAX},
    {OPT_NEGATIVE, tess_take_number, .offset = AT(negative), .max = DBL_MAX},
    {OPT_SMOOTH, tess_take_number, .offset = AT(smooth_factor), .max = 100},
    {OPT_BEAM_FRAC, tess_take_number, .offset = AT(min_beam_frac), .max = DBL_MAX},
    {OPT_CUT, tess_take_number, .offset = AT(cut), .min = 1e-9, .max = 1},
    {OPT_GROW, tess_take_int64, .offset = AT(grow_iterations), .max = 1 << 20},
    {OPT_GROW_PRUNE, take_yes, .offset = AT(grow_prune), .words = answers},
    {OPT_CHANGE, tess_take_number, .offset = AT(min_percent_change), .min = -1,
     .max = 100},
    {OPT_FAST_NOISE, take_yes, .offset = AT(fast_noise), .words = answers},
    {0},
};

#undef AT

static const char *name_of(int key)
{
    const struct argp_option *option = mask_options;
    while (option->key != key)
        ++option;
    return option->name;
}

static error_t parse_mask(int key, char *arg, struct argp_state *state)
{
    tess_image_opts *opts = state->input;
    tess_status status = TESS_OK;
    if (key == ARGP_KEY_INIT) {
        tess_multithresh_opts_default(&opts->clean.multithresh.opts);
        return 0;
    }
    if (!tess_option_take(mask_rules, key, arg, opts, &status)) return ARGP_ERR_UNKNOWN;
    if (key == OPT_MULTITHRESH)
        opts->clean.needs_niter = name_of(key);
    else
        opts->clean.multithresh.needs = name_of(key);
    return tess_cli_result(state, mask_options, key, arg, status);
}

const struct argp tess_mask_argp = {.options = mask_options, .parser = parse_mask};

tess_status tess_mask_args_check(const tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    const tess_clean_choice *choice = &opts->clean;
    const tess_multithresh_choice *masks = &choice->multithresh;
    if (masks->needs && !masks->finds)
        TESS_FAIL(TESS_ERR_USAGE, "--%s is for --auto-multithresh", masks->needs);
    if (masks->finds && choice->minor.auto_mask > 0)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--auto-multithresh and --auto-mask: there may be one "
                  "automatic mask");
    if (choice->pb_mask > 0 && !opts->beside.primary_beam.model)
        TESS_FAIL(TESS_ERR_USAGE, "--pb-mask needs a beam; use --primary-beam, as in "
                                  "--primary-beam auto");
cleanup:
    return status;
}
