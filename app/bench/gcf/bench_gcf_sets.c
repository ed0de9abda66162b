/* Simulates the data sets of a published study of tiled gridding. */
#include "tess_bench_gcf_sets.h"

#include <math.h>
#include <string.h>

#include "tess_const.h"
#include "tess_mem.h"
#include "tess_sim_layout.h"

enum { LEAST_PLANES = 16, OVERSAMPLING = 4, TAPER_POINTS = 512, FEWER_TIMES = 8 };

/* OSKAR's imager: kernels end where they fall below this part of the first plane's
 * peak, and the last plane lies a little beyond the largest w. */
static const double CUT = 1e-3, BEYOND = 1.05;

/* Its grids are 1.2 times as large as the image, and then as numbers that transform
 * well: an image of 8192² pixels has a grid of 10 000². */
static const double PADDING = 10000.0 / 8192;

/* SKA1-Low at 100 MHz, two hours each before and about transit through the zenith (the
 * names of the files: SKA1-LOW_v5_EL82-EL70_100MHz): with images of 5° OSKAR's rules
 * give half-supports of 94, 67 and 45 cells, and 870, 585 and 375 planes. The synthetic
 * set is not described any further. Its planes and its support go together at 200 MHz
 * on the first track. Were its stations as dense in the middle as SKA1-Low, it would
 * update 300 cells a visibility; the study's processors took as long for one as for 500
 * to 1300 cells of the other sets. Evenly strewn over a disc they come to 760. Fields
 * here are those that give the published supports. */
const tess_bench_gcf_set tess_bench_gcf_sets[TESS_BENCH_GCF_NUM_SETS] = {
    {.name = "synthetic",
     .title = "synthetic, 300 stations",
     .num_stations = 300,
     .num_times = 48,
     .first_deg = 30,
     .last_deg = 56,
     .disc_m = 33e3,
     .wavelength_m = TESS_SPEED_OF_LIGHT_M_S / 200e6,
     .image_deg = 2.06,
     .num_planes = 714,
     .half_support = 36,
     .size = 4096},
    {.name = "low-30",
     .title = "SKA1-Low, elevation 30° to 56°",
     .num_stations = 512,
     .num_times = 240,
     .first_deg = 30,
     .last_deg = 56,
     .wavelength_m = TESS_SPEED_OF_LIGHT_M_S / 100e6,
     .image_deg = 5.02,
     .num_planes = 922,
     .half_support = 95,
     .size = 10000},
    {.name = "low-56",
     .title = "SKA1-Low, elevation 56° to 82°",
     .num_stations = 512,
     .num_times = 240,
     .first_deg = 56,
     .last_deg = 82,
     .wavelength_m = TESS_SPEED_OF_LIGHT_M_S / 100e6,
     .image_deg = 5.205,
     .num_planes = 601,
     .half_support = 72,
     .size = 10000},
    {.name = "low-82",
     .title = "SKA1-Low, elevation 82° to 70°",
     .num_stations = 512,
     .num_times = 240,
     .first_deg = 82,
     .last_deg = 70,
     .wavelength_m = TESS_SPEED_OF_LIGHT_M_S / 100e6,
     .image_deg = 4.925,
     .num_planes = 339,
     .half_support = 44,
     .size = 10000},
};

/* ---- tracks ---- */

/* Stations from their centre, and where that is. */
typedef struct array {
    int count;
    double xyz_lambda[512][3];
    double longitude_rad, latitude_rad;
} array;

/* Uniform in [0, 1): Knuth's 64-bit generator, the same everywhere. */
static double draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

/* Anywhere in a disc that touches the ground in SKA1-Low's middle. */
static void strew(double radius_m, const double *center, int count, double (*xyz_m)[3])
{
    const double lon = atan2(center[1], center[0]);
    const double lat = atan2(center[2], hypot(center[0], center[1]));
    const double east[] = {-sin(lon), cos(lon), 0};
    const double north[] = {-sin(lat) * cos(lon), -sin(lat) * sin(lon), cos(lat)};
    uint64_t random = 300;
    for (int a = 0; a < count; ++a) {
        const double r = radius_m * sqrt(draw(&random));
        const double angle = TESS_TWO_PI * draw(&random);
        for (int k = 0; k < 3; ++k)
            xyz_m[a][k] =
                center[k] + r * (cos(angle) * east[k] + sin(angle) * north[k]);
    }
}

