/* Finds tracks: cuts the rows of a baseline into pieces, and chooses their nodes. See
 * tess_tracks.h. */
#include "tracks_find.h"

#include <math.h>
#include <string.h>

#include "tess_const.h"
#include "tess_mem.h"
#include "tess_minmax.h"
#include "tess_sincos.h"

enum {
    MOST_ROWS = 512,    /* of a piece */
    FEWEST_NODES = 3,   /* of a piece */
    ROWS_TOGETHER = 64, /* rows that are nodes themselves, of one track */
    ROWS_OF_PLACE = 6   /* that tell where the track is between them */
};

/* A piece is worth its nodes if these are so few of its rows. */
static const double WORTH = 0.9;

/* Of the tolerance: nodes are so many that a smooth track errs no more than SMOOTH at
 * any row. Coordinates in single precision, as UVFITS has them, are rough: a row may
 * err ROUGH times as much as all together, in the rms. */
static const double SMOOTH = 0.4, ROUGH = 4;

/* Of Chebyshev's points, the sum of the squares of all polynomials is nowhere more than
 * this (Fejér 1932). Of other nodes it may be thousands: values of nodes are then large
 * and cancel in the image, but errors of gridding them do not. */
static const double MOST_SQUARES = 2;

/* ---- phases ---- */

/* Largest 1/λ of the channels of an item. */
static double largest_inv_lambda(const tess_samples *samples, const track_item *of)
{
    double largest = 0;
    for (int32_t c = of->chan; c < of->chan + of->count; ++c)
        largest = fmax(largest, samples->inv_lambda[c]);
    return largest;
}

/* Largest phase [rad] of a pixel between two rows. */
static double phase_between(const find_work *work, const track_item *a,
                            const track_item *b, double inv_lambda)
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

/* The factors of a place at the corners of the image that differ by more than their
 * sign, relative to the begin of its piece. */
static void corner_factors(const find_work *work, const track_curve *curve,
                           const double uvw_m[3], double inv_lambda,
                           double complex corner[4])
{
    const double *half = work->opts->half;
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
    const track_item *item;
    int num;
    double inv_lambda;
} find_piece;

typedef double find_place[3]; /* uvw [m] of a node */

static const double *uvw_of(const find_work *work, const find_piece *piece, int k)
{
    return work->samples->uvw_m + 3 * (int64_t)piece->item[k].row;
}

/* Sets the place of rows. False: rows do not follow one another along a line. */
static bool set_line(const find_work *work, const find_piece *piece, track_curve *curve)
{
    const double *half = work->opts->half, *from = uvw_of(work, piece, 0);
    const double *to = uvw_of(work, piece, piece->num - 1);
    double square = 0, last = -1;
    for (int k = 0; k < 3; ++k)
        square += (to[k] - from[k]) * (to[k] - from[k]) * half[k] * half[k];
    if (!(square > 0)) return false;
    for (int k = 0; k < 3; ++k) {
        curve->from[k] = from[k];
        curve->along[k] = (to[k] - from[k]) * half[k] * half[k] / square;
    }
    for (int k = 0; k < piece->num; ++k) {
        const double s = track_place(curve, uvw_of(work, piece, k));
        if (!(s > last)) return false;
        last = s;
    }
    return true;
}

/* Chebyshev's points on [0, 1]. */
static double chebyshev_point(int j, int num_nodes)
{
    return 0.5 - 0.5 * cos(TESS_TWO_PI * (2 * j + 1) / (4 * num_nodes));
}

/* Chooses rows next to Chebyshev's points as nodes, each but once: node[num_nodes].
 * False: there is no room for them. */
static bool choose_rows(const find_work *work, const find_piece *piece, int num_nodes,
                        track_curve *curve, find_place *node)
{
    int at = 0;
    for (int j = 0; j < num_nodes; ++j) {
        const double wanted = chebyshev_point(j, num_nodes);
        double near = INFINITY;
        int chosen = at;
        for (int k = at; k < piece->num; ++k) {
            const double s = track_place(curve, uvw_of(work, piece, k));
            if (fabs(s - wanted) >= near) break;
            near = fabs(s - wanted);
            chosen = k;
            curve->node[j] = s;
        }
        if (at == piece->num) return false;
        memcpy(node[j], uvw_of(work, piece, chosen), sizeof node[j]);
        at = chosen + 1;
    }
    return true;
}

/* Sets the place at s of a smooth track, by a polynomial through the rows [first,
 * first + num). */
