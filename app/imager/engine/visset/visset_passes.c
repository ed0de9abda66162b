/* Sends samples to the owners of their bricks: all at once or, if they do not fit into
 * memory, in passes over the data. */

#include "imager_targets.h"
#include "imager_window.h"
#include "sample_sets.h"
#include "tess_hash.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "visset_private.h"

/* The bricks of one pass. They touch its window of planes; of these, a pass takes its
 * cut. Bricks are left out if all their planes were done before the run was resumed,
 * unless later images need them. */
typedef struct pass_filter {
    const imager_job *job;
    tess_plane_window window;
    imager_cut cut;
    int num_passes;     /* number of passes of the window */
    imager_place place; /* number of the pass, and the first set that it takes */
    bool with_done;     /* bricks whose planes are done take part, too */
} pass_filter;

static bool in_pass(const void *context, int64_t key)
{
    const pass_filter *filter = context;
    const tess_steps *steps = filter->job->steps;
    int64_t block, tile_u, tile_v;
    tess_grid_brick_of_key(filter->job->plan, key, &block, &tile_u, &tile_v);
    if ((!filter->with_done && tess_steps_block_done(steps, block)) ||
        !tess_steps_block_in(steps, block, filter->window))
        return false;
    return imager_cut_has(&filter->cut, tess_steps_of_block(steps, block), key);
}

/* Reads, weights and sends the data of one pass; the first pass adds to the sums. */
static tess_status send_pass(visset *set, const pass_filter *filter)
{
    tess_status status = TESS_OK;
    imager_job *job = set->job;
    sample_sets *data = set->data;
    tess_exchange *exchange = set->exchange;
    imager_place place = filter->place;
    const bool all = filter->num_passes == 1 && filter->window.count == 0;
    const bool first = filter->place.share == 0 && filter->window.first == 0 &&
                       !set->is_counted && job->targets.aim == 0;
    tess_exchange_filter *test = all && !job->keeper ? NULL : in_pass;
    for (int64_t k = filter->place.next_set; k < data->num_sets; ++k) {
        tess_samples *samples = NULL;
        TESS_TRY(tess_steps_look(job->steps));
        double mark = tess_time_now();
        status = sample_sets_get(data, k, &samples);
        tess_profile_lap(job->profile, TESS_STAGE_READ, &mark);
        TESS_TRY(tess_comm_agree(job->comm, status));
        tess_exchange_progress(exchange);
        if (data->subtract) {
            TESS_TRY(residual_of_set(data->subtract, data->vis_scale, samples));
            mark =
                tess_time_now(); /* the stages of prediction have counted these bytes */
        }
        if (first) {
            status = visset_add_sums(set, samples);
            if (k == 0 && status == TESS_OK)
                status = imager_job_measure(job, samples, true);
        }
        TESS_TRY(tess_comm_agree(job->comm, status));
        if (first && k == 0) TESS_TRY(imager_job_tell_error(job));
        tess_exchange_progress(exchange);
        tess_profile_lap(job->profile, TESS_STAGE_SORT, &mark);
        TESS_TRY(tess_exchange_send(exchange, samples, true, test, filter));
        place.next_set = k + 1;
        visset_keeper_sent(job, &place);
        tess_profile_lap(job->profile, TESS_STAGE_EXCHANGE, &mark);
    }
cleanup:
    return status;
}

/* Makes room for what arrives when all samples are sent at once. It is about as much as
 * this rank has; the number of visibilities is known. A row may arrive in parts, cut
 * where the owner of its bricks changes. */
static tess_status expect(const imager_job *job, const tess_samples *own,
                          const tess_brick_list *counted, tess_exchange *exchange)
{
    const int64_t num_vis = tess_partition_num_vis(job->partition);
    const double share =
        own->num_vis > 0 ? 1.1 * (double)num_vis / (double)own->num_vis : 0;
    return tess_exchange_expect(exchange, (int64_t)(2 * share * (double)own->num_rows),
                                (int64_t)(share * (double)counted->num_runs), num_vis);
}

/* Makes room for this rank's share of the bricks in one of several passes at once,
 * because arrays that grow take twice as much. */
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

