/* Explains why argp refuses a command line. Users of other imagers may write options of
 * those imagers. The message then names the option of tessera with the same meaning. */
#define _GNU_SOURCE
#include "cli_help.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cli_casa.h"
#include "options.h"
#include "tess_backend.h"
#include "tess_cli.h"

enum { MAX_LENGTH = 64, MAX_TEXT = 512, MAX_VALUE = 48 };

/* An option of another program, and tessera's option with the same meaning. The message
 * shows the texts `before` and `behind` around the value. It shows `value` if the user
 * gave no value. */
typedef struct synonym {
    const char *word, *option, *before, *value, *behind;
} synonym;

static const synonym synonyms[] = {
    {"name", "output", "-o ", "NAME", ""},
    {"imagename", "output", "-o ", "NAME", ""},
    {"image-name", "output", "-o ", "NAME", ""},
    {"pol", "stokes", "--stokes ", "LIST", ""},
    {"polarization", "stokes", "--stokes ", "LIST", ""},
    {"polarisation", "stokes", "--stokes ", "LIST", ""},
    {"briggs", "weight", "--weight briggs:", "R", ""},
    {"image-size", "size", "--size ", "N", ""},
    {"npix", "size", "--size ", "N", ""},
    {"pixels", "size", "--size ", "N", ""},
    {"cellsize", "scale", "--scale ", "ANGLE", ""},
    {"cell-size", "scale", "--scale ", "ANGLE", ""},
    {"pixel", "scale", "--scale ", "ANGLE", ""},
    {"pixelsize", "scale", "--scale ", "ANGLE", ""},
    {"pixel-size", "scale", "--scale ", "ANGLE", ""},
    {"epsilon", "accuracy", "--accuracy ", "E", ""},
    {"wgridder-accuracy", "accuracy", "--accuracy ", "E", ""},
    {"mem", "memory", "--memory ", "SIZE", NULL}, /* WSClean: a percentage */
    {"abs-mem", "memory", "--memory ", "SIZE", NULL},
    {"nthreads", "threads", "--threads ", "N", ""},
    {"j", "threads", "--threads ", "N", ""},
    {"temp-dir", "scratch", "--scratch ", "DIR", ""},
    {"column", "datacolumn", "--datacolumn ", "NAME", ""},
    {"data-column", "datacolumn", "--datacolumn ", "NAME", ""},
    {"channel-range", "channels", "--channels ", "A:B", NULL}, /* WSClean: two values */
    {"nchan", "channels-out", "--channels-out ", "N", ""},
    {"interval", "intervals", "--intervals ", "A:B", NULL},
    {"spws", "spw", "--spw ", "LIST", ""},
    {"minuv-l", "uvrange", "--uvrange ", "MIN", ":"},
    {"uvmin", "uvrange", "--uvrange ", "MIN", ":"},
    {"maxuv-l", "uvrange", "--uvrange :", "MAX", ""},
    {"uvmax", "uvrange", "--uvrange :", "MAX", ""},
    {"phasecenter", "center", "--center ", "RA,DEC", NULL},
    {"phase-center", "center", "--center ", "RA,DEC", NULL},
    {"shift", "center", "--center ", "RA,DEC", NULL},
    {"subtract-model", "subtract", "--subtract ", "MODEL.fits", NULL},
    {"gpu", "backend", "--backend " TESS_BACKEND_DEVICE, NULL, ""},
    {"abs-threshold", "threshold", "--threshold ", "FLUX", ""},
    {"fitsmask", "fits-mask", "--fits-mask ", "FILE", ""},
    {"png", "preview", "--preview", NULL, ""},
    {"force", "overwrite", "--overwrite", NULL, ""},
};

