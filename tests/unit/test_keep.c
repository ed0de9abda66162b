/* Memory of freed arrays that is kept for later ones: reuse, cutting and joining, what
 * is given back and when, several threads, and the child of a fork. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tess_keep.h"
#include "tess_mem.h"

enum { MEBI = 1 << 20, HUGE_PAGE = 2 * MEBI };

/* More than a test keeps, and less than the default on some machines. */
static const int64_t ROOM = (int64_t)1 << 30;

/* Each test begins without idle memory. */
static int begin(void **state)
{
    tess_keep_limit(ROOM, -1);
    tess_keep_release();
    return 0;
}

static int64_t idle_mebi(void)
{
    return tess_keep_idle_bytes() / MEBI;
}

static char *filled(int64_t mebi, int value)
{
    char *array = tess_alloc(mebi, MEBI);
    assert_non_null(array);
    assert_int_equal((uintptr_t)array % HUGE_PAGE, 0);
    memset(array, value, (size_t)mebi * MEBI);
    return array;
}

static void test_reuse(void **state)
{
    struct rusage before, after;
    tess_free(filled(64, 1));
    assert_int_equal(idle_mebi(), 64);
    getrusage(RUSAGE_SELF, &before);
    for (int k = 0; k < 10; ++k)
        tess_free(filled(64, k));
    getrusage(RUSAGE_SELF, &after);
    /* new memory would fault at each of its 320 huge pages, if not at each small one */
    assert_true(after.ru_minflt - before.ru_minflt < 32);
    assert_int_equal(tess_keep_release(), 64 * MEBI);
    assert_int_equal(idle_mebi(), 0);
    assert_int_equal(tess_keep_release(), 0);
}

static void test_small_arrays_are_not_kept(void **state)
{
    tess_free(tess_alloc(TESS_KEEP_FROM - 1, 1));
    assert_int_equal(idle_mebi(), 0);
    tess_free(tess_alloc(TESS_KEEP_FROM, 1));
    assert_int_equal(idle_mebi(), TESS_KEEP_FROM / MEBI);
}

/* A large range is cut for smaller arrays, which do not overlap, and becomes one again.
 */
static void test_cut_and_joined(void **state)
{
    char *part[4];
    tess_free(filled(40, 0));
    for (int k = 0; k < 4; ++k)
        part[k] = filled(10, k + 1);
    assert_int_equal(idle_mebi(), 0);
    for (int k = 0; k < 4; ++k)
        for (int64_t b = 0; b < 10 * MEBI; b += 4096)
            assert_int_equal(part[k][b], k + 1);
    static const int order[] = {2, 0, 3, 1};
    for (int k = 0; k < 4; ++k)
        tess_free(part[order[k]]);
    assert_int_equal(idle_mebi(), 40);
    char *whole = filled(40, 5);
    assert_int_equal(idle_mebi(), 0);
    tess_free(whole);
}

/* The smallest range that is large enough is taken. */
static void test_best_fit(void **state)
{
    char *large = filled(60, 1), *apart = filled(8, 2), *small = filled(20, 3);
    tess_free(large);
    tess_free(small);
    char *again = filled(18, 4);
    assert_ptr_equal(again, small);
    tess_free(again);
    tess_free(apart);
}

/* Arrays that do not fit take new memory. Then arrays and idle memory are together no
 * more than arrays have been. */
static void test_never_more_than_ever_used(void **state)
{
    enum { MORE = 5000 }; /* than the tests before have used; it is not touched */
    void *most = tess_alloc(MORE, MEBI);
    assert_non_null(most);
    tess_keep_limit((int64_t)MORE * MEBI, -1);
    tess_free(most);
    assert_int_equal(idle_mebi(), MORE);
    void *larger = tess_alloc(MORE + 8, MEBI);
    assert_int_equal(idle_mebi(), 0);
    void *small = tess_alloc(8, MEBI);
    tess_free(larger);
    assert_int_equal(idle_mebi(), MORE); /* within the limit */
    void *fits = tess_alloc(MORE - 100, MEBI);
    assert_int_equal(idle_mebi(), 100);
    void *new = tess_alloc(102, MEBI);
    assert_int_equal(idle_mebi(), MORE + 16 - 8 - (MORE - 100) - 102);
    tess_free(fits);
    tess_free(new);
    tess_free(small);
}

