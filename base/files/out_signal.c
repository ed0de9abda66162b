/* Lists unfinished files, so that a signal handler can remove them. When a batch
 * system's time limit is reached, files as large as the output would otherwise be left.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "out_name.h"
#include "tess_out_file.h"

/* More files than a run has at a time. Each of 8 polarisations has at most 16 images,
 * previews, corrected images and maps of spectra. */
enum { MAX_FILES = 512, MAX_DEPTH = 8, MAX_PASSES = 100 };
enum { SLOT_FREE, SLOT_FILLED_IN, SLOT_USED };

/* These are static, because the handler has no argument through which it could see
 * them. */
static struct {
    atomic_int state;
    int lock; /* a second descriptor of the locked file, -1: none */
    char path[TESS_OUT_FILE_NAME];
} slots[MAX_FILES];

/* Another descriptor of the file, which keeps its lock when `fd` is closed, as writers
 * do before the file gets its name. A process that may open few files has more need of
 * them. */
static int keep_lock(int fd)
{
    struct rlimit most;
    const int kept = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : -1;
    if (kept < 0) return -1;
    if (getrlimit(RLIMIT_NOFILE, &most) != 0 || (rlim_t)kept < most.rlim_cur / 2)
        return kept;
    close(kept);
    return -1;
}

void out_name_note(const char *path, int fd)
{
    for (int k = 0; k < MAX_FILES; ++k) {
        int expected = SLOT_FREE;
        if (!atomic_compare_exchange_strong(&slots[k].state, &expected, SLOT_FILLED_IN))
            continue;
        snprintf(slots[k].path, sizeof slots[k].path, "%s", path);
        slots[k].lock = keep_lock(fd);
        atomic_store(&slots[k].state, SLOT_USED);
        return;
    }
}

void tess_out_file_note(const char *path)
{
    out_name_note(path, -1);
}

void tess_out_file_forget(const char *path)
{
    for (int k = 0; k < MAX_FILES; ++k)
        if (atomic_load(&slots[k].state) == SLOT_USED &&
            strcmp(slots[k].path, path) == 0) {
            if (slots[k].lock >= 0) close(slots[k].lock);
            atomic_store(&slots[k].state, SLOT_FREE);
            return;
        }
}

bool out_name_is_noted(const char *name)
{
    for (int k = 0; k < MAX_FILES; ++k) {
        if (atomic_load(&slots[k].state) != SLOT_USED) continue;
        const char *slash = strrchr(slots[k].path, '/');
        if (strcmp(slash ? slash + 1 : slots[k].path, name) == 0) return true;
    }
    return false;
}

/* ---- in the handler: system calls only ---- */

static void remove_entry(int folder, const char *name, int depth);

/* Remove the contents of the folder. Returns false if it was empty. */
static bool remove_entries(int folder, int depth)
{
    _Alignas(struct dirent64) char buffer[4096];
    bool found = false;
    ssize_t bytes;
    lseek(folder, 0, SEEK_SET);
    while ((bytes = getdents64(folder, buffer, sizeof buffer)) > 0)
        for (ssize_t at = 0; at < bytes;) {
            const struct dirent64 *entry = (const void *)(buffer + at);
            at += entry->d_reclen;
            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                continue;
            found = true;
            remove_entry(folder, entry->d_name, depth);
        }
    return found;
}

/* Remove a file, or a folder (of a MeasurementSet) with its contents. */
static void remove_entry(int folder, const char *name, int depth)
{
    if (unlinkat(folder, name, 0) == 0 || errno == ENOENT || depth == MAX_DEPTH) return;
    const int inner = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (inner < 0) return;
    /* on some file systems, removing an entry moves others, which are then skipped */
    for (int k = 0; k < MAX_PASSES && remove_entries(inner, depth + 1); ++k)
        continue;
    close(inner);
    unlinkat(folder, name, AT_REMOVEDIR);
}

void out_name_remove(int folder, const char *name)
{
    remove_entry(folder, name, 0);
}

void tess_out_remove_unfinished(void)
{
    for (int k = 0; k < MAX_FILES; ++k)
        if (atomic_load(&slots[k].state) == SLOT_USED)
            remove_entry(AT_FDCWD, slots[k].path, 0);
}

