/* What the plane transforms of all backends have in common: groups of ranks, slabs, and
 * sums over groups. */
#include "tess_planes.h"

#include <string.h>

#include "planes_object.h"
#include "tess_log.h"
#include "tess_mem.h"

int64_t planes_share(int64_t total, int64_t part, int64_t parts)
{
    return total * part / parts;
}

tess_status planes_agree(const tess_planes *planes, tess_status status)
{
    return tess_comm_size(planes->comm) > 1 ? tess_comm_agree(planes->comm, status)
                                            : status;
}

static double lap(tess_planes_times *times, const char *name, double *mark)
{
    const double begin = *mark;
    *mark = tess_time_now();
    tess_trace_add(times->trace, TESS_LANE_STAGES, name, begin, *mark);
    return *mark - begin;
}

void planes_exchanged(tess_planes_times *times, double *mark)
{
    times->exchange_s += lap(times, "reduce", mark);
}

void planes_transformed(tess_planes_times *times, double *mark)
{
    times->fft_s += lap(times, "fft", mark);
}

/* A rank exchanges several planes at a time as long as their lines have no more bytes
 * than this, and no more planes of a group than this. */
enum { BATCH_BYTES = 1 << 20, MOST_BATCH = 16 };

/* The number of planes of a group that are exchanged together. */
static int choose_batch(const tess_planes *planes)
{
    const tess_planes_opts *opts = &planes->opts;
    const double lines = (double)opts->nu * (double)opts->ny / opts->fft_ranks;
    const double most = BATCH_BYTES / (lines * (double)planes->value_bytes);
    if (!planes->ops->batched || tess_comm_size(planes->comm) == 1 || most < 2)
        return 1;
    return most < MOST_BATCH ? (int)most : MOST_BATCH;
}

int tess_planes_jobs(const tess_planes *planes)
{
    return planes->batch * planes->num_groups;
}

/* A word has a bit for each of this number of lines. The bit of the sign is left out,
 * so that a sum of words is not negative. */
enum { WORD_LINES = 63 };

static int64_t line_words(const tess_planes *planes)
{
    return planes->batch * planes->opts.nu / WORD_LINES + 1;
}

/* Lists the lines whose bits are set, and counts[K][F] those of each plane and slab. */
static void read_bits(const tess_planes *planes, const int64_t *bits, int32_t *lines,
                      int64_t *counts)
{
    const int64_t nu = planes->opts.nu;
    int64_t count = 0;
    for (int p = 0; p < planes->batch; ++p)
        for (int f = 0; f < planes->opts.fft_ranks; ++f) {
            const int64_t before = count;
            const int64_t end = p * nu + planes->slab_line[f + 1];
            for (int64_t k = p * nu + planes->slab_line[f]; k < end; ++k)
                if (bits[k / WORD_LINES] >> k % WORD_LINES & 1)
                    lines[count++] = (int32_t)k;
            *counts++ = count - before;
        }
}

tess_status planes_gather_lines(const tess_planes *planes, tess_status status,
                                const int32_t *own, int64_t num_own, int32_t **lines,
                                int64_t *counts)
{
    const int64_t words = line_words(planes);
    int64_t *bits = planes->line_bits;
    int32_t *all = tess_alloc(planes->batch * planes->opts.nu, sizeof *all);
    if (status == TESS_OK && !all) status = TESS_ERR_ALLOC;
    memset(bits, 0, (size_t)words * sizeof *bits);
    for (int64_t k = 0; k < num_own; ++k)
        bits[own[k] / WORD_LINES] |= (int64_t)1 << own[k] % WORD_LINES;
    /* a line is in one slab, so the sum has the bits of all slabs */
    TESS_TRY(tess_comm_agree_on(planes->group, status, bits, words, TESS_SUM));
    read_bits(planes, bits, all, counts);
    *lines = all;
    all = NULL;
cleanup:
    tess_free(all);
    return status;
}

