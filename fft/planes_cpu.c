/* The two passes of a plane's transform on the cpu backend. tess_planes.h says which
 * rank holds what. */
#include <string.h>

#include "planes_object.h"
#include "screen.h"
#include "tess_add.h"
#include "tess_fft.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_omp.h"

/* Bytes of a line whose columns are gathered together: pairs of cache lines, which the
 * hardware prefetches together. */
enum { GROUP_BYTES = 128 };

/* A group of columns is prefetched from the line that is this many lines ahead, because
 * each line lies far from the one before. */
enum { LINES_AHEAD = 12 };

/* The cells of a line are prefetched from the piece that is this many pieces ahead,
 * because they are a few cache lines that lie alone in memory. */
enum { PIECES_AHEAD = 8 };

/* Work memory that is kept from plane to plane. */
typedef enum work_slot {
    WORK_LINES,     /* the lines of the slab */
    WORK_OWN_LINES, /* prediction over several slabs: the lines after the transpose */
    WORK_LINE,      /* two lines for each thread: before and after the transform */
    WORK_COLUMNS,   /* a group of columns for each thread, and a column that is
                       transformed */
    WORK_SCREENS,   /* the w-screens of these columns */
    NUM_WORK_SLOTS
} work_slot;

/* Rows that are transformed together, and their mirror rows (mirror < 0: none), which
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

static int64_t image_bytes(const tess_planes *planes)
{
    const int64_t pixels = (planes->row_end - planes->row_first) * planes->opts.nx;
    return pixels * planes->value_bytes / 2;
}

/* Zeroes an image by the threads that will work on its rows: memory lies near the
 * thread that touches it first. */
static void zero_image(const tess_planes *planes, char *image)
{
    const int64_t row = planes->opts.nx * planes->value_bytes / 2;
    const int64_t rows = planes->row_end - planes->row_first;
#pragma omp parallel for num_threads(planes->opts.threads) schedule(static)
    for (int64_t k = 0; k < rows; ++k)
        memset(image + k * row, 0, (size_t)row);
}

/* Zeroes all images, and allocates those that have been given up. */
static tess_status cpu_clear(tess_planes *planes)
{
    tess_status status = TESS_OK;
    const int64_t bytes = image_bytes(planes);
    planes_note_image(planes, bytes);
    for (int k = 0; k < planes->opts.num_images; ++k) {
        if (!planes->cpu->image[k]) planes->cpu->image[k] = tess_alloc_fast(bytes, 1);
        if (!planes->cpu->image[k])
            TESS_FAIL(TESS_ERR_ALLOC, "no memory for an image slab of %s",
                      tess_mem_text((double)bytes));
        zero_image(planes, planes->cpu->image[k]);
    }
cleanup:
    return status;
}

/* Makes groups of rows. If this rank has whole planes around m = 0, a row below the
 * middle one is paired with its mirror row, which has the same screen. The middle row
 * has no mirror row, nor has row 0 if ny is even. */
static tess_status make_row_groups(tess_planes *planes)
{
    tess_status status = TESS_OK;
    const int64_t group = GROUP_BYTES / planes->value_bytes;
    const int64_t rows = planes->row_end - planes->row_first,
                  middle = planes->opts.ny / 2;
    const int64_t unpaired = planes->opts.ny % 2 == 0; /* row 0 has no mirror row */
    const bool whole = planes->opts.fft_ranks == 1 && planes->opts.m0 == 0;
    planes->cpu->group_of_rows = tess_alloc(rows / group + 4, sizeof(row_group));
    if (!planes->cpu->group_of_rows) TESS_FAIL(TESS_ERR_ALLOC, "row groups");
    const int64_t end = whole ? middle : rows;
    for (int64_t first = whole ? unpaired : 0; first < end; first += group) {
        const int64_t count = end - first < group ? end - first : group;
        planes->cpu->group_of_rows[planes->cpu->num_row_groups++] =
            (row_group){first, count, whole ? 2 * middle - (first + count - 1) : -1};
    }
    if (whole)
        planes->cpu->group_of_rows[planes->cpu->num_row_groups++] =
            (row_group){middle, 1, -1};
    if (whole && unpaired)
        planes->cpu->group_of_rows[planes->cpu->num_row_groups++] =
            (row_group){0, 1, -1};
cleanup:
    return status;
}

