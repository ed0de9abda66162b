/* Images and predictions against direct sums, for every accuracy from 1e-2 to 1e-12.
 *
 * The bounds are the promise of --accuracy ε: relative L2 error ≤ ε, also of the
 * visibilities of any single pixel, and in each of 8 × 8 blocks of the image an rms
 * error ≤ 2 ε × the rms of the whole image; and where noise fills a field with a
 * w-term, no less than ε/5. The norm of an image whose visibilities nearly cancel is no
 * measure: the promise is relative to norm_at_random() where that is larger. The direct
 * sums are exact to about 1e-15 (direct_sum.h). Names of the quantities are theirs.
 *
 * TESS_TEST_FULL=1 in the environment adds random geometries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "direct_sum.h"
#include "draw.h"
#include "pipeline.h"
#include "tess_grid.h"
#include "tess_log.h"

#define SPEED_OF_LIGHT_M_S 299792458.0

static const double ACCURACY[] = {1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10, 1e-12};
enum { NUM_ACCURACIES = sizeof ACCURACY / sizeof *ACCURACY };

/* Pixels that are predicted one by one: the centre (one end of the range of n − 1), a
 * corner (or the diagonal's last pixel above the horizon), the middle of an edge,
 * any. */
enum { LONE_PIXELS = 4 };

typedef enum coverage { UNIFORM, CLUSTERED, TRACKS } coverage;
typedef enum sky { POINTS, CORNERS, OUTSIDE, NOISE } sky;

typedef struct accuracy_case {
    const char *name;
    int64_t nx, ny;
    double field_rad; /* of the longer side */
    double w_turns;   /* largest w × largest |n − 1|, the turns of the w-term */
    tess_w_mode w_mode;
    coverage uv;
    sky what;
    int64_t num_rows, num_chan;
    double band;      /* lowest over highest frequency */
    int block_planes; /* forced; 0: chosen */
    int least_blocks; /* blocks of planes the case must have at ε = 1e-4 */
} accuracy_case;

/* 10 degrees are 0.1745 rad. w_turns × padding is the number of planes beyond W. */
static const accuracy_case CASES[] = {
    {"small_w", 64, 64, 0.01, 0.02, TESS_W_AUTO, UNIFORM, POINTS, 150, 4, 0.9, 0, 1},
    {"w_none", 61, 48, 0.01, 3.0, TESS_W_NONE, UNIFORM, POINTS, 150, 4, 0.9, 0, 1},
    {"between_planes", 40, 48, 0.05, 0.15, TESS_W_STACKING, UNIFORM, CORNERS, 150, 4,
     0.9, 0, 1},
    {"few_planes", 48, 48, 0.1, 0.5, TESS_W_STACKING, UNIFORM, POINTS, 150, 4, 0.9, 0,
     1},
    {"ten_degrees", 61, 48, 0.1745, 40.0, TESS_W_AUTO, UNIFORM, POINTS, 150, 4, 0.9, 0,
     4},
    {"blocks_of_planes", 37, 53, 0.1745, 25.0, TESS_W_AUTO, UNIFORM, POINTS, 150, 4,
     0.9, 3, 8},
    {"blocks_of_one_plane", 40, 30, 0.1745, 6.0, TESS_W_AUTO, UNIFORM, POINTS, 100, 4,
     0.9, 1, 6},
    {"all_sky", 61, 61, 2.3, 30.0, TESS_W_AUTO, UNIFORM, POINTS, 150, 4, 0.9, 0, 2},
    {"wide_band", 48, 61, 0.1, 8.0, TESS_W_AUTO, TRACKS, POINTS, 60, 12, 0.3, 0, 1},
    {"sources_in_corners", 61, 48, 0.1745, 10.0, TESS_W_AUTO, UNIFORM, CORNERS, 150, 4,
     0.9, 0, 1},
    {"sources_in_corners_no_w", 64, 64, 0.01, 0, TESS_W_NONE, UNIFORM, CORNERS, 150, 4,
     0.9, 0, 1},
    {"sources_outside", 53, 37, 0.05, 4.0, TESS_W_AUTO, UNIFORM, OUTSIDE, 150, 4, 0.9,
     0, 1},
    {"noise", 64, 48, 0.1745, 10.0, TESS_W_AUTO, UNIFORM, NOISE, 150, 4, 0.9, 0, 1},
    {"noise_no_w", 61, 37, 0.01, 0, TESS_W_NONE, UNIFORM, NOISE, 150, 4, 0.9, 0, 1},
    {"clustered", 61, 48, 0.1, 6.0, TESS_W_AUTO, CLUSTERED, POINTS, 150, 4, 0.99, 0, 1},
    {"tracks", 64, 64, 0.1, 6.0, TESS_W_AUTO, TRACKS, POINTS, 150, 4, 0.97, 0, 1},
    {"tiny_image", 5, 3, 0.1, 2.0, TESS_W_AUTO, UNIFORM, POINTS, 100, 2, 0.9, 0, 1},
};
enum { NUM_CASES = sizeof CASES / sizeof *CASES };

