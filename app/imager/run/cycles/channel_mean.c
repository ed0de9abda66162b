/* Means over the output channels of an interval: summed channel by channel, and written
 * when the last one has been added. */
#include "channel_mean.h"

#include "image_backlog.h"
#include "image_beam.h"
#include "image_names.h"
#include "majors.h"
#include "tess_planes.h"

/* The rows of the mean on this rank: those of its products, or, with several teams, an
 * equal share. */
static void mean_rows(const image_run *run, int64_t *row_first, int64_t *num_rows)
{
    const imager_job *job = &run->job;
    if (run->teams.num > 1)
        imager_teams_mean_rows(&run->teams, tess_comm_rank(run->teams.all),
                               run->whole.geom.ny, row_first, num_rows);
    else
        tess_planes_final_rows(run->whole.geom.ny, job->ranks.fft_ranks,
                               tess_comm_rank(run->comm), tess_comm_size(run->comm),
                               row_first, num_rows);
}

tess_status channel_mean_continue(image_run *run, channel_mean *mean)
{
    tess_status status = TESS_OK;
    const image_checkpoint *checkpoint = &run->checkpoint;
    const int64_t done = image_outputs_done(run), channels = run->outputs.num_channels;
    int64_t row_first, num_rows;
    for (int64_t k = done - done % channels; k < done; ++k)
        imager_extent_join(&mean->extent, &run->outputs.extent[k]);
    run->checkpoint.means_wait = false;
    if (done % channels == 0 || checkpoint->state.num_mean == 0) return TESS_OK;
    mean_rows(run, &row_first, &num_rows);
    mean->started = true;
    run->checkpoint.num_mean = image_kinds_all(&run->means.kinds);
    status = image_checkpoint_mean(checkpoint, row_first, num_rows, mean->product);
    TESS_TRY(tess_comm_agree(run->teams.all, status));
    if (image_has_sources(run->opts, -1))
        TESS_TRY(mean_sources_continue(run, done / channels, 0, done % channels,
                                       &mean->sources));
cleanup:
    return status;
}

tess_status channel_mean_start(image_run *run, channel_mean *mean)
{
    tess_status status = TESS_OK;
    int64_t first, count;
    if (mean->started) return TESS_OK;
    mean_rows(run, &first, &count);
    const int num_images = image_kinds_all(&run->means.kinds);
    const tess_place *place = imager_rows_place(&run->job);
    for (int k = 0; k < num_images && status == TESS_OK; ++k) {
        mean->product[k].sum_weights = mean->product[k].variance = 0;
        mean->product[k].effective_vis = mean->product[k].response = 0;
        mean->product[k].rows = tess_rows_of(run->whole.geom.nx, run->whole.geom.ny,
                                             first, count, TESS_PIXEL_DOUBLE);
        if (run->teams.num == 1 || image_shares_channels(run))
            mean->product[k].rows.place = place;
        status = tess_rows_alloc_zero(&mean->product[k].rows);
    }
    mean->started = true;
    run->checkpoint.num_mean = num_images;
    return tess_comm_agree(run->teams.all, status);
}

tess_status channel_mean_add(const image_run *run, const imager_product *product,
                             channel_mean *mean)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < image_kinds_all(&run->means.kinds); ++k) {
        if (product[k].sum_weights == 0) continue;
        TESS_TRY(tess_rows_add(&product[k].rows, product[k].sum_weights,
                               run->opts->layout.threads, &mean->product[k].rows));
        mean->product[k].sum_weights += product[k].sum_weights;
        mean->product[k].variance += product[k].variance;
        mean->product[k].effective_vis += product[k].effective_vis;
        mean->product[k].response += product[k].sum_weights * product[k].response;
    }
cleanup:
    return status;
}

/* ---- sums of a team ---- */

static void free_own(channel_mean *own)
{
    for (int k = 0; k < TESS_MAX_IMAGES; ++k) {
        tess_rows_free(&own->product[k].rows);
        own->product[k] = (imager_product){0};
    }
    own->started = false;
}

tess_status channel_mean_add_own(const image_run *run, const imager_product *product,
                                 channel_mean *own)
{
    tess_status status = TESS_OK;
    const int num_images = image_kinds_all(&run->means.kinds);
    for (int k = 0; k < num_images && !own->started; ++k) {
        own->product[k].rows = tess_rows_like(&product[k].rows, TESS_PIXEL_DOUBLE);
        TESS_TRY(tess_rows_alloc_zero(&own->product[k].rows));
    }
    own->started = true;
    TESS_TRY(channel_mean_add(run, product, own));
cleanup:
    return status;
}

