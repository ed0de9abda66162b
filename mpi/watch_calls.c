/* Counts calls of MPI, so that the thread of the watch sees how long one of them lasts.
 */
#include "watch.h"

#include <stdatomic.h>

/* The calls that have begun and those that have ended. It is state of the process,
 * because calls are made in all communicators. */
static atomic_uint calls;

/* Calls of this thread that have begun and not ended. */
static _Thread_local int depth;

void watch_enter(void)
{
    if (depth++ == 0) atomic_fetch_add(&calls, 1);
}

void watch_leave(void)
{
    if (--depth == 0) atomic_fetch_add(&calls, 1);
}

unsigned watch_calls(void)
{
    return atomic_load(&calls);
}