/* Everything one case compares. */
typedef struct scene {
    const accuracy_case *is;
    bool is_random;
    pipeline with;
    pipeline_facts facts;
    tess_direct direct;
    double *uvw_m, *freq_hz, *vis, *weight;
    double *points; /* [ny][nx] models for prediction: the sources */
    double *noise;  /* and noise all over the field */
    double *lone;   /* [LONE_PIXELS][ny][nx] models of one pixel each */
    double *image_true, *points_true, *noise_true, *image, *vis_out;
    double *lone_true; /* [LONE_PIXELS][num_vis][2] */
    draw random;
} scene;

static double pixel_l(const scene *of, double i)
{
    return -(i - (double)(of->with.geom.nx / 2)) * of->with.geom.scale_rad;
}

static double pixel_m(const scene *of, double j)
{
    return (j - (double)(of->with.geom.ny / 2)) * of->with.geom.scale_rad;
}

static double nm1(double l, double m)
{
    const double r2 = l * l + m * m;
    return r2 < 1 ? -r2 / (1 + sqrt(1 - r2)) : -1;
}

/* One baseline in wavelengths at the highest frequency, |u|, |v| < `longest`. */
static void draw_uv(scene *of, int64_t row, double longest, double uv[2])
{
    draw *random = &of->random;
    switch (of->is->uv) {
    case UNIFORM:
        uv[0] = draw_uniform(random, -longest, longest);
        uv[1] = draw_uniform(random, -longest, longest);
        break;
    case CLUSTERED: { /* short baselines, as in real arrays: most within a few cells */
        const double length = longest * exp(-draw_uniform(random, 0, 5));
        const double angle = draw_uniform(random, 0, 6.2832);
        uv[0] = length * cos(angle);
        uv[1] = length * sin(angle);
        break;
    }
    case TRACKS: { /* elliptic arcs of ten baselines */
        const double angle = 3.0 * (double)(row / 10) / (double)of->is->num_rows * 10;
        const double length = longest * (0.1 + 0.09 * (double)(row % 10));
        uv[0] = length * cos(angle);
        uv[1] = 0.6 * length * sin(angle);
        break;
    }
    }
}

static void place_rows(scene *of)
{
    const accuracy_case *is = of->is;
    const double half = of->with.geom.scale_rad / 2; /* of a lone pixel */
    const double corner = fmin(nm1(pixel_l(of, 0), pixel_m(of, 0)), nm1(half, half));
    const double w_most = is->w_turns / fabs(corner);
    const double longest = 0.499 / of->with.geom.scale_rad;
    const double metres = SPEED_OF_LIGHT_M_S / of->freq_hz[is->num_chan - 1];
    for (int64_t row = 0; row < is->num_rows; ++row) {
        double *uvw_m = of->uvw_m + 3 * row;
        draw_uv(of, row, longest, uvw_m);
        uvw_m[2] = draw_uniform(&of->random, -w_most, w_most);
        for (int k = 0; k < 3; ++k)
            uvw_m[k] *= metres;
    }
}

/* Visibilities of points anywhere, summed here: sources need not lie on pixels. */
static void add_source(scene *of, double l, double m, double flux_jy)
{
    const accuracy_case *is = of->is;
    for (int64_t k = 0; k < is->num_rows * is->num_chan; ++k) {
        const double *uvw_m = of->uvw_m + 3 * (k / is->num_chan);
        const double per_m = of->freq_hz[k % is->num_chan] / SPEED_OF_LIGHT_M_S;
        const double n_part = of->direct.ignore_w ? 0 : uvw_m[2] * nm1(l, m);
        const double turns = (uvw_m[0] * l + uvw_m[1] * m + n_part) * per_m;
        of->vis[2 * k] += flux_jy * cos(6.283185307179586 * turns);
        of->vis[2 * k + 1] += flux_jy * sin(6.283185307179586 * turns);
    }
}