tess_status channel_mean_join(image_run *run, channel_mean *own, channel_mean *mean)
{
    tess_status status = TESS_OK;
    imager_round round = {0};
    TESS_TRY(imager_teams_collect(&run->teams, own->started ? 0 : -1,
                                  run->whole.geom.ny, own->product,
                                  image_kinds_all(&run->means.kinds), &round));
    round.are_sums = true;
    for (int k = 0; k < run->teams.num && status == TESS_OK; ++k)
        status = imager_round_add(&run->teams, &round, k, run->opts->layout.threads,
                                  mean->product);
    TESS_TRY(tess_comm_agree(run->teams.all, status));
cleanup:
    free_own(own);
    imager_round_free(&round);
    return status;
}

/* ---- completing ---- */

/* Local. */
static tess_status finish(imager_product *mean, const image_kinds *kinds, int threads)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < image_kinds_all(kinds); ++k) {
        if (mean[k].sum_weights > 0) {
            TESS_TRY(tess_rows_scale(&mean[k].rows, 1 / mean[k].sum_weights, threads));
            mean[k].response /= mean[k].sum_weights;
        } else if (!image_kinds_is_model(kinds, k))
            TESS_TRY(tess_rows_blank(&mean[k].rows));
    }
cleanup:
    return status;
}

/* Makes restored images of the mean models, and measures these and the mean residuals
 * for found[]. Collective. */
static tess_status restore(const image_run *run, int64_t interval,
                           struct image_found *found, channel_mean *mean)
{
    tess_status status = TESS_OK;
    const image_kinds *kinds = &run->means.kinds;
    const imager_product *model = mean->product + image_kinds_place(kinds, IMAGE_MODEL);
    const imager_product *residual =
        mean->product + image_kinds_place(kinds, IMAGE_RESIDUAL);
    const imager_product *image =
        mean->product + image_kinds_place(kinds, IMAGE_RESTORED);
    for (int p = 0; p < run->num_pol; ++p) {
        const bool wants_deviation =
            image_found_tells_deviation(&run->means, interval, -1, p);
        if (!(image[p].sum_weights > 0)) continue;
        /* means of images of one beam have this beam */
        if (!(found[p].common.major_rad > 0))
            TESS_TRY(majors_restore(run, &found[p].beam, &model[p].rows,
                                    &residual[p].rows, &image[p].rows));
        TESS_TRY(image_model_flux(run->comm, &model[p].rows, &found[p].flux_jy));
        TESS_TRY(image_found_measure_residual(run->comm, &residual[p].rows,
                                              run->opts->layout.threads,
                                              wants_deviation, &found[p]));
    }
cleanup:
    return status;
}

/* With a density of all channels, the noise of their mean alone is known. */
static void take_variances(const image_run *run, channel_mean *mean)
{
    const tess_density *density = run->densities.shared;
    const image_kinds *kinds = &run->means.kinds;
    for (int kind = 0; density && kind < NUM_IMAGE_KINDS; ++kind)
        for (int k = 0; kind != IMAGE_PSF && k < kinds->num[kind]; ++k)
            mean->product[image_kinds_place(kinds, (image_kind)kind) + k].variance =
                tess_density_variance(density, image_num_psf(run) == 1 ? 0 : k) /
                run->densities.scale;
}

tess_status channel_mean_finish(image_run *run, int64_t interval, channel_mean *mean,
                                struct image_found *found)
{
    tess_status status = TESS_OK;
    const image_kinds *kinds = &run->means.kinds;
    TESS_TRY(tess_comm_agree(run->teams.all,
                             finish(mean->product, kinds, run->opts->layout.threads)));
    take_variances(run, mean);
    TESS_TRY(image_beam_find(&run->means,
                             mean->product + image_kinds_place(kinds, IMAGE_PSF),
                             kinds->num[IMAGE_PSF], &mean->extent, found));
    found[0].common = run->summary.common[interval];
    for (int k = 1; k < run->num_pol; ++k) {
        found[k].common = found[0].common;
        found[k].beam = found[0].beam;
        found[k].beam_failure = found[0].beam_failure;
        found[k].beam_expected = found[0].beam_expected;
    }
    if (found[0].majors > 0) TESS_TRY(restore(run, interval, found, mean));
cleanup:
    return status;
}

void channel_mean_free(image_run *run, channel_mean *mean)
{
    free_own(mean);
    mean_sources_free(&mean->sources);
    mean->extent = imager_extent_empty();
    run->checkpoint.num_mean = 0;
}

tess_status channel_mean_write(image_run *run, int64_t interval, channel_mean *mean,
                               const struct image_found *found)
{
    tess_status status = TESS_OK;
    double mark = tess_time_now();
    TESS_TRY(image_files_measure(&run->means, interval, -1, mean->product, found));
    tess_profile_lap(run->profile, TESS_STAGE_CORRECT, &mark);
    TESS_TRY(image_files_write(&run->means, interval, -1, mean->product, &mean->extent,
                               found));
    mark = tess_time_now();
    TESS_TRY(image_backlog_finish(run->means.comm, run->means.backlog));
    tess_profile_lap(run->profile, TESS_STAGE_WRITE, &mark);
    image_files_log(&run->means, interval, -1);
cleanup:
    channel_mean_free(run, mean);
    return status;
}
