/* Makes what a visibility set grids, in the form in which the backend holds it: the
 * samples themselves, or residuals in their place. */
#include "visset_private.h"

#include <string.h>

#include "imager_targets.h"
#include "imager_window.h"
#include "sample_sets.h"
#include "tess_degrid.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_tracks.h"
#include "visset_nodes.h"

const tess_samples *visset_kind(const visset *set)
{
    return set->data->in_memory ? &set->data->cached : &set->data->block;
}

/* With --reproducible, a brick that several ranks may share is cut into parts whose
 * sums are kept apart, even on one rank. The parts are then added to the planes one by
 * one, in the same order on any number of ranks. */
tess_status visset_cut_bricks(const imager_job *job, tess_brick_list *bricks)
{
    if (!job->layout->reproducible || job->backend->grid->load) return TESS_OK;
    return tess_brick_list_cut(bricks, imager_part_vis(job));
}

visset_held visset_held_with(const visset *set, const tess_samples *samples,
                             const tess_brick_list *bricks)
{
    const bool sent = samples != &set->data->cached;
    return (visset_held){.kept = set->data->kept_bytes,
                         .waiting = sent ? imager_samples_bytes(visset_kind(set)) : 0,
                         .owned = imager_samples_bytes(samples) +
                                  (double)bricks->num_runs * (double)sizeof(tess_run)};
}

bool visset_can_load(const imager_job *job, const tess_samples *samples)
{
    return job->backend->grid->most_vis(job->plan, samples) >= samples->num_vis;
}

tess_status visset_on_all_ranks(const imager_job *job, bool here, bool *everywhere)
{
    int64_t all = here;
    const tess_status status =
        tess_comm_allreduce_i64(imager_team(job), &all, 1, TESS_MIN);
    *everywhere = all != 0;
    return status;
}

tess_status visset_hold(const visset *set, const tess_samples *samples,
                        const tess_brick_list *bricks, tess_brick_list *loaded,
                        const tess_brick_list **held)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    /* images come before samples, and are not there before the set is */
    const double images = set->num_made == 0
                              ? job->memory.device_bytes + job->memory.device_mean_bytes
                              : 0;
    const tess_grid_ops *ops = job->backend->grid;
    const tess_brick_list *list = bricks->own ? bricks : loaded;
    bool fits;
    *held = NULL;
    if (!ops->holds || job->view.num_pol > 0) return TESS_OK;
    TESS_TRY(
        visset_on_all_ranks(job, bricks->own || visset_can_load(job, samples), &fits));
    if (!fits) return TESS_OK;
    if (!bricks->own) status = ops->load(job->plan, samples, true, loaded);
    TESS_TRY(tess_comm_agree(imager_team(job), status));
    TESS_TRY(visset_on_all_ranks(
        job, ops->holds(list) && residual_has_room(job, samples, list, images), &fits));
    if (fits)
        *held = list;
    else
        tess_brick_list_free(loaded);
cleanup:
    return status;
}

/* Brings samples that the backend has made to host memory. Local. */
static tess_status bring_home(visset *set)
{
    tess_status status = TESS_OK;
    tess_samples *samples = &set->data->cached;
    tess_samples home = tess_samples_like(samples);
    TESS_TRY(samples->resident->bring_home(samples->resident, &home));
    tess_brick_list_free(set->bricks);
    tess_samples_free(samples);
    *samples = home;
    home = (tess_samples){0};
cleanup:
    tess_samples_free(&home);
    return status;
}

tess_status visset_leave_to_host(visset *set)
{
    tess_status status = TESS_OK;
    imager_job *job = set->job;
    if (set->samples->resident) status = bring_home(set);
    TESS_TRY(tess_comm_agree(imager_team(job), status));
    if (!job->told.copies)
        tess_log_info("the GPU has no room for the visibilities beside the images: "
                      "they stay in host memory, and are copied for each image");
    job->told.copies = true;
cleanup:
    return status;
}

/* Makes residuals: in the backend's memory, where the samples are, if there is room.
 * The prediction of a predictor needs no order of the samples. Collective. */
