/** @file frame_cuda.h  (private to app/bench/)
 *  Steps on a GPU, and the transforms that one of them needs.
 */
#ifndef TESS_FRAME_CUDA_H
#define TESS_FRAME_CUDA_H

#include "frame_step.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const frame_step frame_step_cuda, frame_step_cufft;

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

/** Transforms of a real image [ly][lx] in device memory, unnormalised, enqueued in the
 *  device's stream. TESS_ERR_ALLOC, TESS_ERR_RESOURCE. */
typedef struct frame_cufft frame_cufft;

tess_status frame_cufft_create(int64_t lx, int64_t ly, frame_cufft **fft);
void frame_cufft_destroy(frame_cufft *fft); /**< NULL is fine */

/** image[ly][lx] to spectrum[ly][lx/2 + 1] (complex), and back; the first one given may
 *  be overwritten. */
tess_status frame_cufft_forward(frame_cufft *fft, float *image, void *spectrum);
tess_status frame_cufft_back(frame_cufft *fft, void *spectrum, float *image);

#ifdef __cplusplus
}
#endif
#endif
