/** @file tess_const.h
 *  Physical and mathematical constants, to full double precision.
 */
#ifndef TESS_CONST_H
#define TESS_CONST_H

#define TESS_PI     3.14159265358979323846
#define TESS_TWO_PI 6.28318530717958647693
/* π/(4 ln 2): integral of a Gaussian whose height and FWHM are 1 */
#define TESS_GAUSSIAN_AREA      1.13309003545679845
#define TESS_SPEED_OF_LIGHT_M_S 299792458.0 /* exact, SI */
#define TESS_RAD_PER_DEG        (TESS_PI / 180.0)
#define TESS_RAD_PER_ASEC       (TESS_PI / 648000.0)
#define TESS_SECONDS_PER_DAY    86400.0
#define TESS_MJD_ZERO_JD        2400000.5 /* Julian date of MJD 0 */

/* Rate of the Earth rotation angle to UT1 (Capitaine et al. 2000, in ERFA's era00). */
#define TESS_TURNS_PER_UT1_DAY 1.00273781191135448

/* 25 times the distance of the Moon. Longer baselines are damaged data: they would be
 * more cells from the middle of a grid than a double counts. They are treated as if
 * they were not finite. */
#define TESS_LONGEST_BASELINE_M 1e10
/* false for NaN, too */
#define TESS_IS_BASELINE(uvw_m)                                                        \
    (fabs((uvw_m)[0]) <= TESS_LONGEST_BASELINE_M &&                                    \
     fabs((uvw_m)[1]) <= TESS_LONGEST_BASELINE_M &&                                    \
     fabs((uvw_m)[2]) <= TESS_LONGEST_BASELINE_M)

#endif
