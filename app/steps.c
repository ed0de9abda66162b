#include "steps.h"

#include <math.h>
#include <string.h>

#include "tess_degrid.h"
#include "tess_log.h"
#include "tess_mem.h"

/* Brick sums of one block, from one pass over the data. */
typedef struct live_sums {
    int64_t block;
    int64_t first_brick; /* in the brick list (prediction) */
    tess_brick_sums sums;
} live_sums;

struct tess_steps {
    tess_comm *comm;
    const tess_grid_plan *plan;
    const tess_partition *partition;
    tess_planes *planes;
    tess_profile *profile;
    int num_groups, num_steps;
    int *step_of_block; /* [num_blocks] */
    live_sums *live;
    int64_t num_live, capacity_live;
    tess_brick_arena spare; /* of the last window's largest block */
    char *plane_done;       /* [num_planes] */
    tess_piece *piece;      /* pieces of a batch of jobs */
    int64_t capacity_pieces;
    bool in_parts; /* planes have been added to the images in parts */
    char *done;    /* [num_planes][num_images] '1': in the images; or NULL */
    int num_images;
    tess_steps_watcher *watch; /* or NULL */
    void *context;
    double grid_wall_s, grid_busy_s;
    tess_progress progress; /* of what goes on: gridding, or planes */
};

tess_status tess_steps_create(tess_comm *comm, const tess_grid_plan *plan,
                              const tess_partition *partition, int num_groups,
                              tess_planes *planes, tess_profile *profile,
                              tess_steps **steps_out)
{
    tess_status status = TESS_OK;
    int *next = NULL;
    tess_steps *steps = tess_alloc_zero(1, sizeof *steps);
    if (!steps) TESS_FAIL(TESS_ERR_ALLOC, "w-steps");
    steps->comm = comm;
    steps->plan = plan;
    steps->partition = partition;
    steps->planes = planes;
    steps->profile = profile;
    steps->num_groups = num_groups;
    steps->step_of_block = tess_alloc(plan->num_blocks, sizeof *steps->step_of_block);
    steps->plane_done = tess_alloc_zero(plan->num_planes, 1);
    next = tess_alloc_zero(num_groups, sizeof *next);
    if (!steps->step_of_block || !steps->plane_done || !next)
        TESS_FAIL(TESS_ERR_ALLOC, "w-steps");
    for (int b = 0; b < plan->num_blocks; ++b) {
        const int step = next[tess_partition_group(partition, b)]++;
        steps->step_of_block[b] = step;
        if (step + 1 > steps->num_steps) steps->num_steps = step + 1;
    }
    *steps_out = steps;
    steps = NULL;
cleanup:
    tess_free(next);
    tess_steps_destroy(steps);
    return status;
}

static void free_live(tess_steps *steps)
{
    for (int64_t k = 0; k < steps->num_live; ++k)
        tess_brick_sums_free(&steps->live[k].sums);
    steps->num_live = 0;
}

/* No window follows: what comes after may need the memory. */
static void free_spare(tess_steps *steps)
{
    tess_free(steps->spare.data);
    steps->spare = (tess_brick_arena){0};
}

void tess_steps_destroy(tess_steps *steps)
{
    if (!steps) return;
    free_live(steps);
    free_spare(steps);
    tess_free(steps->live);
    tess_free(steps->step_of_block);
    tess_free(steps->plane_done);
    tess_free(steps->piece);
    tess_free(steps);
}

int tess_steps_count(const tess_steps *steps)
{
    return steps->num_steps;
}

int tess_steps_of_block(const tess_steps *steps, int64_t block)
{
    return steps->step_of_block[block];
}

/* Blocks whose bricks may touch a plane: [*first, *end). */
static void blocks_of_plane(const tess_grid_plan *plan, int64_t plane, int64_t *first,
                            int64_t *end)
{
    const int64_t lowest_start = plane - plan->w_support + 1;
    *first = lowest_start < 0 ? 0 : lowest_start / plan->block_planes;
    *end = plane / plan->block_planes + 1;
    if (*end > plan->num_blocks) *end = plan->num_blocks;
    if (*first >= *end) *first = *end - 1;
}

/* Planes that a block's bricks may touch: [*first, *end). */
static void planes_of_block(const tess_grid_plan *plan, int64_t block, int64_t *first,
                            int64_t *end)
{
    *first = block * plan->block_planes;
    *end = *first + plan->block_planes + plan->w_support - 1;
    if (*end > plan->num_planes) *end = plan->num_planes;
}

static int last_step_of_plane(const tess_steps *steps, int64_t plane)
{
    int64_t first, end;
    int last = 0;
    blocks_of_plane(steps->plan, plane, &first, &end);
    for (int64_t b = first; b < end; ++b)
        if (steps->step_of_block[b] > last) last = steps->step_of_block[b];
    return last;
}

