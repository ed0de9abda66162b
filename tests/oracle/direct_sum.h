/** @file direct_sum.h  (tests)
 *  Prediction and dirty image as plain sums over pixels and visibilities, the truth
 *  that fast algorithms are compared with. Shares no code with the program.
 *
 *      V_k    = Σ_p S_p      exp(+2πi(u l + v m + w(n−1)))
 *      D(l,m) = Σ_k W_k Re{V_k exp(−2πi(u l + v m + w(n−1)))} / Σ_k W_k
 *
 *  for image[ny][nx] with 0-based pixel (i, j) at l = l0 − (i − ⌊nx/2⌋)·scale and
 *  m = m0 + (j − ⌊ny/2⌋)·scale_m. Sums are in double. Phases are formed in long double
 *  and reduced to a turn before they are rounded: on x86 their error is about 1e-16 of
 *  a turn, plus 1e-19 times the number of turns.
 */
#ifndef TESS_DIRECT_SUM_H
#define TESS_DIRECT_SUM_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Visibility k = (row, chan) has uvw_m[row] · freq_hz[chan] / c wavelengths. */
typedef struct tess_direct {
    int64_t num_rows;
    const double *uvw_m; /**< [num_rows][3] */
    int64_t num_chan;
    const double *freq_hz; /**< [num_chan] */
    int64_t nx, ny;
    double scale_rad;
    double l0, m0;
    double scale_m_rad; /**< 0: scale_rad */
    bool ignore_w;      /**< as with --w none */
} tess_direct;

/** vis[num_rows][num_chan][2] from image[ny][nx] (Jy/pixel). Zero pixels cost nothing;
 *  pixels beyond the horizon, and NaN, count as zero. Runs on all OpenMP threads.
 *  Returns 0, or -1 when memory is short. */
int tess_direct_predict(const tess_direct *direct, const double *image, double *vis);

/** image[ny][nx] from vis[num_rows][num_chan][2] and weight[num_rows][num_chan] (NULL:
 *  all 1; zero weights are skipped); pixels beyond the horizon are NaN. Returns Σ_k
 * W_k; when it is 0 the image is 0. The adjoint of prediction is Σ_k W_k times the
 * image with weights 1. */
double tess_direct_dirty(const tess_direct *direct, const double *vis,
                         const double *weight, double *image);

/** Relative L2 difference ‖a − b‖/‖b‖ over `count` values; pairs where both are NaN are
 *  left out, and where one is, the result is NaN. */
double tess_direct_rel_l2(int64_t count, const double *a, const double *b);

/** The same of the worst block when image[ny][nx] is cut into 8 × 8 blocks, its
 *  difference's rms over the rms of the whole b. */
double tess_direct_worst_block(int64_t nx, int64_t ny, const double *a,
                               const double *b);

#ifdef __cplusplus
}
#endif
#endif
