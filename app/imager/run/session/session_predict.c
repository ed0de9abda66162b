/* Predicts the visibilities of a model image at all rows of the observations. The
 * visibility sets of a session hold good samples only. Therefore positions are read
 * once more, and are planned for as `tessera predict` plans for the rows of a file. */
#include <string.h>

#include "image_facets.h"
#include "predicted_rows.h"
#include "session_private.h"
#include "source_origins.h"
#include "tess_log.h"
#include "tess_mem.h"

/* ---- rows ---- */

static void free_rows(session_rows *rows)
{
    tess_free(rows->uvw_m);
    tess_free(rows->time_mjd_s);
    tess_free(rows->antenna1);
    tess_free(rows->antenna2);
}

void session_predictor_free(session_predictor *predictor)
{
    for (int k = 0; predictor->rows && k < predictor->num_segments; ++k)
        free_rows(&predictor->rows[k]);
    tess_free(predictor->rows);
    session_free_pointings(predictor);
    if (predictor->source) imager_predictor_free(&predictor->predictor);
    image_facets_free(predictor->facets);
    tess_source_close(predictor->source);
    *predictor = (session_predictor){0};
}

static tess_status grow_rows(session_rows *rows, int64_t count)
{
    tess_status status = TESS_OK;
    int64_t old[3] = {rows->capacity, rows->capacity, rows->capacity};
    if (tess_grow((void **)&rows->uvw_m, &old[0], count, 3 * sizeof(double)) ||
        tess_grow((void **)&rows->time_mjd_s, &old[1], count, sizeof(double)) ||
        tess_grow((void **)&rows->antenna1, &old[2], count, sizeof(int32_t)) ||
        tess_grow((void **)&rows->antenna2, &rows->capacity, count, sizeof(int32_t)))
        TESS_FAIL(TESS_ERR_ALLOC, "rows to predict");
cleanup:
    return status;
}

static tess_status keep_block(session_rows *rows, const tess_vis_block *block)
{
    tess_status status = TESS_OK;
    const int64_t at = rows->num_rows;
    const size_t count = (size_t)block->num_rows;
    TESS_TRY(grow_rows(rows, at + block->num_rows));
    memcpy(rows->uvw_m + 3 * at, block->uvw_m, 3 * count * sizeof *rows->uvw_m);
    memcpy(rows->time_mjd_s + at, block->time_mjd_s, count * sizeof *rows->time_mjd_s);
    memcpy(rows->antenna1 + at, block->antenna1, count * sizeof *rows->antenna1);
    memcpy(rows->antenna2 + at, block->antenna2, count * sizeof *rows->antenna2);
    rows->num_rows += block->num_rows;
cleanup:
    return status;
}

/* Reads the positions of every row of this rank's slice. Local. */
static tess_status read_rows(session_predictor *predictor)
{
    tess_status status = TESS_OK;
    tess_vis_block *block;
    const tess_recipe *recipe;
    tess_source_rewind(predictor->source);
    for (;;) {
        TESS_TRY(tess_source_next_block(predictor->source, &block, &recipe));
        if (!block) break;
        for (int k = 0; k < predictor->num_segments; ++k)
            if (predictor->rows[k].recipe == recipe)
                TESS_TRY(keep_block(&predictor->rows[k], block));
    }
    tess_source_rest(predictor->source);
cleanup:
    return status;
}

/* The number of a reader's field in its file. */
static int32_t field_of(const session_predictor *predictor, int reader)
{
    const tess_vis_meta *meta =
        tess_vis_reader_meta(tess_source_reader(predictor->source, reader));
    return meta->field[meta->field_selected].id;
}

static tess_status list_segments(session_predictor *predictor)
{
    tess_status status = TESS_OK;
    predictor->num_segments = tess_source_num_segments(predictor->source);
    predictor->rows = tess_alloc_zero(predictor->num_segments, sizeof *predictor->rows);
    if (!predictor->rows) TESS_FAIL(TESS_ERR_ALLOC, "segments");
    for (int k = 0; k < predictor->num_segments; ++k) {
        session_rows *rows = &predictor->rows[k];
        rows->segment = tess_source_segment(predictor->source, k, &rows->recipe);
        rows->reader = tess_source_segment_reader(predictor->source, k);
        rows->field = predictor->pointing ? field_of(predictor, rows->reader) : -1;
    }
cleanup:
    return status;
}

