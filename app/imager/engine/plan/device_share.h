/** @file device_share.h  (private to app/imager/)
 *  How the devices of several ranks make images together. Each device makes whole
 *  images of what it has read, which are summed, and predicts from whole models; or
 *  devices share w-planes.
 */
#ifndef TESS_DEVICE_SHARE_H
#define TESS_DEVICE_SHARE_H

#include "imager_job.h"

/** Memory of a device for images of so many pixels, and planes, if `sharers` devices
 * divide them [bytes], for the largest grid that plans may have. Local. */
double device_share_bytes(double pixels, int num_images, double value_bytes,
                          int sharers);

/** The part of device_share_bytes() that buffers of exchanges between devices take: 0
 * if each makes whole images. Local. */
double device_share_buffers(double pixels, double value_bytes, int sharers);

/** Decide by cost, after imager_job_plan, whether the devices share planes
 * (job->ranks.shares_planes), and connect them (job->ranks.devices). Devices that are
 * `alone` with their samples share planes if whole images do not fit, or if that is
 * faster. Other devices share planes with --reproducible, or if they can be connected
 * and have one target: they would exchange sums of bricks through host memory. Devices
 * whose images are cleaned are connected in any case, to move these. Does nothing on
 * processors. Collective. */
tess_status device_share_choose(imager_job *job);

#endif
