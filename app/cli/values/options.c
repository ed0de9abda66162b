/* Parses the values of options of gridding and imaging. */
#define _GNU_SOURCE
#include "options.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tess_backend.h"
#include "tess_study.h"

/* The text behind "briggs" or "robust" and one of ":", "=" and " ". It is "" if nothing
 * follows, and NULL if the text begins with neither word. */
static const char *after_briggs(const char *text)
{
    const size_t length = strlen("briggs"); /* "robust" is as long */
    if (strncasecmp(text, "briggs", length) != 0 &&
        strncasecmp(text, "robust", length) != 0)
        return NULL;
    const char *rest = text + length;
    if (*rest == '\0') return rest;
    if (!strchr(":= ", *rest)) return NULL;
    rest += 1 + strspn(rest + 1, " ");
    return *rest ? rest : NULL;
}

static bool is_number(const char *text)
{
    double value;
    const bool is = tess_parse_number(text, -DBL_MAX, DBL_MAX, &value) == TESS_OK;
    if (!is) tess_error_clear();
    return is;
}

tess_status tess_parse_weight(const char *text, tess_weighting *weighting,
                              double *robust)
{
    tess_status status = TESS_OK;
    double value = 0;
    const char *number = after_briggs(text);
    if (strcasecmp(text, "natural") == 0)
        *weighting = TESS_NATURAL;
    else if (strcasecmp(text, "uniform") == 0)
        *weighting = TESS_UNIFORM;
    else if (number) {
        if (*number) TESS_TRY(tess_parse_number(number, -10, 10, &value));
        *weighting = TESS_BRIGGS;
        *robust = value;
    } else if (is_number(text))
        TESS_FAIL(TESS_ERR_USAGE, "'%s' is not a weighting; did you mean briggs:%s?",
                  text, text);
    else
        TESS_FAIL(TESS_ERR_USAGE,
                  "'%s' is not a weighting; write natural, uniform or briggs:R like "
                  "briggs:0.5",
                  text);
cleanup:
    return status;
}

tess_status tess_parse_stokes(const char *text, tess_corr pol[TESS_MAX_POL],
                              int *num_pol)
{
    tess_status status = TESS_OK;
    tess_corr found[TESS_MAX_POL];
    int count = 0;
    /* Letters of Stokes parameters need no commas: IQUV */
    const bool letters = !strchr(text, ',') && strspn(text, "IQUViquv") == strlen(text);
    const char *rest = text;
    do {
        if (!letters) rest += strspn(rest, " ");
        const size_t length = letters ? 1 : strcspn(rest, ", ");
        char name[8] = "";
        for (size_t k = 0; k < length && length < sizeof name; ++k)
            name[k] = (char)toupper((unsigned char)rest[k]);
        const tess_corr corr = name[0] ? tess_corr_parse(name) : 0;
        if (corr == 0)
            TESS_FAIL(TESS_ERR_USAGE,
                      "'%s' has no Stokes parameters or correlations; write I, IQUV, "
                      "XX,YY or RR,LL (from I Q U V XX XY YX YY RR RL LR LL)",
                      text);
        for (int k = 0; k < count; ++k)
            if (found[k] == corr)
                TESS_FAIL(TESS_ERR_USAGE, "'%s' names %s twice", text, name);
        if (count == TESS_MAX_POL)
            TESS_FAIL(TESS_ERR_USAGE, "'%s' names more than %d images", text,
                      (int)TESS_MAX_POL);
        found[count++] = corr;
        rest += length;
        if (!letters) rest += strspn(rest, " ");
        if (*rest == ',' && !letters) {
            ++rest;
            if (*rest == '\0') TESS_FAIL(TESS_ERR_USAGE, "'%s' ends in a comma", text);
        }
    } while (*rest);
    memcpy(pol, found, (size_t)count * sizeof *found);
    *num_pol = count;
cleanup:
    return status;
}

/* Takes one of two words. */
static tess_status parse_either(const char *text, const char *what, const char *one,
                                const char *other, bool *is_other)
{
    tess_status status = TESS_OK;
    *is_other = strcmp(text, other) == 0;
    if (!*is_other && strcmp(text, one) != 0)
        TESS_FAIL(TESS_ERR_USAGE, "'%s' is not a %s; write %s or %s", text, what, one,
                  other);
cleanup:
    return status;
}

