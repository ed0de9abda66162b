/* Personalised exchanges over MPI: messages between nodes, memory that is read in place
 * inside one. */
#define _GNU_SOURCE
#include "comm_mpi.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>

/* ---- memory that a node's ranks share ---- */

/* Memory that the MPI library may need beside the memory that it is asked for. */
enum { MARGIN_BYTES = 16 << 20 };

struct tess_window {
    tess_comm *comm;
    MPI_Win handle; /* MPI_WIN_NULL: `own` is this rank's alone */
    char *own;
    int64_t bytes;
    char **of_rank; /* [size] memory of each rank of this node; NULL for ranks of other
                       nodes */
};

/* Whether this rank may map this number of bytes in addition. */
static bool can_map(size_t bytes)
{
    void *there = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (there == MAP_FAILED) return false;
    munmap(there, bytes);
    return true;
}

/* Bytes of this rank's parts of all windows in shared memory. */
static int64_t shared_bytes;

/* Whether it makes sense to ask for shared memory of `bytes` bytes for each of `ranks`
 * ranks of a node. If the file system behind it, or the address space of a rank, is too
 * small, MPI libraries print complaints, and some ranks may get shared memory while
 * others do not. If the file system becomes full later, ranks crash: it holds only the
 * pages that are written to. So this function assumes that all ranks here make such
 * windows, and that all memory of the existing windows is written to. */
static bool has_room(int64_t bytes, int ranks)
{
    struct statvfs info;
    const double mapped = 1.25 * (double)bytes * ranks + MARGIN_BYTES;
    const double wanted =
        1.25 * (double)(bytes + shared_bytes) * comm_ranks_here() + MARGIN_BYTES;
    if (!can_map((size_t)mapped)) return false;
    if (statvfs("/dev/shm", &info) != 0) return true; /* /dev/shm does not exist here */
    return (double)info.f_bavail * (double)info.f_frsize > wanted;
}

/* The ranks of this node ask for their parts of shared memory. If they do not get them,
 * the handle is MPI_WIN_NULL. Collective. */
static tess_status allocate_shared(tess_window *window)
{
    tess_status status = TESS_OK;
    MPI_Info info = MPI_INFO_NULL;
    int ranks = 1;
    void *own = NULL;
    TESS_TRY(comm_split_by_nodes(window->comm));
    TESS_MPI(MPI_Comm_size(window->comm->inside, &ranks));
    int64_t possible = has_room(window->bytes, ranks);
    TESS_MPI(MPI_Allreduce(MPI_IN_PLACE, &possible, 1, MPI_INT64_T, MPI_MIN,
                           window->comm->inside));
    if (ranks == 1 || !possible) return TESS_OK;
    TESS_MPI(MPI_Info_create(&info));
    TESS_MPI(MPI_Info_set(info, "alloc_shared_noncontig", "true"));
    watch_enter();
    const int made = MPI_Win_allocate_shared(
        (MPI_Aint)window->bytes, 1, info, window->comm->inside, &own, &window->handle);
    watch_leave();
    if (made != MPI_SUCCESS)
        window->handle = MPI_WIN_NULL;
    else
        shared_bytes += window->bytes;
    window->own = own;
cleanup:
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
    return status;
}

/* Finds the parts of the other ranks of this node. Local. */
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
        if (!window->own)
            status = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                       "no memory for %s to exchange with other ranks",
                                       tess_mem_text((double)bytes));
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
        watch_enter();
        MPI_Win_unlock_all(window->handle);
        MPI_Win_free(&window->handle);
        watch_leave();
        shared_bytes -= window->bytes;
    } else
        tess_free(window->own);
    tess_free(window->of_rank);
    tess_free(window);
}

void *tess_window_own(const tess_window *window)
{
    return window->own;
}

void *tess_window_of(const tess_window *window, int rank)
{
    if (rank == window->comm->rank) return window->own;
    return window->of_rank[rank];
}

tess_status comm_window_sync(const tess_window *window)
{
    tess_status status = TESS_OK;
    if (window && window->handle != MPI_WIN_NULL)
        TESS_MPI(MPI_Win_sync(window->handle));
cleanup:
    return status;
}

tess_status tess_window_meet(const tess_window *window, tess_status status,
                             int64_t bytes)
{
    if (status == TESS_OK) status = comm_window_sync(window);
    TESS_TRY(tess_comm_agree(window->comm, status));
    TESS_TRY(comm_window_sync(window));
    comm_account(comm_clock_start(), bytes);
cleanup:
    return status;
}

/* ---- flights ---- */

/* What a rank tells another rank about the bytes that it sends to it. */
typedef struct notice {
    int64_t bytes,
        at; /* `at`: place in the sender's window, or -1: the bytes come as a message */
    int64_t sends_messages; /* whether the sender sends messages to any rank */
    int64_t has_failed;     /* whether the sender has failed, and sends nothing */
} notice;

enum { NOTICE_LENGTH = sizeof(notice) / sizeof(int64_t) };

