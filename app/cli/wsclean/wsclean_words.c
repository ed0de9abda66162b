/* Puts together the command of tessera that does what a command line of WSClean asks
 * for. Rows of the table say most of it; what follows from several options at once, and
 * from WSClean's defaults, is here. */
#define _GNU_SOURCE
#include "wsclean_words.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tess_mem.h"
#include "tess_parse.h"

/* ---- words ---- */

static tess_status add(wsclean_words *words, const char *text)
{
    tess_status status = TESS_OK;
    void *array = words->word;
    char *copy = tess_strdup(text);
    if (!copy ||
        tess_grow(&array, &words->capacity, words->num + 2, sizeof *words->word)) {
        tess_free(copy);
        TESS_FAIL(TESS_ERR_ALLOC, "words of a command");
    }
    words->word = array;
    words->word[words->num++] = copy;
    words->word[words->num] = NULL;
cleanup:
    return status;
}

tess_status wsclean_words_add(wsclean_words *words, ...)
{
    tess_status status = TESS_OK;
    const char *text;
    va_list list;
    va_start(list, words);
    while (status == TESS_OK && (text = va_arg(list, const char *)) != NULL)
        status = add(words, text);
    va_end(list);
    return status;
}

void wsclean_words_free(wsclean_words *words)
{
    for (int64_t k = 0; k < words->num; ++k)
        tess_free(words->word[k]);
    tess_free(words->word);
    *words = (wsclean_words){0};
}

/* ---- values ---- */

static bool is_number(const char *text)
{
    double value;
    const bool is = tess_parse_number(text, -DBL_MAX, DBL_MAX, &value) == TESS_OK;
    tess_error_clear();
    return is;
}

/* WSClean's units, in capitals or not, and tessera's. */
static const struct {
    const char *other, *name;
} units[] = {
    {"deg", "deg"},         {"degrees", "deg"},    {"amin", "amin"},
    {"arcmin", "amin"},     {"asec", "asec"},      {"arcsec", "asec"},
    {"mas", "mas"},         {"masec", "mas"},      {"marcsec", "mas"},
    {"rad", "rad"},         {"radians", "rad"},    {"jy", "Jy"},
    {"jansky", "Jy"},       {"mjy", "mJy"},        {"millijansky", "mJy"},
    {"microjansky", "uJy"}, {"nanojansky", "nJy"},
};
enum { NUM_UNITS = sizeof units / sizeof *units };

/* Tessera's name of the unit behind a number, or the same text. */
static const char *unit_of(const char *text)
{
    for (int k = 0; k < NUM_UNITS; ++k)
        if (strcasecmp(text, units[k].other) == 0) return units[k].name;
    return text;
}

void wsclean_words_argument(const wsclean_given *given, int k, char text[WSCLEAN_TEXT])
{
    char name[32], *end;
    const char *unit = wsclean_argument(given->option, k, name, sizeof name);
    const char *value = given->argument[k];
    const bool has_unit = unit || strcmp(name, "FLUX") == 0;
    strtod(value, &end);
    if (has_unit && end != value && *end)
        snprintf(text, WSCLEAN_TEXT, "%.*s%s", (int)(end - value), value, unit_of(end));
    else
        snprintf(text, WSCLEAN_TEXT, "%s%s", value,
                 unit && is_number(value) ? unit : "");
}

void wsclean_words_position(const wsclean_given *given, char text[WSCLEAN_TEXT])
{
    const char *ra = given->argument[0], *dec = given->argument[1];
    const char *first = strchr(dec, '.');
    const char *second = first ? strchr(first + 1, '.') : NULL;
    const int length = snprintf(text, WSCLEAN_TEXT, "%s,%s", ra, dec);
    if (!second || length >= WSCLEAN_TEXT) return;
    char *copy = text + strlen(ra) + 1;
    copy[first - dec] = copy[second - dec] = ':';
}

/* One word of `becomes`, up to the next blank, with the arguments put in. Returns what
 * follows it. */
