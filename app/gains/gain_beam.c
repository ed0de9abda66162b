/* Primary beams in the directions of facets: where facets lie in the frame of the
 * antennas, update after update, and the voltages there. */
#include "gains.h"

#include <math.h>
#include <string.h>

#include "tess_beam_models.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_minmax.h"

/* Antennas this far from their middle have parallactic angles of their own: nearer
 * ones' differ by less than half a degree. */
static const double FAR_M = 50e3;

struct gain_beam {
    tess_beam_models models;
    tess_primary_beam **beam;      /* [models.num] */
    tess_beam_voltages **voltages; /* [models.num] in places [update][site][facet] */
    bool turns;
    int64_t num_facets, num_sites; /* 1, or the number of antennas */
    int64_t num_updates;
    double *begin_mjd_s, *middle_mjd_s; /* [num_updates] ascending */
};

/* ---- models ---- */

/* Collective. */
static tess_status open_models(tess_comm *comm, const tess_gains_opts *opts,
                               gain_beam *to)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_beam_models_find(comm, opts->beam.model, opts->meta, &to->models));
    to->beam = tess_alloc_zero(to->models.num + 1, sizeof *to->beam);
    to->voltages = tess_alloc_zero(to->models.num + 1, sizeof *to->voltages);
    TESS_TRY(
        tess_comm_agree(comm, to->beam && to->voltages ? TESS_OK : TESS_ERR_ALLOC));
    for (int k = 0; k < to->models.num; ++k) {
        const tess_primary_beam_request request = {.model = to->models.model[k],
                                                   .telescope = opts->meta->telescope,
                                                   .num_chan = opts->num_chan,
                                                   .freq_hz = opts->freq_hz};
        TESS_TRY(tess_primary_beam_open(comm, &request, &to->beam[k]));
        to->turns = to->turns || tess_primary_beam_turns(to->beam[k]);
        if (tess_comm_rank(comm) == 0)
            tess_log_info("beams of facets: %s%s", tess_primary_beam_name(to->beam[k]),
                          tess_primary_beam_turns(to->beam[k])
                              ? ", turning with the parallactic angle"
                              : "");
    }
cleanup:
    return status;
}

/* ---- places ---- */

static double distance_m(const double a[3], const double b[3])
{
    return sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) +
                (a[2] - b[2]) * (a[2] - b[2]));
}

/* Places from which the sky is seen: the middle of the antennas, or each of them. */
static tess_status find_sites(const tess_vis_meta *meta, gain_beam *to,
                              double (**site_m)[3])
{
    tess_status status = TESS_OK;
    double middle[3], most = 0;
    tess_vis_site(meta, middle);
    for (int a = 0; a < meta->num_antennas; ++a)
        most = fmax(most, distance_m(meta->antenna[a].xyz_m, middle));
    to->num_sites = to->turns && most > FAR_M ? meta->num_antennas : 1;
    *site_m = tess_alloc(to->num_sites, sizeof **site_m);
    if (!*site_m) TESS_FAIL(TESS_ERR_ALLOC, "no memory for beams of facets");
    for (int64_t k = 0; k < to->num_sites; ++k)
        memcpy((*site_m)[k], to->num_sites > 1 ? meta->antenna[k].xyz_m : middle,
               sizeof middle);
cleanup:
    return status;
}

/* Divides a period into updates: `begin` and `middle` of each, unless they are NULL.
 * Returns their number. */
static int64_t divide_period(const double period[2], double update_s, double *begin,
                             double *middle)
{
    const double length = period[1] - period[0];
    const int64_t num =
        length > 0 && update_s > 0 ? (int64_t)ceil(length / update_s) : 1;
    for (int64_t k = 0; begin && k < num; ++k) {
        begin[k] = period[0] + (double)k * update_s;
        middle[k] = 0.5 * (begin[k] + fmin(begin[k] + update_s, period[1]));
    }
    return num;
}