/* Options of WSClean that have no counterpart in tessera, and a remark on each. */
static const struct {
    const char *word, *remark;
} absent[] = {
    {"parallel-deconvolution", "leave it out: an image is cleaned over all ranks"},
    {"predict", "there is the command 'tessera predict'"},
    {"use-wgridder", "leave it out: the result always has the --accuracy asked for"},
    {"no-update-model-required",
     "leave it out: imaging does not write to observations"},
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

/* A search for the options that begin with a word, and for those nearest to it. */
typedef struct search {
    const char *word;
    size_t length;
    const struct argp_option *exact, *begins, *letter; /* letter: short, like -o */
    const struct argp_option *undashed;                /* the word but for dashes */
    int num_begins, num_undashed;
    char names[MAX_TEXT];      /* options that begin with it: "--size, --stokes" */
    char shown[MAX_TEXT];      /* those of `names` that --help shows */
    int distance, num_nearest; /* distance and number of the nearest options */
    char nearest[MAX_TEXT];    /* "--size or --spw" */
} search;

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* The Damerau-Levenshtein distance without overlapping swaps. */
int cli_distance(const char *a, size_t n, const char *b)
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

static void add_name(char list[MAX_TEXT], const char *between, const char *name)
{
    const size_t used = strlen(list);
    snprintf(list + used, MAX_TEXT - used, "%s--%s", used ? between : "", name);
}

/* Whether words are the same but for dashes. */
static bool is_undashed(const char *word, size_t length, const char *name)
{
    size_t k = 0;
    for (;; ++k, ++name) {
        while (k < length && word[k] == '-')
            ++k;
        while (*name == '-')
            ++name;
        if (k == length || !*name) return k == length && !*name;
        if (word[k] != *name) return false;
    }
}

static void look_at(const struct argp_option *option, void *context)
{
    search *s = context;
    const int distance = cli_distance(s->word, s->length, option->name);
    if (s->num_nearest == 0 || distance < s->distance) {
        s->distance = distance;
        s->num_nearest = 0;
        s->nearest[0] = '\0';
    }
    if (distance == s->distance) {
        add_name(s->nearest, " or ", option->name);
        ++s->num_nearest;
    }
    if (s->length == 1 && option->key == s->word[0]) s->letter = option;
    if (is_undashed(s->word, s->length, option->name)) {
        s->undashed = option;
        ++s->num_undashed;
    }
    if (strncmp(option->name, s->word, s->length) != 0) return;
    add_name(s->names, ", ", option->name);
    if (!(option->flags & OPTION_HIDDEN)) add_name(s->shown, ", ", option->name);
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

/* An option as the user wrote it: its name in lower case with '-' for '_', and its
 * value. */
typedef struct written {
    char word[MAX_LENGTH + 1];
    size_t length;
    char value[MAX_VALUE]; /* "": no value, or a value that needs quotes in a shell */
} written;

static written written_as(const char *word, const char *next)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-+:,./";
    written w = {.length = strcspn(word, "=")};
    const char *value = word[w.length] == '=' ? word + w.length + 1 : next;
    if (w.length > MAX_LENGTH) w.length = MAX_LENGTH;
    for (size_t k = 0; k < w.length; ++k)
        w.word[k] = word[k] == '_' ? '-' : (char)tolower((unsigned char)word[k]);
    if (!value || strlen(value) >= sizeof w.value) return w;
    const bool is_option =
        value[0] == '-' && !isdigit((unsigned char)value[1]) && value[1] != '.';
    if (!is_option && strspn(value, plain) == strlen(value))
        snprintf(w.value, sizeof w.value, "%s", value);
    return w;
}

/* Writes which option of `argp` has the meaning of another program's option. False if
 * there is none. */
static bool advise(const struct argp *argp, const written *w, char text[MAX_TEXT])
{
    for (size_t k = 0; k < sizeof synonyms / sizeof *synonyms; ++k) {
        const synonym *s = &synonyms[k];
        if (strcmp(s->word, w->word) != 0 ||
            !search_for(argp, s->option, strlen(s->option)).exact)
            continue;
        const char *value = s->value ? s->value : "";
        if (s->value && s->behind && w->value[0]) value = w->value;
        snprintf(text, MAX_TEXT, "; did you mean %s%s%s?", s->before, value,
                 s->behind ? s->behind : "");
        return true;
    }
    return false;
}

static bool remark_on(const written *w, char text[MAX_TEXT])
{
    for (size_t k = 0; k < sizeof absent / sizeof *absent; ++k) {
        if (strcmp(absent[k].word, w->word) != 0) continue;
        snprintf(text, MAX_TEXT, "; %s", absent[k].remark);
        return true;
    }
    return false;
}

static bool has_option(const void *context, const char *name)
{
    return search_for(context, name, strlen(name)).exact != NULL;
}

/* Writes what the word means to users of other imagers; false if nothing is known. */
static bool explain_word(const struct argp *argp, const written *w, char text[MAX_TEXT])
{
    char advice[MAX_TEXT - 2];
    if (!cli_casa_advise(w->word, w->value, has_option, argp, advice, sizeof advice))
        return advise(argp, w, text) || remark_on(w, text);
    snprintf(text, MAX_TEXT, "; %s", advice);
    return true;
}

/* Writes "; did you mean ...?", or nothing if no option is near. A near option differs
 * in at most a third of the letters. A single letter would be near to every option, so
 * only options that begin with it count. */
static void suggest(const struct argp *argp, const written *w, char text[MAX_TEXT])
{
    const search s = search_for(argp, w->word, w->length);
    text[0] = '\0';
    if (s.exact)
        snprintf(text, MAX_TEXT, "; did you mean --%s?", s.exact->name);
    else if (explain_word(argp, w, text))
        return;
    else if (s.num_undashed == 1)
        snprintf(text, MAX_TEXT, "; did you mean --%s?", s.undashed->name);
    else if (s.num_begins == 1)
        snprintf(text, MAX_TEXT, "; did you mean --%s?", s.begins->name);
    else if (s.num_begins > 1 && s.shown[0])
        snprintf(text, MAX_TEXT, "; did you mean one of %.400s?", s.shown);
    else if (w->length > 1 && s.num_nearest > 0 && s.num_nearest <= 4 &&
             s.distance <= smaller(3, (int)(w->length + 2) / 3))
        snprintf(text, MAX_TEXT, "; did you mean %.400s?", s.nearest);
}

tess_status cli_explain_mistake(const struct argp *argp, const char *arg,
                                const char *next)
{
    tess_status status = TESS_OK;
    char meant[MAX_TEXT] = "";
    const size_t dashes = strspn(arg, "-");
    const char *word = arg + (dashes < 2 ? dashes : 2);
    const size_t length = strcspn(word, "=");
    if (dashes == 0) TESS_FAIL(TESS_ERR_USAGE, "unexpected argument '%s'", arg);
    const search s = search_for(argp, word, length);
    const written w = written_as(word, next);
    suggest(argp, &w, meant);
    if (dashes == 1 && s.letter && s.letter->arg)
        TESS_FAIL(TESS_ERR_USAGE, "%s: needs a value (%s)", arg, s.letter->arg);
    if (dashes == 1) TESS_FAIL(TESS_ERR_USAGE, "%s: unknown option%s", arg, meant);
    if (s.exact && !s.exact->arg)
        TESS_FAIL(TESS_ERR_USAGE, "--%s: takes no value", s.exact->name);
    if (s.exact || s.num_begins == 1)
        TESS_FAIL(TESS_ERR_USAGE, "--%s: needs a value (%s)", s.begins->name,
                  s.begins->arg ? s.begins->arg : "none");
    if (s.num_begins > 1 && !explain_word(argp, &w, meant))
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
        if (argv[k][0] != '-' || argv[k][1] == '-') continue;
        const char *word = argv[k] + 1;
        const size_t length = strcspn(word, "=");
        if (length < 2) continue;
        if (search_for(argp, word, length).exact)
            TESS_TRY(
                cli_explain_mistake(argp, argv[k], k + 1 < argc ? argv[k + 1] : NULL));
    }
cleanup:
    return status;
}

