/* Finds which pixels of a model a pointing sees, and how much of them its antennas
 * receive. */
#include "predicted_pointing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "image_dishes.h"
#include "source_origins.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_minmax.h"
#include "tess_primary_beam.h"
#include "tess_samples.h"
#include "tess_select.h"

struct predicted_pointing {
    image_dishes dishes;
    int num_pairs;                /* of kinds of dishes, of which each has */
    tess_beam_mean **mean;        /* [num_pairs] over channels */
    const tess_source_info *info; /* borrowed */
    double *freq_hz;              /* [num_chan] of which beams are means */
    int64_t num_chan;
    double *time_mjd_s, *angle_rad; /* [num_times] of integrations, if the beam turns */
    int64_t num_times;
    int threads;
    double limit;
    double *reach; /* [num_pairs] if the beam turns: no integration sees what is farther
                      from the pointing [sine] */
    double rotation[3][3]; /* of direction cosines from the phase centre to here */
    tess_geom image;
    tess_geom *seen;     /* [num_pairs] of its pixels those that any pair sees */
    int64_t (*first)[2]; /* [num_pairs] where these begin */
};

/* ---- beams ---- */

/* The field whose rows are predicted. */
static const tess_vis_field *field_of(const predicted_view *view)
{
    const tess_vis_meta *meta =
        tess_vis_reader_meta(tess_source_reader(view->source, view->reader));
    return &meta->field[meta->field_selected];
}

/* The sine of the largest angle between the pointing and a corner of the model, at
 * most. Local. */
static double reach_of(const predicted_pointing *of)
{
    const tess_geom *image = &of->image;
    double reach = 0;
    for (int k = 0; k < 4; ++k) {
        const double l = tess_geom_l(image, k % 2 ? image->nx : -1);
        const double m = tess_geom_m(image, k / 2 ? image->ny : -1);
        const double n2 = 1 - l * l - m * m;
        if (!(n2 > 0)) return 1;
        double at[3];
        for (int i = 0; i < 3; ++i)
            at[i] = of->rotation[i][0] * l + of->rotation[i][1] * m +
                    of->rotation[i][2] * sqrt(n2);
        if (!(at[2] > 0)) return 1;
        reach = fmax(reach, hypot(at[0], at[1]));
    }
    return reach;
}

/* Finds the integrations of the field, and their parallactic angles. Collective. */
static tess_status find_angles(const predicted_view *view, predicted_pointing *to)
{
    tess_status status = TESS_OK;
    const double *at = field_of(view)->pointing_rad;
    double site_m[3];
    if (!image_dishes_turn(&to->dishes)) return TESS_OK;
    tess_source_choose_reader(view->source, view->reader);
    status = tess_source_times(view->source, &to->time_mjd_s, &to->num_times);
    tess_source_choose_reader(view->source, -1);
    TESS_TRY(status);
    to->angle_rad = tess_alloc(to->num_times, sizeof *to->angle_rad);
    if (!to->angle_rad) status = TESS_ERR_ALLOC;
    tess_vis_site(to->info->meta, site_m);
    for (int64_t k = 0; k < to->num_times && status == TESS_OK; ++k)
        status = tess_parallactic_angle(at[0], at[1], site_m, to->time_mjd_s[k],
                                        &to->angle_rad[k]);
    TESS_TRY(tess_comm_agree(view->comm, status));
cleanup:
    return status;
}

/* Makes the means over channels, by weights, and over integrations, whose times are in
 * order. Local. */
static tess_status make_means(predicted_pointing *to, const double *weight,
                              int64_t first, int64_t end)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < to->num_pairs; ++k) {
        const tess_primary_beam *beam[2];
        image_dishes_beams(&to->dishes, k, beam);
        const tess_beam_mean_of of = {.other = beam[1] != beam[0] ? beam[1] : NULL,
                                      .num_chan = to->num_chan,
                                      .freq_hz = to->freq_hz,
                                      .weight = weight,
                                      .num_angles = end - first,
                                      .angle_rad = to->angle_rad + first,
                                      .reach = reach_of(to),
                                      .threads = to->threads};
        tess_beam_mean_destroy(to->mean[k]);
        to->mean[k] = NULL;
        TESS_TRY(tess_beam_mean_create(beam[0], &of, &to->mean[k]));
    }
cleanup:
    return status;
}

