/* Finds which pixels of a model a pointing sees, and how much of them its antennas
 * receive. */
#include "predicted_pointing.h"

#include <math.h>

#include "tess_beam_models.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_minmax.h"
#include "tess_primary_beam.h"

struct predicted_pointing {
    tess_primary_beam *beam;
    tess_beam_mean *mean;         /* over channels */
    const tess_source_info *info; /* of the channels; borrowed */
    double *angle_rad;            /* [num_angles] of integrations, if the beam turns */
    int64_t num_angles;
    int threads;
    double limit;
    double rotation[3][3]; /* of direction cosines from the phase centre to here */
    tess_geom image, seen; /* pixels of the model, and of them those that count */
    int64_t first[1][2];   /* where these begin */
};

/* ---- beams ---- */

/* The field whose rows are predicted. Local. */
static tess_status find_field(tess_source *source, const tess_vis_field **field)
{
    tess_status status = TESS_OK;
    const tess_vis_meta *meta = tess_vis_reader_meta(tess_source_reader(source, 0));
    if (tess_source_num_readers(source) > 1)
        TESS_FAIL(TESS_ERR_USAGE,
                  "%s: has several fields; predict them with --mosaic, or choose one "
                  "with --field",
                  meta->path);
    *field = &meta->field[meta->field_selected];
cleanup:
    return status;
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

/* Finds the parallactic angles of the source's integrations. Collective. */
static tess_status find_angles(tess_comm *comm, const tess_vis_field *field,
                               tess_source *source, predicted_pointing *to)
{
    tess_status status = TESS_OK;
    double site_m[3];
    if (!tess_primary_beam_turns(to->beam)) return TESS_OK;
    TESS_TRY(tess_source_times(source, &to->angle_rad, &to->num_angles));
    tess_vis_site(to->info->meta, site_m);
    for (int64_t k = 0; k < to->num_angles && status == TESS_OK; ++k) {
        const double time_mjd_s = to->angle_rad[k];
        status = tess_parallactic_angle(field->pointing_rad[0], field->pointing_rad[1],
                                        site_m, time_mjd_s, &to->angle_rad[k]);
    }
    TESS_TRY(tess_comm_agree(comm, status));
cleanup:
    return status;
}

/* Makes the mean over channels, by weights, and over integrations. Local. */
static tess_status make_mean(predicted_pointing *to, const double *weight)
{
    const tess_beam_mean_of of = {.num_chan = to->info->num_chan,
                                  .freq_hz = to->info->freq_hz,
                                  .weight = weight,
                                  .num_angles = to->num_angles,
                                  .angle_rad = to->angle_rad,
                                  .reach = reach_of(to),
                                  .threads = to->threads};
    tess_beam_mean_destroy(to->mean);
    to->mean = NULL;
    return tess_beam_mean_create(to->beam, &of, &to->mean);
}

tess_status predicted_pointing_choose(predicted_pointing *pointing,
                                      const int32_t *chan_output, int64_t output)
{
    tess_status status = TESS_OK;
    const int64_t num = pointing->info->num_chan;
    double *weight = tess_alloc_zero(num, sizeof *weight), all = 0;
    if (!weight) TESS_FAIL(TESS_ERR_ALLOC, "channels");
    for (int64_t c = 0; c < num; ++c)
        if (!chan_output || chan_output[c] == output) all += weight[c] = 1;
    if (all > 0) TESS_TRY(make_mean(pointing, weight));
cleanup:
    tess_free(weight);
    return status;
}

/* Makes the beam of the lowest frequency, where it is widest. Local. */
static tess_status make_widest(predicted_pointing *to)
{
    tess_status status = TESS_OK;
    int64_t lowest = 0;
    double *weight = tess_alloc_zero(to->info->num_chan, sizeof *weight);
    if (!weight) TESS_FAIL(TESS_ERR_ALLOC, "channels");
    for (int64_t c = 1; c < to->info->num_chan; ++c)
        if (to->info->freq_hz[c] < to->info->freq_hz[lowest]) lowest = c;
    weight[lowest] = 1;
    TESS_TRY(make_mean(to, weight));
cleanup:
    tess_free(weight);
    return status;
}

/* ---- pixels ---- */

/* What is received of a pixel; 0 below the limit. */
static double power_at(const predicted_pointing *of, int64_t x, int64_t y)
{
    const double l = tess_geom_l(&of->image, x), m = tess_geom_m(&of->image, y);
    const double n2 = 1 - l * l - m * m;
    if (!(n2 >= 0)) return 0;
    double at[3];
    for (int i = 0; i < 3; ++i)
        at[i] = of->rotation[i][0] * l + of->rotation[i][1] * m +
                of->rotation[i][2] * sqrt(n2);
    const double power = at[2] > 0 ? tess_beam_mean_power(of->mean, at[0], at[1]) : 0;
    return power >= of->limit ? power : 0;
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
            if (!(power_at(to, x, y) > 0)) continue;
            x0 = tess_min_i64(x0, x);
            x1 = tess_max_i64(x1, x + 1);
            y0 = tess_min_i64(y0, y);
            y1 = tess_max_i64(y1, y + 1);
        }
    widen(image->nx, &x0, &x1);
    widen(image->ny, &y0, &y1);
    to->seen = *image;
    to->seen.nx = x1 - x0;
    to->seen.ny = y1 - y0;
    to->seen.l0 = tess_geom_l(image, x0 + to->seen.nx / 2);
    to->seen.m0 = tess_geom_m(image, y0 + to->seen.ny / 2);
    to->first[0][0] = x0;
    to->first[0][1] = y0;
}

