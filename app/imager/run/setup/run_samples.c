/* Decides how the samples of a run are kept: read once into memory, surveyed to be read
 * again, or taken by a device. */

#include "run_samples.h"

#include <math.h>

#include "device_read.h"
#include "device_share.h"
#include "image_run.h"
#include "imager_targets.h"
#include "residual.h"
#include "run_parted.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_real.h"

/* Keeps one weight of each sample if all its polarisations have the same. */
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

tess_status image_subtract_early(image_run *run, tess_samples *samples)
{
    if (!image_subtracts_early(run)) return TESS_OK;
    return residual_of_set(&run->less.predictor, 1, samples);
}

/* Memory for samples. On several ranks it is also for those that others send; each rank
 * gets about the same share of them. */
static double samples_bytes(const image_run *run, double num_rows, double num_vis,
                            double num_vis_of_all)
{
    const tess_samples like = tess_source_samples(run->source);
    const int ranks = tess_comm_size(run->comm);
    const double received = ranks > 1 ? num_vis_of_all / ranks : 0;
    return (num_vis + received) * (double)tess_samples_vis_bytes(&like) +
           IMAGE_ROW_BYTES * num_rows;
}

/* Finds whether `bytes` bytes fit into the memory of every rank. Collective. */
tess_status image_fits_all(const image_run *run, double bytes, bool *fits)
{
    int64_t here = bytes < IMAGE_CACHE_SHARE * (double)run->job.memory.rank_bytes;
    const tess_status status = tess_comm_allreduce_i64(run->comm, &here, 1, TESS_MIN);
    *fits = here != 0;
    return status;
}

/* Memory of a rank when all samples are kept: with several outputs, the samples of one
 * are copied and sent at a time. */
double image_cached_bytes(const image_run *run)
{
    int64_t num_rows, num_vis;
    const double outputs = (double)run->outputs.num;
    tess_source_slice(run->source, &num_rows, &num_vis);
    return samples_bytes(run, (double)num_rows, (outputs > 1 ? 2 : 1) * (double)num_vis,
                         (double)run->info->num_vis /
                             (run->holds.together ? 1 : outputs));
}

tess_status image_check_kept(const image_run *run, bool kept, const char *what)
{
    tess_status status = TESS_OK;
    const double bytes = image_cached_bytes(run);
    const bool can_spool = !run->job.backend->grid->load;
    if (!kept && !(can_spool && run->opts->scratch))
        TESS_FAIL(TESS_ERR_RESOURCE,
                  "%s keeps all samples: %s on a rank, which needs %s for them "
                  "to stay in memory and may use %s; raise --memory, %sor select fewer "
                  "channels or times",
                  what, tess_mem_text(bytes), tess_mem_text(bytes / IMAGE_CACHE_SHARE),
                  tess_mem_text((double)run->job.memory.rank_bytes),
                  can_spool ? "have them kept on disk with --scratch DIR, " : "");
cleanup:
    return status;
}

/* The times of all outputs, and all channels. */
void image_want_all(image_run *run)
{
    const output_table *outputs = &run->outputs;
    tess_source_filter(run->source, NULL, outputs->interval_begin[0],
                       outputs->interval_begin[outputs->num_intervals]);
}

/* The times and channels of outputs [first, end). */
void image_want_outputs(image_run *run, int64_t first, int64_t end)
{
    const output_table *outputs = &run->outputs;
    const int64_t channels = outputs->num_channels;
    const int64_t from = first / channels, to = (end - 1) / channels + 1;
    for (int64_t k = 0; k < outputs->num_chan; ++k) {
        run->chan_wanted[k] = false;
        for (int64_t t = from; t < to && outputs->chan_output[k] >= 0; ++t) {
            const int64_t output = t * channels + outputs->chan_output[k];
            if (output >= first && output < end) run->chan_wanted[k] = true;
        }
    }
    tess_source_filter(run->source, channels > 1 ? run->chan_wanted : NULL,
                       outputs->interval_begin[from], outputs->interval_begin[to]);
}

/* Reads the next blocks, which are all, with the times of their rows where outputs need
 * them. Collective. */
