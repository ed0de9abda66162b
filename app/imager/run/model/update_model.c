/* Writes MODEL_DATA: each output's model is predicted at the rows and channels that the
 * output was made of. */
#include "update_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clean_inputs.h"
#include "image_names.h"
#include "model_cube.h"
#include "predict_models.h"
#include "predict_reader.h"
#include "tess_imager_predict.h"
#include "tess_log.h"
#include "tess_out_file.h"
#include "tess_profile_report.h"
#include "tess_words.h"

static const char *column_of(const tess_image_opts *opts)
{
    return opts->clean.model_column ? opts->clean.model_column : "MODEL_DATA";
}

tess_status update_model_check(const image_run *run)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    if (!opts->clean.update_model && !opts->clean.only_model) return TESS_OK;
    for (int k = 0; k < tess_source_num_readers(run->source); ++k) {
        const tess_vis_reader *reader = tess_source_reader(run->source, k);
        if (!tess_vis_has_columns(reader))
            TESS_FAIL(TESS_ERR_USAGE, "%s: --update-model writes %s of MeasurementSets",
                      tess_vis_reader_meta(reader)->path, column_of(opts));
        if (tess_comm_rank(run->comm) == 0) /* which writes it */
            TESS_TRY(tess_vis_check_column(reader, column_of(opts), false));
    }
    if (strcmp(run->info->data_column, column_of(opts)) == 0 && !opts->clean.only_model)
        TESS_FAIL(TESS_ERR_USAGE, "--update-model would replace %s, which is imaged",
                  column_of(opts));
    const char *subtracted = opts->selection.subtract_column;
    if (subtracted && strcmp(subtracted, column_of(opts)) == 0 &&
        tess_comm_rank(run->comm) == 0)
        tess_log_warn(
            "%s, which is subtracted, is replaced by the model of these images "
            "alone",
            subtracted);
cleanup:
    return status;
}

/* The rows of NAME-model-pb.fits: with solutions of facets, and of mosaics, a model is
 * predicted from true flux. Local. */
static tess_status read_true(const image_run *run, int64_t output, int pol,
                             const tess_rows *rows)
{
    tess_status status = TESS_OK;
    const int64_t channels = run->outputs.num_channels;
    tess_fits_model file = {0};
    char *path =
        image_path(&run->output, output / channels,
                   run->opts->channels_out > 1 ? output % channels : 0,
                   image_named_pol(&run->output, IMAGE_MODEL, pol), "model-pb", "fits");
    if (!path) TESS_FAIL(TESS_ERR_ALLOC, "name of a model");
    TESS_TRY(tess_fits_open(path, &file));
    TESS_TRY(
        model_pixels_read(&file, 0, 0, rows->row_first, rows->num_rows, rows->value));
cleanup:
    free(path); /* from asprintf */
    return status;
}

/* Collective. */
static tess_status load_true(const image_run *run, int64_t output, tess_rows *rows)
{
    tess_status status = TESS_OK;
    for (int p = 0; p < run->num_pol && status == TESS_OK; ++p)
        status = read_true(run, output, p, &rows[p]);
    return tess_comm_agree(run->teams.all, status);
}

/* Collective. */
static tess_status load(void *context, int64_t output, tess_rows *rows)
{
    tess_status status = TESS_OK;
    image_run *run = context;
    const int64_t channels = run->outputs.num_channels;
    if (image_has_solutions(run->opts) || run->opts->selection.joins_pointings)
        return load_true(run, output, rows);
    for (int p = 0; p < run->num_pol; ++p)
        TESS_TRY(clean_inputs_model(run, run->teams.all, output / channels,
                                    output % channels, p, &rows[p]));
cleanup:
    return status;
}

/* Has each field of a mosaic see the model through the beam of its pointing. */
static void take_pointings(const image_run *run, tess_predict_opts *predict)
{
    const tess_beam_correction *beam = &run->opts->beside.primary_beam;
    if (!run->opts->selection.joins_pointings) return;
    predict->beam =
        (tess_predict_beam){.model = beam->model, .limit = beam->pointing_limit};
    predict->selection.joins_pointings = false; /* a field at a time is predicted */
    predict->selection.has_center = true;
    predict->selection.center_ra_rad = run->info->ra_rad;
    predict->selection.center_dec_rad = run->info->dec_rad;
}

/* How many ranks share a plane of the predictor: where the model's rows lie is known
 * before the predictor has a plan. With --reproducible, all ranks do (imager_job.c). */
static int model_sharers(const image_run *run)
{
    if (run->opts->layout.reproducible) return tess_comm_size(run->teams.all);
    return run->teams.num > 1 ? 1 : run->job.ranks.fft_ranks;
}

tess_status update_model(image_run *run)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    const predict_models models = {.pol = run->pol,
                                   .num_pol = run->num_pol,
                                   .geom = run->whole.geom,
                                   .outputs = &run->outputs,
                                   .freq_hz = run->info->freq_hz,
                                   .load = load,
                                   .context = run};
    tess_predict_opts predict = {.models = &models,
                                 .column = column_of(opts),
                                 .selection = opts->selection,
                                 .gridding = opts->gridding,
                                 .layout = opts->layout,
                                 .overwrite = true,
                                 .command_line = opts->beside.command_line};
    predict.layout.forced.fft_ranks = model_sharers(run);
    take_pointings(run, &predict);
    const int num = tess_source_num_readers(run->source);
    for (int k = 0; k < num; ++k) {
        TESS_TRY(predict_reader(run, k, &predict));
        if (k + 1 < num || opts->beside.weights) tess_out_release_signals();
    }
cleanup:
    return status;
}

tess_status update_model_alone(image_run *run)
{
    tess_status status = TESS_OK;
    run->job.ranks.fft_ranks = 1; /* no image is planned */
    TESS_TRY(clean_inputs_check(run));
    TESS_TRY(tess_comm_agree(run->comm, update_model_check(run)));
    TESS_TRY(tess_comm_agree(run->comm, tess_log_keep()));
    TESS_TRY(update_model(run));
    TESS_TRY(tess_profile_summary(run->comm, run->profile));
    tess_words_tell("data column", "%s", column_of(run->opts));
    tess_words_tell("seconds", "%.2f", tess_time_now() - run->profile->start_s);
cleanup:
    return status;
}