static const char *write_word(const wsclean_given *given, const char *from,
                              char text[WSCLEAN_TEXT])
{
    size_t used = 0;
    char value[WSCLEAN_TEXT];
    for (; *from && *from != ' '; ++from) {
        snprintf(value, sizeof value, "%c", *from);
        if (*from == '%' && isdigit((unsigned char)from[1]))
            wsclean_words_argument(given, *++from - '1', value);
        const int n = snprintf(text + used, WSCLEAN_TEXT - used, "%s", value);
        used += n > 0 && (size_t)n < WSCLEAN_TEXT - used ? (size_t)n : 0;
    }
    return *from ? from + 1 : from;
}

static tess_status add_becomes(const wsclean_given *given, wsclean_words *words)
{
    tess_status status = TESS_OK;
    char text[WSCLEAN_TEXT] = "";
    for (const char *rest = given->option->becomes; *rest;) {
        text[0] = '\0';
        rest = write_word(given, rest, text);
        TESS_TRY(add(words, text));
    }
cleanup:
    return status;
}

/* Adds an option with one argument, where it is on the line. */
static tess_status add_if_given(const wsclean_line *line, const char *name,
                                const char *option, wsclean_words *words)
{
    tess_status status = TESS_OK;
    const wsclean_given *given = wsclean_line_last(line, name);
    char value[WSCLEAN_TEXT];
    if (!given) return TESS_OK;
    wsclean_words_argument(given, 0, value);
    TESS_TRY(wsclean_words_add(words, option, value, NULL));
cleanup:
    return status;
}

/* ---- what follows from several options ---- */

static double number_of(const wsclean_line *line, const char *name, double otherwise)
{
    const char *text = wsclean_line_value(line, name, NULL);
    double value = otherwise;
    if (text && tess_parse_number(text, -DBL_MAX, DBL_MAX, &value) != TESS_OK)
        tess_error_clear(); /* the option that it becomes refuses it */
    return value;
}

static bool only_psf(const wsclean_line *line)
{
    return wsclean_line_last(line, "make-psf-only") != NULL;
}

static bool cleans(const wsclean_line *line)
{
    return number_of(line, "niter", 0) > 0 && !only_psf(line);
}

/* Whether components are found at peaks of squares in all of WSClean's loops. */
static bool squares(const wsclean_line *line)
{
    return wsclean_line_last(line, "join-channels") &&
           wsclean_line_last(line, "squared-channel-joining");
}

/* Whether the first argument is 0, with a unit or not, where that is none. */
static bool is_none(const wsclean_given *given)
{
    if (!(given->option->where & WSCLEAN_NONZERO)) return false;
    const char *text = given->argument[0];
    char *end;
    const double value = strtod(text, &end);
    return end != text && !(value > 0) && !(value < 0);
}

static bool is_given(const wsclean_line *line, const char *name)
{
    const wsclean_given *given = wsclean_line_last(line, name);
    return given && !is_none(given);
}

static bool is_natural(const wsclean_line *line)
{
    const wsclean_given *weight = wsclean_line_last(line, "weight");
    return weight && strcasecmp(weight->argument[0], "natural") == 0;
}

/* Whether weights are those of cells. */
static bool has_cells(const wsclean_line *line)
{
    static const char *const of_cells[] = {
        "taper-gaussian", "taper-tukey",      "taper-inner-tukey",
        "taper-edge",     "taper-edge-tukey", "minuv-l",
        "maxuv-l"};
    bool any = !is_natural(line);
    for (size_t k = 0; k < sizeof of_cells / sizeof *of_cells; ++k)
        any = any || is_given(line, of_cells[k]);
    return any;
}

static bool has_beam(const wsclean_line *line)
{
    return is_given(line, "beam-size") || is_given(line, "beam-shape");
}

/* The last of the options that say whether a beam is fitted. */
static bool fits_no_beam(const wsclean_line *line)
{
    const wsclean_given *fits = wsclean_line_last(line, "fit-beam");
    const wsclean_given *without = wsclean_line_last(line, "no-fit-beam");
    return without && !(fits && fits > without);
}

static bool has_fit(const wsclean_line *line)
{
    return !has_beam(line) && !fits_no_beam(line) &&
           !wsclean_line_last(line, "theoretic-beam");
}

