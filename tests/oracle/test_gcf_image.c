/* W-projection against the direct sum: visibilities gridded with tables of w-kernels,
 * the grid transformed term by term and divided by the taper, in the conventions of
 * tess_geom.h. And back: a grid made from a few sources, degridded. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "tess_const.h"
#include "tess_gcf_grid.h"
#include "tess_geom.h"

enum { CELLS = 128, VIS = 300, SIDE = 13, PIXELS = SIDE * SIDE };

typedef double complex value;

/* Baselines as an observation has them. A field of 0.12 over the whole grid, of which
 * the image is the inner half; w of up to 600 wavelengths turn its corners by 2 turns.
 */
typedef struct scene {
    tess_gcf_opts opts;
    double u[VIS], v[VIS], w[VIS]; /* wavelengths */
    double a[VIS], b[VIS];         /* grid coordinates, from the grid's first cell */
    value vis[VIS];
} scene;

static scene make_scene(int oversampling)
{
    draw random = {.state = 3};
    scene s;
    tess_gcf_opts_default(&s.opts);
    s.opts.field_l = 0.12;
    s.opts.field_m = 0.1;
    s.opts.cut = 1e-6;
    s.opts.taper_support = 8;
    s.opts.layout.num_planes = 40;
    s.opts.layout.w_max_lambda = 600;
    s.opts.layout.oversampling = oversampling;
    s.opts.layout.is_double = true;
    s.opts.layout.threads = 2;
    for (int k = 0; k < VIS; ++k) {
        /* a = −u·field, b = v·field: tess_geom.h */
        s.u[k] = draw_uniform(&random, -25, 25) / s.opts.field_l;
        s.v[k] = draw_uniform(&random, -25, 25) / s.opts.field_m;
        s.w[k] = draw_uniform(&random, -600, 600);
        s.a[k] = CELLS / 2 - s.u[k] * s.opts.field_l;
        s.b[k] = CELLS / 2 + s.v[k] * s.opts.field_m;
        s.vis[k] = CMPLX(draw_normal(&random), draw_normal(&random));
    }
    return s;
}

/* l and m of a pixel: a quarter of the grid's field to either side. */
static void pixel_at(const scene *s, int k, double *l, double *m)
{
    *l = -0.25 * s->opts.field_l * (2.0 * (k % SIDE) / (SIDE - 1) - 1);
    *m = 0.25 * s->opts.field_m * (2.0 * (k / SIDE) / (SIDE - 1) - 1);
}

static value fringe(double u, double v, double w, double l, double m)
{
    return cexp(TESS_TWO_PI * I * (u * l + v * m + w * tess_geom_nm1(l * l + m * m)));
}

/* What the table makes of a visibility's coordinates: rounded to an offset, and to a
 * plane. */
static void round_like(const tess_gcf *gcf, const scene *s, int k, double uvw[3])
{
    const double q = gcf->layout.oversampling;
    uvw[0] = -(floor(s->a[k] * q + 0.5) / q - CELLS / 2) / s->opts.field_l;
    uvw[1] = (floor(s->b[k] * q + 0.5) / q - CELLS / 2) / s->opts.field_m;
    uvw[2] = copysign(gcf->plane[tess_gcf_plane_of(gcf, s->w[k])].w_lambda, s->w[k]);
}

/* Σ V exp(−2πi(ul + vm + w(n − 1))) over the visibilities, or their rounded ones. */
static value direct(const tess_gcf *rounded, const scene *s, double l, double m)
{
    value sum = 0;
    for (int k = 0; k < VIS; ++k) {
        double uvw[3] = {s->u[k], s->v[k], s->w[k]};
        if (rounded) round_like(rounded, s, k, uvw);
        sum += s->vis[k] * conj(fringe(uvw[0], uvw[1], uvw[2], l, m));
    }
    return sum;
}

/* T(p)·T(q) of places (l, m). */
static void tapers_at(const scene *s, int count, const double *l, const double *m,
                      double *taper)
{
    double place[2][PIXELS], along[2][PIXELS];
    for (int k = 0; k < count; ++k) {
        place[0][k] = l[k] / s->opts.field_l;
        place[1][k] = m[k] / s->opts.field_m;
    }
    for (int axis = 0; axis < 2; ++axis)
        tess_gcf_taper(s->opts.taper_support, s->opts.padding, count, place[axis],
                       along[axis]);
    for (int k = 0; k < count; ++k)
        taper[k] = along[0][k] * along[1][k];
}

/* The grid's transform at a pixel: cells are a = −u·field. */
static value transform(const scene *s, const value *cells, double l, double m)
{
    value sum = 0;
    for (int x = 0; x < CELLS; ++x) {
        value line = 0;
        for (int y = 0; y < CELLS; ++y)
            line += cells[x * CELLS + y] *
                    cexp(-TESS_TWO_PI * I * ((y - CELLS / 2) * m / s->opts.field_m));
        sum += line * cexp(TESS_TWO_PI * I * ((x - CELLS / 2) * l / s->opts.field_l));
    }
    return sum;
}

static tess_gcf_points points_of(const scene *s, void *vis)
{
    return (tess_gcf_points){
        .count = VIS, .u = s->a, .v = s->b, .w = s->w, .vis = vis, .num_pol = 1};
}

