/* Fills in the headers of a run's images. */
#include "image_meta.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "image_found.h"
#include "output_table.h"

static const char *weighting_text(const tess_image_opts *opts, char *text, size_t size)
{
    if (opts->weights.weighting == TESS_BRIGGS)
        snprintf(text, size, "briggs %g", opts->weights.robust);
    else
        snprintf(text, size, "%s",
                 opts->weights.weighting == TESS_UNIFORM ? "uniform" : "natural");
    return text;
}

/* The first one of a list of fields; NAN for all. */
static double field_of(const tess_image_opts *opts)
{
    const char *text = opts->selection.field ? opts->selection.field : "0";
    char *end;
    const double field = strtod(text, &end);
    return end == text ? (double)NAN : field;
}

static tess_fits_wsclean wsclean_of(const tess_image_opts *opts,
                                    const imager_extent *extent, double time_mjd_s)
{
    const tess_selection *chosen = &opts->selection;
    const tess_clean_opts *minor = &opts->clean.minor;
    tess_fits_wsclean told = {
        .given = true,
        .weight_sum = extent->weight_sum,
        .typed = opts->beside.typed,
        .field = field_of(opts),
        .time_mjd_s = time_mjd_s,
        .channels = {chosen->chan_first, chosen->chan_end},
        .time_steps = {chosen->interval_first, chosen->interval_end},
        .niter = minor->niter,
        .gain = minor->gain,
        .mgain = minor->niter > 0 ? minor->mgain : 1,
        .threshold_jy = minor->threshold_jy,
        .no_negative = minor->no_negative,
        .stop_negative = minor->stop_negative};
    if (opts->weights.weighting == TESS_BRIGGS)
        snprintf(told.weighting, sizeof told.weighting, "Briggs'(%g)",
                 opts->weights.robust);
    else
        weighting_text(opts, told.weighting, sizeof told.weighting);
    return told;
}

/* The frame of frequencies, and the frequency of the line at rest: that of --restfreq
 * or of the observation where an axis is asked for, else the middle of all channels. */
static void set_spectral(const image_files *output, tess_image_meta *meta)
{
    double whole_hz; /* the width of all channels, which no keyword has */
    const tess_source_info *info = output->info;
    const double rest_hz = output->opts->channels.axis.rest_hz;
    output_table_band(output->outputs, info, -1, &meta->spectral.rest_hz, &whole_hz);
    if (info->axis) {
        meta->spectral = (tess_fits_spectral){
            .is_chosen = !info->meta->line.freq_frame[0], /* channels were not fixed */
            .frame = info->axis->frame,
            .rest_hz = info->axis->rest_hz,
            .velocity = info->axis->velocity,
            .velosys_m_s = tess_doppler_velosys(info->axis->doppler)};
        return;
    }
    meta->spectral.frame = tess_spectral_frame_like(info->meta->line.freq_frame);
    if (rest_hz > 0) {
        meta->spectral.rest_hz = rest_hz;
        meta->spectral.is_chosen = meta->spectral.frame == TESS_TOPO;
    }
}

/* `channel`: -1 for the mean of all. */
void image_meta_fill(const image_files *output, int64_t interval, int64_t channel,
                     const imager_extent *extent, tess_image_meta *meta)
{
    const tess_image_opts *opts = output->opts;
    const tess_source_info *info = output->info;
    const double *span = output->outputs->interval_span + 2 * interval;
    *meta = (tess_image_meta){.nx = opts->nx,
                              .ny = opts->ny,
                              .ra_rad = info->ra_rad,
                              .dec_rad = info->dec_rad,
                              .scale_rad = opts->scale_rad,
                              .l0 = info->turn[0],
                              .m0 = info->turn[1],
                              .gridded.num_vis = extent->num_vis,
                              .equinox = info->meta->equinox,
                              .time_start_mjd_s = span[0],
                              .time_end_mjd_s = span[1],
                              .history = opts->beside.command_line};
    output_table_band(output->outputs, info, channel, &meta->freq_hz,
                      &meta->bandwidth_hz);
    set_spectral(output, meta);
    if (extent->num_vis > 0)
        meta->gridded.freq_mean_hz = extent->freq_sum / (double)extent->num_vis;
    tess_vis_site(info->meta, meta->place_m);
    snprintf(meta->names.telescope, sizeof meta->names.telescope, "%s",
             info->meta->telescope);
    snprintf(meta->names.observer, sizeof meta->names.observer, "%s",
             info->meta->observer);
    snprintf(meta->names.object, sizeof meta->names.object, "%s", info->meta->object);
    snprintf(meta->gridded.data_column, sizeof meta->gridded.data_column, "%s",
             info->data_column);
    snprintf(meta->unit, sizeof meta->unit, "Jy/beam");
    weighting_text(opts, meta->gridded.weighting, sizeof meta->gridded.weighting);
    if (opts->beside.as_wsclean)
        meta->gridded.wsclean =
            wsclean_of(opts, extent, span[0] + 0.5 * info->meta->integration_s);
}

