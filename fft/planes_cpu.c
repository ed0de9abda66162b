/* The two passes of a plane's transform on the cpu backend. tess_planes.h says which
 * rank holds what. */
#include <string.h>

#include "planes_cpu.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_omp.h"
#include "tess_real.h"

/* The cells of a line are prefetched from the piece that is this many pieces ahead,
 * because they are a few cache lines that lie alone in memory. */
enum { PIECES_AHEAD = 8 };

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
    const int64_t group = PLANES_CPU_GROUP / planes->value_bytes;
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
    if (opts->pixels) planes->cpu->image[0] = opts->pixels;
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

static void cpu_rest(tess_planes *planes)
{
    for (int k = 0; k < NUM_WORK_SLOTS; ++k) {
        tess_free(planes->cpu->work[k]);
        planes->cpu->work[k] = NULL;
        planes->cpu->work_bytes[k] = 0;
    }
}

static void cpu_destroy(tess_planes *planes)
{
    struct planes_cpu *cpu = planes->cpu;
    if (!cpu) return;
    for (int k = 0; cpu->image && k < planes->opts.num_images; ++k)
        if (cpu->image[k] != planes->opts.pixels) tess_free(cpu->image[k]);
    tess_free(cpu->image);
    tess_fft_destroy(cpu->fft_u);
    tess_fft_destroy(cpu->fft_v);
    tess_free(cpu->group_of_rows);
    cpu_rest(planes);
    tess_free(cpu);
}

static void *cpu_image(tess_planes *planes, int image)
{
    return planes->cpu->image[image];
}

/* ---- lines of a slab ---- */

/* Returns the bytes of a work line along v, padded to keep lines aligned to 64 bytes.
 */
static int64_t work_line_bytes(const tess_planes *planes)
{
    return (planes->opts.nv + 7) / 8 * 8 * planes->value_bytes;
}

