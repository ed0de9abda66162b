/** @file planes_cuda.h  (private to fft/)
 *  The cuda backend's planes: planes_cuda.c makes lines of pieces and transforms them,
 *  planes_cuda_columns.c transforms rows of all lines, planes_cuda_ranks.c moves pieces
 *  and lines between ranks.
 */
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

/** At least this many bytes, contents undefined; `what` it is for. Local. */
tess_status device_array_grow(device_array *array, int64_t bytes, const char *what);

/** Rows of all lines of a plane, between the two passes of its transform. */
typedef struct plane_rows {
    device_array values; /* F > 1: [own rows][num_lines] */
    int64_t num_lines;
    int32_t *slot_of_line, *line_of_slot; /* [nu] device memory */
    tess_plane_job waiting; /* linked devices, imaging: is active while the second pass
                               is not enqueued yet */
} plane_rows;

struct planes_cuda {
    plane_shape shape;
    void **image;      /* [num_images] sums, or model */
    void **host_image; /* [num_images] prediction: where the caller puts the model */
    bool *on_device;   /* [num_images] is the host's model there? */
    plane_fft *fft_u, *fft_v;
    int64_t batch_lines, batch_rows;
    void *batch;              /* [batch_lines][nv], or [batch_rows][nu] */
    device_array own_rows;    /* [ny][own slots]; linked devices: of a round of lines */
    plane_rows rows[2];       /* linked devices, in imaging: in turn; else the first */
    int now;                  /* which of them has the plane that is transformed */
    tess_prefault *host_rows; /* [num_images] of the sums, or NULL */
    device_array piece, line_pieces;
    tess_device_part *send;    /* [P] linked devices: parts of an exchange, */
    tess_device_rows *take;    /* [P] and what takes them */
    int32_t *own_slot_of_line; /* [nu] of this rank's slots */
};

/** Lines of the plane that is transformed, and which of them are this rank's. */
typedef struct line_list {
    int32_t *line; /* [num_lines] of the group, in order of slab */
    int64_t num_lines;
    int32_t *own; /* [num_own]; F = 1: equals `line` */
    int64_t num_own;
    int64_t *of_slab; /* [F] number of lines */
} line_list;

/* ---- rows of all lines ---- */

/** Tables of `rows`. Local. */
tess_status planes_rows_create(tess_planes *planes);
void planes_rows_destroy(tess_planes *planes);

/** Room for the rows of a plane with these lines, and all tables of them. Local. */
tess_status planes_rows_place(tess_planes *planes, const line_list *lines);

/** Imaging, second pass: rows of all lines that are there now → image; in prediction,
 *  first pass: the reverse. Only enqueues. Local. */
tess_status planes_columns(tess_planes *planes, const tess_plane_job *job);

/** Imaging between linked devices: the second pass of the plane, whose lines have been
 *  sent, waits if the plane is active. Local. */
void planes_columns_later(tess_planes *planes, const tess_plane_job *job);

/** Enqueue the second pass of the plane before the last one, if it waits. Pieces of the
 *  next plane have been sent. Local. */
tess_status planes_columns_next(tess_planes *planes);

/** Enqueue all second passes that wait. Local. */
tess_status planes_columns_finish(tess_planes *planes);

/** Forget them, because the images are made anew. Local. */
void planes_columns_drop(tess_planes *planes);

/** As if bricks covered all lines: `more_bytes` of tess_planes_ops. Local. */
int64_t planes_cuda_more_bytes(const tess_planes *planes);

/* ---- through host memory ---- */

/** Own lines × all rows become all lines × own rows, and the reverse. Collective in the
 *  group. */
tess_status planes_transpose_to_rows(tess_planes *planes, const line_list *lines);
tess_status planes_transpose_to_lines(tess_planes *planes, const line_list *lines);

/* ---- between linked devices ---- */

/** Room for the parts of an exchange. Local. */
tess_status planes_parts_create(tess_planes *planes);

/** Lines of all ranks of the group go in rounds of batch_lines of each. Local. */
int64_t planes_rounds(const tess_planes *planes, const line_list *lines);

/** This rank's lines of a round: [*first, + *count) of its own. Local. */
void planes_round(const tess_planes *planes, const line_list *lines, int64_t round,
                  int64_t *first, int64_t *count);

/** Imaging: `buffer`, where all rows of this rank's lines of the next round go,
 *  [ny][count]; then send them, to be `rows` there. `status` as in
 *  tess_device_comm_exchange. Local; Collective. */
tess_status planes_line_buffer(tess_planes *planes, void **buffer);
tess_status planes_send_lines(tess_planes *planes, tess_status status,
                              const line_list *lines, int64_t round);

/** Prediction: all rows of this rank's lines of a round, from the ranks' `rows`, into
 *  its place in own_rows, [ny][count], which is another than that of the next round.
 *  Local; Collective. */
void *planes_round_rows(const tess_planes *planes, int64_t round);
tess_status planes_fetch_lines(tess_planes *planes, tess_status status,
                               const line_list *lines, int64_t round);

/** As tess_planes_ops has them. */
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
