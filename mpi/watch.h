/** @file watch.h  (private to mpi/)
 *  How ranks know of each other that they live, without MPI.
 */
#ifndef TESS_WATCH_PRIVATE_H
#define TESS_WATCH_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"
#include "tess_status.h"

/** Note that this thread begins, or ends, a call of MPI in which it may wait for other
 * ranks. Such pairs may be nested. Local. */
void watch_enter(void);
void watch_leave(void);

/** Number of calls that have begun plus number of those that have ended: it is odd
 * inside a call, and another one in each call. Local. */
unsigned watch_calls(void);

/** What the ranks of a job tell each other beside how they are; later values replace
 * earlier ones. */
typedef enum watch_phase {
    WATCH_RUNS,  /**< no rank has noticed anything */
    WATCH_STALL, /**< the job is to end */
    WATCH_SAID   /**< the job is to end, and a rank has said why */
} watch_phase;

/** What a rank knows of another rank, or of itself. */
typedef struct watch_rank {
    double heard_s; /**< when it lived, on the clock of watch_beats_tick(); −1: it has
                         never been heard */
    double waits_s; /**< how long it had been inside one call of MPI then */
} watch_rank;

typedef struct watch_beats watch_beats;

/** Open a socket, and tell all ranks its address. Without a socket, the other ranks
 * never hear this rank. Collective. */
tess_status watch_beats_create(tess_comm *comm, watch_beats **beats);
void watch_beats_free(watch_beats *beats); /**< NULL is fine. Local. */

/** Receive what comes until the next beat is due, and send it. `waits_s` tells how long
 * this rank has been inside one call of MPI. Returns the time since the last tick [s],
 * without the time in which this process was stopped. Local. */
double watch_beats_tick(watch_beats *beats, double waits_s);

/** Let the next watch_beats_tick(), or the one that is under way, return at once. May
 * be called by another thread. Local. */
void watch_beats_wake(watch_beats *beats);

/** The time of the last tick [s]. Local. */
double watch_beats_now(const watch_beats *beats);

/** What has been heard of a rank. Local. */
const watch_rank *watch_beats_of(const watch_beats *beats, int rank);

/** Name of the host of a rank. Local. */
const char *watch_beats_host(const watch_beats *beats, int rank);

/** The latest phase that this rank has heard of. Local. */
watch_phase watch_beats_phase(const watch_beats *beats);

/** Tell all ranks of a phase. Local. */
void watch_beats_announce(watch_beats *beats, watch_phase phase);

/** The rate of beats: a rank whose last beats are older than this [s] is probably not
 * there any more. Local. */
double watch_beats_fresh_s(const watch_beats *beats);

#endif
