/** @file tess_cuda_mma.cuh
 *  Products of small matrices on tensor cores.
 */
#ifndef TESS_CUDA_MMA_CUH
#define TESS_CUDA_MMA_CUH

#include <cstdint>

/** c += a · b of a warp: 16 × 16 and 16 × 8 halves, packed in pairs, 16 × 8 floats,
 *  dealt out to lanes as mma.m16n8k16 has it (PTX ISA). */
__device__ inline void multiply_add(float c[4], const uint32_t a[4], uint32_t b0,
                                    uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
        "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

#endif
