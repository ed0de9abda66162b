/* Voltages of primary beams in some places: those of formulas are computed when they
 * are asked for; those of files are taken from the planes of frequencies once, since
 * planes may be large and places are few. */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "primary_beam.h"
#include "tess_mem.h"

struct tess_beam_voltages {
    const tess_primary_beam *beam;
    int entries;
    int64_t num_places;
    double (*place)[2];    /* of a formula */
    int plane, num_planes; /* of a file: the first that is held, and their number */
    double complex *value; /* [num_planes][num_places][entries], NULL: a formula */
};

/* ---- files ---- */

/* The planes around the frequencies. */
static void choose_planes(const beam_cube *cube, const double freq_hz[2],
                          tess_beam_voltages *to)
{
    double at[2];
    for (int k = 0; k < 2; ++k)
        at[k] = fmin(fmax((freq_hz[k] - cube->freq_hz) / cube->freq_step_hz, 0),
                     cube->num_freq - 1);
    to->plane = (int)floor(fmin(at[0], at[1]));
    to->num_planes = (int)ceil(fmax(at[0], at[1])) - to->plane + 1;
}

/* The real or imaginary part of an entry, in all places and, at the end, the middle. */
static tess_status read_part(const beam_cube *cube, int64_t first, beam_map *map,
                             const tess_beam_places *at, double *found)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_fits_array_read(&cube->array, first, map->nx * map->ny,
                                  TESS_PIXEL_DOUBLE, map->value));
    for (int64_t k = 0; k < at->num; ++k)
        found[k] = isnan(at->place[k][0])
                       ? 0
                       : beam_map_at(map, at->place[k][0], at->place[k][1]);
    found[at->num] = beam_map_at(map, 0, 0);
cleanup:
    return status;
}

/* Divides by the middle, from the left. False: it is 0. */
static bool divide(const double complex *middle, int entries, double complex *value)
{
    if (entries < 4) {
        for (int k = 0; k < entries; ++k) {
            if (!(cabs(middle[k]) > 0)) return false;
            value[k] /= middle[k];
        }
        return true;
    }
    const double complex whole = middle[0] * middle[3] - middle[1] * middle[2];
    const double complex own[4] = {value[0], value[1], value[2], value[3]};
    if (!(cabs(whole) > 0)) return false;
    for (int k = 0; k < 2; ++k) {
        value[k] = (middle[3] * own[k] - middle[1] * own[2 + k]) / whole;
        value[2 + k] = (middle[0] * own[2 + k] - middle[2] * own[k]) / whole;
    }
    return true;
}

/* The voltages of a plane of a frequency. `found` has room for a number for each place
 * and the middle. */
static tess_status take_voltages(const beam_cube *cube, int plane,
                                 const tess_beam_places *at, beam_map *map,
                                 double *found, double complex *value)
{
    tess_status status = TESS_OK;
    const int num = cube->num_entries;
    double complex middle[4] = {0};
    for (int feed = 0; feed < num; ++feed) {
        const int entry = num == 4 ? cube->entry[feed] : feed;
        for (int part = 0; part < 2; ++part) {
            const double complex unit = part ? I : 1;
            TESS_TRY(read_part(cube,
                               plane * cube->freq_stride + feed * cube->feed_stride +
                                   part * cube->part_stride,
                               map, at, found));
            for (int64_t k = 0; k < at->num; ++k)
                value[k * num + entry] += unit * found[k];
            middle[entry] += unit * found[at->num];
        }
    }
    for (int64_t k = 0; k < at->num; ++k)
        if (!divide(middle, num, value + k * num))
            TESS_FAIL(TESS_ERR_INPUT, "%s: plane %d of the beam is 0 at its middle",
                      cube->array.path, plane + 1);
cleanup:
    return status;
}

/* The roots of the powers of a plane. */
static tess_status take_powers(const beam_cube *cube, int plane,
                               const tess_beam_places *at, beam_map *map, double *part,
                               double complex *value)
{
    tess_status status = TESS_OK;
    TESS_TRY(beam_cube_plane(cube, plane, part, map));
    for (int64_t k = 0; k < at->num; ++k)
        if (!isnan(at->place[k][0]))
            value[k] =
                sqrt(fmax(0, beam_map_at(map, at->place[k][0], at->place[k][1])));
cleanup:
    return status;
}

