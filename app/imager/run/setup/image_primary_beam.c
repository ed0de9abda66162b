/* The primary beam of a run's images: opens it, weighs channels as the images do, and
 * computes the rows of this rank. */
#include "image_primary_beam.h"

#include <math.h>
#include <string.h>

#include "sample_sets.h"
#include "source_origins.h"
#include "tess_const.h"
#include "tess_geom.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_primary_beam.h"
#include "tess_select.h"

/* Pointings that are the same: a hundredth of the narrowest beam there is. */
static const double SAME_POINTING_RAD = 1e-6;

static const tess_vis_field *field_of(const image_run *run, int reader)
{
    const tess_vis_meta *meta =
        tess_vis_reader_meta(tess_source_reader(run->source, reader));
    return &meta->field[meta->field_selected];
}

/* ---- opening ---- */

static bool same_direction(const double a[2], const double b[2])
{
    double between[3][3];
    tess_rotation_between(a[0], a[1], b[0], b[1], between);
    return hypot(between[0][2], between[1][2]) <= SAME_POINTING_RAD &&
           between[2][2] > 0;
}

/* The pointing of a field, which is added if it is new. */
static int pointing_of(const image_run *run, const tess_vis_field *field,
                       image_primary_beam *to)
{
    int k = 0;
    while (k < to->num_pointings &&
           !same_direction(to->pointing[k].direction_rad, field->pointing_rad))
        ++k;
    if (k < to->num_pointings) return k;
    image_pointing *pointing = &to->pointing[to->num_pointings++];
    pointing->name = field->name;
    memcpy(pointing->direction_rad, field->pointing_rad, sizeof field->pointing_rad);
    tess_rotation_between(run->info->ra_rad, run->info->dec_rad, field->pointing_rad[0],
                          field->pointing_rad[1], pointing->rotation);
    return k;
}

/* Finds the pointing of each reader. Images that are no mosaic have one. */
static tess_status find_pointings(const image_run *run, image_primary_beam *to)
{
    tess_status status = TESS_OK;
    const int num = tess_source_num_readers(run->source);
    to->pointing = tess_alloc_zero(num, sizeof *to->pointing);
    to->of_reader = tess_alloc(num, sizeof *to->of_reader);
    if (!to->pointing || !to->of_reader) TESS_FAIL(TESS_ERR_ALLOC, "primary beam");
    for (int k = 0; k < num; ++k) {
        to->of_reader[k] = pointing_of(run, field_of(run, k), to);
        if (to->num_pointings > 1 && !run->opts->selection.joins_pointings)
            TESS_FAIL(TESS_ERR_INPUT,
                      "--primary-beam: field %s points elsewhere than field %s; join "
                      "them with --mosaic, or image each alone (--field)",
                      field_of(run, k)->name, field_of(run, 0)->name);
    }
    tess_vis_site(run->info->meta, to->site_m);
cleanup:
    return status;
}

/* Finds the pointing of each field that samples come from. */
static tess_status find_fields(const image_run *run, image_primary_beam *to)
{
    tess_status status = TESS_OK;
    const tess_origins *origins = tess_source_samples(run->source).origins;
    to->of_field = tess_alloc(origins->num_fields, sizeof *to->of_field);
    if (!to->of_field) TESS_FAIL(TESS_ERR_ALLOC, "primary beam");
    for (int32_t k = 0; k < origins->num_fields; ++k)
        to->of_field[k] = pointing_of(run, tess_source_field(run->source, k), to);
cleanup:
    return status;
}

static void tell(const image_run *run, const image_primary_beam *beam)
{
    const double *at = beam->pointing[0].direction_rad;
    const double limit = run->opts->beside.primary_beam.limit;
    const char *name = tess_primary_beam_name(beam->dishes.beam[0]);
    const char *more = beam->dishes.num > 1 ? " and others" : "";
    const char *turns =
        image_dishes_turn(&beam->dishes) ? ", turning with the parallactic angle" : "";
    if (run->opts->selection.joins_pointings)
        tess_log_info("primary beam: %s%s, of %d pointings%s; cut at %g", name, more,
                      beam->num_pointings, turns, limit);
    else
        tess_log_info("primary beam: %s, pointing at %.6f %+.6f deg%s; cut at %g", name,
                      at[0] / TESS_RAD_PER_DEG, at[1] / TESS_RAD_PER_DEG, turns, limit);
}

