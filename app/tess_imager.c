#define _GNU_SOURCE
#include "tess_imager.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "imager.h"
#include "tess_log.h"
#include "tess_mem.h"

/* Bytes of one block of a file. */
enum { BLOCK_BYTES = 32 << 20 };

/* Share of a rank's memory that prepared samples may take up before data are streamed in
 * several passes instead of being kept. */
static const double CACHE_SHARE = 0.45;

/* One run of `image` or `plan`. */
typedef struct image_run {
    tess_comm *comm;
    const tess_image_opts *opts;
    tess_profile *profile;
    tess_source *source;
    const tess_source_info *info;
    tess_pol pol[2 * TESS_MAX_POL];
    int num_pol;
    int64_t rank_bytes;
    const tess_backend *backend;
    tess_samples all;            /* everything, when it fits */
    double *row_time;
    bool in_memory;
    int64_t num_outputs;         /* channels × intervals */
    bool *chan_wanted;           /* [num_chan] of the current output channel */
    int32_t *chan_output;        /* [num_chan] output channel of each channel */
    double *interval_begin;      /* [intervals + 1] MJD s */
    imager_model model;
    int fft_ranks;               /* of the first output; kept, so that rows stay put */
    imager_output output;
} image_run;

/* ---- set-up ---- */

static tess_status check_size(const image_run *run)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    const double bytes = 4.0 * (double)opts->nx * (double)opts->ny;
    const double all = (double)run->rank_bytes * tess_comm_size(run->comm);
    if (bytes > all)
        TESS_FAIL(TESS_ERR_ALLOC,
                  "an image of %lld x %lld pixels needs at least %s, of which %s may be "
                  "used; use more nodes or a smaller --size",
                  (long long)opts->nx, (long long)opts->ny, tess_mem_text(bytes),
                  tess_mem_text(all));
cleanup:
    return status;
}

/* Channels in order of frequency are dealt to the output channels in equal numbers. */
static tess_status deal_channels(image_run *run)
{
    tess_status status = TESS_OK;
    const int64_t n = run->info->num_chan, outputs = run->opts->channels_out;
    run->chan_wanted = tess_alloc_zero(n, sizeof *run->chan_wanted);
    run->chan_output = tess_alloc_zero(n, sizeof *run->chan_output);
    if (!run->chan_wanted || !run->chan_output) TESS_FAIL(TESS_ERR_ALLOC, "channels");
    if (outputs > n)
        TESS_FAIL(TESS_ERR_USAGE, "--channels-out %lld: there are only %lld channels",
                  (long long)outputs, (long long)n);
    for (int64_t a = 0; a < n; ++a) {
        int64_t below = 0; /* rank of channel a; tables are short */
        for (int64_t b = 0; outputs > 1 && b < n; ++b)
            below += run->info->freq_hz[b] < run->info->freq_hz[a] ||
                     (run->info->freq_hz[b] == run->info->freq_hz[a] && b < a);
        run->chan_output[a] = (int32_t)(below * outputs / n);
    }
cleanup:
    return status;
}

/* Times at which the intervals begin: equal numbers of integrations each. */
static tess_status deal_times(image_run *run)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    const int64_t outputs = opts->intervals_out;
    double *times = NULL;
    int64_t count = 0;
    run->interval_begin = tess_alloc(outputs + 1, sizeof *run->interval_begin);
    TESS_TRY(tess_comm_agree(run->comm, run->interval_begin ? TESS_OK : TESS_ERR_ALLOC));
    run->interval_begin[0] = -INFINITY;
    run->interval_begin[outputs] = INFINITY;
    const int64_t begin = opts->selection.interval_first;
    int64_t end = opts->selection.interval_end;
    if (outputs == 1 && begin == 0 && end == 0) return TESS_OK;
    TESS_TRY(tess_source_times(run->source, &times, &count));
    if (end == 0 || end > count) end = count;
    if (begin >= end)
        TESS_FAIL(TESS_ERR_USAGE, "--intervals %lld:%lld: there are %lld integrations",
                  (long long)begin, (long long)opts->selection.interval_end,
                  (long long)count);
    if (outputs > end - begin)
        TESS_FAIL(TESS_ERR_USAGE, "--intervals-out %lld: there are %lld integrations",
                  (long long)outputs, (long long)(end - begin));
    for (int64_t k = 0; k <= outputs; ++k) {
        const int64_t at = begin + (end - begin) * k / outputs;
        /* half a millisecond before the integration: times in files are rounded */
        run->interval_begin[k] = at < count ? times[at] - 5e-4 : (double)INFINITY;
    }
