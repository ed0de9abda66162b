/** @file tess_meter.h
 *  Energy that processors and a GPU have used, clock and temperature of the GPU: the
 *  kernel's RAPL counters, and NVML, which is opened when it is asked for.
 */
#ifndef TESS_METER_H
#define TESS_METER_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tess_meter tess_meter;

/** NAN: cannot be read here. Counters of energy grow from 0 at tess_meter_create. */
typedef struct tess_readings {
    double cpu_j, gpu_j;   /**< joules: packages of the node, this GPU */
    double gpu_mhz, gpu_c; /**< SM clock now, and temperature [°C] */
} tess_readings;

/** A meter for the GPU at this PCI bus id ("" or NULL: none) and, with a folder like
 *  TESS_METER_RAPL (NULL: none), the node's processors. NULL when memory is short.
 * Local. */
tess_meter *tess_meter_create(const char *gpu_bus_id, const char *rapl);

#define TESS_METER_RAPL "/sys/class/powercap"

/** Counters must be read about once a minute, before they wrap around twice. Local. */
void tess_meter_read(tess_meter *meter, tess_readings *now);

void tess_meter_destroy(tess_meter *meter); /**< NULL is fine. Local. */

#ifdef __cplusplus
}
#endif
#endif
