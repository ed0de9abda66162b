/* Averages a primary beam over channels and parallactic angles, which it computes: a
 * round one becomes a profile, any other one a map of the sky around the pointing
 * centre. */
#include <erfa.h>
#include <erfam.h>
#include <math.h>
#include <string.h>

#include "primary_beam.h"
#include "tess_const.h"
#include "tess_cubic.h"
#include "tess_mem.h"
#include "tess_primary_beam.h"

/* Samples of a profile between the centre and half power, and the largest number of
 * samples of a map along an axis. With cubic interpolation a profile is right to 1e-6,
 * and a map to 1e-4 of the peak. */
enum { PROFILE_STEPS = 128, PROFILE_MOST = 1 << 16, MAP_STEPS = 32, MAP_MOST = 2048 };

/* A map is the mean of a formula over at most this number of groups of channels. The
 * spread of frequencies within a group changes a beam by 1e-5. */
enum { MOST_GROUPS = 128 };

/* The map of a formula reaches to this number of half widths, beyond the second null.
 */
static const double MAP_REACH = 6;

/* Parallactic angles are rounded to this number of parts of a circle. */
enum { ANGLES = 720 };

struct tess_beam_mean {
    bool is_map;
    beam_map map;
    double step; /* distance between samples of the profile [sine] */
    int64_t num; /* samples of the profile, from −step on */
    double *profile;
};

/* The largest frequency, where the beam is narrowest. */
static double highest(const tess_beam_mean_of *of)
{
    double most = 0;
    for (int64_t c = 0; c < of->num_chan; ++c)
        if (of->weight[c] > 0) most = fmax(most, of->freq_hz[c]);
    return most;
}

/* The distance at which the power has fallen to one half; 0.1 for wider beams. */
static double half_width(const tess_primary_beam *beam, double freq_hz)
{
    double at = 1e-6;
    while (at < 1 && !(beam_formula_power(beam, freq_hz, at, 0) < 0.5))
        at *= 1.05;
    return fmin(at, 0.1);
}

static double sum_of(const tess_beam_mean_of *of)
{
    double sum = 0;
    for (int64_t c = 0; c < of->num_chan; ++c)
        sum += of->weight[c];
    return sum;
}

/* The half width of the narrower beam of a pair. */
static double narrowest(const tess_primary_beam *beam, const tess_beam_mean_of *of)
{
    const double width = half_width(beam, highest(of));
    return of->other ? fmin(width, half_width(of->other, highest(of))) : width;
}

/* ---- round beams ---- */

static void add_channel(const tess_primary_beam *beam, const tess_primary_beam *other,
                        double freq_hz, double share, tess_beam_mean *mean)
{
    for (int64_t k = 0; k < mean->num; ++k) {
        const double at = fmin(1, fabs((double)(k - 1) * mean->step));
        mean->profile[k] += share * beam_formula_pair(beam, other, freq_hz, at, 0);
    }
}

static tess_status make_profile(const tess_primary_beam *beam,
                                const tess_beam_mean_of *of, tess_beam_mean *mean)
{
    tess_status status = TESS_OK;
    const double sum = sum_of(of), width = narrowest(beam, of);
    mean->step = fmax(width / PROFILE_STEPS, of->reach / PROFILE_MOST);
    mean->num = (int64_t)ceil(of->reach / mean->step) + 4;
    mean->profile = tess_alloc_zero(mean->num, sizeof *mean->profile);
    if (!mean->profile) TESS_FAIL(TESS_ERR_ALLOC, "primary beam");
    for (int64_t c = 0; c < of->num_chan; ++c)
        if (of->weight[c] > 0)
            add_channel(beam, of->other, of->freq_hz[c], of->weight[c] / sum, mean);
cleanup:
    return status;
}

static double profile_power(const tess_beam_mean *mean, double distance)
{
    const double at = distance / mean->step + 1;
    const int64_t k = (int64_t)at;
    double weight[4], sum = 0;
    if (k + 2 >= mean->num) return 0;
    tess_cubic_weights(at - (double)k, weight);
    for (int a = 0; a < 4; ++a)
        sum += weight[a] * mean->profile[k + a - 1];
    return sum;
}

