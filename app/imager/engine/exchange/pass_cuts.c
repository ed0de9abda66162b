/* Cuts the bricks into passes over data if a device must take all samples of a pass at
 * once. A pass takes whole w-steps, because sums of bricks are then held no longer than
 * without passes. Only a step whose samples are too many takes several passes. All
 * ranks cut alike, by the rank that has most of a step, so that no image depends on the
 * cuts: sums are added to planes in the order of bricks, whichever pass made them. */
#include "imager_passes.h"

#include <math.h>

#include "tess_mem.h"

/* A step is cut into no more passes than this. */
enum { MOST_SHARES = 1000 };

/* The bricks to be cut. */
typedef struct pass_cutter {
    const imager_job *job;
    const tess_brick_list *owned;
    const double *fill;   /* [num_bricks] share of the room that a brick takes */
    double largest_brick; /* largest of these shares on any rank */
} pass_cutter;

static int step_of(const pass_cutter *cutter, int64_t brick)
{
    int64_t block, tile_u, tile_v;
    tess_grid_brick_of_key(cutter->job->plan, cutter->owned->key[brick], &block,
                           &tile_u, &tile_v);
    return tess_steps_of_block(cutter->job->steps, block);
}

/* Sets step_fill[step] on the rank that has most of the step. Collective. */
static tess_status fill_steps(pass_cutter *cutter, double *step_fill)
{
    tess_status status = TESS_OK;
    tess_comm *comm = imager_team(cutter->job);
    for (int64_t k = 0; k < cutter->owned->num_bricks; ++k) {
        step_fill[step_of(cutter, k)] += cutter->fill[k];
        cutter->largest_brick = fmax(cutter->largest_brick, cutter->fill[k]);
    }
    TESS_TRY(tess_comm_allreduce_f64(comm, &cutter->largest_brick, 1, TESS_MAX));
    TESS_TRY(tess_comm_allreduce_f64(comm, step_fill,
                                     tess_steps_count(cutter->job->steps), TESS_MAX));
cleanup:
    return status;
}

/* Finds the largest fill of the shares of a step, on any rank. share[shares]: work
 * memory. Collective. */
static tess_status find_largest(const pass_cutter *cutter, int step, int shares,
                                double *share, double *largest)
{
    *largest = 0;
    for (int k = 0; k < shares; ++k)
        share[k] = 0;
    for (int64_t k = 0; k < cutter->owned->num_bricks; ++k)
        if (step_of(cutter, k) == step)
            share[cutter->owned->key[k] % shares] += cutter->fill[k];
    for (int k = 0; k < shares; ++k)
        *largest = fmax(*largest, share[k]);
    return tess_comm_allreduce_f64(imager_team(cutter->job), largest, 1, TESS_MAX);
}

/* A brick is never cut. Bricks that are nearly as large as the room share a pass with
 * small ones. */
static const double BESIDE_BRICK = 1.25;

static double limit_of(const pass_cutter *cutter)
{
    return fmax(1, BESIDE_BRICK * cutter->largest_brick);
}

/* Chooses the number of passes for a step that fills the room `step_fill` times.
 * Collective. */
static tess_status choose_shares(const pass_cutter *cutter, int step, double step_fill,
                                 double *share, int *shares)
{
    tess_status status = TESS_OK;
    const double limit = limit_of(cutter);
    double largest = step_fill;
    *shares = 1;
    for (double wanted = ceil(step_fill / limit);
         largest > limit && *shares < MOST_SHARES; wanted = *shares * 1.125 + 1) {
        *shares = wanted < MOST_SHARES ? (int)wanted : MOST_SHARES;
        TESS_TRY(find_largest(cutter, step, *shares, share, &largest));
    }
cleanup:
    return status;
}

/* Lists the passes; returns their number. `cut` may be NULL. */
static int list_cuts(double limit, int num_steps, const double *step_fill,
                     const int *shares, imager_cut *cut)
{
    int count = 0, first = 0;
    double fill = 0;
    for (int s = 0; s < num_steps; ++s) {
        const bool fits = shares[s] == 1 && fill + step_fill[s] <= limit;
        if (!fits && s > first) {
            if (cut) cut[count] = (imager_cut){first, s, 0, 1};
            ++count;
        }
        if (!fits) {
            first = s;
            fill = 0;
        }
        fill += step_fill[s];
        if (shares[s] == 1) continue;
        for (int k = 0; k < shares[s]; ++k, ++count)
            if (cut) cut[count] = (imager_cut){s, s + 1, k, shares[s]};
        first = s + 1;
        fill = 0;
    }
    if (first == num_steps && count > 0) return count;
    if (cut) cut[count] = (imager_cut){first, num_steps, 0, 1};
    return count + 1;
}

tess_status pass_cuts_make(const imager_job *job, const tess_brick_list *owned,
                           const double *fill, imager_passes *passes)
{
    tess_status status = TESS_OK;
    tess_comm *comm = imager_team(job);
    pass_cutter cutter = {job, owned, fill, 0};
    const int num_steps = tess_steps_count(job->steps);
    double *step_fill = tess_alloc_zero(num_steps, sizeof *step_fill);
    double *share = tess_alloc(MOST_SHARES, sizeof *share);
    int *shares = tess_alloc_zero(num_steps, sizeof *shares);
    TESS_TRY(
        tess_comm_agree(comm, step_fill && share && shares ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(fill_steps(&cutter, step_fill));
    for (int s = 0; s < num_steps; ++s)
        TESS_TRY(choose_shares(&cutter, s, step_fill[s], share, &shares[s]));
    passes->num_reads =
        list_cuts(limit_of(&cutter), num_steps, step_fill, shares, NULL);
    passes->num_shares[0] = passes->num_reads;
    passes->cut = tess_alloc(passes->num_reads, sizeof *passes->cut);
    TESS_TRY(tess_comm_agree(comm, passes->cut ? TESS_OK : TESS_ERR_ALLOC));
    list_cuts(limit_of(&cutter), num_steps, step_fill, shares, passes->cut);
cleanup:
    tess_free(step_fill);
    tess_free(share);
    tess_free(shares);
    return status;
}
