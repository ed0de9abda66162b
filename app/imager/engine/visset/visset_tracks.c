/* Grids nodes of tracks in place of the samples, where small targets need fewer of them
 * (tess_tracks.h). */
#include "imager_targets.h"
#include "tess_tracks.h"
#include "visset_private.h"

/* The largest error of a pixel's phase factors, as a share of ε. It is that of the
 * corners; the mean over an image is smaller by far. */
static const double SHARE = 0.1;

/* To find tracks takes about as long as to grid so many images. */
enum { FEWEST_TARGETS = 3 };

bool visset_tracks_wanted(const imager_job *job, const visset_request *request,
                          const tess_samples *samples)
{
    const int forced = job->layout->forced.tracks;
    const int num =
        request->num_targets > 0 ? request->num_targets : imager_job_num_targets(job);
    if (forced == 2 || request->of_sources || request->psf) return false;
    if (!job->view.group || job->view.num_groups == 0 || !samples->origin) return false;
    if (job->backend->grid->load || job->plan->projection) return false;
    return forced == 1 || num >= FEWEST_TARGETS;
}

tess_status visset_tracks_make(const imager_job *job, const tess_samples *samples,
                               const tess_brick_list *bricks, tess_tracks **tracks)
{
    const tess_grid_plan *plan = job->plan;
    const tess_geom *geom = &plan->target.geom;
    const tess_tracks_opts opts = {
        .half = {0.5 * (double)plan->field.nx * geom->scale_rad,
                 0.5 * (double)plan->field.ny * tess_geom_scale_m(geom),
                 plan->opts.do_w ? plan->field.nm1_half : 0},
        .tolerance = SHARE * plan->opts.accuracy,
        .num_pol = job->view.num_pol,
        .threads = job->layout->threads};
    return tess_tracks_create(samples, bricks, &opts, tracks);
}

static void factors_of_row(const void *context, const tess_samples *row,
                           double complex *factor)
{
    const imager_job *job = context;
    job->view.to_target(job->view.context, job->targets.aim, row, 0, factor);
}

static bool have_same_factors(const void *context, int32_t origin, int32_t other)
{
    const imager_view *view = &((const imager_job *)context)->view;
    return view->group(view->context, origin) == view->group(view->context, other);
}

void visset_tracks_take(const imager_job *job, tess_tracks *tracks)
{
    const tess_geom_phase *phase = &job->plan->target.phase;
    const tess_tracks_view view = {.factors = factors_of_row,
                                   .same = have_same_factors,
                                   .context = job,
                                   .phase = {phase->l, phase->m, phase->nm1}};
    tess_tracks_take(tracks, &view);
}
