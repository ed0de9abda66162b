/* Runs `tessera image`: plans the run, and makes the images of one output after
 * another.
 */
#define _GNU_SOURCE
#include "tess_imager.h"

#include <string.h>

#include "channel_group.h"
#include "channel_mean.h"
#include "clean_inputs.h"
#include "device_share.h"
#include "horizon_mask.h"
#include "image_backlog.h"
#include "image_cubes.h"
#include "image_output.h"
#include "image_primary_beam.h"
#include "image_run.h"
#include "image_teams.h"
#include "imager_rows.h"
#include "imager_stages.h"
#include "imager_window.h"
#include "imaging_weights.h"
#include "majors.h"
#include "run_samples.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_profile_report.h"
#include "update_model.h"
#include "visset.h"

/* ---- one output ---- */

static void free_products(imager_product *product, int count)
{
    for (int k = 0; k < count; ++k)
        imager_rows_free(&product[k].rows);
}

/* Reads the model that is subtracted, once for all outputs. Collective. */
static tess_status load_model(image_run *run)
{
    tess_status status = TESS_OK;
    imager_job_model *to = &run->job.model;
    double mark = tess_time_now();
    if (!to->is_shared || to->is_set) return TESS_OK;
    TESS_TRY(imager_model_load(&run->job, &run->model, to->planes));
    to->scale = run->model.scale;
    to->is_set = true;
    tess_profile_lap(run->profile, TESS_STAGE_CORRECT, &mark);
cleanup:
    return status;
}

/* Makes products of gridded images, for a run that does not clean. */
static void take_made(const image_run *run, imager_product *made,
                      imager_product *product)
{
    const int skipped = run->num_pol - run->output.kinds.num[IMAGE_DIRTY];
    const int num = run->job.num_images - skipped;
    memcpy(product, made + skipped, (size_t)num * sizeof *made);
    memset(made + skipped, 0, (size_t)num * sizeof *made);
}

/* Makes products of the images that have been made, and cleans them if the run cleans.
 * Collective in the team. */
static tess_status finish_products(image_run *run, int64_t output, visset *set,
                                   imager_product *made, imager_product *product,
                                   struct imager_found *found)
{
    tess_status status = TESS_OK;
    majors_channel channel = {.output = output,
                              .has_data = true,
                              .set = set,
                              .made = made,
                              .product = product,
                              .found = found,
                              .freq_hz = visset_freq_hz(set)};
    if (image_is_cleaned(run->opts))
        TESS_TRY(majors_clean(run, &channel, 1, NULL));
    else
        take_made(run, made, product);
    TESS_TRY(image_primary_beam_make(run, output, product));
cleanup:
    return status;
}

/* Makes the products of one output, from `dealt` samples if there are such, which are
 * freed. found[num_pol]: the beam, and how they were cleaned. Collective in the team.
 */
static tess_status make_products(image_run *run, int64_t output, tess_samples *dealt,
                                 imager_product *product, struct imager_found *found)
{
    tess_status status = TESS_OK;
    sample_sets data = {.cached = *dealt};
    tess_density *density = NULL;
    imager_product made[TESS_MAX_IMAGES] = {0};
    visset set = {0};
    const bool cleans = image_is_cleaned(run->opts);
    const visset_request request = {.psf = run->opts->make_psf,
                                    .less_model = run->job.model.is_shared && !cleans};
    double variance[2 * TESS_MAX_POL] = {0};
    const imager_stages stages = {.comm = run->comm,
                                  .folder = run->opts->beside.dump_stages,
                                  .interval = output / run->outputs.num_channels,
                                  .channel = output % run->outputs.num_channels};
    *dealt = (tess_samples){0};
    if (run->outputs.extent[output].num_vis == 0) {
        image_data_free(&data);
        return image_empty_products(run, product);
    }
    TESS_TRY(image_share_density(run, output / run->outputs.num_channels));
    TESS_TRY(image_weighted_data(run, output, &data, variance, &density));
    TESS_TRY(visset_create(&run->job, &data, !cleans, &stages, &set));
    if (!cleans) TESS_TRY(load_model(run));
    TESS_TRY(visset_image(&set, &request, &stages, made));
    TESS_TRY(image_measure_made(run, output, variance, made, found));
    TESS_TRY(finish_products(run, output, &set, made, product, found));
cleanup:
    free_products(made, TESS_MAX_IMAGES);
    visset_free(&set);
    imager_bookmark_forget(&run->checkpoint.bookmark, IMAGER_DENSITY);
    tess_density_destroy(density);
    image_data_free(&data);
    return status;
}

/* ---- all outputs ---- */

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
    if (run->teams.num > 1) status = tess_comm_agree(run->teams.all, status);
    TESS_TRY(status);
    tess_profile_lap(run->profile, TESS_STAGE_WRITE, &mark);
    tell_round(run, 0, 0);
cleanup:
    return status;
}

