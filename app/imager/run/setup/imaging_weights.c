/* Writes imaging weights into the MeasurementSets. Densities that imaging has used
 * belong to teams, or are gone: they are made anew, as many at a time as fit. */
#include "imaging_weights.h"

#include <math.h>
#include <string.h>

#include "run_samples.h"
#include "tess_const.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_out_file.h"

static const char column[] = "IMAGING_WEIGHT_SPECTRUM"; /* WSClean's name */

/* Share of a rank's memory for densities that are held at a time. */
static const double DENSITY_SHARE = 0.25;

/* Densities [first, end) of all `num` are at hand. */
typedef struct stored_weights {
    image_run *run;
    int num_weight, threads;
    bool has_density; /* without one all factors are 1 */
    int64_t outputs;  /* that share a density */
    int64_t first, end, num;
    tess_density **density; /* [num] */
    tess_samples good, chosen;
    double *row_time; /* of `good` */
    int64_t capacity_times;
} stored_weights;

tess_status imaging_weights_check(const image_run *run)
{
    tess_status status = TESS_OK;
    if (!run->opts->beside.weights) return TESS_OK;
    for (int k = 0; k < tess_source_num_readers(run->source); ++k) {
        const tess_vis_reader *reader = tess_source_reader(run->source, k);
        if (!tess_vis_has_columns(reader))
            TESS_FAIL(TESS_ERR_USAGE,
                      "%s: --store-imaging-weights writes a column of MeasurementSets",
                      tess_vis_reader_meta(reader)->path);
        if (tess_comm_rank(run->comm) == 0) /* which writes it */
            TESS_TRY(tess_vis_check_column(reader, column, true));
    }
cleanup:
    return status;
}

/* ---- where samples lie ---- */

/* Which density the samples of a time and channel have, −1: none that is at hand. */
static int64_t density_of(const stored_weights *w, double time, int64_t chan)
{
    const int64_t output = output_table_of(&w->run->outputs, time, chan);
    const int64_t number = output < 0 ? -1 : output / w->outputs;
    return number >= w->first && number < w->end ? number : -1;
}

/* Whether a row has samples that images may take; and where it lies. */
static bool row_counts(const tess_recipe *recipe, const tess_vis_block *block,
                       int64_t row, double uvw_m[3])
{
    tess_recipe_uvw(recipe, block->uvw_m + 3 * row, uvw_m);
    return TESS_IS_BASELINE(uvw_m) && block->antenna1[row] != block->antenna2[row];
}

/* ---- densities ---- */

/* Have the cells of all samples of a row, good or not. Local. */
static tess_status reach_row(const stored_weights *w, const tess_recipe *recipe,
                             const tess_vis_block *block, int64_t row)
{
    tess_status status = TESS_OK;
    double uvw_m[3];
    if (!row_counts(recipe, block, row, uvw_m)) return TESS_OK;
    for (int64_t c = 0; c < block->num_chan; ++c) {
        const int64_t number =
            density_of(w, block->time_mjd_s[row], recipe->chan_base + c);
        const double inv_lambda = recipe->inv_lambda[c];
        if (number >= 0)
            TESS_TRY(tess_density_reach(w->density[number], uvw_m[0] * inv_lambda,
                                        uvw_m[1] * inv_lambda));
    }
cleanup:
    return status;
}

/* Add the good samples of all densities at hand. Local. */
static tess_status add_good(stored_weights *w)
{
    tess_status status = TESS_OK;
    for (int64_t k = w->first * w->outputs; k < w->end * w->outputs; ++k) {
        w->chosen.num_rows = w->chosen.num_vis = 0;
        TESS_TRY(output_table_choose_rows(&w->run->outputs, k, &w->good, w->row_time,
                                          &w->chosen));
        TESS_TRY(tess_density_add(w->density[k / w->outputs], &w->chosen, 0,
                                  w->chosen.num_rows, w->threads));
    }
cleanup:
    return status;
}

