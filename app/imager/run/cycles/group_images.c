/* The order of work of a group of channels, from samples to files. Channels that are
 * cleaned together have a visibility set each. Their sets share one plan, and each has
 * the job while its images are made. */
#include "channel_group.h"

#include <string.h>

#include "image_backlog.h"
#include "image_beam.h"
#include "image_output.h"
#include "image_primary_beam.h"
#include "imager_stages.h"
#include "imager_targets.h"
#include "imager_teams.h"
#include "imager_window.h"
#include "majors.h"
#include "patch_images.h"
#include "run_samples.h"
#include "team_parcel.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_minmax.h"

/* ---- samples to teams ---- */

void group_images_give_up(image_run *run, int64_t end)
{
    if (end < run->outputs.num || run->teams.of_threads.is_one || run->holds.again)
        return;
    tess_samples_free(&run->all);
    sample_parts_free(&run->parts);
}

/* Bytes of the messages to all teams. The outputs of a team in one interval have the
 * same rows, at most as many as samples. A message that outgrows its room would be
 * copied, and have memory for twice as much. */
static int64_t parcel_bytes(const image_run *run, int64_t first, int64_t end)
{
    const output_table *outputs = &run->outputs;
    const int teams = run->teams.num;
    int64_t bytes = 0;
    for (int64_t k = first; k < end; ++k) {
        const int64_t before = k - teams, held = outputs->num_held[k];
        const bool again = before >= first &&
                           before / outputs->num_channels == k / outputs->num_channels;
        bytes += team_parcel_bytes_of(&run->all, tess_min_i64(held, run->all.num_rows),
                                      held, again);
    }
    return bytes;
}

/* Packs the samples of outputs [first, end), as they were read, for their teams. */
static tess_status pack_outputs(const image_run *run, int64_t first, int64_t end,
                                team_parcel *parcel)
{
    tess_status status = TESS_OK;
    tess_samples own = {0};
    TESS_TRY(team_parcel_create(&run->teams, &run->all, parcel_bytes(run, first, end),
                                parcel));
    for (int g = 0; g < run->teams.num; ++g) {
        for (int64_t k = first + g; k < end; k += run->teams.num) {
            TESS_TRY(image_copy_output(run, k, &own));
            TESS_TRY(team_parcel_add(parcel, &own));
        }
        team_parcel_end_team(parcel);
    }
cleanup:
    tess_samples_free(&own);
    return status;
}

tess_status group_images_deal(image_run *run, channel_group *group, int num,
                              int64_t first, int64_t end)
{
    tess_status status = TESS_OK;
    team_parcel parcel = {0};
    tess_samples *mine = NULL;
    int own = 0;
    double mark;
    if (!image_deals_samples(run)) return TESS_OK;
    TESS_TRY(image_hold_outputs(run, first, end));
    mark = tess_time_now();
    while (own < num && group[own].num_channels > 0)
        ++own;
    mine = tess_alloc_zero(own, sizeof *mine);
    status = mine ? pack_outputs(run, first, end, &parcel) : TESS_ERR_ALLOC;
    group_images_give_up(run, end);
    TESS_TRY(imager_teams_send(&run->teams, status, &parcel, own, mine));
    for (int k = 0; k < own; ++k)
        group[k].channel->data.cached = mine[k];
    tess_profile_lap(run->profile, TESS_STAGE_EXCHANGE, &mark);
cleanup:
    team_parcel_free(&parcel);
    tess_free(mine);
    return status;
}

/* Packs the weighted samples of a round's channels, one for each team. */
static tess_status pack_round(const channel_group *group, int first,
                              team_parcel *parcel)
{
    tess_status status = TESS_OK;
    const imager_teams *teams = &group->run->teams;
    const int size = channel_group_size(group, first);
    double bytes = 0;
    for (int g = 0; g < size; ++g)
        bytes += imager_samples_bytes(&channel_group_at(group, first, g)->data.cached);
    TESS_TRY(team_parcel_create(teams, &channel_group_at(group, first, 0)->data.cached,
                                (int64_t)bytes, parcel));
    for (int g = 0; g < size; ++g) {
        TESS_TRY(
            team_parcel_add(parcel, &channel_group_at(group, first, g)->data.cached));
        team_parcel_end_team(parcel);
    }
cleanup:
    return status;
}

