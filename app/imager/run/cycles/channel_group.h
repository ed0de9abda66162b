/** @file channel_group.h  (private to app/imager/run/)
 *  Channels that are cleaned together: the visibility sets and images of all of them
 * are held at once.
 */
#ifndef TESS_CHANNEL_GROUP_H
#define TESS_CHANNEL_GROUP_H

#include "channel_mean.h"

/** Make, clean and write the images of all channels of an interval, and their means.
 *  Collective. */
tess_status image_joined(image_run *run, int64_t interval, channel_mean *mean);

#endif
