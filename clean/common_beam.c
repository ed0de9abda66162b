/* Finds the ellipse of least area that contains given ellipses of one centre. It
 * touches them at two or three points, not counting those opposite (John 1948). These
 * are found by exchange: the point that lies farthest beyond the ellipse of the points
 * so far takes the place of one of them (Welzl 1991; Todd and Yıldırım 2007, Discrete
 * Applied Mathematics 155, 1731, treat many dimensions). */
#include "tess_common_beam.h"

#include <math.h>

#include "clean_gaussian.h"

enum { MAX_ROUNDS = 100 };

/* A point may lie so far beyond the ellipse, in the square of its distance. */
static const double BEYOND = 1e-12;

typedef struct edge_point {
    double x, y;
} edge_point;

typedef struct edge_points {
    int num;
    edge_point at[4];
} edge_points;

static clean_widths widths_of(const tess_clean_beam *beam)
{
    return clean_widths_of(beam->major_px, beam->minor_px, beam->angle_rad);
}

static bool has_width(const tess_clean_beam *beam)
{
    return beam->major_px > 0 && beam->minor_px > 0;
}

/* Returns the largest squared distance of a point of ellipse `a`, by which it lies
 * within `c` if it is at most 1; `at` becomes the point. With c = L Lᵀ, it is the
 * largest eigenvalue of L⁻¹ a L⁻ᵀ. */
static double farthest(const clean_widths *a, const clean_widths *c, edge_point *at)
{
    const double l11 = sqrt(c->xx), l21 = c->xy / l11;
    const double l22 = sqrt(c->yy - l21 * l21);
    const double b11 = a->xx / (l11 * l11);
    const double b12 = (a->xy / l11 - l21 * b11) / l22;
    const double b22 = (a->yy - 2 * l21 * a->xy / l11 + l21 * l21 * b11) / (l22 * l22);
    const double middle = 0.5 * (b11 + b22);
    const double half = hypot(0.5 * (b11 - b22), b12), most = middle + half;
    const double turn = 0.5 * atan2(b12, 0.5 * (b11 - b22));
    const double v1 = sqrt(most) * cos(turn), v2 = sqrt(most) * sin(turn);
    *at = (edge_point){l11 * v1, l21 * v1 + l22 * v2};
    return most;
}

/* The same over all beams. */
static double farthest_of_all(const tess_clean_beam *beam, int64_t num,
                              const clean_widths *c, edge_point *at)
{
    double most = 0;
    for (int64_t k = 0; k < num; ++k) {
        edge_point here;
        if (!has_width(&beam[k])) continue;
        const clean_widths a = widths_of(&beam[k]);
        const double far = farthest(&a, c, &here);
        if (far <= most) continue;
        most = far;
        *at = here;
    }
    return most;
}

/* The squared distance of a point in an ellipse. */
static double distance(const clean_widths *c, const edge_point *at)
{
    return (c->yy * at->x * at->x - 2 * c->xy * at->x * at->y + c->xx * at->y * at->y) /
           clean_widths_determinant(c);
}

/* The ellipse of least area that has two points on its edge. */
static clean_widths ellipse_of_two(const edge_point *a, const edge_point *b)
{
    return (clean_widths){a->x * a->x + b->x * b->x, a->y * a->y + b->y * b->y,
                          a->x * a->y + b->x * b->y};
}

static double determinant(const double a[3], const double b[3], const double c[3])
{
    return a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0]) +
           a[2] * (b[0] * c[1] - b[1] * c[0]);
}

/* The ellipse through three points, q_xx x² + q_yy y² + q_xy x y = 1, by Cramer's rule;
 * zeros if the curve is none. */
static clean_widths ellipse_of_three(const edge_point *const at[3])
{
    const double one[3] = {1, 1, 1};
    double xx[3], yy[3], xy[3];
    for (int k = 0; k < 3; ++k) {
        xx[k] = at[k]->x * at[k]->x;
        yy[k] = at[k]->y * at[k]->y;
        xy[k] = at[k]->x * at[k]->y;
    }
    const double all = determinant(xx, yy, xy);
    const double q_xx = determinant(one, yy, xy) / all;
    const double q_yy = determinant(xx, one, xy) / all;
    const double q_xy = determinant(xx, yy, one) / all;
    const double det = q_xx * q_yy - 0.25 * q_xy * q_xy;
    if (!(isfinite(det) && det > 0 && q_xx > 0)) return (clean_widths){0, 0, 0};
    return (clean_widths){q_yy / det, q_xx / det, -0.5 * q_xy / det};
}

