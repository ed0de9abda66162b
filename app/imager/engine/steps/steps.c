/* W-steps: holds sums of bricks, and transforms planes between these sums and images.
 */
#include "steps_private.h"

#include <string.h>

#include "tess_log.h"
#include "tess_mem.h"

/* Finds the blocks in which any rank has bricks: occupied[num_blocks]. Collective. */
static tess_status find_occupied(tess_comm *comm, const tess_grid_plan *plan,
                                 const tess_brick_list *own, int64_t *occupied)
{
    for (int64_t k = 0; k < own->num_bricks; ++k)
        occupied[own->key[k] / (plan->tiles_u * plan->tiles_v)] = 1;
    return tess_comm_allreduce_i64(comm, occupied, plan->num_blocks, TESS_MAX);
}

/* Numbers the steps: each group of ranks walks through its blocks that have bricks.
 * next[num_groups] is zero. */
static void number_steps(tess_steps *steps, const int64_t *occupied, int *next)
{
    for (int b = 0; b < steps->plan->num_blocks; ++b) {
        steps->step_of_block[b] = -1;
        if (!occupied[b]) continue;
        const int group = tess_partition_group(steps->partition, b);
        const int step = next[group]++;
        steps->step_of_block[b] = step;
        if (step + 1 > steps->num_steps) steps->num_steps = step + 1;
    }
}

static tess_status list_blocks(tess_steps *steps)
{
    tess_status status = TESS_OK;
    const int64_t count = (int64_t)steps->num_steps * steps->num_groups;
    steps->block_of = tess_alloc(count, sizeof *steps->block_of);
    if (!steps->block_of) TESS_FAIL(TESS_ERR_ALLOC, "w-steps");
    for (int64_t k = 0; k < count; ++k)
        steps->block_of[k] = -1;
    for (int b = 0; b < steps->plan->num_blocks; ++b) {
        const int64_t step = steps->step_of_block[b];
        if (step < 0) continue;
        steps->block_of[step * steps->num_groups +
                        tess_partition_group(steps->partition, b)] = b;
    }
cleanup:
    return status;
}