static tess_status make_residuals(visset *set, const visset_request *request,
                                  const tess_samples *samples, tess_brick_list *bricks,
                                  int planes_of_model, visset_view *view)
{
    tess_status status = TESS_OK;
    imager_job *job = set->job;
    const tess_brick_list *held = NULL;
    if (!request->subtract)
        TESS_TRY(visset_hold(set, samples, bricks, &view->loaded, &held));
    if (!held && samples->resident) TESS_TRY(visset_leave_to_host(set));
    /* a device has no room for samples twice */
    if (!held && job->backend->grid->load) tess_brick_list_free(bricks);
    const residual_source from = {samples, held ? held : bricks, held != NULL,
                                  request->first_target,
                                  visset_end_target(job, request)};
    TESS_TRY(residual_make(job, request->subtract, &from, set->data->vis_scale,
                           planes_of_model, &view->residual));
    view->samples = &view->residual.samples;
    if (held) view->bricks = &view->residual.held;
cleanup:
    return status;
}

/* Nodes of each brick by themselves. Local. */
static tess_status keep_nodes_in_bricks(const imager_job *job, visset_view *view)
{
    tess_status status = TESS_OK;
    TESS_TRY(visset_tracks_make(job, view->apart, view->bricks, &view->tracks));
    view->samples = tess_tracks_nodes(view->tracks);
    view->bricks = tess_tracks_bricks(view->tracks);
cleanup:
    return status;
}

/* Whether the blocks of planes that nodes lie in have bricks of samples, too: others
 * may not be transformed. Local. */
static tess_status find_blocks(const tess_grid_plan *plan, const tess_brick_list *nodes,
                               const tess_brick_list *bricks, bool *have)
{
    tess_status status = TESS_OK;
    const int64_t tiles = plan->tiles_u * plan->tiles_v;
    bool *occupied = tess_alloc_zero(plan->num_blocks, sizeof *occupied);
    if (!occupied) TESS_FAIL(TESS_ERR_ALLOC, "blocks of planes");
    for (int64_t k = 0; k < bricks->num_bricks; ++k)
        occupied[bricks->key[k] / tiles] = true;
    *have = true;
    for (int64_t k = 0; k < nodes->num_bricks; ++k)
        *have = *have && occupied[nodes->key[k] / tiles];
cleanup:
    tess_free(occupied);
    return status;
}

/* Prepares a view of nodes of tracks. They stay in their bricks with --reproducible, so
 * that they are the same on any number of ranks, and where planes come in several
 * windows, so that they are the same in each of them. Local. */
static tess_status keep_nodes(const visset *set, visset_view *view)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    bool have = true;
    if (job->layout->reproducible || set->passes.num_windows > 1)
        return keep_nodes_in_bricks(job, view);
    TESS_TRY(visset_tracks_make(job, view->apart, NULL, &view->tracks));
    view->samples = tess_tracks_nodes(view->tracks);
    TESS_TRY(tess_brick_list_make(job->plan, view->samples, false, &view->own));
    TESS_TRY(find_blocks(job->plan, &view->own, view->bricks, &have));
    if (!have) {
        tess_brick_list_free(&view->own);
        tess_tracks_destroy(view->tracks);
        view->tracks = NULL;
        return keep_nodes_in_bricks(job, view);
    }
    view->bricks = &view->own;
cleanup:
    return status;
}

/* Whether the backend has room for what a target takes of samples that it holds, and
 * for their Jones matrices, beside as much for brick sums. Local. */
static bool has_room_to_take(const imager_job *job, const tess_samples *samples,
                             const tess_brick_list *held, const tess_take *take)
{
    const double room = (double)job->backend->degrid->sums_room(job->plan, held) -
                        (double)tess_planes_more_bytes(job->planes);
    return job->backend->grid->holds(held) &&
           room >= 2 * visset_mixed_bytes(job, samples) + (double)tess_take_bytes(take);
}

/* Has a backend with memory of its own hold the correlations of all samples, of which
 * targets then take their views there, if every rank has room. It may hold their bricks
 * already. Collective. */