/* Beams that turn have updates in each period, and none in gaps between them, which may
 * last for years: a time in a gap has the update that is nearest. Other beams have one.
 */
static tess_status find_updates(const tess_gains_opts *opts, gain_beam *to)
{
    tess_status status = TESS_OK;
    const double whole[1][2] = {
        {opts->meta->time_start_mjd_s, opts->meta->time_end_mjd_s}};
    const double(*period)[2] = opts->num_periods > 0 ? opts->period_mjd_s : whole;
    const int num = to->turns && opts->num_periods > 0 ? opts->num_periods : 1;
    const double update_s = to->turns ? opts->beam.update_s : 0;
    for (int k = 0; k < num; ++k)
        to->num_updates += divide_period(period[k], update_s, NULL, NULL);
    to->begin_mjd_s = tess_alloc(to->num_updates, sizeof *to->begin_mjd_s);
    to->middle_mjd_s = tess_alloc(to->num_updates, sizeof *to->middle_mjd_s);
    if (!to->begin_mjd_s || !to->middle_mjd_s)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for beams of facets");
    int64_t at = 0;
    for (int k = 0; k < num; ++k) {
        const int64_t first = at;
        at += divide_period(period[k], update_s, to->begin_mjd_s + at,
                            to->middle_mjd_s + at);
        /* so that the first integration of a period is not where two updates meet */
        if (k > 0) to->begin_mjd_s[first] = 0.5 * (period[k - 1][1] + period[k][0]);
    }
cleanup:
    return status;
}

/* Direction cosines from the pointing centre; NaN beyond the horizon. */
static void cosines(const double pointing_rad[2], const tess_facet *facet, double at[2])
{
    const double d_ra = facet->ra_rad - pointing_rad[0];
    const double s0 = sin(pointing_rad[1]), c0 = cos(pointing_rad[1]);
    const double s = sin(facet->dec_rad), c = cos(facet->dec_rad);
    at[0] = c * sin(d_ra);
    at[1] = s * c0 - c * s0 * cos(d_ra);
    if (!(s * s0 + c * c0 * cos(d_ra) > 0)) at[0] = at[1] = (double)NAN;
}

/* Azimuth and elevation grow along x and y: the zenith is at an angle from the North
 * through East. */
static void turn(double angle_rad, double at[2])
{
    const double l = at[0], m = at[1], s = sin(angle_rad), c = cos(angle_rad);
    at[0] = m * s - l * c;
    at[1] = m * c + l * s;
}

/* place[update][site][facet] */
static tess_status find_places(const tess_facets *facets, const tess_vis_meta *meta,
                               const gain_beam *to, const double (*site_m)[3],
                               double (*place)[2])
{
    tess_status status = TESS_OK;
    const double *pointing = meta->field[meta->field_selected].pointing_rad;
    double *angle_rad = tess_alloc_zero(to->num_sites, sizeof *angle_rad);
    int64_t next = 0;
    if (!angle_rad) TESS_FAIL(TESS_ERR_ALLOC, "no memory for beams of facets");
    for (int64_t k = 0; k < to->num_updates; ++k) {
        if (to->turns)
            TESS_TRY(tess_parallactic_angles(pointing[0], pointing[1], to->num_sites,
                                             site_m, to->middle_mjd_s[k], angle_rad));
        for (int64_t site = 0; site < to->num_sites; ++site)
            for (int64_t f = 0; f < facets->num_facets; ++f, ++next) {
                cosines(pointing, &facets->facet[f], place[next]);
                if (to->turns) turn(angle_rad[site], place[next]);
            }
    }
cleanup:
    tess_free(angle_rad);
    return status;
}

/* ---- beams ---- */

