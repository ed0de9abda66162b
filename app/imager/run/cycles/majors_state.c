/* The part of checkpoints that is about major cycles: models, automatic masks, first
 * residuals, and one state for all ranks. Residuals are not in it: they are made again
 * from the data and the models. */
#include "majors_private.h"

#include <string.h>

#include "tess_mem.h"

/* The head of the state. For each group of images that are cleaned together, a
 * state_part and the bytes of its tess_clean_state follow. All are in the byte order of
 * one machine. */
typedef struct state_head {
    char name[8]; /* and version */
    int64_t output, num_channels, num_groups, num_pol, num;
    int32_t has_model, has_first;
} state_head;

typedef struct state_part {
    int64_t num_bytes; /* bytes of the tess_clean_state that follows; 0: no data */
    double least_peak, final_threshold, threshold;
    int64_t num_majors, num_masked, iterations;
    int32_t goes_on, is_done, num_stalled, end, phase, num_scales;
    int64_t mask_rounds[TESS_MAX_POL]; /* of --auto-multithresh */
    int32_t mask_is_ready, last_end;   /* of the last minor loop */
} state_part;

static const char NAME[8] = "majors4";

static bool has_masks(const majors *all)
{
    return all->opts.auto_mask > 0;
}

/* ---- saving ---- */

static state_part part_of(const cleaned *group, int64_t num_bytes)
{
    state_part part;
    memset(&part, 0, sizeof part); /* padding bytes, too */
    part.num_bytes = num_bytes;
    part.least_peak = group->least_peak;
    part.final_threshold = group->report.final_threshold;
    part.threshold = group->report.threshold;
    part.last_end = (int32_t)group->report.end;
    part.num_majors = group->num_majors;
    part.num_masked = group->num_masked;
    part.iterations = group->iterations;
    part.goes_on = group->goes_on;
    part.is_done = group->is_done;
    part.num_stalled = group->num_stalled;
    part.end = (int32_t)group->end;
    part.phase = group->report.phase;
    part.num_scales = group->report.num_scales;
    part.mask_is_ready = group->masks.is_ready;
    for (int p = 0; p < TESS_MAX_POL; ++p)
        if (group->masks.found[p])
            part.mask_rounds[p] = tess_multithresh_rounds(group->masks.found[p]);
    return part;
}

static void add_bytes(image_cycle *cycle, const void *from, int64_t count)
{
    if (count > 0) memcpy((char *)cycle->bytes + cycle->num_bytes, from, (size_t)count);
    cycle->num_bytes += count;
}

/* Adds views of the models. */
static tess_status add_models(const majors *all, image_cycle *cycle)
{
    tess_status status = TESS_OK;
    const int num_pol = all->run->num_pol;
    for (int k = 0; k < majors_num_images(all); ++k) {
        TESS_TRY(tess_rows_view(&all->channel[k / num_pol].model[k % num_pol],
                                &cycle->image[cycle->num]));
        ++cycle->num;
    }
cleanup:
    return status;
}

static tess_status add_masks(const majors *all, const tess_clean_state *state,
                             image_cycle *cycle)
{
    tess_status status = TESS_OK;
    for (int g = 0; g < all->num_groups; ++g) {
        tess_rows *rows = &cycle->image[cycle->num];
        *rows = tess_rows_like(&cycle->image[0], TESS_PIXEL_DOUBLE);
        TESS_TRY(tess_rows_alloc(rows));
        ++cycle->num;
        for (int64_t k = 0; k < tess_rows_count(rows); ++k)
            tess_rows_set(rows, k, state[g].found ? (double)state[g].found[k] : 0);
    }
cleanup:
    return status;
}

static tess_status add_first(const majors *all, image_cycle *cycle)
{
    tess_status status = TESS_OK;
    const int num_pol = all->run->num_pol;
    for (int k = 0; k < majors_num_images(all); ++k) {
        const imager_product *first =
            majors_product(all, k / num_pol, IMAGE_FIRST_RESIDUAL, k % num_pol);
        if (!all->channel[k / num_pol].has_data) continue;
        TESS_TRY(tess_rows_view_as(&first->rows, TESS_PIXEL_DOUBLE, all->opts.threads,
                                   &cycle->image[cycle->num]));
        ++cycle->num;
    }
cleanup:
    return status;
}

