/* What is written of channels that have been cleaned: restored images, models,
 * residuals and what headers tell of them. */
#include "image_kinds.h"
#include "majors_private.h"
#include "tess_common_beam.h"

/* Makes blank rows like those of a model, for an image without data. Local. */
static tess_status blank_rows(const majors *all, const tess_rows *model, tess_rows *to)
{
    tess_status status = TESS_OK;
    *to = tess_rows_like(model, TESS_PIXEL_DOUBLE);
    to->place = all->place;
    TESS_TRY(tess_rows_alloc(to));
    TESS_TRY(tess_rows_blank(to));
cleanup:
    return status;
}

/* Collective. */
static tess_status restore(const majors *all, int channel, int pol, tess_rows *image)
{
    tess_status status = TESS_OK;
    const group_channel *c = &all->channel[channel];
    const tess_fits_beam restored = image_found_restored(&c->found[pol]);
    const tess_clean_beam own = majors_beam(all->run, &c->found[pol].beam);
    const tess_clean_beam beam = majors_beam(all->run, &restored);
    TESS_TRY(tess_comm_agree(all->run->comm, tess_rows_copy(&c->residual[pol], image)));
    if (!(majors_weight(all, channel, pol) > 0)) return TESS_OK;
    if (c->found[pol].common.major_rad > 0)
        TESS_TRY(tess_common_beam_widen(all->slabs, &all->opts, &own, &beam, image));
    TESS_TRY(tess_clean_restore(all->slabs, &all->opts, &beam, &c->model[pol], image,
                                image));
cleanup:
    return status;
}

/* Notes how an image was cleaned, for headers and the last lines. Collective. */
static tess_status note(const majors *all, int channel, int pol)
{
    tess_status status = TESS_OK;
    group_channel *c = &all->channel[channel];
    const cleaned *group = &all->group[pol / all->group[0].num_pol];
    const int64_t channels = all->run->outputs.num_channels;
    const bool wants_deviation = image_found_tells_deviation(
        &all->run->output, c->output / channels, c->output % channels, pol);
    struct image_found *found = &c->found[pol];
    TESS_TRY(image_model_flux(all->run->comm, &c->model[pol], &found->flux_jy));
    TESS_TRY(image_found_measure_residual(all->run->comm, &c->residual[pol],
                                          all->run->opts->layout.threads,
                                          wants_deviation, found));
    found->majors = (double)group->num_majors;
    found->iterations = (double)group->iterations;
    found->threshold_jy = group->report.final_threshold;
    found->num_scales = group->report.num_scales;
    found->clean_end = group->end;
    if (all->num_channels > 1 &&
        all->run->opts->clean.join.spectrum != TESS_CLEAN_EACH_CHANNEL && group->clean)
        found->nu0_hz = tess_clean_reference_hz(group->clean);
cleanup:
    return status;
}

/* Makes the products of a channel without data: it has a model, and its other images
 * are blank. Collective. */
static tess_status take_blank(const majors *all, int channel)
{
    tess_status status = TESS_OK;
    const image_run *run = all->run;
    group_channel *c = &all->channel[channel];
    for (int kind = 0; kind < NUM_IMAGE_KINDS && status == TESS_OK; ++kind)
        for (int k = 0; k < run->output.kinds.num[kind] && status == TESS_OK; ++k)
            if (kind != IMAGE_MODEL)
                status = blank_rows(
                    all, &c->model[0],
                    &majors_product(all, channel, (image_kind)kind, k)->rows);
    TESS_TRY(tess_comm_agree(run->comm, status));
    for (int p = 0; p < run->num_pol; ++p) {
        TESS_TRY(image_model_flux(all->run->comm, &c->model[p], &c->found[p].flux_jy));
        majors_product(all, channel, IMAGE_MODEL, p)->rows = c->model[p];
        c->model[p] = (tess_rows){0};
    }
cleanup:
    return status;
}

/* Moves and makes the images that are written; those that are not written stay in
 * `made`. Collective. */
static tess_status take_images(const majors *all, int channel)
{
    tess_status status = TESS_OK;
    const image_run *run = all->run;
    const image_kinds *kinds = &run->output.kinds;
    group_channel *c = &all->channel[channel];
    if (!c->has_data) return take_blank(all, channel);
    for (int k = 0; k < kinds->num[IMAGE_DIRTY]; ++k) {
        majors_product(all, channel, IMAGE_DIRTY, k)->rows = c->made[k].rows;
        c->made[k].rows = (tess_rows){0};
    }
    for (int k = 0; k < kinds->num[IMAGE_PSF]; ++k) {
        *majors_product(all, channel, IMAGE_PSF, k) = c->made[run->num_pol + k];
        c->made[run->num_pol + k].rows = (tess_rows){0};
    }
    TESS_TRY(majors_mask_products(all, channel));
    for (int p = 0; p < run->num_pol; ++p) {
        TESS_TRY(restore(all, channel, p,
                         &majors_product(all, channel, IMAGE_RESTORED, p)->rows));
        TESS_TRY(note(all, channel, p));
        majors_product(all, channel, IMAGE_MODEL, p)->rows = c->model[p];
        majors_product(all, channel, IMAGE_RESIDUAL, p)->rows = c->residual[p];
        c->model[p] = c->residual[p] = (tess_rows){0};
    }
cleanup:
    return status;
}

/* Products of a polarisation have the weights of its dirty image. */
static void take_weights(const image_kinds *kinds, group_channel *channel)
{
    for (int kind = 0; kind < NUM_IMAGE_KINDS; ++kind) {
        imager_product *of_kind =
            channel->product + image_kinds_place(kinds, (image_kind)kind);
        for (int k = 0; kind != IMAGE_PSF && k < kinds->num[kind]; ++k) {
            of_kind[k].sum_weights = channel->made[k].sum_weights;
            of_kind[k].variance = channel->made[k].variance;
            of_kind[k].effective_vis = channel->made[k].effective_vis;
        }
    }
}

tess_status majors_take_products(const majors *all, int channel)
{
    tess_status status = TESS_OK;
    TESS_TRY(take_images(all, channel));
    take_weights(&all->run->output.kinds, &all->channel[channel]);
cleanup:
    return status;
}
