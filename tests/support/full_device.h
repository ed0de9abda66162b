/** @file full_device.h  (tests)
 *  Devices that are full when a test says so. The test is linked with
 *  -Wl,--wrap=tess_planes_more_bytes.
 */
#ifndef TESS_FULL_DEVICE_H
#define TESS_FULL_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_planes.h"

static bool is_full; /* the device has no room beside what it holds */

int64_t __real_tess_planes_more_bytes(const tess_planes *of);
int64_t __wrap_tess_planes_more_bytes(const tess_planes *of);

int64_t __wrap_tess_planes_more_bytes(const tess_planes *of)
{
    return is_full ? INT64_MAX / 4 : __real_tess_planes_more_bytes(of);
}

#endif
