/* Checks the names of a run's files, and writes FITS images and previews. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image_backlog.h"
#include "image_cubes.h"
#include "image_files.h"
#include "image_found.h"
#include "image_meta.h"
#include "image_names.h"
#include "imager_product.h"
#include "output_table.h"
#include "tess_grid.h"
#include "tess_imager.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_out_file.h"
#include "tess_row_stats.h"
#include "tess_source_list.h"

/* ---- names ---- */

/* The unit of a map. Terms of logarithms except the first have none. */
static const char *map_unit(const tess_image_opts *opts, int k)
{
    const tess_join_choice *join = &opts->clean.join;
    if (k / 2 >= join->num_terms) return "";
    return join->spectrum == TESS_CLEAN_LOG_POLYNOMIAL && k / 2 > 0 ? "" : "Jy/beam";
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
    TESS_TRY(tess_image_check_output(opts, path, overwrite));
    for (size_t k = 0; k < sizeof opts->beside.reserved / sizeof *opts->beside.reserved;
         ++k)
        TESS_TRY(tess_out_check_distinct(path, opts->beside.reserved[k]));
cleanup:
    free(path); /* from asprintf */
    return status;
}

/* Checks the names of one kind of image, and of its preview. */
static tess_status check_kind(const image_files *output, int64_t interval,
                              int64_t channel, const tess_pol *pol, image_kind kind)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = output->opts;
    const char *name = image_first_name(opts, kind);
    const char *second = image_second_name(opts, kind);
    if (second)
        TESS_TRY(check_one(output,
                           image_path(output, interval, channel, pol, second, "fits"),
                           opts->overwrite));
    if (!image_is_in_cube(opts, channel))
        TESS_TRY(check_one(output,
                           image_path(output, interval, channel, pol, name, "fits"),
                           opts->overwrite));
    if (image_has_preview(opts, kind, channel))
        TESS_TRY(check_one(output,
                           image_path(output, interval, channel, pol, name, "png"),
                           opts->overwrite));
cleanup:
    return status;
}

/* Checks the names of images that the primary beam makes. */
static tess_status check_corrected(const image_files *output, int64_t interval,
                                   int64_t channel)
{
    tess_status status = TESS_OK;
    image_corrected list[IMAGE_MOST_CORRECTED];
    const int num = image_is_in_cube(output->opts, channel)
                        ? 0
                        : image_corrected_list(output->opts, list);
    for (int c = 0; c < num; ++c)
        for (int k = 0; k < output->num_pol; ++k)
            TESS_TRY(check_one(output,
                               image_path(output, interval, channel,
                                          image_named_pol(output, list[c].of, k),
                                          list[c].name, "fits"),
                               output->opts->overwrite));
cleanup:
    return status;
}

/* Checks the names of an output channel of an interval. */
static tess_status check_names(const image_files *output, int64_t interval,
                               int64_t channel)
{
    tess_status status = TESS_OK;
    const int most_psf = output->opts->make_psf ? output->num_pol : 0;
    const image_kinds kinds = image_kinds_of(output->opts, output->num_pol, most_psf);
    for (image_kind kind = 0; kind < IMAGE_PRIMARY_BEAM; ++kind)
        for (int k = 0; k < kinds.num[kind]; ++k)
            if (image_has_file(output, kind, k))
                TESS_TRY(check_kind(output, interval, channel,
                                    image_named_pol(output, kind, k), kind));
    TESS_TRY(check_corrected(output, interval, channel));
    if (image_has_sources(output->opts, channel))
        TESS_TRY(check_one(output, image_sources_name(output, interval, channel),
                           output->opts->overwrite));
    for (int p = 0; channel < 0 && p < output->num_pol; ++p)
        for (int k = 0; k < image_map_count(output->opts); ++k)
            TESS_TRY(check_one(output, image_map_name(output, interval, p, k),
                               output->opts->overwrite));
cleanup:
    return status;
}

/* Checks the names of the cubes of an interval. */
static tess_status check_cubes(const image_files *output, int64_t interval)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = output->opts;
    const int psf = opts->make_psf ? 1 : 0;
    const image_kinds kinds = image_kinds_of(opts, output->num_pol, psf);
    image_corrected list[IMAGE_MOST_CUBES];
    const int num = image_cube_list(opts, &kinds, list);
    for (int c = 0; c < num; ++c)
        TESS_TRY(check_one(output, image_cube_name(output, interval, list[c].name),
                           opts->overwrite));
