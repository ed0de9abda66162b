/** @file frame_device.h  (private to app/bench/)
 *  Steps on a GPU.
 */
#ifndef TESS_FRAME_DEVICE_H
#define TESS_FRAME_DEVICE_H

#include "frame_step.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const frame_step frame_step_device, frame_step_device_fft;

/** A frame and its convolution in device memory. The plans of all steps on a GPU begin
 *  with it. */
typedef struct frame_device {
    frame_shape shape;
    void *frame, *out;
} frame_device;

/** TESS_ERR_ALLOC, after which what was taken is to be freed, too. */
tess_status frame_device_take(const frame_shape *shape, frame_device *memory);
void frame_device_free(frame_device *memory);

/** Copies of a step on a GPU: the frame up, the convolution down; both wait.
 *  TESS_ERR_RESOURCE. */
tess_status frame_device_upload(frame_plan *plan, const float *frame);
tess_status frame_device_download(frame_plan *plan, float *out);

#ifdef __cplusplus
}
#endif
#endif
