/* From row slabs on many ranks to one small image on rank 0. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "preview.h"
#include "tess_mem.h"

typedef struct cell {
    double sum;
    float peak;  /* the value of largest size, with its sign */
    float count; /* finite pixels */
} cell;

/* What a rank sends: this, then num_rows rows of cells. */
typedef struct slab {
    int64_t row_first, num_rows;
} slab;

static void add_value(cell *into, double value)
{
    if (!isfinite(value)) return;
    into->sum += value;
    into->count += 1;
    if (fabs(value) > fabs((double)into->peak)) into->peak = (float)value;
}

static void add_rows(const tess_image_meta *meta, bool is_double, int64_t row_first,
                     int64_t num_rows, const void *rows, int64_t factor, int64_t width,
                     cell *cells)
{
    const int64_t nx = meta->nx, first = row_first / factor;
    for (int64_t j = 0; j < num_rows; ++j) {
        cell *line = cells + ((row_first + j) / factor - first) * width;
        for (int64_t i = 0; i < nx; ++i)
            add_value(&line[i / factor],
                      is_double ? ((const double *)rows)[j * nx + i]
                                : (double)((const float *)rows)[j * nx + i]);
    }
}

static void add_cells(const cell *from, int64_t count, cell *into)
{
    for (int64_t k = 0; k < count; ++k) {
        into[k].sum += from[k].sum;
        into[k].count += from[k].count;
        if (fabs((double)from[k].peak) > fabs((double)into[k].peak))
            into[k].peak = from[k].peak;
    }
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Median of |values| about `centre`; overwrites and sorts `values`. */
static double median_deviation(float *values, int64_t count, double centre)
{
    for (int64_t k = 0; k < count; ++k)
        values[k] = (float)fabs((double)values[k] - centre);
    qsort(values, (size_t)count, sizeof *values, ascending);
    return count > 0 ? (double)values[count / 2] : 0;
}

/* Cells to values: the mean, or the peak where it stands out among all peaks. */
static void choose_values(const cell *cells, int64_t count, int64_t factor,
                          float *scratch, float *value)
{
    const double stands_out = 3;
    double typical = INFINITY;
    if (factor > 2) {
        int64_t used = 0;
        for (int64_t k = 0; k < count; ++k)
            if (cells[k].count > 0) scratch[used++] = cells[k].peak;
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

static void measure(preview_image *image, int64_t count, float *scratch)
{
    const double sigma_per_mad = 1.4826; /* of a normal distribution */
    int64_t used = 0;
    for (int64_t k = 0; k < count; ++k)
        if (isfinite(image->value[k])) scratch[used++] = image->value[k];
    if (used == 0) return;
    qsort(scratch, (size_t)used, sizeof *scratch, ascending);
    image->min = (double)scratch[0];
    image->max = (double)scratch[used - 1];
    image->low = (double)scratch[used / 1000];
    image->sigma =
        sigma_per_mad * median_deviation(scratch, used, (double)scratch[used / 2]);
}

/* Rank 0: sum the slabs of all ranks. */
static tess_status merge(const char *data, int64_t bytes, preview_image *image)
{
    tess_status status = TESS_OK;
    const int64_t width = image->width, count = width * image->height;
    cell *cells = tess_alloc_zero(count, sizeof *cells);
    float *scratch = tess_alloc(count, sizeof *scratch);
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
cleanup:
    tess_free(cells);
    tess_free(scratch);
    return status;
}

tess_status tess_preview_reduce(tess_comm *comm, const tess_image_meta *meta,
                                bool is_double, int64_t row_first, int64_t num_rows,
                                const void *rows, int max_side, preview_image *image)
{
    tess_status status = TESS_OK;
    const int64_t longest = meta->nx > meta->ny ? meta->nx : meta->ny;
    const int64_t factor = (longest + max_side - 1) / max_side;
    const int64_t width = (meta->nx + factor - 1) / factor;
    preview_image made = {.width = (int)width,
                          .height = (int)((meta->ny + factor - 1) / factor),
                          .factor = factor};
    slab part = {0, 0};
    if (num_rows > 0) {
        part.row_first = row_first / factor;
        part.num_rows = (row_first + num_rows - 1) / factor + 1 - part.row_first;
    }
    const int64_t cells_bytes = part.num_rows * width * (int64_t)sizeof(cell);
    int64_t *counts = tess_alloc_zero(tess_comm_size(comm), sizeof *counts);
    char *send = tess_alloc_zero((int64_t)sizeof part + cells_bytes, 1);
    void *all = NULL;
    if (!send || !counts)
        status = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                   "no memory for a preview");
    TESS_TRY(tess_comm_agree(comm, status));
    memcpy(send, &part, sizeof part);
    add_rows(meta, is_double, row_first, num_rows, rows, factor, width,
             (cell *)(void *)(send + sizeof part));
    if (tess_comm_size(comm) == 1) { /* nothing to gather */
        all = send;
        send = NULL;
        counts[0] = (int64_t)sizeof part + cells_bytes;
    } else
        TESS_TRY(tess_comm_gatherv(comm, send, (int64_t)sizeof part + cells_bytes, 0,
                                   &all, counts));
    if (tess_comm_rank(comm) == 0) {
        int64_t bytes = 0;
        for (int k = 0; k < tess_comm_size(comm); ++k)
            bytes += counts[k];
        status = merge(all, bytes, &made);
    }
    TESS_TRY(tess_comm_agree(comm, status));
    *image = made;
    made.value = NULL;
cleanup:
    tess_free(made.value);
    tess_free(send);
    tess_free(counts);
    tess_free(all);
    return status;
}