/* Whether an option has an effect beside the others. */
static bool has_effect(const wsclean_line *line, const wsclean_option *option)
{
    if (option->where & WSCLEAN_MASKED && !is_given(line, "auto-mask")) return false;
    if (option->where & WSCLEAN_FOUND && has_beam(line)) return false;
    if (option->where & WSCLEAN_FITTED && !has_fit(line)) return false;
    if (option->where & WSCLEAN_BY_BEAM && wsclean_line_last(line, "multiscale-scales"))
        return false;
    if (option->where & WSCLEAN_CELLS && !has_cells(line)) return false;
    if (option->where & WSCLEAN_CLEAN && !cleans(line)) return false;
    if (option->where & WSCLEAN_JOINED && !wsclean_line_last(line, "join-channels"))
        return false;
    if (option->where & WSCLEAN_SIGNED && squares(line)) return false;
    return !(option->where & WSCLEAN_MULTISCALE) ||
           wsclean_line_last(line, "multiscale");
}

static tess_status add_note(const wsclean_given *given, const char *why,
                            wsclean_words *notes)
{
    tess_status status = TESS_OK;
    char text[WSCLEAN_TEXT];
    snprintf(text, sizeof text, "-%s is left out: %s", given->option->name, why);
    TESS_TRY(add(notes, text));
cleanup:
    return status;
}

tess_status wsclean_words_plain(const wsclean_line *line, int where,
                                wsclean_words *words, wsclean_words *notes)
{
    tess_status status = TESS_OK;
    for (int64_t k = 0; k < line->num_given; ++k) {
        const wsclean_given *given = &line->given[k];
        const wsclean_option *option = given->option;
        if (option->way == WSCLEAN_IGNORED || option->way == WSCLEAN_ONLY)
            TESS_TRY(add_note(given, option->remark, notes));
        else if ((option->where & where) != where || !has_effect(line, option))
            TESS_TRY(add_note(given, "it has no effect here", notes));
        else if (is_none(given))
            TESS_TRY(add_note(given, "0 is none", notes));
        else if (option->way == WSCLEAN_BECOMES)
            TESS_TRY(add_becomes(given, words));
    }
cleanup:
    return status;
}

/* ---- polarisations ---- */

/* In the order in which WSClean makes them: the first one's weights are those of all.
 */
static const char *const polarisations[] = {"I",  "Q",  "U",  "V",  "RR", "RL",
                                            "LR", "LL", "XX", "XY", "YX", "YY"};
enum { NUM_POLARISATIONS = sizeof polarisations / sizeof *polarisations };

/* Which of them begins `text`, or -1. */
static int polarisation_at(const char *text)
{
    for (int k = 0; k < NUM_POLARISATIONS; ++k)
        if (strncasecmp(text, polarisations[k], strlen(polarisations[k])) == 0)
            return k;
    return -1;
}

/* "iquv", "xx,yy" or "xxyy" as "I,Q,U,V" in WSClean's order; returns how many. */
static int write_polarisations(const char *text, char list[WSCLEAN_TEXT])
{
    bool named[NUM_POLARISATIONS] = {false};
    int count = 0;
    list[0] = '\0';
    for (const char *rest = text; *rest;) {
        const int k = *rest == ',' ? -1 : polarisation_at(rest);
        if (*rest != ',' && k < 0) return 0;
        if (k >= 0) named[k] = true;
        rest += k >= 0 ? strlen(polarisations[k]) : 1;
    }
    for (int k = 0; k < NUM_POLARISATIONS; ++k) {
        if (!named[k]) continue;
        const size_t used = strlen(list);
        snprintf(list + used, WSCLEAN_TEXT - used, "%s%s", count ? "," : "",
                 polarisations[k]);
        ++count;
    }
    return count;
}

static tess_status read_polarisations(const wsclean_line *line, const char *name,
                                      char list[WSCLEAN_TEXT], int *count)
{
    tess_status status = TESS_OK;
    const char *text = wsclean_line_value(line, name, "I");
    *count = write_polarisations(text, list);
    if (*count == 0)
        TESS_FAIL(TESS_ERR_USAGE,
                  "-%s: '%s' names no polarisations; write I, IQUV, XX,YY or RR,LL",
                  name, text);
cleanup:
    return status;
}

