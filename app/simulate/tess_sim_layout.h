/** @file tess_sim_layout.h
 *  Where the antennas of a simulated observation stand: arrays that ship with the
 *  program (one table each in layouts/), or a CSV file of the user.
 */
#ifndef TESS_SIM_LAYOUT_H
#define TESS_SIM_LAYOUT_H

#include <stdint.h>

#include "tess_comm.h"
#include "tess_status.h"
#include "tess_vis.h"

typedef struct tess_layout_antenna {
    char name[16];
    double xyz_m[3]; /**< geocentric (ITRF) */
} tess_layout_antenna;

/** One built-in array. */
typedef struct tess_layout_table {
    const char *name;      /**< for --layout, "vla-a" */
    const char *telescope; /**< for the file written, "VLA" */
    const char *note;      /**< one line for --list-layouts */
    int num_antennas;
    double diameter_m;
    const tess_layout_antenna *antenna;
} tess_layout_table;

extern const tess_layout_table tess_layout_lofar;
extern const tess_layout_table tess_layout_meerkat;
extern const tess_layout_table tess_layout_mwa;
extern const tess_layout_table tess_layout_ska1_low;
extern const tess_layout_table tess_layout_ska1_mid;
extern const tess_layout_table tess_layout_vla_a;
extern const tess_layout_table tess_layout_vla_d;

/** The array used. Zeroed is empty. */
typedef struct tess_sim_array {
    char telescope[64];
    int num_antennas;
    tess_vis_antenna *antenna; /**< [num_antennas], owned */
    double center_m[3];        /**< mean position, geocentric */
} tess_sim_array;

/** The built-in arrays in the order of --list-layouts; NULL after the last. Local. */
const tess_layout_table *tess_layout_builtin(int index);

/** A built-in array, or when `name` holds a '/' or ends in ".csv", a file with a header
 *  line and the columns x,y,z (geocentric metres), or east,north,up (metres) below a
 *  comment line with "lon=DEG lat=DEG alt=M"; optional name and diameter. Lines that
 *  start with '#' are comments. TESS_ERR_USAGE for an unknown name, TESS_ERR_IO,
 *  TESS_ERR_INPUT naming line and column. Collective. */
tess_status tess_sim_array_read(tess_comm *comm, const char *name,
                                tess_sim_array *array);

/** Keep antennas no farther than `radius_m` from the array's centre (their median,
 *  horizontally; 0 keeps all), and of those `count` (0 keeps all) spread evenly over
 *  the list, so that a subset has the extent of the whole. TESS_ERR_USAGE when fewer
 *  than two, or than `count`, are left. Local. */
tess_status tess_sim_array_choose(tess_sim_array *array, double radius_m, int count);

void tess_sim_array_free(tess_sim_array *array);

#endif
