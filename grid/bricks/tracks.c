/* Finds tracks: groups the rows of a brick by baseline and channels, cuts the groups
 * into pieces, and chooses nodes. See tess_tracks.h. */
#include "tracks.h"

#include <math.h>
#include <string.h>

#include "tess_const.h"
#include "tess_mem.h"
#include "tess_minmax.h"
#include "tess_omp.h"
#include "tess_sincos.h"

enum {
    MOST_ROWS = 512,      /* of a piece */
    FEWEST_NODES = 3,     /* of a piece */
    ROWS_TOGETHER = 64,   /* rows that are nodes themselves, of one track */
    RUNS_OF_SHARE = 32768 /* of a brick, whose baselines are shared out beyond that */
};

/* A piece is worth its nodes if these are so few of its rows. */
static const double WORTH = 0.7;

/* Of Chebyshev's points, the sum of the squares of all polynomials is nowhere more than
 * this (Fejér 1932). Of other nodes it may be thousands: values of nodes are then large
 * and cancel in the image, but errors of gridding them do not. */
static const double MOST_SQUARES = 2;

/* Channels of a row. */
typedef struct item {
    int32_t baseline, row, chan, count;
} item;

/* What is found in a share of the baselines of a brick. */
typedef struct find_share {
    int64_t brick;
    int64_t part, num_parts; /* the baselines with this rest of division */
    int64_t num_tracks, capacity_tracks, num_curves, capacity_curves;
    int64_t num_rows, capacity_rows, num_nodes, capacity_nodes, num_vis;
    int64_t first_track, first_curve, first_row, first_node, first_vis; /* of all */
    track *track; /* whose first rows, nodes and curves are those of the share */
    track_curve *curve;
    int32_t *row;
    item *node;
} find_share;

/* What is looked for. */
typedef struct find_work {
    const tess_samples *samples;
    const tess_brick_list *bricks;
    const tess_tracks_opts *opts;
} find_work;

/* ---- phases ---- */

/* Largest 1/λ of the channels of an item. */
static double largest_inv_lambda(const tess_samples *samples, const item *of)
{
    double largest = 0;
    for (int32_t c = of->chan; c < of->chan + of->count; ++c)
        largest = fmax(largest, samples->inv_lambda[c]);
    return largest;
}

/* Largest phase [rad] of a pixel between two rows. */
static double phase_between(const find_work *work, const item *a, const item *b,
                            double inv_lambda)
{
    const double *from = work->samples->uvw_m + 3 * (int64_t)a->row;
    const double *to = work->samples->uvw_m + 3 * (int64_t)b->row;
    double path_m = 0;
    for (int k = 0; k < 3; ++k)
        path_m += fabs(to[k] - from[k]) * work->opts->half[k];
    return TESS_TWO_PI * path_m * inv_lambda;
}

/* 2 (Φ/2)^p / p! */
static double error_bound(double phase, int num_nodes)
{
    double error = 2;
    for (int k = 1; k <= num_nodes; ++k)
        error *= 0.5 * phase / k;
    return error;
}

/* The factors of a row at the corners of the image that differ by more than their sign,
 * relative to the begin of its piece. */
static void corner_factors(const find_work *work, const track_curve *curve, int64_t row,
                           double inv_lambda, double complex corner[4])
{
    const double *uvw_m = work->samples->uvw_m + 3 * row, *half = work->opts->half;
    double path[3];
    for (int k = 0; k < 3; ++k)
        path[k] = (uvw_m[k] - curve->from[k]) * half[k] * inv_lambda;
    for (int k = 0; k < 4; ++k) {
        double sine, cosine;
        tess_sincos_turns(path[0] + (k & 1 ? -path[1] : path[1]) +
                              (k & 2 ? -path[2] : path[2]),
                          &sine, &cosine);
        corner[k] = CMPLX(cosine, sine);
    }
}

/* ---- nodes ---- */

