/** @file tess_meter.h
 *  Energy that processors and a GPU have used, and the clock and the temperature of the
 *  GPU. They come from the RAPL counters of the kernel and from NVML, a library that is
 *  opened only if a meter of a GPU is created.
 */
#ifndef TESS_METER_H
#define TESS_METER_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tess_meter tess_meter;

/** Readings; one that is not available on this machine is NAN. Counters of energy start
 * from 0 at tess_meter_create. */
typedef struct tess_readings {
    double cpu_j,
        gpu_j; /**< energy [J] of the processor packages of the node, and of this GPU */
    double gpu_mhz, gpu_c; /**< clock of the SMs now [MHz], and temperature [°C] */
} tess_readings;

/** Create a meter for the GPU at this PCI bus id ("" or NULL: no GPU) and for the
 * node's processors, whose counters are in the folder `rapl`, like TESS_METER_RAPL
 * (NULL: no processors). Returns NULL if memory is short. Local. */
tess_meter *tess_meter_create(const char *gpu_bus_id, const char *rapl);

#define TESS_METER_RAPL "/sys/class/powercap"

/** Read all counters. They must be read about once a minute, before a counter wraps
 * around twice. Local. */
void tess_meter_read(tess_meter *meter, tess_readings *now);

void tess_meter_destroy(tess_meter *meter); /**< NULL is fine. Local. */

#ifdef __cplusplus
}
#endif
#endif
