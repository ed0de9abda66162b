/* `tessera predict`: reads blocks of rows, predicts visibilities of a model image or of
 * a list of sources, and writes them over a copy of an observation or into a column. */
#include <stdio.h>
#include <string.h>

#include "device_predict.h"
#include "facet_columns.h"
#include "image_facets.h"
#include "imager_resources.h"
#include "predict_models.h"
#include "predicted_pointing.h"
#include "predicted_rows.h"
#include "predictor.h"
#include "source_origins.h"
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

/* A block of the observation, and which of its rows are predicted. */
typedef struct predicted_block {
    tess_vis_block rows; /* without vis: of a new file all, else what is needed */
    predicted_part part; /* its samples in the batch */
} predicted_block;

typedef struct predicted_batch {
    predicted_rows rows;
    double *row_time; /* [rows.samples.num_rows] with several models, else NULL */
    predicted_block *block;
    int64_t num_blocks, capacity_blocks, capacity_times;
} predicted_batch;

typedef struct predict_run {
    tess_comm *comm;
    const tess_predict_opts *opts;
    tess_profile *profile;
    tess_source *source;
    const tess_source_info *info;
    imager_predictor predictor;
    tess_pol pol[2 * TESS_MAX_POL]; /* [num_pol] of the images that are predicted */
    int num_pol;
    facet_columns columns; /* one of each facet; none: one column of all */
    float *vis;            /* of the block that is handed on */
    int64_t capacity_vis;
    tess_vis_writer *writer; /* NULL: the caller takes what is predicted */
    char message[1200];      /* of the origin */
    tess_vis_origin origin;
    int64_t num_blocks, blocks_per_batch;
    output_table outputs; /* with several models: of this observation's channels */
    image_facets *facets; /* parts of the model, or NULL */
    predicted_pointing *pointing; /* its part of the model, or NULL */
    int64_t row_first, num_rows;  /* of models on this rank */
    bool makes_rows; /* rows are described here, not copied: of a new file, or for the
                        caller's taker */
    bool by_rows; /* rows are predicted where they are, on the device: device_predict.h
                   */
} predict_run;

static void batch_free(predicted_batch *batch)
{
    for (int64_t k = 0; k < batch->num_blocks; ++k)
        tess_vis_block_free(&batch->block[k].rows);
    predicted_rows_free(&batch->rows);
    tess_free(batch->row_time);
    tess_free(batch->block);
    memset(batch, 0, sizeof *batch);
}

/* ---- a block in ---- */

static tess_status copy_of(const void *from, int64_t count, size_t size, void *to)
{
    tess_status status = TESS_OK;
    void *copy = tess_alloc(count, size);
    if (!copy) TESS_FAIL(TESS_ERR_ALLOC, "rows");
    memcpy(copy, from, (size_t)count * size);
    memcpy(to, &copy, sizeof copy);
cleanup:
    return status;
}

/* Keeps what is needed of a block's rows later: positions to rotate visibilities or to
 * sum sources, and of a new file all. Local. */
static tess_status keep_rows(const predict_run *run, const tess_vis_block *block,
                             const tess_recipe *recipe, tess_vis_block *rows)
{
    tess_status status = TESS_OK;
    const int64_t count = block->num_rows;
    *rows = (tess_vis_block){.segment = block->segment,
                             .row_first = block->row_first,
                             .num_rows = count,
                             .num_chan = block->num_chan,
                             .num_corr = block->num_corr};
    if (run->makes_rows || run->opts->blocks || recipe->rotate)
        TESS_TRY(copy_of(block->uvw_m, 3 * count, sizeof(double), &rows->uvw_m));
    if (!run->makes_rows) return TESS_OK;
    TESS_TRY(copy_of(block->time_mjd_s, count, sizeof(double), &rows->time_mjd_s));
    TESS_TRY(
        copy_of(block->integration_s, count, sizeof(double), &rows->integration_s));
    TESS_TRY(copy_of(block->antenna1, count, sizeof(int32_t), &rows->antenna1));
    TESS_TRY(copy_of(block->antenna2, count, sizeof(int32_t), &rows->antenna2));
    TESS_TRY(copy_of(block->weight, count * block->num_chan * block->num_corr,
                     sizeof(float), &rows->weight));
cleanup:
    return status;
}

