/** @file tess_mover.h
 *  A mover writes values, or reads back values that were written. An object has one
 *  function that names its values, in one order, for both directions.
 */
#ifndef TESS_MOVER_H
#define TESS_MOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

/** A mover. It is the first member of a struct that knows where the values are. */
typedef struct tess_mover {
    bool reads; /**< values are read back; otherwise they are written */
    tess_status (*move)(struct tess_mover *mover, void *data, int64_t bytes);
} tess_mover;

/** Write `bytes` of `data`, or fill `data` with the bytes that were written at this
 * place of the order. The caller knows how many bytes there are. Errors are the
 * mover's. Local. */
static inline tess_status tess_move(tess_mover *mover, void *data, int64_t bytes)
{
    return bytes > 0 ? mover->move(mover, data, bytes) : TESS_OK;
}

#endif
