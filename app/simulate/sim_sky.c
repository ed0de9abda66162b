/* Reads the simulated sky: sources from a CSV file or a list of sources, or the pixels
 * of a FITS model image. */
#include "sim_sky.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim_csv.h"
#include "tess_const.h"
#include "tess_fits.h"
#include "tess_geom.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_parse.h"
#include "tess_source_list.h"

/* Pixels read at once from a model image. */
#define PIXELS_PER_READ ((int64_t)1 << 22)

/* ---- geometry ---- */

/* n - 1 of direction cosines; false beyond the horizon. */
static bool complete(double l, double m, double lmn1[3])
{
    const double r2 = l * l + m * m;
    if (!(r2 < 1.0)) return false;
    lmn1[0] = l;
    lmn1[1] = m;
    lmn1[2] = -r2 / (1.0 + sqrt(1.0 - r2));
    return true;
}

void tess_sky_set_gaussian(tess_sky_source *source, double major_rad, double minor_rad,
                           double pa_rad)
{
    /* The transform of a Gaussian of FWHM a is exp(-(pi a q)^2 / (4 ln 2)). */
    const double scale = TESS_PI * TESS_PI / (4.0 * log(2.0));
    const double a = scale * major_rad * major_rad, b = scale * minor_rad * minor_rad;
    const double s = sin(pa_rad), c = cos(pa_rad);
    source->is_gaussian = major_rad > 0.0 || minor_rad > 0.0;
    source->uu = a * s * s + b * c * c;
    source->uv = 2.0 * (a - b) * s * c;
    source->vv = a * c * c + b * s * s;
}

/* ---- list ---- */

tess_status tess_sky_add(tess_sky *sky, const tess_sky_source *source)
{
    tess_status status = TESS_OK;
    void *array = sky->source;
    if (tess_grow(&array, &sky->capacity, sky->num_sources + 1, sizeof *source))
        TESS_FAIL(TESS_ERR_ALLOC, "%lld sources", (long long)sky->num_sources + 1);
    sky->source = array;
    sky->source[sky->num_sources++] = *source;
    sky->has_stokes[0] = true;
    for (int s = 1; s < 4; ++s)
        if (source->flux_jy[s] != 0.0) sky->has_stokes[s] = true;
    const double sine = hypot(source->l, source->m);
    sky->max_offset_rad = fmax(sky->max_offset_rad, asin(fmin(1.0, sine)));
cleanup:
    return status;
}

void tess_sky_free(tess_sky *sky)
{
    if (!sky) return;
    tess_free(sky->source);
    tess_free(sky->term);
    memset(sky, 0, sizeof *sky);
}

/* ---- spectra ---- */

void tess_sky_flux(const tess_sky *sky, const tess_sky_source *source, double freq_hz,
                   double flux_jy[4])
{
    const double *term = sky->term ? sky->term + source->first_term : NULL;
    const tess_source_spectrum spectrum = {.flux_jy = source->flux_jy,
                                           .term = term,
                                           .num_terms = source->num_terms,
                                           .is_log = !source->is_polynomial,
                                           .ref_hz = source->freq_hz};
    double scale = 1.0;
    if (source->num_terms == 0 && source->spectral_index != 0.0)
        scale = pow(freq_hz / source->freq_hz, source->spectral_index);
    tess_source_flux(&spectrum, freq_hz, flux_jy);
    for (int s = 0; s < 4; ++s)
        flux_jy[s] *= scale;
}

/* ---- lists of sources ---- */

static tess_status add_listed(const char *path, const tess_listed_source *listed,
                              const double center[2], double ref_freq_hz, tess_sky *sky)
{
    tess_status status = TESS_OK;
    double lmn1[3];
    tess_sky_source source = {.freq_hz =
                                  listed->ref_hz > 0.0 ? listed->ref_hz : ref_freq_hz,
                              .num_terms = listed->num_terms,
                              .is_polynomial = listed->num_terms > 0 && !listed->is_log,
                              .first_term = listed->first_term};
    if (!tess_sky_project(listed->ra_rad, listed->dec_rad, center[0], center[1], lmn1))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: line %lld: the source is 90 degrees or more from the phase "
                  "centre; check its position and the centre",
                  path, (long long)listed->line);
    source.l = lmn1[0];
    source.m = lmn1[1];
    source.n_minus_1 = lmn1[2];
    memcpy(source.flux_jy, listed->flux_jy, sizeof source.flux_jy);
    if (listed->is_gaussian)
        tess_sky_set_gaussian(&source, listed->major_rad, listed->minor_rad,
                              listed->pa_rad);
    TESS_TRY(tess_sky_add(sky, &source));
