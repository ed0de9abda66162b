/* The communicator over MPI. Every call is checked, in Release too; the communicator
 * returns errors instead of aborting. */
#define _GNU_SOURCE
#include "tess_comm.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tess_log.h"
#include "tess_mem.h"

/* One message or one element count handed to MPI at most; MPI counts are int. */
enum { CHUNK = 1 << 29 };

enum { TAG_ALLTOALL = 17 };

struct tess_comm {
    MPI_Comm handle;
    int rank, size;
    int *node; /* [size] of each rank, from 0 in order of rank; NULL: all on one */
    int num_nodes;
    int per_node; /* ranks on every node, 0: on some more than on others */
    /* made when first needed: ranks of this node, and those of equal rank in theirs */
    MPI_Comm inside, across;
};

/* Over all communicators: parts of the world talk for the same program. */
static struct {
    int64_t bytes_sent, bytes_between;
    double seconds;
} spent;

/* The lowest rank of the world on this rank's node; 0 before there is a world. */
static int own_node;

/* Ranks on a node for tests of what depends on it: so many neighbours are one. */
static const char *const NODE_RANKS = "TESS_NODE_RANKS";

#define TESS_MPI(call)                                                                 \
    do {                                                                               \
        const int mpi_code_ = (call);                                                  \
        if (mpi_code_ != MPI_SUCCESS) {                                                \
            char mpi_text_[MPI_MAX_ERROR_STRING] = "";                                 \
            int mpi_length_ = 0;                                                       \
            MPI_Error_string(mpi_code_, mpi_text_, &mpi_length_);                      \
            TESS_FAIL(TESS_ERR_INTERNAL, "MPI: %s", mpi_text_);                        \
        }                                                                              \
    } while (0)

/* Number nodes from 0, given each rank's own number for its node. */
static void number_nodes(tess_comm *comm)
{
    int *node = comm->node;
    for (int k = 0; k < comm->size; ++k) {
        int first = 0; /* the first rank of the same node */
        while (node[comm->size + first] != node[comm->size + k])
            ++first;
        node[k] = first < k ? node[first] : comm->num_nodes++;
    }
    comm->per_node = comm->size / comm->num_nodes;
    for (int n = 0; n < comm->num_nodes; ++n) {
        int count = 0;
        for (int k = 0; k < comm->size; ++k)
            count += node[k] == n;
        if (count != comm->size / comm->num_nodes) comm->per_node = 0;
    }
}

/* Who is on which node. Collective. */
static tess_status find_nodes(tess_comm *comm)
{
    tess_status status = TESS_OK;
    comm->node = tess_alloc_zero(2 * (int64_t)comm->size, sizeof *comm->node);
    if (!comm->node) TESS_FAIL(TESS_ERR_ALLOC, "nodes of %d ranks", comm->size);
    TESS_MPI(MPI_Allgather(&own_node, 1, MPI_INT, comm->node + comm->size, 1, MPI_INT,
                           comm->handle));
    number_nodes(comm);
cleanup:
    return status;
}

static tess_status wrap(MPI_Comm handle, tess_comm **comm)
{
    tess_status status = TESS_OK;
    tess_comm *made = tess_alloc_zero(1, sizeof *made);
    if (!made) TESS_FAIL(TESS_ERR_ALLOC, "communicator");
    made->handle = handle;
    made->inside = made->across = MPI_COMM_NULL;
    TESS_MPI(MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN));
    TESS_MPI(MPI_Comm_rank(handle, &made->rank));
    TESS_MPI(MPI_Comm_size(handle, &made->size));
    TESS_TRY(find_nodes(made));
    *comm = made;
    made = NULL;
cleanup:
    if (made) tess_free(made->node);
    tess_free(made);
    return status;
}

/* Learn which node this rank is on. Collective. */
static tess_status find_own_node(MPI_Comm world)
{
    tess_status status = TESS_OK;
    MPI_Comm node = MPI_COMM_NULL;
    const char *forced = getenv(NODE_RANKS);
    const int ranks = forced ? atoi(forced) : 0;
    TESS_MPI(MPI_Comm_rank(world, &own_node));
    if (ranks > 0) {
        own_node -= own_node % ranks;
        return TESS_OK;
    }
    TESS_MPI(MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, own_node, MPI_INFO_NULL,
                                 &node));
    TESS_MPI(MPI_Bcast(&own_node, 1, MPI_INT, 0, node));
cleanup:
    if (node != MPI_COMM_NULL) MPI_Comm_free(&node);
    return status;
}

