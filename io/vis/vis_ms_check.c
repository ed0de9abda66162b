/* Protects the ranks from damaged tables on which casacore ends the process: by an
 * exception out of a destructor, a division by a size of zero, or an address that is
 * read from a file. One rank has another process meet that first, and tells the user
 * what this process died of. */
#define _GNU_SOURCE
#include "vis_ms_check.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tess_log.h"
#include "tess_mem.h"

/* The process is never silent for longer than this. A column is read in milliseconds,
 * and a disk that takes longer than this is as bad as none. */
enum { PATIENCE_S = 120 };

/* Longest name of a column that the process is told. */
enum { COLUMN_NAME = 256 };

extern char **environ;

/* ---- where the program is ---- */

/* Finds the process beside the program or library that this code is in: in the build
 * folder, where it is installed, and where that may have been moved to. */
static bool find_program(char path[PATH_MAX])
{
    static const char *const places[] = {"", "../libexec/", "../bin/",
                                         "../../libexec/"};
    static const char anchor;
    char module[PATH_MAX] = "";
    Dl_info info;
    const char *asked = getenv("TESS_MS_CHECK");
    if (asked && access(asked, X_OK) == 0) {
        snprintf(path, PATH_MAX, "%s", asked);
        return true;
    }
    /* a program may have been started by a name that means nothing here */
    const bool is_library = dladdr(&anchor, &info) != 0 && info.dli_fname &&
                            strstr(info.dli_fname, ".so") != NULL;
    if (realpath(is_library ? info.dli_fname : "/proc/self/exe", module)) {
        *strrchr(module, '/') = '\0';
        for (size_t k = 0; k < sizeof places / sizeof *places; ++k) {
            const int length =
                snprintf(path, PATH_MAX, "%s/%stessera-ms-check", module, places[k]);
            if (length < PATH_MAX && access(path, X_OK) == 0) return true;
        }
    }
    snprintf(path, PATH_MAX, "%s", TESS_LIBEXEC "/tessera-ms-check");
    return access(path, X_OK) == 0;
}

/* ---- the process ---- */

typedef struct child {
    pid_t pid;
    int from; /* what it writes */
} child;

/* Whether a launcher tells its ranks something by this environment variable. The child
 * process is no rank. */
static bool is_of_launcher(const char *variable)
{
    static const char *const prefixes[] = {"OMPI_", "PMIX_", "PMI_",  "PRTE_",
                                           "MPI_",  "MPIR_", "HYDI_", "I_MPI_"};
    for (size_t k = 0; k < sizeof prefixes / sizeof *prefixes; ++k)
        if (strncmp(variable, prefixes[k], strlen(prefixes[k])) == 0) return true;
    return false;
}

static char **own_environment(void)
{
    int64_t count = 0, kept = 0;
    while (environ && environ[count])
        ++count;
    char **own = tess_alloc_zero(count + 1, sizeof *own);
    for (int64_t k = 0; own && k < count; ++k)
        if (!is_of_launcher(environ[k])) own[kept++] = environ[k];
    return own;
}

/* Returns an errno; 0 for success. */
static int spawn(char **words, int output, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t signals;
    char **environment = own_environment();
    int failed = environment ? 0 : ENOMEM;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&how, &signals);
    sigemptyset(&signals);
    /* a launcher sends these to all processes of a job, so that they save their state
     */
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGUSR2);
    posix_spawnattr_setsigmask(&how, &signals);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    if (!failed) failed = posix_spawn(pid, words[0], &files, &how, words, environment);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    tess_free(environment);
    return failed;
}

static bool start(const char *program, const char *column, const char *const *paths,
                  int num_paths, child *process)
{
    int ends[2] = {-1, -1}, failed = 0;
    char **words = tess_alloc_zero(num_paths + 3, sizeof *words);
    if (!words || pipe2(ends, O_CLOEXEC) != 0) {
        tess_free(words);
        return false;
    }
    /* posix_spawn changes none of its words */
    words[0] = (char *)(uintptr_t)program;
    words[1] = (char *)(uintptr_t)column;
    for (int k = 0; k < num_paths; ++k)
        words[2 + k] = (char *)(uintptr_t)paths[k];
    failed = spawn(words, ends[1], &process->pid);
    close(ends[1]);
    tess_free(words);
    process->from = ends[0];
    if (failed) close(ends[0]);
    return failed == 0;
}

