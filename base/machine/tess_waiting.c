/* Watches whether the threads of the process wait for processors, and has them spin
 * shortly while they do. The watcher is a thread that looks every few milliseconds. It
 * stays for a second after a call, since to start and join a thread takes long where
 * processors are shared. */
#define _GNU_SOURCE
#include "tess_waiting.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tess_processors.h"
#include "waiting.h"

/* ---- when processors are shared ---- */

/* Threads that have processors of their own wait for them for .0001 to .004 s in each
 * second and thread, in the system's own work. A thread of this program that writes
 * files beside the threads of a loop makes them wait for .05 to .23 s together. Where
 * one program more runs than there are processors, they wait for .3 to 1 s. */
static const double QUIET_DELAY = .26, QUIET_DELAY_OF_THREAD = .004;

/* Short waiting costs a little on a quiet machine, and spinning costs much on a busy
 * one. So it is tried rarely where it has failed. */
static const double FIRST_HOLD_S = .25, LONGEST_HOLD_S = 4;

/* Delays of some hundredths of a second fluctuate by as much as they are. A mean over
 * this time tells a quiet machine from a shared one [s]. */
static const double MEAN_S = .16;

bool waiting_rule_decide(waiting_rule *rule, double now_s, double delay, int threads)
{
    const double quiet = QUIET_DELAY + QUIET_DELAY_OF_THREAD * threads;
    rule->delay += fmin(1, (now_s - rule->seen_s) / MEAN_S) * (delay - rule->delay);
    rule->seen_s = now_s;
    if (delay >= 0 && rule->delay <= quiet) return now_s < rule->until_s;
    if (now_s >= rule->until_s) {
        const bool soon = now_s < rule->until_s + rule->hold_s; /* spinning failed */
        rule->hold_s = soon ? fmin(2 * rule->hold_s, LONGEST_HOLD_S) : FIRST_HOLD_S;
    }
    rule->until_s = now_s + rule->hold_s;
    return true;
}

void waiting_rule_suspect(waiting_rule *rule, double now_s, bool is_full)
{
    if (!is_full || now_s < rule->until_s) return;
    rule->hold_s = FIRST_HOLD_S;
    rule->until_s = now_s + FIRST_HOLD_S;
}

/* ---- how long threads have waited for processors ---- */

