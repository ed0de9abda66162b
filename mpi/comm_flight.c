/* Personalised exchanges over MPI: messages between nodes, memory that is read in place
 * inside one. */
#define _GNU_SOURCE
#include "comm_mpi.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>

/* ---- memory that a node's ranks share ---- */

/* What the MPI library may want beside the memory that it is asked for. */
enum { MARGIN_BYTES = 16 << 20 };

struct tess_window {
    tess_comm *comm;
    MPI_Win handle; /* MPI_WIN_NULL: `own` is this rank's alone */
    char *own;
    int64_t bytes;
    const char **of_rank; /* [size] memory of each rank of this node; NULL: of others */
};

/* Whether this rank may map so many bytes more. */
static bool can_map(size_t bytes)
{
    void *there = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (there == MAP_FAILED) return false;
    munmap(there, bytes);
    return true;
}

/* Whether shared memory of so many bytes is worth asking for. Where the file system
 * behind it, or a rank's address space, is too small, MPI libraries complain aloud and
 * may leave some ranks with it and others without. */
static bool has_room(int64_t bytes)
{
    struct statvfs info;
    const double wanted = 1.25 * (double)bytes + MARGIN_BYTES;
    if (!can_map((size_t)wanted)) return false;
    if (statvfs("/dev/shm", &info) != 0) return true; /* not behind it here */
    return (double)info.f_bavail * (double)info.f_frsize > wanted;
}

/* This node's ranks ask for their parts of shared memory; handle MPI_WIN_NULL where
 * they do not get it. Collective. */
static tess_status allocate_shared(tess_window *window)
{
    tess_status status = TESS_OK;
    MPI_Info info = MPI_INFO_NULL;
    int ranks = 1;
    void *own = NULL;
    TESS_TRY(comm_split_by_nodes(window->comm));
    TESS_MPI(MPI_Comm_size(window->comm->inside, &ranks));
    int64_t possible = has_room(window->bytes * ranks);
    TESS_MPI(MPI_Allreduce(MPI_IN_PLACE, &possible, 1, MPI_INT64_T, MPI_MIN,
                           window->comm->inside));
    if (ranks == 1 || !possible) return TESS_OK;
    TESS_MPI(MPI_Info_create(&info));
    TESS_MPI(MPI_Info_set(info, "alloc_shared_noncontig", "true"));
    if (MPI_Win_allocate_shared((MPI_Aint)window->bytes, 1, info, window->comm->inside,
                                &own, &window->handle) != MPI_SUCCESS)
        window->handle = MPI_WIN_NULL;
    window->own = own;
cleanup:
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
    return status;
}

/* Where the others' parts are. Local. */
static tess_status find_parts(tess_window *window)
{
    tess_status status = TESS_OK;
    const tess_comm *comm = window->comm;
    if (window->handle == MPI_WIN_NULL) return TESS_OK;
    TESS_MPI(MPI_Win_set_errhandler(window->handle, MPI_ERRORS_RETURN));
    TESS_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, window->handle));
    for (int k = 0, place = 0; k < comm->size; ++k) {
        MPI_Aint bytes;
        int unit;
        void *part = NULL;
        if (comm->node[k] != comm->node[comm->rank]) continue;
        TESS_MPI(MPI_Win_shared_query(window->handle, place++, &bytes, &unit, &part));
        window->of_rank[k] = part;
    }
cleanup:
    return status;
}

tess_status tess_window_create(tess_comm *comm, int64_t bytes, tess_window **window_out)
{
    tess_status status = TESS_OK;
    tess_window *window = tess_alloc_zero(1, sizeof *window);
    if (window) {
        window->comm = comm;
        window->handle = MPI_WIN_NULL;
        window->bytes = bytes;
        window->of_rank = tess_alloc_zero(comm->size, sizeof *window->of_rank);
    }
    TESS_TRY(
        tess_comm_agree(comm, window && window->of_rank ? TESS_OK : TESS_ERR_ALLOC));
    if (!comm_alone(comm)) status = allocate_shared(window);
    if (status == TESS_OK) status = find_parts(window);
    if (status == TESS_OK && window->handle == MPI_WIN_NULL) {
        window->own = tess_alloc(bytes, 1);
        if (!window->own) status = TESS_ERR_ALLOC;
    }
    TESS_TRY(tess_comm_agree(comm, status));
    *window_out = window;
    window = NULL;
cleanup:
    tess_window_free(window);
    return status;
}

