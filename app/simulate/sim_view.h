/** @file sim_view.h  (private to app/simulate/)
 *  The sky as a pointing of a mosaic sees it: sources in their directions from its
 * phase centre, and what the antennas receive of them.
 */
#ifndef TESS_SIM_VIEW_H
#define TESS_SIM_VIEW_H

#include <stdbool.h>

#include "sim_pointings.h"
#include "sim_predict.h"
#include "sim_sky.h"
#include "tess_comm.h"
#include "tess_status.h"
#include "tess_vis.h"

/** What is looked at, from where. The caller keeps all of it as long as the view. */
typedef struct sim_view_opts {
    const tess_sky *sky; /**< directions are from the pointings' middle */
    const sim_pointings *pointings;
    const char *primary_beam;  /**< of tess_beam_models.h; NULL: antennas receive alike
                                    from everywhere */
    const tess_vis_meta *meta; /**< whose antennas, telescope and channels */
    int threads;
} sim_view_opts;

typedef struct sim_view sim_view;

/** Errors of tess_beam_models_find() and tess_primary_beam_open(). Collective. */
tess_status sim_view_create(tess_comm *comm, const sim_view_opts *opts,
                            sim_view **view);
void sim_view_destroy(sim_view *view); /**< NULL is fine. Local. */

/** Whether rows of different integrations may see the sky differently. Local. */
bool sim_view_changes(const sim_view *view);

/** Turn to a pointing at a time. TESS_ERR_INPUT: no beam, and a source is 90 degrees or
 *  more away; TESS_ERR_ALLOC, TESS_ERR_IO. Local. */
tess_status sim_view_turn(sim_view *view, int pointing, double time_mjd_s);

/** The sky that was turned to, and the gains of its sources; NULL without a beam.
 *  Local. */
const tess_sky *sim_view_sky(const sim_view *view);
const tess_sim_gains *sim_view_gains(const sim_view *view);

#endif