static tess_status make_groups(tess_planes *planes)
{
    tess_status status = TESS_OK;
    const int rank = tess_comm_rank(planes->comm), slabs = planes->opts.fft_ranks;
    planes->num_groups = tess_comm_size(planes->comm) / slabs;
    planes->group_index = rank / slabs;
    planes->slab = rank % slabs;
    TESS_TRY(tess_comm_split(planes->comm, planes->group_index, rank, &planes->group));
    TESS_TRY(tess_comm_split(planes->comm, planes->slab, rank, &planes->column));
    TESS_TRY(tess_outbox_create(planes->comm, &planes->pieces_box));
    TESS_TRY(tess_outbox_create(planes->group, &planes->lines_box));
    planes->sums = planes->opts.sum_over ? planes->opts.sum_over : planes->column;
    planes->slab_line = tess_alloc(slabs + 1, sizeof *planes->slab_line);
    planes->batch = choose_batch(planes);
    planes->line_bits = tess_alloc(line_words(planes) + 1, sizeof *planes->line_bits);
    if (!planes->slab_line || !planes->line_bits) TESS_FAIL(TESS_ERR_ALLOC, "slabs");
    tess_planes_set_slabs(planes, planes->opts.slab_line);
    planes->row_first = planes_share(planes->opts.ny, planes->slab, slabs);
    planes->row_end = planes_share(planes->opts.ny, planes->slab + 1, slabs);
cleanup:
    return status;
}

void tess_planes_set_slabs(tess_planes *planes, const int64_t *slab_line)
{
    memcpy(planes->slab_line, slab_line,
           (size_t)(planes->opts.fft_ranks + 1) * sizeof *planes->slab_line);
    planes->line_first = planes->slab_line[planes->slab];
    planes->line_end = planes->slab_line[planes->slab + 1];
}

tess_status tess_planes_clear(tess_planes *planes)
{
    /* without memory since tess_planes_drop() */
    return planes->cpu ? planes->ops->clear(planes) : planes->ops->create(planes);
}

void tess_planes_drop(tess_planes *planes)
{
    planes->ops->destroy(planes);
    planes->cpu = NULL; /* of any backend: they are a union */
    tess_planes_rest(planes, false);
}

tess_status tess_planes_create(tess_comm *comm, const tess_planes_ops *ops,
                               const tess_planes_opts *opts, tess_planes **planes_out)
{
    tess_status status = TESS_OK;
    tess_planes *planes = tess_alloc_zero(1, sizeof *planes);
    if (!planes) TESS_FAIL(TESS_ERR_ALLOC, "plane transform");
    planes->ops = ops;
    planes->opts = *opts;
    planes->comm = comm;
    planes->value_bytes = opts->is_double ? 16 : 8;
    if (opts->fft_ranks < 1 || tess_comm_size(comm) % opts->fft_ranks != 0)
        TESS_FAIL(TESS_ERR_USAGE, "%d ranks cannot form groups of %d for the FFT",
                  tess_comm_size(comm), opts->fft_ranks);
    status = make_groups(planes);
    if (status == TESS_OK) status = ops->create(planes);
    TESS_TRY(tess_comm_agree(comm, status));
    *planes_out = planes;
    planes = NULL;
cleanup:
    tess_planes_destroy(planes);
    return status;
}

void tess_planes_destroy(tess_planes *planes)
{
    if (!planes) return;
    planes->ops->destroy(planes);
    tess_outbox_free(planes->pieces_box);
    tess_outbox_free(planes->lines_box);
    tess_comm_free(planes->group);
    tess_comm_free(planes->column);
    tess_free(planes->slab_line);
    tess_free(planes->line_bits);
    tess_free(planes);
}

void tess_planes_rest(tess_planes *planes, bool briefly)
{
    void (*const rest)(tess_outbox *) = briefly ? tess_outbox_rest : tess_outbox_empty;
    rest(planes->pieces_box);
    rest(planes->lines_box);
    if (!briefly && planes->cpu && planes->ops->rest) planes->ops->rest(planes);
}

int tess_planes_groups(const tess_planes *planes)
{
    return planes->num_groups;
}

void tess_planes_rows(const tess_planes *planes, int64_t *row_first, int64_t *num_rows)
{
    *row_first = planes->row_first;
    *num_rows = planes->row_end - planes->row_first;
}

void *tess_planes_image(tess_planes *planes, int image)
{
    return planes->ops->image(planes, image);
}

tess_status tess_planes_place(tess_planes *planes, int image, void **rows)
{
    if (planes->ops->place) return planes->ops->place(planes, image, rows);
    *rows = planes->ops->image(planes, image);
    return TESS_OK;
}

tess_status tess_planes_fetch(tess_planes *planes, int image, void **rows, void **copy)
{
    tess_status status = TESS_OK;
    const int64_t pixels = (planes->row_end - planes->row_first) * planes->opts.nx;
    *copy = NULL;
    *rows = planes->ops->image(planes, image);
    if (!planes->ops->fetch) return TESS_OK;
    *rows = *copy = tess_alloc(pixels, (size_t)planes->value_bytes / 2);
    if (!*copy) TESS_FAIL(TESS_ERR_ALLOC, "images");
    TESS_TRY(planes->ops->fetch(planes, image, *copy));
cleanup:
    return status;
}