tess_status image_primary_beam_find(image_run *run)
{
    tess_status status = TESS_OK;
    const bool is_mosaic = run->opts->selection.joins_pointings;
    if (!run->opts->beside.primary_beam.model || run->output.primary_beam)
        return TESS_OK;
    const image_dishes_of dishes = {run->comm, run->source,
                                    run->opts->beside.primary_beam.model, is_mosaic};
    image_primary_beam *beam = tess_alloc_zero(1, sizeof *beam);
    status = beam ? TESS_OK : TESS_ERR_ALLOC;
    if (status == TESS_OK && is_mosaic)
        status = tess_source_keep_origins(run->source, 0);
    TESS_TRY(tess_comm_agree(run->comm, status));
    TESS_TRY(image_dishes_open(&dishes, &beam->dishes));
    status = find_pointings(run, beam);
    if (status == TESS_OK && is_mosaic) status = find_fields(run, beam);
    TESS_TRY(tess_comm_agree(run->comm, status));
    beam->num_sums = beam->of_field
                         ? beam->num_pointings * image_dishes_num_pairs(&beam->dishes)
                         : TESS_MAX_POL;
    tell(run, beam);
    run->output.primary_beam = run->means.primary_beam = beam;
    beam = NULL;
cleanup:
    image_primary_beam_free(beam);
    return status;
}

/* Times that are no further apart are those of one integration [s]. */
static const double SAME_TIME_S = 1e-3;

/* Adds the times of the integrations of a reader. Collective. */
static tess_status add_times(const image_run *run, int reader, image_pointing *to)
{
    tess_status status = TESS_OK;
    double *times = NULL;
    int64_t count = 0, capacity = to->num_times;
    tess_source_choose_reader(run->source, reader);
    status = tess_source_times(run->source, &times, &count);
    tess_source_choose_reader(run->source, -1);
    TESS_TRY(status);
    if (tess_grow((void **)&to->time_mjd_s, &capacity, to->num_times + count,
                  sizeof *to->time_mjd_s))
        status = TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(run->comm, status));
    memcpy(to->time_mjd_s + to->num_times, times, (size_t)count * sizeof *times);
    to->num_times =
        tess_select_distinct(to->time_mjd_s, to->num_times + count, SAME_TIME_S);
cleanup:
    tess_free(times);
    return status;
}

/* Reads the times of the integrations of a pointing. Collective. */
static tess_status read_times(const image_run *run, const image_primary_beam *beam,
                              int which, image_pointing *to)
{
    tess_status status = TESS_OK;
    if (beam->num_pointings == 1)
        return tess_source_times(run->source, &to->time_mjd_s, &to->num_times);
    for (int k = 0; k < tess_source_num_readers(run->source); ++k)
        if (beam->of_reader[k] == which) TESS_TRY(add_times(run, k, to));
cleanup:
    return status;
}

/* Reads the times of the integrations of all pointings. Collective. */
static tess_status find_times(const image_run *run, image_primary_beam *beam)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < beam->num_pointings; ++k) {
        image_pointing *pointing = &beam->pointing[k];
        TESS_TRY(read_times(run, beam, k, pointing));
        /* any time shows whether angles can be found; it is that of the last
         * integration */
        double unused;
        status = tess_parallactic_angle(pointing->direction_rad[0],
                                        pointing->direction_rad[1], beam->site_m,
                                        run->info->time_end, &unused);
        TESS_TRY(tess_comm_agree(run->comm, status));
    }
cleanup:
    return status;
}

