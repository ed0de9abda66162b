/* Measures images that are distributed by rows, where they live. */
#include <math.h>

#include "row_deviation.h"
#include "tess_exact.h"
#include "tess_mem.h"
#include "tess_real.h"
#include "tess_row_stats.h"

/* Number and extremes of some of the pixels; at −1: there is none. */
typedef struct part {
    double count;
    double most, most_at, least, least_at;
} part;

static const part nothing = {.most_at = -1, .least_at = -1};

/* Sums over the pixels of a row, in their order. */
typedef struct row_sum {
    double sum, squares;
} row_sum;

/* Sums over rows, which do not depend on the order of rows. */
typedef struct all_sums {
    tess_exact sum, squares;
} all_sums;

enum { SUM_WORDS = 2 * TESS_EXACT_WORDS };

/* Whether `value` at pixel `at` comes before `best` in the order of `sign` times value,
 * of equal ones the first pixel. */
static bool precedes(double sign, double value, double at, double best, double best_at)
{
    if (best_at < 0 || sign * value > sign * best) return true;
    return !(sign * value < sign * best) && at < best_at;
}

static void take_extremes(part *all, const part *more)
{
    if (more->most_at < 0) return;
    if (precedes(1, more->most, more->most_at, all->most, all->most_at)) {
        all->most = more->most;
        all->most_at = more->most_at;
    }
    if (precedes(-1, more->least, more->least_at, all->least, all->least_at)) {
        all->least = more->least;
        all->least_at = more->least_at;
    }
}

static void add_part(part *all, const part *more)
{
    all->count += more->count;
    take_extremes(all, more);
}

static row_sum add_row(const tess_rows *rows, int64_t row, part *own)
{
    row_sum sum = {0, 0};
    const bool is_double = rows->type == TESS_PIXEL_DOUBLE;
    const double first = (double)((rows->row_first + row) * rows->nx + rows->col_first);
    for (int64_t k = 0; k < rows->num_cols; ++k) {
        const double value =
            tess_real_at(rows->value, is_double, row * rows->num_cols + k);
        if (!isfinite(value)) continue;
        ++own->count;
        sum.sum += value;
        sum.squares += value * value;
        if (own->most_at < 0 || value > own->most) {
            own->most = value;
            own->most_at = first + (double)k;
        }
        if (own->least_at < 0 || value < own->least) {
            own->least = value;
            own->least_at = first + (double)k;
        }
    }
    return sum;
}

/* sums[num_rows]: written. */
static part measure(const tess_rows *rows, int threads, row_sum *sums)
{
    part all = nothing;
#pragma omp parallel num_threads(threads)
    {
        part own = nothing;
#pragma omp for schedule(static) nowait
        for (int64_t j = 0; j < rows->num_rows; ++j)
            sums[j] = add_row(rows, j, &own);
#pragma omp critical(tess_row_stats)
        add_part(&all, &own);
    }
    return all;
}

/* all: of zeros. Collective. */
static tess_status sum_rows(tess_comm *comm, const row_sum *sums, int64_t num_rows,
                            all_sums *all)
{
    for (int64_t j = 0; j < num_rows; ++j) {
        tess_exact_add(&all->sum, sums[j].sum);
        tess_exact_add(&all->squares, sums[j].squares);
    }
    return tess_comm_allreduce_i64(comm, all->sum.word, SUM_WORDS, TESS_SUM);
}