static tess_status add_polarisations(const wsclean_line *line, wsclean_words *words)
{
    tess_status status = TESS_OK;
    char list[WSCLEAN_TEXT];
    int count = 0;
    TESS_TRY(read_polarisations(line, "pol", list, &count));
    TESS_TRY(wsclean_words_add(words, "--stokes", list, NULL));
    if (count > 1) TESS_TRY(wsclean_words_add(words, "--density", "first", NULL));
    if (!cleans(line) || !wsclean_line_last(line, "link-polarizations")) return TESS_OK;
    TESS_TRY(read_polarisations(line, "link-polarizations", list, &count));
    TESS_TRY(wsclean_words_add(words, "--link-polarizations", list, NULL));
cleanup:
    return status;
}

/* ---- weights and visibilities ---- */

/* WSClean limits no natural weights, nothing below 1, and nothing by a window of less
 * than two cells, which has no mean. */
static tess_status add_rank_filter(const wsclean_line *line, wsclean_words *words)
{
    tess_status status = TESS_OK;
    const bool none = is_natural(line) ||
                      number_of(line, "weighting-rank-filter-size", 16) < 2 ||
                      number_of(line, "weighting-rank-filter", 3) < 1;
    const char *limit = wsclean_line_value(line, "weighting-rank-filter", "3");
    TESS_TRY(
        wsclean_words_add(words, "--weighting-rank-filter", none ? "0" : limit, NULL));
    if (!none)
        TESS_TRY(add_if_given(line, "weighting-rank-filter-size",
                              "--weighting-rank-filter-size", words));
cleanup:
    return status;
}

static tess_status add_weights(const wsclean_line *line, wsclean_words *words)
{
    tess_status status = TESS_OK;
    const wsclean_given *weight = wsclean_line_last(line, "weight");
    const char *kind = weight ? weight->argument[0] : "uniform";
    char text[WSCLEAN_TEXT];
    const bool briggs =
        strcasecmp(kind, "briggs") == 0 || strcasecmp(kind, "robust") == 0;
    if (briggs) snprintf(text, sizeof text, "briggs:%s", weight->argument[1]);
    TESS_TRY(wsclean_words_add(words, "--weight", briggs ? text : kind, NULL));
    TESS_TRY(add_rank_filter(line, words));
cleanup:
    return status;
}

/* Joined channels are weighted together also where nothing is cleaned. */
static tess_status add_joins(const wsclean_line *line, wsclean_words *words)
{
    tess_status status = TESS_OK;
    const bool joins = wsclean_line_last(line, "join-channels") != NULL;
    if (joins && cleans(line)) TESS_TRY(add(words, "--join-channels"));
    if (wsclean_line_last(line, "no-mf-weighting"))
        TESS_TRY(add(words, "--no-mf-weighting"));
    else if (wsclean_line_last(line, "mf-weighting") || (joins && !cleans(line)))
        TESS_TRY(add(words, "--mf-weighting"));
cleanup:
    return status;
}

static tess_status add_lengths(const wsclean_line *line, wsclean_words *words)
{
    tess_status status = TESS_OK;
    char text[WSCLEAN_TEXT];
    const wsclean_given *least = wsclean_line_last(line, "minuv-l");
    const wsclean_given *most = wsclean_line_last(line, "maxuv-l");
    if (least && is_none(least)) least = NULL;
    if (most && is_none(most)) most = NULL;
    if (!least && !most) return TESS_OK;
    snprintf(text, sizeof text, "%s:%s", least ? least->argument[0] : "",
             most ? most->argument[0] : "");
    TESS_TRY(wsclean_words_add(words, "--uvrange", text, "--cut-cells", NULL));
cleanup:
    return status;
}

tess_status wsclean_words_field(const wsclean_line *line, wsclean_words *words)
{
    tess_status status = TESS_OK;
    const bool given = wsclean_line_last(line, "field") != NULL;
    const char *field = wsclean_line_value(line, "field", "0");
    if (!given && line->no_columns) return TESS_OK;
    TESS_TRY(wsclean_words_add(words, "--field", field, NULL));
cleanup:
    return status;
}

