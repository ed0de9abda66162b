/* Reads the image of a channel from a model of other channels: the plane of its
 * frequency, the values of functions that are fitted to all planes, or the nearest
 * plane. */
#include "channel_model.h"

#include <math.h>

#include "tess_mem.h"
#include "tess_spectrum.h"

/* Frequencies that differ by less than this are of one channel [its widths]. */
static const double SAME_CHANNEL = 1e-3;

/* Rows of all planes that are read at a time. */
enum { ROWS_AT_ONCE = 16 };

bool channel_model_is(const channel_model *channel, double freq_hz)
{
    return fabs(freq_hz - channel->freq_hz) <= SAME_CHANNEL * channel->width_hz;
}

int channel_model_plane(const model_cube *cube, const channel_model *channel)
{
    const int plane = model_cube_nearest(cube, channel->freq_hz);
    const bool is =
        cube->num_planes == 1 || channel_model_is(channel, cube->freq_hz[plane]);
    return is ? plane : -1;
}

/* ---- fits ---- */

/* Rows of all planes, and what is fitted to them. */
typedef struct fitted_rows {
    double **value; /* [num_planes] rows of each, in `room` */
    double *room, *weight;
} fitted_rows;

static void free_rows(fitted_rows *rows)
{
    tess_free(rows->value);
    tess_free(rows->room);
    tess_free(rows->weight);
}

static tess_status make_rows(const model_cube *cube, int64_t pixels, fitted_rows *rows)
{
    tess_status status = TESS_OK;
    const int num = cube->num_planes;
    rows->value = tess_alloc(num, sizeof *rows->value);
    rows->weight = tess_alloc(num, sizeof *rows->weight);
    rows->room = tess_alloc(num * pixels, sizeof *rows->room);
    if (!rows->value || !rows->weight || !rows->room)
        TESS_FAIL(TESS_ERR_ALLOC, "rows of %d channels of a model", num);
    for (int k = 0; k < num; ++k) {
        rows->value[k] = rows->room + k * pixels;
        rows->weight[k] = cube->has_data[k];
    }
cleanup:
    return status;
}

static tess_status read_fitted(const model_cube *cube, const channel_model *channel,
                               int stokes, int64_t row_first, int64_t num_rows,
                               double *out)
{
    tess_status status = TESS_OK;
    const int64_t nx = cube->file[0].nx;
    fitted_rows rows = {0};
    TESS_TRY(make_rows(cube, ROWS_AT_ONCE * nx, &rows));
    const tess_spectrum_channels channels = {.kind = channel->spectrum,
                                             .num_terms = channel->num_terms,
                                             .num_channels = cube->num_planes,
                                             .freq_hz = cube->freq_hz,
                                             .weight = rows.weight};
    for (int64_t j = 0; j < num_rows; j += ROWS_AT_ONCE) {
        const int64_t count = num_rows - j < ROWS_AT_ONCE ? num_rows - j : ROWS_AT_ONCE;
        for (int k = 0; k < cube->num_planes; ++k)
            TESS_TRY(
                model_cube_read(cube, k, stokes, row_first + j, count, rows.value[k]));
        TESS_TRY(tess_spectrum_at(&channels, channel->freq_hz,
                                  (const double *const *)rows.value, count * nx,
                                  channel->threads, out + j * nx));
    }
cleanup:
    free_rows(&rows);
    return status;
}

/* ---- either ---- */

tess_status channel_model_read(const model_cube *cube, const channel_model *channel,
                               int stokes, int64_t row_first, int64_t num_rows,
                               double *out)
{
    int plane = channel_model_plane(cube, channel);
    if (plane < 0 && channel->spectrum != TESS_CLEAN_EACH_CHANNEL)
        return read_fitted(cube, channel, stokes, row_first, num_rows, out);
    if (plane < 0) plane = model_cube_nearest(cube, channel->freq_hz);
    return model_cube_read(cube, plane, stokes, row_first, num_rows, out);
}
