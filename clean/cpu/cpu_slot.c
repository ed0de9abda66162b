/* Makes the means of slots, and finds their peaks: the largest value and, if several
 * pixels have it, the lowest pixel number. */
#include "cpu_slot.h"

#include <math.h>

#include "cpu_join.h"
#include "tess_mem.h"
#include "tess_omp.h"
#include "tess_real.h"

const uint8_t *cpu_allowed_row(const clean_work *work, int scale, int64_t row)
{
    const int64_t nx = work->setup->images.nx;
    const uint8_t *allowed = work->allowed + row * nx;
    if (!work->found) return allowed;
    const uint32_t *found = work->found + row * nx, bit = UINT32_C(1) << scale;
    uint8_t *both = work->room.allowed + tess_omp_thread() * nx;
    for (int64_t x = 0; x < nx; ++x)
        both[x] = allowed[x] && (found[x] & bit);
    return both;
}

void cpu_row_peak(const clean_work *work, cpu_slot *slot, int64_t row)
{
    const int64_t y = work->setup->images.row_first + row;
    int64_t x_range[2], y_range[2];
    slot->row_peak[row] = -1;
    if (slot->scale < 0) return;
    clean_inside(work->setup, slot->scale, x_range, y_range);
    if (y < y_range[0] || y >= y_range[1] || x_range[0] >= x_range[1]) return;
    const uint8_t *allowed = cpu_allowed_row(work, slot->scale, row);
    const char *line = cpu_row(work, slot->mean, row);
    slot->row_peak[row] = work->vector->largest[work->is_double](
        line + (size_t)x_range[0] * work->real_bytes, allowed + x_range[0],
        x_range[1] - x_range[0], work->setup->opts.no_negative);
}

/* Makes a row of slot->mean: the numbers by which its pixels are chosen or, with
 * `linear`, the linear mean of the images. They are multiplied by the factor unless it
 * is NULL. */
static void join_row(const clean_work *work, const clean_join *join, cpu_slot *slot,
                     const void *factor, bool linear, int64_t row)
{
    const int64_t nx = work->setup->images.nx;
    double *joined = work->room.joined + (int64_t)tess_omp_thread() * 2 * nx;
    const cpu_lines lines = {.image = slot->image,
                             .offset_bytes = (size_t)(row * nx) * work->real_bytes,
                             .is_double = work->is_double,
                             .count = nx};
    if (work->layers.basis) /* the first layer is the mean */
        for (int64_t k = 0; k < nx; ++k)
            joined[k] = tess_real_at(slot->image[0], work->is_double, row * nx + k);
    else
        cpu_join_lines(join, &lines, linear, joined, joined + nx);
    for (int64_t k = 0; factor && k < nx; ++k)
        joined[k] *= tess_real_at(factor, work->is_double, row * nx + k);
    for (int64_t k = 0; k < nx; ++k)
        tess_real_set(slot->mean, work->is_double, row * nx + k, joined[k]);
}

void cpu_slot_mean(const clean_work *work, cpu_slot *slot)
{
    if (slot->mean == slot->image[0]) return;
#pragma omp parallel for schedule(static) num_threads(work->setup->opts.threads)
    for (int64_t row = 0; row < work->setup->images.num_rows; ++row) {
        join_row(work, &work->setup->join, slot, work->factor.used, false, row);
        cpu_row_peak(work, slot, row);
    }
}

void cpu_slot_magnitude(const clean_work *work, cpu_slot *slot)
{
    clean_join join = work->setup->join;
    if (slot->mean == slot->image[0]) return;
    join.is_signed = false;
#pragma omp parallel for schedule(static) num_threads(work->setup->opts.threads)
    for (int64_t row = 0; row < work->setup->images.num_rows; ++row)
        join_row(work, &join, slot, work->factor.used, false, row);
}

void cpu_slot_linear(const clean_work *work, cpu_slot *slot)
{
    if (slot->mean == slot->image[0]) return;
#pragma omp parallel for schedule(static) num_threads(work->setup->opts.threads)
    for (int64_t row = 0; row < work->setup->images.num_rows; ++row)
        join_row(work, &work->setup->join, slot, NULL, true, row);
}

void cpu_slot_peaks(const clean_work *work, cpu_slot *slot)
{
#pragma omp parallel for schedule(static) num_threads(work->setup->opts.threads)
    for (int64_t row = 0; row < work->setup->images.num_rows; ++row)
        cpu_row_peak(work, slot, row);
}

/* ---- over all ranks ---- */

/* The first pixel of a row whose magnitude is this value. */
static clean_peak peak_of_row(const clean_work *work, const void *line,
                              const uint8_t *allowed, const int64_t x_range[2],
                              double largest)
{
    const bool positive = work->setup->opts.no_negative;
    for (int64_t x = x_range[0]; x < x_range[1]; ++x) {
        const double value = tess_real_at(line, work->is_double, x);
        if (allowed[x] && (positive ? value : fabs(value)) == largest)
            return (clean_peak){value, x};
    }
    return (clean_peak){0, -1};
}

/* The first of this rank's pixels that has the largest value. There is none if all are
 * 0. */
static clean_peak own_peak(const clean_work *work, const cpu_slot *slot)
{
    const tess_clean_images *images = &work->setup->images;
    clean_peak best = {0, -1};
    int64_t x_range[2], y_range[2], row = -1;
    double largest = 0;
    for (int64_t k = 0; k < images->num_rows; ++k)
        if (slot->row_peak[k] > largest) largest = slot->row_peak[row = k];
    if (row < 0) return best;
    clean_inside(work->setup, slot->scale, x_range, y_range);
    best = peak_of_row(work, cpu_row(work, slot->mean, row),
                       cpu_allowed_row(work, slot->scale, row), x_range, largest);
    if (best.index >= 0) best.index += (images->row_first + row) * images->nx;
    return best;
}

tess_status cpu_slot_peak(const clean_work *work, const cpu_slot *slot,
                          clean_peak *peak)
{
    tess_status status = TESS_OK;
    tess_comm *comm = work->setup->comm;
    const int size = tess_comm_size(comm);
    clean_peak own = own_peak(work, slot), best = {0, -1};
    clean_peak *all = tess_alloc(size, sizeof *all);
    TESS_TRY(tess_comm_agree(comm, all ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_comm_allgather(comm, &own, sizeof own, all));
    for (int k = 0; k < size; ++k)
        if (clean_peak_is_better(&all[k], &best)) best = all[k];
    *peak = best;
cleanup:
    tess_free(all);
    return status;
}
