/** @file source_regrid.h  (private to app/imager/samples/)
 *  Samples in the channels of an axis that is regular in a frame, made of those in the
 *  channels of the files. The shift between the two changes from integration to
 *  integration.
 */
#ifndef TESS_SOURCE_REGRID_H
#define TESS_SOURCE_REGRID_H

#include "prepare.h"
#include "regrid.h"

typedef struct source_regrid source_regrid;

/** A block of rows, of part `part` of the source, and what its samples are made by. */
typedef struct regrid_work {
    const tess_recipe *recipe;
    const tess_vis_block *block;
    int part, threads;
} regrid_work;

void source_regrid_free(source_regrid *regrid); /**< NULL is fine. Local. */
void source_regrid_rest(source_regrid *regrid); /**< Free what blocks need. Local. */

/** Only these channels of the table; NULL: all. Local. */
void source_regrid_filter(source_regrid *regrid, const bool *wanted);

/** Rows and samples that are made of a row of part `window`, at most; the rows are an
 * estimate where channels do not fit those of the axis. Local. */
void source_regrid_most(const source_regrid *regrid, int window, int64_t *rows,
                        int64_t *vis);

/** Append the block's samples, with their times if `row_time` is not NULL, which grows.
 *  Errors of tess_prepare_block, and TESS_ERR_INPUT for times without a Doppler factor.
 *  Local. */
tess_status source_regrid_block(source_regrid *regrid, const regrid_work *work,
                                tess_samples *samples, double **row_time,
                                tess_profile *profile);

#endif
