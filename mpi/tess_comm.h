/** @file tess_comm.h
 *  Communicator, agreement on failures, and the few collectives tessera uses. The only
 *  users of <mpi.h> are this folder's sources; with TESS_MPI=OFF comm_serial.c stands
 *  in and every communicator has one rank.
 *
 *  Counts are int64_t; one routine splits messages beyond INT_MAX. Every function says
 *  whether it is Collective or Local.
 */
#ifndef TESS_COMM_H
#define TESS_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tess_comm tess_comm;

typedef enum tess_op { TESS_SUM, TESS_MIN, TESS_MAX } tess_op;

/** Start MPI (thread level FUNNELED or better) and duplicate the world; without a
 *  launcher this is tess_comm_self, which costs nothing. Collective. */
tess_status tess_comm_start(int *argc, char ***argv, tess_comm **comm);

/** Which MPI library this is, "Open MPI v4.1.4"; "none" without MPI. Before or after
 *  tess_comm_start. Local. */
void tess_comm_library(char *text, size_t size);

/** End MPI. Collective; `comm` may be NULL after a failed start. */
void tess_comm_finish(tess_comm *comm);

/** End the whole job at once with this exit status; for main.c alone, which does so
 * when tess_comm_end_with asks for it. Local. */
void tess_comm_abort(tess_comm *comm, int exit_status);

/** Says why and ends the job on all ranks; does not return. */
typedef void tess_comm_end(tess_comm *comm, tess_status status, void *context);

/** Limit how long a failed rank waits for the others. A rank has failed when it passed
 *  a status other than TESS_ERR_PEER and TESS_ERR_STOPPED to tess_comm_agree or
 *  tess_comm_note. When a failed rank has waited for `patience_s`, it calls `end`; of
 *  several such ranks, one calls it. Without this call, failed ranks wait until all
 *  others have come. For main.c; `comm` is the world's. Local. */
void tess_comm_end_with(tess_comm *comm, double patience_s, tess_comm_end *end,
                        void *context);

/** A communicator of one rank that needs no MPI (library use, tests). Local. */
tess_status tess_comm_self(tess_comm **comm);

/** The ranks of a communicator of the calling program, given as MPI_Comm_c2f() returns
 *  it: a duplicate. TESS_ERR_RESOURCE where MPI does not run, runs without threads
 *  (MPI_THREAD_FUNNELED), or is not built in; TESS_ERR_USAGE for MPI_COMM_NULL.
 * Collective. Free with tess_comm_free while MPI runs. */
tess_status tess_comm_of(int64_t fortran_handle, tess_comm **comm);

/** Ranks of equal `color`, ordered by `key`. Collective. Free with tess_comm_free. */
tess_status tess_comm_split(tess_comm *comm, int color, int key, tess_comm **part);

/** Ranks that share this rank's node; for tests, TESS_NODE_RANKS=N in the environment
 *  makes N neighbouring ranks of the world a node. Collective. */
tess_status tess_comm_node(tess_comm *comm, tess_comm **node);

/** Free a communicator of split, node or self; NULL is fine. Collective. */
void tess_comm_free(tess_comm *comm);

int tess_comm_rank(const tess_comm *comm); /**< Local. */
int tess_comm_size(const tess_comm *comm); /**< Local. */

/** Agree on the outcome of fallible local work before the next collective: returns
 *  TESS_OK when all ranks pass TESS_OK; a failed rank gets its own status back and the
 *  others TESS_ERR_PEER. Collective. */
tess_status tess_comm_agree(tess_comm *comm, tess_status status);

/** As tess_comm_agree, and with the same message an in-place reduction to all ranks of
 *  `count` values. `values` has room for one more, which this call uses. A rank with a
 *  bad `status` may leave the values undefined, because no rank uses them then. For
 *  small vectors. Collective. */
tess_status tess_comm_agree_on(tess_comm *comm, tess_status status, int64_t *values,
                               int64_t count, tess_op op);

/** Note that this rank has failed with `status`. It goes on to take part in the
 *  collective calls of the others until the next tess_comm_agree. Local. */
void tess_comm_note(tess_status status);

/** A duplicate of the communicator of tess_comm_start, for the calls at the end of the
 *  program alone: they cannot be confused with the calls of ranks that do not yet know
 *  of a failure. Any other communicator is returned itself. Local. */
tess_comm *tess_comm_last(tess_comm *comm);

/** For the end of the program: returns the lowest rank whose failure is its own (not
 *  TESS_ERR_PEER), or -1 when no rank failed. Every rank gets the exit status of that
 *  rank. Collective, over tess_comm_last. */
int tess_comm_blame(tess_comm *comm, tess_status status, int *exit_status);

tess_status tess_comm_barrier(tess_comm *comm); /**< Collective. */

/** Send `bytes` bytes from `root` to all ranks. Collective. */
tess_status tess_comm_bcast(tess_comm *comm, void *data, int64_t bytes, int root);

/** In-place reduction to all ranks. Small vectors only, never grids. Collective. */
tess_status tess_comm_allreduce_f64(tess_comm *comm, double *values, int64_t count,
                                    tess_op op);
tess_status tess_comm_allreduce_i64(tess_comm *comm, int64_t *values, int64_t count,
                                    tess_op op);

