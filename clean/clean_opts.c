/* The options of a CLEAN: their defaults, what is wrong with them, and words for why a
 * minor loop ended. */
#include "clean_opts.h"

#include <math.h>

#include "clean_join.h"
#include "clean_scales.h"

void tess_clean_opts_default(tess_clean_opts *opts)
{
    *opts = (tess_clean_opts){.gain = 0.1,
                              .mgain = 0.8,
                              .mask_rounds = 1,
                              .scale_bias = 0.6,
                              .scale_gain = 0.2,
                              .local = {.window_beams = 25, .strength = 1},
                              .threads = 1};
}

const char *tess_clean_end_text(tess_clean_end end)
{
    switch (end) {
    case TESS_CLEAN_MAJOR_THRESHOLD:
        return "the major threshold";
    case TESS_CLEAN_FINAL_THRESHOLD:
        return "the final threshold";
    case TESS_CLEAN_LOOPS:
        return "repeated loops at the threshold";
    case TESS_CLEAN_MOST:
        return "the number of iterations of a cycle";
    case TESS_CLEAN_NITER:
        return "the number of iterations";
    case TESS_CLEAN_NEGATIVE:
        return "a negative component";
    case TESS_CLEAN_DIVERGED:
        return "divergence";
    case TESS_CLEAN_NOTHING:
        return "nothing to clean";
    case TESS_CLEAN_STOPPED:
        return "a checkpoint";
    }
    return "";
}

static bool is_share(double value)
{
    return value > 0 && value <= 1;
}

static bool is_amount(double value)
{
    return value >= 0 && isfinite(value);
}

static tess_status check_gains(const tess_clean_opts *opts)
{
    tess_status status = TESS_OK;
    if (!is_share(opts->gain)) TESS_FAIL(TESS_ERR_USAGE, "gain is not in (0, 1]");
    if (!is_share(opts->mgain)) TESS_FAIL(TESS_ERR_USAGE, "mgain is not in (0, 1]");
    if (!(opts->first_mgain >= 0 && opts->first_mgain <= 1))
        TESS_FAIL(TESS_ERR_USAGE,
                  "mgain of the first major iteration is not in (0, 1]");
    if (!is_share(opts->scale_gain) || opts->scale_gain == 1)
        TESS_FAIL(TESS_ERR_USAGE, "multiscale gain is not in (0, 1)");
    if (!is_share(opts->scale_bias))
        TESS_FAIL(TESS_ERR_USAGE, "multiscale bias is not in (0, 1]");
cleanup:
    return status;
}

static tess_status check_amounts(const tess_clean_opts *opts)
{
    tess_status status = TESS_OK;
    if (!is_amount(opts->threshold_jy) || !is_amount(opts->auto_threshold) ||
        !is_amount(opts->auto_mask))
        TESS_FAIL(TESS_ERR_USAGE, "a threshold is below 0");
    if (!(opts->border_percent >= 0 && opts->border_percent < 50))
        TESS_FAIL(TESS_ERR_USAGE, "border is not in [0, 50) percent");
    if (opts->niter < 0 || opts->method.most < 0)
        TESS_FAIL(TESS_ERR_USAGE, "niter is below 0");
    if (opts->local.kind != TESS_CLEAN_GLOBAL_RMS && !(opts->local.window_beams > 0))
        TESS_FAIL(TESS_ERR_USAGE, "window of the local rms is not above 0");
    if (!is_amount(opts->local.strength))
        TESS_FAIL(TESS_ERR_USAGE, "strength of the local rms is below 0");
    if (opts->threads < 1) TESS_FAIL(TESS_ERR_USAGE, "fewer threads than one");
cleanup:
    return status;
}

static tess_status check_scales(const tess_clean_opts *opts)
{
    tess_status status = TESS_OK;
    if (!opts->multiscale) return TESS_OK;
    if (opts->num_scales > TESS_CLEAN_MOST_SCALES)
        TESS_FAIL(TESS_ERR_USAGE, "more than %d scales", TESS_CLEAN_MOST_SCALES);
    for (int s = 0; s < opts->num_scales; ++s)
        if (!is_amount(opts->scale_px[s]) ||
            (s > 0 && opts->scale_px[s] <= opts->scale_px[s - 1]))
            TESS_FAIL(TESS_ERR_USAGE, "scales are not ascending from 0 or more");
cleanup:
    return status;
}

tess_status clean_opts_check(const tess_clean_images *images,
                             const tess_clean_opts *opts)
{
    tess_status status = TESS_OK;
    if (images->nx < 1 || images->ny < 1 || images->num_images < 1)
        TESS_FAIL(TESS_ERR_USAGE, "no image to clean");
    for (int k = 0; images->weight && k < images->num_images; ++k)
        if (!is_amount(images->weight[k]))
            TESS_FAIL(TESS_ERR_USAGE, "an image's weight is below 0");
    TESS_TRY(clean_join_check(images));
    TESS_TRY(check_gains(opts));
    TESS_TRY(check_amounts(opts));
    TESS_TRY(check_scales(opts));
    if ((opts->multiscale || opts->local.kind != TESS_CLEAN_GLOBAL_RMS) &&
        !(clean_beam_px(opts) > 0))
        TESS_FAIL(TESS_ERR_USAGE, "multiscale and local rms need the size of the beam");
cleanup:
    return status;
}
