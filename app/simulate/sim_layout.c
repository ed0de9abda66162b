/* Finds the antennas of a simulated array: among the layouts that ship with the
 * program, or in a CSV file. */
#include "tess_sim_layout.h"

#include <erfa.h>
#include <erfam.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_csv.h"
#include "tess_const.h"
#include "tess_mem.h"

/* AIPS packs two antenna numbers into one BASELINE value as 2048 a + b + 65536. */
enum { MAX_ANTENNAS = 2047 };

/* The Earth's surface lies between these distances from its centre; other values are
 * local coordinates, or not metres. */
#define MIN_RADIUS_M 6.3e6
#define MAX_RADIUS_M 6.4e6

const tess_layout_table *tess_layout_builtin(int index)
{
    static const tess_layout_table *const table[] = {
        &tess_layout_meerkat,  &tess_layout_vla_a,    &tess_layout_vla_d,
        &tess_layout_ska1_mid, &tess_layout_ska1_low, &tess_layout_lofar,
        &tess_layout_mwa};
    const int count = (int)(sizeof table / sizeof table[0]);
    return index >= 0 && index < count ? table[index] : NULL;
}

static const tess_layout_table *find_builtin(const char *name)
{
    const tess_layout_table *table;
    for (int i = 0; (table = tess_layout_builtin(i)); ++i)
        if (strcmp(table->name, name) == 0) return table;
    return NULL;
}

static bool is_file_name(const char *name)
{
    const size_t length = strlen(name);
    return strchr(name, '/') || (length > 4 && strcmp(name + length - 4, ".csv") == 0);
}

static tess_status take_builtin(const tess_layout_table *table, tess_sim_array *array)
{
    tess_status status = TESS_OK;
    array->antenna = tess_alloc_zero(table->num_antennas, sizeof *array->antenna);
    if (!array->antenna) TESS_FAIL(TESS_ERR_ALLOC, "antennas");
    array->num_antennas = table->num_antennas;
    snprintf(array->telescope, sizeof array->telescope, "%s", table->telescope);
    for (int i = 0; i < table->num_antennas; ++i) {
        tess_vis_antenna *antenna = &array->antenna[i];
        snprintf(antenna->name, sizeof antenna->name, "%s", table->antenna[i].name);
        memcpy(antenna->xyz_m, table->antenna[i].xyz_m, sizeof antenna->xyz_m);
        antenna->diameter_m = table->diameter_m;
    }
cleanup:
    return status;
}

/* ---- files ---- */

/* Matrix that takes (east, north, up) at a reference to geocentric directions. */
typedef struct local_frame {
    double origin_m[3];
    double to_geocentric[3][3];
} local_frame;

/* Number behind "key=" in the comments of a file; NAN when absent. */
static double comment_value(const char *comments, const char *key)
{
    const char *at = strstr(comments, key);
    if (!at) return (double)NAN;
    char *end = NULL;
    const double value = strtod(at + strlen(key), &end);
    return end == at + strlen(key) ? (double)NAN : value;
}

static tess_status read_frame(const tess_csv *csv, local_frame *frame)
{
    tess_status status = TESS_OK;
    const double lon = comment_value(csv->comments, "lon=") * TESS_RAD_PER_DEG;
    const double lat = comment_value(csv->comments, "lat=") * TESS_RAD_PER_DEG;
    const double alt = comment_value(csv->comments, "alt=");
    if (!isfinite(lon) || !isfinite(lat) || fabs(lat) > TESS_PI / 2)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: columns east,north,up need a comment line '# lon=DEG lat=DEG "
                  "alt=M' that says where they are; or give x,y,z",
                  csv->path);
    if (eraGd2gc(ERFA_WGS84, lon, lat, isfinite(alt) ? alt : 0.0, frame->origin_m) != 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: reference position out of range", csv->path);
    const double to_geocentric[3][3] = {
        {-sin(lon), -sin(lat) * cos(lon), cos(lat) * cos(lon)},
        {cos(lon), -sin(lat) * sin(lon), cos(lat) * sin(lon)},
        {0.0, cos(lat), sin(lat)}};
    memcpy(frame->to_geocentric, to_geocentric, sizeof to_geocentric);
cleanup:
    return status;
}

