/* Samples from the rows of a block: those that are made without asking why a sample
 * might be ignored are the same, bit by bit, as those that are. A recipe that lists all
 * channels as wanted has to ask. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "draw.h"
#include "prepare.h"
#include "tess_const.h"
#include "tess_geom.h"
#include "tess_mem.h"
#include "tess_samples.h"

enum { ROWS = 12, CHANS = 9, CORRS = 4, VALUES = ROWS * CHANS * CORRS, LIMIT = 1000 };

static const tess_corr LINEAR[CORRS] = {-5, -7, -8, -6}; /* XX, XY, YX, YY */

typedef struct scene {
    double uvw_m[ROWS][3], time[ROWS], integration[ROWS], inv_lambda[CHANS];
    int32_t antenna1[ROWS], antenna2[ROWS];
    float vis[2 * VALUES], weight[VALUES];
    bool all[CHANS];
    tess_vis_block block;
    tess_recipe recipe;
} scene;

/* The ways in which a row can be less than good; NUM_WAYS: none is. */
enum {
    FLAGGED,
    NEGATIVE,
    WEIGHTLESS,
    ENDLESS,
    NO_NUMBER,
    AUTOCORR,
    LAST_TOO_FAR,
    FIRST_TOO_NEAR
};
enum { NUM_WAYS = FIRST_TOO_NEAR + 1 };

static void spoil(scene *s, int64_t row, int way)
{
    const int64_t at = (row * CHANS + 4) * CORRS + 3 * (row % 2);
    double *uvw_m = s->uvw_m[row];
    if (way == FLAGGED) s->weight[at] = TESS_WEIGHT_FLAGGED;
    if (way == NEGATIVE) s->weight[at] = -1.0F;
    if (way == WEIGHTLESS) s->weight[at] = 0;
    if (way == ENDLESS) s->weight[at] = INFINITY;
    if (way == NO_NUMBER) s->vis[2 * at + 1] = NAN;
    if (way == AUTOCORR) s->antenna2[row] = s->antenna1[row];
    if (way == LAST_TOO_FAR) uvw_m[1] = LIMIT / s->inv_lambda[CHANS - 2];
    if (way == FIRST_TOO_NEAR) {
        uvw_m[0] = s->recipe.range.min / s->inv_lambda[1];
        uvw_m[1] = 0;
    }
}

static void make_scene(const tess_corr *pols, int num_pol, scene *s)
{
    draw random = {5};
    memset(s, 0, sizeof *s);
    s->recipe = (tess_recipe){.num_pol = num_pol,
                              .inv_lambda = s->inv_lambda,
                              .range = {.limit = LIMIT, .min = 2},
                              .time_first = -INFINITY,
                              .time_end = INFINITY};
    for (int p = 0; p < num_pol; ++p) {
        const tess_pol pol = {.code = pols[p], .imaginary = pols[p] == LINEAR[1]};
        s->recipe.mix[p] = tess_pol_mix_of(&pol, LINEAR, CORRS);
    }
    for (int c = 0; c < CHANS; ++c) {
        s->inv_lambda[c] = 4 + 0.1 * c;
        s->all[c] = true;
    }
    for (int64_t row = 0; row < ROWS; ++row) {
        for (int k = 0; k < 3; ++k)
            s->uvw_m[row][k] = draw_uniform(&random, 10, 200);
        s->antenna2[row] = (int32_t)(row + 1);
    }
    for (int k = 0; k < VALUES; ++k) {
        s->vis[2 * k] = (float)draw_uniform(&random, -1, 1);
        s->vis[2 * k + 1] = (float)draw_uniform(&random, -1, 1);
        s->weight[k] = (float)draw_uniform(&random, 0.5, 2);
    }
    s->weight[7] = FLT_MAX;
    s->block = (tess_vis_block){.num_rows = ROWS,
                                .num_chan = CHANS,
                                .num_corr = CORRS,
                                .uvw_m = s->uvw_m[0],
                                .time_mjd_s = s->time,
                                .integration_s = s->integration,
                                .antenna1 = s->antenna1,
                                .antenna2 = s->antenna2,
                                .vis = s->vis,
                                .weight = s->weight};
}

static tess_samples prepare(const scene *s, bool asking, bool is_double, bool shared,
                            tess_profile *profile)
{
    tess_recipe recipe = s->recipe;
    tess_samples samples = {.is_double = is_double,
                            .num_pol = recipe.num_pol,
                            .num_weight = shared ? 1 : recipe.num_pol,
                            .inv_lambda = s->inv_lambda};
    recipe.shared_weight = shared;
    recipe.chan_wanted = asking ? s->all : NULL;
    *profile = (tess_profile){0};
    assert_int_equal(tess_prepare_block(&recipe, &s->block, 1, &samples, NULL, profile),
                     TESS_OK);
    return samples;
}

/* Neither way of making them leaves out, or adds, anything. */
static void compare(const scene *s, bool is_double, bool shared, int64_t ignored)
{
    tess_profile profile[2];
    tess_samples plain = prepare(s, false, is_double, shared, &profile[0]);
    tess_samples asked = prepare(s, true, is_double, shared, &profile[1]);
    const size_t element = is_double ? 8 : 4, num_vis = (size_t)plain.num_vis;
    assert_true(num_vis > 0);
    assert_int_equal(plain.num_rows, asked.num_rows);
    assert_int_equal(plain.num_vis, asked.num_vis);
    assert_memory_equal(plain.vis, asked.vis,
                        2 * element * num_vis * (size_t)plain.num_pol);
    assert_memory_equal(plain.weight, asked.weight,
                        element * num_vis * (size_t)plain.num_weight);
    assert_int_equal(profile[0].visibilities, profile[1].visibilities);
    assert_memory_equal(profile[0].ignored, profile[1].ignored,
                        sizeof profile[0].ignored);
    assert_int_equal(profile[0].visibilities, ROWS * CHANS - ignored);
    tess_samples_free(&plain);
    tess_samples_free(&asked);
}

