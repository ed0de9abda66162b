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

/* Matrices of all facets and of some antennas at a time and a frequency. */
typedef struct matrices {
    int64_t num_antennas;
    const int32_t *antenna;     /* [num_antennas] their numbers; NULL: all antennas */
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
 * A_p|², so that antennas are summed over once. `counts` NULL: all of them count, as
 * those without a value have matrices of zeros. */
static double product_of(const matrices *of, int64_t a, int64_t b, const bool *counts)
{
    double complex sum[4] = {0}, each[4];
    double own = 0;
    for (int64_t p = 0; p < of->num_antennas; ++p) {
        if (counts && !counts[p]) continue;
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

static void take_matrices(const tess_gains *gains, int64_t num_facets,
                          double time_mjd_s, double freq_hz, matrices *to)
{
    double jones[4][2];
    for (int64_t f = 0; f < num_facets; ++f)
        for (int64_t p = 0; p < to->num_antennas; ++p) {
            const int64_t at = f * to->num_antennas + p;
            const int64_t antenna = to->antenna ? to->antenna[p] : p;
            to->counts[at] =
                tess_gains_jones_at(gains, time_mjd_s, antenna, f, freq_hz, jones);
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

/* Memory for matrices of so many facets and antennas. */
static tess_status create_matrices(int64_t num_facets, int64_t num_antennas,
                                   matrices *of)
{
    tess_status status = TESS_OK;
    of->num_antennas = num_antennas;
    of->jones = tess_alloc(num_facets * num_antennas, sizeof *of->jones);
    of->counts = tess_alloc(num_facets * num_antennas, sizeof *of->counts);
    if (!of->jones || !of->counts)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory to compare gains of facets");
cleanup:
    return status;
}

static void free_matrices(matrices *of)
{
    tess_free(of->jones);
    tess_free(of->counts);
}

tess_status tess_gains_changes(const tess_gains *gains, const tess_facets *facets,
                               int64_t most_intervals, int64_t num_freq,
                               const double *freq_hz, tess_gain_change *change)
{
    tess_status status = TESS_OK;
    const int64_t num = facets->num_facets, intervals = tess_gains_num_intervals(gains);
    const int64_t antennas = tess_gains_num_antennas(gains);
    matrices of = {0};
    bool *counts = tess_alloc(antennas, sizeof *counts);
    neighbour(*with)[NEIGHBOURS] = tess_alloc(num, sizeof *with);
    if (!with || !counts)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory to compare gains of facets");
    TESS_TRY(create_matrices(num, antennas, &of));
    for (int64_t f = 0; f < num; ++f)
        find_neighbours(facets, f, with[f]);
    for (int64_t t = 0; t < tess_min_i64(intervals, most_intervals); ++t)
        for (int64_t c = 0; c < tess_min_i64(num_freq, MOST_FREQS); ++c) {
            take_matrices(gains, num,
                          gains_middle(gains, spread(t, intervals, most_intervals)),
                          freq_hz[spread(c, num_freq, MOST_FREQS)], &of);
            for (int64_t f = 0; f < num; ++f)
                for (int k = 0; k < NEIGHBOURS && with[f][k].facet >= 0; ++k)
                    compare(&of, f, &with[f][k], counts);
        }
    for (int64_t f = 0; f < num; ++f)
        change[f] = fastest((const neighbour *)with[f], corner_of(facets, f));
cleanup:
    tess_free(with);
    tess_free(counts);
    free_matrices(&of);
    return status;
}

/* ---- likeness ---- */

/* Products of antennas, about, that are summed at most, which take half a second of a
 * few hundred directions and more of others: four samples are taken of any number; and
 * times at which gains are compared. */
static const double MOST_PRODUCTS = 2e7;
enum { MOST_TIMES = 16 };

/* Less of a part than this is a sliver. */
static const double SLIVER = 1e-3;

/* How many times and frequencies are looked at. */
typedef struct sampling {
    int64_t times, freqs;
} sampling;

static sampling choose_sampling(int64_t times, int64_t num_freq, double each)
{
    sampling at = {tess_min_i64(times, MOST_TIMES), tess_min_i64(num_freq, MOST_FREQS)};
    while (each * (double)(at.times * at.freqs) > MOST_PRODUCTS &&
           at.times * at.freqs > 4) {
        if (at.times > at.freqs)
            at.times = (at.times + 1) / 2;
        else
            at.freqs = (at.freqs + 1) / 2;
    }
    return at;
}

/* A time of a part, which stands for some of its visibilities. */
typedef struct part_time {
    const tess_gain_part *part;
    double time_mjd_s, num_vis;
} part_time;

/* The middle of what a part has of an interval; `share` gets how much of the part this
 * is. */
static double middle_of(const tess_gains *gains, const tess_gain_part *part,
                        int64_t interval, double *share)
{
    const double *range = part->time_mjd_s;
    const double before =
        interval > 0 ? tess_gains_interval_end(gains, interval - 1) : range[0];
    const double begin = fmax(before, range[0]);
    const double end = fmin(tess_gains_interval_end(gains, interval), range[1]);
    *share = range[1] > range[0] ? (end - begin) / (range[1] - range[0]) : 1;
    return 0.5 * (begin + end);
}

/* The intervals of gains that a part has times in: the first, and how many. Slivers at
 * its ends do not count: rounded times reach a little into neighbouring intervals, and
 * where some intervals are taken, these count alike. */
static int64_t intervals_of(const tess_gains *gains, const tess_gain_part *part,
                            int64_t *first)
{
    int64_t last = tess_gains_interval(gains, part->time_mjd_s[1]);
    double share;
    *first = tess_gains_interval(gains, part->time_mjd_s[0]);
    middle_of(gains, part, *first, &share);
    if (*first < last && share < SLIVER) ++*first;
    middle_of(gains, part, last, &share);
    if (*first < last && share < SLIVER) --last;
    return last - *first + 1;
}

/* Lists each interval of each part, which counts by its length. */
static int64_t list_all(const tess_gains *gains, int num_parts,
                        const tess_gain_part *part, part_time *to)
{
    int64_t count = 0, first;
    double share;
    for (int k = 0; k < num_parts; ++k) {
        const int64_t num = intervals_of(gains, &part[k], &first);
        for (int64_t j = 0; j < num; ++j) {
            const double time = middle_of(gains, &part[k], first + j, &share);
            to[count++] = (part_time){&part[k], time, share * part[k].num_vis};
        }
    }
    return count;
}

/* Lists `most` of them, which are evenly spread over the visibilities of all parts.
 * Intervals of a part count alike, since a long one may be a gap between two nights.
 * Multiples of the golden section spread evenly over times, however many fall into each
 * of the parts, which may be bands of one observation (Knuth 1973, 6.4). */
static int64_t list_some(const tess_gains *gains, int num_parts,
                         const tess_gain_part *part, int64_t most, part_time *to)
{
    const double golden = 0.5 * (sqrt(5) - 1);
    double all = 0, before = 0, share;
    int64_t count = 0, first;
    for (int k = 0; k < num_parts; ++k)
        all += part[k].num_vis;
    for (int k = 0; k < num_parts; before += part[k++].num_vis) {
        const int64_t num = intervals_of(gains, &part[k], &first);
        for (; count < most; ++count) {
            const double at = (double)count + 0.5;
            if (!(at / (double)most * all < before + part[k].num_vis)) break;
            const int64_t j = (int64_t)(fmod(at * golden, 1) * (double)num);
            const double time = middle_of(gains, &part[k], first + j, &share);
            to[count] = (part_time){&part[k], time, all / (double)most};
        }
    }
    return count;
}

/* Number of antennas of a part. */
static int64_t num_antennas_of(const tess_gains *gains, const tess_gain_part *part)
{
    return part->antenna ? part->num_antennas : tess_gains_num_antennas(gains);
}

/* Adds the products of all pairs of facets, and of each with itself, product[num][num]
 * below the diagonal and on it. */
static void add_products(const matrices *of, int num, double weight, double *product)
{
    for (int a = 0; a < num; ++a)
        for (int b = 0; b <= a; ++b)
            product[a * num + b] += weight * product_of(of, a, b, NULL);
}

/* Adds the products at a time, each as a mean over baselines and frequencies. */
static void add_time(const tess_gains *gains, int num, const part_time *at,
                     int64_t most_freqs, matrices *of, double *product)
{
    const tess_gain_part *part = at->part;
    const int64_t antennas = num_antennas_of(gains, part);
    const int64_t freqs = tess_min_i64(part->num_freq, most_freqs);
    if (antennas < 2) return;
    of->num_antennas = antennas;
    of->antenna = part->antenna;
    for (int64_t c = 0; c < freqs; ++c) {
        take_matrices(gains, num, at->time_mjd_s,
                      part->freq_hz[spread(c, part->num_freq, most_freqs)], of);
        add_products(of, num, at->num_vis / (double)(freqs * antennas * (antennas - 1)),
                     product);
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

tess_status tess_gains_likeness(const tess_gains *gains, int num, int num_parts,
                                const tess_gain_part *part, double *likeness)
{
    tess_status status = TESS_OK;
    int64_t antennas = 0, intervals = 0, freqs = 0, first;
    part_time times[MOST_TIMES];
    matrices of = {0};
    for (int k = 0; k < num_parts; ++k) {
        antennas = tess_max_i64(antennas, num_antennas_of(gains, &part[k]));
        intervals += intervals_of(gains, &part[k], &first);
        freqs = tess_max_i64(freqs, part[k].num_freq);
    }
    /* without antennas, all baselines have the same gains */
    for (int64_t k = 0; k < (int64_t)num * num; ++k)
        likeness[k] = antennas > 0 ? 0 : 1;
    if (antennas == 0) return TESS_OK;
    const double each = 0.5 * (double)num * num * (double)antennas;
    const sampling at = choose_sampling(intervals, freqs, each);
    TESS_TRY(create_matrices(num, antennas, &of));
    const int64_t count = intervals <= at.times
                              ? list_all(gains, num_parts, part, times)
                              : list_some(gains, num_parts, part, at.times, times);
    for (int64_t k = 0; k < count; ++k)
        add_time(gains, num, &times[k], at.freqs, &of, likeness);
    normalise(num, likeness);
cleanup:
    free_matrices(&of);
    return status;
}
