/* Turns the sky to the phase centre of a pointing, and computes the power of the
 * primary beams of its antennas in the direction of each source. */
#include "sim_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tess_beam_models.h"
#include "tess_geom.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_primary_beam.h"

struct sim_view {
    sim_view_opts of;
    tess_sky turned; /* its sources are this view's own, the rest is of the sky */
    const tess_sky *sky;
    int pointing; /* that was turned to; -1: none */
    double time_mjd_s;
    /* with a primary beam */
    bool has_beam, beam_turns;
    tess_beam_models models;
    tess_primary_beam **beam; /* [models.num] */
    double (*place)[2];       /* [num_sources], in the frame of the antennas */
    double *gain;
    tess_sim_gains gains;
};

/* ---- beams ---- */

/* Collective. */
static tess_status open_beams(tess_comm *comm, sim_view *view)
{
    tess_status status = TESS_OK;
    const tess_vis_meta *meta = view->of.meta;
    TESS_TRY(tess_beam_models_find(comm, view->of.primary_beam, meta, &view->models));
    view->beam = tess_alloc_zero(view->models.num + 1, sizeof *view->beam);
    TESS_TRY(tess_comm_agree(comm, view->beam ? TESS_OK : TESS_ERR_ALLOC));
    for (int k = 0; k < view->models.num; ++k) {
        const tess_primary_beam_request request = {.model = view->models.model[k],
                                                   .telescope = meta->telescope,
                                                   .num_chan = meta->segment->num_chan,
                                                   .freq_hz = meta->segment->freq_hz};
        TESS_TRY(tess_primary_beam_open(comm, &request, &view->beam[k]));
        view->beam_turns = view->beam_turns || tess_primary_beam_turns(view->beam[k]);
        if (tess_comm_rank(comm) == 0)
            tess_log_info("primary beam: %s%s", tess_primary_beam_name(view->beam[k]),
                          tess_primary_beam_turns(view->beam[k])
                              ? ", turning with the parallactic angle"
                              : "");
    }
cleanup:
    return status;
}

static tess_status make_gains(sim_view *view)
{
    tess_status status = TESS_OK;
    const int num = view->models.num, num_pairs = num * (num + 1) / 2;
    const int64_t sources = view->of.sky->num_sources;
    const int64_t num_chan = view->of.meta->segment->num_chan;
    view->place = tess_alloc(sources, sizeof *view->place);
    view->gain =
        tess_alloc(sources, (size_t)(num_chan * num_pairs) * sizeof *view->gain);
    if (!view->place || !view->gain)
        TESS_FAIL(TESS_ERR_ALLOC, "primary beams at %lld sources", (long long)sources);
    view->gains = (tess_sim_gains){
        .gain = view->gain, .num_pairs = num_pairs, .kind = view->models.of_antenna};
cleanup:
    return status;
}

/* Where sources are in the frame of the antennas: x grows with azimuth and y with
 * elevation, and the zenith is at an angle from the North through East. */
static tess_status find_places(sim_view *view)
{
    tess_status status = TESS_OK;
    const tess_vis_field *field = &view->of.pointings->field[view->pointing];
    double site_m[3], angle_rad = 0.0;
    tess_vis_site(view->of.meta, site_m);
    if (view->beam_turns)
        TESS_TRY(tess_parallactic_angle(field->ra_rad, field->dec_rad, site_m,
                                        view->time_mjd_s, &angle_rad));
    const double s = sin(angle_rad), c = cos(angle_rad);
    for (int64_t k = 0; k < view->sky->num_sources; ++k) {
        const tess_sky_source *source = &view->sky->source[k];
        const double l = source->l, m = source->m;
        double *place = view->place[k];
        place[0] = view->beam_turns ? m * s - l * c : l;
        place[1] = view->beam_turns ? m * c + l * s : m;
        if (!(source->n_minus_1 > -1.0)) place[0] = place[1] = (double)NAN;
    }
cleanup:
    return status;
}

/* What a pair of antennas receives of an unpolarised source: half the trace of one
 * antenna's matrix times the other's adjoint. */
