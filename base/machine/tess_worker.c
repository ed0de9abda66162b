/* Keeps a thread that does pieces of work in the background, one after another. */
#include "tess_worker.h"

#include <pthread.h>
#include <stdbool.h>

#include "tess_mem.h"

struct tess_worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change; /* signals changes of the members below */
    void (*work)(
        void *argument); /* work that is to be done or is being done, or NULL */
    void *argument;
    bool ending;
};

static void *serve(void *argument)
{
    tess_worker *worker = argument;
    pthread_mutex_lock(&worker->lock);
    for (;;) {
        while (!worker->work && !worker->ending)
            pthread_cond_wait(&worker->change, &worker->lock);
        if (!worker->work) break;
        pthread_mutex_unlock(&worker->lock);
        worker->work(worker->argument);
        pthread_mutex_lock(&worker->lock);
        worker->work = NULL;
        pthread_cond_broadcast(&worker->change);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

static void free_worker(tess_worker *worker)
{
    pthread_cond_destroy(&worker->change);
    pthread_mutex_destroy(&worker->lock);
    tess_free(worker);
}

tess_worker *tess_worker_create(void)
{
    tess_worker *worker = tess_alloc_zero(1, sizeof *worker);
    if (!worker) return NULL;
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->change, NULL);
    if (pthread_create(&worker->thread, NULL, serve, worker) == 0) return worker;
    free_worker(worker);
    return NULL;
}

void tess_worker_start(tess_worker *worker, void (*work)(void *argument),
                       void *argument)
{
    pthread_mutex_lock(&worker->lock);
    worker->work = work;
    worker->argument = argument;
    pthread_cond_broadcast(&worker->change);
    pthread_mutex_unlock(&worker->lock);
}

void tess_worker_wait(tess_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    while (worker->work)
        pthread_cond_wait(&worker->change, &worker->lock);
    pthread_mutex_unlock(&worker->lock);
}

void tess_worker_destroy(tess_worker *worker)
{
    if (!worker) return;
    pthread_mutex_lock(&worker->lock);
    worker->ending = true;
    pthread_cond_broadcast(&worker->change);
    pthread_mutex_unlock(&worker->lock);
    pthread_join(worker->thread, NULL);
    free_worker(worker);
}
