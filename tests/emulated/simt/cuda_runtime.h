/** @file cuda_runtime.h
 *  CUDA as far as kernels with tables and those of CLEAN use it, on the CPU: kernels are
 *  compiled as C++ and run a block at a time. Every thread of a block has a stack of its
 *  own, and gives way at barriers and where warps exchange values (simt.cc). This is
 *  slow, but sanitizers see every access, a barrier that is missing shows up (threads run in rising and falling order
 *  by turns), and so does one that not all threads come to.
 *
 *  Not emulated: caches, memory orders (atomics are plain), tensor cores.
 */
#ifndef TESS_SIMT_CUDA_RUNTIME_H
#define TESS_SIMT_CUDA_RUNTIME_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "device_emulated.h"

#define SIMT_EMULATED
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__      static
#define __constant__    static
#define __align__(n)    alignas(n)
#define __restrict__ __restrict
#define __launch_bounds__(...)

using std::exp;
using std::isfinite;
using std::max;
using std::min;
using std::sqrt;

struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) double2 {
    double x, y;
};
struct alignas(8) int2 {
    int x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

inline float2 make_float2(float x, float y)
{
    return {x, y};
}
inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}
inline double2 make_double2(double x, double y)
{
    return {x, y};
}
inline int2 make_int2(int x, int y)
{
    return {x, y};
}

/* ---- threads ---- */

struct simt_index {
    unsigned x, y, z;
};

/** Indices of the thread that runs. */
extern simt_index threadIdx, blockIdx, blockDim, gridDim;

/** Run `body` for all threads of all blocks. */
void simt_launch(int64_t blocks, int threads, int64_t shared_bytes,
                 const std::function<void()> &body);

/** Memory of the block, as much as was asked for. */
void *tess_shared(void);

template <typename... P, typename... A>
static void tess_launch(void (*kernel)(P...), int64_t blocks, int threads,
                       int64_t shared_bytes, A... arguments)
{
    tess_status status = TESS_OK; /* cudaGetLastError() tells of it */
    if (device_emulated_enqueues(&status))
        simt_launch(blocks, threads, shared_bytes, [=] { kernel(arguments...); });
}

/** Blocks run one after another here, and can't wait for one another: there is one. */
inline int tess_most_together(void)
{
    return 1;
}

void __syncthreads(void);

/** Give `bytes` ≤ 16 to the other lanes of `mask` and wait for theirs; the value of a
 *  lane of them is read by simt_value(). */
void simt_exchange(unsigned mask, const void *value, int bytes);
void simt_value(int lane, void *value, int bytes);
int simt_lane(void);
bool simt_there(int lane); /**< did it take part in the last exchange? */

inline void __syncwarp(unsigned mask = 0xffffffffu)
{
    simt_exchange(mask, "", 0);
}

template <typename T> T __shfl_sync(unsigned mask, T value, int lane, int width = 32)
{
    T out;
    simt_exchange(mask, &value, sizeof value);
    simt_value(simt_lane() / width * width + lane % width, &out, sizeof out);
    return out;
}

template <typename T> T __shfl_xor_sync(unsigned mask, T value, int bits)
{
    return __shfl_sync(mask, value, simt_lane() ^ bits);
}

template <typename T> T __shfl_down_sync(unsigned mask, T value, int by)
{
    const int lane = simt_lane() + by;
    return __shfl_sync(mask, value, lane < 32 ? lane : simt_lane());
}

template <typename T> T __shfl_up_sync(unsigned mask, T value, int by)
{
    const int lane = simt_lane() - by;
    return __shfl_sync(mask, value, lane >= 0 ? lane : simt_lane());
}

inline unsigned __ballot_sync(unsigned mask, bool is)
{
    unsigned out = 0;
    simt_exchange(mask, &is, sizeof is);
    for (int lane = 0; lane < 32; ++lane) {
        bool other = false;
        if (!(mask >> lane & 1) || !simt_there(lane)) continue;
        simt_value(lane, &other, sizeof other);
        out |= (unsigned)other << lane;
    }
    return out;
}

inline bool __any_sync(unsigned mask, bool is)
{
    return __ballot_sync(mask, is) != 0;
}

inline bool __all_sync(unsigned mask, bool is)
{
    return __ballot_sync(mask, !is) == 0;
}

