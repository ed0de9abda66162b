/** @file chauvenet.h  (private to clean/)
 *  Chauvenet's criterion on pixels that are distributed over ranks: a value that is
 *  farther from the mean than half a value is expected to be, of so many, is left out.
 */
#ifndef TESS_CHAUVENET_H
#define TESS_CHAUVENET_H

#include <stdint.h>

#include "tess_comm.h"

/** is_blank[count] := not 0 where a value is NaN, or left out by the criterion, which
 * is applied five times, or until nothing more is left out. The same on any number of
 *  ranks. TESS_ERR_ALLOC. Collective. */
tess_status chauvenet_blank(tess_comm *comm, const double *value, int64_t count,
                            uint8_t *is_blank);

#endif
