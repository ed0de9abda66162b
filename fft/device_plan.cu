/* Makes plans of cuFFT. */
#include "tess_cuda.h" /* first */

#include "device_plan.h"

#include <pthread.h>

#include "tess_device.h"

/* cuFFT loads its kernels when plans are made. */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

/* To make a plan takes milliseconds, and to free one makes the device wait for all its
 * streams, so that plans stay for later transforms of the same shape. A cleaned channel
 * needs four, and lanes make channels side by side. There is room for this number. */
enum { MOST_KEPT = 256 };

typedef struct kept_plan {
    device_plan_shape shape;
    cufftHandle plan;
    size_t work_bytes;
    bool idle;
} kept_plan;

static kept_plan kept[MOST_KEPT];
static int num_kept;

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

static bool same_shape(const device_plan_shape *a, const device_plan_shape *b)
{
    return a->dimensions == b->dimensions && a->size[0] == b->size[0] &&
           a->size[1] == b->size[1] && a->batch == b->batch && a->type == b->type;
}

/* Takes an idle plan of this shape, or NULL. */
static kept_plan *take_kept(const device_plan_shape *shape)
{
    for (int k = 0; k < num_kept; ++k)
        if (kept[k].idle && same_shape(&kept[k].shape, shape)) return &kept[k];
    return NULL;
}

/* Notes a plan that has been made, in place of an idle one if there is no other room.
 */
static void keep(const device_plan_shape *shape, cufftHandle plan, size_t work_bytes)
{
    int k = num_kept;
    if (num_kept < MOST_KEPT)
        ++num_kept;
    else
        for (k = 0; k < MOST_KEPT && !kept[k].idle;)
            ++k;
    if (k == MOST_KEPT) return;
    if (kept[k].idle) cufftDestroy(kept[k].plan);
    kept[k].shape = *shape;
    kept[k].plan = plan;
    kept[k].work_bytes = work_bytes;
    kept[k].idle = false;
}

static tess_status make_or_take(const device_plan_shape *shape, cufftHandle *plan,
                                size_t *work_bytes)
{
    tess_status status = TESS_OK;
    kept_plan *found = take_kept(shape);
    if (found) {
        DEVICE_CUFFT(cufftSetStream(found->plan, tess_device_stream()));
        found->idle = false;
        *plan = found->plan;
        *work_bytes = found->work_bytes;
        return TESS_OK;
    }
    TESS_TRY(make(shape, plan, work_bytes));
    keep(shape, *plan, *work_bytes);
cleanup:
    return status;
}

tess_status device_plan_make(const device_plan_shape *shape, cufftHandle *plan,
                             size_t *work_bytes)
{
    pthread_mutex_lock(&making);
    const tess_status status = make_or_take(shape, plan, work_bytes);
    pthread_mutex_unlock(&making);
    return status;
}

void device_plan_free(cufftHandle plan)
{
    bool stays = false;
    pthread_mutex_lock(&making);
    for (int k = 0; k < num_kept && !stays; ++k)
        if (kept[k].plan == plan) stays = kept[k].idle = true;
    if (!stays) cufftDestroy(plan);
    pthread_mutex_unlock(&making);
}