static tess_status cpu_create(tess_planes *planes)
{
    tess_status status = TESS_OK;
    const tess_planes_opts *opts = &planes->opts;
    planes->cpu = tess_alloc_zero(1, sizeof *planes->cpu);
    if (!planes->cpu) TESS_FAIL(TESS_ERR_ALLOC, "plane transform");
    planes->cpu->screen = screen_table_best();
    planes->cpu->image = tess_alloc_zero(opts->num_images, sizeof(void *));
    if (!planes->cpu->image) TESS_FAIL(TESS_ERR_ALLOC, "images");
    TESS_TRY(cpu_clear(planes));
    TESS_TRY(make_row_groups(planes));
    const int64_t num_planes = opts->repeatable ? 0 : opts->num_planes;
    TESS_TRY(tess_fft_create(opts->nu, opts->forward, opts->is_double,
                             num_planes * opts->ny, &planes->cpu->fft_u));
    TESS_TRY(tess_fft_create(opts->nv, opts->forward, opts->is_double,
                             num_planes * opts->nu, &planes->cpu->fft_v));
cleanup:
    return status;
}

static void cpu_destroy(tess_planes *planes)
{
    struct planes_cpu *cpu = planes->cpu;
    if (!cpu) return;
    for (int k = 0; cpu->image && k < planes->opts.num_images; ++k)
        tess_free(cpu->image[k]);
    tess_free(cpu->image);
    tess_fft_destroy(cpu->fft_u);
    tess_fft_destroy(cpu->fft_v);
    tess_free(cpu->group_of_rows);
    for (int k = 0; k < NUM_WORK_SLOTS; ++k)
        tess_free(cpu->work[k]);
    tess_free(cpu);
}

static void *cpu_image(tess_planes *planes, int image)
{
    return planes->cpu->image[image];
}

/* Work memory of at least this many bytes, whose contents are undefined. NULL: memory
 * is short. */
static void *work_memory(tess_planes *planes, work_slot slot, int64_t bytes)
{
    if (bytes > planes->cpu->work_bytes[slot]) {
        tess_free(planes->cpu->work[slot]);
        planes->cpu->work[slot] = tess_alloc_fast(bytes, 1);
        planes->cpu->work_bytes[slot] = planes->cpu->work[slot] ? bytes : 0;
    }
    return planes->cpu->work[slot];
}

/* ---- lines of a slab ---- */

/* The lines of one slab, in this rank's memory or in that of the rank that has them. */
typedef struct slab_lines {
    int64_t num_lines;
    char *data; /* [num_lines][stride] complex, of the set's rows */
} slab_lines;

/* The occupied lines of slabs, of which only the rows of the image are kept, as they
 * are after the transform along v (in prediction, before it). They lie in work memory
 * or in an outbox. */
typedef struct line_set {
    int64_t num_lines;
    int32_t *line;     /* [num_lines] grid line numbers, ascending */
    int num_slabs;     /* the lines of a slab follow those of the slab before */
    slab_lines *slab;  /* [num_slabs] */
    int64_t row_count; /* number of image rows that are kept of each line */
    int64_t stride;    /* distance of lines: row_count and padding (padded_rows) */
} line_set;

static void lines_free(line_set *set)
{
    tess_free(set->line);
    tess_free(set->slab);
    *set = (line_set){0};
}

static tess_status lines_create(int num_slabs, line_set *set)
{
    tess_status status = TESS_OK;
    set->num_slabs = num_slabs;
    set->slab = tess_alloc_zero(num_slabs, sizeof *set->slab);
    if (!set->slab) TESS_FAIL(TESS_ERR_ALLOC, "lines of w-planes");
cleanup:
    return status;
}

/* Distance of lines in memory. It is an odd number of 128-byte groups. Otherwise, if ny
 * is a power of two, the same rows of successive lines would fall into one set of a
 * cache. */
static int64_t padded_rows(const tess_planes *planes, int64_t rows)
{
    const int64_t group = GROUP_BYTES / planes->value_bytes;
    return ((rows + group - 1) / group | 1) * group;
}

/* Gives memory to the lines of one slab: work memory or, if the ranks of the group are
 * to read the lines, this rank's outbox, provided that all outboxes have room.
 * Collective in the group. */
static tess_status place_lines(tess_planes *planes, int64_t row_count, int64_t stride,
                               line_set *set)
{
    tess_status status = TESS_OK;
    const int64_t bytes = set->num_lines * stride * planes->value_bytes;
    void *data = NULL;
    set->row_count = row_count;
    set->stride = stride;
    planes_note_plane(planes, bytes);
    if (planes->opts.fft_ranks > 1)
        TESS_TRY(tess_outbox_room(planes->lines_box, bytes, &data));
    if (planes->opts.fft_ranks == 1 || !tess_outbox_is_shared(planes->lines_box))
        data = work_memory(planes, WORK_LINES, bytes);
    set->slab[0] = (slab_lines){set->num_lines, data};
    if (!data && bytes > 0)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for %lld lines of a w-plane (%s)",
                  (long long)set->num_lines, tess_mem_text((double)bytes));
cleanup:
    return status;
}

/* Bytes of a work line along v, padded to keep lines aligned to 64 bytes. */
static int64_t work_line_bytes(const tess_planes *planes)
{
    return (planes->opts.nv + 7) / 8 * 8 * planes->value_bytes;
}

