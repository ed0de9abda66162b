/** @file tess_aterms.h
 *  A-terms in FITS images, as a configuration file of WSClean (-aterm-config) names
 *  them, taken in some directions.
 *
 *  The file has lines `key = value`; '#' begins a comment. `aterms = [a, b]` lists
 *  terms, whose matrices are multiplied in this order. Term a has the keys `a.type`
 *  (default: its name), `a.images = [file, file]`, and others, which have no meaning
 * for directions. Types:
 *
 *    tec       phase at 1 Hz of −8.44797245e9 times the pixel [1e16 / m²]
 *    diagonal  real and imaginary parts of XX and YY along an axis MATRIX of length 4
 *    dldm      how far a source is seen from where it is, in l and m, along an axis
 *              MATRIX of length 2, the same for all antennas (no axis ANTENNA, or one
 * of length 1): no matrix, but a shift
 *
 *  Images have axes RA and DEC (SIN or TAN) and, in any order, ANTENNA (in the order of
 *  the observation), FREQ (Hz) and TIME (MJD, s). Times of several files follow one
 *  another. A direction takes the pixels around it, by bilinear interpolation, at the
 *  nearest time and frequency. Pixels that are not finite do not count.
 */
#ifndef TESS_ATERMS_H
#define TESS_ATERMS_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"
#include "tess_solutions.h"
#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** For which antennas and directions. */
typedef struct tess_aterms_opts {
    const char *path; /**< of the configuration */
    int64_t num_antennas, num_directions;
    const double (*direction)[2]; /**< [num_directions] right ascension, declination */
} tess_aterms_opts;

typedef struct tess_aterms tess_aterms;

/** Read on rank 0, and send to all. TESS_ERR_IO; TESS_ERR_INPUT naming file and line: a
 *  type that is not known, an image without its axes or of another number of antennas,
 *  times that do not ascend, a direction outside of an image. Collective. */
tess_status tess_aterms_read(tess_comm *comm, const tess_aterms_opts *opts,
                             tess_aterms **aterms);
void tess_aterms_free(tess_aterms *aterms); /**< NULL is fine. Local. */

/** The most general of the matrices. Local. */
tess_gain_shape tess_aterms_shape(const tess_aterms *aterms);

/** Number of terms, and the ascending times [s] of one, which belong to `aterms`.
 * Local.
 */
int tess_aterms_num(const tess_aterms *aterms);
const double *tess_aterms_times(const tess_aterms *aterms, int term, int64_t *num);

/** The Jones matrix (XX, XY, YX, YY: real and imaginary parts). False, and a matrix of
 *  zeros: a pixel does not count. Local, thread-safe. */
bool tess_aterms_jones(const tess_aterms *aterms, int64_t antenna, int64_t direction,
                       double time_mjd_s, double freq_hz, double jones[4][2]);

/** Whether there are shifts of sources. Local. */
bool tess_aterms_have_shifts(const tess_aterms *aterms);

/** The sum of shifts in l and m. False: a pixel does not count. Local, thread-safe. */
bool tess_aterms_shift(const tess_aterms *aterms, int64_t direction, double time_mjd_s,
                       double freq_hz, double shift[2]);

#ifdef __cplusplus
}
#endif
#endif