tess_status image_primary_beam_open(image_run *run)
{
    tess_status status = TESS_OK;
    TESS_TRY(image_primary_beam_find(run));
    image_primary_beam *beam = run->output.primary_beam;
    if (beam && image_dishes_turn(&beam->dishes)) TESS_TRY(find_times(run, beam));
cleanup:
    return status;
}

void image_primary_beam_free(image_primary_beam *beam)
{
    if (!beam) return;
    image_dishes_free(&beam->dishes);
    for (int k = 0; beam->pointing && k < beam->num_pointings; ++k)
        tess_free(beam->pointing[k].time_mjd_s);
    tess_free(beam->pointing);
    tess_free(beam->of_reader);
    tess_free(beam->of_field);
    tess_free(beam->weight);
    tess_free(beam);
}

/* ---- weights ---- */

static bool is_of(const image_run *run, int64_t chan, int64_t output)
{
    return run->outputs.chan_output[chan] == output % run->outputs.num_channels;
}

/* Weights are summed as whole numbers, whose sum does not depend on their order. No
 * weight is above this many units; 2^32 of them do not overflow. */
static const double LARGEST_UNITS = 2147483648.0; /* 2^31 */

/* Natural and Briggs weights are at most the statistical ones, and uniform ones at most
 * 1 (choose_scales in image_output.c). */
static double units_of_weight(const image_run *run, const sample_sets *data)
{
    const double largest = run->opts->weights.weighting == TESS_UNIFORM
                               ? 1
                               : run->job.extent.largest_weight * data->weight_scale;
    return largest > 0 ? LARGEST_UNITS / largest : 0;
}

/* Makes room for the weights of intervals. Local. */
static tess_status make_sums(const image_run *run, image_primary_beam *to)
{
    tess_status status = TESS_OK;
    const int64_t num_intervals = run->holds.stay ? run->outputs.num_intervals : 1;
    if (to->weight) return TESS_OK;
    to->weight = tess_alloc_zero(num_intervals * to->num_sums * run->info->num_chan,
                                 sizeof *to->weight);
    if (!to->weight) TESS_FAIL(TESS_ERR_ALLOC, "weights of channels");
cleanup:
    return status;
}

/* The sums [num_sums][num_chan] of an output's interval. */
static int64_t *sums_of(const image_run *run, int64_t output)
{
    const image_primary_beam *beam = run->output.primary_beam;
    const int64_t interval = run->holds.stay ? output / run->outputs.num_channels : 0;
    return beam->weight + interval * beam->num_sums * run->info->num_chan;
}

/* Adds the weights of rows to sum[num_sums][num_chan]. */
static void add_weights(const image_primary_beam *beam, const tess_samples *samples,
                        double units, int64_t num_chan, int64_t *sum)
{
    for (int64_t row = 0; row < samples->num_rows; ++row) {
        int64_t *to = sum;
        if (beam->of_field) {
            const tess_origin origin =
                tess_origin_of(samples->origins, samples->origin[row]);
            to +=
                num_chan * image_beam_of_pair(beam, beam->of_field[origin.field],
                                              image_dishes_pair(&beam->dishes, &origin))
                               .sum;
        }
        for (int32_t c = 0; c < samples->num_chan[row]; ++c)
            for (int k = 0; k < samples->num_weight; ++k) {
                const int64_t at =
                    (samples->vis_first[row] + c) * samples->num_weight + k;
                to[k * num_chan + samples->chan_base[row] + c] +=
                    (int64_t)(units * tess_samples_weight(samples, at) + 0.5);
            }
    }
}