/* A piece: item[num], in the order of time. */
typedef struct find_piece {
    const item *item;
    int num;
    double inv_lambda;
} find_piece;

/* Sets the place of rows. False: rows do not follow one another along a line. */
static bool set_line(const find_work *work, const find_piece *piece, track_curve *curve)
{
    const double *uvw_m = work->samples->uvw_m, *half = work->opts->half;
    const double *from = uvw_m + 3 * (int64_t)piece->item[0].row;
    const double *to = uvw_m + 3 * (int64_t)piece->item[piece->num - 1].row;
    double square = 0, last = -1;
    for (int k = 0; k < 3; ++k)
        square += (to[k] - from[k]) * (to[k] - from[k]) * half[k] * half[k];
    if (!(square > 0)) return false;
    for (int k = 0; k < 3; ++k) {
        curve->from[k] = from[k];
        curve->along[k] = (to[k] - from[k]) * half[k] * half[k] / square;
    }
    for (int k = 0; k < piece->num; ++k) {
        const double s = track_place(curve, uvw_m + 3 * (int64_t)piece->item[k].row);
        if (!(s > last)) return false;
        last = s;
    }
    return true;
}

/* Chooses rows next to Chebyshev's points as nodes, each but once: node[num_nodes].
 * False: there is no room for them. */
static bool choose_nodes(const find_work *work, const find_piece *piece, int num_nodes,
                         track_curve *curve, int *node)
{
    const double *uvw_m = work->samples->uvw_m;
    int at = 0;
    for (int j = 0; j < num_nodes; ++j) {
        const double wanted =
            0.5 - 0.5 * cos(TESS_TWO_PI * (2 * j + 1) / (4 * num_nodes));
        double near = INFINITY;
        for (int k = at; k < piece->num; ++k) {
            const double s =
                track_place(curve, uvw_m + 3 * (int64_t)piece->item[k].row);
            if (fabs(s - wanted) >= near) break;
            near = fabs(s - wanted);
            node[j] = k;
            curve->node[j] = s;
        }
        if (at == piece->num) return false;
        at = node[j] + 1;
    }
    for (int j = 0; j < num_nodes; ++j) {
        double product = 1;
        for (int i = 0; i < num_nodes; ++i)
            if (i != j) product *= curve->node[j] - curve->node[i];
        curve->scale[j] = 1 / product;
    }
    return true;
}

static double sum_of_squares(const double *value, int num)
{
    double sum = 0;
    for (int k = 0; k < num; ++k)
        sum += value[k] * value[k];
    return sum;
}

/* Whether the nodes tell the phase factors of the corners at all rows. */
static bool is_accurate(const find_work *work, const find_piece *piece,
                        const track_curve *curve, const int *node, int num_nodes)
{
    const double *uvw_m = work->samples->uvw_m;
    const double tolerance = work->opts->tolerance;
    double complex at_node[TRACK_NODES][4];
    for (int j = 0; j < num_nodes; ++j)
        corner_factors(work, curve, piece->item[node[j]].row, piece->inv_lambda,
                       at_node[j]);
    for (int k = 0; k < piece->num; ++k) {
        const int64_t row = piece->item[k].row;
        double weight[TRACK_NODES];
        double complex corner[4];
        corner_factors(work, curve, row, piece->inv_lambda, corner);
        track_weights(curve, num_nodes, track_place(curve, uvw_m + 3 * row), weight);
        if (!(sum_of_squares(weight, num_nodes) <= MOST_SQUARES)) return false;
        for (int c = 0; c < 4; ++c) {
            double re = creal(corner[c]), im = cimag(corner[c]);
            for (int j = 0; j < num_nodes; ++j) {
                re -= weight[j] * creal(at_node[j][c]);
                im -= weight[j] * cimag(at_node[j][c]);
            }
            if (!(re * re + im * im <= tolerance * tolerance)) return false;
        }
    }
    return true;
}