static double seconds_of(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Adds the time that one thread has waited. False: the system does not tell. */
static bool add_delay(const char *thread, double *sum_s)
{
    char path[300];
    double ran_ns, waited_ns;
    snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", thread);
    FILE *file = fopen(path, "r");
    if (!file) return false;
    const bool found = fscanf(file, "%lf %lf", &ran_ns, &waited_ns) == 2;
    fclose(file);
    if (found) *sum_s += 1e-9 * waited_ns;
    return found;
}

/* The sum over the threads of this process, which are counted [s]. Threads that have
 * ended meanwhile are left out. Negative: the system does not tell. */
static double delay_so_far(int *threads)
{
    double sum_s = 0;
    *threads = 0;
    DIR *folder = opendir("/proc/self/task");
    if (!folder) return -1;
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (*entry->d_name != '.' && add_delay(entry->d_name, &sum_s)) ++*threads;
    closedir(folder);
    return *threads > 0 ? sum_s : -1;
}

/* Whether so many threads more than now would be more than the processors of the host,
 * at this moment. It is told at once, and the delays are known after a while. */
static bool host_is_full(int threads)
{
    enum { own = 2 }; /* the watcher, and the thread that started it */
    double load[3];
    int running = 0;
    FILE *file = fopen("/proc/loadavg", "r");
    if (!file) return false;
    const int found =
        fscanf(file, "%lf %lf %lf %d", &load[0], &load[1], &load[2], &running);
    fclose(file);
    return found == 4 && running - own + threads > sysconf(_SC_NPROCESSORS_ONLN);
}

/* ---- the watcher ---- */

static const double FIRST_PERIOD_S = .01, LONGEST_PERIOD_S = .04;

/* The watcher stays for the next call for so long. */
static const double LINGER_S = 1;

/* The runtime of OpenMP is one for all of the process, and so is this. */
static struct {
    pthread_once_t once;
    pthread_mutex_t lock;
    int users, num_threads;
    bool is_watched, is_short;
    waiting_rule rule; /* the watcher's own */
} watch = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

/* A forked process has no watcher. */
static void begin_child(void)
{
    pthread_mutex_init(&watch.lock, NULL);
    watch.is_watched = watch.is_short = false;
}

static void prepare_for_forks(void)
{
    pthread_atfork(NULL, NULL, begin_child);
}

static void *keep_watch(void *first);

/* Signals are for the program's own threads. */
static bool start_watcher(bool first)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started =
        pthread_create(&thread, &attributes, keep_watch, first ? &watch : NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

static void sleep_for(double seconds)
{
    const struct timespec time = {(time_t)seconds, (long)(1e9 * fmod(seconds, 1))};
    nanosleep(&time, NULL);
}

static int count_users(void)
{
    pthread_mutex_lock(&watch.lock);
    const int users = watch.users;
    pthread_mutex_unlock(&watch.lock);
    return users;
}

/* Whether there is somebody to watch for. */
static bool stays(void)
{
    for (double s = 0; s < LINGER_S; s += LONGEST_PERIOD_S) {
        if (count_users() > 0) return true;
        sleep_for(LONGEST_PERIOD_S);
    }
    pthread_mutex_lock(&watch.lock);
    const bool is_needed = watch.users > 0;
    if (!is_needed) watch.is_watched = watch.is_short = false;
    pthread_mutex_unlock(&watch.lock);
    return is_needed;
}

static void note(bool is_short)
{
    pthread_mutex_lock(&watch.lock);
    watch.is_short = is_short;
    pthread_mutex_unlock(&watch.lock);
}

/* Whether processors are shared, after a while. */
static bool decide_after(double seconds)
{
    int threads;
    const double then_s = seconds_of(CLOCK_MONOTONIC),
                 before_s = delay_so_far(&threads);
    sleep_for(seconds);
    const double now_s = seconds_of(CLOCK_MONOTONIC), after_s = delay_so_far(&threads);
    double delay = fmax(after_s - before_s, 0) / fmax(now_s - then_s, 1e-3);
    if (after_s < 0) delay = -1;
    return waiting_rule_decide(&watch.rule, now_s, delay, threads);
}

/* The watcher is the thread that gathers the crowd. The crowd is gone when the watcher
 * ends, and another one goes on then. */
static void *keep_watch(void *first)
{
    const double now_s = seconds_of(CLOCK_MONOTONIC);
    double period_s = FIRST_PERIOD_S;
    bool is_crowded = false;
    pthread_setname_np(pthread_self(), "tess-waiting"); /* in `top -H` */
    if (first)
        waiting_rule_suspect(&watch.rule, now_s, host_is_full(watch.num_threads));
    bool is_short = now_s < watch.rule.until_s;
    do {
        if (is_short && !is_crowded) is_crowded = waiting_crowd_gather();
        note(is_crowded);
        if (!is_short && is_crowded && start_watcher(false)) break;
        is_short = decide_after(period_s);
        period_s = fmin(2 * period_s, LONGEST_PERIOD_S);
    } while (stays());
    return NULL;
}

#ifdef _OPENMP
static const bool has_openmp = true;
#else
static const bool has_openmp = false; /* then no threads wait in loops */
#endif

/* Whether the user has said how threads wait: to GNU's runtime of OpenMP, or to LLVM's.
 */
static bool user_has_chosen(void)
{
    return getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT") ||
           getenv("KMP_BLOCKTIME") || getenv("KMP_LIBRARY");
}

void tess_waiting_begin(int threads)
{
    if (threads < 1) threads = tess_processors();
    pthread_once(&watch.once, prepare_for_forks);
    pthread_mutex_lock(&watch.lock);
    ++watch.users;
    if (has_openmp && !watch.is_watched && threads > 1 && !user_has_chosen()) {
        watch.num_threads = threads;
        watch.is_watched = start_watcher(true);
    }
    pthread_mutex_unlock(&watch.lock);
}

void tess_waiting_end(void)
{
    pthread_mutex_lock(&watch.lock);
    --watch.users;
    pthread_mutex_unlock(&watch.lock);
}

bool tess_waiting_is_short(void)
{
    pthread_mutex_lock(&watch.lock);
    const bool is_short = watch.is_short;
    pthread_mutex_unlock(&watch.lock);
    return is_short;
}
