/* Residual images of all channels, round by round. If teams share the channels, the
 * rows of a round's models go to the teams, and those of their residuals to all ranks.
 */
#include "imager_teams.h"
#include "majors_private.h"
#include "patch_images.h"

/* Makes the residual images of a channel, residual[num_pol]: of its visibility set less
 * models, whose rows lie as those of the job's images. Collective over the job's ranks.
 */
static tess_status make_residual(const majors *all, group_channel *channel,
                                 const tess_rows *model, tess_rows *residual)
{
    tess_status status = TESS_OK;
    image_run *run = all->run;
    imager_product made[TESS_MAX_IMAGES] = {0};
    const bool shares = all->num_channels > 1;
    double mark = tess_time_now();
    if (shares) visset_enter(&channel->set);
    status = patch_images_set_model(run, channel->output, model,
                                    channel_group_response(run, channel));
    tess_profile_lap(run->profile, TESS_STAGE_CORRECT, &mark);
    if (status == TESS_OK)
        status = patch_images_residual(run, channel->output, &channel->set,
                                       all->is_hard, made);
    if (shares) visset_leave(&channel->set);
    TESS_TRY(status);
    for (int p = 0; p < run->num_pol; ++p)
        residual[p] = made[p].rows;
cleanup:
    return status;
}

/* Brings the models of this team's channel, model[num_pol], to its ranks. Collective.
 */
static tess_status bring_models(const majors *all, int first, tess_rows *model)
{
    tess_status status = TESS_OK;
    const image_run *run = all->run;
    const channel_group *channels = all->channels;
    const int size = channel_group_size(channels, first);
    double mark = tess_time_now();
    for (int p = 0; p < run->num_pol; ++p) {
        for (int g = 0; g < size; ++g)
            channels->rows[g] = &channel_group_at(channels, first, g)->model[p];
        TESS_TRY(imager_teams_bring(&run->teams, &run->job, size, channels->rows,
                                    &model[p]));
    }
    tess_profile_lap(run->profile, TESS_STAGE_REDUCE, &mark);
cleanup:
    return status;
}

/* Sends the residuals made[num_pol] of this team's channel to all ranks, and receives
 * those of the round's other channels. `made` is NULL if this team has no channel.
 * Collective. */
static tess_status spread_residuals(const majors *all, int first, const tess_rows *made)
{
    tess_status status = TESS_OK;
    const image_run *run = all->run;
    const channel_group *channels = all->channels;
    const int size = channel_group_size(channels, first);
    for (int p = 0; p < run->num_pol; ++p) {
        for (int g = 0; g < size; ++g)
            channels->rows[g] = &channel_group_at(channels, first, g)->residual[p];
        TESS_TRY(imager_teams_spread(&run->teams, &run->job, size,
                                     made ? &made[p] : NULL, channels->rows));
    }
cleanup:
    return status;
}

/* Each team makes the residuals of one channel. Collective. */
static tess_status make_by_teams(const majors *all, int first)
{
    tess_status status = TESS_OK;
    image_run *run = all->run;
    group_channel *own = channel_group_own(all->channels, first);
    tess_rows model[TESS_MAX_POL] = {0}, made[TESS_MAX_POL] = {0};
    TESS_TRY(bring_models(all, first, model));
    if (own) status = make_residual(all, own, model, made);
    double mark = tess_time_now();
    TESS_TRY(tess_comm_agree(run->comm, status));
    TESS_TRY(spread_residuals(all, first, own ? made : NULL));
    tess_profile_lap(run->profile, TESS_STAGE_REDUCE, &mark);
cleanup:
    for (int p = 0; p < TESS_MAX_POL; ++p) {
        tess_rows_free(&model[p]);
        tess_rows_free(&made[p]);
    }
    return status;
}

tess_status majors_make_residuals(majors *all)
{
    tess_status status = TESS_OK;
    const channel_group *channels = all->channels;
    all->changed = false;
    for (int first = 0; first < channels->num_with_data; first += channels->at_once) {
        group_channel *own = channel_group_own(channels, first);
        for (int g = 0; g < channel_group_size(channels, first); ++g)
            for (int p = 0; p < all->run->num_pol; ++p)
                tess_rows_free(&channel_group_at(channels, first, g)->residual[p]);
        TESS_TRY(image_shares_channels(all->run)
                     ? make_by_teams(all, first)
                     : make_residual(all, own, own->model, own->residual));
    }
cleanup:
    return status;
}
