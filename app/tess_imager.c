#define _GNU_SOURCE
#include "tess_imager.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "imager.h"
#include "ingest.h"
#include "tess_device_comm.h"
#include "tess_log.h"
#include "tess_mem.h"

/* Bytes of one block of a file, and its share of a rank's memory: two are read at a
 * time, and their samples are in the way. */
enum { BLOCK_BYTES = 32 << 20, SMALLEST_BLOCK_BYTES = 64 << 10 };
static const double BLOCK_SHARE = 1.0 / 16;

/* Share of a rank's memory that prepared samples may take up before data are read again
 * instead of being kept. */
static const double CACHE_SHARE = 0.45;

/* Bytes of a row beside its samples: uvw, channels, place, time. */
static const double ROW_BYTES = 48;

/* Images of so many bytes are summed by NCCL. Host memory sums about 1.5 GB/s;
 * connecting the devices takes 0.5 s. */
static const double NCCL_BYTES = 1e9;

/* Where the samples of an image come from. */
typedef enum data_mode {
    DATA_CACHED,     /* all samples of this rank's slice are kept */
    DATA_PER_OUTPUT, /* those of one output at a time, read again for each */
    DATA_STREAMED    /* block by block, in several passes for each output */
} data_mode;

/* One run of `image` or `plan`. */
typedef struct image_run {
    tess_comm *comm;
    const tess_image_opts *opts;
    tess_profile *profile;
    tess_source *source;
    const tess_source_info *info;
    tess_pol pol[2 * TESS_MAX_POL];
    int num_pol;
    int64_t block_bytes;
    data_mode mode;
    tess_samples all;  /* everything, in DATA_CACHED */
    double *row_time;  /* [rows] of `all`, NULL for one output */
    bool *chan_wanted; /* [num_chan] of the current output */
    imager_outputs outputs;
    double largest_weight; /* natural, of all data, with --reproducible */
    tess_density *density; /* of the only output, when the survey made it */
    imager_predictor subtract;
    imager_job job; /* one plan for all outputs */
    imager_checkpoint checkpoint;
    imager_output output, means; /* by the team, and by all ranks */
    imager_teams teams;          /* once there are several, `comm` is this rank's */
} image_run;

/* ---- set-up ---- */

static tess_status check_size(const image_run *run)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    const double bytes = 4.0 * (double)opts->nx * (double)opts->ny;
    const double all = (double)run->job.rank_bytes * tess_comm_size(run->comm);
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

static bool is_double(const image_run *run)
{
    return run->opts->gridding.accuracy < 9e-6;
}

static tess_status set_up(image_run *run)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    imager_model model;
    run->job = (imager_job){
        .comm = run->comm,
        .layout = &opts->layout,
        .gridding = &opts->gridding,
        .geom = {.nx = opts->nx, .ny = opts->ny, .scale_rad = opts->scale_rad},
        .profile = run->profile};
    TESS_TRY(imager_backend(run->comm, opts->gridding.backend, &run->job.backend));
    imager_backend_log(opts->gridding.backend, run->job.backend);
    TESS_TRY(imager_meter(run->comm, run->job.backend, run->profile));
    TESS_TRY(imager_rank_bytes(run->comm, &opts->layout, &run->job.rank_bytes));
    TESS_TRY(check_size(run));
    run->num_pol = tess_pol_expand(opts->pol, opts->num_pol, run->pol);
    if (run->num_pol > TESS_MAX_POL)
        TESS_FAIL(TESS_ERR_USAGE, "--stokes asks for %d images; at most %d in one run",
                  run->num_pol, TESS_MAX_POL);
    TESS_TRY(tess_source_open(run->comm, opts->obs, opts->num_obs, &opts->selection,
                              &run->source));
    run->info = tess_source_info_of(run->source);
    tess_source_trace(run->source, run->profile->trace);
    run->output = (imager_output){.comm = run->comm,
                                  .opts = opts,
                                  .info = run->info,
                                  .outputs = &run->outputs,
                                  .pol = run->pol,
                                  .num_pol = run->num_pol,
                                  .profile = run->profile};
    run->means = run->output;
    run->block_bytes = (int64_t)(BLOCK_SHARE * (double)run->job.rank_bytes);
    if (run->block_bytes > BLOCK_BYTES) run->block_bytes = BLOCK_BYTES;
    if (run->block_bytes < SMALLEST_BLOCK_BYTES)
        run->block_bytes = SMALLEST_BLOCK_BYTES;
    status =
        tess_source_setup(run->source, run->pol, run->num_pol, 0.5 / opts->scale_rad,
                          is_double(run), opts->layout.threads, run->block_bytes);
    run->chan_wanted = tess_alloc_zero(run->info->num_chan, sizeof *run->chan_wanted);
    if (status == TESS_OK && !run->chan_wanted) status = TESS_ERR_ALLOC;
    if (status == TESS_OK && opts->subtract)
        status = imager_model_open(opts->subtract, run->info->ra_rad,
                                   run->info->dec_rad, opts->scale_rad, &model);
    TESS_TRY(tess_comm_agree(run->comm, status));
    if (opts->subtract)
        TESS_TRY(imager_predictor_create(run->comm, &model, &opts->gridding,
                                         &opts->layout, run->profile, &run->subtract));
    TESS_TRY(imager_outputs_create(run->comm, run->source, opts, &run->outputs));
    run->job.num_outputs = run->outputs.num;
    tess_log_info("%lld rows x %lld channels in %d observation%s",
                  (long long)run->info->num_rows,
                  (long long)(run->info->num_vis / run->info->num_rows), opts->num_obs,
                  opts->num_obs == 1 ? "" : "s");