/* ---- values of two words ---- */

static bool is_number(const char *text)
{
    double value;
    const bool is = tess_parse_number(text, -1e9, 1e9, &value) == TESS_OK;
    tess_error_clear();
    return is;
}

static bool is_unit(const char *text)
{
    char with_number[MAX_VALUE];
    double rad;
    snprintf(with_number, sizeof with_number, "1%s", text);
    const bool is = !isdigit((unsigned char)*text) &&
                    tess_parse_angle(with_number, &rad) == TESS_OK;
    tess_error_clear();
    return is;
}

/* An option whose value some users write as two words: which words these are, and how
 * to write the value as one word. */
typedef struct split_value {
    const char *option;
    bool (*first)(const char *text), (*second)(const char *text);
    bool takes_first; /* the value is first + between + second; else between + second */
    const char *between;
} split_value;

static bool is_briggs(const char *text)
{
    return strcasecmp(text, "briggs") == 0 || strcasecmp(text, "robust") == 0;
}

static const split_value split_values[] = {
    {"weight", is_briggs, is_number, false, "briggs:"},
    {"size", is_number, is_number, true, ","},
    {"scale", is_number, is_unit, true, ""},
};

/* The value of option `name` if argv[k] is that option, else NULL. The value stands
 * behind "=" or is the next word. *last is the index of the word that holds it. */
static const char *value_at(const char *name, int argc, char **argv, int k, int *last)
{
    const size_t length = strlen(name);
    const char *word = argv[k];
    if (strncmp(word, "--", 2) != 0 || strncmp(word + 2, name, length) != 0)
        return NULL;
    *last = word[2 + length] == '=' ? k : k + 1;
    if (word[2 + length] == '=') return word + 3 + length;
    return word[2 + length] == '\0' && k + 1 < argc ? argv[k + 1] : NULL;
}

tess_status cli_check_split(const struct argp *argp, int argc, char **argv)
{
    tess_status status = TESS_OK;
    for (int k = 1; k < argc && strcmp(argv[k], "--") != 0; ++k)
        for (size_t i = 0; i < sizeof split_values / sizeof *split_values; ++i) {
            const split_value *s = &split_values[i];
            int last = k;
            const char *value = value_at(s->option, argc, argv, k, &last);
            if (!value || last + 1 >= argc) continue;
            const char *next = argv[last + 1];
            /* The second word may be an observation whose name looks like a value. */
            if (!s->first(value) || !s->second(next) || access(next, F_OK) == 0 ||
                !search_for(argp, s->option, strlen(s->option)).exact)
                continue;
            TESS_FAIL(TESS_ERR_USAGE,
                      "--%s: '%s' and '%s' are two words; did you mean --%s %s%s%s?",
                      s->option, value, next, s->option, s->takes_first ? value : "",
                      s->between, next);
        }
cleanup:
    return status;
}
