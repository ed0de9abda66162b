/* Names of the files of a run, none of which is an input of it. */
#define _GNU_SOURCE
#include "image_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tess_beam_models.h"
#include "tess_imager_predict.h"
#include "tess_mem.h"
#include "tess_out_file.h"

int image_files_pols(const tess_image_opts *opts, tess_pol *pol)
{
    const int num_pol = tess_pol_expand(opts->pol, opts->num_pol, pol);
    return opts->beside.as_wsclean ? tess_pol_join_hands(pol, num_pol) : num_pol;
}

/* "-tNNNN" where there are several intervals. */
static const char *time_part(const image_files *output, int64_t interval, char *text,
                             size_t size)
{
    *text = '\0';
    if (output->opts->intervals_out > 1)
        snprintf(text, size, "-t%04lld", (long long)interval);
    return text;
}

char *image_files_stem(const image_files *output, int64_t interval)
{
    char time[32], *path = NULL;
    return asprintf(&path, "%s%s", output->opts->output,
                    time_part(output, interval, time, sizeof time)) < 0
               ? NULL
               : path;
}

char *image_cube_name(const image_files *output, int64_t interval, const char *kind)
{
    char *path = NULL, *stem = image_files_stem(output, interval);
    if (stem && asprintf(&path, "%s-cube-%s.fits", stem, kind) < 0) path = NULL;
    free(stem); /* from asprintf */
    return path;
}

bool image_has_horizon_mask(const tess_image_opts *opts)
{
    return opts->output && opts->beside.as_wsclean && image_is_cleaned(opts) &&
           opts->clean.horizon_rad > 0;
}

char *image_horizon_name(const tess_image_opts *opts)
{
    char *path = NULL;
    return asprintf(&path, "%s-horizon-mask.fits", opts->output) < 0 ? NULL : path;
}

