/* Sums over ranks of which each keeps a share: in memory that the ranks of a node
 * share, by messages between nodes. */
#include "comm_mpi.h"

#include <string.h>

#include "tess_profile.h"
#include "tess_real.h"

/* Shared memory of a rank for slices of what the ranks of its node sum: two sets of
 * them, one of which is written while the other is read. As much as stays in its
 * cache. */
enum { SLICES_BYTES = 1 << 20, SLICE_SETS = 2 };

/* Smallest share for which shared memory is asked for, because that takes a dozen
 * collective calls. */
enum { SHARED_FROM_BYTES = 1 << 20 };

/* The state of a sum. */
typedef struct scatter {
    tess_comm *comm;
    const char *values;
    const int64_t *counts; /* [size] values of each rank's share */
    int64_t *at;           /* [size] its first */
    int *member;           /* [nodes][per_node] the ranks of each node */
    int place;             /* this rank's among those of its node */
    bool is_double;
    int64_t value_bytes;
    tess_window *window; /* NULL: sums inside nodes are the library's */
    int64_t slice;       /* values of each share in a round */
    int set;             /* of slices, to be written next */
    int64_t sent;
} scatter;

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

static int64_t share_bytes(const scatter *job, int rank)
{
    return job->counts[rank] * job->value_bytes;
}

static const char *share_of(const scatter *job, int rank)
{
    return job->values + job->at[rank] * job->value_bytes;
}

/* ---- without regard to nodes ---- */

static tess_status scatter_flat(scatter *job, void *out)
{
    tess_status status = TESS_OK;
    const tess_comm *comm = job->comm;
    for (int k = 0; k < comm->size; ++k) {
        TESS_TRY(reduce(comm->handle, share_of(job, k), k == comm->rank ? out : NULL,
                        job->counts[k], job->is_double, k));
        if (k == comm->rank) continue;
        job->sent += share_bytes(job, k);
        comm_account_between(comm, k, share_bytes(job, k));
    }
cleanup:
    return status;
}

/* ---- inside a node ---- */

/* Bytes of shared memory from its begin to the slice for a place of the node. */
static int64_t slice_at(const scatter *job, int place)
{
    return (job->set * job->comm->per_node + place) * job->slice * job->value_bytes;
}

static int64_t slice_count(const scatter *job, int rank, int64_t first)
{
    const int64_t rest = job->counts[rank] - first;
    return rest < 0 ? 0 : rest < job->slice ? rest : job->slice;
}

/* Leave what this rank adds to the others' shares, from value `first` of each on. */
static void leave_slices(const scatter *job, const int *target, int64_t first)
{
    char *own = tess_window_own(job->window);
    for (int p = 0; p < job->comm->per_node; ++p) {
        if (p == job->place) continue;
        const int64_t count = slice_count(job, target[p], first);
        if (count > 0)
            memcpy(own + slice_at(job, p),
                   share_of(job, target[p]) + first * job->value_bytes,
                   (size_t)(count * job->value_bytes));
    }
}

/* Add up this rank's slices, in order of rank. */
static void add_slices(const scatter *job, const int *target, int64_t first, char *out)
{
    const tess_comm *comm = job->comm;
    const int *member = job->member + comm->node[comm->rank] * comm->per_node;
    const int64_t count = slice_count(job, target[job->place], first);
    if (count == 0) return;
    char *to = out + first * job->value_bytes;
    for (int p = 0; p < comm->per_node; ++p) {
        const char *from = p == job->place
                               ? share_of(job, target[p]) + first * job->value_bytes
                               : (char *)tess_window_of(job->window, member[p]) +
                                     slice_at(job, job->place);
        if (p == 0)
            memcpy(to, from, (size_t)(count * job->value_bytes));
        else
            tess_add_reals(job->is_double, to, from, count);
    }
}

/* Until all ranks of the node have come; what they wrote is then seen. */
static tess_status meet(const scatter *job)
{
    tess_status status = TESS_OK;
    TESS_TRY(comm_window_sync(job->window));
    TESS_MPI(MPI_Barrier(job->comm->inside));
    TESS_TRY(comm_window_sync(job->window));
cleanup:
    return status;
}

/* Sum the shares of the ranks `target` [per_node], each by the rank of this node that
 * has its place. A set of slices is written again when all have met once more, and so
 * have read it. */
static tess_status sum_by_memory(scatter *job, const int *target, void *out)
{
    tess_status status = TESS_OK;
    int64_t most = 0;
    for (int p = 0; p < job->comm->per_node; ++p)
        if (job->counts[target[p]] > most) most = job->counts[target[p]];
    for (int64_t first = 0; first < most; first += job->slice) {
        leave_slices(job, target, first);
        TESS_TRY(meet(job));
        add_slices(job, target, first, out);
        job->set = (job->set + 1) % SLICE_SETS;
    }
cleanup:
    return status;
}