tess_status image_primary_beam_weigh(image_run *run, int64_t output, sample_sets *data)
{
    tess_status status = TESS_OK;
    image_primary_beam *beam = run->output.primary_beam;
    const int64_t num_chan = run->info->num_chan;
    const double units = units_of_weight(run, data);
    if (!beam) return TESS_OK;
    const int64_t num = beam->num_sums * num_chan;
    int64_t *sum = tess_alloc_zero(num, sizeof *sum);
    status = sum ? make_sums(run, beam) : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(run->comm, status));
    int64_t *const kept = sums_of(run, output);
    for (int64_t k = 0; k < data->num_sets && status == TESS_OK; ++k) {
        tess_samples *samples;
        status = sample_sets_get(data, k, &samples);
        if (status == TESS_OK) add_weights(beam, samples, units, num_chan, sum);
    }
    TESS_TRY(tess_comm_agree(run->comm, status));
    TESS_TRY(tess_comm_allreduce_i64(run->comm, sum, num, TESS_SUM));
    beam->num_weight =
        data->in_memory ? data->cached.num_weight : data->block.num_weight;
    for (int64_t c = 0; c < num_chan; ++c)
        for (int k = 0; k < beam->num_sums; ++k)
            if (is_of(run, c, output)) kept[k * num_chan + c] = sum[k * num_chan + c];
cleanup:
    tess_free(sum);
    return status;
}

/* ---- means ---- */

double image_primary_beam_reach(const image_run *run, const image_pointing *pointing)
{
    const tess_image_opts *opts = run->opts;
    double reach = 0;
    for (int k = 0; k < 4; ++k) {
        const double half_x = (double)(opts->nx + 2) / 2 * opts->scale_rad;
        const double half_y = (double)(opts->ny + 2) / 2 * opts->scale_rad;
        const double l = run->info->turn[0] + (k % 2 ? half_x : -half_x);
        const double m = run->info->turn[1] + (k / 2 ? half_y : -half_y);
        const double n2 = 1 - l * l - m * m;
        if (!(n2 > 0)) return 1;
        double at[3];
        for (int i = 0; i < 3; ++i)
            at[i] = pointing->rotation[i][0] * l + pointing->rotation[i][1] * m +
                    pointing->rotation[i][2] * sqrt(n2);
        if (!(at[2] > 0)) return 1;
        reach = fmax(reach, hypot(at[0], at[1]));
    }
    return reach;
}

/* Parallactic angles of the integrations of an interval. Local. */
static tess_status find_angles(const image_run *run, int which, int64_t interval,
                               double *angle_rad, int64_t *num)
{
    tess_status status = TESS_OK;
    const image_primary_beam *beam = run->output.primary_beam;
    const image_pointing *pointing = &beam->pointing[which];
    const double *begin = run->outputs.interval_begin + interval;
    for (int64_t k = 0; k < pointing->num_times; ++k) {
        const double time = pointing->time_mjd_s[k];
        if (!(time >= begin[0] && time < begin[1])) continue;
        TESS_TRY(tess_parallactic_angle(pointing->direction_rad[0],
                                        pointing->direction_rad[1], beam->site_m, time,
                                        &angle_rad[*num]));
        ++*num;
    }
cleanup:
    return status;
}

image_beam_of image_beam_of_pair(const image_primary_beam *beam, int pointing, int pair)
{
    const int num_pairs = image_dishes_num_pairs(&beam->dishes);
    return (image_beam_of){pointing * num_pairs + pair, pointing, pair};
}

/* A channel of an axis has at most so many frequencies at which its beam is found. */
enum { MOST_PARTS = 64 };

/* The number of frequencies at which the beam of a channel is found. A channel of an
 * axis may be as wide as several of the data, whose beams differ: those of the VLA are
 * of the nearest frequency in a table. */
static int parts_of(const image_run *run, int64_t chan)
{
    const tess_vis_meta *meta =
        tess_vis_reader_meta(tess_source_reader(run->source, 0));
    const double width_hz = meta->segment[0].chan_width_hz[0];
    if (!run->info->axis) return 1;
    return (int)fmin(fmax(round(run->info->width_hz[chan] / width_hz), 1), MOST_PARTS);
}

/* Lists the frequencies of which the beam of an output is the mean, and their weights.
 * Returns their number; without arrays it only counts them. */
