/* Imaging weights against a plain program of the definition in
 * grid/density/tess_weight.h, which is WSClean's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "memory_mover.h"
#include "tess_samples.h"
#include "tess_weight.h"

enum { ROWS = 900, CHANS = 5, VIS = ROWS * CHANS };

/* An image and its grid of weights, at most two pages a side. Of each axis, ⌈1.2 N⌉ is
 * 0, 1, 2 and 3 more than a multiple of four once. */
typedef struct sizes {
    tess_geom geom;
    int cells_x, cells_y;
} sizes;

enum { NUM_SIZES = 4, MOST_CELLS = 200 * 140 / 2 };

static const sizes SIZES[NUM_SIZES] = {
    {{.nx = 97, .ny = 70, .scale_rad = 2e-3}, 120, 84},   /* 117, 84 */
    {{.nx = 98, .ny = 72, .scale_rad = 2e-3}, 120, 88},   /* 118, 87 */
    {{.nx = 99, .ny = 98, .scale_rad = 2e-3}, 120, 120},  /* 119, 118 */
    {{.nx = 100, .ny = 97, .scale_rad = 2e-3}, 120, 120}, /* 120, 117 */
};

typedef struct scene {
    const sizes *sizes;
    double stretch; /* of the grid of weights; 1 before weigh() */
    double inv_lambda[CHANS];
    tess_samples samples;
    double natural[2 * VIS];
    double variance[2]; /* that the density told */
} scene;

static scene *make_scene(const sizes *sizes, bool is_double, int num_weight)
{
    draw random = {12};
    scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->sizes = sizes;
    s->stretch = 1;
    for (int c = 0; c < CHANS; ++c)
        s->inv_lambda[c] = 5.0 + 0.3 * c;
    s->samples = (tess_samples){.is_double = is_double,
                                .num_pol = num_weight,
                                .num_weight = num_weight,
                                .inv_lambda = s->inv_lambda};
    assert_int_equal(tess_samples_reserve(&s->samples, ROWS, VIS), TESS_OK);
    for (int64_t row = 0; row < ROWS; ++row) {
        /* half of them near the centre; some beyond the grid's 250 wavelengths */
        const double reach = row % 2 ? 3.0 : 45.0;
        for (int k = 0; k < 3; ++k)
            s->samples.uvw_m[3 * row + k] = draw_uniform(&random, -reach, reach);
        s->samples.chan_base[row] = 0;
        s->samples.num_chan[row] = CHANS;
        s->samples.vis_first[row] = row * CHANS;
    }
    s->samples.num_rows = ROWS;
    s->samples.num_vis = VIS;
    for (int k = 0; k < num_weight * VIS; ++k) {
        /* multiples of 1/8: their sums are exact in any order */
        s->natural[k] = (double)draw_index(&random, 12) / 8;
        if (is_double)
            ((double *)s->samples.weight)[k] = s->natural[k];
        else
            ((float *)s->samples.weight)[k] = (float)s->natural[k];
    }
    return s;
}

static void free_scene(scene *s)
{
    tess_samples_free(&s->samples);
    free(s);
}

/* ---- the definition ---- */

/* Cell of a sample, or -1 outside; v < 0 is folded over. */
static int cell_of(const scene *s, int vis)
{
    const double *uvw_m = s->samples.uvw_m + 3 * (vis / CHANS);
    double u = uvw_m[0] * s->inv_lambda[vis % CHANS] * s->stretch;
    double v = uvw_m[1] * s->inv_lambda[vis % CHANS] * s->stretch;
    if (v < 0) {
        u = -u;
        v = -v;
    }
    const int nx = s->sizes->cells_x, ny = s->sizes->cells_y;
    const double scale_rad = s->sizes->geom.scale_rad;
    const double x = floor(u * nx * scale_rad + nx / 2);
    const double y = floor(v * ny * scale_rad);
    if (x < 0 || x >= nx || y >= ny / 2) return -1;
    return (int)y * nx + (int)x;
}

/* What a taper makes of a cell at a distance of the corner from an edge, of one axis.
 */
