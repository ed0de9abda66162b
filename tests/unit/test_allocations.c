/* Whichever allocation of the computing core fails, imaging, prediction and gridding
 * with tables of convolution functions say so: nothing comes with a good status unless
 * it is right.
 *
 * The linker sends the core's calls of tess_alloc() here (tests/CMakeLists.txt). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "draw.h"
#include "failing_alloc.h"
#include "pipeline.h"
#include "tess_status.h"
#include "tess_study.h"

enum { NX = 16, NY = 12, ROWS = 20, PIXELS = NX * NY, MOST_CALLS = 100000 };

typedef struct scene {
    double uvw_m[ROWS][3], freq_hz[1], vis[ROWS][2], model[PIXELS];
    pipeline with;
} scene;

static void set_up(scene *s, tess_comm *comm)
{
    draw from = {5};
    memset(s, 0, sizeof *s);
    s->freq_hz[0] = 299792458.0; /* metres are wavelengths */
    for (int k = 0; k < ROWS; ++k) {
        for (int i = 0; i < 3; ++i)
            s->uvw_m[k][i] = draw_uniform(&from, -40, 40);
        s->vis[k][0] = draw_normal(&from);
    }
    s->model[PIXELS / 3] = 1;
    s->with = (pipeline){.comm = comm,
                         .geom = {.nx = NX, .ny = NY, .scale_rad = 0.01},
                         .gridding = {.accuracy = 1e-3, .w_mode = TESS_W_STACKING},
                         .layout = {.threads = 1},
                         .num_pol = 1,
                         .num_rows = ROWS,
                         .num_chan = 1,
                         .uvw_m = &s->uvw_m[0][0],
                         .freq_hz = s->freq_hz};
}

static tess_status work(const scene *s, bool forward, double *out)
{
    memset(out, 0, (PIXELS + 2 * ROWS) * sizeof *out);
    return forward ? pipeline_image(&s->with, &s->vis[0][0], NULL, out, NULL, NULL)
                   : pipeline_predict(&s->with, s->model, out);
}

static void check(bool forward)
{
    scene s;
    tess_comm *comm;
    double right[PIXELS + 2 * ROWS], out[PIXELS + 2 * ROWS];
    int calls = 0;
    assert_int_equal(tess_comm_self(&comm), TESS_OK);
    set_up(&s, comm);
    assert_int_equal(work(&s, forward, right), TESS_OK);
    for (; calls < MOST_CALLS; ++calls) {
        atomic_store(&calls_left, calls);
        const tess_status status = work(&s, forward, out);
        const bool failed = atomic_exchange(&calls_left, -1) < 0;
        if (!failed) break; /* it needs no more than that */
        if (status == TESS_OK)
            assert_memory_equal(out, right, sizeof out);
        else
            assert_int_equal(status, TESS_ERR_ALLOC);
    }
    assert_true(calls > 10 && calls < MOST_CALLS);
    tess_comm_free(comm);
}

static void test_image(void **state)
{
    (void)state;
    check(true);
}

static void test_predict(void **state)
{
    (void)state;
    check(false);
}

/* A table, its factors, and one point gridded. */
static tess_status grid_one(tess_study_strategy strategy, double *cells)
{
    tess_status status = TESS_OK;
    tess_gcf *gcf = NULL;
    tess_study_plan *plan = NULL;
    tess_gcf_opts opts;
    tess_study_opts how;
    const double at[1] = {8};
    double vis[2] = {1, 2};
    const tess_gcf_points points = {
        .count = 1, .u = at, .v = at, .vis = vis, .num_pol = 1};
    tess_gcf_cells grid = {.nu = 16, .nv = 16, .data = cells};
    memset(cells, 0, 2 * 16 * 16 * sizeof *cells);
    tess_gcf_opts_default(&opts);
    opts.field_l = opts.field_m = 0.1;
    opts.layout.is_double = true;
    opts.layout.num_planes = 2;
    tess_study_opts_default(&how);
    how.strategy = strategy;
    how.least_cells = 0;
    TESS_TRY(tess_gcf_create(&opts, &gcf));
    TESS_TRY(tess_study_plan_create(gcf, &how, &plan));
    TESS_TRY(tess_study_grid(plan, &points, &grid, NULL));
cleanup:
    tess_study_plan_destroy(plan);
    tess_gcf_destroy(gcf);
    return status;
}

static void test_gcf(void **state)
{
    (void)state;
    /* the others are a GPU's */
    for (int strategy = 0; strategy <= TESS_STUDY_FACTORED; ++strategy) {
        double right[2 * 16 * 16], cells[2 * 16 * 16];
        int calls = 0;
        assert_int_equal(grid_one((tess_study_strategy)strategy, right), TESS_OK);
        for (; calls < MOST_CALLS; ++calls) {
            atomic_store(&calls_left, calls);
            const tess_status status = grid_one((tess_study_strategy)strategy, cells);
            const bool failed = atomic_exchange(&calls_left, -1) < 0;
            if (!failed) break;
            assert_int_equal(status, TESS_ERR_ALLOC);
            tess_error_clear();
        }
        assert_memory_equal(cells, right, sizeof cells);
        assert_true(calls > 10 && calls < MOST_CALLS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_image),
                                       cmocka_unit_test(test_predict),
                                       cmocka_unit_test(test_gcf)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