cleanup:
    return status;
}

static tess_status check_all(const image_files *output)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = output->opts;
    if (opts->beside.used_options)
        TESS_TRY(check_one(output, options_name(output), opts->overwrite));
    if (image_has_horizon_mask(opts))
        TESS_TRY(check_one(output, image_horizon_name(opts), opts->overwrite));
    for (int64_t t = 0; t < opts->intervals_out; ++t) {
        if (opts->beside.cube) TESS_TRY(check_cubes(output, t));
        for (int64_t c = opts->channels_out > 1 ? -1 : 0; c < opts->channels_out; ++c)
            TESS_TRY(check_names(output, t, c));
    }
cleanup:
    return status;
}

tess_status image_files_check(const image_files *output)
{
    const bool checks = output->opts->output && tess_comm_rank(output->comm) == 0;
    const tess_status status = checks ? check_all(output) : TESS_OK;
    return tess_comm_agree(output->comm, status);
}

/* ---- images ---- */

/* Writes a file of the product, or begins it. Collective. */
static tess_status write_fits(const image_files *output, const char *path,
                              const tess_image_product *product,
                              const tess_fits_rows *rows, tess_held_files *held)
{
    tess_status status = TESS_OK;
    tess_fits_writing *begun = NULL;
    if (!output->backlog)
        return tess_fits_hold(output->comm, path, held, product->meta, rows);
    TESS_TRY(tess_fits_begin(output->comm, path, held->overwrite, product->meta, rows,
                             &begun));
    image_backlog_add(output->backlog, begun);
cleanup:
    return status;
}

/* Writes a file of the product, or its preview. */
static tess_status write_file(const image_files *output, const tess_pol *named,
                              const tess_image_product *product, bool preview,
                              tess_held_files *held)
{
    tess_status status = TESS_OK;
    char *path = image_path(output, product->interval, product->channel, named,
                            product->kind, preview ? "png" : "fits");
    const tess_fits_rows rows = {.row_first = product->row_first,
                                 .num_rows = product->num_rows,
                                 .is_double = product->is_double,
                                 .pixel = product->pixel};
    TESS_TRY(tess_comm_agree(output->comm, path ? TESS_OK : TESS_ERR_ALLOC));
    if (preview)
        TESS_TRY(tess_preview_hold(output->comm, path, held, product->meta, &rows));
    else
        TESS_TRY(write_fits(output, path, product, &rows, held));
cleanup:
    free(path); /* from asprintf */
    return status;
}

static tess_pixel pixel_of_files(const tess_image_opts *opts)
{
    return tess_pixel_of(opts->gridding.accuracy < TESS_SINGLE_FILE_ACCURACY);
}

/* Views rows in the precision of files, and describes them as a product. Local. */
static tess_status view_product(const image_files *output, const tess_rows *rows,
                                tess_rows *view, tess_image_product *product)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = output->opts;
    product->is_double = pixel_of_files(opts) == TESS_PIXEL_DOUBLE;
    TESS_TRY(tess_rows_check_whole(rows, product->kind));
    TESS_TRY(tess_rows_view_as(rows, pixel_of_files(opts), opts->layout.threads, view));
    product->row_first = view->row_first;
    product->num_rows = view->num_rows;
    product->pixel = view->value;
cleanup:
    return status;
}

/* Gives a product of polarisation `k` to files and to the taker. Collective. */
static tess_status write_image(const image_files *output, image_kind kind, int k,
                               const tess_rows *rows, tess_image_product *product,
                               tess_held_files *held)
{
    const tess_pol *named = image_named_pol(output, kind, k);
    tess_status status = TESS_OK;
    const tess_image_opts *opts = output->opts;
    const char *const first_name = product->kind;
    const char *const second_name = image_second_name(opts, kind);
    const bool has_file = opts->output && image_has_file(output, kind, k);
    const int64_t pixels = tess_rows_count(rows);
    tess_rows view = {0};
    status = view_product(output, rows, &view, product);
    if (output->backlog) image_backlog_keep(output->backlog, &view);
    TESS_TRY(tess_comm_agree(output->comm, status));
    if (opts->take)
        TESS_TRY(
            tess_comm_agree(output->comm, opts->take(opts->take_context, product)));
    if (has_file && image_is_in_cube(opts, product->channel))
        TESS_TRY(image_cubes_write(output, k, product));
    else if (has_file)
        TESS_TRY(write_file(output, named, product, false, held));
    if (has_file && second_name) {
        product->kind = second_name;
        TESS_TRY(write_file(output, named, product, false, held));
    }
    if (has_file)
        output->profile->stage_bytes[TESS_STAGE_WRITE] +=
            pixels * (int64_t)(product->is_double ? sizeof(double) : sizeof(float));
    product->kind = first_name;
    if (has_file && image_has_preview(opts, kind, product->channel))
        TESS_TRY(write_file(output, named, product, true, held));
cleanup:
    tess_rows_free(&view);
    return status;
}

