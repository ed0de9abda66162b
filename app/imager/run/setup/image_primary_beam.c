/* The primary beam of a run's images: opens it, weighs channels as the images do, and
 * computes the rows of this rank. */
#include "image_primary_beam.h"

#include <math.h>
#include <string.h>

#include "sample_sets.h"
#include "tess_const.h"
#include "tess_geom.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_primary_beam.h"

/* Pointings that are the same: a hundredth of the narrowest beam there is. */
static const double SAME_POINTING_RAD = 1e-6;

static const tess_vis_field *field_of(const image_run *run, int reader)
{
    const tess_vis_meta *meta =
        tess_vis_reader_meta(tess_source_reader(run->source, reader));
    return &meta->field[meta->field_selected];
}

/* ---- opening ---- */

/* All observations have one pointing centre. */
static tess_status find_pointing(const image_run *run, image_primary_beam *to)
{
    tess_status status = TESS_OK;
    const double *first = field_of(run, 0)->pointing_rad;
    for (int k = 1; k < tess_source_num_readers(run->source); ++k) {
        double between[3][3];
        const double *other = field_of(run, k)->pointing_rad;
        tess_rotation_between(first[0], first[1], other[0], other[1], between);
        if (hypot(between[0][2], between[1][2]) > SAME_POINTING_RAD ||
            between[2][2] < 0)
            TESS_FAIL(TESS_ERR_INPUT,
                      "--primary-beam: field %s points elsewhere than field %s; image "
                      "each alone (--field), and join the corrected images by weight",
                      field_of(run, k)->name, field_of(run, 0)->name);
    }
    memcpy(to->pointing_rad, first, sizeof to->pointing_rad);
    tess_rotation_between(run->info->ra_rad, run->info->dec_rad, first[0], first[1],
                          to->rotation);
    tess_vis_site(run->info->meta, to->site_m);
cleanup:
    return status;
}

static void tell(const image_run *run, const image_primary_beam *beam)
{
    tess_log_info("primary beam: %s, pointing at %.6f %+.6f deg%s; cut at %g",
                  tess_primary_beam_name(beam->beam),
                  beam->pointing_rad[0] / TESS_RAD_PER_DEG,
                  beam->pointing_rad[1] / TESS_RAD_PER_DEG,
                  beam->time_mjd_s ? ", turning with the parallactic angle" : "",
                  run->opts->beside.primary_beam.limit);
}

