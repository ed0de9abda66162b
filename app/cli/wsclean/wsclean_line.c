/* Reads a command line in WSClean's syntax. */
#define _GNU_SOURCE
#include "wsclean_table.h"

#include <ctype.h>
#include <float.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tess_mem.h"
#include "tess_parse.h"

/* Options that only tessera has. */
static bool read_own(const char *word, wsclean_line *line)
{
    const char *name = word + strspn(word, "-");
    line->help |= strcmp(name, "help") == 0 || strcmp(name, "help-all") == 0;
    line->table |= strcmp(name, "table") == 0;
    line->translate_only |= strcmp(name, "translate-only") == 0;
    return strcmp(name, "help") == 0 || strcmp(name, "help-all") == 0 ||
           strcmp(name, "table") == 0 || strcmp(name, "translate-only") == 0;
}

/* Words behind argv[k] that belong to its option. Briggs weights have one more. */
static int words_behind(const wsclean_option *option, int argc, char **argv, int k)
{
    const bool briggs = strcmp(option->name, "weight") == 0 && k + 1 < argc &&
                        (strcasecmp(argv[k + 1], "briggs") == 0 ||
                         strcasecmp(argv[k + 1], "robust") == 0);
    return wsclean_num_arguments(option) + briggs;
}

static tess_status add(wsclean_line *line, const wsclean_option *option,
                       char **argument)
{
    tess_status status = TESS_OK;
    void *array = line->given;
    if (tess_grow(&array, &line->capacity_given, line->num_given + 1,
                  sizeof *line->given))
        TESS_FAIL(TESS_ERR_ALLOC, "list of options");
    line->given = array;
    line->given[line->num_given++] = (wsclean_given){option, argument};
cleanup:
    return status;
}

