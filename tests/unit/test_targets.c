/* Plans of several images on one frame: what they share, what each has of its own, and
 * images that cannot share a frame. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "tess_grid.h"
#include "tess_projection.h"

enum { TARGETS = 3 };

static const tess_geom geom[TARGETS] = {
    {.nx = 64, .ny = 50, .scale_rad = 1e-3},
    {.nx = 64, .ny = 50, .scale_rad = 1e-3, .l0 = 0.1, .m0 = -0.05},
    {.nx = 33, .ny = 60, .scale_rad = 1e-3, .l0 = -0.2}};

static tess_grid_opts opts_of(double accuracy)
{
    tess_grid_opts opts;
    tess_grid_opts_default(&opts);
    opts.accuracy = accuracy;
    opts.w_max_lambda = 5000;
    opts.num_vis = 100000;
    return opts;
}

static void destroy_all(tess_grid_plan **plan)
{
    for (int k = TARGETS - 1; k >= 0; --k)
        tess_grid_plan_destroy(plan[k]);
}

/* A sample has one place on the grid, whichever image is made of it. */
static void test_one_frame(void **state)
{
    (void)state;
    const tess_backend *cpu;
    tess_grid_plan *plan[TARGETS];
    const tess_grid_opts opts = opts_of(1e-6);
    assert_int_equal(tess_backend_find("cpu", &cpu), TESS_OK);
    assert_int_equal(tess_grid_plan_create_targets(geom, TARGETS, &opts, cpu, plan),
                     TESS_OK);
    assert_int_equal(plan[0]->field.nx, 64);
    assert_int_equal(plan[0]->field.ny, 60);
    for (int k = 1; k < TARGETS; ++k) {
        assert_int_equal(plan[k]->nu, plan[0]->nu);
        assert_int_equal(plan[k]->nv, plan[0]->nv);
        assert_int_equal(plan[k]->num_planes, plan[0]->num_planes);
        assert_true(plan[k]->w_first_lambda == plan[0]->w_first_lambda);
        assert_true(plan[k]->w_step_lambda == plan[0]->w_step_lambda);
        assert_int_equal(plan[k]->kernel.support, plan[0]->kernel.support);
        assert_ptr_equal(plan[k]->correction.u, plan[0]->correction.u);
        assert_true(plan[k]->target.phase.l != plan[0]->target.phase.l);
    }
    destroy_all(plan);
}

/* The image with the widest range of n − 1 decides about the distance of planes; the
 * phases of each are taken from the middle of its own range. */
static void test_ranges(void **state)
{
    (void)state;
    const tess_backend *cpu;
    tess_grid_plan *plan[TARGETS];
    const tess_grid_opts opts = opts_of(1e-4);
    double widest = 0;
    assert_int_equal(tess_backend_find("cpu", &cpu), TESS_OK);
    assert_int_equal(tess_grid_plan_create_targets(geom, TARGETS, &opts, cpu, plan),
                     TESS_OK);
    for (int k = 0; k < TARGETS; ++k) {
        const double low = tess_geom_nm1_min(&geom[k]);
        const double high = tess_geom_nm1_max(&geom[k]);
        widest = fmax(widest, high - low);
        assert_true(plan[k]->target.nm1_center == 0.5 * (low + high));
    }
    assert_true(2 * plan[0]->field.nm1_half == widest);
    assert_true(widest * plan[0]->w_step_lambda < 1);
    destroy_all(plan);
}

/* A row of the correction of a smaller image is what a plan of its own computes with
 * the same kernel on the same grid: the values of the same distances from the middle.
 */
static void test_correction(void **state)
{
    (void)state;
    const tess_backend *cpu;
    tess_grid_plan *plan[TARGETS];
    tess_grid_opts opts = opts_of(1e-6);
    opts.do_w = false;
    assert_int_equal(tess_backend_find("cpu", &cpu), TESS_OK);
    assert_int_equal(tess_grid_plan_create_targets(geom, TARGETS, &opts, cpu, plan),
                     TESS_OK);
    for (int k = 0; k < TARGETS; ++k) {
        double row[64];
        const int64_t nx = geom[k].nx, ny = geom[k].ny;
        for (int64_t j = 0; j < ny; j += 7) {
            const double y = (double)(j - ny / 2) / (double)plan[k]->nv;
            const double of_row = tess_kernel_correction(&plan[k]->kernel, y, NULL);
            tess_grid_correction_row(plan[k], j, row);
            for (int64_t i = 0; i < nx; ++i) {
                const double x = (double)(i - nx / 2) / (double)plan[k]->nu;
                const double both =
                    of_row * tess_kernel_correction(&plan[k]->kernel, x, NULL);
                assert_true(fabs(row[i] - both) <= 1e-14 * both);
            }
        }
    }
    destroy_all(plan);
}

static void test_no_frame(void **state)
{
    (void)state;
    const tess_backend *cpu;
    tess_grid_plan *plan[2];
    tess_geom two[2] = {geom[0], geom[1]};
    tess_grid_opts opts = opts_of(1e-4);
    const tess_projection_opts projection = {.oversampling = 8};
    assert_int_equal(tess_backend_find("cpu", &cpu), TESS_OK);
    two[1].scale_rad = 2e-3;
    assert_int_equal(tess_grid_plan_create_targets(two, 2, &opts, cpu, plan),
                     TESS_ERR_USAGE);
    two[1] = geom[1];
    two[1].turned_l = 0.1;
    assert_int_equal(tess_grid_plan_create_targets(two, 2, &opts, cpu, plan),
                     TESS_ERR_USAGE);
    two[1] = geom[0];
    opts.do_w = false;
    opts.projection = &projection;
    assert_int_equal(tess_grid_plan_create_targets(two, 2, &opts, cpu, plan),
                     TESS_ERR_USAGE);
    assert_null(plan[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_frame), cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_correction), cmocka_unit_test(test_no_frame)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
