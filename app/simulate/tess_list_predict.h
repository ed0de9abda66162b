/** @file tess_list_predict.h
 *  Visibilities of a list of sources at the rows of an observation: the direct sum in
 *  double precision, on the processor.
 */
#ifndef TESS_LIST_PREDICT_H
#define TESS_LIST_PREDICT_H

#include <stdbool.h>

#include "tess_comm.h"
#include "tess_profile.h"
#include "tess_status.h"
#include "tess_vis.h"

/** What to predict, and where to. */
typedef struct tess_list_predict_opts {
    const char *obs;
    const char *list;       /**< io/files/tess_source_list.h */
    tess_vis_select select; /**< rows and channels; what is read of them is set here */
    const char *output;     /**< OUT.uvfits, or NULL */
    const char *column;     /**< of the MeasurementSet, or NULL */
    /** Takes blocks as they are made where there is neither of them. Local. */
    tess_status (*take)(void *context, const tess_vis_meta *meta,
                        const tess_vis_block *block);
    void *take_context;
    bool overwrite;
    const char *command_line;
    int threads;
} tess_list_predict_opts;

/** Predict and write the visibilities of all selected rows, flagged or not; those of
 * rows without finite uvw are 0. Sources are where the list says, whatever the phase
 * centre of the observation. Ranks make contiguous ranges of rows. Errors of
 * tess_vis_open and tess_source_list_read; TESS_ERR_INPUT when a source is 90 degrees
 * or more from the phase centre, or visibilities do not fit single precision.
 * Collective. */
tess_status tess_list_predict(tess_comm *comm, const tess_list_predict_opts *opts,
                              tess_profile *profile);

#endif
