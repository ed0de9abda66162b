/* Properties that the computing core has whatever the data: imaging and prediction are
 * adjoint and linear, the PSF peaks at 1, one visibility makes one fringe, and a
 * visibility equals its conjugate at the opposite baseline. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "pipeline.h"

enum { NX = 45, NY = 38, ROWS = 90, CHANS = 3, VIS = ROWS * CHANS, PIXELS = NX * NY };

static const double SPEED_OF_LIGHT_M_S = 299792458.0;
static const double TWO_PI = 6.283185307179586;

/* A 9 degree field with about 20 turns of the w-term: several blocks of planes. */
static const double SCALE_RAD = 0.16 / NX;

typedef struct scene {
    double uvw_m[ROWS][3], freq_hz[CHANS];
    double vis[VIS][2], image[PIXELS];
    pipeline_facts facts;
    pipeline with;
} scene;

static void set_up(scene *s, tess_comm *comm, double accuracy, uint64_t seed)
{
    draw from = {seed};
    const double limit = 0.49 / SCALE_RAD, w_limit = 6000;
    for (int c = 0; c < CHANS; ++c)
        s->freq_hz[c] = 1e9 * (1 + 0.05 * c);
    const double metres = SPEED_OF_LIGHT_M_S / s->freq_hz[CHANS - 1];
    for (int k = 0; k < ROWS; ++k) {
        s->uvw_m[k][0] = metres * draw_uniform(&from, -limit, limit);
        s->uvw_m[k][1] = metres * draw_uniform(&from, -limit, limit);
        s->uvw_m[k][2] = metres * draw_uniform(&from, -w_limit, w_limit);
    }
    for (int k = 0; k < VIS; ++k)
        for (int i = 0; i < 2; ++i)
            s->vis[k][i] = draw_normal(&from);
    for (int k = 0; k < PIXELS; ++k)
        s->image[k] = draw_normal(&from);
    s->with = (pipeline){.comm = comm,
                         .geom = {.nx = NX, .ny = NY, .scale_rad = SCALE_RAD},
                         .gridding = {.accuracy = accuracy, .w_mode = TESS_W_AUTO},
                         .layout = {.threads = 2},
                         .num_pol = 1,
                         .num_rows = ROWS,
                         .num_chan = CHANS,
                         .uvw_m = &s->uvw_m[0][0],
                         .freq_hz = s->freq_hz,
                         .facts = &s->facts};
}

static scene *make_scene(tess_comm **comm, double accuracy, uint64_t seed)
{
    scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    assert_int_equal(tess_comm_self(comm), TESS_OK);
    set_up(s, *comm, accuracy, seed);
    return s;
}

static double dot(const double *a, const double *b, int n)
{
    double sum = 0;
    for (int k = 0; k < n; ++k)
        sum += a[k] * b[k];
    return sum;
}

static void dirty_of(const scene *s, const double *vis, double *dirty, double *psf)
{
    assert_int_equal(pipeline_image(&s->with, vis, NULL, dirty, psf, NULL), TESS_OK);
}

/* Rounding of an image in double, half a unit in the last place of each of a few sums,
 * raised by the gain of the grid correction on three axes (grid/kernel/tess_kernel.h). */
static double rounding(const pipeline_facts *facts)
{
    return 8 * 0x1p-53 * pow(facts->kernel.amplification, 3);
}

/* Re⟨y, P x⟩ = ⟨Pᴴ y, x⟩ for one plan; the image is divided by the sum of weights, VIS.
 * Rounding in double leaves 1e-16 × √(terms) × the grid correction's gain, far below
 * 1e-12. */
static void adjoint(double accuracy, double tolerance)
{
    tess_comm *comm;
    scene *s = make_scene(&comm, accuracy, 11);
    double(*predicted)[2] = calloc(VIS, sizeof *predicted);
    double *dirty = calloc(PIXELS, sizeof *dirty);
    s->with.adjoint = true;
    assert_int_equal(pipeline_predict(&s->with, s->image, &predicted[0][0]), TESS_OK);
    dirty_of(s, &s->vis[0][0], dirty, NULL);
    const double left = dot(&s->vis[0][0], &predicted[0][0], 2 * VIS);
    const double right = VIS * dot(dirty, s->image, PIXELS);
    const double size = sqrt(dot(&s->vis[0][0], &s->vis[0][0], 2 * VIS) *
                             dot(&predicted[0][0], &predicted[0][0], 2 * VIS));
    assert_true(fabs(left - right) <= tolerance * size);
    assert_true(size > 0);
    free(predicted);
    free(dirty);
    free(s);
    tess_comm_free(comm);
}

static void test_adjoint_double(void **state)
{
    (void)state;
    adjoint(1e-7, 1e-12);
    adjoint(1e-12, 1e-12);
}

/* In single precision, the rounding of grids and images of a few hundred thousand terms
 * (2^-24 each, adding at random) times the correction's gain of about 10. */
