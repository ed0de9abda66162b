/* Writes log lines to stderr and to the log file, shows progress, and measures time. */
#define _GNU_SOURCE
#include "tess_log.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tess_input.h"
#include "tess_mem.h"
#include "tess_omp.h"
#include "tess_text.h"

/* Where lines go. It is state of the process, as stderr is. */
static struct {
    pthread_mutex_t lock;
    int rank;
    tess_log_level level;
    FILE *file;    /* memory, while lines are kept */
    char *path;    /* path of the file for which lines are kept, else NULL */
    int fd;        /* descriptor of that file if it existed already, else −1 */
    char *waiting; /* from open_memstream */
    size_t waiting_bytes;
    double start;
    bool bar_shown; /* whether a progress bar stands on the current line of the terminal
                     */
    double told;    /* time of the last line or bar */
    tess_progress step; /* a copy of the step that has moved last, if that is active */
    bool runs, ticks;   /* whether a run is at work, and whether a thread tells so */
    double run_start;
    tess_log_taker taker; /* of a program that shows lines itself */
} out = {.lock = PTHREAD_MUTEX_INITIALIZER, .level = TESS_LOG_QUIET, .fd = -1};

double tess_time_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double tess_time_own(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage) != 0) return 0;
    return (double)usage.ru_utime.tv_sec + 1e-6 * (double)usage.ru_utime.tv_usec;
}

void tess_log_give(const tess_log_taker *taker)
{
    pthread_mutex_lock(&out.lock);
    out.taker = taker ? *taker : (tess_log_taker){0};
    pthread_mutex_unlock(&out.lock);
}

static tess_log_taker taker_now(void)
{
    pthread_mutex_lock(&out.lock);
    const tess_log_taker taker = out.taker;
    pthread_mutex_unlock(&out.lock);
    return taker;
}

void tess_log_start(int rank, tess_log_level level)
{
    out.rank = rank;
    out.level = level;
    out.start = tess_time_now();
}

/* Whether a file begins as write_line() writes the first line of a run. An empty file
 * counts, too, since it holds nobody's text. */
static bool is_log(int fd)
{
    char text[64] = "";
    int used = 0;
    if (pread(fd, text, sizeof text - 1, 0) == 0) return true;
    sscanf(text, "[%*f s] tessera%n", &used);
    return used > 0;
}

/* Open an existing log, to append to it: a run that is repeated keeps the lines of the
 * last one. `*fd` is −1 if there is no such file. */