static tess_status read_position(const tess_csv *csv, int64_t row, const int column[3],
                                 const local_frame *frame, double xyz_m[3])
{
    tess_status status = TESS_OK;
    double value[3];
    for (int k = 0; k < 3; ++k) {
        if (!*tess_csv_text(csv, row, column[k]))
            TESS_FAIL(TESS_ERR_INPUT, "%s: line %lld, column '%s' is empty", csv->path,
                      (long long)csv->line[row], csv->column[column[k]]);
        TESS_TRY(tess_csv_number(csv, row, column[k], 0.0, &value[k]));
    }
    for (int k = 0; k < 3; ++k) {
        xyz_m[k] = value[k];
        if (frame) {
            const double *direction = frame->to_geocentric[k];
            xyz_m[k] = frame->origin_m[k] + direction[0] * value[0] +
                       direction[1] * value[1] + direction[2] * value[2];
        }
    }
    const double radius_m =
        sqrt(xyz_m[0] * xyz_m[0] + xyz_m[1] * xyz_m[1] + xyz_m[2] * xyz_m[2]);
    if (radius_m < MIN_RADIUS_M || radius_m > MAX_RADIUS_M)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: line %lld is %.6g m from the Earth's centre; x,y,z must be "
                  "geocentric metres (east,north,up are local)",
                  csv->path, (long long)csv->line[row], radius_m);
cleanup:
    return status;
}

/* Finds the columns of positions, and the frame that local ones are in.
 * TESS_ERR_INPUT. */
static tess_status find_positions(const tess_csv *csv, int column[3],
                                  bool *is_geocentric, local_frame *frame)
{
    tess_status status = TESS_OK;
    column[0] = tess_csv_column(csv, "x");
    column[1] = tess_csv_column(csv, "y");
    column[2] = tess_csv_column(csv, "z");
    *is_geocentric = column[0] >= 0 && column[1] >= 0 && column[2] >= 0;
    if (*is_geocentric) return TESS_OK;
    column[0] = tess_csv_column(csv, "east");
    column[1] = tess_csv_column(csv, "north");
    column[2] = tess_csv_column(csv, "up");
    if (column[0] < 0 || column[1] < 0 || column[2] < 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: the header line must name columns x,y,z or east,north,up",
                  csv->path);
    TESS_TRY(read_frame(csv, frame));
cleanup:
    return status;
}

/* The array is called after its file, without folder and ending. */
static void name_array(const char *path, tess_sim_array *array)
{
    const char *slash = strrchr(path, '/');
    snprintf(array->telescope, sizeof array->telescope, "%.60s",
             slash ? slash + 1 : path);
    char *dot = strrchr(array->telescope, '.');
    if (dot && dot != array->telescope) *dot = '\0';
}

static tess_status take_table(const tess_csv *csv, tess_sim_array *array)
{
    tess_status status = TESS_OK;
    local_frame frame;
    int column[3];
    bool is_geocentric;
    TESS_TRY(find_positions(csv, column, &is_geocentric, &frame));
    if (csv->num_rows > MAX_ANTENNAS)
        TESS_FAIL(TESS_ERR_INPUT, "%s: %lld antennas, at most %d are possible",
                  csv->path, (long long)csv->num_rows, MAX_ANTENNAS);
    array->antenna = tess_alloc_zero(csv->num_rows, sizeof *array->antenna);
    if (!array->antenna) TESS_FAIL(TESS_ERR_ALLOC, "%s: antennas", csv->path);
    array->num_antennas = (int)csv->num_rows;
    const int name_column = tess_csv_column(csv, "name");
    const int diameter_column = tess_csv_column(csv, "diameter");
    for (int i = 0; i < array->num_antennas; ++i) {
        tess_vis_antenna *antenna = &array->antenna[i];
        const char *name = tess_csv_text(csv, i, name_column);
        if (*name)
            snprintf(antenna->name, sizeof antenna->name, "%s", name);
        else
            snprintf(antenna->name, sizeof antenna->name, "A%03d", i);
        TESS_TRY(read_position(csv, i, column, is_geocentric ? NULL : &frame,
                               antenna->xyz_m));
        TESS_TRY(tess_csv_number(csv, i, diameter_column, 0.0, &antenna->diameter_m));
    }
    name_array(csv->path, array);
cleanup:
    return status;
}

