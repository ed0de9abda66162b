/* Sets a run of `image` or `plan` up: options are checked, the observations and the
 * model to subtract are opened, and the outputs are listed. */
#include <math.h>

#include "image_backlog.h"
#include "image_cubes.h"
#include "image_facets.h"
#include "image_mosaic.h"
#include "image_primary_beam.h"
#include "image_run.h"
#include "imager_resources.h"
#include "run_samples.h"
#include "source_axis.h"
#include "tess_backend_choice.h"
#include "tess_calibrate.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_minmax.h"

/* Smallest size of a block of a file, and a block's share of a rank's memory: two
 * blocks are read at a time, while their samples take memory, too. */
enum { SMALLEST_BLOCK_BYTES = 64 << 10 };
static const double BLOCK_SHARE = 1.0 / 16;

static tess_status check_size(const image_run *run)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    const double bytes = 4.0 * (double)opts->nx * (double)opts->ny;
    const double all = (double)run->job.memory.rank_bytes * tess_comm_size(run->comm);
    if (bytes > all)
        TESS_FAIL(
            TESS_ERR_ALLOC,
            "an image of %lld x %lld pixels needs at least %s, of which %s may be "
            "used; use more nodes or a smaller --size",
            (long long)opts->nx, (long long)opts->ny, tess_mem_text(bytes),
            tess_mem_text(all));
cleanup:
    return status;
}

/* The model of --subtract: its Stokes parameters become the polarisations of the
 * samples. With the image's pixels it shares the image's plan. */
static tess_status open_model(image_run *run, imager_model *model)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    const model_name name = {opts->subtract.model, opts->subtract.terms,
                             MODEL_AS_IT_IS};
    if (tess_comm_rank(run->comm) == 0) model_cube_warn_name(&name);
    TESS_TRY(imager_model_open(&name, opts->subtract.pixels, run->info->ra_rad,
                               run->info->dec_rad, opts->scale_rad, model));
    /* its visibilities are subtracted from visibilities that have been turned */
    model->geom.turned_l = run->job.geom.turned_l;
    model->geom.turned_m = run->job.geom.turned_m;
    if (model->cube)
        status = model_cube_check(model->cube, run->info->freq_hz, run->info->num_chan,
                                  tess_comm_rank(run->comm) == 0);
    if (status == TESS_OK && model->cube && tess_comm_rank(run->comm) == 0)
        model_cube_warn_frame(model->cube, opts->channels.axis.frame);
    if (status != TESS_OK) imager_model_close(model);
    TESS_TRY(status);
    imager_model_mix(model, run->pol, run->num_pol, &run->job.model);
cleanup:
    return status;
}

/* Chooses the plan on which the model is predicted: that of the images, unless cleaning
 * needs its planes for its own models. Collective. */
static tess_status place_model(image_run *run, const imager_model *model)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    imager_job *job = &run->job;
    job->model.is_shared =
        !image_is_cleaned(opts) &&
        imager_model_is_on(model, &job->geom, opts->gridding.accuracy);
    if (!job->model.is_shared) {
        TESS_TRY(imager_predictor_create(run->comm, model, &opts->gridding,
                                         &opts->layout, run->profile,
                                         &run->less.predictor));
        run->less.predictor.mix = job->model;
        return TESS_OK;
    }
    run->less.model = *model;
    job->worst_pixel = true;
    imager_model_warn(model, run->comm);
cleanup:
    return status;
}

/* Checks that a checkpoint has room: for channels that are cleaned together it holds a
 * model, a mask and a first residual of each image. */
static tess_status check_checkpoint(const image_run *run)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    const int64_t images = run->num_pol * opts->channels_out;
    if (!opts->checkpoint.folder || !image_joins_channels(opts)) return TESS_OK;
    if (images * (1 + opts->clean.first_residual) + 2 * run->num_pol + TESS_MAX_IMAGES >
        TESS_CHECKPOINT_MEANS)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--checkpoint cannot hold the %lld images that are cleaned together; "
                  "use fewer --channels-out",
                  (long long)images);
cleanup:
    return status;
}

/* WSClean counts the time steps of each observation, and tessera those of all
 * observations together. If these differ, a command line of WSClean asks for other
 * images. */
static tess_status check_steps(const image_run *run)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    const tess_selection *s = &opts->selection;
    const bool counts = opts->intervals_out > 1 || s->interval_first > 0 ||
                        s->interval_end > 0 || s->time_steps != TESS_ALL_STEPS;
    const bool by_field = tess_source_num_readers(run->source) > opts->num_obs;
    if (!opts->beside.as_wsclean || !counts || by_field) return TESS_OK;
    const tess_vis_meta *one = tess_vis_reader_meta(tess_source_reader(run->source, 0));
    for (int k = 1; k < opts->num_obs; ++k) {
        const tess_vis_meta *other =
            tess_vis_reader_meta(tess_source_reader(run->source, k));
        const double apart_s =
            fmax(fabs(one->time_start_mjd_s - other->time_start_mjd_s),
                 fabs(one->time_end_mjd_s - other->time_end_mjd_s));
        if (apart_s > 0.5 * one->integration_s)
            TESS_FAIL(TESS_ERR_USAGE,
                      "%s has other times than %s: WSClean counts time steps in each "
                      "observation, and tessera in all together; image them one by one",
                      other->path, one->path);
    }