/* ---- memory and arithmetic ---- */

template <typename T> T __ldg(const T *from)
{
    return *from;
}

template <typename T> T atomicAdd(T *to, T value)
{
    const T before = *to;
    *to += value;
    return before;
}

template <typename T> T atomicMax(T *to, T value)
{
    const T before = *to;
    *to = std::max(before, value);
    return before;
}

/* By copies: words that are the bits of numbers are neither's by C++'s rules. */
template <typename T> T atomicCAS(T *to, T expected, T value)
{
    T before;
    memcpy(&before, to, sizeof before);
    if (before == expected) memcpy(to, &value, sizeof value);
    return before;
}

template <typename T, typename F> T simt_bits(F from)
{
    T to;
    static_assert(sizeof to == sizeof from, "bits are kept");
    memcpy(&to, &from, sizeof to);
    return to;
}
inline unsigned __float_as_uint(float x)
{
    return simt_bits<unsigned>(x);
}
inline float __uint_as_float(unsigned x)
{
    return simt_bits<float>(x);
}
inline long long __double_as_longlong(double x)
{
    return simt_bits<long long>(x);
}
inline double __longlong_as_double(long long x)
{
    return simt_bits<double>(x);
}

inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
inline int __clz(int x)
{
    return x == 0 ? 32 : __builtin_clz((unsigned)x);
}
inline double __dadd_rn(double a, double b)
{
    return a + b;
}
inline double __dsub_rn(double a, double b)
{
    return a - b;
}
inline double __dmul_rn(double a, double b)
{
    return a * b;
}
inline double __dsqrt_rn(double a)
{
    return std::sqrt(a);
}
inline float __expf(float x)
{
    return std::exp(x);
}
inline void __sincosf(float x, float *s, float *c)
{
    *s = std::sin(x);
    *c = std::cos(x);
}
inline float __sinf(float x)
{
    return std::sin(x);
}
inline float sinpif(float x)
{
    return std::sin((float)M_PI * x);
}
inline double sinpi(double x)
{
    return std::sin(M_PI * x);
}
inline void sincospif(float x, float *s, float *c)
{
    *s = std::sin((float)M_PI * x);
    *c = std::cos((float)M_PI * x);
}
inline void sincospi(double x, double *s, double *c)
{
    *s = std::sin(M_PI * x);
    *c = std::cos(M_PI * x);
}

/* ---- the runtime: nothing is asynchronous ---- */

enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation, cudaErrorLaunchFailure };
typedef struct CUstream_st *cudaStream_t;
typedef double *cudaEvent_t; /* when it was recorded [s] */
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaDeviceAttr {
    cudaDevAttrMultiProcessorCount,
    cudaDevAttrMaxSharedMemoryPerBlockOptin
};

inline cudaError_t cudaGetLastError(void)
{
    return device_emulated_says_lost() ? cudaErrorLaunchFailure : cudaSuccess;
}
template <typename... P>
static cudaError_t tess_launch_together(void (*kernel)(P...), int64_t blocks,
                                        int threads, int64_t shared_bytes,
                                        P... arguments)
{
    tess_launch(kernel, blocks, threads, shared_bytes, arguments...);
    return cudaGetLastError();
}
inline const char *cudaGetErrorString(cudaError_t)
{
    return "unspecified launch failure";
}
enum { cudaHostRegisterDefault = 0 };

inline cudaError_t cudaHostRegister(void *, size_t, unsigned)
{
    return cudaSuccess;
}

inline cudaError_t cudaHostUnregister(void *)
{
    return cudaSuccess;
}

inline cudaError_t cudaMallocManaged(void **memory, size_t bytes)
{
    *memory = malloc(bytes);
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}
inline cudaError_t cudaFree(void *memory)
{
    free(memory);
    return cudaSuccess;
}
inline cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    *event = new double(0);
    return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
inline cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    *ms = (float)(1e3 * (*to - *from));
    return cudaSuccess;
}
template <typename K> cudaError_t cudaFuncSetAttribute(K, cudaFuncAttribute, int)
{
    return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr of, int)
{
    /* few multiprocessors, so that blocks take several pieces of work */
    *value = of == cudaDevAttrMultiProcessorCount ? 2 : 227 << 10;
    return cudaSuccess;
}

#endif