/* ---- beams that turn ---- */

/* Weighted mean frequencies of groups of neighbouring channels. */
typedef struct groups {
    double freq_hz[MOST_GROUPS], weight[MOST_GROUPS], sum;
    int num;
} groups;

static groups group_channels(const tess_beam_mean_of *of)
{
    groups in = {.num = of->num_chan < MOST_GROUPS ? (int)of->num_chan : MOST_GROUPS,
                 .sum = sum_of(of)};
    const double high = highest(of);
    double low = high;
    for (int64_t c = 0; c < of->num_chan; ++c)
        if (of->weight[c] > 0) low = fmin(low, of->freq_hz[c]);
    for (int64_t c = 0; c < of->num_chan; ++c) {
        if (!(of->weight[c] > 0)) continue;
        const double share = high > low ? (of->freq_hz[c] - low) / (high - low) : 0;
        const int k = (int)fmin(share * in.num, in.num - 1);
        in.freq_hz[k] += of->weight[c] * of->freq_hz[c];
        in.weight[k] += of->weight[c];
    }
    for (int k = 0; k < in.num; ++k)
        if (in.weight[k] > 0) in.freq_hz[k] /= in.weight[k];
    return in;
}

/* An empty map out to a distance. */
static tess_status empty_map(double reach, double step, beam_map *map)
{
    tess_status status = TESS_OK;
    const double wide = fmax(step, 2 * reach / (MAP_MOST - 4));
    const int64_t half = (int64_t)ceil(reach / wide) + 2;
    *map = (beam_map){.nx = 2 * half + 1,
                      .ny = 2 * half + 1,
                      .x0 = (double)half,
                      .y0 = (double)half,
                      .dx = wide,
                      .dy = wide};
    map->value = tess_alloc_zero(map->nx * map->ny, sizeof *map->value);
    if (!map->value) TESS_FAIL(TESS_ERR_ALLOC, "primary beam");
cleanup:
    return status;
}

/* The mean over the groups, in their order, in a direction. */
static double mean_power(const tess_primary_beam *beam, const tess_primary_beam *other,
                         const groups *in, double x, double y)
{
    double mean = 0;
    for (int k = 0; k < in->num; ++k) {
        if (!(in->weight[k] > 0)) continue;
        mean += in->weight[k] / in->sum *
                beam_formula_pair(beam, other, in->freq_hz[k], x, y);
    }
    return mean;
}

/* Makes the map of a formula in azimuth and elevation, averaged over channels. Pixels
 * do not depend on the number of threads. */
static tess_status formula_map(const tess_primary_beam *beam,
                               const tess_beam_mean_of *of, beam_map *map)
{
    tess_status status = TESS_OK;
    const groups in = group_channels(of);
    const double width = narrowest(beam, of);
    TESS_TRY(empty_map(fmin(of->reach, MAP_REACH * width), width / MAP_STEPS, map));
#pragma omp parallel for schedule(static) num_threads(of->threads > 0 ? of->threads : 1)
    for (int64_t j = 0; j < map->ny; ++j)
        for (int64_t i = 0; i < map->nx; ++i)
            map->value[j * map->nx + i] =
                mean_power(beam, of->other, &in, ((double)i - map->x0) * map->dx,
                           ((double)j - map->y0) * map->dy);
cleanup:
    return status;
}

/* A rounded angle, and how many angles are rounded to it. */
typedef struct turn {
    double sine, cosine, count;
} turn;

/* Lists the rounded angles that occur, and returns their number. */
static int gather_turns(const tess_beam_mean_of *of, turn turns[ANGLES])
{
    int64_t count[ANGLES] = {0};
    int num = 0;
    for (int64_t k = 0; k < of->num_angles; ++k) {
        const double turned = of->angle_rad[k] / TESS_TWO_PI;
        const int64_t at = (int64_t)((turned - floor(turned)) * ANGLES + 0.5);
        ++count[at % ANGLES];
    }
    for (int k = 0; k < ANGLES; ++k) {
        const double angle = TESS_TWO_PI * k / ANGLES;
        if (count[k] > 0)
            turns[num++] = (turn){sin(angle), cos(angle), (double)count[k]};
    }
    return num;
}