cleanup:
    return status;
}

/* The sky takes the list's terms over. */
static tess_status read_list(tess_comm *comm, const char *path, const double center[2],
                             double ref_freq_hz, tess_sky *sky)
{
    tess_status status = TESS_OK;
    tess_source_list list = {0};
    TESS_TRY(tess_source_list_read(comm, path, &list));
    if (list.num_sources == 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: a list without sources", path);
    for (int64_t k = 0; k < list.num_sources; ++k)
        TESS_TRY(add_listed(path, &list.source[k], center, ref_freq_hz, sky));
    sky->term = list.term;
    sky->num_terms = list.num_terms;
    list.term = NULL;
cleanup:
    tess_source_list_free(&list);
    return status;
}

/* ---- CSV ---- */

enum {
    COL_NAME,
    COL_RA,
    COL_DEC,
    COL_L,
    COL_M,
    COL_I,
    COL_Q,
    COL_U,
    COL_V,
    COL_INDEX,
    COL_REF_FREQ,
    COL_MAJOR,
    COL_MINOR,
    COL_PA,
    NUM_COLS
};

static const char *const column_names[NUM_COLS] = {
    "name",           "ra",       "dec",   "l",     "m", "flux_jy", "q", "u", "v",
    "spectral_index", "ref_freq", "major", "minor", "pa"};

static tess_status find_columns(const tess_csv *csv, int column[NUM_COLS])
{
    tess_status status = TESS_OK;
    for (int k = 0; k < NUM_COLS; ++k)
        column[k] = tess_csv_column(csv, column_names[k]);
    for (int c = 0; c < csv->num_columns; ++c) {
        bool known = false;
        for (int k = 0; k < NUM_COLS; ++k)
            known = known || column[k] == c;
        if (!known)
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: unknown column '%s'; there are name, ra, dec or l, m, "
                      "flux_jy, q, u, v, spectral_index, ref_freq, major, minor, pa",
                      csv->path, csv->column[c]);
    }
    const bool has_radec = column[COL_RA] >= 0 && column[COL_DEC] >= 0;
    const bool has_lm = column[COL_L] >= 0 && column[COL_M] >= 0;
    const bool mixed = (column[COL_RA] >= 0 || column[COL_DEC] >= 0) &&
                       (column[COL_L] >= 0 || column[COL_M] >= 0);
    if (!(has_radec || has_lm) || mixed || column[COL_I] < 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: the header line must name flux_jy and either ra and dec, or l "
                  "and m",
                  csv->path);
cleanup:
    return status;
}

/* An angle with unit; without one, and where `plain` says so, a plain number. An empty
 * cell is 0. */
static tess_status read_angle(const tess_csv *csv, int64_t row, int column, bool plain,
                              double *rad)
{
    const char *text = tess_csv_text(csv, row, column);
    *rad = 0.0;
    if (!*text) return TESS_OK;
    char *end = NULL;
    const double number = strtod(text, &end);
    if (*end == '\0' && (plain || number == 0.0))
        return tess_csv_number(csv, row, column, 0.0, rad);
    return tess_csv_blame(csv, row, column, tess_parse_angle(text, rad));
}

