/* Calls of the library begin and end here. A process that was forked has only the
 * thread that forked it: threads of OpenMP are given back before, and made again by
 * whoever needs them. */
#include "api_calls.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "tess_keep.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_omp.h"
#include "tess_waiting.h"
#include "tessera/tess_api.h"

/* State of the process, as forks are. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static atomic_int num_calls; /* calls that have begun and not ended */
static bool is_lost;         /* forked while another thread was in a call */

/* OpenMP keeps the threads of a team for the next one. In a child they would be waited
 * for, but do not exist. */
static void before_fork(void)
{
    tess_omp_release_threads();
}

/* A call that another thread was in does not go on in the child. */
static void in_child(void)
{
    is_lost = is_lost || atomic_load(&num_calls) > 0;
}

/* When the library is loaded: another package may use the same threads of OpenMP before
 * the first call. */
__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(before_fork, NULL, in_child);
}

tess_status api_call_begin(void)
{
    if (is_lost)
        return tess_error_call_refuse(
            TESS_ERR_RESOURCE,
            "this process was forked while another thread was in a call of tessera; "
            "fork before that call or after it, or start processes without fork "
            "(multiprocessing's \"spawn\")");
    atomic_fetch_add(&num_calls, 1);
    tess_error_call_begin();
    return TESS_OK;
}

tess_status api_call_end(tess_status status)
{
    atomic_fetch_sub(&num_calls, 1);
    return tess_error_call_end(status);
}

void api_turn_begin(void)
{
    pthread_mutex_lock(&turn);
    tess_waiting_begin(0);
}

void api_turn_end(void)
{
    tess_waiting_end();
    tess_log_start(0, TESS_LOG_QUIET);
    pthread_mutex_unlock(&turn);
}

/* Memory that the library keeps between calls. */
int64_t tess_release_memory(void)
{
    const int64_t bytes = tess_keep_release();
    tess_mem_trim();
    return bytes;
}

/* ---- messages ---- */

/* The caller's functions; state of the process, as the log is. */
static tess_messages messages;

static void take_line(void *context, tess_log_kind kind, const char *text)
{
    (void)context;
    messages.take(messages.context, (int)kind, text);
}

static void take_step(void *context, const char *label, double done, double share,
                      bool ends)
{
    (void)context;
    messages.step(messages.context, label, done, share, ends);
}

void tess_take_messages(const tess_messages *taker)
{
    const tess_log_taker log = {.take = taker && taker->take ? take_line : NULL,
                                .step = taker && taker->step ? take_step : NULL};
    tess_log_give(NULL);
    messages = taker ? *taker : (tess_messages){0};
    tess_log_give(&log);
}
