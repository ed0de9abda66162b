/** @file cpu_thread.h  (private to clean/)
 *  Numbers of threads.
 */
#ifndef TESS_CPU_THREAD_H
#define TESS_CPU_THREAD_H

#include "tess_omp.h"

/** This thread's number in its team. */
static inline int cpu_thread(void)
{
    return tess_omp_thread();
}

#endif