/* The stages of a flight. */
typedef enum flight_stage {
    GROUNDED,
    STARTED, /* the notices are on their way */
    SETTLED  /* the messages are on their way, if there are any */
} flight_stage;

struct tess_flight {
    tess_comm *comm;
    flight_stage stage;
    tess_status own;     /* what this rank has come to before the flight */
    notice *tell, *told; /* [size] notices to each rank, and from each rank */
    char **part;         /* [size] where the bytes from each rank are */
    MPI_Request notices;
    MPI_Request *request; /* of all messages that are sent or received */
    int num_requests;
    char *recv; /* received messages, in the order of ranks */
    /* borrowed from the caller */
    const tess_window *window;
    const char *send;
    const int64_t *send_at, *send_bytes;
    int64_t *recv_bytes;
};

tess_status tess_flight_create(tess_comm *comm, tess_flight **flight_out)
{
    tess_status status = TESS_OK;
    tess_flight *flight = tess_alloc_zero(1, sizeof *flight);
    if (!flight) TESS_FAIL(TESS_ERR_ALLOC, "exchange between ranks");
    flight->comm = comm;
    flight->notices = MPI_REQUEST_NULL;
    flight->tell = tess_alloc_zero(comm->size, sizeof *flight->tell);
    flight->told = tess_alloc_zero(comm->size, sizeof *flight->told);
    flight->part = tess_alloc_zero(comm->size, sizeof *flight->part);
    if (!flight->tell || !flight->told || !flight->part)
        TESS_FAIL(TESS_ERR_ALLOC, "exchange between ranks");
    *flight_out = flight;
    flight = NULL;
cleanup:
    tess_flight_free(flight);
    return status;
}

void tess_flight_free(tess_flight *flight)
{
    if (!flight) return;
    tess_flight_finish(flight, NULL);
    tess_free(flight->tell);
    tess_free(flight->told);
    tess_free(flight->part);
    tess_free(flight);
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

/* Whether rank k reads from this rank's window what lies at `from`. */
static bool reads_in_place(const tess_window *window, const char *from, int k)
{
    return window && window->handle != MPI_WIN_NULL && window->of_rank[k] &&
           k != window->comm->rank && from >= window->own &&
           from < window->own + window->bytes;
}

/* Writes the notices of a rank that has failed. */
static void write_failure(tess_flight *flight)
{
    for (int k = 0; k < flight->comm->size; ++k)
        flight->tell[k] = (notice){.at = -1, .has_failed = true};
}

/* Writes the notices: the number of bytes that each rank gets, and their place. */
static void write_notices(tess_flight *flight)
{
    const char *from = flight->send;
    const int size = flight->comm->size;
    int64_t messages = 0;
    for (int k = 0; k < size; ++k) {
        const int64_t bytes = flight->send_bytes[k];
        if (flight->send_at) from = flight->send + flight->send_at[k];
        const bool in_place = bytes > 0 && reads_in_place(flight->window, from, k);
        flight->tell[k] =
            (notice){.bytes = bytes, .at = in_place ? from - flight->window->own : -1};
        messages |= bytes > 0 && !in_place;
        if (!flight->send_at) from += bytes;
    }
    for (int k = 0; k < size; ++k)
        flight->tell[k].sends_messages = messages;
}

/* Allocates memory for the bytes that come as messages. */
static tess_status make_room(tess_flight *flight)
{
    tess_status status = TESS_OK;
    int64_t bytes = 0, messages = 0;
    for (int k = 0; k < flight->comm->size; ++k) {
        if (flight->told[k].at < 0) {
            bytes += flight->told[k].bytes;
            messages += pieces(flight->told[k].bytes);
        }
        messages += pieces(flight->send_bytes[k]);
    }
    flight->recv = tess_alloc(bytes, 1);
    flight->request = tess_alloc(messages, sizeof *flight->request);
    if (!flight->recv || !flight->request)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory to receive %s",
                  tess_mem_text((double)bytes));
cleanup:
    return status;
}

/* Where each rank's part is, or will have arrived. */
static void find_arrivals(tess_flight *flight)
{
    char *recv = flight->recv;
    for (int k = 0; k < flight->comm->size; ++k) {
        const notice *told = &flight->told[k];
        flight->part[k] = told->at < 0 ? recv : flight->window->of_rank[k] + told->at;
        if (told->at < 0 && recv) recv += told->bytes;
    }
}

/* Point-to-point with every peer, all in flight at once; own part by memcpy. */
static tess_status post_messages(tess_flight *flight)
{
    tess_status status = TESS_OK;
    tess_comm *comm = flight->comm;
    const char *from = flight->send;
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
        const int64_t bytes = flight->send_bytes[k];
        if (flight->send_at) from = flight->send + flight->send_at[k];
        if (bytes > 0 && k == comm->rank)
            memcpy(own, from, (size_t)bytes);
        else if (flight->tell[k].at < 0)
            for (int64_t j = 0; j < pieces(bytes); ++j)
                TESS_MPI(MPI_Isend(from + j * CHUNK, piece_bytes(bytes, j), MPI_BYTE, k,
                                   TAG_ALLTOALL, comm->handle,
                                   &flight->request[flight->num_requests++]));
        if (!flight->send_at) from += bytes;
    }
