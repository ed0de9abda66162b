/** @file cuda_metric.cuh  (private to clean/)
 *  What a pixel is chosen by, as cpu_join_lines() makes it: products and sums are
 *  rounded one by one, in the order of the images.
 */
#ifndef TESS_CLEAN_CUDA_METRIC_CUH
#define TESS_CLEAN_CUDA_METRIC_CUH

#include "tess_cuda.h"

#include "cuda_search.h"

/** Σ share · value, or Σ share · value², over the images [first, end); value(k) is that
 *  of image k. */
template <typename V>
__device__ double cuda_sum_of(const cuda_join &join, bool squares, int first, int end,
                              const V &value)
{
    double sum = 0;
    for (int k = first; k < end; ++k) {
        const double own = value(k);
        double term = __dmul_rn(join.share[k], own);
        if (squares) term = __dmul_rn(term, own);
        sum = __dadd_rn(sum, term);
    }
    return sum;
}

template <typename V>
__device__ double cuda_metric(const cuda_join &join, const V &value)
{
    const int pols = join.num_pol, images = join.num_channels * pols;
    if (!join.roots && !join.squares) return cuda_sum_of(join, false, 0, images, value);
    if (join.squares) return sqrt(cuda_sum_of(join, true, 0, images, value));
    double sum = 0;
    for (int c = 0; c < join.num_channels; ++c) {
        const double squares = cuda_sum_of(join, true, c * pols, (c + 1) * pols, value);
        sum = __dadd_rn(sum, __dsqrt_rn(__dmul_rn(join.largest[c], squares)));
    }
    if (!join.is_signed) return sum;
    return copysign(sum, cuda_sum_of(join, false, 0, images, value));
}

#endif