tess_status tess_steps_create(tess_comm *comm, const tess_grid_plan *plan,
                              const tess_partition *partition,
                              const tess_brick_list *own, int num_groups,
                              tess_planes *planes, tess_profile *profile,
                              tess_steps **steps_out)
{
    tess_status status = TESS_OK;
    int *next = tess_alloc_zero(num_groups, sizeof *next);
    int64_t *occupied = tess_alloc_zero(plan->num_blocks, sizeof *occupied);
    tess_steps *steps = tess_alloc_zero(1, sizeof *steps);
    if (steps) {
        *steps = (tess_steps){.comm = comm,
                              .plan = plan,
                              .partition = partition,
                              .planes = planes,
                              .profile = profile,
                              .num_groups = num_groups};
        steps->step_of_block =
            tess_alloc(plan->num_blocks, sizeof *steps->step_of_block);
        steps->plane_done = tess_alloc_zero(plan->num_planes, 1);
        steps->touched = tess_alloc(plan->num_planes + 1, sizeof *steps->touched);
    }
    const bool ready = next && occupied && steps && steps->step_of_block &&
                       steps->plane_done && steps->touched;
    TESS_TRY(tess_comm_agree(comm, ready ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(find_occupied(comm, plan, own, occupied));
    number_steps(steps, occupied, next);
    TESS_TRY(tess_comm_agree(comm, list_blocks(steps)));
    *steps_out = steps;
    steps = NULL;
cleanup:
    tess_free(next);
    tess_free(occupied);
    tess_steps_destroy(steps);
    return status;
}

int64_t tess_steps_touched(const tess_steps *steps)
{
    int64_t count = 0, next = 0;
    for (int64_t b = 0; b < steps->plan->num_blocks; ++b) {
        int64_t first, end;
        if (steps->step_of_block[b] < 0) continue;
        steps_planes_of_block(steps->plan, b, &first, &end);
        if (first < next) first = next;
        if (end > first) count += end - first;
        next = end;
    }
    return count;
}

int64_t steps_block_of(const tess_steps *steps, int step, int group)
{
    return steps->block_of[(int64_t)step * steps->num_groups + group];
}

void steps_free_live(tess_steps *steps)
{
    for (int64_t k = 0; k < steps->num_live; ++k)
        tess_brick_sums_free(&steps->live[k].sums);
    steps->num_live = 0;
}

/* No window follows, and later work may need the memory of the spare arena. */
void steps_free_spare(tess_steps *steps)
{
    tess_free(steps->spare.data);
    steps->spare = (tess_brick_arena){0};
}

void tess_steps_destroy(tess_steps *steps)
{
    if (!steps) return;
    steps_free_live(steps);
    steps_free_spare(steps);
    tess_free(steps->live);
    tess_free(steps->step_of_block);
    tess_free(steps->block_of);
    tess_free(steps->plane_done);
    tess_free(steps->touched);
    tess_free(steps->piece);
    tess_free(steps);
}

void tess_steps_restart(tess_steps *steps)
{
    steps_free_live(steps);
    memset(steps->plane_done, 0, (size_t)steps->plan->num_planes);
    steps->in_parts = false;
}

void tess_steps_aim(tess_steps *steps, const tess_grid_plan *plan, tess_planes *planes)
{
    steps->plan = plan;
    steps->planes = planes;
}

int tess_steps_count(const tess_steps *steps)
{
    return steps->num_steps;
}

int tess_steps_of_block(const tess_steps *steps, int64_t block)
{
    return steps->step_of_block[block];
}

void steps_blocks_of_plane(const tess_grid_plan *plan, int64_t plane, int64_t *first,
                           int64_t *end)
{
    const int64_t lowest_start = plane - plan->w_support + 1;
    *first = lowest_start < 0 ? 0 : lowest_start / plan->block_planes;
    *end = plane / plan->block_planes + 1;
    if (*end > plan->num_blocks) *end = plan->num_blocks;
    if (*first >= *end) *first = *end - 1;
}

void tess_steps_blocks_in(const tess_steps *steps, tess_plane_window window,
                          int64_t *first, int64_t *end)
{
    int64_t unused;
    *first = 0;
    *end = steps->plan->num_blocks;
    if (window.count == 0) return;
    steps_blocks_of_plane(steps->plan, window.first, first, &unused);
    steps_blocks_of_plane(steps->plan, window.first + window.count - 1, &unused, end);
}

bool tess_steps_window_touched(const tess_steps *steps, tess_plane_window window)
{
    int64_t first, end;
    tess_steps_blocks_in(steps, window, &first, &end);
    for (int64_t b = first; b < end; ++b)
        if (steps->step_of_block[b] >= 0) return true;
    return false;
}

void steps_planes_of_block(const tess_grid_plan *plan, int64_t block, int64_t *first,
                           int64_t *end)
{
    *first = block * plan->block_planes;
    *end = *first + plan->block_planes + plan->w_support - 1;
    if (*end > plan->num_planes) *end = plan->num_planes;
}

int steps_last_of_plane(const tess_steps *steps, int64_t plane)
{
    int64_t first, end;
    int last = -1;
    steps_blocks_of_plane(steps->plan, plane, &first, &end);
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

tess_status tess_steps_look(tess_steps *steps)
{
    /* a run cannot go on from images that have parts of planes */
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
    steps_planes_of_block(steps->plan, block, &first, &end);
    return tess_steps_window_done(steps, (tess_plane_window){first, end - first});
}

bool tess_steps_block_in(const tess_steps *steps, int64_t block,
                         tess_plane_window window)
{
    int64_t first, end;
    steps_planes_of_block(steps->plan, block, &first, &end);
    return window.count == 0 ||
           (end > window.first && first < window.first + window.count);
}

/* ---- pieces of brick sums ---- */

/* Most lines that a piece has (tess_piece), and lines of the pieces into which more
 * lines are cut. */
enum { PIECE_LINES = 31, PIECE_STEP = 16 };

/* Appends lines [from, from + count) of a brick sum, which begin at a grid line, as
 * pieces. */
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

/* Appends the lines of one brick sum in one plane and polarisation, cut where they wrap
 * around. */
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

/* A plane and polarisation that is transformed. */
typedef struct plane_pol {
    int64_t plane;
    int pol;
} plane_pol;

/* The planes that are transformed, and the jobs of a batch of them. */
typedef struct plane_batches {
    plane_pol *list;
    int64_t count;
    tess_plane_job *job;
    int64_t *begin; /* [jobs] the first piece of each job */
} plane_batches;

static void batches_free(plane_batches *batches)
{
    tess_free(batches->list);
    tess_free(batches->job);
    tess_free(batches->begin);
}

static tess_status batches_create(const tess_steps *steps, int64_t most,
                                  plane_batches *batches)
{
    tess_status status = TESS_OK;
    const int jobs = tess_planes_jobs(steps->planes);
    batches->list = tess_alloc(most, sizeof *batches->list);
    batches->job = tess_alloc_zero(jobs, sizeof *batches->job);
    batches->begin = tess_alloc_zero(jobs, sizeof *batches->begin);
    if (!batches->list || !batches->job || !batches->begin)
        TESS_FAIL(TESS_ERR_ALLOC, "list of w-planes");
cleanup:
    return status;
}

/* Fills the jobs of the batch that begins at plane `first` of the list: each plane is
 * one job, and jobs beyond the last plane have nothing to do. Local. */
static tess_status fill_batch(tess_steps *steps, const plane_batches *batches,
                              int64_t first)
{
    tess_status status = TESS_OK;
    const tess_grid_plan *plan = steps->plan;
    const int jobs = tess_planes_jobs(steps->planes);
    const plane_pol *list = batches->list + first;
    tess_plane_job *job = batches->job;
    int64_t num_pieces = 0;
    for (int j = 0; j < jobs && status == TESS_OK; ++j) {
        batches->begin[j] = num_pieces;
        job[j] = (tess_plane_job){.active = first + j < batches->count};
        if (!job[j].active) continue;
        job[j].image = list[j].pol;
        job[j].w_lambda =
            plan->w_first_lambda + (double)list[j].plane * plan->w_step_lambda;
        for (int64_t k = 0; k < steps->num_live && status == TESS_OK; ++k)
            status = add_pieces(steps, &steps->live[k].sums, list[j].plane, list[j].pol,
                                &num_pieces);
        job[j].num_pieces = num_pieces - batches->begin[j];
    }
    for (int j = 0; j < jobs; ++j)
        job[j].piece = steps->piece + batches->begin[j];
    return status;
}

/* Notes, where that is kept, that the images hold the planes of a batch, and calls the
 * watcher. The ranks agree on `own` before. Collective. */
static tess_status note_done(tess_steps *steps, const plane_batches *batches,
                             int64_t first, tess_status own)
{
    tess_status status = TESS_OK;
    const int64_t end = first + tess_planes_jobs(steps->planes);
    TESS_TRY(tess_comm_agree(steps->comm, own));
    for (int64_t k = first; steps->done && k < batches->count && k < end; ++k)
        *done_of(steps, batches->list[k].plane, batches->list[k].pol) = '1';
    TESS_TRY(tess_steps_look(steps));
cleanup:
    return status;
}

/* Transforms the listed planes. `start`: when listing them began. Collective. */
static tess_status transform(tess_steps *steps, const plane_batches *batches,
                             double start, bool forward)
{
    tess_status status = TESS_OK, own = TESS_OK;
    const int jobs = tess_planes_jobs(steps->planes);
    tess_planes_times times = {.trace = steps->profile->trace};
    tess_progress_start(&steps->progress, "FFT", " planes", (double)batches->count);
    for (int64_t first = 0; first < batches->count; first += jobs) {
        if (first > 0) start = tess_time_now();
        if (own == TESS_OK) own = fill_batch(steps, batches, first);
        tess_profile_since(steps->profile, TESS_STAGE_REDUCE, start);
        TESS_TRY(forward
                     ? tess_planes_accumulate(steps->planes, batches->job, &own, &times)
                     : tess_planes_extract(steps->planes, batches->job, &own, &times));
        tess_progress_add(&steps->progress, jobs);
        if (steps->watch && forward && !steps->in_parts)
            TESS_TRY(note_done(steps, batches, first, own));
    }
    TESS_TRY(tess_comm_agree(steps->comm, own));
cleanup:
    tess_planes_rest(steps->planes, true);
    tess_progress_finish(&steps->progress);
    steps->profile->stage_seconds[TESS_STAGE_REDUCE] += times.exchange_s;
    steps->profile->stage_seconds[TESS_STAGE_FFT] += times.fft_s;
    steps->profile->join_s += times.join_s;
    tess_profile_sent(steps->profile, TESS_STAGE_REDUCE);
    return status;
}

/* Marks those planes from `first` on, touched[count], in which this rank has values. */
static void mark_touched(const tess_steps *steps, int64_t first, int64_t count,
                         int64_t *touched)
{
    for (int64_t k = 0; k < steps->num_live; ++k)
        for (int64_t b = 0; b < steps->live[k].sums.num_bricks; ++b) {
            const tess_brick_sum *sum = &steps->live[k].sums.brick[b];
            const int64_t from = sum->plane_first - first;
            for (int64_t p = from < 0 ? 0 : from; p < from + sum->num_planes; ++p) {
                if (p >= count) break;
                touched[p] = 1;
            }
        }
}

/* Finds in which of the wanted planes any rank has values: steps->touched[count]. The
 * ranks agree on `status` with the same message. Neighbouring planes are looked for
 * together. Collective. */
static tess_status find_touched(tess_steps *steps, tess_status status,
                                const int64_t *wanted, int64_t count)
{
    int64_t *touched = steps->touched;
    memset(touched, 0, (size_t)count * sizeof *touched);
    for (int64_t k = 0, end; k < count && status == TESS_OK; k = end) {
        end = k + 1;
        while (end < count && wanted[end] == wanted[end - 1] + 1)
            ++end;
        mark_touched(steps, wanted[k], end - k, touched + k);
    }
    return tess_comm_agree_on(steps->comm, status, touched, count, TESS_MAX);
}

/* Lists those of the wanted planes in which any rank has values, for every
 * polarisation. Local. */
static void list_planes(tess_steps *steps, const int64_t *wanted, int64_t count,
                        int num_pol, plane_batches *batches)
{
    for (int64_t k = 0; k < count; ++k)
        for (int pol = 0; pol < num_pol; ++pol) {
            if (steps->done && *done_of(steps, wanted[k], pol) == '1') continue;
            if (steps->touched[k])
                batches->list[batches->count++] = (plane_pol){wanted[k], pol};
            else if (steps->done && !steps->in_parts) /* the plane has no values */
                *done_of(steps, wanted[k], pol) = '1';
        }
}

tess_status steps_transform_planes(tess_steps *steps, tess_status status,
                                   const int64_t *wanted, int64_t count, int num_pol,
                                   bool forward)
{
    const double start = tess_time_now();
    plane_batches batches = {0};
    if (status == TESS_OK) status = batches_create(steps, count * num_pol, &batches);
    TESS_TRY(find_touched(steps, status, wanted, count));
    list_planes(steps, wanted, count, num_pol, &batches);
    if (batches.count > 0) TESS_TRY(transform(steps, &batches, start, forward));
cleanup:
    batches_free(&batches);
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

tess_status steps_add_live(tess_steps *steps, int64_t block, steps_live **live_out)
{
    tess_status status = TESS_OK;
    if (tess_grow((void **)&steps->live, &steps->capacity_live, steps->num_live + 1,
                  sizeof *steps->live))
        TESS_FAIL(TESS_ERR_ALLOC, "brick sums");
    *live_out = &steps->live[steps->num_live++];
    **live_out = (steps_live){.block = block};
cleanup:
    return status;
}

void steps_free_finished(tess_steps *steps)
{
    int64_t kept = 0;
    for (int64_t k = 0; k < steps->num_live; ++k) {
        int64_t first, end;
        bool finished = true;
        steps_planes_of_block(steps->plan, steps->live[k].block, &first, &end);
        for (int64_t p = first; p < end; ++p)
            finished = finished && steps->plane_done[p];
        if (finished)
            tess_brick_sums_free(&steps->live[k].sums);
        else
            steps->live[kept++] = steps->live[k];
    }
    steps->num_live = kept;
}

void steps_give_up_live(tess_steps *steps)
{
    for (int64_t k = 0; k < steps->num_live; ++k) {
        tess_brick_sums *sums = &steps->live[k].sums;
        if (sums->release || sums->capacity <= steps->spare.num_values) continue;
        tess_free(steps->spare.data);
        steps->spare = (tess_brick_arena){sums->data, sums->capacity};
        sums->data = NULL;
    }
    steps_free_live(steps);
}

void steps_note_gridded(tess_steps *steps, double start_s, double own_s,
                        double busy_share)
{
    const double wall_s = tess_time_now() - start_s;
    steps->grid_wall_s += wall_s;
    steps->grid_busy_s += wall_s * busy_share;
    if (steps->grid_wall_s > 0)
        steps->profile->grid.utilisation = steps->grid_busy_s / steps->grid_wall_s;
    steps->profile->grid.own_s += tess_time_own() - own_s;
}

steps_part steps_whole_block(const tess_steps *steps, const tess_brick_list *bricks,
                             int64_t block)
{
    steps_part part = {.block = block};
    bricks_of_block(steps->plan, bricks, block, &part.first, &part.end);
    return part;
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
