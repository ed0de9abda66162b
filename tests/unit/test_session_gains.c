/* A session whose facets are given other solutions: whichever allocation fails, images,
 * responses and predictions of all outputs are those of the solutions before.
 *
 * The linker sends calls of tess_alloc() here (tests/CMakeLists.txt). */
#define _GNU_SOURCE /* mkdtemp */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "failing_alloc.h"
#include "h5parm_sample.h"
#include "simulated.h"
#include "tess_const.h"
#include "tessera/tessera.h"

enum { NX = 40, NY = 32, PIXELS = NX * NY, ANTENNAS = 5, FACETS = 2, CHANNELS = 2 };
enum { VALUES = 20000, MOST_CALLS = 1000 };

/* ---- files ---- */

static char root[] = "/tmp/tess_session_gains_XXXXXX";
static const char *const files[] = {"sky.csv", "obs.uvfits", "two.reg", "a.h5", "b.h5"};

static void simulate(void)
{
    const char *const options[][2] = {
        {"layout", "vla-d"},     {"sky", "sky.csv"},     {"ra", "60deg"},
        {"dec", "30deg"},        {"duration", "2min"},   {"integration", "30s"},
        {"freq", "1.4GHz"},      {"chan-width", "2e7"},  {"channels", "2"},
        {"threads", "1"},        {"pol", "XX,YY,XY,YX"}, {"antennas", "5"},
        {"output", "obs.uvfits"}};
    write_text("sky.csv", "name,l,m,flux_jy\nA,0,0,2\nB,1e-3,-6e-4,1\n");
    simulate_with(options, sizeof options / sizeof *options);
}

static double rising(const int i[])
{
    return 1 + 0.1 * i[0] + 0.2 * i[1];
}

static double falling(const int i[])
{
    return 2 - 0.1 * i[0] - 0.2 * i[1];
}

static void write_solutions(const char *path, double (*value)(const int index[]))
{
    static const char *const names[] = {"vla000", "vla006", "vla013", "vla019",
                                        "vla026"};
    static const char *const sources[] = {"[east]", "[west]"};
    static const double places[][2] = {
        {60.1 * TESS_RAD_PER_DEG, 30 * TESS_RAD_PER_DEG},
        {59.9 * TESS_RAD_PER_DEG, 30 * TESS_RAD_PER_DEG}};
    const sample_table table = {.name = "amplitude000",
                                .title = "amplitude",
                                .axes = "ant,dir",
                                .length = {FACETS, ANTENNAS},
                                .text = {sources, names},
                                .value = value};
    sample_write(path, &(sample_file){.num_sources = FACETS,
                                      .source = sources,
                                      .direction = places,
                                      .num_tables = 1,
                                      .table = &table});
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(root) || chdir(root) != 0) return -1;
    simulate();
    write_text(
        "two.reg",
        "polygon(61,29,59.99,29,60.01,31,61,31) # text={east}\npoint(60.1,30)\n"
        "polygon(59.99,29,59,29,59,31,60.01,31) # text={west}\npoint(59.9,30)\n");
    write_solutions("a.h5", rising);
    write_solutions("b.h5", falling);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof files / sizeof *files; ++k)
        unlink(files[k]);
    return chdir("/") == 0 && rmdir(root) == 0 ? 0 : -1;
}

/* ---- sessions ---- */

static tess_session *open_session(void)
{
    const char *const options[][2] = {{"obs", "obs.uvfits"}, {"size", "40,32"},
                                      {"scale", "20asec"},   {"facets", "two.reg"},
                                      {"channels-out", "2"}, {"threads", "1"}};
    tess_session *session = NULL;
    assert_int_equal(tess_session_create(&session), TESS_OK);
    for (size_t k = 0; k < sizeof options / sizeof *options; ++k)
        assert_int_equal(tess_session_set(session, options[k][0], options[k][1]),
                         TESS_OK);
    if (tess_session_open(session) != TESS_OK) fail_msg("%s", tess_last_error());
    return session;
}

/* The image, the response and the prediction of each output; returns how many numbers
 * these are. */
static int64_t take_all(tess_session *session, double value[VALUES])
{
    int64_t at = 0;
    double model[PIXELS] = {0};
    model[NY / 2 * NX + 5] = model[NY / 2 * NX + NX - 5] = 1;
    for (int c = 0; c < CHANNELS; ++c, at += 2 * PIXELS) {
        assert_int_equal(tess_session_image(session, 0, c, NULL, value + at, NULL),
                         TESS_OK);
        assert_int_equal(tess_session_response(session, 0, c, value + at + PIXELS),
                         TESS_OK);
    }
    for (int c = 0; c < CHANNELS; ++c) {
        tess_predictions *made = NULL;
        assert_int_equal(tess_session_predict(session, 0, c, model, &made), TESS_OK);
        const tess_predicted *part = tess_predictions_get(made, 0);
        const int64_t num = 2 * part->num_rows * part->num_chan * part->num_corr;
        assert_true(at + num <= VALUES);
        for (int64_t k = 0; k < num; ++k)
            value[at++] = (double)part->vis[k];
        tess_predictions_destroy(made);
    }
    return at;
}

static double before[VALUES], after[VALUES];

/* Images and responses are the same bit by bit; the first prediction of a session may
 * round otherwise than later ones. */
static void check_same(int64_t num)
{
    const int64_t exact = 2 * CHANNELS * PIXELS;
    assert_memory_equal(before, after, (size_t)exact * sizeof *before);
    for (int64_t k = exact; k < num; ++k)
        assert_float_equal(before[k], after[k], 1e-5);
}

static void test_failures(void **state)
{
    (void)state;
    tess_session *session = open_session();
    tess_status status = TESS_ERR_ALLOC;
    int calls = 0;
    assert_int_equal(tess_session_solutions(session, "a.h5", NULL), TESS_OK);
    const int64_t num = take_all(session, before);
    while (status != TESS_OK && calls < MOST_CALLS) {
        atomic_store(&calls_left, calls++);
        status = tess_session_solutions(session, "b.h5", NULL);
        atomic_store(&calls_left, -1);
        assert_true(status == TESS_OK || status == TESS_ERR_ALLOC);
        assert_int_equal(take_all(session, after), num);
        if (status != TESS_OK) check_same(num);
    }
    assert_int_equal(status, TESS_OK);
    assert_true(calls > 10); /* responses of either output were among them */
    assert_true(memcmp(before, after, (size_t)num * sizeof *before) != 0);
    assert_int_equal(tess_session_solutions(session, "a.h5", NULL), TESS_OK);
    assert_int_equal(take_all(session, after), num);
    check_same(num);
    tess_session_destroy(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_failures)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
