/* `tessera predict`: visibilities of a model image, written over a copy of an
 * observation or into a column. */
#include <stdio.h>
#include <string.h>

#include "device_predict.h"
#include "imager_resources.h"
#include "predict_models.h"
#include "predicted_mix.h"
#include "predictor.h"
#include "tess_backend_choice.h"
#include "tess_grid.h"
#include "tess_imager_predict.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_minmax.h"

/* Share of a rank's memory for the visibilities of one batch of blocks. */
static const double BATCH_SHARE = 0.25;

/* Bytes of a row of a new file beside its weights: uvw, time, integration, antennas. */
static const double ROW_BYTES = 48;

/* A block of the observation: where it belongs, and which rows are predicted. */
typedef struct predicted_block {
    int segment, num_corr;
    tess_corr corr[TESS_MAX_CORR];
    int64_t row_first, num_rows, num_chan;
    int64_t first_row, num_kept; /* its rows in the batch's samples */
    const tess_recipe *recipe;
    double *file_w_m;    /* [num_kept][3] uvw of the file, when rotated */
    tess_vis_block rows; /* of a new file: all but vis, of num_rows rows */
} predicted_block;

typedef struct predicted_batch {
    tess_samples samples;
    int64_t *block_row; /* [samples.num_rows] row within its block */
    double *row_time;   /* [samples.num_rows] with several models, else NULL */
    predicted_block *block;
    int64_t num_blocks, capacity_blocks;
    int64_t capacity_rows; /* of block_row and row_time */
} predicted_batch;

typedef struct predict_run {
    tess_comm *comm;
    const tess_predict_opts *opts;
    tess_profile *profile;
    tess_source *source;
    const tess_source_info *info;
    imager_predictor predictor;
    tess_vis_writer *writer; /* NULL: the caller takes what is predicted */
    char message[1200];      /* of the origin */
    tess_vis_origin origin;
    int64_t num_blocks, blocks_per_batch;
    output_table outputs; /* with several models: of this observation's channels */
    int64_t row_first, num_rows; /* of models on this rank */
    bool makes_rows; /* rows are described here, not copied: of a new file, or for the
                        caller's taker */
    bool by_rows; /* rows are predicted where they are, on the device: device_predict.h
                   */
} predict_run;

static void batch_free(predicted_batch *batch)
{
    for (int64_t k = 0; k < batch->num_blocks; ++k) {
        tess_free(batch->block[k].file_w_m);
        tess_vis_block_free(&batch->block[k].rows);
    }
    tess_samples_free(&batch->samples);
    tess_free(batch->block_row);
    tess_free(batch->row_time);
    tess_free(batch->block);
    memset(batch, 0, sizeof *batch);
}

static void *copy_of(const void *from, int64_t count, size_t size)
{
    void *copy = tess_alloc(count, size);
    if (copy) memcpy(copy, from, (size_t)count * size);
    return copy;
}

/* Keep what a new file says of a block's rows beside visibilities. Local. */
static tess_status keep_rows(const tess_vis_block *block, tess_vis_block *rows)
{
    tess_status status = TESS_OK;
    const int64_t num_rows = block->num_rows;
    rows->uvw_m = copy_of(block->uvw_m, 3 * num_rows, sizeof *rows->uvw_m);
    rows->time_mjd_s = copy_of(block->time_mjd_s, num_rows, sizeof *rows->time_mjd_s);
    rows->integration_s =
        copy_of(block->integration_s, num_rows, sizeof *rows->integration_s);
    rows->antenna1 = copy_of(block->antenna1, num_rows, sizeof *rows->antenna1);
    rows->antenna2 = copy_of(block->antenna2, num_rows, sizeof *rows->antenna2);
    rows->weight = copy_of(block->weight, num_rows * block->num_chan * block->num_corr,
                           sizeof *rows->weight);
    if (!rows->uvw_m || !rows->time_mjd_s || !rows->integration_s || !rows->antenna1 ||
        !rows->antenna2 || !rows->weight)
        TESS_FAIL(TESS_ERR_ALLOC, "rows");
cleanup:
    return status;
}