/* The number of nodes that a piece needs, of which these are its rows: node[]; 0: it is
 * not worth any. */
static int find_nodes(const find_work *work, const find_piece *piece,
                      track_curve *curve, int *node)
{
    const int most = (int)fmin(TRACK_NODES, WORTH * piece->num);
    const double phase =
        0.5 * phase_between(work, &piece->item[0], &piece->item[piece->num - 1],
                            piece->inv_lambda);
    int num = FEWEST_NODES;
    if (most < num || !set_line(work, piece, curve)) return 0;
    while (num <= most && error_bound(phase, num) > work->opts->tolerance)
        ++num;
    for (; num <= most; ++num)
        if (choose_nodes(work, piece, num, curve, node) &&
            is_accurate(work, piece, curve, node, num))
            return num;
    return 0;
}

/* ---- pieces ---- */

static tess_status add_rows(const item *of, int num, find_share *to)
{
    tess_status status = TESS_OK;
    if (tess_grow((void **)&to->row, &to->capacity_rows, to->num_rows + num,
                  sizeof *to->row))
        TESS_FAIL(TESS_ERR_ALLOC, "tracks of baselines");
    for (int k = 0; k < num; ++k)
        to->row[to->num_rows++] = of[k].row;
cleanup:
    return status;
}

static tess_status add_node(const item *of, find_share *to)
{
    tess_status status = TESS_OK;
    if (tess_grow((void **)&to->node, &to->capacity_nodes, to->num_nodes + 1,
                  sizeof *to->node))
        TESS_FAIL(TESS_ERR_ALLOC, "nodes of tracks");
    to->node[to->num_nodes++] = *of;
    to->num_vis += of->count;
cleanup:
    return status;
}

static tess_status add_track(const track *of, find_share *to)
{
    tess_status status = TESS_OK;
    if (tess_grow((void **)&to->track, &to->capacity_tracks, to->num_tracks + 1,
                  sizeof *to->track))
        TESS_FAIL(TESS_ERR_ALLOC, "tracks of baselines");
    to->track[to->num_tracks++] = *of;
cleanup:
    return status;
}

/* Rows that are nodes themselves. */
static tess_status add_plain(const item *of, int num, find_share *to)
{
    tess_status status = TESS_OK;
    track *last = to->num_tracks > 0 ? &to->track[to->num_tracks - 1] : NULL;
    const track next = {.first_row = to->num_rows,
                        .first_node = to->num_nodes,
                        .curve = -1,
                        .num_rows = num,
                        .num_nodes = num};
    TESS_TRY(add_rows(of, num, to));
    for (int k = 0; k < num; ++k)
        TESS_TRY(add_node(&of[k], to));
    if (!last || last->curve >= 0 || last->num_rows + num > ROWS_TOGETHER)
        return add_track(&next, to);
    last->num_rows += num;
    last->num_nodes += num;
cleanup:
    return status;
}

/* Rows that become fewer nodes. */
static tess_status add_curve(const find_piece *piece, const track_curve *curve,
                             const int *node, int num_nodes, find_share *to)
{
    tess_status status = TESS_OK;
    const track next = {.first_row = to->num_rows,
                        .first_node = to->num_nodes,
                        .curve = to->num_curves,
                        .num_rows = piece->num,
                        .num_nodes = num_nodes};
    if (tess_grow((void **)&to->curve, &to->capacity_curves, to->num_curves + 1,
                  sizeof *to->curve))
        TESS_FAIL(TESS_ERR_ALLOC, "tracks of baselines");
    to->curve[to->num_curves++] = *curve;
    TESS_TRY(add_rows(piece->item, piece->num, to));
    for (int j = 0; j < num_nodes; ++j)
        TESS_TRY(add_node(&piece->item[node[j]], to));
    TESS_TRY(add_track(&next, to));
cleanup:
    return status;
}

/* The number of rows from the first on over which the phase turns by no more than
 * `most` [rad] either way. */