/* Completes and writes the mean of an interval. Collective. */
static tess_status end_mean(image_run *run, int64_t interval, channel_mean *mean)
{
    tess_status status = TESS_OK;
    struct imager_found found[TESS_MAX_POL] = {0};
    TESS_TRY(finish_files(run)); /* the mean's files are the last ones of a run */
    TESS_TRY(channel_mean_finish(run, interval, mean, found));
    TESS_TRY(channel_mean_write(run, interval, mean, found));
cleanup:
    return status;
}

/* Adds a round's images, outputs [first, end) in order, to the means. Collective. */
static tess_status add_round(image_run *run, int64_t first, int64_t end,
                             const imager_product *product, channel_mean *mean)
{
    tess_status status = TESS_OK;
    const int64_t channels = run->outputs.num_channels, own = first + run->teams.own;
    imager_round round = {0};
    double mark = tess_time_now();
    if (channels == 1) return TESS_OK;
    if (run->teams.num > 1)
        TESS_TRY(imager_teams_collect(&run->teams, own < end ? own : -1,
                                      run->job.geom.ny, product,
                                      image_kinds_all(&run->means.kinds), &round));
    for (int64_t k = first; k < end; ++k) {
        TESS_TRY(channel_mean_start(run, mean));
        if (run->teams.num > 1)
            imager_round_add(&run->teams, &round, (int)(k - first),
                             run->opts->layout.threads, mean->product);
        else
            channel_mean_add(run, product, mean);
        imager_extent_join(&mean->extent, &run->outputs.extent[k]);
        tess_profile_lap(run->profile, TESS_STAGE_REDUCE, &mark);
        if ((k + 1) % channels == 0) TESS_TRY(end_mean(run, k / channels, mean));
        mark = tess_time_now();
    }
cleanup:
    imager_round_free(&round);
    return status;
}

/* Makes and writes this team's output of a round. Collective in the team. */
static tess_status make_output(image_run *run, int64_t output, tess_samples *dealt,
                               imager_product *product)
{
    tess_status status = TESS_OK;
    const int64_t channels = run->outputs.num_channels;
    struct imager_found found[TESS_MAX_POL] = {0};
    TESS_TRY(make_products(run, output, dealt, product, found));
    TESS_TRY(image_files_write(&run->output, output / channels, output % channels,
                               product, &run->outputs.extent[output], found));
cleanup:
    return status;
}

/* Makes one output with each team: [first, end). Collective. */
static tess_status image_round(image_run *run, int64_t first, int64_t end,
                               channel_mean *mean)
{
    tess_status status = TESS_OK;
    const int64_t own = first + run->teams.own;
    imager_product product[TESS_MAX_IMAGES] = {0};
    tess_samples dealt = {0};
    double mark = tess_time_now();
    if (run->teams.num > 1 && run->mode == DATA_CACHED)
        TESS_TRY(imager_teams_deal(&run->teams, &run->outputs, first, &run->all,
                                   run->row_time, &dealt));
    tess_profile_lap(run->profile, TESS_STAGE_EXCHANGE, &mark);
    TESS_TRY(image_cubes_open(&run->means, first, end));
    status = own < end ? make_output(run, own, &dealt, product)
                       : image_backlog_finish(run->comm, run->output.backlog);
    if (run->teams.num > 1) TESS_TRY(tess_comm_agree(run->teams.all, status));
    TESS_TRY(status);
    tell_round(run, first, end);
    if (image_cubes_end(&run->means, first, end)) TESS_TRY(finish_files(run));
    TESS_TRY(image_cubes_close(&run->means, first, end));
    TESS_TRY(add_round(run, first, end, product, mean));
cleanup:
    tess_samples_free(&dealt);
    image_backlog_keep_products(run->output.backlog, product, TESS_MAX_IMAGES);
    return status;
}