void tess_window_free(tess_window *window)
{
    if (!window) return;
    if (window->handle != MPI_WIN_NULL) {
        MPI_Win_unlock_all(window->handle);
        MPI_Win_free(&window->handle);
    } else
        tess_free(window->own);
    tess_free(window->of_rank);
    tess_free(window);
}

void *tess_window_own(const tess_window *window)
{
    return window->own;
}

/* What was written before is seen by those that read after. */
static tess_status synchronise(const tess_window *window)
{
    tess_status status = TESS_OK;
    if (window && window->handle != MPI_WIN_NULL)
        TESS_MPI(MPI_Win_sync(window->handle));
cleanup:
    return status;
}

/* ---- flights ---- */

/* What a rank tells another of what it has for it. */
typedef struct notice {
    int64_t bytes, at; /* in the sender's window, or -1: comes as a message */
} notice;

struct tess_flight {
    tess_comm *comm;
    notice *told;         /* [size] by each rank */
    const char **part;    /* [size] where what it sent is */
    char *recv;           /* messages, by rank */
    MPI_Request *request; /* of all messages, both ways */
    int num_requests;
};

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

/* Whether rank k reads from this rank's window what lies at `from`. */
static bool reads_in_place(const tess_window *window, const char *from, int k)
{
    return window && window->handle != MPI_WIN_NULL && window->of_rank[k] &&
           k != window->comm->rank && from >= window->own &&
           from < window->own + window->bytes;
}

/* Tell each rank how much it gets, and where it is. Collective. */
static tess_status exchange_notices(tess_flight *flight, const tess_window *window,
                                    const char *send, const int64_t *send_at,
                                    const int64_t *send_bytes)
{
    tess_status status = TESS_OK;
    tess_comm *comm = flight->comm;
    notice *tell = tess_alloc(comm->size, sizeof *tell);
    TESS_TRY(tess_comm_agree(comm, tell ? TESS_OK : TESS_ERR_ALLOC));
    for (int k = 0; k < comm->size; ++k) {
        const char *from = send_at ? send + send_at[k] : send;
        if (!send_at) send += send_bytes[k];
        tell[k] = (notice){send_bytes[k], -1};
        if (send_bytes[k] > 0 && reads_in_place(window, from, k))
            tell[k].at = from - window->own;
    }
    TESS_TRY(synchronise(window));
    if (comm_alone(comm))
        flight->told[0] = tell[0];
    else
        TESS_MPI(MPI_Alltoall(tell, 2, MPI_INT64_T, flight->told, 2, MPI_INT64_T,
                              comm->handle));
    TESS_TRY(synchronise(window));
cleanup:
    tess_free(tell);
    return status;
}

/* Room for what comes as messages. */
static tess_status make_room(tess_flight *flight, const tess_window *window,
                             const int64_t *send_bytes)
{
    tess_status status = TESS_OK;
    int64_t bytes = 0, messages = 0;
    for (int k = 0; k < flight->comm->size; ++k) {
        if (flight->told[k].at < 0) {
            bytes += flight->told[k].bytes;
            messages += pieces(flight->told[k].bytes);
        }
        messages += pieces(send_bytes[k]);
    }
    flight->recv = tess_alloc(bytes, 1);
    flight->request = tess_alloc(messages, sizeof *flight->request);
    if (!flight->recv || !flight->request)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory to receive %s",
                  tess_mem_text((double)bytes));
    char *recv = flight->recv;
    for (int k = 0; k < flight->comm->size; ++k) {
        const notice *told = &flight->told[k];
        flight->part[k] = told->at < 0 ? recv : window->of_rank[k] + told->at;
        if (told->at < 0) recv += told->bytes;
    }
cleanup:
    return status;
}