static tess_status read_blocks(image_run *run, int64_t num_blocks, double **row_time)
{
    tess_status status = TESS_OK;
    tess_progress progress;
    tess_source_read_in_turn(run->source, true);
    tess_source_rewind(run->source);
    tess_progress_start(&progress, "reading", " blocks", (double)num_blocks);
    for (int64_t k = 0; k < num_blocks && status == TESS_OK; ++k) {
        status = tess_source_next(run->source, &run->all, *row_time ? row_time : NULL,
                                  run->profile);
        status = image_checkpoint_look(&run->checkpoint, status);
        tess_progress_add(&progress, 1);
    }
    tess_progress_finish(&progress);
    tess_source_rest(run->source);
    tess_source_read_in_turn(run->source, false);
    return status;
}

/* Takes memory for all samples, and for the times of their rows if there are several
 * outputs. Local. */
static tess_status reserve_all(image_run *run, int64_t num_rows, int64_t num_vis,
                               double **row_time)
{
    tess_status status = TESS_OK;
    run->all = tess_source_samples(run->source);
    TESS_TRY(tess_samples_reserve(&run->all, num_rows, num_vis));
    if (run->outputs.num == 1) return TESS_OK;
    *row_time = tess_alloc(num_rows, sizeof **row_time);
    if (!*row_time) TESS_FAIL(TESS_ERR_ALLOC, "times of rows");
cleanup:
    return status;
}

/* Parts all samples by output, once nothing else needs them in the order of the file.
 * Collective. */
static tess_status part_all(image_run *run, const double *row_time)
{
    tess_status status = TESS_OK;
    double mark = tess_time_now();
    if (run->outputs.num == 1) return TESS_OK;
    status = sample_parts_make(&run->outputs, row_time, run->opts->layout.threads,
                               &run->all, &run->parts);
    TESS_TRY(tess_comm_agree(run->comm, status));
    tess_profile_lap(run->profile, TESS_STAGE_SORT, &mark);
cleanup:
    return status;
}

/* Reads everything once and keeps it. Collective. */
static tess_status load_all(image_run *run, int64_t num_rows, int64_t num_vis)
{
    tess_status status = TESS_OK;
    int64_t num_blocks;
    double *row_time = NULL, mark = tess_time_now();
    image_want_all(run);
    TESS_TRY(tess_source_num_blocks(run->source, &num_blocks));
    status = reserve_all(run, num_rows, num_vis, &row_time);
    TESS_TRY(tess_comm_agree(run->comm, status));
    status = read_blocks(run, num_blocks, &row_time);
    if (status == TESS_OK)
        status = output_table_add(&run->outputs, &run->all, row_time,
                                  run->info->freq_hz, run->opts->layout.threads);
    TESS_TRY(tess_comm_agree(run->comm, status));
    run->profile->stage_visibilities[TESS_STAGE_READ] += num_vis;
    int64_t shared = run->all.num_weight == 1 || tess_samples_one_weight(&run->all);
    TESS_TRY(tess_comm_allreduce_i64(run->comm, &shared, 1, TESS_MIN));
    if (shared && run->all.num_weight > 1) share_weights(&run->all);
    tess_profile_lap(run->profile, TESS_STAGE_READ, &mark);
    TESS_TRY(image_subtract_early(run, &run->all));
    TESS_TRY(part_all(run, row_time));
cleanup:
    tess_free(row_time);
    return status;
}

/* Whether every rank may make samples on its device, and image them by itself. Nothing
 * else may need to see the samples, and they must fit. Collective. */
static tess_status wants_device_read(const image_run *run, bool *wanted)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    const tess_layout *layout = &opts->layout;
    const bool forced = layout->forced.passes > 0 || layout->forced.pw > 0 ||
                        layout->forced.fft_ranks > 0 || layout->forced.split > 0 ||
                        layout->reproducible || opts->checkpoint.folder;
    /* patches have no PSFs beside their images */
    const int num_images = run->num_pol * (1 + (opts->make_psf && !run->whole.patches));
    int64_t may = run->outputs.num == 1 && !run->holds.stay && !image_subtracts(opts) &&
                  !opts->beside.dump_stages && !forced &&
                  !opts->beside.primary_beam.model &&
                  device_read_possible(&run->job, run->source);
    int64_t fits = may && device_read_fits(&run->job, run->source, num_images);
    TESS_TRY(tess_comm_allreduce_i64(run->comm, &may, 1, TESS_MIN));
    TESS_TRY(tess_comm_allreduce_i64(run->comm, &fits, 1, TESS_MIN));
    *wanted = fits != 0;
    if (may && !fits)
        tess_log_info(
            "the GPU has no room for all visibilities beside the images: they "
            "are read into host memory");
cleanup:
    return status;
}

