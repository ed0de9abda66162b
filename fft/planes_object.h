/** @file planes_object.h  (private to fft/)
 *  The object behind tess_planes.h, shared by the transforms of the backends and the
 *  exchange of pieces.
 */
#ifndef PLANES_H
#define PLANES_H

#include "tess_outbox.h"
#include "tess_planes.h"

struct tess_planes {
    const tess_planes_ops *ops;
    tess_planes_opts opts;
    tess_comm *comm;                     /* all ranks; borrowed */
    tess_comm *group;                    /* the F ranks that share a plane */
    tess_comm *column;                   /* the Q ranks with the same slab */
    tess_outbox *pieces_box, *lines_box; /* over all ranks, and over the group */
    int num_groups, group_index, slab;
    int batch;          /* K: planes of a group that are exchanged together */
    tess_comm *sums;    /* over which images are summed: column, or opts.sum_over */
    int64_t *slab_line; /* [F + 1] */
    int64_t *line_bits; /* work memory of planes_gather_lines() */
    int64_t line_first, line_end;
    int64_t row_first, row_end;
    int64_t value_bytes;            /* bytes of a complex value */
    int64_t image_held, plane_held; /* tess_planes_held() */
    union {                         /* The backend's own memory. */
        struct planes_cpu *cpu;
        struct planes_of_device *device;
    };
};

/* A piece that goes to a rank, or comes from it, and where its values are in a buffer
 * [complex values]: num_lines lines of num_cells without gaps. */
typedef struct plane_part {
    tess_piece piece;
    int rank;
    int64_t offset;
} plane_part;

/* Such a buffer, in parts, one for each rank. */
typedef struct rank_values {
    void **part;    /* [P] the parts, which are only read */
    int64_t *first; /* [P + 1] place in the buffer of a part's first value */
} rank_values;

/* A backend's functions, each of which does what the tess_planes_ function of its name
 * does. `create` (Local) finds all members above filled in, and `cpu` or `device` NULL.
 * `destroy` frees whatever a failed `create` has left. */
struct tess_planes_ops {
    bool batched; /* whether K may be larger than 1 */
    tess_status (*create)(tess_planes *planes);
    void (*destroy)(tess_planes *planes);
    void *(*image)(tess_planes *planes, int image);
    tess_status (*place)(tess_planes *planes, int image,
                         void **rows); /* NULL: images are placed in host memory */
    tess_status (*clear)(tess_planes *planes);
    /* Copies an image to host memory. NULL: images lie there. */
    tess_status (*fetch)(tess_planes *planes, int image, void *rows);
    tess_status (*put_back)(tess_planes *planes, int image, const void *rows);
    tess_status (*accumulate)(tess_planes *planes, const tess_plane_job *job,
                              tess_status *own, tess_planes_times *times);
    tess_status (*finish)(tess_planes *planes); /* NULL: nothing is left to do */
    tess_status (*extract)(tess_planes *planes, const tess_plane_job *job,
                           tess_status *own, tess_planes_times *times);
    tess_status (*reduce)(tess_planes *planes, int image, int64_t *row_first,
                          int64_t *num_rows, void **rows); /* to host memory */
    /* For images that live in opts.place. `keeps` tells whether there are any.
     * `reduce_there` fills rows whose place is set: they lend the memory of the image,
     * or own theirs. `put_rows` fills an image. NULL: images pass through host memory.
     */
    bool (*keeps)(const tess_planes *planes);
    tess_status (*reduce_there)(tess_planes *planes, int image, tess_rows *rows);
    tess_status (*put_rows)(tess_planes *planes, int image, const tess_rows *rows,
                            double scale);
    void (*rest)(tess_planes *planes); /* frees work memory. NULL: it stays. Local. */
    int64_t (*more_bytes)(const tess_planes *planes); /* NULL: the host's memory */
    double (*bytes)(const tess_planes_opts *opts); /* as tess_planes_device_bytes() */
    /* For the exchange of pieces. `pack` copies the values of the parts to host memory
     * of `num_values` values; what lies between them is undefined. `unpack` copies
     * those that have arrived to the parts. Local. */
    tess_status (*pack)(const tess_planes *planes, const plane_part *part,
                        int64_t count, int64_t num_values, void *host);
    tess_status (*unpack)(const tess_planes *planes, const plane_part *part,
                          int64_t count, const rank_values *from);
    /* `values_in` gives memory for the values of pieces, and copies to it what has come
     * from the ranks (NULL: contents are undefined). `values_out` copies it to host
     * memory and gives it up. All are NULL if pieces may lie anywhere in host memory.
     */
    tess_status (*values_in)(const tess_planes *planes, const rank_values *from,
                             int64_t num_values, void **values);
    tess_status (*values_out)(const tess_planes *planes, void *values,
                              int64_t num_values, void *host);
    void (*values_free)(void *values);
    /* With opts.links. `send` moves the values of the parts from device to device,
     * send_bytes[P] to the ranks and recv_bytes[P] from them, to memory as that of
     * values_in. They are there after tess_device_comm_arrive. Nothing is moved if the
     * `status` of any rank's preparations is an error, on which the ranks agree.
     * `send_back` is the reverse, from such memory to the parts. Collective. */
    tess_status (*send)(const tess_planes *planes, tess_status status,
                        const plane_part *part, int64_t count,
                        const int64_t *send_bytes, const int64_t *recv_bytes,
                        void **values);
    tess_status (*send_back)(const tess_planes *planes, const plane_part *part,
                             int64_t count, const void *values,
                             const int64_t *send_bytes, const int64_t *recv_bytes);
};

