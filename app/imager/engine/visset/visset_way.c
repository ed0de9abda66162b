/* Decides how a visibility set is gridded, for the run and for its plan. */
#include "visset_way.h"

#include <math.h>

#include "imager_targets.h"
#include "imager_window.h"
#include "visset_nodes.h"

double visset_beside_sums(const imager_job *job, const visset_held *held)
{
    return imager_base_bytes(job) + imager_planes_bytes(job) + held->kept +
           held->waiting + held->owned;
}

static double value_bytes(const tess_samples *samples)
{
    return samples->is_double ? 16 : 8;
}

/* Whether nodes of tracks are gridded in place of these samples. */
static bool asks_tracks(const imager_job *job, const visset_asked *asked)
{
    return !asked->of_sources && asked->samples->origins &&
           visset_has_tracks(job, imager_job_num_targets(job));
}

double visset_taken_bytes(const imager_job *job, const visset_asked *asked)
{
    const bool picks_rows = job->view.counts && !job->backend->grid->load;
    /* rows that are picked keep their values */
    if (picks_rows && !asked->of_sources) return 0;
    return asks_tracks(job, asked)
               ? visset_tracks_bytes(job, asked->samples, asked->bricks)
               : visset_mixed_bytes(job, asked->samples);
}

tess_status visset_choose_way(imager_job *job, const visset_held *held,
                              const visset_asked *asked, const tess_brick_list *bricks,
                              visset_way *way)
{
    tess_status status = TESS_OK;
    const tess_samples *samples = asked->samples;
    const double other = visset_beside_sums(job, held);
    *way = (visset_way){0};
    if (asked->less_early)
        way->residual.bytes =
            (double)samples->num_vis * samples->num_pol * value_bytes(samples);
    if (asked->less_model)
        TESS_TRY(residual_choose(job, samples, bricks, other, &way->residual));
    way->bytes = other + way->residual.bytes;
    if (way->residual.in_batches) return TESS_OK;
    if (!samples->resident) way->bytes += visset_taken_bytes(job, asked);
    TESS_TRY(imager_plane_window(job, way->bytes, bricks, &way->planes));
cleanup:
    return status;
}

const tess_samples *visset_limited(const imager_job *job, const tess_samples *samples)
{
    const bool any = !job->layout->reproducible || !job->backend->grid->most_vis;
    return any ? NULL : samples;
}

/* Adds what targets take of a visibility or, of tracks, of a run in these bricks. */
static void add_taken(const imager_job *job, const visset_asked *asked,
                      const tess_brick_list *owned, imager_item_bytes *each)
{
    tess_samples of_all = *asked->samples, one = *asked->samples;
    visset_asked taken = *asked;
    const bool has_tracks = asks_tracks(job, asked);
    of_all.num_rows = owned->num_runs;
    of_all.num_vis = 0;
    for (int64_t k = 0; k < owned->num_bricks; ++k)
        of_all.num_vis += owned->num_vis[k];
    one.num_vis = 1;
    taken.samples = has_tracks ? &of_all : &one;
    taken.bricks = owned;
    const double bytes = visset_taken_bytes(job, &taken);
    if (has_tracks)
        each->row += bytes / fmax((double)owned->num_runs, 1);
    else
        each->vis += bytes;
}

tess_status visset_choose_passes(const imager_job *job, const visset_held *held,
                                 const visset_asked *asked,
                                 const tess_brick_list *owned, imager_passes *passes)
{
    tess_samples one = *asked->samples;
    imager_item_bytes each = {(double)tess_samples_vis_bytes(&one),
                              (double)tess_samples_row_bytes(&one)};
    one.num_vis = 1;
    if (asked->less_model) each.vis += residual_bytes(job, &one);
    add_taken(job, asked, owned, &each);
    return imager_passes_choose(
        job, owned, each,
        imager_held_bytes(job, held->kept + held->waiting, held->reading),
        visset_limited(job, asked->samples), passes);
}