static double edge_of(const tess_taper *taper, double distance)
{
    const double inside = distance - taper->edge_lambda;
    if (taper->edge_tukey_lambda > 0 && inside < taper->edge_tukey_lambda)
        return inside > 0 ? pow(sin(acos(0) * inside / taper->edge_tukey_lambda), 2)
                          : 0;
    return inside >= 0;
}

/* The length of the baseline of a visibility [wavelengths]. */
static double length_of(const scene *s, int vis)
{
    const double *uvw_m = s->samples.uvw_m + 3 * (vis / CHANS);
    return hypot(uvw_m[0], uvw_m[1]) * s->inv_lambda[vis % CHANS];
}

/* The transform of an ellipse at (u, v): that of a Gaussian of the major axis along its
 * angle, and of the minor axis across. */
static double ellipse_at(const tess_taper *taper, double u, double v)
{
    const double pa = taper->angle_rad, sigma = acos(-1) / 2.3548200450309493;
    const double along = taper->fwhm_rad * (u * sin(pa) + v * cos(pa)),
                 across = taper->minor_rad * (u * cos(pa) - v * sin(pa));
    return exp(-2 * sigma * sigma * (along * along + across * across));
}

/* What a taper makes of the weight of a visibility in a cell: of the cell's corner of
 * least u and v, but for a Gaussian at visibilities. */
static double taper_of(const scene *s, const tess_taper *taper, int vis, int cell)
{
    const double scale_rad = s->sizes->geom.scale_rad;
    const int nx = s->sizes->cells_x, ny = s->sizes->cells_y;
    const double u = (cell % nx - nx / 2) / (nx * scale_rad);
    const double v = cell / nx / (ny * scale_rad);
    const double rho = sqrt(u * u + v * v),
                 sigma = taper->fwhm_rad / 2.3548200450309493;
    const double at = taper->at_visibilities ? length_of(s, vis) : rho;
    double factor = exp(-2 * pow(acos(-1) * sigma * at, 2));
    if (taper->minor_rad > 0 && taper->at_visibilities) {
        const double *uvw_m = s->samples.uvw_m + 3 * (vis / CHANS);
        const double per_m = s->inv_lambda[vis % CHANS];
        factor = ellipse_at(taper, uvw_m[0] * per_m, uvw_m[1] * per_m);
    } else if (taper->minor_rad > 0)
        factor = ellipse_at(taper, u, v);
    const double below = taper->max_lambda - rho, above = rho - taper->min_lambda;
    if (taper->outer_lambda > 0 && below < taper->outer_lambda)
        factor *= below > 0 ? pow(sin(acos(0) * below / taper->outer_lambda), 2) : 0;
    if (taper->inner_lambda > 0 && above < taper->inner_lambda)
        factor *= above > 0 ? pow(sin(acos(0) * above / taper->inner_lambda), 2) : 0;
    factor *= edge_of(taper, 0.5 / scale_rad - fabs(u)) *
              edge_of(taper, 0.5 / scale_rad - fabs(v));
    return taper->cuts && (above < 0 || below < 0) ? 0 : factor;
}

/* Sums a density over the square around each cell, with conjugates where v < 0. */
static void sum_squares(const scene *s, int reach, double *density)
{
    static double whole[2 * MOST_CELLS]; /* of all v: row y is that of v = y − ny/2 */
    const int nx = s->sizes->cells_x, ny = s->sizes->cells_y / 2 * 2;
    for (int at = 0; at < nx * ny / 2; ++at) {
        whole[nx * ny / 2 + at] = density[at];
        whole[nx * ny / 2 - 1 - at] = density[at];
    }
    for (int at = 0; at < nx * ny / 2; ++at) {
        const int x0 = at % nx, y0 = ny / 2 + at / nx;
        density[at] = 0;
        for (int y = y0 - reach; y <= y0 + reach; ++y)
            for (int x = x0 - reach; x <= x0 + reach; ++x)
                if (x >= 0 && x < nx && y >= 0 && y < ny)
                    density[at] += whole[y * nx + x];
    }
}

