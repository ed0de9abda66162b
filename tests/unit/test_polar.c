/* Stokes parameters from correlations and back, as documented:
 * I=(XX+YY)/2, Q=(XX-YY)/2, U=(XY+YX)/2, V=(XY-YX)/2i; circular I=(RR+LL)/2,
 * Q=(RL+LR)/2, U=(RL-LR)/2i, V=(RR-LL)/2; the imaginary part of a cross-hand from -iV.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <complex.h>

#include "tess_polar.h"

enum { RR = -1, LL = -2, RL = -3, LR = -4, XX = -5, YY = -6, XY = -7, YX = -8 };

static const tess_corr LINEAR[4] = {XX, XY, YX, YY}, CIRCULAR[4] = {LL, RL, LR, RR};

/* Sums of numbers with few bits are exact. */
static const double complex VALUE[4] = {CMPLX(3, 1), CMPLX(0.5, -2), CMPLX(-1.25, 4),
                                        CMPLX(2, 0.75)};

static double complex mixed_of(const tess_pol *pol, const tess_corr corr[4])
{
    const tess_pol_mix mix = tess_pol_mix_of(pol, corr, 4);
    double complex sum = 0;
    assert_true(mix.num == 1 || mix.num == 2);
    for (int k = 0; k < mix.num; ++k)
        sum += mix.coefficient[k] * VALUE[mix.index[k]];
    return sum;
}

static double complex mixed(tess_corr code, bool imaginary, const tess_corr corr[4])
{
    const tess_pol pol = {.code = code, .imaginary = imaginary};
    return mixed_of(&pol, corr);
}

static void assert_same(double complex a, double complex b)
{
    assert_true(creal(a) == creal(b) && cimag(a) == cimag(b));
}

static void test_linear(void **state)
{
    const double complex xx = VALUE[0], xy = VALUE[1], yx = VALUE[2], yy = VALUE[3];
    assert_same(mixed(1, false, LINEAR), (xx + yy) / 2);
    assert_same(mixed(2, false, LINEAR), (xx - yy) / 2);
    assert_same(mixed(3, false, LINEAR), (xy + yx) / 2);
    assert_same(mixed(4, false, LINEAR), (xy - yx) * CMPLX(0, -0.5));
    assert_same(mixed(YX, false, LINEAR), yx);
    assert_same(mixed(XY, true, LINEAR), xy * CMPLX(0, -1));
}

static void test_circular(void **state)
{
    const double complex ll = VALUE[0], rl = VALUE[1], lr = VALUE[2], rr = VALUE[3];
    assert_same(mixed(1, false, CIRCULAR), (rr + ll) / 2);
    assert_same(mixed(2, false, CIRCULAR), (rl + lr) / 2);
    assert_same(mixed(3, false, CIRCULAR), (rl - lr) * CMPLX(0, -0.5));
    assert_same(mixed(4, false, CIRCULAR), (rr - ll) / 2);
    assert_same(mixed(RR, false, CIRCULAR), rr);
    assert_same(mixed(LR, true, CIRCULAR), lr * CMPLX(0, -1));
}

static void test_cannot(void **state)
{
    const tess_corr parallel[2] = {RR, LL}, stokes[1] = {1};
    const tess_pol pol[] = {
        {.code = 2}, {.code = 3}, {.code = XX}, {.code = RL, .imaginary = true}};
    for (int k = 0; k < 4; ++k)
        assert_int_equal(tess_pol_mix_of(&pol[k], parallel, 2).num, 0);
    assert_int_equal(tess_pol_mix_of(&pol[0], stokes, 1).num, 0);
    const tess_pol same = {.code = 1};
    assert_int_equal(tess_pol_mix_of(&same, stokes, 1).num, 1);
    assert_int_equal(tess_pol_mix_of(&same, parallel, 2).num, 2);
}