cleanup:
    return status;
}

/* Begins the job, as far as it is known before anything is read. Collective. */
static tess_status start_job(image_run *run)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    imager_job *job = &run->job;
    *job = (imager_job){
        .comm = run->comm,
        .layout = &opts->layout,
        .gridding = &opts->gridding,
        .geom = {.nx = opts->nx, .ny = opts->ny, .scale_rad = opts->scale_rad},
        .profile = run->profile};
    TESS_TRY(imager_backend(run->comm, opts->gridding.backend, &job->backend));
    imager_backend_log(opts->gridding.backend, job->backend);
    TESS_TRY(imager_meter(run->comm, job->backend, run->profile));
    TESS_TRY(imager_rank_bytes(run->comm, &opts->layout, &job->memory.rank_bytes));
    TESS_TRY(check_size(run));
cleanup:
    return status;
}

static tess_status choose_pols(image_run *run)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    run->num_pol = image_files_pols(opts, run->pol);
    if (run->num_pol > TESS_MAX_POL)
        TESS_FAIL(TESS_ERR_USAGE, "--stokes asks for %d images; at most %d in one run",
                  run->num_pol, TESS_MAX_POL);
    TESS_TRY(check_checkpoint(run));
    TESS_TRY(image_cubes_check(opts, run->pol, run->num_pol));
cleanup:
    return status;
}

/* What rows of the observations are read for. */
static tess_selection selection_of(const tess_image_opts *opts)
{
    tess_selection selection = opts->selection;
    selection.wanted.less_model = image_subtracts_rows(opts);
    return selection;
}

/* Opens the observations. Collective. */
static tess_status open_source(image_run *run)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    const tess_selection selection = selection_of(opts);
    tess_geom *geom = &run->job.geom;
    if (opts->channels.opened && opts->channels.opened->source) {
        run->source = opts->channels.opened->source;
        opts->channels.opened->source = NULL;
    } else {
        TESS_TRY(tess_source_open(run->comm, opts->obs, opts->num_obs, &selection,
                                  &run->source));
        TESS_TRY(tess_source_regrid(run->source, &opts->channels.axis));
    }
    TESS_TRY(check_steps(run));
    run->info = tess_source_info_of(run->source);
    tess_source_trace(run->source, run->profile->trace);
    /* the middle of the image, to which visibilities are turned: the PSF is that of a
     * source there */
    geom->l0 = geom->turned_l = run->info->turn[0];
    geom->m0 = geom->turned_m = run->info->turn[1];
    run->whole.geom = *geom;
    run->output = (image_files){.comm = run->comm,
                                .opts = opts,
                                .info = run->info,
                                .outputs = &run->outputs,
                                .pol = run->pol,
                                .num_pol = run->num_pol,
                                .profile = run->profile,
                                .summary = &run->summary};
    run->means = run->output;
cleanup:
    return status;
}

/* Finds the factor of --density-frame in the middle of the first observation: 1 if the
 * data are in a frame already. Local. */
static void find_density_stretch(image_run *run)
{
    const tess_spectral_frame frame = run->opts->weights.density_frame;
    const tess_source_info *info = run->info;
    tess_doppler_view view = {
        .path = info->meta->path, .ra_rad = info->ra_rad, .dec_rad = info->dec_rad};
    run->densities.stretch = 1;
    if (frame == TESS_TOPO || info->meta->line.freq_frame[0] ||
        !image_has_density(&run->opts->weights))
        return;
    tess_vis_site(info->meta, view.site_m);
    if (tess_doppler_factor(
            frame, &view,
            (info->meta->time_start_mjd_s + info->meta->time_end_mjd_s) / 2,
            &run->densities.stretch) == TESS_OK)
        return;
    run->densities.stretch = 1;
    if (tess_comm_rank(run->comm) == 0)
        tess_log_warn("--density-frame: cells of the density count the frequencies of "
                      "the data, which cannot be converted");
}

