/* A program without a launcher: one rank, and MPI, which would start a daemon for it,
 * stays out. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tess_comm.h"
#include "tess_mem.h"

/* Child processes of this one; -1 where the kernel does not tell. */
static int num_children(void)
{
    char path[64];
    int pid, count = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "r");
    if (!file) return -1; /* a kernel without CONFIG_PROC_CHILDREN */
    while (fscanf(file, "%d", &pid) == 1)
        ++count;
    fclose(file);
    return count;
}

static void one_rank_without_mpi(void **state)
{
    tess_comm *comm = NULL;
    double value = 3;
    const int64_t bytes = sizeof value;
    int64_t received_bytes = 0;
    void *received = NULL;
    int argc = 1;
    char name[] = "alone", *arguments[] = {name, NULL}, **argv = arguments;
    assert_int_equal(tess_comm_start(&argc, &argv, &comm), TESS_OK);
    assert_int_equal(tess_comm_size(comm), 1);
    assert_int_equal(tess_comm_rank(comm), 0);
    assert_int_equal(num_children(), 0);
    assert_int_equal(tess_comm_allreduce_f64(comm, &value, 1, TESS_SUM), TESS_OK);
    assert_true(value == 3);
    assert_int_equal(
        tess_comm_alltoallv(comm, &value, &bytes, &received, &received_bytes), TESS_OK);
    assert_int_equal(received_bytes, bytes);
    assert_memory_equal(received, &value, sizeof value);
    tess_free(received);
    assert_int_equal(tess_comm_barrier(comm), TESS_OK);
    tess_comm_finish(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_rank_without_mpi)};
    if (num_children() < 0) {
        puts("skipped: this kernel does not list a process's children");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
