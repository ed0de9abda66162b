/* Makes the tables of a cube: BEAMS as CASA has it, PLANES, and FREQUENCIES where these
 * are not equidistant. */
#define _GNU_SOURCE
#include "fits_cube.h"

#include <fitsio.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fits_header.h"
#include "fits_keys.h"
#include "tess_fits_cube.h"
#include "tess_mem.h"

static const double ASEC_PER_DEG = 3600;

/* The tables while they are made. */
typedef struct table_file {
    fitsfile *fits;
    const tess_image_meta *meta;
    const fits_plane *plane;
    int num_planes;
    int failed; /* what CFITSIO said */
} table_file;

/* A column of the table of planes: a number at `offset` of a fits_plane. */
typedef struct plane_column {
    char *name, *unit;
    bool is_integer;
    size_t offset;
} plane_column;

static const plane_column columns[] = {
    {"BMAJ", "deg", false, offsetof(fits_plane, beam_deg)},
    {"BMIN", "deg", false, offsetof(fits_plane, beam_deg) + sizeof(double)},
    {"BPA", "deg", false, offsetof(fits_plane, beam_deg) + 2 * sizeof(double)},
    {"FREQMEAN", "Hz", false, offsetof(fits_plane, freq_mean_hz)},
    {"SUMWT", "", false, offsetof(fits_plane, sum_weights)},
    {"NVIS", "", true, offsetof(fits_plane, num_vis)},
    {"DATAMIN", "", false, offsetof(fits_plane, min)},
    {"DATAMAX", "", false, offsetof(fits_plane, max)},
    {"DATASUM", "", true, offsetof(fits_plane, data_sum)},
    {"NITER", "", true, offsetof(fits_plane, iterations)},
    {"NMAJOR", "", true, offsetof(fits_plane, majors)},
    {"CLTHRESH", "Jy/beam", false, offsetof(fits_plane, threshold_jy)},
    {"CLFLUX", "Jy", false, offsetof(fits_plane, flux_jy)}};
enum { NUM_COLUMNS = sizeof columns / sizeof *columns, BEFORE = 4 };

/* ---- common to all ---- */

/* Checksum and sum of the data, without the time that CFITSIO would add. */
static void put_sums(table_file *to)
{
    unsigned long data = 0, all = 0;
    char text[32];
    fits_write_key_str(to->fits, "CHECKSUM", "0000000000000000", "of this table",
                       &to->failed);
    fits_write_key_str(to->fits, "DATASUM", "0", "of its data", &to->failed);
    fits_set_hdustruc(to->fits, &to->failed); /* with the END card */
    fits_get_chksum(to->fits, &data, &all, &to->failed);
    snprintf(text, sizeof text, "%lu", data);
    fits_modify_key_str(to->fits, "DATASUM", text, "&", &to->failed);
    fits_get_chksum(to->fits, &data, &all, &to->failed);
    fits_encode_chksum(all, 1, text);
    fits_modify_key_str(to->fits, "CHECKSUM", text, "&", &to->failed);
}

static void put_count(table_file *to, const char *key, int value, const char *comment)
{
    fits_write_key_lng(to->fits, key, value, comment, &to->failed);
}

/* Writes the channel and the polarisation of each plane, counted from 0. */
static void put_places(table_file *to, int chan_column, int pol_column)
{
    const int num_freq = to->meta->cube->num_freq;
    for (int k = 0; k < to->num_planes; ++k) {
        int chan = k % num_freq, pol = k / num_freq;
        fits_write_col(to->fits, TINT, chan_column, k + 1, 1, 1, &chan, &to->failed);
        fits_write_col(to->fits, TINT, pol_column, k + 1, 1, 1, &pol, &to->failed);
    }
}

/* ---- tables ---- */

/* Finds the beam of a plane. A plane without data gets the beam of the nearest channel
 * that has one, in this Stokes parameter or another, because casacore opens no image
 * that has a beam of 0. */
static const double *beam_of(const table_file *of, int plane)
{
    const int num_freq = of->meta->cube->num_freq;
    int best = -1, distance = INT32_MAX;
    if (of->plane[plane].beam_deg[0] > 0) return of->plane[plane].beam_deg;
    for (int k = 0; k < of->num_planes; ++k) {
        const int away = abs(k % num_freq - plane % num_freq) +
                         (k / num_freq == plane / num_freq ? 0 : num_freq);
        if (!(of->plane[k].beam_deg[0] > 0) || away >= distance) continue;
        best = k;
        distance = away;
    }
    return of->plane[best < 0 ? plane : best].beam_deg;
}

