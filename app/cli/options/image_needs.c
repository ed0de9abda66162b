/* Refuses options of `tessera image` that would change nothing, because an option that
 * they belong to is missing, another one takes their place, or a session is open
 * already. Other checks of options
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

/* ---- calls of a session ---- */

/* Whether a table of options, or those below it, have this one. */
static bool has_option(const struct argp *argp, const char *name)
{
    for (const struct argp_option *o = argp->options; !cli_option_is_end(o); ++o)
        if (o->name && strcmp(o->name, name) == 0) return true;
    for (const struct argp_child *c = argp->children; c && c->argp; ++c)
        if (has_option(c->argp, name)) return true;
    return false;
}

/* Whether an option acts in a call that cleans, as those of cleaning and of the log do.
 * A mosaic has the images of --pbcor in any case, and facets may have got other
 * solutions since the session was opened. */
static bool acts_in_call(const char *name)
{
    static const char *const of_weights[] = {"mf-weighting", "no-mf-weighting"};
    static const char *const others[] = {"pbcor", "facet-solutions", "soltabs"};
    for (size_t k = 0; k < sizeof of_weights / sizeof *of_weights; ++k)
        if (strcmp(name, of_weights[k]) == 0) return false;
    for (size_t k = 0; k < sizeof others / sizeof *others; ++k)
        if (strcmp(name, others[k]) == 0) return true;
    return has_option(&tess_clean_argp, name) ||
           has_option(&tess_cli_common_argp, name);
}

/* The value of an option of the session; `wanted` where this is one of several. */
static const char *value_of(const tess_cli *cli, const char *name, const char *wanted)
{
    const char *value = NULL;
    for (int64_t k = 0; k < cli->num_used; ++k) {
        if (strcmp(cli->used[k].name, name) != 0) continue;
        value = cli->used[k].value;
        if (strcmp(value, wanted) == 0) break;
    }
    return value;
}

tess_status tess_image_args_check_call(const tess_image_args *session,
                                       const tess_image_args *call)
{
    tess_status status = TESS_OK;
    for (int64_t k = 0; k < call->cli.num_used; ++k) {
        const tess_cli_used *used = &call->cli.used[k];
        const char *value = value_of(&session->cli, used->name, used->value);
        if (!used->given || acts_in_call(used->name)) continue;
        if (!value)
            TESS_FAIL(TESS_ERR_USAGE,
                      "--%s says what a session holds, and not how to clean; this "
                      "session was opened without it",
                      used->name);
        if (strcmp(value, used->value) != 0)
            TESS_FAIL(TESS_ERR_USAGE,
                      "--%s says what a session holds, and not how to clean; this "
                      "session was opened with '%s'",
                      used->name, value);
    }
cleanup:
    return status;
}
