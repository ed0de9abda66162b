/* Sessions of the library: calls in and out of order, and residuals of a file's
 * visibilities, with all memory given back. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tessera/tessera.h"
#include "uvfits_sample.h"

enum { NX = 40, NY = 32, PIXELS = NX * NY, CENTRE = NY / 2 * NX + NX / 2 };

static const char *path = "session-sample.uvfits";

static tess_session *new_session(void)
{
    tess_session *session = NULL;
    assert_int_equal(tess_session_create(&session), TESS_OK);
    assert_int_equal(tess_session_set(session, "obs", path), TESS_OK);
    assert_int_equal(tess_session_set(session, "size", "40,32"), TESS_OK);
    assert_int_equal(tess_session_set(session, "scale", "2.8asec"), TESS_OK);
    assert_int_equal(tess_session_set(session, "threads", "2"), TESS_OK);
    return session;
}

static void test_order_of_calls(void **state)
{
    (void)state;
    double image[PIXELS];
    tess_session_weights weights;
    tess_session *session = new_session();
    assert_null(tess_session_info_of(session));
    assert_null(tess_session_polarisation(session, 0));
    assert_int_equal(tess_session_image(session, 0, 0, NULL, image, NULL),
                     TESS_ERR_USAGE);
    assert_non_null(strstr(tess_last_error(), "not open"));
    assert_int_equal(tess_session_weights_of(session, 0, 0, 0, &weights),
                     TESS_ERR_USAGE);
    assert_int_equal(tess_session_set(session, "size", "many"), TESS_OK);
    assert_int_equal(tess_session_open(session), TESS_ERR_USAGE);
    assert_int_equal(tess_session_set(session, "size", "40,32"), TESS_OK);
    assert_int_equal(tess_session_open(session), TESS_OK); /* after a failure */
    assert_int_equal(tess_session_open(session), TESS_ERR_USAGE);
    assert_non_null(tess_session_info_of(session));
    assert_int_equal(tess_session_image(session, 0, 1, NULL, image, NULL),
                     TESS_ERR_USAGE);
    assert_int_equal(tess_session_image(session, 0, 0, NULL, NULL, image),
                     TESS_ERR_USAGE);
    assert_int_equal(tess_session_weights_of(session, 0, 0, 1, &weights),
                     TESS_ERR_USAGE);
    tess_session_destroy(session);
    tess_session_destroy(NULL);
}

/* There are no ranks where MPI does not run, or is not built in. */
static void check_refused(const char *name, const char *value, const char *text)
{
    tess_session *session = new_session();
    assert_int_equal(tess_session_set(session, name, value), TESS_OK);
    assert_int_equal(tess_session_open(session), TESS_ERR_USAGE);
    assert_non_null(strstr(tess_last_error(), text));
    tess_session_destroy(session);
}

/* What a session would not make is refused. */
static void test_refusals(void **state)
{
    (void)state;
    check_refused("store-imaging-weights", NULL, "stores no imaging weights");
    check_refused("primary-beam", "airy:25", "needs --mosaic");
    check_refused("niter", "10", "is opened without --niter");
}

static void test_without_mpi(void **state)
{
    (void)state;
    tess_session *session = NULL;
    assert_int_equal(tess_session_create_mpi(0, &session), TESS_ERR_RESOURCE);
    assert_non_null(strstr(tess_last_error(), "MPI"));
    assert_null(session);
}

/* A point at the phase centre has visibilities of its flux everywhere: the residual is
 * the dirty image less the PSF times the flux, within the accuracy of either. */
static void test_residual(void **state)
{
    (void)state;
    double dirty[PIXELS], psf[PIXELS], residual[PIXELS], model[PIXELS] = {0}, size = 0;
    tess_session_weights weights;
    tess_session *session = new_session();
    assert_int_equal(tess_session_open(session), TESS_OK);
    const tess_session_info *info = tess_session_info_of(session);
    assert_true(info->nx == NX && info->ny == NY && info->num_pol == 1);
    assert_true(info->row_first == 0 && info->num_rows == NY);
    assert_true(info->num_channels == 1 && info->num_intervals == 1);
    assert_string_equal(tess_session_polarisation(session, 0), "I");
    assert_int_equal(tess_session_weights_of(session, 0, 0, 0, &weights), TESS_OK);
    assert_true(weights.sum > 0 && weights.num_vis > 0 && weights.freq_hz > 1e9);
    assert_int_equal(tess_session_image(session, 0, 0, NULL, dirty, psf), TESS_OK);
    assert_true(fabs(psf[CENTRE] - 1) < 1e-4);
    model[CENTRE] = 1000;
    for (int turn = 0; turn < 2; ++turn) {
        double error = 0;
        assert_int_equal(tess_session_image(session, 0, 0, model, residual, NULL),
                         TESS_OK);
        size = 0;
        for (int k = 0; k < PIXELS; ++k) {
            const double expected = dirty[k] - model[CENTRE] * psf[k];
            error += pow(residual[k] - expected, 2);
            size += pow(dirty[k], 2) + pow(model[CENTRE] * psf[k], 2);
        }
        assert_true(sqrt(error / size) < 3e-4);
    }
    tess_session_destroy(session);
}

/* A point at the phase centre: its flux in parallel hands, within the accuracy. */
static void test_prediction(void **state)
{
    (void)state;
    double model[PIXELS] = {0};
    tess_predictions *predictions = NULL;
    tess_session *session = new_session();
    model[CENTRE] = 3;
    assert_int_equal(tess_session_predict(session, 0, 0, model, &predictions),
                     TESS_ERR_USAGE);
    assert_null(predictions);
    assert_int_equal(tess_session_open(session), TESS_OK);
    assert_int_equal(tess_session_predict(session, 0, 1, model, &predictions),
                     TESS_ERR_USAGE);
    assert_int_equal(tess_session_predict(session, 0, 0, NULL, &predictions),
                     TESS_ERR_USAGE);
    assert_int_equal(tess_session_predict(session, 0, 0, model, &predictions), TESS_OK);
    tess_session_destroy(session); /* predictions outlive it */
    assert_true(tess_predictions_count(predictions) == 1);
    assert_null(tess_predictions_get(predictions, 1));
    const tess_predicted *made = tess_predictions_get(predictions, 0);
    assert_true(made->num_rows > 0 && made->num_chan > 0 && made->num_corr > 0);
    for (int64_t k = 0; k < made->num_rows * made->num_chan * made->num_corr; ++k) {
        const char *corr = made->corr[k % made->num_corr];
        const double *uvw_m = made->uvw_m + k / made->num_corr / made->num_chan * 3;
        const double flux = isfinite(uvw_m[0]) && corr[0] == corr[1] ? 3 : 0;
        assert_true(fabs((double)made->vis[2 * k] - flux) < 3e-3);
        assert_true(fabs((double)made->vis[2 * k + 1]) < 3e-3);
    }
    tess_predictions_destroy(predictions);
    tess_predictions_destroy(NULL);
}

static int write_sample(void **state)
{
    (void)state;
    make(&plain, path);
    return 0;
}

static int remove_sample(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_of_calls), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_without_mpi),    cmocka_unit_test(test_residual),
        cmocka_unit_test(test_prediction),
    };
    return cmocka_run_group_tests(tests, write_sample, remove_sample);
}
