/** @file fast_mem.h  (private to base/)
 *  High-bandwidth memory, by the one of fast_memkind.c and fast_none.c that is built.
 *  Each also has tess_alloc_fast() and tess_fast_memory_text().
 */
#ifndef FAST_MEM_H
#define FAST_MEM_H

#include <stdbool.h>

/** Free a block of high-bandwidth memory; false when `pointer` is none. */
bool fast_mem_free(void *pointer);

#endif