cleanup:
    return status;
}

/* ---- samples in memory ---- */

/* All polarisations of every sample have one weight: keep it once. */
static void share_weights(tess_samples *samples)
{
    const int n = samples->num_weight;
    for (int64_t k = 0; k < samples->num_vis; ++k) {
        if (samples->is_double)
            ((double *)samples->weight)[k] = ((double *)samples->weight)[k * n];
        else
            ((float *)samples->weight)[k] = ((float *)samples->weight)[k * n];
    }
    samples->num_weight = 1;
    samples->capacity_vis = samples->num_vis;
}

static bool weights_agree(const tess_samples *samples)
{
    const int n = samples->num_weight;
    for (int64_t k = 0; k < samples->num_vis * n; ++k) {
        const int64_t first = k - k % n;
        const bool same =
            samples->is_double
                ? ((double *)samples->weight)[k] == ((double *)samples->weight)[first]
                : ((float *)samples->weight)[k] == ((float *)samples->weight)[first];
        if (!same) return false;
    }
    return true;
}

/* Natural weights are summed as integers, of a quantum that depends on their
 * largest. */
static void note_weights(image_run *run, const tess_samples *samples)
{
    if (!run->opts->layout.reproducible) return;
    for (int64_t k = 0; k < samples->num_vis * samples->num_weight; ++k) {
        const double weight = samples->is_double
                                  ? ((const double *)samples->weight)[k]
                                  : (double)((const float *)samples->weight)[k];
        if (weight > run->largest_weight) run->largest_weight = weight;
    }
}

static tess_status subtract_model(image_run *run, tess_samples *samples)
{
    if (!run->opts->subtract) return TESS_OK;
    return imager_predictor_subtract(&run->subtract, run->pol, samples);
}

/* Memory for samples and, on several ranks, for those that others send, of which every
 * rank gets about the same share. */
static double samples_bytes(const image_run *run, double num_rows, double num_vis,
                            double num_vis_of_all)
{
    const tess_samples like = tess_source_samples(run->source);
    const int ranks = tess_comm_size(run->comm);
    const double received = ranks > 1 ? num_vis_of_all / ranks : 0;
    return (num_vis + received) * (double)tess_samples_vis_bytes(&like) +
           ROW_BYTES * num_rows;
}

/* Whether that fits on every rank. Collective. */
static tess_status fits_all(const image_run *run, double bytes, bool *fits)
{
    int64_t here = bytes < CACHE_SHARE * (double)run->job.rank_bytes;
    const tess_status status = tess_comm_allreduce_i64(run->comm, &here, 1, TESS_MIN);
    *fits = here != 0;
    return status;
}

/* Memory when all samples are kept; with several outputs, those of one are copied and
 * sent at a time. */
static double cached_bytes(const image_run *run)
{
    int64_t num_rows, num_vis;
    const double outputs = (double)run->outputs.num;
    tess_source_slice(run->source, &num_rows, &num_vis);
    return samples_bytes(run, (double)num_rows, (outputs > 1 ? 2 : 1) * (double)num_vis,
                         (double)run->info->num_vis / outputs);
}

/* Times of all outputs together, all channels. */
static void want_all(image_run *run)
{
    const imager_outputs *outputs = &run->outputs;
    tess_source_filter(run->source, NULL, outputs->interval_begin[0],
                       outputs->interval_begin[outputs->num_intervals]);
}

/* Times and channels of one output. */
static void want_output(image_run *run, int64_t output)
{
    const imager_outputs *outputs = &run->outputs;
    const double *begin = outputs->interval_begin + output / outputs->num_channels;
    imager_outputs_channels(outputs, output % outputs->num_channels, run->chan_wanted);
    tess_source_filter(run->source, outputs->num_channels > 1 ? run->chan_wanted : NULL,
                       begin[0], begin[1]);
}

/* Read everything once and keep it. Collective. */
static tess_status load_all(image_run *run, int64_t num_rows, int64_t num_vis)
{
    tess_status status = TESS_OK;
    int64_t num_blocks;
    double mark = tess_time_now();
    tess_progress progress;
    run->all = tess_source_samples(run->source);
    want_all(run);
    TESS_TRY(tess_source_num_blocks(run->source, &num_blocks));
    status = tess_samples_reserve(&run->all, num_rows, num_vis);
    if (status == TESS_OK && run->outputs.num > 1) {
        run->row_time = tess_alloc(num_rows, sizeof *run->row_time);
        if (!run->row_time) status = TESS_ERR_ALLOC;
    }
    TESS_TRY(tess_comm_agree(run->comm, status));
    tess_source_rewind(run->source);
    tess_progress_start(&progress, "reading", " blocks", (double)num_blocks);
    for (int64_t k = 0; k < num_blocks && status == TESS_OK; ++k) {
        status = tess_source_next(run->source, &run->all,
                                  run->row_time ? &run->row_time : NULL, run->profile);
        tess_progress_add(&progress, 1);
    }
    tess_progress_finish(&progress);
    tess_source_rest(run->source);
    if (status == TESS_OK)
        status = imager_outputs_add(&run->outputs, &run->all, run->row_time,
                                    run->info->freq_hz, run->opts->layout.threads);
    TESS_TRY(tess_comm_agree(run->comm, status));
    note_weights(run, &run->all);
    run->profile->stage_visibilities[TESS_STAGE_READ] += num_vis;
    tess_profile_lap(run->profile, TESS_STAGE_READ, &mark);
    int64_t shared = run->all.num_weight == 1 || weights_agree(&run->all);
    TESS_TRY(tess_comm_allreduce_i64(run->comm, &shared, 1, TESS_MIN));
    if (shared && run->all.num_weight > 1) share_weights(&run->all);
    TESS_TRY(subtract_model(run, &run->all));
cleanup:
    return status;
}

