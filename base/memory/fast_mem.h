/** @file fast_mem.h  (private to base/)
 *  High-bandwidth memory. Either fast_memkind.c or fast_none.c is built. Each of them
 *  also defines tess_alloc_fast() and tess_fast_memory_text().
 */
#ifndef FAST_MEM_H
#define FAST_MEM_H

#include <stdbool.h>

/** Free a block of high-bandwidth memory. Returns false, and does nothing, if `pointer`
 * is not such a block. */
bool fast_mem_free(void *pointer);

#endif
