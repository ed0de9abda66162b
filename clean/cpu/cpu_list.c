/* Collects the candidates of a sub-minor loop over all ranks. */
#include "cpu_list.h"

#include <math.h>
#include <string.h>

#include "cpu_layers.h"
#include "cpu_slot.h"
#include "tess_mem.h"
#include "tess_omp.h"
#include "tess_real.h"

/* Longer lists are divided among ranks. An iteration over this many candidates takes
 * about as long as a message to all ranks and back. */
enum { DIVIDE_FROM = 1 << 15 };

/* The number of candidates of a block, whose values stay in the first-level cache while
 * they are worked on. */
enum { BLOCK = 1024 };

/* Where the values of a record begin. */
enum { VALUES = 3 };

/* Length of the record that a candidate is sent as: its pixel, factor, place and values
 * as numbers. */
static int64_t record_size(const clean_work *work)
{
    return VALUES + work->layers.count;
}

/* ---- this rank's rows ---- */

static bool is_candidate(const clean_work *work, const void *line,
                         const uint8_t *allowed, int64_t x, double from)
{
    const double value = tess_real_at(line, work->is_double, x);
    if (!allowed[x] || value == 0) return false;
    return (work->setup->opts.no_negative ? value : fabs(value)) >= from;
}

/* Counts the candidates of a row, and writes their columns to `found` unless it is
 * NULL. */
static int64_t search_row(const clean_work *work, const cpu_slot *slot, int scale,
                          int64_t row, double from, int32_t *found)
{
    int64_t x_range[2], y_range[2], count = 0;
    if (slot->row_peak[row] < from || slot->row_peak[row] <= 0) return 0;
    clean_inside(work->setup, scale, x_range, y_range);
    const uint8_t *allowed = cpu_allowed_row(work, scale, row);
    const char *line = cpu_row(work, slot->mean, row);
    for (int64_t x = x_range[0]; x < x_range[1]; ++x) {
        if (!is_candidate(work, line, allowed, x, from)) continue;
        if (found) found[count] = (int32_t)x;
        ++count;
    }
    return count;
}

/* rows_at[r + 1] := the number of candidates in the rows up to row r. Returns the
 * number of all. */
static int64_t count_rows(const clean_work *work, int scale, double from,
                          int64_t *rows_at)
{
    const cpu_slot *slot = &work->slot[work->kept];
    const int64_t rows = work->setup->images.num_rows;
#pragma omp parallel for schedule(dynamic, 16) num_threads(work->setup->opts.threads)
    for (int64_t row = 0; row < rows; ++row)
        rows_at[row + 1] = search_row(work, slot, scale, row, from, NULL);
    rows_at[0] = 0;
    for (int64_t row = 0; row < rows; ++row)
        rows_at[row + 1] += rows_at[row];
    return rows_at[rows];
}

static void record_row(const clean_work *work, const int64_t *rows_at, int64_t row,
                       const int32_t *column, double *record)
{
    const cpu_slot *slot = &work->slot[work->kept];
    const tess_clean_images *images = &work->setup->images;
    const clean_borders *borders = &work->setup->borders;
    const int64_t each = record_size(work);
    for (int64_t c = 0; c < rows_at[row + 1] - rows_at[row]; ++c) {
        const int64_t at = row * images->nx + column[c];
        double *to = record + (rows_at[row] + c) * each;
        to[0] = (double)(images->row_first * images->nx + at);
        to[1] = work->factor.used ? tess_real_at(work->factor.used, work->is_double, at)
                                  : 1;
        to[2] = borders->num > 0 ? borders->place[at] : 0;
        for (int i = 0; i < work->layers.count; ++i)
            to[VALUES + i] = cpu_layer_has_data(work, i)
                                 ? tess_real_at(slot->image[i], work->is_double, at)
                                 : 0;
    }
}

static tess_status record_rows(const clean_work *work, int scale, double from,
                               const int64_t *rows_at, double *record)
{
    tess_status status = TESS_OK;
    const cpu_slot *slot = &work->slot[work->kept];
    const int64_t nx = work->setup->images.nx;
    const int threads = work->setup->opts.threads;
    int32_t *column = tess_alloc(threads * nx, sizeof *column);
    if (!column) TESS_FAIL(TESS_ERR_ALLOC, "candidates of a row");
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads)
    for (int64_t row = 0; row < work->setup->images.num_rows; ++row) {
        int32_t *own = column + tess_omp_thread() * nx;
        if (rows_at[row + 1] == rows_at[row]) continue;
        search_row(work, slot, scale, row, from, own);
        record_row(work, rows_at, row, own, record);
    }
cleanup:
    tess_free(column);
    return status;
}

tess_status cpu_count(clean_work *work, int scale, double from, int64_t *pixels)
{
    tess_status status = TESS_OK;
    tess_comm *comm = work->setup->comm;
    int64_t *rows_at = tess_alloc(work->setup->images.num_rows + 1, sizeof *rows_at);
    TESS_TRY(tess_comm_agree(comm, rows_at ? TESS_OK : TESS_ERR_ALLOC));
    *pixels = count_rows(work, scale, from, rows_at);
    TESS_TRY(tess_comm_allreduce_i64(comm, pixels, 1, TESS_SUM));
cleanup:
    tess_free(rows_at);
    return status;
}

/* ---- over all ranks ---- */

