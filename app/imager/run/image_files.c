/* Files of a run: names, beam, FITS, previews. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image_files.h"
#include "imager_rows.h"
#include "imager_summary.h"
#include "output_table.h"
#include "tess_beam.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_out_file.h"

/* BITPIX −64 is needed to hold a promise finer than single precision can store. */
static const double SINGLE_FILE_ACCURACY = 1e-6;
/* The beam is not looked for in a box larger than this [pixels]. */
enum { MAX_BEAM_BOX = 1024, MAX_BEAM_ROUNDS = 5 };

/* NAME[-tNNNN][-NNNN|-MFS][-POL]-KIND.SUFFIX, as WSClean names its images. */
static char *file_name(const image_files *output, int64_t interval, int64_t channel,
                       const tess_pol *pol, const char *kind, const char *suffix)
{
    char time[32] = "", chan[32] = "", polarisation[16] = "", name[8], *path = NULL;
    if (output->opts->intervals_out > 1)
        snprintf(time, sizeof time, "-t%04lld", (long long)interval);
    if (output->opts->channels_out > 1) {
        if (channel < 0)
            snprintf(chan, sizeof chan, "-MFS");
        else
            snprintf(chan, sizeof chan, "-%04lld", (long long)channel);
    }
    if (pol) {
        tess_pol_name(pol, name);
        snprintf(polarisation, sizeof polarisation, "-%s", name);
    }
    if (asprintf(&path, "%s%s%s%s-%s.%s", output->opts->output, time, chan,
                 polarisation, kind, suffix) < 0)
        return NULL;
    return path;
}

/* A polarisation is part of every name when there are several, PSFs included; one part
 * of a cross-hand would otherwise be mistaken for the other. Polarisations with the
 * same weights have one PSF, which is named after the first. */
static const tess_pol *named_pol(const image_files *output, int k)
{
    return output->num_pol > 1 ? &output->pol[k] : NULL;
}

/* NAME.conf: the options used. */
static char *options_name(const image_files *output)
{
    char *path = NULL;
    return asprintf(&path, "%s.conf", output->opts->output) < 0 ? NULL : path;
}

static tess_status check_one(const image_files *output, char *path, bool overwrite)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = output->opts;
    if (!path) TESS_FAIL(TESS_ERR_ALLOC, "name of an image");
    TESS_TRY(tess_out_check_target(path, overwrite));
    for (int k = 0; k < opts->num_obs; ++k)
        TESS_TRY(tess_out_check_other(path, opts->obs[k]));
    TESS_TRY(tess_out_check_other(path, opts->subtract));
    TESS_TRY(tess_out_check_other(path, opts->gridding.gcf));
    for (size_t k = 0; k < sizeof opts->beside / sizeof *opts->beside; ++k)
        TESS_TRY(tess_out_check_distinct(path, opts->beside[k]));
cleanup:
    free(path); /* from asprintf */
    return status;
}

/* Names of one kind of image, and of its preview. */
static tess_status check_kind(const image_files *output, int64_t interval,
                              int64_t channel, const tess_pol *pol, const char *kind)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = output->opts;
    TESS_TRY(check_one(output, file_name(output, interval, channel, pol, kind, "fits"),
                       opts->overwrite));
    if (opts->preview)
        TESS_TRY(check_one(output,
                           file_name(output, interval, channel, pol, kind, "png"),
                           opts->overwrite));
cleanup:
    return status;
}

/* Names of an output channel of an interval. */
static tess_status check_names(const image_files *output, int64_t interval,
                               int64_t channel)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < output->num_pol; ++k) {
        const tess_pol *pol = named_pol(output, k);
        TESS_TRY(check_kind(output, interval, channel, pol, "dirty"));
        if (output->opts->make_psf)
            TESS_TRY(check_kind(output, interval, channel, pol, "psf"));
    }
cleanup:
    return status;
}

static tess_status check_all(const image_files *output)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = output->opts;
    if (opts->used_options)
        TESS_TRY(check_one(output, options_name(output), opts->overwrite));
    for (int64_t t = 0; t < opts->intervals_out; ++t)
        for (int64_t c = opts->channels_out > 1 ? -1 : 0; c < opts->channels_out; ++c)
            TESS_TRY(check_names(output, t, c));
cleanup:
    return status;
}

tess_status image_files_check(const image_files *output)
{
    const bool checks = output->opts->output && tess_comm_rank(output->comm) == 0;
    const tess_status status = checks ? check_all(output) : TESS_OK;
    return tess_comm_agree(output->comm, status);
}

/* ---- beam ---- */