/* Sends the weighted samples of a round's channels to the teams that make their images.
 * Collective. */
static tess_status deal_round(channel_group *group, int first)
{
    tess_status status = TESS_OK;
    image_run *run = group->run;
    group_channel *own = channel_group_own(group, first);
    team_parcel parcel = {0};
    tess_samples mine = {0};
    double mark = tess_time_now();
    status = pack_round(group, first, &parcel);
    TESS_TRY(imager_teams_send(&run->teams, status, &parcel, own != NULL, &mine));
    if (own) own->data.cached = mine;
    tess_profile_lap(run->profile, TESS_STAGE_EXCHANGE, &mark);
cleanup:
    team_parcel_free(&parcel);
    return status;
}

/* Weighs the samples of a round's channels. If teams share the group, all ranks weigh
 * them before the teams get them: a density of all channels has its cells on all ranks.
 * Collective. */
static tess_status weigh_round(channel_group *group, int first)
{
    tess_status status = TESS_OK;
    image_run *run = group->run;
    for (int g = 0; g < channel_group_size(group, first); ++g) {
        group_channel *channel = channel_group_at(group, first, g);
        TESS_TRY(image_weighted_data(run, channel->output, &channel->data,
                                     channel->variance, &channel->density));
    }
    if (image_shares_channels(run)) TESS_TRY(deal_round(group, first));
cleanup:
    return status;
}

/* ---- dirty images ---- */

/* Reads the model that is subtracted, once for all outputs. Collective. */
static tess_status load_model(image_run *run)
{
    tess_status status = TESS_OK;
    imager_job_model *to = &run->job.model;
    double mark = tess_time_now();
    if (!to->is_shared || to->is_set) return TESS_OK;
    TESS_TRY(imager_model_load(&run->job, &run->less.model, to->planes));
    to->scale = run->less.model.scale;
    to->is_set = true;
    tess_profile_lap(run->profile, TESS_STAGE_CORRECT, &mark);
cleanup:
    return status;
}

/* Makes the set of a channel, its dirty images and PSFs. The set of a channel alone
 * keeps the job, and its samples may be read again for each image. Collective in the
 * team. */
static tess_status make_images(channel_group *group, group_channel *channel)
{
    tess_status status = TESS_OK;
    image_run *run = group->run;
    const bool cleans = image_is_cleaned(run->opts), alone = group->num_channels == 1;
    const visset_request request = {.psf = run->opts->make_psf,
                                    .less_model = run->job.model.is_shared && !cleans};
    const imager_stages stages = {
        .comm = run->job.comm,
        .folder = run->opts->beside.dump_stages,
        .interval = channel->output / run->outputs.num_channels,
        .channel = channel->output % run->outputs.num_channels};
    /* a set makes several images if targets take turns, and for the PSFs of patches */
    const bool single = !cleans && !imager_job_in_turn(&run->job) &&
                        !(run->whole.patches && request.psf);
    TESS_TRY(visset_create(&run->job, &channel->data, single, &stages, &channel->set));
    if (!alone && channel->set.over && !channel->set.spool && !channel->data.in_memory)
        TESS_FAIL(TESS_ERR_RESOURCE,
                  "cleaning channels together cannot take passes over data");
    if (!cleans) TESS_TRY(load_model(run));
    status = patch_images_make(run, channel->output, &channel->set, &request, &stages,
                               channel->made, channel_group_response(run, channel));
    if (!alone) visset_leave(&channel->set);
    TESS_TRY(status);
    channel->freq_hz = visset_freq_hz(&channel->set);
cleanup:
    if (!alone) channel_group_free_density(group, channel);
    return status;
}

/* Sends the rows of the images that each team has made to all ranks. Collective. */
static tess_status spread_images(channel_group *group, int first)
{
    tess_status status = TESS_OK;
    image_run *run = group->run;
    const int size = channel_group_size(group, first);
    const group_channel *own = channel_group_own(group, first);
    for (int k = 0; k < run->num_pol + image_num_psf(run); ++k) {
        tess_rows mine = {0};
        if (own) mine = own->made[k].rows;
        for (int g = 0; g < size; ++g) {
            group->rows[g] = &channel_group_at(group, first, g)->made[k].rows;
            *group->rows[g] = (tess_rows){0};
        }
        status = imager_teams_spread(&run->teams, &run->job, size, own ? &mine : NULL,
                                     group->rows);
        tess_rows_free(&mine);
        TESS_TRY(status);
    }
cleanup:
    return status;
}