static void center_of(int count, double (*xyz_m)[3], double *center)
{
    memset(center, 0, 3 * sizeof *center);
    for (int a = 0; a < count; ++a)
        for (int k = 0; k < 3; ++k)
            center[k] += xyz_m[a][k] / count;
}

static void array_make(const tess_bench_gcf_set *set, int count, double shrink,
                       array *of)
{
    const tess_layout_table *all = &tess_layout_ska1_low;
    double center[3];
    of->count = count;
    for (int a = 0; a < count; ++a) {
        const int from = (int)((int64_t)a * (all->num_antennas - 1) / (count - 1));
        memcpy(of->xyz_lambda[a], all->antenna[from].xyz_m, sizeof of->xyz_lambda[a]);
    }
    center_of(count, of->xyz_lambda, center);
    if (set->disc_m > 0) {
        strew(set->disc_m, center, count, of->xyz_lambda);
        center_of(count, of->xyz_lambda, center);
    }
    for (int a = 0; a < count; ++a)
        for (int k = 0; k < 3; ++k)
            of->xyz_lambda[a][k] =
                shrink * (of->xyz_lambda[a][k] - center[k]) / set->wavelength_m;
    of->longitude_rad = atan2(center[1], center[0]);
    of->latitude_rad = atan2(center[2], hypot(center[0], center[1]));
}

/* Hour angle, before the meridian, at which a source that passes the zenith is so high.
 */
static double hour_angle(double latitude_rad, double elevation_deg)
{
    const double s = sin(latitude_rad), c = cos(latitude_rad);
    return -acos((sin(elevation_deg * TESS_RAD_PER_DEG) - s * s) / (c * c));
}

/* u, v, w of all pairs of stations at an hour angle, (u, v) in wavelengths. */
static void baselines_at(const array *of, double hour_rad, double *u, double *v,
                         double *w)
{
    /* the source's declination is the latitude; from Greenwich for geocentric axes */
    const double h = hour_rad - of->longitude_rad, d = of->latitude_rad;
    const double axis[3][3] = {
        {sin(h), cos(h), 0},
        {-sin(d) * cos(h), sin(d) * sin(h), cos(d)},
        {cos(d) * cos(h), -cos(d) * sin(h), sin(d)},
    };
    double *const out[3] = {u, v, w};
    int64_t at = 0;
    for (int a = 0; a < of->count; ++a)
        for (int b = a + 1; b < of->count; ++b, ++at)
            for (int row = 0; row < 3; ++row) {
                double sum = 0;
                for (int k = 0; k < 3; ++k)
                    sum += axis[row][k] * (of->xyz_lambda[b][k] - of->xyz_lambda[a][k]);
                out[row][at] = sum;
            }
}

/* How many of the times and stations make up at most about `most`. */
static void thin(const tess_bench_gcf_set *set, int64_t most, int *stations, int *times)
{
    const int64_t pairs = (int64_t)set->num_stations * (set->num_stations - 1) / 2;
    *stations = set->num_stations;
    *times = set->num_times;
    if (most >= pairs * set->num_times) return;
    *times = (int)(most / pairs);
    if (*times >= FEWER_TIMES) return;
    *times = FEWER_TIMES;
    *stations = (int)(0.5 + sqrt(0.25 + 2.0 * (double)most / FEWER_TIMES));
    if (*stations < 3) *stations = 3;
    if (*stations > set->num_stations) *stations = set->num_stations;
}

static tess_status place(const tess_bench_gcf_set *set, int64_t most, double shrink,
                         int threads, tess_bench_gcf_points *points)
{
    tess_status status = TESS_OK;
    int stations, times;
    thin(set, most, &stations, &times);
    const int64_t pairs = (int64_t)stations * (stations - 1) / 2;
    array *of = tess_alloc(1, sizeof *of);
    points->count = pairs * times;
    points->u = tess_alloc(points->count, sizeof *points->u);
    points->v = tess_alloc(points->count, sizeof *points->v);
    points->w = tess_alloc(points->count, sizeof *points->w);
    if (!of || !points->u || !points->v || !points->w)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for the %lld visibilities of %s",
                  (long long)points->count, set->name);
    array_make(set, stations, shrink, of);
    const double first = hour_angle(of->latitude_rad, set->first_deg);
    double last = hour_angle(of->latitude_rad, set->last_deg), w_max = 0;
    if (set->last_deg < set->first_deg) last = -last;
