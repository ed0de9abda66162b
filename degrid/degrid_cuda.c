/* Degridding by the cuda backend: visibilities stay on the device until all bricks are
 * done, unless they come in sets. */
#include "tess_degrid.h"

#include "tess_device.h"
#include "tess_grid_cuda.h"
#include "tess_projection_cuda.h"
#include "tess_samples.h"

static tess_status cuda_begin(const tess_grid_plan *plan, const tess_samples *samples,
                              const tess_brick_list *bricks, int64_t first, int64_t end,
                              tess_brick_sums *sums)
{
    (void)samples;
    /* strategies of w-projection multiply what lies behind a line's cells by 0 */
    const bool zeroed = plan->projection;
    return cuda_lay_out(plan, bricks, first, end, zeroed, sums);
}

static tess_status degrid_part(const tess_grid_plan *plan, const cuda_part *part,
                               bool psf)
{
    (void)psf;
    if (plan->projection) return projection_cuda_degrid(plan, part);
    return tile_cuda_degrid(plan, part, tess_device_stream());
}

static tess_status cuda_degrid(const tess_grid_plan *plan, tess_samples *samples,
                               const tess_brick_list *bricks, int64_t first,
                               const tess_brick_sums *sums, tess_grid_report *report)
{
    report->busy_share = 1;
    for (int64_t b = first; report->progress && b < first + sums->num_bricks; ++b)
        tess_progress_add(report->progress, (double)bricks->num_vis[b]);
    return cuda_each_set(plan, samples, bricks, sums, false, true, degrid_part);
}

static tess_status cuda_finish(const tess_grid_plan *plan, tess_samples *samples,
                               const tess_brick_list *bricks)
{
    (void)plan;
    return cuda_fetch_vis(samples, bricks);
}

const tess_degrid_ops tess_degrid_ops_cuda = {.begin = cuda_begin,
                                              .degrid = cuda_degrid,
                                              .finish = cuda_finish,
                                              .sums_bytes = cuda_sums_bytes,
                                              .sums_room = cuda_sums_room};

/* ---- the backend ---- */

/* A GPU for every rank. Its parts live in base/, grid/, degrid/ and fft/; this folder
 * sees all. */
extern const tess_lanes tess_device_lanes;
extern const tess_place tess_device_place;
extern const tess_grid_ops tess_grid_ops_cuda;
extern const tess_degrid_ops tess_degrid_ops_cuda;
extern const tess_planes_ops tess_planes_ops_cuda;
extern const tess_clean_ops tess_clean_ops_cuda;
extern const tess_backend tess_backend_cuda;

const tess_backend tess_backend_cuda = {.name = "cuda",
                                        .available = tess_device_present,
                                        .lacks = "no GPU of compute capability 8.0 or "
                                                 "more, or no driver",
                                        .start = tess_device_start,
                                        .share = tess_device_share,
                                        .text = tess_device_text,
                                        .bus_id = tess_device_bus_id,
                                        .room = tess_device_room,
                                        .held = tess_device_held,
                                        .lanes = &tess_device_lanes,
                                        .place = &tess_device_place,
                                        .grid = &tess_grid_ops_cuda,
                                        .degrid = &tess_degrid_ops_cuda,
                                        .planes = &tess_planes_ops_cuda,
                                        .clean = &tess_clean_ops_cuda};