static tess_status weigh(const void *context, int target, int64_t row, double *weight)
{
    const predicted_pointing *pointing = context;
    (void)target;
    for (int64_t i = 0; i < pointing->seen.nx; ++i)
        weight[i] =
            power_at(pointing, pointing->first[0][0] + i, pointing->first[0][1] + row);
    return TESS_OK;
}

/* ---- all ---- */

static void tell(tess_comm *comm, const predicted_pointing *of,
                 const tess_vis_field *field)
{
    if (tess_comm_rank(comm) == 0)
        tess_log_info("field %s sees %lld x %lld pixels of the model; primary beam: %s",
                      field->name, (long long)of->seen.nx, (long long)of->seen.ny,
                      tess_primary_beam_name(of->beam));
}

/* Refuses dishes that have several beams. Collective. */
static tess_status check_dishes(tess_comm *comm, const char *model,
                                const tess_vis_meta *meta)
{
    tess_status status = TESS_OK;
    tess_beam_models models = {0};
    TESS_TRY(tess_beam_models_find(comm, model, meta, &models));
    if (models.num > 1)
        TESS_FAIL(TESS_ERR_USAGE,
                  "%s: its dishes have %d different beams, and predictions take one; "
                  "name one of all dishes with --primary-beam, like airy:10.7",
                  meta->path, models.num);
cleanup:
    tess_beam_models_free(&models);
    return status;
}

tess_status predicted_pointing_create(tess_comm *comm, const tess_predict_opts *opts,
                                      tess_source *source, const tess_geom *geom,
                                      predicted_pointing **out)
{
    tess_status status = TESS_OK;
    const tess_source_info *info = tess_source_info_of(source);
    const tess_vis_field *field = NULL;
    const tess_primary_beam_request request = {.model = opts->beam.model,
                                               .telescope = info->meta->telescope,
                                               .num_chan = info->num_chan,
                                               .freq_hz = info->freq_hz};
    predicted_pointing *pointing = tess_alloc_zero(1, sizeof *pointing);
    TESS_TRY(tess_comm_agree(comm, pointing ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_comm_agree(comm, find_field(source, &field)));
    TESS_TRY(check_dishes(comm, opts->beam.model, info->meta));
    TESS_TRY(tess_primary_beam_open(comm, &request, &pointing->beam));
    pointing->info = info;
    pointing->threads = opts->layout.threads;
    pointing->limit = opts->beam.limit;
    pointing->image = *geom;
    tess_rotation_between(info->ra_rad, info->dec_rad, field->pointing_rad[0],
                          field->pointing_rad[1], pointing->rotation);
    TESS_TRY(find_angles(comm, field, source, pointing));
    TESS_TRY(tess_comm_agree(comm, make_widest(pointing)));
    find_pixels(pointing);
    TESS_TRY(tess_comm_agree(comm, predicted_pointing_choose(pointing, NULL, 0)));
    tell(comm, pointing, field);
    *out = pointing;
    pointing = NULL;
cleanup:
    predicted_pointing_free(pointing);
    return status;
}

void predicted_pointing_free(predicted_pointing *pointing)
{
    if (!pointing) return;
    tess_beam_mean_destroy(pointing->mean);
    tess_free(pointing->angle_rad);
    tess_primary_beam_close(pointing->beam);
    tess_free(pointing);
}

imager_parts predicted_pointing_parts(const predicted_pointing *pointing)
{
    return (imager_parts){.num = 1,
                          .geom = &pointing->seen,
                          .first = pointing->first,
                          .weigh = weigh,
                          .context = pointing};
}
