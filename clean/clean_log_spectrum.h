/** @file clean_log_spectrum.h  (private to clean/)
 *  Fits of ± 10^(polynomial of logarithms of frequency) to the values of channels.
 */
#ifndef TESS_CLEAN_LOG_SPECTRUM_H
#define TESS_CLEAN_LOG_SPECTRUM_H

#include "clean_log_fit.h"
#include "clean_spectrum.h"

/** What the fit needs of a spectrum, in its memory. Local. */
clean_log_places clean_log_places_of(const clean_spectrum *spectrum);

/** Fit the spectrum of a component. Terms are held near 0 by their prior, the more the
 *  larger the noise is, and the function is the constant mean if the logarithms do not
 *  fit better than it by Akaike's criterion. term[num_terms] belong to powers of
 *  places; term[0] is the value at ν0. They are finite if values are. `noise`: what is
 *  expected of weight · noise² of a channel. Local. */
void clean_log_component(const clean_spectrum *spectrum, const double *value, int pol,
                         double noise, double *term);

/** Fit the first polarisation by least squares alone. Terms are NaN if the fit has no
 *  bounds. Local. */
void clean_log_measure(const clean_spectrum *spectrum, const double *value,
                       double *term);

/** The value of terms at a place. Local. */
double clean_log_at(const double *term, int num_terms, double place);

#endif