static tess_status hold_apart(const imager_job *job, const tess_brick_list *bricks,
                              visset_view *view)
{
    tess_status status = TESS_OK;
    const tess_grid_ops *ops = job->backend->grid;
    const tess_samples *samples = view->apart;
    const tess_brick_list *held = bricks->own ? bricks : &view->kept;
    tess_take take = {0};
    bool fits = bricks->own || visset_can_load(job, samples);
    if (!job->view.take || job->plan->projection || view->with_gains) return TESS_OK;
    /* the backend rounds otherwise, and has room or not by the number of ranks */
    if (job->layout->reproducible) return TESS_OK;
    if (job->view.prepare) job->view.prepare(job->view.context, job->targets.aim);
    fits = fits && job->view.take(job->view.context, job->targets.aim, &take);
    TESS_TRY(visset_on_all_ranks(job, fits, &fits));
    if (!fits) return TESS_OK;
    if (!bricks->own) status = ops->load(job->plan, samples, true, &view->kept);
    TESS_TRY(tess_comm_agree(imager_team(job), status));
    fits = has_room_to_take(job, samples, held, &take);
    TESS_TRY(visset_on_all_ranks(job, fits, &fits));
    if (!fits) {
        tess_brick_list_free(&view->kept);
        return TESS_OK;
    }
    status = ops->derive(held, job->view.num_pol, &view->loaded);
    TESS_TRY(tess_comm_agree(imager_team(job), status));
    view->held = held;
cleanup:
    return status;
}

/* Makes what the target at work takes of the samples that the backend holds, or a
 * source in their place. Local. */
static tess_status take_held(const imager_job *job, visset_view *view)
{
    tess_status status = TESS_OK;
    tess_take take;
    if (view->of_sources) {
        const tess_geom_phase phase = imager_view_phase(job);
        return job->backend->grid->set_source(&phase, &view->loaded);
    }
    if (!job->view.take(job->view.context, job->targets.aim, &take))
        TESS_FAIL(TESS_ERR_INTERNAL, "gains of image %d", job->targets.aim);
    TESS_TRY(job->backend->grid->take(&take, view->held, &view->loaded));
cleanup:
    return status;
}

/* Prepares a view of samples of which each target takes its own. Collective. */
static tess_status keep_apart(visset *set, const visset_request *request,
                              tess_brick_list *bricks, visset_view *view)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    tess_samples *mixed = &view->mixed;
    view->apart = view->samples;
    if (visset_tracks_wanted(job, request, view->samples))
        return tess_comm_agree(imager_team(job), keep_nodes(set, view));
    view->all = view->bricks;
    if (job->view.counts && !view->of_sources) {
        if (!job->backend->grid->load) return TESS_OK;
        tess_brick_list_free(bricks);
        view->bricks = &view->loaded;
        return TESS_OK;
    }
    if (job->backend->grid->load) {
        TESS_TRY(hold_apart(job, bricks, view));
        if (!view->held && view->apart->resident) TESS_TRY(visset_leave_to_host(set));
        if (!view->held) tess_brick_list_free(bricks);
        view->bricks = &view->loaded;
    }
    *mixed = *view->samples; /* rows, positions and weights are borrowed */
    mixed->num_pol = job->view.num_pol;
    mixed->vis = NULL;
    view->samples = mixed;
    if (view->held) return TESS_OK;
    mixed->vis = tess_alloc(mixed->num_vis * mixed->num_pol, mixed->is_double ? 16 : 8);
    TESS_TRY(tess_comm_agree(imager_team(job), mixed->vis ? TESS_OK : TESS_ERR_ALLOC));
cleanup:
    return status;
}

static void free_mixed(visset_view *view)
{
    if (view->is_copy)
        tess_samples_free(&view->mixed);
    else
        tess_free(view->mixed.vis);
    view->mixed = (tess_samples){0};
}

/* Takes the rows of the target at work: their bricks, or copies of them for a backend
 * that sorts. Local. */
static tess_status take_rows(const imager_job *job, visset_view *view)
{
    tess_status status = TESS_OK;
    const tess_samples *from = view->apart;
    bool *wanted = NULL;
    if (job->backend->grid->load) {
        free_mixed(view);
        view->mixed = tess_samples_like(from);
        view->is_copy = true;
        view->samples = &view->mixed;
        return imager_view_copy(job, from, &view->mixed);
    }
    wanted = tess_alloc(from->num_rows, sizeof *wanted);
    if (!wanted) TESS_FAIL(TESS_ERR_ALLOC, "rows of a target");
    imager_view_want(job, from, wanted);
    tess_brick_list_free(&view->own);
    TESS_TRY(tess_brick_list_pick(view->all, wanted, &view->own));
    view->bricks = &view->own;
cleanup:
    tess_free(wanted);
    return status;
}