/* Makes the samples and bricks of this rank for one pass. Collective. */
static tess_status take_pass(visset *set, const pass_filter *filter, bool last,
                             tess_samples **samples, tess_brick_list **bricks)
{
    tess_status status = TESS_OK;
    imager_job *job = set->job;
    sample_sets *data = set->data;
    const bool again = set->over && job->targets.aim < imager_job_num_targets(job) - 1;
    TESS_TRY(send_pass(set, filter));
    if (last && ((set->single && !again) || !set->over || set->spool))
        tess_samples_free(&data->cached); /* all samples of the set have been sent */
    else if (!data->in_memory && !data->spool && !data->parted)
        tess_source_rewind(
            data->source); /* the next pass is read while this one is gridded */
    double mark = tess_time_now();
    status = tess_exchange_complete(set->exchange, imager_sort_threads(job), samples,
                                    bricks);
    if (status == TESS_OK) status = visset_cut_bricks(job, *bricks);
    TESS_TRY(tess_comm_agree(job->comm, status));
    tess_profile_lap(job->profile, TESS_STAGE_SORT, &mark);
cleanup:
    return status;
}

/* Sends all data in one pass, from a set of blocks on. Collective. */
static tess_status take_all(visset *set, int64_t first_set, tess_samples **samples,
                            tess_brick_list **bricks)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    const sample_sets *data = set->data;
    const pass_filter all = {.job = job,
                             .cut = imager_cut_all(job),
                             .num_passes = 1,
                             .place = {.next_set = first_set},
                             .with_done = !set->single && !set->over};
    if (data->in_memory && !job->keeper)
        status = expect(job, &data->cached, &set->own_bricks, set->exchange);
    TESS_TRY(tess_comm_agree(job->comm, status));
    TESS_TRY(take_pass(set, &all, true, samples, bricks));
cleanup:
    return status;
}

tess_status visset_send(visset *set)
{
    return take_all(set, 0, &set->samples, &set->bricks);
}

/* Prepares to collect other samples. */
static void begin_pass(const imager_job *job, tess_exchange *exchange,
                       const imager_place *place)
{
    tess_exchange_reset(exchange);
    tess_steps_next_samples(job->steps);
    visset_keeper_sent(job, place);
}

/* The window of planes, or the steps, in which samples of a pass are gridded. */
typedef struct pass_work {
    tess_plane_window window;
    int first_step, end_step;
    bool last; /* planes are complete after this pass */
} pass_work;

/* Grids the samples of one of several passes. Collective. */
static tess_status grid_pass(visset *set, const visset_request *request,
                             const pass_work *work, const tess_samples *samples,
                             tess_brick_list *bricks)
{
    tess_status status = TESS_OK;
    tess_steps *steps = set->job->steps;
    visset_view view = {0};
    residual_way way = {0};
    const visset_held held = visset_held_with(set, samples, bricks);
    if (request->less_model)
        TESS_TRY(residual_choose_array(set->job, samples, bricks,
                                       visset_beside_sums(set->job, &held), &way));
    TESS_TRY(visset_view_make(set, request, samples, bricks, way.planes, &view));
    TESS_TRY(visset_view_take(set->job, set->job->targets.aim + 1, &view));
    if (work->window.count > 0)
        TESS_TRY(tess_steps_image_window(steps, work->window, work->last, view.samples,
                                         view.bricks, request->psf));
    else
        TESS_TRY(tess_steps_image(steps, work->first_step, work->end_step, work->last,
                                  view.samples, view.bricks, request->psf));
cleanup:
    visset_view_free(&view);
    return status;
}

static void log_pass(const imager_passes *passes, const pass_filter *filter)
{
    if (passes->num_windows > 1)
        tess_log_info("pass %lld of %d over the data for w-planes %lld to %lld",
                      (long long)filter->place.share + 1, filter->num_passes,
                      (long long)filter->window.first,
                      (long long)(filter->window.first + filter->window.count - 1));
    else
        tess_log_info("pass %lld of %d over the data",
                      (long long)filter->place.share + 1, filter->num_passes);
}

static pass_filter filter_at(const visset *set, const imager_passes *passes,
                             const imager_place *place)
{
    const int window = (int)place->window;
    return (pass_filter){.job = set->job,
                         .window = imager_passes_window(set->job, passes, window),
                         .cut =
                             imager_passes_cut(set->job, passes, window, place->share),
                         .num_passes = passes->num_shares[window],
                         .place = *place,
                         .with_done = set->spool != NULL};
}

static pass_work work_of(const pass_filter *filter)
{
    const imager_cut *cut = &filter->cut;
    return (pass_work){.window = filter->window,
                       .first_step = cut->first_step,
                       .end_step = cut->end_step,
                       .last = cut->share == cut->num_shares - 1};
}