tess_status tess_parse_density(const char *text, bool *first)
{
    return parse_either(text, "density", "own", "first", first);
}

tess_status tess_parse_hand_weight(const char *text, bool *mean)
{
    return parse_either(text, "weight", "smallest", "mean", mean);
}

tess_status tess_parse_taper_at(const char *text, bool *at_visibilities)
{
    return parse_either(text, "place", "cells", "visibilities", at_visibilities);
}

tess_status tess_parse_w_mode(const char *text, tess_w_mode *w_mode)
{
    tess_status status = TESS_OK;
    if (strcmp(text, "auto") == 0)
        *w_mode = TESS_W_AUTO;
    else if (strcmp(text, "stacking") == 0)
        *w_mode = TESS_W_STACKING;
    else if (strcmp(text, "projection") == 0)
        *w_mode = TESS_W_PROJECTION;
    else if (strcmp(text, "none") == 0)
        *w_mode = TESS_W_NONE;
    else
        TESS_FAIL(TESS_ERR_USAGE,
                  "'%s' is not a way to treat w; write auto, stacking, projection or "
                  "none",
                  text);
cleanup:
    return status;
}

tess_status tess_parse_w_spacing(const char *text, bool *is_linear)
{
    tess_status status = TESS_OK;
    if (strcmp(text, "sqrt") != 0 && strcmp(text, "linear") != 0)
        TESS_FAIL(TESS_ERR_USAGE, "'%s' is not a spacing; write sqrt or linear", text);
    *is_linear = text[0] == 'l';
cleanup:
    return status;
}

tess_status tess_parse_strategy(const char *text, tess_projection_opts *opts)
{
    tess_status status = TESS_OK;
    const char *name;
    opts->strategy = NULL;
    if (strcmp(text, "auto") == 0) return TESS_OK;
    for (tess_study_strategy s = 0; (name = tess_study_name(s)) != NULL; ++s)
        if (strcmp(text, name) == 0 && s != TESS_STUDY_COMPUTED) {
            opts->strategy = tess_study_strategy_of(s);
            goto cleanup;
        }
    TESS_FAIL(
        TESS_ERR_USAGE,
        "'%s' is not a strategy; write auto, serial, atomic, tiled or factored, or "
        "on a GPU tiled, factored, scatter, gather, window, coarse or warp",
        text);
cleanup:
    return status;
}

/* The number of angles that a text has: three of at most 63 letters. */
static int cut_angles(const char *text, char angle[3][64])
{
    int count = 0;
    for (;; ++text) {
        const size_t length = strcspn(text, ",");
        if (count < 3) snprintf(angle[count], 64, "%.*s", (int)length, text);
        ++count;
        text += length;
        if (!*text) return count;
    }
}

tess_status tess_parse_beam(const char *text, tess_fits_beam *beam)
{
    tess_status status = TESS_OK;
    char angle[3][64];
    tess_fits_beam found;
    if (cut_angles(text, angle) != 3)
        TESS_FAIL(TESS_ERR_USAGE,
                  "'%s' is not a beam; write MAJOR,MINOR,ANGLE like 8asec,6asec,30deg",
                  text);
    TESS_TRY(tess_parse_scale(angle[0], &found.major_rad));
    TESS_TRY(tess_parse_scale(angle[1], &found.minor_rad));
    TESS_TRY(tess_parse_angle(angle[2], &found.pa_rad));
    if (found.minor_rad > found.major_rad)
        TESS_FAIL(TESS_ERR_USAGE, "'%s': the minor axis is longer than the major one",
                  text);
    *beam = found;
cleanup:
    return status;
}

tess_status tess_parse_taper(const char *text, tess_taper *taper)
{
    tess_status status = TESS_OK;
    tess_fits_beam beam = {0};
    if (strchr(text, ','))
        TESS_TRY(tess_parse_beam(text, &beam));
    else
        TESS_TRY(tess_parse_scale(text, &beam.major_rad));
    taper->fwhm_rad = beam.major_rad;
    taper->minor_rad = beam.minor_rad;
    taper->angle_rad = beam.pa_rad;
cleanup:
    return status;
}

/* Reads a value in one of the units that a text may have: a whole number without a unit
 * counts channels. Returns whether it is one. */