/* The messages of the process. */
typedef struct report {
    char line[300]; /* the last whole line */
    char next[300]; /* and what of one has come */
    size_t length;
    bool late;
} report;

static void take(report *heard, const char *text, ssize_t length)
{
    for (ssize_t k = 0; k < length; ++k) {
        if (text[k] != '\n') {
            if (heard->length < sizeof heard->next - 1)
                heard->next[heard->length++] = text[k];
            continue;
        }
        heard->next[heard->length] = '\0';
        memcpy(heard->line, heard->next, sizeof heard->line);
        heard->length = 0;
    }
}

/* Waits until the process ends, or has been silent for too long and is ended. */
static void listen_to(const child *process, report *heard)
{
    char text[4096];
    struct pollfd from = {.fd = process->from, .events = POLLIN};
    double since = tess_time_now();
    for (;;) {
        const int ready = poll(&from, 1, 1000);
        if (ready > 0) {
            const ssize_t got = read(process->from, text, sizeof text);
            if (got == 0 || (got < 0 && errno != EINTR)) return;
            take(heard, text, got);
            since = tess_time_now();
        } else if (tess_time_now() - since > PATIENCE_S) {
            heard->late = true;
            kill(process->pid, SIGKILL);
            return;
        }
    }
}

/* Returns the exit status of the process; -1 if the host program waits for its children
 * itself. */
static int end_of(const child *process)
{
    int how = -1;
    pid_t got;
    close(process->from);
    do
        got = waitpid(process->pid, &how, 0);
    while (got < 0 && errno == EINTR);
    return got == process->pid ? how : -1;
}

/* Whether others send this signal: the user, the batch system, or the system when
 * memory is short. */
static bool was_stopped(int how)
{
    if (how == -1 || !WIFSIGNALED(how)) return false;
    const int number = WTERMSIG(how);
    return number == SIGINT || number == SIGTERM || number == SIGHUP ||
           number == SIGQUIT || number == SIGKILL;
}

static tess_status judge(const report *heard, int how, const char *const *paths,
                         int num_paths)
{
    tess_status status = TESS_OK;
    char *what = NULL;
    if (strcmp(heard->line, "done") == 0) return TESS_OK;
    const long number = strtol(heard->line, &what, 10);
    if (what == heard->line || number < 0 || number >= num_paths ||
        (was_stopped(how) && !heard->late)) {
        tess_log_debug("tessera-ms-check has not come to its end");
        return TESS_OK;
    }
    what += *what == ' ';
    if (heard->late)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: reading %s takes more than %d s; is its disk there, or the set "
                  "damaged?",
                  paths[number], what, (int)PATIENCE_S);
    TESS_FAIL(
        TESS_ERR_INPUT,
        "%s: is damaged: casacore crashes when it reads %s (%s); copy the set again",
        paths[number], what,
        how != -1 && WIFSIGNALED(how) ? strsignal(WTERMSIG(how)) : "no signal");
cleanup:
    return status;
}

tess_status vis_ms_check(const char *const *paths, int num_paths,
                         const tess_vis_select *select)
{
    char program[PATH_MAX];
    child process;
    report heard = {.line = ""};
    char column[2 * COLUMN_NAME];
    const char *selects = tess_vis_expresses(&select->by) ? "+" : "";
    for (int k = 0; k < num_paths; ++k) {
        const tess_status status = vis_ms_await(paths[k]);
        if (status != TESS_OK) return status;
    }
    if (select->model_only || select->uvw_only)
        snprintf(column, sizeof column, "%s-", selects);
    else /* the first may be empty: that is one by default */
        snprintf(column, sizeof column, "%s%s%s%s", selects,
                 select->data_column ? select->data_column : "",
                 select->subtract_column ? "," : "",
                 select->subtract_column ? select->subtract_column : "");
    if (!find_program(program) || !start(program, column, paths, num_paths, &process)) {
        tess_log_info("tessera-ms-check cannot be started, so a damaged MeasurementSet "
                      "may end this program without a word");
        return TESS_OK;
    }
    listen_to(&process, &heard);
    return judge(&heard, end_of(&process), paths, num_paths);
}
