/* How much gains change between a facet and its neighbours, and so within it; and how
 * alike those of neighbours are. */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "gains.h"
#include "tess_mem.h"
#include "tess_minmax.h"

/* Neighbours of a facet, and frequencies at which it is compared with them, at most. */
enum { NEIGHBOURS = 6, MOST_FREQS = 8 };

/* A neighbour of a facet, and the sums that the difference is made of. */
typedef struct neighbour {
    int64_t facet; /* −1: none */
    double away_rad, square, whole;
} neighbour;

/* Matrices of all facets and antennas at an interval and a frequency. */
typedef struct matrices {
    int64_t num_antennas;
    double complex (*jones)[4]; /* [facet][antenna] */
    bool *counts;               /* [facet][antenna] */
} matrices;

/* ---- neighbours ---- */

/* The nearest of the other facets, the nearest first. */
static void find_neighbours(const tess_facets *facets, int64_t facet,
                            neighbour found[NEIGHBOURS])
{
    const tess_facet *mine = &facets->facet[facet];
    for (int k = 0; k < NEIGHBOURS; ++k)
        found[k] = (neighbour){.facet = -1, .away_rad = INFINITY};
    for (int64_t j = 0; j < facets->num_facets; ++j) {
        const tess_facet *other = &facets->facet[j];
        const double away = tess_facets_angle(mine->ra_rad, mine->dec_rad,
                                              other->ra_rad, other->dec_rad);
        int k = NEIGHBOURS;
        while (k > 0 && away < found[k - 1].away_rad)
            --k;
        if (j == facet || !(away > 0) || k == NEIGHBOURS) continue;
        memmove(&found[k + 1], &found[k], (size_t)(NEIGHBOURS - 1 - k) * sizeof *found);
        found[k] = (neighbour){.facet = j, .away_rad = away};
    }
}

/* ---- differences ---- */

/* a^H b */
static void multiply(const double complex a[4], const double complex b[4],
                     double complex product[4])
{
    for (int k = 0; k < 4; ++k)
        product[k] =
            conj(a[k >> 1]) * b[k & 1] + conj(a[2 + (k >> 1)]) * b[2 + (k & 1)];
}

static double square_of(const double complex a[4])
{
    double sum = 0;
    for (int k = 0; k < 4; ++k)
        sum += creal(a[k]) * creal(a[k]) + cimag(a[k]) * cimag(a[k]);
    return sum;
}

/* Sum over baselines p ≠ q of the products of visibilities of two facets, whose
 * matrices are A and B: Σ tr((B_p B_q^H)^H A_p A_q^H) = |Σ_p B_p^H A_p|² − Σ_p |B_p^H
 * A_p|², so that antennas are summed over once. */
static double product_of(const matrices *of, int64_t a, int64_t b, const bool *counts)
{
    double complex sum[4] = {0}, each[4];
    double own = 0;
    for (int64_t p = 0; p < of->num_antennas; ++p) {
        if (!counts[p]) continue;
        multiply(of->jones[b * of->num_antennas + p],
                 of->jones[a * of->num_antennas + p], each);
        for (int k = 0; k < 4; ++k)
            sum[k] += each[k];
        own += square_of(each);
    }
    return square_of(sum) - own;
}

/* Adds what the visibilities of a facet and a neighbour differ by. `counts` has room
 * for a bool an antenna. */
static void compare(const matrices *of, int64_t facet, neighbour *with, bool *counts)
{
    const int64_t num = of->num_antennas, j = with->facet;
    for (int64_t p = 0; p < num; ++p)
        counts[p] = of->counts[facet * num + p] && of->counts[j * num + p];
    const double mine = product_of(of, facet, facet, counts);
    const double other = product_of(of, j, j, counts);
    with->square += mine + other - 2 * product_of(of, facet, j, counts);
    with->whole += 0.5 * (mine + other);
}

