/* One image set from samples: bricks, exchange, gridding, planes. */
#include <math.h>
#include <string.h>

#include "imager_bookmark.h"
#include "imager_checkpoint.h"
#include "imager_data.h"
#include "imager_job.h"
#include "imager_model.h"
#include "imager_passes.h"
#include "imager_rows.h"
#include "imager_run.h"
#include "imager_stages.h"
#include "imager_window.h"
#include "tess_exact.h"
#include "tess_hash.h"
#include "tess_log.h"
#include "tess_mem.h"

/* ---- histogram of bricks ---- */

void imager_join_planes(tess_plane_span *planes, tess_plane_span more)
{
    if (more.first < planes->first) planes->first = more.first;
    if (more.end > planes->end) planes->end = more.end;
}

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

tess_status imager_sort(const imager_job *job, const tess_samples *samples,
                        bool skip_ignored, bool in_place, tess_brick_list *bricks)
{
    const int threads = imager_sort_threads(job);
    return in_place ? tess_brick_list_make(job->plan, samples, skip_ignored, bricks)
                    : tess_brick_list_count(job->plan, samples, skip_ignored, threads,
                                            bricks);
}

static imager_bookmark *bookmark_of(const imager_job *job)
{
    return job->checkpoint ? &job->checkpoint->bookmark : NULL;
}

tess_status imager_count_bricks(const imager_job *job, imager_data *data, bool in_place,
                                tess_brick_list *bricks)
{
    tess_status status = TESS_OK;
    tess_samples *samples;
    imager_bookmark *bookmark = bookmark_of(job);
    const imager_check check = {{data->num_sets, data->set_blocks}};
    int64_t first;
    if (data->in_memory) {
        TESS_TRY(imager_data_get(data, 0, &samples));
        return imager_sort(job, samples, true, in_place, bricks);
    }
    TESS_TRY(imager_bookmark_bricks(bookmark, &check, job->plan, data, bricks, &first));
    for (int64_t k = first; k < data->num_sets; ++k) {
        tess_brick_list runs = {0};
        status = imager_data_get(data, k, &samples);
        if (status == TESS_OK)
            status = data->with_planes
                         ? tess_brick_list_count_planes(job->plan, samples, true,
                                                        imager_sort_threads(job), &runs)
                         : imager_sort(job, samples, true, false, &runs);
        if (status == TESS_OK) status = merge_counts(bricks, &runs);
        data->num_runs += runs.num_runs;
        tess_brick_list_free(&runs);
        imager_bookmark_at(bookmark, IMAGER_BRICKS, k + 1);
        TESS_TRY(imager_checkpoint_look(job->checkpoint, status));
    }
cleanup:
    return status;
}

/* ---- passes over the data ---- */

/* Ranks do not own equally many samples: at most so many times the mean. */
static const double UNEVEN = 1.3;

/* Samples that a backend can take at a time, where a brick's must all be there. */
static int64_t most_vis(const imager_job *job, const imager_data *data)
{
    const tess_samples *like = data->in_memory ? &data->cached : &data->block;
    if (!job->layout->reproducible || !job->backend->grid->most_vis) return INT64_MAX;
    return job->backend->grid->most_vis(job->plan, like);
}

/* Whether data may have to be gone over more than once. Collective. */
static tess_status goes_over(const imager_job *job, const imager_data *data, bool *over)
{
    const int ranks = tess_comm_size(job->comm);
    const double share = (double)data->num_vis * (ranks > 1 ? UNEVEN : 1) / ranks;
    int64_t here = !data->in_memory || job->layout->forced.passes > 1 ||
                   share > (double)most_vis(job, data);
    const tess_status status = tess_comm_allreduce_i64(job->comm, &here, 1, TESS_MAX);
    *over = here != 0;
    return status;
}

/* Bricks of one pass: those that touch its window of planes, of these a range of
 * w-steps, or, when there are fewer steps than passes, every n-th; none whose planes
 * were all done before the run was resumed. */