/* Correlations of known Stokes parameters give these back. */
static void test_round_trip(void **state)
{
    const tess_corr *const feed[2] = {LINEAR, CIRCULAR};
    for (int f = 0; f < 2; ++f)
        for (int s = 0; s < 4; ++s) {
            double complex corr[4], sum = 0;
            for (int c = 0; c < 4; ++c) {
                double complex coefficient[4];
                tess_pol_from_stokes(feed[f][c], coefficient);
                corr[c] = 0;
                for (int k = 0; k < 4; ++k)
                    corr[c] += coefficient[k] * VALUE[k];
            }
            const tess_pol pol = {.code = s + 1};
            const tess_pol_mix mix = tess_pol_mix_of(&pol, feed[f], 4);
            for (int k = 0; k < mix.num; ++k)
                sum += mix.coefficient[k] * corr[mix.index[k]];
            assert_same(sum, VALUE[s]);
        }
}

static void test_names(void **state)
{
    const tess_corr code[3] = {1, XY, LL};
    tess_pol pol[6];
    char name[8];
    assert_int_equal(tess_pol_expand(code, 3, pol), 4);
    static const char *const expected[] = {"I", "XY", "XYi", "LL"};
    for (int k = 0; k < 4; ++k) {
        tess_pol_name(&pol[k], name);
        assert_string_equal(name, expected[k]);
    }
}

/* XY and YX together are the real and the imaginary part of one image. */
static void test_joined_hands(void **state)
{
    const double complex xy = VALUE[1], yx = VALUE[2];
    const tess_corr four[4] = {XX, XY, YX, YY}, one[2] = {XX, XY},
                    circular[2] = {RL, LR};
    tess_pol pol[6];
    assert_int_equal(tess_pol_join_hands(pol, tess_pol_expand(four, 4, pol)), 4);
    static const char *const expected[] = {"XX", "XY", "XYi", "YY"};
    for (int k = 0; k < 4; ++k) {
        char name[8];
        tess_pol_name(&pol[k], name);
        assert_string_equal(name, expected[k]);
        assert_true(pol[k].both == (k == 1 || k == 2));
    }
    assert_same(mixed_of(&pol[1], LINEAR), (xy + yx) / 2);
    assert_same(mixed_of(&pol[2], LINEAR), (xy - yx) * CMPLX(0, -0.5));
    assert_int_equal(tess_pol_mix_of(&pol[1], one, 2).num, 0);
    assert_int_equal(tess_pol_join_hands(pol, tess_pol_expand(one, 2, pol)), 3);
    assert_int_equal(tess_pol_join_hands(pol, tess_pol_expand(circular, 2, pol)), 4);
}

static void assert_explained(const char *stokes, const tess_corr *corr, int num_corr,
                             const char *expected)
{
    tess_pol pol[4];
    char text[256];
    int count = 0;
    for (; stokes[count]; ++count)
        pol[count] =
            (tess_pol){.code = tess_corr_parse((const char[]){stokes[count], '\0'})};
    tess_pol_explain(pol, count, corr, num_corr, text, sizeof text);
    assert_string_equal(text, expected);
}

static void test_explained(void **state)
{
    (void)state;
    static const tess_corr linear[] = {-5, -6, -7, -8}, circular[] = {-1, -2, -3, -4},
                           stokes[] = {1, 2};
    assert_explained("IQUV", linear, 4, "");
    assert_explained(
        "IQUV", linear, 2,
        "U and V cannot be made from XX,YY: XY,YX are missing; --stokes IQ "
        "can be");
    assert_explained(
        "IQUV", circular, 2,
        "Q and U cannot be made from RR,LL: RL,LR are missing; --stokes IV "
        "can be");
    assert_explained(
        "Q", circular, 3,
        "Q cannot be made from RR,LL,RL: LR is missing; --stokes IV can be");
    assert_explained("IQUV", linear, 1,
                     "I, Q, U and V cannot be made from XX: YY,XY,YX are missing; "
                     "--stokes XX can be");
    assert_explained(
        "IQUV", stokes, 2,
        "U and V cannot be made from I,Q: U,V are missing; --stokes IQ can "
        "be");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),    cmocka_unit_test(test_circular),
        cmocka_unit_test(test_cannot),    cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_names),     cmocka_unit_test(test_joined_hands),
        cmocka_unit_test(test_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
