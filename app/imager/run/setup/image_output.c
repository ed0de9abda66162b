/* Makes the samples of one output and their weights, measures its dirty images, and
 * makes images without data. */
#include "image_output.h"

#include "image_beam.h"
#include "image_primary_beam.h"
#include "image_run.h"
#include "imager_product.h"
#include "imager_window.h"
#include "run_samples.h"
#include "sample_sets.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_scale.h"

/* Number of blocks in a set. It is as large as memory allows if a model is subtracted
 * as blocks are read, because every set costs the transforms of all planes of the
 * model. */
static int64_t blocks_of_set(const image_run *run)
{
    double bytes = (double)run->block_bytes;
    if (image_subtracts_early(run))
        bytes =
            fmax(bytes, 0.25 * IMAGE_CACHE_SHARE * (double)run->job.memory.rank_bytes);
    return 1 + (int64_t)(bytes / (double)(tess_source_block_bytes(run->source) + 1));
}

/* Chooses the scales of samples. Uniform weights are relative: a small weight counts as
 * much as a large one that is alone in its cell, and all results are at most 1. Briggs
 * weights are proportional to natural ones, because a common factor leaves f² W_c as it
 * is. */
static void choose_scales(const image_run *run, const imager_extent *extent,
                          sample_sets *data)
{
    /* weights that share a density have one scale */
    const double largest_weight = run->opts->weights.shared_density
                                      ? run->job.extent.largest_weight
                                      : extent->largest_weight;
    const bool is_double = image_is_double(run);
    data->vis_scale = tess_scale_for(extent->largest_vis_jy, is_double);
    data->weight_scale = run->opts->weights.weighting == TESS_UNIFORM
                             ? 1
                             : tess_scale_for(largest_weight, is_double);
}

tess_status image_copy_output(const image_run *run, int64_t output, tess_samples *out)
{
    tess_status status = TESS_OK;
    *out = tess_samples_like(&run->all);
    TESS_TRY(tess_samples_reserve(out, 0, run->outputs.num_held[output]));
    TESS_TRY(sample_parts_take(&run->parts, &run->outputs, output, &run->all, out));
cleanup:
    return status;
}

/* Takes samples that are in memory; a team of ranks has been sent its own, `dealt`.
 * Local. */
static tess_status take_cached(image_run *run, int64_t output,
                               const tess_samples *dealt, sample_sets *data)
{
    if (run->outputs.num > 1)
        data->kept_bytes =
            imager_samples_bytes(&run->all) + sample_parts_bytes(&run->parts);
    if (run->comm != run->teams.all) {
        data->cached = *dealt;
        return TESS_OK;
    }
    if (run->outputs.num > 1) return image_copy_output(run, output, &data->cached);
    data->cached = run->all; /* moved: weights may be changed in place */
    run->all = (tess_samples){0};
    return TESS_OK;
}

/* Takes samples of those that are held, and reads them before if they are not.
 * Collective. */
static tess_status take_held(image_run *run, int64_t output, sample_sets *data)
{
    tess_status status = TESS_OK;
    double mark;
    TESS_TRY(image_hold_outputs(run, output, output + 1));
    mark = tess_time_now();
    if (run->parts.end_output - run->parts.first_output == 1 &&
        !run->parts.batch_block && !run->teams.of_threads.is_one) {
        data->cached = run->all; /* moved: no other output is held */
        run->all = (tess_samples){0};
        sample_parts_free(&run->parts);
        return TESS_OK;
    }
    data->kept_bytes =
        imager_samples_bytes(&run->all) + sample_parts_bytes(&run->parts);
    TESS_TRY(tess_comm_agree(run->comm, image_copy_output(run, output, &data->cached)));
    tess_profile_lap(run->profile, TESS_STAGE_SORT, &mark);
cleanup:
    return status;
}

/* Prepares the sets of samples that are parted by output on scratch. A rank that has
 * fewer sets than others gets empty ones in the end. Collective. */
static tess_status begin_parted(const image_run *run, int64_t output, sample_sets *data)
{
    const parted_spool *parted = run->holds.parted;
    const int64_t batches = parted_spool_batches(parted);
    data->block = tess_source_samples(run->source);
    data->scratch = run->opts->scratch;
    data->parted = parted;
    data->output = output;
    const double batch_bytes = (double)run->outputs.num_held[output] *
                               (double)tess_samples_vis_bytes(&data->block) /
                               fmax(1, (double)batches);
    data->set_batches = 1 + (int64_t)((double)run->block_bytes / fmax(1, batch_bytes));
    data->num_sets = (batches + data->set_batches - 1) / data->set_batches;
    return tess_comm_allreduce_i64(run->comm, &data->num_sets, 1, TESS_MAX);
}