/* As load_all, by the device. Collective. */
static tess_status take_in(image_run *run)
{
    tess_status status = TESS_OK;
    double mark = tess_time_now();
    if (tess_comm_size(run->comm) > 1) {
        status = tess_comm_self(&run->job.alone);
        TESS_TRY(tess_comm_agree(run->comm, status));
        tess_profile_lap(run->profile, TESS_STAGE_PLAN, &mark);
    }
    bool agree = true;
    status = device_read_samples(&run->job, run->source, &run->all, run->outputs.extent,
                                 &agree);
    TESS_TRY(tess_comm_agree(run->comm, status));
    int64_t shared = agree;
    TESS_TRY(tess_comm_allreduce_i64(run->comm, &shared, 1, TESS_MIN));
    if (shared && run->all.num_weight > 1)
        status = device_read_share_weights(&run->all);
    TESS_TRY(tess_comm_agree(run->comm, status));
    run->outputs.num_held[0] = run->all.num_vis;
    run->profile->stage_visibilities[TESS_STAGE_READ] += run->all.num_vis;
    tess_profile_lap(run->profile, TESS_STAGE_READ, &mark);
cleanup:
    return status;
}

bool image_has_density(const tess_image_weights *weights)
{
    return weights->weighting != TESS_NATURAL || !tess_taper_is_none(&weights->taper);
}

/* With --reproducible, natural weights are summed as whole multiples of a quantum,
 * which depends on the largest weight. */
tess_status image_create_density(const image_run *run, int num_weight,
                                 double weight_scale, tess_density **density)
{
    const tess_image_opts *opts = run->opts;
    const double largest = run->job.extent.largest_weight * weight_scale;
    tess_weight_opts weights = {
        .weighting = opts->weights.weighting,
        .robust = opts->weights.robust,
        .rank_filter = opts->weights.rank_filter,
        .rank_cells = opts->weights.rank_cells,
        .first_density = opts->weights.first_density,
        .quantum = opts->layout.reproducible
                       ? tess_density_quantum(largest, run->info->num_vis)
                       : 0,
        .padding = opts->weights.padding,
        .super_weight = opts->weights.super_weight,
        .box_cells = opts->weights.box_cells,
        .stretch = run->densities.stretch,
        .taper = opts->weights.taper};
    tess_status status = TESS_OK;
    weights.taper.min_lambda = opts->selection.uv_min_lambda;
    weights.taper.max_lambda = opts->selection.uv_max_lambda;
    if (image_has_density(&opts->weights))
        status = tess_density_create(&run->whole.geom, &weights, num_weight, density);
    return tess_comm_agree(run->comm, status);
}

/* Sums what the outputs are made of over all ranks, once. Collective. */
static tess_status sum_outputs(image_run *run)
{
    tess_status status = TESS_OK;
    if (run->survey.summed) return TESS_OK;
    TESS_TRY(output_table_sum(run->comm, &run->outputs));
    run->survey.summed = true;
cleanup:
    return status;
}

/* Begins the density of a single output, unless the largest weight has to be known
 * first, and takes up what a run that is continued had found. Collective. */
static tess_status continue_survey(image_run *run, int64_t num_blocks, int num_weight,
                                   int64_t *first)
{
    tess_status status = TESS_OK;
    image_bookmark *bookmark = &run->checkpoint.bookmark;
    const imager_check check = {{num_blocks, tess_source_num_spans(run->source),
                                 (int64_t)tess_source_spans_hash(run->source),
                                 run->outputs.num, run->info->num_rows}};
    int64_t unused;
    if (run->outputs.num == 1 && !run->opts->layout.reproducible)
        TESS_TRY(image_create_density(run, num_weight, 1, &run->densities.single));
    TESS_TRY(image_bookmark_survey(bookmark, &check, &run->survey, &run->outputs,
                                   run->profile, first));
    if (run->densities.single)
        TESS_TRY(
            image_bookmark_density(bookmark, &check, run->densities.single, &unused));
cleanup:
    return status;
}

/* Local. */
static void add_power(const tess_samples *block, image_power *power)
{
    for (int64_t k = 0; k < block->num_vis; ++k) {
        const int64_t at = 2 * k * block->num_pol;
        const double weight = tess_samples_weight(block, k * block->num_weight);
        const double re = tess_real_at(block->vis, block->is_double, at),
                     im = tess_real_at(block->vis, block->is_double, at + 1);
        if (!(weight > 0)) continue;
        power->weighted += weight * (re * re + im * im);
        power->weights += weight;
        power->count += 1;
    }
}

