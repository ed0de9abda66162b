/** @file tess_cuda.h
 *  For .cu files only: CUDA calls whose failures become a tess_status. Use inside a
 *  function with `tess_status status` and a label `cleanup:`.
 */
#ifndef TESS_CUDA_H
#define TESS_CUDA_H

#include <cuda_runtime.h>

#include "tess_status.h"

/** Status of a CUDA error: short memory is TESS_ERR_ALLOC, all else TESS_ERR_RESOURCE.
 *  Clears the runtime's record of it. */
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

/** After every kernel launch. */
#define TESS_CUDA_LAUNCHED() TESS_CUDA(cudaGetLastError())

#endif