/* The power at (l, m) of a beam that the parallactic angle q has turned. The zenith
 * lies in the direction (l, m) = (sin q, cos q), and azimuth grows a quarter of a turn
 * West of that, along (−cos q, sin q). */
static double turned_power(const beam_map *fixed, double l, double m, const turn *by)
{
    return beam_map_at(fixed, m * by->sine - l * by->cosine,
                       m * by->cosine + l * by->sine);
}

/* Turns a map by all angles. Each pixel is the sum over the angles in their order, on
 * any number of threads. */
static void turn_map(const beam_map *fixed, const tess_beam_mean_of *of, beam_map *map)
{
    turn turns[ANGLES];
    const int num = gather_turns(of, turns);
    const int64_t pixels = map->nx * map->ny;
#pragma omp parallel for schedule(static) num_threads(of->threads > 0 ? of->threads : 1)
    for (int64_t at = 0; at < pixels; ++at) {
        const double l = ((double)(at % map->nx) - map->x0) * map->dx;
        const double m = ((double)(at / map->nx) - map->y0) * map->dy;
        double sum = 0;
        for (int k = 0; k < num; ++k)
            sum += turns[k].count * turned_power(fixed, l, m, &turns[k]);
        map->value[at] = sum / (double)of->num_angles;
    }
}

static tess_status make_map(const tess_primary_beam *beam, const tess_beam_mean_of *of,
                            tess_beam_mean *mean)
{
    tess_status status = TESS_OK;
    beam_map fixed = {0};
    if (beam->kind == BEAM_CUBE)
        TESS_TRY(
            beam_cube_mean(&beam->cube, of->num_chan, of->freq_hz, of->weight, &fixed));
    else
        TESS_TRY(formula_map(beam, of, &fixed));
    /* pixels of a file may be coarse */
    const double finer = beam->kind == BEAM_CUBE ? 0.5 : 1;
    const double step = finer * fmin(fabs(fixed.dx), fabs(fixed.dy));
    const double wide = fmax(fabs(fixed.dx) * (double)fixed.nx,
                             fabs(fixed.dy) * (double)fixed.ny); /* middle to corner */
    TESS_TRY(empty_map(fmin(of->reach, wide), step, &mean->map));
    turn_map(&fixed, of, &mean->map);
cleanup:
    tess_free(fixed.value);
    return status;
}

/* ---- means ---- */

tess_status tess_beam_mean_create(const tess_primary_beam *beam,
                                  const tess_beam_mean_of *of,
                                  tess_beam_mean **mean_out)
{
    tess_status status = TESS_OK;
    tess_beam_mean *mean = tess_alloc_zero(1, sizeof *mean);
    if (!mean) TESS_FAIL(TESS_ERR_ALLOC, "primary beam");
    if (of->other && (beam->kind == BEAM_CUBE || of->other->kind == BEAM_CUBE))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s and %s are beams of one array: beams of FITS files are those of "
                  "all antennas",
                  beam->name, of->other->name);
    mean->is_map = tess_primary_beam_turns(beam) ||
                   (of->other && tess_primary_beam_turns(of->other));
    TESS_TRY(mean->is_map ? make_map(beam, of, mean) : make_profile(beam, of, mean));
    *mean_out = mean;
    mean = NULL;
cleanup:
    tess_beam_mean_destroy(mean);
    return status;
}

double tess_beam_mean_power(const tess_beam_mean *mean, double l, double m)
{
    return mean->is_map ? beam_map_at(&mean->map, l, m)
                        : profile_power(mean, sqrt(l * l + m * m));
}

/* Steps out to the largest distance, and around the centre, in which a beam is looked
 * at. */
enum { STEPS = 4096, DIRECTIONS = 64 };