static tess_status read_direction(const tess_csv *csv, int64_t row,
                                  const int column[NUM_COLS], const double center[2],
                                  tess_sky_source *source)
{
    tess_status status = TESS_OK;
    double lmn1[3];
    bool above;
    if (column[COL_RA] >= 0) {
        double ra, dec;
        TESS_TRY(tess_csv_blame(
            csv, row, column[COL_RA],
            tess_parse_ra(tess_csv_text(csv, row, column[COL_RA]), &ra)));
        TESS_TRY(tess_csv_blame(
            csv, row, column[COL_DEC],
            tess_parse_dec(tess_csv_text(csv, row, column[COL_DEC]), &dec)));
        above = tess_sky_project(ra, dec, center[0], center[1], lmn1);
    } else {
        double l, m;
        TESS_TRY(read_angle(csv, row, column[COL_L], true, &l));
        TESS_TRY(read_angle(csv, row, column[COL_M], true, &m));
        above = complete(l, m, lmn1);
    }
    if (!above)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: line %lld: the source is 90 degrees or more from the phase "
                  "centre; check its position, --ra and --dec",
                  csv->path, (long long)csv->line[row]);
    source->l = lmn1[0];
    source->m = lmn1[1];
    source->n_minus_1 = lmn1[2];
cleanup:
    return status;
}

static tess_status read_source(const tess_csv *csv, int64_t row,
                               const int column[NUM_COLS], const double center[2],
                               tess_sky_source *source)
{
    tess_status status = TESS_OK;
    double major, minor, pa;
    TESS_TRY(read_direction(csv, row, column, center, source));
    if (!*tess_csv_text(csv, row, column[COL_I]))
        TESS_FAIL(TESS_ERR_INPUT, "%s: line %lld, column 'flux_jy' is empty", csv->path,
                  (long long)csv->line[row]);
    for (int s = 0; s < 4; ++s)
        TESS_TRY(
            tess_csv_number(csv, row, column[COL_I + s], 0.0, &source->flux_jy[s]));
    TESS_TRY(
        tess_csv_number(csv, row, column[COL_INDEX], 0.0, &source->spectral_index));
    const char *freq = tess_csv_text(csv, row, column[COL_REF_FREQ]);
    if (*freq)
        TESS_TRY(tess_csv_blame(csv, row, column[COL_REF_FREQ],
                                tess_parse_frequency(freq, &source->freq_hz)));
    TESS_TRY(read_angle(csv, row, column[COL_MAJOR], false, &major));
    TESS_TRY(read_angle(csv, row, column[COL_MINOR], false, &minor));
    TESS_TRY(read_angle(csv, row, column[COL_PA], false, &pa));
    if (major < 0.0 || minor < 0.0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: line %lld, column '%s': a width is negative",
                  csv->path, (long long)csv->line[row],
                  major < 0.0 ? "major" : "minor");
    /* A Gaussian given by its major axis alone is round. */
    if (!*tess_csv_text(csv, row, column[COL_MINOR])) minor = major;
    tess_sky_set_gaussian(source, major, minor, pa);
cleanup:
    return status;
}

static tess_status read_csv(tess_comm *comm, const char *path, const double center[2],
                            double ref_freq_hz, tess_sky *sky)
{
    tess_status status = TESS_OK;
    tess_csv csv = {0};
    int column[NUM_COLS];
    TESS_TRY(tess_csv_read(comm, path, &csv));
    TESS_TRY(find_columns(&csv, column));
    for (int64_t row = 0; row < csv.num_rows; ++row) {
        tess_sky_source source = {.freq_hz = ref_freq_hz};
        TESS_TRY(read_source(&csv, row, column, center, &source));
        TESS_TRY(tess_sky_add(sky, &source));
    }
cleanup:
    tess_csv_free(&csv);
    return status;
}

/* ---- FITS ---- */

/* A pixel's direction from the phase centre of the observation. */
static bool pixel_direction(const tess_fits_model *model, int64_t i, int64_t j,
                            const double center[2], double lmn1[3])
{
    const double l = ((double)(i + 1) - model->crpix_x) * model->scale_x_rad;
    const double m = ((double)(j + 1) - model->crpix_y) * model->scale_y_rad;
    if (!complete(l, m, lmn1)) return false;
    /* The same pointing, up to how headers round degrees, needs no detour. */
    const double same_rad = 1e-12;
    const double d_ra = remainder(model->ra_rad - center[0], TESS_TWO_PI);
    if (fabs(d_ra) * cos(center[1]) < same_rad &&
        fabs(model->dec_rad - center[1]) < same_rad)
        return true;
    double ra, dec;
    tess_sky_place(lmn1, model->ra_rad, model->dec_rad, &ra, &dec);
    return tess_sky_project(ra, dec, center[0], center[1], lmn1);
}

