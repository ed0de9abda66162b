/* Computes the visibilities of a list of sources as the direct sum, in double
 * precision, and draws their thermal noise. */
#include "sim_predict.h"

#include <math.h>
#include <string.h>

#include "tess_const.h"

/* ---- noise, drawn from a counter-based generator ---- */

void tess_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t x[4] = {counter[0], counter[1], counter[2], counter[3]};
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; ++round) {
        const uint64_t a = (uint64_t)0xD2511F53u * x[0];
        const uint64_t b = (uint64_t)0xCD9E8D57u * x[2];
        const uint32_t next0 = (uint32_t)(b >> 32) ^ x[1] ^ k0;
        const uint32_t next2 = (uint32_t)(a >> 32) ^ x[3] ^ k1;
        x[0] = next0;
        x[1] = (uint32_t)b;
        x[2] = next2;
        x[3] = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < 4; ++i)
        out[i] = x[i];
}

/* 53 random bits as a number in (0, 1]; never 0, whose logarithm would be infinite. */
static double unit_interval(uint32_t high, uint32_t low)
{
    const uint64_t bits = (((uint64_t)high << 32) | low) >> 11;
    return ((double)bits + 1.0) * 0x1p-53;
}

void tess_noise_pair(uint64_t seed, int64_t row, int64_t chan, int corr, double out[2])
{
    const uint32_t counter[4] = {(uint32_t)(uint64_t)row,
                                 (uint32_t)((uint64_t)row >> 32),
                                 (uint32_t)(uint64_t)chan, (uint32_t)corr};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t word[4];
    tess_philox(counter, key, word);
    /* Box and Muller 1958. */
    const double radius = sqrt(-2.0 * log(unit_interval(word[0], word[1])));
    const double angle = TESS_TWO_PI * unit_interval(word[2], word[3]);
    out[0] = radius * cos(angle);
    out[1] = radius * sin(angle);
}

/* ---- the direct sum ---- */

/* Rows worked on together: the vector loops run over them, always the whole number, so
 * that a row's result never depends on its neighbours. Channels are taken in tiles that
 * keep the sums in the cache (64 rows x 16 channels x 4 Stokes: 64 KiB). */
enum { NUM_LANES = 64, NUM_TILE_CHAN = 16 };

/* The inner loop is compiled for several vector widths, chosen at run time; without
 * contraction to fused operations all give the same bits. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) &&                  \
    !defined(__clang__)
#define VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define VECTOR_CLONES
#endif

typedef struct lane_sums {
    double value[4][NUM_TILE_CHAN][2][NUM_LANES]; /* Stokes, channel, re/im, row */
} lane_sums;

/* Adding and subtracting 1.5 * 2^52 rounds to the nearest integer. */
#define ROUNDER 6755399441055744.0

/* cos and sin of 2 pi `turns`, to 3e-16, for |turns| < 2^50. Half turns are taken off
 * exactly; Taylor's series on [-pi/2, pi/2] then ends below 2e-17 at these degrees. */
static inline void phasor(double turns, double *cosine, double *sine)
{
    const double half_turns = (2.0 * turns + ROUNDER) - ROUNDER;
    const double x = TESS_TWO_PI * (turns - 0.5 * half_turns);
    const double odd = half_turns - 2.0 * ((0.5 * half_turns + ROUNDER) - ROUNDER);
    const double sign = 1.0 - 2.0 * odd * odd;
    const double z = x * x;
    double s = 1.0 / 51090942171709440000.0; /* 1/21! */
    s = -1.0 / 121645100408832000.0 + z * s;
    s = 1.0 / 355687428096000.0 + z * s;
    s = -1.0 / 1307674368000.0 + z * s;
    s = 1.0 / 6227020800.0 + z * s;
    s = -1.0 / 39916800.0 + z * s;
    s = 1.0 / 362880.0 + z * s;
    s = -1.0 / 5040.0 + z * s;
    s = 1.0 / 120.0 + z * s;
    s = -1.0 / 6.0 + z * s;
    double c = -1.0 / 1124000727777607680000.0; /* -1/22! */
    c = 1.0 / 2432902008176640000.0 + z * c;
    c = -1.0 / 6402373705728000.0 + z * c;
    c = 1.0 / 20922789888000.0 + z * c;
    c = -1.0 / 87178291200.0 + z * c;
    c = 1.0 / 479001600.0 + z * c;
    c = -1.0 / 3628800.0 + z * c;
    c = 1.0 / 40320.0 + z * c;
    c = -1.0 / 720.0 + z * c;
    c = 1.0 / 24.0 + z * c;
    c = -0.5 + z * c;
    *sine = sign * (x + x * (z * s));
    *cosine = sign * (1.0 + z * c);
}

