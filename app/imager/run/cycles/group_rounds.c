/* Makes the groups of channels round after round, tells the log of their files, and
 * adds their images to the means of intervals. */

#include <string.h>

#include "channel_group.h"
#include "channel_mean.h"
#include "image_backlog.h"
#include "image_cubes.h"
#include "image_names.h"
#include "spectral_maps.h"
#include "tess_log.h"
#include "tess_minmax.h"

/* ---- files ---- */

/* Tells the log of the files of outputs [first, end). */
static void tell_files(const image_run *run, int64_t first, int64_t end)
{
    const int64_t channels = run->outputs.num_channels;
    for (int64_t k = first; k < end; ++k)
        image_files_log(&run->output, k / channels, k % channels);
}

/* Tells the log of a round's files: at once, or when they have their names. Those of
 * the round before have them now. */
static void tell_round(image_run *run, int64_t first, int64_t end)
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
static tess_status finish_files(image_run *run)
{
    tess_status status = TESS_OK;
    double mark = tess_time_now();
    status = image_backlog_finish(run->comm, run->output.backlog);
    TESS_TRY(tess_comm_agree(run->teams.all, status));
    tess_profile_lap(run->profile, TESS_STAGE_WRITE, &mark);
    tell_round(run, 0, 0);
cleanup:
    return status;
}

/* With a device, processors have little else to do while images are made. Collective.
 */
static tess_status start_backlog(image_run *run)
{
    tess_status status = TESS_OK;
    const int threads = run->job.backend->start ? run->opts->layout.threads : 1;
    if (!run->opts->output || !(run->job.memory.backlog_bytes > 0)) return TESS_OK;
    status = image_backlog_create(threads, &run->output.backlog);
    TESS_TRY(tess_comm_agree(run->teams.all, status));
    tess_log_detail("files are written while the images of the next output are made");
cleanup:
    return status;
}

/* ---- means ---- */

/* Completes and writes the mean of an interval. Channels that were cleaned together
 * have a mean that is restored, and spectra. Collective. */
static tess_status end_mean(image_run *run, int64_t interval,
                            const channel_group *group, channel_mean *mean)
{
    tess_status status = TESS_OK;
    struct image_found found[TESS_MAX_POL] = {0};
    if (group->num_channels > 1)
        memcpy(found, channel_group_first(group)->found, sizeof found);
    TESS_TRY(finish_files(run)); /* the mean's files are the last ones of a run */
    TESS_TRY(channel_mean_finish(run, interval, mean, found));
    if (image_has_sources(run->opts, -1))
        TESS_TRY(mean_sources_finish(run, interval, &mean->sources));
    if (found[0].majors > 0) TESS_TRY(spectral_maps_make(group, found, &run->means));
    TESS_TRY(channel_mean_write(run, interval, mean, found));
cleanup:
    spectral_maps_free(&run->means);
    return status;
}

/* Adds the images of a round, outputs [first, end) in order, to the means. All ranks
 * have rows of the group that they share; those of groups of teams are collected.
 * Collective. */
static tess_status add_round(image_run *run, int64_t first, int64_t end,
                             const channel_group *group, channel_mean *mean)
{
    tess_status status = TESS_OK;
    const int64_t channels = run->outputs.num_channels;
    const imager_product none[TESS_MAX_IMAGES] = {0};
    const bool has = group->num_channels > 0;
    const bool collects = run->teams.num > 1 && !image_shares_channels(run);
    imager_round round = {0};
    double mark = tess_time_now();
    if (channels == 1) return TESS_OK;
    if (collects)
        TESS_TRY(imager_teams_collect(&run->teams, has ? group->first_output : -1,
                                      run->job.geom.ny,
                                      has ? group->channel[0].product : none,
                                      image_kinds_all(&run->means.kinds), &round));
    for (int64_t k = first; k < end; ++k) {
        TESS_TRY(channel_mean_start(run, mean));
        if (collects)
            status = imager_round_add(&run->teams, &round, (int)(k - first),
                                      run->opts->layout.threads, mean->product);
        else
            status = channel_mean_add(run, group->channel[k - first].product, mean);
        TESS_TRY(tess_comm_agree(run->teams.all, status));
        if (image_has_sources(run->opts, -1))
            TESS_TRY(mean_sources_add(run, k, &mean->sources));
        imager_extent_join(&mean->extent, &run->outputs.extent[k]);
        tess_profile_lap(run->profile, TESS_STAGE_REDUCE, &mark);
        if ((k + 1) % channels == 0) TESS_TRY(end_mean(run, k / channels, group, mean));
        mark = tess_time_now();
    }
cleanup:
    imager_round_free(&round);
    return status;
}

/* ---- rounds ---- */

/* Makes outputs [first, end): the group that all ranks share, or one channel alone by
 * each team, which is sent its samples as they were read. Collective. */
static tess_status make_round(image_run *run, int64_t first, int64_t end,
                              channel_mean *mean)
{
    tess_status status = TESS_OK;
    const bool joined = image_joins_channels(run->opts);
    const int64_t own = joined ? first : first + run->teams.own;
    const int num = joined ? (int)(end - first) : own < end;
    channel_group group = {0};
    status = channel_group_create(run, own, num, &group);
    TESS_TRY(tess_comm_agree(run->teams.all, status));
    if (!joined) TESS_TRY(group_images_deal(&group, first, end));
    TESS_TRY(image_cubes_open(&run->means, first, end));
    status = group_images_make(&group);
    TESS_TRY(tess_comm_agree(run->teams.all, status));
    tell_round(run, first, end);
    if (image_cubes_end(&run->means, first, end)) TESS_TRY(finish_files(run));
    TESS_TRY(image_cubes_close(&run->means, first, end));
    TESS_TRY(add_round(run, first, end, &group, mean));
cleanup:
    channel_group_free(&group);
    return status;
}

tess_status group_rounds_make(image_run *run)
{
    tess_status status = TESS_OK;
    const output_table *outputs = &run->outputs;
    const int64_t at_once =
        image_joins_channels(run->opts) ? outputs->num_channels : run->teams.num;
    channel_mean mean = {.extent = imager_extent_empty()};
    run->checkpoint.mean = mean.product;
    TESS_TRY(start_backlog(run));
    TESS_TRY(channel_mean_continue(run, &mean));
    for (int64_t first = image_outputs_done(run), end; first < outputs->num;
         first = end) {
        end = tess_min_i64(first + at_once, outputs->num);
        TESS_TRY(make_round(run, first, end, &mean));
        TESS_TRY(image_checkpoint_outputs(&run->checkpoint, end - first));
    }
    TESS_TRY(finish_files(run));
cleanup:
    channel_mean_free(run, &mean);
    return status;
}