/* The middle box of an image on rank 0, side × side; elsewhere *box stays NULL. */
static tess_status gather_box(const image_files *output, const imager_rows *rows,
                              int64_t side_x, int64_t side_y, double **box)
{
    tess_status status = TESS_OK;
    const int64_t first_x = rows->nx / 2 - side_x / 2;
    const int64_t first_y = output->opts->ny / 2 - side_y / 2;
    int64_t begin = first_y - rows->row_first, end = begin + side_y, bytes = 0;
    void *received = NULL;
    int64_t *counts = tess_alloc_zero(tess_comm_size(output->comm), sizeof *counts);
    if (begin < 0) begin = 0;
    if (end > rows->num_rows) end = rows->num_rows;
    if (end < begin) end = begin;
    /* each row travels with its place */
    double *send = tess_alloc((end - begin) * (side_x + 1), sizeof *send);
    TESS_TRY(tess_comm_agree(output->comm, counts && send ? TESS_OK : TESS_ERR_ALLOC));
    for (int64_t k = begin; k < end; ++k) {
        double *to = send + (k - begin) * (side_x + 1);
        to[0] = (double)(rows->row_first + k - first_y);
        imager_pixels(rows, k * rows->nx + first_x, side_x, to + 1);
    }
    bytes = (end - begin) * (side_x + 1) * (int64_t)sizeof *send;
    TESS_TRY(tess_comm_gatherv(output->comm, send, bytes, 0, &received, counts));
    if (received) {
        *box = tess_alloc_zero(side_x * side_y, sizeof **box);
        for (int64_t k = 0; *box && k < side_y; ++k) {
            const double *from = (const double *)received + k * (side_x + 1);
            memcpy(*box + (int64_t)from[0] * side_x, from + 1,
                   (size_t)side_x * sizeof **box);
        }
    }
cleanup:
    tess_free(send);
    tess_free(counts);
    tess_free(received);
    return status;
}

/* Fit as WSClean does: in a box of ten times the expected beam, again in a larger one
 * while the beam found is larger than was expected. */
static tess_status fit_beam(const image_files *output, const imager_rows *psf,
                            double uvw_max_lambda, tess_beam *beam,
                            struct imager_found *found)
{
    tess_status status = TESS_OK;
    tess_beam_failure failure = TESS_BEAM_COLLAPSED;
    const int64_t nx = output->opts->nx, ny = output->opts->ny;
    const int64_t limit_x = nx < MAX_BEAM_BOX ? nx : MAX_BEAM_BOX;
    const int64_t limit_y = ny < MAX_BEAM_BOX ? ny : MAX_BEAM_BOX;
    double start = 1 / (uvw_max_lambda * output->opts->scale_rad);
    int64_t side = 0;
    *beam = (tess_beam){0};
    found->beam_failure = TESS_BEAM_FEW_PIXELS;
    if (!(uvw_max_lambda > 0)) return TESS_OK;
    found->beam_expected = start;
    side = tess_beam_box(start, INT32_MAX);
    for (int round = 0; round < MAX_BEAM_ROUNDS; ++round) {
        const int64_t side_x = side < limit_x ? side : limit_x;
        const int64_t side_y = side < limit_y ? side : limit_y;
        double *box = NULL;
        TESS_TRY(gather_box(output, psf, side_x, side_y, &box));
        if (box) status = tess_beam_fit(box, side_x, side_y, start, beam, &failure);
        tess_free(box);
        TESS_TRY(tess_comm_agree(output->comm, status));
        TESS_TRY(tess_comm_bcast(output->comm, beam, sizeof *beam, 0));
        TESS_TRY(tess_comm_bcast(output->comm, &failure, sizeof failure, 0));
        if (!tess_beam_box_is_small(beam->major, side) ||
            (side_x >= limit_x && side_y >= limit_y))
            break;
        start = beam->major;
        side = tess_beam_box(start, INT32_MAX);
    }
    found->beam_failure = failure;
cleanup:
    return status;
}

/* ---- images ---- */

static const char *weighting_text(const tess_image_opts *opts, char *text, size_t size)
{
    if (opts->weighting == TESS_BRIGGS)
        snprintf(text, size, "briggs %g", opts->robust);
    else
        snprintf(text, size, "%s",
                 opts->weighting == TESS_UNIFORM ? "uniform" : "natural");
    return text;
}

