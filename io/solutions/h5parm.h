/** @file h5parm.h  (private to io/)
 *  Files of solutions in the format h5parm (HDF5): the directions of a file, and its
 *  solution tables with their axes and values, as they are stored. HDF5's own messages
 *  are not shown while a file is open. All Local.
 */
#ifndef H5PARM_H
#define H5PARM_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_solutions.h"
#include "tess_status.h"

/** Axes of values, in the order in which they are held. */
typedef enum h5parm_axis_name {
    H5PARM_DIR,
    H5PARM_ANT,
    H5PARM_TIME,
    H5PARM_FREQ,
    H5PARM_POL,
    H5PARM_AXES
} h5parm_axis_name;

/** An axis of a solution table. */
typedef struct h5parm_axis {
    int place; /**< among the axes of the stored values, or −1: the table has none */
    int64_t length;           /**< 1 without it */
    double *number;           /**< [length] of time (MJD) [s] and freq [Hz], or NULL */
    tess_solution_name *text; /**< [length] of dir, ant and pol, or NULL */
} h5parm_axis;

/** A solution table. Zeroed is empty; h5parm_table_free. */
typedef struct h5parm_table {
    char name[64];
    char type[32]; /**< "amplitude" */
    int num_axes;  /**< of the stored values */
    h5parm_axis axis[H5PARM_AXES];
} h5parm_table;

/** Which values to take: index[axis][num[axis]]. */
typedef struct h5parm_pick {
    int64_t num[H5PARM_AXES];
    int64_t *index[H5PARM_AXES];
} h5parm_pick;

typedef struct h5parm h5parm;

/** Open the first group of solutions of a file, whose name begins with "sol".
 *  TESS_ERR_IO; TESS_ERR_INPUT for what is no h5parm; TESS_ERR_RESOURCE in a build
 *  without HDF5. */
tess_status h5parm_open(const char *path, h5parm **file);
void h5parm_close(h5parm *file); /**< NULL is fine. */

/** The table `source`: directions [rad], J2000; freed with tess_free(). */
tess_status h5parm_sources(h5parm *file, tess_solution_source **source, int64_t *num);

/** Whether the file says that it holds beams: attribute KIND of the group is "beam". */
bool h5parm_is_beam(h5parm *file);

bool h5parm_has_table(h5parm *file, const char *name);

/** Names of the file's solution tables, separated by commas. */
void h5parm_table_names(h5parm *file, char *names, size_t size);

/** A table without its values. TESS_ERR_INPUT naming file and table. */
tess_status h5parm_table_open(h5parm *file, const char *name, h5parm_table *table);
void h5parm_table_free(h5parm_table *table);

/** value[dir][ant][time][freq][pol] of a pick; NaN where the weight is 0 or no number,
 *  or the value is none. Memory beside it: 8 MiB, or one step of the first axis. */
tess_status h5parm_values(h5parm *file, const h5parm_table *table,
                          const h5parm_pick *pick, double *value);

#endif
