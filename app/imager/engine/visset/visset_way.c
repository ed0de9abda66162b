/* Decides how a visibility set is gridded, for the run and for its plan. */
#include "visset_way.h"

#include <math.h>

#include "imager_window.h"

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
    if (!samples->resident) way->bytes += visset_mixed_bytes(job, samples);
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
    imager_item_bytes each = {(double)tess_samples_vis_bytes(&one),
                              (double)tess_samples_row_bytes(&one)};
    one.num_vis = 1;
    if (asked->less_model) each.vis += residual_bytes(job, &one);
    each.vis += visset_mixed_bytes(job, &one);
    return imager_passes_choose(
        job, owned, each,
        imager_held_bytes(job, held->kept + held->waiting, held->reading),
        visset_limited(job, asked->samples), passes);
}
