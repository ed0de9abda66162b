/* W-steps where a device has no room for the sums of all bricks.
 *
 * A transform is linear: sums of some of a step's bricks are transformed alone, added
 * to the images, and given up before the next. No visibility is gridded twice, but
 * planes are transformed once for each part. */
#include "steps_private.h"

#include <math.h>

#include "tess_degrid.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_samples.h"

static double room_of(const tess_steps *steps, const tess_brick_list *bricks)
{
    return (double)(steps->plan->backend->degrid->sums_room(steps->plan, bricks) -
                    tess_planes_more_bytes(steps->planes));
}

static double bytes_of(const tess_steps *steps, const tess_brick_list *bricks,
                       const steps_part *part, int num_pol)
{
    return (double)steps->plan->backend->degrid->sums_bytes(
        steps->plan, bricks, part->first, part->end, num_pol);
}

/* Bytes of sums that are held at a time if each sum waits for its planes to be
 * complete; with `all`, if all sums are held until the end of the steps. */
static double held_bytes(const tess_steps *steps, const tess_brick_list *bricks,
                         int num_pol, bool all)
{
    const tess_grid_plan *plan = steps->plan;
    const int64_t reach =
        all ? plan->num_blocks
            : (plan->w_support + plan->block_planes - 2) / plan->block_planes;
    double held = 0, most = 0;
    for (int64_t b = 0; b < plan->num_blocks; ++b) {
        const steps_part here = steps_whole_block(steps, bricks, b);
        held += bytes_of(steps, bricks, &here, num_pol);
        if (b > reach) {
            const steps_part gone = steps_whole_block(steps, bricks, b - reach - 1);
            held -= bytes_of(steps, bricks, &gone, num_pol);
        }
        if (held > most) most = held;
    }
    return most;
}

bool tess_steps_sums_fit(const tess_steps *steps, const tess_brick_list *bricks,
                         int num_pol)
{
    return held_bytes(steps, bricks, num_pol, steps->num_groups > 1) <=
           room_of(steps, bricks);
}

tess_status steps_choose_parts(tess_steps *steps, const tess_brick_list *bricks,
                               int num_pol, bool all, bool *in_parts)
{
    tess_status status = TESS_OK;
    const tess_grid_plan *plan = steps->plan;
    int64_t wanted = 0;
    *in_parts = false;
    if (!plan->backend->degrid->sums_room || plan->opts.repeatable) return TESS_OK;
    const double held =
        held_bytes(steps, bricks, num_pol, all || steps->num_groups > 1);
    const double room = room_of(steps, bricks);
    wanted = held > room;
    TESS_TRY(tess_comm_allreduce_i64(steps->comm, &wanted, 1, TESS_MAX));
    *in_parts = wanted > 0;
    if (wanted)
        tess_log_info(
            "sums of bricks, %s here, do not all fit a device, which has %s for "
            "them: they are made and transformed in parts",
            tess_mem_text(held), tess_mem_text(fmax(room, 0)));
cleanup:
    return status;
}

/* Finds the next of this rank's bricks in a step, after those of `*part`: as many
 * bricks of a block as there is room for, and at least one. The part is empty if there
 * are no more bricks. */
static void next_part(const tess_steps *steps, int step, const tess_brick_list *bricks,
                      int num_pol, steps_part *part)
{
    const double room = room_of(steps, bricks);
    const int64_t done = part->end;
    for (int g = 0; g < steps->num_groups; ++g) {
        const int64_t b = steps_block_of(steps, step, g);
        if (b < part->block || tess_steps_block_done(steps, b)) continue;
        *part = steps_whole_block(steps, bricks, b);
        if (part->first < done) part->first = done;
        if (part->first >= part->end) continue;
        while (part->end - part->first > 1 &&
               bytes_of(steps, bricks, part, num_pol) > room)
            part->end = part->first + (part->end - part->first + 1) / 2;
        return;
    }
    *part = (steps_part){steps->plan->num_blocks, done, done};
}

