/* Shortens the waiting of OpenMP's threads while the program runs. GNU's runtime spins
 * for 100 rounds where the process has more of its threads than processors, and for
 * 300 000 otherwise, as its manual says of GOMP_SPINCOUNT. The variable is read when
 * the runtime is loaded, which is before any line of this library. So a crowd of
 * threads is made, as many as there are processors. They sleep, and are counted. */
#include "waiting.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>

#include "tess_cgroup.h"
#include "tess_omp.h"

#ifdef _OPENMP

/* Lowers the number of threads that may be added to that of a control group. */
static void take_room(const char *folder, int version, void *context)
{
    (void)version; /* the files are the same */
    int64_t *room = context;
    const int64_t left = tess_cgroup_number(folder, "pids.max", INT64_MAX) -
                         tess_cgroup_number(folder, "pids.current", 0);
    if (left < *room) *room = left;
}

/* Threads that the user may add, given that all threads of the host may be the user's.
 */
static int64_t room_of_user(void)
{
    struct rlimit limit;
    long long threads = 0;
    if (getrlimit(RLIMIT_NPROC, &limit) != 0) return 0;
    if (limit.rlim_cur == RLIM_INFINITY) return INT64_MAX;
    FILE *file = fopen("/proc/loadavg", "r");
    if (!file) return 0;
    if (fscanf(file, "%*f %*f %*f %*d/%lld", &threads) != 1) threads = INT64_MAX;
    fclose(file);
    return (int64_t)limit.rlim_cur - threads;
}

/* Whether the system gives so many threads. The runtime of OpenMP ends the program
 * where it does not, so half of what is left stays for others. */
static bool has_room(int threads)
{
    int64_t room = room_of_user();
    tess_cgroup_each("", "pids", take_room, &room);
    return room / 2 >= threads;
}

/* A thread that opens a parallel region keeps its team, asleep, until it ends itself.
 */
bool waiting_crowd_gather(void)
{
    const int size = omp_get_num_procs() + 1; /* with this thread */
    int members = 0;
    if (!has_room(size)) return false;
#pragma omp parallel num_threads(size) reduction(+ : members)
    members += 1;
    return members == size;
}

#else

bool waiting_crowd_gather(void)
{
    return false;
}

#endif