/* Local. */
static tess_status add_block(stored_weights *w)
{
    tess_status status = TESS_OK;
    tess_vis_block *block;
    const tess_recipe *recipe;
    TESS_TRY(tess_source_next_block(w->run->source, &block, &recipe));
    if (!block) return TESS_OK;
    if (tess_grow((void **)&w->row_time, &w->capacity_times, block->num_rows,
                  sizeof *w->row_time))
        TESS_FAIL(TESS_ERR_ALLOC, "times of rows");
    w->good.num_rows = w->good.num_vis = 0;
    TESS_TRY(
        tess_prepare_block(recipe, block, w->threads, &w->good, w->row_time, NULL));
    TESS_TRY(add_good(w));
    for (int64_t row = 0; row < block->num_rows; ++row)
        TESS_TRY(reach_row(w, recipe, block, row));
cleanup:
    return status;
}

/* Empty densities from `first` on, as many as fit. Collective. */
static tess_status create_densities(stored_weights *w)
{
    tess_status status = TESS_OK;
    const image_run *run = w->run;
    int64_t room = 1;
    for (w->end = w->first; w->end < w->num && w->end < w->first + room; ++w->end) {
        tess_density **density = &w->density[w->end];
        status = image_create_density(run, w->num_weight, 1, density);
        TESS_TRY(tess_comm_agree(run->teams.all, status));
        if (w->end > w->first) continue;
        room = (int64_t)(DENSITY_SHARE * (double)run->job.memory.rank_bytes /
                         (double)tess_density_most_bytes(*density));
        TESS_TRY(tess_comm_allreduce_i64(run->teams.all, &room, 1, TESS_MIN));
        if (room < 1) room = 1;
    }
cleanup:
    return status;
}

/* Make the densities from `first` on. Collective. */
static tess_status make_densities(stored_weights *w)
{
    tess_status status = TESS_OK;
    tess_source *source = w->run->source;
    tess_comm *all = w->run->teams.all;
    int64_t num_blocks;
    TESS_TRY(create_densities(w));
    tess_source_choose_reader(source, -1);
    TESS_TRY(tess_source_num_blocks(source, &num_blocks));
    tess_source_rewind(source);
    for (int64_t k = 0; k < num_blocks && status == TESS_OK; ++k)
        status = add_block(w);
    TESS_TRY(tess_comm_agree(all, status));
    for (int64_t k = w->first; k < w->end; ++k)
        TESS_TRY(tess_density_finish(w->density[k], all, w->run->opts->layout.threads));
cleanup:
    return status;
}

static void free_densities(stored_weights *w)
{
    for (int64_t k = 0; w->density && k < w->num; ++k) {
        tess_density_destroy(w->density[k]);
        w->density[k] = NULL;
    }
}

/* ---- writing ---- */

/* The weight that each correlation has, the first image's that is made of it; −1: no
 * image is. */
static void weights_of(const tess_recipe *recipe, int num_corr, int which[])
{
    for (int corr = 0; corr < num_corr; ++corr)
        which[corr] = -1;
    for (int p = recipe->num_pol - 1; p >= 0; --p)
        for (int k = 0; k < recipe->mix[p].num; ++k)
            which[recipe->mix[p].index[k]] = p;
}

/* Factors take the place of a row's weights. */
static void weigh_row(const stored_weights *w, const tess_recipe *recipe,
                      const int which[], int64_t row, tess_vis_block *block)
{
    double uvw_m[3];
    const double time = block->time_mjd_s[row];
    const bool counts = row_counts(recipe, block, row, uvw_m);
    float *weight = block->weight + row * block->num_chan * block->num_corr;
    for (int64_t c = 0; c < block->num_chan; ++c) {
        const int64_t number = density_of(w, time, recipe->chan_base + c);
        const double inv_lambda = recipe->inv_lambda[c];
        const bool is_kept = number < 0 || !tess_recipe_wants(recipe, time);
        const bool is_taken =
            counts && uv_range_ignores(&recipe->range, uvw_m, inv_lambda) < 0;
        for (int corr = 0; corr < block->num_corr; ++corr, ++weight) {
            *weight = is_taken ? 1 : 0;
            if (is_kept || which[corr] < 0)
                *weight = NAN;
            else if (is_taken && w->has_density)
                *weight = (float)tess_density_factor(w->density[number], which[corr],
                                                     uvw_m[0] * inv_lambda,
                                                     uvw_m[1] * inv_lambda);
        }
    }
}