/* May every rank make samples on its device, and image them by itself? Nothing else may
 * want to see the samples. Collective. */
static tess_status wants_ingest(const image_run *run, bool *wanted)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    const tess_layout *layout = &opts->layout;
    const bool forced = layout->force_passes > 0 || layout->force_pw > 0 ||
                        layout->force_fft_ranks > 0 || layout->force_split > 0 ||
                        layout->reproducible;
    int64_t here =
        run->outputs.num == 1 && !opts->subtract && !opts->dump_stages && !forced &&
        ingest_possible(&run->job, run->source, run->num_pol * (1 + opts->make_psf));
    TESS_TRY(tess_comm_allreduce_i64(run->comm, &here, 1, TESS_MIN));
    *wanted = here != 0;
cleanup:
    return status;
}

/* As load_all, by the device. Collective. */
static tess_status take_in(image_run *run)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    const double bytes = (double)opts->nx * (double)opts->ny *
                         (is_double(run) ? 8 : 4) * (1 + opts->make_psf);
    double mark = tess_time_now();
    if (tess_comm_size(run->comm) > 1) {
        status = tess_comm_self(&run->job.alone);
        TESS_TRY(tess_comm_agree(run->comm, status));
        if (bytes >= NCCL_BYTES || opts->layout.force_nccl)
            TESS_TRY(tess_device_comm_create(run->comm, &run->job.devices));
        tess_profile_lap(run->profile, TESS_STAGE_PLAN, &mark);
    }
    bool agree = true;
    status =
        ingest_samples(&run->job, run->source, &run->all, run->outputs.extent, &agree);
    TESS_TRY(tess_comm_agree(run->comm, status));
    int64_t shared = agree;
    TESS_TRY(tess_comm_allreduce_i64(run->comm, &shared, 1, TESS_MIN));
    if (shared && run->num_pol > 1) status = ingest_share_weights(&run->all);
    TESS_TRY(tess_comm_agree(run->comm, status));
    run->outputs.num_held[0] = run->all.num_vis;
    run->profile->stage_visibilities[TESS_STAGE_READ] += run->all.num_vis;
    tess_profile_lap(run->profile, TESS_STAGE_READ, &mark);
cleanup:
    return status;
}

static tess_status create_density(const image_run *run, int num_weight,
                                  tess_density **density)
{
    const tess_image_opts *opts = run->opts;
    const tess_weight_opts weights = {
        opts->weighting, opts->robust, opts->rank_filter, opts->first_density,
        opts->layout.reproducible
            ? tess_density_quantum(run->largest_weight, run->info->num_vis)
            : 0};
    tess_status status = TESS_OK;
    if (opts->weighting != TESS_NATURAL)
        status = tess_density_create(&run->job.geom, &weights, num_weight, density);
    return tess_comm_agree(run->comm, status);
}

/* Read everything once to learn what the outputs are made of, and the density of a
 * single one. Collective. */
static tess_status survey_blocks(image_run *run)
{
    tess_status status = TESS_OK;
    int64_t num_blocks, shared = 1;
    double *row_time = NULL, mark = tess_time_now();
    const int threads = run->opts->layout.threads;
    const bool timed = run->outputs.num_intervals > 1;
    tess_samples block = tess_source_samples(run->source);
    /* not yet where it needs the largest weight */
    if (run->outputs.num == 1 && !run->opts->layout.reproducible)
        TESS_TRY(create_density(run, block.num_weight, &run->density));
    want_all(run);
    TESS_TRY(tess_source_num_blocks(run->source, &num_blocks));
    tess_source_rewind(run->source);
    for (int64_t k = 0; k < num_blocks && status == TESS_OK; ++k) {
        block.num_rows = block.num_vis = 0;
        status = tess_source_next(run->source, &block, timed ? &row_time : NULL,
                                  run->profile);
        if (status == TESS_OK)
            status = imager_outputs_add(&run->outputs, &block, row_time,
                                        run->info->freq_hz, threads);
        if (status == TESS_OK && run->density)
            status = tess_density_add(run->density, &block, 0, block.num_rows, threads);
        note_weights(run, &block);
        shared = shared && (block.num_weight == 1 || weights_agree(&block));
    }
    TESS_TRY(tess_comm_agree(run->comm, status));
    if (run->density) TESS_TRY(tess_density_finish(run->density, run->comm));
    TESS_TRY(tess_comm_allreduce_i64(run->comm, &shared, 1, TESS_MIN));
    if (shared) tess_source_share_weights(run->source);
    tess_profile_lap(run->profile, TESS_STAGE_READ, &mark);
cleanup:
    tess_samples_free(&block);
    tess_free(row_time);
    return status;
}

/* The largest output that this rank may have to hold. */
static double largest_output_bytes(const image_run *run)
{
    const imager_outputs *outputs = &run->outputs;
    const double rows = (double)run->info->num_rows, vis = (double)run->info->num_vis;
    double largest = 0;
    for (int64_t k = 0; k < outputs->num; ++k) {
        const double held = (double)outputs->num_held[k];
        const double bytes =
            samples_bytes(run, rows / vis * held * (double)outputs->num_channels, held,
                          (double)outputs->extent[k].num_vis);
        if (bytes > largest) largest = bytes;
    }
    return largest;
}