static void take_matrices(const tess_gains *gains, int64_t num_facets, int64_t interval,
                          double freq_hz, matrices *to)
{
    double jones[4][2];
    for (int64_t f = 0; f < num_facets; ++f)
        for (int64_t p = 0; p < to->num_antennas; ++p) {
            const int64_t at = f * to->num_antennas + p;
            to->counts[at] = tess_gains_jones(gains, interval, p, f, freq_hz, jones);
            for (int k = 0; k < 4; ++k)
                to->jones[at][k] = CMPLX(jones[k][0], jones[k][1]);
        }
}

/* ---- changes ---- */

/* The direction in which gains change fastest. */
static tess_gain_change fastest(const neighbour with[NEIGHBOURS], double corner_rad)
{
    tess_gain_change most = {.neighbour = -1, .corner_rad = corner_rad};
    for (int k = 0; k < NEIGHBOURS; ++k) {
        if (with[k].facet < 0 || !(with[k].whole > 0)) continue;
        const double differs = sqrt(fmax(0, with[k].square / with[k].whole));
        const double error = differs / with[k].away_rad * corner_rad;
        if (most.neighbour >= 0 && !(error > most.error)) continue;
        most.neighbour = with[k].facet;
        most.away_rad = with[k].away_rad;
        most.difference = differs;
        most.error = error;
    }
    return most;
}

/* The angle between the direction of a facet and its farthest vertex that is in the
 * image. */
static double corner_of(const tess_facets *facets, int64_t facet)
{
    const tess_facet *of = &facets->facet[facet];
    const tess_facet_box *box = &of->box;
    double at[2], most = 0;
    tess_facets_place(facets, facet, at);
    for (int64_t k = of->first_edge; k < of->end_edge; ++k)
        for (int end = 0; end < 2; ++end) {
            const double *vertex = end ? facets->edge[k].high : facets->edge[k].low;
            const double x = fmin(fmax(vertex[0], (double)box->x0), (double)box->x1);
            const double y = fmin(fmax(vertex[1], (double)box->y0), (double)box->y1);
            most = fmax(most, hypot(x - at[0], y - at[1]));
        }
    return most * facets->image.geom.scale_rad;
}

/* Place k of at most `most` among `num`, evenly spread. */
static int64_t spread(int64_t k, int64_t num, int64_t most)
{
    return num <= most ? k : (2 * k + 1) * num / (2 * most);
}

/* Memory for matrices of so many facets. */
static tess_status create_matrices(const tess_gains *gains, int64_t num, matrices *of,
                                   bool **counts)
{
    tess_status status = TESS_OK;
    of->num_antennas = tess_gains_num_antennas(gains);
    *counts = tess_alloc(of->num_antennas, sizeof **counts);
    of->jones = tess_alloc(num * of->num_antennas, sizeof *of->jones);
    of->counts = tess_alloc(num * of->num_antennas, sizeof *of->counts);
    if (!*counts || !of->jones || !of->counts)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory to compare gains of facets");
cleanup:
    return status;
}

static void free_matrices(matrices *of, bool *counts)
{
    tess_free(counts);
    tess_free(of->jones);
    tess_free(of->counts);
}

tess_status tess_gains_changes(const tess_gains *gains, const tess_facets *facets,
                               int64_t most_intervals, int64_t num_freq,
                               const double *freq_hz, tess_gain_change *change)
{
    tess_status status = TESS_OK;
    const int64_t num = facets->num_facets, intervals = tess_gains_num_intervals(gains);
    matrices of = {0};
    bool *counts = NULL;
    neighbour(*with)[NEIGHBOURS] = tess_alloc(num, sizeof *with);
    if (!with) TESS_FAIL(TESS_ERR_ALLOC, "no memory to compare gains of facets");
    TESS_TRY(create_matrices(gains, num, &of, &counts));
    for (int64_t f = 0; f < num; ++f)
        find_neighbours(facets, f, with[f]);
    for (int64_t t = 0; t < tess_min_i64(intervals, most_intervals); ++t)
        for (int64_t c = 0; c < tess_min_i64(num_freq, MOST_FREQS); ++c) {
            take_matrices(gains, num, spread(t, intervals, most_intervals),
                          freq_hz[spread(c, num_freq, MOST_FREQS)], &of);
            for (int64_t f = 0; f < num; ++f)
                for (int k = 0; k < NEIGHBOURS && with[f][k].facet >= 0; ++k)
                    compare(&of, f, &with[f][k], counts);
        }
    for (int64_t f = 0; f < num; ++f)
        change[f] = fastest((const neighbour *)with[f], corner_of(facets, f));
cleanup:
    tess_free(with);
    free_matrices(&of, counts);
    return status;
}

