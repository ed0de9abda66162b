/* Fits spectra of logarithms on processors: clean_log_fit.h has the fit. */
#include "clean_log_spectrum.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static_assert((int)CLEAN_SMALL_MOST == (int)TESS_CLEAN_MOST_TERMS,
              "systems are as large as spectra need them");

clean_log_places clean_log_places_of(const clean_spectrum *s)
{
    return (clean_log_places){.num_terms = s->num_terms,
                              .num_pol = s->num_pol,
                              .num_channels = s->num_channels,
                              .num_out = s->num_out,
                              .unit = s->unit,
                              .own_terms = s->own_terms,
                              .num_known = s->num_known,
                              .at = s->at,
                              .at_out = s->at_out,
                              .weight = s->weight};
}

void clean_log_component(const clean_spectrum *s, const double *value, int pol,
                         double noise, double *term)
{
    clean_log_fit fit;
    const clean_log_places places = clean_log_places_of(s);
    clean_log_fit_component(&fit, &places, value, pol, noise, term);
}

void clean_log_measure(const clean_spectrum *s, const double *value, double *term)
{
    clean_log_fit fit;
    const clean_log_places places = clean_log_places_of(s);
    memset(term, 0, (size_t)s->num_terms * sizeof *term);
    if (!clean_log_begin(&places, value, 0, &fit)) return;
    clean_log_begin_logs(&fit);
    clean_log_iterate(&fit);
    if (clean_log_is_bounded(&fit))
        clean_log_put_terms(&fit, term);
    else
        for (int i = 0; i < s->num_terms; ++i)
            term[i] = (double)NAN;
}

double clean_log_at(const double *term, int num_terms, double x)
{
    return clean_log_value(term, num_terms, x);
}