static int64_t list_frequencies(const image_run *run, int64_t output,
                                const int64_t *sums, double *freq_hz, double *weight)
{
    const tess_source_info *info = run->info;
    int64_t num = 0;
    for (int64_t c = 0; c < info->num_chan; ++c) {
        const int parts = parts_of(run, c);
        if (!is_of(run, c, output) || sums[c] == 0) continue;
        for (int k = 0; k < parts; ++k, ++num) {
            if (!freq_hz) continue;
            freq_hz[num] =
                info->freq_hz[c] + ((k + 0.5) / parts - 0.5) * info->width_hz[c];
            weight[num] = (double)sums[c] / parts;
        }
    }
    return num;
}

tess_status image_primary_beam_mean(const image_run *run, int64_t output,
                                    image_beam_of which, tess_beam_mean **mean)
{
    tess_status status = TESS_OK;
    const image_primary_beam *beam = run->output.primary_beam;
    const image_pointing *at = &beam->pointing[which.pointing];
    const int64_t num_chan = run->info->num_chan;
    const tess_primary_beam *pair[2];
    if (!beam->weight) return TESS_OK; /* no output has been weighed */
    const int64_t *sums = sums_of(run, output) + which.sum * num_chan;
    const int64_t num = list_frequencies(run, output, sums, NULL, NULL);
    double *freq_hz = tess_alloc(num, sizeof *freq_hz);
    double *weight = tess_alloc(num, sizeof *weight);
    double *angle_rad = tess_alloc_zero(at->num_times, sizeof *angle_rad);
    image_dishes_beams(&beam->dishes, which.pair, pair);
    tess_beam_mean_of of = {.other = pair[1] != pair[0] ? pair[1] : NULL,
                            .num_chan = num,
                            .freq_hz = freq_hz,
                            .weight = weight,
                            .angle_rad = angle_rad,
                            .reach = image_primary_beam_reach(run, at),
                            .threads = run->opts->layout.threads};
    if (!freq_hz || !weight || !angle_rad) TESS_FAIL(TESS_ERR_ALLOC, "primary beam");
    list_frequencies(run, output, sums, freq_hz, weight);
    TESS_TRY(find_angles(run, which.pointing, output / run->outputs.num_channels,
                         angle_rad, &of.num_angles));
    if (num > 0 && (of.num_angles > 0 || !at->time_mjd_s))
        TESS_TRY(tess_beam_mean_create(pair[0], &of, mean));
cleanup:
    tess_free(freq_hz);
    tess_free(weight);
    tess_free(angle_rad);
    return status;
}

double image_pointing_power(const image_pointing *pointing, const tess_beam_mean *mean,
                            double l, double m)
{
    double at[3];
    const double n2 = 1 - l * l - m * m;
    if (!(n2 >= 0)) return (double)NAN;
    for (int i = 0; i < 3; ++i)
        at[i] = pointing->rotation[i][0] * l + pointing->rotation[i][1] * m +
                pointing->rotation[i][2] * sqrt(n2);
    return at[2] > 0 ? tess_beam_mean_power(mean, at[0], at[1]) : 0;
}

/* The power at a pixel of an image that is no mosaic. */
static double power_at(const image_run *run, const tess_beam_mean *mean, int64_t col,
                       int64_t row)
{
    const tess_image_opts *opts = run->opts;
    const double x = (double)(col - opts->nx / 2) * opts->scale_rad;
    const double y = (double)(row - opts->ny / 2) * opts->scale_rad;
    return image_pointing_power(run->output.primary_beam->pointing, mean,
                                run->info->turn[0] - x, run->info->turn[1] + y);
}

static void fill_rows(const image_run *run, const tess_beam_mean *mean,
                      const tess_rows *rows)
{
#pragma omp parallel for schedule(static) num_threads(run->opts->layout.threads)
    for (int64_t row = 0; row < rows->num_rows; ++row)
        for (int64_t i = 0; i < rows->num_cols; ++i)
            tess_rows_set(
                rows, row * rows->num_cols + i,
                power_at(run, mean, rows->col_first + i, rows->row_first + row));
}

