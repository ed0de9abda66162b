/* Explains a command line that argp refuses. People who come from other imagers write
 * the options of those; the message names the option that has the same meaning here. */
#define _GNU_SOURCE
#include "cli_mistakes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { MAX_LENGTH = 64, MAX_TEXT = 512 };

/* A word of another program, the option with its meaning, and how that is written. */
typedef struct synonym {
    const char *word, *option, *advice;
} synonym;

static const synonym synonyms[] = {
    {"name", "output", "-o NAME"},
    {"pol", "stokes", "--stokes LIST"},
    {"polarization", "stokes", "--stokes LIST"},
    {"polarisation", "stokes", "--stokes LIST"},
    {"robust", "weight", "--weight briggs:R"},
    {"weighting", "weight", "--weight"},
    {"imsize", "size", "--size N"},
    {"npix", "size", "--size N"},
    {"cell", "scale", "--scale ANGLE"},
    {"cellsize", "scale", "--scale ANGLE"},
    {"pixelsize", "scale", "--scale ANGLE"},
    {"epsilon", "accuracy", "--accuracy E"},
    {"wgridder-accuracy", "accuracy", "--accuracy E"},
    {"mem", "memory", "--memory SIZE"},
    {"abs-mem", "memory", "--memory SIZE"},
    {"nthreads", "threads", "--threads N"},
    {"j", "threads", "--threads N"},
    {"temp-dir", "scratch", "--scratch DIR"},
    {"column", "datacolumn", "--datacolumn NAME"},
    {"data-column", "datacolumn", "--datacolumn NAME"},
    {"channel-range", "channels", "--channels A:B"},
    {"interval", "intervals", "--intervals A:B"},
    {"spws", "spw", "--spw LIST"},
    {"minuv-l", "uvrange", "--uvrange MIN:"},
    {"maxuv-l", "uvrange", "--uvrange :MAX"},
    {"phasecenter", "center", "--center RA,DEC"},
    {"shift", "center", "--center RA,DEC"},
    {"subtract-model", "subtract", "--subtract MODEL.fits"},
    {"gpu", "backend", "--backend cuda"},
    {"png", "preview", "--preview"},
    {"force", "overwrite", "--overwrite"},
};

/* ---- options of an argp and its children ---- */

/* Call `see` for each long option. */
static void for_each(const struct argp *argp,
                     void (*see)(const struct argp_option *option, void *context),
                     void *context)
{
    for (const struct argp_option *option = argp->options;
         option && !cli_option_is_end(option); ++option)
        if (option->name) see(option, context);
    for (const struct argp_child *child = argp->children; child && child->argp; ++child)
        for_each(child->argp, see, context);
}

/* A search for options that begin with a word, and for the nearest one. */
typedef struct search {
    const char *word;
    size_t length;
    const struct argp_option *exact, *begins;
    int num_begins;
    char names[MAX_TEXT]; /* of those that begin so, "--size, --stokes" */
    const struct argp_option *nearest;
    int distance;
} search;

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Letters to change, insert, leave out, or swap with the next (Damerau-Levenshtein
 * distance without overlapping swaps). */