static tess_status allocate_work_lines(tess_planes *planes, char **work)
{
    tess_status status = TESS_OK;
    *work = planes_cpu_work(planes, WORK_LINE,
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
    pieces_near(pieces, line, &begin, &end);
    line %= planes->opts.nu;
    memset(out, 0, (size_t)(planes->opts.nv * bytes));
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
    line %= planes->opts.nu;
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

/* Does the first pass of imaging: sums pieces to lines, transforms these along v, and
 * keeps the image rows. */
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

/* ---- a batch of planes ---- */

/* Lists the lines of this rank's slab that pieces cover, without giving them memory.
 * Local. */
static tess_status list_lines(const tess_planes *planes, const piece_set *pieces,
                              line_set *own)
{
    tess_status status = TESS_OK;
    TESS_TRY(planes_cpu_lines_create(planes, 1, own));
    TESS_TRY(pieces_lines(planes, pieces, &own->line, &own->num_lines));
    own->slab[0].num_lines = own->num_lines;
    for (int64_t k = 0; k < own->num_lines; ++k)
        ++own->counts[own->line[k] / planes->opts.nu];
cleanup:
    return status;
}

/* Adds the planes of this rank's group to the images. The ranks of the group agree on
 * `status` before they exchange lines. Collective in the group. */
static tess_status accumulate_planes(tess_planes *planes, const tess_plane_job *job,
                                     tess_status status, piece_set *pieces,
                                     tess_planes_times *times, double *mark)
{
    const bool whole = planes->opts.fft_ranks == 1;
    line_set own = {0}, all = {0};
    if (status == TESS_OK) status = list_lines(planes, pieces, &own);
    if (whole)
        TESS_TRY(status);
    else
        TESS_TRY(planes_cpu_line_numbers(planes, status, &own, &all));
    status = planes_cpu_place_lines(planes, planes->opts.ny,
                                    planes_cpu_most_lines(&all), &own);
    planes_exchanged(times, mark);
    if (status == TESS_OK) status = transform_lines(planes, pieces, &own, times);
    pieces_free(pieces);
    tess_outbox_drop(planes->pieces_box);
    planes_transformed(times, mark);
    TESS_TRY(planes_cpu_to_rows(planes, status, &own, &all));
    planes_exchanged(times, mark);
    TESS_TRY(planes_cpu_columns(planes, &all, job));
    planes_transformed(times, mark);
cleanup:
    planes_cpu_lines_free(&own);
    planes_cpu_lines_free(&all);
    return status;
}

static tess_status cpu_accumulate(tess_planes *planes, const tess_plane_job *job,
                                  tess_status *own, tess_planes_times *times)
{
    tess_status status = TESS_OK;
    piece_set pieces = {0};
    double mark = tess_time_now();
    TESS_TRY(pieces_exchange(planes, job, true, own, &pieces));
    if (job[planes->group_index].active)
        *own = accumulate_planes(planes, job, *own, &pieces, times, &mark);
cleanup:
    pieces_free(&pieces);
    return status;
}

/* Prediction: lists the lines of all slabs, with memory for this rank's rows of them.
 * They count as one slab, because lines are sent on without gaps. The ranks of the
 * group agree on `status`. Collective in the group. */
static tess_status make_all_lines(tess_planes *planes, tess_status status,
                                  line_set *own, line_set *all)
{
    const int64_t rows = planes->row_end - planes->row_first;
    const int slabs = planes->opts.fft_ranks;
    void *room = NULL;
    if (slabs == 1) {
        TESS_TRY(status);
        *all = *own;
        *own = (line_set){0};
        return planes_cpu_place_lines(planes, rows, all->num_lines, all);
    }
    TESS_TRY(planes_cpu_line_numbers(planes, status, own, all));
    const int64_t most_rows = (planes->opts.ny + slabs - 1) / slabs;
    planes_note_plane(planes,
                      all->num_lines * rows * planes->value_bytes / planes->batch);
    TESS_TRY(tess_outbox_same_room(
        planes->lines_box, all->num_lines * most_rows * planes->value_bytes, &room));
    all->row_count = all->stride = rows;
    for (int f = 0; f < all->num_slabs; ++f) {
        all->slab[f].data = room;
        room = all->slab[f].data + all->slab[f].num_lines * rows * planes->value_bytes;
    }
cleanup:
    return status;
}

/* Fills the pieces of the planes of this rank's group. The ranks of the group agree on
 * `status` before they exchange lines. Collective in the group. */
static tess_status extract_planes(tess_planes *planes, const tess_plane_job *job,
                                  tess_status status, const piece_set *pieces,
                                  tess_planes_times *times, double *mark)
{
    const bool whole = planes->opts.fft_ranks == 1;
    line_set own = {0}, all = {0};
    if (status == TESS_OK) status = list_lines(planes, pieces, &own);
    TESS_TRY(make_all_lines(planes, status, &own, &all));
    planes_exchanged(times, mark);
    status = planes_cpu_columns(planes, &all, job);
    planes_transformed(times, mark);
    if (!whole) status = planes_cpu_to_lines(planes, status, &all, &own);
    planes_exchanged(times, mark);
    TESS_TRY(status);
    TESS_TRY(untransform_lines(planes, pieces, whole ? &all : &own, times));
    planes_transformed(times, mark);
cleanup:
    planes_cpu_lines_free(&own);
    planes_cpu_lines_free(&all);
    return status;
}

static tess_status cpu_extract(tess_planes *planes, const tess_plane_job *job,
                               tess_status *own, tess_planes_times *times)
{
    tess_status status = TESS_OK;
    piece_set pieces = {0};
    double mark = tess_time_now();
    TESS_TRY(pieces_exchange(planes, job, false, own, &pieces));
    if (job[planes->group_index].active)
        *own = extract_planes(planes, job, *own, &pieces, times, &mark);
    TESS_TRY(pieces_return(planes, job, own, &pieces));
    planes_exchanged(times, &mark);
cleanup:
    pieces_free(&pieces);
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

const tess_planes_ops tess_planes_ops_cpu = {.batched = true,
                                             .create = cpu_create,
                                             .destroy = cpu_destroy,
                                             .image = cpu_image,
                                             .clear = cpu_clear,
                                             .accumulate = cpu_accumulate,
                                             .extract = cpu_extract,
                                             .reduce = cpu_reduce,
                                             .rest = cpu_rest,
                                             .pack = cpu_pack,
                                             .unpack = cpu_unpack};
