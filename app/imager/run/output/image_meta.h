/** @file image_meta.h  (private to app/imager/run/)
 *  What the headers of a run's images say.
 */
#ifndef TESS_IMAGE_META_H
#define TESS_IMAGE_META_H

#include "image_files.h"

/** Fill in what the headers of an output channel's images (-1: the mean) have in
 * common. Local. */
void image_meta_fill(const image_files *output, int64_t interval, int64_t channel,
                     const imager_extent *extent, tess_image_meta *meta);

/** The same for an image of a kind and of polarisation `k`. Local. */
tess_image_meta image_meta_of_kind(const image_files *output, image_kind kind, int k,
                                   const imager_product *product,
                                   const tess_image_meta *shared,
                                   const struct image_found *found);

/** Fill in what the header of a cube of a kind says of the observation and the pixels,
 * with the frequency of the first channel. Local. */
void image_meta_of_cube(const image_files *output, int64_t interval, image_kind kind,
                        tess_image_meta *meta);

#endif
