/* Reduces row slabs on many ranks to one small image on rank 0. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "preview.h"
#include "tess_mem.h"
#include "tess_select.h"

typedef struct cell {
    double sum;
    float peak;  /* the value of largest size, with its sign */
    float count; /* finite pixels */
    float one;   /* any of them, if has_one */
    int32_t has_one;
} cell;

/* What a rank sends: this, then num_rows rows of cells. */
typedef struct slab {
    int64_t row_first, num_rows;
} slab;

/* Some columns of a part of the rows of one line of cells. Straight loops over them
 * compile to vector instructions, which additions to cells would not. */
enum { STRIP = 512 };

typedef struct strip {
    double sum[STRIP];
    float low[STRIP], high[STRIP];
    float one[STRIP]; /* pixels of the first row */
    int bad[STRIP];   /* pixels that are not finite */
    int rows;
} strip;

/* Pixels that are not finite count for nothing. */
static void add_finite(const float *restrict row, int64_t count, strip *restrict into)
{
    for (int64_t i = 0; i < count; ++i) {
        const bool bad = !isfinite(row[i]);
        const float value = bad ? 0.0f : row[i];
        into->bad[i] += bad;
        into->sum[i] += (double)value;
        into->low[i] = value < into->low[i] ? value : into->low[i];
        into->high[i] = value > into->high[i] ? value : into->high[i];
    }
}

static void add_to_strip(const float *restrict row, int64_t count, strip *restrict into)
{
    int bad = 0;
    for (int64_t i = 0; i < count; ++i)
        bad |= !(fabsf(row[i]) <= FLT_MAX);
    ++into->rows;
    if (bad) {
        add_finite(row, count, into);
        return;
    }
    for (int64_t i = 0; i < count; ++i)
        into->sum[i] += (double)row[i];
    for (int64_t i = 0; i < count; ++i)
        into->low[i] = row[i] < into->low[i] ? row[i] : into->low[i];
    for (int64_t i = 0; i < count; ++i)
        into->high[i] = row[i] > into->high[i] ? row[i] : into->high[i];
}

static void add_strip(const strip *from, int64_t first, int64_t count, int64_t factor,
                      cell *line)
{
    int64_t filled = first % factor;
    cell *into = &line[first / factor];
    for (int64_t i = 0; i < count; ++i, ++filled) {
        if (filled == factor) {
            filled = 0;
            ++into;
        }
        const float peak = -from->low[i] > from->high[i] ? from->low[i] : from->high[i];
        if (!into->has_one && isfinite(from->one[i])) {
            into->one = from->one[i];
            into->has_one = 1;
        }
        into->sum += from->sum[i];
        into->count += (float)(from->rows - from->bad[i]);
        if (fabsf(peak) > fabsf(into->peak)) into->peak = peak;
    }
}

/* Adds rows, all of which belong to one line of cells. */
static void add_line(const tess_fits_rows *rows, int64_t nx, int64_t factor, cell *line)
{
    strip columns;
    float single[STRIP];
    for (int64_t first = 0; first < nx; first += STRIP) {
        const int64_t count = nx - first < STRIP ? nx - first : STRIP;
        memset(&columns, 0, sizeof columns);
        for (int64_t j = 0; j < rows->num_rows; ++j) {
            const int64_t at = j * nx + first;
            const float *row = single;
            if (rows->is_double)
                for (int64_t i = 0; i < count; ++i)
                    single[i] = (float)((const double *)rows->pixel)[at + i];
            else
                row = (const float *)rows->pixel + at;
            if (j == 0) memcpy(columns.one, row, (size_t)count * sizeof *row);
            add_to_strip(row, count, &columns);
        }
        add_strip(&columns, first, count, factor, line);
    }
}

/* Adds all rows to lines of `width` cells, of which the first row of all is in the
 * first. */
