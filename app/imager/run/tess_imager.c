/* Runs `tessera image`: sets the run up, forms teams of ranks, and makes the images of
 * one output after another. */
#define _GNU_SOURCE
#include "tess_imager.h"

#include <math.h>
#include <string.h>

#include "channel_mean.h"
#include "clean_inputs.h"
#include "continued_models.h"
#include "device_share.h"
#include "image_cubes.h"
#include "image_joined.h"
#include "image_output.h"
#include "image_primary_beam.h"
#include "image_run.h"
#include "imager_resources.h"
#include "imager_rows.h"
#include "imager_stages.h"
#include "imager_window.h"
#include "imaging_weights.h"
#include "majors.h"
#include "run_samples.h"
#include "tess_backend_choice.h"
#include "tess_calibrate.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_minmax.h"
#include "tess_profile_report.h"
#include "tess_scale.h"
#include "update_model.h"
#include "visset.h"

/* Smallest size of a block of a file, and a block's share of a rank's memory: two
 * blocks are read at a time, while their samples take memory, too. */
enum { SMALLEST_BLOCK_BYTES = 64 << 10 };
static const double BLOCK_SHARE = 1.0 / 16;

/* ---- set-up ---- */

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
    TESS_TRY(imager_model_open(opts->subtract.model, opts->subtract.terms,
                               opts->subtract.pixels, run->info->ra_rad,
                               run->info->dec_rad, opts->scale_rad, model));
    /* its visibilities are subtracted from visibilities that have been turned */
    model->geom.turned_l = run->job.geom.turned_l;
    model->geom.turned_m = run->job.geom.turned_m;
    if (model->cube)
        status = model_cube_check(model->cube, run->info->freq_hz, run->info->num_chan,
                                  tess_comm_rank(run->comm) == 0);
    if (status != TESS_OK) imager_model_close(model);
    TESS_TRY(status);
    imager_model_mix(model, run->pol, run->num_pol, &run->job.model);
cleanup:
    return status;
}

/* Chooses the plan on which the model is predicted. Collective. */
static tess_status place_model(image_run *run, const imager_model *model)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    imager_job *job = &run->job;
    job->model.is_shared =
        imager_model_is_on(model, &job->geom, opts->gridding.accuracy);
    if (!job->model.is_shared) {
        TESS_TRY(imager_predictor_create(run->comm, model, &opts->gridding,
                                         &opts->layout, run->profile, &run->subtract));
        return TESS_OK;
    }
    run->model = *model;
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
    if (images * (1 + opts->clean.first_residual) + run->num_pol + TESS_MAX_IMAGES >
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
    run->num_pol = tess_pol_expand(opts->pol, opts->num_pol, run->pol);
    if (run->num_pol > TESS_MAX_POL)
        TESS_FAIL(TESS_ERR_USAGE, "--stokes asks for %d images; at most %d in one run",
                  run->num_pol, TESS_MAX_POL);
    TESS_TRY(check_checkpoint(run));
    TESS_TRY(image_cubes_check(opts, run->pol, run->num_pol));
cleanup:
    return status;
}

/* Opens the observations. Collective. */
static tess_status open_source(image_run *run)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    tess_geom *geom = &run->job.geom;
    TESS_TRY(tess_source_open(run->comm, opts->obs, opts->num_obs, &opts->selection,
                              &run->source));
    TESS_TRY(check_steps(run));
    run->info = tess_source_info_of(run->source);
    tess_source_trace(run->source, run->profile->trace);
    /* the middle of the image, to which visibilities are turned: the PSF is that of a
     * source there */
    geom->l0 = geom->turned_l = run->info->turn[0];
    geom->m0 = geom->turned_m = run->info->turn[1];
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

/* Prepares reading, and the model that is subtracted. Collective. */
static tess_status set_up_source(image_run *run)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    const double block_bytes = BLOCK_SHARE * (double)run->job.memory.rank_bytes;
    imager_model model = {0};
    tess_costs kept = tess_costs_builtin;
    run->block_bytes =
        tess_clamp_i64((int64_t)block_bytes, SMALLEST_BLOCK_BYTES, TESS_BLOCK_BYTES);
    if (opts->layout.calibrate)
        TESS_TRY(tess_calibrate_kept(run->comm, opts->layout.threads, &kept));
    status = tess_source_setup(
        run->source, run->pol, run->num_pol, 0.5 / opts->scale_rad,
        image_is_double(run),
        tess_costs_threads(&kept, TESS_TRAFFIC_READ, opts->layout.threads),
        run->block_bytes);
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
                                 &run->outputs));
    status = imager_summary_create(&run->outputs, run->num_pol, &run->summary);
    if (status == TESS_OK && opts->beside.cube && opts->output)
        status = image_cubes_create(&run->output, &run->means.cubes);
    run->output.cubes = run->means.cubes;
    TESS_TRY(tess_comm_agree(run->comm, status));
    run->job.ranks.num_outputs = run->outputs.num;
