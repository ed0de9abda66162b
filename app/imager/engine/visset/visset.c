/* The visibility set. Its bricks are counted and dealt to the ranks, its samples are
 * sent and sorted, its weights are summed, and images are made of it. */
#include "visset.h"

#include "imager_targets.h"
#include "sample_sets.h"
#include "steps_residual.h"
#include "tess_const.h"
#include "tess_exact.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "visset_private.h"

/* ---- histogram of bricks ---- */

/* Adds the counts of a brick of the list, if it has this key; returns the position of
 * the next brick. */
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

/* Adds the counts of one list to those of another. */
static tess_status merge_counts(tess_brick_list *total, const tess_brick_list *add)
{
    tess_status status = TESS_OK;
    const int64_t most = total->num_bricks + add->num_bricks;
    const bool with_planes = add->planes != NULL;
    tess_brick_list sum = {.num_runs = total->num_runs + add->num_runs};
    TESS_TRY(tess_brick_list_make_counts(most, with_planes, &sum));
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

double visset_freq_hz(const visset *set)
{
    double sum = 0;
    for (int k = 0; k < set->sums.num_weight; ++k)
        sum += set->sums.weight[k];
    return sum > 0 ? TESS_SPEED_OF_LIGHT_M_S * set->sums.inv_lambda / sum : 0;
}

/* Sums ΣW over ranks, and finds the largest W. Collective. */
static tess_status sum_weights(visset *set)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    imager_sums *sums = &set->sums;
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
    TESS_TRY(tess_comm_allreduce_f64(job->comm, sums->largest, num_weight, TESS_MAX));
    TESS_TRY(visset_response_sum(set));
cleanup:
    return status;
}

/* ---- samples ---- */

/* Whether data may have to be read more than once. Samples that are sorted in place are
 * all on the device from then on. Collective. */
static tess_status goes_over(visset *set)
{
    const imager_job *job = set->job;
    const sample_sets *data = set->data;
    const tess_samples *limited = visset_limited(job, visset_kind(set));
    int64_t here = !data->in_memory || job->layout->forced.passes > 1 ||
                   (limited && tess_comm_size(job->comm) == 1 &&
                    data->num_vis > job->backend->grid->most_vis(job->plan, limited));
    const tess_status status = tess_comm_allreduce_i64(job->comm, &here, 1, TESS_MAX);
    set->over = here != 0;
    return status;
}

/* Decides once more whether the data are gone over, now that the bricks are known: with
 * --reproducible all samples of a pass must fit the device beside their sums.
 * `in_place` becomes false if they are. Collective. */
static tess_status look_again(visset *set, bool *in_place)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    tess_brick_list owned = {0};
    imager_passes passes = {0};
    const visset_request of_samples = {0};
    if (set->over || !visset_limited(job, visset_kind(set))) return TESS_OK;
    if (*in_place) {
        set->over = !tess_steps_sums_fit(job->steps, &set->own_bricks, job->num_images);
    } else {
        TESS_TRY(imager_owned_bricks(job, &set->own_bricks, &owned));
        TESS_TRY(visset_plan_passes(set, &of_samples, &owned, &passes));
        set->over = passes.num_reads > 1;
    }
    if (!set->over || !*in_place) goto cleanup;
    /* the samples have been sorted on the device; now they are counted on the host */
    *in_place = false;
    tess_brick_list_free(&set->own_bricks);
    TESS_TRY(imager_count_bricks(job, set->data, false, &set->own_bricks));
cleanup:
    imager_passes_free(&passes);
    tess_brick_list_free(&owned);
    return status;
}

/* ---- the set ---- */

/* Sums frequencies of samples that the backend has made, if several images are made of
 * them. Local. */
static tess_status add_resident_frequencies(visset *set)
{
    tess_resident *resident = set->samples->resident;
    if (!resident || set->single) return TESS_OK;
    return resident->add_frequencies(resident, &set->sums.inv_lambda);
}

/* Makes a set if each rank makes its images of samples in its own memory: no sample
 * needs to be sent. */
static tess_status keep_in_place(visset *set)
{
    tess_status status = TESS_OK;
    imager_job *job = set->job;
    double mark = tess_time_now();
    set->samples = &set->data->cached;
    set->bricks = &set->own_bricks;
    status = visset_add_sums(set, set->samples);
    if (status == TESS_OK) status = add_resident_frequencies(set);
    if (status == TESS_OK) status = visset_cut_bricks(job, set->bricks);
    if (status == TESS_OK) status = imager_job_measure(job, set->samples, true);
    TESS_TRY(tess_comm_agree(job->comm, status));
    TESS_TRY(imager_job_tell_error(job));
cleanup:
    tess_profile_lap(job->profile, TESS_STAGE_SORT, &mark);
    return status;
}

/* Creates the exchange that sends samples to the owners of their bricks. Collective. */
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

/* Has the backend hold the samples from here on, if it has room for them and, if other
 * outputs share it, for as many once more. Samples that it does not hold are loaded for
 * every image. Collective. */