typedef struct pass_filter {
    const imager_job *job;
    tess_plane_window window;
    int pass, num_passes; /* for the window */
    int64_t first_set;    /* that it takes them from */
} pass_filter;

static bool by_steps(const pass_filter *filter)
{
    return filter->window.count == 0 &&
           tess_steps_count(filter->job->steps) >= filter->num_passes;
}

static int pass_first_step(const pass_filter *filter, int pass)
{
    const int steps = tess_steps_count(filter->job->steps);
    return (int)((int64_t)steps * pass / filter->num_passes);
}

static bool in_pass(const void *context, int64_t key)
{
    const pass_filter *filter = context;
    const tess_steps *steps = filter->job->steps;
    int64_t block, tile_u, tile_v;
    tess_grid_brick_of_key(filter->job->plan, key, &block, &tile_u, &tile_v);
    if (tess_steps_block_done(steps, block) ||
        !tess_steps_block_in(steps, block, filter->window))
        return false;
    if (!by_steps(filter)) return key % filter->num_passes == filter->pass;
    const int step = tess_steps_of_block(steps, block);
    return step >= pass_first_step(filter, filter->pass) &&
           step < pass_first_step(filter, filter->pass + 1);
}

static double weight_at(const tess_samples *samples, int64_t at)
{
    return samples->is_double ? ((const double *)samples->weight)[at]
                              : (double)((const float *)samples->weight)[at];
}