/* Holds the list of sources of an output, which is empty without data. Local: the first
 * rank. */
static tess_status hold_sources(const image_files *output, int64_t interval,
                                int64_t channel, double freq_hz, tess_held_files *held)
{
    tess_status status = TESS_OK;
    const tess_source_list empty = {0};
    const image_source_list *sources = &output->sources;
    const int64_t number = interval * output->outputs->num_channels + channel;
    char *none = NULL, *path = image_sources_name(output, interval, channel);
    if (!path) TESS_FAIL(TESS_ERR_ALLOC, "name of a list of sources");
    if (!sources->text || sources->output != number)
        TESS_TRY(tess_source_list_text(&empty, freq_hz, &none));
    TESS_TRY(tess_held_text(held, path, none ? none : sources->text));
cleanup:
    tess_free(none);
    free(path); /* from asprintf */
    return status;
}

/* Gives all files of an output their names together, now or later; NAME.conf goes with
 * the first output. */
static tess_status publish(const image_files *output, bool first, tess_held_files *held)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = output->opts;
    if (first && opts->beside.used_options && tess_comm_rank(output->comm) == 0) {
        char *path = options_name(output);
        status = path ? tess_held_text(held, path, opts->beside.used_options)
                      : TESS_ERR_ALLOC;
        free(path); /* from asprintf */
    }
    TESS_TRY(tess_comm_agree(output->comm, status));
    if (output->backlog)
        image_backlog_start(output->backlog, held);
    else
        TESS_TRY(tess_held_publish(output->comm, held));
cleanup:
    return status;
}

static void log_one(char *path)
{
    if (path) tess_log_detail("wrote %s", path);
    free(path); /* from asprintf */
}

void image_files_log(const image_files *output, int64_t interval, int64_t channel)
{
    char *name[3 * TESS_MAX_IMAGES + 1];
    if (!output->opts->output) return;
    const int count = image_output_names(output, interval, channel, name);
    for (int k = 0; k < count; ++k)
        log_one(name[k]);
    for (int k = 0; channel < 0 && k < output->num_maps; ++k) {
        const int maps = image_map_count(output->opts);
        log_one(image_map_name(output, interval, k / maps, k % maps));
    }
    if (output->opts->beside.used_options && interval == 0 && channel == 0)
        log_one(options_name(output));
}

/* Warns that a polarisation has no weights where another has some. */
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

bool image_may_have_noise(double peak_jy, double noise_jy)
{
    return noise_jy > 0 && fabs(peak_jy) < 1e7 * noise_jy;
}

bool image_knows_noise(const image_files *output)
{
    double largest = 0;
    for (int64_t k = 0; k < output->outputs->num; ++k)
        largest = fmax(largest, output->outputs->extent[k].largest_weight);
    return largest < 1 || largest > 1;
}

/* The formula is that of Briggs (1995, chapter 3) and of Thompson, Moran and Swenson
 * (2017, chapter 6). Of two weights the smaller one counts (prepare.h), so that this is
 * what the noise is at most. With --hand-weight mean, it is what the noise is at least.
 */
double image_expected_noise(const image_files *output, int k,
                            const imager_product *product)
{
    const tess_source_info *info = output->info;
    const tess_pol_mix mix =
        tess_pol_mix_of(&output->pol[k], info->corr, info->num_corr);
    const double combined = mix.num == 2 ? sqrt(0.5) : 1;
    return combined * sqrt(product->variance) / product->sum_weights;
}