#pragma omp parallel for num_threads(threads) reduction(max : w_max)
    for (int t = 0; t < times; ++t) {
        double *const u = points->u + t * pairs, *const v = points->v + t * pairs;
        baselines_at(of, first + (last - first) * t / fmax(1, times - 1), u, v,
                     points->w + t * pairs);
        for (int64_t k = 0; k < pairs; ++k) {
            u[k] = 0.5 * (double)points->size + u[k] * points->field;
            v[k] = 0.5 * (double)points->size + v[k] * points->field;
            w_max = fmax(w_max, fabs(points->w[t * pairs + k]));
        }
    }
    points->w_scale_lambda = BEYOND * w_max;
cleanup:
    tess_free(of);
    return status;
}

/* ---- supports ---- */

/* The prolate spheroidal function for m = 6, alpha = 1, by Schwab's rational
 * approximation (1984, in Indirect Imaging, p. 333), as AIPS, CASA and OSKAR have it.
 */
static double spheroidal(double nu)
{
    static const double p[2][5] = {
        {8.203343e-2, -3.644705e-1, 6.278660e-1, -5.335581e-1, 2.312756e-1},
        {4.028559e-3, -3.697768e-2, 1.021332e-1, -1.201436e-1, 6.412774e-2}};
    static const double q[2][3] = {{1.0, 8.212018e-1, 2.078043e-1},
                                   {1.0, 9.599102e-1, 2.918724e-1}};
    const int part = nu >= 0.75;
    const double end = part ? 1 : 0.75, d = nu * nu - end * end;
    const double over =
        p[part][0] +
        d * (p[part][1] + d * (p[part][2] + d * (p[part][3] + d * p[part][4])));
    return over / (q[part][0] + d * (q[part][1] + d * q[part][2]));
}

/* A line of the kernel: ∫ taper(p) exp(−πi w (p L/2)²) cos(π x p) dp over 0 < p < 1, n
 * − 1 being −(l² + m²)/2 for such fields; cosines by their recurrence. */
static void line_at(const double *taper, double w_lambda, double field, double x,
                    double value[2])
{
    const double step = TESS_PI * x / TAPER_POINTS, twice = 2 * cos(step);
    double before = cos(0.5 * step), here = before; /* of −½ and ½ steps */
    value[0] = value[1] = 0;
    for (int k = 0; k < TAPER_POINTS; ++k) {
        const double l = (k + 0.5) / TAPER_POINTS * 0.5 * field;
        const double phase = TESS_PI * w_lambda * l * l;
        value[0] += taper[k] * here * cos(phase);
        value[1] -= taper[k] * here * sin(phase);
        const double next = twice * here - before;
        before = here;
        here = next;
    }
}

/* OSKAR's half-support: the last of the fine steps along an axis at which the kernel is
 * above the cut, rounded to cells, and one more. */
static int half_support(const double *taper, double sum, double w_lambda, double field)
{
    double middle[2], value[2];
    line_at(taper, w_lambda, field, 0, middle);
    const double least = CUT * sum * sum / hypot(middle[0], middle[1]);
    int step = (int)(OVERSAMPLING * (0.5 * w_lambda * field * field + 16));
    for (; step > 0; --step) {
        line_at(taper, w_lambda, field, (double)step / OVERSAMPLING, value);
        if (hypot(value[0], value[1]) > least) break;
    }
    return 1 + (int)(0.5 + (double)step / OVERSAMPLING);
}

static void find_half_supports(const tess_bench_gcf_points *points, int threads,
                               int *half)
{
    double taper[TAPER_POINTS], sum = 0;
    const int last = points->num_planes - 1;
    for (int k = 0; k < TAPER_POINTS; ++k)
        sum += taper[k] = spheroidal((k + 0.5) / TAPER_POINTS);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int p = last; p >= 0; --p)
        half[p] = half_support(taper, sum,
                               points->w_scale_lambda * p * p / ((double)last * last),
                               points->field);
}

