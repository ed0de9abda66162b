/* weight_device.h in host memory; see device_emulated.c. */
#include <math.h>
#include <stddef.h>

#include "device_emulated.h"
#include "weight_device.h"

static double weight_at(const tess_device_samples *samples, int64_t at)
{
    return samples->is_double ? ((const double *)samples->weight)[at]
                              : (double)((const float *)samples->weight)[at];
}

static void set_weight(const tess_device_samples *samples, int64_t at, double weight)
{
    if (samples->is_double)
        ((double *)(uintptr_t)samples->weight)[at] = weight;
    else
        ((float *)(uintptr_t)samples->weight)[at] = (float)weight;
}

/* Add up (cells NULL), or apply and sum. */
static void visit(const density_layout *layout, const tess_device_samples *samples,
                  const double *cells, double *add, unsigned char *touched, double *sum)
{
    for (int64_t row = 0; row < samples->num_rows; ++row)
        for (int64_t k = 0; k < samples->num_chan[row] * samples->num_weight; ++k) {
            const int which = (int)(k % samples->num_weight);
            const int64_t at = samples->vis_first[row] * samples->num_weight + k;
            const double inv_lambda =
                samples->inv_lambda[samples->chan_base[row] + k / samples->num_weight];
            const double weight = weight_at(samples, at);
            int64_t page;
            int cell;
            if (weight == 0) continue;
            const bool inside =
                density_cell_of(layout, which, samples->uvw_m[3 * row] * inv_lambda,
                                samples->uvw_m[3 * row + 1] * inv_lambda, &page, &cell);
            if (add && inside) {
                touched[page] = 1;
                if (which < layout->num_grids)
                    add[page * DENSITY_PAGE_CELLS + cell] += weight;
            } else if (!add) {
                const double factor =
                    inside
                        ? density_factor(layout,
                                         cells[page * DENSITY_PAGE_CELLS + cell]) *
                              density_gaussian(&layout->gauss,
                                               samples->uvw_m[3 * row] * inv_lambda,
                                               samples->uvw_m[3 * row + 1] * inv_lambda)
                        : 0;
                set_weight(samples, at, weight * factor);
                sum[which] += weight_at(samples, at);
                double *most = &sum[samples->num_weight + which];
                *most = fmax(*most, weight_at(samples, at));
            }
        }
}

tess_status weight_device_add(const density_layout *layout,
                              const tess_device_samples *samples, double *cell,
                              unsigned char *touched)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status)) return status;
    visit(layout, samples, NULL, cell, touched, NULL);
    return TESS_OK;
}

tess_status weight_device_apply(const density_layout *layout, const double *cell,
                                const tess_device_samples *samples, double *sum)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status)) return status;
    visit(layout, samples, cell, NULL, NULL, sum);
    return TESS_OK;
}
