/** @file tess_tracks.h
 *  Fewer samples for a small image.
 *
 *  Seen from a small image, the samples of a baseline lie close together along its
 *  track: the phase of each pixel changes little from one to the next, once phases are
 *  taken relative to the middle of the image. A piece of a track with many samples is
 *  replaced by few of them, its *nodes*. Over the piece, the phase factor of a pixel is
 *  a smooth function of the place s along the track, so that its values at the nodes
 *  tell it everywhere:
 *
 *      exp(2πi u(s)·x) ≈ Σ_j L_j(s) exp(2πi u(s_j)·x),
 *
 *  with Lagrange polynomials L_j. Imaging is linear in the samples. So a sample V at s
 *  is added to the nodes, L_j(s) V to node j, and the nodes are gridded. This holds for
 *  any V: what is interpolated is the pixel's phase, not the visibilities, which are
 *  not averaged and need not be alike.
 *
 *  The error of p nodes at Chebyshev points is at most 2 (Φ/2)^p / p!, with half of the
 *  phase Φ [rad] that the pixel has between both ends of the piece. Each piece is
 * tested at the corners of the image, where Φ is largest, at all of its samples. If the
 * error is larger than asked for, which it may be for coordinates that make no smooth
 * track, there are more nodes, or the samples stay as they are.
 *
 *  Pieces go along the rows of a baseline from brick to brick, and nodes lie at
 *  Chebyshev points between the rows. Or pieces end where a brick ends, and nodes are
 *  the rows next to these points. Then nodes are samples of the same bricks, and depend
 *  on nothing but these: they are the same for any number of ranks. But in a brick a
 *  baseline may have few rows with the same channels, so that there are more nodes.
 */
#ifndef TESS_TRACKS_H
#define TESS_TRACKS_H

#include <complex.h>
#include <stdbool.h>

#include "tess_bricks.h"
#include "tess_samples.h"

/** Which images the nodes serve. */
typedef struct tess_tracks_opts {
    double half[3];   /**< half the range of l, m and n − 1 of an image */
    double tolerance; /**< error of the phase factor of any pixel: the rms over the
                           samples of a piece; of any of them, 4 times as much */
    int num_pol;      /**< values of a node */
    int most_images;  /**< that take samples together */
    int threads;
    /** Whether the factors of two rows, whose numbers of origins these are, are the
     * same in channels of the same frequency, for each image. */
    bool (*same)(const void *context, int32_t origin, int32_t other);
    const void *context; /**< borrowed */
} tess_tracks_opts;

/** What an image takes of samples: sums over their values times factors. */
typedef struct tess_tracks_view {
    /** Set factor[num_chan][num_pol][num_values] of the only row of `row` in an image.
     * Several threads call it at a time. */
    void (*factors)(const void *context, int image, const tess_samples *row,
                    double complex *factor);
    const void *context; /**< borrowed */
    int image;
    double phase[3]; /**< of the middle of the image: u, v, w times these [turns] */
} tess_tracks_view;

enum {
    TESS_TRACKS_IMAGES = 8
}; /**< that take samples together, at most: their nodes
        and factors stay in a core's cache */

typedef struct tess_tracks tess_tracks;

/** Find the tracks of samples that know their origins, within each of their bricks. If
 *  `bricks` is NULL, tracks go from brick to brick. Both are borrowed, and only the
 *  visibilities may change. TESS_ERR_ALLOC; TESS_ERR_RESOURCE: more nodes than can be
 *  numbered. Local. */
tess_status tess_tracks_create(const tess_samples *samples,
                               const tess_brick_list *bricks,
                               const tess_tracks_opts *opts, tess_tracks **tracks);
void tess_tracks_destroy(tess_tracks *tracks); /**< NULL is fine. Local. */

/** How large tracks are, as far as it can be told before they are found. */
typedef struct tess_tracks_size {
    double rows;  /**< of the samples */
    double items; /**< pieces of rows of at most 16 channels (tess_tracks_items()) */
    double nodes; /**< for items, as a rule fewer */
} tess_tracks_size;

/** The number of pieces into which `num` rows, or runs of bricks, with num_vis samples
 *  in all are cut, if all have as many channels. Local. */
double tess_tracks_items(double num, double num_vis);

/** The number of nodes for each row of a track of num_rows rows, 1 at most, if the
 * phase of a pixel at the corner of the images turns by step_rad > 0 from row to row.
 * Of the options only the tolerance matters. Local. */
double tess_tracks_density(const tess_tracks_opts *opts, double step_rad,
                           double num_rows);

/** Bytes that tracks of this size take beside the values of nodes. Only the kind of the
 *  samples matters. Local. */
double tess_tracks_bytes(const tess_samples *samples, const tess_tracks_size *size);

/** The number of values that nodes have for each value that an image takes of samples:
 *  those of all images that take samples together (tess_tracks_images()). Local. */
double tess_tracks_values(const tess_tracks_opts *opts, const tess_tracks_size *size);

/** The number of images that take samples together: nodes of all of them have values
 *  at a time. It is as many as take no more memory than the values of all samples, at
 *  least 1 and at most most_images. Local. */
int tess_tracks_images(const tess_tracks *tracks);

/** Add the samples to the nodes of images, as view[num] take them, num at most
 *  tess_tracks_images(). Weights of samples are included. Each row is read once for all
 *  images. The values of nodes do not depend on which images are together. Local. */
void tess_tracks_take(tess_tracks *tracks, const tess_tracks_view *view, int num);

/** Have the nodes show the values of the image of view[k]. Local. */
void tess_tracks_show(tess_tracks *tracks, int k);

/** The nodes, which weigh 1 each, and their bricks: as many as there are bricks of the
 *  samples, with the same keys. NULL: tracks go from brick to brick, and the caller
 *  finds the bricks of the nodes. Local. */
const tess_samples *tess_tracks_nodes(const tess_tracks *tracks);
const tess_brick_list *tess_tracks_bricks(const tess_tracks *tracks);

#endif
