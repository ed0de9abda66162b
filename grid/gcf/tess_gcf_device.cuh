/** @file tess_gcf_device.cuh
 *  How kernels find the plane of a table for a w.
 */
#ifndef TESS_GCF_DEVICE_CUH
#define TESS_GCF_DEVICE_CUH

#include "tess_cuda_launch.cuh"
#include "tess_gcf_device.h"

/** A plane of the table. */
struct gcf_cuda_plane {
    int64_t offset; /**< of its taps [complex values] */
    double w;       /**< [wavelengths] */
    int32_t support, unused;
};

/** How planes are told from w. */
struct gcf_cuda_planes {
    const gcf_cuda_plane *plane; /**< device */
    int count;
    bool by_root; /**< TESS_GCF_SQRT */
    double scale;
};

gcf_cuda_planes gcf_cuda_planes_of(const gcf_on_device *with);

/** tess_gcf_plane_of(): products and sums are rounded one by one, as the CPU's are. */
__device__ inline int gcf_nearest_plane(const gcf_cuda_planes &planes, double w)
{
    const double scaled = __dmul_rn(fabs(w), planes.scale);
    const double plane =
        floor(__dadd_rn(planes.by_root ? __dsqrt_rn(scaled) : scaled, 0.5));
    const int last = planes.count - 1;
    return plane < last ? (int)plane : last;
}

#endif
