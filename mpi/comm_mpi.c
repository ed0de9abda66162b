/* The communicator over MPI. Every call is checked, in Release too; the communicator
 * returns errors instead of aborting. */
#define _GNU_SOURCE
#include "comm_mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tess_profile.h"

/* Ranks on this rank's node, of the largest communicator that was not split from
 * another one; for tests, of all nodes. */
static int ranks_here = 1;

/* Environment variable for tests of what depends on nodes: its value is the number of
 * neighbouring ranks that count as one node. */
static const char *const NODE_RANKS = "TESS_NODE_RANKS";

/* Numbers the nodes from 0, given the number that each rank has for its node. */
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

/* Finds the node of each rank, given a number for the node of this rank. Collective. */
static tess_status find_nodes(int own_node, tess_comm *comm)
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

/* `own_node` is a number for this rank's node, which differs from those of other nodes.
 */
static tess_status wrap(MPI_Comm handle, int own_node, tess_comm **comm)
{
    tess_status status = TESS_OK;
    tess_comm *made = tess_alloc_zero(1, sizeof *made);
    if (!made) TESS_FAIL(TESS_ERR_ALLOC, "communicator");
    made->handle = handle;
    made->inside = made->across = MPI_COMM_NULL;
    TESS_MPI(MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN));
    TESS_MPI(MPI_Comm_rank(handle, &made->rank));
    TESS_MPI(MPI_Comm_size(handle, &made->size));
    TESS_TRY(find_nodes(own_node, made));
    *comm = made;
    made = NULL;
cleanup:
    if (made) tess_free(made->node);
    tess_free(made);
    return status;
}

static void note_ranks_here(int ranks)
{
    if (ranks > ranks_here) ranks_here = ranks;
}

/* The lowest rank of a communicator on this rank's node. Collective. */
static tess_status find_own_node(MPI_Comm handle, int *own_node)
{
    tess_status status = TESS_OK;
    MPI_Comm node = MPI_COMM_NULL;
    const char *forced = getenv(NODE_RANKS);
    const int per_node = forced ? atoi(forced) : 0;
    int ranks = 1;
    TESS_MPI(MPI_Comm_rank(handle, own_node));
    if (per_node > 0) {
        *own_node -= *own_node % per_node;
        TESS_MPI(MPI_Comm_size(handle, &ranks));
    } else {
        TESS_MPI(MPI_Comm_split_type(handle, MPI_COMM_TYPE_SHARED, *own_node,
                                     MPI_INFO_NULL, &node));
        TESS_MPI(MPI_Bcast(own_node, 1, MPI_INT, 0, node));
        TESS_MPI(MPI_Comm_size(node, &ranks));
    }
    note_ranks_here(ranks);
cleanup:
    if (node != MPI_COMM_NULL) MPI_Comm_free(&node);
    return status;
}

int comm_ranks_here(void)
{
    return ranks_here;
}

/* Whether a launcher has started this process: each tells its ranks who they are by the
 * environment (Open MPI 4 and 5, MPICH and Intel MPI, Slurm, Cray's PALS and ALPS,
 * MVAPICH2, Flux, IBM's JSM). Users set OMPI_MCA_... and PMIX_MCA_..., which tell
 * nothing of that. */
static bool launched(void)
{
    static const char *const prefix[] = {
        "OMPI_COMM_", "PMIX_RANK", "PMI_",      "PMI2_",      "SLURM_PROCID",
        "PALS_",      "ALPS_",     "MV2_COMM_", "FLUX_TASK_", "JSM_"};
    for (char **variable = environ; *variable; ++variable)
        for (size_t k = 0; k < sizeof prefix / sizeof *prefix; ++k)
            if (strncmp(*variable, prefix[k], strlen(prefix[k])) == 0) return true;
    return false;
}

tess_status tess_comm_start(int *argc, char ***argv, tess_comm **comm)
{
    tess_status status = TESS_OK;
    int provided = MPI_THREAD_SINGLE, own_node;
    MPI_Comm world = MPI_COMM_NULL;
    if (!launched()) return tess_comm_self(comm);
    TESS_MPI(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided));
    if (provided < MPI_THREAD_FUNNELED)
        TESS_FAIL(TESS_ERR_RESOURCE, "this MPI library does not support threads");
    TESS_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &world));
    TESS_TRY(find_own_node(world, &own_node));
    TESS_TRY(wrap(world, own_node, comm));
    TESS_TRY(tess_comm_split(*comm, 0, (*comm)->rank, &(*comm)->last));
