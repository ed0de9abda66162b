/* Moves brick sums that wait for more samples to and from a checkpoint. */
#include "steps_private.h"
#include "tess_mem.h"

void tess_steps_next_samples(tess_steps *steps)
{
    for (int64_t k = 0; k < steps->num_live; ++k)
        steps->live[k].settled = true;
}

/* Header of the sums of a block in the file. */
typedef struct sums_header {
    int64_t block, num_bricks, num_values;
    int32_t num_pol, window_first, window_planes, unused;
} sums_header;

static int64_t value_bytes(const tess_steps *steps)
{
    return steps->plan->is_double ? 16 : 8;
}

int64_t tess_steps_bytes(const tess_steps *steps)
{
    int64_t bytes = 0;
    for (int64_t k = 0; k < steps->num_live; ++k)
        if (steps->live[k].settled)
            bytes += steps->live[k].sums.num_values * value_bytes(steps);
    return bytes;
}

/* Whether a brick's sum is of this block and within the values that come with it. */
static bool brick_is_sound(const tess_steps *steps, const sums_header *header,
                           const tess_brick_sum *sum)
{
    int64_t block, tile_u, tile_v, first, end;
    const tess_grid_plan *plan = steps->plan;
    if (sum->key < 0) return false;
    tess_grid_brick_of_key(plan, sum->key, &block, &tile_u, &tile_v);
    if (block != header->block || sum->num_planes < 0 || sum->offset < 0) return false;
    if (sum->num_planes == 0) return true;
    steps_planes_of_block(plan, block, &first, &end);
    const int64_t values = (int64_t)header->num_pol * sum->num_planes *
                           tess_grid_brick_lines(plan) * tess_grid_brick_stride(plan);
    return sum->plane_first >= first && sum->num_planes <= end - sum->plane_first &&
           sum->offset <= header->num_values - values;
}

static tess_status check_bricks(const tess_steps *steps, const sums_header *header,
                                const tess_brick_sums *sums)
{
    tess_status status = TESS_OK;
    for (int64_t k = 0; k < sums->num_bricks; ++k)
        if (!brick_is_sound(steps, header, &sums->brick[k]))
            TESS_FAIL(TESS_ERR_INPUT, "checkpoint: brick sums that are not of their "
                                      "block");
cleanup:
    return status;
}

static bool header_is_sound(const tess_steps *steps, const sums_header *header)
{
    return header->block >= 0 && header->block < steps->plan->num_blocks &&
           header->num_bricks >= 0 && header->num_values >= 0 &&
           header->num_pol == steps->num_images && header->window_first >= 0 &&
           header->window_planes >= 0 &&
           header->window_planes <= steps->plan->num_planes - header->window_first;
}

static tess_status make_sums(tess_steps *steps, const sums_header *header,
                             tess_brick_sums **sums)
{
    tess_status status = TESS_OK;
    steps_live *live = NULL;
    if (!header_is_sound(steps, header))
        TESS_FAIL(TESS_ERR_INPUT, "checkpoint: brick sums of another plan");
    TESS_TRY(steps_add_live(steps, header->block, &live));
    live->settled = true;
    live->sums = (tess_brick_sums){.num_bricks = header->num_bricks,
                                   .num_values = header->num_values,
                                   .capacity = header->num_values,
                                   .num_pol = header->num_pol,
                                   .window_first = header->window_first,
                                   .window_planes = header->window_planes};
    live->sums.brick = tess_alloc(header->num_bricks, sizeof *live->sums.brick);
    live->sums.data = tess_alloc_fast(header->num_values, (size_t)value_bytes(steps));
    if (!live->sums.brick || !live->sums.data) TESS_FAIL(TESS_ERR_ALLOC, "brick sums");
    *sums = &live->sums;
cleanup:
    return status;
}

/* Moves the sums of a block. To write them, `sums` are these sums; to read them, `sums`
 * are created. */
static tess_status move_sums(tess_steps *steps, int64_t block, tess_brick_sums *sums,
                             tess_mover *mover)
{
    tess_status status = TESS_OK;
    sums_header header = {0};
    const bool comes_back = !sums;
    if (sums)
        header = (sums_header){.block = block,
                               .num_bricks = sums->num_bricks,
                               .num_values = sums->num_values,
                               .num_pol = sums->num_pol,
                               .window_first = sums->window_first,
                               .window_planes = sums->window_planes};
    TESS_TRY(tess_move(mover, &header, sizeof header));
    if (!sums) TESS_TRY(make_sums(steps, &header, &sums));
    TESS_TRY(
        tess_move(mover, sums->brick, sums->num_bricks * (int64_t)sizeof *sums->brick));
    if (comes_back) TESS_TRY(check_bricks(steps, &header, sums));
    TESS_TRY(tess_move(mover, sums->data, sums->num_values * value_bytes(steps)));
cleanup:
    return status;
}

tess_status tess_steps_move(tess_steps *steps, tess_mover *mover)
{
    tess_status status = TESS_OK;
    int64_t count = 0;
    for (int64_t k = 0; k < steps->num_live; ++k)
        count += steps->live[k].settled;
    TESS_TRY(tess_move(mover, &count, sizeof count));
    if (mover->reads) {
        steps_free_live(steps);
        for (int64_t k = 0; k < count; ++k)
            TESS_TRY(move_sums(steps, 0, NULL, mover));
        return TESS_OK;
    }
    for (int64_t k = 0; k < steps->num_live; ++k)
        if (steps->live[k].settled)
            TESS_TRY(
                move_sums(steps, steps->live[k].block, &steps->live[k].sums, mover));
cleanup:
    return status;
}