/* Whether a launcher has started this process: each tells its ranks who they are by the
 * environment (Open MPI 4 and 5, MPICH and Intel MPI, Slurm, Cray's PALS and ALPS,
 * MVAPICH2, Flux, IBM's JSM). */
static bool launched(void)
{
    static const char *const prefix[] = {"OMPI_COMM_",   "PMIX_", "PMI_",  "PMI2_",
                                         "SLURM_PROCID", "PALS_", "ALPS_", "MV2_COMM_",
                                         "FLUX_TASK_",   "JSM_"};
    for (char **variable = environ; *variable; ++variable)
        for (size_t k = 0; k < sizeof prefix / sizeof *prefix; ++k)
            if (strncmp(*variable, prefix[k], strlen(prefix[k])) == 0) return true;
    return false;
}

tess_status tess_comm_start(int *argc, char ***argv, tess_comm **comm)
{
    tess_status status = TESS_OK;
    int provided = MPI_THREAD_SINGLE;
    MPI_Comm world = MPI_COMM_NULL;
    if (!launched()) return tess_comm_self(comm);
    TESS_MPI(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided));
    if (provided < MPI_THREAD_FUNNELED)
        TESS_FAIL(TESS_ERR_RESOURCE, "this MPI library does not support threads");
    TESS_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &world));
    TESS_TRY(find_own_node(world));
    TESS_TRY(wrap(world, comm));
cleanup:
    return status;
}

void tess_comm_finish(tess_comm *comm)
{
    int started = 0;
    tess_comm_free(comm);
    MPI_Initialized(&started);
    if (started) MPI_Finalize();
}

void tess_comm_abort(tess_comm *comm, int exit_status)
{
    int started = 0;
    MPI_Initialized(&started);
    if (!started) exit(exit_status);
    MPI_Abort(comm ? comm->handle : MPI_COMM_WORLD, exit_status);
}

tess_status tess_comm_self(tess_comm **comm)
{
    tess_status status = TESS_OK;
    tess_comm *made = tess_alloc_zero(1, sizeof *made);
    if (!made) TESS_FAIL(TESS_ERR_ALLOC, "communicator");
    made->handle = MPI_COMM_NULL; /* works without MPI_Init: one rank moves nothing */
    made->inside = made->across = MPI_COMM_NULL;
    made->size = made->num_nodes = made->per_node = 1;
    *comm = made;
cleanup:
    return status;
}

static bool alone(const tess_comm *comm)
{
    return comm->handle == MPI_COMM_NULL;
}

tess_status tess_comm_split(tess_comm *comm, int color, int key, tess_comm **part)
{
    tess_status status = TESS_OK;
    MPI_Comm handle = MPI_COMM_NULL;
    if (alone(comm)) return tess_comm_self(part);
    TESS_MPI(MPI_Comm_split(comm->handle, color, key, &handle));
    TESS_TRY(wrap(handle, part));
cleanup:
    return status;
}

tess_status tess_comm_node(tess_comm *comm, tess_comm **node)
{
    tess_status status = TESS_OK;
    MPI_Comm handle = MPI_COMM_NULL;
    if (alone(comm)) return tess_comm_self(node);
    TESS_MPI(MPI_Comm_split(comm->handle, comm->node[comm->rank], comm->rank, &handle));
    TESS_TRY(wrap(handle, node));
cleanup:
    return status;
}

void tess_comm_free(tess_comm *comm)
{
    if (!comm) return;
    if (comm->inside != MPI_COMM_NULL) MPI_Comm_free(&comm->inside);
    if (comm->across != MPI_COMM_NULL) MPI_Comm_free(&comm->across);
    if (!alone(comm)) MPI_Comm_free(&comm->handle);
    tess_free(comm->node);
    tess_free(comm);
}

int tess_comm_rank(const tess_comm *comm)
{
    return comm->rank;
}

int tess_comm_size(const tess_comm *comm)
{
    return comm->size;
}

static void account(double start, int64_t bytes)
{
    spent.seconds += tess_time_now() - start;
    spent.bytes_sent += bytes;
}

void tess_comm_stats(int64_t *bytes_sent, double *seconds)
{
    *bytes_sent = spent.bytes_sent;
    *seconds = spent.seconds;
}

int64_t tess_comm_bytes_between_nodes(void)
{
    return spent.bytes_between;
}

