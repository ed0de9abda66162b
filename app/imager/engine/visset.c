/* The visibility set: bricks are counted and dealt to the ranks, samples sent and
 * sorted, weights summed, images made. */
#include "visset.h"

#include <math.h>
#include <string.h>

#include "imager_window.h"
#include "pass_spool.h"
#include "residual.h"
#include "tess_const.h"
#include "tess_exact.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "visset_private.h"

/* ---- histogram of bricks ---- */

/* What a brick of the list has is added; returns what comes after it, as brick. */
static int64_t take_brick(const tess_brick_list *from, int64_t brick, int64_t key,
                          int64_t *num_runs, tess_brick_list *to)
{
    const int64_t out = to->num_bricks;
    if (brick >= from->num_bricks || from->key[brick] != key) return brick;
    to->num_vis[out] += from->num_vis[brick];
    *num_runs += from->first_run[brick + 1] - from->first_run[brick];
    if (to->planes) imager_join_planes(&to->planes[out], from->planes[brick]);
    return brick + 1;
}

static int64_t key_at(const tess_brick_list *list, int64_t brick)
{
    return brick < list->num_bricks ? list->key[brick] : INT64_MAX;
}

/* Add the counts of a list to those of another. */
static tess_status merge_counts(tess_brick_list *total, const tess_brick_list *add)
{
    tess_status status = TESS_OK;
    const int64_t most = total->num_bricks + add->num_bricks;
    const bool with_planes = add->planes != NULL;
    tess_brick_list sum = {.num_runs = total->num_runs + add->num_runs};
    TESS_TRY(imager_make_counts(most, with_planes, &sum));
    int64_t a = 0, b = 0, runs = 0;
    while (a < total->num_bricks || b < add->num_bricks) {
        const int64_t ka = key_at(total, a), kb = key_at(add, b), out = sum.num_bricks;
        sum.key[out] = ka < kb ? ka : kb;
        sum.num_vis[out] = 0;
        sum.first_run[out] = runs;
        if (with_planes) sum.planes[out] = (tess_plane_span){INT32_MAX, 0};
        a = take_brick(total, a, sum.key[out], &runs, &sum);
        b = take_brick(add, b, sum.key[out], &runs, &sum);
        ++sum.num_bricks;
    }
    sum.first_run[sum.num_bricks] = runs;
    tess_brick_list_free(total);
    *total = sum;
    sum = (tess_brick_list){0};
cleanup:
    tess_brick_list_free(&sum);
    return status;
}

tess_status imager_count_bricks(const imager_job *job, sample_sets *data, bool in_place,
                                tess_brick_list *bricks)
{
    tess_status status = TESS_OK;
    tess_samples *samples;
    const imager_check check = {{data->num_sets, data->set_blocks}};
    visset_keeper *keeper = job->keeper;
    int64_t first = 0;
    if (data->in_memory) {
        TESS_TRY(sample_sets_get(data, 0, &samples));
        return imager_sort(job, samples, true, in_place, bricks);
    }
    if (keeper)
        TESS_TRY(keeper->take_bricks(keeper, &check, job->plan, data, bricks, &first));
    for (int64_t k = first; k < data->num_sets; ++k) {
        tess_brick_list runs = {0};
        status = sample_sets_get(data, k, &samples);
        if (status == TESS_OK)
            status = data->with_planes
                         ? tess_brick_list_count_planes(job->plan, samples, true,
                                                        imager_sort_threads(job), &runs)
                         : imager_sort(job, samples, true, false, &runs);
        if (status == TESS_OK) status = merge_counts(bricks, &runs);
        data->num_runs += runs.num_runs;
        tess_brick_list_free(&runs);
        visset_keeper_counted(job, k + 1);
        TESS_TRY(visset_keeper_look(job, status));
    }
cleanup:
    return status;
}

/* ---- sums over the samples ---- */

static void add_weights_exactly(const tess_samples *samples, int threads,
                                tess_exact *sums)
{
    for (int k = 0; k < samples->num_weight; ++k) {
#pragma omp parallel num_threads(threads)
        {
            tess_exact own = {0};
#pragma omp for schedule(static) nowait
            for (int64_t s = 0; s < samples->num_vis; ++s)
                tess_exact_add(
                    &own, tess_samples_weight(samples, s * samples->num_weight + k));
#pragma omp critical(tess_imager_exact)
            for (int j = 0; j < TESS_EXACT_WORDS; ++j)
                sums[k].word[j] += own.word[j];
        }
    }
}

