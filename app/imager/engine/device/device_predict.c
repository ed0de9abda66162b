/* Copies rows of a file to the device, predicts them there, and copies them back. */
#include "device_predict.h"

#include <math.h>
#include <string.h>

#include "device_rows.h"
#include "device_share.h"
#include "imager_window.h"
#include "tess_device.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_samples.h"

/* Share of the device memory beside model and planes that rows and samples may take;
 * brick sums take the rest. */
static const double ROWS_SHARE = 0.6;

/* Blocks of the source that are on the device at the same time. */
typedef struct predict_batch {
    int64_t first_span, end_span;
    int64_t num_rows, num_vis, bytes;
} predict_batch;

typedef struct predict_run {
    imager_predictor *predictor;
    tess_source *source;
    tess_vis_writer *writer;
    tess_profile *profile;
    const tess_source_info *info;
    tess_samples like;
    tess_device_samples samples;
    raw_sums *sums; /* device */
    void *rows;     /* rows of the batch, on the device */
    device_recipe recipe;
    int threads;
} predict_run;

static tess_samples samples_like(const imager_predictor *predictor,
                                 const tess_source *source)
{
    tess_samples like = tess_source_samples(source);
    like.num_pol = predictor->model.num_stokes;
    like.num_weight = 1;
    return like;
}

/* Device memory for the rows of a batch [bytes]. */
static double room_for_rows(const imager_predictor *predictor)
{
    const imager_job *job = &predictor->job;
    const double planes =
        device_share_bytes(imager_target_pixels(job), predictor->model.num_stokes, 16,
                           tess_comm_size(job->comm));
    const double room = (double)tess_device_room() - planes;
    return ROWS_SHARE * room;
}

static double bytes_of_batch(const tess_samples *like, const predict_batch *batch)
{
    return (double)batch->bytes +
           device_samples_bytes(like, batch->num_rows, batch->num_vis, false);
}

/* Takes as many blocks from first_span on as fit, and at least one. */
static predict_batch next_batch(const imager_predictor *predictor,
                                const tess_source *source, int64_t first_span)
{
    predict_batch batch = {.first_span = first_span, .end_span = first_span};
    const tess_samples like = samples_like(predictor, source);
    const double room = room_for_rows(predictor);
    const int64_t num_spans = tess_source_num_spans(source);
    const int force = predictor->job.layout->forced.passes;
    const int64_t most = force > 0 ? (num_spans + force - 1) / force : num_spans;
    tess_source_rows rows;
    while (batch.end_span < num_spans && batch.end_span - first_span < most) {
        predict_batch more = batch;
        tess_source_rows_of(source, batch.end_span, &rows);
        more.end_span += 1;
        more.num_rows += rows.num_rows;
        more.num_vis += rows.num_rows * rows.num_chan;
        more.bytes += rows.num_rows * rows.raw.row_bytes;
        if (batch.num_rows > 0 && bytes_of_batch(&like, &more) > room) break;
        batch = more;
    }
    return batch;
}

static int64_t count_batches(const imager_predictor *predictor,
                             const tess_source *source)
{
    int64_t count = 0;
    for (int64_t k = 0; k < tess_source_num_spans(source); ++count)
        k = next_batch(predictor, source, k).end_span;
    return count;
}

bool device_predict_possible(const imager_predictor *predictor,
                             const tess_source *source)
{
    tess_source_rows rows;
    const tess_samples like = samples_like(predictor, source);
    const tess_layout *layout = predictor->job.layout;
    if (!predictor->job.backend->start || layout->forced.pw > 0 ||
        layout->forced.fft_ranks > 0 || layout->forced.split > 0)
        return false;
    for (int64_t k = 0; k < tess_source_num_spans(source); ++k)
        if (!device_rows_fit(source, k, &rows)) return false;
    const predict_batch batch = next_batch(predictor, source, 0);
    return bytes_of_batch(&like, &batch) < room_for_rows(predictor);
}

/* ---- in ---- */