/* Bytes that go to this rank of the communicator. */
static void account_between(const tess_comm *comm, int to, int64_t bytes)
{
    if (comm->node && comm->node[to] != comm->node[comm->rank])
        spent.bytes_between += bytes;
}

tess_status tess_comm_barrier(tess_comm *comm)
{
    tess_status status = TESS_OK;
    const double start = tess_time_now();
    if (!alone(comm)) TESS_MPI(MPI_Barrier(comm->handle));
cleanup:
    account(start, 0);
    return status;
}

tess_status tess_comm_bcast(tess_comm *comm, void *data, int64_t bytes, int root)
{
    tess_status status = TESS_OK;
    const double start = tess_time_now();
    for (int64_t at = 0; !alone(comm) && at < bytes; at += CHUNK) {
        const int count = (int)(bytes - at < CHUNK ? bytes - at : CHUNK);
        TESS_MPI(MPI_Bcast((char *)data + at, count, MPI_BYTE, root, comm->handle));
    }
cleanup:
    account(start, comm->rank == root && comm->size > 1 ? bytes : 0);
    return status;
}

static MPI_Op mpi_op(tess_op op)
{
    return op == TESS_SUM ? MPI_SUM : op == TESS_MIN ? MPI_MIN : MPI_MAX;
}

static tess_status allreduce(tess_comm *comm, void *values, int64_t count, size_t size,
                             MPI_Datatype type, tess_op op)
{
    tess_status status = TESS_OK;
    const double start = tess_time_now();
    for (int64_t at = 0; !alone(comm) && at < count; at += CHUNK) {
        const int part = (int)(count - at < CHUNK ? count - at : CHUNK);
        TESS_MPI(MPI_Allreduce(MPI_IN_PLACE, (char *)values + (size_t)at * size, part,
                               type, mpi_op(op), comm->handle));
    }
cleanup:
    account(start, comm->size > 1 ? count * (int64_t)size : 0);
    return status;
}

tess_status tess_comm_allreduce_f64(tess_comm *comm, double *values, int64_t count,
                                    tess_op op)
{
    return allreduce(comm, values, count, sizeof *values, MPI_DOUBLE, op);
}

tess_status tess_comm_allreduce_i64(tess_comm *comm, int64_t *values, int64_t count,
                                    tess_op op)
{
    return allreduce(comm, values, count, sizeof *values, MPI_INT64_T, op);
}

tess_status tess_comm_exscan_i64(tess_comm *comm, int64_t *values, int64_t count)
{
    tess_status status = TESS_OK;
    const double start = tess_time_now();
    for (int64_t at = 0; !alone(comm) && at < count; at += CHUNK) {
        const int part = (int)(count - at < CHUNK ? count - at : CHUNK);
        TESS_MPI(MPI_Exscan(MPI_IN_PLACE, values + at, part, MPI_INT64_T, MPI_SUM,
                            comm->handle));
    }
    if (comm->rank == 0) /* MPI leaves it undefined there */
        memset(values, 0, (size_t)count * sizeof *values);
cleanup:
    account(start, comm->size > 1 ? count * (int64_t)sizeof *values : 0);
    return status;
}

tess_status tess_comm_allgather(tess_comm *comm, const void *send, int64_t bytes,
                                void *recv)
{
    tess_status status = TESS_OK;
    const double start = tess_time_now();
    if (bytes > CHUNK)
        TESS_FAIL(TESS_ERR_INTERNAL, "allgather of %lld bytes", (long long)bytes);
    if (alone(comm))
        memcpy(recv, send, (size_t)bytes);
    else
        TESS_MPI(MPI_Allgather(send, (int)bytes, MPI_BYTE, recv, (int)bytes, MPI_BYTE,
                               comm->handle));
cleanup:
    account(start, comm->size > 1 ? bytes : 0);
    return status;
}

/* Pieces of at most CHUNK bytes between this rank and one peer. */
static int64_t pieces(int64_t bytes)
{
    return (bytes + CHUNK - 1) / CHUNK;
}

static int piece_bytes(int64_t bytes, int64_t k)
{
    const int64_t rest = bytes - k * CHUNK;
    return (int)(rest < CHUNK ? rest : CHUNK);
}

static tess_status exchange_counts(tess_comm *comm, const int64_t *send_bytes,
                                   int64_t *recv_bytes)
{
    tess_status status = TESS_OK;
    if (alone(comm))
        recv_bytes[0] = send_bytes[0];
    else
        TESS_MPI(MPI_Alltoall(send_bytes, 1, MPI_INT64_T, recv_bytes, 1, MPI_INT64_T,
                              comm->handle));
cleanup:
    return status;
}

