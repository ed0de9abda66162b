/** @file facet_table.h  (private to app/imager/run/)
 *  The Jones matrices of all antennas in some facets, at all times and in all channels.
 *  Rows then find theirs in any order.
 */
#ifndef FACET_TABLE_H
#define FACET_TABLE_H

#include <complex.h>

#include "tess_gains.h"
#include "tess_origin.h"
#include "tess_take.h"

/** XX, XY, YX, YY. */
typedef struct jones_matrix {
    double complex entry[4];
} jones_matrix;

/** What a table is made of; all is borrowed. */
typedef struct facet_table_source {
    const tess_gains *gains;
    const tess_origins *origins;
    const double *freq_hz;
    int64_t num_chan;
    bool is_linear; /**< gains change from interval to interval of the origins */
    int most_held;  /**< facets that the table is asked to hold at a time */
    int threads;
} facet_table_source;

typedef struct facet_table facet_table;

/** A table without values. NULL: it would take more memory than it is worth. Errors:
 *  TESS_ERR_ALLOC. Local. */
tess_status facet_table_create(const facet_table_source *source, facet_table **table);
void facet_table_destroy(facet_table *table); /**< NULL is fine. Local. */

/** Number of facets that the table holds at a time, at least 1. Local. */
int facet_table_held(const facet_table *table);

/** Have the table hold the matrices of a facet, in place of those that have not been
 *  asked for longest if it is full. Local. */
void facet_table_fill(facet_table *table, int facet);

/** The matrices [num_chan] of an antenna in an interval; NULL: the table does not hold
 *  the facet, or there is no table. Local, thread-safe. */
const jones_matrix *facet_table_find(const facet_table *table, int facet,
                                     int32_t antenna, int32_t interval);

/** Have a backend take these matrices. False: the table does not hold the facet, or
 * there is no table. Local. */
bool facet_table_give(const facet_table *table, int facet, tess_take *take);

/** Number of times at which matrices differ, and that of an interval. Local. */
int64_t facet_table_num_times(const facet_table *table);
int64_t facet_table_time(const facet_table *table, int32_t interval);

/** The middle of an interval of origins (MJD) [s]. Local. */
double facet_table_middle(const tess_origins *origins, int32_t interval);

double facet_table_bytes(const facet_table *table); /**< NULL is fine. Local. */

#endif