void tess_steps_watch(tess_steps *steps, char *done, int num_images,
                      tess_steps_watcher *watch, void *context)
{
    steps->done = done;
    steps->num_images = num_images;
    steps->watch = watch;
    steps->context = context;
}

static tess_status watch(tess_steps *steps)
{
    /* images with parts of planes in them are nothing to go on from */
    return steps->watch && !steps->in_parts ? steps->watch(steps->context) : TESS_OK;
}

static char *done_of(const tess_steps *steps, int64_t plane, int pol)
{
    return &steps->done[plane * steps->num_images + pol];
}

bool tess_steps_window_done(const tess_steps *steps, tess_plane_window window)
{
    if (!steps->done) return false;
    for (int64_t p = window.first; p < window.first + window.count; ++p)
        for (int pol = 0; pol < steps->num_images; ++pol)
            if (*done_of(steps, p, pol) != '1') return false;
    return true;
}

bool tess_steps_block_done(const tess_steps *steps, int64_t block)
{
    int64_t first, end;
    planes_of_block(steps->plan, block, &first, &end);
    return tess_steps_window_done(steps, (tess_plane_window){first, end - first});
}

bool tess_steps_block_in(const tess_steps *steps, int64_t block,
                         tess_plane_window window)
{
    int64_t first, end;
    planes_of_block(steps->plan, block, &first, &end);
    return window.count == 0 ||
           (end > window.first && first < window.first + window.count);
}

/* ---- pieces of brick sums ---- */

/* Lines of a piece: see tess_piece. */
enum { PIECE_LINES = 31, PIECE_STEP = 16 };

/* Lines [from, from + count) of a brick sum that begin at a grid line, as pieces. */
static void append_pieces(tess_steps *steps, tess_piece piece, int64_t line,
                          int64_t from, int64_t count, int64_t *num_pieces)
{
    const int64_t bytes = steps->plan->is_double ? 16 : 8;
    const int64_t step = count > PIECE_LINES ? PIECE_STEP : count;
    char *data = piece.data;
    for (int64_t k = 0; k < count; k += step) {
        piece.line = (int32_t)(line + k);
        piece.num_lines = (int32_t)(count - k < step ? count - k : step);
        piece.data = data + (from + k) * piece.stride * bytes;
        steps->piece[(*num_pieces)++] = piece;
    }
}

/* Lines of one brick sum in one plane and polarisation, cut where they wrap around. */
static tess_status add_pieces(tess_steps *steps, const tess_brick_sums *sums,
                              int64_t plane, int pol, int64_t *count)
{
    tess_status status = TESS_OK;
    const tess_grid_plan *plan = steps->plan;
    const int64_t lines = tess_grid_brick_lines(plan);
    const int64_t stride = tess_grid_brick_stride(plan),
                  bytes = plan->is_double ? 16 : 8;
    for (int64_t k = 0; k < sums->num_bricks; ++k) {
        const tess_brick_sum *sum = &sums->brick[k];
        int64_t block, tile_u, tile_v;
        if (plane < sum->plane_first || plane >= sum->plane_first + sum->num_planes)
            continue;
        if (tess_grow((void **)&steps->piece, &steps->capacity_pieces,
                      *count + 3 + lines / PIECE_STEP, sizeof *steps->piece))
            TESS_FAIL(TESS_ERR_ALLOC, "pieces of w-planes");
        tess_grid_brick_of_key(plan, sum->key, &block, &tile_u, &tile_v);
        const int64_t line = tile_u * plan->tile;
        const int64_t before = plan->nu - line < lines ? plan->nu - line : lines;
        const int64_t layer = (int64_t)pol * sum->num_planes + plane - sum->plane_first;
        const tess_piece piece = {
            .cell = (int32_t)(tile_v * plan->tile),
            .num_cells = (int32_t)lines,
            .stride = stride,
            .data = (char *)sums->data + (sum->offset + layer * lines * stride) * bytes,
            .order = (tile_u * plan->num_blocks + block) * plan->tiles_v + tile_v};
        append_pieces(steps, piece, line, 0, before, count);
        append_pieces(steps, piece, 0, before, lines - before, count);
    }
cleanup:
    return status;
}

/* One (plane, polarisation) to transform. */
typedef struct plane_pol {
    int64_t plane;
    int pol;
} plane_pol;

