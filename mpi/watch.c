/* Judges from beats whether the job is stalled, and ends it (tess_watch.h). A rank is
 * lost when it is not heard any more. Its loss matters only when another rank has been
 * inside one call of MPI for long: so neither a network that fails for a short time,
 * nor one that carries beats worse than messages, ends a job that gets on. */
#define _GNU_SOURCE
#include "watch.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#include "tess_log.h"
#include "tess_out_file.h"
#include "tess_watch.h"

/* When the run has been told to stop, a rank is lost after this many times the time
 * after which it probably is not there any more. */
static const double HURRY = 3;

/* If all ranks are heard and all of them wait inside MPI, a message may be under way
 * for long, or the network of the messages is down. This factor of the time limit
 * decides. */
static const double ALL_WAIT = 3;

/* A rank that has to leave gives a lower rank this time to say why [s]. */
static const double LISTEN_S = 3;

enum { STACK_BYTES = 1 << 18 };

/* State of the process, like MPI's own: a signal handler has nothing else through which
 * it could reach the watch. */
static struct {
    watch_beats *beats; /* NULL: nothing is watched */
    int rank, size;
    pthread_t thread;
    tess_watch_say *say;
    tess_watch_leave *leave;
    void *context;
    atomic_bool stopping, hurry, saved;
    _Atomic double timeout_s;
    char folder[TESS_OUT_FILE_NAME]; /* written before `saved` is set */
} own = {.timeout_s = TESS_WATCH_DEFAULT_S};

/* ---- judging ---- */

/* Time since a rank was heard [s]; negative if it never was. */
static double age_s(int rank)
{
    const double heard_s = watch_beats_of(own.beats, rank)->heard_s;
    return heard_s < 0 ? -1 : watch_beats_now(own.beats) - heard_s;
}

/* Time for which a rank may wait for one that is lost [s]; 0: for ever. Beats of many
 * ranks travel for longer than the shortest time that a user may choose. */
static double limit_s(void)
{
    const double fresh_s = watch_beats_fresh_s(own.beats), quick_s = HURRY * fresh_s;
    double limit = atomic_load(&own.timeout_s);
    if (atomic_load(&own.hurry) || tess_out_signal_waits())
        limit = limit > 0 ? fmin(limit, quick_s) : quick_s;
    return limit > 0 ? fmax(limit, fresh_s) : 0;
}

/* Whether this rank has waited for too long [s] for ranks that are lost, or that all
 * wait, too. */
static bool is_stalled(double waits_s)
{
    const double limit = limit_s();
    bool all_wait = waits_s > ALL_WAIT * limit;
    if (limit <= 0 || waits_s <= limit) return false;
    for (int k = 0; k < own.size; ++k) {
        if (k == own.rank) continue;
        if (age_s(k) > limit) return true;
        all_wait = all_wait && age_s(k) >= 0 &&
                   age_s(k) < watch_beats_fresh_s(own.beats) &&
                   watch_beats_of(own.beats, k)->waits_s > ALL_WAIT * limit;
    }
    return all_wait;
}

/* ---- ending ---- */

/* Whether no rank below this one is there to speak. */
static bool is_first_alive(void)
{
    for (int k = 0; k < own.rank; ++k)
        if (age_s(k) >= 0 && age_s(k) < watch_beats_fresh_s(own.beats)) return false;
    return true;
}

/* Writes who does not answer. */
static void describe(char *text, size_t size)
{
    int lost = 0, first = -1;
    for (int k = 0; k < own.size; ++k) {
        if (k == own.rank || age_s(k) <= watch_beats_fresh_s(own.beats)) continue;
        if (lost++ == 0) first = k;
    }
    if (lost == 0)
        snprintf(text, size, "all ranks wait for each other inside MPI");
    else if (lost == 1)
        snprintf(text, size, "rank %d on %s has not answered for %.0f s", first,
                 watch_beats_host(own.beats, first), age_s(first));
    else
        snprintf(text, size, "rank %d on %s and %d more have not answered for %.0f s",
                 first, watch_beats_host(own.beats, first), lost - 1, age_s(first));
}

static tess_status record_why(void)
{
    char who[256];
    describe(who, sizeof who);
    tess_error_clear(); /* what failed earlier did not end the run */
    if (atomic_load(&own.saved))
        return tess_error_record(
            TESS_ERR_STOPPED, __FILE__, __LINE__, __func__,
            "%s; the same command with --resume continues from the checkpoint in %s",
            who, own.folder);
    return tess_error_record(TESS_ERR_RESOURCE, __FILE__, __LINE__, __func__,
                             "%s; the run ends (--stall-timeout)", who);
}

static void end_job(double waits_s)
{
    for (double since = 0; since < LISTEN_S && !is_first_alive() &&
                           watch_beats_phase(own.beats) != WATCH_SAID;)
        since += watch_beats_tick(own.beats, waits_s);
    const tess_status why = record_why();
    if (watch_beats_phase(own.beats) != WATCH_SAID) {
        own.say(why, own.rank, own.context);
        watch_beats_announce(own.beats, WATCH_SAID);
    }
    own.leave(why, own.context);
}

static void *watch(void *unused)
{
    unsigned before = 0;
    double waits_s = 0;
    (void)unused;
    while (!atomic_load(&own.stopping)) {
        const double passed_s = watch_beats_tick(own.beats, waits_s);
        const unsigned now = watch_calls();
        waits_s = now % 2 == 1 && now == before ? waits_s + passed_s : 0;
        before = now;
        if (watch_beats_phase(own.beats) == WATCH_RUNS && is_stalled(waits_s))
            watch_beats_announce(own.beats, WATCH_STALL);
        if (watch_beats_phase(own.beats) != WATCH_RUNS) end_job(waits_s);
    }
    return NULL;
}

/* ---- the watch ---- */

/* Starts the thread. No signal handler runs in it, because its stack is small. */
static bool start_thread(void)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = pthread_create(&own.thread, &attributes, watch, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

tess_status tess_watch_start(tess_comm *comm, tess_watch_say *say,
                             tess_watch_leave *leave, void *context)
{
    tess_status status = TESS_OK;
    watch_beats *beats = NULL;
    if (tess_comm_size(comm) == 1) return TESS_OK;
    TESS_TRY(watch_beats_create(comm, &beats));
    own.beats = beats;
    own.rank = tess_comm_rank(comm);
    own.size = tess_comm_size(comm);
    own.say = say;
    own.leave = leave;
    own.context = context;
    atomic_store(&own.stopping, false);
    if (!start_thread()) {
        own.beats = NULL;
        watch_beats_free(beats);
    }
cleanup:
    return status;
}

void tess_watch_stop(void)
{
    if (!own.beats) return;
    atomic_store(&own.stopping, true);
    watch_beats_wake(own.beats);
    pthread_join(own.thread, NULL);
    watch_beats_free(own.beats);
    own.beats = NULL;
}

tess_status tess_watch_timeout(double seconds)
{
    tess_status status = TESS_OK;
    if (seconds != 0 && seconds < TESS_WATCH_LEAST_S)
        TESS_FAIL(TESS_ERR_USAGE, "the least time is %d s", TESS_WATCH_LEAST_S);
    atomic_store(&own.timeout_s, seconds);
cleanup:
    return status;
}

void tess_watch_saved(const char *folder)
{
    if (folder && !atomic_load(&own.saved))
        snprintf(own.folder, sizeof own.folder, "%s", folder);
    atomic_store(&own.saved, folder != NULL);
}

void tess_watch_hurry(void)
{
    atomic_store(&own.hurry, true);
}
