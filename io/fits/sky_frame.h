/** @file sky_frame.h  (private to io/)
 *  Directions in the frames of FITS headers, converted to J2000: its mean equator and
 *  equinox (FK5), as everything beyond the readers has it.
 */
#ifndef SKY_FRAME_H
#define SKY_FRAME_H

#include <stddef.h>

#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sky_system { SKY_FK5, SKY_FK4, SKY_ICRS } sky_system;

/** The mean equator and equinox of a year in a system. Zeroed, it is not known. */
typedef struct sky_frame {
    sky_system system;
    double equinox; /**< Julian (FK5) or Besselian (FK4) year */
} sky_frame;

/** The frame that RADESYS and EQUINOX name; RADESYS may be "", EQUINOX 0. What is left
 *  out follows FITS paper II (Calabretta and Greisen 2002), section 3.1: a year before
 *  1984 is one of FK4. TESS_ERR_INPUT for a frame that cannot be converted; the message
 *  begins with `path`. Local. */
tess_status sky_frame_parse(const char *path, const char *radesys, double equinox,
                            sky_frame *frame);

/** "B1950", "J1991.25", "ICRS". Local. */
void sky_frame_name(const sky_frame *frame, char *name, size_t size);

/** Convert longitude and latitude place[2] [rad] of an observation at time_mjd_s (UTC)
 *  to J2000. FK4 turns with time against sources without proper motion, so that it
 * needs the time (0: not known; 1950 is taken). Conversions are those of ERFA, and
 * agree with casacore's to a microarcsecond: FK4 with E-terms (eraFk45z), ICRS by the
 * bias of the IAU 2000 frame. Returns the position angle of the frame's North there
 * [rad]. Local. */
double sky_frame_to_j2000(const sky_frame *frame, double time_mjd_s, double place[2]);

/** The position of a point a little to the North of `place`, in unit vectors: the
 *  frame's North is the direction from the one to the other. Local. */
void sky_frame_ahead(const double place[2], double ahead[3]);

#ifdef __cplusplus
}
#endif
#endif