/* Give the rows back to a block of their size. */
static void restore_rows(const tess_vis_block *rows, tess_vis_block *block)
{
    const size_t num_rows = (size_t)block->num_rows;
    const size_t num_vis = num_rows * (size_t)(block->num_chan * block->num_corr);
    if (num_rows == 0) return;
    memcpy(block->uvw_m, rows->uvw_m, 3 * num_rows * sizeof *block->uvw_m);
    memcpy(block->time_mjd_s, rows->time_mjd_s, num_rows * sizeof *block->time_mjd_s);
    memcpy(block->integration_s, rows->integration_s,
           num_rows * sizeof *block->integration_s);
    memcpy(block->antenna1, rows->antenna1, num_rows * sizeof *block->antenna1);
    memcpy(block->antenna2, rows->antenna2, num_rows * sizeof *block->antenna2);
    memcpy(block->weight, rows->weight, num_vis * sizeof *block->weight);
}

/* Times of a block's rows that are predicted. Local. */
static void keep_times(predicted_batch *batch, const predicted_block *from,
                       const tess_vis_block *block)
{
    for (int64_t k = from->first_row; k < batch->samples.num_rows; ++k)
        batch->row_time[k] = block->time_mjd_s[batch->block_row[k]];
}

/* Makes room for `num_rows` rows. Local. */
static tess_status reserve_rows(const predict_run *run, int64_t num_rows,
                                predicted_batch *batch)
{
    tess_status status = TESS_OK;
    int64_t for_times = batch->capacity_rows;
    if (run->opts->models && tess_grow((void **)&batch->row_time, &for_times, num_rows,
                                       sizeof *batch->row_time))
        TESS_FAIL(TESS_ERR_ALLOC, "times of rows");
    if (tess_grow((void **)&batch->block_row, &batch->capacity_rows, num_rows,
                  sizeof *batch->block_row))
        TESS_FAIL(TESS_ERR_ALLOC, "rows");
cleanup:
    return status;
}

/* Room for `count` of this rank's blocks, whose sizes differ little, at once: arrays
 * that grow from block to block are copied, and the system clears their pages, each
 * time. Local. */
static tess_status reserve(const predict_run *run, int64_t count,
                           predicted_batch *batch)
{
    tess_status status = TESS_OK;
    const int64_t own = tess_source_own_blocks(run->source);
    int64_t num_rows, num_vis;
    tess_source_slice(run->source, &num_rows, &num_vis);
    if (count < own) {
        num_rows = num_rows / own * count;
        num_vis = num_vis / own * count;
    }
    TESS_TRY(reserve_rows(run, num_rows, batch));
    TESS_TRY(tess_samples_reserve(&batch->samples, num_rows, num_vis));
cleanup:
    return status;
}

/* Read the positions of the next block into the batch. Local. */
static tess_status add_block(predict_run *run, predicted_batch *batch)
{
    tess_status status = TESS_OK;
    tess_vis_block *block;
    const tess_recipe *recipe;
    if (tess_grow((void **)&batch->block, &batch->capacity_blocks,
                  batch->num_blocks + 1, sizeof *batch->block))
        TESS_FAIL(TESS_ERR_ALLOC, "blocks");
    predicted_block *out = &batch->block[batch->num_blocks++];
    memset(out, 0, sizeof *out);
    TESS_TRY(tess_source_next_block(run->source, &block, &recipe));
    if (!block) return TESS_OK;
    out->segment = block->segment;
    out->row_first = block->row_first;
    out->num_rows = block->num_rows;
    out->num_chan = block->num_chan;
    out->num_corr = block->num_corr;
    memcpy(out->corr, run->info->meta->segment[block->segment].corr, sizeof out->corr);
    out->recipe = recipe;
    out->first_row = batch->samples.num_rows;
    TESS_TRY(reserve_rows(run, batch->samples.num_rows + block->num_rows, batch));
    TESS_TRY(tess_prepare_positions(recipe, block, &batch->samples, batch->block_row));
    out->num_kept = batch->samples.num_rows - out->first_row;
    if (run->opts->models) keep_times(batch, out, block);
    if (run->makes_rows) TESS_TRY(keep_rows(block, &out->rows));
    if (recipe->rotate) {
        out->file_w_m = tess_alloc(3 * out->num_kept, sizeof *out->file_w_m);
        if (!out->file_w_m) TESS_FAIL(TESS_ERR_ALLOC, "rows");
        for (int64_t k = 0; k < out->num_kept; ++k)
            memcpy(out->file_w_m + 3 * k,
                   block->uvw_m + 3 * batch->block_row[out->first_row + k],
                   3 * sizeof(double));
    }
cleanup:
    return status;
}