static tess_status own_records(const clean_work *work, int scale, double from,
                               double **record_out, int64_t *count)
{
    tess_status status = TESS_OK;
    double *record = NULL;
    int64_t *rows_at = tess_alloc(work->setup->images.num_rows + 1, sizeof *rows_at);
    if (!rows_at) TESS_FAIL(TESS_ERR_ALLOC, "candidates");
    *count = count_rows(work, scale, from, rows_at);
    record = tess_alloc(*count * record_size(work), sizeof *record);
    if (!record) TESS_FAIL(TESS_ERR_ALLOC, "%lld candidates", (long long)*count);
    TESS_TRY(record_rows(work, scale, from, rows_at, record));
    *record_out = record;
    record = NULL;
cleanup:
    tess_free(rows_at);
    tess_free(record);
    return status;
}

/* Computes how many bytes of this rank's records [first, first + count) of `total`
 * belong to the equal share of each rank. */
static void share_bytes(int64_t first, int64_t count, int64_t total, int size,
                        int64_t each, int64_t *bytes)
{
    for (int k = 0; k < size; ++k) {
        int64_t begin = total * k / size, end = total * (k + 1) / size;
        if (begin < first) begin = first;
        if (end > first + count) end = first + count;
        bytes[k] = end > begin ? (end - begin) * each : 0;
    }
}

/* Sends the records of all ranks to every rank, or to each rank its share of them.
 * Collective. */
static tess_status exchange(const clean_work *work, const double *own, int64_t count,
                            cpu_list *list, double **record)
{
    tess_status status = TESS_OK;
    tess_comm *comm = work->setup->comm;
    const int size = tess_comm_size(comm);
    const int64_t each = record_size(work) * (int64_t)sizeof *own;
    int64_t first = count, bytes = 0;
    void *recv = NULL;
    int64_t *counts = tess_alloc_zero(2 * (int64_t)size, sizeof *counts);
    TESS_TRY(tess_comm_agree(comm, counts ? TESS_OK : TESS_ERR_ALLOC));
    list->total = count;
    TESS_TRY(tess_comm_allreduce_i64(comm, &list->total, 1, TESS_SUM));
    TESS_TRY(tess_comm_exscan_i64(comm, &first, 1));
    list->divided = size > 1 && list->total > DIVIDE_FROM;
    if (list->divided) {
        share_bytes(first, count, list->total, size, each, counts);
        TESS_TRY(tess_comm_alltoallv(comm, own, counts, &recv, counts + size));
    } else
        TESS_TRY(tess_comm_allgatherv(comm, own, count * each, &recv, counts + size));
    for (int k = 0; k < size; ++k)
        bytes += counts[size + k];
    list->count = bytes / each;
    *record = recv;
cleanup:
    tess_free(counts);
    return status;
}

/* ---- the list ---- */

static void fill(const clean_work *work, const double *record, cpu_list *list)
{
    const int64_t each = record_size(work);
    for (int64_t k = 0; k < list->count; ++k) {
        const double *from = record + k * each;
        list->index[k] = (int64_t)from[0];
        if (list->factor) list->factor[k] = from[1];
        for (int i = 0; i < list->num_layers; ++i)
            *cpu_list_value(list, i, k) = from[VALUES + i];
    }
}

/* Groups neighbouring pixels of a place into runs, and runs into blocks. */
static void divide(const clean_work *work, const double *record, cpu_list *list)
{
    const int64_t nx = work->setup->images.nx, each = record_size(work);
    int64_t runs = 0, in_block = BLOCK;
    for (int64_t k = 0; k < list->count; ++k) {
        const int64_t index = list->index[k];
        const int32_t place = (int32_t)record[k * each + 2];
        if (in_block >= BLOCK || k == 0 || index != list->index[k - 1] + 1 ||
            index % nx == 0 || place != list->run[runs - 1].place) {
            if (in_block >= BLOCK) {
                list->block[list->num_blocks++] = runs;
                in_block = 0;
            }
            list->run[runs++] =
                (cpu_run){k, 0, (int32_t)(index % nx), (int32_t)(index / nx), place};
        }
        ++list->run[runs - 1].count;
        ++in_block;
    }
    list->block[list->num_blocks] = runs;
}

static tess_status allocate(const clean_work *work, cpu_list *list)
{
    tess_status status = TESS_OK;
    const int64_t count = list->count;
    const bool sums = work->layers.basis;
    list->layer_step = sums ? 1 : count;
    list->step = sums ? list->num_layers : 1;
    list->index = tess_alloc(count, sizeof *list->index);
    list->value = tess_alloc(count * list->num_layers, sizeof *list->value);
    list->run = tess_alloc(count, sizeof *list->run);
    list->block = tess_alloc(count / BLOCK + 2, sizeof *list->block);
    if (work->factor.used) list->factor = tess_alloc(count, sizeof *list->factor);
    if (!list->index || !list->value || !list->run || !list->block ||
        (work->factor.used && !list->factor))
        TESS_FAIL(TESS_ERR_ALLOC, "%lld candidates", (long long)count);
cleanup:
    return status;
}

tess_status cpu_list_make(const clean_work *work, int scale, double from,
                          cpu_list *list_out)
{
    tess_status status = TESS_OK;
    tess_comm *comm = work->setup->comm;
    double *own = NULL, *record = NULL;
    int64_t count = 0;
    cpu_list list = {.num_layers = work->layers.count};
    TESS_TRY(tess_comm_agree(comm, own_records(work, scale, from, &own, &count)));
    TESS_TRY(exchange(work, own, count, &list, &record));
    TESS_TRY(tess_comm_agree(comm, allocate(work, &list)));
    fill(work, record, &list);
    divide(work, record, &list);
    *list_out = list;
    list = (cpu_list){0};
cleanup:
    tess_free(own);
    tess_free(record);
    cpu_list_free(&list);
    return status;
}

void cpu_list_free(cpu_list *list)
{
    tess_free(list->index);
    tess_free(list->value);
    tess_free(list->factor);
    tess_free(list->run);
    tess_free(list->block);
    *list = (cpu_list){0};
}
