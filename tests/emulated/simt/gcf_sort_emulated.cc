/* gcf_cuda_sort.cu without CUB. */
#include <vector>

#include "device_emulated.h"
#include "gcf_cuda.cuh"

tess_status gcf_cuda_sort_pairs(uint64_t *const key[2], uint32_t *const value[2],
                                int64_t count, int bits)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status)) return status;
    const uint64_t mask = bits < 64 ? ((uint64_t)1 << bits) - 1 : ~(uint64_t)0;
    std::vector<int64_t> order((size_t)count);
    for (int64_t k = 0; k < count; ++k)
        order[(size_t)k] = k;
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return (key[0][a] & mask) < (key[0][b] & mask);
    });
    for (int64_t k = 0; k < count; ++k) {
        key[1][k] = key[0][order[(size_t)k]];
        value[1][k] = value[0][order[(size_t)k]];
    }
    return TESS_OK;
}

tess_status gcf_cuda_scan(const uint32_t *number, uint32_t *before, int64_t count)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status)) return status;
    uint32_t sum = 0;
    for (int64_t k = 0; k < count; ++k) {
        before[k] = sum;
        sum += number[k];
    }
    return TESS_OK;
}
