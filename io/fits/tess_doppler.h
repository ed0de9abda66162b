/** @file tess_doppler.h
 *  Frequencies in the frame of the observatory, and in frames that astronomers compare
 *  lines in.
 */
#ifndef TESS_DOPPLER_H
#define TESS_DOPPLER_H

#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Standards of rest of frequencies. */
typedef enum tess_spectral_frame {
    TESS_TOPO,   /**< the observatory */
    TESS_BARY,   /**< barycentre of the solar system */
    TESS_LSRK,   /**< kinematic local standard of rest */
    TESS_GALACTO /**< centre of the Galaxy */
} tess_spectral_frame;

/** Velocities that stand for frequencies: radio, c (1 - f/f0), and optical,
 *  c (f0/f - 1), of a line of frequency f0 at rest. */
typedef enum tess_velocity { TESS_NO_VELOCITY, TESS_RADIO, TESS_OPTICAL } tess_velocity;

/** The velocity [m/s] of a frequency, and back. Local. */
double tess_velocity_of(tess_velocity kind, double rest_hz, double freq_hz);
double tess_velocity_freq(tess_velocity kind, double rest_hz, double velocity_m_s);

/** The frame of a name of --frame, "topo", "bary", "lsrk" or "galacto". TESS_ERR_USAGE.
 *  Local. */
tess_status tess_spectral_frame_parse(const char *text, tess_spectral_frame *frame);
const char *tess_spectral_frame_name(tess_spectral_frame frame); /**< Local. */

/** The frame that casacore, AIPS or FITS name, as in "BARY" or "BARYCENT"; topocentric
 *  if it is none of these. Local. */
tess_spectral_frame tess_spectral_frame_like(const char *text);

/** Its name in SPECSYS of FITS headers: "LSRK". Local. */
const char *tess_spectral_frame_specsys(tess_spectral_frame frame);

/** Who looks where. */
typedef struct tess_doppler_view {
    const char *path;       /**< of the observation, for messages */
    double site_m[3];       /**< geocentric (ITRF) */
    double ra_rad, dec_rad; /**< J2000 */
} tess_doppler_view;

/** The factor by which a frequency that is measured at the site is multiplied to have
 *  it in the frame, at a time [MJD s, UTC]. It agrees with casacore's measures to 1e-9.
 *  TESS_ERR_INPUT: the site or the time is not known. Local. */
tess_status tess_doppler_factor(tess_spectral_frame frame,
                                const tess_doppler_view *view, double time_mjd_s,
                                double *factor);

/** VELOSYS of FITS headers for this factor [m/s]: the relative radial velocity between
 *  the observer and the frame, positive if the observer moves away from the source.
 *  Local. */
double tess_doppler_velosys(double factor);

#ifdef __cplusplus
}
#endif
#endif