/* Opens the observations, and the patches of predictions. Collective. */
static tess_status open_source(const image_session *session, session_predictor *to,
                               imager_model *model)
{
    tess_status status = TESS_OK;
    const image_run *run = &session->run;
    const tess_image_opts *opts = run->opts;
    tess_selection selection = opts->selection;
    selection.wanted.positions_only = true;
    TESS_TRY(tess_source_open(run->comm, opts->obs, opts->num_obs, &selection,
                              &to->source));
    TESS_TRY(session_add_facets(session, to, model));
    const tess_pol first = {.code = tess_source_info_of(to->source)->corr[0]};
    if (run->whole.mosaic) status = tess_source_keep_origins(to->source, 0);
    if (status == TESS_OK)
        status = tess_source_setup(to->source, &first, 1, 0, image_is_double(run),
                                   opts->layout.threads, TESS_BLOCK_BYTES);
    if (status == TESS_OK &&
        tess_source_info_of(to->source)->num_chan != run->info->num_chan)
        status = tess_error_record(TESS_ERR_INPUT, __FILE__, __LINE__, __func__,
                                   "an observation has changed since it was opened");
    TESS_TRY(tess_comm_agree(run->comm, status));
    if (run->whole.mosaic) TESS_TRY(session_open_pointings(session, to));
cleanup:
    return status;
}

tess_status session_open_rows(image_session *session)
{
    tess_status status = TESS_OK;
    const image_run *run = &session->run;
    session_predictor made = {.layout = run->opts->layout};
    imager_model model = {
        .geom = run->whole.geom, .num_stokes = run->num_pol, .scale = 1};
    double mark = tess_time_now();
    if (session->predictor.source) return TESS_OK;
    TESS_TRY(open_source(session, &made, &model));
    status = list_segments(&made);
    if (status == TESS_OK) status = read_rows(&made);
    TESS_TRY(tess_comm_agree(run->comm, status));
    made.layout.forced.fft_ranks = run->job.ranks.fft_ranks;
    session->predictor.layout = made.layout;
    if (!made.pointing)
        TESS_TRY(imager_predictor_create(run->comm, &model, &run->opts->gridding,
                                         &session->predictor.layout, run->profile,
                                         &made.predictor));
    session->predictor = made;
    made = (session_predictor){0};
    tess_profile_lap(run->profile, TESS_STAGE_READ, &mark);
cleanup:
    session_predictor_free(&made);
    return status;
}

/* ---- results ---- */

void image_predictions_free(image_predictions *predictions)
{
    for (int64_t k = 0; predictions->part && k < predictions->count; ++k) {
        image_predicted *part = &predictions->part[k];
        tess_free(part->freq_hz);
        tess_free(part->uvw_m);
        tess_free(part->time_mjd_s);
        tess_free(part->antenna1);
        tess_free(part->antenna2);
        tess_free(part->vis);
    }
    tess_free(predictions->part);
    *predictions = (image_predictions){0};
}

/* Neighbouring channels of a segment that belong to one output. */
typedef struct channel_run {
    int64_t part, to_chan; /* index of the part of the predictions, and channel of it */
    predicted_part from;
} channel_run;

typedef struct session_batch {
    image_predictions *predictions;
    predicted_rows rows;
    channel_run *run;
    int64_t num_runs, capacity_runs;
} session_batch;

static void batch_free(session_batch *batch)
{
    predicted_rows_free(&batch->rows);
    tess_free(batch->run);
}

static int64_t count_wanted(const session_rows *rows, const bool *wanted)
{
    int64_t count = 0;
    for (int64_t c = 0; rows->recipe && c < rows->segment->num_chan; ++c)
        count += wanted[rows->recipe->chan_base + c];
    return count;
}

/* Copies the rows of an interval. Their visibilities are 0 until they are predicted. */
static tess_status copy_rows(const session_rows *rows, const double time[2],
                             image_predicted *part)
{
    tess_status status = TESS_OK;
    const int64_t most = rows->num_rows;
    part->uvw_m = tess_alloc(3 * most, sizeof *part->uvw_m);
    part->time_mjd_s = tess_alloc(most, sizeof *part->time_mjd_s);
    part->antenna1 = tess_alloc(most, sizeof *part->antenna1);
    part->antenna2 = tess_alloc(most, sizeof *part->antenna2);
    if (!part->uvw_m || !part->time_mjd_s || !part->antenna1 || !part->antenna2)
        TESS_FAIL(TESS_ERR_ALLOC, "rows of predicted visibilities");
    for (int64_t k = 0; k < most; ++k) {
        const int64_t to = part->num_rows;
        if (rows->time_mjd_s[k] < time[0] || rows->time_mjd_s[k] >= time[1]) continue;
        memcpy(part->uvw_m + 3 * to, rows->uvw_m + 3 * k, 3 * sizeof *part->uvw_m);
        part->time_mjd_s[to] = rows->time_mjd_s[k];
        part->antenna1[to] = rows->antenna1[k];
        part->antenna2[to] = rows->antenna2[k];
        ++part->num_rows;
    }
    const double bytes =
        8.0 * (double)(part->num_rows * part->num_chan) * part->num_corr;
    part->vis = tess_alloc_zero(part->num_rows * part->num_chan * part->num_corr,
                                2 * sizeof *part->vis);
    if (!part->vis)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory to keep predicted visibilities of %s",
                  tess_mem_text(bytes));
