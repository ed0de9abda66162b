/** @file planes_cuda.h  (private to fft/)
 *  The cuda backend's planes: planes_cuda.c transforms, planes_cuda_ranks.c moves
 * pieces and lines between ranks.
 */
#ifndef PLANES_CUDA_H
#define PLANES_CUDA_H

#include "planes_device.h"
#include "planes_object.h"

/** Device memory that grows as needed. */
typedef struct device_array {
    void *data;
    int64_t bytes;
} device_array;

/** At least this many bytes, contents undefined; `what` it is for. Local. */
tess_status device_array_grow(device_array *array, int64_t bytes, const char *what);

struct planes_cuda {
    plane_shape shape;
    void **image;      /* [num_images] sums, or model */
    void **host_image; /* [num_images] prediction: where the caller puts the model */
    bool *on_device;   /* [num_images] is the host's model there? */
    plane_fft *fft_u, *fft_v;
    int64_t batch_lines, batch_rows;
    void *batch;           /* [batch_lines][nv], or [batch_rows][nu] */
    device_array own_rows; /* [ny][own slots]; linked devices: of a round of lines */
    device_array all_rows; /* F > 1: [own rows][slots of the group] */
    device_array piece, line_pieces;
    int32_t *slot_of_line, *line_of_slot; /* [nu] of the group's slots */
    int32_t *own_slot_of_line;            /* [nu] of this rank's */
};

/** Lines of the plane that is transformed, and which of them are this rank's. */
typedef struct line_list {
    int32_t *line; /* [num_lines] of the group, in order of slab */
    int64_t num_lines;
    int32_t *own; /* [num_own]; F = 1: equals `line` */
    int64_t num_own;
    int64_t *of_slab; /* [F] number of lines */
} line_list;

/* ---- through host memory ---- */

/** Own lines × all rows become all lines × own rows, and the reverse. Collective in the
 *  group. */
tess_status planes_transpose_to_rows(tess_planes *planes, const line_list *lines);
tess_status planes_transpose_to_lines(tess_planes *planes, const line_list *lines);

/* ---- between linked devices ---- */

/** Lines of all ranks of the group go in rounds of batch_lines of each. Local. */
int64_t planes_rounds(const tess_planes *planes, const line_list *lines);

/** This rank's lines of a round: [*first, + *count) of its own. Local. */
void planes_round(const tess_planes *planes, const line_list *lines, int64_t round,
                  int64_t *first, int64_t *count);

/** Imaging: `buffer`, where all rows of this rank's lines of the next round go,
 *  [ny][count]; then send them, to be all_rows. `status` as in
 *  tess_device_comm_exchange. Local; Collective. */
tess_status planes_line_buffer(tess_planes *planes, void **buffer);
tess_status planes_send_lines(tess_planes *planes, tess_status status,
                              const line_list *lines, int64_t round);

/** Prediction: all rows of this rank's lines of a round, from the ranks' all_rows, into
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
tess_status planes_cuda_send(const tess_planes *planes, const plane_part *part,
                             int64_t count, const int64_t *send_bytes,
                             const int64_t *recv_bytes, void **values);
tess_status planes_cuda_send_back(const tess_planes *planes, const plane_part *part,
                                  int64_t count, const void *values,
                                  const int64_t *send_bytes, const int64_t *recv_bytes);

#endif