/* Room for `count` of this rank's blocks, whose sizes differ little, at once: arrays
 * that grow from block to block are copied, and the system clears their pages, each
 * time. Local. */
static tess_status reserve(const predict_run *run, int64_t count,
                           predicted_batch *batch)
{
    const int64_t own = tess_source_own_blocks(run->source);
    int64_t num_rows, num_vis;
    if (run->opts->blocks) return TESS_OK; /* they need no samples */
    tess_source_slice(run->source, &num_rows, &num_vis);
    if (count < own) {
        num_rows = num_rows / own * count;
        num_vis = num_vis / own * count;
    }
    return predicted_rows_reserve(&batch->rows, num_rows, num_vis);
}

/* Keeps the times of the samples' rows from `first` on, of this block. Local. */
static tess_status keep_times(predicted_batch *batch, int64_t first,
                              const tess_vis_block *block)
{
    tess_status status = TESS_OK;
    const int64_t num_rows = batch->rows.samples.num_rows;
    if (tess_grow((void **)&batch->row_time, &batch->capacity_times, num_rows,
                  sizeof *batch->row_time))
        TESS_FAIL(TESS_ERR_ALLOC, "times of rows");
    for (int64_t k = first; k < num_rows; ++k)
        batch->row_time[k] = block->time_mjd_s[batch->rows.row[k]];
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
    TESS_TRY(keep_rows(run, block, recipe, &out->rows));
    if (run->opts->blocks) return TESS_OK;
    TESS_TRY(predicted_rows_add(&batch->rows, recipe, block, 0, &out->part));
    if (run->opts->models) TESS_TRY(keep_times(batch, out->part.first, block));
cleanup:
    return status;
}

/* ---- a block out ---- */

/* The values of a sample: images, or correlations of each column. */
static int num_values(const predict_run *run)
{
    return run->num_pol * (run->columns.num > 0 ? run->columns.num : 1);
}

/* Makes the visibilities of a block for a column, which is that of the file with
 * run->vis. A rank that has none gets one of no rows. Local. */
static tess_status fill_block(predict_run *run, const predicted_batch *batch,
                              int64_t index, int column, tess_vis_block *block)
{
    tess_status status = TESS_OK;
    const tess_block_predictor *blocks = run->opts->blocks;
    *block = (tess_vis_block){.num_chan = 1, .num_corr = 1};
    if (index >= batch->num_blocks || batch->block[index].rows.num_rows == 0)
        return TESS_OK;
    const predicted_block *from = &batch->block[index];
    const tess_vis_segment *segment = &run->info->meta->segment[from->rows.segment];
    const int64_t values =
        2 * from->rows.num_rows * from->rows.num_chan * from->rows.num_corr;
    if (tess_grow((void **)&run->vis, &run->capacity_vis, values, sizeof *run->vis))
        TESS_FAIL(TESS_ERR_ALLOC, "not enough memory for a block of %lld rows",
                  (long long)from->rows.num_rows);
    *block = from->rows;
    block->vis = run->vis;
    if (blocks) return blocks->fill(blocks->context, segment, block);
    /* rows without finite uvw have no prediction: 0 */
    memset(block->vis, 0, (size_t)values * sizeof *block->vis);
    predicted_mix mix =
        predicted_mix_of(run->pol, run->num_pol, segment->corr, segment->num_corr,
                         run->opts->models ? 1 : run->predictor.model.scale);
    mix.first = column * run->num_pol;
    predicted_rows_take(&batch->rows, &from->part, &mix, run->opts->layout.threads, 0,
                        block);
cleanup:
    return status;
}

