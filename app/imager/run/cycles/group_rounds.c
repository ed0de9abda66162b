/* Makes the groups of channels round after round, tells the log of their files, and
 * adds their images to the means of intervals. */

#include <string.h>

#include "channel_group.h"
#include "channel_mean.h"
#include "image_backlog.h"
#include "image_cubes.h"
#include "image_names.h"
#include "image_output.h"
#include "run_samples.h"
#include "spectral_maps.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_minmax.h"
#include "thread_teams.h"

/* What is kept from round to round. */
typedef struct run_rounds {
    image_run *run;
    thread_teams teams;
    channel_group *group; /* [teams.num × turns] those of a round */
    int turns;            /* outputs that each team makes in a round */
    channel_mean mean;
    channel_mean own; /* sums of the images of this rank's team, for the mean */
} run_rounds;

/* ---- files ---- */

/* Tells the log of the files of outputs [first, end). */
static void tell_files(const image_run *run, int64_t first, int64_t end)
{
    const int64_t channels = run->outputs.num_channels;
    for (int64_t k = first; k < end; ++k)
        image_files_log(&run->output, k / channels, k % channels);
}

/* Tells the log of the files of outputs that have been made: at once, or when they have
 * their names. Those of the outputs before have them now. `run`: in which they were
 * made.
 */
static void tell_made(image_run *run, int64_t first, int64_t end)
{
    image_backlog *backlog = run->output.backlog;
    if (!backlog) {
        tell_files(run, first, end);
        return;
    }
    tell_files(run, backlog->first, backlog->end);
    backlog->first = first;
    backlog->end = end;
}

/* Completes the files that are still being written. Collective. */
static tess_status finish_files(run_rounds *rounds)
{
    tess_status status = TESS_OK;
    image_run *run = rounds->run;
    double mark = tess_time_now();
    for (int k = 0; k < rounds->teams.num && status == TESS_OK; ++k) {
        image_run *made_in = thread_teams_run(&rounds->teams, k);
        status = image_backlog_finish(made_in->comm, made_in->output.backlog);
    }
    TESS_TRY(tess_comm_agree(run->teams.all, status));
    tess_profile_lap(run->profile, TESS_STAGE_WRITE, &mark);
    for (int k = 0; k < rounds->teams.num; ++k)
        tell_made(thread_teams_run(&rounds->teams, k), 0, 0);
cleanup:
    return status;
}

/* With a device, processors have little else to do while images are made, and once an
 * only output has been made. Collective. */
static tess_status start_backlog(image_run *run)
{
    tess_status status = TESS_OK;
    const bool are_free = run->job.backend->start || run->outputs.num == 1;
    const int threads = are_free ? run->opts->layout.threads : 1;
    const double pixels = (double)run->opts->nx * (double)run->opts->ny;
    if (!run->opts->output || !run->output.together) return TESS_OK;
    status = image_backlog_create(threads, pixels * (double)sizeof(float),
                                  &run->output.backlog);
    TESS_TRY(tess_comm_agree(run->teams.all, status));
    if (run->job.memory.backlog_bytes > 0)
        tess_log_detail(
            "files are written while the images of the next output are made");
cleanup:
    return status;
}

/* ---- means ---- */

/* Completes and writes the mean of an interval. Channels that were cleaned together
 * have a mean that is restored, and spectra. Collective. */
static tess_status end_mean(run_rounds *rounds, int64_t interval,
                            const channel_group *group)
{
    tess_status status = TESS_OK;
    image_run *run = rounds->run;
    channel_mean *mean = &rounds->mean;
    struct image_found found[TESS_MAX_POL] = {0};
    if (group->num_channels > 1)
        memcpy(found, channel_group_first(group)->found, sizeof found);
    TESS_TRY(finish_files(rounds)); /* the mean's files are the last ones of a run */
    TESS_TRY(channel_mean_finish(run, interval, mean, found));
    if (image_has_sources(run->opts, -1))
        TESS_TRY(mean_sources_finish(run, interval, &mean->sources));
    if (found[0].majors > 0) TESS_TRY(spectral_maps_make(group, found, &run->means));
    if (run->teams.num == 1) run->means.backlog = run->output.backlog;
    TESS_TRY(channel_mean_write(run, interval, mean, found));
cleanup:
    run->means.backlog = NULL;
    spectral_maps_free(&run->means);
    return status;
}

