/** @file tracks_find.h  (private to grid/)
 *  Pieces of tracks and their nodes, as they are found (tess_tracks.h).
 */
#ifndef TESS_TRACKS_FIND_H
#define TESS_TRACKS_FIND_H

#include "tracks.h"
#include "tracks_items.h"

/** Channels of a place on the track. */
typedef struct find_node {
    double uvw_m[3];
    int32_t chan, count;
} find_node;

/** What is found in a share of all items. */
typedef struct find_share {
    int64_t num_tracks, capacity_tracks, num_curves, capacity_curves;
    int64_t num_rows, capacity_rows, num_nodes, capacity_nodes, num_vis;
    int64_t first_track, first_curve, first_row, first_node, first_vis; /* of all */
    track *track; /* whose first rows, nodes and curves are those of the share */
    track_curve *curve;
    int32_t *row;
    find_node *node;
} find_share;

/** What is looked for. */
typedef struct find_work {
    const tess_samples *samples;
    const tess_brick_list
        *bricks; /* of the samples, within which tracks stay; or NULL */
    const tess_tracks_opts *opts;
    tracks_order order; /* of rows, if tracks go from brick to brick */
    track_shares shares;
} find_work;

/** Find the tracks of a share. TESS_ERR_ALLOC. Local. */
tess_status tracks_find(const find_work *work, const track_share *of,
                        find_share *share);

#endif
