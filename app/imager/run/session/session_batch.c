/* Predicts visibilities at the rows and channels of an output: samples are made of the
 * rows that a session keeps, and correlations of the file of what is predicted at them.
 */
#include <string.h>

#include "predicted_rows.h"
#include "session_private.h"
#include "tess_mem.h"

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
            TESS_TRY(
                make_part(&predictor->rows[k], wanted, time, &predictions->part[at++]));
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