/* Adds output `first` + k of a group on each team of ranks: that of the k-th team. All
 * ranks have rows of a group that they share. Images of teams are collected in `round`,
 * or are summed up by their teams. Collective. */
static tess_status add_image(run_rounds *rounds, int64_t k, const channel_group *group,
                             imager_round *round)
{
    tess_status status = TESS_OK;
    const image_run *run = rounds->run;
    channel_mean *mean = &rounds->mean;
    const bool has = group->num_channels > 0;
    if (round->told)
        status = imager_round_add(&run->teams, round, (int)k, run->opts->layout.threads,
                                  mean->product);
    else if (!run->teams.sums_means)
        status = channel_mean_add(run, group->channel[k].product, mean);
    else if (has && k == run->teams.own)
        status = channel_mean_add_own(run, group->channel[0].product, &rounds->own);
    return tess_comm_agree(run->teams.all, status);
}

/* Adds the images of a group on each team of ranks, outputs [first, end) in order, to
 * the means. Collective. */
static tess_status add_images(run_rounds *rounds, int64_t first, int64_t end,
                              const channel_group *group)
{
    tess_status status = TESS_OK;
    image_run *run = rounds->run;
    channel_mean *mean = &rounds->mean;
    const int64_t channels = run->outputs.num_channels;
    const imager_product none[TESS_MAX_IMAGES] = {0};
    const bool has = group->num_channels > 0;
    const bool collects =
        run->teams.num > 1 && !image_shares_channels(run) && !run->teams.sums_means;
    imager_round round = {0};
    double mark = tess_time_now();
    if (channels == 1) return TESS_OK;
    if (collects)
        TESS_TRY(imager_teams_collect(&run->teams, has ? group->first_output : -1,
                                      run->whole.geom.ny,
                                      has ? group->channel[0].product : none,
                                      image_kinds_all(&run->means.kinds), &round));
    for (int64_t k = first; k < end; ++k) {
        TESS_TRY(channel_mean_start(run, mean));
        TESS_TRY(add_image(rounds, k - first, group, &round));
        if (image_has_sources(run->opts, -1))
            TESS_TRY(
                mean_sources_add(run, &group->run->output.sources, k, &mean->sources));
        imager_extent_join(&mean->extent, &run->outputs.extent[k]);
        if (run->teams.sums_means && (k + 1) % channels == 0)
            TESS_TRY(channel_mean_join(run, &rounds->own, mean));
        tess_profile_lap(run->profile, TESS_STAGE_REDUCE, &mark);
        if ((k + 1) % channels == 0) TESS_TRY(end_mean(rounds, k / channels, group));
        mark = tess_time_now();
    }
cleanup:
    imager_round_free(&round);
    return status;
}

/* ---- rounds ---- */

/* The outputs [first, end) of a round that the k-th of its groups makes: the group that
 * all ranks share, or a channel alone on each team of ranks. */
typedef struct output_range {
    int64_t first, end;
} output_range;

static output_range range_of(const run_rounds *rounds, output_range round, int k)
{
    const image_run *run = rounds->run;
    if (image_joins_channels(run->opts)) return round;
    const int64_t first = round.first + (int64_t)k * run->teams.num;
    return (output_range){first, tess_min_i64(first + run->teams.num, round.end)};
}

/* Groups of a round. */
static int count_groups(const run_rounds *rounds, output_range round)
{
    const int64_t each = image_joins_channels(rounds->run->opts)
                             ? round.end - round.first
                             : rounds->run->teams.num;
    return (int)((round.end - round.first + each - 1) / each);
}

/* Creates the k-th group of a round. Local. */
static tess_status create_group(run_rounds *rounds, output_range round, int k)
{
    image_run *run = rounds->run;
    const output_range range = range_of(rounds, round, k);
    const bool joined = image_joins_channels(run->opts);
    const int64_t own = joined ? range.first : range.first + run->teams.own;
    const int num = joined ? (int)(range.end - range.first) : own < range.end;
    return channel_group_create(run, own, num, &rounds->group[k]);
}

/* Creates the groups of a round, and sends their samples as they were read. Collective.
 */
