/* What ranks do about failures: all ranks agree on the status of a step, and a rank
 * that has failed waits for the others for a limited time only, because the work of the
 * others may take hours. */
#define _GNU_SOURCE
#include "comm_mpi.h"

#include <limits.h>
#include <time.h>

/* A rank that has failed tests its requests at these intervals [s]. */
static const double LOOK_EVERY_S = 1e-3;

/* A rank that wants to end the job first listens to lower ranks for this time [s]. */
static const double LISTEN_S = 0.3;

/* One for all communicators, because a failure in any of them ends the program. */
static struct {
    tess_comm *world; /* NULL: failed ranks wait for ever */
    tess_comm_end *end;
    void *context;
    double patience_s, since;
    tess_status failure;  /* this rank's own, TESS_OK: none */
    bool another_ends_it; /* another failed rank has said so */
} own;

void tess_comm_end_with(tess_comm *comm, double patience_s, tess_comm_end *end,
                        void *context)
{
    own.world = comm_alone(comm) ? NULL : comm;
    own.patience_s = patience_s;
    own.end = end;
    own.context = context;
}

void tess_comm_note(tess_status status)
{
    if (status == TESS_ERR_PEER || status == TESS_ERR_STOPPED) return;
    if (status != TESS_OK && own.failure == TESS_OK) own.since = tess_time_now();
    own.failure = status;
}

/* Whether a rank below this one has said that it ends the job. Local. */
static bool heard_from_below(int rank)
{
    bool heard = false;
    for (int there = 1; there;) {
        MPI_Status from;
        if (MPI_Iprobe(MPI_ANY_SOURCE, TAG_END, own.world->handle, &there, &from) !=
                MPI_SUCCESS ||
            !there)
            break;
        MPI_Recv(NULL, 0, MPI_BYTE, from.MPI_SOURCE, TAG_END, own.world->handle,
                 MPI_STATUS_IGNORE);
        heard |= from.MPI_SOURCE < rank;
    }
    return heard;
}

static void nap(void)
{
    const struct timespec time = {0, (long)(1e9 * LOOK_EVERY_S)};
    nanosleep(&time, NULL);
}

/* Whether this rank ends the job. Ranks that fail for the same reason lose patience at
 * the same time, but only one of them shall print the message. The first rank that
 * announces the end prints it; of ranks that announce it at the same time, the lowest.
 * The announcements need not arrive, because the job ends after them. Local. */
static bool is_for_this_rank(void)
{
    const tess_comm *world = own.world;
    if (heard_from_below(INT_MAX)) return false;
    for (int k = 0; k < world->size; ++k) {
        MPI_Request request;
        if (k != world->rank && MPI_Isend(NULL, 0, MPI_BYTE, k, TAG_END, world->handle,
                                          &request) == MPI_SUCCESS)
            MPI_Request_free(&request);
    }
    for (const double until = tess_time_now() + LISTEN_S; tess_time_now() < until;
         nap())
        if (heard_from_below(world->rank)) return false;
    return true;
}

tess_status comm_wait(MPI_Request *request, int count)
{
    tess_status status = TESS_OK;
    int done = 0;
    watch_enter();
    if (!own.world || own.failure == TESS_OK) {
        TESS_MPI(MPI_Waitall(count, request, MPI_STATUSES_IGNORE));
        goto cleanup;
    }
    for (;; nap()) {
        TESS_MPI(MPI_Testall(count, request, &done, MPI_STATUSES_IGNORE));
        if (done) break;
        if (own.another_ends_it || tess_time_now() - own.since < own.patience_s)
            continue;
        if (is_for_this_rank()) own.end(own.world, own.failure, own.context);
        own.another_ends_it = true;
    }
cleanup:
    watch_leave();
    return status;
}

tess_status tess_comm_agree_on(tess_comm *comm, tess_status status, int64_t *values,
                               int64_t count, tess_op op)
{
    const tess_status mine = status;
    const comm_clock start = comm_clock_start();
    int64_t *failed = &values[count];
    MPI_Request request = MPI_REQUEST_NULL;
    if (comm->size == 1) return mine;
    if (count >= CHUNK)
        TESS_FAIL(TESS_ERR_INTERNAL, "agreement on %lld values", (long long)count);
    tess_comm_note(mine);
    *failed = mine == TESS_OK ? 0 : op == TESS_MIN ? -1 : 1;
    TESS_MPI(MPI_Iallreduce(MPI_IN_PLACE, values, (int)count + 1, MPI_INT64_T,
                            comm_op(op), comm->handle, &request));
    TESS_TRY(comm_wait(&request, 1));
    if (mine == TESS_OK && *failed) status = TESS_ERR_PEER;
cleanup:
    comm_account(start, (count + 1) * (int64_t)sizeof *values);
    return mine != TESS_OK ? mine : status;
}

tess_status tess_comm_agree(tess_comm *comm, tess_status status)
{
    int64_t failed;
    return tess_comm_agree_on(comm, status, &failed, 0, TESS_MAX);
}
