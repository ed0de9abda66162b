/* Works on pieces of w-projection on the CPU: the visibilities of a brick become points
 * of its sum, which the strategies of gcf/ work on. */
#include <math.h>

#include "locate.h"
#include "projection_plan.h"
#include "tess_mem.h"
#include "tess_projection_pieces.h"
#include "tess_real.h"

/* The visibilities of a piece as points of its brick's sum. */
typedef struct piece_points {
    int64_t count;
    double *u, *v, *w;
    double *phase;   /* [count][2] */
    int64_t *sample; /* [count] index */
    char *conjugate; /* [count] */
    void *vis;       /* [count][pols together] */
} piece_points;

static void points_free(piece_points *points)
{
    tess_free(points->u);
    tess_free(points->sample);
    tess_free(points->conjugate);
    tess_free(points->vis);
}

static tess_status points_alloc(int64_t count, bool is_double, piece_points *points)
{
    tess_status status = TESS_OK;
    points->u = tess_alloc(5 * count, sizeof *points->u);
    points->sample = tess_alloc(count, sizeof *points->sample);
    points->conjugate = tess_alloc(count, 1);
    points->vis = tess_alloc(count * TESS_GCF_MAX_POL, is_double ? 16 : 8);
    if (!points->u || !points->sample || !points->conjugate || !points->vis)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory to place %lld visibilities",
                  (long long)count);
    points->v = points->u + count;
    points->w = points->v + count;
    points->phase = points->w + count;
cleanup:
    return status;
}

/* Returns the coordinate in the sum of a brick that begins at `first`. The footprint
 * starts in the brick's tile or, by rounding, just outside of it. */
static double within(double coordinate, int footprint, int64_t first, int tile,
                     int64_t cells)
{
    const double period = (double)cells, half = 0.5 * footprint;
    double start = coordinate - half - (double)first;
    start -= period * floor(start / period);
    if (start > 0.5 * (period + tile)) start -= period;
    return start + half;
}

/* Makes the points of a piece: their places, their phases, and the samples that they
 * stand for. */
static void place_points(const tile_job *job, const tess_brick_list *bricks,
                         const tile_piece *piece, piece_points *points)
{
    const tess_grid_plan *plan = job->plan;
    int64_t run = piece->run, skip = piece->skip, left = piece->count;
    points->count = 0;
    for (; left > 0; ++run, skip = 0) {
        const tess_run *at = &bricks->run[run];
        const int64_t rest = at->count - skip, count = rest < left ? rest : left;
        const tess_row_scale row =
            tess_row_scale_of(plan, job->samples.uvw_m + 3 * (int64_t)at->row);
        for (int64_t c = skip; c < skip + count; ++c) {
            const double inv = job->samples.inv_lambda[at->chan + c];
            const int64_t k = points->count++;
            points->u[k] =
                within(row.a * inv, plan->footprint, job->cell_u, plan->tile, plan->nu);
            points->v[k] =
                within(row.b * inv, plan->footprint, job->cell_v, plan->tile, plan->nv);
            points->w[k] = row.w * inv;
            projection_phase(plan->projection, points->w[k], points->phase + 2 * k);
            points->sample[k] = at->first + c;
            points->conjugate[k] = (char)row.conjugate;
        }
        left -= count;
    }
}

/* Writes the weighted visibilities (or the weights, for a PSF) of polarisation `pol` of
 * the sums, multiplied by their phases, to out[k · step]. */
static void load_values(const tile_job *job, const piece_points *points, int pol,
                        int together, int place)
{
    const tile_samples *samples = &job->samples;
    const bool full = samples->is_double, ones = pol >= samples->num_pol;
    const int which = ones ? pol - samples->num_pol : pol;
    const int weight = samples->num_weight == 1 ? 0 : which;
    for (int64_t k = 0; k < points->count; ++k) {
        const int64_t sample = points->sample[k];
        const double w =
            tess_real_at(samples->weight, full, sample * samples->num_weight + weight);
        const int64_t from = 2 * (sample * samples->num_pol + which);
        double re = w, im = 0;
        if (!ones) {
            re = w * tess_real_at(samples->vis, full, from);
            im = w * tess_real_at(samples->vis, full, from + 1);
            if (points->conjugate[k]) im = -im;
        }
        const double *phase = points->phase + 2 * k;
        const int64_t to = 2 * (k * together + place);
        tess_real_set(points->vis, full, to, re * phase[0] - im * phase[1]);
        tess_real_set(points->vis, full, to + 1, re * phase[1] + im * phase[0]);
    }
}

/* Undoes the phases of predicted values, and writes these to the samples. */
static void store_values(const tile_job *job, const piece_points *points, int pol,
                         int together, int place)
{
    const bool full = job->samples.is_double;
    for (int64_t k = 0; k < points->count; ++k) {
        const int64_t from = 2 * (k * together + place);
        const double re = tess_real_at(points->vis, full, from);
        const double im = tess_real_at(points->vis, full, from + 1);
        const double *phase = points->phase + 2 * k;
        const double turned = im * phase[0] - re * phase[1];
        const int64_t to = 2 * (points->sample[k] * job->num_pol + pol);
        tess_real_set(job->vis_out, full, to, re * phase[0] + im * phase[1]);
        tess_real_set(job->vis_out, full, to + 1,
                      points->conjugate[k] ? -turned : turned);
    }
}

/* Works on a piece, with as many polarisations at a time as the strategies take. */
static tess_status run_piece(const tile_job *job, const tess_brick_list *bricks,
                             const tile_piece *piece, bool degrid)
{
    tess_status status = TESS_OK;
    const tess_grid_plan *plan = job->plan;
    const int64_t lines = tess_grid_brick_lines(plan);
    const int64_t stride = tess_grid_brick_stride(plan);
    piece_points own = {0};
    TESS_TRY(points_alloc(piece->count, plan->is_double, &own));
    place_points(job, bricks, piece, &own);
    for (int pol = 0, together; pol < job->num_pol; pol += together) {
        const int left = job->num_pol - pol;
        together = left >= 4 ? 4 : left >= 2 ? 2 : 1;
        const tess_gcf_points points = {.count = own.count,
                                        .u = own.u,
                                        .v = own.v,
                                        .w = own.w,
                                        .vis = own.vis,
                                        .num_pol = together};
        tess_gcf_cells cells = {.nu = lines,
                                .nv = stride,
                                .data =
                                    (char *)job->data +
                                    pol * lines * stride * (plan->is_double ? 16 : 8)};
        for (int k = 0; k < together && !degrid; ++k)
            load_values(job, &own, pol + k, together, k);
        TESS_TRY(degrid
                     ? tess_gcf_degrid(plan->projection->gridder, &cells, &points, NULL)
                     : tess_gcf_grid(plan->projection->gridder, &points, &cells, NULL));
        for (int k = 0; k < together && degrid; ++k)
            store_values(job, &own, pol + k, together, k);
    }
cleanup:
    points_free(&own);
    return status;
}

static void note_failure(tess_status status, tess_status *failed)
{
    if (status == TESS_OK) return;
#pragma omp critical(tess_projection_failed)
    *failed = status;
}

void projection_grid(const tile_job *job, const tess_brick_list *bricks,
                     const tile_piece *piece, tess_status *failed)
{
    note_failure(run_piece(job, bricks, piece, false), failed);
}

void projection_degrid(const tile_job *job, const tess_brick_list *bricks,
                       const tile_piece *piece, tess_status *failed)
{
    note_failure(run_piece(job, bricks, piece, true), failed);
}