static void add_rows(const tess_fits_rows *rows, int64_t nx, int64_t factor,
                     int64_t width, cell *cells)
{
    const int64_t row_bytes =
        nx * (int64_t)(rows->is_double ? sizeof(double) : sizeof(float));
    const int64_t end = rows->row_first + rows->num_rows;
    tess_fits_rows part = *rows;
    for (; part.row_first < end; part.row_first += part.num_rows) {
        const int64_t line = part.row_first / factor;
        const int64_t line_end = (line + 1) * factor;
        part.num_rows = (line_end < end ? line_end : end) - part.row_first;
        part.pixel =
            (const char *)rows->pixel + (part.row_first - rows->row_first) * row_bytes;
        add_line(&part, nx, factor, cells + (line - rows->row_first / factor) * width);
    }
}

static void add_cells(const cell *from, int64_t count, cell *into)
{
    for (int64_t k = 0; k < count; ++k) {
        if (!into[k].has_one) {
            into[k].one = from[k].one;
            into[k].has_one = from[k].has_one;
        }
        into[k].sum += from[k].sum;
        into[k].count += from[k].count;
        if (fabs((double)from[k].peak) > fabs((double)into[k].peak))
            into[k].peak = from[k].peak;
    }
}

/* Returns the median of |values - centre|. Overwrites and reorders `values`. */
static double median_deviation(double *values, int64_t count, double centre)
{
    for (int64_t k = 0; k < count; ++k)
        values[k] = fabs(values[k] - centre);
    return count > 0 ? tess_select_smallest(values, count, count / 2) : 0;
}

/* Turns cells into values: the mean, or the peak if it stands out among all peaks. */
static void choose_values(const cell *cells, int64_t count, int64_t factor,
                          double *scratch, float *value)
{
    const double stands_out = 3;
    const int64_t sample =
        count > 200000 ? count / 100000 : 1; /* enough for a median */
    double typical = INFINITY;
    if (factor > 2) {
        int64_t used = 0;
        for (int64_t k = 0; k < count; k += sample)
            if (cells[k].count > 0) scratch[used++] = (double)cells[k].peak;
        typical = median_deviation(scratch, used, 0);
    }
    for (int64_t k = 0; k < count; ++k) {
        const cell *from = &cells[k];
        if (!(from->count > 0))
            value[k] = NAN;
        else if (fabs((double)from->peak) > stands_out * typical)
            value[k] = from->peak;
        else
            value[k] = (float)(from->sum / (double)from->count);
    }
}

static const double SIGMA_PER_MAD = 1.4826; /* of a normal distribution */

/* Finds what captions say. They are about the image itself; means of blocks have less
 * noise. */
static void measure_pixels(const cell *cells, int64_t count, double *scratch,
                           preview_image *image)
{
    int64_t used = 0;
    bool any = false;
    for (int64_t k = 0; k < count; ++k) {
        any = any || cells[k].count > 0;
        if (cells[k].has_one) scratch[used++] = (double)cells[k].one;
        if (fabs((double)cells[k].peak) > fabs(image->peak))
            image->peak = (double)cells[k].peak;
    }
    if (!any) image->peak = (double)NAN;
    if (used == 0) return;
    const double median = tess_select_smallest(scratch, used, used / 2);
    image->rms = SIGMA_PER_MAD * median_deviation(scratch, used, median);
}

static void measure(preview_image *image, int64_t count, double *scratch)
{
    int64_t used = 0;
    float low = INFINITY, high = -INFINITY;
    for (int64_t k = 0; k < count; ++k) {
        const float value = image->value[k];
        if (!isfinite(value)) continue;
        low = value < low ? value : low;
        high = value > high ? value : high;
        scratch[used++] = (double)value;
    }
    if (used == 0) return;
    image->min = (double)low;
    image->max = (double)high;
    const double median = tess_select_smallest(scratch, used, used / 2);
    image->low = tess_select_smallest(scratch, used / 2 + 1, used / 1000);
    image->sigma = SIGMA_PER_MAD * median_deviation(scratch, used, median);
}

