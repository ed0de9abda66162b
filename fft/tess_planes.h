/** @file tess_planes.h
 *  Transforms w-planes, whose pieces lie on many ranks, to image rows, and back.
 *
 *  P ranks form Q = P/F groups of F = fft_ranks. A group transforms one plane at a
 *  time; inside it, rank f owns the grid lines [slab_line[f], slab_line[f+1]) for the
 *  first pass (along v, occupied lines only) and the image rows [ny f/F, ny (f+1)/F)
 *  for the second (along u) and for everything after. F = 1: whole planes; F = P:
 *  slabs, no rank holds a plane or an image. The transpose between the passes is one
 *  exchange inside the group of what is left after cropping. At the end the rows of
 *  equal f are summed over the groups by a reduce-scatter.
 *
 *  A rank holds: one accumulated slab of rows per image, the pieces of one plane, the
 *  occupied lines of its slab cropped to ny, and a few cache-sized buffers per thread.
 *  It sends: each piece once, each transformed line once (F > 1), each row slab once (Q
 *  > 1). Ranks of one node read pieces, and lines where the whole group is on it, in
 *  memory of the rank that made them.
 */
#ifndef TESS_PLANES_H
#define TESS_PLANES_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_backend.h"
#include "tess_comm.h"
#include "tess_rows.h"
#include "tess_trace.h"

typedef struct tess_planes_opts {
    int64_t nx, ny;             /**< image */
    int64_t nu, nv;             /**< grid */
    double scale_rad;           /**< pixel size along l */
    double l0, m0, scale_m_rad; /**< as in tess_geom; scale_m_rad 0: as scale_rad */
    double nm1_center;          /**< w-phases are relative to it */
    bool do_w;
    bool is_double;
    bool forward;   /**< imaging; false: prediction */
    bool reuse;     /**< several sets of images, see tess_planes_clear */
    int num_images; /**< accumulated, or model images */
    int threads;
    int fft_ranks;            /**< F; must divide the number of ranks */
    const int64_t *slab_line; /**< [F + 1] first grid line of each slab, a multiple of
                                 16, and nu; copied */
    int64_t num_planes;       /**< that will be transformed, to judge FFT planning */
    bool repeatable;          /**< sums in the order of pieces, and no FFT plan that was
                                   found by measuring */
    const tess_place *place;  /**< where rows of images live: the backend's place, or
                                   NULL: host memory */
    void *pixels; /**< memory of image 0 on the cpu backend, borrowed; NULL: the planes
                       allocate it */
    tess_comm *sum_over; /**< not NULL: the planes are one rank's alone, and its images
                              are to be summed over these ranks; borrowed */
    struct tess_device_comm
        *devices; /**< connects the devices of those, or NULL; borrowed */
    struct tess_device_comm *links; /**< connects the devices of the planes' ranks,
                                       which are one group; NULL: they exchange through
                                       host memory; borrowed */
} tess_planes_opts;

typedef struct tess_planes tess_planes;

/** Part of one w-plane: num_lines lines of num_cells complex values. Its first line is
 *  a multiple of 16, and there are at most 31, as in brick sums (PIECE_BUCKET). */
typedef struct tess_piece {
    int32_t line, num_lines; /**< grid lines, within [0, nu) */
    int32_t cell, num_cells; /**< first cell of each; the rest may wrap around nv */
    int64_t stride; /**< complex values from line to line of `data`, num_cells at
                         least: all of a line is the piece's own */
    void *data;
    int64_t order;  /**< lines are summed in this order, and by rank and place in the
                         rank's list where it is equal */
    int64_t serial; /**< private: that place */
    int source;     /**< private: rank that the piece came from */
    int plane;      /**< private: number of its plane among those of the group's jobs */
} tess_piece;

/** The plane that a group transforms next. */
typedef struct tess_plane_job {
    bool active;
    int image; /**< accumulated into, or transformed from */
    double w_lambda;
    int64_t num_pieces; /**< this rank's */
    const tess_piece *piece;
} tess_plane_job;

/** Seconds spent, for the profile. */
typedef struct tess_planes_times {
    double exchange_s, fft_s;
    double join_s;     /**< of fft_s, mean over threads: grid lines made of pieces, or
                            pieces cut from them; 0 where the backend does not tell */
    tess_trace *trace; /**< gets the same as spans "reduce" and "fft", or NULL */
} tess_planes_times;

/** `ops` is a backend's (tess_backend.h). TESS_ERR_USAGE when fft_ranks does not divide
 *  the number of ranks. Collective. */
tess_status tess_planes_create(tess_comm *comm, const tess_planes_ops *ops,
                               const tess_planes_opts *opts, tess_planes **planes);
void tess_planes_destroy(tess_planes *planes); /**< NULL is fine. Collective. */

/** Change the first lines of the slabs (slab_line of tess_planes_opts), which are
 *  copied. Local. */
void tess_planes_set_slabs(tess_planes *planes, const int64_t *slab_line);

/** Set all images to zero, for the next set of images with the same plan. Local. */
tess_status tess_planes_clear(tess_planes *planes);