/* Prepares reading, and the model that is subtracted. Collective. */
static tess_status set_up_source(image_run *run)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    const double block_bytes = BLOCK_SHARE * (double)run->job.memory.rank_bytes;
    imager_model model = {0};
    tess_costs kept = tess_costs_builtin;
    int num_held;
    const tess_pol *held = image_held_pols(run, &num_held);
    run->block_bytes =
        tess_clamp_i64((int64_t)block_bytes, SMALLEST_BLOCK_BYTES, TESS_BLOCK_BYTES);
    if (opts->layout.calibrate)
        TESS_TRY(tess_calibrate_kept(run->comm, opts->layout.threads, &kept));
    status = tess_source_setup(
        run->source, held, num_held, 0.5 / opts->scale_rad, image_is_double(run),
        tess_costs_threads(&kept, TESS_TRAFFIC_READ, opts->layout.threads),
        run->block_bytes);
    /* a sample has one weight for all that patches make of its values */
    if (run->whole.patches) tess_source_share_weights(run->source);
    run->chan_wanted = tess_alloc_zero(run->info->num_chan, sizeof *run->chan_wanted);
    if (status == TESS_OK && !run->chan_wanted) status = TESS_ERR_ALLOC;
    if (status == TESS_OK && image_subtracts(opts)) status = open_model(run, &model);
    status = tess_comm_agree(run->comm, status);
    if (status != TESS_OK) imager_model_close(&model);
    TESS_TRY(status);
    if (image_subtracts(opts)) TESS_TRY(place_model(run, &model));
    if (image_is_cleaned(opts)) imager_model_expect(&run->job, run->pol, run->num_pol);
cleanup:
    return status;
}

/* Makes the table of outputs, and what is kept of each. Collective. */
static tess_status create_outputs(image_run *run)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    TESS_TRY(tess_source_choose_steps(run->source));
    TESS_TRY(output_table_create(run->comm, run->source, &opts->selection,
                                 opts->channels_out, opts->intervals_out,
                                 &opts->channels.division, &run->outputs));
    status = image_found_create(&run->outputs, run->num_pol, &run->summary);
    if (status == TESS_OK && opts->beside.cube && opts->output)
        status = image_cubes_create(&run->output, &run->means.cubes);
    run->output.cubes = run->means.cubes;
    TESS_TRY(tess_comm_agree(run->comm, status));
    run->job.ranks.num_outputs = run->outputs.num;
cleanup:
    return status;
}

tess_status tess_imager_take_axis(tess_comm *comm, tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    tess_opened_source *opened = NULL;
    const tess_selection selection = selection_of(opts);
    if (!opts->channels.axis.given) return TESS_OK;
    opts->channels_out = opts->channels.axis.num_chan;
    if (opts->channels_out > 0) return TESS_OK;
    opened = opts->channels.opened = tess_alloc_zero(1, sizeof *opened);
    TESS_TRY(tess_comm_agree(comm, opened ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(
        tess_source_open(comm, opts->obs, opts->num_obs, &selection, &opened->source));
    TESS_TRY(tess_source_regrid(opened->source, &opts->channels.axis));
    opts->channels_out = tess_source_info_of(opened->source)->axis->num;
cleanup:
    return status;
}

void tess_imager_drop_axis(tess_image_opts *opts)
{
    if (opts->channels.opened) tess_source_close(opts->channels.opened->source);
    tess_free(opts->channels.opened);
    opts->channels.opened = NULL;
}

/* What will be read, and the output channels of --frame. */
static void tell_data(const image_run *run)
{
    char axis[128];
    tess_log_info("%lld rows x %lld channels in %d observation%s",
                  (long long)run->info->num_rows,
                  (long long)(run->info->num_vis / run->info->num_rows),
                  run->opts->num_obs, run->opts->num_obs == 1 ? "" : "s");
    if (!run->info->axis) return;
    channel_axis_text(run->info->axis, axis, sizeof axis);
    tess_log_info("axis: %s", axis);
}

tess_status image_set_up(image_run *run)
{
    tess_status status = TESS_OK;
    TESS_TRY(image_mosaic_check(run->opts));
    TESS_TRY(image_facets_check(run->opts, run->holds.stay));
    TESS_TRY(start_job(run));
    TESS_TRY(choose_pols(run));
    TESS_TRY(open_source(run));
    find_density_stretch(run);
    TESS_TRY(image_facets_open(run));
    TESS_TRY(image_mosaic_open(run));
    TESS_TRY(set_up_source(run));
    TESS_TRY(create_outputs(run));
    tell_data(run);
cleanup:
    return status;
}

void image_free_run(image_run *run)
{
    image_backlog_destroy(tess_comm_rank(run->comm) == 0, run->output.backlog);
    imager_job_free(&run->job);
    tess_comm_free(run->job.alone);
    imager_predictor_free(&run->less.predictor);
    tess_density_destroy(run->densities.single);
    tess_density_destroy(run->densities.shared);
    image_checkpoint_free(&run->checkpoint);
    output_table_free(&run->outputs);
    tess_source_close(run->source);
    tess_samples_free(&run->all);
    sample_parts_free(&run->parts);
    parted_spool_destroy(run->holds.parted);
    tess_free(run->chan_wanted);
    tess_free(run->output.sources.text);
    tess_free(run->means.sources.text);
    image_cubes_destroy(run->means.cubes);
    image_primary_beam_free(run->output.primary_beam);
    image_facets_free(run->whole.facets);
    image_mosaic_free(run->whole.mosaic);
    image_found_free(&run->summary);
    imager_teams_free(&run->teams);
}
