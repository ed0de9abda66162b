/* The tessera program: starts MPI, runs a subcommand, prints the one error line. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tess_cli.h"
#include "tess_comm.h"
#include "tess_forced.h"
#include "tess_input.h"
#include "tess_log.h"
#include "tess_out_file.h"
#include "tess_stack.h"
#include "tess_status.h"
#include "tess_stop.h"
#include "tess_subcommands.h"
#include "tess_threads.h"
#include "tess_vis.h"
#include "tess_waiting.h"
#include "tess_watch.h"

typedef struct command {
    const char *name;
    tess_status (*run)(tess_comm *comm, int argc, char **argv);
    const char *summary;
} command;

static const command commands[] = {
    {"image", tess_cmd_image, "make FITS images from observations"},
    {"predict", tess_cmd_predict, "predict visibilities from a model image"},
    {"restore", tess_cmd_restore, "put a model or a list of sources onto a residual"},
    {"draw", tess_cmd_draw, "draw a list of sources as an image"},
    {"facets", tess_cmd_facets, "make, check and draw the facets of an image"},
    {"mosaic", tess_cmd_mosaic, "join images of several pointings"},
    {"simulate", tess_cmd_simulate, "make an observation of a sky model"},
    {"info", tess_cmd_info, "describe an observation"},
    {"plan", tess_cmd_plan, "show how an image would be made, without making it"},
    {"compare", tess_cmd_compare, "compare two FITS files"},
    {"stats", tess_cmd_stats, "print peak, noise, beam and flux of FITS images"},
    {"bench", tess_cmd_bench, "time gridding and degridding alone"},
    {"wsclean", tess_cmd_wsclean, "do what a command line of WSClean asks for"},
};
enum { NUM_COMMANDS = sizeof commands / sizeof *commands };

static void print_commands(void)
{
    printf("Usage: tessera COMMAND [OPTION...]\n"
           "MPI radio-interferometric imager: visibilities (UVFITS, MeasurementSet) to "
           "FITS\nimages and back.\n\nCommands:\n");
    for (int k = 0; k < NUM_COMMANDS; ++k)
        printf("  %-10s %s\n", commands[k].name, commands[k].summary);
    printf(
        "\nExamples:\n"
        "  tessera info obs.ms\n"
        "  tessera image obs.ms -o out --size 2048 --scale 1.5asec\n"
        "  mpirun -n 4 tessera image obs.ms -o out --size 8192 --scale 2asec\n"
        "\n'tessera COMMAND --help' explains a command, 'tessera --version' says what "
        "this is.\n"
        "\nExit status: 0 done, 1 internal error, 2 wrong options, 3 bad input or "
        "unwritable\noutput, 4 not enough memory, no such backend or a rank that does "
        "not answer, 5 files\ndiffer, 75 stopped at a checkpoint."
        "\n");
}

static const command *find_command(const char *name)
{
    for (int k = 0; k < NUM_COMMANDS; ++k)
        if (strcmp(commands[k].name, name) == 0) return &commands[k];
    return NULL;
}

/* Whether the program goes by a name that says that it gets WSClean's command line. */
static bool named_wsclean(const char *program)
{
    const char *slash = strrchr(program, '/');
    const char *name = slash ? slash + 1 : program;
    return strcmp(name, "wsclean") == 0 || strcmp(name, "wsclean-mp") == 0 ||
           strcmp(name, "tessera-wsclean") == 0;
}

/* --version anywhere, but not behind "--". */
static bool wants_version(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "-V") == 0) return true;
    for (int k = 1; k < argc && strcmp(argv[k], "--") != 0; ++k)
        if (strcmp(argv[k], "--version") == 0) return true;
    return false;
}