tess_status predicted_pointing_choose(predicted_pointing *pointing,
                                      const predicted_mean *of)
{
    tess_status status = TESS_OK;
    const int64_t num = pointing->num_chan;
    int64_t first = 0, end = pointing->num_times;
    double *weight = tess_alloc_zero(num, sizeof *weight), all = 0;
    if (!weight) TESS_FAIL(TESS_ERR_ALLOC, "channels");
    for (int64_t c = 0; c < num; ++c)
        if (!of->chan_output || of->chan_output[c] == of->output) all += weight[c] = 1;
    while (of->time_mjd_s && first < end &&
           pointing->time_mjd_s[first] < of->time_mjd_s[0])
        ++first;
    while (of->time_mjd_s && end > first &&
           pointing->time_mjd_s[end - 1] >= of->time_mjd_s[1])
        --end;
    if (all > 0 && (end > first || pointing->num_times == 0))
        TESS_TRY(make_means(pointing, weight, first, end));
cleanup:
    tess_free(weight);
    return status;
}

/* The channel of the beam that is the nearest to a plane of the model. */
static int64_t nearest_channel(const predicted_pointing *of, double freq_hz)
{
    int64_t nearest = 0;
    for (int64_t c = 1; c < of->num_chan; ++c)
        if (fabs(of->freq_hz[c] - freq_hz) < fabs(of->freq_hz[nearest] - freq_hz))
            nearest = c;
    return nearest;
}

/* Takes the beam of the channels of a plane of the model, as an imager_part_plane. A
 * plane that is the nearest to none of them has that of the nearest channel. */
static tess_status take_plane(void *owner, const model_cube *cube, int plane)
{
    tess_status status = TESS_OK;
    predicted_pointing *pointing = owner;
    const int64_t num = pointing->num_chan;
    bool any = false;
    int32_t *nearest = tess_alloc(num, sizeof *nearest);
    if (!nearest) TESS_FAIL(TESS_ERR_ALLOC, "channels");
    for (int64_t c = 0; c < num; ++c) {
        nearest[c] = model_cube_nearest(cube, pointing->freq_hz[c]);
        any = any || nearest[c] == plane;
    }
    if (!any) nearest[nearest_channel(pointing, cube->freq_hz[plane])] = plane;
    TESS_TRY(
        predicted_pointing_choose(pointing, &(predicted_mean){nearest, plane, NULL}));
cleanup:
    tess_free(nearest);
    return status;
}

/* Makes the beams of the lowest frequency, where they are widest. Those that turn are
 * as in one integration: their means over some may be wider than that over all, but
 * reach no farther than the beam. Local. */
static tess_status make_widest(predicted_pointing *to)
{
    tess_status status = TESS_OK;
    int64_t lowest = 0;
    double *weight = tess_alloc_zero(to->num_chan, sizeof *weight);
    if (!weight) TESS_FAIL(TESS_ERR_ALLOC, "channels");
    for (int64_t c = 1; c < to->num_chan; ++c)
        if (to->freq_hz[c] < to->freq_hz[lowest]) lowest = c;
    weight[lowest] = 1;
    TESS_TRY(make_means(to, weight, 0, tess_min_i64(to->num_times, 1)));
    for (int k = 0; k < to->num_pairs && to->num_times > 0; ++k)
        to->reach[k] = tess_beam_mean_reach(to->mean[k], to->limit, reach_of(to));
cleanup:
    tess_free(weight);
    return status;
}

/* ---- pixels ---- */

/* Direction cosines of a pixel as seen from the pointing. False beyond the horizon of
 * either. */
static bool find_direction(const predicted_pointing *of, int64_t x, int64_t y,
                           double at[3])
{
    const double l = tess_geom_l(&of->image, x), m = tess_geom_m(&of->image, y);
    const double n2 = 1 - l * l - m * m;
    if (!(n2 >= 0)) return false;
    for (int i = 0; i < 3; ++i)
        at[i] = of->rotation[i][0] * l + of->rotation[i][1] * m +
                of->rotation[i][2] * sqrt(n2);
    return at[2] > 0;
}

/* What a pair of dishes receives of a pixel; 0 below the limit. */
static double power_at(const predicted_pointing *of, int pair, int64_t x, int64_t y)
{
    double at[3];
    if (!find_direction(of, x, y, at)) return 0;
    const double power = tess_beam_mean_power(of->mean[pair], at[0], at[1]);
    return fabs(power) >= of->limit ? power : 0;
}