static void wavelengths_of(const tess_source_rows *rows, double *inv_min,
                           double *inv_max)
{
    *inv_min = INFINITY;
    *inv_max = 0;
    for (int64_t c = 0; c < rows->num_chan; ++c) {
        *inv_min = fmin(*inv_min, rows->recipe->inv_lambda[c]);
        *inv_max = fmax(*inv_max, rows->recipe->inv_lambda[c]);
    }
}

/* Copies one block to the device, behind those before it. */
static tess_status take_span(predict_run *run, const tess_source_rows *rows,
                             raw_rows *at)
{
    tess_status status = TESS_OK;
    double inv_min, inv_max;
    wavelengths_of(rows, &inv_min, &inv_max);
    TESS_TRY(device_recipe_for(rows, run->samples.inv_lambda, &run->recipe));
    if (rows->num_chan > run->samples.max_chan)
        run->samples.max_chan = (int32_t)rows->num_chan;
    for (int64_t first = 0; first < rows->num_rows; first += at->num_rows) {
        at->num_rows = rows->num_rows - first;
        TESS_TRY(device_rows_upload(rows, first, &at->num_rows, run->threads, at->bytes,
                                    &run->profile->stream.readers_s));
        TESS_TRY(raw_positions(&run->recipe.raw, at, inv_min, inv_max, &run->samples,
                               run->sums));
        TESS_TRY(tess_device_staged_worked());
        at->bytes = (char *)at->bytes + at->num_rows * rows->raw.row_bytes;
        at->row_at += at->num_rows;
        at->vis_at += at->num_rows * rows->num_chan;
    }
cleanup:
    return status;
}

static tess_status take_batch(predict_run *run, const predict_batch *batch,
                              raw_sums *sums)
{
    tess_status status = TESS_OK;
    tess_profile *profile = run->profile;
    tess_source_rows rows;
    const double start = tess_time_now();
    TESS_TRY(tess_device_alloc(batch->bytes, "rows of a file", &run->rows));
    TESS_TRY(device_samples_make(run->info, &run->like, batch->num_rows, batch->num_vis,
                                 false, &run->samples));
    TESS_TRY(device_sums_make(&run->sums));
    raw_rows at = {.bytes = run->rows};
    for (int64_t k = batch->first_span; k < batch->end_span; ++k) {
        tess_source_rows_of(run->source, k, &rows);
        TESS_TRY(take_span(run, &rows, &at));
    }
    TESS_TRY(tess_device_download(sums, run->sums, sizeof *sums));
    if (sums->bad_row != ~0ull)
        TESS_TRY(
            device_rows_refuse(run->source, batch->first_span, (int64_t)sums->bad_row));
    tess_source_count_bytes(run->source, batch->bytes);
    profile->visibilities += (int64_t)sums->good;
    profile->stream.bytes += batch->bytes;
    profile->stream.seconds += tess_time_now() - start;
    profile->stage_visibilities[TESS_STAGE_READ] += batch->num_vis;
cleanup:
    return status;
}

/* ---- prediction ---- */

static tess_status excerpt(tess_resident *resident, int most, tess_samples *out)
{
    return device_samples_excerpt(resident->samples, most, out);
}

/* Releases nothing, because the samples belong to this run. */
static void release(tess_resident *resident)
{
    (void)resident;
}

static tess_status predict(predict_run *run, const raw_sums *sums)
{
    tess_resident resident = {.samples = &run->samples,
                              .w_min_lambda = device_sum(sums->w_min_bits),
                              .w_max_lambda = device_sum(sums->w_max_bits),
                              .excerpt = excerpt,
                              .release = release};
    tess_samples samples = run->like;
    samples.num_rows = run->samples.num_rows;
    samples.num_vis = run->samples.num_vis;
    samples.resident = &resident;
    return imager_predictor_run(run->predictor, &samples);
}

/* ---- out ---- */

