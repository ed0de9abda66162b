/** @file gcf_device_tests.h
 *  Tests of strategies on a device, or on its emulation; skipped without either.
 */
#ifndef GCF_DEVICE_TESTS_H
#define GCF_DEVICE_TESTS_H

#include <stdio.h>
#include <stdlib.h>

#include "tess_backend.h"

/* What main returns; needs cmocka.h. TESS_TEST_FILTER, as a memory checker may want it,
 * names the tests to be run. */
#define RUN_ON_DEVICE(tests)                                                           \
    (device_is_there() ? cmocka_run_group_tests(tests, NULL, NULL) : 77)

static inline int device_is_there(void)
{
    const tess_backend *backend;
    const char *filter = getenv("TESS_TEST_FILTER");
    if (filter) cmocka_set_test_filter(filter);
    setenv("TESS_EMULATED", "1000000000000", 0);
    if (tess_backend_find("cuda", &backend) == TESS_OK) return 1;
    printf("skipped: %s\n", tess_error_message());
    return 0;
}

#endif
