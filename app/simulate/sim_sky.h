/** @file sim_sky.h  (private to app/simulate/)
 *  What is simulated: point and Gaussian sources from a CSV file or a list of sources
 *  (io/files/tess_source_list.h), or the pixels of a FITS model image.
 */
#ifndef TESS_SIM_SKY_H
#define TESS_SIM_SKY_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"
#include "tess_status.h"

/** One source. Its visibility is the Stokes flux at the frequency (tess_sky_flux),
 * times exp(2 pi i (u l + v m + w (n - 1))), times exp(-(uu p^2 + uv p q + vv q^2)) for
 * a Gaussian (u, v, w in wavelengths; p = u - w l/n, q = v - w m/n). A Gaussian of the
 *  image, whose n is not linear in l and m, differs by 2 pi w sigma^2 at most. */
typedef struct tess_sky_source {
    double l, m, n_minus_1; /**< direction cosines from the phase centre */
    double flux_jy[4];      /**< Stokes I, Q, U, V at freq_hz */
    double spectral_index;  /**< flux ~ frequency^index, all Stokes alike */
    double freq_hz;
    int num_terms; /**< of its spectrum, instead of the index; 0: the index counts */
    bool is_polynomial; /**< terms are of a polynomial, not of logarithms */
    int64_t first_term; /**< of the sky's terms */
    bool is_gaussian;
    double uu, uv, vv;
} tess_sky_source;

/** Zeroed is empty. */
typedef struct tess_sky {
    tess_sky_source *source; /**< [num_sources], owned */
    int64_t num_sources, capacity;
    double *term; /**< [num_terms] of spectra, as of a tess_listed_source, owned */
    int64_t num_terms;
    bool has_stokes[4];    /**< any source has a flux in it; I always */
    double max_offset_rad; /**< of the farthest source from the phase centre */
} tess_sky;

/** Read a list of sources when its first line is the header of one
 * (tess_source_list_is); else a FITS image when the name ends in .fits, .fit or .fts;
 * else a CSV file.
 *
 *  CSV columns: ra,dec (angles as on the command line) or l,m (offsets East and North:
 *  direction cosines, or an angle in radians once its unit is removed); flux_jy; and
 *  optionally name, q, u, v (Jy), spectral_index, ref_freq (default
 *  `ref_freq_hz`), major, minor (FWHM, angles), pa (of the major axis from North to
 *  East). FITS: every pixel that is neither 0 nor NaN is a point source of that many
 *  Jy; Stokes planes I, Q, U, V; one frequency.
 *
 *  TESS_ERR_IO; TESS_ERR_INPUT naming line and column, or that a source is 90 degrees
 * or more from the phase centre. Collective. */
tess_status tess_sky_read(tess_comm *comm, const char *path, double ra_rad,
                          double dec_rad, double ref_freq_hz, tess_sky *sky);

/** Stokes fluxes [Jy] at a frequency. Q, U and V keep their ratios to I. Local. */
void tess_sky_flux(const tess_sky *sky, const tess_sky_source *source, double freq_hz,
                   double flux_jy[4]);

/** Append a source. TESS_ERR_ALLOC. Local. */
tess_status tess_sky_add(tess_sky *sky, const tess_sky_source *source);

/** Make a source Gaussian: FWHM of the axes and position angle. Local. */
void tess_sky_set_gaussian(tess_sky_source *source, double major_rad, double minor_rad,
                           double pa_rad);

void tess_sky_free(tess_sky *sky);

#endif