static double power_of(double (*a)[2], double (*b)[2])
{
    double sum = 0.0;
    for (int k = 0; k < 4; ++k)
        sum += a[k][0] * b[k][0] + a[k][1] * b[k][1];
    return 0.5 * sum;
}

/* gain[source][channel][pair]: pairs of kinds (0, 0), (0, 1), (1, 1), (0, 2) … */
static void fill_gains(const sim_view *view, tess_beam_voltages *const *voltages)
{
    const tess_vis_segment *segment = view->of.meta->segment;
    const int num_pairs = view->gains.num_pairs;
#pragma omp parallel for num_threads(view->of.threads) schedule(static)
    for (int64_t k = 0; k < view->sky->num_sources; ++k)
        for (int64_t c = 0; c < segment->num_chan; ++c) {
            double *gain = view->gain + (k * segment->num_chan + c) * num_pairs;
            for (int b = 0; b < view->models.num; ++b)
                for (int a = 0; a <= b; ++a) {
                    double first[4][2], second[4][2];
                    tess_beam_voltages_jones(voltages[a], k, segment->freq_hz[c],
                                             first);
                    tess_beam_voltages_jones(voltages[b], k, segment->freq_hz[c],
                                             second);
                    gain[tess_sim_pair(a, b)] = power_of(first, second);
                }
        }
}

static tess_status find_gains(sim_view *view)
{
    tess_status status = TESS_OK;
    const tess_vis_segment *segment = view->of.meta->segment;
    tess_beam_places at = {.num = view->sky->num_sources,
                           .place = (const double(*)[2])view->place,
                           .freq_hz = {segment->freq_hz[0], segment->freq_hz[0]}};
    tess_beam_voltages **voltages = tess_alloc_zero(view->models.num, sizeof *voltages);
    if (!voltages) TESS_FAIL(TESS_ERR_ALLOC, "primary beams");
    TESS_TRY(find_places(view));
    for (int64_t c = 0; c < segment->num_chan; ++c) {
        at.freq_hz[0] = fmin(at.freq_hz[0], segment->freq_hz[c]);
        at.freq_hz[1] = fmax(at.freq_hz[1], segment->freq_hz[c]);
    }
    for (int k = 0; k < view->models.num; ++k)
        TESS_TRY(tess_beam_voltages_create(view->beam[k], &at, &voltages[k]));
    fill_gains(view, voltages);
cleanup:
    for (int k = 0; voltages && k < view->models.num; ++k)
        tess_beam_voltages_destroy(voltages[k]);
    tess_free((void *)voltages);
    return status;
}

/* ---- directions ---- */

/* The shape of a Gaussian in another frame: its matrix goes along with the derivatives
 * of the direction cosines there by those here. */
static void turn_gaussian(const double (*rotation)[3], const tess_sky_source *from,
                          tess_sky_source *to)
{
    const double n = 1.0 + from->n_minus_1;
    double d[2][2];
    for (int k = 0; k < 2; ++k) {
        d[k][0] = rotation[k][0] - rotation[k][2] * from->l / n;
        d[k][1] = rotation[k][1] - rotation[k][2] * from->m / n;
    }
    const double uu = from->uu, uv = 0.5 * from->uv, vv = from->vv;
    const double u0 = d[0][0] * uu + d[0][1] * uv, u1 = d[0][0] * uv + d[0][1] * vv;
    const double v0 = d[1][0] * uu + d[1][1] * uv, v1 = d[1][0] * uv + d[1][1] * vv;
    to->uu = u0 * d[0][0] + u1 * d[0][1];
    to->uv = 2.0 * (u0 * d[1][0] + u1 * d[1][1]);
    to->vv = v0 * d[1][0] + v1 * d[1][1];
}