/* Collective. */
static tess_status open_beam(const image_run *run, image_primary_beam *to)
{
    tess_status status = TESS_OK;
    double unused;
    const tess_primary_beam_request request = {.model =
                                                   run->opts->beside.primary_beam.model,
                                               .telescope = run->info->meta->telescope,
                                               .num_chan = run->info->num_chan,
                                               .freq_hz = run->info->freq_hz};
    to->weight =
        tess_alloc_zero(TESS_MAX_POL * run->info->num_chan, sizeof *to->weight);
    TESS_TRY(tess_comm_agree(run->comm, to->weight ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_primary_beam_open(run->comm, &request, &to->beam));
    TESS_TRY(tess_comm_agree(run->comm, find_pointing(run, to)));
    if (!tess_primary_beam_turns(to->beam)) return TESS_OK;
    TESS_TRY(tess_source_times(run->source, &to->time_mjd_s, &to->num_times));
    /* any time shows whether angles can be found; it is that of the last integration */
    status = tess_parallactic_angle(to->pointing_rad[0], to->pointing_rad[1],
                                    to->site_m, run->info->time_end, &unused);
    TESS_TRY(tess_comm_agree(run->comm, status));
cleanup:
    return status;
}

tess_status image_primary_beam_open(image_run *run)
{
    tess_status status = TESS_OK;
    if (!run->opts->beside.primary_beam.model) return TESS_OK;
    image_primary_beam *beam = tess_alloc_zero(1, sizeof *beam);
    TESS_TRY(tess_comm_agree(run->comm, beam ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(open_beam(run, beam));
    tell(run, beam);
    run->output.primary_beam = run->means.primary_beam = beam;
    beam = NULL;
cleanup:
    image_primary_beam_free(beam);
    return status;
}

void image_primary_beam_free(image_primary_beam *beam)
{
    if (!beam) return;
    tess_primary_beam_close(beam->beam);
    tess_free(beam->time_mjd_s);
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

static void add_weights(const tess_samples *samples, double units, int64_t num_chan,
                        int64_t *sum)
{
    for (int64_t row = 0; row < samples->num_rows; ++row)
        for (int32_t c = 0; c < samples->num_chan[row]; ++c)
            for (int k = 0; k < samples->num_weight; ++k) {
                const int64_t at =
                    (samples->vis_first[row] + c) * samples->num_weight + k;
                sum[k * num_chan + samples->chan_base[row] + c] +=
                    (int64_t)(units * tess_samples_weight(samples, at) + 0.5);
            }
}

tess_status image_primary_beam_weigh(image_run *run, int64_t output, sample_sets *data)
{
    tess_status status = TESS_OK;
    image_primary_beam *beam = run->output.primary_beam;
    const int64_t num_chan = run->info->num_chan;
    const double units = units_of_weight(run, data);
    if (!beam) return TESS_OK;
    int64_t *sum = tess_alloc_zero(TESS_MAX_POL * num_chan, sizeof *sum);
    TESS_TRY(tess_comm_agree(run->comm, sum ? TESS_OK : TESS_ERR_ALLOC));
    for (int64_t k = 0; k < data->num_sets && status == TESS_OK; ++k) {
        tess_samples *samples;
        status = sample_sets_get(data, k, &samples);
        if (status == TESS_OK) add_weights(samples, units, num_chan, sum);
    }
    TESS_TRY(tess_comm_agree(run->comm, status));
    TESS_TRY(
        tess_comm_allreduce_i64(run->comm, sum, TESS_MAX_POL * num_chan, TESS_SUM));
    beam->num_weight =
        data->in_memory ? data->cached.num_weight : data->block.num_weight;
    for (int64_t c = 0; c < num_chan; ++c)
        for (int k = 0; k < TESS_MAX_POL; ++k)
            if (is_of(run, c, output))
                beam->weight[k * num_chan + c] = sum[k * num_chan + c];
cleanup:
    tess_free(sum);
    return status;
}

/* ---- means ---- */

/* Sine of the largest distance of a pixel from the pointing centre: that of a corner,
 * or 1 where one is beyond the horizon. */
static double reach_of(const image_run *run, const image_primary_beam *beam)
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
            at[i] = beam->rotation[i][0] * l + beam->rotation[i][1] * m +
                    beam->rotation[i][2] * sqrt(n2);
        if (!(at[2] > 0)) return 1;
        reach = fmax(reach, hypot(at[0], at[1]));
    }
    return reach;
}

/* Parallactic angles of the integrations of an interval. Local. */
static tess_status find_angles(const image_run *run, const image_primary_beam *beam,
                               int64_t interval, double *angle_rad, int64_t *num)
{
    tess_status status = TESS_OK;
    const double *begin = run->outputs.interval_begin + interval;
    for (int64_t k = 0; k < beam->num_times; ++k) {
        const double time = beam->time_mjd_s[k];
        if (!(time >= begin[0] && time < begin[1])) continue;
        TESS_TRY(tess_parallactic_angle(beam->pointing_rad[0], beam->pointing_rad[1],
                                        beam->site_m, time, &angle_rad[*num]));
        ++*num;
    }
cleanup:
    return status;
}

/* The mean beam of an output for one set of weights; NULL where all are 0. Local. */
static tess_status make_mean(const image_run *run, const image_primary_beam *beam,
                             int64_t output, int set, tess_beam_mean **mean)
{
    tess_status status = TESS_OK;
    const int64_t num_chan = run->info->num_chan, *sum = beam->weight + set * num_chan;
    double *weight = tess_alloc_zero(num_chan, sizeof *weight);
    double *angle_rad = tess_alloc_zero(beam->num_times, sizeof *angle_rad), all = 0;
    tess_beam_mean_of of = {.num_chan = num_chan,
                            .freq_hz = run->info->freq_hz,
                            .weight = weight,
                            .angle_rad = angle_rad,
                            .reach = reach_of(run, beam),
                            .threads = run->opts->layout.threads};
    if (!weight || !angle_rad) TESS_FAIL(TESS_ERR_ALLOC, "primary beam");
    for (int64_t c = 0; c < num_chan; ++c)
        if (is_of(run, c, output)) all += weight[c] = (double)sum[c];
    TESS_TRY(find_angles(run, beam, output / run->outputs.num_channels, angle_rad,
                         &of.num_angles));
    if (all > 0 && (of.num_angles > 0 || !beam->time_mjd_s))
        TESS_TRY(tess_beam_mean_create(beam->beam, &of, mean));
cleanup:
    tess_free(weight);
    tess_free(angle_rad);
    return status;
}

static double power_at(const image_primary_beam *beam, const tess_beam_mean *mean,
                       double l, double m)
{
    double at[3];
    const double n2 = 1 - l * l - m * m;
    if (!(n2 >= 0)) return (double)NAN;
    for (int i = 0; i < 3; ++i)
        at[i] = beam->rotation[i][0] * l + beam->rotation[i][1] * m +
                beam->rotation[i][2] * sqrt(n2);
    return at[2] > 0 ? tess_beam_mean_power(mean, at[0], at[1]) : 0;
}

static void fill_rows(const image_run *run, const tess_beam_mean *mean,
                      const tess_rows *rows)
{
    const tess_image_opts *opts = run->opts;
#pragma omp parallel for schedule(static) num_threads(opts->layout.threads)
    for (int64_t row = 0; row < rows->num_rows; ++row)
        for (int64_t i = 0; i < rows->num_cols; ++i) {
            const double x =
                (double)(rows->col_first + i - opts->nx / 2) * opts->scale_rad;
            const double y =
                (double)(rows->row_first + row - opts->ny / 2) * opts->scale_rad;
            const double l = run->info->turn[0] - x, m = run->info->turn[1] + y;
            tess_rows_set(rows, row * rows->num_cols + i,
                          power_at(run->output.primary_beam, mean, l, m));
        }
}

tess_status image_primary_beam_rows(const image_run *run, int64_t output, int pol,
                                    tess_rows *rows)
{
    tess_status status = TESS_OK;
    const image_primary_beam *beam = run->output.primary_beam;
    tess_beam_mean *mean = NULL;
    TESS_TRY(make_mean(run, beam, output, beam->num_weight > 1 ? pol : 0, &mean));
    TESS_TRY(tess_rows_alloc(rows));
    if (mean)
        fill_rows(run, mean, rows);
    else
        TESS_TRY(tess_rows_blank(rows));
cleanup:
    tess_beam_mean_destroy(mean);
    return status;
}

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
            TESS_TRY(make_mean(run, beam, output, k, &mean));
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
    if (!run->output.primary_beam || run->outputs.extent[output].num_vis == 0)
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