/** values[k] := sum over lower ranks of their values[k] (0 on rank 0). Collective. */
tess_status tess_comm_exscan_i64(tess_comm *comm, int64_t *values, int64_t count);

/** Send `bytes` bytes of every rank (the same number on all) to all ranks, which get
 *  them in rank order. Collective. */
tess_status tess_comm_allgather(tess_comm *comm, const void *send, int64_t bytes,
                                void *recv);

/** Send the bytes of every rank (any number) to all ranks. `recv` is allocated with
 * tess_alloc and owned by the caller; `recv_bytes[size]` is filled by this call.
 * Collective. */
tess_status tess_comm_allgatherv(tess_comm *comm, const void *send, int64_t bytes,
                                 void **recv, int64_t *recv_bytes);

/** Send the bytes of every rank (any number) to `root`, which gets them in rank order;
 *  on other ranks `*recv` is NULL. Collective. */
tess_status tess_comm_gatherv(tess_comm *comm, const void *send, int64_t bytes,
                              int root, void **recv, int64_t *recv_bytes);

/** Personalised exchange: the bytes for rank k start at send + sum(send_bytes[0..k-1]).
 *  `*recv` is allocated (tess_alloc, caller frees), in source-rank order, its counts
 *  in recv_bytes[size]. Collective. */
tess_status tess_comm_alltoallv(tess_comm *comm, const void *send,
                                const int64_t *send_bytes, void **recv,
                                int64_t *recv_bytes);

/** Memory of each rank that the other ranks of its node can read. */
typedef struct tess_window tess_window;

/** Make a window with `bytes` bytes for each rank, the same number on all. Where the
 *  ranks of a node cannot share memory, each rank gets memory of its own, and
 *  tess_window_of() returns NULL for the others. Collective. */
tess_status tess_window_create(tess_comm *comm, int64_t bytes, tess_window **window);
void tess_window_free(tess_window *window); /**< NULL is fine. Collective. */

void *tess_window_own(const tess_window *window); /**< This rank's part. Local. */

/** The part of another rank, which this rank must only read; NULL when it cannot read
 *  it. Local. */
void *tess_window_of(const tess_window *window, int rank);

/** Wait for all ranks, and agree on `status`. Afterwards, readers of a part see what
 * its rank wrote before this call; `bytes` counts the bytes of this rank's part that
 * they read. Collective. */
tess_status tess_window_meet(const tess_window *window, tess_status status,
                             int64_t bytes);

/** A personalised exchange whose messages are on their way. The same flight may be used
 *  for one exchange after another. */
typedef struct tess_flight tess_flight;

/** Take the memory of a flight, so that its start cannot fail for lack of memory.
 *  Local. */
tess_status tess_flight_create(tess_comm *comm, tess_flight **flight);
/** NULL is fine. Collective for a flight that was started and not finished, else
 *  Local. */
void tess_flight_free(tess_flight *flight);

/** Begin a personalised exchange: send_bytes[k] bytes at send + send_at[k] go to rank k
 *  (send_at NULL: one after the other); recv_bytes[size] is filled when the flight is
 *  settled. The caller must not change the arrays and the sent bytes before the finish.
 *
 *  `status` is what this rank has come to. If it is bad on any rank, nothing is sent:
 *  the flight fails on all ranks when it is settled, as tess_comm_agree would. A rank
 *  with a bad `status` may leave the arrays undefined.
 *
 *  With a `window` (NULL: none), ranks of this node read the bytes that lie in it in
 *  place. The caller must then keep these bytes until all ranks have finished the
 *  flight. This is so once a later flight is settled here that they start only after
 *  the finish.
 *
 *  Several flights may be on their way if all ranks start, settle and finish them in
 *  the same order. The call does not wait. Collective. */
tess_status tess_flight_start(tess_flight *flight, tess_status status,
                              const tess_window *window, const void *send,
                              const int64_t *send_at, const int64_t *send_bytes,
                              int64_t *recv_bytes);

/** Wait until all ranks have started the flight, and send what has to be sent as
 *  messages. Fails on all ranks if one has no room for those it gets. Collective. */
tess_status tess_flight_settle(tess_flight *flight);

/** Give the MPI library a chance to move messages that it moves only inside its calls.
 *  NULL is fine. Local. */
void tess_flight_progress(tess_flight *flight);

/** Wait for the flight, whether it is settled or not. part[k] then points to the
 *  recv_bytes[k] bytes from rank k, which stay until the finish. Collective. */
tess_status tess_flight_wait(tess_flight *flight, void **part);

/** Wait for the flight, and end it; does nothing if none was started. `*recv` is
 *  allocated (tess_alloc, caller frees), in source-rank order. When `recv` is NULL, the
 *  bytes that arrive are dropped; with a window it must be NULL. Every started flight
 *  has to be finished, after failures too. Collective. */
tess_status tess_flight_finish(tess_flight *flight, void **recv);

/** Sum values[sum(counts)] over ranks. Rank k keeps its counts[k] sums in `out`.
 *  `is_double` chooses double or float elements. On nodes with equally many
 *  ranks, sums are formed inside each node first, a slice at a time in memory that its
 *  ranks share, so that each value leaves a node once. Collective. */
tess_status tess_comm_reduce_scatter(tess_comm *comm, const void *values, void *out,
                                     const int64_t *counts, bool is_double);

#ifdef __cplusplus
}
#endif
#endif
