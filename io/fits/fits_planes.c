/* Reads what a cube tells of each of its planes: its tables, or else its header. */
#define _GNU_SOURCE
#include <math.h>
#include <strings.h>

#include "fits_cube.h"
#include "fits_keys.h"
#include "tess_const.h"
#include "tess_fits_cube.h"
#include "tess_mem.h"

static int num_planes(const tess_fits_model *cube)
{
    return cube->num_freq * cube->num_stokes;
}

/* Reads frequencies and Stokes parameters. All else is that of the header. */
static tess_status take_axes(const tess_fits_model *cube, const tess_image_meta *header,
                             tess_image_meta *plane)
{
    tess_status status = TESS_OK;
    const int num = cube->num_freq;
    double *freq_hz = tess_alloc(num, sizeof *freq_hz);
    bool *has_data = tess_alloc(num, sizeof *has_data);
    if (!freq_hz || !has_data) TESS_FAIL(TESS_ERR_ALLOC, "%s: planes", cube->path);
    TESS_TRY(tess_fits_frequencies(cube, freq_hz, has_data));
    for (int k = 0; k < num_planes(cube); ++k) {
        plane[k] = *header;
        plane[k].freq_hz = freq_hz[k % num];
        plane[k].bandwidth_hz = fabs(header->bandwidth_hz);
        plane[k].stokes = cube->stokes[k / num];
        plane[k].gridded.sum_weights = (double)NAN; /* it does not tell, so far */
    }
cleanup:
    tess_free(freq_hz);
    tess_free(has_data);
    return status;
}

static tess_fits_beam beam_of(const double deg[3])
{
    return (tess_fits_beam){.major_rad = deg[0] * TESS_RAD_PER_DEG,
                            .minor_rad = deg[1] * TESS_RAD_PER_DEG,
                            .pa_rad = deg[2] * TESS_RAD_PER_DEG};
}

/* ---- tessera's table ---- */

/* Local. */
static tess_status take_planes(const tess_fits_model *cube, const double *width_hz,
                               tess_image_meta *plane)
{
    tess_status status = TESS_OK;
    const int num = num_planes(cube);
    fits_plane *told = tess_alloc_zero(num, sizeof *told);
    if (!told) TESS_FAIL(TESS_ERR_ALLOC, "%s: planes", cube->path);
    TESS_TRY(fits_cube_read_planes(cube->path, num, told));
    for (int k = 0; k < num; ++k) {
        plane[k].bandwidth_hz = width_hz[k];
        plane[k].beam = beam_of(told[k].beam_deg);
        plane[k].gridded.freq_mean_hz = told[k].freq_mean_hz;
        plane[k].gridded.sum_weights = told[k].sum_weights;
        plane[k].gridded.num_vis = (int64_t)told[k].num_vis;
    }
cleanup:
    tess_free(told);
    return status;
}

/* ---- CASA's table ---- */

/* Reads the numbers of a column, times `unit`. Returns false if the column is not
 * there. */
static bool read_column(const fits_table *from, const char *name, int64_t count,
                        double unit, double *value)
{
    if (!fits_table_column(from, name, count, value)) return false;
    for (int64_t k = 0; k < count; ++k)
        value[k] *= unit;
    return true;
}

/* Returns the degrees of the unit of a column of angles. CASA's unit is arcsec. */
static double degrees_of(const fits_table *from, const char *name)
{
    int number = 0, failed = 0;
    char column[FLEN_VALUE], unit[FLEN_VALUE] = "";
    snprintf(column, sizeof column, "%s", name);
    fits_get_colnum(from->fits, CASESEN, column, &number, &failed);
    fits_get_bcolparms(from->fits, number, NULL, unit, NULL, NULL, NULL, NULL, NULL,
                       NULL, &failed);
    fits_clear_errmsg();
    return failed == 0 && strcasecmp(unit, "deg") == 0 ? 1 : 1 / 3600.0;
}

