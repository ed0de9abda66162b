/* A rank may be away from MPI for longer than the time limit of the watch, as long as
 * its beats are heard. (tests/faults/nodes.py cuts links and stops ranks.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>

#include "rank_tests.h"
#include "tess_watch.h"

static tess_comm *world;

static void say(tess_status status, int rank, void *context)
{
    (void)context;
    print_error("rank %d: %s: %s\n", rank, tess_status_text(status),
                tess_error_message());
}

static void leave(tess_status status, void *context)
{
    (void)context;
    tess_comm_abort(world, tess_status_exit(status));
}

static void test_timeout(void **state)
{
    (void)state;
    assert_int_equal(tess_watch_timeout(TESS_WATCH_LEAST_S - 0.1), TESS_ERR_USAGE);
    tess_error_clear();
    assert_int_equal(tess_watch_timeout(0), TESS_OK);
    assert_int_equal(tess_watch_timeout(TESS_WATCH_LEAST_S), TESS_OK);
}

/* With three ranks alone, because the test takes its time. */
static void test_work(void **state)
{
    (void)state;
    const struct timespec work = {.tv_sec = TESS_WATCH_LEAST_S + 2};
    if (tess_comm_size(world) == 3 && tess_comm_rank(world) == 1)
        nanosleep(&work, NULL);
    assert_int_equal(tess_comm_barrier(world), TESS_OK);
}

static void test_again(void **state)
{
    (void)state;
    tess_watch_stop();
    tess_watch_stop();
    assert_int_equal(tess_watch_start(world, say, leave, NULL), TESS_OK);
    assert_int_equal(tess_comm_barrier(world), TESS_OK);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_work),
        cmocka_unit_test(test_again),
    };
    if (tess_comm_start(&argc, &argv, &world) != TESS_OK) return 1;
    if (tess_watch_start(world, say, leave, NULL) != TESS_OK) return 1;
    TEST_ON_RANKS(world, tests);
    tess_comm_finish(world);
    tess_watch_stop();
    return 0;
}
