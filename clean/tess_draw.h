/** @file tess_draw.h
 * Draws sources into images that are distributed by rows. Pixels are square: callers
 * refuse images whose pixels are not, as tess_fits_meta_read does. */
#ifndef TESS_DRAW_H
#define TESS_DRAW_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_clean.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A source at a place of the image: 0-based pixels, with fractions. The place may lie
 *  beyond the image. */
typedef struct tess_drawn_source {
    double x, y;
    double flux_jy;
    bool is_gaussian;
    double major_px, minor_px; /**< FWHM of a Gaussian */
    double angle_rad; /**< position angle of its major axis, from North through East */
} tess_drawn_source;

/** Add sources to rows of a model [Jy/pixel], images->num_rows of them. A point between
 *  pixels becomes sinc functions below a Hann window of 32 pixels to each side, so that
 *  its visibilities are right up to 0.9 of the uv range that pixels of this size
 *  sample. A Gaussian is sampled at the pixels. One of less than two pixels across
 *  becomes such points. The sum of the pixels is the flux, but for the part that lies
 *  beyond the image. Pixels depend neither on how rows are divided nor on the number of
 *  threads. Local. */
void tess_draw_model(const tess_clean_images *images, const tess_drawn_source *source,
                     int64_t num_sources, int threads, double *rows);

/** Add sources, convolved with a beam, to rows of a restored image [Jy/beam]. Local. */
void tess_draw_restored(const tess_clean_images *images, const tess_clean_beam *beam,
                        const tess_drawn_source *source, int64_t num_sources,
                        int threads, double *rows);

#ifdef __cplusplus
}
#endif
#endif
