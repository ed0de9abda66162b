/** @file failing_alloc.h  (tests)
 *  Allocations that fail when a test asks for it. The test is linked with
 *  -Wl,--wrap=tess_alloc.
 */
#ifndef TESS_FAILING_ALLOC_H
#define TESS_FAILING_ALLOC_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

void *__real_tess_alloc(int64_t count, size_t size);
void *__wrap_tess_alloc(int64_t count, size_t size);

/* Calls until one fails; negative: none does. */
static atomic_int calls_left = -1;

void *__wrap_tess_alloc(int64_t count, size_t size)
{
    return atomic_fetch_sub(&calls_left, 1) == 0 ? NULL
                                                 : __real_tess_alloc(count, size);
}

#endif