static tess_status keep_loaded(visset *set)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    const tess_brick_list *held;
    bool stays;
    double mark = tess_time_now();
    if (set->single) return TESS_OK;
    TESS_TRY(visset_hold(set, set->samples, set->bricks, &set->loaded, &held));
    TESS_TRY(visset_on_all_ranks(job,
                                 job->ranks.num_outputs <= 1 ||
                                     (held && visset_can_load(job, set->samples)),
                                 &stays));
    if (!stays) {
        tess_brick_list_free(&set->loaded);
        if (set->bricks->own) tess_brick_list_free(set->bricks);
    } else if (held == &set->loaded)
        set->bricks = &set->loaded;
    if (!held && job->model.is_shared) TESS_TRY(visset_leave_to_host(set));
    tess_profile_lap(job->profile, TESS_STAGE_SORT, &mark);
cleanup:
    return status;
}

/* Completes the sums, once all samples have been seen. Collective. */
static tess_status count(visset *set, const imager_stages *stages)
{
    tess_status status = TESS_OK;
    if (set->is_counted) return TESS_OK;
    TESS_TRY(sum_weights(set));
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
    tess_progress progress;
    const int num_weight =
        data->in_memory ? data->cached.num_weight : data->block.num_weight;
    *set = (visset){
        .job = job, .data = data, .single = single, .sums = {.num_weight = num_weight}};
    TESS_TRY(goes_over(set));
    /* data that do not fit are read once for all targets, so that all targets need
     * their planes */
    if (set->over && !spools(set)) job->targets.in_turn = false;
    bool in_place = tess_comm_size(imager_samples_team(job)) == 1 && !set->over;
    tess_progress_start(&progress, "sorting", NULL, 0);
    status = imager_count_bricks(job, data, in_place, &set->own_bricks);
    tess_progress_finish(&progress);
    TESS_TRY(tess_comm_agree(job->comm, status));
    tess_profile_lap(job->profile, TESS_STAGE_SORT, &mark);
    status = imager_job_partition(job, &set->own_bricks, true);
    TESS_TRY(tess_comm_agree(job->comm, status));
    TESS_TRY(look_again(set, &in_place));
    imager_job_log(job);
    TESS_TRY(visset_keeper_begin(job));
    if (job->layout->reproducible) {
        set->sums.exact = tess_alloc_zero(num_weight + 1, sizeof *set->sums.exact);
        TESS_TRY(
            tess_comm_agree(job->comm, set->sums.exact ? TESS_OK : TESS_ERR_ALLOC));
    }
    TESS_TRY(tess_comm_agree(job->comm, visset_response_create(set)));
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

/* If no other image follows, the memory of samples is freed for the rows of images.
 * Collective. */
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
    set->has_left = true; /* other sets may use the planes meanwhile */
}

void visset_enter(visset *set)
{
    imager_job_put_part(set->job, &set->part);
}

/* Sets images to zero and goes back to the first step, for another image. Targets in
 * turn get their planes. Collective. */
static tess_status start_again(visset *set, const visset_request *request)
{
    tess_status status = TESS_OK;
    imager_job *job = set->job;
    double mark = tess_time_now();
    const bool in_turn = imager_job_in_turn(job);
    if (set->num_made++ == 0 && !set->has_left && !in_turn) return TESS_OK;
    if (set->single && set->num_made > 1)
        TESS_FAIL(TESS_ERR_INTERNAL, "a single set makes one image");
    tess_steps_restart(job->steps);
    visset_keeper_restart(job);
    const int first = in_turn ? request->first_target : 0;
    const int end =
        in_turn ? visset_end_target(job, request) : imager_job_num_targets(job);
    for (int k = first; k < end && status == TESS_OK; ++k) {
        imager_job_aim(job, k);
        status = tess_planes_clear(job->planes);
    }
    imager_job_aim(job, 0);
    TESS_TRY(tess_comm_agree(job->comm, status));
cleanup:
    tess_profile_lap(job->profile, TESS_STAGE_PLAN, &mark);
    return status;
}

tess_status visset_image(visset *set, const visset_request *request,
                         const imager_stages *stages, imager_product *product)
{
    tess_status status = TESS_OK;
    TESS_TRY(start_again(set, request));
    status = set->spool  ? visset_grid_spooled(set, request)
             : set->over ? visset_go_over(set, request)
                         : visset_grid(set, request, set->samples, set->bricks);
    TESS_TRY(tess_comm_agree(set->job->comm, status));
    give_up_samples(set);
    TESS_TRY(count(set, stages));
    for (int k = request->first_target; k < visset_end_target(set->job, request); ++k) {
        imager_job_aim(set->job, k);
        TESS_TRY(visset_finish(set, request, stages, product + k * TESS_MAX_IMAGES));
        imager_job_drop_planes(set->job, set->job->planes);
    }
cleanup:
    imager_job_aim(set->job, 0);
    return status;
}

void visset_free(visset *set)
{
    if (!set->job) return;
    visset_keeper_forget(set->job);
    tess_brick_list_free(&set->loaded);
    tess_spool_destroy(set->spool);
    imager_passes_free(&set->passes);
    tess_exchange_destroy(set->exchange);
    tess_free(set->sums.map);
    tess_free(set->sums.exact);
    imager_responses_free(&set->sums.responses);
    tess_brick_list_free(&set->own_bricks);
    imager_job_part_free(&set->part);
    *set = (visset){0};
}
