/* W-steps from samples and a model to images of the samples less the model.
 *
 * Prediction and imaging walk through the steps together: once the planes of a model
 * that a block needs have been transformed back, the block's bricks are predicted,
 * subtracted from and gridded, some at a time. Residuals of all samples never exist,
 * and those of a batch are gridded while they are in cache. */
#include "steps_residual.h"
#include "steps_private.h"

#include <string.h>

#include "tess_degrid.h"
#include "tess_log.h"
#include "tess_mem.h"

typedef struct residual_walk {
    tess_steps *steps; /* steps of the samples */
    const tess_steps_model *model;
    const tess_samples *samples;
    const tess_brick_list *bricks;
    bool psf;
    tess_steps_batch *batch;
} residual_walk;

/* The runs [run, run_end) of bricks [brick, brick_end). All bricks but the first one
 * are taken from their beginning. */
typedef struct batch_span {
    int64_t brick, brick_end, run, run_end, num_vis;
} batch_span;

void tess_steps_batch_free(tess_steps_batch **batch_inout)
{
    tess_steps_batch *batch = *batch_inout;
    if (!batch) return;
    tess_free(batch->samples.vis);
    tess_free(batch->samples.weight);
    tess_free(batch->predicted.vis);
    tess_free(batch->slice_first);
    tess_brick_list_free(&batch->bricks);
    tess_free(batch);
    *batch_inout = NULL;
}

/* ---- batches ---- */

/* Takes as many bricks of [brick, end) as fit into a batch. Of a brick that is larger
 * than a batch, takes as many of its runs from `run` on as fit. */
static batch_span next_span(const residual_walk *walk, int64_t brick, int64_t run,
                            int64_t end)
{
    const tess_brick_list *bricks = walk->bricks;
    const int64_t most = walk->model->batch_vis;
    batch_span span = {brick, brick, run, run, 0};
    const bool is_cut = run > bricks->first_run[brick] ||
                        (bricks->num_vis[brick] > most && !walk->model->keep_whole);
    if (is_cut) {
        span.brick_end = brick + 1;
        do
            span.num_vis += bricks->run[span.run_end++].count;
        while (span.run_end < bricks->first_run[brick + 1] &&
               span.num_vis + bricks->run[span.run_end].count <= most);
        return span;
    }
    do
        span.num_vis += bricks->num_vis[span.brick_end++];
    while (span.brick_end < end &&
           span.num_vis + bricks->num_vis[span.brick_end] <= most);
    span.run_end = bricks->first_run[span.brick_end];
    return span;
}

/* Runs that one thread copies at a time. */
enum { SLICE_RUNS = 512 };

static int64_t num_slices(const batch_span *span)
{
    return (span->run_end - span->run + SLICE_RUNS - 1) / SLICE_RUNS;
}

static int64_t weight_bytes(const tess_samples *samples)
{
    return samples->num_weight * (samples->is_double ? 8 : 4);
}

static int64_t vis_bytes(const tess_samples *samples, int num_pol)
{
    return num_pol * (samples->is_double ? 16 : 8);
}

/* Makes room for `num_vis` samples. Local. */
static tess_status reserve_samples(const residual_walk *walk, int64_t num_vis)
{
    tess_status status = TESS_OK;
    tess_steps_batch *batch = walk->batch;
    const tess_samples *from = walk->samples;
    if (tess_grow(&batch->samples.vis, &batch->vis_capacity,
                  num_vis * vis_bytes(from, from->num_pol), 1) ||
        tess_grow(&batch->samples.weight, &batch->weight_capacity,
                  num_vis * weight_bytes(from), 1) ||
        tess_grow(&batch->predicted.vis, &batch->predicted_capacity,
                  num_vis * vis_bytes(from, walk->model->num_images), 1))
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for a batch of %lld visibilities",
                  (long long)num_vis);
cleanup:
    return status;
}

static tess_status reserve_span(const residual_walk *walk, const batch_span *span)
{
    tess_status status = TESS_OK;
    tess_steps_batch *batch = walk->batch;
    tess_brick_list *bricks = &batch->bricks;
    const int64_t num = span->brick_end - span->brick;
    TESS_TRY(reserve_samples(walk, span->num_vis));
    if (tess_grow((void **)&bricks->run, &batch->run_capacity,
                  span->run_end - span->run, sizeof *bricks->run) ||
        tess_grow((void **)&batch->slice_first, &batch->slice_capacity,
                  num_slices(span), sizeof *batch->slice_first) ||
        tess_grow((void **)&bricks->key, &batch->key_capacity, num,
                  sizeof *bricks->key) ||
        tess_grow((void **)&bricks->first_run, &batch->first_capacity, num + 1,
                  sizeof *bricks->first_run) ||
        tess_grow((void **)&bricks->num_vis, &batch->count_capacity, num,
                  sizeof *bricks->num_vis) ||
        tess_grow((void **)&bricks->planes, &batch->planes_capacity, num,
                  sizeof *bricks->planes))
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for runs of a batch");
cleanup:
    return status;
}