/* Imaging weights of one set of weights, out[VIS]. */
static void weigh_plainly(const scene *s, int which, const tess_weight_opts *opts,
                          double *out)
{
    static double density[MOST_CELLS];
    const int num_weight = s->samples.num_weight;
    double sum = 0, sum_of_squares = 0;
    memset(density, 0, sizeof density);
    for (int k = 0; k < VIS; ++k)
        if (cell_of(s, k) >= 0)
            density[cell_of(s, k)] +=
                s->natural[k * num_weight + (opts->first_density ? 0 : which)];
    if (opts->box_cells > 0) sum_squares(s, (int)opts->box_cells, density);
    for (int c = 0; c < MOST_CELLS; ++c) {
        sum += density[c];
        sum_of_squares += density[c] * density[c];
    }
    const double strength = 5 * pow(10, -opts->robust);
    const double f2 = strength * strength / (sum_of_squares / sum);
    for (int k = 0; k < VIS; ++k) {
        const double natural = s->natural[k * num_weight + which];
        const int cell = cell_of(s, k);
        if (cell < 0 || natural == 0)
            out[k] = 0;
        else if (density[cell] == 0)
            out[k] = opts->weighting == TESS_UNIFORM ? 0 : natural;
        else
            out[k] = opts->weighting == TESS_UNIFORM ? natural / density[cell]
                     : opts->weighting == TESS_BRIGGS
                         ? natural / (1 + density[cell] * f2)
                         : natural;
        if (cell >= 0) out[k] *= taper_of(s, &opts->taper, k, cell);
    }
}

/* ---- tests ---- */

/* Written and read back: all of it, as another object. */
static tess_density *moved(const scene *s, const tess_weight_opts *opts,
                           tess_density *density)
{
    memory_mover memory = memory_mover_new();
    tess_density *back = NULL;
    assert_int_equal(tess_density_move(density, &memory.mover), TESS_OK);
    assert_true(memory.bytes >= tess_density_bytes(density));
    memory_mover_rewind(&memory);
    assert_int_equal(
        tess_density_create(&s->sizes->geom, opts, s->samples.num_weight, &back),
        TESS_OK);
    assert_int_equal(tess_density_move(back, &memory.mover), TESS_OK);
    assert_true(memory.at == memory.bytes);
    assert_int_equal(tess_density_is_finished(back), tess_density_is_finished(density));
    memory_mover_free(&memory);
    tess_density_destroy(density);
    return back;
}

/* `move`: between its parts, and before it is applied, by way of a checkpoint. */
static void weigh(scene *s, const tess_weight_opts *opts, int threads, bool move)
{
    tess_comm *self;
    tess_density *density = NULL;
    s->stretch = opts->stretch > 0 ? opts->stretch : 1;
    assert_int_equal(tess_comm_self(&self), TESS_OK);
    assert_int_equal(
        tess_density_create(&s->sizes->geom, opts, s->samples.num_weight, &density),
        TESS_OK);
    /* in two parts, as data come from a file */
    assert_int_equal(tess_density_add(density, &s->samples, 0, 300, threads), TESS_OK);
    if (move) density = moved(s, opts, density);
    assert_int_equal(tess_density_add(density, &s->samples, 300, ROWS, threads),
                     TESS_OK);
    assert_false(tess_density_is_finished(density));
    assert_true(isnan(tess_density_variance(density, 0)));
    assert_int_equal(tess_density_finish(density, self, threads), TESS_OK);
    if (move) density = moved(s, opts, density);
    assert_true(tess_density_is_finished(density));
    assert_int_equal(tess_density_apply(density, &s->samples, 0, ROWS, threads),
                     TESS_OK);
    for (int k = 0; k < s->samples.num_weight; ++k)
        s->variance[k] = tess_density_variance(density, k);
    tess_density_destroy(density);
    tess_comm_free(self);
}

/* Both divide and multiply a few times; a single precision weight is rounded once more.
 */