/* Collective in the job's team. */
static tess_status take_view(imager_job *job, int end_target, visset_view *view)
{
    tess_status status = TESS_OK;
    if (view->tracks) {
        visset_tracks_take(job, end_target, view);
        return TESS_OK;
    }
    if (job->view.prepare) job->view.prepare(job->view.context, job->targets.aim);
    if (view->held)
        return tess_comm_agree(imager_team(job), take_held(job, view));
    else if (view->of_sources)
        status = imager_view_source(job, view->with_gains, &view->mixed);
    else if (job->view.counts)
        status = take_rows(job, view);
    else
        status = imager_view_apply(job, job->view.to_target, view->apart, NULL, 1,
                                   &view->mixed);
    if (status == TESS_OK && job->backend->grid->load) {
        tess_brick_list_free(&view->loaded);
        status = job->backend->grid->load(job->plan, &view->mixed, true, &view->loaded);
    }
    return tess_comm_agree(imager_team(job), status);
}

tess_status visset_view_take(imager_job *job, int end_target, visset_view *view)
{
    tess_status status = TESS_OK;
    double mark = tess_time_now();
    if (!view->apart) return TESS_OK;
    status = take_view(job, end_target, view);
    tess_profile_lap(job->profile, TESS_STAGE_GRID, &mark);
    return status;
}

tess_status visset_view_make(visset *set, const visset_request *request,
                             const tess_samples *samples, tess_brick_list *bricks,
                             int planes_of_model, visset_view *view)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    const bool loads = job->backend->grid->load != NULL;
    *view = (visset_view){.samples = samples,
                          .bricks = bricks,
                          .of_sources = request->of_sources,
                          .with_gains = request->with_gains};
    if (request->less_model || request->subtract)
        TESS_TRY(make_residuals(set, request, samples, bricks, planes_of_model, view));
    if (job->view.num_pol > 0) {
        double mark = tess_time_now();
        TESS_TRY(keep_apart(set, request, bricks, view));
        tess_profile_lap(job->profile, TESS_STAGE_SORT, &mark);
        return TESS_OK;
    }
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
    residual_free(&view->residual);      /* of what is loaded */
    tess_brick_list_free(&view->loaded); /* of what is held */
    tess_brick_list_free(&view->kept);
    tess_tracks_destroy(view->tracks);
    view->tracks = NULL;
    tess_brick_list_free(&view->own);
    free_mixed(view);
}

int visset_end_target(const imager_job *job, const visset_request *request)
{
    return request->num_targets > 0 ? request->first_target + request->num_targets
                                    : imager_job_num_targets(job);
}

/* Grids the samples of a view to the targets of a request, one after the other.
 * Collective. */
static tess_status grid_view(imager_job *job, visset_view *view, int window,
                             const visset_request *request)
{
    tess_status status = TESS_OK;
    const bool psf = request->psf;
    for (int k = request->first_target; k < visset_end_target(job, request); ++k) {
        visset_aim(job, k);
        TESS_TRY(visset_view_take(job, visset_end_target(job, request), view));
        TESS_TRY(window > 0
                     ? tess_steps_image_by_planes(job->steps, window, view->samples,
                                                  view->bricks, psf)
                     : tess_steps_image(job->steps, 0, tess_steps_count(job->steps),
                                        true, view->samples, view->bricks, psf));
    }
cleanup:
    imager_job_aim(job, 0);
    return status;
}

void visset_aim(imager_job *job, int target)
{
    imager_job_aim(job, target);
    if (target > 0) tess_steps_restart(job->steps);
}

tess_status visset_grid(visset *set, const visset_request *request,
                        const tess_samples *samples, tess_brick_list *bricks)
{
    tess_status status = TESS_OK;
    imager_job *job = set->job;
    visset_view view = {0};
    visset_way way;
    const visset_held held = visset_held_with(set, samples, bricks);
    const visset_asked asked = {.samples = samples,
                                .bricks = bricks,
                                .less_model = request->less_model,
                                .less_early = request->subtract != NULL,
                                .of_sources = request->of_sources};
    if (job->ranks.num_outputs <= 1) tess_mem_trim(); /* else the next takes it again */
    TESS_TRY(visset_choose_way(job, &held, &asked, bricks, &way));
    TESS_TRY(imager_tell_sums(job, bricks, way.planes, way.bytes));
    if (way.residual.in_batches)
        return residual_image(job, samples, bricks, set->data->vis_scale, request->psf);
    TESS_TRY(
        visset_view_make(set, request, samples, bricks, way.residual.planes, &view));
    TESS_TRY(grid_view(job, &view, way.planes, request));
cleanup:
    visset_view_free(&view);
    return status;
}