tess_status image_primary_beam_rows(const image_run *run, int64_t output, int pol,
                                    tess_rows *rows)
{
    tess_status status = TESS_OK;
    const image_primary_beam *beam = run->output.primary_beam;
    tess_beam_mean *mean = NULL;
    TESS_TRY(image_primary_beam_mean(
        run, output, (image_beam_of){.sum = beam->num_weight > 1 ? pol : 0}, &mean));
    TESS_TRY(tess_rows_alloc(rows));
    if (mean)
        fill_rows(run, mean, rows);
    else
        TESS_TRY(tess_rows_blank(rows));
cleanup:
    tess_beam_mean_destroy(mean);
    return status;
}

/* ---- how large it is ---- */

/* The largest beam is looked for at about so many frequencies of the band, and at so
 * many pixels along each axis of the image, between which a beam hardly changes. */
enum { PROBED_FREQUENCIES = 64, PROBED_PIXELS = 256 };

/* The pixel of an axis that is nearest to a place [pixels]. */
static int64_t nearest_pixel(double place, int64_t size)
{
    return (int64_t)fmin(fmax(round(place), 0), (double)(size - 1));
}

/* The largest power at pixels all over the image, among them the one nearest to the
 * pointing: the search ends there if the beam is above `enough`. */
static double largest_power(const image_run *run, const tess_beam_mean *mean,
                            double enough)
{
    const tess_image_opts *opts = run->opts;
    const double *at = run->output.primary_beam->pointing->rotation[2];
    const double x = (run->info->turn[0] - at[0]) / opts->scale_rad;
    const double y = (at[1] - run->info->turn[1]) / opts->scale_rad;
    const int64_t most = PROBED_PIXELS - 1;
    double largest =
        power_at(run, mean, nearest_pixel(x + (double)(opts->nx / 2), opts->nx),
                 nearest_pixel(y + (double)(opts->ny / 2), opts->ny));
    if (largest > enough) return largest;
    for (int64_t j = 0; j <= most; ++j)
        for (int64_t i = 0; i <= most; ++i)
            largest = fmax(largest, power_at(run, mean, i * (opts->nx - 1) / most,
                                             j * (opts->ny - 1) / most));
    return largest;
}

/* Raises `*largest` to the largest power at one frequency, over an interval's
 * integrations. Local. */
static tess_status probe(const image_run *run, double freq_hz, int64_t interval,
                         double enough, double *largest)
{
    tess_status status = TESS_OK;
    const image_primary_beam *beam = run->output.primary_beam;
    const image_pointing *at = beam->pointing;
    const double one = 1;
    tess_beam_mean *mean = NULL;
    double *angle_rad = tess_alloc_zero(at->num_times, sizeof *angle_rad);
    tess_beam_mean_of of = {.num_chan = 1,
                            .freq_hz = &freq_hz,
                            .weight = &one,
                            .angle_rad = angle_rad,
                            .reach = image_primary_beam_reach(run, at),
                            .threads = run->opts->layout.threads};
    if (!angle_rad) TESS_FAIL(TESS_ERR_ALLOC, "primary beam");
    TESS_TRY(find_angles(run, 0, interval, angle_rad, &of.num_angles));
    if (at->time_mjd_s && of.num_angles == 0) goto cleanup; /* it has no data */
    TESS_TRY(tess_beam_mean_create(beam->dishes.beam[0], &of, &mean));
    *largest = fmax(*largest, largest_power(run, mean, enough));
cleanup:
    tess_beam_mean_destroy(mean);
    tess_free(angle_rad);
    return status;
}

