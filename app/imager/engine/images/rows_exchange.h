/** @file rows_exchange.h  (private to app/imager/)
 *  Parts of images on their way between ranks.
 */
#ifndef TESS_ROWS_EXCHANGE_H
#define TESS_ROWS_EXCHANGE_H

#include "tess_comm.h"
#include "tess_rows.h"

/** Each rank has a part of an image, and wants a part of it: the pixels that the part
 * wanted by one rank and that of another have in common go there. Pixels that no rank
 * has stay as they are. All parts are of one image and of one type; parts of `have` do
 * not overlap. TESS_ERR_ALLOC, TESS_ERR_INTERNAL: pixels of other types. Collective. */
tess_status imager_rows_exchange(tess_comm *comm, const tess_rows *have,
                                 const tess_rows *want);

#endif