/* Notes an option that cannot be used, with the reason. */
static tess_status refuse(wsclean_line *line, const char *word, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static tess_status refuse(wsclean_line *line, const char *word, const char *format, ...)
{
    tess_status status = TESS_OK;
    void *array = line->refused;
    va_list list;
    if (tess_grow(&array, &line->capacity_refused, line->num_refused + 1,
                  sizeof *line->refused))
        TESS_FAIL(TESS_ERR_ALLOC, "list of options");
    line->refused = array;
    wsclean_refusal *refusal = &line->refused[line->num_refused++];
    refusal->word = word;
    va_start(list, format);
    vsnprintf(refusal->text, sizeof refusal->text, format, list);
    va_end(list);
cleanup:
    return status;
}

static tess_status refuse_unknown(wsclean_line *line, const char *word)
{
    const wsclean_option *near = wsclean_nearest(word);
    if (near)
        return refuse(line, word, "%s: unknown option of WSClean; did you mean -%s?",
                      word, near->name);
    return refuse(line, word,
                  "%s: unknown option of WSClean; leave it out, or use tessera image",
                  word);
}

/* Words behind an unknown option that are its arguments, because another option follows
 * them. */
static int words_to_option(int argc, char **argv, int k)
{
    for (int next = k + 1; next < argc; ++next)
        if (argv[next][0] == '-' && !isdigit((unsigned char)argv[next][1]) &&
            argv[next][1] != '.')
            return next - k - 1;
    return 0;
}

/* Whether two words are the same number, or else the same word. */
static bool is_same(const char *word, const char *other)
{
    double a, b;
    const bool numbers = tess_parse_number(word, -DBL_MAX, DBL_MAX, &a) == TESS_OK &&
                         tess_parse_number(other, -DBL_MAX, DBL_MAX, &b) == TESS_OK;
    tess_error_clear();
    return numbers ? !(a < b || a > b) : strcasecmp(word, other) == 0;
}

/* Whether the arguments are those with which an option may be left out. */
static bool is_left_out(const wsclean_option *option, char **argument)
{
    const char *rest = option->only;
    char word[64];
    for (int k = 0; k < wsclean_num_arguments(option); ++k) {
        const size_t length = strcspn(rest, " ");
        snprintf(word, sizeof word, "%.*s", (int)length, rest);
        if (!is_same(argument[k], word)) return false;
        rest += length + (rest[length] == ' ');
    }
    return true;
}

/* Notes an option that is not supported, alone or with these arguments. */
static tess_status check_way(wsclean_line *line, const char *word,
                             const wsclean_option *option, char **argument)
{
    const int num = wsclean_num_arguments(option);
    if (option->way == WSCLEAN_REFUSED)
        return refuse(line, word, "%s: not supported: %s", word, option->remark);
    if (option->way != WSCLEAN_ONLY || is_left_out(option, argument)) return TESS_OK;
    return refuse(line, word, "%s %s%s%s: only %s is supported: %s", word, argument[0],
                  num > 1 ? " " : "", num > 1 ? argument[1] : "", option->only,
                  option->remark);
}

/* Refuses an option among the values of another one, which then lacks a value. */
static tess_status check_values(char **word, const wsclean_option *option, int num)
{
    tess_status status = TESS_OK;
    for (int k = 1; k <= num; ++k)
        if (word[k][0] == '-' && wsclean_find(word[k]))
            TESS_FAIL(TESS_ERR_USAGE,
                      "%s: needs %d value%s (%s%s), and %s is an option", word[0], num,
                      num == 1 ? "" : "s", option->arguments,
                      num > wsclean_num_arguments(option) ? " R" : "", word[k]);
cleanup:
    return status;
}

/* Beams and a-terms that WSClean grids with are those of facets here. */
static tess_status check_facets(wsclean_line *line)
{
    static const char *const of_facets[] = {"aterm-config", "apply-facet-beam"};
    tess_status status = TESS_OK;
    const wsclean_given *grid = wsclean_line_last(line, "dd-psf-grid");
    if (wsclean_line_last(line, "facet-regions")) return TESS_OK;
    if (grid && (atof(grid->argument[0]) > 1 || atof(grid->argument[1]) > 1))
        TESS_TRY(refuse(line, "-dd-psf-grid",
                        "-dd-psf-grid: not supported without -facet-regions: facets "
                        "have PSFs of their own, which tessera facets makes"));
    for (size_t k = 0; k < sizeof of_facets / sizeof *of_facets; ++k)
        if (wsclean_line_last(line, of_facets[k]))
            TESS_TRY(refuse(line, k == 0 ? "-aterm-config" : "-apply-facet-beam",
                            "-%s: not supported without -facet-regions: gains are "
                            "those of facets here, which tessera facets makes",
                            of_facets[k]));
cleanup:
    return status;
}

tess_status wsclean_line_read(int argc, char **argv, wsclean_line *line)
{
    tess_status status = TESS_OK;
    int k = 1, behind;
    for (; k < argc && argv[k][0] == '-'; k += 1 + behind) {
        const wsclean_option *option = wsclean_find(argv[k]);
        behind = 0;
        if (read_own(argv[k], line)) continue;
        if (!option) {
            TESS_TRY(refuse_unknown(line, argv[k]));
            behind = words_to_option(argc, argv, k);
            continue;
        }
        behind = words_behind(option, argc, argv, k);
        if (k + behind >= argc)
            TESS_FAIL(TESS_ERR_USAGE, "%s: needs %d value%s (%s%s)", argv[k], behind,
                      behind == 1 ? "" : "s", option->arguments,
                      behind > wsclean_num_arguments(option) ? " R" : "");
        TESS_TRY(check_values(argv + k, option, behind));
        TESS_TRY(check_way(line, argv[k], option, argv + k + 1));
        TESS_TRY(add(line, option, argv + k + 1));
    }
    TESS_TRY(check_facets(line));
    line->obs = argv + k;
    line->num_obs = argc - k;
    for (; k < argc; ++k)
        if (argv[k][0] == '-')
            TESS_FAIL(TESS_ERR_USAGE,
                      "%s: options come before the observations; put %s in front",
                      argv[k], argv[k]);
cleanup:
    return status;
}

tess_status wsclean_line_check(const wsclean_line *line)
{
    tess_status status = TESS_OK;
    char names[1024] = "";
    for (int64_t k = 0; k < line->num_refused; ++k) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", k > 0 ? ", " : "",
                 line->refused[k].word);
    }
    if (line->num_refused == 1) TESS_FAIL(TESS_ERR_USAGE, "%s", line->refused[0].text);
    if (line->num_refused > 1)
        TESS_FAIL(TESS_ERR_USAGE, "%s: not supported%s", names,
                  line->translate_only ? "" : "; --translate-only tells why");
cleanup:
    return status;
}

const wsclean_given *wsclean_line_last(const wsclean_line *line, const char *name)
{
    for (int64_t k = line->num_given - 1; k >= 0; --k)
        if (strcmp(line->given[k].option->name, name) == 0) return &line->given[k];
    return NULL;
}

const char *wsclean_line_value(const wsclean_line *line, const char *name,
                               const char *otherwise)
{
    const wsclean_given *given = wsclean_line_last(line, name);
    return given ? given->argument[0] : otherwise;
}

void wsclean_line_free(wsclean_line *line)
{
    tess_free(line->given);
    tess_free(line->refused);
    tess_free(line->typed);
    *line = (wsclean_line){0};
}