static void add_pixel_source(scene *of, int64_t i, int64_t j, double flux_jy)
{
    const double l = pixel_l(of, (double)i), m = pixel_m(of, (double)j);
    of->points[j * of->is->nx + i] += flux_jy;
    if (l * l + m * m < 1) add_source(of, l, m, flux_jy);
}

static void make_sky(scene *of)
{
    const accuracy_case *is = of->is;
    switch (is->what) {
    case POINTS: /* one of them surely above the horizon */
        add_pixel_source(of, is->nx / 2, is->ny / 2, 0.1);
        for (int k = 0; k < 9; ++k)
            add_pixel_source(of, draw_index(&of->random, is->nx),
                             draw_index(&of->random, is->ny),
                             draw_uniform(&of->random, 0.2, 2));
        break;
    case CORNERS:
        add_pixel_source(of, 0, 0, 1);
        add_pixel_source(of, is->nx - 1, 0, 0.7);
        add_pixel_source(of, 0, is->ny - 1, 1.3);
        add_pixel_source(of, is->nx - 1, is->ny - 1, 0.4);
        break;
    case OUTSIDE: /* as far again from the image's border as its centre */
        add_source(of, pixel_l(of, -0.4 * (double)is->nx), pixel_m(of, 3.3), 1);
        add_source(of, pixel_l(of, 7.7), pixel_m(of, 1.45 * (double)is->ny), 2);
        add_pixel_source(of, is->nx / 3, is->ny / 3, 0.001);
        break;
    case NOISE:
        for (int64_t k = 0; k < 2 * is->num_rows * is->num_chan; ++k)
            of->vis[k] = draw_normal(&of->random);
        break;
    }
}

static void choose_lone_pixels(scene *of)
{
    const int64_t nx = of->is->nx, ny = of->is->ny,
                  num_vis = of->is->num_rows * of->is->num_chan;
    int64_t at[LONE_PIXELS][2] = {{nx / 2, ny / 2}, {0, 0}, {0, ny / 2}};
    at[3][0] = draw_index(&of->random, nx);
    at[3][1] = draw_index(&of->random, ny);
    for (int p = 0; p < LONE_PIXELS; ++p) {
        int64_t i = at[p][0], j = at[p][1];
        while (hypot(pixel_l(of, (double)i), pixel_m(of, (double)j)) > 0.999) {
            i += i < nx / 2 ? 1 : i > nx / 2 ? -1 : 0;
            j += j < ny / 2 ? 1 : j > ny / 2 ? -1 : 0;
        }
        double *model = of->lone + p * nx * ny;
        model[j * nx + i] = 1;
        assert_int_equal(
            tess_direct_predict(&of->direct, model, of->lone_true + 2 * num_vis * p),
            0);
    }
}

static double *numbers(int64_t count)
{
    double *array = calloc((size_t)count, sizeof *array);
    assert_non_null(array);
    return array;
}