static tess_status open_existing(const char *path, bool overwrite, int *fd)
{
    tess_status status = TESS_OK;
    struct stat info;
    int opened = open(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (opened < 0 && errno == ELOOP)
        TESS_FAIL(
            TESS_ERR_IO,
            "%s: is a symbolic link, which a log does not follow; move it away or "
            "choose another name",
            path);
    if (opened < 0 && errno != ENOENT)
        TESS_FAIL(tess_errno_status(errno), "%s: log cannot be written: %s", path,
                  strerror(errno));
    if (opened >= 0 && (fstat(opened, &info) != 0 || !S_ISREG(info.st_mode)))
        TESS_FAIL(TESS_ERR_IO, "%s: is not a regular file; choose another name", path);
    if (opened >= 0 && !overwrite && !is_log(opened))
        TESS_FAIL(TESS_ERR_IO,
                  "%s: is no log of tessera; give --overwrite to append to it, or "
                  "another name",
                  path);
    *fd = opened;
    opened = -1;
cleanup:
    if (opened >= 0) close(opened);
    return status;
}

tess_status tess_log_open(const char *path, bool overwrite)
{
    tess_status status = TESS_OK;
    TESS_TRY(open_existing(path, overwrite, &out.fd));
    out.path = tess_strdup(path);
    out.file = open_memstream(&out.waiting, &out.waiting_bytes);
    if (!out.path || !out.file) TESS_FAIL(TESS_ERR_ALLOC, "%s: log", path);
cleanup:
    if (status != TESS_OK) tess_log_close();
    return status;
}

/* Open the file to which lines go. Returns NULL, with errno, on failure. */
static FILE *open_file(void)
{
    if (out.fd < 0)
        out.fd =
            open(out.path,
                 O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    FILE *file = out.fd >= 0 ? fdopen(out.fd, "a") : NULL;
    if (file) out.fd = -1; /* closing `file` closes it */
    return file;
}

static void drop_waiting(void)
{
    free(out.waiting); /* from open_memstream */
    tess_free(out.path);
    out.waiting = out.path = NULL;
}

tess_status tess_log_keep(void)
{
    tess_status status = TESS_OK;
    pthread_mutex_lock(&out.lock);
    if (!out.path) goto cleanup;
    FILE *file = open_file();
    if (!file)
        TESS_FAIL(tess_errno_status(errno), "%s: log cannot be written: %s", out.path,
                  strerror(errno));
    fclose(out.file);
    out.file = file;
    fputs(out.waiting, file);
    fflush(file);
    drop_waiting();
cleanup:
    pthread_mutex_unlock(&out.lock);
    return status;
}

void tess_log_close(void)
{
    if (out.file) fclose(out.file);
    if (out.fd >= 0) close(out.fd);
    out.file = NULL;
    out.fd = -1;
    drop_waiting();
}

static void clear_bar(void)
{
    if (!out.bar_shown) return;
    fputs("\r\033[K", stderr);
    out.bar_shown = false;
}

/* What stands before lines of a kind. */
static const char *prefix_of(tess_log_kind kind)
{
    return kind == TESS_LOG_OF_WARNING ? "tessera: warning: "
           : kind == TESS_LOG_OF_ERROR ? "tessera: error: "
                                       : NULL;
}

/* Gives a line to the taker, outside of the lock: it may log, too. Returns whether the
 * terminal shows it all the same. */
static bool give_line(tess_log_kind kind, const char *text, bool show)
{
    const tess_log_taker taker = taker_now();
    if (!taker.take) return show;
    taker.take(taker.context, kind, text);
    return show && !prefix_of(kind);
}

__attribute__((format(printf, 3, 0))) static void
write_line(bool show, tess_log_kind kind, const char *format, va_list args)
{
    char text[2048], stamp[48];
    const char *prefix = prefix_of(kind);
    vsnprintf(text, sizeof text, format, args);
    tess_text_clean(text);
    show = give_line(kind, text, show);
    const double elapsed = out.start > 0 ? tess_time_now() - out.start : 0;
    if (out.rank == 0)
        snprintf(stamp, sizeof stamp, "[%8.2f s]", elapsed);
    else
        snprintf(stamp, sizeof stamp, "[%8.2f s rank %d]", elapsed, out.rank);
    pthread_mutex_lock(&out.lock);
    if (show) {
        clear_bar();
        out.told = tess_time_now();
        if (prefix)
            fprintf(stderr, "%s%s\n", prefix, text);
        else
            fprintf(stderr, "%s %s\n", stamp, text);
    }
    if (out.file) {
        fprintf(out.file, "%s %s%s\n", stamp, prefix ? prefix : "", text);
        fflush(out.file);
    }
    pthread_mutex_unlock(&out.lock);
}

void tess_log_info(const char *format, ...)
{
    if (out.rank != 0) return;
    va_list args;
    va_start(args, format);
    write_line(out.level >= TESS_LOG_INFO, TESS_LOG_OF_INFO, format, args);
    va_end(args);
}

void tess_log_detail(const char *format, ...)
{
    if (out.rank != 0) return;
    va_list args;
    va_start(args, format);
    write_line(out.level >= TESS_LOG_DEBUG, TESS_LOG_OF_DETAIL, format, args);
    va_end(args);
}

void tess_log_debug(const char *format, ...)
{
    if (out.level < TESS_LOG_DEBUG) return;
    va_list args;
    va_start(args, format);
    write_line(true, TESS_LOG_OF_DEBUG, format, args);
    va_end(args);
}

void tess_log_warn(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(true, TESS_LOG_OF_WARNING, format, args);
    va_end(args);
}

void tess_log_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(true, TESS_LOG_OF_ERROR, format, args);
    va_end(args);
}

/* ---- progress ---- */

/* Shortest time between two states of a bar, and the longest silence of a terminal and
 * of a log [s]. */
static const double BAR_EVERY = 0.2, BAR_SILENCE = 1.0, LOG_SILENCE = 10.0;

/* Write 1234567 as "1.2 M". */
static const char *short_number(double value, char text[16])
{
    static const char *const suffix[] = {"", " k", " M", " G", " T"};
    int k = 0;
    while (value >= 1000 && k < 4) {
        value /= 1000;
        ++k;
    }
    snprintf(text, 16, k ? "%.1f%s" : "%.0f%s", value, suffix[k]);
    return text;
}

static double share_of(const tess_progress *progress)
{
    const double share = progress->share >= 0  ? progress->share
                         : progress->total > 0 ? progress->done / progress->total
                                               : 0;
    return share < 1 ? share : 1;
}

/* Gives a step to the taker of steps, now and then: where it moves, and not more often
 * than a terminal shows it. */
static void give_step(tess_progress *progress, bool ends)
{
    const tess_log_taker taker = taker_now();
    const double now = tess_time_now();
    if (!taker.step || !progress->told_of) return;
    if (!ends && progress->given > 0 && now - progress->given < BAR_EVERY) return;
    progress->given = now;
    taker.step(taker.context, progress->label, progress->done, share_of(progress),
               ends);
}

/* "12.3 Mvis, 1.2 Mvis/s, 12 s left": what a step counts. Where the rest of the work is
 * unknown, its time is, too. */
static void count_text(tess_progress *progress, double elapsed, char *text, size_t size)
{
    const double rate = elapsed > 0 ? progress->done / elapsed : 0;
    char done[16], speed[16];
    if (!progress->unit) {
        snprintf(text, size, "%.0f s", elapsed);
        return;
    }
    const int length =
        snprintf(text, size, "%s%s, %s%s/s", short_number(progress->done, done),
                 progress->unit, short_number(rate, speed), progress->unit);
    if (progress->share >= 0 || !(progress->total > 0) || !(rate > 0)) return;
    const double left_s = fmax(progress->total - progress->done, 0) / rate;
    progress->left_s = fmin(progress->left_s, left_s);
    snprintf(text + length, size - (size_t)length, ", %.0f s left", progress->left_s);
}

static void show_bar(const tess_progress *progress, const char *count)
{
    enum { WIDTH = 30 };
    char bar[WIDTH + 1];
    const double share = share_of(progress);
    for (int k = 0; k < WIDTH; ++k)
        bar[k] = k < (int)(share * WIDTH) ? '#' : '.';
    bar[WIDTH] = '\0';
    fprintf(stderr, "\r\033[K%-12s [%s] %3.0f%%  %s", progress->label, bar, 100 * share,
            count);
}

/* Shows a step on stderr. The lock is held. */
static void show_progress(tess_progress *progress, double now)
{
    const bool has_share = progress->share >= 0 || progress->total > 0;
    char count[96];
    count_text(progress, now - progress->start, count, sizeof count);
    if (isatty(STDERR_FILENO)) {
        if (has_share)
            show_bar(progress, count);
        else
            fprintf(stderr, "\r\033[K%-12s %s", progress->label, count);
        out.bar_shown = true;
    } else if (has_share)
        fprintf(stderr, "[%8.2f s] %s %.0f%% (%s)\n", now - out.start, progress->label,
                100 * share_of(progress), count);
    else
        fprintf(stderr, "[%8.2f s] %s (%s)\n", now - out.start, progress->label, count);
    fflush(stderr);
    out.told = progress->shown = now;
}

/* Several short steps are as silent as a long one: what counts is the last output of
 * any. The lock is held. */
static void move(tess_progress *progress)
{
    const double now = tess_time_now();
    const double interval = isatty(STDERR_FILENO) ? BAR_EVERY : LOG_SILENCE;
    if (!progress->active) return;
    if (out.step.active && out.step.owner == progress)
        progress->left_s = fmin(progress->left_s, out.step.left_s);
    if (now - out.told >= interval) show_progress(progress, now);
    out.step = *progress;
    out.step.owner = progress;
}

void tess_progress_start(tess_progress *progress, const char *label, const char *unit,
                         double total)
{
    *progress = (tess_progress){
        .label = label, .unit = unit, .total = total, .share = -1, .left_s = INFINITY};
    progress->start = progress->shown = tess_time_now();
    /* of works that go on side by side, none shows its progress */
    progress->active =
        out.rank == 0 && out.level >= TESS_LOG_INFO && !tess_omp_beside();
    progress->told_of = out.rank == 0 && !tess_omp_beside();
    pthread_mutex_lock(&out.lock);
    move(progress);
    pthread_mutex_unlock(&out.lock);
    give_step(progress, false);
}

void tess_progress_add(tess_progress *progress, double count)
{
    pthread_mutex_lock(&out.lock);
    progress->done += count;
    move(progress);
    pthread_mutex_unlock(&out.lock);
    give_step(progress, false);
}

void tess_progress_reach(tess_progress *progress, double done, double share)
{
    pthread_mutex_lock(&out.lock);
    progress->done = done;
    progress->share = fmax(progress->share, share);
    move(progress);
    pthread_mutex_unlock(&out.lock);
    give_step(progress, false);
}

void tess_progress_finish(tess_progress *progress)
{
    give_step(progress, true);
    progress->told_of = false;
    pthread_mutex_lock(&out.lock);
    if (progress->active) out.step.active = false;
    clear_bar();
    progress->active = false;
    pthread_mutex_unlock(&out.lock);
}

/* Shows the step at work if that has been silent for too long. The lock is held. */
static void tell_silence(void)
{
    const double now = tess_time_now();
    tess_progress none = {.label = "working", .share = -1, .start = out.run_start};
    if (!out.runs ||
        now - out.told < (isatty(STDERR_FILENO) ? BAR_SILENCE : LOG_SILENCE))
        return;
    show_progress(out.step.active ? &out.step : &none, now);
}

/* The thread that tells of silent work. It ends with the process. */
static void *tick(void *unused)
{
    const struct timespec second = {.tv_sec = 1};
    (void)unused;
    for (;;) {
        nanosleep(&second, NULL);
        pthread_mutex_lock(&out.lock);
        tell_silence();
        pthread_mutex_unlock(&out.lock);
    }
    return NULL;
}

/* Without a thread only steps that move are told of. Signals are for others. */
static bool start_ticking(void)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return false;
    const bool started = pthread_create(&thread, NULL, tick, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started && pthread_detach(thread) == 0;
}

void tess_progress_run(bool begins)
{
    if (out.rank != 0 || out.level < TESS_LOG_INFO) return;
    pthread_mutex_lock(&out.lock);
    clear_bar();
    out.runs = begins;
    out.step.active = false;
    out.run_start = out.told = tess_time_now();
    const bool starts = begins && !out.ticks;
    out.ticks = out.ticks || begins;
    pthread_mutex_unlock(&out.lock);
    if (starts) out.ticks = start_ticking();
}