cleanup:
    return status;
}

/* Whether MPI runs, and lets threads that do not call it run beside the one that does.
 */
static tess_status check_runs(void)
{
    tess_status status = TESS_OK;
    int started = 0, ended = 0, provided = MPI_THREAD_SINGLE;
    TESS_MPI(MPI_Initialized(&started));
    TESS_MPI(MPI_Finalized(&ended));
    if (!started || ended)
        TESS_FAIL(TESS_ERR_RESOURCE, "MPI is not running; call MPI_Init_thread()");
    TESS_MPI(MPI_Query_thread(&provided));
    if (provided < MPI_THREAD_FUNNELED)
        TESS_FAIL(TESS_ERR_RESOURCE, "MPI runs without threads; call MPI_Init_thread() "
                                     "with MPI_THREAD_FUNNELED");
cleanup:
    return status;
}

tess_status tess_comm_of(int64_t fortran_handle, tess_comm **comm)
{
    tess_status status = TESS_OK;
    int own_node;
    MPI_Comm handle = MPI_COMM_NULL;
    TESS_TRY(check_runs());
    const MPI_Comm given = MPI_Comm_f2c((MPI_Fint)fortran_handle);
    if (given == MPI_COMM_NULL)
        TESS_FAIL(TESS_ERR_USAGE, "there is no such communicator");
    TESS_MPI(MPI_Comm_dup(given, &handle));
    TESS_TRY(find_own_node(handle, &own_node));
    TESS_TRY(wrap(handle, own_node, comm));
    handle = MPI_COMM_NULL;
cleanup:
    if (handle != MPI_COMM_NULL) MPI_Comm_free(&handle);
    return status;
}

/* Some libraries add further text to their name and version, behind a comma or in
 * further lines. */
