/** @file tess_list_predict.h
 *  Visibilities of a list of sources at the rows of an observation: the direct sum in
 *  double precision, on the processor. The functions are those of a
 *  tess_block_predictor of the imager.
 */
#ifndef TESS_LIST_PREDICT_H
#define TESS_LIST_PREDICT_H

#include "tess_comm.h"
#include "tess_status.h"
#include "tess_vis.h"

typedef struct tess_list_predictor tess_list_predictor;

/** Make a predictor of this list (tess_source_list.h), whose name is borrowed, with
 *  this number of threads. TESS_ERR_ALLOC. Local. */
tess_status tess_list_predictor_create(const char *list, int threads,
                                       tess_list_predictor **predictor);
void tess_list_predictor_destroy(tess_list_predictor *predictor); /* NULL is fine */

/** Read the list. Sources are where it says, whatever the phase centre of the
 *  observation. Errors of tess_source_list_read; TESS_ERR_INPUT when a source is 90
 *  degrees or more from the phase centre. Collective. */
tess_status tess_list_predictor_begin(void *predictor, tess_comm *comm,
                                      const tess_vis_meta *meta);

/** Predict the visibilities of all rows of a block, flagged or not; those of rows
 *  without finite uvw are 0. TESS_ERR_INPUT when visibilities do not fit single
 *  precision. Local. */
tess_status tess_list_predictor_fill(void *predictor, const tess_vis_segment *segment,
                                     tess_vis_block *block);

#endif