/* Transform the listed planes in batches of one per FFT group. Collective. */
static tess_status transform(tess_steps *steps, const plane_pol *list, int64_t count,
                             bool forward)
{
    tess_status status = TESS_OK;
    const tess_grid_plan *plan = steps->plan;
    const int groups = tess_planes_groups(steps->planes);
    tess_planes_times times = {.trace = steps->profile->trace};
    tess_plane_job *job = tess_alloc_zero(groups, sizeof *job);
    int64_t *begin = tess_alloc_zero(groups + 1, sizeof *begin);
    TESS_TRY(tess_comm_agree(steps->comm, job && begin ? TESS_OK : TESS_ERR_ALLOC));
    tess_progress_start(&steps->progress, "FFT", " planes", (double)count);
    for (int64_t first = 0; first < count; first += groups) {
        int64_t num_pieces = 0;
        for (int g = 0; g < groups && status == TESS_OK; ++g) {
            begin[g] = num_pieces;
            job[g] = (tess_plane_job){.active = first + g < count};
            if (!job[g].active) continue;
            const plane_pol *item = &list[first + g];
            job[g].image = item->pol;
            job[g].w_lambda =
                plan->w_first_lambda + (double)item->plane * plan->w_step_lambda;
            for (int64_t k = 0; k < steps->num_live && status == TESS_OK; ++k)
                status = add_pieces(steps, &steps->live[k].sums, item->plane, item->pol,
                                    &num_pieces);
            job[g].num_pieces = num_pieces - begin[g];
        }
        for (int g = 0; g < groups; ++g)
            job[g].piece = steps->piece + begin[g];
        TESS_TRY(tess_comm_agree(steps->comm, status));
        TESS_TRY(forward ? tess_planes_accumulate(steps->planes, job, &times)
                         : tess_planes_extract(steps->planes, job, &times));
        tess_progress_add(&steps->progress, groups);
        if (!steps->done || !forward || steps->in_parts) continue;
        for (int64_t k = first; k < count && k < first + groups; ++k)
            *done_of(steps, list[k].plane, list[k].pol) = '1';
        TESS_TRY(watch(steps));
    }
cleanup:
    tess_progress_finish(&steps->progress);
    steps->profile->stage_seconds[TESS_STAGE_REDUCE] += times.exchange_s;
    steps->profile->stage_seconds[TESS_STAGE_FFT] += times.fft_s;
    tess_profile_sent(steps->profile, TESS_STAGE_REDUCE);
    tess_free(job);
    tess_free(begin);
    return status;
}

/* Of the planes in `wanted`, those that any rank has values in; every polarisation. */
static tess_status list_planes(tess_steps *steps, const int64_t *wanted, int64_t count,
                               int num_pol, plane_pol *list, int64_t *num_listed)
{
    tess_status status = TESS_OK;
    int64_t *touched = tess_alloc_zero(steps->plan->num_planes, sizeof *touched);
    TESS_TRY(tess_comm_agree(steps->comm, touched ? TESS_OK : TESS_ERR_ALLOC));
    for (int64_t k = 0; k < steps->num_live; ++k)
        for (int64_t b = 0; b < steps->live[k].sums.num_bricks; ++b) {
            const tess_brick_sum *sum = &steps->live[k].sums.brick[b];
            for (int32_t p = 0; p < sum->num_planes; ++p)
                touched[sum->plane_first + p] = 1;
        }
    TESS_TRY(tess_comm_allreduce_i64(steps->comm, touched, steps->plan->num_planes,
                                     TESS_MAX));
    *num_listed = 0;
    for (int64_t k = 0; k < count; ++k)
        for (int pol = 0; pol < num_pol; ++pol) {
            if (steps->done && *done_of(steps, wanted[k], pol) == '1') continue;
            if (touched[wanted[k]])
                list[(*num_listed)++] = (plane_pol){wanted[k], pol};
            else if (steps->done && !steps->in_parts) /* nothing is in it */
                *done_of(steps, wanted[k], pol) = '1';
        }
cleanup:
    tess_free(touched);
    return status;
}