static raw_mixing mixing_of(const imager_model *model, const tess_vis_segment *segment)
{
    raw_mixing mixing = {.num_corr = segment->num_corr,
                         .num_stokes = model->num_stokes};
    for (int c = 0; c < segment->num_corr; ++c) {
        double complex coefficient[4];
        tess_pol_from_stokes(segment->corr[c], coefficient);
        for (int s = 0; s < model->num_stokes; ++s) {
            mixing.re[c][s] = creal(coefficient[model->stokes[s] - 1]) / model->scale;
            mixing.im[c][s] = cimag(coefficient[model->stokes[s] - 1]) / model->scale;
        }
    }
    return mixing;
}

/* Replaces the visibilities of all rows, and writes the rows. */
static tess_status give_batch(predict_run *run, const predict_batch *batch)
{
    tess_status status = TESS_OK;
    tess_profile *profile = run->profile;
    tess_source_rows rows;
    const double start = tess_time_now();
    double writers_s = 0;
    raw_rows at = {.bytes = run->rows};
    for (int64_t k = batch->first_span; k < batch->end_span; ++k) {
        tess_source_rows_of(run->source, k, &rows);
        const raw_mixing mixing =
            mixing_of(&run->predictor->model,
                      &tess_vis_reader_meta(rows.reader)->segment[rows.segment]);
        at.num_rows = rows.num_rows;
        TESS_TRY(device_recipe_for(&rows, run->samples.inv_lambda, &run->recipe));
        TESS_TRY(raw_encode(&run->recipe.raw, &mixing, &at, &run->samples));
        TESS_TRY(
            device_rows_write(&rows, at.bytes, run->threads, run->writer, &writers_s));
        at.bytes = (char *)at.bytes + rows.num_rows * rows.raw.row_bytes;
        at.row_at += rows.num_rows;
        at.vis_at += rows.num_rows * rows.num_chan;
    }
    profile->stage_bytes[TESS_STAGE_WRITE] += batch->bytes;
    profile->stream.bytes += batch->bytes;
    profile->stream.writers_s += writers_s;
    profile->stream.seconds += tess_time_now() - start;
cleanup:
    return status;
}

static void free_batch(predict_run *run)
{
    device_recipe_free(&run->recipe);
    device_samples_free(&run->samples);
    tess_device_free(run->sums);
    tess_device_free(run->rows);
    run->sums = NULL;
    run->rows = NULL;
}

static tess_status do_batch(predict_run *run, const predict_batch *batch)
{
    tess_status status = TESS_OK;
    tess_comm *comm = run->predictor->job.comm;
    raw_sums sums;
    double mark = tess_time_now();
    TESS_TRY(tess_comm_agree(comm, take_batch(run, batch, &sums)));
    tess_profile_lap(run->profile, TESS_STAGE_READ, &mark);
    TESS_TRY(predict(run, &sums));
    mark = tess_time_now();
    TESS_TRY(tess_comm_agree(comm, give_batch(run, batch)));
    tess_profile_lap(run->profile, TESS_STAGE_WRITE, &mark);
cleanup:
    free_batch(run);
    return status;
}

tess_status device_predict_rows(imager_predictor *predictor, tess_source *source,
                                tess_vis_writer *writer)
{
    tess_status status = TESS_OK;
    predict_run run = {.predictor = predictor,
                       .source = source,
                       .writer = writer,
                       .profile = predictor->job.profile,
                       .info = tess_source_info_of(source),
                       .like = samples_like(predictor, source),
                       .threads = predictor->job.layout->threads};
    tess_comm *comm = predictor->job.comm;
    int64_t num_batches = count_batches(predictor, source), span = 0;
    if (tess_comm_size(comm) > 1) {
        status = tess_comm_self(&predictor->job.alone);
        TESS_TRY(tess_comm_agree(comm, status));
    }
    /* a rank whose rows are done takes part without rows */
    TESS_TRY(tess_comm_allreduce_i64(comm, &num_batches, 1, TESS_MAX));
    for (int64_t k = 0; k < num_batches; ++k) {
        const predict_batch batch = next_batch(predictor, source, span);
        TESS_TRY(do_batch(&run, &batch));
        span = batch.end_span;
    }
    tess_device_busy(&run.profile->stream.link_s, &run.profile->stream.device_s);
cleanup:
    return status;
}
