/* Threads of a rank, by what the batch system says, and whether ranks that wait leave
 * their processors to others. */
#define _GNU_SOURCE
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tess_comm.h"
#include "tess_processors.h"
#include "tess_threads.h"

static const char *const YIELD = "OMPI_MCA_mpi_yield_when_idle";

/* What launchers and batch systems set. */
static int forget_all(void **state)
{
    static const char *const names[] = {"OMP_NUM_THREADS",
                                        "SLURM_CPUS_PER_TASK",
                                        "SLURM_CPUS_ON_NODE",
                                        "SLURM_STEP_TASKS_PER_NODE",
                                        "SLURM_TASKS_PER_NODE",
                                        "SLURM_CPU_BIND_TYPE",
                                        "OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "OMPI_MCA_orte_bound_at_launch",
                                        "OMPI_MCA_mpi_yield_when_idle"};
    for (size_t k = 0; k < sizeof names / sizeof *names; ++k)
        unsetenv(names[k]);
    return 0;
}

static int default_threads(void)
{
    tess_comm *comm = NULL;
    int threads = 0;
    assert_int_equal(tess_comm_self(&comm), TESS_OK);
    assert_int_equal(tess_threads_default(comm, &threads), TESS_OK);
    tess_comm_free(comm);
    return threads;
}

static void test_default(void **state)
{
    const int all = default_threads();
    assert_int_equal(all, tess_processors());
    setenv("SLURM_CPUS_ON_NODE", "1", 1);
    assert_int_equal(default_threads(), 1);
    unsetenv("SLURM_CPUS_ON_NODE");
    setenv("SLURM_CPUS_PER_TASK", "1", 1);
    assert_int_equal(default_threads(), 1);
    setenv("SLURM_CPUS_PER_TASK", "60000", 1); /* more than a binding leaves */
    assert_int_equal(default_threads(), all);
    setenv("OMP_NUM_THREADS", "77,2", 1); /* the user's choice */
    assert_int_equal(default_threads(), 77);
}

/* Whether ranks yield, given two variables NAME=VALUE or NULL. */
static bool yields(const char *ranks, const char *bound, int threads)
{
    char name[100];
    const char *given[2] = {ranks, bound};
    forget_all(NULL);
    for (int k = 0; k < 2; ++k) {
        if (!given[k]) continue;
        const size_t length = strcspn(given[k], "=");
        snprintf(name, sizeof name, "%.*s", (int)length, given[k]);
        setenv(name, given[k] + length + 1, 1);
    }
    tess_threads_yield(threads);
    return getenv(YIELD) != NULL;
}

static void test_yield(void **state)
{
    cpu_set_t before, two;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&two);
    for (int k = 0; k < CPU_SETSIZE && CPU_COUNT(&two) < 2; ++k)
        if (CPU_ISSET(k, &before)) CPU_SET(k, &two);
    if (CPU_COUNT(&two) < 2 || tess_processors() < 2) skip();
    assert_int_equal(sched_setaffinity(0, sizeof two, &two), 0);
    assert_false(yields(NULL, NULL, 9)); /* no launcher */
    assert_false(yields("OMPI_COMM_WORLD_LOCAL_SIZE=2", NULL, 0));
    assert_false(yields("OMPI_COMM_WORLD_LOCAL_SIZE=2", NULL, 1));
    assert_true(yields("OMPI_COMM_WORLD_LOCAL_SIZE=2", NULL, 2));
    assert_true(yields("OMPI_COMM_WORLD_LOCAL_SIZE=3", NULL, 0));
    assert_true(yields("OMPI_COMM_WORLD_LOCAL_SIZE=2", "OMP_NUM_THREADS=2", 0));
    assert_true(yields("OMPI_COMM_WORLD_LOCAL_SIZE=2", "SLURM_CPUS_PER_TASK=2", 0));
    assert_true(yields("SLURM_STEP_TASKS_PER_NODE=1(x2),3", NULL, 1));
    assert_true(yields("OMPI_COMM_WORLD_LOCAL_SIZE=2", "SLURM_CPUS_ON_NODE=1", 1));
    /* each rank has two processors of its own */
    static const char apart[] = "OMPI_MCA_orte_bound_at_launch=1";
    assert_false(yields("OMPI_COMM_WORLD_LOCAL_SIZE=4", apart, 2));
    assert_true(yields("OMPI_COMM_WORLD_LOCAL_SIZE=4", apart, 3));
    assert_false(yields("SLURM_TASKS_PER_NODE=4", "SLURM_CPU_BIND_TYPE=mask_cpu:", 2));
    assert_true(yields("SLURM_TASKS_PER_NODE=4", "SLURM_CPU_BIND_TYPE=none", 2));
    /* the user's choice */
    assert_true(
        yields("OMPI_COMM_WORLD_LOCAL_SIZE=4", "OMPI_MCA_mpi_yield_when_idle=0", 2));
    assert_string_equal(getenv(YIELD), "0");
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_default, forget_all),
        cmocka_unit_test_setup(test_yield, forget_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