/* WSClean corrects for the primary beam down to a much lower level. */
static tess_status add_primary_beam(const wsclean_line *line, wsclean_words *words)
{
    if (!wsclean_line_last(line, "apply-primary-beam")) return TESS_OK;
    return wsclean_words_add(words, "--primary-beam", "auto", "--pbcor", "--pb-limit",
                             wsclean_line_value(line, "primary-beam-limit", "0.005"),
                             NULL);
}

/* Whether facets have gains of their own. */
static bool has_gains(const wsclean_line *line)
{
    return wsclean_line_last(line, "apply-facet-solutions") ||
           wsclean_line_last(line, "apply-facet-beam") ||
           wsclean_line_last(line, "aterm-config");
}

/* How many names commas separate. */
static int count_names(const char *list)
{
    int count = 1;
    for (const char *at = strchr(list, ','); at; at = strchr(at + 1, ','))
        ++count;
    return count;
}

/* Name `k` of a list. */
static const char *name_at(const char *list, int k, char text[WSCLEAN_TEXT])
{
    for (; k > 0; --k)
        list = strchr(list, ',') + 1;
    snprintf(text, WSCLEAN_TEXT, "%.*s", (int)strcspn(list, ","), list);
    return text;
}

/* Adds solutions: of several files, each observation has one, as with WSClean. One
 * observation takes all, as of a calibration and of beams. `obs` ≥ 0: it alone is
 * predicted. */
static tess_status add_solutions(const wsclean_line *line, int obs,
                                 wsclean_words *words)
{
    tess_status status = TESS_OK;
    const wsclean_given *given = wsclean_line_last(line, "apply-facet-solutions");
    char one[WSCLEAN_TEXT];
    if (!given) return TESS_OK;
    const char *files = given->argument[0];
    const int num = count_names(files);
    const bool is_each = num > 1 && line->num_obs > 1;
    if (is_each && num != line->num_obs)
        TESS_FAIL(
            TESS_ERR_USAGE,
            "-apply-facet-solutions: %d files for %d observations; give one file, "
            "or one for each",
            num, line->num_obs);
    if (is_each && obs >= 0) files = name_at(files, obs, one);
    TESS_TRY(wsclean_words_add(words, "--facet-solutions", files, "--soltabs",
                               given->argument[1], NULL));
    if (is_each && obs < 0) TESS_TRY(add(words, "--solutions-per-observation"));
cleanup:
    return status;
}

/* WSClean applies mean gains to Stokes I unless it is told to keep both hands. `obs` as
 * in add_solutions(). */
static tess_status add_facets(const wsclean_line *line, int obs, wsclean_words *words)
{
    tess_status status = TESS_OK;
    TESS_TRY(add_solutions(line, obs, words));
    const bool is_i = strcasecmp(wsclean_line_value(line, "pol", "I"), "I") == 0;
    const bool keeps = wsclean_line_last(line, "diagonal-visibilities") ||
                       wsclean_line_last(line, "diagonal-solutions");
    if (wsclean_line_last(line, "apply-facet-solutions") && !keeps &&
        (is_i || wsclean_line_last(line, "scalar-visibilities")))
        TESS_TRY(add(words, "--scalar-visibilities"));
    if (wsclean_line_last(line, "apply-facet-solutions") &&
        wsclean_line_last(line, "no-solution-directions-check"))
        TESS_TRY(add(words, "--any-solution-direction"));
    if (wsclean_line_last(line, "apply-facet-beam") &&
        wsclean_line_last(line, "facet-beam-update")) {
        char update[WSCLEAN_TEXT];
        snprintf(update, sizeof update, "%ss",
                 wsclean_line_value(line, "facet-beam-update", "120"));
        TESS_TRY(wsclean_words_add(words, "--facet-beam-update", update, NULL));
    }
cleanup:
    return status;
}

/* Whether a grid of PSFs is asked for. */
static bool has_psfs(const wsclean_line *line)
{
    const wsclean_given *grid = wsclean_line_last(line, "dd-psf-grid");
    return grid && (atof(grid->argument[0]) > 1 || atof(grid->argument[1]) > 1);
}