static void test_plain_rows(void **state)
{
    /* XX; I; XY and YX as their imaginary and real parts; IQUV */
    static const tess_corr pols[][4] = {{-5}, {1}, {-7, -8}, {1, 2, 3, 4}};
    static const int num_pol[] = {1, 1, 2, 4};
    scene s;
    for (int k = 0; k < 4; ++k)
        for (int mode = 0; mode < 4; ++mode) {
            make_scene(pols[k], num_pol[k], &s);
            compare(&s, mode % 2, mode / 2, 0);
        }
}

/* With --hand-weight mean, XX, I and a cross-hand all have the mean weight of XX and
 * YY; without, each the smallest weight of what it is made of. Both ways of making them
 * agree. A hand that is no part of XX and has no good weight does not count. */
static void test_hand_weights(void **state)
{
    static const tess_corr pols[] = {-5, 1, -8}, missing[] = {2};
    scene s;
    tess_profile profile;
    make_scene(pols, 3, &s);
    for (int mean = 0; mean < 2; ++mean) {
        for (int p = 0; mean && p < 3; ++p)
            tess_pol_weigh_by_hands(&s.recipe.mix[p], LINEAR, CORRS);
        for (int mode = 0; mode < 4; ++mode)
            compare(&s, mode % 2, mode / 2, 0);
        tess_samples samples = prepare(&s, false, true, false, &profile);
        const double *weight = samples.weight;
        const double xx = (double)s.weight[4 * CORRS],
                     yx = (double)s.weight[4 * CORRS + 2];
        const double yy = (double)s.weight[4 * CORRS + 3], half = (xx + yy) / 2;
        assert_float_equal(weight[3 * 4], mean ? half : xx, 1e-6);
        assert_float_equal(weight[3 * 4 + 1], mean ? half : fmin(xx, yy), 1e-6);
        assert_float_equal(weight[3 * 4 + 2], mean ? half : yx, 1e-6);
        tess_samples_free(&samples);
    }
    s.weight[4 * CORRS + 3] = TESS_WEIGHT_FLAGGED;
    tess_samples samples = prepare(&s, false, true, false, &profile);
    const double *weight = samples.weight;
    assert_float_equal(weight[3 * 4], (double)s.weight[4 * CORRS], 1e-6);
    assert_true(weight[3 * 4 + 1] <= 0);
    tess_samples_free(&samples);
    tess_pol_weigh_by_hands(&s.recipe.mix[0], missing, 1);
    assert_int_equal(s.recipe.mix[0].num_hands, 0);
}

/* Every second row is spoilt, each in its way: Stokes I needs XX and YY. */
static void test_other_rows(void **state)
{
    static const tess_corr stokes_i = 1;
    /* samples that a spoilt row loses */
    static const int64_t lost[NUM_WAYS] = {1, 1, 1, 1, 1, CHANS, 2, 1};
    scene s;
    for (int way = 0; way < NUM_WAYS; ++way)
        for (int mode = 0; mode < 4; ++mode) {
            make_scene(&stokes_i, 1, &s);
            for (int64_t row = 1; row < ROWS; row += 2)
                spoil(&s, row, way);
            compare(&s, mode % 2, mode / 2, ROWS / 2 * lost[way]);
        }
}

/* Visibilities of a source of 1 Jy at these direction cosines. */
static void observe(scene *s, double l, double m)
{
    const double nm1 = sqrt(1 - l * l - m * m) - 1;
    for (int64_t row = 0; row < ROWS; ++row)
        for (int64_t k = 0; k < CHANS * CORRS; ++k) {
            const double *uvw_m = s->uvw_m[row];
            const double turns = (uvw_m[0] * l + uvw_m[1] * m + uvw_m[2] * nm1) *
                                 s->inv_lambda[k / CORRS];
            s->vis[2 * (row * CHANS * CORRS + k)] = (float)cos(TESS_TWO_PI * turns);
            s->vis[2 * (row * CHANS * CORRS + k) + 1] = (float)sin(TESS_TWO_PI * turns);
        }
}

/* Turned to where a source is, each of its visibilities is its flux: they differ by
 * rounding to single precision and that of phases of up to 100 turns. */
static void test_rotation(void **state)
{
    static const tess_corr stokes_i = 1;
    const double ra0 = 1.0, dec0 = -0.5, ra1 = 1.03, dec1 = -0.46, d = ra1 - ra0;
    const double l = cos(dec1) * sin(d);
    const double m = sin(dec1) * cos(dec0) - cos(dec1) * sin(dec0) * cos(d);
    tess_profile profile;
    scene s;
    make_scene(&stokes_i, 1, &s);
    observe(&s, l, m);
    s.recipe.rotate = true;
    tess_rotation_between(ra0, dec0, ra1, dec1, s.recipe.rotation);
    tess_samples samples = prepare(&s, false, true, false, &profile);
    assert_int_equal(samples.num_vis, ROWS * CHANS);
    for (int64_t k = 0; k < samples.num_vis; ++k) {
        const double *value = (const double *)samples.vis + 2 * k;
        assert_true(fabs(value[0] - 1) < 0x1p-23 && fabs(value[1]) < 0x1p-23);
    }
    tess_samples_free(&samples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_rows),
        cmocka_unit_test(test_hand_weights),
        cmocka_unit_test(test_other_rows),
        cmocka_unit_test(test_rotation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
