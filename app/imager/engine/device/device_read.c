/* Copies rows of files to the device, and makes samples of them there. */
#include "device_read.h"

#include <math.h>
#include <string.h>

#include "device_rows.h"
#include "device_share.h"
#include "imager_window.h"
#include "tess_density_device.h"
#include "tess_device.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_samples.h"

/* Share of the device memory beside images and planes that samples may take while they
 * are sorted; brick sums take the rest. */
static const double SAMPLES_SHARE = 0.6;

/* Rows are copied into one buffer on the device while those in the other buffer are
 * decoded. */
enum { ROW_BUFFERS = 2 };

typedef struct read_run {
    const imager_job *job;
    tess_source *source;
    const tess_source_info *info;
    tess_device_samples samples;
    raw_sums *sums;                   /* device */
    unsigned long long *good_of_chan; /* device, [channels of the table] */
    void *rows[ROW_BUFFERS];          /* device, taken in turn */
    int64_t turn;
    device_recipe recipe;
    int64_t rows_done, vis_done;
    double readers_s;
} read_run;

/* Whether targets take their views on the device, if they take any. */
static bool takes_there(const imager_job *job)
{
    const imager_view *view = &job->view;
    if (view->num_pol == 0) return true;
    return job->backend->grid->take && view->take && view->num_prepared > 0 &&
           !view->counts && job->model.num == 0;
}

bool device_read_possible(const imager_job *job, const tess_source *source)
{
    tess_source_rows rows;
    const tess_samples like = tess_source_samples(source);
    if (!job->backend->start || !takes_there(job) ||
        (like.num_weight != like.num_pol && like.num_weight != 1))
        return false;
    for (int64_t k = 0; k < tess_source_num_spans(source); ++k)
        if (!device_rows_fit(source, k, &rows)) return false;
    return true;
}

/* Bytes of the Jones matrices that are on the device while the target at work takes its
 * view. */
static double table_bytes(const imager_job *job)
{
    const imager_view *view = &job->view;
    tess_take take;
    if (view->num_pol == 0) return 0;
    if (view->prepare) view->prepare(view->context, job->targets.aim);
    return view->take(view->context, job->targets.aim, &take)
               ? (double)tess_take_bytes(&take)
               : 0;
}

bool device_read_fits(const imager_job *job, const tess_source *source, int num_images)
{
    int64_t num_rows, num_vis;
    const tess_samples like = tess_source_samples(source);
    const double value = like.is_double ? 16 : 8;
    const int models = job->model.is_shared ? job->model.num : 0;
    tess_source_slice(source, &num_rows, &num_vis);
    const double planes =
        device_share_bytes(imager_target_pixels(job), num_images + models, value,
                           tess_comm_size(job->comm));
    const double residuals = (double)num_vis * models * value;
    /* what a target takes, beside as much for brick sums */
    const double taken =
        2 * (double)num_vis * job->view.num_pol * value + table_bytes(job);
    return device_samples_bytes(&like, num_rows, num_vis, true) + residuals + taken <
           SAMPLES_SHARE *
               ((double)tess_device_room() - planes - job->memory.device_bytes);
}

static tess_status set_up(read_run *run)
{
    tess_status status = TESS_OK;
    const tess_samples like = tess_source_samples(run->source);
    const int64_t bytes = run->info->num_chan * (int64_t)sizeof *run->good_of_chan;
    int64_t num_rows, num_vis;
    tess_source_slice(run->source, &num_rows, &num_vis);
    TESS_TRY(
        device_samples_make(run->info, &like, num_rows, num_vis, true, &run->samples));
    TESS_TRY(device_sums_make(&run->sums));
    TESS_TRY(tess_device_alloc(bytes, "sums", (void **)&run->good_of_chan));
    TESS_TRY(tess_device_zero(run->good_of_chan, bytes));
    for (int k = 0; k < ROW_BUFFERS; ++k)
        TESS_TRY(tess_device_alloc(tess_device_stage_bytes(), "rows of a file",
                                   &run->rows[k]));
cleanup:
    return status;
}

/* ---- rows ---- */