/* The next block of this rank's, or none; a rank without one takes part. Collective. */
static tess_status write_block(const stored_weights *w, tess_vis_writer *writer)
{
    tess_status status = TESS_OK;
    tess_vis_block *block = NULL, none = {.num_chan = 1, .num_corr = 1};
    const tess_recipe *recipe = NULL;
    int which[TESS_MAX_CORR];
    status = tess_source_next_block(w->run->source, &block, &recipe);
    TESS_TRY(tess_comm_agree(w->run->teams.all, status));
    if (!block) return tess_vis_write(writer, &none);
    weights_of(recipe, block->num_corr, which);
#pragma omp parallel for num_threads(w->threads) schedule(static)
    for (int64_t row = 0; row < block->num_rows; ++row)
        weigh_row(w, recipe, which, row, block);
    TESS_TRY(tess_vis_write(writer, block));
cleanup:
    return status;
}

/* What the densities at hand give to the set, or field, of a reader. Collective. */
static tess_status write_reader(const stored_weights *w, int k)
{
    tess_status status = TESS_OK;
    image_run *run = w->run;
    const tess_vis_origin origin = {run->opts->beside.command_line,
                                    "imaging weights of IMAGING_WEIGHT_SPECTRUM"};
    tess_vis_reader *reader = tess_source_reader(run->source, k);
    tess_vis_writer *writer = NULL;
    int64_t num_blocks;
    TESS_TRY(tess_vis_create_weights(run->teams.all, reader, column, &origin, &writer));
    tess_source_choose_reader(run->source, k);
    TESS_TRY(tess_source_num_blocks(run->source, &num_blocks));
    tess_source_rewind(run->source);
    for (int64_t j = 0; j < num_blocks; ++j)
        TESS_TRY(write_block(w, writer));
    TESS_TRY(tess_vis_finish(writer));
    if (w->end == w->num)
        tess_log_info("wrote %s of %s", column, tess_vis_reader_meta(reader)->path);
cleanup:
    tess_vis_writer_destroy(writer);
    return status;
}

/* ---- all ---- */

static tess_status set_up(image_run *run, stored_weights *w)
{
    tess_status status = TESS_OK;
    const tess_image_weights *weights = &run->opts->weights;
    const bool shared = weights->shared_density && weights->weighting != TESS_NATURAL;
    const tess_samples like = tess_source_samples(run->source);
    *w = (stored_weights){.run = run,
                          .num_weight = like.num_weight,
                          .threads = run->opts->layout.threads,
                          .has_density = image_has_density(weights),
                          .outputs = shared ? run->outputs.num_channels : 1,
                          .good = like,
                          .chosen = like};
    w->num = run->outputs.num / w->outputs;
    w->density = tess_alloc_zero(w->num, sizeof(tess_density *));
    status = w->density ? TESS_OK : TESS_ERR_ALLOC;
    /* where teams have read their outputs' samples, rows are theirs */
    if (status == TESS_OK) status = tess_source_deal(run->source, run->teams.all);
    TESS_TRY(tess_comm_agree(run->teams.all, status));
    image_want_all(run);
cleanup:
    return status;
}

tess_status imaging_weights_store(image_run *run)
{
    tess_status status = TESS_OK;
    stored_weights w;
    const int num = tess_source_num_readers(run->source);
    double mark = tess_time_now();
    TESS_TRY(set_up(run, &w));
    for (; w.first < w.num; w.first = w.end) {
        w.end = w.num;
        if (w.has_density) TESS_TRY(make_densities(&w));
        for (int k = 0; k < num; ++k) {
            TESS_TRY(write_reader(&w, k));
            if (k + 1 < num || w.end < w.num) tess_out_release_signals();
        }
        free_densities(&w);
    }
    tess_profile_lap(run->profile, TESS_STAGE_WRITE, &mark);
cleanup:
    free_densities(&w);
    tess_free(w.density);
    tess_samples_free(&w.good);
    tess_samples_free(&w.chosen);
    tess_free(w.row_time);
    return status;
}
