/* Reads the tables of a UVFITS file: antennas, frequencies and sources. */
#define _GNU_SOURCE
#include "vis_uvfits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fits_guard.h"
#include "tess_const.h"
#include "tess_mem.h"

enum {
    MAX_TABLE_ROWS = 65536, /* more antennas, sources or set-ups than any file has */
    MAX_ANTENNA_NUMBER = 1 << 20,
    MAX_SUBARRAYS = 1024
};

/* ---- columns ---- */

static int find_column(fitsfile *fits, const char *name)
{
    int failed = 0, column = 0;
    char pattern[FLEN_VALUE];
    snprintf(pattern, sizeof pattern, "%s", name);
    fits_get_colnum(fits, CASEINSEN, pattern, &column, &failed);
    return failed ? 0 : column;
}

/* Reads `count` numbers of a cell. Returns false if the column lacks them. */
static bool read_numbers(fitsfile *fits, int column, int64_t row, int64_t count,
                         double *values)
{
    int failed = 0, type = 0;
    long repeat = 0, width = 0;
    if (column == 0) return false;
    fits_get_coltype(fits, column, &type, &repeat, &width, &failed);
    if (failed || repeat < count) return false;
    fits_read_col(fits, TDOUBLE, column, row + 1, 1, count, NULL, values, NULL,
                  &failed);
    return !failed;
}

static double read_number(fitsfile *fits, int column, int64_t row, double fallback)
{
    double value = fallback;
    return read_numbers(fits, column, row, 1, &value) ? value : fallback;
}

static void read_text(fitsfile *fits, int column, int64_t row, char *text, size_t bytes)
{
    int failed = 0, type = 0;
    long repeat = 0, width = 0;
    char cell[256] = "";
    char *pointer = cell;
    text[0] = '\0';
    if (column == 0) return;
    fits_get_coltype(fits, column, &type, &repeat, &width, &failed);
    if (failed || type != TSTRING || repeat >= (long)sizeof cell) return;
    fits_read_col(fits, TSTRING, column, row + 1, 1, 1, NULL, &pointer, NULL, &failed);
    if (!failed) snprintf(text, bytes, "%s", uvfits_trim(cell));
}

static tess_status count_rows(fitsfile *fits, const char *path, const char *table,
                              int64_t *num_rows)
{
    tess_status status = TESS_OK;
    int failed = 0;
    LONGLONG rows = 0;
    fits_get_num_rowsll(fits, &rows, &failed);
    if (failed || rows < 0 || rows > MAX_TABLE_ROWS)
        TESS_FAIL(TESS_ERR_INPUT, "%s: its %s table is damaged", path, table);
    *num_rows = rows;
cleanup:
    return status;
}

/* ---- antennas (AIPS AN) ---- */

static tess_status grow_subarray(uvfits_state *state, int subarray, int64_t number)
{
    tess_status status = TESS_OK;
    if (number < 0 || number > MAX_ANTENNA_NUMBER || subarray < 0 ||
        subarray >= MAX_SUBARRAYS)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: antenna number %lld of subarray %d makes no sense", state->path,
                  (long long)number, subarray + 1);
    if (subarray >= state->num_subarrays) {
        uvfits_subarray *more = tess_alloc_zero(subarray + 1, sizeof *more);
        if (!more) TESS_FAIL(TESS_ERR_ALLOC, "not enough memory for antennas");
        for (int k = 0; k < state->num_subarrays; ++k)
            more[k] = state->subarray[k];
        tess_free(state->subarray);
        state->subarray = more;
        state->num_subarrays = subarray + 1;
    }
    uvfits_subarray *map = &state->subarray[subarray];
    if (number >= map->num_numbers) {
        const int64_t size = 2 * number + 16;
        int32_t *index = tess_alloc(size, sizeof *index);
        if (!index) TESS_FAIL(TESS_ERR_ALLOC, "not enough memory for antennas");
        for (int64_t k = 0; k < size; ++k)
            index[k] = k < map->num_numbers ? map->index[k] : -1;
        tess_free(map->index);
        map->index = index;
        map->num_numbers = size;
    }