static void find_center(tess_sim_array *array)
{
    for (int k = 0; k < 3; ++k) {
        double sum = 0.0;
        for (int i = 0; i < array->num_antennas; ++i)
            sum += array->antenna[i].xyz_m[k];
        array->center_m[k] = sum / array->num_antennas;
    }
}

tess_status tess_sim_array_read(tess_comm *comm, const char *name,
                                tess_sim_array *array)
{
    tess_status status = TESS_OK;
    tess_csv csv = {0};
    tess_sim_array read = {0};
    if (is_file_name(name)) {
        TESS_TRY(tess_csv_read(comm, name, &csv));
        TESS_TRY(take_table(&csv, &read));
    } else {
        const tess_layout_table *table = find_builtin(name);
        if (!table)
            TESS_FAIL(TESS_ERR_USAGE,
                      "no layout '%s'; tessera simulate --list-layouts shows those "
                      "there are, a file's name ends in .csv",
                      name);
        TESS_TRY(take_builtin(table, &read));
    }
    if (read.num_antennas < 2)
        TESS_FAIL(TESS_ERR_INPUT, "%s: one antenna; at least two are needed", name);
    find_center(&read);
    *array = read;
    memset(&read, 0, sizeof read);
cleanup:
    tess_sim_array_free(&read);
    tess_csv_free(&csv);
    return status;
}

/* ---- subsets ---- */

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median as the middle of the sorted values (mean of two for an even count). */
static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return 0.5 * (values[count / 2] + values[(count - 1) / 2]);
}

/* Horizontal distance of each antenna from the median position. */
static tess_status find_radii(const tess_sim_array *array, double *radius_m)
{
    tess_status status = TESS_OK;
    const int count = array->num_antennas;
    double *east = tess_alloc(count, sizeof *east);
    double *north = tess_alloc(count, sizeof *north);
    double *sorted = tess_alloc(count, sizeof *sorted);
    if (!east || !north || !sorted) TESS_FAIL(TESS_ERR_ALLOC, "antenna distances");
    const double *center = array->center_m;
    const double lon = atan2(center[1], center[0]);
    const double lat = atan2(center[2], hypot(center[0], center[1]));
    for (int i = 0; i < count; ++i) {
        double d[3];
        for (int k = 0; k < 3; ++k)
            d[k] = array->antenna[i].xyz_m[k] - center[k];
        east[i] = -sin(lon) * d[0] + cos(lon) * d[1];
        north[i] = -sin(lat) * (cos(lon) * d[0] + sin(lon) * d[1]) + cos(lat) * d[2];
    }
    memcpy(sorted, east, (size_t)count * sizeof *sorted);
    const double east0 = median(sorted, count);
    memcpy(sorted, north, (size_t)count * sizeof *sorted);
    const double north0 = median(sorted, count);
    for (int i = 0; i < count; ++i)
        radius_m[i] = hypot(east[i] - east0, north[i] - north0);
cleanup:
    tess_free(east);
    tess_free(north);
    tess_free(sorted);
    return status;
}

tess_status tess_sim_array_choose(tess_sim_array *array, double radius_m, int count)
{
    tess_status status = TESS_OK;
    double *distance_m = NULL;
    int left = array->num_antennas;
    if (radius_m > 0.0) {
        distance_m = tess_alloc(left, sizeof *distance_m);
        if (!distance_m) TESS_FAIL(TESS_ERR_ALLOC, "antenna distances");
        TESS_TRY(find_radii(array, distance_m));
        left = 0;
        for (int i = 0; i < array->num_antennas; ++i)
            if (distance_m[i] < radius_m) array->antenna[left++] = array->antenna[i];
    }
    if (left < 2 || left < count)
        TESS_FAIL(TESS_ERR_USAGE, "%d antennas are asked for, but %s has %d%s",
                  count > 2 ? count : 2, array->telescope, left,
                  radius_m > 0.0 ? " within that radius" : "");
    if (count > 0 && count < left) {
        /* Truncated evenly spaced positions, first and last included. */
        for (int i = 0; i < count; ++i)
            array->antenna[i] = array->antenna[(int64_t)i * (left - 1) / (count - 1)];
        left = count;
    }
    array->num_antennas = left;
    find_center(array);
cleanup:
    tess_free(distance_m);
    return status;
}

void tess_sim_array_free(tess_sim_array *array)
{
    if (!array) return;
    tess_free(array->antenna);
    memset(array, 0, sizeof *array);
}
