/* Reads which frequencies the planes of an image have, from its axis or from a table,
 * and which of them were made of data. */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>
#include <strings.h>

#include "fits_keys.h"
#include "tess_fits.h"
#include "tess_fits_cube.h"
#include "tess_mem.h"

/* ---- frequencies ---- */

static tess_status read_listed(const tess_fits_model *model, double *freq_hz)
{
    tess_status status = TESS_OK;
    const tess_fits_axis *axis = &model->array.axis[model->freq_axis];
    fits_table from = {.fd = -1};
    TESS_TRY(fits_table_find(model->path, axis->table, &from));
    if (!from.fits || !fits_table_column(&from, axis->column, model->num_freq, freq_hz))
        TESS_FAIL(TESS_ERR_INPUT, "%s: it has no table '%s' of %d frequencies",
                  model->path, axis->table, model->num_freq);
cleanup:
    fits_table_close(&from);
    return status;
}

/* Finds frequencies by the axis, or by the table that it names. */
static tess_status read_axis(const tess_fits_model *model, double *freq_hz)
{
    tess_status status = TESS_OK;
    if (model->freq_axis < 0) {
        freq_hz[0] = model->freq_hz;
        return TESS_OK;
    }
    const tess_fits_axis *axis = &model->array.axis[model->freq_axis];
    const double rest_hz = model->array.rest_freq_hz;
    if (strncasecmp(axis->type, "FREQ", 4) == 0 && !(tess_fits_unit_hz(axis->unit) > 0))
        TESS_FAIL(TESS_ERR_INPUT, "%s: unit of the FREQ axis is '%s'; it must be Hz",
                  model->path, axis->unit);
    if (strncasecmp(axis->type, "FREQ", 4) != 0 &&
        !(fabs(tess_fits_axis_hz(axis, rest_hz, 1)) > 0))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: its axis of velocities needs a unit of m/s or km/s, and RESTFRQ",
                  model->path);
    if (strcasecmp(axis->type, "FREQ-TAB") == 0) {
        TESS_TRY(read_listed(model, freq_hz));
        for (int k = 0; k < model->num_freq; ++k)
            freq_hz[k] *= tess_fits_unit_hz(axis->unit);
        return TESS_OK;
    }
    if (model->num_freq > 1 && strlen(axis->type) > 4)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: frequency axis '%s' is not linear; write one with CTYPE 'FREQ'",
                  model->path, axis->type);
    for (int k = 0; k < model->num_freq; ++k)
        freq_hz[k] = tess_fits_axis_hz(axis, rest_hz, k + 1);
cleanup:
    return status;
}

static tess_status check_frequencies(const tess_fits_model *model,
                                     const double *freq_hz)
{
    tess_status status = TESS_OK;
    const int num = model->num_freq;
    for (int k = 0; k < num && num > 1; ++k) {
        const double step = k > 0 ? freq_hz[k] - freq_hz[k - 1] : 1;
        const bool turns = k > 0 && !(step * (freq_hz[1] - freq_hz[0]) > 0);
        if (!isfinite(freq_hz[k]) || !(freq_hz[k] > 0) || turns)
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: frequency axis is not usable: plane %d is at %g Hz, plane 1 "
                      "at %g Hz",
                      model->path, k + 1, freq_hz[k], freq_hz[0]);
    }
cleanup:
    return status;
}

/* Finds the weights of planes. They are in the header of an image, and in the table of
 * a cube's planes, whose first rows are those of the first Stokes parameter. */
static tess_status read_data(const tess_fits_model *model, bool *has_data)
{
    tess_status status = TESS_OK;
    fits_table from = {.fd = -1};
    double *sum = tess_alloc(model->num_freq, sizeof *sum);
    if (!sum) TESS_FAIL(TESS_ERR_ALLOC, "%s: weights of planes", model->path);
    for (int k = 0; k < model->num_freq; ++k)
        sum[k] = model->num_freq == 1 ? model->array.sum_weights : (double)NAN;
    if (model->num_freq > 1) TESS_TRY(fits_table_find(model->path, "PLANES", &from));
    if (from.fits && !fits_table_column(&from, "SUMWT", model->num_freq, sum))
        for (int k = 0; k < model->num_freq; ++k)
            sum[k] = (double)NAN; /* another program's table of that name */
    for (int k = 0; k < model->num_freq; ++k)
        has_data[k] = isnan(sum[k]) || sum[k] > 0;
cleanup:
    fits_table_close(&from);
    tess_free(sum);
    return status;
}

tess_status tess_fits_frequencies(const tess_fits_model *model, double *freq_hz,
                                  bool *has_data)
{
    tess_status status = TESS_OK;
    TESS_TRY(read_axis(model, freq_hz));
    TESS_TRY(check_frequencies(model, freq_hz));
    TESS_TRY(read_data(model, has_data));
cleanup:
    return status;
}