static int rows_within(const find_work *work, const item *of, int num, double most,
                       double inv_lambda)
{
    int end = 1;
    while (end < num && end < MOST_ROWS &&
           0.5 * phase_between(work, of, of + end, inv_lambda) <= most)
        ++end;
    return end;
}

/* Cuts the rows of one baseline, of the same channels, into pieces. */
static tess_status cut_group(const find_work *work, const item *of, int64_t num,
                             double most, find_share *to)
{
    tess_status status = TESS_OK;
    const double inv_lambda = largest_inv_lambda(work->samples, of);
    for (int64_t k = 0; k < num;) {
        track_curve curve = {0};
        int node[TRACK_NODES], nodes;
        const int left = (int)tess_min_i64(num - k, MOST_ROWS);
        const find_piece piece = {
            of + k, rows_within(work, of + k, left, most, inv_lambda), inv_lambda};
        nodes = find_nodes(work, &piece, &curve, node);
        TESS_TRY(nodes > 0 ? add_curve(&piece, &curve, node, nodes, to)
                           : add_plain(piece.item, piece.num, to));
        k += piece.num;
    }
cleanup:
    return status;
}

/* ---- bricks ---- */

/* Byte k of what items are sorted by, from the least significant one on: the number of
 * channels, the first channel, the baseline. */
enum { KEY_BYTES = 9 };
static inline unsigned key_byte(const item *of, int k)
{
    if (k == 0) return (unsigned)of->count; /* at most TRACK_CHANS */
    return (uint32_t)(k < 5 ? of->chan : of->baseline) >> (8 * ((k - 1) % 4)) & 255;
}

/* Sorts by a byte of the key, if that differs: the sorted items are to[num]. Items of
 * equal bytes stay in their order. */
static bool sort_by_byte(const item *from, int64_t num, int k, item *to)
{
    int64_t next[257] = {0};
    for (int64_t i = 0; i < num; ++i)
        ++next[key_byte(&from[i], k) + 1];
    for (int b = 1; b <= 256; ++b) {
        if (next[b] == num) return false;
        next[b] += next[b - 1];
    }
    for (int64_t i = 0; i < num; ++i)
        to[next[key_byte(&from[i], k)]++] = from[i];
    return true;
}

/* Sorts items[num] by baseline, then channels. `other` has room for as many; the sorted
 * items are in the one that is returned. */
static const item *sort_items(item *items, int64_t num, item *other)
{
    for (int k = 0; num > 1 && k < KEY_BYTES; ++k) {
        item *const swapped = other;
        if (!sort_by_byte(items, num, k, other)) continue;
        other = items;
        items = swapped;
    }
    return items;
}

/* The number of a pair of antennas, in a field. */
static int32_t baseline_of(const tess_samples *samples, int64_t row)
{
    const tess_origins *origins = samples->origins;
    const int32_t pairs = origins->num_antennas * origins->num_antennas;
    const int32_t number = samples->origin[row], time = number / pairs;
    return number % pairs + time / origins->num_intervals * pairs;
}

/* Lists the runs of a share, cut at multiples of TRACK_CHANS channels: item[*num].
 * Without memory for them they are counted. Runs are in the order of time, also where
 * other ranks have sent their rows. */
static void list_items(const find_work *work, const find_share *share, item *out,
                       int64_t *num)
{
    const tess_brick_list *bricks = work->bricks;
    const int64_t first = bricks->first_run[share->brick];
    *num = 0;
    for (int64_t r = first; r < bricks->first_run[share->brick + 1]; ++r) {
        const tess_run *run = &bricks->run[r];
        const int32_t baseline = baseline_of(work->samples, run->row);
        const int32_t end = run->chan + run->count;
        if (baseline % share->num_parts != share->part) continue;
        for (int32_t c = run->chan, next; c < end; c = next) {
            next = (c / TRACK_CHANS + 1) * TRACK_CHANS;
            if (next > end) next = end;
            if (out) out[*num] = (item){baseline, run->row, c, next - c};
            ++*num;
        }
    }
}