cleanup:
    return status;
}

static bool same_antenna(const tess_vis_antenna *a, const tess_vis_antenna *b)
{
    double distance_m = 0;
    for (int k = 0; k < 3; ++k)
        distance_m += fabs(a->xyz_m[k] - b->xyz_m[k]);
    return distance_m < 1.0 && strcmp(a->name, b->name) == 0;
}

tess_status uvfits_add_antenna(uvfits_state *state, tess_vis_meta *meta, int subarray,
                               int64_t number, const tess_vis_antenna *antenna)
{
    tess_status status = TESS_OK;
    int32_t index = -1;
    TESS_TRY(grow_subarray(state, subarray, number));
    /* the same antenna often stands in the tables of several subarrays */
    for (int k = 0; subarray > 0 && k < meta->num_antennas && index < 0; ++k)
        if (same_antenna(&meta->antenna[k], antenna)) index = k;
    if (index < 0) {
        void *array = meta->antenna;
        if (tess_grow(&array, &state->antenna_capacity, meta->num_antennas + 1,
                      sizeof *meta->antenna) != 0)
            TESS_FAIL(TESS_ERR_ALLOC, "not enough memory for antennas");
        meta->antenna = array;
        index = meta->num_antennas++;
        meta->antenna[index] = *antenna;
    }
    state->subarray[subarray].index[number] = index;
cleanup:
    return status;
}

/* Computes the scatter of the antennas' heights above the array's horizon when their
 * offsets are turned about the Earth's axis by this angle. */
static double height_scatter_m(const double (*offset_m)[3], int64_t count,
                               const double center_m[3], double angle_rad)
{
    const double radius = sqrt(center_m[0] * center_m[0] + center_m[1] * center_m[1] +
                               center_m[2] * center_m[2]);
    const double c = cos(angle_rad), s = sin(angle_rad);
    double sum = 0, sum_squares = 0;
    for (int64_t k = 0; k < count; ++k) {
        const double *p = offset_m[k];
        const double height =
            ((c * p[0] - s * p[1]) * center_m[0] + (s * p[0] + c * p[1]) * center_m[1] +
             p[2] * center_m[2]) /
            radius;
        sum += height;
        sum_squares += height * height;
    }
    const double mean = sum / (double)count;
    const double variance = sum_squares / (double)count - mean * mean;
    return variance > 0 ? sqrt(variance) : 0;
}

/* Finds the frame of offsets. Old VLA files, MWA files of some writers and others give
 * offsets in a frame whose x axis lies in the array's own meridian instead of
 * Greenwich's. Antennas stand on the ground, so the right frame is the one in which
 * their heights scatter least. Returns the angle to turn by. */
static double meridian_angle(const double (*offset_m)[3], int64_t count,
                             const double center_m[3])
{
    const double size = fabs(center_m[0]) + fabs(center_m[1]) + fabs(center_m[2]);
    if (count < 3 || !(size > 6.0e6)) return 0;
    const double longitude = atan2(center_m[1], center_m[0]);
    const double plain = height_scatter_m(offset_m, count, center_m, 0);
    const double turned = height_scatter_m(offset_m, count, center_m, longitude);
    return plain > 10.0 && turned < 0.3 * plain ? longitude : 0;
}

/* Returns the time of the file minus UTC: DATUTC, or IATUTC when times are IAT. */
static double time_offset_s(fitsfile *fits)
{
    char system[FLEN_VALUE];
    uvfits_key_text(fits, "TIMSYS", system, sizeof system);
    if (!system[0]) uvfits_key_text(fits, "TIMESYS", system, sizeof system);
    if (strcasecmp(system, "IAT") != 0 && strcasecmp(system, "TAI") != 0) return 0;
    const double iat = uvfits_key_number(fits, "IATUTC", 0.0);
    const double offset = iat != 0 ? iat : uvfits_key_number(fits, "DATUTC", 0.0);
    return isfinite(offset) && fabs(offset) < 100 ? offset : 0;
}