/* Middle of the antennas whose positions are known. */
static void antennas_centre(const tess_vis_meta *meta, double place_m[3])
{
    int count = 0;
    for (int k = 0; k < meta->num_antennas; ++k) {
        const double *xyz_m = meta->antenna[k].xyz_m;
        if (!isfinite(xyz_m[0] + xyz_m[1] + xyz_m[2]) ||
            !(fabs(xyz_m[0]) + fabs(xyz_m[1]) + fabs(xyz_m[2]) > 0))
            continue;
        for (int c = 0; c < 3; ++c)
            place_m[c] += xyz_m[c];
        ++count;
    }
    for (int c = 0; c < 3 && count > 0; ++c)
        place_m[c] /= count;
}

/* `channel`: -1 for the mean of all. */
static void fill_meta(const image_files *output, int64_t interval, int64_t channel,
                      const imager_extent *extent, tess_image_meta *meta)
{
    const tess_image_opts *opts = output->opts;
    const tess_source_info *info = output->info;
    const double *span = output->outputs->interval_span + 2 * interval;
    double whole_hz; /* the width of all channels, which no keyword has */
    *meta = (tess_image_meta){.nx = opts->nx,
                              .ny = opts->ny,
                              .ra_rad = info->ra_rad,
                              .dec_rad = info->dec_rad,
                              .scale_rad = opts->scale_rad,
                              .num_vis = extent->num_vis,
                              .equinox = info->meta->equinox,
                              .time_start_mjd_s = span[0],
                              .time_end_mjd_s = span[1],
                              .history = opts->command_line};
    output_table_band(output->outputs, info, channel, &meta->freq_hz,
                      &meta->bandwidth_hz);
    output_table_band(output->outputs, info, -1, &meta->rest_hz, &whole_hz);
    if (extent->num_vis > 0)
        meta->freq_mean_hz = extent->freq_sum / (double)extent->num_vis;
    antennas_centre(info->meta, meta->place_m);
    snprintf(meta->telescope, sizeof meta->telescope, "%s", info->meta->telescope);
    snprintf(meta->observer, sizeof meta->observer, "%s", info->meta->observer);
    snprintf(meta->object, sizeof meta->object, "%s", info->meta->object);
    snprintf(meta->data_column, sizeof meta->data_column, "%s", info->data_column);
    snprintf(meta->unit, sizeof meta->unit, "Jy/beam");
    weighting_text(opts, meta->weighting, sizeof meta->weighting);
}

/* Write a file of the product, or its preview. */
static tess_status write_file(const image_files *output, const tess_pol *named,
                              const tess_image_product *product, bool preview,
                              tess_held_files *held)
{
    tess_status status = TESS_OK;
    char *path = file_name(output, product->interval, product->channel, named,
                           product->kind, preview ? "png" : "fits");
    TESS_TRY(tess_comm_agree(output->comm, path ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY((preview ? tess_preview_hold : tess_fits_hold)(
        output->comm, path, held, product->meta, product->is_double, product->row_first,
        product->num_rows, product->pixel));
cleanup:
    free(path); /* from asprintf */
    return status;
}

/* Rows in the precision that a product has; `*copy` where they have another. */
static tess_status convert_rows(const imager_rows *rows, bool is_double, void **copy)
{
    tess_status status = TESS_OK;
    const int64_t pixels = rows->num_rows * rows->nx;
    *copy = NULL;
    if (rows->is_double == is_double) return TESS_OK;
    *copy = tess_alloc(pixels, is_double ? sizeof(double) : sizeof(float));
    if (!*copy) TESS_FAIL(TESS_ERR_ALLOC, "no memory for rows of an image");
    if (is_double)
        imager_pixels(rows, 0, pixels, *copy);
    else
        for (int64_t k = 0; k < pixels; ++k)
            ((float *)*copy)[k] = (float)imager_pixel(rows, k);
cleanup:
    return status;
}

/* Give a product to files and taker. `named`: its polarisation when that is part of the
 * name. */
static tess_status write_image(const image_files *output, const tess_pol *named,
                               const imager_rows *rows, tess_image_product *product,
                               tess_held_files *held)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = output->opts;
    const int64_t pixels = rows->num_rows * rows->nx;
    void *copy = NULL;
    product->is_double = opts->gridding.accuracy < SINGLE_FILE_ACCURACY;
    product->row_first = rows->row_first;
    product->num_rows = rows->num_rows;
    status = convert_rows(rows, product->is_double, &copy);
    product->pixel = copy ? copy : rows->value;
    TESS_TRY(tess_comm_agree(output->comm, status));
    if (opts->take)
        TESS_TRY(
            tess_comm_agree(output->comm, opts->take(opts->take_context, product)));
    if (opts->output) TESS_TRY(write_file(output, named, product, false, held));
    if (opts->output)
        output->profile->stage_bytes[TESS_STAGE_WRITE] +=
            pixels * (int64_t)(product->is_double ? sizeof(double) : sizeof(float));
    if (opts->output && opts->preview)
        TESS_TRY(write_file(output, named, product, true, held));
cleanup:
    tess_free(copy);
    return status;
}

/* All files of an output get their names together; NAME.conf goes with the first. */
static tess_status publish(const image_files *output, bool first, tess_held_files *held)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = output->opts;
    if (first && opts->used_options && tess_comm_rank(output->comm) == 0) {
        char *path = options_name(output);
        status = path ? tess_held_text(held, path, opts->used_options) : TESS_ERR_ALLOC;
        free(path); /* from asprintf */
    }
    TESS_TRY(tess_comm_agree(output->comm, status));
    TESS_TRY(tess_held_publish(output->comm, held));
cleanup:
    return status;
}