static void add_weights(const tess_samples *samples, int threads, double *sums)
{
    for (int k = 0; k < samples->num_weight; ++k) {
        double sum = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : sum) schedule(static)
        for (int64_t s = 0; s < samples->num_vis; ++s)
            sum += tess_samples_weight(samples, s * samples->num_weight + k);
        sums[k] += sum;
    }
}

/* Σ W over the weights of a sample. */
static double weight_of(const tess_samples *samples, int64_t sample)
{
    double sum = 0;
    for (int k = 0; k < samples->num_weight; ++k)
        sum += tess_samples_weight(samples, sample * samples->num_weight + k);
    return sum;
}

/* Add Σ W ν/c of a row. */
static void add_row(const tess_samples *samples, int64_t row, double *sum,
                    tess_exact *exact)
{
    const double *inv_lambda = samples->inv_lambda + samples->chan_base[row];
    for (int64_t c = 0; c < samples->num_chan[row]; ++c) {
        const double value =
            weight_of(samples, samples->vis_first[row] + c) * inv_lambda[c];
        if (exact)
            tess_exact_add(exact, value);
        else
            *sum += value;
    }
}

static void add_frequencies(const tess_samples *samples, int threads, imager_sums *sums)
{
#pragma omp parallel num_threads(threads)
    {
        tess_exact own = {0};
        double sum = 0;
#pragma omp for schedule(static) nowait
        for (int64_t row = 0; row < samples->num_rows; ++row)
            add_row(samples, row, &sum, sums->exact ? &own : NULL);
#pragma omp critical(tess_imager_exact)
        {
            sums->inv_lambda += sum;
            for (int j = 0; sums->exact && j < TESS_EXACT_WORDS; ++j)
                sums->exact[sums->num_weight].word[j] += own.word[j];
        }
    }
}

double visset_freq_hz(const visset *set)
{
    double sum = 0;
    for (int k = 0; k < set->sums.num_weight; ++k)
        sum += set->sums.weight[k];
    return sum > 0 ? TESS_SPEED_OF_LIGHT_M_S * set->sums.inv_lambda / sum : 0;
}

void visset_add_sums(visset *set, const tess_samples *samples)
{
    const imager_job *job = set->job;
    imager_sums *sums = &set->sums;
    if (samples->resident) { /* neither maps nor exact sums are wanted then */
        for (int k = 0; k < samples->num_weight; ++k)
            sums->weight[k] += samples->resident->sum_weights[k];
        return;
    }
    if (sums->exact)
        add_weights_exactly(samples, job->layout->threads, sums->exact);
    else
        add_weights(samples, job->layout->threads, sums->weight);
    if (!set->single) add_frequencies(samples, job->layout->threads, sums);
    imager_map_add(&job->geom, samples, sums->map);
}

/* ΣW over ranks. Collective. */
static tess_status sum_weights(const imager_job *job, imager_sums *sums)
{
    tess_status status = TESS_OK;
    const int num_weight = sums->num_weight;
    if (sums->exact) {
        TESS_TRY(tess_comm_allreduce_i64(job->comm, sums->exact->word,
                                         (int64_t)(num_weight + 1) * TESS_EXACT_WORDS,
                                         TESS_SUM));
        for (int k = 0; k < num_weight; ++k)
            sums->weight[k] = tess_exact_value(&sums->exact[k]);
        sums->inv_lambda = tess_exact_value(&sums->exact[num_weight]);
    } else {
        TESS_TRY(
            tess_comm_allreduce_f64(job->comm, sums->weight, num_weight, TESS_SUM));
        TESS_TRY(tess_comm_allreduce_f64(job->comm, &sums->inv_lambda, 1, TESS_SUM));
    }
cleanup:
    return status;
}

/* ---- samples ---- */

/* Ranks do not own equally many samples: at most so many times the mean. */
static const double UNEVEN = 1.3;

int64_t visset_most_vis(const imager_job *job, const sample_sets *data)
{
    const tess_samples *like = data->in_memory ? &data->cached : &data->block;
    if (!job->layout->reproducible || !job->backend->grid->most_vis) return INT64_MAX;
    return job->backend->grid->most_vis(job->plan, like);
}

