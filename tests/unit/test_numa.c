/* NUMA nodes of processors and devices, from a copy of what Linux shows. */
#define _GNU_SOURCE
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tess_numa.h"

static char folder[] = "/tmp/test_numa_XXXXXX";

/* Make folders of a path below the folder. */
static void make_folders(const char *path)
{
    char whole[256];
    snprintf(whole, sizeof whole, "%s/%s", folder, path);
    for (char *at = whole + strlen(folder) + 1; (at = strchr(at, '/')); ++at) {
        *at = '\0';
        (void)mkdir(whole, 0700);
        *at = '/';
    }
    (void)mkdir(whole, 0700);
}

static void put(const char *path, const char *text)
{
    char whole[256];
    snprintf(whole, sizeof whole, "%s/%s", folder, path);
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int make_folder(void **state)
{
    return mkdtemp(folder) ? 0 : 1;
}

static int remove_folder(void **state)
{
    char command[300];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static void test_pci(void **state)
{
    make_folders("bus/pci/devices/0000:3b:00.0");
    put("bus/pci/devices/0000:3b:00.0/numa_node", "1\n");
    make_folders("bus/pci/devices/0000:5e:00.0");
    put("bus/pci/devices/0000:5e:00.0/numa_node", "none\n");
    assert_int_equal(tess_numa_of_pci(folder, "0000:3B:00.0"), 1);
    assert_int_equal(tess_numa_of_pci(folder, "0000:5E:00.0"), -1);
    assert_int_equal(tess_numa_of_pci(folder, "0000:99:00.0"), -1);
    assert_int_equal(tess_numa_of_pci(folder, ""), -1);
}

/* A node is known when all processors that the process is bound to are of it. */
static void test_here(void **state)
{
    unsigned processor, node;
    cpu_set_t before, one;
    char path[100];
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_int_equal(getcpu(&processor, &node), 0);
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(tess_numa_here(folder), -1);
    snprintf(path, sizeof path, "devices/system/cpu/cpu%u/node%u", processor, node);
    make_folders(path);
    assert_int_equal(tess_numa_here(folder), (int)node);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    if (CPU_COUNT(&before) > 1) assert_int_equal(tess_numa_here(folder), -1);
}

static void check_deal(int ranks, const int *node_of_rank, int devices,
                       const int *node_of_device, const int *expected)
{
    int device[16];
    tess_numa_deal(node_of_rank, ranks, node_of_device, devices, device);
    for (int k = 0; k < ranks; ++k)
        assert_int_equal(device[k], expected[k]);
}

static void test_deal(void **state)
{
    const int nowhere[8] = {-1, -1, -1, -1, -1, -1, -1, -1}, four[4] = {0, 0, 1, 1};
    /* without nodes: in turn */
    check_deal(6, nowhere, 4, four, (const int[]){0, 1, 2, 3, 0, 1});
    check_deal(4, (const int[]){0, 1, 0, 1}, 4, nowhere, (const int[]){0, 1, 2, 3});
    /* ranks that alternate between sockets, as Open MPI maps them */
    check_deal(4, (const int[]){0, 1, 0, 1}, 4, four, (const int[]){0, 2, 1, 3});
    check_deal(8, (const int[]){0, 1, 0, 1, 0, 1, 0, 1}, 4, four,
               (const int[]){0, 2, 1, 3, 0, 2, 1, 3});
    /* all on one socket: the far devices are better than to share near ones */
    check_deal(4, (const int[]){1, 1, 1, 1}, 4, four, (const int[]){2, 3, 0, 1});
    /* a rank that is not bound takes what is left */
    check_deal(4, (const int[]){-1, 0, 1, 0}, 4, four, (const int[]){3, 0, 2, 1});
    check_deal(3, (const int[]){1, 0, 1}, 1, four, (const int[]){0, 0, 0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pci),
                                       cmocka_unit_test(test_here),
                                       cmocka_unit_test(test_deal)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