/* Appends the next block of the survey, and takes all that have been appended into the
 * outputs and the density of a single one, once a batch `ends`. Local. */
static tess_status survey_block(image_run *run, bool ends, tess_samples *block,
                                double **row_time)
{
    tess_status status = TESS_OK;
    const int threads = run->opts->layout.threads;
    const bool timed = run->outputs.num_intervals > 1;
    TESS_TRY(
        tess_source_next(run->source, block, timed ? row_time : NULL, run->profile));
    if (!ends) return TESS_OK;
    if (!tess_samples_one_weight(block)) run->survey.weights_differ = true;
    TESS_TRY(
        output_table_add(&run->outputs, block, *row_time, run->info->freq_hz, threads));
    if (run->densities.single)
        TESS_TRY(tess_density_add(run->densities.single, block, 0, block->num_rows,
                                  threads));
cleanup:
    return status;
}

/* One weight for all polarisations of a sample suffices if these agree on all ranks.
 * Collective. */
static tess_status share_weights_if_equal(image_run *run)
{
    tess_status status = TESS_OK;
    int64_t shared = !run->survey.weights_differ;
    TESS_TRY(tess_comm_allreduce_i64(run->comm, &shared, 1, TESS_MIN));
    if (shared) tess_source_share_weights(run->source);
cleanup:
    return status;
}

/* Begins a survey, which needs the blocks from `*first` on. Samples are parted as they
 * are surveyed, unless the run that is continued had surveyed some. Collective. */
static tess_status start_survey(image_run *run, int num_weight, int64_t *num_blocks,
                                int64_t *first)
{
    tess_status status = TESS_OK;
    image_want_all(run);
    TESS_TRY(tess_source_num_blocks(run->source, num_blocks));
    TESS_TRY(continue_survey(run, *num_blocks, num_weight, first));
    TESS_TRY(image_part_start(
        run, *num_blocks,
        fmin(ceil(image_cached_bytes(run) /
                  (IMAGE_CACHE_SHARE * (double)run->job.memory.rank_bytes)),
             (double)run->outputs.num)));
    if (*first > 0 && run->holds.parted) TESS_TRY(image_part_again(run, *num_blocks));
    tess_source_skip_to(run->source, *first);
cleanup:
    return status;
}

/* Reads the blocks of a survey, and parts them if none has been surveyed before. If one
 * rank cannot read, all stop where they agree on that. Collective. */
static tess_status survey_from(image_run *run, int64_t num_blocks, int64_t first,
                               image_power *power)
{
    tess_status status = TESS_OK;
    part_batch batch = {.samples = tess_source_samples(run->source),
                        .since = tess_time_now()};
    tess_progress progress;
    tess_progress_start(&progress, "reading", " blocks", (double)(num_blocks - first));
    for (int64_t k = first; k < num_blocks; ++k) {
        const bool parts = first == 0 && run->holds.parted;
        const bool ends = !parts || image_part_ends(run, k + 1, num_blocks);
        if (status == TESS_OK)
            status = survey_block(run, ends, &batch.samples, &batch.row_time);
        if (ends && power && status == TESS_OK) add_power(&batch.samples, power);
        if (ends && parts) status = image_part_batch(run, status, &batch);
        tess_progress_add(&progress, 1);
        if (ends) image_bookmark_at(&run->checkpoint.bookmark, BOOKMARK_SURVEY, k + 1);
        status = image_checkpoint_look(&run->checkpoint, status);
        if (!ends) continue;
        if (status != TESS_OK) break;
        batch.samples.num_rows = batch.samples.num_vis = 0;
        batch.since = tess_time_now();
    }
    tess_progress_finish(&progress);
    tess_samples_free(&batch.samples);
    tess_free(batch.row_time);
    return tess_comm_agree(run->comm, status);
}

/* Reads everything once to learn what the outputs are made of, and the density of a
 * single one. Collective. */
tess_status image_survey_blocks(image_run *run, image_power *power)
{
    tess_status status = TESS_OK;
    int64_t num_blocks, first;
    double mark = tess_time_now();
    TESS_TRY(start_survey(run, tess_source_samples(run->source).num_weight, &num_blocks,
                          &first));
    TESS_TRY(survey_from(run, num_blocks, first, power));
    if (run->densities.single && !tess_density_is_finished(run->densities.single))
        TESS_TRY(tess_density_finish(run->densities.single, run->comm,
                                     run->opts->layout.threads));
    TESS_TRY(sum_outputs(run));
    TESS_TRY(share_weights_if_equal(run));
    tess_profile_lap(run->profile, TESS_STAGE_READ, &mark);
cleanup:
    return status;
}