static void make_scene(const accuracy_case *is, uint64_t seed, scene *of)
{
    const int64_t num_vis = is->num_rows * is->num_chan, pixels = is->nx * is->ny;
    const int64_t longer = is->nx > is->ny ? is->nx : is->ny;
    *of = (scene){.is = is, .random = {seed}};
    of->uvw_m = numbers(3 * is->num_rows);
    of->freq_hz = numbers(is->num_chan);
    of->vis = numbers(2 * num_vis);
    of->points_true = numbers(2 * num_vis);
    of->noise_true = numbers(2 * num_vis);
    of->vis_out = numbers(2 * num_vis);
    of->weight = numbers(num_vis);
    of->points = numbers(pixels);
    of->noise = numbers(pixels);
    of->image = numbers(pixels);
    of->image_true = numbers(pixels);
    of->lone = numbers(LONE_PIXELS * pixels);
    of->lone_true = numbers(2 * num_vis * LONE_PIXELS);
    for (int64_t c = 0; c < is->num_chan; ++c)
        of->freq_hz[c] = 1.4e9 * (1 - (1 - is->band) * (double)(is->num_chan - 1 - c) /
                                          (double)is->num_chan);
    for (int64_t k = 0; k < num_vis; ++k)
        of->weight[k] = draw_uniform(&of->random, 0.5, 1.5);
    of->with =
        (pipeline){.geom = {.nx = is->nx,
                            .ny = is->ny,
                            .scale_rad = is->field_rad / (double)longer},
                   .gridding = {.w_mode = is->w_mode, .backend = "auto"},
                   .layout = {.threads = 1, .forced.block_planes = is->block_planes},
                   .num_pol = 1,
                   .num_rows = is->num_rows,
                   .num_chan = is->num_chan,
                   .uvw_m = of->uvw_m,
                   .freq_hz = of->freq_hz,
                   .facts = &of->facts};
    of->direct = (tess_direct){.num_rows = is->num_rows,
                               .uvw_m = of->uvw_m,
                               .num_chan = is->num_chan,
                               .freq_hz = of->freq_hz,
                               .nx = is->nx,
                               .ny = is->ny,
                               .scale_rad = of->with.geom.scale_rad,
                               .ignore_w = is->w_mode == TESS_W_NONE};
    assert_int_equal(tess_comm_self(&of->with.comm), TESS_OK);
    place_rows(of);
    make_sky(of);
    tess_direct_dirty(&of->direct, of->vis, of->weight, of->image_true);
    for (int64_t p = 0; p < pixels; ++p)
        of->noise[p] = draw_normal(&of->random);
    assert_int_equal(tess_direct_predict(&of->direct, of->points, of->points_true), 0);
    assert_int_equal(tess_direct_predict(&of->direct, of->noise, of->noise_true), 0);
    choose_lone_pixels(of);
}

static void free_scene(scene *of)
{
    tess_comm_free(of->with.comm);
    free(of->uvw_m);
    free(of->freq_hz);
    free(of->vis);
    free(of->points_true);
    free(of->noise_true);
    free(of->vis_out);
    free(of->weight);
    free(of->points);
    free(of->noise);
    free(of->image);
    free(of->image_true);
    free(of->lone);
    free(of->lone_true);
}

/* Was the promise kept? Says so when not, and goes on: the other accuracies tell
 * whether it is one that fails or all. */
static bool kept(const scene *of, double accuracy, const char *what, double error,
                 double limit)
{
    const char *verbose = getenv("TESS_TEST_VERBOSE");
    const bool good = error <= limit; /* false for NaN */
    if (!good || verbose)
        print_message("%s, accuracy %g: %s %.3g, allowed %.3g (%d planes in %d blocks, "
                      "support %d)%s\n",
                      of->is->name, accuracy, what, error, limit, of->facts.num_planes,
                      of->facts.num_blocks, of->facts.kernel.support,
                      good ? "" : " TOO LARGE");
    return good;
}

/* Is the image no more accurate than it is paid for to be? Looked at where noise fills
 * a field with a w-term: few sources leave less than ε, and so does a field so small
 * that all kernels cost the same. */
static bool not_over_kept(const scene *of, double accuracy, double error)
{
    const accuracy_case *is = of->is;
    const double least = accuracy / 5;
    if (is->what != NOISE || is->w_mode == TESS_W_NONE || of->is_random) return true;
    if (error >= least) return true;
    print_message("%s, accuracy %g: error of the image %.3g, less than %.3g (support "
                  "%d): the promise is over-kept\n",
                  is->name, accuracy, error, least, of->facts.kernel.support);
    return false;
}

/* The promise for blocks is of their rms; that of the n pixels of a small block, drawn
 * at random, scatters by 1/sqrt(2n), and the largest of 64 normal numbers is about 2.4
 * (its mean). */
static double block_limit(const scene *of, double accuracy)
{
    const double pixels = (double)(of->is->nx * of->is->ny) / 64;
    return 2 * accuracy * (of->is_random ? 1 + 2.4 / sqrt(2 * pixels) : 1);
}