/* NAME[-tNNNN][-NNNN|-MFS][-POL]-KIND.SUFFIX, as WSClean names its images. */
char *image_path(const image_files *output, int64_t interval, int64_t channel,
                 const tess_pol *pol, const char *kind, const char *suffix)
{
    char time[32], chan[32] = "", polarisation[16] = "", name[8], *path = NULL;
    time_part(output, interval, time, sizeof time);
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

/* A polarisation is part of every name if there are several, PSFs included; otherwise
 * one part of a cross-hand would be mistaken for the other. Polarisations with the same
 * weights have one PSF, which is named after the first. WSClean weighs all alike, and
 * its name of the PSF has no polarisation. */
const tess_pol *image_named_pol(const image_files *output, image_kind kind, int k)
{
    const bool told = kind != IMAGE_PSF || !output->opts->beside.as_wsclean;
    return output->num_pol > 1 && told ? &output->pol[k] : NULL;
}

bool image_has_file(const image_files *output, image_kind kind, int k)
{
    return kind != IMAGE_PSF || k == 0 || !output->opts->beside.as_wsclean;
}

/* Where nothing is cleaned, WSClean writes the dirty image as the restored one, too,
 * and with -no-dirty as that alone. */
const char *image_first_name(const tess_image_opts *opts, image_kind kind)
{
    const bool as_image = opts->beside.dirty_as_image && kind == IMAGE_DIRTY;
    return image_kind_name(as_image && !image_is_cleaned(opts) ? IMAGE_RESTORED : kind);
}

const char *image_second_name(const tess_image_opts *opts, image_kind kind)
{
    const bool twice = opts->beside.as_wsclean && !opts->beside.dirty_as_image;
    return twice && kind == IMAGE_DIRTY && !image_is_cleaned(opts)
               ? image_kind_name(IMAGE_RESTORED)
               : NULL;
}

char *image_files_name(const image_files *output, int64_t interval, int64_t channel,
                       int pol, image_kind kind)
{
    return image_path(output, interval, channel, image_named_pol(output, kind, pol),
                      image_first_name(output->opts, kind), "fits");
}

bool image_has_sources(const tess_image_opts *opts, int64_t channel)
{
    if (!opts->clean.save_sources || !image_is_cleaned(opts)) return false;
    return image_joins_channels(opts) ? channel == 0
                                      : channel >= 0 || opts->channels_out > 1;
}

char *image_sources_name(const image_files *output, int64_t interval, int64_t channel)
{
    char time[32], *path = NULL;
    if (!image_joins_channels(output->opts) && channel >= 0)
        return image_path(output, interval, channel, NULL, "sources", "txt");
    if (asprintf(&path, "%s%s-sources.txt", output->opts->output,
                 time_part(output, interval, time, sizeof time)) < 0)
        return NULL;
    return path;
}

int image_map_count(const tess_image_opts *opts)
{
    const tess_join_choice *join = &opts->clean.join;
    if (!image_joins_channels(opts) || join->spectrum == TESS_CLEAN_EACH_CHANNEL)
        return 0;
    return 2 * join->num_terms + (join->num_terms > 1 ? 2 : 0);
}

/* "terms-0", "terms-0-error", …, "spectral-index": the kind of map `k` of a
 * polarisation in names of files. */
const char *image_map_kind(const tess_image_opts *opts, int k, char *text, size_t size)
{
    const char *error = k % 2 ? "-error" : "";
    if (k / 2 < opts->clean.join.num_terms)
        snprintf(text, size, "terms-%d%s", k / 2, error);
    else
        snprintf(text, size, "spectral-index%s", error);
    return text;
}

/* The name of a map of an interval, from malloc(). */
char *image_map_name(const image_files *output, int64_t interval, int pol, int k)
{
    char kind[40];
    return image_path(output, interval, -1,
                      image_named_pol(output, IMAGE_RESTORED, pol),
                      image_map_kind(output->opts, k, kind, sizeof kind), "fits");
}

/* CASA writes the beam as NAME.pb. WSClean writes NAME-image-pb.fits, whether images
 * are cleaned or not, and NAME-model-pb.fits. */
int image_corrected_list(const tess_image_opts *opts,
                         image_corrected list[IMAGE_MOST_CORRECTED])
{
    const tess_beam_correction *beam = &opts->beside.primary_beam;
    const bool is_mosaic = opts->selection.joins_pointings;
    const bool is_cleaned = image_is_cleaned(opts);
    const image_kind noisy = is_cleaned ? IMAGE_RESIDUAL : IMAGE_DIRTY;
    int count = 0;
    if (!beam->model && !image_has_response(opts)) return 0;
    list[count++] = (image_corrected){IMAGE_PRIMARY_BEAM, "pb", IMAGE_BEAM};
    list[count++] =
        is_mosaic
            ? (image_corrected){IMAGE_PRIMARY_BEAM, "weight", IMAGE_BEAM_WEIGHT}
            : (image_corrected){IMAGE_PRIMARY_BEAM, "weight-pb", IMAGE_BEAM_SQUARE};
    if (is_mosaic && (is_cleaned || !opts->no_dirty))
        list[count++] = (image_corrected){noisy, "noise", IMAGE_BEAM_NOISE};
    if (image_has_solutions(opts) && is_cleaned)
        list[count++] = (image_corrected){noisy, "noise-pb", IMAGE_BEAM_NOISE};
    if (!beam->corrects && !image_has_response(opts)) return count;
    if (!is_cleaned) {
        if (opts->no_dirty) return count;
        list[count++] = (image_corrected){
            IMAGE_DIRTY, opts->beside.as_wsclean ? "image-pb" : "dirty-pb",
            IMAGE_OVER_BEAM};
        return count;
    }
    list[count++] = (image_corrected){IMAGE_MODEL, "model-pb", IMAGE_OVER_BEAM};
    list[count++] = (image_corrected){IMAGE_RESIDUAL, "residual-pb", IMAGE_OVER_BEAM};
    list[count++] = (image_corrected){IMAGE_RESTORED, "image-pb", IMAGE_OVER_BEAM};
    return count;
}

int image_cube_list(const tess_image_opts *opts, const image_kinds *kinds,
                    image_corrected list[IMAGE_MOST_CUBES])
{
    int count = 0;
    for (image_kind kind = 0; kind < IMAGE_PRIMARY_BEAM; ++kind)
        if (kinds->num[kind] > 0)
            list[count++] =
                (image_corrected){kind, image_kind_name(kind), IMAGE_OVER_BEAM};
    return count + image_corrected_list(opts, list + count);
}

/* A model of points is dark wherever one looks: it has no preview. */
bool image_has_preview(const tess_image_opts *opts, image_kind kind, int64_t channel)
{
    const bool has_mean = image_is_in_cube(opts, channel) && opts->channels_out > 1;
    return opts->beside.preview && kind != IMAGE_MODEL && kind != IMAGE_PRIMARY_BEAM &&
           !has_mean;
}

bool image_is_in_cube(const tess_image_opts *opts, int64_t channel)
{
    return opts->beside.cube && channel >= 0;
}

static int corrected_names(const image_files *output, int64_t interval, int64_t channel,
                           char **name)
{
    image_corrected list[IMAGE_MOST_CORRECTED];
    const int num = image_is_in_cube(output->opts, channel)
                        ? 0
                        : image_corrected_list(output->opts, list);
    int count = 0;
    for (int c = 0; c < num; ++c)
        for (int k = 0; k < output->num_pol; ++k)
            name[count++] = image_path(output, interval, channel,
                                       image_named_pol(output, list[c].of, k),
                                       list[c].name, "fits");
    return count;
}

/* The files of an output, with the list of sources; NULL where memory was short. */
int image_output_names(const image_files *output, int64_t interval, int64_t channel,
                       char **name)
{
    int count = 0;
    for (image_kind kind = 0; kind < IMAGE_PRIMARY_BEAM; ++kind)
        for (int k = 0; k < output->kinds.num[kind]; ++k) {
            const tess_pol *pol = image_named_pol(output, kind, k);
            const char *text = image_first_name(output->opts, kind);
            const char *second = image_second_name(output->opts, kind);
            if (!image_has_file(output, kind, k)) continue;
            if (!image_is_in_cube(output->opts, channel))
                name[count++] =
                    image_path(output, interval, channel, pol, text, "fits");
            if (second)
                name[count++] =
                    image_path(output, interval, channel, pol, second, "fits");
            if (image_has_preview(output->opts, kind, channel))
                name[count++] = image_path(output, interval, channel, pol, text, "png");
        }
    count += corrected_names(output, interval, channel, name + count);
    if (image_has_sources(output->opts, channel))
        name[count++] = image_sources_name(output, interval, channel);
    return count;
}

tess_status image_files_names(const image_files *output, char ***names_out,
                              int64_t *count_out)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = output->opts;
    const int64_t channels = opts->channels_out, several = channels > 1;
    const int maps = image_map_count(opts);
    const int64_t most =
        opts->intervals_out *
        ((channels + several) * (3 * image_kinds_all(&output->kinds) + 1) +
         maps * output->num_pol + IMAGE_MOST_CUBES);
    int64_t count = 0;
    char **names = tess_alloc_zero(most, sizeof *names);
    if (!names) TESS_FAIL(TESS_ERR_ALLOC, "names of the files");
    image_corrected list[IMAGE_MOST_CUBES];
    const int num = image_cube_list(opts, &output->kinds, list);
    for (int64_t t = 0; opts->beside.cube && t < opts->intervals_out; ++t)
        for (int c = 0; c < num; ++c)
            names[count++] = image_cube_name(output, t, list[c].name);
    for (int64_t t = 0; t < opts->intervals_out; ++t)
        for (int64_t c = 0; c < channels + several; ++c)
            count +=
                image_output_names(output, t, c < channels ? c : -1, names + count);
    for (int64_t t = 0; t < opts->intervals_out; ++t)
        for (int k = 0; k < maps * output->num_pol; ++k)
            names[count++] = image_map_name(output, t, k / maps, k % maps);
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

/* None of the files of a list with commas. */
static tess_status check_list(const char *path, const char *list)
{
    tess_status status = TESS_OK;
    char *text = list ? tess_strdup(list) : NULL;
    if (list && !text) TESS_FAIL(TESS_ERR_ALLOC, "%s", list);
    for (char *next = text; next;)
        TESS_TRY(tess_out_check_other(path, strsep(&next, ",")));
cleanup:
    tess_free(text);
    return status;
}

tess_status tess_image_check_facet_files(const tess_facet_choice *facets,
                                         const char *path)
{
    tess_status status = TESS_OK;
    const char *beam = facets->beam.model;
    if (facets->number == 0) TESS_TRY(tess_out_check_other(path, facets->regions));
    TESS_TRY(tess_out_check_other(path, facets->sources));
    TESS_TRY(tess_out_check_other(path, facets->aterms));
    TESS_TRY(tess_out_check_other(path, beam ? tess_beam_models_file(beam) : NULL));
    TESS_TRY(check_list(path, facets->solutions));
cleanup:
    return status;
}

tess_status tess_image_check_output(const tess_image_opts *opts, const char *path,
                                    bool overwrite)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_out_check_target(path, overwrite));
    for (int k = 0; k < opts->num_obs; ++k)
        TESS_TRY(tess_out_check_other(path, opts->obs[k]));
    TESS_TRY(tess_out_check_other(path, opts->subtract.model));
    TESS_TRY(tess_out_check_other(path, opts->gridding.gcf));
    TESS_TRY(tess_out_check_other(path, opts->clean.fits_mask));
    TESS_TRY(tess_out_check_other(path, opts->clean.casa_mask));
    TESS_TRY(tess_out_check_other(path, opts->clean.mask));
    TESS_TRY(tess_out_check_other(
        path, tess_beam_models_file(opts->beside.primary_beam.model)));
    TESS_TRY(tess_image_check_facet_files(&opts->gridding.facets, path));
cleanup:
    return status;
}
