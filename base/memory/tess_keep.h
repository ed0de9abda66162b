/** @file tess_keep.h
 *  Large arrays, whose memory is kept for later arrays when they are freed.
 *
 *  The system clears each page that it gives to a process. For a call that grids for
 *  some tenths of a second this can take longer than the gridding. So tess_alloc()
 * takes arrays of TESS_KEEP_FROM bytes or more from here. A freed array becomes *idle*:
 * its pages stay with the process, and a later array takes them as they are. A large
 * idle range is cut for a smaller array, and idle ranges that touch become one.
 *
 *  Idle memory never makes the process larger than it was: when an array finds no room
 *  in idle memory and takes new memory, as much idle memory is given back as is needed
 *  for the sum of arrays and idle memory not to exceed the most that arrays have taken
 *  together so far. Limits bound idle memory further. A lack of memory gives all of it
 *  back.
 *
 *  Pages stay on the NUMA node on which they were first touched. Work that is repeated
 *  takes the same pages for the same arrays.
 *
 *  All functions may be called by several threads at once, and in the child of a fork.
 *  Builds with the address or thread sanitizer keep nothing, so that these see each use
 *  of a freed array. All Local.
 */
#ifndef TESS_KEEP_H
#define TESS_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Smallest array that is taken from here [bytes]: a huge page. */
enum { TESS_KEEP_FROM = 2 << 20 };

/** Allocate an array, uninitialised and aligned to 2 MiB. Returns NULL if memory is
 * short. */
void *tess_keep_alloc(size_t bytes);

/** Free an array of tess_keep_alloc(). Returns false, and does nothing, for any other
 * pointer. */
bool tess_keep_free(void *pointer);

/** Keep at most `idle` bytes from now on, and only as much as leaves all arrays and the
 * idle memory together below `all` bytes. Negative numbers stand for the defaults: an
 * eighth of the memory that the node may use, but at most 4 GiB; and no such limit. */
void tess_keep_limit(int64_t idle, int64_t all);

/** Give all idle memory back to the system, and forget how much arrays have taken so
 * far. Returns its bytes. */
int64_t tess_keep_release(void);

/** Bytes of idle memory. */
int64_t tess_keep_idle_bytes(void);

#ifdef __cplusplus
}
#endif
#endif