/* Reads the centre of the array. Coordinates that are not finite count as 0. */
static void read_center(fitsfile *fits, double center_m[3])
{
    static const char *const keys[] = {"ARRAYX", "ARRAYY", "ARRAYZ"};
    for (int k = 0; k < 3; ++k) {
        center_m[k] = uvfits_key_number(fits, keys[k], 0.0);
        if (!isfinite(center_m[k])) center_m[k] = 0;
    }
}

/* Reads the positions of antennas from the centre of the array. */
static tess_status read_offsets(fitsfile *fits, const char *path, int64_t num_rows,
                                double (*offset_m)[3])
{
    tess_status status = TESS_OK;
    const int column = find_column(fits, "STABXYZ");
    char hand[FLEN_VALUE];
    uvfits_key_text(fits, "XYZHAND", hand, sizeof hand);
    for (int64_t row = 0; row < num_rows; ++row) {
        if (!read_numbers(fits, column, row, 3, offset_m[row]))
            TESS_FAIL(TESS_ERR_INPUT, "%s: positions in its AN table cannot be read",
                      path);
        if (strcasecmp(hand, "LEFT") == 0) offset_m[row][1] = -offset_m[row][1];
    }
cleanup:
    return status;
}

/* Where columns of an AN table are, or none. */
typedef struct antenna_columns {
    int name, number, diameter;
} antenna_columns;

/* Reads an antenna's number, name and diameter. An antenna without a number has that of
 * the row, and one without a name gets one. */
static tess_status read_antenna(fitsfile *fits, const char *path, int64_t row,
                                const antenna_columns *column, int64_t *number_out,
                                tess_vis_antenna *antenna)
{
    tess_status status = TESS_OK;
    const double number = read_number(fits, column->number, row, (double)row + 1);
    const double diameter_m = read_number(fits, column->diameter, row, 0.0);
    antenna->diameter_m = diameter_m > 0 && isfinite(diameter_m) ? diameter_m : 0;
    read_text(fits, column->name, row, antenna->name, sizeof antenna->name);
    if (!(number >= 0 && number <= MAX_ANTENNA_NUMBER))
        TESS_FAIL(TESS_ERR_INPUT, "%s: row %lld of its AN table has NOSTA %g", path,
                  (long long)row + 1, number);
    if (!antenna->name[0])
        snprintf(antenna->name, sizeof antenna->name, "ANT%.0f", number);
    *number_out = (int64_t)number;
cleanup:
    return status;
}

static tess_status read_antennas(fitsfile *fits, uvfits_state *state,
                                 tess_vis_meta *meta)
{
    tess_status status = TESS_OK;
    double(*offset_m)[3] = NULL;
    double center_m[3];
    int64_t num_rows = 0;
    const double version = uvfits_key_number(fits, "EXTVER", 1.0);
    const antenna_columns column = {.name = find_column(fits, "ANNAME"),
                                    .number = find_column(fits, "NOSTA"),
                                    .diameter = find_column(fits, "DIAMETER")};
    if (!(version >= 1 && version <= MAX_SUBARRAYS))
        TESS_FAIL(TESS_ERR_INPUT, "%s: an AN table has version %g", state->path,
                  version);
    const int subarray = (int)version - 1;
    TESS_TRY(count_rows(fits, state->path, "AN", &num_rows));
    offset_m = tess_alloc_zero(num_rows, sizeof *offset_m);
    if (!offset_m) TESS_FAIL(TESS_ERR_ALLOC, "not enough memory for antennas");
    read_center(fits, center_m);
    TESS_TRY(read_offsets(fits, state->path, num_rows, offset_m));
    const double angle =
        meridian_angle((const double(*)[3])offset_m, num_rows, center_m);
    for (int64_t row = 0; row < num_rows; ++row) {
        const double *p = offset_m[row];
        tess_vis_antenna antenna = {
            .xyz_m = {center_m[0] + cos(angle) * p[0] - sin(angle) * p[1],
                      center_m[1] + sin(angle) * p[0] + cos(angle) * p[1],
                      center_m[2] + p[2]}};
        int64_t number = 0;
        TESS_TRY(read_antenna(fits, state->path, row, &column, &number, &antenna));
        TESS_TRY(uvfits_add_antenna(state, meta, subarray, number, &antenna));
    }
    if (subarray == 0) state->utc_offset_s = time_offset_s(fits);
cleanup:
    tess_free(offset_m);
    return status;
}