/* How many of the visibilities each plane has: of tess_gcf_plane_of(). */
static void count_planes(const tess_bench_gcf_points *points, double *visibilities)
{
    const int last = points->num_planes - 1;
    const double scale = (double)last * last / points->w_scale_lambda;
    for (int64_t k = 0; k < points->count; ++k) {
        const int plane = (int)floor(sqrt(fabs(points->w[k]) * scale) + 0.5);
        ++visibilities[plane < last ? plane : last];
    }
}

/* Supports here are multiples of TESS_GCF_STEP: the nearest to 2h + 1, and then the
 * next for some that were rounded down, those that lost most and the widest first,
 * until there are as many updates of cells as the study has. */
static void match_supports(const int *half, const double *visibilities,
                           tess_bench_gcf_points *points)
{
    points->study_updates = points->updates = 0;
    for (int p = 0; p < points->num_planes; ++p) {
        const int width = 2 * half[p] + 1, nearest = width + TESS_GCF_STEP / 2;
        points->support[p] = nearest - nearest % TESS_GCF_STEP;
        if (points->support[p] == 0) points->support[p] = TESS_GCF_STEP;
        points->study_updates += visibilities[p] * width * width;
        points->updates += visibilities[p] * points->support[p] * points->support[p];
    }
    for (int lost = TESS_GCF_STEP / 2 - 1; lost > 0; --lost)
        for (int p = points->num_planes - 1; p >= 0; --p) {
            const double support = points->support[p];
            if (points->updates >= points->study_updates) return;
            if (2 * half[p] + 1 != points->support[p] + lost) continue;
            points->support[p] += TESS_GCF_STEP;
            points->updates +=
                visibilities[p] * (2 * support + TESS_GCF_STEP) * TESS_GCF_STEP;
        }
}

static tess_status find_supports(int threads, tess_bench_gcf_points *points)
{
    tess_status status = TESS_OK;
    const int planes = points->num_planes;
    int *half = tess_alloc(planes, sizeof *half);
    double *visibilities = tess_alloc_zero(planes, sizeof *visibilities);
    points->support = tess_alloc(planes, sizeof *points->support);
    if (!half || !visibilities || !points->support)
        TESS_FAIL(TESS_ERR_ALLOC, "planes of kernels");
    find_half_supports(points, threads, half);
    for (int p = 0; p < planes; ++p)
        if (half[p] > points->half_support) points->half_support = half[p];
    count_planes(points, visibilities);
    match_supports(half, visibilities, points);
cleanup:
    tess_free(visibilities);
    tess_free(half);
    return status;
}

/* ---- sets ---- */

tess_status tess_bench_gcf_set_make(const tess_bench_gcf_set *set, int64_t most,
                                    double shrink, int threads,
                                    tess_bench_gcf_points *points)
{
    tess_status status = TESS_OK;
    tess_bench_gcf_points made = {.size = (int64_t)ceil(shrink * (double)set->size)};
    made.num_planes = (int)(shrink * set->num_planes + 0.5);
    if (made.num_planes < LEAST_PLANES) made.num_planes = LEAST_PLANES;
    made.field = PADDING * 2 * sin(0.5 * set->image_deg * TESS_RAD_PER_DEG);
    TESS_TRY(place(set, most, shrink, threads, &made));
    TESS_TRY(find_supports(threads, &made));
    *points = made;
    memset(&made, 0, sizeof made);
cleanup:
    tess_bench_gcf_points_free(&made);
    return status;
}

void tess_bench_gcf_points_free(tess_bench_gcf_points *points)
{
    tess_free(points->u);
    tess_free(points->v);
    tess_free(points->w);
    tess_free(points->support);
    memset(points, 0, sizeof *points);
}

tess_status tess_bench_gcf_set_kernels(const tess_bench_gcf_points *points,
                                       bool is_double, int threads, tess_gcf **gcf)
{
    tess_gcf_opts opts;
    tess_gcf_opts_default(&opts);
    opts.field_l = opts.field_m = points->field;
    opts.padding = PADDING;
    opts.support = points->support;
    opts.layout.num_planes = points->num_planes;
    opts.layout.w_max_lambda = points->w_scale_lambda;
    opts.layout.oversampling = OVERSAMPLING;
    opts.layout.is_double = is_double;
    opts.layout.threads = threads;
    return tess_gcf_create(&opts, gcf);
}
