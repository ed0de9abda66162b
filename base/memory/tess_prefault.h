/** @file tess_prefault.h
 *  Allocates arrays in the background: a thread makes the system provide their pages
 *  while the caller waits for something else. The system clears a page when it is first
 *  written to, which takes longer than the copy that writes to it.
 */
#ifndef TESS_PREFAULT_H
#define TESS_PREFAULT_H

#include <stdint.h>

typedef struct tess_prefault tess_prefault;

/** Start to prepare `count` arrays of `bytes` each. Returns NULL if no thread or no
 * memory is available. This is no error: the caller then allocates the arrays itself.
 * Local. */
tess_prefault *tess_prefault_start(int count, int64_t bytes);

/** Take array `which`, of undefined content, as soon as all arrays are ready. It then
 * belongs to the caller, who frees it with tess_free(). Returns NULL if `with` is NULL,
 * if the array has been taken before, or if it could not be allocated. Local. */
void *tess_prefault_take(tess_prefault *with, int which);

void tess_prefault_destroy(tess_prefault *with); /**< waits; NULL is fine */

#endif