/* Hands a block of a column on. Collective. */
static tess_status hand_on(const predict_run *run, int column,
                           const tess_vis_block *block)
{
    tess_status status = TESS_OK;
    if (run->writer)
        TESS_TRY(tess_vis_write_column(run->writer, column, block));
    else
        TESS_TRY(tess_comm_agree(run->comm, run->opts->take(run->opts->take_context,
                                                            run->info->meta, block)));
    run->profile->stage_bytes[TESS_STAGE_WRITE] += block->num_rows * block->num_chan *
                                                   block->num_corr * 2 *
                                                   (int64_t)sizeof(float);
cleanup:
    return status;
}

/* Writes a batch's blocks to a column; predictors of blocks fill them now. Collective.
 */
static tess_status write_column(predict_run *run, const predicted_batch *batch,
                                int column, int64_t num_blocks)
{
    tess_status status = TESS_OK;
    const tess_stage fills = run->opts->blocks ? TESS_STAGE_GRID : TESS_STAGE_WRITE;
    tess_vis_block block;
    double mark = tess_time_now();
    for (int64_t k = 0; k < num_blocks; ++k) {
        status = fill_block(run, batch, k, column, &block);
        TESS_TRY(tess_comm_agree(run->comm, status));
        tess_profile_lap(run->profile, fills, &mark);
        TESS_TRY(hand_on(run, column, &block));
        tess_profile_lap(run->profile, TESS_STAGE_WRITE, &mark);
    }
cleanup:
    return status;
}

/* Column after column, so that each is written in long pieces. Collective. */
static tess_status write_batch(predict_run *run, const predicted_batch *batch,
                               int64_t num_blocks)
{
    tess_status status = TESS_OK;
    const int num = run->columns.num > 0 ? run->columns.num : 1;
    for (int column = 0; column < num; ++column)
        TESS_TRY(write_column(run, batch, column, num_blocks));
cleanup:
    return status;
}

/* ---- batches ---- */

/* The model of an output, at the rows and channels of it that are in a batch.
 * Collective. */
static tess_status predict_output(predict_run *run, int64_t output,
                                  predicted_batch *batch)
{
    tess_status status = TESS_OK;
    const predict_models *models = run->opts->models;
    imager_predictor *predictor = &run->predictor;
    tess_rows rows[2 * TESS_MAX_POL] = {0};
    tess_samples chosen = tess_source_samples(run->source);
    chosen.num_pol = run->num_pol;
    chosen.num_weight = 1;
    for (int p = 0; p < models->num_pol && status == TESS_OK; ++p) {
        rows[p] = tess_rows_of(models->geom.nx, models->geom.ny, run->row_first,
                               run->num_rows, TESS_PIXEL_DOUBLE);
        status = tess_rows_alloc_zero(&rows[p]);
    }
    if (status == TESS_OK)
        status = output_table_choose_rows(&run->outputs, output, &batch->rows.samples,
                                          batch->row_time, &chosen);
    if (status == TESS_OK && run->pointing)
        status = predicted_pointing_choose(
            run->pointing, &(predicted_mean){run->outputs.chan_output,
                                             output % run->outputs.num_channels, NULL});
    TESS_TRY(tess_comm_agree(run->comm, status));
    TESS_TRY(models->load(models->context, output, rows));
    predictor->rows = rows;
    status = imager_predictor_run(predictor, &chosen);
    predictor->rows = NULL;
    TESS_TRY(status);
    output_table_put_back(&run->outputs, output, &chosen, batch->row_time,
                          1 / predictor->model.scale, &batch->rows.samples);
cleanup:
    for (int p = 0; p < models->num_pol; ++p)
        tess_rows_free(&rows[p]);
    tess_samples_free(&chosen);
    return status;
}

/* Collective. */
static tess_status predict_outputs(predict_run *run, predicted_batch *batch)
{
    tess_status status = TESS_OK;
    tess_samples *samples = &batch->rows.samples;
    const int64_t bytes =
        samples->num_vis * samples->num_pol * 2 * (samples->is_double ? 8 : 4);
    if (bytes > 0) memset(samples->vis, 0, (size_t)bytes);
    for (int64_t k = 0; k < run->outputs.num; ++k)
        TESS_TRY(predict_output(run, k, batch));
cleanup:
    return status;
}

