/* Finds the peak of an image over all ranks: the largest value and, if several pixels
 * have it, the lowest pixel number. */
#include <math.h>

#include "cpu_work.h"
#include "tess_mem.h"
#include "tess_real.h"

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
