/* Chooses the passes over data that do not fit into memory. */
#include <math.h>
#include <stdlib.h>

#include "exchange.h"
#include "imager_job.h"
#include "imager_passes.h"
#include "imager_window.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_samples.h"

/* ---- this rank's bricks ---- */

/* A brick, and the samples of one rank in it. */
typedef struct brick {
    int64_t key, num_vis, num_runs;
    tess_plane_span planes; /* planes that it touches, where they are known */
} brick;

static int by_key(const void *a, const void *b)
{
    const brick *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

/* Sorts bricks by owner, in the order of ranks: bytes[rank] of them. */
static brick *pack_by_owner(const imager_job *job, const tess_brick_list *bricks,
                            int64_t *bytes)
{
    const int ranks = tess_comm_size(imager_samples_team(job));
    int64_t *next = tess_alloc_zero(ranks + 1, sizeof *next);
    int *owner = tess_alloc(bricks->num_bricks, sizeof *owner);
    brick *out = tess_alloc(bricks->num_bricks, sizeof *out);
    if (!next || !owner || !out) {
        tess_free(out);
        out = NULL;
        goto cleanup;
    }
    for (int64_t k = 0; k < bricks->num_bricks; ++k) {
        owner[k] = tess_partition_owner(job->partition, bricks->key[k], 0);
        ++next[owner[k] + 1];
    }
    for (int rank = 0; rank < ranks; ++rank) {
        bytes[rank] = next[rank + 1] * (int64_t)sizeof *out;
        next[rank + 1] += next[rank];
    }
    for (int64_t k = 0; k < bricks->num_bricks; ++k)
        out[next[owner[k]]++] =
            (brick){bricks->key[k], bricks->num_vis[k],
                    bricks->first_run[k + 1] - bricks->first_run[k],
                    bricks->planes ? bricks->planes[k] : (tess_plane_span){0, 0}};
cleanup:
    tess_free(next);
    tess_free(owner);
    return out;
}

void imager_join_planes(tess_plane_span *planes, tess_plane_span more)
{
    if (more.first < planes->first) planes->first = more.first;
    if (more.end > planes->end) planes->end = more.end;
}

int imager_sort_threads(const imager_job *job)
{
    return tess_costs_threads(&job->costs, TESS_TRAFFIC_SORT, job->layout->threads);
}

tess_status imager_sort(const imager_job *job, const tess_samples *samples,
                        bool skip_ignored, bool in_place, tess_brick_list *bricks)
{
    const int threads = imager_sort_threads(job);
    return in_place ? tess_brick_list_make(job->plan, samples, skip_ignored, bricks)
                    : tess_brick_list_count(job->plan, samples, skip_ignored, threads,
                                            bricks);
}

/* Makes a list of ascending bricks; bricks of one key become one. */
static tess_status list_of(const brick *own, int64_t count, bool with_planes,
                           tess_brick_list *list)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_brick_list_make_counts(count, with_planes, list));
    for (int64_t k = 0; k < count; ++k) {
        const int64_t last = list->num_bricks - 1;
        if (last >= 0 && list->key[last] == own[k].key) {
            list->num_vis[last] += own[k].num_vis;
            if (with_planes) imager_join_planes(&list->planes[last], own[k].planes);
        } else {
            list->key[last + 1] = own[k].key;
            list->num_vis[last + 1] = own[k].num_vis;
            list->first_run[last + 1] = list->num_runs;
            if (with_planes) list->planes[last + 1] = own[k].planes;
            ++list->num_bricks;
        }
        list->num_runs += own[k].num_runs;
    }
    list->first_run[list->num_bricks] = list->num_runs;
cleanup:
    return status;
}