tess_status image_files_measure(const image_files *output, int64_t interval,
                                int64_t channel, const imager_product *product,
                                const struct image_found *found)
{
    tess_status status = TESS_OK;
    const bool cleaned = output->kinds.num[IMAGE_RESTORED] > 0;
    const imager_product *image =
        product +
        image_kinds_place(&output->kinds, cleaned ? IMAGE_RESTORED : IMAGE_DIRTY);
    if (!cleaned && output->kinds.num[IMAGE_DIRTY] == 0) return TESS_OK;
    for (int k = 0; k < output->num_pol; ++k) {
        struct image_found all = found[k];
        const bool wants_deviation =
            all.majors > 0 && image_found_tells_deviation(output, interval, channel, k);
        all.made = 1;
        all.noise_jy = image_expected_noise(output, k, &image[k]);
        if (output->opts->selection.joins_pointings)
            all.noise_jy /=
                sqrt(product[image_kinds_place(&output->kinds, IMAGE_PRIMARY_BEAM) + k]
                         .response);
        TESS_TRY(image_found_measure(output->comm, &image[k].rows,
                                     output->opts->layout.threads, wants_deviation,
                                     &all));
        if (tess_comm_rank(output->comm) == 0)
            *image_found_at(output->summary, interval, channel, k) = all;
    }
cleanup:
    return status;
}

/* Writes all images of a kind. Collective. */
static tess_status write_kind(const image_files *output, image_kind kind,
                              const imager_product *product,
                              const tess_image_meta *shared,
                              const struct image_found *found, tess_image_product *to,
                              tess_held_files *held)
{
    tess_status status = TESS_OK;
    char name[8];
    to->kind = image_first_name(output->opts, kind);
    to->polarisation = name;
    for (int k = 0; k < output->kinds.num[kind]; ++k) {
        const tess_image_meta meta =
            image_meta_of_kind(output, kind, k, &product[k], shared, &found[k]);
        tess_pol_name(&output->pol[k], name);
        to->meta = &meta;
        TESS_TRY(write_image(output, kind, k, &product[k].rows, to, held));
    }
cleanup:
    to->polarisation = NULL;
    to->meta = NULL;
    return status;
}

/* Writes maps of spectra, whose headers are those of the mean's restored images.
 * Collective. */
static tess_status write_maps(const image_files *output, const imager_product *restored,
                              const tess_image_meta *shared,
                              const struct image_found *found, tess_image_product *to,
                              tess_held_files *held)
{
    tess_status status = TESS_OK;
    const int maps = image_map_count(output->opts);
    char kind[40], name[8];
    for (int k = 0; k < output->num_maps; ++k) {
        const image_map *map = &output->map[k];
        const int pol = map->pol;
        tess_image_meta meta = image_meta_of_kind(output, IMAGE_RESTORED, pol,
                                                  &restored[pol], shared, &found[pol]);
        snprintf(meta.unit, sizeof meta.unit, "%s", map_unit(output->opts, k % maps));
        tess_pol_name(&output->pol[pol], name);
        to->kind = image_map_kind(output->opts, k % maps, kind, sizeof kind);
        to->polarisation = name;
        to->meta = &meta;
        /* as models, they have no preview */
        TESS_TRY(write_image(output, IMAGE_MODEL, pol, &map->rows, to, held));
    }
cleanup:
    to->polarisation = NULL;
    to->meta = NULL;
    return status;
}

/* The value of a pixel that the primary beam makes. `scale`: the noise of the image, or
 * the largest mean square of a mosaic's beams. */
static inline double corrected_value(image_correction by, double value, double power,
                                     double scale)
{
    switch (by) {
    case IMAGE_OVER_BEAM:
        break;
    case IMAGE_BEAM:
        return power;
    case IMAGE_BEAM_SQUARE:
        return power * power;
    case IMAGE_BEAM_WEIGHT:
        return scale * power * power;
    case IMAGE_BEAM_NOISE:
        return scale / power;
    }
    return value / power;
}

/* What corrected_value() scales by. Collective. */
static tess_status find_scale(const image_files *output, image_correction by,
                              const imager_product *image, const imager_product *beam,
                              double *scale)
{
    tess_status status = TESS_OK;
    tess_row_stats stats;
    *scale = beam->response;
    if (by != IMAGE_BEAM_NOISE) return TESS_OK;
    TESS_TRY(tess_row_stats_measure(output->comm, &image->rows,
                                    output->opts->layout.threads, true, &stats));
    *scale = stats.noise;
cleanup:
    return status;
}

/* The response of facets is not cut, and neither are weights of mosaics. */
static double beam_limit(const tess_image_opts *opts, image_correction by)
{
    const tess_beam_correction *beam = &opts->beside.primary_beam;
    return beam->model && by != IMAGE_BEAM_WEIGHT ? beam->limit : 0;
}