/* WSClean's weight of a Stokes parameter is four times the smaller one of the two
 * correlations'. Uniform weights have no scale. */
static void add_wsclean_weights(const image_files *output, int k,
                                const imager_product *product, tess_image_meta *meta)
{
    const tess_pol *pol = &output->pol[k];
    const tess_pol_mix mix =
        tess_pol_mix_of(pol, output->info->corr, output->info->num_corr);
    const double factor = mix.num == 2 && !pol->both ? 4 : 1;
    const bool has_scale = output->opts->weights.weighting != TESS_UNIFORM;
    meta->gridded.wsclean.weight_sum *= factor;
    meta->gridded.wsclean.image_weight =
        product->sum_weights * (has_scale ? factor : 1);
    meta->gridded.wsclean.effective_vis = product->effective_vis;
}

/* What the header says of one image of polarisation `k`: without weights it has no
 * visibilities, no mean frequency and no beam. */
static tess_image_meta meta_of(const image_files *output, int k,
                               const imager_product *product,
                               const tess_image_meta *shared)
{
    tess_image_meta meta = *shared;
    meta.stokes = output->pol[k].code;
    meta.imaginary = output->pol[k].imaginary;
    meta.gridded.sum_weights = product->sum_weights;
    if (meta.gridded.wsclean.given) add_wsclean_weights(output, k, product, &meta);
    if (product->sum_weights > 0) return meta;
    meta.gridded.num_vis = 0;
    meta.gridded.freq_mean_hz = 0;
    meta.beam = (tess_fits_beam){0};
    return meta;
}

/* What the header says of an image of a kind: models and residuals, too, tell how they
 * were cleaned. */
/* What a kind of image is, and its unit. */
static void set_kind(image_kind kind, tess_image_meta *meta)
{
    meta->is_psf = kind == IMAGE_PSF;
    if (kind == IMAGE_MODEL) snprintf(meta->unit, sizeof meta->unit, "Jy/pixel");
    if (kind == IMAGE_PRIMARY_BEAM || kind == IMAGE_MASK) meta->unit[0] = '\0';
}

tess_image_meta image_meta_of_kind(const image_files *output, image_kind kind, int k,
                                   const imager_product *product,
                                   const tess_image_meta *shared,
                                   const struct image_found *found)
{
    tess_image_meta meta = meta_of(output, k, product, shared);
    set_kind(kind, &meta);
    if (kind == IMAGE_RESTORED && product->sum_weights > 0)
        meta.beam = image_found_restored(found);
    meta.caption = image_kind_caption(kind);
    meta.gridded.wsclean.is_cleaned = kind != IMAGE_DIRTY && kind != IMAGE_PSF;
    meta.gridded.wsclean.majors = (int64_t)found->majors;
    meta.gridded.wsclean.iterations = (int64_t)found->iterations;
    if (kind == IMAGE_DIRTY || kind == IMAGE_PSF || kind == IMAGE_PRIMARY_BEAM ||
        !(found->majors > 0))
        return meta;
    const tess_clean_opts *minor = &output->opts->clean.minor;
    const bool has_mgain = !(output->opts->clean.cycle.factor > 0);
    meta.cleaned = (tess_fits_cleaned){.iterations = (int64_t)found->iterations,
                                       .majors = (int64_t)found->majors,
                                       .gain = minor->gain,
                                       .mgain = has_mgain ? minor->mgain : 0,
                                       .threshold_jy = found->threshold_jy,
                                       .flux_jy = found->flux_jy,
                                       .num_scales = (int)found->num_scales,
                                       .nu0_hz = found->nu0_hz};
    if (found->nu0_hz > 0) {
        const tess_join_choice *join = &output->opts->clean.join;
        meta.cleaned.num_terms = join->num_terms;
        meta.cleaned.log_terms = join->spectrum == TESS_CLEAN_LOG_POLYNOMIAL;
    }
    return meta;
}

void image_meta_of_cube(const image_files *output, int64_t interval, image_kind kind,
                        tess_image_meta *meta)
{
    const imager_extent none = imager_extent_empty();
    image_meta_fill(output, interval, 0, &none, meta);
    set_kind(kind, meta);
}