/* Whether data may have to be gone over more than once. Collective. */
static tess_status goes_over(const imager_job *job, const sample_sets *data, bool *over)
{
    const int ranks = tess_comm_size(job->comm);
    const double share = (double)data->num_vis * (ranks > 1 ? UNEVEN : 1) / ranks;
    int64_t here = !data->in_memory || job->layout->forced.passes > 1 ||
                   share > (double)visset_most_vis(job, data);
    const tess_status status = tess_comm_allreduce_i64(job->comm, &here, 1, TESS_MAX);
    *over = here != 0;
    return status;
}

/* Parts of a brick that several ranks may share have sums of their own, on one rank
 * too: they are then added to the planes one by one, in the same order on any number of
 * ranks. */
tess_status visset_cut_bricks(const imager_job *job, tess_brick_list *bricks)
{
    if (!job->layout->reproducible || job->backend->grid->load) return TESS_OK;
    return tess_brick_list_cut(bricks, imager_part_vis(job));
}

/* ---- images ---- */

double visset_other_bytes(const visset *set, const tess_samples *samples,
                          const tess_brick_list *bricks)
{
    const imager_job *job = set->job;
    const sample_sets *data = set->data;
    const bool sent = samples != &data->cached;
    return imager_base_bytes(job) + imager_planes_bytes(job) + data->kept_bytes +
           imager_samples_bytes(samples) +
           (double)bricks->num_runs * (double)sizeof(tess_run) +
           (sent ? imager_samples_bytes(data->in_memory ? &data->cached : &data->block)
                 : 0);
}

/* Whether the backend has room to load all samples at once. */
static bool can_load(const imager_job *job, const tess_samples *samples)
{
    return job->backend->grid->most_vis(job->plan, samples) >= samples->num_vis;
}

static tess_status on_all_ranks(const imager_job *job, bool here, bool *everywhere)
{
    int64_t all = here;
    const tess_status status =
        tess_comm_allreduce_i64(imager_team(job), &all, 1, TESS_MIN);
    *everywhere = all != 0;
    return status;
}

/* The samples as the backend holds them, all at once and with room for residuals on
 * every rank: `bricks`, or `*loaded`, which is filled then; else NULL. Collective. */
static tess_status hold(const imager_job *job, const tess_samples *samples,
                        const tess_brick_list *bricks, tess_brick_list *loaded,
                        const tess_brick_list **held)
{
    tess_status status = TESS_OK;
    const tess_grid_ops *ops = job->backend->grid;
    const tess_brick_list *list = bricks->own ? bricks : loaded;
    bool fits;
    *held = NULL;
    if (!ops->holds) return TESS_OK;
    TESS_TRY(on_all_ranks(job, bricks->own || can_load(job, samples), &fits));
    if (!fits) return TESS_OK;
    if (!bricks->own) status = ops->load(job->plan, samples, true, loaded);
    TESS_TRY(tess_comm_agree(imager_team(job), status));
    TESS_TRY(on_all_ranks(
        job, ops->holds(list) && residual_has_room(job, samples, list), &fits));
    if (fits)
        *held = list;
    else
        tess_brick_list_free(loaded);
cleanup:
    return status;
}

/* Residuals, made where the samples are if there is room. Collective. */
static tess_status make_residuals(visset *set, const tess_samples *samples,
                                  tess_brick_list *bricks, double other_bytes,
                                  visset_view *view)
{
    tess_status status = TESS_OK;
    imager_job *job = set->job;
    const double scale = set->data->vis_scale;
    const tess_brick_list *held;
    TESS_TRY(hold(job, samples, bricks, &view->loaded, &held));
    if (held) {
        TESS_TRY(
            residual_make_held(job, samples, held, scale, other_bytes, &view->derived));
        view->residual = *samples;
        view->residual.vis = NULL; /* the backend has them */
        view->bricks = &view->derived;
    } else {
        /* a device has no room for samples twice */
        if (job->backend->grid->load) tess_brick_list_free(bricks);
        TESS_TRY(
            residual_make(job, samples, bricks, scale, other_bytes, &view->residual));
    }
    view->samples = &view->residual;
cleanup:
    return status;
}