static tess_status add_plane_rows(const tess_fits_model *model, const double center[2],
                                  int plane, int64_t row_first, int64_t num_rows,
                                  const double *pixel, tess_sky *sky)
{
    tess_status status = TESS_OK;
    for (int64_t k = 0; k < num_rows * model->nx; ++k) {
        if (pixel[k] == 0.0) continue;
        const int64_t i = k % model->nx, j = row_first + k / model->nx;
        tess_sky_source source = {.freq_hz = model->freq_hz};
        double lmn1[3];
        if (isinf(pixel[k]))
            TESS_FAIL(TESS_ERR_INPUT, "%s: pixel (%lld, %lld) is infinite", model->path,
                      (long long)i + 1, (long long)j + 1);
        const bool is_sky = pixel_direction(model, i, j, center, lmn1);
        if (isnan(pixel[k]) && !is_sky) continue;
        if (isnan(pixel[k]))
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: pixel (%lld, %lld) is blank (NaN); give it a flux, or 0",
                      model->path, (long long)i + 1, (long long)j + 1);
        if (!is_sky)
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: pixel (%lld, %lld) has flux but lies 90 degrees or more "
                      "from a centre; check --ra and --dec",
                      model->path, (long long)i + 1, (long long)j + 1);
        source.l = lmn1[0];
        source.m = lmn1[1];
        source.n_minus_1 = lmn1[2];
        source.flux_jy[model->stokes[plane] - 1] = pixel[k];
        TESS_TRY(tess_sky_add(sky, &source));
    }
cleanup:
    return status;
}

static tess_status read_fits(const char *path, const double center[2], tess_sky *sky)
{
    tess_status status = TESS_OK;
    tess_fits_model model;
    double *pixel = NULL;
    memset(&model, 0, sizeof model);
    TESS_TRY(tess_fits_open(path, &model));
    TESS_TRY(tess_fits_check_j2000(&model));
    tess_fits_settle(&model, center[0], center[1]);
    if (model.num_freq > 1)
        TESS_FAIL(TESS_ERR_INPUT, "%s: %d frequency planes; give an image of one", path,
                  model.num_freq);
    int64_t rows = PIXELS_PER_READ / model.nx;
    if (rows < 1) rows = 1;
    if (rows > model.ny) rows = model.ny;
    pixel = tess_alloc(rows * model.nx, sizeof *pixel);
    if (!pixel) TESS_FAIL(TESS_ERR_ALLOC, "%s: %lld rows", path, (long long)rows);
    for (int plane = 0; plane < model.num_stokes; ++plane) {
        if (model.stokes[plane] < 1 || model.stokes[plane] > 4)
            TESS_FAIL(TESS_ERR_INPUT, "%s: a plane is neither Stokes I, Q, U nor V",
                      path);
        for (int64_t first = 0; first < model.ny; first += rows) {
            const int64_t n = rows < model.ny - first ? rows : model.ny - first;
            TESS_TRY(
                tess_fits_read(&model, plane, 0, first, n, TESS_PIXEL_DOUBLE, pixel));
            TESS_TRY(add_plane_rows(&model, center, plane, first, n, pixel, sky));
        }
    }
cleanup:
    tess_free(pixel);
    return status;
}

tess_status tess_sky_read(tess_comm *comm, const char *path, double ra_rad,
                          double dec_rad, double ref_freq_hz, tess_sky *sky)
{
    tess_status status = TESS_OK;
    const double center[2] = {ra_rad, dec_rad};
    tess_sky read = {0};
    bool is_list = false;
    TESS_TRY(tess_source_list_is(comm, path, &is_list));
    if (is_list)
        status = read_list(comm, path, center, ref_freq_hz, &read);
    else if (tess_fits_is_name(path))
        status = read_fits(path, center, &read);
    else
        status = read_csv(comm, path, center, ref_freq_hz, &read);
    TESS_TRY(tess_comm_agree(comm, status));
    if (read.num_sources == 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: every pixel is zero; there is nothing to simulate", path);
    *sky = read;
    memset(&read, 0, sizeof read);
cleanup:
    tess_sky_free(&read);
    return status;
}
