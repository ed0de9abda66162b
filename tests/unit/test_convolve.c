/* Padded lengths of convolutions, their planning, and what is wrong with rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "tess_comm.h"
#include "tess_const.h"
#include "tess_convolve.h"
#include "tess_fft.h"
#include "tess_mem.h"

static void test_lengths(void **state)
{
    static const int64_t cases[][2] = {{1, 1},       {11, 12},     {13, 14},
                                       {4506, 4608}, {3072, 3072}, {3073, 3200},
                                       {1575, 1600}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k)
        assert_int_equal(tess_convolve_length(cases[k][0]), cases[k][1]);
    int64_t lx, ly;
    const tess_convolve_opts opts = {.nx = 2048, .ny = 101, .reach = 0};
    tess_convolve_lengths(&opts, &lx, &ly);
    assert_int_equal(lx, 3072);
    assert_int_equal(ly, 160);
}

/* Real transforms against the sum that defines them. */
static void test_real_transforms(void **state)
{
    enum { LENGTH = 15 };
    for (int is_double = 0; is_double < 2; ++is_double) {
        tess_fft *forward = NULL, *back = NULL;
        double *line = tess_alloc(2 * LENGTH, sizeof *line);
        double *out = tess_alloc(2 * LENGTH, sizeof *out);
        float *line32 = (float *)line, *out32 = (float *)out;
        assert_int_equal(tess_fft_create_real(LENGTH, true, is_double, 0, &forward),
                         TESS_OK);
        assert_int_equal(tess_fft_create_real(LENGTH, false, is_double, 0, &back),
                         TESS_OK);
        for (int k = 0; k < LENGTH; ++k)
            if (is_double)
                line[k] = k * k % 7;
            else
                line32[k] = (float)(k * k % 7);
        tess_fft_execute(forward, line, out);
        for (int f = 0; f <= LENGTH / 2; ++f) {
            double re = 0, im = 0;
            for (int k = 0; k < LENGTH; ++k) {
                re += k * k % 7 * cos(TESS_TWO_PI * f * k / LENGTH);
                im -= k * k % 7 * sin(TESS_TWO_PI * f * k / LENGTH);
            }
            /* sums of LENGTH values of at most 6 in single precision */
            const double slack = is_double ? 1e-13 : 2e-5;
            assert_true(fabs((is_double ? out[2 * f] : out32[2 * f]) - re) < slack);
            assert_true(fabs((is_double ? out[2 * f + 1] : out32[2 * f + 1]) - im) <
                        slack);
        }
        tess_fft_execute(back, out, line);
        for (int k = 0; k < LENGTH; ++k)
            assert_true(fabs((is_double ? line[k] : line32[k]) / LENGTH - k * k % 7) <
                        (is_double ? 1e-14 : 2e-6));
        tess_fft_destroy(forward);
        tess_fft_destroy(back);
        tess_free(line);
        tess_free(out);
    }
}

static void test_rows(void **state)
{
    tess_comm *comm = NULL;
    tess_convolve *plan = NULL;
    assert_int_equal(tess_comm_self(&comm), TESS_OK);
    tess_convolve_opts opts = {.nx = 8, .ny = 8, .num_rows = 7, .threads = 1};
    assert_int_equal(tess_convolve_create(comm, &opts, &plan), TESS_ERR_USAGE);
    opts.num_rows = 8;
    opts.row_first = 1;
    assert_int_equal(tess_convolve_create(comm, &opts, &plan), TESS_ERR_USAGE);
    assert_null(plan);
    opts.row_first = 0;
    assert_int_equal(tess_convolve_create(comm, &opts, &plan), TESS_OK);
    tess_convolve_destroy(plan);
    tess_convolve_destroy(NULL);
    tess_comm_free(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lengths),
                                       cmocka_unit_test(test_real_transforms),
                                       cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
