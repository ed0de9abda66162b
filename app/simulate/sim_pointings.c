/* Finds the pointings of a mosaic: a hexagon around the phase centre, or the rows of a
 * CSV file. */
#include "sim_pointings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim_csv.h"
#include "tess_const.h"
#include "tess_geom.h"
#include "tess_mem.h"
#include "tess_parse.h"

enum { MAX_POINTINGS = 10000 };

static void set_place(tess_vis_field *field, double ra_rad, double dec_rad)
{
    field->ra_rad = field->pointing_rad[0] = ra_rad;
    field->dec_rad = field->pointing_rad[1] = dec_rad;
}

/* Pointings without a name have that of the observation and their number. */
static void set_name(tess_vis_field *field, const char *object, int number)
{
    snprintf(field->name, sizeof field->name, "%.50s_%d", object, number);
}

static tess_status make_room(int64_t num, sim_pointings *to)
{
    tess_status status = TESS_OK;
    if (num > MAX_POINTINGS)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--pointings: %lld pointings, at most %d are possible",
                  (long long)num, (int)MAX_POINTINGS);
    to->field = tess_alloc_zero(num, sizeof *to->field);
    if (!to->field) TESS_FAIL(TESS_ERR_ALLOC, "pointings");
    to->num = (int)num;
    for (int k = 0; k < to->num; ++k)
        to->field[k].id = k;
cleanup:
    return status;
}

/* ---- hexagons ---- */

static const char *const by_hexagon = "hex:";

static tess_status parse_hexagon(const char *text, int64_t *num, double *spacing_rad)
{
    tess_status status = TESS_OK;
    const char *numbers = text + strlen(by_hexagon);
    const char *comma = strchr(numbers, ',');
    char count[32];
    if (!comma || (size_t)(comma - numbers) >= sizeof count)
        TESS_FAIL(TESS_ERR_USAGE,
                  "'%s' is not a hexagon like hex:7,15amin: a number of pointings and "
                  "how far they are apart",
                  text);
    snprintf(count, sizeof count, "%.*s", (int)(comma - numbers), numbers);
    TESS_TRY(tess_parse_integer(count, 1, MAX_POINTINGS, num));
    TESS_TRY(tess_parse_angle(comma + 1, spacing_rad));
    if (!(*spacing_rad > 0.0 && *spacing_rad < TESS_PI / 4))
        TESS_FAIL(TESS_ERR_USAGE,
                  "'%s': pointings are apart by more than 0 and less "
                  "than 45 degrees",
                  text);
cleanup:
    return status;
}

/* Places of the lattice in steps of its rows (East) and at 60 degrees to them, walked
 * ring by ring: a ring begins in the East and goes through the North. */
static void walk_rings(int num, int (*place)[2])
{
    static const int side[6][2] = {{-1, 1}, {-1, 0}, {0, -1}, {1, -1}, {1, 0}, {0, 1}};
    int at = 0;
    place[at][0] = place[at][1] = 0;
    ++at;
    for (int ring = 1; at < num; ++ring) {
        int i = ring, j = 0;
        for (int k = 0; k < 6 * ring && at < num; ++k, ++at) {
            place[at][0] = i;
            place[at][1] = j;
            i += side[k / ring][0];
            j += side[k / ring][1];
        }
    }
}

static tess_status take_hexagon(const tess_simulate_opts *opts, sim_pointings *to)
{
    tess_status status = TESS_OK;
    int64_t num = 0;
    double spacing_rad = 0.0;
    int(*place)[2] = NULL;
    TESS_TRY(parse_hexagon(opts->mosaic.pointings, &num, &spacing_rad));
    TESS_TRY(make_room(num, to));
    place = tess_alloc(num, sizeof *place);
    if (!place) TESS_FAIL(TESS_ERR_ALLOC, "pointings");
    walk_rings(to->num, place);
    for (int k = 0; k < to->num; ++k) {
        const double east = spacing_rad * (place[k][0] + 0.5 * place[k][1]);
        const double north = spacing_rad * sqrt(0.75) * place[k][1];
        const double r2 = east * east + north * north;
        if (!(r2 < 1.0))
            TESS_FAIL(TESS_ERR_USAGE, "'%s' reaches 90 degrees from the phase centre",
                      opts->mosaic.pointings);
        const double lmn1[3] = {east, north, -r2 / (1.0 + sqrt(1.0 - r2))};
        double ra_rad, dec_rad;
        tess_sky_place(lmn1, opts->ra_rad, opts->dec_rad, &ra_rad, &dec_rad);
        set_place(&to->field[k], ra_rad, dec_rad);
        set_name(&to->field[k], opts->object, k);
    }
cleanup:
    tess_free(place);
    return status;
}

