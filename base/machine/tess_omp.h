/** @file tess_omp.h
 *  Numbers of the threads of a parallel region. They are also defined in builds without
 *  OpenMP.
 */
#ifndef TESS_OMP_H
#define TESS_OMP_H

#include <stdbool.h>

#ifdef _OPENMP
#include <omp.h>
#endif

/** This thread's number in its team. */
static inline int tess_omp_thread(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

/** The number of threads in this thread's team. */
static inline int tess_omp_threads(void)
{
#ifdef _OPENMP
    return omp_get_num_threads();
#else
    return 1;
#endif
}

/** Let the threads of a team have teams of their own: set how many teams inside each
 * other may have several threads. Returns the number before. */
static inline int tess_omp_nest(int levels)
{
#ifdef _OPENMP
    const int before = omp_get_max_active_levels();
    omp_set_max_active_levels(levels);
    return before;
#else
    return levels;
#endif
}

/** Whether other threads work beside this one's team. */
static inline bool tess_omp_beside(void)
{
#ifdef _OPENMP
    return omp_in_parallel();
#else
    return false;
#endif
}

/** Give back the threads that OpenMP keeps for this thread's next team, which then
 * takes new ones. */
static inline void tess_omp_release_threads(void)
{
#ifdef _OPENMP
    omp_pause_resource_all(omp_pause_hard);
#endif
}

#endif