/* Whether any pair of dishes sees a pixel in any integration, at most. */
static bool is_seen(const predicted_pointing *of, int64_t x, int64_t y)
{
    double at[3];
    if (!find_direction(of, x, y, at)) return false;
    for (int k = 0; k < of->num_pairs; ++k)
        if (of->num_times > 0 ? hypot(at[0], at[1]) <= of->reach[k]
                              : fabs(power_at(of, k, x, y)) > 0)
            return true;
    return false;
}

/* Parts of an image are planned with at least this many pixels a side, if it has them.
 */
enum { LEAST_SIDE = 32 };

/* Widens [*first, *end) to a side that can be planned, within [0, size). */
static void widen(int64_t size, int64_t *first, int64_t *end)
{
    const int64_t side = tess_min_i64(size, LEAST_SIDE);
    if (*end <= *first) *first = *end = size / 2;
    if (*end - *first < side) {
        *first = tess_clamp_i64(*first - (side - (*end - *first)) / 2, 0, size - side);
        *end = *first + side;
    }
}

/* Finds the rectangle of the pixels that count. */
static void find_pixels(predicted_pointing *to)
{
    const tess_geom *image = &to->image;
    int64_t x0 = image->nx, x1 = 0, y0 = image->ny, y1 = 0;
#pragma omp parallel for num_threads(to->threads) schedule(static) reduction(min       \
                                                                             : x0, y0) \
    reduction(max                                                                      \
              : x1, y1)
    for (int64_t y = 0; y < image->ny; ++y)
        for (int64_t x = 0; x < image->nx; ++x) {
            if (!is_seen(to, x, y)) continue;
            x0 = tess_min_i64(x0, x);
            x1 = tess_max_i64(x1, x + 1);
            y0 = tess_min_i64(y0, y);
            y1 = tess_max_i64(y1, y + 1);
        }
    widen(image->nx, &x0, &x1);
    widen(image->ny, &y0, &y1);
    for (int k = 0; k < to->num_pairs; ++k) {
        tess_geom *seen = &to->seen[k];
        *seen = *image;
        seen->nx = x1 - x0;
        seen->ny = y1 - y0;
        seen->l0 = tess_geom_l(image, x0 + seen->nx / 2);
        seen->m0 = tess_geom_m(image, y0 + seen->ny / 2);
        to->first[k][0] = x0;
        to->first[k][1] = y0;
    }
}

static tess_status weigh(const void *context, int target, int64_t row, double *weight)
{
    const predicted_pointing *pointing = context;
    const int64_t *first = pointing->first[target];
    for (int64_t i = 0; i < pointing->seen[target].nx; ++i)
        weight[i] = power_at(pointing, target, first[0] + i, first[1] + row);
    return TESS_OK;
}

/* Of what is predicted for a pair of dishes, the rows of that pair are taken, as an
 * imager_factors: Stokes parameters stay what they are. */
static void take_pair(const void *context, int target, const tess_samples *samples,
                      int64_t row, double complex *factor)
{
    const predicted_pointing *pointing = context;
    const tess_origin origin = tess_origin_of(samples->origins, samples->origin[row]);
    const bool own = image_dishes_pair(&pointing->dishes, &origin) == target;
    const int num = samples->num_pol;
    for (int64_t k = 0; k < (int64_t)samples->num_chan[row] * num * num; ++k)
        factor[k] = own && k / num % num == k % num;
}

/* ---- all ---- */

static void tell(const predicted_view *view, const predicted_pointing *of)
{
    if (tess_comm_rank(view->comm) == 0)
        tess_log_info(
            "field %s sees %lld x %lld pixels of the model; primary beam: %s%s",
            field_of(view)->name, (long long)of->seen->nx, (long long)of->seen->ny,
            tess_primary_beam_name(of->dishes.beam[0]),
            of->dishes.num > 1 ? " and others" : "");
}

/* Takes the channels of the rows that are imaged. If none is, because images have
 * channels of another axis, these are the channels of the beam. Local. */