static tess_status transform_planes(tess_steps *steps, const int64_t *wanted,
                                    int64_t count, int num_pol, bool forward)
{
    tess_status status = TESS_OK;
    int64_t listed = 0;
    plane_pol *list = tess_alloc(count * num_pol, sizeof *list);
    TESS_TRY(tess_comm_agree(steps->comm, list ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(list_planes(steps, wanted, count, num_pol, list, &listed));
    TESS_TRY(transform(steps, list, listed, forward));
cleanup:
    tess_free(list);
    return status;
}

/* ---- live sums ---- */

/* Bricks [*first, *end) of a block in the list. */
static void bricks_of_block(const tess_grid_plan *plan, const tess_brick_list *bricks,
                            int64_t block, int64_t *first, int64_t *end)
{
    const int64_t keys[2] = {tess_grid_brick_key(plan, block, 0, 0),
                             tess_grid_brick_key(plan, block + 1, 0, 0)};
    int64_t found[2];
    for (int k = 0; k < 2; ++k) {
        int64_t low = 0, high = bricks->num_bricks;
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (bricks->key[middle] < keys[k])
                low = middle + 1;
            else
                high = middle;
        }
        found[k] = low;
    }
    *first = found[0];
    *end = found[1];
}

static tess_status add_live(tess_steps *steps, int64_t block, live_sums **live_out)
{
    tess_status status = TESS_OK;
    if (tess_grow((void **)&steps->live, &steps->capacity_live, steps->num_live + 1,
                  sizeof *steps->live))
        TESS_FAIL(TESS_ERR_ALLOC, "brick sums");
    *live_out = &steps->live[steps->num_live++];
    **live_out = (live_sums){.block = block};
cleanup:
    return status;
}

/* Free the sums of blocks all of whose planes are done. */
static void free_finished(tess_steps *steps)
{
    int64_t kept = 0;
    for (int64_t k = 0; k < steps->num_live; ++k) {
        int64_t first, end;
        bool finished = true;
        planes_of_block(steps->plan, steps->live[k].block, &first, &end);
        for (int64_t p = first; p < end; ++p)
            finished = finished && steps->plane_done[p];
        if (finished)
            tess_brick_sums_free(&steps->live[k].sums);
        else
            steps->live[kept++] = steps->live[k];
    }
    steps->num_live = kept;
}

/* As free_live(), for a window of planes that another one follows: the largest arena is
 * kept for that one. */
static void give_up_live(tess_steps *steps)
{
    for (int64_t k = 0; k < steps->num_live; ++k) {
        tess_brick_sums *sums = &steps->live[k].sums;
        if (sums->release || sums->capacity <= steps->spare.num_values) continue;
        tess_free(steps->spare.data);
        steps->spare = (tess_brick_arena){sums->data, sums->capacity};
        sums->data = NULL;
    }
    free_live(steps);
}

/* Gridding or degridding, begun at `start_s` and the first thread's own `own_s`: threads
 * were busy for this share of the time. */
static void note_gridded(tess_steps *steps, double start_s, double own_s,
                         double busy_share)
{
    const double wall_s = tess_time_now() - start_s;
    steps->grid_wall_s += wall_s;
    steps->grid_busy_s += wall_s * busy_share;
    if (steps->grid_wall_s > 0)
        steps->profile->grid_utilisation = steps->grid_busy_s / steps->grid_wall_s;
    steps->profile->grid_own_s += tess_time_own() - own_s;
}

/* ---- imaging ---- */

/* Bricks of a block. */
typedef struct block_part {
    int64_t block, first, end;
} block_part;

static block_part whole_block(const tess_steps *steps, const tess_brick_list *bricks,
                              int64_t block)
{
    block_part part = {.block = block};
    bricks_of_block(steps->plan, bricks, block, &part.first, &part.end);
    return part;
}

static tess_status grid_part(tess_steps *steps, const block_part *part,
                             tess_plane_window window, const tess_samples *samples,
                             const tess_brick_list *bricks, bool psf)
{
    tess_status status = TESS_OK;
    live_sums *live = NULL;
    const int64_t first = part->first, end = part->end;
    int64_t plane, plane_end;
    const double start = tess_time_now(), own = tess_time_own();
    double num_vis = 0;
    tess_grid_report report = {
        .progress = &steps->progress, .busy_share = 1, .trace = steps->profile->trace};
    if (first == end) return TESS_OK;
    for (int64_t b = first; b < end; ++b)
        num_vis += (double)bricks->num_vis[b];
    tess_progress_start(&steps->progress, "gridding", "vis", num_vis);
    TESS_TRY(add_live(steps, part->block, &live));
    live->sums.window_first = (int32_t)window.first;
    live->sums.window_planes = (int32_t)window.count;
    live->sums.spare = &steps->spare;
    TESS_TRY(tess_grid_execute(steps->plan, samples, bricks, first, end, psf,
                               &live->sums, &report));
    planes_of_block(steps->plan, part->block, &plane, &plane_end);
    if (plane >= window.first) /* later windows grid the same again */
        steps->profile->stage_visibilities[TESS_STAGE_GRID] += (int64_t)num_vis;
    note_gridded(steps, start, own, report.busy_share);
    if (plane >= window.first) steps->profile->merged_visibilities += report.merged;
    tess_profile_since(steps->profile, TESS_STAGE_GRID, start);
cleanup:
    tess_progress_finish(&steps->progress);
    return status;
}

static tess_status grid_block(tess_steps *steps, int64_t block,
                              tess_plane_window window, const tess_samples *samples,
                              const tess_brick_list *bricks, bool psf)
{
    const block_part all = whole_block(steps, bricks, block);
    return grid_part(steps, &all, window, samples, bricks, psf);
}

/* ---- sums that a device has no room for ----
 *
 * A transform is linear: sums of some of a step's bricks are transformed alone, added
 * to the images, and given up before the next. No visibility is gridded twice, but
 * planes are transformed once for each part. */

static double room_of(const tess_steps *steps, const tess_brick_list *bricks)
{
    return (double)(steps->plan->backend->degrid->sums_room(steps->plan, bricks) -
                    tess_planes_more_bytes(steps->planes));
}

static double bytes_of(const tess_steps *steps, const tess_brick_list *bricks,
                       const block_part *part, int num_pol)
{
    return (double)steps->plan->backend->degrid->sums_bytes(
        steps->plan, bricks, part->first, part->end, num_pol);
}

/* Bytes of sums that are held at a time when each waits for its planes to be complete;
 * `all`: for the end of the steps. */
static double held_bytes(const tess_steps *steps, const tess_brick_list *bricks,
                         int num_pol, bool all)
{
    const tess_grid_plan *plan = steps->plan;
    const int64_t reach =
        all ? plan->num_blocks
            : (plan->w_support + plan->block_planes - 2) / plan->block_planes;
    double held = 0, most = 0;
    for (int64_t b = 0; b < plan->num_blocks; ++b) {
        const block_part here = whole_block(steps, bricks, b);
        held += bytes_of(steps, bricks, &here, num_pol);
        if (b > reach) {
            const block_part gone = whole_block(steps, bricks, b - reach - 1);
            held -= bytes_of(steps, bricks, &gone, num_pol);
        }
        if (held > most) most = held;
    }
    return most;
}

/* Is there a rank whose device has no room? `all` as above. Sums that are to be rounded
 * in one order are never made in parts: there, the lack of memory is an error.
 * Collective. */
static tess_status choose_parts(tess_steps *steps, const tess_brick_list *bricks,
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

/* The next of this rank's bricks in a step, after those of `*part`: as many of a block
 * as there is room for, one at least. Without any they are empty. */
static void next_part(const tess_steps *steps, int step, const tess_brick_list *bricks,
                      int num_pol, block_part *part)
{
    const double room = room_of(steps, bricks);
    const int64_t done = part->end;
    for (int64_t b = part->block; b < steps->plan->num_blocks; ++b) {
        if (steps->step_of_block[b] != step || tess_steps_block_done(steps, b))
            continue;
        *part = whole_block(steps, bricks, b);
        if (part->first < done) part->first = done;
        if (part->first >= part->end) continue;
        while (part->end - part->first > 1 &&
               bytes_of(steps, bricks, part, num_pol) > room)
            part->end = part->first + (part->end - part->first + 1) / 2;
        return;
    }
    *part = (block_part){steps->plan->num_blocks, done, done};
}

/* The same on all ranks, as long as any has one. Collective. */
static tess_status take_part(const tess_steps *steps, int step,
                             const tess_brick_list *bricks, int num_pol,
                             block_part *part, bool *any)
{
    next_part(steps, step, bricks, num_pol, part);
    int64_t mine = part->end > part->first;
    const tess_status status = tess_comm_allreduce_i64(steps->comm, &mine, 1, TESS_MAX);
    *any = mine > 0;
    return status;
}

/* Planes that the bricks of a step may touch. */
static int64_t planes_of_step(const tess_steps *steps, int step, int64_t *planes)
{
    int64_t count = 0, next = 0, first, end;
    for (int64_t b = 0; b < steps->plan->num_blocks; ++b) {
        if (steps->step_of_block[b] != step) continue;
        planes_of_block(steps->plan, b, &first, &end);
        for (next = first > next ? first : next; next < end; ++next)
            planes[count++] = next;
    }
    return count;
}

/* What earlier passes over data have left is added to the images. */
static tess_status flush_live(tess_steps *steps, int num_pol, int64_t *planes)
{
    tess_status status = TESS_OK;
    int64_t count = 0;
    for (int64_t p = 0; p < steps->plan->num_planes; ++p)
        if (!steps->plane_done[p]) planes[count++] = p;
    TESS_TRY(transform_planes(steps, planes, count, num_pol, true));
    free_live(steps);
cleanup:
    return status;
}

static tess_status image_in_parts(tess_steps *steps, int first, int end,
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
        block_part part = {0};
        for (bool any = true; any;) {
            TESS_TRY(take_part(steps, step, bricks, num_pol, &part, &any));
            status =
                grid_part(steps, &part, (tess_plane_window){0}, samples, bricks, psf);
            TESS_TRY(tess_comm_agree(steps->comm, status));
            if (any) TESS_TRY(transform_planes(steps, planes, count, num_pol, true));
            free_live(steps);
        }
    }
cleanup:
    tess_free(planes);
    return status;
}

/* ---- all of it ---- */

tess_status tess_steps_image(tess_steps *steps, int first, int end, bool transform_now,
                             const tess_samples *samples, const tess_brick_list *bricks,
                             bool psf)
{
    tess_status status = TESS_OK;
    const tess_grid_plan *plan = steps->plan;
    const int num_pol = samples->num_pol + (psf ? samples->num_weight : 0);
    int64_t *ready = NULL;
    bool in_parts;
    TESS_TRY(choose_parts(steps, bricks, num_pol, !transform_now, &in_parts));
    if (in_parts) return image_in_parts(steps, first, end, samples, bricks, psf);
    ready = tess_alloc(plan->num_planes, sizeof *ready);
    TESS_TRY(tess_comm_agree(steps->comm, ready ? TESS_OK : TESS_ERR_ALLOC));
    for (int step = first; step < end; ++step) {
        TESS_TRY(watch(steps));
        for (int64_t b = 0; b < plan->num_blocks && status == TESS_OK; ++b)
            if (steps->step_of_block[b] == step && !tess_steps_block_done(steps, b))
                status =
                    grid_block(steps, b, (tess_plane_window){0}, samples, bricks, psf);
        TESS_TRY(tess_comm_agree(steps->comm, status));
        if (!transform_now) continue;
        int64_t count = 0;
        for (int64_t p = 0; p < plan->num_planes; ++p)
            if (!steps->plane_done[p] && last_step_of_plane(steps, p) <= step) {
                ready[count++] = p;
                steps->plane_done[p] = 1;
            }
        TESS_TRY(transform_planes(steps, ready, count, num_pol, true));
        free_finished(steps);
    }
cleanup:
    tess_free(ready);
    return status;
}

/* Grid what the blocks have in a window of planes. Local. */
static tess_status grid_window(tess_steps *steps, tess_plane_window window,
                               const tess_samples *samples,
                               const tess_brick_list *bricks, bool psf)
{
    tess_status status = TESS_OK;
    for (int64_t b = 0; b < steps->plan->num_blocks; ++b)
        if (tess_steps_block_in(steps, b, window) && !tess_steps_block_done(steps, b))
            TESS_TRY(grid_block(steps, b, window, samples, bricks, psf));
cleanup:
    return status;
}

tess_status tess_steps_image_window(tess_steps *steps, tess_plane_window window,
                                    bool last, const tess_samples *samples,
                                    const tess_brick_list *bricks, bool psf)
{
    tess_status status = TESS_OK;
    const int num_pol = samples->num_pol + (psf ? samples->num_weight : 0);
    int64_t *ready = tess_alloc(window.count, sizeof *ready);
    TESS_TRY(tess_comm_agree(steps->comm, ready ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(watch(steps));
    status = grid_window(steps, window, samples, bricks, psf);
    TESS_TRY(tess_comm_agree(steps->comm, status));
    if (!last) goto cleanup;
    for (int64_t k = 0; k < window.count; ++k) {
        ready[k] = window.first + k;
        steps->plane_done[ready[k]] = 1;
    }
    TESS_TRY(transform_planes(steps, ready, window.count, num_pol, true));
    give_up_live(steps);
    if (window.first + window.count == steps->plan->num_planes) free_spare(steps);
cleanup:
    tess_free(ready);
    return status;
}

tess_status tess_steps_image_by_planes(tess_steps *steps, int planes_at_once,
                                       const tess_samples *samples,
                                       const tess_brick_list *bricks, bool psf)
{
    tess_status status = TESS_OK;
    const int64_t planes = steps->plan->num_planes;
    for (tess_plane_window window = {0, planes_at_once}; window.first < planes;
         window.first += planes_at_once) {
        if (window.count > planes - window.first) window.count = planes - window.first;
        TESS_TRY(tess_steps_image_window(steps, window, true, samples, bricks, psf));
    }
cleanup:
    return status;
}

/* ---- prediction ---- */

/* Planes not yet transformed that the blocks of this step need. */
static int64_t planes_needed(tess_steps *steps, int step, int64_t *needed)
{
    int64_t count = 0, first, end;
    for (int64_t b = 0; b < steps->plan->num_blocks; ++b) {
        if (steps->step_of_block[b] != step) continue;
        planes_of_block(steps->plan, b, &first, &end);
        for (int64_t p = first; p < end; ++p)
            if (!steps->plane_done[p]) {
                needed[count++] = p;
                steps->plane_done[p] = 1;
            }
    }
    return count;
}

/* Make room for the values of bricks. */
static tess_status lay_out_part(tess_steps *steps, const block_part *part,
                                tess_plane_window window, const tess_samples *samples,
                                const tess_brick_list *bricks)
{
    tess_status status = TESS_OK;
    live_sums *live = NULL;
    if (part->first == part->end) return TESS_OK;
    TESS_TRY(add_live(steps, part->block, &live));
    live->first_brick = part->first;
    live->sums.window_first = (int32_t)window.first;
    live->sums.window_planes = (int32_t)window.count;
    live->sums.spare = &steps->spare;
    TESS_TRY(tess_degrid_begin(steps->plan, samples, bricks, part->first, part->end,
                               &live->sums));
cleanup:
    return status;
}

/* The same for those of a block, unless it is there already. */
static tess_status lay_out_block(tess_steps *steps, int64_t block,
                                 tess_plane_window window, const tess_samples *samples,
                                 const tess_brick_list *bricks)
{
    for (int64_t k = 0; k < steps->num_live; ++k)
        if (steps->live[k].block == block) return TESS_OK;
    const block_part all = whole_block(steps, bricks, block);
    return lay_out_part(steps, &all, window, samples, bricks);
}

/* Degrid the bricks of a live block. */
static tess_status degrid_live(tess_steps *steps, const live_sums *live,
                               tess_samples *samples, const tess_brick_list *bricks)
{
    tess_status status = TESS_OK;
    tess_grid_report report = {
        .progress = &steps->progress, .busy_share = 1, .trace = steps->profile->trace};
    const double start = tess_time_now(), own = tess_time_own();
    double num_vis = 0;
    int64_t plane, plane_end;
    planes_of_block(steps->plan, live->block, &plane, &plane_end);
    for (int64_t b = 0; b < live->sums.num_bricks; ++b)
        num_vis += (double)bricks->num_vis[live->first_brick + b];
    tess_progress_start(&steps->progress, "degridding", "vis", num_vis);
    status = tess_degrid_execute(steps->plan, samples, bricks, live->first_brick,
                                 &live->sums, &report);
    tess_progress_finish(&steps->progress);
    note_gridded(steps, start, own, report.busy_share);
    if (plane >= live->sums.window_first) /* later windows degrid the same again */
        steps->profile->stage_visibilities[TESS_STAGE_GRID] += (int64_t)num_vis;
    return status;
}

static tess_status degrid_step(tess_steps *steps, int step, tess_samples *samples,
                               const tess_brick_list *bricks)
{
    tess_status status = TESS_OK;
    int64_t kept = 0;
    const double start = tess_time_now();
    for (int64_t k = 0; k < steps->num_live; ++k) {
        live_sums *live = &steps->live[k];
        if (steps->step_of_block[live->block] == step) {
            if (status == TESS_OK) status = degrid_live(steps, live, samples, bricks);
            tess_brick_sums_free(&live->sums);
        } else
            steps->live[kept++] = *live;
    }
    steps->num_live = kept;
    tess_profile_since(steps->profile, TESS_STAGE_GRID, start);
    return status;
}

/* All steps, where a device has no room for the values of all bricks of one. Planes are
 * made again for each part. Collective. */
static tess_status predict_in_parts(tess_steps *steps, tess_samples *samples,
                                    const tess_brick_list *bricks, int64_t *planes)
{
    tess_status status = TESS_OK;
    for (int step = 0; step < steps->num_steps; ++step) {
        const int64_t count = planes_of_step(steps, step, planes);
        block_part part = {0};
        for (bool any = true; any;) {
            TESS_TRY(take_part(steps, step, bricks, samples->num_pol, &part, &any));
            status =
                lay_out_part(steps, &part, (tess_plane_window){0}, samples, bricks);
            TESS_TRY(tess_comm_agree(steps->comm, status));
            if (any)
                TESS_TRY(
                    transform_planes(steps, planes, count, samples->num_pol, false));
            status = degrid_step(steps, step, samples, bricks);
            TESS_TRY(tess_comm_agree(steps->comm, status));
        }
    }
cleanup:
    return status;
}

/* All steps. Collective. */
static tess_status predict_steps(tess_steps *steps, tess_samples *samples,
                                 const tess_brick_list *bricks, int64_t *needed)
{
    tess_status status = TESS_OK;
    const tess_grid_plan *plan = steps->plan;
    for (int step = 0; step < steps->num_steps; ++step) {
        const int64_t count = planes_needed(steps, step, needed);
        for (int64_t k = 0; k < count && status == TESS_OK; ++k) {
            int64_t first, end;
            blocks_of_plane(plan, needed[k], &first, &end);
            for (int64_t b = first; b < end && status == TESS_OK; ++b)
                status =
                    lay_out_block(steps, b, (tess_plane_window){0}, samples, bricks);
        }
        TESS_TRY(tess_comm_agree(steps->comm, status));
        TESS_TRY(transform_planes(steps, needed, count, samples->num_pol, false));
        status = degrid_step(steps, step, samples, bricks);
        TESS_TRY(tess_comm_agree(steps->comm, status));
    }
cleanup:
    return status;
}

tess_status tess_steps_predict(tess_steps *steps, tess_samples *samples,
                               const tess_brick_list *bricks)
{
    tess_status status = TESS_OK;
    const tess_grid_plan *plan = steps->plan;
    bool in_parts;
    int64_t *planes = tess_alloc(plan->num_planes, sizeof *planes);
    TESS_TRY(tess_comm_agree(steps->comm, planes ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(choose_parts(steps, bricks, samples->num_pol, false, &in_parts));
    TESS_TRY(in_parts ? predict_in_parts(steps, samples, bricks, planes)
                      : predict_steps(steps, samples, bricks, planes));
    const double start = tess_time_now();
    status = tess_degrid_finish(plan, samples, bricks);
    tess_profile_since(steps->profile, TESS_STAGE_GRID, start);
    TESS_TRY(tess_comm_agree(steps->comm, status));
cleanup:
    tess_free(planes);
    return status;
}

/* Visibilities of zero, to which windows of planes add. */
static void clear_vis(const tess_steps *steps, tess_samples *samples)
{
    enum { PART = 4096 };
    const int64_t bytes =
        samples->num_vis * samples->num_pol * (samples->is_double ? 16 : 8);
#pragma omp parallel for num_threads(steps->plan->opts.threads) schedule(static)
    for (int64_t at = 0; at < bytes; at += PART)
        memset((char *)samples->vis + at, 0,
               (size_t)(bytes - at < PART ? bytes - at : PART));
}

/* Degrid what the blocks have in a window of planes. Collective. */
static tess_status predict_window(tess_steps *steps, tess_plane_window window,
                                  tess_samples *samples, const tess_brick_list *bricks,
                                  int64_t *planes)
{
    tess_status status = TESS_OK;
    for (int64_t b = 0; b < steps->plan->num_blocks && status == TESS_OK; ++b)
        if (tess_steps_block_in(steps, b, window))
            status = lay_out_block(steps, b, window, samples, bricks);
    TESS_TRY(tess_comm_agree(steps->comm, status));
    for (int64_t k = 0; k < window.count; ++k)
        planes[k] = window.first + k;
    TESS_TRY(transform_planes(steps, planes, window.count, samples->num_pol, false));
    const double start = tess_time_now();
    for (int64_t k = 0; k < steps->num_live && status == TESS_OK; ++k)
        status = degrid_live(steps, &steps->live[k], samples, bricks);
    tess_profile_since(steps->profile, TESS_STAGE_GRID, start);
    TESS_TRY(tess_comm_agree(steps->comm, status));
    give_up_live(steps);
cleanup:
    return status;
}

tess_status tess_steps_predict_by_planes(tess_steps *steps, int planes_at_once,
                                         tess_samples *samples,
                                         const tess_brick_list *bricks)
{
    tess_status status = TESS_OK;
    const int64_t planes = steps->plan->num_planes;
    int64_t *wanted = tess_alloc(planes_at_once, sizeof *wanted);
    TESS_TRY(tess_comm_agree(steps->comm, wanted ? TESS_OK : TESS_ERR_ALLOC));
    clear_vis(steps, samples);
    for (int64_t first = 0; first < planes; first += planes_at_once) {
        const int64_t left = planes - first;
        const tess_plane_window window = {
            first, left < planes_at_once ? left : planes_at_once};
        TESS_TRY(predict_window(steps, window, samples, bricks, wanted));
    }
cleanup:
    free_spare(steps);
    tess_free(wanted);
    return status;
}

/* ---- slabs ---- */

tess_status tess_slabs_choose(tess_comm *comm, const tess_grid_plan *plan,
                              const tess_brick_list *bricks, int slabs,
                              int64_t *slab_line)
{
    tess_status status = TESS_OK;
    int64_t *occupied = tess_alloc_zero(plan->tiles_u, sizeof *occupied);
    TESS_TRY(tess_comm_agree(comm, occupied ? TESS_OK : TESS_ERR_ALLOC));
    for (int64_t k = 0; k < bricks->num_bricks; ++k) {
        int64_t block, tile_u, tile_v;
        tess_grid_brick_of_key(plan, bricks->key[k], &block, &tile_u, &tile_v);
        occupied[tile_u] = 1;
    }
    TESS_TRY(tess_comm_allreduce_i64(comm, occupied, plan->tiles_u, TESS_MAX));
    int64_t total = 0, before = 0;
    for (int64_t t = 0; t < plan->tiles_u; ++t)
        total += occupied[t];
    int slab = 0;
    slab_line[0] = 0;
    for (int64_t t = 0; t < plan->tiles_u; ++t) {
        while (slab + 1 < slabs && before >= total * (slab + 1) / slabs && t > 0)
            slab_line[++slab] = t * plan->tile;
        before += occupied[t];
    }
    while (slab < slabs)
        slab_line[++slab] = plan->nu;
cleanup:
    tess_free(occupied);
    return status;
}
