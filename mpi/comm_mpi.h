/** @file comm_mpi.h  (private to mpi/comm_*.c over MPI)
 *  What their communicators are made of.
 */
#ifndef TESS_COMM_MPI_H
#define TESS_COMM_MPI_H

#include <mpi.h>

#include "tess_comm.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "watch.h"

/* Largest message, or count of elements, that is handed to MPI at a time, because MPI's
 * counts are int. */
enum { CHUNK = 1 << 29 };

enum { TAG_ALLTOALL = 17, TAG_END };

struct tess_comm {
    MPI_Comm handle;
    int rank, size;
    int *node; /* [size] of each rank, from 0 in order of rank; NULL: all on one */
    int num_nodes;
    int per_node; /* ranks on every node, 0: on some more than on others */
    /* made when first needed: ranks of this node, and those of equal rank in theirs */
    MPI_Comm inside, across;
    tess_comm *last; /* of the world: see tess_comm_last */
};

#define TESS_MPI(call)                                                                 \
    do {                                                                               \
        watch_enter();                                                                 \
        const int mpi_code_ = (call);                                                  \
        watch_leave();                                                                 \
        if (mpi_code_ != MPI_SUCCESS) {                                                \
            char mpi_text_[MPI_MAX_ERROR_STRING] = "";                                 \
            int mpi_length_ = 0;                                                       \
            MPI_Error_string(mpi_code_, mpi_text_, &mpi_length_);                      \
            TESS_FAIL(TESS_ERR_INTERNAL, "MPI: %s", mpi_text_);                        \
        }                                                                              \
    } while (0)

/** A communicator of one rank that MPI knows nothing of. Local. */
bool comm_alone(const tess_comm *comm);

/** Ranks of the program on this rank's node that share memory through this library, or
 *  more. Local. */
int comm_ranks_here(void);

/** MPI's name of an operation. Local. */
MPI_Op comm_op(tess_op op);

/** Make comm->inside and comm->across. Collective. */
tess_status comm_split_by_nodes(tess_comm *comm);

/** Make what was written to the window before this call visible to ranks that read it
 * after the call; NULL is fine. Local. */
tess_status comm_window_sync(const tess_window *window);

/** Wait for requests; a rank that has failed (tess_comm_note) ends the job instead when
 *  its patience is over. */
tess_status comm_wait(MPI_Request *request, int count);

/** When a call began, and what had been spent by then [s]. */
typedef struct comm_clock {
    double time_s, spent_s;
} comm_clock;

/** The clock of a call that begins now. Local. */
comm_clock comm_clock_start(void);

/** Add bytes sent and the time since `start` to what is spent (tess_profile.h). Calls
 * inside this one have added their own time, which does not count twice. Local. */
void comm_account(comm_clock start, int64_t bytes);

/** Note bytes that go to this rank of the communicator, if it is on another node.
 *  Local. */
void comm_account_between(const tess_comm *comm, int to, int64_t bytes);

#endif
