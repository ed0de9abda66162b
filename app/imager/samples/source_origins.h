/** @file source_origins.h  (private to app/imager/)
 *  Where the rows of a source's samples come from: antennas, intervals and fields in
 *  numbers that all observations share (tess_origin.h).
 */
#ifndef TESS_SOURCE_ORIGINS_H
#define TESS_SOURCE_ORIGINS_H

#include "source.h"

/** Have the rows of samples keep where they come from. Time is cut into intervals of
 * this length [s], which begin with the first integration of each stretch of time that
 * observations cover; into one interval if it is ≤ 0. To be called before
 * tess_source_setup(). TESS_ERR_USAGE: there are more intervals than can be numbered.
 * TESS_ERR_ALLOC; TESS_ERR_INTERNAL for a source of which uvw alone are read. Local. */
tess_status tess_source_keep_origins(tess_source *source, double interval_s);

/** Which of the observations of tess_source_open() a reader is of. Local. */
int tess_source_set(const tess_source *source, int reader);

/** Have each of several observations keep antennas of its own, which share no number
 * with those of the others. To be called before tess_source_keep_origins(). Local. */
void tess_source_split_antennas(tess_source *source);

/** The antenna and the field that have these numbers in origins; NULL: none has.
 * Antennas of several observations that have one name share a number, and so do fields
 * that have one phase centre and one pointing. All ranks number them alike. Local. */
const tess_vis_antenna *tess_source_antenna(const tess_source *source, int32_t antenna);
const tess_vis_field *tess_source_field(const tess_source *source, int32_t field);

/** The numbers in origins of a reader's antennas, in their order there. All ranks have
 * them. Local. */
const int32_t *tess_source_antennas(const tess_source *source, int reader);

/** The stretch of time of origins that a reader is in. All ranks know it. Local. */
int32_t tess_source_stretch(const tess_source *source, int reader);

/** Which of the observations of tess_source_open() has an antenna of this number: the
 * first one, unless antennas are split. -1: none has. Local. */
int tess_source_antenna_set(const tess_source *source, int32_t antenna);

#endif
