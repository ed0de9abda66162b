/* Reads the NUMA nodes of ranks and devices from Linux, and deals devices to ranks. */
#define _GNU_SOURCE
#include "tess_numa.h"

#include <ctype.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH = 512 };

static bool is_of_node(const char *sysfs, int processor, int node)
{
    char path[PATH];
    const int length = snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/node%d",
                                sysfs, processor, node);
    return length < PATH && access(path, F_OK) == 0;
}

int tess_numa_here(const char *sysfs)
{
    cpu_set_t bound;
    unsigned processor, node;
    if (sched_getaffinity(0, sizeof bound, &bound) != 0) return -1;
    if (getcpu(&processor, &node) != 0) return -1;
    for (size_t k = 0; k < CPU_SETSIZE; ++k)
        if (CPU_ISSET(k, &bound) && !is_of_node(sysfs, (int)k, (int)node)) return -1;
    return (int)node;
}

int tess_numa_of_pci(const char *sysfs, const char *bus_id)
{
    char path[PATH], name[64] = "";
    int node = -1;
    for (size_t k = 0; k < sizeof name - 1 && bus_id[k]; ++k)
        name[k] = (char)tolower((unsigned char)bus_id[k]);
    const int length =
        snprintf(path, sizeof path, "%s/bus/pci/devices/%s/numa_node", sysfs, name);
    FILE *file = length < PATH ? fopen(path, "r") : NULL;
    if (!file) return -1;
    if (fscanf(file, "%d", &node) != 1) node = -1;
    fclose(file);
    return node;
}

/* The device of that node (−1: of any node) that the fewest of the ranks so far have.
 * −1 if all such devices have `most` ranks. */
static int least_taken(const int *device, int ranks, const int *node_of_device,
                       int num_devices, int node, int most)
{
    int best = -1, least = most;
    for (int d = 0; d < num_devices; ++d) {
        int taken = 0;
        if (node >= 0 && node_of_device[d] != node) continue;
        for (int k = 0; k < ranks; ++k)
            taken += device[k] == d;
        if (taken >= least) continue;
        best = d;
        least = taken;
    }
    return best;
}

void tess_numa_deal(const int *node_of_rank, int ranks, const int *node_of_device,
                    int num_devices, int *device)
{
    const int most = (ranks + num_devices - 1) / num_devices;
    for (int k = 0; k < ranks; ++k)
        device[k] = -1;
    /* near devices are dealt first; ranks without one take what is left */
    for (int k = 0; k < ranks; ++k)
        if (node_of_rank[k] >= 0)
            device[k] = least_taken(device, ranks, node_of_device, num_devices,
                                    node_of_rank[k], most);
    for (int k = 0; k < ranks; ++k)
        if (device[k] < 0)
            device[k] =
                least_taken(device, ranks, node_of_device, num_devices, -1, most);
}