static void compare(scene *s, const tess_weight_opts *opts)
{
    static double expected[VIS];
    const int num_weight = s->samples.num_weight;
    const bool tapered = !tess_taper_is_none(&opts->taper);
    const double rounding = (tapered ? 64 : 8) * 0x1p-53;
    const double tolerance = s->samples.is_double ? rounding : 1.01 * 0x1p-24;
    /* near 0, the square of a sine and half a cosine differ by rounding of 1 */
    const double taper_error = tapered ? 8 * 0x1p-53 : 0;
    int used = 0;
    for (int which = 0; which < num_weight; ++which) {
        weigh_plainly(s, which, opts, expected);
        for (int k = 0; k < VIS; ++k) {
            const int at = k * num_weight + which;
            const double value = s->samples.is_double
                                     ? ((double *)s->samples.weight)[at]
                                     : (double)((float *)s->samples.weight)[at];
            assert_true(fabs(value - expected[k]) <=
                        tolerance * expected[k] + taper_error * (1 + s->natural[at]));
            used += expected[k] > 0;
        }
    }
    assert_true(used > VIS / 2 && used < num_weight * VIS);
}

static void test_against_definition(void **state)
{
    static const tess_weight_opts opts[] = {
        {.weighting = TESS_UNIFORM},
        {.weighting = TESS_BRIGGS, .robust = -2},
        {.weighting = TESS_BRIGGS, .robust = -1},
        {.weighting = TESS_BRIGGS},
        {.weighting = TESS_BRIGGS, .robust = 1},
        {.weighting = TESS_BRIGGS, .robust = 2},
        {.weighting = TESS_UNIFORM, .first_density = true},
        {.weighting = TESS_BRIGGS, .first_density = true},
        {.weighting = TESS_UNIFORM, .stretch = 1.03}};
    for (int k = 0; k < 9; ++k)
        for (int mode = 0; mode < 4; ++mode) {
            scene *s =
                make_scene(&SIZES[(k + mode) % NUM_SIZES], mode / 2, 1 + mode % 2);
            weigh(s, &opts[k], 1 + mode % 2 * 2, k % 2 == 1);
            compare(s, &opts[k]);
            free_scene(s);
        }
}

/* Tapers are factors of each kind of weight, and of those of cells without a density;
 * what is cut off has a weight of 0. */
static void test_tapers(void **state)
{
    static const tess_taper tapers[] = {
        {.fwhm_rad = 4e-3},
        {.outer_lambda = 60, .max_lambda = 190},
        {.inner_lambda = 30, .min_lambda = 5},
        {.cuts = true, .min_lambda = 12, .max_lambda = 140},
        {.fwhm_rad = 3e-3, .outer_lambda = 40, .inner_lambda = 20, .max_lambda = 150},
        {.edge_lambda = 50.1},
        {.edge_tukey_lambda = 120},
        {.fwhm_rad = 2e-3, .edge_lambda = 20.3, .edge_tukey_lambda = 90},
        {.fwhm_rad = 4e-3, .at_visibilities = true},
        {.fwhm_rad = 2e-3, .at_visibilities = true, .edge_lambda = 20.3},
        {.fwhm_rad = 4e-3, .minor_rad = 1e-3, .angle_rad = .5},
        {.fwhm_rad = 4e-3, .minor_rad = 1e-3, .angle_rad = 2, .at_visibilities = true}};
    for (int k = 0; k < 12; ++k)
        for (int mode = 0; mode < 12; ++mode) {
            const tess_weight_opts opts = {.weighting = (tess_weighting)(mode % 3),
                                           .first_density = mode / 3 % 2 == 1,
                                           .taper = tapers[k]};
            scene *s = make_scene(&SIZES[mode % NUM_SIZES], mode / 6, 2);
            assert_false(tess_taper_is_none(&tapers[k]));
            weigh(s, &opts, 1 + mode % 2, mode % 2 == 1);
            compare(s, &opts);
            free_scene(s);
        }
    assert_true(tess_taper_is_none(&(tess_taper){.max_lambda = 9}));
}

