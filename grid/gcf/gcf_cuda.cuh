/** @file gcf_cuda.cuh  (private to grid/gcf/)
 *  What the sources of the strategies on a GPU tell one another.
 */
#ifndef TESS_GCF_CUDA_PRIVATE_CUH
#define TESS_GCF_CUDA_PRIVATE_CUH

#include "gcf_on_device.h"
#include "tess_gcf_cuda.cuh"

/** Device memory of points in order; zeroed before. */
struct gcf_cuda_sorted {
    gcf_cuda_place *place;
    uint64_t *key[2];
    uint32_t *index[2], *first;
    unsigned long long *entries;
};

/** Points in the job's order, `all` of them placed, those outside behind the end: sets
 *  place, tiles and first, and the count where tiles list points. */
tess_status gcf_cuda_sort(int64_t all, gcf_cuda_job *job, gcf_cuda_sorted *sorted);
void gcf_cuda_sorted_free(gcf_cuda_sorted *sorted);

/** A plan's factors on the device; errors as of gcf_device_create(). NULL is fine to
 *  destroy. */
struct gcf_cuda_factors;
tess_status gcf_cuda_factors_create(const tess_gcf_plan *plan, gcf_cuda_factors **made);
void gcf_cuda_factors_destroy(gcf_cuda_factors *made);

/** NULL: the plan has none. */
const gcf_cuda_factors *gcf_cuda_factors_of(const gcf_on_device *with);

/** `tiled`, to degrid. */
const gcf_device_method *gcf_cuda_degrid_tiled(void);

/** Sort keys' lowest `bits` with what belongs to them, stably: from [0] to [1]. */
tess_status gcf_cuda_sort_pairs(uint64_t *const key[2], uint32_t *const value[2],
                                int64_t count, int bits);

/** before[k] = Σ number[j] over j < k < count. */
tess_status gcf_cuda_scan(const uint32_t *number, uint32_t *before, int64_t count);
#endif
