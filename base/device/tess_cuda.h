/** @file tess_cuda.h
 *  For .cu files only: macros that turn failures of CUDA calls into a tess_status. Use
 *  them in a function that has a variable `tess_status status` and a label `cleanup:`.
 *  It comes first, so that tess_shared_code.h finds its macros.
 */
#ifndef TESS_CUDA_H
#define TESS_CUDA_H

#include <cuda_runtime.h>

#include "tess_status.h"

#define TESS_SHARED_FUNCTION static __host__ __device__ inline
#ifdef __CUDA_ARCH__
#define TESS_ON_DEVICE
#endif

/** Status for a CUDA error: TESS_ERR_ALLOC if memory is short, TESS_ERR_RESOURCE for
 * all other errors. Clears the error that the CUDA runtime has recorded. */
static inline tess_status tess_cuda_status(cudaError_t error)
{
    if (error == cudaSuccess) return TESS_OK;
    (void)cudaGetLastError();
    return error == cudaErrorMemoryAllocation ? TESS_ERR_ALLOC : TESS_ERR_RESOURCE;
}

#define TESS_CUDA(call)                                                                \
    do {                                                                               \
        const cudaError_t tess_cuda_error = (call);                                    \
        if (tess_cuda_error != cudaSuccess)                                            \
            TESS_FAIL(tess_cuda_status(tess_cuda_error), "CUDA: %s",                   \
                      cudaGetErrorString(tess_cuda_error));                            \
    } while (0)

/** To be called after every kernel launch. */
#define TESS_CUDA_LAUNCHED() TESS_CUDA(cudaGetLastError())

#endif