/* Local. */
static tess_status take_beams(const tess_fits_model *cube, const fits_table *from,
                              tess_image_meta *plane)
{
    tess_status status = TESS_OK;
    const int num = num_planes(cube);
    double *value = tess_alloc(5 * num, sizeof *value);
    if (!value) TESS_FAIL(TESS_ERR_ALLOC, "%s: beams", cube->path);
    double *major = value, *minor = value + num, *angle = value + 2 * num;
    double *chan = value + 3 * num, *pol = value + 4 * num;
    if (!read_column(from, "BMAJ", num, degrees_of(from, "BMAJ"), major) ||
        !read_column(from, "BMIN", num, degrees_of(from, "BMIN"), minor) ||
        !read_column(from, "BPA", num, 1, angle) ||
        !read_column(from, "CHAN", num, 1, chan) ||
        !read_column(from, "POL", num, 1, pol))
        TESS_FAIL(TESS_ERR_INPUT, "%s: its table BEAMS has no beam for each plane",
                  cube->path);
    for (int k = 0; k < num; ++k) {
        const double deg[3] = {major[k], minor[k], angle[k]};
        if (!(chan[k] >= 0 && chan[k] < cube->num_freq && pol[k] >= 0 &&
              pol[k] < cube->num_stokes))
            TESS_FAIL(TESS_ERR_INPUT, "%s: row %d of its table BEAMS is of no plane",
                      cube->path, k + 1);
        plane[(int)pol[k] * cube->num_freq + (int)chan[k]].beam = beam_of(deg);
    }
cleanup:
    tess_free(value);
    return status;
}

tess_status tess_fits_planes(const tess_fits_model *cube, const tess_image_meta *header,
                             tess_image_meta *plane)
{
    tess_status status = TESS_OK;
    const int num = num_planes(cube);
    fits_table planes = {.fd = -1}, beams = {.fd = -1};
    double *width_hz = tess_alloc(num, sizeof *width_hz);
    if (!width_hz) TESS_FAIL(TESS_ERR_ALLOC, "%s: planes", cube->path);
    TESS_TRY(take_axes(cube, header, plane));
    TESS_TRY(fits_table_find(cube->path, "PLANES", &planes));
    if (planes.fits && fits_table_column(&planes, "BANDWID", num, width_hz)) {
        fits_table_close(&planes); /* it is opened once more */
        TESS_TRY(take_planes(cube, width_hz, plane));
        goto cleanup;
    }
    TESS_TRY(fits_table_find(cube->path, "BEAMS", &beams));
    if (beams.fits) TESS_TRY(take_beams(cube, &beams, plane));
cleanup:
    fits_table_close(&planes);
    fits_table_close(&beams);
    tess_free(width_hz);
    return status;
}

/* ---- axes ---- */

bool tess_fits_frequencies_fall(const tess_fits_model *cube,
                                const tess_image_meta *plane)
{
    return cube->num_freq > 1 && plane[0].freq_hz > plane[1].freq_hz &&
           plane[0].spectral.velocity == TESS_NO_VELOCITY;
}

bool tess_fits_axes_of(const tess_fits_model *cube, const tess_image_meta *plane,
                       double *freq_hz, tess_cube_axes *axes)
{
    const int num = cube->num_freq;
    const bool falls = tess_fits_frequencies_fall(cube, plane);
    for (int k = 0; k < num; ++k) {
        const tess_image_meta *of = &plane[falls ? num - 1 - k : k];
        freq_hz[k] = of->freq_hz;
        freq_hz[num + k] = of->bandwidth_hz;
    }
    *axes = (tess_cube_axes){
        .num_freq = num,
        .num_stokes = cube->num_stokes,
        .freq_hz = freq_hz,
        .width_hz = freq_hz + num,
        .stokes_step = cube->num_stokes > 1 ? cube->stokes[1] - cube->stokes[0] : 1};
    return falls;
}