/* Note a buffer for values of one plane, or of one image, for tess_planes_held().
 * Local. */
void planes_note_plane(tess_planes *planes, int64_t bytes);
void planes_note_image(tess_planes *planes, int64_t bytes);

/* Note what the time since `*mark` was spent on. `*mark` becomes the time now. Local.
 */
void planes_exchanged(tess_planes_times *times, double *mark);
void planes_transformed(tess_planes_times *times, double *mark);

/* The first of `total` items that belongs to part `part` of `parts`. */
int64_t planes_share(int64_t total, int64_t part, int64_t parts);

/* tess_comm_agree(), which one rank alone leaves out. Collective. */
tess_status planes_agree(const tess_planes *planes, tess_status status);

/* Gather the line numbers of all slabs of the group from those of this rank's slab,
 * own[num_own], once its ranks have agreed on `status`. Line k of plane p of the
 * group's jobs has the number p nu + k. `*lines` is allocated, in order of plane and
 * slab, and counts[K][F] gets the number of lines of each. Collective in the group. */
tess_status planes_gather_lines(const tess_planes *planes, tess_status status,
                                const int32_t *own, int64_t num_own, int32_t **lines,
                                int64_t *counts);

/* The share of a slab's rows that a rank keeps of a sum. `rank`: its place among
 * planes->sums. */
void planes_sum_share(const tess_planes *planes, int rank, int64_t *row_first,
                      int64_t *num_rows);

/* Sum the rows of a slab's image over planes->sums, through host memory, as
 * tess_planes_reduce promises. If there is one rank, `*rows` is `image` itself. The
 * backend decides whether images stay. Collective. */
tess_status planes_reduce_rows(tess_planes *planes, void *image, int64_t *row_first,
                               int64_t *num_rows, void **rows);

/* The pieces of this rank's slab in its group's planes, from all ranks, by plane and
 * line. */
typedef struct piece_set {
    tess_piece *piece;
    int64_t num_pieces;
    int64_t *bucket; /* [buckets + 1] first piece of each PIECE_BUCKET lines */
    int64_t num_buckets, of_plane; /* buckets, and those of a plane */
    int64_t line_first, nu;
    void *values; /* values of the pieces from other ranks, if they were moved; else
                     NULL */
    void (*free_values)(void *values);
    int64_t *value_bytes; /* [P] bytes of these values from each rank */
} piece_set;

/* Lines of a bucket. A piece has at most 2 × PIECE_BUCKET − 1 lines, so that the pieces
 * of a line begin in its own bucket or in the one before. */
enum { PIECE_BUCKET = 16 };

/* Send this rank's pieces to the owners of their lines or, without `with_data`, only
 * their places (prediction). `*own` and the status that is returned are those of
 * tess_planes_accumulate(). Collective. */
tess_status pieces_exchange(tess_planes *planes, const tess_plane_job *job,
                            bool with_data, tess_status *own, piece_set *set);

/* Prediction: send the filled pieces back to the ranks to which they belong. The
 * statuses are as above. Collective. */
tess_status pieces_return(tess_planes *planes, const tess_plane_job *job,
                          tess_status *own, piece_set *set);

void pieces_free(piece_set *set);

/* Find the pieces that may cover a line, which has the number of planes_gather_lines():
 * [*begin, *end). Local. */
void pieces_near(const piece_set *set, int64_t line, int64_t *begin, int64_t *end);

/* List the lines of this rank's slab that any piece covers, ascending. `*lines` is
 * allocated. Local. */
tess_status pieces_lines(const tess_planes *planes, const piece_set *set,
                         int32_t **lines, int64_t *num_lines);

#endif