/* Bytes of the largest output that this rank may have to hold. */
double image_largest_output_bytes(const image_run *run)
{
    const output_table *outputs = &run->outputs;
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

/* Finds what one plan for all outputs must cover, and how many images it has.
 * Collective. */
tess_status image_finish_survey(image_run *run)
{
    tess_status status = TESS_OK;
    const tess_samples like = tess_source_samples(run->source);
    const int num_weight =
        run->mode == DATA_CACHED ? run->all.num_weight : like.num_weight;
    TESS_TRY(sum_outputs(run));
    run->job.extent = output_table_union(&run->outputs);
    run->job.num_pol = run->num_pol;
    run->job.num_images = run->num_pol;
    if (run->opts->make_psf && !run->whole.patches) run->job.num_images += num_weight;
cleanup:
    return status;
}

/* ---- some outputs at a time ---- */

/* Finds the end of the outputs from `first` on whose samples fit into memory together,
 * beside a copy of those of each output that is made at a time; at least `end`. Several
 * teams of ranks read one output each, or are sent the samples of one. Collective. */
static tess_status choose_held(const image_run *run, int64_t first, int64_t *end)
{
    const output_table *outputs = &run->outputs;
    const double rows = (double)run->info->num_rows, vis = (double)run->info->num_vis;
    const double row_bytes =
        IMAGE_ROW_BYTES * rows / vis * (double)outputs->num_channels;
    const tess_samples like = tess_source_samples(run->source);
    const double room = IMAGE_CACHE_SHARE * (double)run->job.memory.rank_bytes;
    const int at_once = imager_teams_at_once(&run->teams);
    /* samples of a round that are sent to teams of ranks, and received */
    const int copies = run->teams.num > 1 ? 2 * run->teams.num : 1;
    double bytes = at_once * copies * image_largest_output_bytes(run);
    int64_t fits = first;
    if (run->teams.num > 1 && !run->holds.parts) return TESS_OK;
    for (int64_t k = first; k < outputs->num; ++k) {
        const bool new_rows = k == first || k % outputs->num_channels == 0;
        bytes += (double)outputs->num_held[k] *
                 ((double)tess_samples_vis_bytes(&like) + (new_rows ? row_bytes : 0));
        if (bytes > room) break;
        fits = k + 1;
    }
    if (fits > *end) *end = fits;
    return tess_comm_allreduce_i64(run->teams.all, end, 1, TESS_MIN);
}

/* Reads the samples of outputs [first, end) into run->all, in the order of the file.
 * Local. */
static tess_status read_outputs(image_run *run, int64_t first, int64_t end,
                                double **row_time)
{
    tess_status status = TESS_OK;
    double *block_time = NULL;
    tess_samples block = tess_source_samples(run->source);
    int64_t held = 0;
    for (int64_t k = first; k < end; ++k)
        held += run->outputs.num_held[k];
    run->all = tess_source_samples(run->source);
    TESS_TRY(tess_samples_reserve(&run->all, 0, held));
    image_want_outputs(run, first, end);
    tess_source_rewind(run->source);
    for (int64_t k = 0; k < tess_source_own_blocks(run->source); ++k) {
        block.num_rows = block.num_vis = 0;
        TESS_TRY(tess_source_next(run->source, &block, &block_time, NULL));
        TESS_TRY(output_table_choose_range(&run->outputs, first, end, &block,
                                           block_time, &run->all, row_time));
    }
cleanup:
    tess_samples_free(&block);
    tess_free(block_time);
    return status;
}

tess_status image_hold_outputs(image_run *run, int64_t first, int64_t end)
{
    tess_status status = TESS_OK;
    double *row_time = NULL, mark = tess_time_now();
    if (run->mode != DATA_PER_OUTPUT ||
        (first >= run->parts.first_output && end <= run->parts.end_output))
        return TESS_OK;
    tess_samples_free(&run->all);
    sample_parts_free(&run->parts);
    TESS_TRY(choose_held(run, first, &end));
    if (run->holds.parts) {
        status = image_part_hold(run, first, end);
        tess_profile_lap(run->profile, TESS_STAGE_READ, &mark);
        return tess_comm_agree(run->teams.all, status);
    }
    TESS_TRY(tess_comm_agree(run->comm, read_outputs(run, first, end, &row_time)));
    tess_profile_lap(run->profile, TESS_STAGE_READ, &mark);
    TESS_TRY(image_subtract_early(run, &run->all));
    TESS_TRY(part_all(run, row_time));
    run->parts.first_output = first;
    run->parts.end_output = end;
cleanup:
    tess_free(row_time);
    return status;
}

/* TESS_ERR_RESOURCE where --reproducible cannot be kept: if a model is subtracted from
 * some samples at a time, the plan of its prediction depends on how many these are.
 * Local. */
static tess_status check_reproducible(const image_run *run, double bytes)
{
    tess_status status = TESS_OK;
    if (run->opts->layout.reproducible && image_subtracts_early(run))
        TESS_FAIL(TESS_ERR_RESOURCE,
                  "--reproducible with --subtract of a model of several channels, or "
                  "whose pixels are not the image's, needs all data in memory: %s per "
                  "rank, which may use %s; use more ranks or nodes, or a model of one "
                  "channel on the image's pixels",
                  tess_mem_text(bytes),
                  tess_mem_text((double)run->job.memory.rank_bytes));
cleanup:
    return status;
}

/* Surveys data that do not fit into memory, and chooses whether they are read again for
 * each output or streamed in passes. Collective. */
static tess_status survey_large(image_run *run, double bytes)
{
    tess_status status = TESS_OK;
    bool fits;
    TESS_TRY(image_survey_blocks(run, NULL));
    TESS_TRY(image_fits_all(run, image_largest_output_bytes(run), &fits));
    fits = fits && run->outputs.num > 1 && !run->holds.together;
    run->mode = fits ? DATA_PER_OUTPUT : DATA_STREAMED;
    run->holds.parts = fits && run->holds.parted;
    tess_log_info("data are %s: %s would not fit into %s per rank",
                  !fits               ? "streamed"
                  : run->holds.parted ? "read once, and parted by output on scratch"
                                      : "read again for every few outputs",
                  tess_mem_text(bytes),
                  tess_mem_text((double)run->job.memory.rank_bytes));
    if (run->holds.parted)
        tess_log_info("%s of samples are parted by output in a scratch file of this "
                      "rank",
                      tess_mem_text((double)parted_spool_bytes(run->holds.parted)));
    if (run->holds.parted) tess_source_rest(run->source);
cleanup:
    return status;
}

/* Decides how samples are kept, and finds their extents, weights and number of images.
 * Reads the data once; all of them stay if they fit. Collective. */
tess_status image_first_pass(image_run *run)
{
    tess_status status = TESS_OK;
    int64_t num_rows, num_vis;
    bool fits, on_device;
    const double bytes = image_cached_bytes(run);
    image_want_all(run);
    TESS_TRY(wants_device_read(run, &on_device));
    if (on_device) {
        run->mode = DATA_CACHED;
        TESS_TRY(take_in(run));
        TESS_TRY(image_finish_survey(run));
        return TESS_OK;
    }
    tess_source_slice(run->source, &num_rows, &num_vis);
    TESS_TRY(image_fits_all(run, bytes, &fits));
    run->mode = DATA_CACHED;
    if (fits) {
        TESS_TRY(load_all(run, num_rows, num_vis));
    } else {
        TESS_TRY(check_reproducible(run, bytes));
        TESS_TRY(survey_large(run, bytes));
    }
    TESS_TRY(image_finish_survey(run));
cleanup:
    return status;
}

/* Tells that targets take turns on devices. */
static void tell_turns(const imager_job *job)
{
    if (job->backend->room && imager_job_in_turn(job))
        tess_log_info("planes of all %d targets would take %s of the GPU: they are "
                      "made one after the other",
                      imager_job_num_targets(job),
                      tess_mem_text(imager_device_planes_bytes(job, false)));
}

tess_status image_read_and_plan(image_run *run, const char *keeper)
{
    tess_status status = TESS_OK;
    TESS_TRY(image_first_pass(run));
    if (keeper) TESS_TRY(image_check_kept(run, run->mode == DATA_CACHED, keeper));
    TESS_TRY(image_check_ignored(run));
    if (tess_comm_rank(run->comm) == 0) output_table_warn(&run->outputs);
    TESS_TRY(imager_job_plan(&run->job));
    TESS_TRY(device_share_choose(&run->job));
    TESS_TRY(imager_job_choose_turns(&run->job));
    tell_turns(&run->job);
cleanup:
    return status;
}