/* The files of an output: name[4 num_pol] at most, NULL where memory was short. */
static int names_of_output(const image_files *output, int64_t interval, int64_t channel,
                           int num_psf, char **name)
{
    int count = 0;
    for (int k = 0; k < output->num_pol + num_psf; ++k) {
        const bool is_psf = k >= output->num_pol;
        const tess_pol *pol = named_pol(output, is_psf ? k - output->num_pol : k);
        const char *kind = is_psf ? "psf" : "dirty";
        name[count++] = file_name(output, interval, channel, pol, kind, "fits");
        if (output->opts->preview)
            name[count++] = file_name(output, interval, channel, pol, kind, "png");
    }
    return count;
}

tess_status image_files_names(const image_files *output, int num_psf, char ***names_out,
                              int64_t *count_out)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = output->opts;
    const int64_t channels = opts->channels_out, several = channels > 1;
    const int64_t most =
        opts->intervals_out * (channels + several) * 4 * output->num_pol;
    int64_t count = 0;
    char **names = tess_alloc_zero(most, sizeof *names);
    if (!names) TESS_FAIL(TESS_ERR_ALLOC, "names of the files");
    for (int64_t t = 0; t < opts->intervals_out; ++t)
        for (int64_t c = 0; c < channels + several; ++c)
            count += names_of_output(output, t, c < channels ? c : -1, num_psf,
                                     names + count);
    for (int64_t k = 0; k < count; ++k)
        if (!names[k]) TESS_FAIL(TESS_ERR_ALLOC, "names of the files");
    *names_out = names;
    *count_out = count;
    names = NULL;
cleanup:
    image_files_names_free(names, names ? count : 0);
    return status;
}

void image_files_names_free(char **names, int64_t count)
{
    for (int64_t k = 0; names && k < count; ++k)
        free(names[k]); /* from asprintf */
    tess_free(names);
}

static void log_one(char *path)
{
    if (path) tess_log_detail("wrote %s", path);
    free(path); /* from asprintf */
}

void image_files_log(const image_files *output, int64_t interval, int64_t channel,
                     int num_psf)
{
    char *name[4 * TESS_MAX_POL];
    if (!output->opts->output) return;
    const int count = names_of_output(output, interval, channel, num_psf, name);
    for (int k = 0; k < count; ++k)
        log_one(name[k]);
    if (output->opts->used_options && interval == 0 && channel == 0)
        log_one(options_name(output));
}

/* The beam of the first PSF that has weights: what of `meta` all images share.
 * Collective. */
static tess_status find_beam(const image_files *output, const imager_product *psf,
                             int num_psf, const imager_extent *extent,
                             tess_image_meta *meta, struct imager_found *found)
{
    tess_status status = TESS_OK;
    tess_beam beam = {0};
    int first = 0;
    while (first < num_psf && !(psf[first].sum_weights > 0))
        ++first;
    if (first == num_psf) return TESS_OK;
    TESS_TRY(fit_beam(output, &psf[first].rows, extent->uvw_max_lambda, &beam, found));
    meta->beam_major_rad = beam.major * output->opts->scale_rad;
    meta->beam_minor_rad = beam.minor * output->opts->scale_rad;
    meta->beam_pa_rad = beam.angle;
    found->beam_major_rad = meta->beam_major_rad;
    found->beam_minor_rad = meta->beam_minor_rad;
    found->beam_pa_rad = meta->beam_pa_rad;
cleanup:
    return status;
}

/* What is said of one image of polarisation `k`: without weights it has no
 * visibilities, no mean frequency and no beam. */