cleanup:
    tess_free(times);
    return status;
}

static tess_status set_up(image_run *run)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    status = tess_backend_find(opts->gridding.backend, &run->backend);
    TESS_TRY(tess_comm_agree(run->comm, status));
    TESS_TRY(imager_rank_bytes(run->comm, &opts->layout, &run->rank_bytes));
    TESS_TRY(check_size(run));
    run->num_pol = tess_pol_expand(opts->pol, opts->num_pol, run->pol);
    if (run->num_pol > TESS_MAX_POL)
        TESS_FAIL(TESS_ERR_USAGE, "--stokes asks for %d images; at most %d in one run",
                  run->num_pol, TESS_MAX_POL);
    TESS_TRY(tess_source_open(run->comm, opts->obs, opts->num_obs, &opts->selection,
                              &run->source));
    run->info = tess_source_info_of(run->source);
    run->output = (imager_output){.comm = run->comm,
                                  .opts = opts,
                                  .info = run->info,
                                  .pol = run->pol,
                                  .num_pol = run->num_pol,
                                  .profile = run->profile};
    status = tess_source_setup(run->source, run->pol, run->num_pol,
                               0.5 / opts->scale_rad, opts->gridding.accuracy < 9e-6,
                               opts->layout.threads, BLOCK_BYTES);
    if (status == TESS_OK) status = deal_channels(run);
    if (status == TESS_OK && opts->subtract)
        status = imager_model_open(opts->subtract, run->info->ra_rad, run->info->dec_rad,
                                   opts->scale_rad, &run->model);
    TESS_TRY(tess_comm_agree(run->comm, status));
    TESS_TRY(deal_times(run));
    run->num_outputs = opts->channels_out * opts->intervals_out;
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
        const bool same = samples->is_double
                              ? ((double *)samples->weight)[k] ==
                                    ((double *)samples->weight)[first]
                              : ((float *)samples->weight)[k] ==
                                    ((float *)samples->weight)[first];
        if (!same) return false;
    }
    return true;
}

static tess_status subtract_model(image_run *run, tess_samples *samples)
{
    if (!run->opts->subtract) return TESS_OK;
    return imager_model_subtract(run->comm, &run->model, &run->opts->gridding,
                                 &run->opts->layout, run->profile, run->pol, samples);
}

/* Read everything once and keep it, when it fits. Collective. */
static tess_status load_all(image_run *run)
{
    tess_status status = TESS_OK;
    int64_t num_rows, num_vis, num_blocks;
    double mark = tess_time_now();
    tess_progress progress;
    run->all = tess_source_samples(run->source);
    tess_source_slice(run->source, &num_rows, &num_vis);
    const double copies = tess_comm_size(run->comm) > 1 ? 2 : 1;
    const double bytes =
        copies * ((double)num_vis * (double)tess_samples_vis_bytes(&run->all) +
                  48.0 * (double)num_rows);
    int64_t fits = bytes < CACHE_SHARE * (double)run->rank_bytes;
    TESS_TRY(tess_comm_allreduce_i64(run->comm, &fits, 1, TESS_MIN));
    run->in_memory = fits || run->num_outputs > 1;
    TESS_TRY(tess_source_num_blocks(run->source, &num_blocks));
    if (!run->in_memory) {
        tess_log_info("data are streamed: %s would not fit into %s per rank",
                      tess_mem_text(bytes), tess_mem_text((double)run->rank_bytes));
        return TESS_OK;
    }
    status = tess_samples_reserve(&run->all, num_rows, num_vis);
    if (status == TESS_OK && run->num_outputs > 1) {
        run->row_time = tess_alloc(num_rows, sizeof *run->row_time);
        if (!run->row_time) status = TESS_ERR_ALLOC;
    }
    TESS_TRY(tess_comm_agree(run->comm, status));
    tess_source_filter(run->source, NULL, run->interval_begin[0],
                       run->interval_begin[run->opts->intervals_out]);
    tess_source_rewind(run->source);
    tess_progress_start(&progress, "reading", " blocks", (double)num_blocks);
    for (int64_t k = 0; k < num_blocks && status == TESS_OK; ++k) {
        status = tess_source_next(run->source, &run->all,
                                  run->row_time ? &run->row_time : NULL, run->profile);
        tess_progress_add(&progress, 1);
    }
    tess_progress_finish(&progress);
    TESS_TRY(tess_comm_agree(run->comm, status));
    run->profile->stage_visibilities[TESS_STAGE_READ] += num_vis;
    tess_profile_lap(run->profile, TESS_STAGE_READ, &mark);
    int64_t shared = run->all.num_weight == 1 || weights_agree(&run->all);
    TESS_TRY(tess_comm_allreduce_i64(run->comm, &shared, 1, TESS_MIN));
    if (shared && run->all.num_weight > 1) share_weights(&run->all);
    TESS_TRY(subtract_model(run, &run->all));
cleanup:
    return status;
}