/* ---- copies ---- */

/* Finds the first sample in the batch of each slice of its runs. */
static void place_slices(const residual_walk *walk, const batch_span *span)
{
    const int64_t slices = num_slices(span);
    int64_t *first = walk->batch->slice_first, next = 0;
#pragma omp parallel for num_threads(walk->steps->plan->opts.threads) schedule(static)
    for (int64_t k = 0; k < slices; ++k) {
        const int64_t begin = span->run + k * SLICE_RUNS;
        const int64_t end =
            begin + SLICE_RUNS < span->run_end ? begin + SLICE_RUNS : span->run_end;
        first[k] = 0;
        for (int64_t r = begin; r < end; ++r)
            first[k] += walk->bricks->run[r].count;
    }
    for (int64_t k = 0; k < slices; ++k) {
        const int64_t count = first[k];
        first[k] = next;
        next += count;
    }
}

/* The run after the next one is fetched into cache: its samples may be anywhere. */
enum { RUNS_AHEAD = 8 };

static void copy_slice(const residual_walk *walk, const batch_span *span, int64_t slice)
{
    const tess_samples *from = walk->samples;
    tess_steps_batch *batch = walk->batch;
    const int64_t vis = vis_bytes(from, from->num_pol), weight = weight_bytes(from);
    const int64_t begin = span->run + slice * SLICE_RUNS;
    const int64_t end =
        begin + SLICE_RUNS < span->run_end ? begin + SLICE_RUNS : span->run_end;
    int64_t to = batch->slice_first[slice];
    for (int64_t r = begin; r < end; ++r) {
        if (r + RUNS_AHEAD < end) {
            const int64_t ahead = walk->bricks->run[r + RUNS_AHEAD].first;
            __builtin_prefetch((const char *)from->vis + ahead * vis);
            if (weight > 0)
                __builtin_prefetch((const char *)from->weight + ahead * weight);
        }
        tess_run *run = &batch->bricks.run[r - span->run];
        *run = walk->bricks->run[r];
        memcpy((char *)batch->samples.vis + to * vis,
               (const char *)from->vis + run->first * vis, (size_t)(run->count * vis));
        if (weight > 0)
            memcpy((char *)batch->samples.weight + to * weight,
                   (const char *)from->weight + run->first * weight,
                   (size_t)(run->count * weight));
        run->first = to;
        to += run->count;
    }
}

/* Lists the bricks of a batch. A cut brick touches as many planes as the whole one. */
static void list_bricks(const residual_walk *walk, const batch_span *span,
                        const tess_brick_sums *sums)
{
    const tess_brick_list *from = walk->bricks;
    tess_brick_list *to = &walk->batch->bricks;
    to->num_runs = to->capacity_runs = span->run_end - span->run;
    to->num_bricks = span->brick_end - span->brick;
    for (int64_t k = 0; k < to->num_bricks; ++k) {
        const tess_brick_sum *sum = &sums->brick[k];
        to->key[k] = from->key[span->brick + k];
        to->first_run[k] = k == 0 ? 0 : from->first_run[span->brick + k] - span->run;
        to->num_vis[k] = from->num_vis[span->brick + k];
        to->planes[k] = (tess_plane_span){sum->touched_first,
                                          sum->touched_first + sum->touched_planes};
    }
    to->first_run[to->num_bricks] = to->num_runs;
    if (to->num_bricks == 1) to->num_vis[0] = span->num_vis;
}

/* Copies the samples of a batch. `sums` are the sums of the model for its bricks.
 * Local. */
static tess_status fill_batch(const residual_walk *walk, const batch_span *span,
                              const tess_brick_sums *sums)
{
    tess_status status = TESS_OK;
    tess_steps_batch *batch = walk->batch;
    TESS_TRY(reserve_span(walk, span));
    void *vis = batch->samples.vis, *weight = batch->samples.weight;
    void *predicted = batch->predicted.vis;
    batch->samples = *walk->samples;
    batch->samples.vis = vis;
    batch->samples.weight = weight;
    batch->samples.num_vis = span->num_vis;
    batch->predicted = batch->samples;
    batch->predicted.vis = predicted;
    batch->predicted.num_pol = walk->model->num_images;
    list_bricks(walk, span, sums);
    place_slices(walk, span);
#pragma omp parallel for num_threads(walk->steps->plan->opts.threads) schedule(static)
    for (int64_t k = 0; k < num_slices(span); ++k)
        copy_slice(walk, span, k);
cleanup:
    return status;
}

/* ---- steps ---- */

static const steps_live *live_of(const tess_steps *steps, int64_t block)
{
    for (int64_t k = 0; k < steps->num_live; ++k)
        if (steps->live[k].block == block) return &steps->live[k];
    return NULL;
}

