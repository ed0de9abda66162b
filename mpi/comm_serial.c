/* The communicator of one rank, for builds with TESS_MPI=OFF. */
#include "tess_comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tess_mem.h"

struct tess_comm {
    int unused;
};

tess_status tess_comm_self(tess_comm **comm)
{
    tess_status status = TESS_OK;
    tess_comm *made = tess_alloc_zero(1, sizeof *made);
    if (!made) TESS_FAIL(TESS_ERR_ALLOC, "communicator");
    *comm = made;
cleanup:
    return status;
}

tess_status tess_comm_of(int64_t fortran_handle, tess_comm **comm)
{
    (void)fortran_handle;
    (void)comm;
    return tess_error_record(TESS_ERR_RESOURCE, __FILE__, __LINE__, __func__,
                             "this library is built without MPI");
}

tess_status tess_comm_start(int *argc, char ***argv, tess_comm **comm)
{
    (void)argc;
    (void)argv;
    return tess_comm_self(comm);
}

void tess_comm_library(char *text, size_t size)
{
    snprintf(text, size, "none");
}

void tess_comm_finish(tess_comm *comm)
{
    tess_free(comm);
}

void tess_comm_abort(tess_comm *comm, int exit_status)
{
    (void)comm;
    exit(exit_status);
}

void tess_comm_end_with(tess_comm *comm, double patience_s, tess_comm_end *end,
                        void *context)
{
    (void)comm;
    (void)patience_s;
    (void)end;
    (void)context;
}

void tess_comm_note(tess_status status)
{
    (void)status;
}

tess_status tess_comm_agree(tess_comm *comm, tess_status status)
{
    (void)comm;
    return status;
}

tess_status tess_comm_agree_on(tess_comm *comm, tess_status status, int64_t *values,
                               int64_t count, tess_op op)
{
    (void)comm;
    (void)values;
    (void)count;
    (void)op;
    return status;
}

tess_status tess_comm_split(tess_comm *comm, int color, int key, tess_comm **part)
{
    (void)comm;
    (void)color;
    (void)key;
    return tess_comm_self(part);
}

tess_comm *tess_comm_last(tess_comm *comm)
{
    return comm;
}

tess_status tess_comm_node(tess_comm *comm, tess_comm **node)
{
    (void)comm;
    return tess_comm_self(node);
}

void tess_comm_free(tess_comm *comm)
{
    tess_free(comm);
}

int tess_comm_rank(const tess_comm *comm)
{
    (void)comm;
    return 0;
}

int tess_comm_size(const tess_comm *comm)
{
    (void)comm;
    return 1;
}

tess_status tess_comm_barrier(tess_comm *comm)
{
    (void)comm;
    return TESS_OK;
}

tess_status tess_comm_bcast(tess_comm *comm, void *data, int64_t bytes, int root)
{
    (void)comm;
    (void)data;
    (void)bytes;
    (void)root;
    return TESS_OK;
}

tess_status tess_comm_allreduce_f64(tess_comm *comm, double *values, int64_t count,
                                    tess_op op)
{
    (void)comm;
    (void)values;
    (void)count;
    (void)op;
    return TESS_OK;
}

tess_status tess_comm_allreduce_i64(tess_comm *comm, int64_t *values, int64_t count,
                                    tess_op op)
{
    (void)comm;
    (void)values;
    (void)count;
    (void)op;
    return TESS_OK;
}

tess_status tess_comm_exscan_i64(tess_comm *comm, int64_t *values, int64_t count)
{
    (void)comm;
    memset(values, 0, (size_t)count * sizeof *values);
    return TESS_OK;
}

tess_status tess_comm_allgather(tess_comm *comm, const void *send, int64_t bytes,
                                void *recv)
{
    (void)comm;
    memcpy(recv, send, (size_t)bytes);
    return TESS_OK;
}

struct tess_window {
    void *own;
};

tess_status tess_window_create(tess_comm *comm, int64_t bytes, tess_window **window)
{
    tess_status status = TESS_OK;
    (void)comm;
    tess_window *made = tess_alloc_zero(1, sizeof *made);
    if (made) made->own = tess_alloc(bytes, 1);
    if (!made || !made->own) {
        tess_free(made);
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for %s", tess_mem_text((double)bytes));
    }
    *window = made;
cleanup:
    return status;
}

void tess_window_free(tess_window *window)
{
    if (window) tess_free(window->own);
    tess_free(window);
}

void *tess_window_own(const tess_window *window)
{
    return window->own;
}

void *tess_window_of(const tess_window *window, int rank)
{
    return rank == 0 ? window->own : NULL;
}

tess_status tess_window_meet(const tess_window *window, tess_status status,
                             int64_t bytes)
{
    (void)window;
    (void)bytes;
    return status;
}

struct tess_flight {
    bool started;
    tess_status own; /* what this rank has come to before the flight */
    void *recv;
    const char *send;
    int64_t bytes, *recv_bytes;
};

tess_status tess_flight_create(tess_comm *comm, tess_flight **flight)
{
    tess_status status = TESS_OK;
    (void)comm;
    *flight = tess_alloc_zero(1, sizeof **flight);
    if (!*flight) TESS_FAIL(TESS_ERR_ALLOC, "exchange between ranks");
cleanup:
    return status;
}

void tess_flight_free(tess_flight *flight)
{
    if (flight) tess_free(flight->recv);
    tess_free(flight);
}

tess_status tess_flight_start(tess_flight *flight, tess_status status,
                              const tess_window *window, const void *send,
                              const int64_t *send_at, const int64_t *send_bytes,
                              int64_t *recv_bytes)
{
    (void)window;
    flight->started = true;
    flight->own = status;
    if (status != TESS_OK) return TESS_OK; /* it shows when the flight is settled */
    flight->send = send;
    if (send_at && send) flight->send += send_at[0];
    flight->bytes = send_bytes[0];
    flight->recv_bytes = recv_bytes;
    return TESS_OK;
}

tess_status tess_flight_settle(tess_flight *flight)
{
    if (flight->own == TESS_OK) flight->recv_bytes[0] = flight->bytes;
    return flight->own;
}

void tess_flight_progress(tess_flight *flight)
{
    (void)flight;
}

tess_status tess_flight_wait(tess_flight *flight, void **part)
{
    tess_status status = TESS_OK;
    TESS_TRY(flight->own);
    if (!flight->recv) flight->recv = tess_alloc(flight->bytes, 1);
    if (!flight->recv)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for %s",
                  tess_mem_text((double)flight->bytes));
    if (flight->bytes > 0) memcpy(flight->recv, flight->send, (size_t)flight->bytes);
    part[0] = flight->recv;
    tess_flight_settle(flight);
cleanup:
    return status;
}

tess_status tess_flight_finish(tess_flight *flight, void **recv)
{
    tess_status status = TESS_OK;
    void *part;
    if (!flight->started) return TESS_OK;
    if (recv) {
        TESS_TRY(tess_flight_wait(flight, &part));
        *recv = flight->recv;
        flight->recv = NULL;
    }
cleanup:
    tess_free(flight->recv);
    *flight = (tess_flight){0};
    return status;
}

tess_status tess_comm_reduce_scatter(tess_comm *comm, const void *values, void *out,
                                     const int64_t *counts, bool is_double)
{
    (void)comm;
    memcpy(out, values,
           (size_t)counts[0] * (is_double ? sizeof(double) : sizeof(float)));
    return TESS_OK;
}