/* Adds the number of output channels, and how channels are divided into them. */
static tess_status add_channels(const wsclean_line *line, wsclean_words *words)
{
    tess_status status = TESS_OK;
    TESS_TRY(add_if_given(line, "channels-out", "--channels-out", words));
    if (!(number_of(line, "channels-out", 1) > 1)) return TESS_OK;
    if (wsclean_line_last(line, "gap-channel-division"))
        TESS_TRY(add(words, "--gap-channel-division"));
    TESS_TRY(add_if_given(line, "channel-division-frequencies",
                          "--channel-division-frequencies", words));
cleanup:
    return status;
}

static tess_status add_shift(const wsclean_line *line, wsclean_words *words)
{
    const wsclean_given *given = wsclean_line_last(line, "shift");
    char place[WSCLEAN_TEXT];
    if (!given) return TESS_OK;
    wsclean_words_position(given, place);
    return wsclean_words_add(words, "--shift", place, NULL);
}

/* ---- cleaning ---- */

static const char *model_column(const wsclean_line *line)
{
    return wsclean_line_value(line, "model-column", "MODEL_DATA");
}

/* Whether the model goes to MODEL_DATA: it cannot where that is imaged. */
static bool updates_model(const wsclean_line *line)
{
    const wsclean_given *on = wsclean_line_last(line, "update-model-required");
    const wsclean_given *off = wsclean_line_last(line, "no-update-model-required");
    return !(off && (!on || off > on)) && !line->no_columns &&
           strcmp(wsclean_line_value(line, "data-column", ""), model_column(line)) != 0;
}

static tess_status add_cleaning(const wsclean_line *line, wsclean_words *words,
                                wsclean_words *notes)
{
    tess_status status = TESS_OK;
    if (!only_psf(line)) TESS_TRY(add_if_given(line, "niter", "--niter", words));
    if (!cleans(line)) return TESS_OK;
    TESS_TRY(wsclean_words_add(words, "--mgain", wsclean_line_value(line, "mgain", "1"),
                               NULL));
    if (updates_model(line)) TESS_TRY(add(words, "--update-model"));
    if (updates_model(line) && wsclean_line_last(line, "model-column"))
        TESS_TRY(wsclean_words_add(words, "--model-column", model_column(line), NULL));
    TESS_TRY(add(notes, "the last residual is that of the data less the whole model, "
                        "with -mgain 1, too"));
cleanup:
    return status;
}

/* Adds the terms of spectra: no more than there are channels to fit, through which
 * WSClean's polynomials of more terms go as well. */
static tess_status add_terms(const wsclean_line *line, const char *name,
                             const char *option, wsclean_words *words,
                             wsclean_words *notes)
{
    tess_status status = TESS_OK;
    const wsclean_given *given = wsclean_line_last(line, name);
    char text[WSCLEAN_TEXT];
    if (!given || !has_effect(line, given->option) || is_none(given)) return TESS_OK;
    const double merged = number_of(line, "deconvolution-channels", 0);
    const double channels = number_of(line, "channels-out", 1);
    const double most = merged > 0 ? fmin(merged, channels) : channels;
    const bool reduces = most >= 1 && number_of(line, name, 0) > most;
    if (!reduces) return wsclean_words_add(words, option, given->argument[0], NULL);
    snprintf(text, sizeof text, "%.0f", most);
    TESS_TRY(wsclean_words_add(words, option, text, NULL));
    snprintf(text, sizeof text, "-%s has no more terms than channels to fit: %.0f",
             name, most);
    TESS_TRY(add(notes, text));
cleanup:
    return status;
}

static bool has_local_rms(const wsclean_line *line)
{
    return wsclean_line_last(line, "local-rms") ||
           wsclean_line_last(line, "local-rms-window") ||
           wsclean_line_last(line, "local-rms-method");
}

/* What -parallel-deconvolution changes beside -local-rms. An image that is no larger
 * than its parts is cleaned as one of them, and WSClean 3.1 then searches for peaks
 * without the local noise, whose least value still sets thresholds. In an image of
 * several parts the local noise, which is that of sidelobes at first, ends the
 * automatic mask early. */
