/* The noise of channels, of samples of their pixels: see clean_channel_noise.h. */
#include "clean_channel_noise.h"

#include <math.h>
#include <stdlib.h>

int64_t clean_noise_step(const clean_setup *setup)
{
    /* odd, so that samples lie in all columns of usual images */
    return setup->images.nx * setup->images.ny / CLEAN_NOISE_SAMPLES | 1;
}

/* The quartile of χ² over its number of degrees of freedom (Wilson & Hilferty 1931,
 * PNAS 17, 684), whose mean is 1. */
static double quartile_of_chi2(int degrees)
{
    static const double QUARTILE = -0.674489750196082; /* of a Gaussian */
    const double part = 2.0 / (9.0 * degrees), root = 1 - part + QUARTILE * sqrt(part);
    return root * root * root;
}

static int degrees_of(const clean_join *join, int pol)
{
    int count = -1;
    for (int c = 0; c < join->num_channels; ++c)
        count += join->weight[c * join->num_pol + pol] > 0;
    return count;
}

bool clean_noise_matters(const clean_join *join, int pol)
{
    return join->spectrum.kind == TESS_CLEAN_LOG_POLYNOMIAL &&
           degrees_of(join, pol) > 0;
}

double clean_noise_sample(const clean_join *join, int pol, const double *value)
{
    double sum = 0, weights = 0, squares = 0;
    for (int c = 0; c < join->num_channels; ++c) {
        const int k = c * join->num_pol + pol;
        if (!(join->weight[k] > 0)) continue;
        sum += join->weight[k] * value[k];
        weights += join->weight[k];
    }
    for (int c = 0; c < join->num_channels; ++c) {
        const int k = c * join->num_pol + pol;
        if (!(join->weight[k] > 0)) continue;
        const double off = value[k] - sum / weights;
        squares += join->weight[k] * off * off;
    }
    return squares;
}

static int by_value(const void *a, const void *b)
{
    const double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

double clean_noise_of(const clean_join *join, int pol, double *sample)
{
    enum { SAMPLES = CLEAN_NOISE_SAMPLES };
    const int degrees = degrees_of(join, pol);
    int blank = 0;
    qsort(sample, SAMPLES, sizeof *sample, by_value);
    while (blank < SAMPLES && sample[blank] < 0)
        ++blank;
    if (blank == SAMPLES) return 0;
    return sample[blank + (SAMPLES - blank) / 4] /
           (degrees * quartile_of_chi2(degrees));
}
