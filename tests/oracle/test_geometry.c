/* Images beside the phase centre and of oblong pixels, and predictions from them,
 * against direct sums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "direct_sum.h"
#include "draw.h"
#include "pipeline.h"

enum { ROWS = 90, CHANS = 3, VIS = ROWS * CHANS, MOST_PIXELS = 64 * 64 };

typedef struct scene {
    double uvw_m[ROWS][3], freq_hz[CHANS], vis[VIS][2], weight[VIS];
    double image[MOST_PIXELS], dirty[2][MOST_PIXELS], psf[MOST_PIXELS];
    double predicted[2][VIS][2];
} scene;

static scene *make_scene(void)
{
    scene *s = calloc(1, sizeof *s);
    draw from = {77};
    assert_non_null(s);
    for (int c = 0; c < CHANS; ++c)
        s->freq_hz[c] = 1e8 * (1 + 0.04 * c);
    for (int k = 0; k < ROWS; ++k)
        for (int i = 0; i < 3; ++i)
            s->uvw_m[k][i] = draw_uniform(&from, -700, 700);
    for (int k = 0; k < VIS; ++k) {
        s->vis[k][0] = draw_normal(&from);
        s->vis[k][1] = draw_normal(&from);
        s->weight[k] = draw_uniform(&from, 0.5, 2);
    }
    for (int k = 0; k < MOST_PIXELS; ++k)
        s->image[k] = draw_normal(&from);
    return s;
}

static double norm(int64_t count, const double *a)
{
    double sum = 0;
    for (int64_t k = 0; k < count; ++k)
        if (!isnan(a[k])) sum += a[k] * a[k];
    return sqrt(sum);
}

/* Expected L2 norm of an image of these visibilities. The real parts of w V, of
 * variance w², add up in random phase. */
static double expected_norm(const scene *s, int64_t pixels)
{
    double sum = 0, sum2 = 0;
    for (int k = 0; k < VIS; ++k) {
        sum += s->weight[k];
        sum2 += s->weight[k] * s->weight[k];
    }
    return sqrt((double)pixels * sum2) / sum;
}

static void compare(const tess_geom *geom, double accuracy, tess_w_mode w_mode)
{
    scene *s = make_scene();
    tess_comm *self;
    pipeline_facts facts;
    assert_int_equal(tess_comm_self(&self), TESS_OK);
    const pipeline with = {.comm = self,
                           .geom = *geom,
                           .gridding = {.accuracy = accuracy, .w_mode = w_mode},
                           .layout = {.threads = 2},
                           .num_pol = 1,
                           .num_rows = ROWS,
                           .num_chan = CHANS,
                           .uvw_m = s->uvw_m[0],
                           .freq_hz = s->freq_hz,
                           .facts = &facts};
    const tess_direct direct = {.num_rows = ROWS,
                                .uvw_m = s->uvw_m[0],
                                .num_chan = CHANS,
                                .freq_hz = s->freq_hz,
                                .nx = geom->nx,
                                .ny = geom->ny,
                                .scale_rad = geom->scale_rad,
                                .l0 = geom->l0,
                                .m0 = geom->m0,
                                .scale_m_rad = geom->scale_m_rad,
                                .ignore_w = w_mode == TESS_W_NONE};
    const int64_t pixels = geom->nx * geom->ny;
    assert_int_equal(
        pipeline_image(&with, s->vis[0], s->weight, s->dirty[0], s->psf, NULL),
        TESS_OK);
    tess_direct_dirty(&direct, s->vis[0], s->weight, s->dirty[1]);
    /* the promise is for images that do not cancel by chance, as one pixel may */
    const double size = fmax(norm(pixels, s->dirty[1]), expected_norm(s, pixels));
    const double share = norm(pixels, s->dirty[1]) / size;
    assert_true(tess_direct_rel_l2(pixels, s->dirty[0], s->dirty[1]) * share <=
                accuracy);
    /* the corners too: no block may be wrong by more than 2 eps of the whole's rms */
    assert_true(tess_direct_worst_block(geom->nx, geom->ny, s->dirty[0], s->dirty[1]) *
                    share <=
                2 * accuracy);
    assert_int_equal(pipeline_predict(&with, s->image, s->predicted[0][0]), TESS_OK);
    assert_int_equal(tess_direct_predict(&direct, s->image, s->predicted[1][0]), 0);
    assert_true(tess_direct_rel_l2(2 * VIS, s->predicted[0][0], s->predicted[1][0]) <=
                accuracy);
    tess_comm_free(self);
    free(s);
}

static void test_geometries(void **state)
{
    static const tess_geom geoms[] = {
        /* a fraction of a pixel; many pixels, along one axis and both; oblong; all */
        {.nx = 64, .ny = 64, .scale_rad = 2e-3, .l0 = 0.7e-3, .m0 = -0.4e-3},
        {.nx = 50, .ny = 63, .scale_rad = 2e-3, .l0 = 0.31},
        {.nx = 63, .ny = 50, .scale_rad = 2e-3, .m0 = -0.45},
        {.nx = 40, .ny = 64, .scale_rad = 3e-3, .scale_m_rad = 1.3e-3},
        {.nx = 40,
         .ny = 41,
         .scale_rad = 3e-3,
         .l0 = -0.2,
         .m0 = 0.3,
         .scale_m_rad = 4.1e-3},
        /* a single pixel, and one row */
        {.nx = 1, .ny = 1, .scale_rad = 1e-3, .l0 = 0.1, .m0 = 0.2},
        {.nx = 64, .ny = 1, .scale_rad = 2e-3, .m0 = 0.3},
        /* over the horizon */
        {.nx = 64, .ny = 60, .scale_rad = 0.02, .l0 = 0.603, .m0 = 0.5},
    };
    (void)state;
    for (size_t k = 0; k < sizeof geoms / sizeof *geoms; ++k) {
        compare(&geoms[k], 1e-3, TESS_W_STACKING);
        compare(&geoms[k], 1e-9, TESS_W_STACKING);
        compare(&geoms[k], 1e-5, TESS_W_NONE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_geometries)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
