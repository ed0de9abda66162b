/* Which sums of residual images a component depends on: see clean_layers.h. */
#include "clean_layers.h"

#include <math.h>

bool clean_has_mean(const clean_setup *setup)
{
    return clean_is_multiscale(setup) && setup->images.num_images > 1 &&
           clean_join_is_linear(&setup->join);
}

bool clean_layers_are_sums(const clean_setup *setup)
{
    const clean_join *join = &setup->join;
    return clean_has_mean(setup) && join->num_pol == 1 &&
           join->spectrum.kind == TESS_CLEAN_POLYNOMIAL &&
           join->spectrum.num_terms < setup->images.num_images &&
           clean_num_psf_places(setup) == 1 && !clean_has_borders(setup) &&
           fabs(join->all - 1) < 1e-9;
}

int clean_layers_count(const clean_setup *setup)
{
    return clean_layers_are_sums(setup) ? setup->join.spectrum.own_terms[0]
                                        : setup->images.num_images;
}

int clean_layers_psfs(const clean_setup *setup)
{
    const int layers = clean_layers_count(setup);
    return clean_layers_are_sums(setup) ? layers * (layers + 1) / 2
                                        : layers * clean_num_psf_places(setup);
}

/* Σ_c w_c a_c b_c over the channels. */
static double product(const clean_join *join, const double *a, const double *b)
{
    double sum = 0;
    for (int c = 0; c < join->num_channels; ++c)
        sum += join->weight[c] * a[c] * b[c];
    return sum;
}

/* Makes orthonormal polynomials from powers by Gram and Schmidt's method. It is applied
 * twice, because rounding errors of a single pass grow with the number of terms. */
void clean_layers_basis(const clean_setup *setup, double *basis, double *weights)
{
    const clean_join *join = &setup->join;
    const int channels = join->num_channels, count = clean_layers_count(setup);
    for (int t = 0; t < count; ++t) {
        double *own = basis + (int64_t)t * channels;
        for (int c = 0; c < channels; ++c)
            own[c] = t == 0 ? 1 : own[c - channels] * join->spectrum.at[c];
        for (int pass = 0; pass < 2; ++pass)
            for (int u = 0; u < t; ++u) {
                const double *other = basis + (int64_t)u * channels;
                const double share = product(join, own, other);
                for (int c = 0; c < channels; ++c)
                    own[c] -= share * other[c];
            }
        const double norm = 1 / sqrt(product(join, own, own));
        for (int c = 0; c < channels; ++c)
            own[c] *= norm;
    }
    for (int t = 0; t < count; ++t)
        for (int c = 0; c < channels; ++c)
            weights[t * channels + c] = join->weight[c] * basis[t * channels + c];
}

void clean_psf_peaks(const clean_setup *setup, const double *own, double *peak)
{
    for (int s = 0; s < setup->num_scales; ++s) {
        peak[s] = 0;
        for (int k = 0; k < setup->images.num_images; ++k)
            peak[s] +=
                setup->join.share[k] / setup->join.all * own[k * setup->num_scales + s];
    }
}