static tess_status take_span(read_run *run, const tess_source_rows *rows)
{
    tess_status status = TESS_OK;
    TESS_TRY(device_recipe_for(rows, run->samples.inv_lambda, &run->recipe));
    if (rows->num_chan > run->samples.max_chan)
        run->samples.max_chan = (int32_t)rows->num_chan;
    for (int64_t first = 0; first < rows->num_rows;) {
        int64_t count = rows->num_rows - first;
        void *buffer = run->rows[run->turn++ % ROW_BUFFERS];
        TESS_TRY(device_rows_upload(rows, first, &count, run->job->layout->threads,
                                    buffer, &run->readers_s));
        const raw_rows here = {buffer, count, run->rows_done, run->vis_done};
        TESS_TRY(raw_decode(&run->recipe.raw, &here, &run->samples, run->sums,
                            run->good_of_chan));
        TESS_TRY(tess_device_staged_worked());
        run->rows_done += count;
        run->vis_done += count * rows->num_chan;
        first += count;
    }
cleanup:
    return status;
}

static tess_status take_all(read_run *run)
{
    tess_status status = TESS_OK;
    tess_profile *profile = run->job->profile;
    tess_progress progress;
    tess_source_rows rows;
    int64_t bytes = 0;
    const double start = tess_time_now();
    tess_progress_start(&progress, "reading", "vis", (double)run->samples.num_vis);
    for (int64_t k = 0; k < tess_source_num_spans(run->source); ++k) {
        tess_source_rows_of(run->source, k, &rows);
        TESS_TRY(take_span(run, &rows));
        bytes += rows.num_rows * rows.raw.row_bytes;
        tess_progress_add(&progress, (double)(rows.num_rows * rows.num_chan));
    }
    TESS_TRY(tess_device_wait());
    tess_source_count_bytes(run->source, bytes);
    profile->stream.bytes += bytes;
    profile->stream.seconds += tess_time_now() - start;
    profile->stream.readers_s += run->readers_s;
    tess_device_busy(&profile->stream.link_s, &profile->stream.device_s);
cleanup:
    tess_progress_finish(&progress);
    return status;
}

/* ---- results ---- */

static tess_status take_extent(const read_run *run, const raw_sums *sums,
                               imager_extent *extent)
{
    tess_status status = TESS_OK;
    const int64_t num_chan = run->info->num_chan;
    unsigned long long *good = tess_alloc(num_chan, sizeof *good);
    *extent = imager_extent_empty();
    if (!good) TESS_FAIL(TESS_ERR_ALLOC, "channels");
    TESS_TRY(tess_device_download(good, run->good_of_chan,
                                  num_chan * (int64_t)sizeof *good));
    if (sums->good == 0) goto cleanup;
    extent->num_vis = (int64_t)sums->good;
    extent->w_min_lambda = device_sum(sums->w_min_bits);
    extent->w_max_lambda = device_sum(sums->w_max_bits);
    extent->uvw_max_lambda = sqrt(device_sum(sums->uvw2_max_bits));
    extent->largest_weight = device_sum(sums->weight_max_bits);
    extent->largest_vis_jy = device_sum(sums->vis_max_bits);
    extent->weight_sum = sums->weight[0];
    for (int64_t c = 0; c < num_chan; ++c) {
        if (good[c] == 0) continue;
        extent->freq_sum += (double)good[c] * run->info->freq_hz[c];
        extent->freq_min = fmin(extent->freq_min, run->info->freq_hz[c]);
        extent->freq_max = fmax(extent->freq_max, run->info->freq_hz[c]);
    }
cleanup:
    tess_free(good);
    return status;
}

static tess_status take_sums(const read_run *run, raw_sums *sums, imager_extent *extent)
{
    tess_status status = TESS_OK;
    tess_profile *profile = run->job->profile;
    TESS_TRY(tess_device_download(sums, run->sums, sizeof *sums));
    if (sums->bad_row != ~0ull)
        TESS_TRY(device_rows_refuse(run->source, 0, (int64_t)sums->bad_row));
    TESS_TRY(take_extent(run, sums, extent));
    profile->visibilities += (int64_t)sums->good;
    for (int k = 0; k < TESS_NUM_IGNORED; ++k)
        profile->ignored[k] += (int64_t)sums->ignored[k];
    profile->beyond_uv_lambda =
        fmax(profile->beyond_uv_lambda, device_sum(sums->beyond_bits));
cleanup:
    return status;
}

/* The samples, and the memory that they use, in one struct. */
typedef struct resident_samples {
    tess_resident resident;
    tess_device_samples samples;
} resident_samples;

