/* The stacks of a program and of its threads, before it starts any. */
#define _GNU_SOURCE
#include "tess_stack.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/resource.h>

/* MPI and its libraries need about 100 KiB to start. The largest frame is that of the
 * function that writes a checkpoint, 190 KiB; all frames below it have as much. */
static const rlim_t LEAST_BYTES = 1 << 20;

/* Threads take the limit for the size of their stacks: memory that is reserved for each
 * of them. Larger stacks than the first number are not what anybody needs, and the
 * second is the usual limit. */
static const size_t MOST_THREAD_BYTES = 64 << 20, USUAL_BYTES = 8 << 20;

/* The stack of the first thread gets its pages when they are first used. If the process
 * has reached its limit of address space by then (ulimit -v), a signal ends it, and no
 * handler can run. The pages are used early therefore. Stacks of other threads have all
 * their address space from the beginning. */
static const int64_t RESERVED_BYTES = 1 << 20;
enum { FRAME_BYTES = 16 << 10 };

/* Uses so many bytes of the stack. Returns a sum, so that no frame is left out. */
static int reserve(int64_t bytes)
{
    volatile char frame[FRAME_BYTES];
    frame[0] = 1;
    return bytes > FRAME_BYTES ? reserve(bytes - FRAME_BYTES) + frame[0] : frame[0];
}

/* Where that fails, threads are as they were. */
static void bound_threads(void)
{
    pthread_attr_t attr;
    size_t bytes = 0;
    if (pthread_getattr_default_np(&attr) != 0) return;
    if (pthread_attr_getstacksize(&attr, &bytes) == 0 && bytes > MOST_THREAD_BYTES &&
        pthread_attr_setstacksize(&attr, USUAL_BYTES) == 0)
        (void)pthread_setattr_default_np(&attr);
    (void)pthread_attr_destroy(&attr);
}

tess_status tess_stack_prepare(void)
{
    tess_status status = TESS_OK;
    struct rlimit limit;
    bound_threads();
    if (getrlimit(RLIMIT_STACK, &limit) != 0) return TESS_OK;
    if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < LEAST_BYTES)
        TESS_FAIL(TESS_ERR_RESOURCE,
                  "the stack may have %lld KiB only (ulimit -s), and needs %lld; raise "
                  "the limit, for instance by ulimit -s 8192",
                  (long long)limit.rlim_cur >> 10, (long long)LEAST_BYTES >> 10);
    (void)reserve(limit.rlim_cur / 2 < (rlim_t)RESERVED_BYTES
                      ? (int64_t)limit.rlim_cur / 2
                      : RESERVED_BYTES);
cleanup:
    return status;
}
