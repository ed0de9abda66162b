/* Prints the help of a subcommand from a copy of its options. For --help-all, no option
 * of the copy is hidden. For --help, the copy has no hidden options. argp itself would
 * leave out their lines, but would print the headings of groups without lines. */
#define _GNU_SOURCE
#include "cli_help.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tess_cli.h"
#include "tess_mem.h"

static int count_options(const struct argp_option *options)
{
    int count = 0;
    while (options && !cli_option_is_end(&options[count]))
        ++count;
    return count;
}

static int count_children(const struct argp_child *children)
{
    int count = 0;
    while (children && children[count].argp)
        ++count;
    return count;
}

static int count_hidden(const struct argp *argp)
{
    int hidden = 0;
    for (int k = 0, n = count_options(argp->options); k < n; ++k)
        hidden += argp->options[k].name && (argp->options[k].flags & OPTION_HIDDEN);
    for (int k = 0, n = count_children(argp->children); k < n; ++k)
        hidden += count_hidden(argp->children[k].argp);
    return hidden;
}

/* ---- the copy ---- */

/* A copy of an argp, with its own options, and the copies of its children. */
typedef struct shown {
    struct argp argp;
    struct argp_option *options;
    struct argp_child *children;
    struct shown **parts; /* [num_parts] */
    int num_parts;
} shown;

static void free_shown(shown *copy)
{
    if (!copy) return;
    for (int k = 0; k < copy->num_parts; ++k)
        free_shown(copy->parts[k]);
    tess_free(copy->parts);
    tess_free(copy->options);
    tess_free(copy->children);
    tess_free(copy);
}

static tess_status copy_shown(const struct argp *from, bool all, shown **copy_out)
{
    tess_status status = TESS_OK;
    const int num_options = count_options(from->options);
    const int num_children = count_children(from->children);
    shown *copy = tess_alloc_zero(1, sizeof *copy);
    if (!copy) TESS_FAIL(TESS_ERR_ALLOC, "help");
    copy->argp = *from;
    copy->argp.options = copy->options =
        tess_alloc_zero(num_options + 1, sizeof *copy->options);
    copy->argp.children = copy->children =
        tess_alloc_zero(num_children + 1, sizeof *copy->children);
    copy->parts = tess_alloc_zero(num_children + 1, sizeof *copy->parts);
    if (!copy->options || !copy->children || !copy->parts)
        TESS_FAIL(TESS_ERR_ALLOC, "help");
    for (int k = 0, kept = 0; k < num_options; ++k) {
        if (!all && (from->options[k].flags & OPTION_HIDDEN)) continue;
        copy->options[kept] = from->options[k];
        copy->options[kept++].flags &= ~OPTION_HIDDEN;
    }
    for (int k = 0; k < num_children; ++k) {
        TESS_TRY(copy_shown(from->children[k].argp, all, &copy->parts[k]));
        copy->num_parts = k + 1;
        copy->children[k] = from->children[k];
        copy->children[k].argp = &copy->parts[k]->argp;
    }
    *copy_out = copy;
    copy = NULL;
cleanup:
    free_shown(copy);
    return status;
}

/* ---- columns ---- */

/* Columns of argp's options with a long name alone, and of their texts. */
enum { OPTION_COLUMN = 6, TEXT_COLUMN = 29 };

/* Prints a line with its indentation. argp of glibc loses count of columns where its
 * buffer ends: it then indents an option or a text too far, or a text not at all, or
 * makes a line of spaces. `behind_option`: the line before begins with an option. */
static void print_line(const char *line, size_t length, bool behind_option)
{
    const size_t indent = strspn(line, " ");
    const bool is_option = strncmp(line + indent, "--", 2) == 0;
    size_t column = indent;
    if (indent == length && length > 0) return;
    if (indent > TEXT_COLUMN) column = is_option ? OPTION_COLUMN : TEXT_COLUMN;
    if (indent == 0 && length > 0 && behind_option) column = TEXT_COLUMN;
    printf("%*s%.*s\n", (int)column, "", (int)(length - indent), line + indent);
}

static void print_lines(const char *text)
{
    bool behind_option = false;
    while (*text) {
        const size_t length = strcspn(text, "\n"), indent = strspn(text, " ");
        print_line(text, length, behind_option);
        behind_option = indent > 0 && text[indent] == '-';
        text += length + (text[length] == '\n');
    }
}

tess_status cli_help_print(const struct argp *argp, const char *command, bool all)
{
    tess_status status = TESS_OK;
    char name[64], *text = NULL;
    size_t length = 0;
    FILE *made = NULL;
    shown *copy = NULL;
    const int hidden = count_hidden(argp);
    snprintf(name, sizeof name, "tessera %s", command);
    TESS_TRY(copy_shown(argp, all, &copy));
    made = open_memstream(&text, &length);
    if (!made) TESS_FAIL(TESS_ERR_ALLOC, "help");
    argp_help(&copy->argp, made,
              ARGP_HELP_SHORT_USAGE | ARGP_HELP_PRE_DOC | ARGP_HELP_LONG |
                  ARGP_HELP_POST_DOC,
              name);
    if (fflush(made) != 0) TESS_FAIL(TESS_ERR_ALLOC, "help");
    print_lines(text);
    if (!all && hidden > 0)
        printf("\n'%s --help-all' lists %d more options, for tuning, tests and "
               "studies.\n",
               name, hidden);
    fflush(stdout);
cleanup:
    if (made) fclose(made);
    free(text); /* of the C library */
    free_shown(copy);
    return status;
}