static tess_status add_density(tess_resident *resident, tess_density *density)
{
    return density_device_add(density, resident->samples);
}

static tess_status apply_density(tess_resident *resident, const tess_density *density)
{
    return density_device_apply(density, resident->samples, resident->sum_weights,
                                resident->largest_weight);
}

static tess_status scale(tess_resident *resident, double vis_factor,
                         double weight_factor)
{
    for (int k = 0; k < TESS_RESIDENT_MAX_WEIGHTS; ++k) {
        resident->sum_weights[k] *= weight_factor;
        resident->largest_weight[k] *= weight_factor;
    }
    return raw_scale(resident->samples, vis_factor, weight_factor);
}

static tess_status excerpt(tess_resident *resident, int most, tess_samples *out)
{
    return device_samples_excerpt(resident->samples, most, out);
}

static tess_status add_frequencies(tess_resident *resident, double *sum)
{
    tess_status status = TESS_OK;
    double found, zero = 0;
    const void *made = NULL;
    void *device = NULL;
    TESS_TRY(tess_device_copy_of(&zero, sizeof zero, "sums", &made));
    memcpy(&device, &made, sizeof device);
    TESS_TRY(raw_add_frequencies(resident->samples, device));
    TESS_TRY(tess_device_download(&found, device, sizeof found));
    *sum += found;
cleanup:
    tess_device_free(device);
    return status;
}

static tess_status bring_home(tess_resident *resident, tess_samples *out)
{
    return device_samples_download(resident->samples, out);
}

static void release(tess_resident *resident)
{
    device_samples_free(resident->samples);
    tess_free(resident); /* the first member of resident_samples */
}

static tess_status hand_out(read_run *run, const raw_sums *sums, tess_samples *out)
{
    tess_status status = TESS_OK;
    resident_samples *made = tess_alloc_zero(1, sizeof *made);
    if (!made) TESS_FAIL(TESS_ERR_ALLOC, "visibilities");
    made->samples = run->samples;
    run->samples = (tess_device_samples){0};
    made->resident = (tess_resident){.samples = &made->samples,
                                     .add_density = add_density,
                                     .apply_density = apply_density,
                                     .scale = scale,
                                     .excerpt = excerpt,
                                     .add_frequencies = add_frequencies,
                                     .bring_home = bring_home,
                                     .release = release};
    memcpy(made->resident.sum_weights, sums->weight, sizeof sums->weight);
    for (int k = 0; k < TESS_RESIDENT_MAX_WEIGHTS; ++k)
        made->resident.largest_weight[k] = device_sum(sums->weight_max_bits);
    *out = tess_source_samples(run->source);
    if (sums->good == 0) made->samples.num_rows = made->samples.num_vis = 0;
    out->num_rows = made->samples.num_rows;
    out->num_vis = made->samples.num_vis;
    out->resident = &made->resident;
cleanup:
    return status;
}

tess_status device_read_share_weights(tess_samples *samples)
{
    tess_status status = TESS_OK;
    tess_device_samples *held = samples->resident->samples;
    const int64_t bytes = held->num_vis * (held->is_double ? 8 : 4);
    void *first = NULL;
    TESS_TRY(tess_device_alloc(bytes, "visibilities", &first));
    TESS_TRY(raw_first_weights(held, first));
    device_weights_replace(held, first);
    samples->num_weight = held->num_weight = 1;
cleanup:
    return status;
}

tess_status device_read_samples(const imager_job *job, tess_source *source,
                                tess_samples *samples, imager_extent *extent,
                                bool *weights_agree)
{
    tess_status status = TESS_OK;
    read_run run = {.job = job, .source = source, .info = tess_source_info_of(source)};
    raw_sums sums;
    TESS_TRY(set_up(&run));
    TESS_TRY(take_all(&run));
    TESS_TRY(take_sums(&run, &sums, extent));
    TESS_TRY(hand_out(&run, &sums, samples));
    *weights_agree = sums.unlike == 0;
cleanup:
    device_recipe_free(&run.recipe);
    device_samples_free(&run.samples);
    tess_device_free(run.sums);
    tess_device_free(run.good_of_chan);
    for (int k = 0; k < ROW_BUFFERS; ++k)
        tess_device_free(run.rows[k]);
    return status;
}