struct tess_flight {
    tess_comm *comm;
    char *recv;
    MPI_Request *request; /* of all messages, both ways */
    int num_requests;
};

/* Point-to-point with every peer, all in flight at once; own part by memcpy. */
static tess_status post_messages(tess_flight *flight, const char *send,
                                 const int64_t *send_at, const int64_t *send_bytes,
                                 const int64_t *recv_bytes)
{
    tess_status status = TESS_OK;
    tess_comm *comm = flight->comm;
    char *recv = flight->recv;
    int64_t at = 0, own_at = 0;
    for (int k = 0; k < comm->rank; ++k)
        own_at += send_bytes[k];
    if (send_at) own_at = send_at[comm->rank];
    for (int k = 0; k < comm->size; ++k) {
        for (int64_t j = 0; k != comm->rank && j < pieces(recv_bytes[k]); ++j)
            TESS_MPI(MPI_Irecv(recv + j * CHUNK, piece_bytes(recv_bytes[k], j),
                               MPI_BYTE, k, TAG_ALLTOALL, comm->handle,
                               &flight->request[flight->num_requests++]));
        if (k == comm->rank && recv_bytes[k] > 0)
            memcpy(recv, send + own_at, (size_t)recv_bytes[k]);
        recv += recv_bytes[k];
    }
    for (int k = 0; k < comm->size; ++k) {
        const char *from = send + (send_at ? send_at[k] : at);
        for (int64_t j = 0; k != comm->rank && j < pieces(send_bytes[k]); ++j)
            TESS_MPI(MPI_Isend(from + j * CHUNK, piece_bytes(send_bytes[k], j),
                               MPI_BYTE, k, TAG_ALLTOALL, comm->handle,
                               &flight->request[flight->num_requests++]));
        at += send_bytes[k];
    }
cleanup:
    return status;
}

static void flight_free(tess_flight *flight)
{
    if (!flight) return;
    tess_free(flight->recv);
    tess_free(flight->request);
    tess_free(flight);
}

tess_status tess_flight_start(tess_comm *comm, const void *send, const int64_t *send_at,
                              const int64_t *send_bytes, int64_t *recv_bytes,
                              tess_flight **flight_out)
{
    tess_status status = TESS_OK;
    const double start = tess_time_now();
    int64_t bytes = 0, sent = 0, messages = 0;
    tess_flight *flight = NULL;
    TESS_TRY(exchange_counts(comm, send_bytes, recv_bytes));
    for (int k = 0; k < comm->size; ++k) {
        bytes += recv_bytes[k];
        if (k == comm->rank) continue;
        sent += send_bytes[k];
        account_between(comm, k, send_bytes[k]);
        messages += pieces(send_bytes[k]) + pieces(recv_bytes[k]);
    }
    flight = tess_alloc_zero(1, sizeof *flight);
    if (flight) {
        flight->comm = comm;
        flight->recv = tess_alloc(bytes, 1);
        flight->request = tess_alloc(messages, sizeof *flight->request);
    }
    if (!flight || !flight->recv || !flight->request)
        status =
            tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                              "no memory to receive %s", tess_mem_text((double)bytes));
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(post_messages(flight, send, send_at, send_bytes, recv_bytes));
    *flight_out = flight;
    flight = NULL;
cleanup:
    flight_free(flight);
    account(start, sent);
    return status;
}

void tess_flight_progress(tess_flight *flight)
{
    int done;
    if (!flight || flight->num_requests == 0) return;
    const double start = tess_time_now();
    /* a failure shows when the flight is finished */
    MPI_Testall(flight->num_requests, flight->request, &done, MPI_STATUSES_IGNORE);
    account(start, 0);
}

tess_status tess_flight_finish(tess_flight **flight_in, void **recv)
{
    tess_status status = TESS_OK;
    const double start = tess_time_now();
    tess_flight *flight = *flight_in;
    if (!flight) return TESS_OK;
    *flight_in = NULL;
    if (flight->num_requests > 0)
        TESS_MPI(
            MPI_Waitall(flight->num_requests, flight->request, MPI_STATUSES_IGNORE));
    if (recv) {
        *recv = flight->recv;
        flight->recv = NULL;
    }
cleanup:
    account(start, 0);
    flight_free(flight);
    return status;
}

/* ---- sums over ranks ---- */