/* Prepares samples that are read set by set, again in each pass. Collective. */
static tess_status begin_sets(image_run *run, int64_t output, sample_sets *data)
{
    tess_status status = TESS_OK;
    int64_t num_blocks;
    if (run->holds.parted) return begin_parted(run, output, data);
    image_want_outputs(run, output, output + 1);
    data->block = tess_source_samples(run->source);
    data->subtract = image_subtracts_early(run) ? &run->less.predictor : NULL;
    data->set_blocks = blocks_of_set(run);
    data->force_scratch = run->job.layout->forced.scratch;
    data->scratch = run->opts->scratch;
    if (run->opts->scratch)
        status = tess_spool_create(run->opts->scratch, &data->spool);
    TESS_TRY(tess_comm_agree(run->comm, status));
    TESS_TRY(tess_source_num_blocks(run->source, &num_blocks));
    data->num_sets = (num_blocks + data->set_blocks - 1) / data->set_blocks;
cleanup:
    return status;
}

tess_status image_data_for(image_run *run, int64_t output, sample_sets *data)
{
    tess_status status = TESS_OK;
    const tess_samples dealt = data->cached;
    double mark = tess_time_now();
    *data = (sample_sets){.source = run->source,
                          .in_memory = run->mode != DATA_STREAMED,
                          .num_sets = 1,
                          .set_blocks = 1,
                          .num_vis = run->outputs.extent[output].num_vis,
                          .threads = run->opts->layout.threads,
                          .profile = run->profile};
    choose_scales(run, &run->outputs.extent[output], data);
    if (run->mode == DATA_CACHED || image_deals_samples(run)) {
        status = tess_comm_agree(run->comm, take_cached(run, output, &dealt, data));
        tess_profile_lap(run->profile, TESS_STAGE_SORT, &mark);
        return status;
    }
    return run->mode == DATA_PER_OUTPUT ? take_held(run, output, data)
                                        : begin_sets(run, output, data);
}

void image_data_free(sample_sets *data)
{
    tess_samples_free(&data->cached);
    tess_samples_free(&data->block);
    tess_spool_destroy(data->spool);
    *data = (sample_sets){0};
}

/* Samples in memory are one set, which takes as long as it takes. */
static void start_weighting(const sample_sets *data, tess_progress *progress)
{
    if (data->in_memory)
        tess_progress_start(progress, "weighting", NULL, 0);
    else
        tess_progress_start(progress, "weighting", " blocks", (double)data->num_sets);
}

/* Makes the density of an output's samples, unless the survey has made it; NULL with
 * natural weights. `data` refers to the density, and applies it to samples that it
 * reads. Collective. */
static tess_status weigh(image_run *run, sample_sets *data, tess_density **density)
{
    tess_status status = TESS_OK;
    double mark = tess_time_now();
    const tess_samples *like = data->in_memory ? &data->cached : &data->block;
    image_bookmark *bookmark = &run->checkpoint.bookmark;
    const imager_check check = {{data->num_sets, data->set_blocks}};
    int64_t first = 0;
    tess_progress progress;
    if (run->densities.single) {
        data->density = *density = run->densities.single;
        run->densities.single = NULL;
        return TESS_OK;
    }
    if (run->densities.shared) {
        data->density = run->densities.shared;
        *density = NULL;
        return TESS_OK;
    }
    TESS_TRY(image_create_density(run, like->num_weight, data->weight_scale, density));
    if (!*density) return TESS_OK;
    if (!data->in_memory)
        TESS_TRY(image_bookmark_density(bookmark, &check, *density, &first));
    start_weighting(data, &progress);
    for (int64_t k = first; k < data->num_sets && status == TESS_OK; ++k) {
        tess_samples *samples;
        status = sample_sets_get(data, k, &samples);
        if (status == TESS_OK)
            status = tess_density_add(*density, samples, 0, samples->num_rows,
                                      data->threads);
        image_bookmark_at(bookmark, BOOKMARK_DENSITY, k + 1);
        status = visset_keeper_look(&run->job, status);
        tess_progress_add(&progress, 1);
    }
    tess_progress_finish(&progress);
    TESS_TRY(tess_comm_agree(run->comm, status));
    if (!tess_density_is_finished(*density))
        TESS_TRY(tess_density_finish(*density, run->comm, data->threads));
    data->density = *density;
cleanup:
    tess_profile_lap(run->profile, TESS_STAGE_WEIGHT, &mark);
    return status;
}

/* The weights of samples in memory are changed there, once, so that the density's
 * memory is free for gridding. Collective. */
static tess_status apply_density(image_run *run, sample_sets *data,
                                 tess_density **density)
{
    tess_status status = TESS_OK;
    tess_samples *samples;
    double mark = tess_time_now();
    if (!data->in_memory) return TESS_OK;
    status = sample_sets_get(data, 0, &samples);
    TESS_TRY(tess_comm_agree(run->comm, status));
    tess_density_destroy(*density);
    *density = NULL;
cleanup:
    tess_profile_lap(run->profile, TESS_STAGE_WEIGHT, &mark);
    return status;
}