static tess_status predict_batch(predict_run *run, int64_t first, int64_t end)
{
    tess_status status = TESS_OK;
    predicted_batch batch = {0};
    double mark = tess_time_now();
    batch.rows.samples = tess_source_samples(run->source);
    batch.rows.samples.num_pol = num_values(run);
    batch.rows.samples.num_weight = 1;
    status = reserve(run, end - first, &batch);
    for (int64_t k = first; k < end && status == TESS_OK; ++k)
        status = add_block(run, &batch);
    TESS_TRY(tess_comm_agree(run->comm, status));
    tess_profile_lap(run->profile, TESS_STAGE_READ, &mark);
    if (run->opts->models)
        TESS_TRY(predict_outputs(run, &batch));
    else if (!run->opts->blocks)
        TESS_TRY(imager_predictor_run(&run->predictor, &batch.rows.samples));
    run->profile->visibilities += batch.rows.samples.num_vis;
    for (int64_t k = 0; run->opts->blocks && k < batch.num_blocks; ++k)
        run->profile->visibilities +=
            batch.block[k].rows.num_rows * batch.block[k].rows.num_chan;
    TESS_TRY(write_batch(run, &batch, end - first));
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
             "visibilities%s%s%s predicted from %s %s", opts->column ? " of " : "",
             opts->column ? opts->column : "",
             run->columns.num > 0 ? "_FACET of each facet" : "",
             opts->blocks ? opts->blocks->kind : "the model image",
             opts->model    ? opts->model
             : opts->models ? "of each output"
                            : "in memory");
    run->origin = (tess_vis_origin){opts->command_line, run->message};
    if (run->columns.num > 0)
        TESS_TRY(tess_vis_create_columns(
            run->comm, reader, (const char *const *)run->columns.name, run->columns.num,
            &run->origin, opts->overwrite, &run->writer));
    else if (opts->column)
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
    outputs->chan_range = NULL;
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
    run->num_pol = models->num_pol;
    memcpy(run->pol, models->pol, (size_t)models->num_pol * sizeof *run->pol);
    tess_planes_final_rows(models->geom.ny, run->opts->layout.forced.fft_ranks,
                           tess_comm_rank(run->comm), tess_comm_size(run->comm),
                           &run->row_first, &run->num_rows);
    return find_channels(run);
}

static bool has_directions(const tess_predict_opts *opts)
{
    return opts->gridding.facets.regions || opts->beam.model;
}

static model_factor factor_of(const tess_predict_opts *opts)
{
    const tess_facet_choice *facets = &opts->gridding.facets;
    if (opts->beam.model || facets->beam.model) return MODEL_BY_BEAMS;
    return tess_facet_choice_has_gains(facets) ? MODEL_BY_GAINS : MODEL_AS_IT_IS;
}

/* Local. */
static tess_status open_model(predict_run *run, imager_model *model)
{
    tess_status status = TESS_OK;
    const tess_predict_opts *opts = run->opts;
    const tess_source_info *info = run->info;
    const model_name name = {opts->model, opts->model_terms, factor_of(opts)};
    if (tess_comm_rank(run->comm) == 0 && !opts->model_is_told)
        model_cube_warn_name(&name);
    TESS_TRY(
        imager_model_open(&name, opts->pixels, info->ra_rad, info->dec_rad, 0, model));
    run->num_pol = model->num_stokes;
    for (int p = 0; p < run->num_pol; ++p)
        run->pol[p] = (tess_pol){.code = (tess_corr)model->stokes[p]};
    if (model->cube)
        status = model_cube_check(model->cube, info->freq_hz, info->num_chan,
                                  tess_comm_rank(run->comm) == 0);
    if (status == TESS_OK && model->cube && tess_comm_rank(run->comm) == 0)
        model_cube_warn_frame(model->cube, TESS_TOPO);
    if (status != TESS_OK) imager_model_close(model);
cleanup:
    return status;
}

/* Facets make all correlations of the file from the Stokes parameters of the model, so
 * that these are what is predicted. Collective. */