/* Rank 0 sums the slabs of all ranks. */
static tess_status merge(const char *data, int64_t bytes, preview_image *image)
{
    tess_status status = TESS_OK;
    const int64_t width = image->width, count = width * image->height;
    cell *cells = tess_alloc_zero(count, sizeof *cells);
    double *scratch = tess_alloc(count, sizeof *scratch);
    image->value = tess_alloc(count, sizeof *image->value);
    if (!cells || !scratch || !image->value)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for a preview");
    for (int64_t at = 0; at + (int64_t)sizeof(slab) <= bytes;) {
        slab part;
        memcpy(&part, data + at, sizeof part);
        at += (int64_t)sizeof part;
        add_cells((const cell *)(const void *)(data + at), part.num_rows * width,
                  cells + part.row_first * width);
        at += part.num_rows * width * (int64_t)sizeof(cell);
    }
    choose_values(cells, count, image->factor, scratch, image->value);
    measure(image, count, scratch);
    measure_pixels(cells, count, scratch, image);
cleanup:
    tess_free(cells);
    tess_free(scratch);
    return status;
}

/* Packs what this rank sends: its slab, then the cells of its rows. Local. */
static tess_status reduce_rows(const tess_image_meta *meta, const tess_fits_rows *rows,
                               const preview_image *image, char **data, int64_t *bytes)
{
    tess_status status = TESS_OK;
    const int64_t factor = image->factor, width = image->width;
    slab part = {0, 0};
    if (rows->num_rows > 0) {
        part.row_first = rows->row_first / factor;
        part.num_rows =
            (rows->row_first + rows->num_rows - 1) / factor + 1 - part.row_first;
    }
    *bytes = (int64_t)sizeof part + part.num_rows * width * (int64_t)sizeof(cell);
    *data = tess_alloc_zero(*bytes, 1);
    if (!*data) TESS_FAIL(TESS_ERR_ALLOC, "no memory for a preview");
    memcpy(*data, &part, sizeof part);
    add_rows(rows, meta->nx, factor, width, (cell *)(void *)(*data + sizeof part));
cleanup:
    return status;
}

/* Gives what all ranks send to rank 0, which frees it. A single rank has nothing to
 * send: it keeps `*mine`, which becomes NULL. Collective. */
static tess_status gather(tess_comm *comm, char **mine, int64_t bytes, void **all,
                          int64_t *all_bytes)
{
    tess_status status = TESS_OK;
    const int ranks = tess_comm_size(comm);
    int64_t *counts = NULL;
    if (ranks == 1) {
        *all = *mine;
        *all_bytes = bytes;
        *mine = NULL;
        return TESS_OK;
    }
    counts = tess_alloc_zero(ranks, sizeof *counts);
    if (!counts)
        status = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                   "no memory for a preview");
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_gatherv(comm, *mine, bytes, 0, all, counts));
    *all_bytes = 0;
    for (int k = 0; k < ranks; ++k)
        *all_bytes += counts[k];
cleanup:
    tess_free(counts);
    return status;
}

tess_status tess_preview_reduce(tess_comm *comm, const tess_image_meta *meta,
                                const tess_fits_rows *rows, int max_side,
                                preview_image *image)
{
    tess_status status = TESS_OK;
    const int64_t longest = meta->nx > meta->ny ? meta->nx : meta->ny;
    const int64_t factor = (longest + max_side - 1) / max_side;
    preview_image made = {.width = (int)((meta->nx + factor - 1) / factor),
                          .height = (int)((meta->ny + factor - 1) / factor),
                          .factor = factor};
    char *mine = NULL;
    void *all = NULL;
    int64_t bytes;
    status = reduce_rows(meta, rows, &made, &mine, &bytes);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(gather(comm, &mine, bytes, &all, &bytes));
    if (tess_comm_rank(comm) == 0) status = merge(all, bytes, &made);
    TESS_TRY(tess_comm_agree(comm, status));
    *image = made;
    made.value = NULL;
cleanup:
    tess_free(made.value);
    tess_free(mine);
    tess_free(all);
    return status;
}