static tess_image_meta meta_of(const image_files *output, int k,
                               const imager_product *product,
                               const tess_image_meta *shared)
{
    tess_image_meta meta = *shared;
    meta.stokes = output->pol[k].code;
    meta.imaginary = output->pol[k].imaginary;
    meta.sum_weights = product->sum_weights;
    if (product->sum_weights > 0) return meta;
    meta.num_vis = 0;
    meta.freq_mean_hz = 0;
    meta.beam_major_rad = meta.beam_minor_rad = meta.beam_pa_rad = 0;
    return meta;
}

/* One polarisation may have no weights where another has some. */
static void warn_of_blank(const image_files *output, const char *name, int64_t interval,
                          int64_t channel)
{
    if (tess_comm_rank(output->comm) != 0) return;
    if (channel < 0)
        tess_log_warn("%s has no usable visibilities in interval %lld, so that the "
                      "pixels of its mean over channels are NaN",
                      name, (long long)interval);
    else
        tess_log_warn("%s has no usable visibilities in channel %lld of interval %lld, "
                      "so that its pixels are NaN",
                      name, (long long)channel, (long long)interval);
}

/* Noise of an image whose weights are 1/σ² of correlations that are independent. The
 * image is Σ W Re V / ΣW, and the variance of Re V is that of a correlation's real
 * part; half of it where V combines two of them, each times 1/2 in absolute value.
 * (Briggs 1995, chapter 3; Thompson, Moran and Swenson 2017, chapter 6.) Of two weights
 * the smaller one counts (prepare.h), so that this is what the noise is at most. */
static double expected_noise(const image_files *output, int k,
                             const imager_product *product)
{
    const tess_source_info *info = output->info;
    const tess_pol_mix mix =
        tess_pol_mix_of(&output->pol[k], info->corr, info->num_corr);
    const double combined = mix.num == 2 ? sqrt(0.5) : 1;
    return combined * sqrt(product->variance) / product->sum_weights;
}

/* What the last lines tell of an output's images, by the first of these ranks.
 * Collective. */
static tess_status find_all(const image_files *output, int64_t interval,
                            int64_t channel, const imager_product *product,
                            const struct imager_found *shared)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < output->num_pol; ++k) {
        struct imager_found found = *shared;
        found.made = 1;
        found.noise_jy = expected_noise(output, k, &product[k]);
        TESS_TRY(imager_summary_measure(output->comm, &product[k].rows,
                                        output->opts->layout.threads, &found));
        if (tess_comm_rank(output->comm) == 0)
            *imager_summary_at(output->summary, interval, channel, k) = found;
    }
cleanup:
    return status;
}

tess_status image_files_write(const image_files *output, int64_t interval,
                              int64_t channel, const imager_product *product,
                              int num_psf, const imager_extent *extent)
{
    tess_status status = TESS_OK;
    char name[8];
    tess_image_meta shared, meta;
    struct imager_found found = {0};
    double mark = tess_time_now();
    const bool is_mean = channel < 0;
    tess_held_files held = {.overwrite = output->opts->overwrite,
                            .last = interval == output->opts->intervals_out - 1 &&
                                    is_mean == (output->opts->channels_out > 1)};
    fill_meta(output, interval, channel, extent, &shared);
    TESS_TRY(
        find_beam(output, product + output->num_pol, num_psf, extent, &shared, &found));
    TESS_TRY(find_all(output, interval, channel, product, &found));
    tess_profile_lap(output->profile, TESS_STAGE_CORRECT, &mark);
    tess_image_product to = {
        .polarisation = name, .interval = interval, .channel = channel, .meta = &meta};
    to.kind = "dirty";
    for (int k = 0; k < output->num_pol; ++k) {
        tess_pol_name(&output->pol[k], name);
        meta = meta_of(output, k, &product[k], &shared);
        if (extent->num_vis > 0 && !(product[k].sum_weights > 0))
            warn_of_blank(output, name, interval, channel);
        TESS_TRY(
            write_image(output, named_pol(output, k), &product[k].rows, &to, &held));
    }
    to.kind = "psf";
    shared.is_psf = true;
    for (int k = 0; k < num_psf; ++k) {
        tess_pol_name(&output->pol[k], name);
        meta = meta_of(output, k, &product[output->num_pol + k], &shared);
        TESS_TRY(write_image(output, named_pol(output, k),
                             &product[output->num_pol + k].rows, &to, &held));
    }
    if (output->opts->output)
        TESS_TRY(publish(output, interval == 0 && channel == 0, &held));
    tess_profile_lap(output->profile, TESS_STAGE_WRITE, &mark);
cleanup:
    tess_held_free(&held);
    return status;
}
