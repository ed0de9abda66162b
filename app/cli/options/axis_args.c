/* The options of output channels that are regular in a frame. */
#define _GNU_SOURCE
#include <stddef.h>
#include <string.h>

#include "groups.h"
#include "option_rules.h"
#include "options.h"

enum {
    OPT_FRAME = 0x100,
    OPT_START,
    OPT_WIDTH,
    OPT_NCHAN,
    OPT_RESTFREQ,
    OPT_VELOCITY,
    OPT_INTERPOLATION
};

static const struct argp_option axis_options[] = {
    {"frame", OPT_FRAME, "topo|lsrk|bary|galacto", 0,
     "Frame in which the output channels are regular; visibilities fall into them by "
     "the Doppler factor of their time",
     0},
    {"start", OPT_START, "VALUE", 0,
     "Middle of the first output channel in that frame, like 1.4195GHz, -300km/s, or "
     "a number of channels from the end of the data (default: the data's first)",
     0},
    {"width", OPT_WIDTH, "VALUE", 0,
     "Width of an output channel, like 20kHz, 5km/s, or a number of channels; it may "
     "be negative (default: that of the data)",
     0},
    {"nchan", OPT_NCHAN, "N", 0,
     "Number of output channels (default: to the end of the data)", 0},
    {"restfreq", OPT_RESTFREQ, "FREQ", 0,
     "Frequency of the line at rest, like 1420.405752MHz (default: that of the "
     "observation)",
     0},
    {"velocity", OPT_VELOCITY, "radio|optical", 0,
     "Write the axis as radio velocity (VRAD) or optical velocity (VOPT), which rises, "
     "in place of frequency",
     0},
    {"interpolation", OPT_INTERPOLATION, "linear|nearest", 0,
     "Make visibilities of output channels by interpolation between two channels, or "
     "leave each as it is, in the output channel that it lies in (default linear)",
     0},
    {0},
};

static tess_status take_frame(const tess_option_rule *rule, const char *text,
                              void *value)
{
    (void)rule;
    return tess_spectral_frame_parse(text, value);
}

static tess_status take_start(const tess_option_rule *rule, const char *text,
                              void *value)
{
    (void)rule;
    return tess_parse_axis_start(text, value);
}

static tess_status take_width(const tess_option_rule *rule, const char *text,
                              void *value)
{
    (void)rule;
    return tess_parse_axis_width(text, value);
}

static tess_status take_frequency(const tess_option_rule *rule, const char *text,
                                  void *value)
{
    (void)rule;
    return tess_parse_frequency(text, value);
}

static const char *const velocities[] = {"frequency", "radio", "optical", NULL};
static const char *const interpolations[] = {"linear", "nearest", NULL};

static tess_status take_interpolation(const tess_option_rule *rule, const char *text,
                                      void *value)
{
    tess_status status = TESS_OK;
    int word = 0;
    bool *nearest = value;
    TESS_TRY(tess_take_word(rule, text, &word));
    *nearest = word == 1;
cleanup:
    return status;
}

#define AT(member) offsetof(tess_image_opts, channels.axis.member)

static const tess_option_rule axis_rules[] = {
    {OPT_FRAME, take_frame, .offset = AT(frame), .given = AT(given)},
    {OPT_START, take_start, .offset = AT(start), .given = AT(given)},
    {OPT_WIDTH, take_width, .offset = AT(width), .given = AT(given)},
    {OPT_NCHAN, tess_take_int64, .offset = AT(num_chan), .min = 1, .max = 1 << 20,
     .given = AT(given)},
    {OPT_RESTFREQ, take_frequency, .offset = AT(rest_hz)},
    {OPT_VELOCITY, tess_take_word, .offset = AT(velocity), .min = 1,
     .words = velocities, .given = AT(given)},
    {OPT_INTERPOLATION, take_interpolation, .offset = AT(nearest),
     .words = interpolations, .given = AT(given)},
    {0}};

static error_t parse_axis(int key, char *arg, struct argp_state *state)
{
    tess_status status = TESS_OK;
    if (!tess_option_take(axis_rules, key, arg, state->input, &status))
        return ARGP_ERR_UNKNOWN;
    return tess_cli_result(state, axis_options, key, arg, status);
}

const struct argp tess_axis_argp = {.options = axis_options, .parser = parse_axis};

tess_status tess_axis_args_check(tess_comm *comm, tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    opts->selection.wanted.lines = opts->channels.axis.given;
    if (!opts->channels.axis.given) return TESS_OK;
    if (opts->channels_out > 1)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--channels-out is the number of channels that --nchan "
                  "and --width choose here; leave it out");
    if (opts->channels.division.at_gaps || opts->channels.division.num_splits > 0)
        TESS_FAIL(
            TESS_ERR_USAGE,
            "--gap-channel-division and --channel-division-frequencies divide the "
            "channels of the data, and --frame and its options make others; leave "
            "one of them out");
    if (opts->clean.update_model || opts->clean.only_model)
        TESS_FAIL(TESS_ERR_USAGE,
                  "models cannot be written to channels of the data from those of "
                  "--frame: no --update-model, no --predict-models");
    if (opts->beside.weights)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--store-imaging-weights: channels of --frame are not those of the "
                  "data; leave one of them out");
    if (opts->beside.as_wsclean)
        TESS_FAIL(TESS_ERR_USAGE, "--frame and --wsclean-files exclude each other");
    TESS_TRY(tess_imager_take_axis(comm, opts));
cleanup:
    return status;
}