cleanup:
    return status;
}

/* Makes samples of the channels [chan, chan + count) of a segment. */
static tess_status add_run(session_batch *batch, const tess_recipe *recipe,
                           int64_t index, int64_t chan, int64_t to_chan, int64_t count)
{
    tess_status status = TESS_OK;
    const image_predicted *part = &batch->predictions->part[index];
    const tess_vis_block block = {.num_rows = part->num_rows,
                                  .num_chan = count,
                                  .uvw_m = part->uvw_m,
                                  .time_mjd_s = part->time_mjd_s,
                                  .antenna1 = part->antenna1,
                                  .antenna2 = part->antenna2};
    if (tess_grow((void **)&batch->run, &batch->capacity_runs, batch->num_runs + 1,
                  sizeof *batch->run))
        TESS_FAIL(TESS_ERR_ALLOC, "rows to predict");
    channel_run *run = &batch->run[batch->num_runs++];
    *run = (channel_run){.part = index, .to_chan = to_chan};
    TESS_TRY(predicted_rows_add(&batch->rows, recipe, &block, chan, &run->from));
cleanup:
    return status;
}

/* Describes the rows and channels of a segment that belong to the output. */
static tess_status make_part(const session_rows *rows, const bool *wanted,
                             const double time[2], image_predicted *part)
{
    tess_status status = TESS_OK;
    const tess_vis_segment *segment = rows->segment;
    const bool *own = wanted + rows->recipe->chan_base;
    int64_t out = 0;
    part->field = rows->field;
    part->num_chan = count_wanted(rows, wanted);
    part->num_corr = segment->num_corr;
    memcpy(part->corr, segment->corr, sizeof part->corr);
    part->freq_hz = tess_alloc(part->num_chan, sizeof *part->freq_hz);
    if (!part->freq_hz) TESS_FAIL(TESS_ERR_ALLOC, "channels");
    for (int64_t c = 0; c < segment->num_chan; ++c)
        if (own[c]) part->freq_hz[out++] = segment->freq_hz[c];
    TESS_TRY(copy_rows(rows, time, part));
cleanup:
    return status;
}

/* Which channels of the table belong to an output channel; freed with tess_free().
 * Local. */
static tess_status find_channels(const image_session *session, int64_t channel,
                                 bool **wanted)
{
    tess_status status = TESS_OK;
    const image_run *run = &session->run;
    *wanted = tess_alloc_zero(run->info->num_chan, sizeof **wanted);
    if (!*wanted) TESS_FAIL(TESS_ERR_ALLOC, "channels");
    output_table_channels(&run->outputs, channel, *wanted);
cleanup:
    return status;
}

tess_status session_copy_rows(const image_session *session, int64_t interval,
                              int64_t channel, image_predictions *predictions)
{
    tess_status status = TESS_OK;
    const session_predictor *predictor = &session->predictor;
    const double *time = session->run.outputs.interval_begin + interval;
    int64_t count = 0, at = 0;
    bool *wanted = NULL;
    TESS_TRY(find_channels(session, channel, &wanted));
    for (int k = 0; k < predictor->num_segments; ++k)
        count += count_wanted(&predictor->rows[k], wanted) > 0;
    predictions->part = tess_alloc_zero(count, sizeof(image_predicted));
    if (!predictions->part) TESS_FAIL(TESS_ERR_ALLOC, "segments");
    predictions->count = count;
    for (int k = 0; k < predictor->num_segments; ++k)
        if (count_wanted(&predictor->rows[k], wanted) > 0)
            TESS_TRY(make_part(&predictor->rows[k], wanted, time,
                               &predictions->part[at++]));
cleanup:
    tess_free(wanted);
    return status;
}

/* Makes samples of the rows and channels of a segment that belong to the output. */
static tess_status add_segment(session_batch *batch, const session_rows *rows,
                               const bool *wanted, int64_t index)
{
    tess_status status = TESS_OK;
    const int64_t num_chan = rows->segment->num_chan;
    const bool *own = wanted + rows->recipe->chan_base;
    int64_t out = 0;
    for (int64_t c = 0; c < num_chan;) {
        const int64_t chan = c;
        while (c < num_chan && own[c])
            ++c;
        if (c > chan)
            TESS_TRY(add_run(batch, rows->recipe, index, chan, out, c - chan));
        out += c - chan;
        while (c < num_chan && !own[c])
            ++c;
    }
cleanup:
    return status;
}