/* Makes the table of beams as CASA writes and reads it: in single precision, with a row
 * for each plane. */
static void put_beams(table_file *to)
{
    char *type[] = {"BMAJ", "BMIN", "BPA", "CHAN", "POL"};
    char *form[] = {"1E", "1E", "1E", "1J", "1J"};
    char *unit[] = {"arcsec", "arcsec", "deg", "", ""};
    fits_create_tbl(to->fits, BINARY_TBL, to->num_planes, 5, type, form, unit, "BEAMS",
                    &to->failed);
    put_count(to, "EXTVER", 1, NULL);
    put_count(to, "NCHAN", to->meta->cube->num_freq, "channels");
    put_count(to, "NPOL", to->meta->cube->num_stokes, "Stokes parameters");
    for (int k = 0; k < to->num_planes; ++k) {
        const double *beam_deg = beam_of(to, k);
        for (int c = 0; c < 3; ++c) {
            double value = beam_deg[c] * (c < 2 ? ASEC_PER_DEG : 1);
            fits_write_col(to->fits, TDOUBLE, c + 1, k + 1, 1, 1, &value, &to->failed);
        }
    }
    put_places(to, 4, 5);
    put_sums(to);
}

static void put_column(table_file *to, const plane_column *column, int number)
{
    for (int k = 0; k < to->num_planes; ++k) {
        double value;
        memcpy(&value, (const char *)&to->plane[k] + column->offset, sizeof value);
        if (isinf(value)) value = NAN; /* of no pixel */
        if (column->is_integer) {
            LONGLONG count = (LONGLONG)value;
            fits_write_col(to->fits, TLONGLONG, number, k + 1, 1, 1, &count,
                           &to->failed);
        } else
            fits_write_col(to->fits, TDOUBLE, number, k + 1, 1, 1, &value, &to->failed);
    }
}

/* Makes the table of what the headers of separate files say. */
static void put_planes(table_file *to)
{
    char *type[BEFORE + NUM_COLUMNS] = {"CHAN", "POL", "FREQ", "BANDWID"};
    char *form[BEFORE + NUM_COLUMNS] = {"1J", "1J", "1D", "1D"};
    char *unit[BEFORE + NUM_COLUMNS] = {"", "", "Hz", "Hz"};
    const tess_cube_axes *cube = to->meta->cube;
    for (int c = 0; c < NUM_COLUMNS; ++c) {
        type[BEFORE + c] = columns[c].name;
        form[BEFORE + c] = columns[c].is_integer ? "1K" : "1D";
        unit[BEFORE + c] = columns[c].unit;
    }
    fits_create_tbl(to->fits, BINARY_TBL, to->num_planes, BEFORE + NUM_COLUMNS, type,
                    form, unit, "PLANES", &to->failed);
    if (cube->run)
        fits_write_key_str(to->fits, "RUN", cube->run, "the run that makes it",
                           &to->failed);
    put_places(to, 1, 2);
    for (int k = 0; k < to->num_planes; ++k) {
        const int c = k % cube->num_freq;
        double place[2] = {cube->freq_hz[c], cube->width_hz[c]};
        fits_write_col(to->fits, TDOUBLE, 3, k + 1, 1, 1, &place[0], &to->failed);
        fits_write_col(to->fits, TDOUBLE, 4, k + 1, 1, 1, &place[1], &to->failed);
    }
    for (int c = 0; c < NUM_COLUMNS; ++c)
        put_column(to, &columns[c], BEFORE + c + 1);
    put_sums(to);
}

/* Makes a table of one cell with all frequencies: FITS paper III (Greisen et al. 2006),
 * section 6.1.2. */
static void put_frequencies(table_file *to)
{
    const tess_cube_axes *cube = to->meta->cube;
    char *type[] = {TESS_CUBE_FREQ_COLUMN};
    char *unit[] = {"Hz"};
    char form[32], lengths[32];
    char *forms[] = {form};
    snprintf(form, sizeof form, "%dD", cube->num_freq);
    snprintf(lengths, sizeof lengths, "(1,%d)", cube->num_freq);
    fits_create_tbl(to->fits, BINARY_TBL, 1, 1, type, forms, unit, TESS_CUBE_FREQ_TABLE,
                    &to->failed);
    put_count(to, "EXTVER", 1, NULL);
    put_count(to, "EXTLEVEL", 1, NULL);
    fits_write_key_str(to->fits, "TDIM1", lengths, NULL, &to->failed);
    for (int c = 0; c < cube->num_freq; ++c) {
        double freq_hz = cube->freq_hz[c];
        fits_write_col(to->fits, TDOUBLE, 1, 1, c + 1, 1, &freq_hz, &to->failed);
    }
    put_sums(to);
}

