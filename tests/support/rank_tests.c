/* cmocka reports a failure only when all tests of a group have run, so each test is a
 * group of its own here. */
#include "rank_tests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tess_waiting.h"

/* Ranks and their threads are more than the processors, so threads that spin would take
 * these from those for which they wait. */
void test_on_ranks(tess_comm *comm, const struct CMUnitTest *tests, size_t num_tests)
{
    tess_waiting_begin(0);
    for (size_t k = 0; k < num_tests; ++k) {
        const struct CMUnitTest one[] = {tests[k]};
        if (cmocka_run_group_tests(one, NULL, NULL) == 0) continue;
        fprintf(stderr, "rank %d failed %s: the test ends on all ranks\n",
                tess_comm_rank(comm), tests[k].name);
        tess_comm_abort(comm, 1);
    }
    tess_waiting_end();
}