static int distance_of(const char *a, size_t n, const char *b)
{
    int row[3][MAX_LENGTH + 1];
    const size_t m = strlen(b);
    if (n > MAX_LENGTH || m > MAX_LENGTH) return MAX_LENGTH;
    for (size_t j = 0; j <= m; ++j)
        row[0][j] = (int)j;
    for (size_t i = 1; i <= n; ++i) {
        int *now = row[i % 3], *before = row[(i + 2) % 3], *earlier = row[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t j = 1; j <= m; ++j) {
            const int change = before[j - 1] + (a[i - 1] != b[j - 1]);
            now[j] = smaller(change, smaller(before[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = smaller(now[j], earlier[j - 2] + 1);
        }
    }
    return row[n % 3][m];
}

static void look_at(const struct argp_option *option, void *context)
{
    search *s = context;
    const int distance = distance_of(s->word, s->length, option->name);
    if (!s->nearest || distance < s->distance) {
        s->nearest = option;
        s->distance = distance;
    }
    if (strncmp(option->name, s->word, s->length) != 0) return;
    const size_t used = strlen(s->names);
    snprintf(s->names + used, sizeof s->names - used, "%s--%s",
             s->num_begins ? ", " : "", option->name);
    s->begins = option;
    ++s->num_begins;
    if (option->name[s->length] == '\0') s->exact = option;
}

static search search_for(const struct argp *argp, const char *word, size_t length)
{
    search s = {.word = word, .length = length};
    for_each(argp, look_at, &s);
    return s;
}

/* ---- what was meant ---- */

/* A word of another program whose meaning one of these options has. */
static const char *advice_for(const struct argp *argp, const char *word, size_t length)
{
    for (size_t k = 0; k < sizeof synonyms / sizeof *synonyms; ++k) {
        const synonym *s = &synonyms[k];
        if (strlen(s->word) == length && strncmp(s->word, word, length) == 0 &&
            search_for(argp, s->option, strlen(s->option)).exact)
            return s->advice;
    }
    return NULL;
}

/* " (did you mean ...?)", or nothing where no option is near: a third of the letters
 * may be wrong. */
static void suggest(const struct argp *argp, const char *word, size_t length,
                    char text[MAX_TEXT])
{
    const search s = search_for(argp, word, length);
    const char *advice = advice_for(argp, word, length);
    text[0] = '\0';
    if (s.exact)
        snprintf(text, MAX_TEXT, "; did you mean --%s?", s.exact->name);
    else if (advice)
        snprintf(text, MAX_TEXT, "; did you mean %s?", advice);
    else if (s.num_begins == 1)
        snprintf(text, MAX_TEXT, "; did you mean --%s?", s.begins->name);
    else if (s.nearest && s.distance <= smaller(3, (int)(length + 2) / 3))
        snprintf(text, MAX_TEXT, "; did you mean --%s?", s.nearest->name);
}

tess_status cli_explain_mistake(const struct argp *argp, const char *arg)
{
    tess_status status = TESS_OK;
    char meant[MAX_TEXT] = "";
    const size_t dashes = strspn(arg, "-");
    const char *word = arg + (dashes < 2 ? dashes : 2);
    const size_t length = strcspn(word, "=");
    if (dashes == 0) TESS_FAIL(TESS_ERR_USAGE, "unexpected argument '%s'", arg);
    const search s = search_for(argp, word, length);
    suggest(argp, word, length, meant);
    if (dashes == 1)
        TESS_FAIL(TESS_ERR_USAGE, "%s: unknown option%s%s", arg,
                  length == 1 ? ", or its value is missing" : "", meant);
    if (s.exact && !s.exact->arg)
        TESS_FAIL(TESS_ERR_USAGE, "--%s: takes no value", s.exact->name);
    if (s.exact || s.num_begins == 1)
        TESS_FAIL(TESS_ERR_USAGE, "--%s: needs a value (%s)", s.begins->name,
                  s.begins->arg ? s.begins->arg : "none");
    if (s.num_begins > 1)
        TESS_FAIL(TESS_ERR_USAGE, "--%.*s: ambiguous option; it may be %s", (int)length,
                  word, s.names);
    TESS_FAIL(TESS_ERR_USAGE, "--%.*s: unknown option%s", (int)length, word, meant);
cleanup:
    return status;
}

tess_status cli_check_dashes(const struct argp *argp, int argc, char **argv)
{
    tess_status status = TESS_OK;
    for (int k = 1; k < argc && strcmp(argv[k], "--") != 0; ++k) {
        const char *word = argv[k] + 1;
        const size_t length = strcspn(word, "=");
        if (argv[k][0] != '-' || word[0] == '-' || length < 2) continue;
        if (search_for(argp, word, length).exact)
            TESS_TRY(cli_explain_mistake(argp, argv[k]));
    }
cleanup:
    return status;
}