static void test_adjoint_single(void **state)
{
    (void)state;
    adjoint(1e-3, 1e-5);
    adjoint(1e-5, 1e-5);
}

/* Relative L2 difference of two images. */
static double difference(const double *a, const double *b)
{
    double sum = 0;
    for (int k = 0; k < PIXELS; ++k)
        sum += (a[k] - b[k]) * (a[k] - b[k]);
    return sqrt(sum / dot(b, b, PIXELS));
}

static void test_linear(void **state)
{
    (void)state;
    tess_comm *comm;
    scene *s = make_scene(&comm, 1e-9, 5);
    double *sum = calloc(2 * VIS, sizeof *sum), *other = calloc(2 * VIS, sizeof *other);
    double *image[3];
    draw from = {77};
    for (int k = 0; k < 3; ++k)
        image[k] = calloc(PIXELS, sizeof **image);
    for (int k = 0; k < 2 * VIS; ++k) {
        other[k] = draw_normal(&from);
        sum[k] = 2 * (&s->vis[0][0])[k] - 3 * other[k];
    }
    dirty_of(s, &s->vis[0][0], image[0], NULL);
    dirty_of(s, other, image[1], NULL);
    dirty_of(s, sum, image[2], NULL);
    for (int k = 0; k < PIXELS; ++k)
        image[0][k] = 2 * image[0][k] - 3 * image[1][k];
    assert_true(difference(image[0], image[2]) < rounding(&s->facts));
    for (int k = 0; k < 3; ++k)
        free(image[k]);
    free(sum);
    free(other);
    free(s);
    tess_comm_free(comm);
}

/* Every visibility contributes 1 at the centre, so the PSF is 1 there and nowhere
 * more. */
static void test_psf_peak(void **state)
{
    (void)state;
    tess_comm *comm;
    scene *s = make_scene(&comm, 1e-8, 3);
    double *dirty = calloc(PIXELS, sizeof *dirty), *psf = calloc(PIXELS, sizeof *psf);
    dirty_of(s, &s->vis[0][0], dirty, psf);
    assert_true(fabs(psf[(NY / 2) * NX + NX / 2] - 1) < 1e-7);
    for (int k = 0; k < PIXELS; ++k)
        assert_true(psf[k] < 1 + 1e-7);
    free(dirty);
    free(psf);
    free(s);
    tess_comm_free(comm);
}

/* One visibility of value 1 is the fringe cos 2π(ul + vm + w(n−1)): the shift theorem,
 * in u, v and w at once. */
static void test_one_visibility(void **state)
{
    (void)state;
    tess_comm *comm;
    scene *s = make_scene(&comm, 1e-8, 9);
    double one[2] = {1, 0}, *dirty = calloc(PIXELS, sizeof *dirty), error2 = 0;
    s->with.num_rows = s->with.num_chan = 1;
    dirty_of(s, one, dirty, NULL);
    const double inv = s->freq_hz[0] / SPEED_OF_LIGHT_M_S;
    for (int j = 0; j < NY; ++j)
        for (int i = 0; i < NX; ++i) {
            const double l = -(i - NX / 2) * SCALE_RAD, m = (j - NY / 2) * SCALE_RAD;
            const double n = sqrt(1 - l * l - m * m);
            const double turns = inv * (s->uvw_m[0][0] * l + s->uvw_m[0][1] * m +
                                        s->uvw_m[0][2] * (n - 1));
            error2 += pow(dirty[j * NX + i] - cos(TWO_PI * turns), 2);
        }
    assert_true(sqrt(error2 / PIXELS) < 1e-8);
    free(dirty);
    free(s);
    tess_comm_free(comm);
}

/* (−u, −v, −w, V*) is the same measurement. */
static void test_conjugate(void **state)
{
    (void)state;
    tess_comm *comm;
    scene *s = make_scene(&comm, 1e-9, 21);
    double *before = calloc(PIXELS, sizeof *before),
           *after = calloc(PIXELS, sizeof *after);
    dirty_of(s, &s->vis[0][0], before, NULL);
    for (int k = 0; k < ROWS; k += 2)
        for (int i = 0; i < 3; ++i)
            s->uvw_m[k][i] = -s->uvw_m[k][i];
    for (int k = 0; k < VIS; ++k)
        if (k / CHANS % 2 == 0) s->vis[k][1] = -s->vis[k][1];
    dirty_of(s, &s->vis[0][0], after, NULL);
    assert_true(difference(before, after) < rounding(&s->facts));
    free(before);
    free(after);
    free(s);
    tess_comm_free(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adjoint_double), cmocka_unit_test(test_adjoint_single),
        cmocka_unit_test(test_linear),         cmocka_unit_test(test_psf_peak),
        cmocka_unit_test(test_one_visibility), cmocka_unit_test(test_conjugate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
