/** @file options.h  (private to app/cli/)
 *  Parses the values of options of gridding and imaging, in the way of tess_parse.h.
 *  tess_cli_result() of tess_cli.h puts the option's name in front of their messages.
 */
#ifndef TESS_OPTIONS_H
#define TESS_OPTIONS_H

#include "option_rules.h"
#include "tess_imager.h"
#include "tess_parse.h"
#include "tess_status.h"

/** "natural", "uniform", "briggs:R" with R in [-10, 10] ("briggs" alone is R = 0); also
 *  "briggs R", "robust:R", and in capital letters. */
tess_status tess_parse_weight(const char *text, tess_weighting *weighting,
                              double *robust);

/** "I", "IQUV", "XX,YY", "RR,LL,RL"...: letters of Stokes parameters without commas, or
 *  names with commas, in capital or small letters; each once, at most TESS_MAX_POL. */
tess_status tess_parse_stokes(const char *text, tess_corr pol[TESS_MAX_POL],
                              int *num_pol);

/** "own" or "first": the Stokes parameter whose density gives the weights. */
tess_status tess_parse_density(const char *text, bool *first);

/** "smallest" or "mean": the weight of a Stokes parameter from those of its hands. */
tess_status tess_parse_hand_weight(const char *text, bool *mean);

/** A FWHM, or both axes and the position angle: sets the Gaussian of a taper. */
tess_status tess_parse_taper(const char *text, tess_taper *taper);

/** "cells" or "visibilities": where a taper is taken. */
tess_status tess_parse_taper_at(const char *text, bool *at_visibilities);

/** "auto", "stacking", "projection" or "none". */
tess_status tess_parse_w_mode(const char *text, tess_w_mode *w_mode);

/** "sqrt" or "linear". */
tess_status tess_parse_w_spacing(const char *text, bool *is_linear);

/** "auto", or a strategy's name (tess_gcf_strategy_name). */
tess_status tess_parse_strategy(const char *text, tess_projection_opts *opts);

/** "8asec,6asec,30deg": FWHM of a beam's axes, the longer first, and position angle. */
tess_status tess_parse_beam(const char *text, tess_fits_beam *beam);

/** Rules (option_rules.h) of a tess_fits_beam: a circular one by its FWHM, and one as
 *  tess_parse_beam() takes it. */
tess_status tess_take_beam_size(const tess_option_rule *rule, const char *text,
                                void *value);
tess_status tess_take_beam_shape(const tess_option_rule *rule, const char *text,
                                 void *value);

/** "1.42GHz", "-300km/s", or a channel like "16": where an axis begins. */
tess_status tess_parse_axis_start(const char *text, tess_axis_value *start);

/** "20kHz", "-5km/s", or a number of channels like "4", not 0: the step of an axis. */
tess_status tess_parse_axis_width(const char *text, tess_axis_value *width);

/** TESS_ERR_USAGE if options of gridding contradict each other. If only one backend has
 *  the strategy, --backend auto becomes that backend. */
tess_status tess_check_gridding(tess_gridding *gridding);

#endif
