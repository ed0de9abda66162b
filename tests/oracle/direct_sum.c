/* Computes predicted visibilities and dirty images as direct sums, without the
 * program's code. */
#include "direct_sum.h"

#include <math.h>
#include <stdlib.h>

/* Its own copies: a truth must not follow a mistake in the program's constants. */
#define SPEED_OF_LIGHT_M_S 299792458.0L
#define TWO_PI             6.28318530717958647692528676655900577

typedef struct direction {
    long double l, m, n_minus_1;
    bool visible;
} direction;

static direction pixel_direction(const tess_direct *direct, int64_t i, int64_t j)
{
    direction d = {0};
    const double scale_m =
        direct->scale_m_rad > 0 ? direct->scale_m_rad : direct->scale_rad;
    d.l = (long double)direct->l0 -
          (long double)(i - direct->nx / 2) * (long double)direct->scale_rad;
    d.m = (long double)direct->m0 +
          (long double)(j - direct->ny / 2) * (long double)scale_m;
    const long double r2 = d.l * d.l + d.m * d.m;
    d.visible = r2 <= 1.0L;
    if (d.visible && !direct->ignore_w) d.n_minus_1 = -r2 / (1.0L + sqrtl(1.0L - r2));
    return d;
}

/* cos and sin of 2 pi (u l + v m + w (n - 1)), uvw in wavelengths. */
static void phasor(const long double uvw[3], const direction *d, double *cosine,
                   double *sine)
{
    const long double turns = uvw[0] * d->l + uvw[1] * d->m + uvw[2] * d->n_minus_1;
    const double angle = TWO_PI * (double)(turns - rintl(turns));
    *cosine = cos(angle);
    *sine = sin(angle);
}

static void uvw_of(const tess_direct *direct, int64_t row, int64_t chan,
                   long double uvw[3])
{
    const long double per_m = (long double)direct->freq_hz[chan] / SPEED_OF_LIGHT_M_S;
    for (int k = 0; k < 3; ++k)
        uvw[k] = (long double)direct->uvw_m[3 * row + k] * per_m;
}

int tess_direct_predict(const tess_direct *direct, const double *image, double *vis)
{
    const int64_t num_pixels = direct->nx * direct->ny;
    direction *source = malloc((size_t)num_pixels * sizeof *source);
    double *flux_jy = malloc((size_t)num_pixels * sizeof *flux_jy);
    int64_t num_sources = 0;
    for (int64_t p = 0; source && flux_jy && p < num_pixels; ++p) {
        if (image[p] == 0.0 || isnan(image[p])) continue;
        const direction d = pixel_direction(direct, p % direct->nx, p / direct->nx);
        if (!d.visible) continue;
        source[num_sources] = d;
        flux_jy[num_sources++] = image[p];
    }
    const bool good = source && flux_jy;
    if (good) {
#pragma omp parallel for schedule(dynamic, 16)
        for (int64_t k = 0; k < direct->num_rows * direct->num_chan; ++k) {
            long double uvw[3];
            double re = 0.0, im = 0.0;
            uvw_of(direct, k / direct->num_chan, k % direct->num_chan, uvw);
            for (int64_t s = 0; s < num_sources; ++s) {
                double cosine, sine;
                phasor(uvw, &source[s], &cosine, &sine);
                re += flux_jy[s] * cosine;
                im += flux_jy[s] * sine;
            }
            vis[2 * k] = re;
            vis[2 * k + 1] = im;
        }
    }
    free(source);
    free(flux_jy);
    return good ? 0 : -1;
}

static double dirty_pixel(const tess_direct *direct, const double *vis,
                          const double *weight, const direction *d)
{
    double sum = 0.0;
    for (int64_t row = 0; row < direct->num_rows; ++row)
        for (int64_t chan = 0; chan < direct->num_chan; ++chan) {
            const int64_t k = row * direct->num_chan + chan;
            const double w = weight ? weight[k] : 1.0;
            if (w == 0.0) continue;
            long double uvw[3];
            double cosine, sine;
            uvw_of(direct, row, chan, uvw);
            phasor(uvw, d, &cosine, &sine);
            /* Re{V (cos - i sin)} */
            sum += w * (vis[2 * k] * cosine + vis[2 * k + 1] * sine);
        }
    return sum;
}

double tess_direct_dirty(const tess_direct *direct, const double *vis,
                         const double *weight, double *image)
{
    const int64_t num_vis = direct->num_rows * direct->num_chan;
    double sum_weights = 0.0;
    for (int64_t k = 0; k < num_vis; ++k)
        sum_weights += weight ? weight[k] : 1.0;
#pragma omp parallel for schedule(dynamic, 16)
    for (int64_t p = 0; p < direct->nx * direct->ny; ++p) {
        const direction d = pixel_direction(direct, p % direct->nx, p / direct->nx);
        if (!d.visible)
            image[p] = (double)NAN;
        else if (sum_weights == 0.0)
            image[p] = 0.0;
        else
            image[p] = dirty_pixel(direct, vis, weight, &d) / sum_weights;
    }
    return sum_weights;
}

/* Sums of squares over the part [i0, i1) × [j0, j1) of images of width nx. */
static void add_squares(int64_t nx, const int64_t part[4], const double *a,
                        const double *b, double *difference, double *size,
                        int64_t *count)
{
    for (int64_t j = part[2]; j < part[3]; ++j)
        for (int64_t i = part[0]; i < part[1]; ++i) {
            const int64_t p = j * nx + i;
            if (isnan(a[p]) && isnan(b[p])) continue;
            *difference += (a[p] - b[p]) * (a[p] - b[p]);
            *size += b[p] * b[p];
            ++*count;
        }
}

double tess_direct_rel_l2(int64_t count, const double *a, const double *b)
{
    const int64_t all[4] = {0, count, 0, 1};
    double difference = 0.0, size = 0.0;
    int64_t used = 0;
    add_squares(count, all, a, b, &difference, &size, &used);
    return sqrt(difference) / sqrt(size);
}

double tess_direct_worst_block(int64_t nx, int64_t ny, const double *a, const double *b)
{
    const int64_t all[4] = {0, nx, 0, ny};
    double difference = 0.0, size = 0.0, worst = 0.0;
    int64_t count = 0;
    add_squares(nx, all, a, b, &difference, &size, &count);
    const double rms = count ? sqrt(size / (double)count) : 0.0;
    for (int64_t block = 0; block < 64; ++block) {
        const int64_t bi = block % 8, bj = block / 8;
        const int64_t part[4] = {nx * bi / 8, nx * (bi + 1) / 8, ny * bj / 8,
                                 ny * (bj + 1) / 8};
        double block_difference = 0.0, block_size = 0.0;
        int64_t used = 0;
        add_squares(nx, part, a, b, &block_difference, &block_size, &used);
        if (used == 0) continue;
        const double ratio = sqrt(block_difference / (double)used) / rms;
        if (!(ratio <= worst)) worst = ratio; /* lets NaN through */
        if (isnan(worst)) break;
    }
    return worst;
}