static tess_status choose_channels(const predicted_view *view, predicted_pointing *to)
{
    tess_status status = TESS_OK;
    const tess_source_info *info = to->info;
    const tess_predict_beam *beam = &view->beam;
    double *imaged = tess_alloc(beam->num_chan, sizeof *imaged);
    to->freq_hz =
        tess_alloc(tess_max_i64(info->num_chan, beam->num_chan), sizeof *to->freq_hz);
    if (!imaged || !to->freq_hz) TESS_FAIL(TESS_ERR_ALLOC, "channels");
    for (int64_t c = 0; c < beam->num_chan; ++c)
        imaged[c] = beam->freq_hz[c];
    const int64_t num = tess_select_distinct(imaged, beam->num_chan, 0);
    for (int64_t c = 0; c < info->num_chan; ++c)
        if (!beam->freq_hz || bsearch(&info->freq_hz[c], imaged, (size_t)num,
                                      sizeof *imaged, tess_select_order))
            to->freq_hz[to->num_chan++] = info->freq_hz[c];
    if (to->num_chan == 0) {
        memcpy(to->freq_hz, imaged, (size_t)num * sizeof *imaged);
        to->num_chan = num;
    }
cleanup:
    tess_free(imaged);
    return status;
}

/* Opens the beam of each kind of dishes. Collective. */
static tess_status open_dishes(const predicted_view *view, predicted_pointing *to)
{
    tess_status status = TESS_OK;
    const image_dishes_of dishes = {view->comm, view->source, view->beam.model, true};
    TESS_TRY(image_dishes_open(&dishes, &to->dishes));
    to->num_pairs = image_dishes_num_pairs(&to->dishes);
    to->mean = tess_alloc_zero(to->num_pairs, sizeof *to->mean);
    to->reach = tess_alloc_zero(to->num_pairs, sizeof *to->reach);
    to->seen = tess_alloc(to->num_pairs, sizeof *to->seen);
    to->first = tess_alloc(to->num_pairs, sizeof *to->first);
    status = to->mean && to->reach && to->seen && to->first ? TESS_OK : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(view->comm, status));
cleanup:
    return status;
}

tess_status predicted_pointing_create(const predicted_view *view,
                                      predicted_pointing **out)
{
    tess_status status = TESS_OK;
    const tess_source_info *info = tess_source_info_of(view->source);
    const double *at = field_of(view)->pointing_rad;
    const predicted_mean all = {0};
    predicted_pointing *pointing = tess_alloc_zero(1, sizeof *pointing);
    TESS_TRY(tess_comm_agree(view->comm, pointing ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(open_dishes(view, pointing));
    pointing->info = info;
    TESS_TRY(tess_comm_agree(view->comm, choose_channels(view, pointing)));
    pointing->threads = view->threads;
    pointing->limit = view->beam.limit;
    pointing->image = view->geom;
    tess_rotation_between(info->ra_rad, info->dec_rad, at[0], at[1],
                          pointing->rotation);
    TESS_TRY(find_angles(view, pointing));
    TESS_TRY(tess_comm_agree(view->comm, make_widest(pointing)));
    find_pixels(pointing);
    TESS_TRY(tess_comm_agree(view->comm, predicted_pointing_choose(pointing, &all)));
    tell(view, pointing);
    *out = pointing;
    pointing = NULL;
cleanup:
    predicted_pointing_free(pointing);
    return status;
}

void predicted_pointing_free(predicted_pointing *pointing)
{
    if (!pointing) return;
    for (int k = 0; pointing->mean && k < pointing->num_pairs; ++k)
        tess_beam_mean_destroy(pointing->mean[k]);
    tess_free((void *)pointing->mean);
    tess_free(pointing->reach);
    tess_free(pointing->seen);
    tess_free(pointing->first);
    tess_free(pointing->time_mjd_s);
    tess_free(pointing->angle_rad);
    tess_free(pointing->freq_hz);
    image_dishes_free(&pointing->dishes);
    tess_free(pointing);
}

imager_parts predicted_pointing_parts(predicted_pointing *pointing)
{
    return (imager_parts){.num = pointing->num_pairs,
                          .geom = pointing->seen,
                          .first = (const int64_t(*)[2])pointing->first,
                          .weigh = weigh,
                          .context = pointing,
                          .take_plane = take_plane,
                          .owner = pointing};
}

imager_view predicted_pointing_view(const predicted_pointing *pointing, int num_pol)
{
    if (pointing->num_pairs == 1) return (imager_view){0};
    return (imager_view){
        .num_pol = num_pol, .from_model = take_pair, .context = pointing};
}