static void place_at(const find_work *work, const find_piece *piece,
                     const track_curve *curve, int first, int num, double s,
                     find_place at)
{
    double place[ROWS_OF_PLACE], sum[3] = {0};
    for (int k = 0; k < num; ++k)
        place[k] = track_place(curve, uvw_of(work, piece, first + k));
    for (int k = 0; k < num; ++k) {
        double weight = 1;
        for (int i = 0; i < num; ++i)
            if (i != k) weight *= (s - place[i]) / (place[k] - place[i]);
        for (int i = 0; i < 3; ++i)
            sum[i] += weight * (uvw_of(work, piece, first + k)[i] - curve->from[i]);
    }
    for (int i = 0; i < 3; ++i)
        at[i] = curve->from[i] + sum[i];
}

/* Keeps |w| within that of the rows, for which the plan has planes. */
static void keep_planes(const find_work *work, const find_piece *piece,
                        find_place *node, int num_nodes)
{
    double least = INFINITY, most = 0;
    for (int k = 0; k < piece->num; ++k) {
        const double w = fabs(uvw_of(work, piece, k)[2]);
        least = fmin(least, w);
        most = fmax(most, w);
    }
    for (int j = 0; j < num_nodes; ++j) {
        const double w = fabs(node[j][2]);
        node[j][2] = copysign(fmin(fmax(w, least), most), node[j][2]);
    }
}

/* Places nodes at Chebyshev's points: rows nearby tell where the track is there. */
static void place_nodes(const find_work *work, const find_piece *piece, int num_nodes,
                        track_curve *curve, find_place *node)
{
    const int num = piece->num < ROWS_OF_PLACE ? piece->num : ROWS_OF_PLACE;
    int next = 0; /* first row behind the node */
    for (int j = 0; j < num_nodes; ++j) {
        const double s = chebyshev_point(j, num_nodes);
        while (next < piece->num && track_place(curve, uvw_of(work, piece, next)) <= s)
            ++next;
        int first = next - num / 2;
        if (first < 0) first = 0;
        if (first > piece->num - num) first = piece->num - num;
        place_at(work, piece, curve, first, num, s, node[j]);
        curve->node[j] = s;
    }
    keep_planes(work, piece, node, num_nodes);
}

/* Chooses nodes; false: there is no room for them. In a brick, nodes have to be rows,
 * since a place between them may be in another one. */