tess_status tess_planes_put_back(tess_planes *planes, int image, const void *rows)
{
    return planes->ops->put_back ? planes->ops->put_back(planes, image, rows) : TESS_OK;
}

void planes_note_plane(tess_planes *planes, int64_t bytes)
{
    if (bytes > planes->plane_held) planes->plane_held = bytes;
}

void planes_note_image(tess_planes *planes, int64_t bytes)
{
    if (bytes > planes->image_held) planes->image_held = bytes;
}

void tess_planes_held(const tess_planes *planes, int64_t *image_bytes,
                      int64_t *plane_bytes)
{
    *image_bytes = planes->image_held;
    *plane_bytes = planes->plane_held;
}

double tess_planes_work_bytes(const tess_planes_opts *opts)
{
    const double value = opts->is_double ? 16 : 8, f = opts->fft_ranks;
    const double lines = (double)opts->nu * (double)opts->ny * value;
    return lines / f * (f > 1 ? 3 : 1);
}

double tess_planes_bytes(const tess_planes_opts *opts)
{
    const double value = opts->is_double ? 16 : 8, f = opts->fft_ranks;
    const double image = (double)opts->nx * (double)opts->ny * value / 2;
    return opts->num_images * image / f + tess_planes_work_bytes(opts);
}

double tess_planes_device_bytes(const tess_planes_ops *ops,
                                const tess_planes_opts *opts)
{
    return ops->bytes ? ops->bytes(opts) : 0;
}

int64_t tess_planes_more_bytes(const tess_planes *planes)
{
    return planes->ops->more_bytes ? planes->ops->more_bytes(planes) : 0;
}

tess_status tess_planes_accumulate(tess_planes *planes, const tess_plane_job *job,
                                   tess_status *own, tess_planes_times *times)
{
    return planes->ops->accumulate(planes, job, own, times);
}

tess_status tess_planes_finish(tess_planes *planes)
{
    return planes->ops->finish ? planes->ops->finish(planes) : TESS_OK;
}

tess_status tess_planes_extract(tess_planes *planes, const tess_plane_job *job,
                                tess_status *own, tess_planes_times *times)
{
    return planes->ops->extract(planes, job, own, times);
}

tess_status tess_planes_reduce(tess_planes *planes, int image, tess_rows *rows)
{
    tess_status status = TESS_OK;
    const tess_planes_opts *opts = &planes->opts;
    tess_rows made =
        tess_rows_of(opts->nx, opts->ny, 0, 0, tess_pixel_of(opts->is_double));
    if (opts->place && planes->ops->keeps && planes->ops->keeps(planes)) {
        planes_sum_share(planes, tess_comm_rank(planes->sums), &made.row_first,
                         &made.num_rows);
        made.place = opts->place;
        TESS_TRY(planes->ops->reduce_there(planes, image, &made));
    } else {
        TESS_TRY(planes->ops->reduce(planes, image, &made.row_first, &made.num_rows,
                                     &made.value));
        status = tess_rows_move(&made, opts->place);
        TESS_TRY(tess_comm_agree(planes->sums, planes_agree(planes, status)));
    }
    *rows = made;
    made = (tess_rows){0};
cleanup:
    tess_rows_free(&made);
    return status;
}

/* Gathers this rank's slab from the rows that the ranks have of it. */
static tess_status gather_slab(const tess_planes *planes, const void *rows, void *slab)
{
    tess_status status = TESS_OK;
    const int ranks = tess_comm_size(planes->sums);
    const int64_t row_bytes = planes->opts.nx * planes->value_bytes / 2;
    int64_t first, count, *bytes = tess_alloc(ranks, sizeof *bytes);
    void *all = NULL;
    TESS_TRY(tess_comm_agree(planes->sums, bytes ? TESS_OK : TESS_ERR_ALLOC));
    planes_sum_share(planes, tess_comm_rank(planes->sums), &first, &count);
    if (ranks == 1) {
        memcpy(slab, rows, (size_t)(count * row_bytes));
        goto cleanup;
    }
    TESS_TRY(tess_comm_allgatherv(planes->sums, rows, count * row_bytes, &all, bytes));
    memcpy(slab, all, (size_t)((planes->row_end - planes->row_first) * row_bytes));
cleanup:
    tess_free(all);
    tess_free(bytes);
    return status;
}