VECTOR_CLONES
static void find_phasors(const double *delay_s, double freq_hz, double *cosine,
                         double *sine)
{
#pragma omp simd
    for (int r = 0; r < NUM_LANES; ++r)
        phasor(delay_s[r] * freq_hz, &cosine[r], &sine[r]);
}

/* Phasors times the Gaussian's visibility. Over the Gaussian, n changes with l and m by
 * −l/n and −m/n, which adds these parts of w to u and v. */
static void apply_gaussian(const tess_sky_source *source, const double (*uvw_m)[3],
                           double freq_hz, double *cosine, double *sine)
{
    const double per_m = freq_hz / TESS_SPEED_OF_LIGHT_M_S;
    const double n = 1.0 + source->n_minus_1;
    const double l_per_n = source->l / n, m_per_n = source->m / n;
    for (int r = 0; r < NUM_LANES; ++r) {
        const double u = (uvw_m[r][0] - uvw_m[r][2] * l_per_n) * per_m;
        const double v = (uvw_m[r][1] - uvw_m[r][2] * m_per_n) * per_m;
        const double gain =
            exp(-(source->uu * u * u + source->uv * u * v + source->vv * v * v));
        cosine[r] *= gain;
        sine[r] *= gain;
    }
}

/* Rows that are summed together. */
typedef struct lanes {
    double uvw_m[NUM_LANES][3];
    int pair[NUM_LANES]; /* of kinds of antennas, with gains */
} lanes;

/* Channels of a source, and what pairs of antennas receive of it there. */
typedef struct source_channels {
    int num;
    const double *freq_hz;
    const double *gain; /* [num][num_pairs]; NULL: 1 */
    int num_pairs;
} source_channels;

static void apply_gains(const double *gain, const int *pair, double *cosine,
                        double *sine)
{
    for (int r = 0; r < NUM_LANES; ++r) {
        cosine[r] *= gain[pair[r]];
        sine[r] *= gain[pair[r]];
    }
}

static void add_source(const tess_sky *sky, const tess_sky_source *source,
                       const lanes *at, const source_channels *channels,
                       lane_sums *sums)
{
    double delay_s[NUM_LANES], cosine[NUM_LANES], sine[NUM_LANES];
    for (int r = 0; r < NUM_LANES; ++r)
        delay_s[r] = (at->uvw_m[r][0] * source->l + at->uvw_m[r][1] * source->m +
                      at->uvw_m[r][2] * source->n_minus_1) /
                     TESS_SPEED_OF_LIGHT_M_S;
    for (int c = 0; c < channels->num; ++c) {
        const double freq_hz = channels->freq_hz[c];
        find_phasors(delay_s, freq_hz, cosine, sine);
        if (source->is_gaussian)
            apply_gaussian(source, at->uvw_m, freq_hz, cosine, sine);
        if (channels->gain)
            apply_gains(channels->gain + c * channels->num_pairs, at->pair, cosine,
                        sine);
        double flux_jy[4];
        tess_sky_flux(sky, source, freq_hz, flux_jy);
        for (int s = 0; s < 4; ++s) {
            if (!sky->has_stokes[s]) continue;
            const double flux = flux_jy[s];
            double *re = sums->value[s][c][0], *im = sums->value[s][c][1];
            for (int r = 0; r < NUM_LANES; ++r)
                re[r] += flux * cosine[r];
            for (int r = 0; r < NUM_LANES; ++r)
                im[r] += flux * sine[r];
        }
    }
}

/* What the four Stokes parameters add to a correlation, as (re, im) pairs. */
static void parts_of_stokes(tess_corr corr, double mix[4][2])
{
    memset(mix, 0, 4 * sizeof *mix);
    switch (corr) {
    case -1:
        mix[0][0] = 1.0;
        mix[3][0] = 1.0;
        break; /* RR = I + V */
    case -2:
        mix[0][0] = 1.0;
        mix[3][0] = -1.0;
        break; /* LL = I - V */
    case -3:
        mix[1][0] = 1.0;
        mix[2][1] = 1.0;
        break; /* RL = Q + iU */
    case -4:
        mix[1][0] = 1.0;
        mix[2][1] = -1.0;
        break; /* LR = Q - iU */
    case -5:
        mix[0][0] = 1.0;
        mix[1][0] = 1.0;
        break; /* XX = I + Q */
    case -6:
        mix[0][0] = 1.0;
        mix[1][0] = -1.0;
        break; /* YY = I - Q */
    case -7:
        mix[2][0] = 1.0;
        mix[3][1] = 1.0;
        break; /* XY = U + iV */
    case -8:
        mix[2][0] = 1.0;
        mix[3][1] = -1.0;
        break; /* YX = U - iV */
    default:
        if (corr >= 1 && corr <= 4) mix[corr - 1][0] = 1.0;
    }
}