/* Collective. */
static tess_status gather(tess_comm *comm, const part *own, part *all)
{
    tess_status status = TESS_OK;
    const int ranks = tess_comm_size(comm);
    part *parts = tess_alloc(ranks, sizeof *parts);
    TESS_TRY(tess_comm_agree(comm, parts ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_comm_allgather(comm, own, sizeof *own, parts));
    *all = nothing;
    for (int k = 0; k < ranks; ++k)
        add_part(all, &parts[k]);
cleanup:
    tess_free(parts);
    return status;
}

static tess_status check_reals(const tess_rows *rows)
{
    tess_status status = TESS_OK;
    if (rows->type == TESS_PIXEL_MASK)
        TESS_FAIL(TESS_ERR_INTERNAL, "a mask has no statistics");
cleanup:
    return status;
}

/* ---- in host memory ---- */

/* What is found of this rank's rows: extremes, and sums[num_rows]. The view is that of
 * pixels in host memory. Local. */
static tess_status measure_here(const tess_rows *rows, int threads, tess_rows *view,
                                part *own, row_sum *sums)
{
    tess_status status = TESS_OK;
    TESS_TRY(check_reals(rows));
    TESS_TRY(tess_rows_view(rows, view));
    *own = measure(view, threads, sums);
cleanup:
    return status;
}

static tess_status deviation_here(tess_comm *comm, const tess_rows *view, int threads,
                                  double *deviation)
{
    double middle;
    const row_pixels pixels = {.value = view->value,
                               .is_double = view->type == TESS_PIXEL_DOUBLE,
                               .count = tess_rows_count(view),
                               .threads = threads};
    return row_deviation(comm, &pixels, &middle, deviation);
}

/* ---- on a device ---- */

/* Local. */
static tess_status measure_there(const tess_rows *rows, part *own, row_sum *sums)
{
    tess_status status = TESS_OK;
    const tess_pixels pixels = tess_rows_pixels(rows);
    tess_row_measure *row = tess_alloc(rows->num_rows, sizeof *row);
    if (!row) TESS_FAIL(TESS_ERR_ALLOC, "rows of an image");
    TESS_TRY(check_reals(rows));
    TESS_TRY(rows->place->measure(&pixels, row));
    *own = nothing;
    for (int64_t j = 0; j < rows->num_rows; ++j) {
        const double first =
            (double)((rows->row_first + j) * rows->nx + rows->col_first);
        const part of_row = {.count = (double)row[j].count,
                             .most = row[j].most,
                             .most_at =
                                 row[j].count > 0 ? first + (double)row[j].most_at : -1,
                             .least = row[j].least,
                             .least_at = first + (double)row[j].least_at};
        add_part(own, &of_row);
        sums[j] = (row_sum){row[j].sum, row[j].squares};
    }
cleanup:
    tess_free(row);
    return status;
}

/* Rows whose pixels a device counts. */
typedef struct counted_rows {
    tess_comm *comm;
    const tess_rows *rows;
} counted_rows;

/* Collective. */
static tess_status count_there(row_values *from, uint64_t prefix, int shift)
{
    tess_status status = TESS_OK;
    const counted_rows *of = from->context;
    const tess_pixels pixels = tess_rows_pixels(of->rows);
    const tess_pixel_order order = {from->distances, from->centre, prefix, shift};
    TESS_TRY(
        tess_comm_agree(of->comm, of->rows->place->count(&pixels, &order, from->bins)));
    TESS_TRY(tess_comm_allreduce_i64(of->comm, from->bins, TESS_PIXEL_BINS, TESS_SUM));
cleanup:
    return status;
}

/* `count`: finite pixels of all ranks. Collective. */
static tess_status deviation_there(tess_comm *comm, const tess_rows *rows, double count,
                                   double *deviation)
{
    int64_t bins[TESS_PIXEL_BINS];
    double middle;
    counted_rows of = {comm, rows};
    row_values from = {.is_double = rows->type == TESS_PIXEL_DOUBLE,
                       .bits = TESS_PIXEL_BITS,
                       .count = (int64_t)count,
                       .bins = bins,
                       .count_bins = count_there,
                       .context = &of};
    return row_values_deviation(&from, &middle, deviation);
}

tess_status tess_row_stats_measure(tess_comm *comm, const tess_rows *rows, int threads,
                                   bool wants_noise, tess_row_stats *stats)
{
    tess_status status = TESS_OK;
    tess_rows view = {0};
    double deviation = 0;
    part own, all;
    all_sums *total = tess_alloc_zero(1, sizeof *total);
    row_sum *sums = tess_alloc(rows->num_rows, sizeof *sums);
    status = !total || !sums ? TESS_ERR_ALLOC
             : rows->place   ? measure_there(rows, &own, sums)
                             : measure_here(rows, threads, &view, &own, sums);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(gather(comm, &own, &all));
    TESS_TRY(sum_rows(comm, sums, rows->num_rows, total));
    if (wants_noise)
        TESS_TRY(rows->place ? deviation_there(comm, rows, all.count, &deviation)
                             : deviation_here(comm, &view, threads, &deviation));
    const double squares = tess_exact_value(&total->squares);
    *stats = (tess_row_stats){.count = all.count,
                              .most = all.count > 0 ? all.most : (double)NAN,
                              .least = all.count > 0 ? all.least : (double)NAN,
                              .most_at = all.most_at,
                              .least_at = all.least_at,
                              .sum = tess_exact_value(&total->sum),
                              .rms = all.count > 0 ? sqrt(squares / all.count) : 0,
                              .noise = ROW_SIGMA_PER_DEVIATION * deviation};
cleanup:
    tess_rows_free(&view);
    tess_free(total);
    tess_free(sums);
    return status;
}
