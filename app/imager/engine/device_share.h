/** @file device_share.h  (private to app/imager/)
 *  How the devices of several ranks make images together. Each may make whole images of
 *  what it has read, which are summed, and predict from whole models; or they share
 *  w-planes.
 */
#ifndef TESS_DEVICE_SHARE_H
#define TESS_DEVICE_SHARE_H

#include "imager_job.h"

/** Bytes of a device's memory for images and planes when `sharers` devices divide them,
 *  as if the grid were as large as plans may have it. Local. */
double device_share_bytes(const tess_geom *geom, int num_images, double value_bytes,
                          int sharers);

/** After imager_job_plan: decide by cost whether the devices share planes
 *  (job->shares_planes), and connect them (job->devices). Devices that are `alone` with
 *  their samples share planes where whole images do not fit, and where that is faster.
 *  Other devices share planes with --reproducible, or where that is faster than groups
 *  that exchange through host memory. Nothing on processors. Collective. */
tess_status device_share_choose(imager_job *job);

#endif
