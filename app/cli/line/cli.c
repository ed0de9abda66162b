/* Parses the command line of a subcommand on every rank, with argp. One rank prints the
 * error, the help or the version. Options from --config come before those of the
 * command line. */
#define _GNU_SOURCE
#include "tess_cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli_help.h"
#include "tess_comm.h"
#include "tess_isa.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_parse.h"
#include "tess_version.h"
#include "tess_watch.h"

/* The topmost argp, and the command line that all groups of options share. Groups find
 * it here because argp passes each group an input of its own. */
typedef struct run {
    struct argp root; /* first: argp_state.root_argp points here */
    tess_cli *cli;
} run;

static tess_cli *cli_of(const struct argp_state *state)
{
    return ((const run *)(const void *)state->root_argp)->cli;
}

/* ---- options of every subcommand ---- */

enum { OPT_CONFIG = 0x100, OPT_STALL_TIMEOUT, OPT_VERSION, OPT_HELP_ALL };

static const struct argp_option common_options[] = {
    {"config", OPT_CONFIG, "FILE", 0,
     "Take options from FILE, lines of the form key = value where keys are the long "
     "names of options and # starts a comment; the command line overrides them",
     0},
    {"stall-timeout", OPT_STALL_TIMEOUT, "TIME", 0,
     "End the run when a rank does not answer for this time while another one waits "
     "for "
     "it, at least 5s, or never (default 5min)",
     0},
    {"quiet", 'q', NULL, 0, "Print warnings and errors only", 0},
    {"verbose", 'v', NULL, 0,
     "Print stages, MPI and memory, too, and where errors arose", 0},
    {"help", 'h', NULL, 0, "Print this help", 0},
    {"help-all", OPT_HELP_ALL, NULL, 0, "Print the help with all options", 0},
    {"version", OPT_VERSION, NULL, 0, "Print the version", 0},
    {0},
};

static tess_status take_stall_timeout(const char *text)
{
    tess_status status = TESS_OK;
    double seconds = 0;
    if (strcmp(text, "never") != 0) TESS_TRY(tess_parse_duration(text, &seconds));
    TESS_TRY(tess_watch_timeout(seconds));
cleanup:
    return status;
}

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
    tess_cli *cli = cli_of(state);
    tess_status status = TESS_OK;
    switch (key) {
    case OPT_STALL_TIMEOUT:
        status = take_stall_timeout(arg);
        break;
    case 'q':
        cli->quiet = true;
        break;
    case 'v':
        cli->verbose = true;
        break;
    case OPT_CONFIG: /* tess_cli_parse() has removed these before argp starts */
    case 'h':
    case OPT_HELP_ALL:
    case OPT_VERSION: /* main() handles this one */
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return tess_cli_result(state, common_options, key, arg, status);
}

const struct argp tess_cli_common_argp = {.options = common_options,
                                          .parser = parse_common};

/* ---- the record of what was used ---- */

static char *copy_one_line(const char *text)
{
    char *copy = tess_strdup(text);
    for (char *c = copy; c && *c; ++c)
        if (*c == '\n' || *c == '\r') *c = ' ';
    return copy;
}

tess_status tess_cli_note(tess_cli *cli, const char *name, const char *value)
{
    tess_status status = TESS_OK;
    void *array = cli->used;
    tess_cli_used entry = {copy_one_line(name), copy_one_line(value), true};
    if (!entry.name || !entry.value ||
        tess_grow(&array, &cli->capacity_used, cli->num_used + 1, sizeof entry))
        TESS_FAIL(TESS_ERR_ALLOC, "list of options");
    cli->used = array;
    cli->used[cli->num_used++] = entry;
    entry = (tess_cli_used){0};
cleanup:
    tess_free(entry.name);
    tess_free(entry.value);
    return status;
}

static tess_status set_used(tess_cli *cli, const char *name, const char *value,
                            bool given)
{
    for (int64_t k = 0; k < cli->num_used; ++k) {
        if (strcmp(cli->used[k].name, name) != 0) continue;
        char *copy = copy_one_line(value);
        if (!copy) return TESS_ERR_ALLOC;
        tess_free(cli->used[k].value);
        cli->used[k].value = copy;
        cli->used[k].given = given;
        return TESS_OK;
    }
    const tess_status status = tess_cli_note(cli, name, value);
    if (status == TESS_OK) cli->used[cli->num_used - 1].given = given;
    return status;
}