static bool channel_chosen(const image_run *run, int64_t channel, int32_t chan)
{
    return run->opts->channels_out == 1 || run->chan_output[chan] == channel;
}

/* Copy one stretch of a row's wanted channels as a row of its own. */
static tess_status copy_stretch(const tess_samples *all, int64_t row, int32_t begin,
                                int32_t end, tess_samples *out)
{
    tess_status status = TESS_OK;
    const int64_t at = out->num_rows, n = end - begin;
    const int64_t element = all->is_double ? 8 : 4;
    const int64_t vis = 2 * element * all->num_pol, weight = element * all->num_weight;
    TESS_TRY(tess_samples_reserve(out, at + 1, out->num_vis + n));
    memcpy(out->uvw_m + 3 * at, all->uvw_m + 3 * row, 3 * sizeof(double));
    out->chan_base[at] = all->chan_base[row] + begin;
    out->num_chan[at] = (int32_t)n;
    out->vis_first[at] = out->num_vis;
    memcpy((char *)out->vis + out->num_vis * vis,
           (const char *)all->vis + (all->vis_first[row] + begin) * vis, (size_t)(n * vis));
    memcpy((char *)out->weight + out->num_vis * weight,
           (const char *)all->weight + (all->vis_first[row] + begin) * weight,
           (size_t)(n * weight));
    out->num_vis += n;
    ++out->num_rows;
cleanup:
    return status;
}

/* The samples of one output channel and interval. */
static tess_status choose_samples(const image_run *run, int64_t interval, int64_t channel,
                                  tess_samples *out)
{
    tess_status status = TESS_OK;
    const tess_samples *all = &run->all;
    *out = (tess_samples){.is_double = all->is_double,
                          .num_pol = all->num_pol,
                          .num_weight = all->num_weight,
                          .inv_lambda = all->inv_lambda};
    for (int64_t row = 0; row < all->num_rows; ++row) {
        const double time = run->row_time[row];
        if (time < run->interval_begin[interval] ||
            time >= run->interval_begin[interval + 1])
            continue;
        for (int32_t c = 0; c < all->num_chan[row];) {
            int32_t end = c;
            while (end < all->num_chan[row] &&
                   channel_chosen(run, channel, all->chan_base[row] + end))
                ++end;
            if (end > c) TESS_TRY(copy_stretch(all, row, c, end, out));
            c = end + (end < all->num_chan[row]);
        }
    }
cleanup:
    return status;
}

static tess_status data_for(image_run *run, int64_t interval, int64_t channel,
                            imager_data *data)
{
    tess_status status = TESS_OK;
    *data = (imager_data){.source = run->source,
                          .in_memory = run->in_memory,
                          .num_sets = 1,
                          .threads = run->opts->layout.threads,
                          .profile = run->profile};
    if (run->in_memory && run->num_outputs == 1) {
        data->cached = run->all; /* moved: weights may be changed in place */
        run->all = (tess_samples){0};
    } else if (run->in_memory)
        status = choose_samples(run, interval, channel, &data->cached);
    else {
        data->block = tess_source_samples(run->source);
        tess_source_filter(run->source, NULL, run->interval_begin[0],
                           run->interval_begin[1]);
        TESS_TRY(tess_source_num_blocks(run->source, &data->num_sets));
    }
    TESS_TRY(tess_comm_agree(run->comm, status));
cleanup:
    return status;
}

