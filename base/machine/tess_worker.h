/** @file tess_worker.h
 *  A thread that does pieces of work in the background, one after the other. The same
 *  thread is kept for all of them, because a new thread would create a new OpenMP team
 *  with all of the team's buffers.
 */
#ifndef TESS_WORKER_H
#define TESS_WORKER_H

typedef struct tess_worker tess_worker;

/** Create a worker. Returns NULL if no thread or no memory is available. This is no
 * error: the caller then does the work itself. Free it with tess_worker_destroy(). */
tess_worker *tess_worker_create(void);

/** Begin `work(argument)`. The caller has waited for the work before. Local. */
void tess_worker_start(tess_worker *worker, void (*work)(void *argument),
                       void *argument);

/** Wait until the work is done. Returns at once if there is none. */
void tess_worker_wait(tess_worker *worker);

void tess_worker_destroy(tess_worker *worker); /**< waits for the work; NULL is fine */

#endif