/* Copies the bytes behind the empty primary array. Flushing may move the memory. */
static tess_status take_bytes(table_file *to, void *const *memory, char **text,
                              int64_t *bytes)
{
    tess_status status = TESS_OK;
    LONGLONG header, data, end = TESS_FITS_BLOCK;
    char why[FLEN_STATUS];
    fits_flush_file(to->fits, &to->failed);
    fits_get_hduaddrll(to->fits, &header, &data, &end, &to->failed);
    if (to->failed) {
        fits_get_errstatus(to->failed, why);
        fits_clear_errmsg();
        TESS_FAIL(TESS_ERR_INTERNAL, "tables of a cube cannot be made: %s", why);
    }
    *text = tess_alloc(end - TESS_FITS_BLOCK, 1);
    if (!*text) TESS_FAIL(TESS_ERR_ALLOC, "tables of a cube");
    *bytes = end - TESS_FITS_BLOCK;
    memcpy(*text, (const char *)*memory + TESS_FITS_BLOCK, (size_t)*bytes);
cleanup:
    return status;
}

tess_status fits_cube_tables(const tess_image_meta *meta, const fits_plane *plane,
                             char **text, int64_t *bytes)
{
    tess_status status = TESS_OK;
    table_file to = {.meta = meta,
                     .plane = plane,
                     .num_planes = meta->cube->num_freq * meta->cube->num_stokes};
    size_t size = TESS_FITS_BLOCK;
    void *memory = malloc(size);
    if (!memory) TESS_FAIL(TESS_ERR_ALLOC, "tables of a cube");
    fits_create_memfile(&to.fits, &memory, &size, TESS_FITS_BLOCK, realloc, &to.failed);
    fits_create_imgll(to.fits, BYTE_IMG, 0, NULL, &to.failed);
    if (meta->cube->has_beams) put_beams(&to);
    put_planes(&to);
    if (!tess_cube_is_linear(meta)) put_frequencies(&to);
    TESS_TRY(take_bytes(&to, &memory, text, bytes));
cleanup:
    if (to.fits) fits_close_file(to.fits, &(int){0});
    free(memory); /* by realloc(), as CFITSIO wants it */
    return status;
}

/* ---- of an unfinished cube ---- */

static tess_status read_column(const char *path, const fits_table *from,
                               const plane_column *column, int num_planes,
                               fits_plane *plane)
{
    tess_status status = TESS_OK;
    double *value = tess_alloc(num_planes, sizeof *value);
    if (!value) TESS_FAIL(TESS_ERR_ALLOC, "%s: planes", path);
    if (!fits_table_column(from, column->name, num_planes, value))
        TESS_FAIL(TESS_ERR_INPUT, "%s: its table of planes is damaged", path);
    for (int k = 0; k < num_planes; ++k)
        memcpy((char *)&plane[k] + column->offset, &value[k], sizeof *value);
cleanup:
    tess_free(value);
    return status;
}

tess_status fits_cube_run_of(const char *path, char run[FITS_CUBE_RUN])
{
    tess_status status = TESS_OK;
    char found[FLEN_VALUE] = "";
    int missing = 0;
    fits_table from = {.fd = -1};
    run[0] = '\0';
    TESS_TRY(fits_table_find(path, "PLANES", &from));
    if (!from.fits) goto cleanup;
    fits_read_key(from.fits, TSTRING, "RUN", found, NULL, &missing);
    fits_clear_errmsg();
    if (missing == 0) snprintf(run, FITS_CUBE_RUN, "%.*s", FITS_CUBE_RUN - 1, found);
cleanup:
    fits_table_close(&from);
    return status;
}

tess_status fits_cube_read_planes(const char *path, int num_planes, fits_plane *plane)
{
    tess_status status = TESS_OK;
    fits_table from = {.fd = -1};
    TESS_TRY(fits_table_find(path, "PLANES", &from));
    if (!from.fits) TESS_FAIL(TESS_ERR_INPUT, "%s: it has no table of planes", path);
    for (int c = 0; c < NUM_COLUMNS; ++c)
        TESS_TRY(read_column(path, &from, &columns[c], num_planes, plane));
    for (int k = 0; k < num_planes; ++k) {
        plane[k].written = 1;
        if (!isnan(plane[k].min)) continue;
        plane[k].min = INFINITY; /* no pixel is finite */
        plane[k].max = -INFINITY;
    }
cleanup:
    fits_table_close(&from);
    return status;
}