static tess_status add_state(const majors *all, const tess_clean_state *state,
                             image_cycle *cycle)
{
    tess_status status = TESS_OK;
    state_head head;
    int64_t bytes = (int64_t)sizeof head;
    memset(&head, 0, sizeof head);
    memcpy(head.name, NAME, sizeof NAME);
    head.output = all->channel[0].output;
    head.num_channels = all->num_channels;
    head.num_groups = all->num_groups;
    head.num_pol = all->run->num_pol;
    head.num = all->num;
    head.has_model = all->has_model;
    head.has_first = all->has_first;
    for (int g = 0; g < all->num_groups; ++g)
        bytes += (int64_t)sizeof(state_part) + state[g].num_bytes;
    cycle->bytes = tess_alloc(bytes, 1);
    if (!cycle->bytes) TESS_FAIL(TESS_ERR_ALLOC, "state for a checkpoint");
    add_bytes(cycle, &head, sizeof head);
    for (int g = 0; g < all->num_groups; ++g) {
        const state_part part = part_of(&all->group[g], state[g].num_bytes);
        add_bytes(cycle, &part, sizeof part);
        add_bytes(cycle, state[g].bytes, state[g].num_bytes);
    }
cleanup:
    return status;
}

tess_status majors_save(void *context, image_cycle *cycle)
{
    tess_status status = TESS_OK;
    const majors *all = context;
    tess_clean_state state[TESS_MAX_POL] = {0};
    TESS_TRY(add_models(all, cycle));
    for (int g = 0; g < all->num_groups; ++g)
        if (all->group[g].clean)
            TESS_TRY(tess_clean_state_get(all->group[g].clean, &state[g]));
    if (has_masks(all)) TESS_TRY(add_masks(all, state, cycle));
    TESS_TRY(majors_mask_save(all, cycle));
    if (all->has_first) TESS_TRY(add_first(all, cycle));
    TESS_TRY(add_state(all, state, cycle));
cleanup:
    for (int g = 0; g < TESS_MAX_POL; ++g)
        tess_clean_state_free(&state[g]);
    return status;
}

/* ---- continuing ---- */

bool majors_can_continue(const majors *all)
{
    const image_checkpoint *checkpoint = image_run_checkpoint(all->run);
    return checkpoint && checkpoint->cycle_waits;
}

/* Takes `count` bytes of the state; returns false if there are fewer. */
static bool take_bytes(const tess_checkpoint_state *state, int64_t *at, void *to,
                       int64_t count)
{
    if (count < 0 || count > state->cycle_bytes - *at) return false;
    memcpy(to, (const char *)state->cycle + *at, (size_t)count);
    *at += count;
    return true;
}

/* The first image of a checkpoint behind the models; then come the masks of
 * --auto-mask, those of --auto-multithresh, and first residuals. */
static int first_multithresh(const majors *all)
{
    return majors_num_images(all) + all->num_groups * has_masks(all);
}

static void take_part(const state_part *part, cleaned *group)
{
    group->least_peak = part->least_peak;
    group->report.final_threshold = part->final_threshold;
    group->report.threshold = part->threshold;
    group->report.end = (tess_clean_end)part->last_end;
    group->report.phase = part->phase;
    group->report.num_scales = part->num_scales;
    group->num_majors = part->num_majors;
    group->num_masked = part->num_masked;
    group->iterations = part->iterations;
    group->goes_on = part->goes_on != 0;
    group->is_done = part->is_done != 0;
    group->num_stalled = part->num_stalled;
    group->end = (image_end)part->end;
    group->masks.is_ready = part->mask_is_ready != 0;
}

/* Takes one group's part of the state, and its mask. Local. */
static tess_status take_group(majors *all, int g, int64_t *at, tess_clean_state *state)
{
    tess_status status = TESS_OK;
    const image_checkpoint *checkpoint = image_run_checkpoint(all->run);
    cleaned *group = &all->group[g];
    state_part part;
    if (!take_bytes(&checkpoint->state, at, &part, sizeof part) ||
        (part.num_bytes > 0) != (group->clean != NULL) || part.num_bytes < 0 ||
        part.end < 0 || part.end >= NUM_IMAGE_ENDS || part.last_end < 0 ||
        part.last_end > TESS_CLEAN_STOPPED)
        TESS_FAIL(TESS_ERR_INPUT, "%s: the state of cleaning is damaged",
                  checkpoint->opts->folder);
    take_part(&part, group);
    state->num_bytes = part.num_bytes;
    state->bytes = tess_alloc(part.num_bytes, 1);
    if (!state->bytes) TESS_FAIL(TESS_ERR_ALLOC, "state of cleaning");
    if (!take_bytes(&checkpoint->state, at, state->bytes, part.num_bytes))
        TESS_FAIL(TESS_ERR_INPUT, "%s: the state of cleaning is damaged",
                  checkpoint->opts->folder);
    if (has_masks(all) && group->clean)
        TESS_TRY(majors_take_bits(all, majors_num_images(all) + g, &state->found));
    TESS_TRY(majors_mask_take(all, group, part.mask_rounds, first_multithresh(all)));
cleanup:
    return status;
}