void tess_cli_default(struct argp_state *state, const char *name, const char *value)
{
    tess_cli *cli = cli_of(state);
    const tess_status status = set_used(cli, name, value, false);
    if (cli->status == TESS_OK) cli->status = status;
}

/* Put the option, or file and line of --config, in front of the recorded message. */
static void name_option(const tess_cli *cli, int index, const char *name,
                        tess_status status)
{
    char *message = tess_strdup(tess_error_message());
    const int line = tess_params_line(&cli->params, index);
    if (!message) return; /* the message stays without the option's name */
    tess_error_clear();
    if (line > 0)
        tess_error_record(status, __FILE__, __LINE__, __func__, "%s:%d: %s: %s",
                          cli->params.path, line, name, message);
    else
        tess_error_record(status, __FILE__, __LINE__, __func__, "--%s: %s", name,
                          message);
    tess_free(message);
}

error_t tess_cli_result(struct argp_state *state, const struct argp_option *options,
                        int key, const char *arg, tess_status status)
{
    tess_cli *cli = cli_of(state);
    const char *name = NULL;
    for (; !name && (options->name || options->key || options->doc); ++options)
        if (options->key == key) name = options->name;
    if (name && status != TESS_OK) name_option(cli, state->next - 1, name, status);
    if (name && status == TESS_OK)
        status = set_used(cli, name, arg ? arg : "true", true);
    if (status == TESS_OK) return 0;
    if (cli->status == TESS_OK) cli->status = status;
    return EINVAL;
}

/* ---- running argp ---- */

/* Passes the input to the subcommand's parser, and records where argp stops. */
static error_t parse_root(int key, char *arg, struct argp_state *state)
{
    (void)arg;
    tess_cli *cli = cli_of(state);
    if (key == ARGP_KEY_INIT) {
        state->child_inputs[0] = cli->input;
        return 0;
    }
    if (key == ARGP_KEY_ERROR) cli->failed_index = state->next;
    return ARGP_ERR_UNKNOWN;
}

static tess_status run_argp(tess_cli *cli)
{
    tess_status status = TESS_OK;
    struct argp_child children[] = {{cli->argp, 0, NULL, 0}, {0}};
    const run top = {.root = {.parser = parse_root, .children = children}, .cli = cli};
    tess_params *params = &cli->params;
    TESS_TRY(cli_check_dashes(cli->argp, params->argc, params->argv));
    TESS_TRY(cli_check_split(cli->argp, params->argc, params->argv));
    const error_t error =
        argp_parse(&top.root, params->argc, params->argv, ARGP_SILENT, NULL, NULL);
    if (cli->status != TESS_OK) return cli->status;
    if (error == ENOMEM) TESS_FAIL(TESS_ERR_ALLOC, "arguments");
    if (error) {
        /* The index is behind a refused option, but at a refused argument. */
        int index = cli->failed_index;
        const bool option = index > 1 && params->argv[index - 1][0] == '-';
        if (option || index >= params->argc) --index;
        TESS_TRY(cli_explain_mistake(cli->argp, params->argv[index],
                                     index + 1 < params->argc ? params->argv[index + 1]
                                                              : NULL));
    }
cleanup:
    return status;
}

typedef enum help_wish { NO_HELP, HELP, HELP_ALL } help_wish;

/* With --help, the rest of the command line is ignored, even if it has mistakes. */
static help_wish wanted_help(int argc, char **argv)
{
    help_wish wish = NO_HELP;
    for (int k = 1; k < argc && strcmp(argv[k], "--") != 0; ++k) {
        if (strcmp(argv[k], "--help-all") == 0) return HELP_ALL;
        if (strcmp(argv[k], "--help") == 0 || strcmp(argv[k], "-h") == 0) wish = HELP;
    }
    return wish;
}