static tess_status take_facets(predict_run *run, imager_model *model)
{
    tess_status status = TESS_OK;
    const tess_predict_opts *opts = run->opts;
    const facet_setup setup = {.comm = run->comm,
                               .choice = &opts->gridding.facets,
                               .geom = model->geom,
                               .source = run->source,
                               .pol = run->pol,
                               .num_pol = run->num_pol,
                               .threads = opts->layout.threads,
                               .predicts = true};
    if (!setup.choice->regions) return TESS_OK;
    TESS_TRY(image_facets_create(&setup, &run->facets));
    const image_facets *facets = run->facets;
    const image_patches *patches = &facets->patches;
    if (!opts->models && tess_comm_rank(run->comm) == 0) /* a run's images told it */
        image_facets_warn_of_lacks(facets);
    model->parts = (imager_parts){.num = patches->num,
                                  .geom = patches->geom,
                                  .first = (const int64_t(*)[2])patches->first,
                                  .weigh = image_facets_weigh,
                                  .context = facets};
    run->num_pol = facets->num_held;
    memcpy(run->pol, facets->held, (size_t)run->num_pol * sizeof *run->pol);
    if (opts->column_per_facet) {
        status = facet_columns_create(facets, opts->column, setup.choice->regions,
                                      &run->columns);
        TESS_TRY(tess_comm_agree(run->comm, status));
    }
cleanup:
    return status;
}

/* The pixels of the model that antennas see, times the primary beam. Collective. */
static tess_status take_pointing(predict_run *run, imager_model *model)
{
    tess_status status = TESS_OK;
    if (!run->opts->beam.model) return TESS_OK;
    if (run->facets)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--primary-beam and --mosaic cannot be combined with --facets; beams "
                  "of facets are --facet-beam");
    if (tess_source_num_readers(run->source) > 1)
        TESS_FAIL(TESS_ERR_USAGE,
                  "%s: has several fields; predict them with --mosaic, or choose one "
                  "with --field",
                  run->info->meta->path);
    const predicted_view view = {.comm = run->comm,
                                 .source = run->source,
                                 .beam = run->opts->beam,
                                 .geom = model->geom,
                                 .threads = run->opts->layout.threads};
    TESS_TRY(predicted_pointing_create(&view, &run->pointing));
    model->parts = predicted_pointing_parts(run->pointing);
cleanup:
    return status;
}

/* Prepares reading. Local. */
static tess_status set_up_source(predict_run *run)
{
    const tess_predict_opts *opts = run->opts;
    const tess_pol first = {.code = run->info->corr[0]};
    return tess_source_setup(run->source, &first, 1, 0,
                             opts->gridding.accuracy < TESS_SINGLE_ACCURACY,
                             opts->layout.threads, TESS_BLOCK_BYTES);
}

/* Open the observation. Collective. */
static tess_status open_source(predict_run *run)
{
    tess_status status = TESS_OK;
    const tess_predict_opts *opts = run->opts;
    tess_selection selection = opts->selection;
    selection.wanted.positions_only = true;
    /* the other columns stay as they are; times tell which model it is */
    selection.wanted.uvw_only = opts->column && !opts->models && !opts->beam.model &&
                                !opts->gridding.facets.regions;
    TESS_TRY(tess_source_open(run->comm, &opts->obs, 1, &selection, &run->source));
    tess_source_trace(run->source, run->profile->trace);
    run->info = tess_source_info_of(run->source);
    run->makes_rows = opts->output
                          ? !tess_vis_is_copied(tess_source_reader(run->source, 0))
                          : opts->column == NULL;
cleanup:
    return status;
}