/* The grid of weights is padded as much as is asked for. */
static void test_padding(void **state)
{
    sizes padded = SIZES[0];
    padded.cells_x = 4 * 49; /* 2 x 97 is 194 */
    padded.cells_y = 4 * 35;
    const tess_weight_opts opts = {.weighting = TESS_UNIFORM, .padding = 2};
    scene *s = make_scene(&padded, true, 1);
    weigh(s, &opts, 1, false);
    compare(s, &opts);
    free_scene(s);
}

/* Wider cells are fewer: 196 and 140 over 1.3 are 150.8 and 107.7. */
static void test_super_weight(void **state)
{
    sizes fewer = SIZES[0];
    fewer.cells_x = 152;
    fewer.cells_y = 108;
    const tess_weight_opts opts = {
        .weighting = TESS_UNIFORM, .padding = 2, .super_weight = 1.3};
    scene *s = make_scene(&fewer, true, 1);
    weigh(s, &opts, 1, false);
    compare(s, &opts);
    free_scene(s);
}

/* Densities of squares of cells, which reach over borders of pages and over v = 0,
 * with and without sums of integers. Their variance is not known. */
static void test_squares(void **state)
{
    static const tess_weight_opts opts[] = {
        {.weighting = TESS_UNIFORM, .box_cells = 3},
        {.weighting = TESS_UNIFORM, .box_cells = 70, .quantum = 0.125},
        {.weighting = TESS_BRIGGS, .robust = .5, .box_cells = 1},
        {.weighting = TESS_BRIGGS, .box_cells = 5, .quantum = 0.125},
        {.weighting = TESS_BRIGGS, .box_cells = 2, .first_density = true}};
    for (int k = 0; k < 5; ++k)
        for (int mode = 0; mode < 4; ++mode) {
            scene *s = make_scene(&SIZES[mode], mode / 2, 1 + mode % 2);
            weigh(s, &opts[k], 1 + mode % 2, mode % 2 == 1);
            compare(s, &opts[k]);
            assert_true(isnan(s->variance[0]));
            free_scene(s);
        }
}

/* Bytes of the pages that a density has once it is finished, of which a sample near
 * v = 0 reaches one. */
static int64_t finished_bytes(tess_comm *self, const tess_weight_opts *opts)
{
    const tess_geom geom = {.nx = 800, .ny = 800, .scale_rad = 1e-3}; /* 15 × 8 pages */
    tess_density *density = NULL;
    assert_int_equal(tess_density_create(&geom, opts, 1, &density), TESS_OK);
    assert_int_equal(tess_density_reach(density, 400, 1), TESS_OK);
    assert_int_equal(tess_density_finish(density, self, 1), TESS_OK);
    const int64_t bytes = tess_density_bytes(density);
    tess_density_destroy(density);
    return bytes;
}

/* A rank filter takes means over cells of neighbouring pages, three of the first row
 * and three of the next. Sums over squares also take conjugates, from three other
 * pages. */
static void test_pages_around(void **state)
{
    static const tess_weight_opts plain = {.weighting = TESS_BRIGGS},
                                  ranks = {.weighting = TESS_BRIGGS, .rank_filter = 2},
                                  squares = {.weighting = TESS_BRIGGS, .box_cells = 8};
    tess_comm *self;
    assert_int_equal(tess_comm_self(&self), TESS_OK);
    const int64_t page = finished_bytes(self, &plain);
    assert_int_equal(finished_bytes(self, &ranks), 6 * page);
    assert_int_equal(finished_bytes(self, &squares), 9 * page);
    tess_comm_free(self);
}

/* Σ W²/w, summed up cell by cell, is that of the samples. Weights in single precision
 * are rounded; the density of a cell follows from its factor, which is at least 1e-3
 * from 1 here. A density that is of the first weights alone does not know that of
 * others. */