/** Give all memory up but what planes are, until tess_planes_clear(). Collective. */
void tess_planes_drop(tess_planes *planes);

/** The number of groups Q. */
int tess_planes_groups(const tess_planes *planes);

/** The number of jobs in a batch: KQ if K planes of each group are exchanged together.
 *  K > 1 if planes are so small that K of them take 1 MiB of a rank at most. Local. */
int tess_planes_jobs(const tess_planes *planes);

/** This rank's image rows during the transforms. */
void tess_planes_rows(const tess_planes *planes, int64_t *row_first, int64_t *num_rows);

/** Rows [num_rows][nx] of an image in the plan's precision: the sums so far, in memory
 *  of the backend's, or (for prediction) host memory where the caller puts the
 *  model. Models of planes with a `place` come by tess_planes_scatter() alone. */
void *tess_planes_image(tess_planes *planes, int image);

/** Prediction: the model that the caller has put there, moved into memory of the
 *  backend's, to be corrected where it lies. Without this call it moves when it is
 *  needed. Local. */
tess_status tess_planes_place(tess_planes *planes, int image, void **rows);

/** Imaging: `*rows`, the sums so far, in host memory; where they are elsewhere, that is
 *  a `*copy`, to be given to tess_free, else NULL. What is then changed in them counts
 *  from tess_planes_put_back on. Local. */
tess_status tess_planes_fetch(tess_planes *planes, int image, void **rows, void **copy);
tess_status tess_planes_put_back(tess_planes *planes, int image, const void *rows);

/** Add planes to the images: job[KQ], which are the same on all ranks but for the
 *  pieces. Job j is group j % Q's, and the active ones come first. Part of that may be
 * left until the next call of this or of tess_planes_finish, _fetch or _reduce.
 *
 *  `*own` is what this rank has come to: by its own work before the call, and then by
 *  that of the call. Ranks agree on it before they send anything, and the jobs of a
 *  rank with a bad `*own` may be undefined. So the planes of a row of calls need no
 *  agreement between them. The caller agrees on `*own` after the last one. The status
 *  that is returned is one on which all ranks have agreed. Collective. */
tess_status tess_planes_accumulate(tess_planes *planes, const tess_plane_job *job,
                                   tess_status *own, tess_planes_times *times);

/** Imaging: the images have all planes that were accumulated. Local. */
tess_status tess_planes_finish(tess_planes *planes);

/** Fill the pieces of as many planes from the model images; in host memory also
 *  what lies behind the cells of a line up to the stride, with zeros. `*own` and the
 *  status that is returned are those of tess_planes_accumulate(). Collective. */
tess_status tess_planes_extract(tess_planes *planes, const tess_plane_job *job,
                                tess_status *own, tess_planes_times *times);

/** Free the memory for exchanges between ranks and that of lines, because no plane
 *  follows for a while; with `briefly` only that for exchanges, and only if it is
 *  larger than 1 MiB. Images stay. Planes on a GPU keep all of their memory there.
 *  Collective. */
void tess_planes_rest(tess_planes *planes, bool briefly);

/** Sum an image over the groups, or over opts.sum_over. `*rows` becomes the rows that
 *  this rank keeps, in opts.place, owned by the caller; the accumulated image is given
 *  up unless `reuse` is set. Collective. */
tess_status tess_planes_reduce(tess_planes *planes, int image, tess_rows *rows);

/** Prediction: the inverse of tess_planes_reduce. `rows`, which tess_planes_reduce
 *  would leave to this rank, become model image `image` of all groups (or of all ranks
 *  of opts.sum_over). Those in host memory are in the plan's precision. Those in
 *  opts.place may be in any: pixels that are not finite become 0, and others are
 *  multiplied by `scale`. Collective. */
tess_status tess_planes_scatter(tess_planes *planes, int image, const tess_rows *rows,
                                double scale);

/** The rows that tess_planes_reduce leaves to a rank. Local. */
void tess_planes_final_rows(int64_t ny, int fft_ranks, int rank, int num_ranks,
                            int64_t *row_first, int64_t *num_rows);

/** Largest buffer so far of one image and of one plane [bytes] on this rank: when F
 *  ranks share a plane, about an F-th of either. 0 where the backend does not tell.
 *  Local. */
void tess_planes_held(const tess_planes *planes, int64_t *image_bytes,
                      int64_t *plane_bytes);

/** Bytes of the backend's memory that transforms may take beside what they hold; 0
 *  where it is the host's. Local. */
int64_t tess_planes_more_bytes(const tess_planes *planes);

/** The largest number of bytes that a rank needs for such a plan, without its pieces.
 *  The planner uses it. */
double tess_planes_bytes(const tess_planes_opts *opts);

/** The part of tess_planes_bytes(), which is of host memory, that tess_planes_rest()
 * frees: of several planes
 * that are at work one after the other, the largest part alone counts. */
double tess_planes_work_bytes(const tess_planes_opts *opts);

/** The same of a backend's memory; 0 where it is the host's. Local. */
double tess_planes_device_bytes(const tess_planes_ops *ops,
                                const tess_planes_opts *opts);

#endif
