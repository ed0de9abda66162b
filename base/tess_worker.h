/** @file tess_worker.h
 *  A thread that does one piece of work after the other in the background. It is kept
 *  in between, since a new thread would make its OpenMP team anew, and all of that
 *  team's buffers.
 */
#ifndef TESS_WORKER_H
#define TESS_WORKER_H

typedef struct tess_worker tess_worker;

/** NULL when there is no thread, or memory, to be had: no error, the caller then does
 *  the work itself. Free it with tess_worker_destroy(). */
tess_worker *tess_worker_create(void);

/** Begin `work(argument)`, when that before has been waited for. Local. */
void tess_worker_start(tess_worker *worker, void (*work)(void *argument),
                       void *argument);

/** Return when the work is done, or there was none. */
void tess_worker_wait(tess_worker *worker);

void tess_worker_destroy(tess_worker *worker); /**< waits; NULL is fine */

#endif
