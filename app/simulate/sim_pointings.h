/** @file sim_pointings.h  (private to app/simulate/)
 *  The pointings of a mosaic, which an array observes one after another.
 */
#ifndef TESS_SIM_POINTINGS_H
#define TESS_SIM_POINTINGS_H

#include <stdbool.h>

#include "tess_comm.h"
#include "tess_simulate.h"
#include "tess_status.h"
#include "tess_vis.h"

/** The phase centres of pointings, which antennas point to. Zeroed is empty. */
typedef struct sim_pointings {
    tess_vis_field *field; /**< [num], owned */
    int num;
    double center_rad[2]; /**< the middle: right ascension and declination */
} sim_pointings;

/** Find the pointings of opts->mosaic.pointings. Without any, the phase centre is the
 * only one.
 *
 *  "hex:N,SPACING" are N pointings on a lattice of triangles around the phase centre,
 *  ring after ring from the middle; N = 7 and 19 are hexagons. A row of the lattice
 * lies along East and West. A file is a CSV with columns ra, dec and optionally name;
 * the middle is the phase centre if there is one, else the mean direction.
 *
 *  TESS_ERR_USAGE, TESS_ERR_IO; TESS_ERR_INPUT naming line and column. Collective where
 *  a file is read. */
tess_status sim_pointings_find(tess_comm *comm, const tess_simulate_opts *opts,
                               sim_pointings *pointings);

void sim_pointings_free(sim_pointings *pointings); /**< Local. */

#endif