cleanup:
    return status;
}

/* Counts the bytes that leave this rank, and those that leave its node. */
static int64_t count_sent(const tess_comm *comm, const int64_t *send_bytes)
{
    int64_t sent = 0;
    for (int k = 0; k < comm->size; ++k) {
        if (k == comm->rank) continue;
        sent += send_bytes[k];
        comm_account_between(comm, k, send_bytes[k]);
    }
    return sent;
}

tess_status tess_flight_start(tess_flight *flight, tess_status status,
                              const tess_window *window, const void *send,
                              const int64_t *send_at, const int64_t *send_bytes,
                              int64_t *recv_bytes)
{
    const comm_clock start = comm_clock_start();
    int64_t sent = 0;
    tess_comm *comm = flight->comm;
    flight->own = status;
    flight->window = window;
    flight->send = send;
    flight->send_at = send_at;
    flight->send_bytes = send_bytes;
    flight->recv_bytes = recv_bytes;
    tess_comm_note(status);
    if (status == TESS_OK) {
        sent = count_sent(comm, send_bytes);
        write_notices(flight);
    } else
        write_failure(flight);
    status = TESS_OK; /* the failure shows when the flight is settled */
    TESS_TRY(comm_window_sync(window));
    if (comm->size == 1)
        flight->told[0] = flight->tell[0];
    else
        TESS_MPI(MPI_Ialltoall(flight->tell, NOTICE_LENGTH, MPI_INT64_T, flight->told,
                               NOTICE_LENGTH, MPI_INT64_T, comm->handle,
                               &flight->notices));
    flight->stage = STARTED;
cleanup:
    comm_account(start, sent);
    return status;
}

/* Reads the notices, unless a rank has failed. */
static tess_status read_notices(tess_flight *flight, bool *any_messages)
{
    int64_t messages = 0, failed = 0;
    for (int k = 0; k < flight->comm->size; ++k)
        failed |= flight->told[k].has_failed;
    if (failed) return flight->own != TESS_OK ? flight->own : TESS_ERR_PEER;
    for (int k = 0; k < flight->comm->size; ++k) {
        flight->recv_bytes[k] = flight->told[k].bytes;
        messages |= flight->told[k].sends_messages;
    }
    *any_messages = messages != 0;
    return TESS_OK;
}

tess_status tess_flight_settle(tess_flight *flight)
{
    tess_status status = TESS_OK;
    const comm_clock start = comm_clock_start();
    bool any_messages;
    if (flight->stage != STARTED) return TESS_OK;
    flight->stage = SETTLED;
    if (flight->comm->size > 1) TESS_TRY(comm_wait(&flight->notices, 1));
    TESS_TRY(comm_window_sync(flight->window));
    TESS_TRY(read_notices(flight, &any_messages));
    /* without a window memory is asked for, even if nothing comes */
    if (any_messages || !flight->window) {
        TESS_TRY(tess_comm_agree(flight->comm, make_room(flight)));
        TESS_TRY(post_messages(flight));
    }
    find_arrivals(flight);
cleanup:
    comm_account(start, 0);
    return status;
}

void tess_flight_progress(tess_flight *flight)
{
    int done;
    if (!flight || flight->stage == GROUNDED || flight->comm->size == 1) return;
    const comm_clock start = comm_clock_start();
    /* a failure shows when the flight is settled, or finished */
    if (flight->stage == STARTED)
        MPI_Request_get_status(flight->notices, &done, MPI_STATUS_IGNORE);
    else if (flight->num_requests > 0)
        MPI_Testall(flight->num_requests, flight->request, &done, MPI_STATUSES_IGNORE);
    comm_account(start, 0);
}

/* All messages have been sent and received. */
static tess_status wait_for_messages(tess_flight *flight)
{
    tess_status status = tess_flight_settle(flight);
    const comm_clock start = comm_clock_start();
    if (flight->num_requests > 0)
        TESS_TRY(comm_wait(flight->request, flight->num_requests));
    flight->num_requests = 0;
cleanup:
    comm_account(start, 0);
    return status;
}

tess_status tess_flight_wait(tess_flight *flight, void **part)
{
    tess_status status = TESS_OK;
    TESS_TRY(wait_for_messages(flight));
    for (int k = 0; k < flight->comm->size; ++k)
        part[k] = flight->part[k];
cleanup:
    return status;
}

tess_status tess_flight_finish(tess_flight *flight, void **recv)
{
    tess_status status = TESS_OK;
    if (flight->stage == GROUNDED) return TESS_OK;
    TESS_TRY(wait_for_messages(flight));
    if (recv) {
        *recv = flight->recv;
        flight->recv = NULL;
    }
cleanup:
    tess_free(flight->recv);
    tess_free(flight->request);
    flight->recv = NULL;
    flight->request = NULL;
    flight->num_requests = 0;
    flight->stage = GROUNDED;
    return status;
}