static void data_free(imager_data *data)
{
    tess_samples_free(&data->cached);
    tess_samples_free(&data->block);
}

/* ---- one output ---- */

/* Extent and density in one look at the data. Collective. */
static tess_status survey(image_run *run, imager_data *data, const tess_geom *geom,
                          imager_extent *extent, tess_density **density)
{
    tess_status status = TESS_OK;
    double mark = tess_time_now();
    const tess_samples *like = data->in_memory ? &data->cached : &data->block;
    const int threads = run->opts->layout.threads;
    const tess_weight_opts weights = {run->opts->weighting, run->opts->robust,
                                      run->opts->rank_filter};
    *extent = imager_extent_empty();
    if (run->opts->weighting != TESS_NATURAL)
        status = tess_density_create(geom, &weights, like->num_weight, density);
    TESS_TRY(tess_comm_agree(run->comm, status));
    for (int64_t k = 0; k < data->num_sets && status == TESS_OK; ++k) {
        tess_samples *samples;
        status = imager_data_get(data, k, true, &samples);
        if (status != TESS_OK) break;
        imager_extent_add(samples, run->info->freq_hz, true, threads, extent);
        if (*density)
            status = tess_density_add(*density, samples, 0, samples->num_rows, threads);
    }
    TESS_TRY(tess_comm_agree(run->comm, status));
    TESS_TRY(imager_extent_sum(run->comm, extent));
    if (*density) TESS_TRY(tess_density_finish(*density, run->comm));
    data->density = *density;
    tess_profile_lap(run->profile, TESS_STAGE_WEIGHT, &mark);
cleanup:
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
    for (int k = 0; k < count; ++k) imager_rows_free(&product[k].rows);
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
        for (int64_t i = 0; i < pixels; ++i) mean[k].rows.value[i] *= factor;
    }
}

/* Rows of the first non-empty channel, zero. */
static tess_status start_mean(const image_run *run, const imager_product *product, int count,
                              imager_product *mean)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < count; ++k) {
        mean[k] = (imager_product){.rows = product[k].rows};
        mean[k].rows.value = tess_alloc_zero(
            product[k].rows.num_rows * product[k].rows.nx, sizeof(double));
        if (!mean[k].rows.value) status = TESS_ERR_ALLOC;
    }
    return tess_comm_agree(run->comm, status);
}

static void extent_join(imager_extent *total, const imager_extent *extent)
{
    if (extent->num_vis == 0) return;
    total->num_vis += extent->num_vis;
    total->freq_sum += extent->freq_sum;
    total->freq_min = fmin(total->freq_min, extent->freq_min);
    total->freq_max = fmax(total->freq_max, extent->freq_max);
    total->uvw_max_lambda = fmax(total->uvw_max_lambda, extent->uvw_max_lambda);
}

/* Make the products of one channel and interval; num_images is set. */
static tess_status make_products(image_run *run, int64_t interval, int64_t channel,
                                 imager_product *product, int *num_psf,
                                 imager_extent *extent)
{
    tess_status status = TESS_OK;
    imager_data data = {0};
    tess_density *density = NULL;
    imager_job job = {.comm = run->comm,
                      .layout = &run->opts->layout,
                      .gridding = &run->opts->gridding,
                      .geom = {run->opts->nx, run->opts->ny, run->opts->scale_rad},
                      .num_pol = run->num_pol,
                      .rank_bytes = run->rank_bytes,
                      .profile = run->profile,
                      .backend = run->backend,
                      .fft_ranks = run->fft_ranks};
    TESS_TRY(data_for(run, interval, channel, &data));
    const tess_samples *like = data.in_memory ? &data.cached : &data.block;
    *num_psf = run->opts->make_psf ? like->num_weight : 0;
    job.num_images = run->num_pol + *num_psf;
    TESS_TRY(survey(run, &data, &job.geom, extent, &density));
    if (extent->num_vis == 0) {
        if (run->num_outputs == 1)
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: nothing to image: all selected visibilities are flagged or "
                      "ignored (see the log for the reasons)",
                      run->info->meta->path);
        TESS_TRY(empty_products(run, job.num_images, product));
        goto cleanup;
    }
    job.extent = *extent;
    TESS_TRY(imager_run(&job, &data, run->opts->make_psf, product, run->opts->dump_stages));
    run->fft_ranks = job.fft_ranks;
