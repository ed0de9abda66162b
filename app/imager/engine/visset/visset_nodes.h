/** @file visset_nodes.h  (private to app/imager/)
 *  Whether targets grid nodes of tracks in place of samples, and how large tracks will
 *  be, told before they are found.
 */
#ifndef TESS_VISSET_NODES_H
#define TESS_VISSET_NODES_H

#include "imager_job.h"
#include "tess_bricks.h"
#include "tess_samples.h"
#include "tess_tracks.h"

/** Bytes of what a target takes of samples like these; 0 without views. Local. */
double visset_mixed_bytes(const imager_job *job, const tess_samples *samples);

/** Whether images of so many targets grid nodes of tracks in place of samples, if these
 * know their origins. Local. */
bool visset_has_tracks(const imager_job *job, int num_targets);

/** How tracks of the job are found. Local. */
tess_tracks_opts visset_tracks_opts(const imager_job *job);

/** Guess the bytes of tracks of samples in `bricks`, and of their values, before they
 * are found. Of the samples only the kind and the number matter. Local. */
double visset_tracks_bytes(const imager_job *job, const tess_samples *samples,
                           const tess_brick_list *bricks);

#endif