static tess_status add_parts(const wsclean_line *line, wsclean_words *words,
                             wsclean_words *notes)
{
    tess_status status = TESS_OK;
    const double part = number_of(line, "parallel-deconvolution", 0);
    const wsclean_given *size = wsclean_line_last(line, "size");
    if (!cleans(line) || !(part > 0) || !size || !has_local_rms(line)) return TESS_OK;
    const bool is_whole = part >= strtod(size->argument[0], NULL) &&
                          part >= strtod(size->argument[1], NULL);
    if (is_whole && !wsclean_line_last(line, "local-rms-strength")) {
        TESS_TRY(wsclean_words_add(words, "--local-rms-strength", "0", NULL));
        TESS_TRY(add(notes, "-parallel-deconvolution of one part: local noise sets "
                            "thresholds, and peaks are searched without it"));
    } else if (is_given(line, "auto-mask") &&
               !wsclean_line_last(line, "force-mask-rounds")) {
        TESS_TRY(wsclean_words_add(words, "--force-mask-rounds", "6", NULL));
        TESS_TRY(add(notes, "-parallel-deconvolution with local noise: the automatic "
                            "mask grows in six major iterations"));
    }
cleanup:
    return status;
}

static tess_status add_subtraction(const wsclean_line *line, wsclean_words *words)
{
    if (!wsclean_line_last(line, "subtract-model")) return TESS_OK;
    return wsclean_words_add(words, "--subtract-column", model_column(line), NULL);
}

/* What is made beside the images: WSClean makes the PSF where it needs it. Where
 * nothing is cleaned, -no-dirty leaves the image that it writes by the name of the
 * restored one. */
static tess_status add_products(const wsclean_line *line, wsclean_words *words)
{
    tess_status status = TESS_OK;
    const bool wants_psf = wsclean_line_last(line, "make-psf") != NULL;
    const bool no_dirty = wsclean_line_last(line, "no-dirty") != NULL;
    if (only_psf(line) || (no_dirty && cleans(line)))
        TESS_TRY(add(words, "--no-dirty"));
    else if (no_dirty)
        TESS_TRY(add(words, "--dirty-as-image"));
    if (!cleans(line) && !only_psf(line) && !wants_psf)
        TESS_TRY(add(words, "--no-psf"));
cleanup:
    return status;
}

/* A beam that is neither given nor fitted is the one that the longest baseline lets
 * expect. */
static tess_status add_beam(const wsclean_line *line, wsclean_words *words)
{
    if (!fits_no_beam(line) || has_beam(line)) return TESS_OK;
    return add(words, "--theoretic-beam");
}

/* ---- commands ---- */

static tess_status check_obs(const wsclean_line *line)
{
    tess_status status = TESS_OK;
    const wsclean_given *last =
        line->num_given > 0 ? &line->given[line->num_given - 1] : NULL;
    const char *taken = last && last->option->arguments ? line->obs[-1] : NULL;
    /* an option whose value was forgotten takes the name of the observation */
    if (line->num_obs == 0 && taken &&
        (isalpha((unsigned char)*taken) || strchr(taken, '/')))
        TESS_FAIL(TESS_ERR_USAGE,
                  "no observation given; put a MeasurementSet behind the options (-%s "
                  "has taken '%s' as its value)",
                  last->option->name, taken);
    if (line->num_obs == 0)
        TESS_FAIL(TESS_ERR_USAGE,
                  "no observation given; put a MeasurementSet behind the options");
cleanup:
    return status;
}

