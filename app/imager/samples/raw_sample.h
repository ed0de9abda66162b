/** @file raw_sample.h  (private to app/imager/)
 *  From the bytes of a UVFITS row to a sample for the gridder, as prepare.c makes it of
 *  a decoded block. One source for the device and for its emulation.
 */
#ifndef TESS_RAW_SAMPLE_H
#define TESS_RAW_SAMPLE_H

#include "raw_row.h"

/** What all polarisations of a sample have in common. */
typedef struct raw_place {
    int reason;          /**< why all are ignored, −1: they are not */
    double sine, cosine; /**< of the rotation's phase, of which the conjugate counts */
} raw_place;

/** One polarisation of a sample. */
typedef struct raw_sample {
    double re, im;
    double weight; /**< 0 when it is ignored */
    int reason;    /**< why, −1: it is not */
} raw_sample;

/* prepare.c, mean_of_hands. */
TESS_SHARED_FUNCTION float raw_mean_of_hands(const raw_mix *mix,
                                             const unsigned char *row, int64_t first)
{
    double sum = 0;
    int count = 0;
    for (int k = 0; k < mix->num_hands; ++k) {
        const double weight = (double)raw_value(row, first + 3 * mix->hand[k] + 2);
        if (!(weight > 0) || !isfinite(weight)) continue;
        sum += weight;
        ++count;
    }
    return count > 0 ? (float)(sum / count) : 0;
}

/* prepare.c, mix_sample: a weight <= 0 of a file of this kind is a flag. */
TESS_SHARED_FUNCTION raw_sample raw_mixed(const raw_mix *mix, const unsigned char *row,
                                          int64_t first)
{
    raw_sample out = {0, 0, INFINITY, mix->num ? -1 : TESS_IGNORED_FLAGGED};
    for (int k = 0; k < mix->num; ++k) {
        const int64_t at = first + 3 * mix->index[k];
        const double re = (double)raw_value(row, at),
                     im = (double)raw_value(row, at + 1);
        const double weight = (double)raw_value(row, at + 2);
        if (weight <= 0)
            out.reason = TESS_IGNORED_FLAGGED;
        else if (!(isfinite(weight) && isfinite(re) && isfinite(im)) &&
                 out.reason != TESS_IGNORED_FLAGGED)
            out.reason = TESS_IGNORED_NOT_FINITE;
        out.re += mix->re[k] * re - mix->im[k] * im;
        out.im += mix->re[k] * im + mix->im[k] * re;
        out.weight = fmin(out.weight, weight);
    }
    if (mix->num_hands == 0) return out;
    out.weight = (double)raw_mean_of_hands(mix, row, first);
    if (out.reason < 0 && !(out.weight > 0)) out.reason = TESS_IGNORED_WEIGHT;
    return out;
}

/** sin and cos of 2π·turns. */
TESS_SHARED_FUNCTION void raw_phase(double turns, double *sine, double *cosine)
{
#ifdef TESS_ON_DEVICE
    sincospi(2 * (turns - rint(turns)), sine, cosine);
#else
    *sine = sin(TESS_TWO_PI * (turns - rint(turns)));
    *cosine = cos(TESS_TWO_PI * (turns - rint(turns)));
#endif
}

/** The place of channel `chan` of a row; the same as in prepare_row() of prepare.c. */
TESS_SHARED_FUNCTION raw_place raw_place_of(const raw_recipe *recipe, const raw_row *at,
                                            int64_t chan)
{
    const double inv_lambda = recipe->inv_lambda[chan];
    raw_place out = {at->reason, 0, 1};
    if (out.reason < 0)
        out.reason = uv_range_ignores(&recipe->range, at->uvw_m, inv_lambda);
    if (recipe->rotate && out.reason < 0)
        raw_phase((at->uvw_m[2] - at->file_w_m) * inv_lambda, &out.sine, &out.cosine);
    return out;
}

/** Polarisation `pol` of that sample. */
TESS_SHARED_FUNCTION raw_sample raw_sample_of(const raw_recipe *recipe,
                                              const raw_place *place,
                                              const unsigned char *row, int64_t chan,
                                              int pol)
{
    raw_sample out = {0, 0, 0, TESS_IGNORED_NOT_FINITE};
    if (place->reason == RAW_NO_POSITION) return out;
    out = raw_mixed(&recipe->mix[pol], row, recipe->chan_offset[chan]);
    if (out.reason < 0) out.reason = place->reason;
    if (out.reason >= 0) {
        out.re = out.im = out.weight = 0;
    } else if (recipe->rotate) {
        const double re = out.re, im = out.im;
        out.re = re * place->cosine + im * place->sine; /* see prepare.c */
        out.im = im * place->cosine - re * place->sine;
    }
    return out;
}

TESS_SHARED_FUNCTION void raw_store(unsigned char *row, int64_t index, float value)
{
    union {
        uint32_t bits;
        float value;
    } in;
    in.value = value;
#ifdef TESS_ON_DEVICE
    ((uint32_t *)row)[index] = __byte_perm(in.bits, 0, 0x0123);
#else
    for (int k = 0; k < 4; ++k)
        row[4 * index + k] = (unsigned char)(in.bits >> (24 - 8 * k));
#endif
}

/** Replace channel `chan` of a row by what the Stokes parameters vis[num_stokes][2]
 *  make of it, as predict_models.c, mix_sample; `at` is NULL for a row that lies
 *  nowhere. */
TESS_SHARED_FUNCTION void raw_replace(const raw_recipe *recipe,
                                      const raw_mixing *mixing, const raw_row *at,
                                      double (*vis)[2], int64_t chan,
                                      unsigned char *row)
{
    double sine = 0, cosine = 1;
    if (at && recipe->rotate)
        raw_phase((at->uvw_m[2] - at->file_w_m) * recipe->inv_lambda[chan], &sine,
                  &cosine);
    for (int c = 0; c < mixing->num_corr; ++c) {
        const int64_t to = recipe->chan_offset[chan] + 3 * c;
        double re = 0, im = 0;
        for (int s = 0; at && s < mixing->num_stokes; ++s) {
            re += mixing->re[c][s] * vis[s][0] - mixing->im[c][s] * vis[s][1];
            im += mixing->re[c][s] * vis[s][1] + mixing->im[c][s] * vis[s][0];
        }
        raw_store(row, to, (float)(re * cosine - im * sine));
        raw_store(row, to + 1, (float)(re * sine + im * cosine));
    }
}

#endif