void tess_out_remove_at_end(void)
{
    for (int fd = STDERR_FILENO + 1; fd <= STDERR_FILENO + MAX_DEPTH; ++fd)
        close(fd);
    tess_out_remove_unfinished();
}

/* Removes all listed files. Returns an int, because clone() asks for that. The files
 * that it closes stay open in the process that it is cloned from. */
static int remove_all(void *unused)
{
    (void)unused;
    (void)setsid();
    tess_out_remove_at_end();
    return 0;
}

/* A launcher kills all ranks as soon as one has ended. So ranks that have nothing to
 * remove wait until a rank that is busy, for instance in a long write, has reached its
 * handler. */
static int leave_others_ms;

/* State that says whether a signal ends this process, or waits. */
enum { RUNNING, HELD, STOPPING };
static atomic_int phase;
static atomic_int waiting; /* the last signal that came while signals were held, or 0 */

/* Whether this rank says that SIGUSR1 ends the run. Users of batch systems that send it
 * expect a checkpoint. */
static bool tells_of_user_signal;

static void tell_of_user_signal(void)
{
    static const char line[] = "tessera: warning: SIGUSR1 ends this run, which has no "
                               "checkpoint; its unfinished files are removed\n";
    if (tells_of_user_signal) (void)!write(STDERR_FILENO, line, sizeof line - 1);
}

/* Removing the hundred files of a MeasurementSet takes longer than the second that Open
 * MPI's launcher leaves a rank before it kills its process group. So another process,
 * which has a session of its own, removes them, while this process waits for it or is
 * killed. It shares the memory of this process, which may be too large to be copied in
 * time. */
static void on_signal(int number)
{
    static _Alignas(64) char stack[1 << 18];
    static atomic_flag under_way = ATOMIC_FLAG_INIT; /* a handler has begun */
    bool any = false;
    int before = RUNNING;
    if (!atomic_compare_exchange_strong(&phase, &before, STOPPING) && before == HELD) {
        atomic_store(&waiting, number);
        return;
    }
    if (number == SIGUSR1) tell_of_user_signal();
    for (int k = 0; k < MAX_FILES && !any; ++k)
        any = atomic_load(&slots[k].state) == SLOT_USED;
    if (!any)
        (void)poll(NULL, 0, leave_others_ms);
    else if (!atomic_flag_test_and_set(&under_way) &&
             clone(remove_all, stack + sizeof stack, CLONE_VM | CLONE_VFORK, NULL) < 0)
        (void)remove_all(NULL);
    signal(number, SIG_DFL);
    raise(number); /* delivered when this handler returns, as without it */
}

void tess_out_hold_signals(void)
{
    int before = RUNNING;
    if (!atomic_compare_exchange_strong(&phase, &before, HELD) && before == STOPPING)
        for (;;) /* wait until the handler in the other thread ends this process */
            (void)pause();
}

void tess_out_release_signals(void)
{
    int before = HELD;
    (void)atomic_compare_exchange_strong(&phase, &before, RUNNING);
    const int number = atomic_exchange(&waiting, 0);
    if (number) raise(number);
}

bool tess_out_signal_waits(void)
{
    return atomic_load(&waiting) != 0;
}

/* Writes the line and ends the process. It makes only system calls. */
static void on_file_limit(int number)
{
    static const char line[] =
        "tessera: error: files may not grow as large as MPI needs; "
        "raise the limit (ulimit -f)\n";
    (void)number;
    (void)!write(STDERR_FILENO, line, sizeof line - 1);
    _exit(tess_status_exit(TESS_ERR_RESOURCE));
}

void tess_out_catch_file_limit(void)
{
    signal(SIGXFSZ, on_file_limit);
}

static const struct sigaction *ending(void)
{
    static struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask);
    return &action;
}

void tess_out_catch_signals(bool several)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGXCPU};
    signal(SIGXFSZ, SIG_IGN); /* writing then fails with EFBIG, as on a full disk */
    leave_others_ms = several ? 500 : 0;
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; ++k) {
        struct sigaction before;
        /* a signal that is ignored (nohup), or has another handler, stays so */
        if (sigaction(numbers[k], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(numbers[k], ending(), NULL);
    }
}

void out_signal_catch_user(bool tells)
{
    tells_of_user_signal = tells;
    sigaction(SIGUSR1, ending(), NULL);
}