/* ---- frequency set-ups (AIPS FQ) ---- */

static tess_status add_setup(uvfits_state *state, int id, uvfits_setup **added)
{
    tess_status status = TESS_OK;
    const int64_t num_if = state->layout.chan_if.length;
    uvfits_setup *setup = &state->setup[state->num_setups];
    setup->id = id;
    setup->if_freq_hz = tess_alloc_zero(num_if, sizeof(double));
    setup->step_hz = tess_alloc_zero(num_if, sizeof(double));
    ++state->num_setups;
    if (!setup->if_freq_hz || !setup->step_hz)
        TESS_FAIL(TESS_ERR_ALLOC, "not enough memory for frequencies");
    for (int64_t k = 0; k < num_if; ++k)
        setup->step_hz[k] = state->layout.freq.cdelt;
    *added = setup;
cleanup:
    return status;
}

/* Computes steps. The header's CDELT belongs to the first IF of the first set-up. The
 * others follow in proportion to CH WIDTH, so that equal widths give exactly equal
 * steps although CH WIDTH is single precision. SIDEBAND -1: frequency falls with
 * channel number. */
static void set_steps(uvfits_setup *setup, int64_t num_if, double reference_width,
                      const double *width, const double *sideband)
{
    for (int64_t k = 0; k < num_if; ++k) {
        const double ratio = fabs(width[k] / reference_width);
        if (isfinite(ratio) && ratio > 0) setup->step_hz[k] *= ratio;
        if (sideband[k] < 0) setup->step_hz[k] = -fabs(setup->step_hz[k]);
    }
}

static int compare_setups(const void *a, const void *b)
{
    const uvfits_setup *first = a, *second = b;
    return (first->id > second->id) - (first->id < second->id);
}

/* Where columns of an FQ table are, or none. */
typedef struct setup_columns {
    int id, freq, width, sideband;
} setup_columns;

/* Reads a row of the FQ table. `width` and `sideband` are memory for each IF's. */
static tess_status read_setup(fitsfile *fits, uvfits_state *state, int64_t row,
                              const setup_columns *column, double *width,
                              double *sideband, double *reference_width)
{
    tess_status status = TESS_OK;
    const int64_t num_if = state->layout.chan_if.length;
    uvfits_setup *setup = NULL;
    const double id = read_number(fits, column->id, row, (double)row + 1);
    if (!(fabs(id) < 1e9))
        TESS_FAIL(TESS_ERR_INPUT, "%s: its FQ table is damaged", state->path);
    TESS_TRY(add_setup(state, (int)id, &setup));
    if (!read_numbers(fits, column->freq, row, num_if, setup->if_freq_hz))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: its FQ table does not give the frequencies of %lld IFs",
                  state->path, (long long)num_if);
    for (int64_t k = 0; k < num_if; ++k)
        width[k] = sideband[k] = 0;
    read_numbers(fits, column->width, row, num_if, width);
    read_numbers(fits, column->sideband, row, num_if, sideband);
    if (row == 0) *reference_width = width[0];
    set_steps(setup, num_if, *reference_width, width, sideband);
cleanup:
    return status;
}