/* One sample's correlation from the Stokes sums. */
static void mix_stokes(const lane_sums *sums, double mix[4][2], int chan, int lane,
                       double out[2])
{
    out[0] = out[1] = 0.0;
    for (int s = 0; s < 4; ++s) {
        const double re = sums->value[s][chan][0][lane];
        const double im = sums->value[s][chan][1][lane];
        out[0] += mix[s][0] * re - mix[s][1] * im;
        out[1] += mix[s][0] * im + mix[s][1] * re;
    }
}

/* The rows and channels that are summed at a time. */
typedef struct sample_tile {
    int64_t row_first, chan_first;
    int num_rows, num_chan;
} sample_tile;

static void store(const lane_sums *sums, const tess_sim_channels *channels,
                  const tess_sim_noise *noise, const sample_tile *tile, float *vis)
{
    double mix[TESS_MAX_CORR][4][2];
    for (int p = 0; p < channels->num_corr; ++p)
        parts_of_stokes(channels->corr[p], mix[p]);
    for (int r = 0; r < tile->num_rows; ++r) {
        const int64_t row = tile->row_first + r;
        for (int c = 0; c < tile->num_chan; ++c) {
            const int64_t chan = tile->chan_first + c;
            float *sample =
                vis + (row * channels->num_chan + chan) * channels->num_corr * 2;
            for (int p = 0; p < channels->num_corr; ++p) {
                double value[2], normal[2];
                mix_stokes(sums, mix[p], c, r, value);
                if (noise->sigma_jy > 0.0) {
                    tess_noise_pair(noise->seed, noise->row_offset + row, chan, p,
                                    normal);
                    value[0] += noise->sigma_jy * normal[0];
                    value[1] += noise->sigma_jy * normal[1];
                }
                sample[2 * p] = (float)value[0];
                sample[2 * p + 1] = (float)value[1];
            }
        }
    }
}

/* Rows from `first` on, at most as many as there are lanes; lanes without a row are 0.
 * Returns their number. */
static int take_rows(const tess_sim_rows *rows, int64_t first, lanes *at)
{
    const int n = (int)(rows->num - first < NUM_LANES ? rows->num - first : NUM_LANES);
    const tess_sim_gains *gains = rows->gains;
    memset(at, 0, sizeof *at);
    memcpy(at->uvw_m, rows->uvw_m + 3 * first, (size_t)n * sizeof *at->uvw_m);
    for (int r = 0; gains && r < n; ++r)
        at->pair[r] = tess_sim_pair(gains->kind[rows->antenna1[first + r]],
                                    gains->kind[rows->antenna2[first + r]]);
    return n;
}

static void sum_sources(const tess_sky *sky, const tess_sim_channels *channels,
                        const tess_sim_gains *gains, const lanes *at,
                        const sample_tile *tile, lane_sums *sums)
{
    source_channels of = {.num = tile->num_chan,
                          .freq_hz = channels->freq_hz + tile->chan_first};
    memset(sums, 0, sizeof *sums);
    for (int64_t k = 0; k < sky->num_sources; ++k) {
        if (gains) {
            of.num_pairs = gains->num_pairs;
            of.gain = gains->gain +
                      (k * channels->num_chan + tile->chan_first) * of.num_pairs;
        }
        add_source(sky, &sky->source[k], at, &of, sums);
    }
}

void tess_sim_predict(const tess_sky *sky, const tess_sim_channels *channels,
                      const tess_sim_noise *noise, const tess_sim_rows *rows,
                      int num_threads, float *vis)
{
    (void)num_threads; /* unused in a build without OpenMP */
#pragma omp parallel for num_threads(num_threads) schedule(dynamic)
    for (int64_t first = 0; first < rows->num; first += NUM_LANES) {
        lanes at;
        lane_sums sums;
        sample_tile tile = {.row_first = first,
                            .num_rows = take_rows(rows, first, &at)};
        for (int64_t chan = 0; chan < channels->num_chan; chan += NUM_TILE_CHAN) {
            const int64_t left = channels->num_chan - chan;
            tile.chan_first = chan;
            tile.num_chan = (int)(left < NUM_TILE_CHAN ? left : NUM_TILE_CHAN);
            sum_sources(sky, channels, rows->gains, &at, &tile, &sums);
            store(&sums, channels, noise, &tile, vis);
        }
    }
}