tess_status tess_cli_parse(tess_comm *comm, const struct argp *argp, int argc,
                           char **argv, void *input, tess_cli *cli)
{
    tess_status status = TESS_OK;
    const int rank = tess_comm_rank(comm);
    cli->command = argv[0];
    cli->argp = argp;
    cli->input = input;
    const help_wish wish = wanted_help(argc, argv);
    if (wish != NO_HELP) {
        cli->help = true;
        if (rank == 0) status = cli_help_print(argp, argv[0], wish == HELP_ALL);
        goto cleanup;
    }
    TESS_TRY(tess_params_expand(comm, argp, argc, argv, &cli->params));
    TESS_TRY(tess_comm_agree(comm, run_argp(cli)));
    tess_log_start(rank, cli->verbose ? TESS_LOG_DEBUG
                         : cli->quiet ? TESS_LOG_QUIET
                                      : TESS_LOG_INFO);
cleanup:
    return status;
}

/* ---- texts ---- */

static bool needs_quotes(const char *text)
{
    const size_t length = strlen(text);
    return length == 0 || strchr(text, '#') || strchr(" \t\"", text[0]) ||
           strchr(" \t\"", text[length - 1]);
}

char *tess_cli_used_text(const tess_cli *cli, const char *command_line)
{
    char *text = NULL, *copy = NULL, *one_line = copy_one_line(command_line);
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out || !one_line) goto cleanup;
    fprintf(out, "# Options of: %s\n# Use again with: tessera %s --config THIS_FILE\n",
            one_line, cli->command);
    for (int64_t k = 0; k < cli->num_used; ++k) {
        const char *quote = needs_quotes(cli->used[k].value) ? "\"" : "";
        fprintf(out, "%s = %s%s%s\n", cli->used[k].name, quote, cli->used[k].value,
                quote);
    }
cleanup:
    /* open_memstream() uses malloc(), but callers free the text with tess_free(). */
    if (out && fclose(out) == 0) copy = tess_strdup(text);
    tess_free(one_line);
    free(text);
    return copy;
}

char *tess_cli_command_line(int argc, char **argv)
{
    return tess_cli_line_of("tessera", argc, argv);
}

char *tess_cli_line_of(const char *program, int argc, char **argv)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-+=:,./@%";
    char *text = NULL, *copy = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    fputs(program, out);
    for (int k = 0; k < argc; ++k) {
        if (argv[k][0] && strspn(argv[k], plain) == strlen(argv[k])) {
            fprintf(out, " %s", argv[k]);
            continue;
        }
        fputs(" '", out);
        for (const char *c = argv[k]; *c; ++c)
            if (*c == '\'')
                fputs("'\\''", out);
            else
                fputc(*c == '\n' ? ' ' : *c, out);
        fputc('\'', out);
    }
    if (fclose(out) == 0) copy = tess_strdup(text);
    free(text);
    return copy;
}

void tess_cli_free(tess_cli *cli)
{
    for (int64_t k = 0; k < cli->num_used; ++k) {
        tess_free(cli->used[k].name);
        tess_free(cli->used[k].value);
    }
    tess_free(cli->used);
    tess_params_free(&cli->params);
    *cli = (tess_cli){0};
}

/* ---- --version ---- */

static void print_processors(FILE *out)
{
    fprintf(out, "%-16s", "processor code");
    for (int isa = 0; isa < TESS_NUM_ISA_BUILT; ++isa)
        fprintf(out, "%s%s", isa ? ", " : "", tess_isa_name((tess_isa)isa));
    const tess_isa best = tess_isa_best();
    fprintf(out, "; here: %s\n",
            tess_isa_name(
                best < TESS_NUM_ISA_BUILT ? best : (tess_isa)(TESS_NUM_ISA_BUILT - 1)));
}

void tess_built_print(FILE *out)
{
    char mpi[256];
    tess_comm_library(mpi, sizeof mpi);
    fprintf(out, "tessera %s\nbuilt with %s\nusing %s\n", tess_version_full(),
            tess_version_compiler(), tess_version_libraries());
    fprintf(out, "%-16s%s\n", "MPI", mpi);
    fprintf(out, "%-16s%s\n", "OpenMP", tess_version_openmp());
    fprintf(out, "%-16s%s\n", "GPUs", tess_version_gpu());
    print_processors(out);
    fprintf(out, "%-16s%s\n", "fast memory", tess_fast_memory_text());
    fprintf(out, "%-16s%s\n", "MeasurementSets", tess_version_ms());
    fprintf(out, "%-16s%s\n", "solutions", tess_version_hdf5());
}
