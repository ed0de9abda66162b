/* Options of the primary beams of facets. */
#include <argp.h>
#include <stddef.h>

#include "groups.h"
#include "option_rules.h"
#include "options.h"
#include "tess_cli.h"

enum { OPT_FACET_BEAM = 0x100, OPT_FACET_BEAM_UPDATE };

/* As WSClean's -facet-beam-update. */
static const double UPDATE_S = 120;

static const struct argp_option options[] = {
    {"facet-beam", OPT_FACET_BEAM, "MODEL", 0,
     "The primary beam of each facet, beside its solutions: auto (that of the "
     "telescope), meerkat, vla, atca, gmrt, alma, aca, airy:DIAMETER[,BLOCKAGE], "
     "poly:FILE, FILE.fits (power or voltages), or antennas:FILE with a line NAMES "
     "MODEL "
     "for antennas that differ",
     0},
    {"facet-beam-update", OPT_FACET_BEAM_UPDATE, "TIME", 0,
     "Compute beams of facets that turn on the sky anew after this time (default 2min)",
     0},
    {0},
};

static tess_status take_model(const tess_option_rule *rule, const char *text,
                              void *value)
{
    tess_status status = TESS_OK;
    (void)rule;
    TESS_TRY(tess_gain_beam_check_model(text));
    *(const char **)value = text;
cleanup:
    return status;
}

static tess_status take_time(const tess_option_rule *rule, const char *text,
                             void *value)
{
    (void)rule;
    return tess_parse_duration(text, value);
}

#define AT(member) offsetof(tess_gain_beam_opts, member)

static const tess_option_rule rules[] = {
    {OPT_FACET_BEAM, take_model, .offset = AT(model)},
    {OPT_FACET_BEAM_UPDATE, take_time, .offset = AT(update_s)},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    tess_gain_beam_opts *opts = state->input;
    tess_status status = TESS_OK;
    if (key == ARGP_KEY_INIT) {
        opts->update_s = UPDATE_S;
        return 0;
    }
    if (!tess_option_take(rules, key, arg, opts, &status)) return ARGP_ERR_UNKNOWN;
    return tess_cli_result(state, options, key, arg, status);
}

const struct argp tess_facet_beam_argp = {.options = options, .parser = parse};