static tess_status allocate_work_lines(tess_planes *planes, char **work)
{
    tess_status status = TESS_OK;
    *work = work_memory(planes, WORK_LINE,
                        2 * planes->opts.threads * work_line_bytes(planes));
    if (!*work) TESS_FAIL(TESS_ERR_ALLOC, "work lines of w-planes");
cleanup:
    return status;
}

/* Finds the part of a piece that lies on a grid line: its data, and how many cells come
 * before the wrap around nv. */
static char *piece_line(const tess_planes *planes, const tess_piece *piece,
                        int64_t line, int64_t *before_wrap)
{
    *before_wrap = planes->opts.nv - piece->cell;
    if (*before_wrap > piece->num_cells) *before_wrap = piece->num_cells;
    return (char *)piece->data +
           (line - piece->line) * piece->stride * planes->value_bytes;
}

static bool covers(const tess_piece *piece, int64_t line)
{
    return line >= piece->line && line < piece->line + piece->num_lines;
}

/* Prefetches the part of a piece that lies on the line, which is to be read or, in
 * prediction, written. Inlined by force, because gcc removes calls of a function that
 * does nothing but prefetch. */
__attribute__((always_inline)) static inline void
fetch_piece(const tess_planes *planes, const tess_piece *piece, int64_t line)
{
    int64_t before;
    if (!covers(piece, line)) return;
    const char *at = piece_line(planes, piece, line, &before);
    for (int64_t b = 0; b < piece->num_cells * planes->value_bytes; b += 64) {
        if (planes->opts.forward)
            __builtin_prefetch(at + b);
        else
            __builtin_prefetch(at + b, 1);
    }
}

static void add_pieces_to_line(const tess_planes *planes, const piece_set *pieces,
                               int64_t line, char *out)
{
    int64_t begin, end, before;
    const int64_t bytes = planes->value_bytes;
    memset(out, 0, (size_t)(planes->opts.nv * bytes));
    pieces_near(pieces, line, &begin, &end);
    for (int64_t k = begin; k < end; ++k) {
        const tess_piece *piece = &pieces->piece[k];
        if (k + PIECES_AHEAD < end) fetch_piece(planes, piece + PIECES_AHEAD, line);
        if (!covers(piece, line)) continue;
        const char *from = piece_line(planes, piece, line, &before);
        tess_add_reals(planes->opts.is_double, out + piece->cell * bytes, from,
                       2 * before);
        tess_add_reals(planes->opts.is_double, out, from + before * bytes,
                       2 * (piece->num_cells - before));
    }
}

/* Zeroes what follows the cells of a line, because a degridder reads whole vectors. */
static void clear_line_end(const tess_planes *planes, const tess_piece *piece,
                           char *line)
{
    const int64_t bytes = planes->value_bytes;
    memset(line + piece->num_cells * bytes, 0,
           (size_t)((piece->stride - piece->num_cells) * bytes));
}

static void take_pieces_from_line(const tess_planes *planes, const piece_set *pieces,
                                  int64_t line, const char *from)
{
    int64_t begin, end, before;
    const int64_t bytes = planes->value_bytes;
    pieces_near(pieces, line, &begin, &end);
    for (int64_t k = begin; k < end; ++k) {
        const tess_piece *piece = &pieces->piece[k];
        if (k + PIECES_AHEAD < end) fetch_piece(planes, piece + PIECES_AHEAD, line);
        if (!covers(piece, line)) continue;
        char *to = piece_line(planes, piece, line, &before);
        memcpy(to, from + piece->cell * bytes, (size_t)(before * bytes));
        memcpy(to + before * bytes, from,
               (size_t)((piece->num_cells - before) * bytes));
        clear_line_end(planes, piece, to);
    }
}

/* Copies the ny values around the centre out of a line of nv (or into it), in two runs.
 */
static void crop_line(const tess_planes *planes, const char *line, char *rows)
{
    const int64_t half = planes->opts.ny / 2, bytes = planes->value_bytes;
    memcpy(rows, line + (planes->opts.nv - half) * bytes, (size_t)(half * bytes));
    memcpy(rows + half * bytes, line, (size_t)((planes->opts.ny - half) * bytes));
}

static void pad_line(const tess_planes *planes, const char *rows, char *line)
{
    const int64_t half = planes->opts.ny / 2, bytes = planes->value_bytes;
    const int64_t above = planes->opts.ny - half;
    memcpy(line, rows + half * bytes, (size_t)(above * bytes));
    memset(line + above * bytes, 0,
           (size_t)((planes->opts.nv - planes->opts.ny) * bytes));
    memcpy(line + (planes->opts.nv - half) * bytes, rows, (size_t)(half * bytes));
}

/* The first pass of imaging: sums pieces to lines, transforms these along v, and keeps
 * the image rows. */
