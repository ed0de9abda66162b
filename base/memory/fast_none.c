/* A build with TESS_MEMKIND=OFF has no high-bandwidth memory. */
#include "fast_mem.h"
#include "tess_mem.h"

void *tess_alloc_fast(int64_t count, size_t size)
{
    return tess_alloc(count, size);
}

const char *tess_fast_memory_text(void)
{
    return "none (built without memkind)";
}

bool fast_mem_free(void *pointer)
{
    (void)pointer;
    return false;
}