tess_status image_primary_beam_largest(const image_run *run, int64_t channel,
                                       double enough, double *largest)
{
    tess_status status = TESS_OK;
    const output_table *outputs = &run->outputs;
    const bool turns = run->output.primary_beam->pointing->time_mjd_s != NULL;
    const int64_t intervals = turns ? outputs->num_intervals : 1;
    const int64_t most = PROBED_FREQUENCIES / outputs->num_channels + 2;
    const int64_t num_chan = run->info->num_chan;
    double *freq_hz = NULL, *weight = NULL;
    int64_t *sums = tess_alloc(num_chan, sizeof *sums);
    if (!sums) TESS_FAIL(TESS_ERR_ALLOC, "primary beam");
    for (int64_t c = 0; c < num_chan; ++c)
        sums[c] = 1;
    const int64_t num = list_frequencies(run, channel, sums, NULL, NULL);
    freq_hz = tess_alloc(num, sizeof *freq_hz);
    weight = tess_alloc(num, sizeof *weight);
    if (!freq_hz || !weight) TESS_FAIL(TESS_ERR_ALLOC, "primary beam");
    list_frequencies(run, channel, sums, freq_hz, weight);
    const int64_t probed = num < most ? num : most; /* the ends of the band, too */
    for (int64_t t = 0; t < intervals; ++t)
        for (int64_t k = 0; k < probed && !(*largest > enough); ++k)
            TESS_TRY(probe(run, freq_hz[probed > 1 ? k * (num - 1) / (probed - 1) : 0],
                           t, enough, largest));
cleanup:
    tess_free(freq_hz);
    tess_free(weight);
    tess_free(sums);
    return status;
}

/* ---- the beams of an output ---- */

/* The beam of each polarisation; those with the same weights share one. Local. */
static tess_status make_all(const image_run *run, int64_t output, const tess_rows *like,
                            imager_product *to)
{
    tess_status status = TESS_OK;
    const image_primary_beam *beam = run->output.primary_beam;
    tess_beam_mean *mean = NULL;
    for (int k = 0; k < run->num_pol; ++k) {
        const bool is_own = k == 0 || beam->num_weight > 1;
        if (is_own) {
            tess_beam_mean_destroy(mean);
            mean = NULL;
            TESS_TRY(
                image_primary_beam_mean(run, output, (image_beam_of){.sum = k}, &mean));
        }
        to[k].rows = tess_rows_like(like, TESS_PIXEL_DOUBLE);
        TESS_TRY(tess_rows_alloc(&to[k].rows));
        if (mean)
            fill_rows(run, mean, &to[k].rows);
        else
            TESS_TRY(tess_rows_blank(&to[k].rows));
    }
cleanup:
    tess_beam_mean_destroy(mean);
    return status;
}

/* A kind of which there are images: with --no-dirty, a run that does not clean has PSFs
 * alone. */
static image_kind kind_like(const image_kinds *kinds)
{
    if (kinds->num[IMAGE_DIRTY] > 0) return IMAGE_DIRTY;
    return kinds->num[IMAGE_RESTORED] > 0 ? IMAGE_RESTORED : IMAGE_PSF;
}

tess_status image_primary_beam_make(image_run *run, int64_t output,
                                    imager_product *product)
{
    tess_status status = TESS_OK;
    const image_kinds *kinds = &run->output.kinds;
    const image_kind any = kind_like(kinds);
    const imager_product *like = product + image_kinds_place(kinds, any);
    imager_product *to = product + image_kinds_place(kinds, IMAGE_PRIMARY_BEAM);
    double mark = tess_time_now();
    if (!run->output.primary_beam || run->whole.mosaic ||
        run->outputs.extent[output].num_vis == 0)
        return TESS_OK;
    status = make_all(run, output, &like->rows, to);
    TESS_TRY(tess_comm_agree(run->comm, status));
    for (int k = 0; k < run->num_pol; ++k) {
        const imager_product *weighed = &like[k < kinds->num[any] ? k : 0];
        to[k].sum_weights = weighed->sum_weights;
        to[k].effective_vis = weighed->effective_vis;
    }
    tess_profile_lap(run->profile, TESS_STAGE_CORRECT, &mark);
cleanup:
    return status;
}
