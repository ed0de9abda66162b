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
#include "tess_mem.h"
#include "tess_out_file.h"

enum { SLOTS = 128, MAX_DEPTH = 8, MAX_PASSES = 100 };
enum { SLOT_FREE, SLOT_FILLED_IN, SLOT_USED };

typedef struct slot {
    atomic_int state;
    int lock; /* a second descriptor of the locked file, -1: none */
    char path[TESS_OUT_FILE_NAME];
} slot;

/* A run may have any number of files at a time: columns of many facets have some dozens
 * each. So lists follow one another, and stay until the process ends, because the
 * handler may see them at any time. */
typedef struct slot_list {
    slot slot[SLOTS];
    struct slot_list *_Atomic next;
} slot_list;

/* It is static, because the handler has no argument through which it could see it. */
static slot_list slots;

/* The list behind another one; NULL: there is none. */
static slot_list *after(slot_list *list)
{
    return atomic_load(&list->next);
}

/* The list behind another one, which is made if there is none; NULL: no memory. */
static slot_list *make_after(slot_list *list)
{
    slot_list *made = after(list), *none = NULL;
    if (made) return made;
    made = tess_alloc_zero(1, sizeof *made);
    if (!made || atomic_compare_exchange_strong(&list->next, &none, made)) return made;
    tess_free(made); /* another thread has made it */
    return none;
}

/* A slot that is used, of this path unless it is NULL; NULL: there is none. */
static slot *find_used(const char *path)
{
    for (slot_list *list = &slots; list; list = after(list))
        for (int k = 0; k < SLOTS; ++k)
            if (atomic_load(&list->slot[k].state) == SLOT_USED &&
                (!path || strcmp(list->slot[k].path, path) == 0))
                return &list->slot[k];
    return NULL;
}

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
    for (slot_list *list = &slots; list; list = make_after(list))
        for (int k = 0; k < SLOTS; ++k) {
            slot *to = &list->slot[k];
            int expected = SLOT_FREE;
            if (!atomic_compare_exchange_strong(&to->state, &expected, SLOT_FILLED_IN))
                continue;
            snprintf(to->path, sizeof to->path, "%s", path);
            to->lock = keep_lock(fd);
            atomic_store(&to->state, SLOT_USED);
            return;
        }
}

void tess_out_file_note(const char *path)
{
    out_name_note(path, -1);
}

void tess_out_file_forget(const char *path)
{
    slot *found = find_used(path);
    if (!found) return;
    if (found->lock >= 0) close(found->lock);
    atomic_store(&found->state, SLOT_FREE);
}

bool out_name_is_noted(const char *name)
{
    for (slot_list *list = &slots; list; list = after(list))
        for (int k = 0; k < SLOTS; ++k) {
            if (atomic_load(&list->slot[k].state) != SLOT_USED) continue;
            const char *slash = strrchr(list->slot[k].path, '/');
            if (strcmp(slash ? slash + 1 : list->slot[k].path, name) == 0) return true;
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
    for (slot_list *list = &slots; list; list = after(list))
        for (int k = 0; k < SLOTS; ++k)
            if (atomic_load(&list->slot[k].state) == SLOT_USED)
                remove_entry(AT_FDCWD, list->slot[k].path, 0);
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
    int before = RUNNING;
    if (!atomic_compare_exchange_strong(&phase, &before, STOPPING) && before == HELD) {
        atomic_store(&waiting, number);
        return;
    }
    if (number == SIGUSR1) tell_of_user_signal();
    if (!find_used(NULL))
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
