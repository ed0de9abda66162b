/* tess_grid_ops.correct of the cuda backend in host memory; see device_emulated.c. */
#include <math.h>

#include "correct_cuda.h"
#include "device_emulated.h"
#include "tess_mem.h"

tess_status correct_cuda(const tess_grid_plan *plan, double factor, bool is_model,
                         int64_t row_first, int64_t num_rows, void *rows,
                         int64_t *num_bad)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status)) return status;
    const int64_t nx = plan->target.geom.nx;
    int64_t bad = 0;
    double *correction = tess_alloc(nx, sizeof *correction);
    if (!correction) TESS_FAIL(TESS_ERR_ALLOC, "grid correction");
    for (int64_t k = 0; k < num_rows; ++k) {
        tess_grid_correction_row(plan, row_first + k, correction);
        for (int64_t i = 0; i < nx; ++i) {
            const int64_t at = k * nx + i;
            double out = factor * correction[i];
            out *= plan->is_double ? ((double *)rows)[at] : (double)((float *)rows)[at];
            if (!plan->is_double) out = (double)(float)out;
            bad += isfinite(correction[i]) && !isfinite(out);
            if (is_model && !isfinite(out)) out = 0;
            if (plan->is_double)
                ((double *)rows)[at] = out;
            else
                ((float *)rows)[at] = (float)out;
        }
    }
    *num_bad = bad;
cleanup:
    tess_free(correction);
    return status;
}
