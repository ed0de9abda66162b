/* Reads the pixels of models. A model that another program, or a fit that has failed,
 * has left without a number at a place on the sky is refused: the flux that belongs
 * there is not known, and 0 would be a guess. */
#include "model_pixels.h"

#include <math.h>

/* Whether a pixel, counted from 0, lies on or beyond the horizon of the reference
 * position. A pixel of slack allows for how headers round. */
static bool is_beyond(const tess_fits_model *model, int64_t i, int64_t j)
{
    const double l = ((double)i + 1 - model->crpix_x) * model->scale_x_rad;
    const double m = ((double)j + 1 - model->crpix_y) * model->scale_y_rad;
    const double slack = fabs(model->scale_x_rad) + fabs(model->scale_y_rad);
    return hypot(l, m) + slack >= 1;
}

tess_status model_pixels_read(const tess_fits_model *model, int stokes_index,
                              int freq_index, int64_t row_first, int64_t num_rows,
                              double *out)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_fits_read(model, stokes_index, freq_index, row_first, num_rows, out));
    for (int64_t k = 0; k < num_rows * model->nx; ++k) {
        const int64_t i = k % model->nx, j = row_first + k / model->nx;
        if (isfinite(out[k])) continue;
        if (!isnan(out[k]) || !is_beyond(model, i, j))
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: pixel (%lld, %lld) of the model is %s; give it a flux, or 0",
                      model->path, (long long)i + 1, (long long)j + 1,
                      isnan(out[k]) ? "blank (NaN)" : "infinite");
        out[k] = 0;
    }
cleanup:
    return status;
}
