/* A thread for work in the background. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "tess_worker.h"

typedef struct visit {
    int count;
    pthread_t thread;
    unsigned sleep_us;
} visit;

static void note(void *argument)
{
    visit *of = argument;
    if (of->sleep_us) usleep(of->sleep_us);
    ++of->count;
    of->thread = pthread_self();
}

/* One piece after the other, done when it has been waited for, in one other thread. */
static void test_in_turn(void **state)
{
    enum { PIECES = 200 };
    visit seen = {0};
    tess_worker *worker = tess_worker_create();
    assert_non_null(worker);
    tess_worker_wait(worker); /* for nothing */
    for (int k = 0; k < PIECES; ++k) {
        visit piece = {.sleep_us = k % 50 == 0 ? 2000 : 0};
        tess_worker_start(worker, note, &piece);
        tess_worker_wait(worker);
        tess_worker_wait(worker);
        assert_int_equal(piece.count, 1);
        assert_false(pthread_equal(piece.thread, pthread_self()));
        if (k > 0) assert_true(pthread_equal(piece.thread, seen.thread));
        seen = piece;
    }
    tess_worker_destroy(worker);
}

/* What has been begun is done before the worker is gone. */
static void test_destroy_waits(void **state)
{
    visit piece = {.sleep_us = 20000};
    tess_worker *worker = tess_worker_create();
    assert_non_null(worker);
    tess_worker_start(worker, note, &piece);
    tess_worker_destroy(worker);
    assert_int_equal(piece.count, 1);
    tess_worker_destroy(tess_worker_create()); /* unused */
    tess_worker_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_turn),
        cmocka_unit_test(test_destroy_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
