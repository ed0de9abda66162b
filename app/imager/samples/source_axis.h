/** @file source_axis.h  (private to app/imager/)
 *  Samples in the channels of an axis that is regular in some frame, in place of those
 * of the files.
 */
#ifndef TESS_SOURCE_AXIS_H
#define TESS_SOURCE_AXIS_H

#include "source.h"

/** From now on samples are in the channels of an axis; the source's table of channels
 *  changes. Called after tess_source_open, and before anything else. Nothing if `opts`
 * do not ask for it. TESS_ERR_USAGE, TESS_ERR_INPUT: there is no such axis;
 *  TESS_ERR_ALLOC. Collective. */
tess_status tess_source_regrid(tess_source *source, const tess_axis_opts *opts);

#endif
