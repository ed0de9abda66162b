/** @file tess_backend.h
 *  What computes: a table of functions chosen at run time. CMake writes
 *  tess_backend_list.h with a TESS_BACKEND(name) line for each one built in.
 */
#ifndef TESS_BACKEND_H
#define TESS_BACKEND_H

#include <stdbool.h>

#include "tess_status.h"

typedef struct tess_grid_ops tess_grid_ops;     /* grid/tess_grid.h */
typedef struct tess_degrid_ops tess_degrid_ops; /* degrid/tess_degrid.h */
typedef struct tess_planes_ops tess_planes_ops; /* fft/planes.h */

typedef struct tess_backend {
    const char *name;                /**< "cpu" */
    bool (*available)(void);         /**< is its device here, now? */
    bool any_geometry;               /**< images beside the phase centre, oblong pixels
                                          (grid/tess_geom.h) */
    const tess_grid_ops *grid;
    const tess_degrid_ops *degrid;
    const tess_planes_ops *planes;
} tess_backend;

/** The backend called `name`; "auto" or NULL takes the first available one.
 *  TESS_ERR_USAGE for an unknown name, TESS_ERR_RESOURCE when it is not built in or has
 *  no device here. */
tess_status tess_backend_find(const char *name, const tess_backend **backend);

#endif
