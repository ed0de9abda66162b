/* No high-bandwidth memory: TESS_MEMKIND=OFF. */
#include "fast_mem.h"
#include "tess_mem.h"

void *tess_alloc_fast(int64_t count, size_t size)
{
    return tess_alloc(count, size);
}

bool fast_mem_free(void *pointer)
{
    (void)pointer;
    return false;
}