static tess_status sum_inside(scatter *job, const int *target, void *out)
{
    tess_status status = TESS_OK;
    if (job->window) return sum_by_memory(job, target, out);
    for (int p = 0; p < job->comm->per_node; ++p)
        TESS_TRY(reduce(job->comm->inside, share_of(job, target[p]), out,
                        job->counts[target[p]], job->is_double, p));
cleanup:
    return status;
}

/* ---- node by node ---- */

/* Collective. */
static tess_status make_window(scatter *job)
{
    tess_status status = TESS_OK;
    const int per_node = job->comm->per_node;
    tess_window *window = NULL;
    bool worth = false;
    for (int k = 0; k < job->comm->size; ++k)
        worth = worth || share_bytes(job, k) >= SHARED_FROM_BYTES;
    if (!worth) return TESS_OK;
    TESS_TRY(tess_window_create(job->comm, SLICES_BYTES, &window));
    int64_t shared = true;
    const int *member = job->member + job->comm->node[job->comm->rank] * per_node;
    for (int p = 0; p < per_node; ++p)
        shared = shared && tess_window_of(window, member[p]);
    TESS_TRY(tess_comm_allreduce_i64(job->comm, &shared, 1, TESS_MIN));
    if (!shared) goto cleanup;
    job->slice = SLICES_BYTES / (SLICE_SETS * per_node * job->value_bytes);
    job->window = window;
    window = NULL;
cleanup:
    tess_window_free(window);
    return status;
}

/* The ranks of node n get their shares: summed inside each node, then over nodes. */
static tess_status scatter_to_node(scatter *job, int node, void *sum, void *out)
{
    tess_status status = TESS_OK;
    const tess_comm *comm = job->comm;
    const int *target = job->member + node * comm->per_node;
    const int own = target[job->place], here = comm->node[comm->rank];
    TESS_TRY(sum_inside(job, target, comm->num_nodes > 1 ? sum : out));
    for (int p = 0; p < comm->per_node; ++p)
        if (p != job->place) job->sent += share_bytes(job, target[p]);
    if (comm->num_nodes == 1) return TESS_OK;
    TESS_TRY(reduce(comm->across, sum, node == here ? out : NULL, job->counts[own],
                    job->is_double, node));
    if (node == here) return TESS_OK;
    job->sent += share_bytes(job, own);
    comm_account_between(comm, own, share_bytes(job, own));
cleanup:
    return status;
}

static tess_status scatter_by_nodes(scatter *job, void *out)
{
    tess_status status = TESS_OK;
    tess_comm *comm = job->comm;
    int64_t most = 0;
    void *sum = NULL;
    TESS_TRY(comm_split_by_nodes(comm));
    for (int k = 0; k < comm->size; ++k)
        if (job->counts[k] > most) most = job->counts[k];
    if (comm->num_nodes > 1) sum = tess_alloc(most, (size_t)job->value_bytes);
    TESS_TRY(
        tess_comm_agree(comm, sum || comm->num_nodes == 1 ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(make_window(job));
    for (int n = 0; n < comm->num_nodes; ++n)
        TESS_TRY(scatter_to_node(job, n, sum, out));
cleanup:
    tess_window_free(job->window);
    tess_free(sum);
    return status;
}

/* Where shares begin, and who is on which node. Local. */
static tess_status lay_out(scatter *job)
{
    tess_status status = TESS_OK;
    const tess_comm *comm = job->comm;
    job->at = tess_alloc(comm->size, sizeof *job->at);
    job->member = tess_alloc(comm->size, sizeof *job->member);
    int *count = tess_alloc_zero(comm->num_nodes, sizeof *count);
    if (!job->at || !job->member || !count) {
        tess_free(count);
        TESS_FAIL(TESS_ERR_ALLOC, "sums over %d ranks", comm->size);
    }
    int64_t total = 0;
    for (int k = 0; k < comm->size; ++k) {
        const int node = comm->node[k], place = count[node]++;
        job->at[k] = total;
        total += job->counts[k];
        if (comm->per_node > 0) job->member[node * comm->per_node + place] = k;
        if (k == comm->rank) job->place = place;
    }
    tess_free(count);
cleanup:
    return status;
}

tess_status tess_comm_reduce_scatter(tess_comm *comm, const void *values, void *out,
                                     const int64_t *counts, bool is_double)
{
    tess_status status = TESS_OK;
    const comm_clock start = comm_clock_start();
    const int64_t value_bytes = is_double ? sizeof(double) : sizeof(float);
    scatter job = {.comm = comm,
                   .values = values,
                   .counts = counts,
                   .is_double = is_double,
                   .value_bytes = value_bytes};
    if (comm_alone(comm)) {
        memcpy(out, values, (size_t)(counts[0] * value_bytes));
        goto cleanup;
    }
    TESS_TRY(tess_comm_agree(comm, lay_out(&job)));
    TESS_TRY(comm->per_node > 1 ? scatter_by_nodes(&job, out)
                                : scatter_flat(&job, out));
cleanup:
    comm_account(start, job.sent);
    tess_free(job.at);
    tess_free(job.member);
    return status;
}