cleanup:
    imager_job_free(&job);
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
    tess_log_info("visibilities: %lld used; ignored: %lld flagged, %lld of weight <= 0, "
                  "%lld not finite, %lld autocorrelations, %lld beyond the grid, %lld "
                  "outside --uvrange",
                  (long long)count[TESS_NUM_IGNORED],
                  (long long)count[TESS_IGNORED_FLAGGED],
                  (long long)count[TESS_IGNORED_WEIGHT],
                  (long long)count[TESS_IGNORED_NOT_FINITE],
                  (long long)count[TESS_IGNORED_AUTOCORR],
                  (long long)count[TESS_IGNORED_BEYOND_UV],
                  (long long)count[TESS_IGNORED_UVRANGE]);
cleanup:
    return status;
}

/* All channels of one interval, and their mean. */
static tess_status image_interval(image_run *run, int64_t interval)
{
    tess_status status = TESS_OK;
    enum { MOST = 4 * TESS_MAX_POL };
    imager_product product[MOST] = {0}, mean[MOST] = {0};
    imager_extent total = imager_extent_empty(), extent;
    int num_psf = 0, num_images = 0;
    bool mean_started = false;
    for (int64_t c = 0; c < run->opts->channels_out; ++c) {
        TESS_TRY(make_products(run, interval, c, product, &num_psf, &extent));
        num_images = run->num_pol + num_psf;
        TESS_TRY(imager_output_write(&run->output, interval, c, product, num_psf, &extent));
        if (run->opts->channels_out > 1 && extent.num_vis > 0) {
            if (!mean_started) TESS_TRY(start_mean(run, product, num_images, mean));
            mean_started = true;
            add_to_mean(mean, product, num_images);
            extent_join(&total, &extent);
        }
        free_products(product, num_images);
    }
    if (run->opts->channels_out > 1) {
        if (!mean_started) TESS_TRY(empty_products(run, num_images, mean));
        finish_mean(mean, num_images);
        TESS_TRY(imager_output_write(&run->output, interval, -1, mean, num_psf, &total));
    }
cleanup:
    free_products(product, MOST);
    free_products(mean, MOST);
    return status;
}

/* NAME.conf: the options used, written when all images are there. */
static tess_status write_options(const image_run *run)
{
    tess_status status = TESS_OK;
    char *path = NULL;
    if (tess_comm_rank(run->comm) == 0 && run->opts->used_options) {
        FILE *file = NULL;
        if (asprintf(&path, "%s.conf", run->opts->output) >= 0) file = fopen(path, "w");
        if (!file || fputs(run->opts->used_options, file) < 0 || fclose(file) != 0)
            status = tess_error_record(TESS_ERR_IO, __FILE__, __LINE__, __func__,
                                       "%s.conf: cannot be written", run->opts->output);
        free(path); /* from asprintf */
    }
    return tess_comm_agree(run->comm, status);
}

static void free_run(image_run *run)
{
    tess_source_close(run->source);
    tess_samples_free(&run->all);
    tess_free(run->row_time);
    tess_free(run->chan_wanted);
    tess_free(run->chan_output);
    tess_free(run->interval_begin);
}

tess_status tess_imager_image(tess_comm *comm, const tess_image_opts *opts,
                              tess_profile *profile)
{
    tess_status status = TESS_OK;
    image_run run = {.comm = comm, .opts = opts, .profile = profile};
    run.output.comm = comm;
    TESS_TRY(set_up(&run));
    TESS_TRY(imager_output_check(&run.output));
    TESS_TRY(load_all(&run));
    if (run.in_memory) TESS_TRY(log_ignored(&run));
    for (int64_t t = 0; t < opts->intervals_out; ++t) TESS_TRY(image_interval(&run, t));
    if (!run.in_memory) TESS_TRY(log_ignored(&run));
    TESS_TRY(write_options(&run));
cleanup:
    free_run(&run);
    return status;
}