static tess_status read_setups(fitsfile *fits, uvfits_state *state)
{
    tess_status status = TESS_OK;
    const int64_t num_if = state->layout.chan_if.length;
    int64_t num_rows = 0;
    double reference_width = 0;
    double *width = tess_alloc_zero(num_if, sizeof(double));
    double *sideband = tess_alloc_zero(num_if, sizeof(double));
    if (!width || !sideband) TESS_FAIL(TESS_ERR_ALLOC, "not enough memory");
    if (state->setup) goto cleanup; /* a second FQ table adds nothing */
    const setup_columns column = {.id = find_column(fits, "FRQSEL"),
                                  .freq = find_column(fits, "IF FREQ"),
                                  .width = find_column(fits, "CH WIDTH"),
                                  .sideband = find_column(fits, "SIDEBAND")};
    TESS_TRY(count_rows(fits, state->path, "FQ", &num_rows));
    if (num_rows == 0) goto cleanup;
    state->setup = tess_alloc_zero(num_rows, sizeof *state->setup);
    if (!state->setup) TESS_FAIL(TESS_ERR_ALLOC, "not enough memory for frequencies");
    for (int64_t row = 0; row < num_rows; ++row)
        TESS_TRY(
            read_setup(fits, state, row, &column, width, sideband, &reference_width));
    qsort(state->setup, (size_t)state->num_setups, sizeof *state->setup,
          compare_setups);
cleanup:
    tess_free(width);
    tess_free(sideband);
    return status;
}

/* Makes the one IF of a file without a table, which is at the FREQ axis itself. */
static tess_status default_setup(uvfits_state *state)
{
    tess_status status = TESS_OK;
    uvfits_setup *setup = NULL;
    if (state->layout.chan_if.length > 1)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: has %lld IFs but no AIPS FQ table with their frequencies",
                  state->path, (long long)state->layout.chan_if.length);
    tess_free(state->setup);
    state->setup = tess_alloc_zero(1, sizeof *state->setup);
    if (!state->setup) TESS_FAIL(TESS_ERR_ALLOC, "not enough memory for frequencies");
    TESS_TRY(add_setup(state, 1, &setup));
cleanup:
    return status;
}

/* ---- sources (AIPS SU) ---- */

tess_status uvfits_add_field(uvfits_state *state, tess_vis_meta *meta, const char *name,
                             int id, const double place_rad[2], const sky_frame *frame)
{
    tess_status status = TESS_OK;
    const int count = meta->num_fields;
    if ((count & (count - 1)) == 0) { /* full at every power of two: double */
        tess_vis_field *more = tess_alloc_zero(count ? 2 * count : 1, sizeof *more);
        if (!more) TESS_FAIL(TESS_ERR_ALLOC, "not enough memory for fields");
        for (int k = 0; k < count; ++k)
            more[k] = meta->field[k];
        tess_free(meta->field);
        meta->field = more;
    }
    if (tess_grow((void **)&state->field_frame, &state->frame_capacity, count + 1,
                  sizeof *state->field_frame))
        TESS_FAIL(TESS_ERR_ALLOC, "not enough memory for fields");
    state->field_frame[count] = *frame;
    tess_vis_field *field = &meta->field[count];
    *field =
        (tess_vis_field){.id = id, .ra_rad = place_rad[0], .dec_rad = place_rad[1]};
    snprintf(field->name, sizeof field->name, "%s", name);
    ++meta->num_fields;
cleanup:
    return status;
}

void uvfits_place_fields(const uvfits_state *state, tess_vis_meta *meta)
{
    const double time_mjd_s = 0.5 * (meta->time_start_mjd_s + meta->time_end_mjd_s);
    for (int k = 0; k < meta->num_fields; ++k) {
        tess_vis_field *field = &meta->field[k];
        double place[2] = {field->ra_rad, field->dec_rad};
        field->north_rad =
            sky_frame_to_j2000(&state->field_frame[k], time_mjd_s, place);
        sky_frame_name(&state->field_frame[k], field->frame, sizeof field->frame);
        field->ra_rad = field->pointing_rad[0] = place[0];
        field->dec_rad = field->pointing_rad[1] = place[1];
    }
    const double rest_hz = meta->field[meta->field_selected].rest_hz;
    if (isfinite(rest_hz) && rest_hz > 0) meta->line.rest_hz = rest_hz;
    meta->ra_rad = meta->field[meta->field_selected].ra_rad;
    meta->dec_rad = meta->field[meta->field_selected].dec_rad;
}

