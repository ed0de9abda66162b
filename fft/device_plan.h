/** @file device_plan.h  (private to fft/)
 *  Plans of cuFFT, for the .cu files of fft/.
 *
 *  cuFFT copies the tables of a plan to the device in the default stream, and returns
 *  when they are on their way. The streams of tess_device.h do not wait for the default
 *  stream. While other lanes use the link, a transform could begin before its tables
 * are there; it then read and wrote anywhere. So a plan is complete on the device when
 * the call that makes it returns.
 */
#ifndef DEVICE_PLAN_H
#define DEVICE_PLAN_H

#include <cufft.h>
#include <stdint.h>

#include "tess_status.h"

/** Sizes of `batch` transforms, one behind the other, of one or two dimensions. */
typedef struct device_plan_shape {
    int dimensions;
    long long size[2];
    int64_t batch;
    cufftType type;
} device_plan_shape;

/** Make a plan that runs in tess_device_stream() and wants a work area of `*work_bytes`
 *  (cufftSetWorkArea), or take one of this shape that has been freed: plans are kept,
 *  with their tables on the device. One thread of the process makes or frees plans at a
 *  time. TESS_ERR_ALLOC, TESS_ERR_RESOURCE. Local. */
tess_status device_plan_make(const device_plan_shape *shape, cufftHandle *plan,
                             size_t *work_bytes);
void device_plan_free(cufftHandle plan);

/** Status for a result of cuFFT that is not CUFFT_SUCCESS. */
tess_status device_plan_status(cufftResult result);

/** For a function that has a variable `tess_status status` and a label `cleanup:`. */
#define DEVICE_CUFFT(call)                                                             \
    do {                                                                               \
        const cufftResult device_result = (call);                                      \
        if (device_result != CUFFT_SUCCESS)                                            \
            TESS_FAIL(device_plan_status(device_result), "cuFFT: error %d",            \
                      (int)device_result);                                             \
    } while (0)

#endif
