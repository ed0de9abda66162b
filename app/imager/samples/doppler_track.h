/** @file doppler_track.h  (private to app/imager/samples/)
 *  Doppler factors of one observation of one field, as they change with time.
 */
#ifndef TESS_DOPPLER_TRACK_H
#define TESS_DOPPLER_TRACK_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_doppler.h"

/** Factors at equidistant times, between which they are interpolated. */
typedef struct doppler_track {
    tess_spectral_frame frame;
    tess_doppler_view view;
    double first_s; /* of node 0 */
    int64_t num;
    double *node; /* [num] NAN: not asked for yet */
} doppler_track;

/** TESS_ERR_ALLOC, and errors of tess_doppler_factor for the first and the last of
 * these times. Local. */
tess_status doppler_track_create(tess_spectral_frame frame,
                                 const tess_doppler_view *view, double first_s,
                                 double last_s, doppler_track *track);
void doppler_track_free(doppler_track *track); /**< Local. */

/** The factor at a time. It is the same for any order of calls. TESS_ERR_INPUT for
 * times without one. Local; one call at a time. */
tess_status doppler_track_at(doppler_track *track, double time_mjd_s, double *factor);

/** Bounds of the factors between the first and the last time. Local. */
tess_status doppler_track_bounds(doppler_track *track, double *least, double *most);

#endif