static tess_gcf_plan *plan_of(const tess_gcf *gcf)
{
    tess_gcf_plan *plan = NULL;
    tess_gcf_grid_opts opts;
    tess_gcf_grid_opts_default(&opts);
    assert_int_equal(tess_gcf_plan_create(gcf, &opts, &plan), TESS_OK);
    return plan;
}

/* Relative L2 errors of the image: against the sum, and the sum of rounded ones. */
static void image_errors(int oversampling, double error[2])
{
    scene s = make_scene(oversampling);
    tess_gcf *gcf = NULL;
    tess_gcf_report report;
    value *cells = calloc(CELLS * CELLS, sizeof *cells);
    tess_gcf_cells grid = {.nu = CELLS, .nv = CELLS, .data = cells};
    double norm = 0;
    assert_int_equal(tess_gcf_create(&s.opts, &gcf), TESS_OK);
    tess_gcf_plan *plan = plan_of(gcf);
    const tess_gcf_points points = points_of(&s, s.vis);
    assert_int_equal(tess_gcf_grid(plan, &points, &grid, &report), TESS_OK);
    assert_int_equal(report.left_out, 0);
    error[0] = error[1] = 0;
    double l[PIXELS], m[PIXELS], taper[PIXELS];
    for (int k = 0; k < PIXELS; ++k)
        pixel_at(&s, k, &l[k], &m[k]);
    tapers_at(&s, PIXELS, l, m, taper);
    for (int k = 0; k < PIXELS; ++k) {
        const value found = transform(&s, cells, l[k], m[k]) / taper[k];
        const value exact = direct(NULL, &s, l[k], m[k]);
        error[0] += pow(cabs(found - exact), 2);
        error[1] += pow(cabs(found - direct(gcf, &s, l[k], m[k])), 2);
        norm += pow(cabs(exact), 2);
    }
    for (int k = 0; k < 2; ++k)
        error[k] = sqrt(error[k] / norm);
    tess_gcf_plan_destroy(plan);
    tess_gcf_destroy(gcf);
    free(cells);
}

/* Offsets are rounded to 1/Q: a phase error of 2πp/(Q√12) rms on each axis, p being
 * uniform in ±¼, comes to 0.37/Q; 40 planes add 1.6 %. But for that rounding the error
 * is that of a kernel of 8 cells, 1e-7, and of taps left out below 1e-6 of the peak. */
static void images_are_the_direct_sum(void **state)
{
    for (int q = 4; q <= 16; q *= 2) {
        double error[2];
        image_errors(q, error);
        print_message(
            "oversampling %d: %.2g from the direct sum, %.2g but for rounding "
            "of coordinates\n",
            q, error[0], error[1]);
        assert_true(error[0] < 1.3 * 0.37 / q);
        assert_true(error[0] > 0.7 * 0.37 / q);
        assert_true(error[1] < 2e-6);
    }
}

/* A grid that holds sources' fringes, each divided by the taper at its place. */
static void predictions_are_the_direct_sum(void **state)
{
    enum { SOURCES = 3 };
    scene s = make_scene(8);
    draw random = {.state = 9};
    tess_gcf *gcf = NULL;
    value *cells = calloc(CELLS * CELLS, sizeof *cells);
    tess_gcf_cells grid = {.nu = CELLS, .nv = CELLS, .data = cells};
    double l[SOURCES], m[SOURCES], taper[SOURCES], flux[SOURCES], square = 0, norm = 0;
    assert_int_equal(tess_gcf_create(&s.opts, &gcf), TESS_OK);
    tess_gcf_plan *plan = plan_of(gcf);
    for (int p = 0; p < SOURCES; ++p) {
        l[p] = draw_uniform(&random, -0.25, 0.25) * s.opts.field_l;
        m[p] = draw_uniform(&random, -0.25, 0.25) * s.opts.field_m;
        flux[p] = 1 + p;
    }
    tapers_at(&s, SOURCES, l, m, taper);
    for (int p = 0; p < SOURCES; ++p)
        for (int x = 0; x < CELLS; ++x)
            for (int y = 0; y < CELLS; ++y)
                cells[x * CELLS + y] +=
                    flux[p] / taper[p] *
                    fringe(-(x - CELLS / 2) / s.opts.field_l,
                           (y - CELLS / 2) / s.opts.field_m, 0, l[p], m[p]);
    value vis[VIS];
    const tess_gcf_points points = points_of(&s, vis);
    assert_int_equal(tess_gcf_degrid(plan, &grid, &points, NULL), TESS_OK);
    for (int k = 0; k < VIS; ++k) {
        double uvw[3];
        value expected = 0;
        round_like(gcf, &s, k, uvw);
        for (int p = 0; p < SOURCES; ++p)
            expected += flux[p] * fringe(uvw[0], uvw[1], uvw[2], l[p], m[p]);
        square += pow(cabs(vis[k] - expected), 2);
        norm += pow(cabs(expected), 2);
    }
    print_message("predicted: %.2g but for rounding of coordinates\n",
                  sqrt(square / norm));
    assert_true(sqrt(square / norm) < 2e-6);
    tess_gcf_plan_destroy(plan);
    tess_gcf_destroy(gcf);
    free(cells);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_the_direct_sum),
        cmocka_unit_test(predictions_are_the_direct_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
