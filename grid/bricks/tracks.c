/* Puts what has been found of tracks together, and adds samples to their nodes. See
 * tess_tracks.h. */
#include "tracks.h"

#include <math.h>
#include <string.h>

#include "tess_mem.h"
#include "tess_minmax.h"
#include "tess_omp.h"
#include "tracks_find.h"

/* ---- all ---- */

/* Cuts the bricks, or all rows, into shares. */
static tess_status share_out(find_work *work)
{
    tess_status status = TESS_OK;
    if (work->bricks) return tracks_share_bricks(work->bricks, &work->shares);
    TESS_TRY(tracks_order_rows(work->samples, work->opts->threads, &work->order));
    TESS_TRY(tracks_share_rows(work->samples, &work->order, &work->shares));
cleanup:
    return status;
}

static void free_work(find_work *work, find_share *found)
{
    for (int64_t k = 0; found && k < work->shares.num; ++k) {
        tess_free(found[k].track);
        tess_free(found[k].curve);
        tess_free(found[k].row);
        tess_free(found[k].node);
    }
    tess_free(found);
    tess_free(work->shares.share);
    tracks_order_free(&work->order);
}

static tess_status find_all(const find_work *work, find_share *found)
{
    tess_status status = TESS_OK;
    bool complete = true;
#pragma omp parallel for num_threads(work->opts->threads) schedule(dynamic, 1)        \
    reduction(&& : complete)
    for (int64_t k = 0; k < work->shares.num; ++k)
        complete =
            tracks_find(work, &work->shares.share[k], &found[k]) == TESS_OK && complete;
    if (!complete) TESS_FAIL(TESS_ERR_ALLOC, "tracks of baselines");
cleanup:
    return status;
}

/* Finds where the parts of shares lie among all. */
static void place_shares(find_share *found, int64_t num, tess_tracks *to,
                         int64_t *num_nodes, int64_t *num_vis)
{
    for (int64_t k = 0; k < num; ++k) {
        find_share *share = &found[k];
        share->first_track = to->num_tracks;
        share->first_curve = to->num_curves;
        share->first_row = to->num_rows;
        share->first_node = *num_nodes;
        share->first_vis = *num_vis;
        to->num_tracks += share->num_tracks;
        to->num_curves += share->num_curves;
        to->num_rows += share->num_rows;
        *num_nodes += share->num_nodes;
        *num_vis += share->num_vis;
    }
}

/* How many images take samples together, of which there are `room` for each node. */
static int choose_images(const tess_tracks_opts *opts, double room)
{
    const double most = fmin(opts->most_images, TESS_TRACKS_IMAGES);
    return (int)fmax(fmin(floor(room), most), 1);
}

/* Makes room for all that has been found. */
static tess_status make_room(const find_work *work, find_share *found, tess_tracks *to)
{
    tess_status status = TESS_OK;
    tess_samples *nodes = &to->nodes;
    int64_t rows = 0, vis = 0;
    place_shares(found, work->shares.num, to, &rows, &vis);
    to->num_images =
        choose_images(&to->opts, (double)to->from->num_vis / fmax((double)vis, 1));
    to->work_bytes = tracks_work_bytes(to, to->num_images);
    *nodes = (tess_samples){.is_double = work->samples->is_double,
                            .num_pol = work->opts->num_pol,
                            .inv_lambda = work->samples->inv_lambda};
    to->track = tess_alloc(to->num_tracks, sizeof *to->track);
    to->curve = tess_alloc(to->num_curves, sizeof *to->curve);
    to->row = tess_alloc(to->num_rows, sizeof *to->row);
    to->starts = tess_alloc(to->num_rows, sizeof *to->starts);
    to->vis =
        tess_alloc(to->num_images * vis * nodes->num_pol, nodes->is_double ? 16 : 8);
    to->work = tess_alloc(to->opts.threads * to->work_bytes, 1);
    if (!to->track || !to->curve || !to->row || !to->starts || !to->vis || !to->work)
        TESS_FAIL(TESS_ERR_ALLOC, "tracks of baselines");
    TESS_TRY(tess_samples_reserve(nodes, rows, 0)); /* values are in to->vis */
    nodes->num_rows = rows;
    nodes->num_vis = vis;
    nodes->vis = to->vis;
    if (!work->bricks) return TESS_OK;
    to->bricks.run = tess_alloc(rows, sizeof *to->bricks.run);
    if (!to->bricks.run) TESS_FAIL(TESS_ERR_ALLOC, "tracks of baselines");
    to->bricks.capacity_runs = to->bricks.num_runs = rows;
    TESS_TRY(tess_brick_list_make_counts(work->bricks->num_bricks, false, &to->bricks));
cleanup:
    return status;
}

