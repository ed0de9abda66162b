/** @file cpu_thread.h  (private to clean/)
 *  Numbers of threads, also in builds without OpenMP.
 */
#ifndef TESS_CPU_THREAD_H
#define TESS_CPU_THREAD_H

#ifdef _OPENMP
#include <omp.h>
#endif

/** This thread's number in its team. */
static inline int cpu_thread(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

/** The number of threads in it. */
static inline int cpu_threads(void)
{
#ifdef _OPENMP
    return omp_get_num_threads();
#else
    return 1;
#endif
}

#endif