tess_status visset_view_make(visset *set, const visset_request *request,
                             const tess_samples *samples, tess_brick_list *bricks,
                             double other_bytes, visset_view *view)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    const bool loads = job->backend->grid->load != NULL;
    *view = (visset_view){.samples = samples, .bricks = bricks};
    if (request->less_model)
        TESS_TRY(make_residuals(set, samples, bricks, other_bytes, view));
    if (!loads || view->bricks->own) return TESS_OK;
    status = job->backend->grid->load(job->plan, view->samples, true, &view->loaded);
    view->bricks = &view->loaded;
    TESS_TRY(tess_comm_agree(imager_team(job), status));
cleanup:
    if (status != TESS_OK) visset_view_free(view);
    return status;
}

void visset_view_free(visset_view *view)
{
    tess_brick_list_free(&view->derived);
    tess_brick_list_free(&view->loaded);
    residual_free(&view->residual);
}

tess_status visset_grid(visset *set, const visset_request *request,
                        const tess_samples *samples, tess_brick_list *bricks)
{
    tess_status status = TESS_OK;
    imager_job *job = set->job;
    visset_view view = {0};
    residual_way way = {0};
    double other = visset_other_bytes(set, samples, bricks);
    int window;
    tess_mem_trim();
    if (request->less_model)
        TESS_TRY(residual_choose(job, samples, bricks, other, &way));
    if (way.in_batches) {
        TESS_TRY(imager_tell_sums(job, bricks, 0, other + way.bytes));
        return residual_image(job, samples, bricks, set->data->vis_scale, request->psf);
    }
    TESS_TRY(visset_view_make(set, request, samples, bricks, other, &view));
    other += way.bytes;
    TESS_TRY(imager_plane_window(job, other, view.bricks, &window));
    TESS_TRY(imager_tell_sums(job, view.bricks, window, other));
    TESS_TRY(window > 0
                 ? tess_steps_image_by_planes(job->steps, window, view.samples,
                                              view.bricks, request->psf)
                 : tess_steps_image(job->steps, 0, tess_steps_count(job->steps), true,
                                    view.samples, view.bricks, request->psf));
cleanup:
    visset_view_free(&view);
    return status;
}

/* ---- the set ---- */

/* All of a rank's images are made from what it has in memory: nothing needs to move. */
static tess_status keep_in_place(visset *set)
{
    tess_status status = TESS_OK;
    imager_job *job = set->job;
    set->samples = &set->data->cached;
    set->bricks = &set->own_bricks;
    visset_add_sums(set, set->samples);
    status = visset_cut_bricks(job, set->bricks);
    if (status == TESS_OK) status = imager_job_measure(job, set->samples, true);
    TESS_TRY(tess_comm_agree(job->comm, status));
    TESS_TRY(imager_job_tell_error(job));
cleanup:
    return status;
}

/* Samples go to the owners of their bricks. Collective. */
static tess_status start_exchange(visset *set)
{
    const imager_job *job = set->job;
    const sample_sets *data = set->data;
    const tess_status status =
        tess_exchange_create(job->comm, job->plan, job->partition, true,
                             data->in_memory ? &data->cached : &data->block,
                             job->layout->forced.round_bytes, &set->exchange);
    return tess_comm_agree(job->comm, status);
}

/* From here on the backend holds the samples, if it has room for them and, where other
 * outputs share it, for as many once more: those that it does not hold are loaded for
 * every image. Collective. */
static tess_status keep_loaded(visset *set)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    const tess_brick_list *held;
    bool stays;
    double mark = tess_time_now();
    if (set->single) return TESS_OK;
    TESS_TRY(hold(job, set->samples, set->bricks, &set->loaded, &held));
    TESS_TRY(on_all_ranks(
        job, job->ranks.num_outputs <= 1 || (held && can_load(job, set->samples)),
        &stays));
    if (!stays) {
        tess_brick_list_free(&set->loaded);
        if (set->bricks->own) tess_brick_list_free(set->bricks);
    } else if (held == &set->loaded)
        set->bricks = &set->loaded;
    tess_profile_lap(job->profile, TESS_STAGE_SORT, &mark);
cleanup:
    return status;
}

/* What is summed is complete when all samples have been seen. Collective. */
static tess_status count(visset *set, const imager_stages *stages)
{
    tess_status status = TESS_OK;
    if (set->is_counted) return TESS_OK;
    TESS_TRY(sum_weights(set->job, &set->sums));
    TESS_TRY(imager_map_write(stages, &set->job->geom, set->sums.map));
    set->is_counted = true;
cleanup:
    return status;
}