/* ---- likeness ---- */

/* Products of antennas, about, that are summed at most, which take half a second of a
 * few hundred directions and more of others: four samples are taken of any number; and
 * intervals at which gains are compared. */
static const double MOST_PRODUCTS = 2e7;
enum { MOST_INTERVALS = 16 };

/* How many intervals and frequencies are looked at. */
typedef struct sampling {
    int64_t intervals, freqs;
} sampling;

static sampling choose_sampling(int64_t intervals, int64_t num_freq, double each)
{
    sampling at = {tess_min_i64(intervals, MOST_INTERVALS),
                   tess_min_i64(num_freq, MOST_FREQS)};
    while (each * (double)(at.intervals * at.freqs) > MOST_PRODUCTS &&
           at.intervals * at.freqs > 4) {
        if (at.intervals > at.freqs)
            at.intervals = (at.intervals + 1) / 2;
        else
            at.freqs = (at.freqs + 1) / 2;
    }
    return at;
}

/* Adds the products of all pairs of facets, and of each with itself, product[num][num]
 * below the diagonal and on it. An antenna without a value has matrices of zeros. */
static void add_products(const matrices *of, int num, const bool *counts,
                         double *product)
{
    for (int a = 0; a < num; ++a)
        for (int b = 0; b <= a; ++b)
            product[a * num + b] += product_of(of, a, b, counts);
}

/* The same of the baselines within each group of antennas. */
static void add_groups(const matrices *of, int num, const int *group, int num_groups,
                       bool *counts, double *product)
{
    for (int g = 0; g < (group ? num_groups : 1); ++g) {
        for (int64_t p = 0; p < of->num_antennas; ++p)
            counts[p] = !group || group[p] == g;
        add_products(of, num, counts, product);
    }
}

/* Likeness of products, in their place. */
static void normalise(int num, double *product)
{
    for (int a = 0; a < num; ++a)
        for (int b = 0; b < a; ++b) {
            const double squares = product[a * num + a] * product[b * num + b];
            const double like = squares > 0 ? product[a * num + b] / sqrt(squares) : 0;
            product[a * num + b] = product[b * num + a] = like;
        }
    for (int a = 0; a < num; ++a)
        product[a * num + a] = 1;
}

tess_status tess_gains_likeness(const tess_gains *gains, int num, const int *group,
                                int num_groups, int64_t num_freq, const double *freq_hz,
                                double *likeness)
{
    tess_status status = TESS_OK;
    const int64_t intervals = tess_gains_num_intervals(gains);
    const int64_t antennas = tess_gains_num_antennas(gains);
    const double each = 0.5 * (double)num * num * (double)antennas;
    const sampling at = choose_sampling(intervals, num_freq, each);
    matrices of = {0};
    bool *counts = NULL;
    TESS_TRY(create_matrices(gains, num, &of, &counts));
    for (int64_t k = 0; k < (int64_t)num * num; ++k)
        likeness[k] = antennas > 0 ? 0 : 1; /* all baselines have the same gains */
    for (int64_t t = 0; antennas > 0 && t < at.intervals; ++t)
        for (int64_t c = 0; c < at.freqs; ++c) {
            take_matrices(gains, num, spread(t, intervals, at.intervals),
                          freq_hz[spread(c, num_freq, at.freqs)], &of);
            add_groups(&of, num, group, num_groups, counts, likeness);
        }
    normalise(num, likeness);
cleanup:
    free_matrices(&of, counts);
    return status;
}