cleanup:
    return status;
}

tess_status image_set_up(image_run *run)
{
    tess_status status = TESS_OK;
    TESS_TRY(start_job(run));
    TESS_TRY(choose_pols(run));
    TESS_TRY(open_source(run));
    TESS_TRY(set_up_source(run));
    TESS_TRY(create_outputs(run));
    tess_log_info("%lld rows x %lld channels in %d observation%s",
                  (long long)run->info->num_rows,
                  (long long)(run->info->num_vis / run->info->num_rows),
                  run->opts->num_obs, run->opts->num_obs == 1 ? "" : "s");
cleanup:
    return status;
}

/* ---- teams ---- */

static int64_t outputs_done(const image_run *run)
{
    return run->checkpoint.state.outputs_done;
}

/* Counts the memory that cleaning keeps while images are made, and refuses too much.
 * Collective. */
static tess_status count_cleaning(image_run *run)
{
    tess_status status = TESS_OK;
    imager_job *job = &run->job;
    if (!image_is_cleaned(run->opts)) return TESS_OK;
    job->memory.clean_bytes = majors_bytes(
        run->opts, run->num_pol, job->extent.uvw_max_lambda, tess_comm_size(run->comm));
    double lacking = job->memory.clean_bytes - (double)job->memory.rank_bytes;
    TESS_TRY(tess_comm_allreduce_f64(run->comm, &lacking, 1, TESS_MAX));
    if (lacking > 0)
        TESS_FAIL(
            TESS_ERR_ALLOC,
            "cleaning needs at least %s a rank, which may use %s; use more ranks, "
            "more --memory or a smaller --size",
            tess_mem_text((double)job->memory.rank_bytes + lacking),
            tess_mem_text((double)job->memory.rank_bytes));
cleanup:
    return status;
}

/* Whether teams are possible, because no step needs all ranks for every output. A
 * checkpoint keeps the sets of channels that are cleaned together for all ranks, and
 * devices are connected for all ranks. */
static bool teams_are_possible(const image_run *run, bool kept)
{
    if (run->outputs.num == 1 || run->checkpoint.sums_wait) return false;
    if (image_joins_channels(run->opts))
        return kept && !run->opts->checkpoint.folder && !run->job.backend->start;
    return !run->opts->weights.shared_density && (kept || !image_subtracts_early(run));
}

static imager_teams_need teams_need(const image_run *run, bool kept)
{
    const tess_samples like =
        run->mode == DATA_CACHED ? run->all : tess_source_samples(run->source);
    return (imager_teams_need){
        .outputs = &run->outputs,
        .first_output = outputs_done(run),
        .vis_bytes = (double)tess_samples_vis_bytes(&like),
        .row_bytes = IMAGE_ROW_BYTES * (double)run->outputs.num_channels *
                     (double)run->info->num_rows / (double)run->info->num_vis,
        .kept = kept,
        .possible = teams_are_possible(run, kept),
        .joined = image_joins_channels(run->opts),
        .checkpoints = run->opts->checkpoint.folder != NULL};
}

/* Counts the memory that means over channels and cleaning take beside the images that
 * are made. Collective. */
static tess_status count_images(image_run *run)
{
    tess_status status = TESS_OK;
    const image_kinds kinds =
        image_kinds_of(run->opts, run->num_pol, image_num_psf(run));
    run->output.kinds = run->means.kinds = kinds;
    if (run->outputs.num_channels > 1)
        run->job.memory.mean_bytes = (double)sizeof(double) * image_kinds_all(&kinds) *
                                     (double)run->job.geom.nx *
                                     (double)run->job.geom.ny /
                                     tess_comm_size(run->comm);
    TESS_TRY(count_cleaning(run));
cleanup:
    return status;
}

/* Streams data if a team cannot keep the samples of an output. Collective. */
static tess_status check_team_memory(image_run *run, int num_teams)
{
    tess_status status = TESS_OK;
    bool fits = true;
    if (run->mode == DATA_PER_OUTPUT)
        TESS_TRY(
            image_fits_all(run, num_teams * image_largest_output_bytes(run), &fits));
    if (!fits) {
        run->mode = DATA_STREAMED;
        tess_log_info("data are streamed: a team cannot keep the samples of an output");
    }
cleanup:
    return status;
}

