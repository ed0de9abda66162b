/** @file tracks.h  (private to grid/)
 *  Pieces of tracks and their nodes (tess_tracks.h).
 */
#ifndef TESS_TRACKS_PRIVATE_H
#define TESS_TRACKS_PRIVATE_H

#include "tess_tracks.h"

enum {
    TRACK_NODES = 32, /**< of a piece, at most */
    TRACK_CHANS = 16, /**< of a piece, at most: a longer row is cut at multiples */
    TRACK_VALUES = 8, /**< of a sample or node */
    TRACK_ROWS = 8    /**< that all images take before others are read */
};

/** The place s of a row along a piece, and the Lagrange polynomials of its nodes. */
typedef struct track_curve {
    double from[3], along[3];  /**< s is the scalar product of uvw − from and along */
    double node[TRACK_NODES];  /**< s of the nodes */
    double scale[TRACK_NODES]; /**< 1 / Π (node − other nodes) */
} track_curve;

/** Samples that become nodes together. */
typedef struct track {
    int64_t first_row;  /**< in tess_tracks.row */
    int64_t first_node; /**< rows of nodes */
    int64_t curve; /**< −1: each of the rows is a node, with channels of its own */
    int32_t num_rows, num_nodes;
} track;

struct tess_tracks {
    const tess_samples *from;
    tess_tracks_opts opts;
    int64_t num_tracks, num_curves, num_rows;
    track *track;
    track_curve *curve;
    int32_t *row; /**< [num_rows] of the samples, in the order of tracks */
    bool *starts; /**< [num_rows] whether factors are not those of the row before */
    int num_images;
    void *vis;  /**< [num_images][num_vis][num_pol] of nodes */
    char *work; /**< [threads][work_bytes] */
    int64_t work_bytes;
    tess_samples nodes; /**< whose visibilities are those of one image */
    tess_brick_list bricks;
};

/** The values of all Lagrange polynomials at s. */
static inline void track_weights(const track_curve *curve, int num_nodes, double s,
                                 double *weight)
{
    double before = 1, after = 1;
    for (int j = 0; j < num_nodes; ++j) {
        weight[j] = before * curve->scale[j];
        before *= s - curve->node[j];
    }
    for (int j = num_nodes - 1; j >= 0; --j) {
        weight[j] *= after;
        after *= s - curve->node[j];
    }
}

/** The place of a row. */
static inline double track_place(const track_curve *curve, const double uvw_m[3])
{
    double s = 0;
    for (int k = 0; k < 3; ++k)
        s += (uvw_m[k] - curve->from[k]) * curve->along[k];
    return s;
}

/** Add the samples of a track to the nodes of images view[num]. `work` is a thread's.
 */
typedef void tracks_taker(tess_tracks *tracks, const track *of,
                          const tess_tracks_view *view, int num, void *work);

/** Compiled for each instruction set (tracks_isa.c). */
typedef struct tracks_table {
    tracks_taker *take_single, *take_double;
} tracks_table;

/** Bytes of a thread's work for as many images. */
int64_t tracks_work_bytes(const tess_tracks *tracks, int num_images);

/** The table for this processor, see tess_isa_best(). */
const tracks_table *tracks_table_best(void);

extern const tracks_table tracks_table_portable;
#if defined(__x86_64__)
extern const tracks_table tracks_table_avx2;
extern const tracks_table tracks_table_knl;
extern const tracks_table tracks_table_avx512;
#endif

#endif