/* Stokes parameters of a sample become the block's correlations. */
static predicted_mix mix_of(const imager_model *model, const predicted_block *from)
{
    predicted_mix mix = {.num_corr = from->num_corr,
                         .num_images = model->num_stokes,
                         .scale = model->scale};
    for (int c = 0; c < from->num_corr; ++c) {
        double complex stokes[4];
        tess_pol_from_stokes(from->corr[c], stokes);
        for (int s = 0; s < model->num_stokes; ++s)
            mix.coefficient[c][s] = stokes[model->stokes[s] - 1];
    }
    return mix;
}

static void fill_row(const predicted_mix *mix, const predicted_batch *batch,
                     const predicted_block *from, int64_t k, tess_vis_block *block)
{
    const tess_samples *samples = &batch->samples;
    const int64_t row = from->first_row + k, to = batch->block_row[row];
    for (int64_t c = 0; c < from->num_chan; ++c) {
        double re = 1, im = 0;
        if (from->file_w_m)
            tess_rotation_phase(from->recipe, from->file_w_m + 3 * k,
                                from->recipe->inv_lambda[c], &re, &im);
        predicted_mix_sample(mix, samples, samples->vis_first[row] + c, re, im,
                             block->vis +
                                 2 * (to * from->num_chan + c) * from->num_corr);
    }
}

/* Write one block; a rank without one takes part with no rows. Collective. */
static tess_status write_block(const predict_run *run, const predicted_batch *batch,
                               int64_t index, tess_vis_block *block)
{
    tess_status status = TESS_OK;
    const predicted_block none = {.num_corr = 1, .num_chan = 1};
    const predicted_block *from =
        index < batch->num_blocks ? &batch->block[index] : &none;
    const int64_t values = from->num_rows * from->num_chan * from->num_corr;
    status = tess_vis_block_resize(block, from->num_rows, from->num_chan,
                                   from->num_corr > 0 ? from->num_corr : 1);
    TESS_TRY(tess_comm_agree(run->comm, status));
    block->segment = from->segment;
    block->row_first = from->row_first;
    block->num_rows = from->num_rows;
    block->num_chan = from->num_chan;
    block->num_corr = from->num_corr;
    if (run->makes_rows) restore_rows(&from->rows, block);
    /* rows without finite uvw have no prediction: 0 */
    memset(block->vis, 0, (size_t)(2 * values) * sizeof *block->vis);
    const predict_models *models = run->opts->models;
    const predicted_mix mix = models ? predicted_mix_of(models->pol, models->num_pol,
                                                        from->corr, from->num_corr, 1)
                                     : mix_of(&run->predictor.model, from);
#pragma omp parallel for num_threads(run->opts->layout.threads) schedule(static)
    for (int64_t k = 0; k < from->num_kept; ++k)
        fill_row(&mix, batch, from, k, block);
    if (run->writer)
        TESS_TRY(tess_vis_write(run->writer, block));
    else
        TESS_TRY(run->opts->take(run->opts->take_context, run->info->meta, block));
    run->profile->stage_bytes[TESS_STAGE_WRITE] += values * 2 * (int64_t)sizeof(float);
cleanup:
    return status;
}