static void set_node(const find_node *of, int64_t row, int64_t first_vis,
                     tess_samples *nodes)
{
    memcpy(nodes->uvw_m + 3 * row, of->uvw_m, sizeof of->uvw_m);
    nodes->chan_base[row] = of->chan;
    nodes->num_chan[row] = of->count;
    nodes->vis_first[row] = first_vis;
}

/* Nodes of a share as runs of their brick. */
static void set_runs(const find_share *share, int64_t key, tess_tracks *to)
{
    const tess_samples *nodes = &to->nodes;
    for (int64_t k = share->first_node; k < share->first_node + share->num_nodes; ++k)
        to->bricks.run[k] = (tess_run){.brick = key,
                                       .first = nodes->vis_first[k],
                                       .row = (int32_t)k,
                                       .chan = nodes->chan_base[k],
                                       .count = nodes->num_chan[k]};
}

static void join_share(const find_share *share, tess_tracks *to)
{
    int64_t vis = share->first_vis;
    for (int64_t k = 0; k < share->num_tracks; ++k) {
        track next = share->track[k];
        next.first_row += share->first_row;
        next.first_node += share->first_node;
        if (next.curve >= 0) next.curve += share->first_curve;
        to->track[share->first_track + k] = next;
    }
    for (int64_t k = 0; k < share->num_curves; ++k)
        to->curve[share->first_curve + k] = share->curve[k];
    for (int64_t k = 0; k < share->num_rows; ++k)
        to->row[share->first_row + k] = share->row[k];
    for (int64_t k = 0; k < share->num_nodes; ++k) {
        set_node(&share->node[k], share->first_node + k, vis, &to->nodes);
        vis += share->node[k].count;
    }
}

/* Bricks of nodes are in the order of those of samples. */
static void join_bricks(const find_work *work, const find_share *found, tess_tracks *to)
{
    const tess_brick_list *from = work->bricks;
    tess_brick_list *bricks = &to->bricks;
    for (int64_t k = 0; from && k < work->shares.num; ++k) {
        const track_share *of = &work->shares.share[k];
        const find_share *share = &found[k];
        if (of->part == 0) {
            bricks->key[of->brick] = from->key[of->brick];
            bricks->first_run[of->brick] = share->first_node;
            bricks->num_vis[of->brick] = 0;
        }
        bricks->num_vis[of->brick] += share->num_vis;
        set_runs(share, from->key[of->brick], to);
    }
    if (!from) return;
    bricks->num_bricks = from->num_bricks;
    bricks->first_run[bricks->num_bricks] = bricks->num_runs;
}

/* Finds where factors change along a track. */
static void find_starts(const tess_tracks *tracks, const track *of)
{
    const int32_t *origin = tracks->from->origin, *row = tracks->row + of->first_row;
    const tess_tracks_opts *opts = &tracks->opts;
    bool *starts = tracks->starts + of->first_row;
    for (int32_t k = 0; k < of->num_rows; ++k)
        starts[k] =
            k == 0 || (origin[row[k]] != origin[row[k - 1]] &&
                       !opts->same(opts->context, origin[row[k]], origin[row[k - 1]]));
}

/* Joins what has been found, in the order of bricks. */
static void join_shares(const find_work *work, const find_share *found, tess_tracks *to)
{
    const int threads = work->opts->threads;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int64_t k = 0; k < work->shares.num; ++k)
        join_share(&found[k], to);
    join_bricks(work, found, to);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 64)
    for (int64_t k = 0; k < to->num_tracks; ++k)
        find_starts(to, &to->track[k]);
}