/* How many blocks are predicted at a time, so that their samples fit. Collective. */
static tess_status divide_blocks(predict_run *run)
{
    tess_status status = TESS_OK;
    const tess_predict_opts *opts = run->opts;
    const double rank_bytes = (double)run->predictor.job.memory.rank_bytes;
    const int value_bytes = opts->gridding.accuracy < TESS_SINGLE_ACCURACY ? 16 : 8;
    int64_t num_rows, num_vis;
    TESS_TRY(tess_source_num_blocks(run->source, &run->num_blocks));
    tess_source_slice(run->source, &num_rows, &num_vis);
    /* a sample is held here, at its brick's owner and on its way */
    double bytes = (double)num_vis * 3 * value_bytes * num_values(run);
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

/* Makes the predictor of a model image, or of one for each output. Collective. */
static tess_status set_up_images(predict_run *run)
{
    tess_status status = TESS_OK;
    const tess_predict_opts *opts = run->opts;
    imager_model model = {0};
    const tess_backend *backend;
    TESS_TRY(imager_backend(run->comm, opts->gridding.backend, &backend));
    imager_backend_log(opts->gridding.backend, backend);
    TESS_TRY(imager_meter(run->comm, backend, run->profile));
    TESS_TRY(open_source(run));
    status = opts->models ? take_models(run, &model) : open_model(run, &model);
    status = tess_comm_agree(run->comm, status);
    if (status == TESS_OK) status = take_facets(run, &model);
    if (status == TESS_OK && opts->beam.model && !run->facets)
        status = tess_comm_agree(run->comm, tess_source_keep_origins(run->source, 0));
    if (status == TESS_OK) status = tess_comm_agree(run->comm, set_up_source(run));
    if (status == TESS_OK) status = take_pointing(run, &model);
    if (status != TESS_OK) imager_model_close(&model);
    TESS_TRY(status);
    TESS_TRY(imager_predictor_create(run->comm, &model, &opts->gridding, &opts->layout,
                                     run->profile, &run->predictor));
    if (run->facets) run->predictor.job.view = image_facets_view(run->facets);
    if (run->pointing)
        run->predictor.job.view = predicted_pointing_view(run->pointing, run->num_pol);
    run->predictor.job.view.is_apart = run->columns.num > 0;
    TESS_TRY(divide_blocks(run));
    int64_t by_rows = opts->output && !model.cube && !model.parts.num &&
                      device_predict_possible(&run->predictor, run->source);
    TESS_TRY(tess_comm_allreduce_i64(run->comm, &by_rows, 1, TESS_MIN));
    run->by_rows = by_rows != 0;
cleanup:
    return status;
}

/* Begins a prediction without images. It takes one block at a time. Collective. */
static tess_status set_up_blocks(predict_run *run)
{
    tess_status status = TESS_OK;
    const tess_block_predictor *blocks = run->opts->blocks;
    if (has_directions(run->opts))
        TESS_FAIL(TESS_ERR_USAGE,
                  "--facets and --primary-beam are of model images; tessera draw makes "
                  "one of %s",
                  blocks->kind);
    TESS_TRY(open_source(run));
    TESS_TRY(tess_comm_agree(run->comm, set_up_source(run)));
    TESS_TRY(tess_source_num_blocks(run->source, &run->num_blocks));
    run->blocks_per_batch = 1;
    TESS_TRY(blocks->begin(blocks->context, run->comm, run->info->meta));
cleanup:
    return status;
}

static tess_status predict_batches(predict_run *run)
{
    tess_status status = TESS_OK;
    tess_source_rewind(run->source);
    for (int64_t first = 0; first < run->num_blocks; first += run->blocks_per_batch) {
        const int64_t end = first + run->blocks_per_batch;
        TESS_TRY(predict_batch(run, first, tess_min_i64(end, run->num_blocks)));
    }
cleanup:
    return status;
}

tess_status tess_imager_predict(tess_comm *comm, const tess_predict_opts *opts,
                                tess_profile *profile)
{
    tess_status status = TESS_OK;
    predict_run run = {.comm = comm, .opts = opts, .profile = profile};
    TESS_TRY(opts->blocks ? set_up_blocks(&run) : set_up_images(&run));
    if (opts->output || opts->column) TESS_TRY(open_writer(&run));
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
    facet_columns_free(&run.columns);
    tess_free(run.vis);
    if (opts->models) tess_free(run.outputs.chan_output); /* the rest is borrowed */
    imager_predictor_free(&run.predictor);
    image_facets_free(run.facets);
    predicted_pointing_free(run.pointing);
    tess_source_close(run.source);
    return status;
}