/* The model of an output, at the rows and channels of it that are in a batch.
 * Collective. */
static tess_status predict_output(predict_run *run, int64_t output,
                                  predicted_batch *batch)
{
    tess_status status = TESS_OK;
    const predict_models *models = run->opts->models;
    imager_predictor *predictor = &run->predictor;
    imager_rows rows[2 * TESS_MAX_POL] = {0};
    tess_samples chosen = tess_source_samples(run->source);
    chosen.num_pol = models->num_pol;
    chosen.num_weight = 1;
    for (int p = 0; p < models->num_pol && status == TESS_OK; ++p)
        status =
            imager_rows_zero(run->row_first, run->num_rows, models->geom.nx, &rows[p]);
    if (status == TESS_OK)
        status = output_table_choose_rows(&run->outputs, output, &batch->samples,
                                          batch->row_time, &chosen);
    TESS_TRY(tess_comm_agree(run->comm, status));
    TESS_TRY(models->load(models->context, output, rows));
    predictor->rows = rows;
    status = imager_predictor_run(predictor, &chosen);
    predictor->rows = NULL;
    TESS_TRY(status);
    output_table_put_back(&run->outputs, output, &chosen, batch->row_time,
                          1 / predictor->model.scale, &batch->samples);
cleanup:
    for (int p = 0; p < models->num_pol; ++p)
        imager_rows_free(&rows[p]);
    tess_samples_free(&chosen);
    return status;
}

/* Collective. */
static tess_status predict_outputs(predict_run *run, predicted_batch *batch)
{
    tess_status status = TESS_OK;
    tess_samples *samples = &batch->samples;
    const int64_t bytes =
        samples->num_vis * samples->num_pol * 2 * (samples->is_double ? 8 : 4);
    if (bytes > 0) memset(samples->vis, 0, (size_t)bytes);
    for (int64_t k = 0; k < run->outputs.num; ++k)
        TESS_TRY(predict_output(run, k, batch));
cleanup:
    return status;
}

static tess_status predict_batch(predict_run *run, int64_t first, int64_t end,
                                 tess_vis_block *block)
{
    tess_status status = TESS_OK;
    predicted_batch batch = {0};
    double mark = tess_time_now();
    batch.samples = tess_source_samples(run->source);
    batch.samples.num_pol = run->predictor.model.num_stokes;
    batch.samples.num_weight = 1;
    status = reserve(run, end - first, &batch);
    for (int64_t k = first; k < end && status == TESS_OK; ++k)
        status = add_block(run, &batch);
    TESS_TRY(tess_comm_agree(run->comm, status));
    tess_profile_lap(run->profile, TESS_STAGE_READ, &mark);
    TESS_TRY(run->opts->models ? predict_outputs(run, &batch)
                               : imager_predictor_run(&run->predictor, &batch.samples));
    run->profile->visibilities += batch.samples.num_vis;
    mark = tess_time_now();
    for (int64_t k = 0; k < end - first; ++k)
        TESS_TRY(write_block(run, &batch, k, block));
    tess_profile_lap(run->profile, TESS_STAGE_WRITE, &mark);
cleanup:
    batch_free(&batch);
    return status;
}

static tess_status open_writer(predict_run *run)
{
    tess_status status = TESS_OK;
    tess_vis_reader *reader = tess_source_reader(run->source, 0);
    const tess_predict_opts *opts = run->opts;
    snprintf(run->message, sizeof run->message,
             "visibilities%s%s predicted from the model image %s",
             opts->column ? " of " : "", opts->column ? opts->column : "",
             opts->model    ? opts->model
             : opts->models ? "of each output"
                            : "in memory");
    run->origin = (tess_vis_origin){opts->command_line, run->message};
    if (opts->column)
        TESS_TRY(tess_vis_create_column(run->comm, reader, opts->column, &run->origin,
                                        opts->overwrite, &run->writer));
    else if (run->by_rows)
        TESS_TRY(tess_vis_create_rows(run->comm, opts->output, reader, &run->origin,
                                      opts->overwrite, &run->writer));
    else
        TESS_TRY(tess_vis_create_like(run->comm, opts->output, reader, &run->origin,
                                      opts->overwrite, &run->writer));
cleanup:
    return status;
}