/* What one plan for all outputs must cover, and how many images it has. Collective. */
static tess_status finish_survey(image_run *run)
{
    tess_status status = TESS_OK;
    const tess_samples like = tess_source_samples(run->source);
    const int num_weight =
        run->mode == DATA_CACHED ? run->all.num_weight : like.num_weight;
    TESS_TRY(imager_outputs_sum(run->comm, &run->outputs));
    TESS_TRY(tess_comm_allreduce_f64(run->comm, &run->largest_weight, 1, TESS_MAX));
    run->job.extent = imager_outputs_union(&run->outputs);
    run->job.num_pol = run->num_pol;
    run->job.num_images = run->num_pol + (run->opts->make_psf ? num_weight : 0);
cleanup:
    return status;
}

/* How samples are kept, and what they tell: extents, weights, number of images. Data
 * are read once here; all of them stay if they fit. Collective. */
static tess_status look_at_data(image_run *run)
{
    tess_status status = TESS_OK;
    int64_t num_rows, num_vis;
    bool fits, ingest;
    const bool several = run->outputs.num > 1;
    const double bytes = cached_bytes(run);
    want_all(run);
    TESS_TRY(wants_ingest(run, &ingest));
    if (ingest) {
        run->mode = DATA_CACHED;
        TESS_TRY(take_in(run));
        TESS_TRY(finish_survey(run));
        return TESS_OK;
    }
    tess_source_slice(run->source, &num_rows, &num_vis);
    TESS_TRY(fits_all(run, bytes, &fits));
    run->mode = DATA_CACHED;
    if (!fits && run->opts->layout.reproducible && run->opts->subtract)
        TESS_FAIL(
            TESS_ERR_RESOURCE,
            "--reproducible with --subtract needs all data in memory: %s per rank, "
            "which may use %s; use more ranks or nodes",
            tess_mem_text(bytes), tess_mem_text((double)run->job.rank_bytes));
    if (fits) {
        TESS_TRY(load_all(run, num_rows, num_vis));
    } else {
        TESS_TRY(survey_blocks(run));
        TESS_TRY(fits_all(run, largest_output_bytes(run), &fits));
        run->mode = several && fits ? DATA_PER_OUTPUT : DATA_STREAMED;
        tess_log_info("data are %s: %s would not fit into %s per rank",
                      several && fits ? "read again for every output" : "streamed",
                      tess_mem_text(bytes), tess_mem_text((double)run->job.rank_bytes));
    }
    TESS_TRY(finish_survey(run));
cleanup:
    return status;
}

/* ---- teams ---- */

static int64_t outputs_done(const image_run *run)
{
    return run->checkpoint.state.outputs_done;
}

/* Form teams where that is faster, once the job is planned; from here on `comm` is the
 * team's. `kept`: samples are, or will be, in memory. Collective. */
static tess_status form_teams(image_run *run, bool kept)
{
    tess_status status = TESS_OK;
    const tess_samples like =
        run->mode == DATA_CACHED ? run->all : tess_source_samples(run->source);
    const imager_teams_need need = {
        .outputs = &run->outputs,
        .first_output = outputs_done(run),
        .vis_bytes = (double)tess_samples_vis_bytes(&like),
        .row_bytes = ROW_BYTES * (double)run->outputs.num_channels *
                     (double)run->info->num_rows / (double)run->info->num_vis,
        .kept = kept,
        .possible = run->outputs.num > 1 && !run->checkpoint.sums_wait &&
                    (kept || !run->opts->subtract),
        .checkpoints = run->opts->checkpoint.folder != NULL};
    int num;
    bool fits = true;
    TESS_TRY(imager_teams_choose(&run->job, &need, &num));
    if (num == 1) return TESS_OK;
    if (run->mode == DATA_PER_OUTPUT)
        TESS_TRY(fits_all(run, num * largest_output_bytes(run), &fits));
    if (!fits) {
        run->mode = DATA_STREAMED;
        tess_log_info("data are streamed: a team cannot keep the samples of an output");
    }
    TESS_TRY(imager_teams_form(run->comm, num, &run->teams));
    run->comm = run->job.comm = run->output.comm = run->teams.team;
    run->job.num_outputs = (run->outputs.num + num - 1) / num;
    run->job.num_teams = num;
    run->job.fft_ranks = 0;
    status = imager_job_share(&run->job);
    if (status == TESS_OK && run->mode != DATA_CACHED)
        status = tess_source_deal(run->source, run->comm);
    TESS_TRY(tess_comm_agree(run->teams.all, status));
cleanup:
    return status;
}

/* ---- one output ---- */

/* Read an output's samples into memory. Local. */
static tess_status read_output(image_run *run, int64_t output, tess_samples *out)
{
    tess_status status = TESS_OK;
    const bool by_channel = run->outputs.num_channels > 1;
    tess_samples block = tess_source_samples(run->source);
    *out = tess_source_samples(run->source);
    tess_source_rewind(run->source);
    for (int64_t k = 0; k < tess_source_own_blocks(run->source); ++k) {
        block.num_rows = block.num_vis = 0;
        TESS_TRY(tess_source_next(run->source, by_channel ? &block : out, NULL, NULL));
        if (by_channel)
            TESS_TRY(imager_outputs_choose(&run->outputs, output, &block, NULL, out));
    }
cleanup:
    tess_samples_free(&block);
    return status;
}

/* Blocks of a set: with a model to subtract, as many as may be held, because every set
 * costs the transforms of all planes of the model. */
static int64_t blocks_of_set(const image_run *run)
{
    if (!run->opts->subtract) return 1;
    const double share = 0.25 * CACHE_SHARE * (double)run->job.rank_bytes;
    const double blocks = share / (double)run->block_bytes;
    return blocks > 1 ? (int64_t)blocks : 1;
}

