/** @file tess_cuda_complex.cuh
 *  Complex numbers of either precision in kernels.
 */
#ifndef TESS_CUDA_COMPLEX_CUH
#define TESS_CUDA_COMPLEX_CUH

#include <cuda_runtime.h>

/** The type for reals of type R. */
template <typename R> struct cuda_complex;
template <> struct cuda_complex<float> {
    typedef float2 type;
};
template <> struct cuda_complex<double> {
    typedef double2 type;
};

/** Add atomically, with one instruction where there is one. */
__device__ inline void add_complex(float2 *to, float2 value)
{
#if __CUDA_ARCH__ >= 900
    atomicAdd(to, value);
#else
    atomicAdd(&to->x, value.x);
    atomicAdd(&to->y, value.y);
#endif
}

__device__ inline void add_complex(double2 *to, double2 value)
{
    atomicAdd(&to->x, value.x);
    atomicAdd(&to->y, value.y);
}

/** Two neighbouring values; `to` is 16-byte aligned. */
__device__ inline void add_complex2(float2 *to, float4 value)
{
#if __CUDA_ARCH__ >= 900
    atomicAdd((float4 *)to, value);
#else
    atomicAdd(&to[0].x, value.x);
    atomicAdd(&to[0].y, value.y);
    atomicAdd(&to[1].x, value.z);
    atomicAdd(&to[1].y, value.w);
#endif
}

#endif