/* Local. */
static tess_status make_voltages(const tess_facets *facets, const tess_gains_opts *opts,
                                 gain_beam *to)
{
    tess_status status = TESS_OK;
    double(*site_m)[3] = NULL, (*place)[2] = NULL;
    to->num_facets = facets->num_facets;
    TESS_TRY(find_updates(opts, to));
    TESS_TRY(find_sites(opts->meta, to, &site_m));
    tess_beam_places at = {.num = to->num_updates * to->num_sites * to->num_facets,
                           .freq_hz = {INFINITY, 0}};
    place = tess_alloc(at.num, sizeof *place);
    if (!place) TESS_FAIL(TESS_ERR_ALLOC, "no memory for beams of facets");
    TESS_TRY(find_places(facets, opts->meta, to, (const double(*)[3])site_m, place));
    at.place = (const double(*)[2])place;
    for (int64_t c = 0; c < opts->num_chan; ++c) {
        at.freq_hz[0] = fmin(at.freq_hz[0], opts->freq_hz[c]);
        at.freq_hz[1] = fmax(at.freq_hz[1], opts->freq_hz[c]);
    }
    for (int k = 0; k < to->models.num; ++k)
        TESS_TRY(tess_beam_voltages_create(to->beam[k], &at, &to->voltages[k]));
cleanup:
    tess_free(site_m);
    tess_free(place);
    return status;
}

tess_status gain_beam_create(tess_comm *comm, const tess_facets *facets,
                             const tess_gains_opts *opts, gain_beam **out)
{
    tess_status status = TESS_OK;
    gain_beam *beam = tess_alloc_zero(1, sizeof *beam);
    TESS_TRY(tess_comm_agree(comm, beam ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(open_models(comm, opts, beam));
    TESS_TRY(tess_comm_agree(comm, make_voltages(facets, opts, beam)));
    *out = beam;
    beam = NULL;
cleanup:
    gain_beam_destroy(beam);
    return status;
}

void gain_beam_destroy(gain_beam *beam)
{
    if (!beam) return;
    for (int k = 0; k < beam->models.num; ++k) {
        if (beam->voltages) tess_beam_voltages_destroy(beam->voltages[k]);
        if (beam->beam) tess_primary_beam_close(beam->beam[k]);
    }
    tess_free((void *)beam->voltages);
    tess_free((void *)beam->beam);
    tess_beam_models_free(&beam->models);
    tess_free(beam->begin_mjd_s);
    tess_free(beam->middle_mjd_s);
    tess_free(beam);
}

tess_gain_shape gain_beam_shape(const gain_beam *beam)
{
    int most = 1;
    for (int k = 0; k < beam->models.num; ++k) {
        const int entries = tess_beam_voltages_entries(beam->voltages[k]);
        most = entries > most ? entries : most;
    }
    if (most == 4) return TESS_GAIN_FULL;
    return most == 2 ? TESS_GAIN_DIAGONAL : TESS_GAIN_SCALAR;
}

const double *gain_beam_updates(const gain_beam *beam, int64_t *num)
{
    *num = beam->num_updates;
    return beam->begin_mjd_s;
}

/* The last update that begins by a time, or the first one. */
static int64_t update_at(const gain_beam *beam, double time_mjd_s)
{
    int64_t low = 0, end = beam->num_updates;
    while (end - low > 1) {
        const int64_t middle = low + (end - low) / 2;
        if (beam->begin_mjd_s[middle] <= time_mjd_s)
            low = middle;
        else
            end = middle;
    }
    return low;
}

void gain_beam_jones(const gain_beam *beam, double time_mjd_s, int64_t antenna,
                     int64_t facet, double freq_hz, double jones[4][2])
{
    const int64_t update = update_at(beam, time_mjd_s);
    const int64_t site = beam->num_sites > 1 ? antenna : 0;
    const tess_beam_voltages *of = beam->voltages[beam->models.of_antenna[antenna]];
    tess_beam_voltages_jones(
        of, (update * beam->num_sites + site) * beam->num_facets + facet, freq_hz,
        jones);
}