/* Samples of an output, of which a team has been sent its own in `data->cached`. */
static tess_status data_for(image_run *run, int64_t output, imager_data *data)
{
    tess_status status = TESS_OK;
    double mark = tess_time_now();
    const tess_samples dealt = data->cached;
    *data = (imager_data){.source = run->source,
                          .in_memory = run->mode != DATA_STREAMED,
                          .num_sets = 1,
                          .set_blocks = 1,
                          .num_vis = run->outputs.extent[output].num_vis,
                          .pol = run->pol,
                          .threads = run->opts->layout.threads,
                          .profile = run->profile};
    if (run->mode != DATA_CACHED) want_output(run, output);
    if (run->mode == DATA_CACHED && run->teams.num > 1) {
        data->cached = dealt;
    } else if (run->mode == DATA_CACHED && run->outputs.num == 1) {
        data->cached = run->all; /* moved: weights may be changed in place */
        run->all = (tess_samples){0};
    } else if (run->mode == DATA_CACHED) {
        data->cached = (tess_samples){.is_double = run->all.is_double,
                                      .num_pol = run->all.num_pol,
                                      .num_weight = run->all.num_weight,
                                      .inv_lambda = run->all.inv_lambda};
        status = tess_samples_reserve(&data->cached, 0, run->outputs.num_held[output]);
        if (status == TESS_OK)
            status = imager_outputs_choose(&run->outputs, output, &run->all,
                                           run->row_time, &data->cached);
    } else if (run->mode == DATA_PER_OUTPUT) {
        status = read_output(run, output, &data->cached);
        TESS_TRY(tess_comm_agree(run->comm, status));
        tess_profile_lap(run->profile, TESS_STAGE_READ, &mark);
        TESS_TRY(subtract_model(run, &data->cached));
    } else {
        int64_t num_blocks;
        data->block = tess_source_samples(run->source);
        data->subtract = run->opts->subtract ? &run->subtract : NULL;
        data->set_blocks = blocks_of_set(run);
        if (run->opts->scratch)
            status = tess_spool_create(run->opts->scratch, &data->spool);
        TESS_TRY(tess_comm_agree(run->comm, status));
        TESS_TRY(tess_source_num_blocks(run->source, &num_blocks));
        data->num_sets = (num_blocks + data->set_blocks - 1) / data->set_blocks;
    }
    TESS_TRY(tess_comm_agree(run->comm, status));
cleanup:
    return status;
}

static void data_free(imager_data *data)
{
    tess_samples_free(&data->cached);
    tess_samples_free(&data->block);
    tess_spool_destroy(data->spool);
}

/* Density of an output's samples, unless the survey has made it. Collective. */
static tess_status weigh(image_run *run, imager_data *data, tess_density **density)
{
    tess_status status = TESS_OK;
    double mark = tess_time_now();
    const tess_samples *like = data->in_memory ? &data->cached : &data->block;
    if (run->density) {
        data->density = *density = run->density;
        run->density = NULL;
        return TESS_OK;
    }
    TESS_TRY(create_density(run, like->num_weight, density));
    if (!*density) return TESS_OK;
    for (int64_t k = 0; k < data->num_sets && status == TESS_OK; ++k) {
        tess_samples *samples;
        status = imager_data_get(data, k, &samples);
        if (status == TESS_OK)
            status = tess_density_add(*density, samples, 0, samples->num_rows,
                                      data->threads);
    }
    TESS_TRY(tess_comm_agree(run->comm, status));
    TESS_TRY(tess_density_finish(*density, run->comm));
    data->density = *density;
cleanup:
    tess_profile_lap(run->profile, TESS_STAGE_WEIGHT, &mark);
    return status;
}

/* The image of nothing: zeros, shared by rows. */
static tess_status empty_products(const image_run *run, int num_images,
                                  imager_product *product)
{
    tess_status status = TESS_OK;
    const int64_t rank = tess_comm_rank(run->comm), size = tess_comm_size(run->comm);
    const int64_t first = run->opts->ny * rank / size;
    const int64_t end = run->opts->ny * (rank + 1) / size;
    for (int k = 0; k < num_images && status == TESS_OK; ++k) {
        product[k].rows = (imager_rows){first, end - first, run->opts->nx, NULL};
        product[k].rows.value = tess_alloc_zero((end - first) * run->opts->nx,
                                                sizeof *product[k].rows.value);
        product[k].sum_weights = 0;
        if (!product[k].rows.value) status = TESS_ERR_ALLOC;
    }
    return tess_comm_agree(run->comm, status);
}

static void free_products(imager_product *product, int count)
{
    for (int k = 0; k < count; ++k)
        imager_rows_free(&product[k].rows);
}

/* ΣW-weighted mean over output channels, kept as sums until the end. */
static void add_to_mean(imager_product *mean, const imager_product *product, int count)
{
    for (int k = 0; k < count; ++k) {
        const imager_rows *rows = &product[k].rows;
        const int64_t pixels = rows->num_rows * rows->nx;
        if (product[k].sum_weights == 0) continue;
        for (int64_t i = 0; i < pixels; ++i)
            mean[k].rows.value[i] += product[k].sum_weights * rows->value[i];
        mean[k].sum_weights += product[k].sum_weights;
    }
}

static void finish_mean(imager_product *mean, int count)
{
    for (int k = 0; k < count; ++k) {
        const int64_t pixels = mean[k].rows.num_rows * mean[k].rows.nx;
        const double factor = mean[k].sum_weights > 0 ? 1 / mean[k].sum_weights : 0;
        for (int64_t i = 0; i < pixels; ++i)
            mean[k].rows.value[i] *= factor;
    }
}

/* Make the products of one output, from these samples if they have been dealt, which
 * are freed. Collective in the team. */
