/* Shortens the waiting of OpenMP's threads while the program runs. GNU's runtime spins
 * for 100 rounds where the process has more of its threads than processors, and for
 * 300 000 otherwise, as its manual says of GOMP_SPINCOUNT. The variable is read when
 * the runtime is loaded, which is before any line of this library. So a crowd of
 * threads is made, one more than there are processors. They sleep, and are counted. */
#define _GNU_SOURCE
#include "waiting.h"

#include <pthread.h>
#include <stddef.h>

#include "tess_mem.h"
#include "tess_omp.h"
#include "tess_processors.h"

struct waiting_crowd {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change; /* signals changes of the members below */
    bool ready, ending;
    int size;
};

static void wait_for_end(waiting_crowd *crowd)
{
    pthread_mutex_lock(&crowd->lock);
    while (!crowd->ending)
        pthread_cond_wait(&crowd->change, &crowd->lock);
    pthread_mutex_unlock(&crowd->lock);
}

static void tell(waiting_crowd *crowd, bool *what)
{
    pthread_mutex_lock(&crowd->lock);
    *what = true;
    pthread_cond_broadcast(&crowd->change);
    pthread_mutex_unlock(&crowd->lock);
}

/* A thread that opens a parallel region keeps the team, asleep, until it ends itself.
 */
static void *lead(void *argument)
{
    waiting_crowd *crowd = argument;
    pthread_setname_np(pthread_self(), "tess-crowd"); /* and so are the members */
    int members = 0;
#pragma omp parallel num_threads(crowd->size) reduction(+ : members)
    members += 1;
    crowd->size = members;
    tell(crowd, &crowd->ready);
    wait_for_end(crowd);
    return NULL;
}

static void *be_there(void *argument)
{
    wait_for_end(argument);
    return NULL;
}

/* Whether the system gives so many threads. The runtime of OpenMP ends the program
 * where it does not. */
static bool has_threads(waiting_crowd *crowd)
{
    int count = 0;
    pthread_t *thread = tess_alloc(crowd->size, sizeof *thread);
    if (!thread) return false;
    while (count < crowd->size &&
           pthread_create(&thread[count], NULL, be_there, crowd) == 0)
        ++count;
    tell(crowd, &crowd->ending);
    for (int k = 0; k < count; ++k)
        pthread_join(thread[k], NULL);
    crowd->ending = false;
    tess_free(thread);
    return count == crowd->size;
}

static void free_crowd(waiting_crowd *crowd)
{
    pthread_cond_destroy(&crowd->change);
    pthread_mutex_destroy(&crowd->lock);
    tess_free(crowd);
}

/* Processors as the runtime counts them: their number, or that of its places. */
static int count_processors(void)
{
#ifdef _OPENMP
    return omp_get_num_procs();
#else
    return tess_processors();
#endif
}

waiting_crowd *waiting_crowd_start(void)
{
    waiting_crowd *crowd = tess_alloc_zero(1, sizeof *crowd);
    if (!crowd) return NULL;
    crowd->size = count_processors() + 1;
    pthread_mutex_init(&crowd->lock, NULL);
    pthread_cond_init(&crowd->change, NULL);
    if (!has_threads(crowd) || pthread_create(&crowd->thread, NULL, lead, crowd) != 0) {
        free_crowd(crowd);
        return NULL;
    }
    pthread_mutex_lock(&crowd->lock);
    while (!crowd->ready)
        pthread_cond_wait(&crowd->change, &crowd->lock);
    pthread_mutex_unlock(&crowd->lock);
    return crowd;
}

void waiting_crowd_end(waiting_crowd *crowd)
{
    if (!crowd) return;
    tell(crowd, &crowd->ending);
    pthread_join(crowd->thread, NULL);
    free_crowd(crowd);
}