/* Predicts, subtracts and grids a batch. Local. */
static tess_status work_on(const residual_walk *walk, const steps_live *live,
                           const batch_span *span)
{
    tess_status status = TESS_OK;
    tess_steps *steps = walk->steps;
    tess_steps_batch *batch = walk->batch;
    const steps_part part = {live->block, 0, span->brick_end - span->brick};
    const double start = tess_time_now();
    tess_grid_report report = {
        .progress = &steps->progress, .busy_share = 1, .trace = steps->profile->trace};
    tess_brick_sums sums = live->sums; /* sums of the batch's bricks; borrowed */
    sums.brick += span->brick - live->first_brick;
    sums.num_bricks = span->brick_end - span->brick;
    TESS_TRY(fill_batch(walk, span, &sums));
    const double own = tess_time_own(), degrid = tess_time_now();
    TESS_TRY(tess_degrid_execute(steps->plan, &batch->predicted, &batch->bricks, 0,
                                 &sums, &report));
    steps_note_gridded(steps, degrid, own, report.busy_share);
    steps->profile->stage_visibilities[TESS_STAGE_GRID] += span->num_vis;
    walk->model->subtract(walk->model->context, &batch->predicted, &batch->samples);
    tess_profile_since(steps->profile, TESS_STAGE_GRID, start);
    TESS_TRY(steps_add_sums(steps, &part, (tess_plane_window){0}, &batch->samples,
                            &batch->bricks, walk->psf));
cleanup:
    return status;
}

/* Grids all batches of a block whose model sums have been laid out. Local. */
static tess_status work_on_block(const residual_walk *walk, int64_t block)
{
    tess_status status = TESS_OK;
    const steps_part all = steps_whole_block(walk->steps, walk->bricks, block);
    const steps_live *live = live_of(walk->model->steps, block);
    int64_t brick = all.first;
    if (all.first == all.end) return TESS_OK;
    int64_t run = walk->bricks->first_run[brick];
    tess_progress_start(&walk->steps->progress, "degridding and gridding", "vis",
                        2 * steps_num_vis(&all, walk->bricks));
    while (brick < all.end && status == TESS_OK) {
        const batch_span span = next_span(walk, brick, run, all.end);
        status = work_on(walk, live, &span);
        run = span.run_end;
        brick = span.brick_end;
        if (run < walk->bricks->first_run[brick]) --brick; /* the brick has more runs */
    }
    tess_progress_finish(&walk->steps->progress);
    return status;
}

/* Works on the blocks of one step. Collective. */
static tess_status take_step(const residual_walk *walk, int step, int64_t *planes)
{
    tess_status status = TESS_OK;
    tess_steps *steps = walk->steps, *model = walk->model->steps;
    const int num_pol =
        walk->samples->num_pol + (walk->psf ? walk->samples->num_weight : 0);
    tess_samples like = *walk->samples; /* rows, and as many images as the model has */
    int64_t count;
    like.num_pol = walk->model->num_images;
    status = steps_lay_out_step(model, step, &like, walk->bricks, planes, &count);
    TESS_TRY(steps_transform_planes(model, status, planes, count, like.num_pol, false));
    for (int g = 0; g < steps->num_groups && status == TESS_OK; ++g) {
        const int64_t b = steps_block_of(steps, step, g);
        if (b >= 0 && !tess_steps_block_done(steps, b)) status = work_on_block(walk, b);
    }
    steps_free_step(model, step);
    tess_profile_sent(steps->profile, TESS_STAGE_GRID);
    count = steps_planes_complete(steps, step, planes);
    TESS_TRY(steps_transform_planes(steps, status, planes, count, num_pol, true));
    steps_free_finished(steps);
cleanup:
    return status;
}

tess_status tess_steps_residual(tess_steps *steps, const tess_steps_model *model,
                                const tess_samples *samples,
                                const tess_brick_list *bricks, bool psf)
{
    tess_status status = TESS_OK;
    if (!*model->batch) *model->batch = tess_alloc_zero(1, sizeof **model->batch);
    const residual_walk walk = {steps, model, samples, bricks, psf, *model->batch};
    const int64_t most = model->batch_vis;
    int64_t num_vis = 0;
    int64_t *planes = tess_alloc(steps->plan->num_planes, sizeof *planes);
    for (int64_t b = 0; b < bricks->num_bricks && num_vis < most; ++b)
        num_vis += bricks->num_vis[b];
    status = planes && walk.batch
                 ? reserve_samples(&walk, num_vis < most ? num_vis : most)
                 : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(steps->comm, status));
    tess_steps_restart(model->steps);
    for (int step = 0; step < steps->num_steps; ++step) {
        TESS_TRY(tess_steps_look(steps));
        TESS_TRY(take_step(&walk, step, planes));
    }
cleanup:
    tess_planes_rest(model->steps->planes, false);
    tess_planes_rest(steps->planes, false);
    tess_free(planes);
    return status;
}