/* Whether an ellipse is one, and contains the points. */
static bool contains(const clean_widths *c, const edge_points *points)
{
    if (!(c->xx > 0 && clean_widths_determinant(c) > 0)) return false;
    for (int k = 0; k < points->num; ++k)
        if (distance(c, &points->at[k]) > 1 + BEYOND) return false;
    return true;
}

/* Takes an ellipse that contains all points and is smaller than the best so far. The
 * points of `mask` are on its edge. */
static void take_smaller(const clean_widths *c, const edge_points *points,
                         unsigned mask, clean_widths *best, unsigned *support)
{
    if (!contains(c, points)) return;
    if (*support && clean_widths_determinant(c) >= clean_widths_determinant(best))
        return;
    *best = *c;
    *support = mask;
}

/* Finds the ellipse of least area that contains the points, of which two or three are
 * on its edge, and leaves the others out. Returns false if rounding hides it. */
static bool enclose(edge_points *points, clean_widths *ellipse)
{
    const edge_point *at = points->at;
    unsigned support = 0;
    clean_widths best = {0, 0, 0};
    for (int i = 0; i < points->num; ++i)
        for (int j = i + 1; j < points->num; ++j) {
            const unsigned pair = 1U << i | 1U << j;
            const clean_widths two = ellipse_of_two(&at[i], &at[j]);
            take_smaller(&two, points, pair, &best, &support);
            for (int k = j + 1; k < points->num; ++k) {
                const edge_point *const triple[3] = {&at[i], &at[j], &at[k]};
                const clean_widths three = ellipse_of_three(triple);
                take_smaller(&three, points, pair | 1U << k, &best, &support);
            }
        }
    if (!support) return false;
    int kept = 0;
    for (int k = 0; k < points->num; ++k)
        if (support >> k & 1U) points->at[kept++] = points->at[k];
    points->num = kept;
    *ellipse = best;
    return true;
}

/* The ends of the axes of an ellipse, which determine it. */
static edge_points axes_of(const tess_clean_beam *beam)
{
    const double c = cos(beam->angle_rad), s = sin(beam->angle_rad);
    return (edge_points){.num = 2,
                         .at = {{-beam->major_px * s, beam->major_px * c},
                                {beam->minor_px * c, beam->minor_px * s}}};
}

static tess_clean_beam beam_of(const clean_widths *c)
{
    const double middle = 0.5 * (c->xx + c->yy);
    const double half = hypot(0.5 * (c->yy - c->xx), c->xy);
    return (tess_clean_beam){.major_px = sqrt(middle + half),
                             .minor_px = sqrt(middle - half),
                             .angle_rad = 0.5 * atan2(-c->xy, 0.5 * (c->yy - c->xx))};
}

static const tess_clean_beam *largest_of(const tess_clean_beam *beam, int64_t num)
{
    const tess_clean_beam *largest = NULL;
    for (int64_t k = 0; k < num; ++k) {
        const double area = beam[k].major_px * beam[k].minor_px;
        if (has_width(&beam[k]) &&
            (!largest || area > largest->major_px * largest->minor_px))
            largest = &beam[k];
    }
    return largest;
}

void tess_common_beam(const tess_clean_beam *beam, int64_t num, tess_clean_beam *common)
{
    edge_point beyond = {0, 0};
    const tess_clean_beam *largest = largest_of(beam, num);
    *common = (tess_clean_beam){0};
    if (!largest) return;
    *common = *largest;
    clean_widths c = widths_of(largest);
    double most = farthest_of_all(beam, num, &c, &beyond);
    if (most <= 1 + BEYOND) return;
    edge_points points = axes_of(largest);
    for (int k = 0; k < MAX_ROUNDS && most > 1 + BEYOND; ++k) {
        points.at[points.num++] = beyond;
        if (!enclose(&points, &c)) break;
        most = farthest_of_all(beam, num, &c, &beyond);
    }
    /* what is left of the distance is added to all sides */
    c = (clean_widths){most * c.xx, most * c.yy, most * c.xy};
    *common = beam_of(&c);
}