/* Reads the frame of a position in SU. Column EPOCH holds its equinox, or nothing of
 * use. */
static tess_status read_source_frame(fitsfile *fits, const uvfits_state *state,
                                     int64_t row, sky_frame *frame)
{
    tess_status status = TESS_OK;
    const int column = find_column(fits, "EPOCH");
    const double equinox = read_number(fits, column, row, 0);
    *frame = state->frame;
    if (frame->system == SKY_ICRS || !(equinox > 1850 && equinox < 2100)) goto cleanup;
    TESS_TRY(sky_frame_parse(state->path, "", equinox, frame));
cleanup:
    return status;
}

/* Finds the position of a source. A file of one source is at the header's position; a
 * file of several has positions in SU. */
static tess_status read_sources(fitsfile *fits, uvfits_state *state,
                                tess_vis_meta *meta)
{
    tess_status status = TESS_OK;
    int64_t num_rows = 0;
    if (meta->num_fields > 0) goto cleanup;
    TESS_TRY(count_rows(fits, state->path, "SU", &num_rows));
    const int id_column = find_column(fits, "ID. NO.");
    const int name_column = find_column(fits, "SOURCE");
    const int ra_column = find_column(fits, "RAEPO");
    const int dec_column = find_column(fits, "DECEPO");
    const int rest_column = find_column(fits, "RESTFREQ");
    const bool at_header = num_rows == 1 && (meta->ra_rad != 0 || meta->dec_rad != 0);
    for (int64_t row = 0; row < num_rows; ++row) {
        char name[64];
        const double id = read_number(fits, id_column, row, (double)row + 1);
        double place_rad[2] = {meta->ra_rad, meta->dec_rad};
        sky_frame frame = state->frame;
        read_text(fits, name_column, row, name, sizeof name);
        if (!at_header) {
            place_rad[0] = read_number(fits, ra_column, row, NAN) * TESS_RAD_PER_DEG;
            place_rad[1] = read_number(fits, dec_column, row, NAN) * TESS_RAD_PER_DEG;
            TESS_TRY(read_source_frame(fits, state, row, &frame));
        }
        if (!(fabs(id) < 1e9) || !isfinite(place_rad[0]) || !isfinite(place_rad[1]))
            TESS_FAIL(TESS_ERR_INPUT, "%s: row %lld of its SU table cannot be read",
                      state->path, (long long)row + 1);
        TESS_TRY(uvfits_add_field(state, meta, name, (int)id, place_rad, &frame));
        meta->field[meta->num_fields - 1].rest_hz =
            read_number(fits, rest_column, row, 0);
    }
    state->sources_listed = num_rows > 0;
cleanup:
    return status;
}

/* ---- all extensions ---- */

tess_status uvfits_read_tables(fitsfile *fits, uvfits_state *state, tess_vis_meta *meta)
{
    tess_status status = TESS_OK;
    for (;;) {
        int type = 0;
        bool more = false;
        char name[FLEN_VALUE];
        TESS_TRY(fits_guard_next(fits, state->fd, state->layout.file_bytes, state->path,
                                 &type, &more));
        if (!more) break;
        uvfits_key_text(fits, "EXTNAME", name, sizeof name);
        if (type == IMAGE_HDU) continue;
        if (strcasecmp(name, "AIPS AN") == 0)
            TESS_TRY(read_antennas(fits, state, meta));
        else if (strcasecmp(name, "AIPS FQ") == 0)
            TESS_TRY(read_setups(fits, state));
        else if (strcasecmp(name, "AIPS SU") == 0)
            TESS_TRY(read_sources(fits, state, meta));
    }
    if (state->num_setups == 0) TESS_TRY(default_setup(state));
    const double header_rad[2] = {meta->ra_rad, meta->dec_rad};
    if (meta->num_fields == 0)
        TESS_TRY(
            uvfits_add_field(state, meta, meta->object, 1, header_rad, &state->frame));
cleanup:
    return status;
}
