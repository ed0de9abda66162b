/** @file tracks_items.h  (private to grid/)
 *  What tracks are made of: rows of the same baseline and channels, in the order of
 *  time (tess_tracks.h).
 */
#ifndef TESS_TRACKS_ITEMS_H
#define TESS_TRACKS_ITEMS_H

#include <stdint.h>

#include "tess_bricks.h"
#include "tess_samples.h"

/** Channels of a row, at most TRACK_CHANS. */
typedef struct track_item {
    int32_t baseline, row, chan, count;
} track_item;

/** Channels [begin, end) of a row, from its first one on. */
typedef struct row_span {
    int32_t begin, end;
} row_span;

/** Rows of samples by baseline, then by time. */
typedef struct tracks_order {
    int32_t *row;                         /**< [samples.num_rows]; owned */
    row_span *band;                       /**< [channels] of rows that begin with a
                                               channel, from the first to the last one
                                               with a sample that counts in any of these
                                               rows; owned */
    double least_w_lambda, most_w_lambda; /**< of |w| of samples that count */
} tracks_order;

/** A share of all items. All rows of a baseline, or those in one brick, are in the same
 *  share. */
typedef struct track_share {
    int64_t brick;           /**< its runs; −1: rows of the order */
    int64_t part, num_parts; /**< of the brick: baselines with this rest of division */
    int64_t first, end;      /**< of the order */
} track_share;

/** Shares of all items, in the order of bricks or of baselines. */
typedef struct track_shares {
    track_share *share; /**< [num] */
    int64_t num, capacity;
} track_shares;

/** Items of a share, sorted by baseline, then channels, then time. */
typedef struct track_items {
    track_item *room;       /**< owned */
    const track_item *item; /**< [num], in `room` */
    int64_t num;
} track_items;

/** Sort rows. TESS_ERR_ALLOC. Local. */
tess_status tracks_order_rows(const tess_samples *samples, int threads,
                              tracks_order *order);
void tracks_order_free(tracks_order *order); /**< Zeroed is fine. Local. */

/** Cut the runs of bricks, or the rows of an order, into shares; the caller frees
 *  shares->share. TESS_ERR_ALLOC. Local. */
tess_status tracks_share_bricks(const tess_brick_list *bricks, track_shares *shares);
tess_status tracks_share_rows(const tess_samples *samples, const tracks_order *order,
                              track_shares *shares);

/** List the items of a share, cut at multiples of TRACK_CHANS channels. The caller
 *  frees items->room. TESS_ERR_ALLOC. Local. */
tess_status tracks_list_items(const tess_samples *samples,
                              const tess_brick_list *bricks, const tracks_order *order,
                              const track_share *share, track_items *items);

#endif
