/* A test that fails on the last rank while the others wait for it: ends on all of them,
 * see rank_tests.h. Not a test by itself: CTest looks for the line that says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rank_tests.h"

static tess_comm *world;

static void test_last_rank_fails(void **state)
{
    (void)state;
    assert_int_not_equal(tess_comm_rank(world), tess_comm_size(world) - 1);
    assert_int_equal(tess_comm_barrier(world), TESS_OK);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_last_rank_fails)};
    if (tess_comm_start(&argc, &argv, &world) != TESS_OK) return 1;
    TEST_ON_RANKS(world, tests);
    tess_comm_finish(world);
    return 0;
}