static tess_status begin_groups(run_rounds *rounds, output_range round, int num)
{
    tess_status status = TESS_OK;
    image_run *run = rounds->run;
    double mark = tess_time_now();
    for (int k = 0; k < num && status == TESS_OK; ++k)
        status = create_group(rounds, round, k);
    TESS_TRY(tess_comm_agree(run->teams.all, status));
    tess_profile_lap(run->profile, TESS_STAGE_EXCHANGE, &mark);
    if (!image_joins_channels(run->opts))
        TESS_TRY(group_images_deal(run, rounds->group, num, round.first, round.end));
cleanup:
    return status;
}

/* Writes the images of the k-th group of a round, unless they could not be `made`, adds
 * them to means, and frees them. A team that cannot write says so before it waits for
 * others. Collective. */
static tess_status end_group(run_rounds *rounds, output_range round, int k,
                             tess_status made)
{
    tess_status status = TESS_OK;
    image_run *run = rounds->run;
    channel_group *group = &rounds->group[k];
    const output_range range = range_of(rounds, round, k);
    double mark;
    status = made == TESS_OK ? group_images_write(run, group) : made;
    mark = tess_time_now();
    TESS_TRY(tess_comm_agree(run->teams.all, status));
    tess_profile_lap(run->profile, TESS_STAGE_REDUCE, &mark);
    tell_made(group->run, range.first, range.end);
    if (image_cubes_end(&run->means, range.first, range.end))
        TESS_TRY(finish_files(rounds));
    TESS_TRY(image_cubes_close(&run->means, range.first, range.end));
    TESS_TRY(add_images(rounds, range.first, range.end, group));
cleanup:
    channel_group_free(group);
    return status;
}

/* Makes the groups of a round, and ends them one after the other. Collective. */
static tess_status make_groups(run_rounds *rounds, output_range round)
{
    tess_status status = TESS_OK;
    image_run *run = rounds->run;
    const int num = count_groups(rounds, round);
    const team_work work = {.group = rounds->group, .num = num};
    const tess_status made = thread_teams_make(&rounds->teams, &work);
    group_images_give_up(run, round.end);
    for (int k = 0; k < num; ++k)
        TESS_TRY(end_group(rounds, round, k, made));
cleanup:
    return status;
}

/* Writes the images of the k-th group of a round of several turns, adds them to the
 * mean or to the sums of this team, and frees them. Collective in the team. */
static tess_status end_in_turn(void *context, int k)
{
    tess_status status = TESS_OK;
    run_rounds *rounds = context;
    channel_group *group = &rounds->group[k];
    image_run *run = group->run;
    double mark;
    if (group->num_channels == 0) return TESS_OK;
    TESS_TRY(group_images_write(run, group));
    mark = tess_time_now();
    if (run->outputs.num_channels > 1)
        status = run->teams.num == 1
                     ? channel_mean_add(run, group->channel->product, &rounds->mean)
                     : channel_mean_add_own(run, group->channel->product, &rounds->own);
    channel_group_free(group);
    status = tess_comm_agree(run->comm, status);
    tess_profile_lap(run->output.profile, TESS_STAGE_REDUCE, &mark);
cleanup:
    return status;
}

/* Completes the mean behind the last channel of an interval. Collective. */
static tess_status end_interval(run_rounds *rounds, int64_t interval)
{
    tess_status status = TESS_OK;
    image_run *run = rounds->run;
    const channel_group none = {0};
    if (run->teams.num > 1)
        TESS_TRY(channel_mean_join(run, &rounds->own, &rounds->mean));
    TESS_TRY(end_mean(rounds, interval, &none));
cleanup:
    return status;
}

/* Makes the groups of a round of several turns. Teams write their images, and add them
 * up, by themselves; all ranks meet behind the last one. Collective. */
