/** @file tess_prefault.h
 *  Memory whose pages a thread of its own asks the system for, while the caller waits
 *  for something else. The system clears pages when they are first written to, which
 *  takes longer than the copy that writes to them.
 */
#ifndef TESS_PREFAULT_H
#define TESS_PREFAULT_H

#include <stdint.h>

typedef struct tess_prefault tess_prefault;

/** Begin with `count` arrays of `bytes` each. NULL when there is no thread, or memory,
 *  to be had: no error, the caller then allocates them itself. Local. */
tess_prefault *tess_prefault_start(int count, int64_t bytes);

/** Array `which`, contents undefined, when all of them are ready. It is the caller's
 *  from now on, for tess_free(). NULL where `with` is, or the array has been taken
 *  before, or could not be had. Local. */
void *tess_prefault_take(tess_prefault *with, int which);

void tess_prefault_destroy(tess_prefault *with); /**< waits; NULL is fine */

#endif