tess_status imager_owned_bricks(const imager_job *job, const tess_brick_list *bricks,
                                tess_brick_list *owned)
{
    tess_status status = TESS_OK;
    tess_comm *comm = imager_team(job);
    const int ranks = tess_comm_size(comm);
    brick *send = NULL;
    void *received = NULL;
    int64_t *bytes = tess_alloc_zero(2 * ranks, sizeof *bytes), total = 0;
    *owned = (tess_brick_list){0};
    if (bytes) send = pack_by_owner(job, bricks, bytes);
    TESS_TRY(tess_comm_agree(comm, bytes && send ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_comm_alltoallv(comm, send, bytes, &received, bytes + ranks));
    for (int k = 0; k < ranks; ++k)
        total += bytes[ranks + k] / (int64_t)sizeof *send;
    if (total > 0) qsort(received, (size_t)total, sizeof *send, by_key);
    status = list_of(received, total, bricks->planes != NULL, owned);
    TESS_TRY(tess_comm_agree(comm, status));
cleanup:
    tess_free(received);
    tess_free(send);
    tess_free(bytes);
    return status;
}

/* ---- needs ---- */

/* A share of randomly dealt bricks may be larger than the mean, by this factor. */
static const double SHARE_SPREAD = 1.1;

/* The first search looks at no more passes than this. */
enum { MOST_SHARES = 1000 };

/* The samples and sums of each block of w-planes, on the rank that has most of it. */
typedef struct block_load {
    int64_t *bricks;      /* [num_blocks] */
    double *sample_bytes; /* [num_blocks] */
    double num_vis;
} block_load;

/* Memory that a rank needs for the samples of a brick [bytes]. */
static double brick_bytes(const tess_brick_list *owned, int64_t k,
                          imager_item_bytes each)
{
    const int64_t runs = owned->first_run[k + 1] - owned->first_run[k];
    /* each run may be a row of its own */
    return each.vis * (double)owned->num_vis[k] +
           (each.row + 2 * sizeof(tess_run)) * (double)runs;
}

static tess_status load_of(const imager_job *job, const tess_brick_list *owned,
                           imager_item_bytes each, block_load *load)
{
    tess_status status = TESS_OK;
    const int num_blocks = job->plan->num_blocks;
    const int64_t per_block = job->plan->tiles_u * job->plan->tiles_v;
    load->bricks = tess_alloc_zero(num_blocks, sizeof *load->bricks);
    load->sample_bytes = tess_alloc_zero(num_blocks, sizeof *load->sample_bytes);
    TESS_TRY(tess_comm_agree(imager_team(job), load->bricks && load->sample_bytes
                                                   ? TESS_OK
                                                   : TESS_ERR_ALLOC));
    load->num_vis = imager_count_blocks(job, owned, load->bricks);
    for (int64_t k = 0; k < owned->num_bricks; ++k) {
        const int64_t block = owned->key[k] / per_block;
        load->sample_bytes[block] += brick_bytes(owned, k, each);
    }
    TESS_TRY(
        tess_comm_allreduce_i64(imager_team(job), load->bricks, num_blocks, TESS_MAX));
    TESS_TRY(tess_comm_allreduce_f64(imager_team(job), load->sample_bytes, num_blocks,
                                     TESS_MAX));
cleanup:
    return status;
}

tess_plane_window imager_passes_window(const imager_job *job,
                                       const imager_passes *passes, int window)
{
    const int64_t planes = job->plan->num_planes, at_once = passes->planes_at_once;
    if (at_once == 0) return (tess_plane_window){0, 0};
    const int64_t first = window * at_once;
    return (tess_plane_window){first,
                               planes - first < at_once ? planes - first : at_once};
}

/* ---- the choice ---- */

/* Share of a rank's memory for samples if nothing fits. */
static const double LEAST_SHARE = 0.3;

/* Bytes of samples that touch a window of planes. */
static double bytes_in(const imager_job *job, const block_load *load,
                       tess_plane_window window)
{
    double bytes = 0;
    int64_t first, end;
    tess_steps_blocks_in(job->steps, window, &first, &end);
    for (int64_t b = first; b < end; ++b)
        bytes += load->sample_bytes[b];
    return bytes;
}

/* The passes if the sums of this number of planes are held at a time (0: those of a
 * w-window), and this number of bytes of samples beside them. */
static void passes_with(const imager_job *job, const block_load *load,
                        const imager_sums_size *size, int planes_at_once, double left,
                        imager_passes *passes)
{
    const int planes = job->plan->num_planes, forced = job->layout->forced.passes;
    passes->planes_at_once = planes_at_once;
    passes->num_windows =
        planes_at_once > 0 ? (planes + planes_at_once - 1) / planes_at_once : 1;
    passes->sums_bytes = imager_window_bytes(size, planes_at_once);
    passes->sample_bytes = 0;
    passes->num_reads = 0;
    for (int k = 0; k < passes->num_windows; ++k) {
        const tess_plane_window window = imager_passes_window(job, passes, k);
        const bool is_end = k == 0 || k == passes->num_windows - 1;
        const double bytes = bytes_in(job, load, window) * SHARE_SPREAD;
        passes->num_shares[k] = 0;
        if (!is_end && !tess_steps_window_touched(job->steps, window)) continue;
        const double shares = forced > 0 ? forced : fmax(1, ceil(bytes / left));
        passes->num_shares[k] =
            left > 0 && shares < MOST_SHARES ? (int)shares : MOST_SHARES;
        passes->num_reads += passes->num_shares[k];
        passes->sample_bytes =
            fmax(passes->sample_bytes, bytes / passes->num_shares[k]);
    }
    passes->too_large = left <= 0 || passes->sample_bytes > left;
}

/* Whether sums of fewer planes than a w-window has may be held at a time. */
static bool by_planes(const imager_job *job)
{
    return job->ranks.num_groups == 1 && !job->backend->start &&
           job->plan->num_planes > 1 && job->layout->forced.plane_window >= 0;
}

/* A plan may have so many planes, most of them without values, that not each number of
 * planes at a time can be tried: these are the smallest, and those that make up to as
 * many windows. */
enum { MOST_TRIED = 1024 };

static bool is_tried(int planes, int at_once)
{
    if (planes <= 2 * MOST_TRIED || at_once <= MOST_TRIED) return true;
    const int windows = (planes + at_once - 1) / at_once;
    return windows <= MOST_TRIED && at_once == (planes + windows - 1) / windows;
}

/* The fewest passes over data; of several choices with as few, the one with the sums of
 * most planes. */
static void choose(const imager_job *job, const block_load *load,
                   const imager_sums_size *size, double room, imager_passes *passes)
{
    const int forced = by_planes(job) ? job->layout->forced.plane_window : 0;
    const int most = by_planes(job) ? job->plan->num_planes - 1 : 0;
    int best = -1, fewest = 0;
    for (int k = 0; k <= most && forced == 0; ++k) {
        const int at_once = k == 0 ? 0 : most + 1 - k;
        if (k > 0 && !is_tried(most + 1, at_once)) continue;
        passes_with(job, load, size, at_once, room - imager_window_bytes(size, at_once),
                    passes);
        if (passes->too_large || (best >= 0 && passes->num_reads >= fewest)) continue;
        best = at_once;
        fewest = passes->num_reads;
    }
    const int planes = best >= 0 ? best : forced > 0 ? forced : most > 0 && room > 0;
    const double left = room - imager_window_bytes(size, planes);
    passes_with(job, load, size, planes, left, passes);
    if (!passes->too_large) return;
    /* not even the sums of one plane fit, or the images do not: this choice needs the
     * least memory */
    passes_with(job, load, size, planes,
                fmax(left, LEAST_SHARE * (double)job->memory.rank_bytes), passes);
    passes->too_large = true;
}

/* Cuts passes so that all of a pass's samples, which are like `limited`, fit this
 * rank's device beside their sums, and `left` bytes of its memory. Collective. */
static tess_status cut_for_device(const imager_job *job, const tess_brick_list *owned,
                                  imager_item_bytes each, double left,
                                  const tess_samples *limited, imager_passes *passes)
{
    tess_status status = TESS_OK;
    const int64_t most = job->backend->grid->most_beside(
        job->plan, limited,
        passes->sums_bytes + (double)tess_planes_more_bytes(job->planes));
    double *fill = tess_alloc(owned->num_bricks, sizeof *fill);
    TESS_TRY(tess_comm_agree(imager_team(job), fill ? TESS_OK : TESS_ERR_ALLOC));
    for (int64_t k = 0; k < owned->num_bricks; ++k) {
        const double host = left > 0 ? brick_bytes(owned, k, each) / left : 0;
        fill[k] = fmax(host, (double)owned->num_vis[k] / (double)(most > 0 ? most : 1));
    }
    TESS_TRY(pass_cuts_make(job, owned, fill, passes));
cleanup:
    tess_free(fill);
    return status;
}

/* Whether each of this many passes takes a share of the bricks of all steps; otherwise
 * passes take steps of their own. */
static bool by_shares(const imager_job *job, const imager_passes *passes, int num)
{
    return passes->planes_at_once > 0 || num > tess_steps_count(job->steps);
}

int imager_passes_in_turn(const imager_job *job, const imager_passes *passes)
{
    int most = 1;
    for (int k = 0; k < passes->num_windows; ++k)
        if (by_shares(job, passes, passes->num_shares[k]) &&
            passes->num_shares[k] > most)
            most = passes->num_shares[k];
    return most;
}

imager_cut imager_passes_cut(const imager_job *job, const imager_passes *passes,
                             int window, int64_t pass)
{
    const int steps = tess_steps_count(job->steps), num = passes->num_shares[window];
    if (passes->cut) return passes->cut[pass];
    if (by_shares(job, passes, num)) return (imager_cut){0, steps, (int)pass, num};
    return (imager_cut){(int)(steps * pass / num), (int)(steps * (pass + 1) / num), 0,
                        1};
}

imager_cut imager_cut_all(const imager_job *job)
{
    return (imager_cut){0, tess_steps_count(job->steps), 0, 1};
}

bool imager_cut_has(const imager_cut *cut, int step, int64_t key)
{
    return step >= cut->first_step && step < cut->end_step &&
           key % cut->num_shares == cut->share;
}

double imager_held_bytes(const imager_job *job, double sample_bytes, double block_bytes)
{
    const int ranks = tess_comm_size(job->comm);
    return imager_base_bytes(job) + imager_planes_bytes(job) + sample_bytes +
           2 * block_bytes +
           (ranks > 1 ? (double)tess_exchange_flight_bytes(ranks) : 0);
}

tess_status imager_passes_choose(const imager_job *job, const tess_brick_list *owned,
                                 imager_item_bytes each, double other_bytes,
                                 const tess_samples *limited, imager_passes *passes)
{
    tess_status status = TESS_OK;
    block_load load = {0};
    double room = -((double)job->memory.rank_bytes - other_bytes);
    *passes = (imager_passes){0};
    passes->num_shares = tess_alloc(job->plan->num_planes, sizeof *passes->num_shares);
    TESS_TRY(tess_comm_agree(imager_team(job),
                             passes->num_shares ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(load_of(job, owned, each, &load));
    TESS_TRY(tess_comm_allreduce_f64(imager_team(job), &room, 1, TESS_MAX));
    const imager_sums_size size = imager_sums_size_of(job, load.bricks, load.num_vis);
    choose(job, &load, &size, -room, passes);
    if (limited && job->layout->forced.passes == 0)
        TESS_TRY(cut_for_device(job, owned, each, -room - passes->sums_bytes, limited,
                                passes));
    if (passes->too_large && tess_comm_rank(imager_team(job)) == 0)
        tess_log_warn(
            "a rank may use %s, but images, sums of one w-plane and samples of "
            "%d passes over data take about %s; more --memory or ranks help",
            tess_mem_text((double)job->memory.rank_bytes), passes->num_reads,
            tess_mem_text(other_bytes + passes->sums_bytes + passes->sample_bytes));
cleanup:
    tess_free(load.bricks);
    tess_free(load.sample_bytes);
    return status;
}

void imager_passes_free(imager_passes *passes)
{
    tess_free(passes->num_shares);
    tess_free(passes->cut);
    passes->num_shares = NULL;
    passes->cut = NULL;
}