/* Larger arrays of before do not count any more. */
static void test_release_forgets(void **state)
{
    tess_free(filled(256, 1));
    tess_keep_release();
    tess_free(filled(64, 1));
    assert_int_equal(idle_mebi(), 64);
    void *larger = tess_alloc(66, MEBI);
    assert_int_equal(idle_mebi(), 0);
    tess_free(larger);
}

static void test_limits(void **state)
{
    char *array = filled(32, 1), *other = filled(32, 2);
    tess_keep_limit(16 * MEBI, -1);
    tess_free(array);
    assert_int_equal(idle_mebi(), 16);
    tess_keep_limit(0, -1);
    assert_int_equal(idle_mebi(), 0);
    tess_keep_limit(ROOM, 44 * MEBI);
    array = filled(32, 3);
    tess_free(array);
    assert_int_equal(idle_mebi(), 44 - 32); /* `other` counts */
    tess_free(other);
    assert_int_equal(idle_mebi(), 44);
}

/* ---- threads ---- */

enum { THREADS = 4, TURNS = 200 };

static atomic_bool ends;

static void *take_and_free(void *argument)
{
    const int own = *(const int *)argument;
    bool good = true;
    for (int turn = 0; turn < TURNS && !ends; ++turn) {
        const int64_t bytes = (8 + (own + turn) % 5 * 2) * MEBI;
        char *array = tess_alloc(bytes, 1);
        if (!array) return NULL;
        for (int64_t b = 0; b < bytes; b += HUGE_PAGE)
            array[b] = (char)own;
        for (int64_t b = 0; b < bytes; b += HUGE_PAGE)
            good = good && array[b] == (char)own;
        tess_free(array);
        if (turn % 50 == own) tess_keep_release();
    }
    return good ? argument : NULL;
}

static void test_threads(void **state)
{
    pthread_t thread[THREADS];
    int own[THREADS];
    ends = false;
    for (int k = 0; k < THREADS; ++k) {
        own[k] = k + 1;
        assert_int_equal(pthread_create(&thread[k], NULL, take_and_free, &own[k]), 0);
    }
    for (int k = 0; k < THREADS; ++k) {
        void *result;
        assert_int_equal(pthread_join(thread[k], &result), 0);
        assert_ptr_equal(result, &own[k]);
    }
}

/* The lock is another thread's at the moment of a fork, now and then: children must not
 * wait for it, and have their own copy of what is idle. */
static void test_fork(void **state)
{
    pthread_t thread;
    int own = 7, outcome;
    ends = false;
    assert_int_equal(pthread_create(&thread, NULL, take_and_free, &own), 0);
    for (int k = 0; k < 20; ++k) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(20);
            char *array = tess_alloc(16, MEBI);
            if (array) memset(array, 1, 16 * MEBI);
            tess_free(array);
            tess_keep_release();
            _exit(array ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &outcome, 0), child);
        assert_true(WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0);
    }
    ends = true;
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Sanitizers see each array alone: nothing is kept there. */
static bool keeps(void)
{
    tess_free(tess_alloc(TESS_KEEP_FROM, 1));
    return tess_keep_idle_bytes() > 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_reuse, begin),
        cmocka_unit_test_setup(test_small_arrays_are_not_kept, begin),
        cmocka_unit_test_setup(test_cut_and_joined, begin),
        cmocka_unit_test_setup(test_best_fit, begin),
        cmocka_unit_test_setup(test_limits, begin),
        cmocka_unit_test_setup(test_threads, begin),
        cmocka_unit_test_setup(test_fork, begin),
        cmocka_unit_test_setup(test_never_more_than_ever_used, begin),
        cmocka_unit_test_setup(test_release_forgets, begin),
    };
    if (!keeps()) return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