/* Whether passes over data are kept on scratch. */
static bool spools(const visset *set)
{
    return !set->single && set->data->scratch && !set->job->backend->grid->load;
}

tess_status visset_create(imager_job *job, sample_sets *data, bool single,
                          const imager_stages *stages, visset *set)
{
    tess_status status = TESS_OK;
    double mark = tess_time_now();
    const int num_weight =
        data->in_memory ? data->cached.num_weight : data->block.num_weight;
    *set = (visset){
        .job = job, .data = data, .single = single, .sums = {.num_weight = num_weight}};
    TESS_TRY(goes_over(job, data, &set->over));
    const bool in_place =
        tess_comm_size(imager_samples_team(job)) == 1 && !set->over;
    status = imager_count_bricks(job, data, in_place, &set->own_bricks);
    TESS_TRY(tess_comm_agree(job->comm, status));
    tess_profile_lap(job->profile, TESS_STAGE_SORT, &mark);
    status = imager_job_partition(job, &set->own_bricks, true);
    TESS_TRY(tess_comm_agree(job->comm, status));
    imager_job_log(job);
    TESS_TRY(visset_keeper_begin(job));
    if (job->layout->reproducible) {
        set->sums.exact = tess_alloc_zero(num_weight + 1, sizeof *set->sums.exact);
        TESS_TRY(
            tess_comm_agree(job->comm, set->sums.exact ? TESS_OK : TESS_ERR_ALLOC));
    }
    TESS_TRY(imager_map_create(stages, &set->sums.map));
    if (!in_place) TESS_TRY(start_exchange(set));
    if (set->over && !spools(set)) return TESS_OK;
    TESS_TRY(set->over  ? visset_spool(set)
             : in_place ? keep_in_place(set)
                        : visset_send(set));
    if (!set->over && job->backend->grid->holds) TESS_TRY(keep_loaded(set));
    TESS_TRY(count(set, stages));
cleanup:
    return status;
}

/* No other image follows: images become rows in the memory of samples. Collective. */
static void give_up_samples(visset *set)
{
    if (!set->single) return;
    tess_exchange_destroy(set->exchange);
    set->exchange = NULL;
    tess_steps_batch_free(&set->job->batch);
    if (set->over) return;
    tess_samples_free(&set->data->cached);
    tess_brick_list_free(&set->own_bricks);
}

void visset_leave(visset *set)
{
    imager_job_take_part(set->job, &set->part);
    set->has_left = true; /* planes may be used by others meanwhile */
}

void visset_enter(visset *set)
{
    imager_job_put_part(set->job, &set->part);
}

/* Images of zero, and steps from the first on, for another image. Collective. */
static tess_status start_again(visset *set)
{
    tess_status status = TESS_OK;
    imager_job *job = set->job;
    if (set->num_made++ == 0 && !set->has_left) return TESS_OK;
    if (set->single) TESS_FAIL(TESS_ERR_INTERNAL, "a single set makes one image");
    tess_steps_restart(job->steps);
    visset_keeper_restart(job);
    status = tess_planes_clear(job->planes);
    TESS_TRY(tess_comm_agree(job->comm, status));
cleanup:
    return status;
}

tess_status visset_image(visset *set, const visset_request *request,
                         const imager_stages *stages, imager_product *product)
{
    tess_status status = TESS_OK;
    const int num_psf = request->psf ? set->sums.num_weight : 0;
    TESS_TRY(start_again(set));
    status = set->spool  ? visset_grid_spooled(set, request)
             : set->over ? visset_go_over(set, request)
                         : visset_grid(set, request, set->samples, set->bricks);
    TESS_TRY(tess_comm_agree(set->job->comm, status));
    give_up_samples(set);
    TESS_TRY(count(set, stages));
    TESS_TRY(visset_finish(set, set->job->num_pol + num_psf, stages, product));
cleanup:
    return status;
}

void visset_free(visset *set)
{
    if (!set->job) return;
    visset_keeper_forget(set->job);
    tess_brick_list_free(&set->loaded);
    pass_spool_destroy(set->spool);
    imager_passes_free(&set->passes);
    tess_exchange_destroy(set->exchange);
    tess_free(set->sums.map);
    tess_free(set->sums.exact);
    tess_brick_list_free(&set->own_bricks);
    imager_job_part_free(&set->part);
    *set = (visset){0};
}