/* Rows of a model from the host to the images of all ranks that have them. Collective.
 */
static tess_status scatter_here(tess_planes *planes, int image, const void *rows)
{
    tess_status status = TESS_OK;
    const int64_t pixels = (planes->row_end - planes->row_first) * planes->opts.nx;
    void *slab = NULL;
    if (!planes->ops->put_back)
        return gather_slab(planes, rows, planes->ops->image(planes, image));
    slab = tess_alloc(pixels, (size_t)planes->value_bytes / 2);
    TESS_TRY(tess_comm_agree(planes->sums, slab ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(gather_slab(planes, rows, slab));
    TESS_TRY(tess_comm_agree(planes->sums, planes->ops->put_back(planes, image, slab)));
cleanup:
    tess_free(slab);
    return status;
}

/* Rows as they are put onto planes, in host memory. Local. */
static tess_status bring_home(const tess_planes *planes, const tess_rows *rows,
                              double scale, tess_rows *home)
{
    tess_status status = TESS_OK;
    const tess_mixture scaled = {.weight = scale, .is_finite = true};
    tess_rows there = tess_rows_like(rows, tess_pixel_of(planes->opts.is_double));
    there.place = rows->place;
    TESS_TRY(tess_rows_alloc(&there));
    const tess_pixels from = tess_rows_pixels(rows), to = tess_rows_pixels(&there);
    TESS_TRY(rows->place->mix(&scaled, &from, &to));
    TESS_TRY(tess_rows_move(&there, NULL));
    *home = there;
    there = (tess_rows){0};
cleanup:
    tess_rows_free(&there);
    return status;
}

tess_status tess_planes_scatter(tess_planes *planes, int image, const tess_rows *rows,
                                double scale)
{
    tess_status status = TESS_OK;
    tess_rows home = {0};
    if (!rows->place) return scatter_here(planes, image, rows->value);
    if (planes->ops->put_rows && tess_comm_size(planes->sums) == 1)
        return planes_agree(planes, planes->ops->put_rows(planes, image, rows, scale));
    status = bring_home(planes, rows, scale, &home);
    TESS_TRY(tess_comm_agree(planes->sums, planes_agree(planes, status)));
    TESS_TRY(scatter_here(planes, image, home.value));
cleanup:
    tess_rows_free(&home);
    return status;
}

void planes_sum_share(const tess_planes *planes, int rank, int64_t *row_first,
                      int64_t *num_rows)
{
    const int ranks = tess_comm_size(planes->sums);
    const int64_t slab = planes->row_end - planes->row_first;
    const int64_t begin = planes_share(slab, rank, ranks);
    *row_first = planes->row_first + begin;
    *num_rows = planes_share(slab, rank + 1, ranks) - begin;
}

void tess_planes_final_rows(int64_t ny, int fft_ranks, int rank, int num_ranks,
                            int64_t *row_first, int64_t *num_rows)
{
    const int groups = num_ranks / fft_ranks, group = rank / fft_ranks;
    const int64_t first = planes_share(ny, rank % fft_ranks, fft_ranks);
    const int64_t slab = planes_share(ny, rank % fft_ranks + 1, fft_ranks) - first;
    *row_first = first + planes_share(slab, group, groups);
    *num_rows = first + planes_share(slab, group + 1, groups) - *row_first;
}

tess_status planes_reduce_rows(tess_planes *planes, void *image, int64_t *row_first,
                               int64_t *num_rows, void **rows)
{
    tess_status status = TESS_OK;
    const int ranks = tess_comm_size(planes->sums);
    const int64_t nx = planes->opts.nx;
    int64_t *counts = NULL, first, count;
    void *out = image;
    planes_sum_share(planes, tess_comm_rank(planes->sums), &first, &count);
    if (ranks > 1) {
        counts = tess_alloc(ranks, sizeof *counts);
        out = tess_alloc(count * nx, (size_t)planes->value_bytes / 2);
        TESS_TRY(
            tess_comm_agree(planes->sums, counts && out ? TESS_OK : TESS_ERR_ALLOC));
        for (int k = 0; k < ranks; ++k) {
            int64_t begin;
            planes_sum_share(planes, k, &begin, &counts[k]);
            counts[k] *= nx;
        }
        TESS_TRY(tess_comm_reduce_scatter(planes->sums, image, out, counts,
                                          planes->opts.is_double));
    }
    *row_first = first;
    *num_rows = count;
    *rows = out;
    out = NULL;
cleanup:
    tess_free(counts);
    if (ranks > 1) tess_free(out);
    return status;
}
