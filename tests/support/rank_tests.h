/** @file rank_tests.h  (tests)
 *  Tests that run on several ranks at once. A failing test leaves its rank in the
 *  middle of what all ranks do together; the others would wait for it until the time
 *  limit.
 */
#ifndef TESS_RANK_TESTS_H
#define TESS_RANK_TESTS_H

#include <stddef.h>

#include "tess_comm.h"

struct CMUnitTest;

/** Run cmocka's tests one after the other. A rank whose test fails ends the job at once
 *  with status 1, so that the function returns only where all tests passed. Collective,
 *  as far as the tests are. */
void test_on_ranks(tess_comm *comm, const struct CMUnitTest *tests, size_t num_tests);

#define TEST_ON_RANKS(comm, tests)                                                     \
    test_on_ranks(comm, tests, sizeof(tests) / sizeof((tests)[0]))

#endif
