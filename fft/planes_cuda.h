/** @file planes_cuda.h  (private to fft/)
 * The cuda backend's planes. planes_cuda.c makes lines from pieces and transforms them,
 * planes_cuda_columns.c transforms the rows of all lines, and planes_cuda_ranks.c moves
 * pieces and lines between ranks. */
#ifndef PLANES_CUDA_H
#define PLANES_CUDA_H

#include "planes_device.h"
#include "planes_object.h"
#include "tess_device_comm.h"
#include "tess_prefault.h"

/** Device memory that grows as needed. */
typedef struct device_array {
    void *data;
    int64_t bytes;
} device_array;

/** Grow the array to at least this many bytes, whose contents are undefined. `what`:
 * what they are for. Local. */
tess_status device_array_grow(device_array *array, int64_t bytes, const char *what);

/** Rows of all lines of a plane, between the two passes of its transform. */
typedef struct plane_rows {
    device_array values; /* F > 1: [own rows][num_lines] */
    int64_t num_lines;
    int32_t *slot_of_line, *line_of_slot; /* [nu] device memory */
    tess_plane_job waiting; /* linked devices, imaging: the plane whose second pass is
                               not enqueued yet, if it is active */
} plane_rows;

struct planes_of_device {
    plane_shape shape;
    void **image;      /* [num_images] sums, or in prediction the model */
    void **host_image; /* [num_images] prediction: where the caller puts the model */
    bool *on_device;   /* [num_images] whether the host's model has been copied */
    plane_fft *fft_u, *fft_v;
    int64_t batch_lines, batch_rows;
    void *batch;              /* [batch_lines][nv], or [batch_rows][nu] */
    device_array own_rows;    /* [ny][own slots]; linked devices: a round of slots */
    plane_rows rows[2];       /* linked devices use both in turn in imaging */
    int now;                  /* the one that has the plane that is being transformed */
    tess_prefault *host_rows; /* [num_images] memory for the sums, or NULL */
    device_array piece, line_pieces;
    tess_device_part *send;    /* [P] linked devices: the parts of an exchange */
    tess_device_rows *take;    /* [P] and the rows that take what arrives */
    int32_t *own_slot_of_line; /* [nu] the slots of this rank's lines */
};

/** The lines of the plane that is being transformed, and which of them are this rank's.
 */
typedef struct line_list {
    int32_t *line; /* [num_lines] of the group, in order of slab */
    int64_t num_lines;
    int32_t *own; /* [num_own]; F = 1: equals `line` */
    int64_t num_own;
    int64_t *of_slab; /* [F] number of lines */
} line_list;

/* ---- rows of all lines ---- */

/** Allocate the tables of `rows`. Local. */
tess_status planes_rows_create(tess_planes *planes);
void planes_rows_destroy(tess_planes *planes);

/** Make room for the rows of a plane with these lines, and all their tables. Local. */
tess_status planes_rows_place(tess_planes *planes, const line_list *lines);

/** Enqueue the second pass of imaging, which adds rows of all lines to the image, or
 * the first pass of prediction, which is the reverse. Local. */
tess_status planes_columns(tess_planes *planes, const tess_plane_job *job);

/** Imaging between linked devices: note that the second pass of the plane waits, if the
 * plane is active. Its lines have been sent. Local. */
void planes_columns_later(tess_planes *planes, const tess_plane_job *job);

/** Enqueue the second pass of the plane before the last one, if it waits. The pieces of
 * the next plane have been sent. Local. */
tess_status planes_columns_next(tess_planes *planes);

/** Enqueue all second passes that wait. Local. */
tess_status planes_columns_finish(tess_planes *planes);

/** Forget the second passes that wait, because the images are made anew. Local. */
void planes_columns_drop(tess_planes *planes);

/** `more_bytes` of tess_planes_ops, for bricks that cover all lines. Local. */
int64_t planes_cuda_more_bytes(const tess_planes *planes);

/* ---- through host memory ---- */

/** Turn this rank's lines, with all rows, into all lines with this rank's rows, and the
 * reverse. Collective in the group. */
tess_status planes_transpose_to_rows(tess_planes *planes, const line_list *lines);
tess_status planes_transpose_to_lines(tess_planes *planes, const line_list *lines);

/* ---- between linked devices ---- */

/** Allocate the parts of an exchange. Local. */
tess_status planes_parts_create(tess_planes *planes);

/** The number of rounds in which the group's lines are sent, batch_lines of each rank
 * in a round. Local. */
int64_t planes_rounds(const tess_planes *planes, const line_list *lines);

/** The lines [*first, *first + *count) of this rank that are sent in a round. Local. */
void planes_round(const tess_planes *planes, const line_list *lines, int64_t round,
                  int64_t *first, int64_t *count);

/** Imaging: planes_line_buffer gives the `buffer` [ny][count] for all rows of this
 * rank's lines of the next round (Local). planes_send_lines sends them. `status` is
 * that of tess_device_comm_exchange (Collective). */
tess_status planes_line_buffer(tess_planes *planes, void **buffer);
tess_status planes_send_lines(tess_planes *planes, tess_status status,
                              const line_list *lines, int64_t round);

/** Prediction: planes_fetch_lines fetches all rows of this rank's lines of a round from
 * the ranks that have the rows (Collective). planes_round_rows gives their place in
 * own_rows, [ny][count], which is not that of the next round (Local). */
void *planes_round_rows(const tess_planes *planes, int64_t round);
tess_status planes_fetch_lines(tess_planes *planes, tess_status status,
                               const line_list *lines, int64_t round);

/** Functions of tess_planes_ops. */
tess_status planes_cuda_pack(const tess_planes *planes, const plane_part *part,
                             int64_t count, int64_t num_values, void *host);
tess_status planes_cuda_unpack(const tess_planes *planes, const plane_part *part,
                               int64_t count, const rank_values *from);
tess_status planes_cuda_values_in(const tess_planes *planes, const rank_values *from,
                                  int64_t num_values, void **values);
tess_status planes_cuda_values_out(const tess_planes *planes, void *values,
                                   int64_t num_values, void *host);
tess_status planes_cuda_send(const tess_planes *planes, tess_status status,
                             const plane_part *part, int64_t count,
                             const int64_t *send_bytes, const int64_t *recv_bytes,
                             void **values);
tess_status planes_cuda_send_back(const tess_planes *planes, const plane_part *part,
                                  int64_t count, const void *values,
                                  const int64_t *send_bytes, const int64_t *recv_bytes);

#endif
