/** @file clean_spectrum.h  (private to clean/)
 *  Spectra of components: the channels' values are replaced by those of a function of
 *  frequency that is fitted to them with the channels' weights.
 */
#ifndef TESS_CLEAN_SPECTRUM_H
#define TESS_CLEAN_SPECTRUM_H

#include "tess_clean.h"

/** A function to fit. Values are [num_channels][num_pol]. Frequencies are kept as
 *  distances from ν0, relative ones or logarithms, in units of the largest. */
typedef struct clean_spectrum {
    tess_clean_spectrum kind;
    int num_terms;
    int num_pol, num_channels; /**< that are fitted */
    int num_out;               /**< channels to which the function is spread */
    double nu0_hz, unit;
    int *own_terms;   /**< [num_pol] no more than frequencies with data */
    int *num_known;   /**< [num_pol] frequencies with data */
    double *at;       /**< [num_channels] */
    double *at_out;   /**< [num_out] */
    double *weight;   /**< [num_channels][num_pol] */
    double *solution; /**< [num_pol][num_terms][num_channels] terms of a polynomial are
                           this times values */
} clean_spectrum;

/** What a fit is made for; arrays are copied. */
typedef struct clean_spectrum_need {
    tess_clean_spectrum kind;
    int num_terms, num_pol, num_channels, num_out;
    double nu0_hz;
    const double *freq_hz;     /**< [num_channels] */
    const double *out_freq_hz; /**< [num_out] */
    const double *weight;      /**< [num_channels][num_pol], 0: no data */
} clean_spectrum_need;

/** TESS_ERR_ALLOC. Local. */
tess_status clean_spectrum_create(const clean_spectrum_need *need,
                                  clean_spectrum *spectrum);
void clean_spectrum_free(clean_spectrum *spectrum); /**< Zeros are fine. Local. */

/** Replace value[num_channels][num_pol] by the function's; nothing without one.
 *  noise[num_pol]: what is expected of weight · noise² of a channel, in the unit of the
 *  values; NULL: the values have no noise. Logarithms are fitted as
 *  clean_log_component() tells. Local. */
void clean_spectrum_fit(const clean_spectrum *spectrum, const double *noise,
                        double *value);

/** out[num_out][num_pol] := the function that is fitted to value[][], which has no
 *  noise. Local. */
void clean_spectrum_spread(const clean_spectrum *spectrum, const double *value,
                           double *out);

/** The terms of one polarisation of a component, term[num_terms], as told beside
 *  tess_clean_spectrum. Local. */
void clean_spectrum_terms(const clean_spectrum *spectrum, const double *value, int pol,
                          double *term);

/** The terms of the first polarisation that fit best, whatever their errors are:
 *  measurements, and not components. Logarithms may be NaN. Local. */
void clean_spectrum_measure(const clean_spectrum *spectrum, const double *value,
                            double *term);

/** The value of these terms at a channel that is fitted. Local. */
double clean_spectrum_at(const clean_spectrum *spectrum, const double *term,
                         int channel);

/** How the terms of the first polarisation change with the value of a channel, at the
 *  fitted terms: slope[num_terms]. Local. */
void clean_spectrum_slopes(const clean_spectrum *spectrum, const double *term,
                           int channel, double *slope);

#endif
