/** @file planes_cpu.h  (private to fft/)
 *  The cpu backend's planes: planes_cpu.c makes lines of pieces and transforms them,
 *  planes_cpu_lines.c gives lines memory, planes_cpu_ranks.c moves them between ranks,
 *  and planes_cpu_columns.c transforms rows of all lines.
 */
#ifndef PLANES_CPU_H
#define PLANES_CPU_H

#include "planes_object.h"
#include "screen.h"
#include "tess_fft.h"

/** Bytes of a line whose columns are gathered together: pairs of cache lines, which the
 * hardware prefetches together. */
enum { PLANES_CPU_GROUP = 128 };

/** Work memory that is kept from plane to plane, until tess_planes_rest(). */
typedef enum work_slot {
    WORK_LINES,     /* the lines of the slab */
    WORK_OWN_LINES, /* prediction over several slabs: the lines after the transpose */
    WORK_LINE,      /* two lines for each thread: before and after the transform */
    WORK_COLUMNS,   /* a group of columns for each thread, and a column that is
                       transformed */
    WORK_SCREENS,   /* the w-screens of these columns */
    NUM_WORK_SLOTS
} work_slot;

/** Rows that are transformed together, and their mirror rows (mirror < 0: none), which
 * share the screens. Rows count from the rank's first. */
typedef struct row_group {
    int64_t first, count, mirror;
} row_group;

struct planes_cpu {
    tess_fft *fft_u, *fft_v;
    const screen_table *screen;
    void **image; /* [num_images] */
    void *work[NUM_WORK_SLOTS];
    int64_t work_bytes[NUM_WORK_SLOTS];
    row_group *group_of_rows;
    int64_t num_row_groups;
};

/** The lines of one slab, in this rank's memory or in that of the rank that has them.
 */
typedef struct slab_lines {
    int64_t num_lines;
    char *data; /* [num_lines][stride] complex, of the set's rows */
} slab_lines;

/** The occupied lines of slabs in the planes of a batch, of which only the rows of the
 * image are kept, as they are after the transform along v (in prediction, before it).
 * They lie in work memory or in an outbox: those of a slab together, in order of plane.
 */
typedef struct line_set {
    int64_t num_lines;
    int32_t *line; /* [num_lines] line numbers (planes_gather_lines), ascending */
    int64_t
        line_first;   /* number of the first line of the plane, of a set of one plane */
    int num_slabs;    /* the lines of a slab follow those of the slab before */
    slab_lines *slab; /* [num_slabs] */
    int64_t *counts;  /* [K][num_slabs] lines of a slab in a plane */
    int64_t row_count; /* number of image rows that are kept of each line */
    int64_t stride;    /* distance of lines: row_count and padding (padded_rows) */
} line_set;

/** Work memory of a slot, of at least `bytes` bytes, with undefined contents; NULL if
 * memory is short. The planes own it. Local. */
void *planes_cpu_work(tess_planes *planes, work_slot slot, int64_t bytes);

/** Make a set of `num_slabs` slabs without lines. Free it with planes_cpu_lines_free().
 * Local. */
tess_status planes_cpu_lines_create(const tess_planes *planes, int num_slabs,
                                    line_set *set);
void planes_cpu_lines_free(line_set *set);

/** Gives memory to the lines of one slab: work memory or, if the ranks of the group are
 *  to read the lines, this rank's outbox, provided that all outboxes have room. No slab
 *  of the group has more than `most_lines` lines. The ranks have gathered them.
 *  Collective in the group. */
tess_status planes_cpu_place_lines(tess_planes *planes, int64_t row_count,
                                   int64_t most_lines, line_set *set);

/** Gathers the line numbers of all slabs of the group, once its ranks have agreed on
 *  `status`. Collective in the group. */
tess_status planes_cpu_line_numbers(tess_planes *planes, tess_status status,
                                    const line_set *own, line_set *all);

/** The number of lines of the slab that has most of them. Local. */
int64_t planes_cpu_most_lines(const line_set *all);

/** Imaging: turns this rank's lines, with all rows, into all lines with this rank's
 *  rows, once the ranks have come to a good `status`. `all` has the line numbers if
 *  several ranks share a plane. Gives `own` up. Collective in the group. */
tess_status planes_cpu_to_rows(tess_planes *planes, tess_status status, line_set *own,
                               line_set *all);

/** Prediction: turns all lines, with this rank's rows, into this rank's lines with all
 *  rows, once the ranks have come to a good `status`. Collective in the group. */
tess_status planes_cpu_to_lines(tess_planes *planes, tess_status status,
                                const line_set *all, line_set *own);

/** Transforms all columns of this rank's rows, into the images or out of them, with the
 *  w-screens: the planes of the batch, whose jobs job[KQ] has. Local. */
tess_status planes_cpu_columns(tess_planes *planes, const line_set *set,
                               const tess_plane_job *job);

#endif