/* The largest phase at which TRACK_NODES nodes reach the tolerance. */
static double most_phase(double tolerance)
{
    double low = 0, high = TRACK_NODES;
    for (int k = 0; k < 40; ++k) {
        const double middle = 0.5 * (low + high);
        *(error_bound(middle, TRACK_NODES) <= tolerance ? &low : &high) = middle;
    }
    return low;
}

static tess_status find_in_share(const find_work *work, find_share *share)
{
    tess_status status = TESS_OK;
    const double most = most_phase(work->opts->tolerance);
    int64_t num;
    list_items(work, share, NULL, &num);
    item *room = tess_alloc(2 * num, sizeof *room);
    if (!room) TESS_FAIL(TESS_ERR_ALLOC, "baselines of a brick");
    list_items(work, share, room, &num);
    const item *items = sort_items(room, num, room + num);
    for (int64_t k = 0, end; k < num; k = end) {
        for (end = k + 1; end < num; ++end)
            if (items[end].baseline != items[k].baseline ||
                items[end].chan != items[k].chan || items[end].count != items[k].count)
                break;
        TESS_TRY(cut_group(work, items + k, end - k, most, share));
    }
cleanup:
    tess_free(room);
    return status;
}

/* ---- all ---- */

/* Shares of all bricks, in their order. */
typedef struct find_shares {
    find_share *share; /* [num] */
    int64_t num;
} find_shares;

static tess_status make_shares(const tess_brick_list *bricks, find_shares *to)
{
    tess_status status = TESS_OK;
    int64_t num = bricks->num_bricks + bricks->num_runs / RUNS_OF_SHARE;
    to->share = tess_alloc_zero(num, sizeof *to->share);
    if (!to->share) TESS_FAIL(TESS_ERR_ALLOC, "tracks of baselines");
    for (int64_t b = 0; b < bricks->num_bricks; ++b) {
        const int64_t runs = bricks->first_run[b + 1] - bricks->first_run[b];
        const int64_t parts = 1 + runs / RUNS_OF_SHARE;
        for (int64_t k = 0; k < parts; ++k)
            to->share[to->num++] =
                (find_share){.brick = b, .part = k, .num_parts = parts};
    }
cleanup:
    return status;
}

static void free_shares(find_shares *shares)
{
    for (int64_t k = 0; k < shares->num; ++k) {
        tess_free(shares->share[k].track);
        tess_free(shares->share[k].curve);
        tess_free(shares->share[k].row);
        tess_free(shares->share[k].node);
    }
    tess_free(shares->share);
}

static tess_status find_all(const find_work *work, find_shares *shares)
{
    tess_status status = TESS_OK;
    bool complete = true;
#pragma omp parallel for num_threads(work->opts->threads) schedule(dynamic, 1)        \
    reduction(&& : complete)
    for (int64_t k = 0; k < shares->num; ++k)
        complete = find_in_share(work, &shares->share[k]) == TESS_OK && complete;
    if (!complete) TESS_FAIL(TESS_ERR_ALLOC, "tracks of baselines");
cleanup:
    return status;
}

