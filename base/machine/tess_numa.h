/** @file tess_numa.h
 *  Finds the NUMA nodes of a computer to which ranks and devices belong, and deals
 *  devices to ranks. Rows reach a device at the full rate of its link only from the
 *  memory of the device's own node. `sysfs` is the folder in which Linux describes the
 *  computer, "/sys". All Local.
 */
#ifndef TESS_NUMA_H
#define TESS_NUMA_H

#ifdef __cplusplus
extern "C" {
#endif

/** The node of all processors to which this process is bound; −1 if these are of
 * several nodes, or if the node is unknown. */
int tess_numa_here(const char *sysfs);

/** The node of a PCI device like "0000:3B:00.0"; −1 if it is unknown. */
int tess_numa_of_pci(const char *sysfs, const char *bus_id);

/** Deal devices to the ranks of a computer: device[ranks], numbers below num_devices. A
 * rank takes a device of its own node if there is one. No device gets more than ⌈ranks
 * / num_devices⌉ ranks. If nodes are unknown, rank k takes device k modulo num_devices.
 * All ranks that see the same devices compute the same result. */
void tess_numa_deal(const int *node_of_rank, int ranks, const int *node_of_device,
                    int num_devices, int *device);

#ifdef __cplusplus
}
#endif
#endif
