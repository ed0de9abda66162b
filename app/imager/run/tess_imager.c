/* Runs `tessera image`: sets the run up, reads the data and plans, makes all groups of
 * channels, and writes columns. */
#define _GNU_SOURCE
#include "tess_imager.h"

#include "channel_group.h"
#include "clean_inputs.h"
#include "first_facets.h"
#include "image_cubes.h"
#include "image_facets.h"
#include "image_place.h"
#include "image_primary_beam.h"
#include "image_run.h"
#include "image_teams.h"
#include "imager_stages.h"
#include "imager_window.h"
#include "imaging_weights.h"
#include "majors.h"
#include "run_samples.h"
#include "subtracted_rows.h"
#include "tess_device_comm.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_profile_report.h"
#include "update_model.h"

/* Tells what of the images that are cleaned has come from other devices. */
static void tell_moved(const tess_device_comm *devices)
{
    const int64_t moved = devices ? tess_device_comm_moved(devices) : 0;
    if (moved > 0)
        tess_log_detail("%s of images came to this GPU %s",
                        tess_mem_text((double)moved), tess_device_comm_text(devices));
}

/* Logs the last lines, after those of the profile. Collective. */
static tess_status tell_end(image_run *run)
{
    tess_status status = TESS_OK;
    tess_comm *all = run->teams.all;
    tess_profile_stop_meter(run->profile);
    run->profile->stage_bytes[TESS_STAGE_READ] += tess_source_bytes(run->source);
    imager_job_note_held(&run->job);
    if (run->opts->beside.is_first) return TESS_OK;
    tell_moved(run->job.ranks.devices);
    TESS_TRY(tess_profile_summary(all, run->profile));
    TESS_TRY(image_summary_tell(all, &run->means, &run->counts));
cleanup:
    return status;
}

/* Refuses files that cannot be read or written, before data are read. Collective. */
static tess_status check_files(image_run *run)
{
    tess_status status = TESS_OK;
    TESS_TRY(image_files_check(&run->output));
    TESS_TRY(clean_inputs_check(run));
    majors_warn_of_options(run);
    TESS_TRY(tess_comm_agree(run->comm, update_model_check(run)));
    TESS_TRY(tess_comm_agree(run->comm, imaging_weights_check(run)));
    TESS_TRY(image_primary_beam_open(run));
    TESS_TRY(clean_inputs_check_beam(run));
    TESS_TRY(imager_stages_start(run->comm, run->opts->beside.dump_stages,
                                 run->opts->overwrite));
    TESS_TRY(image_facets_publish(run));
    TESS_TRY(tess_comm_agree(run->comm, tess_log_keep()));
cleanup:
    return status;
}

/* Reads the data a first time, and plans the rest. Collective. */
static tess_status plan(image_run *run)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    image_place_expect(run);
    TESS_TRY(image_read_and_plan(
        run, image_joins_channels(opts) ? "cleaning channels together" : NULL));
    run->output.kinds = run->means.kinds =
        image_kinds_of(opts, run->num_pol, image_num_psf(run));
    const image_checkpoint_makes images = {&run->job, &run->whole.geom,
                                           run->whole.patches != NULL};
    if (opts->checkpoint.folder)
        TESS_TRY(image_checkpoint_plan(&run->checkpoint, &images,
                                       image_kinds_all(&run->output.kinds)));
    TESS_TRY(image_form_teams(run, run->mode == DATA_CACHED));
    TESS_TRY(image_place_choose(run));
    TESS_TRY(imager_tell_need(&run->job, imager_base_bytes(&run->job) +
                                             imager_samples_bytes(&run->all) +
                                             imager_finishing_bytes(&run->job)));
    if (opts->checkpoint.folder && run->teams.num == 1 &&
        run->teams.of_threads.num <= 1 && !image_joins_channels(opts))
        image_checkpoint_keep(&run->checkpoint, &run->job);
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
    image_checkpoint_settles(&run->checkpoint, save_cubes, &run->means);
}

tess_status tess_imager_image(tess_comm *comm, const tess_image_opts *opts,
                              tess_profile *profile)
{
    tess_status status = TESS_OK;
    tess_image_opts own = *opts;
    double mark = tess_time_now();
    image_run run = {.comm = comm,
                     .opts = &own,
                     .profile = profile,
                     .holds = {.together = image_joins_channels(opts)},
                     .teams = {.all = comm, .num = 1}};
    first_facets first = {0};
    run.output.comm = comm;
    TESS_TRY(first_facets_find(comm, &own, tess_imager_image, &first));
    tess_progress_run(true);
    TESS_TRY(image_set_up(&run));
    tess_profile_lap(profile, TESS_STAGE_READ, &mark); /* what the files hold */
    if (own.clean.only_model) {
        TESS_TRY(update_model_alone(&run));
        goto cleanup;
    }
    TESS_TRY(image_checkpoint_start(comm, &own, profile, &run.checkpoint));
    own.overwrite = own.overwrite ||
                    run.checkpoint.resumed; /* files that exist are the run's own */
    keep_cubes(&run);
    TESS_TRY(check_files(&run));
    TESS_TRY(subtracted_rows_make(&run));
    TESS_TRY(plan(&run));
    TESS_TRY(common_beams_find(&run));
    TESS_TRY(group_rounds_make(&run));
    TESS_TRY(horizon_mask_write(&run));
    if (image_writes_columns(&own)) TESS_TRY(image_checkpoint_images(&run.checkpoint));
    if (own.clean.update_model) TESS_TRY(update_model(&run));
    if (own.beside.weights) TESS_TRY(imaging_weights_store(&run));
    image_checkpoint_finish(&run.checkpoint);
    TESS_TRY(tell_end(&run));
cleanup:
    tess_progress_run(false);
    tess_profile_stop_meter(profile);
    clean_inputs_free(&run);
    image_free_run(&run);
    first_facets_free(&first);
    return status;
}
