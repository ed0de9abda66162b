/* Decides how a visibility set is gridded, for the run and for its plan. */
#include "visset_way.h"

#include <math.h>

#include "imager_targets.h"
#include "imager_window.h"

/* To find tracks takes about as long as to grid so many images. */
enum { FEWEST_TARGETS = 3 };

/* Bytes for a row while tracks are found: its number, in the order of time and in its
 * track, and whether its factors change. A node takes so many more as it is found
 * (find_share), in arrays that grow to twice their size. */
static const double TRACK_ROW_BYTES = 12, FOUND_NODE_BYTES = 48;

/* Nodes for each row. Their number is not known before tracks are found: .05 to .15 of
 * short tracks were measured, and .5 of long ones of few large images. In bricks they
 * are more: .27 to .9. */
static const double SHARE_OF_NODES = 0.25, SHARE_IN_BRICKS = 0.75;

double visset_beside_sums(const imager_job *job, const visset_held *held)
{
    return imager_base_bytes(job) + imager_planes_bytes(job) + held->kept +
           held->waiting + held->owned;
}

static double value_bytes(const tess_samples *samples)
{
    return samples->is_double ? 16 : 8;
}

double visset_mixed_bytes(const imager_job *job, const tess_samples *samples)
{
    return (double)samples->num_vis * job->view.num_pol * value_bytes(samples);
}

bool visset_has_tracks(const imager_job *job, int num_targets)
{
    const int forced = job->layout->forced.tracks;
    if (forced == 2 || !job->view.group || job->view.num_groups == 0) return false;
    if (job->backend->grid->load || job->plan->projection) return false;
    return forced == 1 || num_targets >= FEWEST_TARGETS;
}

/* Bytes for a row that may become a node. */
static double track_row_bytes(const imager_job *job, const tess_samples *samples)
{
    if (!visset_has_tracks(job, imager_job_num_targets(job))) return 0;
    const double share = job->layout->reproducible ? SHARE_IN_BRICKS : SHARE_OF_NODES;
    return TRACK_ROW_BYTES + share * ((double)tess_samples_row_bytes(samples) +
                                      (double)sizeof(tess_run) + FOUND_NODE_BYTES);
}

double visset_taken_bytes(const imager_job *job, const visset_asked *asked)
{
    const tess_samples *samples = asked->samples;
    const bool picks_rows = job->view.counts && !job->backend->grid->load;
    /* rows that are picked keep their values */
    if (picks_rows && !asked->of_sources) return 0;
    return visset_mixed_bytes(job, samples) +
           track_row_bytes(job, samples) * (double)samples->num_rows;
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

tess_status visset_choose_passes(const imager_job *job, const visset_held *held,
                                 const visset_asked *asked,
                                 const tess_brick_list *owned, imager_passes *passes)
{
    tess_samples one = *asked->samples;
    visset_asked of_one = *asked;
    imager_item_bytes each = {(double)tess_samples_vis_bytes(&one),
                              (double)tess_samples_row_bytes(&one)};
    one.num_vis = 1;
    if (asked->less_model) each.vis += residual_bytes(job, &one);
    one.num_rows = 0;
    of_one.samples = &one;
    each.vis += visset_taken_bytes(job, &of_one);
    each.row += track_row_bytes(job, &one);
    return imager_passes_choose(
        job, owned, each,
        imager_held_bytes(job, held->kept + held->waiting, held->reading),
        visset_limited(job, asked->samples), passes);
}
