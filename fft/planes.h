/** @file planes.h  (private to fft/)
 *  The object behind tess_planes.h, shared by the transform and the exchange of pieces.
 */
#ifndef PLANES_H
#define PLANES_H

#include "screen.h"
#include "tess_fft.h"
#include "tess_planes.h"

/* Work memory that is kept from plane to plane. */
typedef enum work_slot {
    WORK_LINES,      /* lines of the slab */
    WORK_OWN_LINES,  /* prediction over several slabs: lines after the transpose */
    WORK_LINE,       /* one line per thread */
    WORK_COLUMNS,    /* a group of columns per thread */
    WORK_SCREENS,    /* their screens */
    NUM_WORK_SLOTS
} work_slot;

/* Rows that are transformed together, and their mirror rows (mirror < 0: none), which
 * share the screens. Rows count from the rank's first. */
typedef struct row_group {
    int64_t first, count, mirror;
} row_group;

struct tess_planes {
    tess_planes_opts opts;
    tess_comm *comm;           /* all ranks; borrowed */
    tess_comm *group;          /* the F ranks that share a plane */
    tess_comm *column;         /* the Q ranks with the same slab */
    int num_groups, group_index, slab;
    int64_t *slab_line;        /* [F + 1] */
    int64_t line_first, line_end;
    int64_t row_first, row_end;
    int64_t value_bytes;       /* of a complex value */
    tess_fft *fft_u, *fft_v;
    const screen_table *screen;
    void **image;              /* [num_images] */
    void *work[NUM_WORK_SLOTS];
    int64_t work_bytes[NUM_WORK_SLOTS];
    row_group *group_of_rows;
    int64_t num_row_groups;
};

/* Pieces of this rank's slab in its group's plane, from all ranks, by line. */
typedef struct piece_set {
    tess_piece *piece;
    int64_t num_pieces;
    int64_t *bucket;           /* [buckets + 1] first piece of each PIECE_BUCKET lines */
    int64_t num_buckets;
    int64_t line_first;
    void *received;            /* where pieces of other ranks are */
    int64_t *received_bytes;   /* [P] headers and data that came from each rank */
    int64_t *sent_bytes;       /* [P] */
    int64_t *reply_bytes;      /* [P] values alone, of each rank's pieces */
} piece_set;

/* Lines per bucket. A piece has at most 2 × PIECE_BUCKET − 1 lines, so a line's pieces
 * begin in its own bucket or the one before. */
enum { PIECE_BUCKET = 16 };

/* Send this rank's pieces to the owners of their lines; with_data false sends only their
 * places (prediction). Collective. */
tess_status pieces_exchange(tess_planes *planes, const tess_plane_job *job,
                            bool with_data, piece_set *set);

/* Prediction: return the filled pieces to the ranks they belong to. Collective. */
tess_status pieces_return(tess_planes *planes, const tess_plane_job *job, piece_set *set);

void pieces_free(piece_set *set);

/* Pieces that may cover a line: indices [*begin, *end). */
void pieces_near(const piece_set *set, int64_t line, int64_t *begin, int64_t *end);

#endif