static tess_status make_products(image_run *run, int64_t output, tess_samples *dealt,
                                 imager_product *product)
{
    tess_status status = TESS_OK;
    imager_data data = {.cached = *dealt};
    tess_density *density = NULL;
    const imager_stages stages = {.comm = run->comm,
                                  .folder = run->opts->dump_stages,
                                  .interval = output / run->outputs.num_channels,
                                  .channel = output % run->outputs.num_channels};
    *dealt = (tess_samples){0};
    if (run->outputs.extent[output].num_vis == 0) {
        data_free(&data);
        return empty_products(run, run->job.num_images, product);
    }
    TESS_TRY(data_for(run, output, &data));
    TESS_TRY(weigh(run, &data, &density));
    TESS_TRY(imager_run(&run->job, &data, run->opts->make_psf, product, &stages));
cleanup:
    tess_density_destroy(density);
    data_free(&data);
    return status;
}

static tess_status log_ignored(image_run *run)
{
    tess_status status = TESS_OK;
    int64_t count[TESS_NUM_IGNORED + 1];
    memcpy(count, run->profile->ignored, sizeof run->profile->ignored);
    count[TESS_NUM_IGNORED] = run->profile->visibilities;
    TESS_TRY(tess_comm_allreduce_i64(run->comm, count, TESS_NUM_IGNORED + 1, TESS_SUM));
    tess_log_info(
        "visibilities: %lld used; ignored: %lld flagged, %lld of weight <= 0, "
        "%lld not finite, %lld autocorrelations, %lld beyond the grid, %lld "
        "outside --uvrange",
        (long long)count[TESS_NUM_IGNORED], (long long)count[TESS_IGNORED_FLAGGED],
        (long long)count[TESS_IGNORED_WEIGHT],
        (long long)count[TESS_IGNORED_NOT_FINITE],
        (long long)count[TESS_IGNORED_AUTOCORR],
        (long long)count[TESS_IGNORED_BEYOND_UV],
        (long long)count[TESS_IGNORED_UVRANGE]);
cleanup:
    return status;
}

/* ---- all outputs ---- */

enum { MOST_IMAGES = 4 * TESS_MAX_POL };

/* Mean over the channels of the current interval. */
typedef struct channel_mean {
    imager_product product[MOST_IMAGES];
    imager_extent extent;
    bool started;
} channel_mean;

static int num_psf(const image_run *run)
{
    return run->job.num_images - run->num_pol;
}

/* Rows of the mean on this rank: those that products have, or, of several teams, a
 * share of its own. */
static void mean_rows(const image_run *run, int64_t *row_first, int64_t *num_rows)
{
    const imager_job *job = &run->job;
    if (run->teams.num > 1)
        imager_teams_mean_rows(&run->teams, tess_comm_rank(run->teams.all),
                               job->geom.ny, row_first, num_rows);
    else
        tess_planes_final_rows(job->geom.ny, job->fft_ranks, tess_comm_rank(run->comm),
                               tess_comm_size(run->comm), row_first, num_rows);
}

/* Means of zero. Collective. */
static tess_status start_mean(image_run *run, channel_mean *mean)
{
    tess_status status = TESS_OK;
    imager_rows rows = {.nx = run->job.geom.nx};
    if (mean->started) return TESS_OK;
    mean_rows(run, &rows.row_first, &rows.num_rows);
    for (int k = 0; k < run->job.num_images; ++k) {
        rows.value = tess_alloc_zero(rows.num_rows * rows.nx, sizeof *rows.value);
        mean->product[k] = (imager_product){.rows = rows};
        if (!rows.value) status = TESS_ERR_ALLOC;
    }
    mean->started = true;
    run->checkpoint.num_mean = run->job.num_images;
    return tess_comm_agree(run->teams.all, status);
}

/* The mean of an interval is complete: write it, and begin anew. Collective. */
static tess_status end_mean(image_run *run, int64_t interval, channel_mean *mean)
{
    tess_status status = TESS_OK;
    finish_mean(mean->product, run->job.num_images);
    TESS_TRY(imager_output_write(&run->means, interval, -1, mean->product, num_psf(run),
                                 &mean->extent));
    imager_output_log(&run->means, interval, -1, num_psf(run));
cleanup:
    free_products(mean->product, MOST_IMAGES);
    mean->extent = imager_extent_empty();
    mean->started = false;
    run->checkpoint.num_mean = 0;
    return status;
}

/* Add a round's images, outputs [first, end) in order, to the means. Collective. */
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
                                      run->job.geom.ny, product, run->job.num_images,
                                      &round));
    tess_profile_lap(run->profile, TESS_STAGE_REDUCE, &mark);
    for (int64_t k = first; k < end; ++k) {
        TESS_TRY(start_mean(run, mean));
        if (run->teams.num > 1)
            imager_round_add(&run->teams, &round, (int)(k - first), mean->product);
        else
            add_to_mean(mean->product, product, run->job.num_images);
        imager_extent_join(&mean->extent, &run->outputs.extent[k]);
        if ((k + 1) % channels == 0) TESS_TRY(end_mean(run, k / channels, mean));
    }
cleanup:
    imager_round_free(&round);
    return status;
}

/* This team's output of a round, made and written. Collective in the team. */
static tess_status make_output(image_run *run, int64_t output, tess_samples *dealt,
                               imager_product *product)
{
    tess_status status = TESS_OK;
    const int64_t channels = run->outputs.num_channels;
    TESS_TRY(make_products(run, output, dealt, product));
    TESS_TRY(imager_output_write(&run->output, output / channels, output % channels,
                                 product, num_psf(run), &run->outputs.extent[output]));
cleanup:
    return status;
}