/* Output channels of this observation's channels, by their frequencies. Local. */
static tess_status find_channels(predict_run *run)
{
    tess_status status = TESS_OK;
    const predict_models *models = run->opts->models;
    output_table *outputs = &run->outputs;
    *outputs = *models->outputs;
    outputs->num_chan = run->info->num_chan;
    outputs->chan_output =
        tess_alloc_zero(outputs->num_chan, sizeof *outputs->chan_output);
    if (!outputs->chan_output) TESS_FAIL(TESS_ERR_ALLOC, "channels");
    for (int64_t k = 0; k < outputs->num_chan; ++k) {
        int64_t at = 0;
        while (at < models->outputs->num_chan &&
               (models->freq_hz[at] < run->info->freq_hz[k] ||
                models->freq_hz[at] > run->info->freq_hz[k]))
            ++at;
        if (at == models->outputs->num_chan)
            TESS_FAIL(TESS_ERR_INPUT, "%s: it has changed since it was imaged",
                      run->opts->obs);
        outputs->chan_output[k] = models->outputs->chan_output[at];
    }
cleanup:
    return status;
}

/* A model whose pixels are given for each output. Local. */
static tess_status take_models(predict_run *run, imager_model *model)
{
    const predict_models *models = run->opts->models;
    *model =
        (imager_model){.geom = models->geom, .num_stokes = models->num_pol, .scale = 1};
    tess_planes_final_rows(models->geom.ny, run->opts->layout.forced.fft_ranks,
                           tess_comm_rank(run->comm), tess_comm_size(run->comm),
                           &run->row_first, &run->num_rows);
    return find_channels(run);
}

/* Local. */
static tess_status open_model(const predict_run *run, imager_model *model)
{
    tess_status status = TESS_OK;
    const tess_predict_opts *opts = run->opts;
    const tess_source_info *info = run->info;
    TESS_TRY(imager_model_open(opts->model, opts->model_terms, opts->pixels,
                               info->ra_rad, info->dec_rad, 0, model));
    if (model->cube)
        status = model_cube_check(model->cube, info->freq_hz, info->num_chan,
                                  tess_comm_rank(run->comm) == 0);
    if (status != TESS_OK) imager_model_close(model);
cleanup:
    return status;
}

/* Open the observation, and the model or models that are predicted. `*model` is taken
 * over by the predictor, or closed after a failure. Collective. */
static tess_status open_inputs(predict_run *run, imager_model *model)
{
    tess_status status = TESS_OK;
    const tess_predict_opts *opts = run->opts;
    tess_selection selection = opts->selection;
    selection.positions_only = true;
    /* the other columns stay as they are; times tell which model it is */
    selection.uvw_only = opts->column && !opts->models;
    TESS_TRY(tess_source_open(run->comm, &opts->obs, 1, &selection, &run->source));
    tess_source_trace(run->source, run->profile->trace);
    run->info = tess_source_info_of(run->source);
    run->makes_rows = opts->output
                          ? !tess_vis_is_copied(tess_source_reader(run->source, 0))
                          : opts->column == NULL;
    status = opts->models ? take_models(run, model) : open_model(run, model);
    const tess_pol first = {.code = run->info->corr[0]};
    if (status == TESS_OK)
        status = tess_source_setup(run->source, &first, 1, 0,
                                   opts->gridding.accuracy < TESS_SINGLE_ACCURACY,
                                   opts->layout.threads, TESS_BLOCK_BYTES);
    status = tess_comm_agree(run->comm, status);
    if (status != TESS_OK) imager_model_close(model);
cleanup:
    return status;
}

