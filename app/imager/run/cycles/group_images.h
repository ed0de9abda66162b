/** @file group_images.h  (private to app/imager/run/)
 *  The images of a group of channels, from samples to files.
 */
#ifndef TESS_GROUP_IMAGES_H
#define TESS_GROUP_IMAGES_H

#include "channel_group.h"

/** Send the samples of outputs [first, end), each a group alone, to the teams that make
 *  them. Collective over all ranks. */
tess_status group_images_deal(channel_group *group, int64_t first, int64_t end);

/** Make, clean and write the images of the group. Collective over its ranks. */
tess_status group_images_make(channel_group *group);

#endif
