/** @file regrid.h  (private to app/imager/samples/)
 *  Which channels of a file make which channels of an axis, for a Doppler factor.
 */
#ifndef TESS_REGRID_H
#define TESS_REGRID_H

#include <stdbool.h>
#include <stdint.h>

#include "channel_axis.h"

/** The table of channels that samples have. By interpolation, it is the axis, of whose
 * channels each has `sub` parts, as wide as channels of the files. Otherwise it has an
 * entry for each pair of a channel of a file and a channel of the axis into which that
 * may fall. */
typedef struct regrid_table {
    channel_axis axis;
    bool nearest;
    int64_t sub;
    int64_t num;
    double *freq_hz, *width_hz; /* [num] in the frame of the axis */
    double *inv_lambda;         /* [num] 1/m. By interpolation, that of the axis: uvw of
                                   rows have the Doppler factor; else of the file */
    int32_t *output;            /* [num] channel of the axis */
} regrid_table;

/** Channels of a window without a gap; frequencies of channel first + k step ascend
 * with k. */
typedef struct regrid_piece {
    int64_t first, num;
    int step;     /* 1 or -1 */
    double share; /* by interpolation, factor of weights: width of a part of the axis over
                     that of the channels, at most 1, so that weights are not counted
                     twice */
} regrid_piece;

/** The channels of a part of the source. */
typedef struct regrid_part {
    int64_t num_chan;
    const double *freq_hz, *width_hz; /* [num_chan] of the files; borrowed */
    int num_pieces;
    regrid_piece *piece;
    double bounds[2]; /* the least and the most Doppler factor of its rows */
    int64_t base;     /* nearest: of its entries in the table, [num_layers][num_chan] */
    int64_t num_layers;
    int64_t *first; /* nearest: [num_chan] channel of the axis of layer 0 */
    int64_t most_rows, most_vis; /* of a row */
} regrid_part;

/** A value of the axis: (1 - towards_next) of a channel and towards_next of the one
 * above it in frequency. */
typedef struct regrid_entry {
    int32_t chan, next;
    float towards_next; /* 0: the channel alone */
} regrid_entry;

/** Neighbouring entries of the table that a row has values for. */
typedef struct regrid_stretch {
    int64_t base;  /* in the table */
    int64_t first; /* of its values in `entry` */
    int64_t num;
    double scale; /* of uvw, so that these over the table's wavelengths are right */
    double share; /* of weights */
} regrid_stretch;

/** What is made of rows of one part and one Doppler factor. Lists grow. */
typedef struct regrid_lists {
    regrid_entry *entry;
    regrid_stretch *stretch;
    int64_t num_entries, num_stretches, capacity_entries, capacity_stretches;
    int64_t *low, *high; /* nearest: [num_chan] of the largest part, for one factor */
} regrid_lists;

/** Split the channels of a part where there is a gap, another window (`spw`), or
 * another order. TESS_ERR_ALLOC. Local. */
tess_status regrid_split(regrid_part *part, const int32_t *spw);

/** Make the table for these parts, whose bounds are set. `doppler`: the factor for
 * which widths are compared. TESS_ERR_ALLOC. Local. */
tess_status regrid_table_make(regrid_table *table, regrid_part *part, int num_parts,
                              double doppler);
void regrid_table_free(regrid_table *table); /**< Local. */
void regrid_part_free(regrid_part *part);    /**< Local. */

/** Append the stretches for a Doppler factor to the lists. Only entries of the table
 *  that are `wanted` ([num], or NULL for all), and within `ends`. TESS_ERR_ALLOC.
 * Local.
 */
tess_status regrid_append(const regrid_table *table, const regrid_part *part,
                          double doppler, const bool *wanted, const int64_t ends[2],
                          regrid_lists *lists);
void regrid_lists_free(regrid_lists *lists); /**< Local. */

#endif