tess_status wsclean_words_image(const wsclean_line *line, wsclean_words *words,
                                wsclean_words *notes)
{
    tess_status status = TESS_OK;
    char scale[WSCLEAN_TEXT] = "0.01deg";
    TESS_TRY(check_obs(line));
    if (wsclean_line_last(line, "scale"))
        wsclean_words_argument(wsclean_line_last(line, "scale"), 0, scale);
    TESS_TRY(wsclean_words_add(
        words, "image", "-o", wsclean_line_value(line, "name", "wsclean"),
        "--overwrite", "--wsclean-files", "--scale", scale, NULL));
    TESS_TRY(wsclean_words_plain(line, 0, words, notes));
    TESS_TRY(add_channels(line, words));
    TESS_TRY(add_if_given(line, "intervals-out", "--intervals-out", words));
    TESS_TRY(add_polarisations(line, words));
    TESS_TRY(add_weights(line, words));
    TESS_TRY(add_lengths(line, words));
    TESS_TRY(wsclean_words_field(line, words));
    TESS_TRY(add_shift(line, words));
    TESS_TRY(add_subtraction(line, words));
    TESS_TRY(add_cleaning(line, words, notes));
    TESS_TRY(add_parts(line, words, notes));
    TESS_TRY(add_joins(line, words));
    TESS_TRY(add_terms(line, "fit-spectral-pol", "--fit-spectral-pol", words, notes));
    TESS_TRY(add_terms(line, "fit-spectral-log-pol", "--fit-spectral-log-pol", words,
                       notes));
    TESS_TRY(add_products(line, words));
    TESS_TRY(add_beam(line, words));
    TESS_TRY(add_primary_beam(line, words));
    TESS_TRY(add_facets(line, -1, words));
    if (has_psfs(line) && number_of(line, "niter", 0) > 0)
        TESS_TRY(add(words, "--psf-per-facet"));
    TESS_TRY(add(notes,
                 "images are made in full, and never by WSClean's small inversion "
                 "with its interpolation"));
    for (int k = 0; k < line->num_obs; ++k)
        TESS_TRY(add(words, line->obs[k]));
cleanup:
    return status;
}

bool wsclean_words_predicts_several(const wsclean_line *line)
{
    return number_of(line, "channels-out", 1) > 1 ||
           number_of(line, "intervals-out", 1) > 1 ||
           strchr(wsclean_line_value(line, "field", "0"), ',') ||
           strcasecmp(wsclean_line_value(line, "field", "0"), "all") == 0 ||
           strcasecmp(wsclean_line_value(line, "pol", "I"), "I") != 0;
}

/* Models of several outputs, for all observations at once. Without -size and -scale
 * their headers tell these. */
static tess_status add_models(const wsclean_line *line, wsclean_words *words,
                              wsclean_words *notes)
{
    tess_status status = TESS_OK;
    const wsclean_given *size = wsclean_line_last(line, "size");
    char list[WSCLEAN_TEXT], pixels[WSCLEAN_TEXT];
    int count = 0;
    TESS_TRY(read_polarisations(line, "pol", list, &count));
    TESS_TRY(wsclean_words_add(words, "image", "-o",
                               wsclean_line_value(line, "name", "wsclean"),
                               "--overwrite", "--wsclean-files", "--predict-models",
                               "--model-column", model_column(line), NULL));
    if (size) {
        snprintf(pixels, sizeof pixels, "%s,%s", size->argument[0], size->argument[1]);
        TESS_TRY(wsclean_words_add(words, "--size", pixels, NULL));
    }
    TESS_TRY(add_if_given(line, "scale", "--scale", words));
    TESS_TRY(wsclean_words_add(words, "--stokes", list, NULL));
    TESS_TRY(wsclean_words_plain(line, WSCLEAN_PREDICT, words, notes));
    TESS_TRY(add_channels(line, words));
    TESS_TRY(add_if_given(line, "intervals-out", "--intervals-out", words));
    TESS_TRY(wsclean_words_field(line, words));
    TESS_TRY(add_shift(line, words));
    TESS_TRY(add_facets(line, -1, words));
    for (int k = 0; k < line->num_obs; ++k)
        TESS_TRY(add(words, line->obs[k]));
cleanup:
    return status;
}

tess_status wsclean_words_predict(const wsclean_line *line, int k, wsclean_words *words,
                                  wsclean_words *notes)
{
    tess_status status = TESS_OK;
    char model[WSCLEAN_TEXT];
    TESS_TRY(check_obs(line));
    if (wsclean_words_predicts_several(line)) return add_models(line, words, notes);
    /* models of facets with gains are predicted from those in true flux */
    snprintf(model, sizeof model, "%s-model%s.fits",
             wsclean_line_value(line, "name", "wsclean"), has_gains(line) ? "-pb" : "");
    TESS_TRY(wsclean_words_add(words, "predict", "--model", model, "--column",
                               model_column(line), "--overwrite", NULL));
    TESS_TRY(wsclean_words_plain(line, WSCLEAN_PREDICT, words, notes));
    TESS_TRY(wsclean_words_field(line, words));
    TESS_TRY(add_facets(line, k, words));
    TESS_TRY(add(words, line->obs[k]));
cleanup:
    return status;
}
