/** @file fits_cube.h  (private to io/fits_cube*.c)
 *  What is known of the planes of a cube, and the tables of it.
 */
#ifndef TESS_FITS_CUBE_PRIVATE_H
#define TESS_FITS_CUBE_PRIVATE_H

#include <stdint.h>

#include "tess_fits.h"

/** What is known of one plane. All members are doubles, so that ranks can sum arrays of
 * them: one rank fills in a plane, and the others have zeros. */
typedef struct fits_plane {
    double written;                   /**< 1 */
    double beam_deg[3];               /**< BMAJ, BMIN, BPA; 0: there is none */
    double freq_mean_hz, sum_weights; /**< 0: it has no data */
    double num_vis;                   /**< less than 2^53 */
    double min, max;                  /**< min > max: no pixel is finite */
    double data_sum;                  /**< DATASUM of the plane's words */
    double iterations, majors;        /**< 0: it was not cleaned */
    double threshold_jy, flux_jy;
} fits_plane;

/** The tables of a cube as the bytes of a file behind its pixels, `*bytes` whole blocks
 *  (tess_alloc, caller frees). plane[num_stokes][num_freq]. TESS_ERR_INTERNAL,
 *  TESS_ERR_ALLOC. Local. */
tess_status fits_cube_tables(const tess_image_meta *meta, const fits_plane *plane,
                             char **text, int64_t *bytes);

/** RUN of a cube's table of planes, "" where there is none. TESS_ERR_IO,
 * TESS_ERR_INPUT. Local. */
enum { FITS_CUBE_RUN = 32 };
tess_status fits_cube_run_of(const char *path, char run[FITS_CUBE_RUN]);

/** Read what the table tells of planes, plane[num_planes]. TESS_ERR_INPUT. Local. */
tess_status fits_cube_read_planes(const char *path, int num_planes, fits_plane *plane);

#endif