static bool read_axis_value(const char *text, tess_axis_value *value)
{
    const int64_t most = 1 << 20;
    int64_t channels;
    const bool is_negative = *text == '-';
    const size_t length = strlen(text);
    tess_axis_value found;
    tess_status status;
    if (length > 0 && text[length - 1] == 's') {
        found.unit = TESS_AXIS_M_S;
        status = tess_parse_velocity(text, &found.value);
    } else if (length > 0 && strchr("zZ", text[length - 1])) {
        found.unit = TESS_AXIS_HZ;
        status = tess_parse_frequency(text + is_negative, &found.value);
        if (status == TESS_OK && is_negative) found.value = -found.value;
    } else {
        found.unit = TESS_AXIS_CHANNEL;
        status = tess_parse_integer(text, -most, most, &channels);
        if (status == TESS_OK) found.value = (double)channels;
    }
    tess_error_clear(); /* the caller's message shows all forms */
    if (status == TESS_OK) *value = found;
    return status == TESS_OK;
}

tess_status tess_parse_axis_start(const char *text, tess_axis_value *start)
{
    tess_status status = TESS_OK;
    tess_axis_value found;
    if (!read_axis_value(text, &found) ||
        (found.unit != TESS_AXIS_M_S && found.value < 0))
        TESS_FAIL(TESS_ERR_USAGE,
                  "'%s' is not where an axis begins; write a frequency like 1.4195GHz, "
                  "a velocity like -300km/s, or a channel like 16",
                  text);
    *start = found;
cleanup:
    return status;
}

tess_status tess_parse_axis_width(const char *text, tess_axis_value *width)
{
    tess_status status = TESS_OK;
    tess_axis_value found;
    if (!read_axis_value(text, &found) || !(fabs(found.value) > 0))
        TESS_FAIL(TESS_ERR_USAGE,
                  "'%s' is not a width; write it like 20kHz, 5km/s, or a number of "
                  "channels like 4",
                  text);
    *width = found;
cleanup:
    return status;
}

/* Checks that the backend has the strategy. For --backend auto, it chooses a backend
 * that has it. */
static tess_status check_strategy(tess_gridding *gridding)
{
    tess_status status = TESS_OK;
    const tess_gcf_strategy *strategy = gridding->projection.strategy;
    if (!strategy) return TESS_OK;
    const bool on_cpu = tess_gcf_strategy_there(TESS_GCF_CPU, strategy, false);
    const bool on_device = tess_gcf_strategy_there(TESS_GCF_DEVICE, strategy, false);
    const bool wants_cpu = strcmp(gridding->backend, "cpu") == 0;
    const bool wants_any = strcmp(gridding->backend, "auto") == 0;
    if (wants_any && !on_device) gridding->backend = "cpu";
    if (wants_any && !on_cpu) gridding->backend = TESS_BACKEND_DEVICE;
    if (!wants_any &&
        (wants_cpu ? !on_cpu : !on_device && tess_backend_built(TESS_BACKEND_DEVICE)))
        TESS_FAIL(TESS_ERR_USAGE, "--strategy %s is there with --backend %s only",
                  tess_gcf_strategy_name(strategy),
                  wants_cpu ? TESS_BACKEND_DEVICE : "cpu");
cleanup:
    return status;
}

tess_status tess_check_gridding(tess_gridding *gridding)
{
    tess_status status = TESS_OK;
    if (gridding->w_mode != TESS_W_PROJECTION) {
        if (gridding->only_projection)
            TESS_FAIL(TESS_ERR_USAGE, "--%s is there with --w projection only",
                      gridding->only_projection);
        return TESS_OK;
    }
    if (gridding->gcf && gridding->projection.oversampling > 0)
        TESS_FAIL(TESS_ERR_USAGE, "--gcf has an oversampling of its own; leave out "
                                  "--oversampling");
    TESS_TRY(check_strategy(gridding));
cleanup:
    return status;
}

tess_status tess_take_beam_size(const tess_option_rule *rule, const char *text,
                                void *value)
{
    tess_status status = TESS_OK;
    tess_fits_beam *beam = value;
    double size_rad;
    (void)rule;
    TESS_TRY(tess_parse_scale(text, &size_rad));
    *beam = (tess_fits_beam){size_rad, size_rad, 0};
cleanup:
    return status;
}

tess_status tess_take_beam_shape(const tess_option_rule *rule, const char *text,
                                 void *value)
{
    (void)rule;
    return tess_parse_beam(text, value);
}