/* Collects the samples of a pass. Collective. */
static tess_status collect_pass(visset *set, const imager_passes *passes,
                                const tess_brick_list *owned, const imager_place *place,
                                tess_samples **samples, tess_brick_list **bricks)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    const pass_filter filter = filter_at(set, passes, place);
    const bool last = place->window == passes->num_windows - 1 &&
                      filter.place.share == filter.num_passes - 1;
    if (place->next_set == 0) begin_pass(job, set->exchange, place);
    log_pass(passes, &filter);
    if (place->next_set == 0) status = expect_pass(owned, &filter, set->exchange);
    TESS_TRY(tess_comm_agree(job->comm, status));
    TESS_TRY(take_pass(set, &filter, last, samples, bricks));
cleanup:
    return status;
}

/* Makes the passes for one window of planes, from a place in it on. Collective. */
static tess_status run_window(visset *set, const visset_request *request,
                              const tess_brick_list *owned, const imager_passes *passes,
                              imager_place place)
{
    tess_status status = TESS_OK;
    for (; place.share < passes->num_shares[place.window];
         ++place.share, place.next_set = 0) {
        const pass_filter filter = filter_at(set, passes, &place);
        const pass_work work = work_of(&filter);
        tess_samples *samples;
        tess_brick_list *bricks;
        TESS_TRY(collect_pass(set, passes, owned, &place, &samples, &bricks));
        TESS_TRY(grid_pass(set, request, &work, samples, bricks));
    }
cleanup:
    return status;
}

/* Makes the passes for all windows of planes, from a place on. The first pass also sums
 * what outputs need of all samples; a pass that had begun has sums that are added.
 * Collective. */
static tess_status run_windows(visset *set, const visset_request *request,
                               const tess_brick_list *owned,
                               const imager_passes *passes, imager_place from)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    const int64_t first = from.window;
    for (; from.window < passes->num_windows;
         from = (imager_place){.window = from.window + 1})
        if (from.window == first ||
            !tess_steps_window_done(
                job->steps, imager_passes_window(job, passes, (int)from.window)))
            TESS_TRY(run_window(set, request, owned, passes, from));
cleanup:
    return status;
}

/* The numbers on which a bookmark in these passes depends. */
static imager_check check_of(const imager_job *job, const sample_sets *data,
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
                           passes->num_windows, passes->num_reads,
                           job->ranks.num_groups, (int64_t)shares, (int64_t)bricks}};
}

/* Finds the place where passes begin: where a run that is continued was left, else at
 * the first. Devices do not share what they have made with a bookmark, and
 * --dump-stages needs all samples. Collective. */
static tess_status find_place(imager_job *job, const sample_sets *data,
                              const tess_brick_list *owned, const imager_passes *passes,
                              tess_exchange *exchange, imager_sums *sums,
                              imager_place *from)
{
    const imager_check check = check_of(job, data, owned, passes);
    visset_keeper *keeper = job->keeper;
    tess_status status = TESS_OK;
    *from = (imager_place){0, 0, 0};
    if (data->in_memory || job->backend->grid->load || sums->map) return TESS_OK;
    if (keeper) TESS_TRY(keeper->take_pass(keeper, &check, job, exchange, sums, from));
    if (from->window < 0 || from->window >= passes->num_windows || from->share < 0 ||
        from->share >= passes->num_shares[from->window])
        TESS_FAIL(TESS_ERR_INPUT, "checkpoint: a pass that this run does not make");
cleanup:
    return status;
}

tess_status visset_plan_passes(const visset *set, const visset_request *request,
                               const tess_brick_list *owned, imager_passes *passes)
{
    const sample_sets *data = set->data;
    const visset_asked asked = {.samples = visset_kind(set),
                                .less_model = request->less_model,
                                .of_sources = request->of_sources};
    visset_held held = {.kept = data->kept_bytes};
    if (data->in_memory) {
        held.waiting = imager_samples_bytes(&data->cached);
    } else {
        held.waiting = data->largest_set_bytes;
        held.reading = (double)tess_source_block_bytes(data->source);
    }
    return visset_choose_passes(set->job, &held, &asked, owned, passes);
}