static bool choose_nodes(const find_work *work, const find_piece *piece, int num_nodes,
                         track_curve *curve, find_place *node)
{
    if (!work->bricks)
        place_nodes(work, piece, num_nodes, curve, node);
    else if (!choose_rows(work, piece, num_nodes, curve, node))
        return false;
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

/* The squares of errors of the phase factors of corners at a place, added to sum[4];
 * the result is the largest. */
static double add_errors(const double complex corner[4], double complex (*at_node)[4],
                         const double *weight, int num_nodes, double sum[4])
{
    double largest = 0;
    for (int c = 0; c < 4; ++c) {
        double re = creal(corner[c]), im = cimag(corner[c]);
        for (int j = 0; j < num_nodes; ++j) {
            re -= weight[j] * creal(at_node[j][c]);
            im -= weight[j] * cimag(at_node[j][c]);
        }
        const double square = re * re + im * im;
        sum[c] += square;
        /* not a number is larger than all others, too */
        if (!(square <= largest)) largest = square;
    }
    return largest;
}

/* Whether the nodes tell the phase factors of the corners at all rows. */
static bool is_accurate(const find_work *work, const find_piece *piece,
                        const track_curve *curve, find_place *node, int num_nodes)
{
    const double square = work->opts->tolerance * work->opts->tolerance;
    double complex at_node[TRACK_NODES][4];
    double sum[4] = {0}, largest = 0;
    for (int j = 0; j < num_nodes; ++j)
        corner_factors(work, curve, node[j], piece->inv_lambda, at_node[j]);
    for (int k = 0; k < piece->num; ++k) {
        const double *uvw_m = uvw_of(work, piece, k);
        double weight[TRACK_NODES];
        double complex corner[4];
        corner_factors(work, curve, uvw_m, piece->inv_lambda, corner);
        track_weights(curve, num_nodes, track_place(curve, uvw_m), weight);
        if (!(sum_of_squares(weight, num_nodes) <= MOST_SQUARES)) return false;
        if (!(add_errors(corner, at_node, weight, num_nodes, sum) <=
              ROUGH * ROUGH * square))
            return false;
    }
    for (int c = 0; c < 4; ++c)
        largest = fmax(largest, sum[c]);
    return largest <= piece->num * square;
}

/* The number of nodes that a piece needs, at these places: node[]; 0: it is
 * not worth any. */
static int find_nodes(const find_work *work, const find_piece *piece,
                      track_curve *curve, find_place *node)
{
    const int most = (int)fmin(TRACK_NODES, WORTH * piece->num);
    const double phase =
        0.5 * phase_between(work, &piece->item[0], &piece->item[piece->num - 1],
                            piece->inv_lambda);
    int num = FEWEST_NODES;
    if (most < num || !set_line(work, piece, curve)) return 0;
    while (num <= most && error_bound(phase, num) > SMOOTH * work->opts->tolerance)
        ++num;
    for (; num <= most; ++num)
        if (choose_nodes(work, piece, num, curve, node) &&
            is_accurate(work, piece, curve, node, num))
            return num;
    return 0;
}

/* ---- pieces ---- */

static tess_status add_rows(const track_item *of, int num, find_share *to)
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

/* Adds a node with the channels of an item. */
static tess_status add_node(const double uvw_m[3], const track_item *of, find_share *to)
{
    tess_status status = TESS_OK;
    if (tess_grow((void **)&to->node, &to->capacity_nodes, to->num_nodes + 1,
                  sizeof *to->node))
        TESS_FAIL(TESS_ERR_ALLOC, "nodes of tracks");
    to->node[to->num_nodes++] =
        (find_node){{uvw_m[0], uvw_m[1], uvw_m[2]}, of->chan, of->count};
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
static tess_status add_plain(const find_work *work, const find_piece *piece,
                             find_share *to)
{
    tess_status status = TESS_OK;
    const int num = piece->num;
    track *last = to->num_tracks > 0 ? &to->track[to->num_tracks - 1] : NULL;
    const track next = {.first_row = to->num_rows,
                        .first_node = to->num_nodes,
                        .curve = -1,
                        .num_rows = num,
                        .num_nodes = num};
    TESS_TRY(add_rows(piece->item, num, to));
    for (int k = 0; k < num; ++k)
        TESS_TRY(add_node(uvw_of(work, piece, k), &piece->item[k], to));
    if (!last || last->curve >= 0 || last->num_rows + num > ROWS_TOGETHER)
        return add_track(&next, to);
    last->num_rows += num;
    last->num_nodes += num;
cleanup:
    return status;
}

/* Rows that become fewer nodes. */
static tess_status add_curve(const find_piece *piece, const track_curve *curve,
                             find_place *node, int num_nodes, find_share *to)
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
        TESS_TRY(add_node(node[j], &piece->item[0], to));
    TESS_TRY(add_track(&next, to));
cleanup:
    return status;
}

/* The number of rows from the first on over which the phase turns by no more than
 * `most` [rad] either way. */
static int rows_within(const find_work *work, const track_item *of, int num,
                       double most, double inv_lambda)
{
    int end = 1;
    while (end < num && end < MOST_ROWS &&
           0.5 * phase_between(work, of, of + end, inv_lambda) <= most)
        ++end;
    return end;
}

/* Cuts the rows of one baseline, of the same channels, into pieces. */
static tess_status cut_group(const find_work *work, const track_item *of, int64_t num,
                             double most, find_share *to)
{
    tess_status status = TESS_OK;
    const double inv_lambda = largest_inv_lambda(work->samples, of);
    for (int64_t k = 0; k < num;) {
        track_curve curve = {0};
        find_place node[TRACK_NODES];
        const int left = (int)tess_min_i64(num - k, MOST_ROWS);
        const find_piece piece = {
            of + k, rows_within(work, of + k, left, most, inv_lambda), inv_lambda};
        const int nodes = find_nodes(work, &piece, &curve, node);
        TESS_TRY(nodes > 0 ? add_curve(&piece, &curve, node, nodes, to)
                           : add_plain(work, &piece, to));
        k += piece.num;
    }
cleanup:
    return status;
}

/* ---- shares ---- */

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

/* All pieces but the last one of a track are as long as they may be. */
double tess_tracks_density(const tess_tracks_opts *opts, double step_rad,
                           double num_rows)
{
    const double tolerance = SMOOTH * opts->tolerance;
    const double rows =
        fmin(fmin(num_rows, MOST_ROWS), 1 + 2 * most_phase(tolerance) / step_rad);
    int nodes = FEWEST_NODES;
    while (nodes < TRACK_NODES &&
           error_bound(0.5 * step_rad * (rows - 1), nodes) > tolerance)
        ++nodes;
    return fmin(1, nodes / rows);
}

tess_status tracks_find(const find_work *work, const track_share *of, find_share *share)
{
    tess_status status = TESS_OK;
    const double most = most_phase(SMOOTH * work->opts->tolerance);
    track_items items = {0};
    TESS_TRY(tracks_list_items(work->samples, work->bricks, &work->order, of, &items));
    const track_item *item = items.item;
    for (int64_t k = 0, end; k < items.num; k = end) {
        for (end = k + 1; end < items.num; ++end)
            if (item[end].baseline != item[k].baseline ||
                item[end].chan != item[k].chan || item[end].count != item[k].count)
                break;
        TESS_TRY(cut_group(work, item + k, end - k, most, share));
    }
cleanup:
    tess_free(items.room);
    return status;
}
