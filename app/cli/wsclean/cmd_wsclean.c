/* tessera wsclean: takes WSClean's command line, and runs the command of tessera that
 * it becomes. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "tess_cli.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_subcommands.h"
#include "tess_vis.h"
#include "wsclean_words.h"

static void print_help(void)
{
    fputs("Usage: tessera wsclean OPTION... OBS...\n"
          "Take WSClean's command line, with its defaults and names of files.\n\n"
          "      --translate-only       Print tessera's command, and do not run it\n"
          "      --help                 Print this help\n\n"
          "Each option of WSClean, and below it what it becomes:\n\n",
          stdout);
    wsclean_print_help(stdout);
    fputs(
        "\nOptions that are not needed here are left out, and told in the log. "
        "Options that\nchange images in a way that tessera does not have are "
        "refused.\n\n"
        "Examples:\n"
        "  tessera wsclean -size 2048 2048 -scale 1.5asec -weight briggs 0 \\\n"
        "      -niter 100000 -mgain .8 -auto-threshold 3 -name out obs.ms\n"
        "  tessera wsclean --translate-only -predict -name out obs.ms\n"
        "  mpirun -n 4 tessera-wsclean -size 8192 8192 -scale 2asec -make-psf obs.ms\n",
        stdout);
}

/* Prints a command for a shell. */
static tess_status print_command(const wsclean_words *words)
{
    tess_status status = TESS_OK;
    char *text = tess_cli_command_line((int)words->num, words->word);
    if (!text) TESS_FAIL(TESS_ERR_ALLOC, "text of a command");
    puts(text);
cleanup:
    tess_free(text);
    return status;
}

/* A command of tessera, and how a line becomes it. */
typedef struct target {
    tess_status (*words)(const wsclean_line *line, int obs, wsclean_words *words,
                         wsclean_words *notes);
    tess_status (*run)(tess_comm *comm, int argc, char **argv,
                       const tess_cli_origin *origin);
} target;

static tess_status image_words(const wsclean_line *line, int obs, wsclean_words *words,
                               wsclean_words *notes)
{
    (void)obs;
    return wsclean_words_image(line, words, notes);
}

static tess_status restore_words(const wsclean_line *line, int obs,
                                 wsclean_words *words, wsclean_words *notes)
{
    (void)obs;
    return wsclean_words_restore(line, words, notes);
}

static tess_status draw_words(const wsclean_line *line, int obs, wsclean_words *words,
                              wsclean_words *notes)
{
    (void)obs;
    return wsclean_words_draw(line, words, notes);
}

static target target_of(const wsclean_line *line)
{
    if (wsclean_line_last(line, "restore") || wsclean_line_last(line, "restore-list"))
        return (target){restore_words, tess_cmd_restore_noted};
    if (wsclean_line_last(line, "draw-model"))
        return (target){draw_words, tess_cmd_draw_noted};
    if (!wsclean_line_last(line, "predict"))
        return (target){image_words, tess_cmd_image_noted};
    return (target){wsclean_words_predict, wsclean_words_predicts_several(line)
                                               ? tess_cmd_image_noted
                                               : tess_cmd_predict_noted};
}

/* Makes one command, and prints or runs it. Collective. */
static tess_status do_one(tess_comm *comm, const wsclean_line *line, int obs)
{
    tess_status status = TESS_OK;
    wsclean_words words = {0}, notes = {0};
    const target to = target_of(line);
    TESS_TRY(tess_comm_agree(comm, to.words(line, obs, &words, &notes)));
    const tess_cli_origin origin = {line->typed, (const char *const *)notes.word};
    if (line->translate_only) {
        if (tess_comm_rank(comm) == 0) status = print_command(&words);
        TESS_TRY(tess_comm_agree(comm, status));
    } else
        TESS_TRY(to.run(comm, (int)words.num, words.word, &origin));
cleanup:
    wsclean_words_free(&words);
    wsclean_words_free(&notes);
    return status;
}

/* Programs look for the words of WSClean's first line. */
static void print_version(void)
{
    tess_built_print(stdout);
    puts("command lines   of WSClean version 3.1");
}

/* What is printed in place of a run. */
static bool print_instead(tess_comm *comm, const wsclean_line *line)
{
    const bool first = tess_comm_rank(comm) == 0;
    const bool version = wsclean_line_last(line, "version") != NULL;
    if (first && line->help) print_help();
    if (first && line->table) wsclean_print_manual(stdout);
    if (first && version) print_version();
    return line->help || line->table || version;
}

/* Tells where images differ from WSClean's by more than their accuracy. */
static void warn_of_aterms(tess_comm *comm, const wsclean_line *line)
{
    if (wsclean_line_last(line, "aterm-config") && tess_comm_rank(comm) == 0)
        tess_log_warn("-aterm-config: a-terms are those in the directions of facets, "
                      "and do not vary inside one as in WSClean's images: facets have "
                      "to be small, and the log tells how wrong their corners are");
}

/* Refuses options that are not supported. --translate-only lists all of them, with the
 * reasons, as comments of a shell. Collective. */
static tess_status check_refused(tess_comm *comm, const wsclean_line *line)
{
    const bool lists = line->translate_only && tess_comm_rank(comm) == 0;
    for (int64_t k = 0; lists && k < line->num_refused; ++k)
        printf("# %s\n", line->refused[k].text);
    if (lists) fflush(stdout); /* the error follows */
    return tess_comm_agree(comm, wsclean_line_check(line));
}

/* Finds out whether no observation has columns. One rank looks for all of them, because
 * the words have to be the same on every rank. Collective. */
static tess_status look_for_columns(tess_comm *comm, wsclean_line *line)
{
    bool none = line->num_obs > 0;
    for (int k = 0; tess_comm_rank(comm) == 0 && none && k < line->num_obs; ++k)
        none = tess_vis_is_without_columns(line->obs[k]);
    line->no_columns = none;
    return tess_comm_bcast(comm, &line->no_columns, sizeof line->no_columns, 0);
}

tess_status tess_cmd_wsclean(tess_comm *comm, int argc, char **argv)
{
    tess_status status = TESS_OK;
    wsclean_line line = {0};
    TESS_TRY(tess_comm_agree(comm, wsclean_line_read(argc, argv, &line)));
    if (print_instead(comm, &line)) goto cleanup;
    if (wsclean_line_last(&line, "dry-run")) line.translate_only = true;
    TESS_TRY(check_refused(comm, &line));
    warn_of_aterms(comm, &line);
    TESS_TRY(look_for_columns(comm, &line));
    line.typed = tess_cli_line_of("wsclean", argc - 1, argv + 1);
    TESS_TRY(tess_comm_agree(comm, line.typed ? TESS_OK : TESS_ERR_ALLOC));
    const bool predicts = wsclean_line_last(&line, "predict") != NULL;
    const bool one_by_one = predicts && !wsclean_words_predicts_several(&line);
    const int runs = one_by_one && line.num_obs > 1 ? line.num_obs : 1;
    for (int k = 0; k < runs; ++k)
        TESS_TRY(do_one(comm, &line, k));
cleanup:
    wsclean_line_free(&line);
    return status;
}