static tess_status transform_lines(tess_planes *planes, const piece_set *pieces,
                                   const line_set *set, tess_planes_times *times)
{
    tess_status status = TESS_OK;
    const int64_t line_bytes = work_line_bytes(planes);
    double join_s = 0;
    char *work, *rows = set->slab[0].data;
    TESS_TRY(allocate_work_lines(planes, &work));
#pragma omp parallel for num_threads(planes->opts.threads) \
    schedule(dynamic, PIECE_BUCKET) reduction(+ : join_s)
    for (int64_t k = 0; k < set->num_lines; ++k) {
        char *line = work + 2 * tess_omp_thread() * line_bytes,
             *out = line + line_bytes;
        const double start = tess_time_now();
        add_pieces_to_line(planes, pieces, set->line[k], line);
        join_s += tess_time_now() - start;
        tess_fft_execute(planes->cpu->fft_v, line, out);
        crop_line(planes, out, rows + k * set->stride * planes->value_bytes);
    }
    times->join_s += join_s / planes->opts.threads;
cleanup:
    return status;
}

/* The last pass of prediction: makes lines from image rows, transforms them along v,
 * and fills pieces. */
static tess_status untransform_lines(tess_planes *planes, const piece_set *pieces,
                                     const line_set *set, tess_planes_times *times)
{
    tess_status status = TESS_OK;
    const int64_t line_bytes = work_line_bytes(planes);
    double join_s = 0;
    char *work;
    const char *rows = set->slab[0].data;
    TESS_TRY(allocate_work_lines(planes, &work));
#pragma omp parallel for num_threads(planes->opts.threads) \
    schedule(dynamic, PIECE_BUCKET) reduction(+ : join_s)
    for (int64_t k = 0; k < set->num_lines; ++k) {
        char *line = work + 2 * tess_omp_thread() * line_bytes,
             *out = line + line_bytes;
        pad_line(planes, rows + k * set->stride * planes->value_bytes, line);
        tess_fft_execute(planes->cpu->fft_v, line, out);
        const double start = tess_time_now();
        take_pieces_from_line(planes, pieces, set->line[k], out);
        join_s += tess_time_now() - start;
    }
    times->join_s += join_s / planes->opts.threads;
cleanup:
    return status;
}

/* ---- transpose inside a group ---- */

static void slab_rows(const tess_planes *planes, int slab, int64_t *first,
                      int64_t *count)
{
    *first = planes_share(planes->opts.ny, slab, planes->opts.fft_ranks);
    *count = planes_share(planes->opts.ny, slab + 1, planes->opts.fft_ranks) - *first;
}

/* Gathers the line numbers of all slabs of the group. Collective in the group. */
static tess_status gather_line_numbers(tess_planes *planes, const line_set *own,
                                       line_set *all)
{
    tess_status status = TESS_OK;
    const int slabs = planes->opts.fft_ranks;
    void *gathered = NULL;
    int64_t *bytes = tess_alloc(slabs, sizeof *bytes);
    status = bytes ? lines_create(slabs, all) : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(planes->group, status));
    TESS_TRY(tess_comm_allgatherv(planes->group, own->line,
                                  own->num_lines * (int64_t)sizeof *own->line,
                                  &gathered, bytes));
    all->line = gathered;
    all->num_lines = 0;
    for (int f = 0; f < slabs; ++f) {
        all->slab[f].num_lines = bytes[f] / (int64_t)sizeof *own->line;
        all->num_lines += all->slab[f].num_lines;
    }
cleanup:
    tess_free(bytes);
    return status;
}

/* Copies a block of `lines` × `count` values between two arrays of different row
 * length. A rank without rows copies nothing, and may have no memory. */
static void copy_block(const tess_planes *planes, char *to, int64_t to_stride,
                       const char *from, int64_t from_stride, int64_t lines,
                       int64_t count)
{
    const int64_t bytes = planes->value_bytes;
    if (count == 0) return;
#pragma omp parallel for num_threads(planes->opts.threads)
    for (int64_t k = 0; k < lines; ++k)
        memcpy(to + k * to_stride * bytes, from + k * from_stride * bytes,
               (size_t)(count * bytes));
}

/* Copies this rank's rows of the lines that lie in the outboxes of the group's other
 * ranks. Collective in the group. */
static tess_status read_in_place(const tess_planes *planes, const line_set *own,
                                 line_set *all)
{
    tess_status status = TESS_OK;
    const int64_t first = planes->row_first * planes->value_bytes;
    const int64_t others = planes->opts.ny - all->row_count;
    TESS_TRY(tess_outbox_meet(planes->lines_box,
                              own->num_lines * others * planes->value_bytes));
    all->stride = own->stride;
    for (int f = 0; f < all->num_slabs; ++f)
        all->slab[f].data = (char *)tess_outbox_of(planes->lines_box, f) + first;
cleanup:
    return status;
}