tess_status image_form_teams(image_run *run, bool kept)
{
    tess_status status = TESS_OK;
    const imager_teams_need need = teams_need(run, kept);
    int num;
    TESS_TRY(count_images(run));
    status = imager_teams_choose(&run->job, &need, &num);
    TESS_TRY(tess_comm_agree(run->comm, status));
    if (num == 1) return TESS_OK;
    TESS_TRY(check_team_memory(run, num));
    TESS_TRY(imager_teams_form(run->comm, num, &run->teams));
    imager_bookmark_free(&run->checkpoint.bookmark); /* blocks are dealt anew */
    run->job.comm = run->teams.team;
    if (!need.joined) run->comm = run->output.comm = run->teams.team;
    run->job.ranks.num_outputs = (run->outputs.num + num - 1) / num;
    run->job.ranks.num_teams = num;
    run->job.ranks.fft_ranks = 0;
    status = imager_job_share(&run->job);
    if (status == TESS_OK && run->mode != DATA_CACHED)
        status = tess_source_deal(run->source, run->job.comm);
    TESS_TRY(tess_comm_agree(run->teams.all, status));
cleanup:
    return status;
}

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
    run->model.is_told = run->teams.own > 0; /* the first team alone warns */
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

/* Completes and writes the mean of an interval. Collective. */
static tess_status end_mean(image_run *run, int64_t interval, channel_mean *mean)
{
    tess_status status = TESS_OK;
    struct imager_found found[TESS_MAX_POL] = {0};
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
    tess_profile_lap(run->profile, TESS_STAGE_REDUCE, &mark);
    for (int64_t k = first; k < end; ++k) {
        TESS_TRY(channel_mean_start(run, mean));
        if (run->teams.num > 1)
            imager_round_add(&run->teams, &round, (int)(k - first), mean->product);
        else
            channel_mean_add(run, product, mean);
        imager_extent_join(&mean->extent, &run->outputs.extent[k]);
        if ((k + 1) % channels == 0) TESS_TRY(end_mean(run, k / channels, mean));
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
    const int64_t own = first + run->teams.own, channels = run->outputs.num_channels;
    imager_product product[TESS_MAX_IMAGES] = {0};
    tess_samples dealt = {0};
    double mark = tess_time_now();
    if (run->teams.num > 1 && run->mode == DATA_CACHED)
        TESS_TRY(imager_teams_deal(&run->teams, &run->outputs, first, &run->all,
                                   run->row_time, &dealt));
    tess_profile_lap(run->profile, TESS_STAGE_EXCHANGE, &mark);
    TESS_TRY(image_cubes_open(&run->means, first, end));
    if (own < end) status = make_output(run, own, &dealt, product);
    if (run->teams.num > 1) TESS_TRY(tess_comm_agree(run->teams.all, status));
    TESS_TRY(status);
    for (int64_t k = first; k < end; ++k)
        image_files_log(&run->output, k / channels, k % channels);
    TESS_TRY(image_cubes_close(&run->means, first, end));
    TESS_TRY(add_round(run, first, end, product, mean));
cleanup:
    tess_samples_free(&dealt);
    free_products(product, TESS_MAX_IMAGES);
    return status;
}

/* Takes up the means of a run that continues in the middle of an interval. */
static tess_status continue_mean(image_run *run, channel_mean *mean)
{
    tess_status status = TESS_OK;
    const imager_checkpoint *checkpoint = &run->checkpoint;
    const int64_t done = outputs_done(run), channels = run->outputs.num_channels;
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

static tess_status image_outputs(image_run *run)
{
    tess_status status = TESS_OK;
    channel_mean mean = {.extent = imager_extent_empty()};
    run->checkpoint.mean = mean.product;
    TESS_TRY(continue_mean(run, &mean));
    for (int64_t first = outputs_done(run), end; first < run->outputs.num;
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
cleanup:
    free_products(mean.product, TESS_MAX_IMAGES);
    return status;
}

void image_free_run(image_run *run)
{
    imager_job_free(&run->job);
    tess_comm_free(run->job.alone);
    imager_predictor_free(&run->subtract);
    continued_models_free(run->means.continued);
    tess_density_destroy(run->densities.single);
    tess_density_destroy(run->densities.shared);
    imager_checkpoint_free(&run->checkpoint);
    output_table_free(&run->outputs);
    tess_source_close(run->source);
    tess_samples_free(&run->all);
    tess_free(run->row_time);
    tess_free(run->chan_wanted);
    tess_free(run->output.sources.text);
    image_cubes_destroy(run->means.cubes);
    image_primary_beam_free(run->output.primary_beam);
    imager_summary_free(&run->summary);
    imager_teams_free(&run->teams);
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
                     outputs_done(run));
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
    if (own.clean.update_model) TESS_TRY(update_model(&run));
    if (own.beside.weights) TESS_TRY(imaging_weights_store(&run));
    imager_checkpoint_finish(&run.checkpoint);
    TESS_TRY(tell_end(&run));
cleanup:
    tess_profile_stop_meter(profile);
    image_free_run(&run);
    return status;
}
