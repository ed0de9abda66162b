/* How threads wait for each other: when processors count as shared, what shortens
 * waiting, and that a user's own choice stays. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tess_omp.h"
#include "tess_waiting.h"
#include "waiting.h"

static void test_rule(void **state)
{
    waiting_rule rule = {0};
    assert_false(waiting_rule_decide(&rule, 100, .01, 2)); /* the system's own work */
    assert_false(waiting_rule_decide(&rule, 101, .2, 64)); /* of many threads */
    assert_true(waiting_rule_decide(&rule, 102, .4, 2));
    assert_true(waiting_rule_decide(&rule, 102.2, 0, 2)); /* for a while */
    assert_false(waiting_rule_decide(&rule, 102.3, 0, 2));
    /* a mean counts: one high delay of some milliseconds among low ones is nothing */
    assert_false(waiting_rule_decide(&rule, 103, .05, 2));
    assert_false(waiting_rule_decide(&rule, 103.02, 1, 2));
    assert_false(waiting_rule_decide(&rule, 103.04, .05, 2));
    assert_true(waiting_rule_decide(&rule, 103.1, 1, 2));
    assert_false(waiting_rule_decide(&rule, 104, 0, 2));
    /* spinning has failed soon: it is tried later, each time */
    const double mean = .17;
    double now = 105, previous = .12;
    for (int k = 0; k < 7; ++k) {
        assert_true(waiting_rule_decide(&rule, now, 1, 2));
        double hold = mean;
        while (waiting_rule_decide(&rule, now + hold, 0, 2))
            hold += .01;
        assert_true(hold > previous * 1.9 || previous > 3.9);
        previous = hold;
        now += hold + mean;
    }
    assert_true(previous < 4.1);
    /* a system that does not tell */
    assert_true(waiting_rule_decide(&(waiting_rule){0}, 1, -1, 2));
}

static void test_suspicion(void **state)
{
    waiting_rule rule = {0};
    waiting_rule_suspect(&rule, 5, false);
    assert_false(waiting_rule_decide(&rule, 5, 0, 2));
    waiting_rule_suspect(&rule, 5, true);
    assert_true(waiting_rule_decide(&rule, 5.01, 0, 2));
    assert_false(waiting_rule_decide(&rule, 6, 0, 2));
}

#ifdef _OPENMP

/* Processor time of threads that have nothing to do [s]. */
static double time_of_waiting(void)
{
    struct timespec pause = {.tv_nsec = 10000000}, begin, end;
    int members = 0;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    for (int k = 0; k < 10; ++k) {
#pragma omp parallel num_threads(2) reduction(+ : members)
        members += 1;
        nanosleep(&pause, NULL);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    assert_int_equal(members, 20);
    return (double)(end.tv_sec - begin.tv_sec) +
           1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}

static void *wait_in_a_crowd(void *argument)
{
    double *seconds = argument;
    if (!waiting_crowd_gather()) return NULL;
    time_of_waiting();
    *seconds = time_of_waiting();
    return NULL;
}

/* Threads that wait take next to nothing with a crowd, and spin again without it. */
static void test_crowd(void **state)
{
    pthread_t thread;
    double sleeping = -1;
    if (omp_get_num_procs() < 2) skip(); /* two threads wait shortly there, anyway */
    const double spinning = time_of_waiting();
    assert_int_equal(pthread_create(&thread, NULL, wait_in_a_crowd, &sleeping), 0);
    pthread_join(thread, NULL);
    const double again = time_of_waiting();
    assert_true(sleeping >= 0);
    assert_true(sleeping < spinning / 2);
    assert_true(sleeping < again / 2);
}

static atomic_bool idle;

static void *be_busy(void *argument)
{
    while (!idle)
        ;
    return NULL;
}

/* Whether waiting gets short within some seconds, while three threads share a
 * processor.
 */
static bool gets_short(double most_s)
{
    pthread_t thread[2];
    cpu_set_t before, one;
    bool is_short = false;
    const struct timespec pause = {.tv_nsec = 5000000};
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    for (int k = 0; CPU_COUNT(&one) == 0; ++k)
        if (CPU_ISSET(k, &before)) CPU_SET(k, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    idle = false;
    for (int k = 0; k < 2; ++k)
        assert_int_equal(pthread_create(&thread[k], NULL, be_busy, NULL), 0);
    tess_waiting_begin(2);
    tess_waiting_begin(1); /* as a call within another does */
    for (double s = 0; s < most_s && !is_short; s += .005) {
        nanosleep(&pause, NULL);
        is_short = tess_waiting_is_short();
    }
    tess_waiting_end();
    tess_waiting_end();
    idle = true;
    for (int k = 0; k < 2; ++k)
        pthread_join(thread[k], NULL);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    return is_short;
}

static void test_watcher(void **state)
{
    static const char *const names[] = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"};
    for (int k = 0; k < 2; ++k) {
        setenv(names[k], k == 0 ? "active" : "1000", 1);
        assert_false(gets_short(.2));
        unsetenv(names[k]);
    }
    assert_true(gets_short(60));
    /* a forked process has no watcher of its own yet */
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (tess_waiting_is_short()) _exit(1);
        tess_waiting_begin(2);
        tess_waiting_end();
        _exit(0);
    }
    int outcome = -1;
    assert_int_equal(waitpid(child, &outcome, 0), child);
    assert_true(WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0);
    /* it goes away when it is no longer needed */
    const struct timespec pause = {.tv_nsec = 10000000};
    for (int k = 0; k < 6000 && tess_waiting_is_short(); ++k)
        nanosleep(&pause, NULL);
    assert_false(tess_waiting_is_short());
}

/* Does nothing where there is nobody to wait for. */
static void test_one_thread(void **state)
{
    const struct timespec pause = {.tv_nsec = 50000000};
    tess_waiting_begin(1);
    nanosleep(&pause, NULL);
    assert_false(tess_waiting_is_short());
    tess_waiting_end();
}

#endif

int main(void)
{
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule),       cmocka_unit_test(test_suspicion),
#ifdef _OPENMP
        cmocka_unit_test(test_crowd),      cmocka_unit_test(test_watcher),
        cmocka_unit_test(test_one_thread),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
