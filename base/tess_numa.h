/** @file tess_numa.h
 *  Which NUMA node of a computer ranks and devices belong to, and which devices ranks
 *  should take. Rows go to a device from the memory of its own node at the full rate
 *  of its link.
 *
 *  `sysfs` is where Linux shows the computer, "/sys". Local throughout.
 */
#ifndef TESS_NUMA_H
#define TESS_NUMA_H

#ifdef __cplusplus
extern "C" {
#endif

/** The node of all processors that this process is bound to; −1: of several nodes, or
 *  not known. */
int tess_numa_here(const char *sysfs);

/** The node of a PCI device ("0000:3B:00.0"), or −1. */
int tess_numa_of_pci(const char *sysfs, const char *bus_id);

/** Deal devices to the ranks of a computer: device[ranks], numbers below num_devices. A
 *  rank takes a device of its own node where there is one; no device gets more than
 *  ⌈ranks / num_devices⌉ ranks. Without known nodes, rank k takes device k modulo
 *  num_devices. All ranks that see the same devices come to the same result. */
void tess_numa_deal(const int *node_of_rank, int ranks, const int *node_of_device,
                    int num_devices, int *device);

#ifdef __cplusplus
}
#endif
#endif