/* ---- files ---- */

static tess_status take_row(const tess_csv *csv, int64_t row, const char *object,
                            tess_vis_field *field)
{
    tess_status status = TESS_OK;
    const int ra_column = tess_csv_column(csv, "ra");
    const int dec_column = tess_csv_column(csv, "dec");
    const char *name = tess_csv_text(csv, row, tess_csv_column(csv, "name"));
    double ra_rad, dec_rad;
    TESS_TRY(
        tess_csv_blame(csv, row, ra_column,
                       tess_parse_ra(tess_csv_text(csv, row, ra_column), &ra_rad)));
    TESS_TRY(
        tess_csv_blame(csv, row, dec_column,
                       tess_parse_dec(tess_csv_text(csv, row, dec_column), &dec_rad)));
    set_place(field, ra_rad, dec_rad);
    if (*name)
        snprintf(field->name, sizeof field->name, "%.63s", name);
    else
        set_name(field, object, (int)row);
cleanup:
    return status;
}

/* Collective. */
static tess_status take_file(tess_comm *comm, const tess_simulate_opts *opts,
                             sim_pointings *to)
{
    tess_status status = TESS_OK;
    tess_csv csv = {0};
    TESS_TRY(tess_csv_read(comm, opts->mosaic.pointings, &csv));
    if (tess_csv_column(&csv, "ra") < 0 || tess_csv_column(&csv, "dec") < 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: the header line must name columns ra and dec",
                  csv.path);
    TESS_TRY(make_room(csv.num_rows, to));
    for (int k = 0; k < to->num; ++k)
        TESS_TRY(take_row(&csv, k, opts->object, &to->field[k]));
cleanup:
    tess_csv_free(&csv);
    return status;
}

/* The mean direction. */
static tess_status find_middle(const char *path, sim_pointings *of)
{
    tess_status status = TESS_OK;
    double sum[3] = {0};
    for (int k = 0; k < of->num; ++k) {
        const double ra = of->field[k].ra_rad, dec = of->field[k].dec_rad;
        sum[0] += cos(dec) * cos(ra);
        sum[1] += cos(dec) * sin(ra);
        sum[2] += sin(dec);
    }
    const double across = hypot(sum[0], sum[1]);
    if (!(hypot(across, sum[2]) > 1e-3))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: pointings in all directions have no middle; give --ra and --dec",
                  path);
    of->center_rad[0] = atan2(sum[1], sum[0]);
    if (of->center_rad[0] < 0.0) of->center_rad[0] += TESS_TWO_PI;
    of->center_rad[1] = atan2(sum[2], across);
cleanup:
    return status;
}

/* ---- either ---- */

tess_status sim_pointings_find(tess_comm *comm, const tess_simulate_opts *opts,
                               sim_pointings *pointings)
{
    tess_status status = TESS_OK;
    sim_pointings found = {.center_rad = {opts->ra_rad, opts->dec_rad}};
    const char *text = opts->mosaic.pointings;
    if (!text) {
        TESS_TRY(make_room(1, &found));
        set_place(found.field, opts->ra_rad, opts->dec_rad);
        snprintf(found.field->name, sizeof found.field->name, "%s", opts->object);
    } else if (strncmp(text, by_hexagon, strlen(by_hexagon)) == 0) {
        TESS_TRY(take_hexagon(opts, &found));
    } else {
        TESS_TRY(take_file(comm, opts, &found));
        if (!opts->has_center) TESS_TRY(find_middle(text, &found));
    }
    *pointings = found;
    memset(&found, 0, sizeof found);
cleanup:
    sim_pointings_free(&found);
    return status;
}

void sim_pointings_free(sim_pointings *pointings)
{
    if (!pointings) return;
    tess_free(pointings->field);
    memset(pointings, 0, sizeof *pointings);
}