/* One output for each team: [first, end). Collective. */
static tess_status image_round(image_run *run, int64_t first, int64_t end,
                               channel_mean *mean)
{
    tess_status status = TESS_OK;
    const int64_t own = first + run->teams.own, channels = run->outputs.num_channels;
    imager_product product[MOST_IMAGES] = {0};
    tess_samples dealt = {0};
    double mark = tess_time_now();
    if (run->teams.num > 1 && run->mode == DATA_CACHED)
        TESS_TRY(imager_teams_deal(&run->teams, &run->outputs, first, &run->all,
                                   run->row_time, &dealt));
    tess_profile_lap(run->profile, TESS_STAGE_EXCHANGE, &mark);
    if (own < end) status = make_output(run, own, &dealt, product);
    if (run->teams.num > 1) TESS_TRY(tess_comm_agree(run->teams.all, status));
    TESS_TRY(status);
    for (int64_t k = first; k < end; ++k)
        imager_output_log(&run->output, k / channels, k % channels, num_psf(run));
    TESS_TRY(add_round(run, first, end, product, mean));
cleanup:
    tess_samples_free(&dealt);
    free_products(product, MOST_IMAGES);
    return status;
}

/* Take up the means of a run that is continued in the middle of an interval. */
static tess_status continue_mean(image_run *run, channel_mean *mean)
{
    tess_status status = TESS_OK;
    const imager_checkpoint *checkpoint = &run->checkpoint;
    const int64_t done = outputs_done(run), channels = run->outputs.num_channels;
    int64_t row_first, num_rows;
    for (int64_t k = done - done % channels; k < done; ++k)
        imager_extent_join(&mean->extent, &run->outputs.extent[k]);
    if (done % channels == 0 || checkpoint->state.num_mean == 0) return TESS_OK;
    mean_rows(run, &row_first, &num_rows);
    mean->started = true;
    run->checkpoint.num_mean = run->job.num_images;
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
        end = first + run->teams.num;
        if (end > run->outputs.num) end = run->outputs.num;
        TESS_TRY(image_round(run, first, end, &mean));
        TESS_TRY(imager_checkpoint_outputs(&run->checkpoint, end - first));
    }
cleanup:
    free_products(mean.product, MOST_IMAGES);
    return status;
}

static void free_run(image_run *run)
{
    imager_job_free(&run->job);
    tess_device_comm_destroy(run->job.devices);
    tess_comm_free(run->job.alone);
    imager_predictor_free(&run->subtract);
    tess_density_destroy(run->density);
    imager_checkpoint_free(&run->checkpoint);
    imager_outputs_free(&run->outputs);
    tess_source_close(run->source);
    tess_samples_free(&run->all);
    tess_free(run->row_time);
    tess_free(run->chan_wanted);
    imager_teams_free(&run->teams);
}

tess_status tess_imager_image(tess_comm *comm, const tess_image_opts *opts,
                              tess_profile *profile)
{
    tess_status status = TESS_OK;
    tess_image_opts own = *opts;
    image_run run = {.comm = comm,
                     .opts = &own,
                     .profile = profile,
                     .teams = {.all = comm, .num = 1}};
    run.output.comm = comm;
    TESS_TRY(set_up(&run));
    TESS_TRY(imager_checkpoint_start(comm, &own, profile, &run.checkpoint));
    own.overwrite =
        own.overwrite || run.checkpoint.resumed; /* what exists is its own */
    TESS_TRY(imager_output_check(&run.output));
    TESS_TRY(imager_stages_start(comm, opts->dump_stages, own.overwrite));
    TESS_TRY(look_at_data(&run));
    TESS_TRY(log_ignored(&run));
    if (run.job.extent.num_vis == 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: nothing to image: all selected visibilities are flagged or "
                  "ignored (see the log for the reasons)",
                  run.info->meta->path);
    TESS_TRY(imager_job_plan(&run.job));
    if (opts->checkpoint.folder)
        TESS_TRY(imager_checkpoint_plan(&run.checkpoint, &run.job));
    TESS_TRY(form_teams(&run, run.mode == DATA_CACHED));
    if (opts->checkpoint.folder && run.teams.num == 1)
        run.job.checkpoint = &run.checkpoint;
    TESS_TRY(image_outputs(&run));
    imager_checkpoint_finish(&run.checkpoint);
cleanup:
    tess_profile_stop_meter(profile);
    if (run.source)
        profile->stage_bytes[TESS_STAGE_READ] += tess_source_bytes(run.source);
    free_run(&run);
    return status;
}

/* ---- plan ---- */

/* What this rank would do with its slice. Collective. */
static tess_status workload_of(const image_run *run, bool kept, const imager_data *data,
                               imager_workload *work)
{
    tess_status status = TESS_OK;
    const tess_samples like = tess_source_samples(run->source);
    const double vis_bytes = (double)tess_samples_vis_bytes(&like);
    int64_t num_rows, num_vis;
    tess_source_slice(run->source, &num_rows, &num_vis);
    /* the slice is a team's: all ranks read, and keep, a slice each */
    num_rows /= run->teams.num;
    num_vis /= run->teams.num;
    *work = (imager_workload){
        .num_vis = num_vis,
        .num_runs = data->num_runs,
        .num_outputs = (run->outputs.num + run->teams.num - 1) / run->teams.num,
        .num_reads = kept ? 1 : 3,
        .cached = kept,
        .file_bytes =
            64.0 * (double)num_rows + 12.0 * run->info->num_corr * (double)num_vis,
        .block_bytes = (double)run->block_bytes,
        .sample_bytes = vis_bytes * (double)num_vis + ROW_BYTES * (double)num_rows,
        .owned_bytes = vis_bytes * (double)data->num_vis / tess_comm_size(run->comm)};
    if (run->teams.num > 1) {
        work->dealt_bytes = work->owned_bytes;
        work->deal_s = imager_estimate_deal(&run->job, &run->outputs,
                                            tess_comm_size(run->teams.all), vis_bytes);
    }
    return status;
}

