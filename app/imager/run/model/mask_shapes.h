/** @file mask_shapes.h  (private to app/imager/run/)
 *  Regions of a file as rows of a mask.
 */
#ifndef TESS_MASK_SHAPES_H
#define TESS_MASK_SHAPES_H

#include "image_run.h"
#include "tess_mask_regions.h"

/** In place of an output channel: regions of all channels. */
enum { MASK_ANY_CHANNEL = -1 };

/** Set the rows of an output channel's mask, in host memory: 1 in pixels whose middle
 *  lies within regions, less those that are taken out. Shapes with directions have the
 *  size that they have at the phase centre. TESS_ERR_ALLOC. Local. */
tess_status mask_shapes_draw(const image_run *run, const tess_mask_regions *regions,
                             int64_t channel, const tess_rows *mask);

/** Warn of regions that reach beyond the horizon of the image: they are not drawn.
 * `path` is their file. TESS_ERR_ALLOC. Local. */
tess_status mask_shapes_check(const image_run *run, const tess_mask_regions *regions,
                              const char *path);

#endif