/* Σ over the ranks of `handle` of `count` elements, to `root`, where `to` gets them;
 * messages of at most CHUNK. Collective. */
static tess_status reduce(MPI_Comm handle, const void *from, void *to, int64_t count,
                          bool is_double, int root)
{
    tess_status status = TESS_OK;
    const int64_t size = is_double ? sizeof(double) : sizeof(float);
    for (int64_t at = 0; at < count; at += CHUNK) {
        const int part = (int)(count - at < CHUNK ? count - at : CHUNK);
        TESS_MPI(MPI_Reduce((const char *)from + at * size,
                            to ? (char *)to + at * size : NULL, part,
                            is_double ? MPI_DOUBLE : MPI_FLOAT, MPI_SUM, root, handle));
    }
cleanup:
    return status;
}

static tess_status scatter_flat(tess_comm *comm, const char *values, void *out,
                                const int64_t *counts, bool is_double, int64_t *sent)
{
    tess_status status = TESS_OK;
    const int64_t size = is_double ? sizeof(double) : sizeof(float);
    for (int k = 0; k < comm->size; ++k) {
        TESS_TRY(reduce(comm->handle, values, k == comm->rank ? out : NULL, counts[k],
                        is_double, k));
        values += counts[k] * size;
        if (k == comm->rank) continue;
        *sent += counts[k] * size;
        account_between(comm, k, counts[k] * size);
    }
cleanup:
    return status;
}

/* Number of a rank among those of its node. */
static int rank_in_node(const tess_comm *comm, int rank)
{
    int before = 0;
    for (int k = 0; k < rank; ++k)
        before += comm->node[k] == comm->node[rank];
    return before;
}

static tess_status split_by_nodes(tess_comm *comm)
{
    tess_status status = TESS_OK;
    if (comm->inside != MPI_COMM_NULL) return TESS_OK;
    TESS_MPI(MPI_Comm_split(comm->handle, comm->node[comm->rank], comm->rank,
                            &comm->inside));
    TESS_MPI(MPI_Comm_split(comm->handle, rank_in_node(comm, comm->rank),
                            comm->node[comm->rank], &comm->across));
    MPI_Comm_set_errhandler(comm->inside, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(comm->across, MPI_ERRORS_RETURN);
cleanup:
    return status;
}

/* What goes to rank k is summed inside each node by the rank whose number in its node
 * is that of k in its own; these send to k: once a node instead of once a rank. */
static tess_status scatter_by_nodes(tess_comm *comm, const char *values, void *out,
                                    const int64_t *counts, bool is_double,
                                    int64_t *sent)
{
    tess_status status = TESS_OK;
    const int64_t size = is_double ? sizeof(double) : sizeof(float);
    const int place = rank_in_node(comm, comm->rank), node = comm->node[comm->rank];
    int64_t most = 0;
    void *sum = NULL;
    TESS_TRY(split_by_nodes(comm));
    for (int k = 0; k < comm->size; ++k)
        if (counts[k] > most) most = counts[k];
    sum = tess_alloc(most, (size_t)size);
    TESS_TRY(tess_comm_agree(comm, sum ? TESS_OK : TESS_ERR_ALLOC));
    for (int k = 0; k < comm->size; ++k) {
        const int leader = rank_in_node(comm, k), to = comm->node[k];
        const int64_t bytes = counts[k] * size;
        TESS_TRY(reduce(comm->inside, values, sum, counts[k], is_double, leader));
        if (place == leader)
            TESS_TRY(reduce(comm->across, sum, k == comm->rank ? out : NULL, counts[k],
                            is_double, to));
        values += bytes;
        if (place != leader || to != node) *sent += bytes;
        if (place == leader) account_between(comm, k, bytes);
    }
cleanup:
    tess_free(sum);
    return status;
}

tess_status tess_comm_reduce_scatter(tess_comm *comm, const void *values, void *out,
                                     const int64_t *counts, bool is_double)
{
    tess_status status = TESS_OK;
    const double start = tess_time_now();
    const size_t size = is_double ? sizeof(double) : sizeof(float);
    int64_t sent = 0;
    if (alone(comm))
        memcpy(out, values, (size_t)counts[0] * size);
    else if (comm->num_nodes > 1 && comm->per_node > 1)
        TESS_TRY(scatter_by_nodes(comm, values, out, counts, is_double, &sent));
    else
        TESS_TRY(scatter_flat(comm, values, out, counts, is_double, &sent));
cleanup:
    account(start, sent);
    return status;
}