/* `tessera`, `tessera --help`, `tessera --version`, or a command. Collective. */
static tess_status run(tess_comm *comm, int argc, char **argv, const command **chosen)
{
    tess_status status = TESS_OK;
    const bool first = tess_comm_rank(comm) == 0;
    if (argc > 0 && named_wsclean(argv[0])) {
        *chosen = find_command("wsclean");
        tess_stop_ends(first);
        return tess_cmd_wsclean(comm, argc, argv);
    }
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        if (first) print_commands();
        if (argc < 2) TESS_FAIL(TESS_ERR_USAGE, "no command given");
        goto cleanup;
    }
    if (wants_version(argc, argv)) {
        if (first) tess_built_print(stdout);
        goto cleanup;
    }
    *chosen = find_command(argv[1]);
    if (!*chosen)
        TESS_FAIL(TESS_ERR_USAGE,
                  "'%s' is not a command; use one of image, predict, restore, draw, "
                  "facets, mosaic, simulate, info, plan, compare, stats, bench, wsclean",
                  argv[1]);
    /* the options of `image` say whether it has checkpoints */
    if ((*chosen)->run != tess_cmd_image) tess_stop_ends(first);
    TESS_TRY((*chosen)->run(comm, argc - 1, argv + 1));
cleanup:
    return status;
}

/* Output that could not be written is a failure, also when it goes to a full disk. */
static tess_status flush_output(void)
{
    tess_status status = TESS_OK;
    if (fflush(stdout) != 0 || ferror(stdout))
        TESS_FAIL(TESS_ERR_IO, "standard output cannot be written");
cleanup:
    return status;
}

static bool wants_origin(int argc, char **argv)
{
    for (int k = 1; k < argc; ++k)
        if (strcmp(argv[k], "--verbose") == 0 || strcmp(argv[k], "-verbose") == 0 ||
            strcmp(argv[k], "-v") == 0)
            return true;
    return false;
}

/* Longest time that a failed rank waits for the other ranks [s]. */
static const double PATIENCE_S = 5;

/* What the blamed rank knows, for the rank that prints. */
typedef struct report {
    tess_status status;
    int rank;
    char message[1024];
    char origin[256];
} report;

/* What the error line needs to know of the command line, and the end of the run. */
typedef struct asked {
    const command *chosen; /* NULL: none yet */
    bool origin;
    atomic_int ended_with; /* exit status of a run that all ranks have ended, or −1 */
} asked;

/* The one line for the user. */
static void print_error(const report *r, const asked *by)
{
    char hint[80] = "", where[300] = "", prefix[64] = "";
    const char *page = tess_forced_page(r->message);
    if (page)
        snprintf(hint, sizeof hint, " (see %s)", page);
    else if (r->status == TESS_ERR_USAGE && by->chosen)
        snprintf(hint, sizeof hint, " (see tessera %s --help)", by->chosen->name);
    else if (r->status == TESS_ERR_USAGE)
        snprintf(hint, sizeof hint, " (see tessera --help)");
    if (by->origin || r->status == TESS_ERR_INTERNAL)
        snprintf(where, sizeof where, " [rank %d, %s]", r->rank, r->origin);
    const char *text = *r->message ? r->message : tess_status_text(r->status);
    if (*r->message && (r->status == TESS_ERR_ALLOC || r->status == TESS_ERR_INTERNAL))
        snprintf(prefix, sizeof prefix, "%s: ", tess_status_text(r->status));
    if (r->status == TESS_ERR_STOPPED)
        tess_log_warn("%s", text);
    else
        tess_log_error("%s%s%s%s", prefix, text, hint, where);
}

static report report_of(tess_status status, int rank)
{
    report r = {.status = status, .rank = rank};
    snprintf(r.message, sizeof r.message, "%s", tess_error_message());
    snprintf(r.origin, sizeof r.origin, "%s", tess_error_origin());
    return r;
}

/* This rank has failed and others do not come to hear of it: it speaks for itself. They
 * remove their unfinished files when the launcher's signal comes. */
static void end_all(tess_comm *comm, tess_status status, void *context)
{
    const report r = report_of(status, tess_comm_rank(comm));
    print_error(&r, context);
    tess_out_remove_unfinished();
    tess_comm_abort(comm, tess_status_exit(status));
}