static void print_seconds(const imager_estimate *estimate)
{
    static const tess_stage shown[] = {
        TESS_STAGE_READ,    TESS_STAGE_WEIGHT, TESS_STAGE_PLAN,   TESS_STAGE_EXCHANGE,
        TESS_STAGE_SORT,    TESS_STAGE_GRID,   TESS_STAGE_REDUCE, TESS_STAGE_FFT,
        TESS_STAGE_CORRECT, TESS_STAGE_WRITE};
    printf("time          about %.2g s:", estimate->total_s);
    for (size_t k = 0; k < sizeof shown / sizeof *shown; ++k)
        if (estimate->seconds[shown[k]] > 0)
            printf("%s %s %.2g s", k ? "," : "", tess_stage_name(shown[k]),
                   estimate->seconds[shown[k]]);
    printf("\n");
}

static void print_plan(const image_run *run, const imager_job *job,
                       const imager_estimate *estimate)
{
    char text[512];
    double largest, mean;
    int64_t split;
    const int ranks = tess_comm_size(run->teams.all);
    const int threads = run->opts->layout.threads;
    tess_grid_plan_text(job->plan, text, sizeof text);
    tess_partition_balance(job->partition, &largest, &mean, &split);
    printf("visibilities  %lld of %lld%s, |w| %.4g to %.4g wavelengths\n",
           (long long)job->extent.num_vis, (long long)run->info->num_vis,
           run->outputs.num > 1 ? " in an image" : "", job->extent.w_min_lambda,
           job->extent.w_max_lambda);
    printf("grid          %s\n", text);
    if (run->outputs.num > 1)
        printf("outputs       %lld sets of images by %d team%s of %d rank%s\n",
               (long long)run->outputs.num, run->teams.num,
               run->teams.num == 1 ? "" : "s", ranks / run->teams.num,
               ranks == run->teams.num ? "" : "s");
    printf("partition     %d rank%s x %d threads: %d w-group%s, planes transformed by "
           "groups of %d\n",
           ranks, ranks == 1 ? "" : "s", threads, job->num_groups,
           job->num_groups == 1 ? "" : "s", job->fft_ranks);
    printf(
        "balance       gridding %.1f %% above the mean on the busiest rank, %lld split "
        "bricks, no visibility sent twice\n",
        mean > 0 ? 100 * (largest / mean - 1) : 0.0, (long long)split);
    printf("memory a rank about %.0f MiB of %s: %.0f MiB reading, %.0f MiB samples, "
           "%.0f MiB sums of bricks, %.0f MiB planes and images\n",
           estimate->peak / (1 << 20), tess_mem_text((double)run->job.rank_bytes),
           estimate->reading / (1 << 20), estimate->samples / (1 << 20),
           estimate->sums / (1 << 20), estimate->planes / (1 << 20));
    if (job->costs.measured)
        printf("costs         measured on this machine; %d thread%s saturate%s its "
               "memory\n",
               job->costs.copy_threads, job->costs.copy_threads == 1 ? "" : "s",
               job->costs.copy_threads == 1 ? "s" : "");
    else
        printf("costs         built in, not measured on this machine\n");
    print_seconds(estimate);
}

/* As tess_imager_image, but stops when the work of the largest output has been
 * partitioned. */
tess_status tess_imager_plan(tess_comm *comm, const tess_image_opts *opts,
                             tess_profile *profile)
{
    tess_status status = TESS_OK;
    image_run run = {.comm = comm,
                     .opts = opts,
                     .profile = profile,
                     .teams = {.all = comm, .num = 1}};
    imager_data data = {0};
    tess_brick_list bricks = {0};
    imager_workload work;
    imager_estimate estimate;
    tess_image_opts natural = *opts; /* weights do not change the plan */
    int64_t largest = 0;
    bool kept;
    natural.weighting = TESS_NATURAL;
    natural.subtract = NULL;
    natural.scratch = NULL; /* what is planned is not read twice */
    run.opts = &natural;
    TESS_TRY(set_up(&run));
    run.mode = DATA_STREAMED;
    TESS_TRY(survey_blocks(&run));
    TESS_TRY(finish_survey(&run));
    if (run.job.extent.num_vis == 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: nothing to image", run.info->meta->path);
    TESS_TRY(imager_job_plan(&run.job));
    TESS_TRY(imager_job_calibrate(&run.job));
    TESS_TRY(fits_all(&run, cached_bytes(&run), &kept));
    TESS_TRY(form_teams(&run, kept));
    for (int64_t k = 1; k < run.outputs.num; ++k)
        if (run.outputs.extent[k].num_vis > run.outputs.extent[largest].num_vis)
            largest = k;
    TESS_TRY(data_for(&run, largest, &data));
    status = imager_count_bricks(&run.job, &data, false, &bricks);
    TESS_TRY(tess_comm_agree(run.comm, status));
    TESS_TRY(imager_job_partition(&run.job, &bricks, true));
    TESS_TRY(workload_of(&run, kept, &data, &work));
    if (opts->scratch && !kept) work.num_reads = 2;
    work.weighted = opts->weighting != TESS_NATURAL;
    TESS_TRY(imager_estimate_make(&run.job, &work, &bricks, &estimate));
    if (tess_comm_rank(comm) == 0) print_plan(&run, &run.job, &estimate);
cleanup:
    tess_brick_list_free(&bricks);
    data_free(&data);
    free_run(&run);
    return status;
}