/* Finds where the parts of shares lie among all. */
static void place_shares(const find_shares *shares, tess_tracks *to, int64_t *num_nodes,
                         int64_t *num_vis)
{
    for (int64_t k = 0; k < shares->num; ++k) {
        find_share *share = &shares->share[k];
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

/* How many images take samples together. */
static int choose_images(const tess_tracks *tracks, int64_t num_vis)
{
    const int64_t room = tracks->from->num_vis / tess_max_i64(num_vis, 1);
    const int64_t most = tess_min_i64(tracks->opts.most_images, TESS_TRACKS_IMAGES);
    return (int)tess_max_i64(tess_min_i64(room, most), 1);
}

/* Makes room for all that has been found. */
static tess_status make_room(const find_work *work, const find_shares *shares,
                             tess_tracks *to)
{
    tess_status status = TESS_OK;
    tess_samples *nodes = &to->nodes;
    int64_t rows = 0, vis = 0;
    place_shares(shares, to, &rows, &vis);
    to->num_images = choose_images(to, vis);
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
    to->bricks.run = tess_alloc(rows, sizeof *to->bricks.run);
    if (!to->track || !to->curve || !to->row || !to->starts || !to->vis || !to->work ||
        !to->bricks.run)
        TESS_FAIL(TESS_ERR_ALLOC, "tracks of baselines");
    to->bricks.capacity_runs = to->bricks.num_runs = rows;
    TESS_TRY(tess_samples_reserve(nodes, rows, 0)); /* values are in to->vis */
    nodes->num_rows = rows;
    nodes->num_vis = vis;
    nodes->vis = to->vis;
    TESS_TRY(tess_brick_list_make_counts(work->bricks->num_bricks, false, &to->bricks));
cleanup:
    return status;
}

static void set_node(const find_work *work, int64_t brick, const item *of, int64_t row,
                     int64_t first_vis, tess_tracks *to)
{
    tess_samples *nodes = &to->nodes;
    memcpy(nodes->uvw_m + 3 * row, work->samples->uvw_m + 3 * (int64_t)of->row,
           3 * sizeof *nodes->uvw_m);
    nodes->chan_base[row] = of->chan;
    nodes->num_chan[row] = of->count;
    nodes->vis_first[row] = first_vis;
    to->bricks.run[row] = (tess_run){.brick = work->bricks->key[brick],
                                     .first = first_vis,
                                     .row = (int32_t)row,
                                     .chan = of->chan,
                                     .count = of->count};
}

static void join_share(const find_work *work, const find_share *share, tess_tracks *to)
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
        set_node(work, share->brick, &share->node[k], share->first_node + k, vis, to);
        vis += share->node[k].count;
    }
}

/* Bricks of nodes are in the order of those of samples. */
static void join_bricks(const find_work *work, const find_shares *shares,
                        tess_tracks *to)
{
    tess_brick_list *bricks = &to->bricks;
    for (int64_t k = 0; k < shares->num; ++k) {
        const find_share *share = &shares->share[k];
        if (share->part == 0) {
            bricks->key[share->brick] = work->bricks->key[share->brick];
            bricks->first_run[share->brick] = share->first_node;
            bricks->num_vis[share->brick] = 0;
        }
        bricks->num_vis[share->brick] += share->num_vis;
    }
    bricks->num_bricks = work->bricks->num_bricks;
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
static void join_shares(const find_work *work, const find_shares *shares,
                        tess_tracks *to)
{
    const int threads = work->opts->threads;
    join_bricks(work, shares, to);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int64_t k = 0; k < shares->num; ++k)
        join_share(work, &shares->share[k], to);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 64)
    for (int64_t k = 0; k < to->num_tracks; ++k)
        find_starts(to, &to->track[k]);
}

tess_status tess_tracks_create(const tess_samples *samples,
                               const tess_brick_list *bricks,
                               const tess_tracks_opts *opts, tess_tracks **out)
{
    tess_status status = TESS_OK;
    const find_work work = {samples, bricks, opts};
    find_shares shares = {0};
    tess_tracks *tracks = tess_alloc_zero(1, sizeof *tracks);
    if (!tracks) TESS_FAIL(TESS_ERR_ALLOC, "tracks of baselines");
    tracks->from = samples;
    tracks->opts = *opts;
    TESS_TRY(make_shares(bricks, &shares));
    TESS_TRY(find_all(&work, &shares));
    TESS_TRY(make_room(&work, &shares, tracks));
    join_shares(&work, &shares, tracks);
    *out = tracks;
    tracks = NULL;
cleanup:
    free_shares(&shares);
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
    return &tracks->bricks;
}