/* Point-to-point with every peer, all in flight at once; own part by memcpy. */
static tess_status post_messages(tess_flight *flight, const tess_window *window,
                                 const char *send, const int64_t *send_at,
                                 const int64_t *send_bytes)
{
    tess_status status = TESS_OK;
    tess_comm *comm = flight->comm;
    char *recv = flight->recv, *own = NULL;
    for (int k = 0; k < comm->size; ++k) {
        const int64_t bytes = flight->told[k].at < 0 ? flight->told[k].bytes : 0;
        if (k == comm->rank) own = recv;
        for (int64_t j = 0; k != comm->rank && j < pieces(bytes); ++j)
            TESS_MPI(MPI_Irecv(recv + j * CHUNK, piece_bytes(bytes, j), MPI_BYTE, k,
                               TAG_ALLTOALL, comm->handle,
                               &flight->request[flight->num_requests++]));
        recv += bytes;
    }
    for (int k = 0; k < comm->size; ++k) {
        const char *from = send_at ? send + send_at[k] : send;
        if (!send_at) send += send_bytes[k];
        if (send_bytes[k] == 0) continue;
        if (k == comm->rank)
            memcpy(own, from, (size_t)send_bytes[k]);
        else if (!reads_in_place(window, from, k))
            for (int64_t j = 0; j < pieces(send_bytes[k]); ++j)
                TESS_MPI(MPI_Isend(from + j * CHUNK, piece_bytes(send_bytes[k], j),
                                   MPI_BYTE, k, TAG_ALLTOALL, comm->handle,
                                   &flight->request[flight->num_requests++]));
    }
cleanup:
    return status;
}

static void flight_free(tess_flight *flight)
{
    if (!flight) return;
    tess_free(flight->told);
    tess_free(flight->part);
    tess_free(flight->recv);
    tess_free(flight->request);
    tess_free(flight);
}

tess_status tess_flight_start(tess_comm *comm, const tess_window *window,
                              const void *send, const int64_t *send_at,
                              const int64_t *send_bytes, int64_t *recv_bytes,
                              tess_flight **flight_out)
{
    tess_status status = TESS_OK;
    const double start = tess_time_now();
    int64_t sent = 0;
    tess_flight *flight = tess_alloc_zero(1, sizeof *flight);
    if (flight) {
        flight->comm = comm;
        flight->told = tess_alloc(comm->size, sizeof *flight->told);
        flight->part = tess_alloc(comm->size, sizeof *flight->part);
    }
    const bool made = flight && flight->told && flight->part;
    TESS_TRY(tess_comm_agree(comm, made ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(exchange_notices(flight, window, send, send_at, send_bytes));
    for (int k = 0; k < comm->size; ++k) {
        recv_bytes[k] = flight->told[k].bytes;
        if (k == comm->rank) continue;
        sent += send_bytes[k];
        comm_account_between(comm, k, send_bytes[k]);
    }
    TESS_TRY(tess_comm_agree(comm, make_room(flight, window, send_bytes)));
    TESS_TRY(post_messages(flight, window, send, send_at, send_bytes));
    *flight_out = flight;
    flight = NULL;
cleanup:
    flight_free(flight);
    comm_account(start, sent);
    return status;
}

void tess_flight_progress(tess_flight *flight)
{
    int done;
    if (!flight || flight->num_requests == 0) return;
    const double start = tess_time_now();
    /* a failure shows when the flight is finished */
    MPI_Testall(flight->num_requests, flight->request, &done, MPI_STATUSES_IGNORE);
    comm_account(start, 0);
}

tess_status tess_flight_wait(tess_flight *flight, const void **part)
{
    tess_status status = TESS_OK;
    const double start = tess_time_now();
    if (flight->num_requests > 0)
        TESS_MPI(
            MPI_Waitall(flight->num_requests, flight->request, MPI_STATUSES_IGNORE));
    flight->num_requests = 0;
    for (int k = 0; k < flight->comm->size; ++k)
        part[k] = flight->part[k];
cleanup:
    comm_account(start, 0);
    return status;
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
    comm_account(start, 0);
    flight_free(flight);
    return status;
}