double tess_tracks_items(double num, double num_vis)
{
    return num > 0 ? num * ceil(num_vis / num / TRACK_CHANS) : 0;
}

double tess_tracks_bytes(const tess_samples *samples, const tess_tracks_size *size)
{
    /* arrays of a share grow to twice their size (tess_grow), and are held beside those
     * of all */
    const double found = 1 + 1.5;
    const double of_row = sizeof(int32_t); /* tracks_order */
    const double of_item = found * sizeof(int32_t) + sizeof(bool);
    /* most nodes are those of long pieces */
    const double of_piece = found * (double)(sizeof(track) + sizeof(track_curve));
    const double of_node = (double)tess_samples_row_bytes(samples) +
                           (found - 1) * (double)sizeof(find_node) +
                           of_piece / TRACK_NODES;
    return of_row * size->rows + of_item * size->items + of_node * size->nodes;
}

double tess_tracks_values(const tess_tracks_opts *opts, const tess_tracks_size *size)
{
    const double share = size->nodes / fmax(size->items, 1);
    return share > 0 ? share * choose_images(opts, 1 / share) : 0;
}

tess_status tess_tracks_create(const tess_samples *samples,
                               const tess_brick_list *bricks,
                               const tess_tracks_opts *opts, tess_tracks **out)
{
    tess_status status = TESS_OK;
    find_work work = {.samples = samples, .bricks = bricks, .opts = opts};
    find_share *found = NULL;
    tess_tracks *tracks = tess_alloc_zero(1, sizeof *tracks);
    if (!tracks) TESS_FAIL(TESS_ERR_ALLOC, "tracks of baselines");
    tracks->from = samples;
    tracks->opts = *opts;
    TESS_TRY(share_out(&work));
    found = tess_alloc_zero(work.shares.num, sizeof *found);
    if (!found) TESS_FAIL(TESS_ERR_ALLOC, "tracks of baselines");
    TESS_TRY(find_all(&work, found));
    TESS_TRY(make_room(&work, found, tracks));
    join_shares(&work, found, tracks);
    *out = tracks;
    tracks = NULL;
cleanup:
    free_work(&work, found);
    tess_tracks_destroy(tracks);
    return status;
}

void tess_tracks_destroy(tess_tracks *tracks)
{
    if (!tracks) return;
    tess_free(tracks->track);
    tess_free(tracks->curve);
    tess_free(tracks->row);
    tess_free(tracks->starts);
    tess_free(tracks->vis);
    tess_free(tracks->work);
    tracks->nodes.vis = NULL;
    tess_samples_free(&tracks->nodes);
    tess_brick_list_free(&tracks->bricks);
    tess_free(tracks);
}

int tess_tracks_images(const tess_tracks *tracks)
{
    return tracks->num_images;
}

void tess_tracks_take(tess_tracks *tracks, const tess_tracks_view *view, int num)
{
    const tracks_table *table = tracks_table_best();
    tracks_taker *take =
        tracks->from->is_double ? table->take_double : table->take_single;
#pragma omp parallel for num_threads(tracks->opts.threads) schedule(dynamic, 16)
    for (int64_t k = 0; k < tracks->num_tracks; ++k)
        take(tracks, &tracks->track[k], view, num,
             tracks->work + tess_omp_thread() * tracks->work_bytes);
}

void tess_tracks_show(tess_tracks *tracks, int k)
{
    tess_samples *nodes = &tracks->nodes;
    nodes->vis = (char *)tracks->vis +
                 k * nodes->num_vis * nodes->num_pol * (nodes->is_double ? 16 : 8);
}

const tess_samples *tess_tracks_nodes(const tess_tracks *tracks)
{
    return &tracks->nodes;
}

const tess_brick_list *tess_tracks_bricks(const tess_tracks *tracks)
{
    return tracks->bricks.run ? &tracks->bricks : NULL;
}
