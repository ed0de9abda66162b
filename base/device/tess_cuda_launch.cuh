/** @file tess_cuda_launch.cuh
 *  Launches of kernels whose sources also run on the CPU (tests/emulated/simt/),
 * slowly, for sanitizers.
 */
#ifndef TESS_CUDA_LAUNCH_CUH
#define TESS_CUDA_LAUNCH_CUH

#include "tess_cuda.h"
#include "tess_device.h"

#ifndef SIMT_EMULATED
/** Launch in the device's stream; TESS_CUDA_LAUNCHED() afterwards. */
template <typename... P, typename... A>
static void tess_launch(void (*kernel)(P...), int64_t blocks, int threads,
                        int64_t shared_bytes, A... arguments)
{
    kernel<<<(unsigned)blocks, (unsigned)threads, (size_t)shared_bytes,
             tess_device_stream()>>>(arguments...);
}

/** Memory shared by a block, of the size given at the launch. */
__device__ inline void *tess_shared(void)
{
    extern __shared__ __align__(16) unsigned char tess_shared_bytes[];
    return tess_shared_bytes;
}

/** Launch blocks that wait for one another: all of them run at the same time. There may
 *  be tess_most_together() of them. */
template <typename... P>
static cudaError_t tess_launch_together(void (*kernel)(P...), int64_t blocks,
                                        int threads, int64_t shared_bytes,
                                        P... arguments)
{
    void *each[] = {(void *)&arguments...};
    return cudaLaunchCooperativeKernel((const void *)kernel, dim3((unsigned)blocks),
                                       dim3((unsigned)threads), each,
                                       (size_t)shared_bytes, tess_device_stream());
}

/** One for each multiprocessor. */
static inline int tess_most_together(void)
{
    int count = 1;
    if (cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount,
                               tess_device_number()) != cudaSuccess)
        (void)cudaGetLastError();
    return count;
}
#endif

#endif
