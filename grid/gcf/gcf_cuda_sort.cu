/* Sorts on the device by CUB's radix sort, and makes running sums by CUB. */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "gcf_cuda.cuh"

tess_status gcf_cuda_sort_pairs(uint64_t *const key[2], uint32_t *const value[2],
                                int64_t count, int bits)
{
    tess_status status = TESS_OK;
    void *work = NULL;
    size_t bytes = 0;
    for (int pass = 0; pass < 2; ++pass) { /* the first one asks for the work memory */
        TESS_CUDA(cub::DeviceRadixSort::SortPairs(work, bytes, key[0], key[1], value[0],
                                                  value[1], count, 0, bits,
                                                  tess_device_stream()));
        if (pass == 0)
            TESS_TRY(tess_device_alloc((int64_t)bytes, "sorting points", &work));
    }
cleanup:
    tess_device_free(work);
    return status;
}

tess_status gcf_cuda_scan(const uint32_t *number, uint32_t *before, int64_t count)
{
    tess_status status = TESS_OK;
    void *work = NULL;
    size_t bytes = 0;
    for (int pass = 0; pass < 2; ++pass) {
        TESS_CUDA(cub::DeviceScan::ExclusiveSum(work, bytes, number, before, count,
                                                tess_device_stream()));
        if (pass == 0)
            TESS_TRY(tess_device_alloc((int64_t)bytes, "running sums", &work));
    }
cleanup:
    tess_device_free(work);
    return status;
}