static bool check_image(scene *of, double accuracy)
{
    const accuracy_case *is = of->is;
    bool good = true;
    assert_int_equal(
        pipeline_image(&of->with, of->vis, of->weight, of->image, NULL, NULL), TESS_OK);
    assert_int_equal(of->facts.is_double, accuracy < TESS_SINGLE_ACCURACY);
    if (accuracy == 1e-4) assert_true(of->facts.num_blocks >= is->least_blocks);
    const double error = tess_direct_rel_l2(is->nx * is->ny, of->image, of->image_true);
    good &= kept(of, accuracy, "error of the image", error, accuracy);
    good &= not_over_kept(of, accuracy, error);
    good &= kept(of, accuracy, "error of the worst block",
                 tess_direct_worst_block(is->nx, is->ny, of->image, of->image_true),
                 block_limit(of, accuracy));
    return good;
}

static bool check_lone_pixels(scene *of, double accuracy)
{
    static const char *const what[LONE_PIXELS] = {
        "error of the predicted centre", "error of the predicted corner",
        "error of the predicted edge", "error of a predicted pixel"};
    const int64_t num_vis = of->is->num_rows * of->is->num_chan;
    double *found = numbers(2 * num_vis * LONE_PIXELS), *own = numbers(2 * num_vis);
    bool good = true;
    of->with.num_pol = LONE_PIXELS;
    assert_int_equal(pipeline_predict(&of->with, of->lone, found), TESS_OK);
    of->with.num_pol = 1;
    for (int p = 0; p < LONE_PIXELS; ++p) {
        for (int64_t k = 0; k < 2 * num_vis; ++k)
            own[k] = found[2 * (k / 2 * LONE_PIXELS + p) + k % 2];
        good &=
            kept(of, accuracy, what[p],
                 tess_direct_rel_l2(2 * num_vis, own, of->lone_true + 2 * num_vis * p),
                 accuracy);
    }
    free(found);
    free(own);
    return good;
}

static bool check_prediction(scene *of, double accuracy)
{
    const int64_t values = 2 * of->is->num_rows * of->is->num_chan;
    bool good = check_lone_pixels(of, accuracy);
    assert_int_equal(pipeline_predict(&of->with, of->noise, of->vis_out), TESS_OK);
    good &= kept(of, accuracy, "error of the predicted field",
                 tess_direct_rel_l2(values, of->vis_out, of->noise_true), accuracy);
    if (of->is->what == NOISE) return good; /* no points */
    assert_int_equal(pipeline_predict(&of->with, of->points, of->vis_out), TESS_OK);
    good &= kept(of, accuracy, "error of the predicted points",
                 tess_direct_rel_l2(values, of->vis_out, of->points_true), accuracy);
    return good;
}

static bool check_accuracy(scene *of, double accuracy)
{
    of->with.gridding.accuracy = accuracy;
    const bool image = check_image(of, accuracy);
    return check_prediction(of, accuracy) && image;
}

static void test_case(void **state)
{
    scene of;
    bool good = true;
    make_scene(*state, 17, &of);
    for (int k = 0; k < NUM_ACCURACIES; ++k)
        good &= check_accuracy(&of, ACCURACY[k]);
    free_scene(&of);
    assert_true(good);
}

/* ---- images of one to four pixels ---- */

enum { TINY_IMAGES = 60 };

/* √(pixels · Σ|W V|²) / ΣW, √2 times the norm that visibilities of random phases leave:
 * Re takes half of their power. A kernel's errors have random phases, whatever the
 * visibilities' phases are, so they add up to ε times this at most. Of many pixels one
 * or the other has no phases that cancel; of one to four pixels all may. */
static double norm_at_random(const scene *of)
{
    const int64_t num_vis = of->is->num_rows * of->is->num_chan;
    double squares = 0, weights = 0;
    for (int64_t k = 0; k < num_vis; ++k) {
        const double size = of->weight[k] * hypot(of->vis[2 * k], of->vis[2 * k + 1]);
        squares += size * size;
        weights += of->weight[k];
    }
    return sqrt((double)(of->is->nx * of->is->ny) * squares) / weights;
}

static double norm_of(int64_t pixels, const double *image)
{
    double squares = 0;
    for (int64_t p = 0; p < pixels; ++p)
        squares += image[p] * image[p];
    return sqrt(squares);
}

static accuracy_case tiny_case(draw *random)
{
    return (accuracy_case){.name = "tiny_images",
                           .nx = 1 + draw_index(random, 2),
                           .ny = 1 + draw_index(random, 2),
                           .field_rad = exp(draw_uniform(random, log(1e-4), log(0.3))),
                           .w_turns = 0.05,
                           .w_mode = TESS_W_AUTO,
                           .what = NOISE,
                           .num_rows = 30,
                           .num_chan = 1 + draw_index(random, 2),
                           .band = 0.9};
}

