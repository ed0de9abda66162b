/** @file tess_geom.h
 *  Image and grid geometry. The Fourier sign, the pixel order, the sign of w and the
 *  meaning of a cell are written here and nowhere else.
 *
 *  Imaging:    D(l,m) = Σ_k W_k Re{V_k exp(−2πi(u l + v m + w(n−1)))} / Σ_k W_k
 *  Prediction: V_k    = Σ_p S_p      exp(+2πi(u l + v m + w(n−1)))
 *
 *  0-based pixel (i, j) of an image[ny][nx] is at l = l0 − (i − ⌊nx/2⌋)·scale (East to
 *  the left), m = m0 + (j − ⌊ny/2⌋)·scale_m. Inside the gridder x = l0 − l and the
 *  *grid coordinates*
 *
 *      a = −u·nu·scale,  b = v·nv·scale_m   [cells],
 *
 *  are used, so that both axes have the sign of FFTW_FORWARD; the grid is
 *  grid[line a mod nu][b mod nv], b contiguous. Real images let every visibility be
 *  moved to w ≥ 0 by (u,v,w,V) → (−u,−v,−w,V*). What the grid leaves out of a
 *  visibility's phase, u l0 + v m0 + w (n_c − 1) turns, is multiplied to its value
 *  (grid/bricks/locate.h); of visibilities that were turned to a direction (l_t, m_t),
 * times exp(−2πi(u l_t + v m_t + w(n_t − 1))), so much less. The PSF is that of a
 * source there.
 */
#ifndef TESS_GEOM_H
#define TESS_GEOM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tess_geom {
    int64_t nx, ny;     /**< image size [pixels], any parity */
    double scale_rad;   /**< pixel size along l */
    double l0, m0;      /**< of pixel (⌊nx/2⌋, ⌊ny/2⌋); 0: the phase centre */
    double scale_m_rad; /**< pixel size along m; 0: as along l */
    double turned_l, turned_m; /**< direction that the phases of visibilities are
                                    relative to; 0: the phase centre */
} tess_geom;

/** Images that reach farther in l or m than this are refused: pixels that are in the
 * sky end at 1, and a larger field than twice as much is a mistake. */
#define TESS_GEOM_FARTHEST 2.0

/** Square pixels, the phase centre at pixel (⌊nx/2⌋, ⌊ny/2⌋): all that a backend must
 *  be able to do. */
bool tess_geom_is_plain(const tess_geom *geom);

/** What the phase is made of that is multiplied to visibilities, which a plan of the
 *  given mean n − 1 grids: u l + v m + w nm1 [turns]. */
typedef struct tess_geom_phase {
    double l, m, nm1;
} tess_geom_phase;
tess_geom_phase tess_geom_phase_of(const tess_geom *geom, double nm1_center, bool do_w);

/** Pixel size along m. */
double tess_geom_scale_m(const tess_geom *geom);

/** n − 1 for squared radius r2 = l² + m², without cancellation; −1 beyond the
 *  horizon. */
double tess_geom_nm1(double r2);

/** Smallest n − 1 in the image (its farthest corner; −1 when that is beyond the
 *  horizon). */
double tess_geom_nm1_min(const tess_geom *geom);

/** Largest n − 1 in the image's rectangle: 0 when the phase centre is in it. */
double tess_geom_nm1_max(const tess_geom *geom);

/** l of column i, m of row j [direction cosines]. */
double tess_geom_l(const tess_geom *geom, int64_t i);
double tess_geom_m(const tess_geom *geom, int64_t j);

/** Smallest even n' ≥ n whose only prime factors are 2, 3, 5 and 7: sizes FFTW has
 *  codelets for. */
int64_t tess_geom_smooth_size(int64_t n);

/** What a transform of this length takes, compared to one of a power of two with as
 * many operations (5 n log2 n). FFTW's: few factors of two leave vectors half empty,
 * and primes other than two take more operations. */
double tess_geom_fft_slowness(int64_t n);

/** Length of a transform of n or a few more values: the next smooth number, or one that
 * is up to 8 % larger, for which a square plane takes the least work. */
int64_t tess_geom_fft_size(int64_t n);

/* ---- right ascension and declination ---- */

/** Right ascension and declination [rad] of the direction cosines l, m and n − 1 from a
 * centre, in the SIN projection (Calabretta and Greisen 2002, A&A 395, 1077, section
 * 5.1.5). Local. */
void tess_sky_place(const double lmn1[3], double ra0_rad, double dec0_rad,
                    double *ra_rad, double *dec_rad);

/** The reverse: direction cosines of (ra, dec) from a centre, with n − 1 computed
 * without cancellation. Returns false if the direction is 90 degrees or more away from
 * the centre. Local. */
bool tess_sky_project(double ra_rad, double dec_rad, double ra0_rad, double dec0_rad,
                      double lmn1[3]);

/** Rotation from the frame of centre 0 to that of centre 1: of uvw, and of direction
 * cosines (l, m, n). Local. */
void tess_rotation_between(double ra0, double dec0, double ra1, double dec1,
                           double rotation[3][3]);

#endif
