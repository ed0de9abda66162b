/* Residual images of channels that are cleaned together, by teams: the rows of a
 * round's models go to the teams, and those of their residuals to all ranks. */
#include "imager_teams_rows.h"
#include "majors_private.h"

/* Makes the residual images of a channel, residual[num_pol]: of its visibility set less
 * models, whose rows lie as those of the job's images. Collective over the job's ranks.
 */
static tess_status make_residual(const majors *all, const majors_channel *channel,
                                 const imager_rows *model, imager_rows *residual)
{
    tess_status status = TESS_OK;
    image_run *run = all->run;
    const imager_stages no_stages = {.comm = run->job.comm};
    const visset_request request = {.less_model = true};
    imager_product made[TESS_MAX_IMAGES] = {0};
    const bool shares = all->num_channels > 1;
    if (shares) visset_enter(channel->set);
    status = imager_model_set(&run->job, model);
    if (status == TESS_OK)
        status = visset_image(channel->set, &request, &no_stages, made);
    if (shares) visset_leave(channel->set);
    TESS_TRY(status);
    for (int p = 0; p < run->num_pol; ++p)
        residual[p] = made[p].rows;
cleanup:
    return status;
}

/* ---- by teams ---- */

static majors_channel *channel_at(const majors *all, int first, int team)
{
    return &all->channel[all->rounds->channel[first + team]];
}

/* Brings the models of this team's channel, model[num_pol], to its ranks. Collective.
 */
static tess_status bring_models(const majors *all, int first, imager_rows *model)
{
    tess_status status = TESS_OK;
    const image_run *run = all->run;
    const int size = channel_rounds_size(all->rounds, first);
    for (int p = 0; p < run->num_pol; ++p) {
        for (int g = 0; g < size; ++g)
            all->rounds->rows[g] = &channel_at(all, first, g)->model[p];
        TESS_TRY(imager_teams_bring(&run->teams, &run->job, size, all->rounds->rows,
                                    &model[p]));
    }
cleanup:
    return status;
}

/* Sends the residuals made[num_pol] of this team's channel to all ranks, and receives
 * those of the round's other channels. `made` is NULL if this team has no channel.
 * Collective. */
static tess_status spread_residuals(const majors *all, int first,
                                    const imager_rows *made)
{
    tess_status status = TESS_OK;
    const image_run *run = all->run;
    const int size = channel_rounds_size(all->rounds, first);
    for (int p = 0; p < run->num_pol; ++p) {
        for (int g = 0; g < size; ++g)
            all->rounds->rows[g] = &channel_at(all, first, g)->residual[p];
        TESS_TRY(imager_teams_spread(&run->teams, &run->job, size,
                                     made ? &made[p] : NULL, all->rounds->rows));
    }
cleanup:
    return status;
}

static void free_residuals(const majors *all, int first)
{
    for (int g = 0; g < channel_rounds_size(all->rounds, first); ++g)
        for (int p = 0; p < all->run->num_pol; ++p)
            imager_rows_free(&channel_at(all, first, g)->residual[p]);
}

/* Each team makes the residuals of one channel. Collective. */
static tess_status make_round(majors *all, int first)
{
    tess_status status = TESS_OK;
    image_run *run = all->run;
    const int own = channel_rounds_own(all->rounds, first);
    imager_rows model[TESS_MAX_POL] = {0}, made[TESS_MAX_POL] = {0};
    double mark = tess_time_now();
    free_residuals(all, first);
    TESS_TRY(bring_models(all, first, model));
    tess_profile_lap(run->profile, TESS_STAGE_REDUCE, &mark);
    if (own >= 0) status = make_residual(all, &all->channel[own], model, made);
    mark = tess_time_now();
    TESS_TRY(tess_comm_agree(run->comm, status));
    TESS_TRY(spread_residuals(all, first, own >= 0 ? made : NULL));
    tess_profile_lap(run->profile, TESS_STAGE_REDUCE, &mark);
cleanup:
    for (int p = 0; p < TESS_MAX_POL; ++p) {
        imager_rows_free(&model[p]);
        imager_rows_free(&made[p]);
    }
    return status;
}

/* Collective. */
static tess_status make_rounds(majors *all)
{
    tess_status status = TESS_OK;
    for (int first = 0; first < all->rounds->num; first += all->rounds->at_once)
        TESS_TRY(make_round(all, first));
cleanup:
    return status;
}

/* ---- */

tess_status majors_make_residuals(majors *all)
{
    tess_status status = TESS_OK;
    all->changed = false;
    if (all->rounds) return make_rounds(all);
    for (int c = 0; c < all->num_channels; ++c) {
        majors_channel *channel = &all->channel[c];
        if (!channel->has_data) continue;
        for (int p = 0; p < all->run->num_pol; ++p)
            imager_rows_free(&channel->residual[p]);
        TESS_TRY(make_residual(all, channel, channel->model, channel->residual));
    }
cleanup:
    return status;
}