/* False: 90 degrees or more away. The source then is at n = 0. */
static bool turn_source(const double (*rotation)[3], const tess_sky_source *from,
                        tess_sky_source *to)
{
    const double lmn[3] = {from->l, from->m, 1.0 + from->n_minus_1};
    double turned[3];
    for (int k = 0; k < 3; ++k)
        turned[k] =
            rotation[k][0] * lmn[0] + rotation[k][1] * lmn[1] + rotation[k][2] * lmn[2];
    const double r2 = turned[0] * turned[0] + turned[1] * turned[1];
    *to = *from;
    to->l = turned[0];
    to->m = turned[1];
    if (!(turned[2] > 0.0 && r2 < 1.0)) {
        to->n_minus_1 = -1.0;
        to->is_gaussian = false;
        return false;
    }
    to->n_minus_1 = -r2 / (1.0 + sqrt(1.0 - r2));
    if (from->is_gaussian) turn_gaussian(rotation, from, to);
    return true;
}

static tess_status turn_sky(sim_view *view)
{
    tess_status status = TESS_OK;
    const sim_pointings *pointings = view->of.pointings;
    const tess_vis_field *field = &pointings->field[view->pointing];
    double rotation[3][3];
    tess_rotation_between(pointings->center_rad[0], pointings->center_rad[1],
                          field->ra_rad, field->dec_rad, rotation);
    for (int64_t k = 0; k < view->turned.num_sources; ++k)
        if (!turn_source((const double(*)[3])rotation, &view->of.sky->source[k],
                         &view->turned.source[k]) &&
            !view->has_beam)
            TESS_FAIL(TESS_ERR_INPUT,
                      "source %lld of the sky is 90 degrees or more from pointing %s",
                      (long long)k + 1, field->name);
cleanup:
    return status;
}

/* ---- views ---- */

/* Local. */
static tess_status make_room(sim_view *view)
{
    tess_status status = TESS_OK;
    const tess_sky *sky = view->of.sky;
    view->sky = sky;
    if (view->of.meta->segment->num_scans > 0) {
        view->turned = *sky;
        view->turned.capacity = sky->num_sources;
        view->turned.source = tess_alloc(sky->num_sources, sizeof *sky->source);
        if (!view->turned.source)
            TESS_FAIL(TESS_ERR_ALLOC, "%lld sources", (long long)sky->num_sources);
        view->sky = &view->turned;
    }
    if (view->has_beam) TESS_TRY(make_gains(view));
cleanup:
    return status;
}

tess_status sim_view_create(tess_comm *comm, const sim_view_opts *opts, sim_view **out)
{
    tess_status status = TESS_OK;
    sim_view *view = tess_alloc_zero(1, sizeof *view);
    TESS_TRY(tess_comm_agree(comm, view ? TESS_OK : TESS_ERR_ALLOC));
    view->of = *opts;
    view->pointing = -1;
    view->has_beam = opts->primary_beam != NULL;
    if (view->has_beam) TESS_TRY(open_beams(comm, view));
    TESS_TRY(tess_comm_agree(comm, make_room(view)));
    *out = view;
    view = NULL;
cleanup:
    sim_view_destroy(view);
    return status;
}

void sim_view_destroy(sim_view *view)
{
    if (!view) return;
    for (int k = 0; view->beam && k < view->models.num; ++k)
        tess_primary_beam_close(view->beam[k]);
    tess_free((void *)view->beam);
    tess_beam_models_free(&view->models);
    tess_free(view->turned.source);
    tess_free(view->place);
    tess_free(view->gain);
    tess_free(view);
}

bool sim_view_changes(const sim_view *view)
{
    return view->sky == &view->turned || view->beam_turns;
}

tess_status sim_view_turn(sim_view *view, int pointing, double time_mjd_s)
{
    tess_status status = TESS_OK;
    const bool is_other = pointing != view->pointing;
    const bool is_later = view->beam_turns && time_mjd_s != view->time_mjd_s;
    view->pointing = pointing;
    view->time_mjd_s = time_mjd_s;
    if (is_other && view->sky == &view->turned) TESS_TRY(turn_sky(view));
    if (view->has_beam && (is_other || is_later)) TESS_TRY(find_gains(view));
cleanup:
    if (status != TESS_OK) view->pointing = -1;
    return status;
}

const tess_sky *sim_view_sky(const sim_view *view)
{
    return view->sky;
}

const tess_sim_gains *sim_view_gains(const sim_view *view)
{
    return view->has_beam ? &view->gains : NULL;
}
