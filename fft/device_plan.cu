/* Makes plans of cuFFT. */
#include "tess_cuda.h" /* first */

#include "device_plan.h"

#include <pthread.h>

#include "tess_device.h"

/* cuFFT loads its kernels when plans are made. */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

tess_status device_plan_status(cufftResult result)
{
    return result == CUFFT_ALLOC_FAILED ? TESS_ERR_ALLOC : TESS_ERR_RESOURCE;
}

static tess_status make(const device_plan_shape *shape, cufftHandle *plan,
                        size_t *work_bytes)
{
    tess_status status = TESS_OK;
    long long size[2] = {shape->size[0], shape->size[1]};
    cufftHandle made = 0;
    bool is_made = false;
    DEVICE_CUFFT(cufftCreate(&made));
    is_made = true;
    DEVICE_CUFFT(cufftSetAutoAllocation(made, 0));
    DEVICE_CUFFT(cufftMakePlanMany64(made, shape->dimensions, size, NULL, 1, 0, NULL, 1,
                                     0, shape->type, shape->batch, work_bytes));
    TESS_CUDA(cudaStreamSynchronize(cudaStreamLegacy));
    DEVICE_CUFFT(cufftSetStream(made, tess_device_stream()));
    *plan = made;
    is_made = false;
cleanup:
    if (is_made) cufftDestroy(made);
    return status;
}

tess_status device_plan_make(const device_plan_shape *shape, cufftHandle *plan,
                             size_t *work_bytes)
{
    pthread_mutex_lock(&making);
    const tess_status status = make(shape, plan, work_bytes);
    pthread_mutex_unlock(&making);
    return status;
}

void device_plan_free(cufftHandle plan)
{
    pthread_mutex_lock(&making);
    cufftDestroy(plan);
    pthread_mutex_unlock(&making);
}