static bool reaches(const tess_beam_mean *mean, double distance, double level)
{
    for (int k = 0; k < DIRECTIONS; ++k) {
        const double angle = TESS_TWO_PI * k / DIRECTIONS;
        const double power =
            tess_beam_mean_power(mean, distance * cos(angle), distance * sin(angle));
        if (fabs(power) >= level) return true;
    }
    return false;
}

double tess_beam_mean_reach(const tess_beam_mean *mean, double level, double most)
{
    int k = STEPS;
    while (k > 0 && !reaches(mean, most * k / STEPS, level))
        --k;
    return fmin(most, most * (k + 1) / STEPS);
}

void tess_beam_mean_destroy(tess_beam_mean *mean)
{
    if (!mean) return;
    tess_free(mean->map.value);
    tess_free(mean->profile);
    tess_free(mean);
}

/* ---- the parallactic angle of a direction as seen from a site ---- */

tess_status tess_earth_axes(double time_mjd_s, const char *need, double to_itrf[3][3])
{
    tess_status status = TESS_OK;
    const double mjd = time_mjd_s / TESS_SECONDS_PER_DAY, day = floor(mjd);
    const double utc1 = TESS_MJD_ZERO_JD + day, utc2 = mjd - day;
    double tai1, tai2, tt1, tt2;
    /* above 0 is a warning of a year whose leap seconds are not known yet */
    if (!isfinite(mjd) || eraUtctai(utc1, utc2, &tai1, &tai2) < 0)
        TESS_FAIL(TESS_ERR_INPUT, "MJD %.1f is out of range for UTC; %s times", mjd,
                  need);
    eraTaitt(tai1, tai2, &tt1, &tt2);
    eraC2t06a(tt1, tt2, utc1, utc2, 0.0, 0.0, to_itrf);
cleanup:
    return status;
}

/* The angle as a site sees it, by axes of its time. */
static tess_status angle_at(const double to_itrf[3][3], double ra_rad, double dec_rad,
                            const double site_m[3], double *angle_rad)
{
    tess_status status = TESS_OK;
    double axes[3][3], lon, lat, height, zenith[3];
    double site[3] = {site_m[0], site_m[1], site_m[2]};
    const double length =
        sqrt(site[0] * site[0] + site[1] * site[1] + site[2] * site[2]);
    if (!(length > 1e6) || eraGc2gd(ERFA_WGS84, site, &lon, &lat, &height) != 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "the observation has no positions of antennas, which a "
                  "beam that turns needs");
    memcpy(axes, to_itrf, sizeof axes);
    double up[3] = {cos(lat) * cos(lon), cos(lat) * sin(lon), sin(lat)};
    eraTrxp(axes, up, zenith);
    const double east = -sin(ra_rad) * zenith[0] + cos(ra_rad) * zenith[1];
    const double north = -sin(dec_rad) * cos(ra_rad) * zenith[0] -
                         sin(dec_rad) * sin(ra_rad) * zenith[1] +
                         cos(dec_rad) * zenith[2];
    *angle_rad = atan2(east, north);
cleanup:
    return status;
}

tess_status tess_parallactic_angles(double ra_rad, double dec_rad, int64_t num_sites,
                                    const double (*site_m)[3], double time_mjd_s,
                                    double *angle_rad)
{
    tess_status status = TESS_OK;
    double to_itrf[3][3];
    TESS_TRY(tess_earth_axes(time_mjd_s, "a beam that turns needs", to_itrf));
    for (int64_t k = 0; k < num_sites; ++k)
        TESS_TRY(angle_at((const double(*)[3])to_itrf, ra_rad, dec_rad, site_m[k],
                          &angle_rad[k]));
cleanup:
    return status;
}

tess_status tess_parallactic_angle(double ra_rad, double dec_rad,
                                   const double site_m[3], double time_mjd_s,
                                   double *angle_rad)
{
    double site[1][3];
    memcpy(site[0], site_m, sizeof site[0]);
    return tess_parallactic_angles(ra_rad, dec_rad, 1, (const double(*)[3])site,
                                   time_mjd_s, angle_rad);
}