/* What all ranks learn of a channel from those that have made its images. */
typedef struct channel_facts {
    double freq_hz, sum_weights[TESS_MAX_IMAGES], effective_vis[TESS_MAX_IMAGES];
} channel_facts;

static channel_facts facts_of(const group_channel *channel)
{
    channel_facts facts = {.freq_hz = channel->freq_hz};
    for (int k = 0; k < TESS_MAX_IMAGES; ++k) {
        facts.sum_weights[k] = channel->made[k].sum_weights;
        facts.effective_vis[k] = channel->made[k].effective_vis;
    }
    return facts;
}

/* Sends what teams know of their channels to all ranks. Collective. */
static tess_status share_facts(channel_group *group, int first)
{
    tess_status status = TESS_OK;
    const image_run *run = group->run;
    const group_channel *own = channel_group_own(group, first);
    channel_facts mine = {0};
    channel_facts *facts = tess_alloc(tess_comm_size(run->comm), sizeof *facts);
    if (own) mine = facts_of(own);
    TESS_TRY(tess_comm_agree(run->comm, facts ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_comm_allgather(run->comm, &mine, sizeof mine, facts));
    for (int g = 0; g < channel_group_size(group, first); ++g) {
        group_channel *channel = channel_group_at(group, first, g);
        const channel_facts *of_team = &facts[g * run->teams.members];
        channel->freq_hz = of_team->freq_hz;
        for (int k = 0; k < TESS_MAX_IMAGES; ++k) {
            channel->made[k].sum_weights = of_team->sum_weights[k];
            channel->made[k].effective_vis = of_team->effective_vis[k];
        }
    }
cleanup:
    tess_free(facts);
    return status;
}

/* Makes the dirty images and PSFs of a round's channels, and measures them. Collective.
 */
static tess_status make_round(channel_group *group, int first)
{
    tess_status status = TESS_OK;
    image_run *run = group->run;
    group_channel *own = channel_group_own(group, first);
    double mark;
    TESS_TRY(weigh_round(group, first));
    if (own) status = make_images(group, own);
    TESS_TRY(tess_comm_agree(run->comm, status));
    mark = tess_time_now();
    if (image_shares_channels(run)) {
        TESS_TRY(spread_images(group, first));
        TESS_TRY(share_facts(group, first));
    }
    tess_profile_lap(run->profile, TESS_STAGE_REDUCE, &mark);
    for (int g = 0; g < channel_group_size(group, first); ++g) {
        group_channel *channel = channel_group_at(group, first, g);
        TESS_TRY(image_measure_made(run, channel->output, channel->variance,
                                    channel->made, channel->found));
    }
    tess_profile_lap(run->profile, TESS_STAGE_CORRECT, &mark);
cleanup:
    return status;
}

/* ---- beams ---- */

/* Finds the one beam of channels that are cleaned together. Collective. */
static tess_status join_beams(channel_group *group)
{
    tess_status status = TESS_OK;
    image_run *run = group->run;
    const int64_t interval = group->first_output / run->outputs.num_channels;
    tess_fits_beam *beam = NULL;
    if (!run->opts->clean.beam.common || group->num_channels == 1) return TESS_OK;
    beam = tess_alloc(group->num_channels, sizeof *beam);
    status = beam ? TESS_OK : TESS_ERR_ALLOC;
    for (int c = 0; c < group->num_channels && beam; ++c)
        beam[c] = group->channel[c].found[0].beam;
    if (beam)
        status = image_beam_join(&run->output, interval, beam, group->num_channels);
    TESS_TRY(tess_comm_agree(run->comm, status));
    for (int c = 0; c < group->num_channels; ++c)
        for (int p = 0; p < run->num_pol; ++p)
            group->channel[c].found[p].common = run->summary.common[interval];
cleanup:
    tess_free(beam);
    return status;
}

/* Makes the images of a channel alone for its beam. Collective. */
static tess_status find_beam(channel_group *group)
{
    tess_status status = TESS_OK;
    image_run *run = group->run;
    if (group->num_with_data == 0) return TESS_OK;
    TESS_TRY(image_share_density(run, group->first_output / run->outputs.num_channels));
    TESS_TRY(make_round(group, 0));
    group->beam = group->channel[0].found[0].beam;
cleanup:
    return status;
}

/* ---- products ---- */

/* Makes products of gridded images, for a run that does not clean. */
static void take_made(const image_run *run, group_channel *channel)
{
    const int skipped = run->num_pol - run->output.kinds.num[IMAGE_DIRTY];
    const int num = run->num_pol + image_num_psf(run) - skipped;
    memcpy(channel->product, channel->made + skipped,
           (size_t)num * sizeof *channel->made);
    memset(channel->made + skipped, 0, (size_t)num * sizeof *channel->made);
}

/* The work on a channel alone is kept in checkpoints from its first image on. Of
 * several channels, checkpoints keep the major cycles and not the sets; the keeper
 * takes part only while they are cleaned. Collective. */
static tess_status clean(channel_group *group)
{
    tess_status status = TESS_OK;
    image_run *run = group->run;
    const bool alone = group->num_channels == 1;
    if (!image_is_cleaned(run->opts)) {
        take_made(run, group->channel);
        return TESS_OK;
    }
    if (!alone && run->opts->checkpoint.folder)
        image_checkpoint_keep(&run->checkpoint, &run->job);
    status = majors_clean(group);
    if (!alone) run->job.keeper = NULL;
    return status;
}

/* Makes the images of a group without data. Collective. */
static tess_status make_blank(channel_group *group)
{
    tess_status status = TESS_OK;
    for (int c = 0; c < group->num_channels; ++c)
        TESS_TRY(image_empty_products(group->run, group->channel[c].product));
cleanup:
    return status;
}

/* Makes and cleans all images. Collective. */
static tess_status make_products(channel_group *group)
{
    tess_status status = TESS_OK;
    image_run *run = group->run;
    if (group->num_with_data == 0) {
        group_images_give_up(run, group->first_output + group->num_channels);
        return make_blank(group);
    }
    TESS_TRY(image_share_density(run, group->first_output / run->outputs.num_channels));
    for (int first = 0; first < group->num_with_data; first += group->at_once)
        TESS_TRY(make_round(group, first));
    group_images_give_up(run, group->first_output + group->num_channels);
    TESS_TRY(join_beams(group));
    TESS_TRY(clean(group));
    channel_group_free_sources(group);
cleanup:
    return status;
}

tess_status group_images_make(channel_group *group)
{
    tess_status status = TESS_OK;
    const image_run *run = group->run;
    const int64_t channels = run->outputs.num_channels;
    double mark;
    if (group->wants_beam) return find_beam(group);
    TESS_TRY(make_products(group));
    mark = tess_time_now();
    for (int c = 0; c < group->num_channels; ++c) {
        const group_channel *channel = &group->channel[c];
        TESS_TRY(image_files_measure(&run->output, channel->output / channels,
                                     channel->output % channels, channel->product,
                                     channel->found));
    }
    tess_profile_lap(run->profile, TESS_STAGE_CORRECT, &mark);
cleanup:
    return status;
}

tess_status group_images_write(image_run *rank, channel_group *group)
{
    tess_status status = TESS_OK;
    image_run *run = group->run;
    const int64_t channels = run->outputs.num_channels;
    tess_progress progress;
    tess_progress_start(&progress, "writing", " images", group->num_channels);
    for (int c = 0; c < group->num_channels; ++c) {
        group_channel *channel = &group->channel[c];
        const int64_t output = channel->output;
        TESS_TRY(image_primary_beam_make(rank, output, channel->product));
        TESS_TRY(image_files_write(&run->output, output / channels, output % channels,
                                   channel->product, &run->outputs.extent[output],
                                   channel->found));
        tess_progress_add(&progress, 1);
    }
    tess_progress_finish(&progress);
    /* the files of a channel alone get their names when the next round is written */
    if (group->num_channels != 1)
        TESS_TRY(image_backlog_finish(run->comm, run->output.backlog));
cleanup:
    return status;
}
