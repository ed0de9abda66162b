/** @file tess_place.h
 *  Memory of a backend's device as a table of functions, for code that keeps arrays
 *  there and does not know the device. Host memory has no table: its place is NULL.
 *
 *  The functions do what those of tess_device.h do, and have their errors. All are
 *  Local.
 */
#ifndef TESS_PLACE_H
#define TESS_PLACE_H

#include <stdint.h>

#include "tess_status.h"

typedef struct tess_place {
    /** Memory of this many bytes, at least 1. `what` is for the message of a failure.
     */
    tess_status (*alloc)(int64_t bytes, const char *what, void **memory);
    void (*free)(void *memory);
    tess_status (*zero)(void *memory, int64_t bytes);
    /** From host memory, which may be changed when the call has returned; and to host
     * memory, where the bytes are when the call has returned. */
    tess_status (*upload)(void *to, const void *from, int64_t bytes);
    tess_status (*download)(void *to, const void *from, int64_t bytes);
    /** Copy `count` rows of `bytes` bytes inside this memory. */
    tess_status (*copy_rows)(void *to, int64_t to_stride, const void *from,
                             int64_t from_stride, int64_t bytes, int64_t count);
} tess_place;

#endif