/* Sends the rows of this rank's lines to the ranks of the group that own the rows. What
 * arrives is read only. Collective in the group. */
static tess_status send_rows(tess_planes *planes, const line_set *own, line_set *all)
{
    tess_status status = TESS_OK;
    const int slabs = planes->opts.fft_ranks;
    const int64_t bytes = planes->value_bytes;
    void **part = tess_alloc(slabs, sizeof *part);
    int64_t *counts = tess_alloc(2 * slabs, sizeof *counts);
    void *room = NULL;
    TESS_TRY(tess_comm_agree(planes->group, part && counts ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_outbox_room(planes->lines_box,
                              own->num_lines * planes->opts.ny * bytes, &room));
    char *at = room;
    for (int f = 0; f < slabs; ++f) {
        int64_t first, count;
        slab_rows(planes, f, &first, &count);
        copy_block(planes, at, count, own->slab[0].data + first * bytes, own->stride,
                   own->num_lines, count);
        counts[f] = own->num_lines * count * bytes;
        at += counts[f];
    }
    TESS_TRY(tess_outbox_send(planes->lines_box, counts, counts + slabs, part));
    all->stride = all->row_count;
    planes_note_plane(planes, all->num_lines * all->row_count * bytes);
    for (int f = 0; f < slabs; ++f)
        all->slab[f].data = part[f];
cleanup:
    tess_free(part);
    tess_free(counts);
    return status;
}

/* Imaging: turns this rank's lines, with all rows, into all lines with this rank's
 * rows. Gives `own` up. Collective in the group. */
static tess_status transpose_to_rows(tess_planes *planes, line_set *own, line_set *all)
{
    tess_status status = TESS_OK;
    if (planes->opts.fft_ranks == 1) {
        *all = *own;
        *own = (line_set){0};
        return TESS_OK;
    }
    TESS_TRY(gather_line_numbers(planes, own, all));
    all->row_count = planes->row_end - planes->row_first;
    TESS_TRY(tess_outbox_is_shared(planes->lines_box) ? read_in_place(planes, own, all)
                                                      : send_rows(planes, own, all));
cleanup:
    lines_free(own);
    return status;
}

/* Prediction: turns all lines, with this rank's rows, into this rank's lines with all
 * rows. Collective in the group. */
static tess_status transpose_to_lines(tess_planes *planes, const line_set *all,
                                      line_set *own)
{
    tess_status status = TESS_OK;
    const int slabs = planes->opts.fft_ranks;
    const int64_t bytes = planes->value_bytes;
    void **part = tess_alloc(slabs, sizeof *part);
    int64_t *counts = tess_alloc(2 * slabs, sizeof *counts);
    char *data = work_memory(planes, WORK_OWN_LINES,
                             own->num_lines * planes->opts.ny * bytes + 1);
    own->row_count = own->stride = planes->opts.ny;
    own->slab[0] = (slab_lines){own->num_lines, data};
    planes_note_plane(planes, own->num_lines * planes->opts.ny * bytes);
    TESS_TRY(tess_comm_agree(planes->group,
                             part && counts && data ? TESS_OK : TESS_ERR_ALLOC));
    for (int f = 0; f < slabs; ++f)
        counts[f] = all->slab[f].num_lines * all->row_count * bytes;
    TESS_TRY(tess_outbox_send(planes->lines_box, counts, counts + slabs, part));
    for (int f = 0; f < slabs; ++f) {
        int64_t first, count;
        slab_rows(planes, f, &first, &count);
        copy_block(planes, data + first * bytes, own->stride, part[f], count,
                   own->num_lines, count);
    }
cleanup:
    tess_free(part);
    tess_free(counts);
    return status;
}

/* ---- columns: the pass along u with the w-screen ---- */

typedef struct column_work {
    char *lines;         /* threads × (group + 1) × line_length values */
    char *screens;       /* threads × group × screen bytes */
    int64_t line_length; /* nu, padded to keep lines aligned */
    int64_t group;
    int64_t screen; /* bytes of a screen */
} column_work;

static tess_status column_work_create(tess_planes *planes, column_work *work)
{
    tess_status status = TESS_OK;
    /* If the length were a multiple of a page, the lines of a group would fall into the
     * same sets of a cache. */
    work->line_length = (planes->opts.nu + 7) / 8 * 8 + 8;
    work->group = GROUP_BYTES / planes->value_bytes;
    work->screen =
        screen_bytes(planes->opts.nx, planes->opts.l0, planes->opts.is_double);
    const int64_t lines = planes->opts.threads * (work->group + 1);
    work->lines = work_memory(planes, WORK_COLUMNS,
                              lines * work->line_length * planes->value_bytes);
    work->screens = work_memory(planes, WORK_SCREENS,
                                planes->opts.threads * work->group * work->screen);
    if (!work->lines || !work->screens) TESS_FAIL(TESS_ERR_ALLOC, "column buffers");
cleanup:
    return status;
}

/* The part of the lines, and of the screens, that is the calling thread's. */
static char *thread_lines(const tess_planes *planes, const column_work *work)
{
    const int64_t values = (work->group + 1) * work->line_length;
    return work->lines + tess_omp_thread() * values * planes->value_bytes;
}

static char *thread_screens(const column_work *work)
{
    return work->screens + tess_omp_thread() * work->group * work->screen;
}

/* Prefetches the group of columns that begins at `first` from a line that is some lines
 * ahead. */
static inline void fetch_ahead(const line_set *set, const slab_lines *slab,
                               int64_t line, int64_t first, int64_t bytes, int write)
{
    if (line + LINES_AHEAD >= slab->num_lines) return;
    const char *ahead =
        slab->data + ((line + LINES_AHEAD) * set->stride + first) * bytes;
    for (int64_t b = 0; b < GROUP_BYTES; b += 63) {
        if (write)
            __builtin_prefetch(ahead + b, 1);
        else
            __builtin_prefetch(ahead + b);
    }
}

/* Copies the columns [first, first + count) of the lines into contiguous buffers. Both
 * precisions use this source, which moves values as pairs of 4- or 8-byte words. */
static void gather_columns(const tess_planes *planes, const line_set *set,
                           int64_t first, int64_t count, char *lines,
                           int64_t line_length)
{
    const int64_t bytes = planes->value_bytes;
    const int32_t *number = set->line;
    for (int64_t g = 0; g < count; ++g)
        memset(lines + g * line_length * bytes, 0, (size_t)(planes->opts.nu * bytes));
    for (const slab_lines *slab = set->slab; slab < set->slab + set->num_slabs; ++slab)
        for (int64_t k = 0; k < slab->num_lines; ++k) {
            const char *from = slab->data + (k * set->stride + first) * bytes;
            char *to = lines + *number++ * bytes;
            fetch_ahead(set, slab, k, first, bytes, false);
            if (bytes == 8)
                for (int64_t g = 0; g < count; ++g)
                    memcpy(to + g * line_length * 8, from + g * 8, 8);
            else
                for (int64_t g = 0; g < count; ++g)
                    memcpy(to + g * line_length * 16, from + g * 16, 16);
        }
}

static void scatter_columns(const tess_planes *planes, const line_set *set,
                            int64_t first, int64_t count, const char *lines,
                            int64_t line_length)
{
    const int64_t bytes = planes->value_bytes;
    const int32_t *number = set->line;
    for (const slab_lines *slab = set->slab; slab < set->slab + set->num_slabs; ++slab)
        for (int64_t k = 0; k < slab->num_lines; ++k) {
            char *to = slab->data + (k * set->stride + first) * bytes;
            const char *from = lines + *number++ * bytes;
            fetch_ahead(set, slab, k, first, bytes, true);
            if (bytes == 8)
                for (int64_t g = 0; g < count; ++g)
                    memcpy(to + g * 8, from + g * line_length * 8, 8);
            else
                for (int64_t g = 0; g < count; ++g)
                    memcpy(to + g * 16, from + g * line_length * 16, 16);
        }
}

static screen_row screen_row_of(const tess_planes *planes, int64_t row, double w_lambda)
{
    const tess_planes_opts *opts = &planes->opts;
    const double scale_m = opts->scale_m_rad > 0 ? opts->scale_m_rad : opts->scale_rad;
    const double m = opts->m0 + (double)(row - opts->ny / 2) * scale_m;
    return (screen_row){.nx = planes->opts.nx,
                        .nu = planes->opts.nu,
                        .scale_rad = planes->opts.scale_rad,
                        .l0 = planes->opts.l0,
                        .m2 = m * m,
                        .nm1_center = planes->opts.nm1_center,
                        .w_lambda = w_lambda,
                        .do_w = planes->opts.do_w};
}

/* Makes the screens of a group of rows. */
static void make_screens(const tess_planes *planes, const column_work *work,
                         const row_group *rows, double w_lambda)
{
    char *screens = thread_screens(work);
    for (int64_t g = 0; planes->opts.do_w && g < rows->count; ++g) {
        const screen_row row =
            screen_row_of(planes, planes->row_first + rows->first + g, w_lambda);
        planes->cpu->screen->make[planes->opts.is_double](&row,
                                                          screens + g * work->screen);
    }
}

/* Transforms the rows of a group, or their mirror rows, into the image or out of it.
 * Screens are in the order of the rows, which is the reverse order of the mirror rows.
 * The line behind the lines of the group holds the image's side of the transform. */
static void transform_group(tess_planes *planes, const line_set *set,
                            const tess_plane_job *job, const column_work *work,
                            const row_group *rows, bool mirrored)
{
    const int precision = planes->opts.is_double;
    const int64_t bytes = planes->value_bytes;
    const int64_t first = mirrored ? rows->mirror : rows->first, count = rows->count;
    char *lines = thread_lines(planes, work);
    const char *screens = thread_screens(work);
    char *image_line = lines + work->group * work->line_length * bytes;
    if (planes->opts.forward)
        gather_columns(planes, set, first, count, lines, work->line_length);
    for (int64_t g = 0; g < count; ++g) {
        const screen_row row =
            screen_row_of(planes, planes->row_first + first + g, job->w_lambda);
        const char *screen = screens + (mirrored ? count - 1 - g : g) * work->screen;
        char *line = lines + g * work->line_length * bytes;
        char *image = (char *)planes->cpu->image[job->image] +
                      (first + g) * planes->opts.nx * bytes / 2;
        if (planes->opts.forward) {
            tess_fft_execute(planes->cpu->fft_u, line, image_line);
            planes->cpu->screen->accumulate[precision](&row, image_line, screen, image);
        } else {
            planes->cpu->screen->spread[precision](&row, image, screen, image_line);
            tess_fft_execute(planes->cpu->fft_u, image_line, line);
        }
    }
    if (!planes->opts.forward)
        scatter_columns(planes, set, first, count, lines, work->line_length);
}

/* Transforms all columns of this rank's rows. */
static tess_status transform_columns(tess_planes *planes, const line_set *set,
                                     const tess_plane_job *job)
{
    tess_status status = TESS_OK;
    column_work work = {0};
    TESS_TRY(column_work_create(planes, &work));
#pragma omp parallel for num_threads(planes->opts.threads) schedule(dynamic, 1)
    for (int64_t k = 0; k < planes->cpu->num_row_groups; ++k) {
        const row_group *rows = &planes->cpu->group_of_rows[k];
        make_screens(planes, &work, rows, job->w_lambda);
        transform_group(planes, set, job, &work, rows, false);
        if (rows->mirror >= 0) transform_group(planes, set, job, &work, rows, true);
    }
cleanup:
    return status;
}

/* ---- a batch of planes, one per group ---- */

/* Lists the lines of this rank's slab that pieces cover, without giving them memory.
 * Local. */
static tess_status list_lines(const tess_planes *planes, const piece_set *pieces,
                              line_set *own)
{
    tess_status status = TESS_OK;
    TESS_TRY(lines_create(1, own));
    TESS_TRY(pieces_lines(planes, pieces, &own->line, &own->num_lines));
    own->slab[0].num_lines = own->num_lines;
cleanup:
    return status;
}

static tess_status cpu_accumulate(tess_planes *planes, const tess_plane_job *job,
                                  tess_planes_times *times)
{
    tess_status status = TESS_OK;
    const tess_plane_job *mine = &job[planes->group_index];
    const int64_t ny = planes->opts.ny;
    piece_set pieces = {0};
    line_set own = {0}, all = {0};
    double mark = tess_time_now();
    TESS_TRY(pieces_exchange(planes, job, true, &pieces));
    if (mine->active) status = list_lines(planes, &pieces, &own);
    TESS_TRY(planes_agree(planes, status));
    if (mine->active) status = place_lines(planes, ny, padded_rows(planes, ny), &own);
    TESS_TRY(planes_agree(planes, status));
    planes_exchanged(times, &mark);
    if (mine->active) status = transform_lines(planes, &pieces, &own, times);
    TESS_TRY(planes_agree(planes, status));
    pieces_free(&pieces);
    tess_outbox_drop(planes->pieces_box);
    planes_transformed(times, &mark);
    if (mine->active) status = transpose_to_rows(planes, &own, &all);
    TESS_TRY(planes_agree(planes, status));
    planes_exchanged(times, &mark);
    if (mine->active) status = transform_columns(planes, &all, mine);
    TESS_TRY(planes_agree(planes, status));
    planes_transformed(times, &mark);
cleanup:
    pieces_free(&pieces);
    lines_free(&own);
    lines_free(&all);
    return status;
}

/* Prediction: lists the lines of all slabs, with memory for this rank's rows of them.
 * They count as one slab, because lines are sent on without gaps. Collective in the
 * group. */
static tess_status make_all_lines(tess_planes *planes, const line_set *own,
                                  line_set *all)
{
    tess_status status = TESS_OK;
    const int64_t rows = planes->row_end - planes->row_first;
    const bool whole = planes->opts.fft_ranks == 1;
    void *room = NULL;
    TESS_TRY(gather_line_numbers(planes, own, all));
    if (whole) return place_lines(planes, rows, padded_rows(planes, rows), all);
    const int64_t bytes = all->num_lines * rows * planes->value_bytes;
    planes_note_plane(planes, bytes);
    TESS_TRY(tess_outbox_room(planes->lines_box, bytes, &room));
    all->row_count = all->stride = rows;
    for (int f = 0; f < all->num_slabs; ++f) {
        all->slab[f].data = room;
        room = all->slab[f].data + all->slab[f].num_lines * rows * planes->value_bytes;
    }
cleanup:
    return status;
}

static tess_status cpu_extract(tess_planes *planes, const tess_plane_job *job,
                               tess_planes_times *times)
{
    tess_status status = TESS_OK;
    const tess_plane_job *mine = &job[planes->group_index];
    const bool whole = planes->opts.fft_ranks == 1;
    piece_set pieces = {0};
    line_set own = {0}, all = {0};
    double mark = tess_time_now();
    TESS_TRY(pieces_exchange(planes, job, false, &pieces));
    if (mine->active) status = list_lines(planes, &pieces, &own);
    TESS_TRY(planes_agree(planes, status));
    if (mine->active) status = make_all_lines(planes, &own, &all);
    TESS_TRY(planes_agree(planes, status));
    planes_exchanged(times, &mark);
    if (mine->active) status = transform_columns(planes, &all, mine);
    TESS_TRY(planes_agree(planes, status));
    planes_transformed(times, &mark);
    if (mine->active && !whole) status = transpose_to_lines(planes, &all, &own);
    TESS_TRY(planes_agree(planes, status));
    planes_exchanged(times, &mark);
    if (mine->active)
        status = untransform_lines(planes, &pieces, whole ? &all : &own, times);
    TESS_TRY(planes_agree(planes, status));
    planes_transformed(times, &mark);
    TESS_TRY(pieces_return(planes, job, &pieces));
    planes_exchanged(times, &mark);
cleanup:
    pieces_free(&pieces);
    lines_free(&own);
    lines_free(&all);
    return status;
}

static tess_status cpu_reduce(tess_planes *planes, int image, int64_t *row_first,
                              int64_t *num_rows, void **rows)
{
    tess_status status = TESS_OK;
    void **own = &planes->cpu->image[image], *copy = NULL;
    const bool give_away = planes->num_groups == 1;
    if (planes->opts.reuse && give_away) {
        copy = tess_alloc(image_bytes(planes), 1);
        TESS_TRY(planes_agree(planes, copy ? TESS_OK : TESS_ERR_ALLOC));
        memcpy(copy, *own, (size_t)image_bytes(planes));
    }
    TESS_TRY(planes_reduce_rows(planes, copy ? copy : *own, row_first, num_rows, rows));
    copy = NULL;
    if (planes->opts.reuse) return TESS_OK;
    if (!give_away) tess_free(*own);
    *own = NULL;
cleanup:
    tess_free(copy);
    return status;
}

/* ---- exchange of pieces ---- */

static tess_status cpu_pack(const tess_planes *planes, const plane_part *part,
                            int64_t count, int64_t num_values, void *host)
{
    (void)num_values;
    const int64_t bytes = planes->value_bytes;
#pragma omp parallel for num_threads(planes->opts.threads) schedule(static)
    for (int64_t k = 0; k < count; ++k) {
        const tess_piece *piece = &part[k].piece;
        const int64_t row = piece->num_cells * bytes;
        char *to = (char *)host + part[k].offset * bytes;
        for (int64_t line = 0; line < piece->num_lines; ++line)
            memcpy(to + line * row,
                   (const char *)piece->data + line * piece->stride * bytes,
                   (size_t)row);
    }
    return TESS_OK;
}

static tess_status cpu_unpack(const tess_planes *planes, const plane_part *part,
                              int64_t count, const rank_values *values)
{
    const int64_t bytes = planes->value_bytes;
#pragma omp parallel for num_threads(planes->opts.threads) schedule(static)
    for (int64_t k = 0; k < count; ++k) {
        const tess_piece *piece = &part[k].piece;
        const int64_t row = piece->num_cells * bytes;
        const char *from = (const char *)values->part[part[k].rank] +
                           (part[k].offset - values->first[part[k].rank]) * bytes;
        for (int64_t line = 0; line < piece->num_lines; ++line) {
            char *to = (char *)piece->data + line * piece->stride * bytes;
            memcpy(to, from + line * row, (size_t)row);
            clear_line_end(planes, piece, to);
        }
    }
    return TESS_OK;
}

const tess_planes_ops tess_planes_ops_cpu = {.create = cpu_create,
                                             .destroy = cpu_destroy,
                                             .image = cpu_image,
                                             .clear = cpu_clear,
                                             .accumulate = cpu_accumulate,
                                             .extract = cpu_extract,
                                             .reduce = cpu_reduce,
                                             .pack = cpu_pack,
                                             .unpack = cpu_unpack};
