/** @file tess_backend.h
 *  A backend: a table of functions that compute, chosen at run time. CMake writes
 *  tess_backend_list.h, which has a line TESS_BACKEND(name) for each backend that is
 *  built in.
 */
#ifndef TESS_BACKEND_H
#define TESS_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_place.h"
#include "tess_status.h"

typedef struct tess_grid_ops tess_grid_ops;     /* grid/tess_grid.h */
typedef struct tess_degrid_ops tess_degrid_ops; /* degrid/tess_degrid.h */
typedef struct tess_planes_ops tess_planes_ops; /* fft/planes_object.h */
typedef struct tess_clean_ops tess_clean_ops;   /* clean/clean_ops.h */

/** What --backend takes, and the name of the backend that computes on a device. Texts
 *  that name a backend are put together from these. */
#define TESS_BACKEND_WORDS  "auto|cpu|cuda"
#define TESS_BACKEND_DEVICE "cuda"

/** Lanes of a device, in which threads have it work side by side: tess_device_split,
 *  tess_device_enter and tess_device_leave. */
typedef struct tess_lanes {
    int most;
    tess_status (*split)(int num_lanes);
    tess_status (*enter)(int lane);
    tess_status (*leave)(void);
} tess_lanes;

typedef struct tess_backend {
    const char *name;
    bool (*available)(void); /**< whether this machine has its device */
    const char *lacks;       /**< what a machine without it lacks, for messages */
    /** Take a device (tess_device_start) before anything else, and learn how many ranks
     * have taken the same device (tess_device_share). NULL: the backend has no device.
     * A second call does nothing. */
    tess_status (*start)(const int *numa_node, int local_rank, int local_size);
    tess_status (*share)(int ranks);
    void (*text)(char *text,
                 int size); /**< name of the device that was taken, for logs; or NULL */
    void (*bus_id)(char *text,
                   int size); /**< PCI bus id of the device, "" if unknown; or NULL */
    /** Bytes of device memory that may still be taken; and the most that were taken at
     * a time. NULL: the backend has no device. */
    int64_t (*room)(void);
    int64_t (*held)(void);
    const tess_lanes *lanes; /**< NULL: the backend has no device */
    const tess_place *place; /**< memory of its device; NULL: the backend computes in
                                  host memory */
    const tess_grid_ops *grid;
    const tess_degrid_ops *degrid;
    const tess_planes_ops *planes;
    const tess_clean_ops *clean; /**< minor cycles; NULL: the cpu backend does them */
} tess_backend;

/** Find the backend called `name`. "auto" or NULL takes the first available one, and
 * one with a device before cpu. TESS_ERR_USAGE: the name is unknown; TESS_ERR_RESOURCE:
 * the backend is not built in, or this machine has no device for it. Local; processes
 * that work together must agree on one backend. */
tess_status tess_backend_find(const char *name, const tess_backend **backend);

/** Whether a backend of this name is built in. Its device need not be in this machine.
 * Local. */
bool tess_backend_built(const char *name);

#endif