/* How the pixels of an image are corrected. */
typedef struct correction {
    image_correction by;
    double limit, blank, scale;
    tess_rows of, beam; /* in host memory */
} correction;

/* Corrects pixels [first, first + count). Rows are copied, so that the compiler knows
 * that no pixel changes them. */
static void correct_pixels(const correction *with, int64_t first, int64_t count,
                           const tess_rows *rows)
{
    const correction own = *with;
    const tess_rows to = *rows;
    for (int64_t k = first; k < first + count; ++k) {
        const double power = tess_rows_pixel(&own.beam, k);
        const double value = tess_rows_pixel(&own.of, k);
        tess_rows_set(&to, k,
                      power >= own.limit
                          ? corrected_value(own.by, value, power, own.scale)
                          : own.blank);
    }
}

/* Makes the rows of an image that the primary beam makes of those of a kind, which is
 * NaN where the beam is below the limit; a model is 0 there. They have the precision of
 * files. TESS_ERR_ALLOC. Local. */
static tess_status corrected_rows(const tess_image_opts *opts,
                                  const image_corrected *corrected,
                                  const tess_rows *image, const tess_rows *beam,
                                  double scale, tess_rows *rows)
{
    tess_status status = TESS_OK;
    correction with = {.by = corrected->by,
                       .limit = beam_limit(opts, corrected->by),
                       .blank = corrected->of == IMAGE_MODEL ? 0 : (double)NAN,
                       .scale = scale};
    *rows = tess_rows_like(image, pixel_of_files(opts));
    TESS_TRY(tess_rows_alloc(rows));
    TESS_TRY(tess_rows_view(image, &with.of));
    TESS_TRY(tess_rows_view(beam, &with.beam));
#pragma omp parallel for num_threads(opts->layout.threads) schedule(static)
    for (int64_t j = 0; j < rows->num_rows; ++j)
        correct_pixels(&with, j * rows->num_cols, rows->num_cols, rows);
cleanup:
    tess_rows_free(&with.of);
    tess_rows_free(&with.beam);
    return status;
}

/* Writes what the primary beam makes of one kind's images. The flux of the corrected
 * model is that of all corrected images after it. Collective. */
static tess_status write_corrected_kind(const image_files *output,
                                        const image_corrected *corrected,
                                        const imager_product *product,
                                        const tess_image_meta *shared,
                                        struct image_found *found,
                                        tess_image_product *to, tess_held_files *held)
{
    tess_status status = TESS_OK;
    char name[8];
    double scale;
    tess_rows rows = {0};
    const image_kinds *kinds = &output->kinds;
    const imager_product *image = product + image_kinds_place(kinds, corrected->of);
    const imager_product *beam = product + image_kinds_place(kinds, IMAGE_PRIMARY_BEAM);
    to->kind = corrected->name;
    to->polarisation = name;
    for (int k = 0; k < output->num_pol; ++k) {
        TESS_TRY(find_scale(output, corrected->by, &image[k], &beam[k], &scale));
        status = corrected_rows(output->opts, corrected, &image[k].rows, &beam[k].rows,
                                scale, &rows);
        TESS_TRY(tess_comm_agree(output->comm, status));
        if (corrected->of == IMAGE_MODEL)
            TESS_TRY(image_model_flux(output->comm, &rows, &found[k].flux_jy));
        const tess_image_meta meta =
            image_meta_of_kind(output, corrected->of, k, &image[k], shared, &found[k]);
        tess_pol_name(&output->pol[k], name);
        to->meta = &meta;
        /* as models, they have no preview */
        status = write_image(output, IMAGE_MODEL, k, &rows, to, held);
        if (output->backlog) image_backlog_keep(output->backlog, &rows);
        tess_rows_free(&rows);
        TESS_TRY(status);
    }
cleanup:
    tess_rows_free(&rows);
    to->polarisation = NULL;
    to->meta = NULL;
    return status;
}

/* Collective. */
static tess_status write_corrected(const image_files *output,
                                   const imager_product *product,
                                   const tess_image_meta *shared,
                                   const struct image_found *found,
                                   tess_image_product *to, tess_held_files *held)
{
    tess_status status = TESS_OK;
    image_corrected list[IMAGE_MOST_CORRECTED];
    const int num = image_corrected_list(output->opts, list);
    struct image_found own[TESS_MAX_IMAGES];
    memcpy(own, found, (size_t)output->num_pol * sizeof *own);
    for (int c = 0; c < num; ++c)
        TESS_TRY(
            write_corrected_kind(output, &list[c], product, shared, own, to, held));
cleanup:
    return status;
}