/* Makes samples of all rows and channels of an output that a reader has. Local. */
static tess_status make_samples(const image_session *session, int64_t channel,
                                int reader, int num_pol, session_batch *batch)
{
    tess_status status = TESS_OK;
    const session_predictor *predictor = &session->predictor;
    int64_t at = 0;
    bool *wanted = NULL;
    TESS_TRY(find_channels(session, channel, &wanted));
    batch->rows.samples = tess_source_samples(predictor->source);
    batch->rows.samples.num_pol = num_pol;
    batch->rows.samples.num_weight = 1;
    for (int k = 0; k < predictor->num_segments; ++k) {
        const session_rows *rows = &predictor->rows[k];
        if (count_wanted(rows, wanted) == 0) continue;
        if (reader == SESSION_ALL_READERS || reader == rows->reader)
            TESS_TRY(add_segment(batch, rows, wanted, at));
        ++at;
    }
cleanup:
    tess_free(wanted);
    return status;
}

/* Turns predicted samples into the visibilities of the file's correlations. */
static void take_run(const image_session *session, const session_batch *batch,
                     const session_prediction *what, const channel_run *run)
{
    const image_predicted *part = &batch->predictions->part[run->part];
    const predicted_mix mix =
        predicted_mix_of(what->pol, what->num_pol, part->corr, part->num_corr,
                         what->predictor->model.scale);
    tess_vis_block block = {.num_chan = part->num_chan,
                            .num_corr = part->num_corr,
                            .uvw_m = part->uvw_m,
                            .vis = part->vis};
    predicted_rows_take(&batch->rows, &run->from, &mix, session->opts.layout.threads,
                        run->to_chan, &block);
}

static tess_status check_polarisations(const image_run *run)
{
    tess_status status = TESS_OK;
    for (int p = 1; p < run->num_pol; ++p)
        if (predicted_is_stokes(&run->pol[p]) != predicted_is_stokes(&run->pol[0]))
            TESS_FAIL(TESS_ERR_USAGE,
                      "a session of Stokes parameters and correlations together does "
                      "not predict: --stokes has both");
cleanup:
    return status;
}

tess_status session_predict_rows(const image_session *session, int64_t channel,
                                 int reader, const session_prediction *what,
                                 image_predictions *predictions)
{
    tess_status status = TESS_OK;
    session_batch batch = {.predictions = predictions};
    status = make_samples(session, channel, reader, what->num_pol, &batch);
    TESS_TRY(tess_comm_agree(session->run.comm, status));
    TESS_TRY(imager_predictor_run(what->predictor, &batch.rows.samples));
    for (int64_t k = 0; k < batch.num_runs; ++k)
        take_run(session, &batch, what, &batch.run[k]);
cleanup:
    batch_free(&batch);
    return status;
}

tess_status session_predict(image_session *session, int64_t interval, int64_t channel,
                            const session_prediction *what,
                            image_predictions *predictions)
{
    tess_status status = TESS_OK;
    image_predictions made = {0};
    status = session_copy_rows(session, interval, channel, &made);
    TESS_TRY(tess_comm_agree(session->run.comm, status));
    TESS_TRY(session_predict_rows(session, channel, SESSION_ALL_READERS, what, &made));
    *predictions = made;
    made = (image_predictions){0};
cleanup:
    image_predictions_free(&made);
    return status;
}

tess_status image_session_predict(image_session *session, int64_t interval,
                                  int64_t channel, const double *model,
                                  const image_session_part *part,
                                  image_predictions *predictions)
{
    tess_status status = TESS_OK;
    facet_gains plain;
    image_run *run = &session->run;
    tess_rows rows[2 * TESS_MAX_POL];
    imager_predictor *predictor = &session->predictor.predictor;
    session_prediction what = {predictor, run->pol, run->num_pol};
    session_arrays given = {.model = model != NULL};
    TESS_TRY(session_agree(session, interval, channel, &given));
    if (!given.model) TESS_FAIL(TESS_ERR_USAGE, "no model is given");
    TESS_TRY(check_polarisations(run));
    TESS_TRY(session_open_rows(session));
    TESS_TRY(session_choose_part(session, part, &plain));
    if (session->predictor.facets) { /* which make correlations */
        what.pol = session->predictor.facets->held;
        what.num_pol = session->predictor.facets->num_held;
    }
    session_model_rows(session, model, rows);
    if (session->predictor.pointing)
        return session_predict_pointings(session, interval, channel, rows, predictions);
    predictor->rows = rows;
    status = session_predict(session, interval, channel, &what, predictions);
    predictor->rows = NULL;
cleanup:
    return status;
}