/* Local. */
static tess_status take_models(majors *all)
{
    tess_status status = TESS_OK;
    const int num_pol = all->run->num_pol;
    for (int k = 0; k < majors_num_images(all); ++k)
        TESS_TRY(
            image_checkpoint_cycle_rows(image_run_checkpoint(all->run), k,
                                        &all->channel[k / num_pol].model[k % num_pol]));
cleanup:
    return status;
}

/* Takes the first residuals. Local. */
static tess_status take_first(majors *all, int image)
{
    tess_status status = TESS_OK;
    const int num_pol = all->run->num_pol;
    for (int k = 0; k < majors_num_images(all); ++k) {
        tess_rows *rows =
            &majors_product(all, k / num_pol, IMAGE_FIRST_RESIDUAL, k % num_pol)->rows;
        if (!all->channel[k / num_pol].has_data) continue;
        *rows = tess_rows_of(all->images.nx, all->images.ny, all->images.row_first,
                             all->images.num_rows, TESS_PIXEL_DOUBLE);
        TESS_TRY(tess_rows_alloc_zero(rows));
        TESS_TRY(
            image_checkpoint_cycle_rows(image_run_checkpoint(all->run), image++, rows));
    }
cleanup:
    return status;
}

/* Number of images of channels with data. */
static int count_with_data(const majors *all)
{
    int count = 0;
    for (int c = 0; c < all->num_channels; ++c)
        count += all->channel[c].has_data ? all->run->num_pol : 0;
    return count;
}

static tess_status take_head(majors *all, int64_t *at, state_head *head)
{
    tess_status status = TESS_OK;
    const image_checkpoint *checkpoint = image_run_checkpoint(all->run);
    if (!take_bytes(&checkpoint->state, at, head, sizeof *head) ||
        memcmp(head->name, NAME, sizeof NAME) != 0 ||
        head->output != all->channel[0].output ||
        head->num_channels != all->num_channels ||
        head->num_groups != all->num_groups || head->num_pol != all->run->num_pol ||
        head->num < 0 ||
        checkpoint->state.num_cycle != first_multithresh(all) + majors_mask_count(all) +
                                           (head->has_first ? count_with_data(all) : 0))
        TESS_FAIL(TESS_ERR_INPUT, "%s: the state of cleaning is of another run",
                  checkpoint->opts->folder);
    all->num = head->num;
    all->has_model = head->has_model != 0;
    all->has_first = head->has_first != 0;
cleanup:
    return status;
}

tess_status majors_continue(majors *all)
{
    tess_status status = TESS_OK;
    const image_run *run = all->run;
    tess_clean_state state[TESS_MAX_POL] = {0};
    state_head head;
    int64_t at = 0;
    status = take_head(all, &at, &head);
    for (int g = 0; g < all->num_groups && status == TESS_OK; ++g)
        status = take_group(all, g, &at, &state[g]);
    if (status == TESS_OK) status = take_models(all);
    if (status == TESS_OK && head.has_first)
        status = take_first(all, first_multithresh(all) + majors_mask_count(all));
    TESS_TRY(tess_comm_agree(run->comm, status));
    for (int g = 0; g < all->num_groups; ++g)
        if (all->group[g].clean)
            TESS_TRY(tess_clean_state_put(all->group[g].clean, &state[g]));
    tess_log_info("cleaning goes on after %lld major iteration%s", (long long)all->num,
                  all->num == 1 ? "" : "s");
cleanup:
    for (int g = 0; g < TESS_MAX_POL; ++g)
        tess_clean_state_free(&state[g]);
    return status;
}
