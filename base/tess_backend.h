/** @file tess_backend.h
 *  What computes: a table of functions chosen at run time. CMake writes
 *  tess_backend_list.h with a TESS_BACKEND(name) line for each one built in.
 */
#ifndef TESS_BACKEND_H
#define TESS_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

typedef struct tess_grid_ops tess_grid_ops;     /* grid/tess_grid.h */
typedef struct tess_degrid_ops tess_degrid_ops; /* degrid/tess_degrid.h */
typedef struct tess_planes_ops tess_planes_ops; /* fft/planes_object.h */
typedef struct tess_clean_ops tess_clean_ops;   /* clean/clean_ops.h */

typedef struct tess_backend {
    const char *name;        /**< "cpu", "cuda" */
    bool (*available)(void); /**< is its device here, now? */
    bool any_geometry;       /**< images beside the phase centre, oblong pixels
                                  (grid/tess_geom.h) */
    /** Take a device (tess_device_start), before anything else, and know how many ranks
     *  have taken the same (tess_device_share); NULL: there is none to take. Again is
     *  harmless. */
    tess_status (*start)(const int *numa_node, int local_rank, int local_size);
    void (*share)(int ranks);
    void (*text)(char *text,
                 int size); /**< which device was taken, for logs; or NULL */
    void (*bus_id)(char *text,
                   int size); /**< its PCI bus id, "" when unknown; or NULL */
    int64_t (*room)(void);    /**< bytes of its memory that may be taken; or NULL */
    int64_t (*held)(void);    /**< most bytes of it that were taken so far; or NULL */
    const tess_grid_ops *grid;
    const tess_degrid_ops *degrid;
    const tess_planes_ops *planes;
    const tess_clean_ops *clean; /**< minor cycles; NULL: those of cpu serve */
} tess_backend;

/** The backend called `name`; "auto" or NULL takes the first available one, cuda before
 *  cpu. TESS_ERR_USAGE for an unknown name, TESS_ERR_RESOURCE when it is not built in
 *  or has no device here. Local; processes that work together must agree on one. */
tess_status tess_backend_find(const char *name, const tess_backend **backend);

/** Is a backend of this name built in, whether or not its device is here? Local. */
bool tess_backend_built(const char *name);

#endif
