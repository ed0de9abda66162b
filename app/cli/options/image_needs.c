/* Refuses options of `tessera image` that would change nothing, because an option that
 * they belong to is missing, or another one takes their place. Other checks of options
 * together are in image_args.c and clean_args.c. */
#include "image_needs.h"

#include <string.h>

#include "groups.h"

/* An option, whether it has an effect, and what is the matter if it has none. */
typedef struct option_need {
    bool acts;
    const char *option, *but;
} option_need;

static bool is_used(const tess_cli *cli, const char *option)
{
    for (int64_t k = 0; k < cli->num_used; ++k)
        if (strcmp(cli->used[k].name, option) == 0) return true;
    return false;
}

static tess_status check(const tess_cli *cli, const option_need *need, size_t count)
{
    tess_status status = TESS_OK;
    for (size_t k = 0; k < count; ++k)
        if (!need[k].acts && is_used(cli, need[k].option))
            TESS_FAIL(TESS_ERR_USAGE, "--%s has no effect %s", need[k].option,
                      need[k].but);
cleanup:
    return status;
}

/* Whether weights have to do with the cells that visibilities lie in. */
static bool have_cells(const tess_image_weights *weights)
{
    tess_taper of_cells = weights->taper;
    if (of_cells.at_visibilities) of_cells.fwhm_rad = 0;
    return weights->weighting != TESS_NATURAL || !tess_taper_is_none(&of_cells);
}

static tess_status check_images(const tess_image_args *args)
{
    const tess_image_opts *opts = &args->opts;
    const tess_image_weights *weights = &opts->weights;
    const tess_beam_correction *beam = &opts->beside.primary_beam;
    const bool divides = opts->channels_out > 1;
    const bool by_density = weights->weighting != TESS_NATURAL;
    const bool has_cells = have_cells(weights);
    const bool has_range =
        opts->selection.uv_min_lambda > 0 || opts->selection.uv_max_lambda > 0;
    const bool has_limit = beam->limit < TESS_PB_LIMIT || beam->limit > TESS_PB_LIMIT;
    static const char no_density[] = "with --weight natural, which has no density";
    const option_need needs[] = {
        {opts->subtract.model, "subtract-spectral-pol",
         "without a model file of --subtract"},
        {divides, "gap-channel-division", "on one channel; use --channels-out"},
        {divides, "channel-division-frequencies", "on one channel; use --channels-out"},
        {by_density || !(weights->rank_filter > 0), "weighting-rank-filter",
         no_density},
        {weights->rank_filter > 0, "weighting-rank-filter-size",
         "without --weighting-rank-filter"},
        {by_density || weights->box_cells == 0, "density-box", no_density},
        {by_density || weights->density_frame == TESS_TOPO, "density-frame",
         no_density},
        {has_cells, "super-weight", no_density},
        {has_cells, "padding", no_density},
        {has_range, "cut-cells", "without --uvrange"},
        {beam->model || !has_limit, "pb-limit",
         args->in_session ? "without --mosaic" : "without --primary-beam"}};
    return check(&args->cli, needs, sizeof needs / sizeof *needs);
}

static tess_status check_cleaning(const tess_image_args *args)
{
    const tess_clean_choice *clean = &args->opts.clean;
    const bool masks = clean->minor.auto_mask > 0;
    const bool is_local = clean->minor.local.kind != TESS_CLEAN_GLOBAL_RMS;
    static const char not_multiscale[] = "without --multiscale";
    const option_need needs[] = {
        {clean->minor.multiscale, "multiscale-scale-bias", not_multiscale},
        {clean->minor.method.scale_rule == TESS_CLEAN_BY_BIAS, "multiscale-scale-bias",
         "with --multiscale-choice fit"},
        {clean->minor.multiscale, "multiscale-choice", not_multiscale},
        {clean->minor.multiscale, "multiscale-max-scales", not_multiscale},
        {clean->minor.num_scales == 0, "multiscale-max-scales",
         "with --multiscale-scales, which lists them"},
        {clean->minor.multiscale, "multiscale-shape", not_multiscale},
        {clean->minor.multiscale, "multiscale-gain", not_multiscale},
        {masks, "auto-mask-nmiter", "without --auto-mask"},
        {masks, "force-mask-rounds", "without --auto-mask"},
        {is_local, "local-rms-window", "without --local-rms"},
        {clean->update_model || clean->only_model, "model-column",
         "without --update-model"},
        {clean->minor.niter == 0, "dirty-as-image", "with --niter"}};
    return check(&args->cli, needs, sizeof needs / sizeof *needs);
}

static tess_status check_beam(const tess_image_args *args)
{
    const tess_clean_choice *clean = &args->opts.clean;
    const bool finds = !(clean->beam.major_rad > 0), fits = !clean->beam.theoretic;
    static const char given[] = "with --beam-size or --beam-shape",
                      not_fitted[] = "with --theoretic-beam, which is round and not "
                                     "fitted";
    const option_need needs[] = {
        {finds, "circular-beam", given},     {finds, "theoretic-beam", given},
        {finds, "lobe-beam", given},         {finds, "beam-fitting-size", given},
        {fits, "circular-beam", not_fitted}, {fits, "beam-fitting-size", not_fitted}};
    return check(&args->cli, needs, sizeof needs / sizeof *needs);
}

tess_status image_needs_check(const tess_image_args *args)
{
    tess_status status = TESS_OK;
    /* A session is opened without --niter. Its options of cleaning act in the calls
     * that clean, and those of the beam in calls that do not clean, too. */
    const bool opens = args->in_session && args->opts.clean.minor.niter == 0;
    TESS_TRY(check_images(args));
    if (!opens) TESS_TRY(check_cleaning(args));
    if (!args->in_session) TESS_TRY(check_beam(args));
cleanup:
    return status;
}