/* Other ranks do not answer any more. If the run had ended before, nothing is to be
 * said. */
static void say_stalled(tess_status status, int rank, void *context)
{
    const asked *by = context;
    const report r = report_of(status, rank);
    if (by->ended_with >= 0) return;
    print_error(&r, by);
}

/* The main thread may be inside MPI, which would not let this process end in order. */
static void leave_stalled(tess_status status, void *context)
{
    const asked *by = context;
    tess_out_remove_unfinished();
    _exit(by->ended_with >= 0 ? by->ended_with : tess_status_exit(status));
}

/* Rank 0 prints for the blamed rank, because it has the log file. Collective. */
static void report_error(tess_comm *comm, tess_status status, int blamed,
                         const asked *by)
{
    report r = report_of(status, blamed);
    const bool heard = tess_comm_bcast(comm, &r, sizeof r, blamed) == TESS_OK;
    if (tess_comm_rank(comm) == (heard ? 0 : blamed)) print_error(&r, by);
}

/* ---- how ranks and threads wait ---- */

/* MPI must know when it starts how its ranks wait, and the threads of OpenMP wait for
 * each other in all commands: the number of threads is found before the command line is
 * parsed. */

/* The number of --threads (WSClean's -j), before the command line is parsed, or 0. */
static int threads_asked(int argc, char **argv)
{
    static const char option[] = "--threads";
    const size_t length = sizeof option - 1;
    for (int k = 1; k < argc; ++k) {
        if (strncmp(argv[k], "--threads=", length + 1) == 0)
            return atoi(argv[k] + length + 1);
        if (k + 1 < argc &&
            (strcmp(argv[k], option) == 0 || strcmp(argv[k], "-j") == 0))
            return atoi(argv[k + 1]);
    }
    return 0;
}

/* Before MPI starts: ranks yield their processors if there are too few of them. */
static void yield_early(int argc, char **argv)
{
    tess_threads_yield(threads_asked(argc, argv));
}

/* Calls tess_waiting_begin(), also if it fails. Collective. */
static tess_status begin_waiting(tess_comm *comm, int argc, char **argv)
{
    tess_status status = TESS_OK;
    int threads = threads_asked(argc, argv);
    if (threads < 1) TESS_TRY(tess_threads_default(comm, &threads));
cleanup:
    tess_waiting_begin(threads);
    return status;
}

int main(int argc, char **argv)
{
    tess_comm *comm = NULL;
    asked by = {.origin = wants_origin(argc, argv), .ended_with = -1};
    int exit_status = 0;
    tess_stop_hold();
    tess_input_keep_standard();
    tess_out_catch_file_limit();
    tess_status status = tess_stack_prepare();
    if (status == TESS_OK) {
        yield_early(argc, argv);
        status = tess_comm_start(&argc, &argv, &comm);
    }
    tess_stop_record();
    if (status != TESS_OK) {
        tess_log_error("%s [%s]", tess_error_message(), tess_error_origin());
        return tess_status_exit(status);
    }
    tess_log_start(tess_comm_rank(comm), TESS_LOG_INFO);
    tess_out_catch_signals(tess_comm_size(comm) > 1);
    tess_vis_end_clearly();
    tess_comm_end_with(comm, PATIENCE_S, end_all, &by);
    status = begin_waiting(comm, argc, argv);
    if (status == TESS_OK)
        status = tess_watch_start(comm, say_stalled, leave_stalled, &by);
    if (status == TESS_OK) status = run(comm, argc, argv, &by.chosen);
    tess_waiting_end();
    if (status == TESS_OK) status = flush_output();
    if (status == TESS_OK) tess_out_hold_signals(); /* too late to stop anything */
    const int blamed = tess_comm_blame(comm, status, &exit_status);
    if (blamed >= 0) report_error(tess_comm_last(comm), status, blamed, &by);
    by.ended_with = exit_status;
    tess_log_close();
    tess_comm_finish(comm);
    tess_watch_stop();
    return exit_status;
}
