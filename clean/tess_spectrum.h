/** @file tess_spectrum.h
 *  Maps of spectra: the terms of the function of frequency that is fitted to each pixel
 *  of the channels' images, their errors, and the spectral index.
 */
#ifndef TESS_SPECTRUM_H
#define TESS_SPECTRUM_H

#include "tess_clean.h"

/** A pixel has a spectral index if its term at ν0 is at least this multiple of the
 * term's error. */
#define TESS_SPECTRUM_SIGNIFICANT 5.0

/** Rows of maps, of double but for the misfit, which the caller owns; spectral index
 * and its error have no pixels with one term. */
typedef struct tess_spectrum_maps {
    tess_rows term[TESS_CLEAN_MOST_TERMS];  /**< [Jy/beam]; terms of logarithms have no
                                             unit, except the first */
    tess_rows error[TESS_CLEAN_MOST_TERMS]; /**< 1 σ, for noise that is independent
                                             between channels, times √χ² where the
                                             reduced χ² is above 1 */
    tess_rows index, index_error; /**< α of S ∝ ν^α at ν0, NaN where the first
                                      term is below
                                      TESS_SPECTRUM_SIGNIFICANT times its error */
    tess_rows misfit; /**< reduced χ² over the limit that noise would exceed at one
                      pixel of three million; NaN where the first term is below
                        TESS_SPECTRUM_SIGNIFICANT times its error, or if there are no
                        more channels than terms */
} tess_spectrum_maps;

/** Fit the spectra of one polarisation. images->join tells of frequencies and of the
 *  function, `images->num_images` of channels and images->weight of their weights.
 *  value[num_images]: rows of the channels' images of one resolution, without pixels or
 *  NaN without data; sigma[num_images]: their noise. Terms of logarithms are NaN where
 * the first one is not significant. A channel of weight 0 takes no part.
 * TESS_ERR_ALLOC. Local. */
tess_status tess_spectrum_fit(const tess_clean_images *images, const tess_rows *value,
                              const double *sigma, int threads,
                              const tess_spectrum_maps *maps);

/** Pixels for which more terms are tried. */
typedef struct tess_spectrum_trial {
    const tess_rows *misfit; /**< as above: pixels above 1 are tried, */
    int64_t each; /**< if their place in the image, y · nx + x, is a multiple of this */
    int64_t tried;                             /**< number of these pixels */
    int64_t fitted[TESS_CLEAN_MOST_TERMS + 1]; /**< how many of them are fitted by so
                                                    many terms; as many terms as
                                                    channels are not tried */
} tess_spectrum_trial;

/** Fit spectra of more terms than images->join.num_terms at the pixels of a trial.
 *  Other arguments are those of tess_spectrum_fit(). TESS_ERR_ALLOC. Local. */
tess_status tess_spectrum_try(const tess_clean_images *images, const tess_rows *value,
                              const double *sigma, int threads,
                              tess_spectrum_trial *trial);

/** Channels whose values a function of frequency is fitted to. */
typedef struct tess_spectrum_channels {
    tess_clean_spectrum kind; /**< any but TESS_CLEAN_EACH_CHANNEL */
    int num_terms; /**< number of terms; if fewer channels have data, that number is
                      used */
    int num_channels;
    const double *freq_hz; /**< [num_channels] */
    const double *weight;  /**< [num_channels], 0: no data */
} tess_spectrum_channels;

/** The values at a frequency of the functions that are fitted to value[num_channels],
 *  rows of `count` pixels each: out[count]. What is not finite counts as 0.
 * TESS_ERR_ALLOC. Local. */
tess_status tess_spectrum_at(const tess_spectrum_channels *of, double freq_hz,
                             const double *const *value, int64_t count, int threads,
                             double *out);

#endif