/* How many blocks are predicted at a time, so that their samples fit. Collective. */
static tess_status divide_blocks(predict_run *run, int num_stokes)
{
    tess_status status = TESS_OK;
    const tess_predict_opts *opts = run->opts;
    const double rank_bytes = (double)run->predictor.job.memory.rank_bytes;
    const int value_bytes = opts->gridding.accuracy < TESS_SINGLE_ACCURACY ? 16 : 8;
    int64_t num_rows, num_vis;
    TESS_TRY(tess_source_num_blocks(run->source, &run->num_blocks));
    tess_source_slice(run->source, &num_rows, &num_vis);
    /* a sample is held here, at its brick's owner and on its way */
    double bytes = (double)num_vis * 3 * value_bytes * num_stokes;
    if (run->makes_rows)
        bytes += (double)num_vis * TESS_MAX_CORR * sizeof(float) +
                 (double)num_rows * ROW_BYTES;
    int64_t batches = 1 + (int64_t)(bytes / (BATCH_SHARE * rank_bytes));
    if (opts->layout.forced.passes > 0) batches = opts->layout.forced.passes;
    TESS_TRY(tess_comm_allreduce_i64(run->comm, &batches, 1, TESS_MAX));
    run->blocks_per_batch = tess_max_i64(1, (run->num_blocks + batches - 1) / batches);
cleanup:
    return status;
}

static tess_status set_up(predict_run *run)
{
    tess_status status = TESS_OK;
    const tess_predict_opts *opts = run->opts;
    imager_model model = {0};
    const tess_backend *backend;
    TESS_TRY(imager_backend(run->comm, opts->gridding.backend, &backend));
    imager_backend_log(opts->gridding.backend, backend);
    TESS_TRY(imager_meter(run->comm, backend, run->profile));
    TESS_TRY(open_inputs(run, &model));
    TESS_TRY(imager_predictor_create(run->comm, &model, &opts->gridding, &opts->layout,
                                     run->profile, &run->predictor));
    TESS_TRY(divide_blocks(run, model.num_stokes));
    int64_t by_rows = opts->output && !model.cube &&
                      device_predict_possible(&run->predictor, run->source);
    TESS_TRY(tess_comm_allreduce_i64(run->comm, &by_rows, 1, TESS_MIN));
    run->by_rows = by_rows != 0;
    if (opts->output || opts->column) TESS_TRY(open_writer(run));
cleanup:
    return status;
}

static tess_status predict_batches(predict_run *run)
{
    tess_status status = TESS_OK;
    tess_vis_block block = {0};
    tess_source_rewind(run->source);
    for (int64_t first = 0; first < run->num_blocks; first += run->blocks_per_batch) {
        const int64_t end = first + run->blocks_per_batch;
        TESS_TRY(predict_batch(run, first,
                               end < run->num_blocks ? end : run->num_blocks, &block));
    }
cleanup:
    tess_vis_block_free(&block);
    return status;
}

tess_status tess_imager_predict(tess_comm *comm, const tess_predict_opts *opts,
                                tess_profile *profile)
{
    tess_status status = TESS_OK;
    predict_run run = {.comm = comm, .opts = opts, .profile = profile};
    TESS_TRY(set_up(&run));
    if (run.by_rows)
        TESS_TRY(device_predict_rows(&run.predictor, run.source, run.writer));
    else
        TESS_TRY(predict_batches(&run));
    double mark = tess_time_now();
    if (run.writer) {
        TESS_TRY(tess_vis_finish(run.writer));
        tess_profile_lap(profile, TESS_STAGE_WRITE, &mark);
        tess_log_detail("wrote %s", opts->column ? opts->column : opts->output);
    }
cleanup:
    tess_profile_stop_meter(profile);
    if (run.source)
        profile->stage_bytes[TESS_STAGE_READ] += tess_source_bytes(run.source);
    tess_vis_writer_destroy(run.writer);
    if (opts->models) tess_free(run.outputs.chan_output); /* the rest is borrowed */
    imager_predictor_free(&run.predictor);
    tess_source_close(run.source);
    return status;
}
