/* Places points on their cells, and runs a loop over them batch after batch: the loop
 * of the processor's best instruction set. */
#include <math.h>
#include <string.h>

#include "gcf_loops.h"
#include "tess_isa.h"

/* A footprint on one axis. */
typedef struct axis_place {
    int32_t first;  /* cell */
    uint8_t offset; /* of the table's taps */
    bool flip;      /* the taps are read backwards */
} axis_place;

/* Returns false if the footprint does not lie within the cells. */
static bool place_axis(const tess_gcf *gcf, int support, double at, int64_t cells,
                       bool conjugate, axis_place *to)
{
    const int q = gcf->layout.oversampling;
    const double fine = floor(at * q + 0.5);
    if (!(fine >= 0 && fine < (double)q * (double)cells))
        return false; /* or no number */
    int64_t cell = (int64_t)fine / q;
    const int part = (int)((int64_t)fine % q);
    cell += 1 - support / 2;
    if (cell < 0 || cell + support > cells) return false;
    to->first = (int32_t)cell;
    to->flip = gcf->layout.is_uneven ? conjugate : part >= gcf->half_offsets;
    to->offset = (uint8_t)(to->flip ? q - part : part);
    return true;
}

bool gcf_place_point(const tess_gcf *gcf, const tess_gcf_points *points, int64_t point,
                     int64_t nu, int64_t nv, gcf_place *place)
{
    const double w = points->w ? points->w[point] : 0;
    if (!isfinite(w)) return false;
    place->point = point;
    place->plane = (uint16_t)tess_gcf_plane_of(gcf, w);
    place->conjugate = w < 0;
    const int support = gcf->plane[place->plane].support;
    axis_place u, v;
    if (!place_axis(gcf, support, points->u[point], nu, place->conjugate, &u) ||
        !place_axis(gcf, support, points->v[point], nv, place->conjugate, &v))
        return false;
    place->u = u.first;
    place->v = v.first;
    place->offset_u = u.offset;
    place->offset_v = v.offset;
    place->flip_u = u.flip;
    place->flip_v = v.flip;
    return true;
}

void gcf_run_batch(const tess_gcf_plan *plan, const tess_gcf_points *points,
                   const tess_gcf_cells *cells, int64_t first, bool degrid,
                   gcf_function *function, tess_gcf_report *report)
{
    const tess_gcf *gcf = plan->gcf;
    const size_t bytes = gcf_value_bytes(gcf) * (size_t)points->num_pol;
    const int64_t end =
        first + GCF_BATCH < points->count ? first + GCF_BATCH : points->count;
    gcf_place place[GCF_BATCH];
    gcf_job job = {.gcf = gcf,
                   .place = place,
                   .taps = gcf_taps_of(plan),
                   .context = plan->opts.context,
                   .num_pol = points->num_pol,
                   .vis = points->vis,
                   .cells = cells->data,
                   .stride = cells->nv,
                   .pol_stride = cells->nu * cells->nv};
    for (int64_t k = first; k < end; ++k)
        if (gcf_place_point(gcf, points, k, cells->nu, cells->nv, &place[job.count])) {
            const int64_t support = gcf->plane[place[job.count++].plane].support;
            report->point_cells += support * support;
        } else {
            ++report->left_out;
            if (degrid) memset((char *)points->vis + (size_t)k * bytes, 0, bytes);
        }
    function(&job);
}

tess_status gcf_run_in_order(const tess_gcf_plan *plan, const tess_gcf_points *points,
                             const tess_gcf_cells *cells, bool degrid,
                             gcf_function *function, tess_gcf_report *report)
{
    for (int64_t k = 0; k < points->count; k += GCF_BATCH)
        gcf_run_batch(plan, points, cells, k, degrid, function, report);
    report->busy_share = 1;
    return TESS_OK;
}

const gcf_table *gcf_table_best(void)
{
    static const gcf_table *const table[TESS_NUM_ISA] = TESS_ISA_TABLES(gcf_table);
    return table[tess_isa_best()];
}
