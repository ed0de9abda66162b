/** @file tess_kernel.h
 *  The separable gridding kernel: exponential of a semicircle (Barnett, Magland & af
 *  Klinteberg 2019, arXiv:1808.06736) with a free exponent, as ducc0 has it (Arras et
 *  al. 2021, arXiv:2010.10122), φ(z) = exp(β((1−z²)^p − 1)), |z| ≤ 1, evaluated from
 *  one polynomial per tap, and its grid correction. β and p are those of least error,
 *  which is 1.3 to 3 times lower than with p = ½ (kernel_optimise.c).
 *
 *  The error of a kernel is not estimated but computed. A unit visibility at fraction δ
 *  of a cell reaches image coordinate x (in units of the grid's period, |x| ≤ 1/2σ) as
 *  S(δ,x) = Σ_j φ_j(δ) e^{−2πi x d_j}, d_j the distance of tap j, instead of 1. With δ
 *  uniform, the correction that minimises the mean square error is
 *  h(x) = ⟨S⟩/⟨|S|²⟩ and leaves e(x)² = ⟨|1 − h S|²⟩ (least-misfit functions: Ye,
 *  Gull, Tan & Nikolic 2020, arXiv:1906.07102). e includes all aliases and the error of
 *  the polynomials themselves.
 */
#ifndef TESS_KERNEL_H
#define TESS_KERNEL_H

#include <stdint.h>

#include "tess_status.h"

enum {
    TESS_MIN_SUPPORT = 4,
    TESS_MAX_SUPPORT = 16,
    TESS_MAX_DEGREE = 24,
    TESS_CORRECTION_TERMS = 32,
    TESS_KERNEL_PLACES = 24
};

typedef struct tess_kernel {
    int support;    /**< W [cells] */
    int degree;     /**< of the tap polynomials */
    double padding; /**< σ, grid size over image size, it was made for */
    double beta, exponent;
    double amplification; /**< rms over the field of h(x)/h(0): how much the grid
                               correction raises rounding errors, per axis */
    double error;         /**< rms of e(x) over the field, |x| ≤ 1/2σ */
    double largest_error; /**< largest e(x) in the field, 2 to 9 times the rms */
    /** e(x) at |x| = (1 − t²)/2σ, t = (k + ½)/TESS_KERNEL_PLACES */
    double place_error[TESS_KERNEL_PLACES];
    double largest_gain; /**< h(1/2σ)/h(0): amplification at the field's edge */
    /** Tap j at fraction f in [0,1) is Σ_d coefficient[d][j] y^d, y = 2f − 1; f is the
     *  distance of the first tap from the footprint's lower edge. Lanes ≥ W are 0. */
    double coefficient[TESS_MAX_DEGREE + 1][TESS_MAX_SUPPORT];
} tess_kernel;

/** Best kernel of this support for images that fill 1/padding of the grid: β and p of
 *  the smallest rms error over the field, the lowest degree that keeps it. Local. */
void tess_kernel_create(int support, double padding, tess_kernel *kernel);

/** Taps along w where a range of w is so short that every visibility touches all of
 *  `count` equidistant planes: Lagrange's polynomials through the planes, in y as above,
 *  which then is not confined to [−1,1]. There is no correction, and no shape φ. `turns`:
 *  the range times the largest |n − n_c| of a pixel. taps->largest_error is the largest
 *  |1 − S| of any w in the range and any pixel. Returns the length of the range in
 *  distances of planes, whose middle planes lie in the middle. Local. */
double tess_kernel_between_planes(int count, double turns, tess_kernel *taps);

/** φ(z) itself; 0 for |z| > 1. */
double tess_kernel_value(const tess_kernel *kernel, double z);

/** The taps of a footprint, out[support]. `fraction`: the distance of its first grid
 *  point, ⌈g − W/2⌉, from g − W/2, where g is the coordinate of the visibility. */
void tess_kernel_taps(const tess_kernel *kernel, double fraction, double *out);

/** Grid correction h(x) and rms error e(x) at image coordinate x = pixel offset over
 *  grid size (or, in w, n-offset times plane distance), |x| ≤ 1/2. `error` may be
 *  NULL. */
double tess_kernel_correction(const tess_kernel *kernel, double x, double *error);

/** h of an axis of the image: out[i] = h((i − ⌊count/2⌋)·step), i < count. */
void tess_kernel_correction_line(const tess_kernel *kernel, int64_t count, double step,
                                 double *out);

/** Chebyshev coefficients c[TESS_CORRECTION_TERMS] of h as a function of
 *  y = 2(x/x_max)² − 1: h = Σ c_k T_k(y). For h along the w-axis, one value a pixel. */
void tess_kernel_correction_fit(const tess_kernel *kernel, double x_max,
                                double c[TESS_CORRECTION_TERMS]);

#endif
