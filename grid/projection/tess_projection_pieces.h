/** @file tess_projection_pieces.h
 *  W-projection on a processor: pieces of work that are gridded or degridded with
 * tables of w-kernels. What tess_tile.h is to w-stacking.
 */
#ifndef TESS_PROJECTION_PIECES_H
#define TESS_PROJECTION_PIECES_H

#include "tess_tile.h"

/** Threads that work on pieces at a time. */
int projection_outer_threads(const tess_grid_plan *plan);

/** Grid a piece into job->data, which holds zeros, or degrid it. Called by several
 *  threads; a failure is put into *failed. */
void projection_grid(const tile_job *job, const tess_brick_list *bricks,
                     const tile_piece *piece, tess_status *failed);
void projection_degrid(const tile_job *job, const tess_brick_list *bricks,
                       const tile_piece *piece, tess_status *failed);

#endif