static tess_status take_planes(const beam_cube *cube, const tess_beam_places *at,
                               tess_beam_voltages *to)
{
    tess_status status = TESS_OK;
    const bool is_voltage = cube->part_stride > 0;
    beam_map map = beam_cube_map(cube);
    const int64_t pixels = map.nx * map.ny;
    double *work = tess_alloc(is_voltage ? at->num + 1 : pixels, sizeof *work);
    map.value = tess_alloc(pixels, sizeof *map.value);
    if (is_voltage && cube->num_entries == 0)
        TESS_FAIL(
            TESS_ERR_INPUT,
            "%s: the STOKES axis of a beam of voltages must have 1, 2 or 4 planes",
            cube->array.path);
    to->entries = is_voltage ? cube->num_entries : 1;
    choose_planes(cube, at->freq_hz, to);
    to->value =
        tess_alloc_zero(to->num_planes * at->num * to->entries, sizeof *to->value);
    if (!work || !map.value || !to->value)
        TESS_FAIL(TESS_ERR_ALLOC, "%s: primary beam", cube->array.path);
    for (int k = 0; k < to->num_planes; ++k) {
        double complex *value = to->value + k * at->num * to->entries;
        TESS_TRY(is_voltage ? take_voltages(cube, to->plane + k, at, &map, work, value)
                            : take_powers(cube, to->plane + k, at, &map, work, value));
    }
cleanup:
    tess_free(work);
    tess_free(map.value);
    return status;
}

/* ---- voltages ---- */

tess_status tess_beam_voltages_create(const tess_primary_beam *beam,
                                      const tess_beam_places *at,
                                      tess_beam_voltages **out)
{
    tess_status status = TESS_OK;
    tess_beam_voltages *voltages = tess_alloc_zero(1, sizeof *voltages);
    if (!voltages) TESS_FAIL(TESS_ERR_ALLOC, "primary beam");
    voltages->beam = beam;
    voltages->num_places = at->num;
    voltages->entries = beam->kind == BEAM_COSINE ? 2 : 1;
    if (beam->kind == BEAM_CUBE) {
        TESS_TRY(take_planes(&beam->cube, at, voltages));
    } else {
        voltages->place = tess_alloc(at->num, sizeof *voltages->place);
        if (!voltages->place) TESS_FAIL(TESS_ERR_ALLOC, "primary beam");
        memcpy(voltages->place, at->place, (size_t)at->num * sizeof *at->place);
    }
    *out = voltages;
    voltages = NULL;
cleanup:
    tess_beam_voltages_destroy(voltages);
    return status;
}

int tess_beam_voltages_entries(const tess_beam_voltages *voltages)
{
    return voltages->entries;
}

/* An entry of a file's matrix, between two planes. */
static double complex between(const tess_beam_voltages *of, int64_t place,
                              double freq_hz, int entry)
{
    const beam_cube *cube = &of->beam->cube;
    const double at = (freq_hz - cube->freq_hz) / cube->freq_step_hz - of->plane;
    const double inside = fmin(fmax(at, 0), of->num_planes - 1);
    const int below = (int)fmin(floor(inside), fmax(of->num_planes - 2, 0));
    const int64_t step = of->num_places * of->entries;
    const double complex *value =
        of->value + below * step + place * of->entries + entry;
    if (inside <= below) return *value;
    return value[0] + (inside - below) * (value[step] - value[0]);
}

static void set(double jones[4][2], int entry, double complex value)
{
    jones[entry][0] = creal(value);
    jones[entry][1] = cimag(value);
}

void tess_beam_voltages_jones(const tess_beam_voltages *of, int64_t place,
                              double freq_hz, double jones[4][2])
{
    double field[2] = {0, 0};
    memset(jones, 0, 4 * sizeof *jones);
    if (of->value) {
        for (int k = 0; k < of->entries; ++k)
            set(jones, of->entries == 2 ? 3 * k : k, between(of, place, freq_hz, k));
        if (of->entries == 1) memcpy(jones[3], jones[0], sizeof jones[3]);
        return;
    }
    const double *at = of->place[place];
    if (!isnan(at[0]) && (of->beam->kind != BEAM_POLYNOMIAL ||
                          beam_band_of(&of->beam->polynomials, freq_hz)))
        beam_formula_fields(of->beam, freq_hz, at[0], at[1], field);
    set(jones, 0, field[0]);
    set(jones, 3, field[1]);
}

void tess_beam_voltages_destroy(tess_beam_voltages *voltages)
{
    if (!voltages) return;
    tess_free(voltages->place);
    tess_free(voltages->value);
    tess_free(voltages);
}
