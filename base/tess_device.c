/* What every device does in the same way. */
#include "tess_device.h"

#include <stddef.h>

/* A link of 50 GB/s takes what so many threads copy. */
enum { MOST_MOVERS = 16 };

int tess_device_movers(int threads)
{
    const int movers = threads - threads / 4;
    return movers < 1 ? 1 : movers < MOST_MOVERS ? movers : MOST_MOVERS;
}

tess_status tess_device_copy_of(const void *host, int64_t bytes, const char *what,
                                const void **out)
{
    tess_status status = TESS_OK;
    void *made = NULL;
    TESS_TRY(tess_device_alloc(bytes, what, &made));
    TESS_TRY(tess_device_upload(made, host, bytes));
    *out = made;
    made = NULL;
cleanup:
    tess_device_free(made);
    return status;
}
