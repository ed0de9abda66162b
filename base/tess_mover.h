/** @file tess_mover.h
 *  Values that are written somewhere, or come back from there: one function of an
 *  object names what it is made of, for both ways.
 */
#ifndef TESS_MOVER_H
#define TESS_MOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

/** The first member of whatever knows where the values are. */
typedef struct tess_mover {
    bool reads; /**< values come back; else they are written */
    tess_status (*move)(struct tess_mover *mover, void *data, int64_t bytes);
} tess_mover;

/** Write `bytes` of `data`, or fill it with those that were written at this place. The
 *  caller knows how many there are. Errors are the mover's. Local. */
static inline tess_status tess_move(tess_mover *mover, void *data, int64_t bytes)
{
    return bytes > 0 ? mover->move(mover, data, bytes) : TESS_OK;
}

#endif