/* ---- plan ---- */

static void print_plan(const image_run *run, const imager_job *job)
{
    char text[512];
    double largest, mean;
    int64_t split;
    const tess_grid_plan *plan = job->plan;
    const int ranks = tess_comm_size(run->comm), threads = run->opts->layout.threads;
    const double vis_bytes = (double)job->extent.num_vis *
                             (plan->is_double ? 24.0 : 12.0) * run->num_pol / ranks;
    const double planes = (double)plan->num_planes * job->num_images;
    const double fft_s = planes * 1.4e-9 *
                         ((double)plan->nu * (double)plan->nv * 2 +
                          (double)job->geom.nx * (double)job->geom.ny);
    tess_grid_plan_text(plan, text, sizeof text);
    tess_partition_balance(job->partition, &largest, &mean, &split);
    printf("visibilities  %lld of %lld, |w| %.4g to %.4g wavelengths\n",
           (long long)job->extent.num_vis, (long long)run->info->num_vis,
           job->extent.w_min_lambda, job->extent.w_max_lambda);
    printf("grid          %s\n", text);
    printf("partition     %d rank%s x %d threads: %d w-group%s, planes transformed by "
           "groups of %d\n",
           ranks, ranks == 1 ? "" : "s", threads, job->num_groups,
           job->num_groups == 1 ? "" : "s", job->fft_ranks);
    printf("balance       gridding %.1f %% above the mean on the busiest rank, %lld split "
           "bricks, no visibility sent twice\n",
           mean > 0 ? 100 * (largest / mean - 1) : 0.0, (long long)split);
    printf("memory a rank about %s for visibilities, %s for planes and images, of %s\n",
           tess_mem_text(vis_bytes * (ranks > 1 ? 2 : 1)),
           tess_mem_text((double)job->geom.nx * (double)job->geom.ny *
                         (plan->is_double ? 8 : 4) * job->num_images / job->fft_ranks),
           tess_mem_text((double)run->rank_bytes));
    printf("time          about %.2g s gridding, %.2g s FFT and w-screens (rough, without "
           "reading)\n",
           largest / threads, fft_s / (ranks * threads));
}

/* As make_products, but stops when the work has been partitioned. */
tess_status tess_imager_plan(tess_comm *comm, const tess_image_opts *opts,
                             tess_profile *profile)
{
    tess_status status = TESS_OK;
    image_run run = {.comm = comm, .opts = opts, .profile = profile};
    imager_data data = {0};
    tess_density *density = NULL;
    tess_brick_list bricks = {0};
    imager_job job = {.comm = comm,
                      .layout = &opts->layout,
                      .gridding = &opts->gridding,
                      .geom = {opts->nx, opts->ny, opts->scale_rad},
                      .profile = profile};
    TESS_TRY(set_up(&run));
    job.num_pol = run.num_pol;
    job.num_images = run.num_pol + (opts->make_psf ? 1 : 0);
    job.rank_bytes = run.rank_bytes;
    job.backend = run.backend;
    tess_image_opts natural = *opts; /* weights do not change the plan */
    natural.weighting = TESS_NATURAL;
    run.opts = &natural;
    run.num_outputs = 1;
    data.source = run.source;
    data.block = tess_source_samples(run.source);
    data.threads = opts->layout.threads;
    data.profile = profile;
    TESS_TRY(tess_source_num_blocks(run.source, &data.num_sets));
    TESS_TRY(survey(&run, &data, &job.geom, &job.extent, &density));
    if (job.extent.num_vis == 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: nothing to image", run.info->meta->path);
    TESS_TRY(imager_job_plan(&job));
    status = imager_count_bricks(&job, &data, &bricks);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(imager_job_partition(&job, &bricks, true));
    if (tess_comm_rank(comm) == 0) print_plan(&run, &job);
cleanup:
    tess_brick_list_free(&bricks);
    imager_job_free(&job);
    data_free(&data);
    free_run(&run);
    return status;
}