static void add_weights_exactly(const tess_samples *samples, int threads,
                                tess_exact *sums)
{
    for (int k = 0; k < samples->num_weight; ++k) {
#pragma omp parallel num_threads(threads)
        {
            tess_exact own = {0};
#pragma omp for schedule(static) nowait
            for (int64_t s = 0; s < samples->num_vis; ++s)
                tess_exact_add(&own, weight_at(samples, s * samples->num_weight + k));
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
            sum += weight_at(samples, s * samples->num_weight + k);
        sums[k] += sum;
    }
}

/* Add what is about to be gridded to the sums. */
static void add_sums(const imager_job *job, const tess_samples *samples,
                     imager_sums *sums)
{
    if (samples->resident) { /* neither maps nor exact sums are wanted then */
        for (int k = 0; k < samples->num_weight; ++k)
            sums->weight[k] += samples->resident->sum_weights[k];
        return;
    }
    if (sums->exact)
        add_weights_exactly(samples, job->layout->threads, sums->exact);
    else
        add_weights(samples, job->layout->threads, sums->weight);
    imager_map_add(&job->geom, samples, sums->map);
}

/* ΣW over ranks. Collective. */
static tess_status sum_weights(const imager_job *job, imager_sums *sums)
{
    tess_status status = TESS_OK;
    const int num_weight = sums->num_weight;
    if (sums->exact) {
        TESS_TRY(tess_comm_allreduce_i64(job->comm, sums->exact->word,
                                         (int64_t)num_weight * TESS_EXACT_WORDS,
                                         TESS_SUM));
        for (int k = 0; k < num_weight; ++k)
            sums->weight[k] = tess_exact_value(&sums->exact[k]);
    } else
        TESS_TRY(
            tess_comm_allreduce_f64(job->comm, sums->weight, num_weight, TESS_SUM));
cleanup:
    return status;
}

/* Read, weight and send the data of one pass, the first of which adds to the sums. */
static tess_status send_pass(imager_job *job, imager_data *data,
                             tess_exchange *exchange, const pass_filter *filter,
                             imager_sums *sums)
{
    tess_status status = TESS_OK;
    const bool all = filter->num_passes == 1 && filter->window.count == 0;
    const bool first = filter->pass == 0 && filter->window.first == 0;
    tess_exchange_filter *test = all && !job->checkpoint ? NULL : in_pass;
    for (int64_t k = filter->first_set; k < data->num_sets; ++k) {
        tess_samples *samples = NULL;
        TESS_TRY(tess_steps_look(job->steps));
        double mark = tess_time_now();
        status = imager_data_get(data, k, &samples);
        tess_profile_lap(job->profile, TESS_STAGE_READ, &mark);
        TESS_TRY(tess_comm_agree(job->comm, status));
        tess_exchange_progress(exchange);
        if (data->subtract) {
            TESS_TRY(imager_predictor_subtract(data->subtract, data->pol,
                                               data->vis_scale, samples));
            mark = tess_time_now(); /* counted by the stages of prediction */
        }
        if (first) {
            add_sums(job, samples, sums);
            if (k == 0) status = imager_job_measure(job, samples, true);
        }
        TESS_TRY(tess_comm_agree(job->comm, status));
        if (first && k == 0) TESS_TRY(imager_job_tell_error(job));
        tess_exchange_progress(exchange);
        tess_profile_lap(job->profile, TESS_STAGE_SORT, &mark);
        TESS_TRY(tess_exchange_send(exchange, samples, true, test, filter));
        imager_bookmark_at(bookmark_of(job), IMAGER_PASS, k + 1);
        tess_profile_lap(job->profile, TESS_STAGE_EXCHANGE, &mark);
    }
cleanup:
    return status;
}

/* When all samples are sent at once, what arrives is about as much as this rank has,
 * and of visibilities it is known. A row may come in parts, from where its brick's
 * owners change. */
static tess_status expect(const imager_job *job, const tess_samples *own,
                          const tess_brick_list *counted, tess_exchange *exchange)
{
    const int64_t num_vis = tess_partition_num_vis(job->partition);
    const double share =
        own->num_vis > 0 ? 1.1 * (double)num_vis / (double)own->num_vis : 0;
    return tess_exchange_expect(exchange, (int64_t)(2 * share * (double)own->num_rows),
                                (int64_t)(share * (double)counted->num_runs), num_vis);
}

/* Parts of a brick that several ranks may share have sums of their own, on one rank
 * too: they are then added to the planes one by one, in the same order on any number of
 * ranks. */
static tess_status cut_bricks(const imager_job *job, tess_brick_list *bricks)
{
    if (!job->layout->reproducible || job->backend->grid->load) return TESS_OK;
    return tess_brick_list_cut(bricks, imager_part_vis(job));
}

/* ---- memory for brick sums ---- */

/* What a run holds beside brick sums. */
static double other_bytes(const imager_job *job, const imager_data *data,
                          const tess_samples *samples, const tess_brick_list *bricks)
{
    const bool sent = samples != &data->cached;
    return imager_base_bytes(job) + imager_planes_bytes(job) + data->kept_bytes +
           imager_samples_bytes(samples) +
           (double)bricks->num_runs * (double)sizeof(tess_run) +
           (sent ? imager_samples_bytes(data->in_memory ? &data->cached : &data->block)
                 : 0);
}

/* Grid and transform everything, as memory allows. Collective. */
static tess_status image_all(imager_job *job, const imager_data *data,
                             const tess_samples *samples, const tess_brick_list *bricks,
                             bool psf)
{
    tess_status status = TESS_OK;
    const double other = other_bytes(job, data, samples, bricks);
    int window;
    tess_mem_trim();
    TESS_TRY(imager_plane_window(job, other, bricks, &window));
    TESS_TRY(imager_tell_sums(job, bricks, window, other));
    TESS_TRY(window > 0
                 ? tess_steps_image_by_planes(job->steps, window, samples, bricks, psf)
                 : tess_steps_image(job->steps, 0, tess_steps_count(job->steps), true,
                                    samples, bricks, psf));
cleanup:
    return status;
}

/* Of a pass over data that take several, a share of this rank's bricks is to come:
 * room for it at once, as arrays that grow take twice as much. */
static tess_status expect_pass(const tess_brick_list *owned, const pass_filter *filter,
                               tess_exchange *exchange)
{
    int64_t num_vis = 0, num_runs = 0;
    for (int64_t k = 0; k < owned->num_bricks; ++k) {
        if (!in_pass(filter, owned->key[k])) continue;
        num_vis += owned->num_vis[k];
        num_runs += owned->first_run[k + 1] - owned->first_run[k];
    }
    return tess_exchange_expect(exchange, num_runs, num_runs, num_vis);
}

/* Samples and bricks of this rank for one pass. Collective. */
static tess_status take_pass(imager_job *job, imager_data *data,
                             tess_exchange *exchange, const pass_filter *filter,
                             bool last, imager_sums *sums, tess_samples **samples,
                             tess_brick_list **bricks)
{
    tess_status status = TESS_OK;
    TESS_TRY(send_pass(job, data, exchange, filter, sums));
    if (last)
        tess_samples_free(&data->cached); /* all of it has been sent */
    else if (!data->in_memory && !data->spool)
        tess_source_rewind(data->source); /* reads while this pass is gridded */
    double mark = tess_time_now();
    status =
        tess_exchange_complete(exchange, imager_sort_threads(job), samples, bricks);
    if (status == TESS_OK) status = cut_bricks(job, *bricks);
    TESS_TRY(tess_comm_agree(job->comm, status));
    tess_profile_lap(job->profile, TESS_STAGE_SORT, &mark);
cleanup:
    return status;
}

/* All data in one pass, from a set on. Collective. */
static tess_status run_once(imager_job *job, imager_data *data,
                            const tess_brick_list *counted, tess_exchange *exchange,
                            int64_t first_set, bool psf, imager_sums *sums)
{
    tess_status status = TESS_OK;
    const pass_filter all = {.job = job, .num_passes = 1, .first_set = first_set};
    tess_samples *samples;
    tess_brick_list *bricks;
    if (data->in_memory && !job->checkpoint)
        status = expect(job, &data->cached, counted, exchange);
    TESS_TRY(tess_comm_agree(job->comm, status));
    TESS_TRY(take_pass(job, data, exchange, &all, true, sums, &samples, &bricks));
    TESS_TRY(image_all(job, data, samples, bricks, psf));
cleanup:
    return status;
}

/* Other samples are collected from here on. What a run that was stopped here finds is
 * not progress. */
static void begin_pass(const imager_job *job, tess_exchange *exchange, int window,
                       int share)
{
    imager_bookmark *bookmark = bookmark_of(job);
    const imager_place place = {.window = window, .share = share};
    tess_exchange_reset(exchange);
    tess_steps_next_samples(job->steps);
    if (!bookmark ||
        (bookmark->place.window == window && bookmark->place.share == share))
        return;
    bookmark->place = place;
    imager_bookmark_at(bookmark, IMAGER_PASS, 0);
}

/* The passes for one window of planes, from a place in it on. Collective. */
static tess_status run_window(imager_job *job, imager_data *data,
                              const tess_brick_list *owned, const imager_passes *passes,
                              const imager_place *from, tess_exchange *exchange,
                              bool psf, imager_sums *sums)
{
    tess_status status = TESS_OK;
    const int window = (int)from->window, num_passes = passes->num_shares[window];
    pass_filter filter = {.job = job,
                          .window = imager_passes_window(job, passes, window),
                          .pass = (int)from->share,
                          .num_passes = num_passes,
                          .first_set = from->next_set};
    const int steps = tess_steps_count(job->steps);
    for (; filter.pass < num_passes; ++filter.pass, filter.first_set = 0) {
        const bool last = filter.pass == num_passes - 1, whole = by_steps(&filter);
        tess_samples *samples;
        tess_brick_list *bricks;
        if (filter.first_set == 0) begin_pass(job, exchange, window, filter.pass);
        if (passes->num_windows > 1)
            tess_log_info("pass %d of %d over the data for w-planes %lld to %lld",
                          filter.pass + 1, num_passes, (long long)filter.window.first,
                          (long long)(filter.window.first + filter.window.count - 1));
        else
            tess_log_info("pass %d of %d over the data", filter.pass + 1, num_passes);
        if (filter.first_set == 0) status = expect_pass(owned, &filter, exchange);
        TESS_TRY(tess_comm_agree(job->comm, status));
        TESS_TRY(take_pass(job, data, exchange, &filter,
                           last && window == passes->num_windows - 1, sums, &samples,
                           &bricks));
        if (filter.window.count > 0)
            TESS_TRY(tess_steps_image_window(job->steps, filter.window, last, samples,
                                             bricks, psf));
        else
            TESS_TRY(tess_steps_image(
                job->steps, whole ? pass_first_step(&filter, filter.pass) : 0,
                whole ? pass_first_step(&filter, filter.pass + 1) : steps,
                whole || last, samples, bricks, psf));
    }
cleanup:
    return status;
}

/* What is held in every pass beside its samples and sums. */
static double held_bytes(const imager_job *job, const imager_data *data)
{
    if (data->in_memory)
        return imager_held_bytes(
            job, data->kept_bytes + imager_samples_bytes(&data->cached), 0);
    return imager_held_bytes(job, data->kept_bytes + data->largest_set_bytes,
                             (double)tess_source_block_bytes(data->source));
}

/* What a bookmark in these passes depends on. */
static imager_check check_of(const imager_job *job, const imager_data *data,
                             const tess_brick_list *owned, const imager_passes *passes)
{
    double largest, mean;
    int64_t num_split;
    uint64_t shares = TESS_HASH_START, bricks = TESS_HASH_START;
    const size_t num = (size_t)owned->num_bricks;
    tess_partition_balance(job->partition, &largest, &mean, &num_split);
    shares = tess_hash(shares, passes->num_shares,
                       (size_t)passes->num_windows * sizeof *passes->num_shares);
    bricks = tess_hash(bricks, owned->key, num * sizeof *owned->key);
    bricks = tess_hash(bricks, owned->num_vis, num * sizeof *owned->num_vis);
    bricks = tess_hash(bricks, &num_split, sizeof num_split);
    return (imager_check){{data->num_sets, data->set_blocks, passes->planes_at_once,
                           passes->num_windows, passes->num_reads, job->num_groups,
                           (int64_t)shares, (int64_t)bricks}};
}

/* Where passes begin: where a run that is continued was left, else at the first.
 * Devices keep what they have made for themselves, and stages want all samples.
 * Collective. */
static tess_status find_place(imager_job *job, const imager_data *data,
                              const tess_brick_list *owned, const imager_passes *passes,
                              tess_exchange *exchange, imager_sums *sums,
                              imager_place *from)
{
    const imager_check check = check_of(job, data, owned, passes);
    *from = (imager_place){0, 0, 0};
    tess_status status = TESS_OK;
    if (data->in_memory || job->backend->grid->load || sums->map) return TESS_OK;
    TESS_TRY(imager_bookmark_pass(bookmark_of(job), &check, job, exchange, sums, from));
    if (from->window < 0 || from->window >= passes->num_windows || from->share < 0 ||
        from->share >= passes->num_shares[from->window])
        TESS_FAIL(TESS_ERR_INPUT, "checkpoint: a pass that this run does not make");
cleanup:
    return status;
}

/* Data that do not fit into memory, or are made to take passes. Collective. */
static tess_status run_passes(imager_job *job, imager_data *data,
                              const tess_brick_list *counted, tess_exchange *exchange,
                              bool psf, imager_sums *sums)
{
    tess_status status = TESS_OK;
    tess_brick_list owned = {0};
    imager_passes passes = {0};
    imager_place from;
    const tess_samples *held = data->in_memory ? &data->cached : &data->block;
    TESS_TRY(imager_owned_bricks(job, counted, &owned));
    TESS_TRY(imager_passes_choose(job, &owned, (double)tess_samples_vis_bytes(held),
                                  held_bytes(job, data), most_vis(job, data), &passes));
    TESS_TRY(find_place(job, data, &owned, &passes, exchange, sums, &from));
    if (passes.num_reads == 1) {
        TESS_TRY(run_once(job, data, counted, exchange, from.next_set, psf, sums));
        goto cleanup;
    }
    /* the first also sums what outputs need of all samples, and one that had begun has
     * sums to be added */
    const int64_t first = from.window;
    for (; from.window < passes.num_windows;
         from = (imager_place){.window = from.window + 1})
        if (from.window == first ||
            !tess_steps_window_done(
                job->steps, imager_passes_window(job, &passes, (int)from.window)))
            TESS_TRY(
                run_window(job, data, &owned, &passes, &from, exchange, psf, sums));
cleanup:
    imager_bookmark_forget(bookmark_of(job), IMAGER_PASS);
    imager_passes_free(&passes);
    tess_brick_list_free(&owned);
    return status;
}

/* Samples go to the owners of their bricks. Collective. */
static tess_status run_sent(imager_job *job, imager_data *data, bool over,
                            const tess_brick_list *counted, bool psf, imager_sums *sums)
{
    tess_status status = TESS_OK;
    tess_exchange *exchange = NULL;
    status = tess_exchange_create(job->comm, job->plan, job->partition, true,
                                  data->in_memory ? &data->cached : &data->block,
                                  job->layout->forced.round_bytes, &exchange);
    TESS_TRY(tess_comm_agree(job->comm, status));
    TESS_TRY(over ? run_passes(job, data, counted, exchange, psf, sums)
                  : run_once(job, data, counted, exchange, 0, psf, sums));
cleanup:
    tess_exchange_destroy(exchange);
    return status;
}

/* All of a rank's images from what it has in memory: nothing needs to move. */
static tess_status run_in_place(imager_job *job, imager_data *data,
                                tess_brick_list *runs, bool psf, imager_sums *sums)
{
    tess_status status = TESS_OK;
    add_sums(job, &data->cached, sums);
    status = cut_bricks(job, runs);
    if (status == TESS_OK) status = imager_job_measure(job, &data->cached, true);
    TESS_TRY(tess_comm_agree(job->comm, status));
    TESS_TRY(imager_job_tell_error(job));
    status = image_all(job, data, &data->cached, runs, psf);
    TESS_TRY(tess_comm_agree(job->comm, status));
    tess_samples_free(&data->cached); /* images become rows beside what is still held */
    tess_brick_list_free(runs);
cleanup:
    return status;
}

/* ---- all of it ---- */

tess_status imager_run(imager_job *job, imager_data *data, bool psf,
                       imager_product *product, const imager_stages *stages)
{
    tess_status status = TESS_OK;
    tess_brick_list bricks = {0};
    double mark = tess_time_now();
    const tess_samples *like = data->in_memory ? &data->cached : &data->block;
    const int num_weight = like->num_weight;
    imager_sums sums = {.num_weight = num_weight};
    bool over, in_place;
    TESS_TRY(goes_over(job, data, &over));
    in_place = tess_comm_size(imager_team(job)) == 1 && !over;
    status = imager_count_bricks(job, data, in_place, &bricks);
    TESS_TRY(tess_comm_agree(job->comm, status));
    tess_profile_lap(job->profile, TESS_STAGE_SORT, &mark);
    status = imager_job_partition(job, &bricks, true);
    TESS_TRY(tess_comm_agree(job->comm, status));
    imager_job_log(job);
    if (job->checkpoint) TESS_TRY(imager_checkpoint_begin(job->checkpoint, job));
    if (job->layout->reproducible) {
        sums.exact = tess_alloc_zero(num_weight, sizeof *sums.exact);
        TESS_TRY(tess_comm_agree(job->comm, sums.exact ? TESS_OK : TESS_ERR_ALLOC));
    }
    TESS_TRY(imager_map_create(stages, &sums.map));
    if (in_place)
        TESS_TRY(run_in_place(job, data, &bricks, psf, &sums));
    else
        TESS_TRY(run_sent(job, data, over, &bricks, psf, &sums));
    TESS_TRY(sum_weights(job, &sums));
    TESS_TRY(imager_map_write(stages, &job->geom, sums.map));
    TESS_TRY(imager_finish(job, data, &sums, product, stages));
cleanup:
    imager_bookmark_forget(bookmark_of(job), IMAGER_BRICKS);
    tess_free(sums.map);
    tess_free(sums.exact);
    tess_brick_list_free(&bricks);
    return status;
}
