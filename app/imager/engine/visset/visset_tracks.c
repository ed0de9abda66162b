/* Grids nodes of tracks in place of the samples, where small targets need fewer of them
 * (tess_tracks.h). */
#include "imager_targets.h"
#include "tess_tracks.h"
#include "visset_nodes.h"
#include "visset_private.h"

bool visset_tracks_wanted(const imager_job *job, const visset_request *request,
                          const tess_samples *samples)
{
    const int num =
        request->num_targets > 0 ? request->num_targets : imager_job_num_targets(job);
    return !request->of_sources && !request->psf && samples->origins &&
           visset_has_tracks(job, num);
}

tess_status visset_tracks_make(const imager_job *job, const tess_samples *samples,
                               const tess_brick_list *bricks, tess_tracks **tracks)
{
    const tess_tracks_opts opts = visset_tracks_opts(job);
    return tess_tracks_create(samples, bricks, &opts, tracks);
}

static void factors_of_row(const void *context, int image, const tess_samples *row,
                           double complex *factor)
{
    const imager_view *view = &((const imager_job *)context)->view;
    view->to_target(view->context, image, row, 0, factor);
}

/* What a target takes. */
static tess_tracks_view view_of(const imager_job *job, int target)
{
    const tess_geom_phase *phase = &imager_job_plan_of(job, target)->target.phase;
    return (tess_tracks_view){.factors = factors_of_row,
                              .context = job,
                              .image = target,
                              .phase = {phase->l, phase->m, phase->nm1}};
}

void visset_tracks_take(const imager_job *job, int end_target, visset_view *of)
{
    const int target = job->targets.aim, left = end_target - target;
    const int most = tess_tracks_images(of->tracks), num = left < most ? left : most;
    tess_tracks_view view[TESS_TRACKS_IMAGES];
    if (target >= of->taken_target && target < of->taken_target + of->num_taken) {
        tess_tracks_show(of->tracks, target - of->taken_target);
        return;
    }
    for (int k = 0; k < num; ++k) {
        view[k] = view_of(job, target + k);
        if (job->view.prepare) job->view.prepare(job->view.context, target + k);
    }
    tess_tracks_take(of->tracks, view, num);
    tess_tracks_show(of->tracks, 0);
    of->taken_target = target;
    of->num_taken = num;
}
