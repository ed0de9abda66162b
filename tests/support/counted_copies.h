/** @file counted_copies.h  (tests)
 *  Copies between host and device, which a test counts. The test is linked with
 *  -Wl,--wrap=tess_device_upload and -Wl,--wrap=tess_device_download.
 */
#ifndef TESS_COUNTED_COPIES_H
#define TESS_COUNTED_COPIES_H

#include <stdint.h>

#include "tess_status.h"

/* What was copied in copies of `least` bytes or more. */
static struct {
    int64_t least, number, bytes;
} copied;

static void count_copy(int64_t bytes)
{
    if (bytes < copied.least) return;
    ++copied.number;
    copied.bytes += bytes;
}

tess_status __real_tess_device_upload(void *to, const void *from, int64_t bytes);
tess_status __wrap_tess_device_upload(void *to, const void *from, int64_t bytes);
tess_status __real_tess_device_download(void *to, const void *from, int64_t bytes);
tess_status __wrap_tess_device_download(void *to, const void *from, int64_t bytes);

tess_status __wrap_tess_device_upload(void *to, const void *from, int64_t bytes)
{
    count_copy(bytes);
    return __real_tess_device_upload(to, from, bytes);
}

tess_status __wrap_tess_device_download(void *to, const void *from, int64_t bytes)
{
    count_copy(bytes);
    return __real_tess_device_download(to, from, bytes);
}

#endif