tess_status image_empty_products(const image_run *run, imager_product *product)
{
    tess_status status = TESS_OK;
    const image_kinds *kinds = &run->output.kinds;
    const int num_images = image_kinds_all(kinds);
    const int64_t rank = tess_comm_rank(run->comm), size = tess_comm_size(run->comm);
    const int64_t first = run->opts->ny * rank / size;
    const int64_t end = run->opts->ny * (rank + 1) / size;
    for (int k = 0; k < num_images && status == TESS_OK; ++k) {
        product[k].sum_weights = product[k].variance = product[k].effective_vis = 0;
        product[k].rows = tess_rows_of(run->opts->nx, run->opts->ny, first, end - first,
                                       TESS_PIXEL_DOUBLE);
        status = tess_rows_alloc_zero(&product[k].rows);
        if (status == TESS_OK && !image_kinds_is_model(kinds, k))
            status = tess_rows_blank(&product[k].rows);
    }
    return tess_comm_agree(run->comm, status);
}

/* Finds Σ W²/w of each image [num_pol]: NAN if a density of several outputs does not
 * tell, and 0 without a density, where W = w. `density_scale`: factor by which weights
 * had been multiplied in the density. */
static void find_variances(const image_run *run, const tess_density *density,
                           int num_weight, double density_scale, double *variance)
{
    for (int k = 0; k < run->num_pol; ++k)
        variance[k] = run->densities.shared ? (double)NAN
                      : density
                          ? tess_density_variance(density, num_weight == 1 ? 0 : k) /
                                density_scale
                          : 0;
}

tess_status image_weighted_data(image_run *run, int64_t output, sample_sets *data,
                                double *variance, tess_density **density_out)
{
    tess_status status = TESS_OK;
    tess_density *density = NULL;
    TESS_TRY(image_data_for(run, output, data));
    const int num_weight =
        data->in_memory ? data->cached.num_weight : data->block.num_weight;
    /* the survey adds weights without a factor */
    const double density_scale = run->densities.single ? 1 : data->weight_scale;
    TESS_TRY(weigh(run, data, &density));
    find_variances(run, density, num_weight, density_scale, variance);
    TESS_TRY(apply_density(run, data, &density));
    TESS_TRY(image_primary_beam_weigh(run, output, data));
    *density_out = density;
    density = NULL;
cleanup:
    tess_density_destroy(density);
    return status;
}

tess_status image_measure_made(const image_run *run, int64_t output,
                               const double *variance, imager_product *made,
                               struct image_found *found)
{
    tess_status status = TESS_OK;
    const bool natural = !image_has_density(&run->opts->weights);
    for (int k = 0; k < run->num_pol; ++k)
        made[k].variance = natural ? made[k].sum_weights : variance[k];
    TESS_TRY(image_beam_find(&run->output, made + run->num_pol, image_num_psf(run),
                             &run->outputs.extent[output], found));
    found[0].common = run->summary.common[output / run->outputs.num_channels];
    for (int k = 1; k < run->num_pol; ++k)
        found[k] = found[0];
cleanup:
    return status;
}

/* ---- the density of all channels of an interval together ---- */

/* Add the samples of an output. Collective. */
static tess_status add_output(image_run *run, int64_t output, tess_density **density)
{
    tess_status status = TESS_OK;
    sample_sets data = {0};
    tess_progress progress;
    TESS_TRY(image_data_for(run, output, &data));
    const tess_samples *like = data.in_memory ? &data.cached : &data.block;
    if (!*density)
        TESS_TRY(
            image_create_density(run, like->num_weight, data.weight_scale, density));
    run->densities.scale = data.weight_scale;
    start_weighting(&data, &progress);
    for (int64_t k = 0; k < data.num_sets && status == TESS_OK; ++k) {
        tess_samples *samples;
        status = sample_sets_get(&data, k, &samples);
        if (status == TESS_OK)
            status =
                tess_density_add(*density, samples, 0, samples->num_rows, data.threads);
        tess_progress_add(&progress, 1);
    }
    tess_progress_finish(&progress);
    TESS_TRY(tess_comm_agree(run->comm, status));
cleanup:
    image_data_free(&data);
    return status;
}

tess_status image_share_density(image_run *run, int64_t interval)
{
    tess_status status = TESS_OK;
    image_densities *densities = &run->densities;
    const int64_t channels = run->outputs.num_channels;
    tess_density *density = NULL;
    double mark = tess_time_now();
    if (!run->opts->weights.shared_density || channels == 1 ||
        run->opts->weights.weighting == TESS_NATURAL)
        return TESS_OK;
    if (densities->shared && densities->interval == interval) return TESS_OK;
    tess_density_destroy(densities->shared);
    densities->shared = NULL;
    for (int64_t k = interval * channels; k < (interval + 1) * channels; ++k)
        if (run->outputs.extent[k].num_vis > 0) TESS_TRY(add_output(run, k, &density));
    if (density)
        TESS_TRY(tess_density_finish(density, run->comm, run->opts->layout.threads));
    densities->shared = density;
    densities->interval = interval;
    density = NULL;
    tess_profile_lap(run->profile, TESS_STAGE_WEIGHT, &mark);
cleanup:
    tess_density_destroy(density);
    return status;
}