static tess_status make_turns(run_rounds *rounds, output_range round)
{
    tess_status status = TESS_OK;
    image_run *run = rounds->run;
    const int64_t channels = run->outputs.num_channels;
    const team_work work = {.group = rounds->group,
                            .num = count_groups(rounds, round),
                            .end = end_in_turn,
                            .context = rounds};
    double mark;
    if (channels > 1) TESS_TRY(channel_mean_start(run, &rounds->mean));
    status = thread_teams_make(&rounds->teams, &work);
    mark = tess_time_now();
    TESS_TRY(tess_comm_agree(run->teams.all, status));
    group_images_give_up(run, round.end);
    tess_profile_lap(run->profile, TESS_STAGE_REDUCE, &mark);
    TESS_TRY(finish_files(rounds));
    tell_files(run, round.first, round.end);
    TESS_TRY(image_cubes_close(&run->means, round.first, round.end));
    if (channels == 1) return TESS_OK;
    for (int64_t k = round.first; k < round.end; ++k)
        imager_extent_join(&rounds->mean.extent, &run->outputs.extent[k]);
    if (round.end % channels == 0)
        TESS_TRY(end_interval(rounds, round.first / channels));
cleanup:
    return status;
}

/* Makes the outputs of a round, side by side. Collective. */
static tess_status make_round(run_rounds *rounds, output_range round)
{
    tess_status status = TESS_OK;
    image_run *run = rounds->run;
    const int num = count_groups(rounds, round);
    double mark;
    if (rounds->teams.team)
        TESS_TRY(image_share_density(run, round.first / run->outputs.num_channels));
    if (rounds->teams.team) TESS_TRY(image_hold_outputs(run, round.first, round.end));
    TESS_TRY(begin_groups(rounds, round, num));
    mark = tess_time_now();
    TESS_TRY(image_cubes_open(&run->means, round.first, round.end));
    tess_profile_lap(run->profile, TESS_STAGE_WRITE, &mark);
    TESS_TRY(rounds->turns > 1 ? make_turns(rounds, round)
                               : make_groups(rounds, round));
cleanup:
    for (int k = 0; k < num; ++k)
        channel_group_free(&rounds->group[k]);
    return status;
}

/* The end of the round that begins with an output. Teams of threads share a density of
 * all channels, and the weights of channels for primary beams, of one interval. Teams
 * that add to its mean as they make channels do not begin the next one either. */
static int64_t round_end(const run_rounds *rounds, int64_t first)
{
    const image_run *run = rounds->run;
    const int64_t channels = run->outputs.num_channels;
    const int64_t at_once =
        image_joins_channels(run->opts)
            ? channels
            : (int64_t)run->teams.num * rounds->teams.num * rounds->turns;
    const bool shares = rounds->teams.team && (run->opts->weights.shared_density ||
                                               run->opts->beside.primary_beam.model);
    const bool one_interval = shares || (rounds->turns > 1 && channels > 1);
    const int64_t end =
        one_interval ? (first / channels + 1) * channels : run->outputs.num;
    return tess_min_i64(first + at_once, end);
}

/* Prepares the first round. Collective. */
static tess_status start(run_rounds *rounds)
{
    tess_status status = TESS_OK;
    image_run *run = rounds->run;
    tess_mem_trim(); /* of what reading has freed */
    TESS_TRY(start_backlog(run));
    status = thread_teams_create(run, &rounds->teams);
    if (status == TESS_OK) {
        const int64_t num = (int64_t)rounds->teams.num * rounds->turns;
        rounds->group = tess_alloc_zero(num, sizeof *rounds->group);
        if (!rounds->group) status = TESS_ERR_ALLOC;
    }
    TESS_TRY(tess_comm_agree(run->teams.all, status));
    TESS_TRY(channel_mean_continue(run, &rounds->mean));
cleanup:
    return status;
}

tess_status group_rounds_make(image_run *run)
{
    tess_status status = TESS_OK;
    const int64_t num = run->outputs.num;
    run_rounds rounds = {.run = run,
                         .turns = run->teams.turns > 1 ? run->teams.turns : 1,
                         .mean = {.extent = imager_extent_empty()}};
    run->checkpoint.mean = rounds.mean.product;
    TESS_TRY(start(&rounds));
    for (int64_t first = image_outputs_done(run), end; first < num; first = end) {
        end = round_end(&rounds, first);
        TESS_TRY(make_round(&rounds, (output_range){first, end}));
        TESS_TRY(image_checkpoint_outputs(&run->checkpoint, end - first));
    }
    TESS_TRY(finish_files(&rounds));
cleanup:
    tess_free(rounds.group);
    thread_teams_free(&rounds.teams);
    channel_mean_free(run, &rounds.own);
    channel_mean_free(run, &rounds.mean);
    return status;
}
