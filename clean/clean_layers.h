/** @file clean_layers.h  (private to clean/)
 *  What backends hold images and spectra of. Layers are the residual images, or fewer
 *  sums of them.
 *
 *  The spectrum of a component is a polynomial of T terms, which is fitted to C
 *  channels of weights w_c. Let b_t be polynomials with Σ_c w_c b_tc b_uc = 1 for
 *  t = u, else 0. Then a component depends on the T sums g_t = Σ_c w_c b_tc R_c of the
 *  residuals alone: its value in channel c is Σ_t g_t b_tc, times the gain. It changes
 *  g_u by the sum over t of g_t times the PSF Σ_c w_c b_tc b_uc PSF_c. The first sum is
 *  the mean, as b_0 = 1. So for T < C the sums are the layers. Sums and PSFs of this
 *  kind are those of Rau & Cornwell (2011, A&A 532, A71, sections 3 and 4), with
 *  orthonormal polynomials for powers.
 */
#ifndef TESS_CLEAN_LAYERS_H
#define TESS_CLEAN_LAYERS_H

#include "clean_ops.h"

/** Whether the mean of several images has a spectrum of its own. A scale is then
 *  measured by one transform. The images are made for the scale that is cleaned. Roots
 *  and squares have no such spectrum. Local. */
bool clean_has_mean(const clean_setup *setup);

/** Whether layers are sums of images. Local. */
bool clean_layers_are_sums(const clean_setup *setup);

/** Number of layers, and of PSFs between them, or of all places. Local. */
int clean_layers_count(const clean_setup *setup);
int clean_layers_psfs(const clean_setup *setup);

/** The PSF by which layers `a` and `b` change each other. Local. */
static inline int clean_layers_psf(int a, int b)
{
    return a > b ? a * (a + 1) / 2 + b : b * (b + 1) / 2 + a;
}

/** If layers are sums: basis[layers][images] := b_tc, and weights[layers][images] :=
 * w_c b_tc. Local. */
void clean_layers_basis(const clean_setup *setup, double *basis, double *weights);

/** (PSF ∗ K)(0) of the mean PSF over images that are searched, peak[num_scales], from
 *  that of each image, own[num_images][num_scales]. Local. */
void clean_psf_peaks(const clean_setup *setup, const double *own, double *peak);

#endif
