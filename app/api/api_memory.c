/* Memory that the library keeps between calls. */
#include "tess_keep.h"
#include "tess_mem.h"
#include "tessera/tess_api.h"

int64_t tess_release_memory(void)
{
    const int64_t bytes = tess_keep_release();
    tess_mem_trim();
    return bytes;
}
