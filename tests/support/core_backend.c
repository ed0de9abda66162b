/* Names the backend that tests of the computing core run on, and skips a test whose
 * backend has no device. */
#include "core_backend.h"

#include <stdio.h>
#include <stdlib.h>

#include "tess_backend.h"

const char *test_backend(void)
{
    const char *name = getenv("TESS_TEST_BACKEND");
    return name ? name : "cpu";
}

/* Before main(), and before MPI is started. */
__attribute__((constructor)) static void skip_without_device(void)
{
    const tess_backend *backend;
    if (tess_backend_find(test_backend(), &backend) == TESS_OK) return;
    fprintf(stderr, "skipped: %s\n", tess_error_message());
    _Exit(77);
}