/* Warns of polarisations without data. `product`: of any kind. */
static void warn_of_blanks(const image_files *output, int64_t interval, int64_t channel,
                           const imager_product *product, const imager_extent *extent)
{
    char name[8];
    for (int k = 0; extent->num_vis > 0 && k < output->num_pol; ++k) {
        if (product[k].sum_weights > 0) continue;
        tess_pol_name(&output->pol[k], name);
        warn_of_blank(output, name, interval, channel);
    }
}

/* Local. */
static tess_status check_model(const tess_rows *rows)
{
    tess_status status = TESS_OK;
    tess_rows view = {0};
    tess_pixel_sums sums;
    TESS_TRY(tess_rows_sum(rows, &sums));
    if (isfinite(sums.sum)) return TESS_OK;
    TESS_TRY(tess_rows_view(rows, &view));
    for (int64_t k = 0; k < tess_rows_count(&view); ++k)
        if (!isfinite(tess_rows_pixel(&view, k)))
            TESS_FAIL(TESS_ERR_INTERNAL, "pixel (%lld, %lld) of a model is %g",
                      (long long)(view.col_first + k % view.num_cols) + 1,
                      (long long)(view.row_first + k / view.num_cols) + 1,
                      tess_rows_pixel(&view, k));
cleanup:
    tess_rows_free(&view);
    return status;
}

/* No file gets a model that is not finite, whatever it comes from. Collective. */
static tess_status check_models(const image_files *output,
                                const imager_product *product)
{
    tess_status status = TESS_OK;
    for (int p = 0; status == TESS_OK && p < output->kinds.num[IMAGE_MODEL]; ++p)
        status = check_model(&product[p].rows);
    return tess_comm_agree(output->comm, status);
}

tess_status image_files_write(const image_files *output, int64_t interval,
                              int64_t channel, const imager_product *product,
                              const imager_extent *extent,
                              const struct image_found *found)
{
    tess_status status = TESS_OK;
    const image_kinds *kinds = &output->kinds;
    const image_kind any = kinds->num[IMAGE_DIRTY] > 0 ? IMAGE_DIRTY : IMAGE_RESTORED;
    tess_image_meta shared;
    double mark = tess_time_now();
    const bool is_mean = channel < 0;
    tess_held_files held = {.overwrite = output->opts->overwrite,
                            .threads = output->opts->layout.threads,
                            .last = !image_writes_columns(output->opts) &&
                                    interval == output->opts->intervals_out - 1 &&
                                    is_mean == (output->opts->channels_out > 1) &&
                                    !image_is_in_cube(output->opts, channel)};
    tess_image_product to = {.interval = interval, .channel = channel};
    TESS_TRY(image_backlog_finish(output->comm, output->backlog));
    tess_profile_lap(output->profile, TESS_STAGE_WRITE, &mark);
    TESS_TRY(check_models(output, product + image_kinds_place(kinds, IMAGE_MODEL)));
    image_meta_fill(output, interval, channel, extent, &shared);
    shared.beam = found->beam;
    if (kinds->num[any] > 0)
        warn_of_blanks(output, interval, channel,
                       product + image_kinds_place(kinds, any), extent);
    for (image_kind kind = 0; kind < IMAGE_PRIMARY_BEAM; ++kind)
        TESS_TRY(write_kind(output, kind, product + image_kinds_place(kinds, kind),
                            &shared, found, &to, &held));
    TESS_TRY(write_corrected(output, product, &shared, found, &to, &held));
    TESS_TRY(write_maps(output, product + image_kinds_place(kinds, IMAGE_RESTORED),
                        &shared, found, &to, &held));
    if (output->opts->output) {
        if (image_has_sources(output->opts, channel) &&
            tess_comm_rank(output->comm) == 0)
            status = hold_sources(output, interval, channel, shared.freq_hz, &held);
        TESS_TRY(tess_comm_agree(output->comm, status));
        TESS_TRY(publish(output, interval == 0 && channel == 0, &held));
    }
    tess_profile_lap(output->profile, TESS_STAGE_WRITE, &mark);
cleanup:
    if (status != TESS_OK && output->backlog)
        image_backlog_drop(tess_comm_rank(output->comm) == 0, output->backlog);
    tess_held_free(&held);
    return status;
}