/* Relative to their own norm, some of these images are off by several ε; there would be
 * nothing to test if none were. */
static void test_tiny_images(void **state)
{
    draw random = {815};
    bool good = true;
    int cancelled = 0;
    for (int k = 0; k < TINY_IMAGES; ++k) {
        const accuracy_case is = tiny_case(&random);
        const int64_t pixels = is.nx * is.ny;
        scene of;
        make_scene(&is, 5000 + (uint64_t)k, &of);
        const double norm = norm_of(pixels, of.image_true);
        const double share = norm / fmax(norm, norm_at_random(&of));
        for (int a = 0; a < NUM_ACCURACIES; ++a) {
            of.with.gridding.accuracy = ACCURACY[a];
            assert_int_equal(
                pipeline_image(&of.with, of.vis, of.weight, of.image, NULL, NULL),
                TESS_OK);
            const double error = tess_direct_rel_l2(pixels, of.image, of.image_true);
            good &= kept(&of, ACCURACY[a], "error of the image", error * share,
                         ACCURACY[a]);
            cancelled += error > ACCURACY[a];
        }
        free_scene(&of);
    }
    assert_true(good);
    assert_true(cancelled > 0);
}

/* ---- TESS_TEST_FULL ---- */

/* Fields end before the horizon, where n itself is only known to some 1e-12. */
static accuracy_case random_case(draw *random, char name[64], int number)
{
    static const tess_w_mode mode[] = {TESS_W_AUTO, TESS_W_AUTO, TESS_W_STACKING,
                                       TESS_W_NONE};
    static const char *const uv[] = {"uniform", "clustered", "tracks"};
    static const sky what_of[] = {POINTS, CORNERS, NOISE};
    static const char *const what[] = {"points", "corners", "outside", "noise"};
    accuracy_case is = {.name = name,
                        .nx = 16 + draw_index(random, 57),
                        .ny = 16 + draw_index(random, 57),
                        .field_rad = exp(draw_uniform(random, log(1e-4), log(1.2))),
                        .w_turns = exp(draw_uniform(random, log(1e-4), log(60.0))),
                        .w_mode = mode[draw_index(random, 4)],
                        .uv = (coverage)draw_index(random, 3),
                        .what = what_of[draw_index(random, 3)],
                        .num_rows = 100 + draw_index(random, 100),
                        .num_chan = 1 + draw_index(random, 8),
                        .band = draw_uniform(random, 0.5, 1.0),
                        .block_planes = (int)draw_index(random, 6)};
    snprintf(name, 64, "random_%d (%s, %s, %d x %d)", number, uv[is.uv], what[is.what],
             (int)is.nx, (int)is.ny);
    return is;
}

static void test_random(void **state)
{
    enum { NUM_RANDOM = 150 };
    draw random = {4711};
    bool good = true;
    for (int k = 0; k < NUM_RANDOM; ++k) {
        char name[64];
        scene of;
        const accuracy_case is = random_case(&random, name, k);
        make_scene(&is, 1000 + (uint64_t)k, &of);
        of.is_random = true;
        for (int a = 0; a < NUM_ACCURACIES; ++a)
            good &= check_accuracy(&of, ACCURACY[a]);
        free_scene(&of);
    }
    assert_true(good);
}

int main(void)
{
    struct CMUnitTest tests[NUM_CASES + 2] = {{0}};
    accuracy_case cases[NUM_CASES];
    size_t count = 0;
    memcpy(cases, CASES, sizeof cases);
    tess_log_start(0, TESS_LOG_QUIET);
    for (int k = 0; k < NUM_CASES; ++k)
        tests[count++] = (struct CMUnitTest){
            .name = cases[k].name, .test_func = test_case, .initial_state = &cases[k]};
    tests[count++] =
        (struct CMUnitTest){.name = "tiny_images", .test_func = test_tiny_images};
    const char *full = getenv("TESS_TEST_FULL");
    if (full && strcmp(full, "0") != 0)
        tests[count++] =
            (struct CMUnitTest){.name = "random_geometries", .test_func = test_random};
    return _cmocka_run_group_tests("accuracy", tests, count, NULL, NULL);
}