/* Takes up the means of a run that continues in the middle of an interval. */
static tess_status continue_mean(image_run *run, channel_mean *mean)
{
    tess_status status = TESS_OK;
    const imager_checkpoint *checkpoint = &run->checkpoint;
    const int64_t done = image_outputs_done(run), channels = run->outputs.num_channels;
    int64_t row_first, num_rows;
    for (int64_t k = done - done % channels; k < done; ++k)
        imager_extent_join(&mean->extent, &run->outputs.extent[k]);
    run->checkpoint.means_wait = false;
    if (done % channels == 0 || checkpoint->state.num_mean == 0) return TESS_OK;
    channel_mean_rows(run, &row_first, &num_rows);
    mean->started = true;
    run->checkpoint.num_mean = image_kinds_all(&run->means.kinds);
    status = imager_checkpoint_mean(checkpoint, row_first, num_rows, mean->product);
    return tess_comm_agree(run->teams.all, status);
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

static tess_status image_outputs(image_run *run)
{
    tess_status status = TESS_OK;
    channel_mean mean = {.extent = imager_extent_empty()};
    run->checkpoint.mean = mean.product;
    TESS_TRY(start_backlog(run));
    TESS_TRY(continue_mean(run, &mean));
    for (int64_t first = image_outputs_done(run), end; first < run->outputs.num;
         first = end) {
        if (image_joins_channels(run->opts)) {
            end = first + run->outputs.num_channels;
            TESS_TRY(image_joined(run, first / run->outputs.num_channels, &mean));
            TESS_TRY(imager_checkpoint_outputs(&run->checkpoint, end - first));
            continue;
        }
        end = first + run->teams.num;
        if (end > run->outputs.num) end = run->outputs.num;
        TESS_TRY(image_round(run, first, end, &mean));
        TESS_TRY(imager_checkpoint_outputs(&run->checkpoint, end - first));
    }
    TESS_TRY(finish_files(run));
cleanup:
    free_products(mean.product, TESS_MAX_IMAGES);
    return status;
}

/* Logs the last lines, after those of the profile. Collective. */
static tess_status tell_end(image_run *run)
{
    tess_status status = TESS_OK;
    tess_comm *all = run->teams.all;
    tess_profile_stop_meter(run->profile);
    run->profile->stage_bytes[TESS_STAGE_READ] += tess_source_bytes(run->source);
    imager_job_note_held(&run->job);
    TESS_TRY(tess_profile_summary(all, run->profile));
    TESS_TRY(imager_summary_tell(all, &run->means, &run->counts));
cleanup:
    return status;
}

/* Refuses files that cannot be read or written, before data are read. Collective. */
static tess_status check_files(image_run *run)
{
    tess_status status = TESS_OK;
    TESS_TRY(image_files_check(&run->output));
    TESS_TRY(clean_inputs_check(run));
    TESS_TRY(tess_comm_agree(run->comm, update_model_check(run)));
    TESS_TRY(tess_comm_agree(run->comm, imaging_weights_check(run)));
    TESS_TRY(image_primary_beam_open(run));
    TESS_TRY(imager_stages_start(run->comm, run->opts->beside.dump_stages,
                                 run->opts->overwrite));
    TESS_TRY(tess_comm_agree(run->comm, tess_log_keep()));
cleanup:
    return status;
}

/* Reads the data a first time, and plans the rest. Collective. */
static tess_status plan(image_run *run)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    TESS_TRY(image_first_pass(run));
    if (image_joins_channels(opts))
        TESS_TRY(image_check_kept(run, run->mode == DATA_CACHED,
                                  "cleaning channels together"));
    TESS_TRY(image_check_ignored(run));
    if (tess_comm_rank(run->comm) == 0) output_table_warn(&run->outputs);
    TESS_TRY(imager_job_plan(&run->job));
    TESS_TRY(device_share_choose(&run->job));
    run->output.kinds = run->means.kinds =
        image_kinds_of(opts, run->num_pol, image_num_psf(run));
    if (opts->checkpoint.folder)
        TESS_TRY(imager_checkpoint_plan(&run->checkpoint, &run->job,
                                        image_kinds_all(&run->output.kinds)));
    TESS_TRY(image_form_teams(run, run->mode == DATA_CACHED));
    TESS_TRY(imager_tell_need(&run->job, imager_base_bytes(&run->job) +
                                             imager_samples_bytes(&run->all) +
                                             imager_finishing_bytes(&run->job)));
    if (opts->checkpoint.folder && run->teams.num == 1 && !image_joins_channels(opts))
        imager_checkpoint_keep(&run->checkpoint, &run->job);
cleanup:
    return status;
}

/* Unfinished cubes stay for the run that goes on from a checkpoint. */
static tess_status save_cubes(void *context)
{
    return image_cubes_save(context);
}

static void keep_cubes(image_run *run)
{
    if (!run->means.cubes || !run->opts->checkpoint.folder) return;
    image_cubes_keep(run->means.cubes, run->opts->checkpoint.identity,
                     image_outputs_done(run));
    imager_checkpoint_settles(&run->checkpoint, save_cubes, &run->means);
}

tess_status tess_imager_image(tess_comm *comm, const tess_image_opts *opts,
                              tess_profile *profile)
{
    tess_status status = TESS_OK;
    tess_image_opts own = *opts;
    image_run run = {.comm = comm,
                     .opts = &own,
                     .profile = profile,
                     .holds = {image_is_cleaned(opts), image_joins_channels(opts)},
                     .teams = {.all = comm, .num = 1}};
    run.output.comm = comm;
    TESS_TRY(image_set_up(&run));
    if (own.clean.only_model) {
        TESS_TRY(update_model_alone(&run));
        goto cleanup;
    }
    TESS_TRY(imager_checkpoint_start(comm, &own, profile, &run.checkpoint));
    own.overwrite = own.overwrite ||
                    run.checkpoint.resumed; /* files that exist are the run's own */
    keep_cubes(&run);
    TESS_TRY(check_files(&run));
    TESS_TRY(plan(&run));
    TESS_TRY(image_outputs(&run));
    TESS_TRY(horizon_mask_write(&run));
    if (image_writes_columns(&own)) TESS_TRY(imager_checkpoint_images(&run.checkpoint));
    if (own.clean.update_model) TESS_TRY(update_model(&run));
    if (own.beside.weights) TESS_TRY(imaging_weights_store(&run));
    imager_checkpoint_finish(&run.checkpoint);
    TESS_TRY(tell_end(&run));
cleanup:
    tess_profile_stop_meter(profile);
    clean_inputs_free(&run);
    image_free_run(&run);
    return status;
}
