/* The frames of a GPU's steps: memory for one, and for its convolution. */
#include "frame_device.h"

#include <stddef.h>

#include "tess_device.h"

static int64_t bytes_of(const frame_shape *shape)
{
    return shape->nx * shape->ny * (int64_t)sizeof(float);
}

tess_status frame_device_take(const frame_shape *shape, frame_device *memory)
{
    tess_status status = TESS_OK;
    const int64_t bytes = bytes_of(shape);
    memory->shape = *shape;
    TESS_TRY(tess_device_alloc(bytes, "frame", &memory->frame));
    TESS_TRY(tess_device_alloc(bytes, "convolved frame", &memory->out));
cleanup:
    return status;
}

void frame_device_free(frame_device *memory)
{
    tess_device_free(memory->frame);
    tess_device_free(memory->out);
}

tess_status frame_device_upload(frame_plan *plan, const float *frame)
{
    tess_status status = TESS_OK;
    const frame_device *memory = (const frame_device *)plan;
    TESS_TRY(tess_device_upload(memory->frame, frame, bytes_of(&memory->shape)));
    TESS_TRY(tess_device_wait());
cleanup:
    return status;
}

tess_status frame_device_download(frame_plan *plan, float *out)
{
    const frame_device *memory = (const frame_device *)plan;
    return tess_device_download(out, memory->out, bytes_of(&memory->shape));
}

const frame_step *frame_device_step(int k)
{
    return k == 0 ? &frame_step_device : k == 1 ? &frame_step_device_fft : NULL;
}