/* Takes the next part, as long as any rank has a brick. Collective. */
static tess_status take_part(const tess_steps *steps, int step,
                             const tess_brick_list *bricks, int num_pol,
                             steps_part *part, bool *any)
{
    next_part(steps, step, bricks, num_pol, part);
    int64_t mine = part->end > part->first;
    const tess_status status = tess_comm_allreduce_i64(steps->comm, &mine, 1, TESS_MAX);
    *any = mine > 0;
    return status;
}

/* The planes that the bricks of a step may touch. */
static int64_t planes_of_step(const tess_steps *steps, int step, int64_t *planes)
{
    int64_t count = 0, next = 0, first, end;
    for (int g = 0; g < steps->num_groups; ++g) {
        const int64_t b = steps_block_of(steps, step, g);
        if (b < 0) continue;
        steps_planes_of_block(steps->plan, b, &first, &end);
        for (next = first > next ? first : next; next < end; ++next)
            planes[count++] = next;
    }
    return count;
}

/* Adds the sums that earlier passes over the data have left to the images. */
static tess_status flush_live(tess_steps *steps, int num_pol, int64_t *planes)
{
    tess_status status = TESS_OK;
    int64_t count = 0;
    for (int64_t p = 0; p < steps->plan->num_planes; ++p)
        if (!steps->plane_done[p]) planes[count++] = p;
    TESS_TRY(steps_transform_planes(steps, status, planes, count, num_pol, true));
    steps_free_live(steps);
cleanup:
    return status;
}

tess_status steps_image_in_parts(tess_steps *steps, int first, int end,
                                 const tess_samples *samples,
                                 const tess_brick_list *bricks, bool psf)
{
    tess_status status = TESS_OK;
    const int num_pol = samples->num_pol + (psf ? samples->num_weight : 0);
    int64_t *planes = tess_alloc(steps->plan->num_planes, sizeof *planes);
    TESS_TRY(tess_comm_agree(steps->comm, planes ? TESS_OK : TESS_ERR_ALLOC));
    steps->in_parts = true;
    TESS_TRY(flush_live(steps, num_pol, planes));
    for (int step = first; step < end; ++step) {
        const int64_t count = planes_of_step(steps, step, planes);
        steps_part part = {0};
        for (bool any = true; any;) {
            TESS_TRY(take_part(steps, step, bricks, num_pol, &part, &any));
            status = steps_grid_part(steps, &part, (tess_plane_window){0}, samples,
                                     bricks, psf);
            if (any)
                TESS_TRY(steps_transform_planes(steps, status, planes, count, num_pol,
                                                true));
            else
                TESS_TRY(tess_comm_agree(steps->comm, status));
            steps_free_live(steps);
        }
    }
cleanup:
    tess_planes_rest(steps->planes, false);
    tess_free(planes);
    return status;
}

tess_status steps_predict_in_parts(tess_steps *steps, tess_samples *samples,
                                   const tess_brick_list *bricks, int64_t *planes)
{
    tess_status status = TESS_OK;
    for (int step = 0; step < steps->num_steps; ++step) {
        const int64_t count = planes_of_step(steps, step, planes);
        steps_part part = {0};
        for (bool any = true; any;) {
            TESS_TRY(take_part(steps, step, bricks, samples->num_pol, &part, &any));
            status = steps_lay_out_part(steps, &part, (tess_plane_window){0}, samples,
                                        bricks);
            if (any)
                TESS_TRY(steps_transform_planes(steps, status, planes, count,
                                                samples->num_pol, false));
            else
                TESS_TRY(tess_comm_agree(steps->comm, status));
            status = steps_degrid(steps, step, samples, bricks);
            TESS_TRY(tess_comm_agree(steps->comm, status));
        }
    }
cleanup:
    return status;
}