static void test_variance(void **state)
{
    static const tess_weight_opts opts[] = {
        {.weighting = TESS_UNIFORM},
        {.weighting = TESS_BRIGGS},
        {.weighting = TESS_BRIGGS, .robust = 2},
        {.weighting = TESS_UNIFORM, .rank_filter = 2},
        {.weighting = TESS_BRIGGS, .rank_filter = 1.2},
        {.weighting = TESS_BRIGGS, .first_density = true},
        {.weighting = TESS_NATURAL, .taper = {.fwhm_rad = 4e-3}},
        {.weighting = TESS_BRIGGS, .rank_filter = 1.2, .taper = {.fwhm_rad = 4e-3}},
        {.weighting = TESS_UNIFORM, .taper = {.cuts = true, .min_lambda = 20}}};
    for (int k = 0; k < 9; ++k)
        for (int mode = 0; mode < 4; ++mode) {
            scene *s = make_scene(&SIZES[mode], mode / 2, 1 + mode % 2);
            const int num_weight = s->samples.num_weight;
            const double tolerance = s->samples.is_double ? 1e-10 : 0x1p-22;
            weigh(s, &opts[k], 1 + mode % 2, mode % 2);
            for (int which = 0; which < num_weight; ++which) {
                double sum = 0;
                for (int at = which; at < VIS * num_weight; at += num_weight) {
                    const double weight =
                        s->samples.is_double ? ((double *)s->samples.weight)[at]
                                             : (double)((float *)s->samples.weight)[at];
                    if (weight > 0) sum += weight * weight / s->natural[at];
                }
                if (opts[k].first_density && which > 0)
                    assert_true(isnan(s->variance[which]));
                else
                    assert_true(sum > 0 &&
                                fabs(s->variance[which] / sum - 1) < tolerance);
            }
            free_scene(s);
        }
}

/* Factors and variances are the same bits with any number of threads, where densities
 * are whole numbers. */
static void test_threads(void **state)
{
    const double quantum = tess_density_quantum(4, VIS);
    const tess_weight_opts opts[] = {
        {.weighting = TESS_NATURAL, .taper = {.fwhm_rad = 4e-3}, .quantum = quantum},
        {.weighting = TESS_BRIGGS, .quantum = quantum},
        {.weighting = TESS_UNIFORM,
         .rank_filter = 1.2,
         .rank_cells = 40,
         .quantum = quantum}};
    sizes wide = SIZES[0]; /* of many pages */
    wide.geom.nx = wide.geom.ny = 600;
    for (int k = 0; k < 3; ++k) {
        scene *one = make_scene(&wide, true, 1);
        scene *more = make_scene(&wide, true, 1);
        weigh(one, &opts[k], 1, false);
        weigh(more, &opts[k], 2, false);
        assert_memory_equal(one->samples.weight, more->samples.weight,
                            VIS * sizeof(double));
        assert_memory_equal(one->variance, more->variance, sizeof *one->variance);
        free_scene(one);
        free_scene(more);
    }
}

/* Every occupied cell of uniform weighting has a sum of 1. */
static void test_uniform_cells(void **state)
{
    static double sum[MOST_CELLS];
    const tess_weight_opts opts = {.weighting = TESS_UNIFORM};
    scene *s = make_scene(&SIZES[0], true, 1);
    memset(sum, 0, sizeof sum);
    weigh(s, &opts, 1, false);
    for (int k = 0; k < VIS; ++k)
        if (cell_of(s, k) >= 0) sum[cell_of(s, k)] += ((double *)s->samples.weight)[k];
    for (int c = 0; c < MOST_CELLS; ++c)
        assert_true(sum[c] == 0 || fabs(sum[c] - 1) < 1e-13);
    free_scene(s);
}

/* Nothing to weigh: no cell, no division by zero. */
static void test_no_weights(void **state)
{
    const tess_weight_opts opts = {.weighting = TESS_BRIGGS};
    scene *s = make_scene(&SIZES[0], false, 1);
    memset(s->samples.weight, 0, VIS * sizeof(float));
    weigh(s, &opts, 1, false);
    for (int k = 0; k < VIS; ++k)
        assert_true(((float *)s->samples.weight)[k] == 0);
    free_scene(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_definition),
        cmocka_unit_test(test_tapers),
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_super_weight),
        cmocka_unit_test(test_squares),
        cmocka_unit_test(test_pages_around),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_variance),
        cmocka_unit_test(test_uniform_cells),
        cmocka_unit_test(test_no_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