tess_status visset_go_over(visset *set, const visset_request *request)
{
    tess_status status = TESS_OK;
    imager_job *job = set->job;
    sample_sets *data = set->data;
    tess_samples *samples;
    tess_brick_list owned = {0}, *bricks;
    imager_passes passes = {0};
    imager_place from;
    TESS_TRY(imager_owned_bricks(job, &set->own_bricks, &owned));
    TESS_TRY(visset_plan_passes(set, request, &owned, &passes));
    TESS_TRY(find_place(job, data, &owned, &passes, set->exchange, &set->sums, &from));
    if (passes.num_reads == 1) {
        /* earlier images of the set have left their samples */
        if (from.next_set == 0) begin_pass(job, set->exchange, &from);
        TESS_TRY(take_all(set, from.next_set, &samples, &bricks));
        TESS_TRY(visset_grid(set, request, samples, bricks));
        goto cleanup;
    }
    for (int k = request->first_target; k < visset_end_target(job, request);
         ++k, from = (imager_place){0}) {
        visset_aim(job, k);
        TESS_TRY(run_windows(set, request, &owned, &passes, from));
    }
cleanup:
    imager_job_aim(job, 0);
    visset_keeper_forget_pass(job);
    imager_passes_free(&passes);
    tess_brick_list_free(&owned);
    return status;
}

/* ---- passes on scratch ---- */

/* Takes the next pass, in the same window of planes or the first of the next one that
 * has passes. */
static void next_pass(const imager_passes *passes, imager_place *place)
{
    if (++place->share < passes->num_shares[place->window]) return;
    do
        *place = (imager_place){.window = place->window + 1};
    while (place->window < passes->num_windows &&
           passes->num_shares[place->window] == 0);
}

/* Frees what collects passes, once all of them are on scratch. Collective. */
static void end_collecting(visset *set)
{
    sample_sets *data = set->data;
    tess_exchange_destroy(set->exchange);
    set->exchange = NULL;
    tess_brick_list_free(&set->own_bricks);
    tess_samples_free(&data->cached);
    tess_samples_free(&data->block);
    tess_spool_destroy(data->spool);
    data->spool = NULL;
    tess_log_info("%s of sorted samples are kept in a scratch file of this rank",
                  tess_mem_text((double)tess_spool_bytes(set->spool)));
}

tess_status visset_spool(visset *set)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    const sample_sets *data = set->data;
    const imager_passes *passes = &set->passes;
    /* residuals take more than the values of sources */
    const visset_request largest = {.less_model = true};
    tess_samples *samples;
    tess_brick_list owned = {0}, *bricks;
    imager_place place = {0};
    status = tess_spool_create(data->scratch, &set->spool);
    TESS_TRY(tess_comm_agree(job->comm, status));
    TESS_TRY(imager_owned_bricks(job, &set->own_bricks, &owned));
    TESS_TRY(visset_plan_passes(set, &largest, &owned, &set->passes));
    for (; place.window < passes->num_windows; next_pass(passes, &place)) {
        TESS_TRY(collect_pass(set, passes, &owned, &place, &samples, &bricks));
        double mark = tess_time_now();
        status = tess_spool_write(set->spool, samples, bricks);
        TESS_TRY(tess_comm_agree(job->comm, status));
        tess_profile_lap(job->profile, TESS_STAGE_READ, &mark);
    }
    end_collecting(set);
cleanup:
    tess_brick_list_free(&owned);
    return status;
}

/* Grids the passes to the target at work, or to all targets if there is one pass.
 * Collective. */
static tess_status grid_spooled_target(visset *set, const visset_request *request)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    const imager_passes *passes = &set->passes;
    tess_samples samples = tess_spool_samples(set->spool);
    tess_brick_list bricks = {0};
    imager_place place = {0};
    for (int64_t k = 0; k < passes->num_reads; ++k, next_pass(passes, &place)) {
        const pass_filter filter = filter_at(set, passes, &place);
        const pass_work work = work_of(&filter);
        double mark = tess_time_now();
        TESS_TRY(tess_steps_look(job->steps));
        status = tess_spool_read(set->spool, k, &samples, &bricks);
        TESS_TRY(tess_comm_agree(job->comm, status));
        tess_profile_lap(job->profile, TESS_STAGE_READ, &mark);
        tess_steps_next_samples(job->steps);
        TESS_TRY(passes->num_reads == 1
                     ? visset_grid(set, request, &samples, &bricks)
                     : grid_pass(set, request, &work, &samples, &bricks));
    }
cleanup:
    tess_samples_free(&samples);
    tess_brick_list_free(&bricks);
    return status;
}

tess_status visset_grid_spooled(visset *set, const visset_request *request)
{
    tess_status status = TESS_OK;
    imager_job *job = set->job;
    if (set->passes.num_reads == 1) return grid_spooled_target(set, request);
    for (int k = request->first_target; k < visset_end_target(job, request); ++k) {
        visset_aim(job, k);
        TESS_TRY(grid_spooled_target(set, request));
    }
cleanup:
    imager_job_aim(job, 0);
    return status;
}