void tess_comm_library(char *text, size_t size)
{
    char all[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    if (MPI_Get_library_version(all, &length) != MPI_SUCCESS) all[0] = '\0';
    all[strcspn(all, ",\r\n")] = '\0';
    for (char *c = all; *c; ++c)
        if (*c == '\t') *c = ' ';
    snprintf(text, size, "%s", *all ? all : "unknown");
}

void tess_comm_finish(tess_comm *comm)
{
    int started = 0;
    tess_comm_free(comm);
    MPI_Initialized(&started);
    watch_enter();
    if (started) MPI_Finalize();
    watch_leave();
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

bool comm_alone(const tess_comm *comm)
{
    return comm->handle == MPI_COMM_NULL;
}

tess_status tess_comm_split(tess_comm *comm, int color, int key, tess_comm **part)
{
    tess_status status = TESS_OK;
    MPI_Comm handle = MPI_COMM_NULL;
    if (comm_alone(comm)) return tess_comm_self(part);
    TESS_MPI(MPI_Comm_split(comm->handle, color, key, &handle));
    TESS_TRY(wrap(handle, comm->node[comm->rank], part));
cleanup:
    return status;
}

tess_status tess_comm_node(tess_comm *comm, tess_comm **node)
{
    tess_status status = TESS_OK;
    MPI_Comm handle = MPI_COMM_NULL;
    if (comm_alone(comm)) return tess_comm_self(node);
    TESS_MPI(MPI_Comm_split(comm->handle, comm->node[comm->rank], comm->rank, &handle));
    TESS_TRY(wrap(handle, comm->node[comm->rank], node));
cleanup:
    return status;
}

void tess_comm_free(tess_comm *comm)
{
    if (!comm) return;
    tess_comm_free(comm->last);
    watch_enter();
    if (comm->inside != MPI_COMM_NULL) MPI_Comm_free(&comm->inside);
    if (comm->across != MPI_COMM_NULL) MPI_Comm_free(&comm->across);
    if (!comm_alone(comm)) MPI_Comm_free(&comm->handle);
    watch_leave();
    tess_free(comm->node);
    tess_free(comm);
}

tess_comm *tess_comm_last(tess_comm *comm)
{
    return comm->last ? comm->last : comm;
}

int tess_comm_rank(const tess_comm *comm)
{
    return comm->rank;
}

int tess_comm_size(const tess_comm *comm)
{
    return comm->size;
}

comm_clock comm_clock_start(void)
{
    return (comm_clock){tess_time_now(), tess_spent_so_far().seconds};
}

void comm_account(comm_clock start, int64_t bytes)
{
    const double inside_s = tess_spent_so_far().seconds - start.spent_s;
    const double passed_s = tess_time_now() - start.time_s;
    tess_spent_add(&(tess_spent){.bytes_sent = bytes, .seconds = passed_s - inside_s});
}

void comm_account_between(const tess_comm *comm, int to, int64_t bytes)
{
    if (comm->node && comm->node[to] != comm->node[comm->rank])
        tess_spent_add(&(tess_spent){.bytes_between = bytes});
}

tess_status tess_comm_barrier(tess_comm *comm)
{
    tess_status status = TESS_OK;
    const comm_clock start = comm_clock_start();
    if (comm->size > 1) TESS_MPI(MPI_Barrier(comm->handle));
cleanup:
    comm_account(start, 0);
    return status;
}

tess_status tess_comm_bcast(tess_comm *comm, void *data, int64_t bytes, int root)
{
    tess_status status = TESS_OK;
    const comm_clock start = comm_clock_start();
    for (int64_t at = 0; comm->size > 1 && at < bytes; at += CHUNK) {
        const int count = (int)(bytes - at < CHUNK ? bytes - at : CHUNK);
        TESS_MPI(MPI_Bcast((char *)data + at, count, MPI_BYTE, root, comm->handle));
    }
cleanup:
    comm_account(start, comm->rank == root && comm->size > 1 ? bytes : 0);
    return status;
}

MPI_Op comm_op(tess_op op)
{
    return op == TESS_SUM ? MPI_SUM : op == TESS_MIN ? MPI_MIN : MPI_MAX;
}

static tess_status allreduce(tess_comm *comm, void *values, int64_t count, size_t size,
                             MPI_Datatype type, tess_op op)
{
    tess_status status = TESS_OK;
    const comm_clock start = comm_clock_start();
    for (int64_t at = 0; comm->size > 1 && at < count; at += CHUNK) {
        const int part = (int)(count - at < CHUNK ? count - at : CHUNK);
        TESS_MPI(MPI_Allreduce(MPI_IN_PLACE, (char *)values + (size_t)at * size, part,
                               type, comm_op(op), comm->handle));
    }
cleanup:
    comm_account(start, comm->size > 1 ? count * (int64_t)size : 0);
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
    const comm_clock start = comm_clock_start();
    for (int64_t at = 0; comm->size > 1 && at < count; at += CHUNK) {
        const int part = (int)(count - at < CHUNK ? count - at : CHUNK);
        TESS_MPI(MPI_Exscan(MPI_IN_PLACE, values + at, part, MPI_INT64_T, MPI_SUM,
                            comm->handle));
    }
    if (comm->rank == 0) /* MPI leaves it undefined there */
        memset(values, 0, (size_t)count * sizeof *values);
cleanup:
    comm_account(start, comm->size > 1 ? count * (int64_t)sizeof *values : 0);
    return status;
}

tess_status tess_comm_allgather(tess_comm *comm, const void *send, int64_t bytes,
                                void *recv)
{
    tess_status status = TESS_OK;
    const comm_clock start = comm_clock_start();
    if (bytes > CHUNK)
        TESS_FAIL(TESS_ERR_INTERNAL, "allgather of %lld bytes", (long long)bytes);
    if (comm->size == 1)
        memcpy(recv, send, (size_t)bytes);
    else
        TESS_MPI(MPI_Allgather(send, (int)bytes, MPI_BYTE, recv, (int)bytes, MPI_BYTE,
                               comm->handle));
cleanup:
    comm_account(start, comm->size > 1 ? bytes : 0);
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

tess_status comm_split_by_nodes(tess_comm *comm)
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
