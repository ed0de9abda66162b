/* Tests the number of planes whose sums are held at a time. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>
#include <unistd.h>

#include "imager_job.h"
#include "imager_window.h"
#include "tess_calibrate.h"
#include "tess_grid.h"
#include "visset_way.h"

static void make_job(bool is_double, tess_layout *layout, imager_job *job)
{
    tess_grid_opts opts;
    const tess_geom geom = {.nx = 256, .ny = 256, .scale_rad = 1e-4};
    tess_grid_opts_default(&opts);
    opts.accuracy = is_double ? 1e-9 : 1e-4;
    opts.w_max_lambda = 2000;
    *layout = (tess_layout){.threads = 4};
    *job = (imager_job){.layout = layout, .geom = geom, .num_images = 2};
    assert_int_equal(tess_backend_find("cpu", &job->backend), TESS_OK);
    assert_int_equal(tess_grid_plan_create(&geom, &opts, job->backend, &job->plan),
                     TESS_OK);
    assert_true(job->plan->num_planes > 4);
}

static void takes_what_is_faster(void **state)
{
    (void)state;
    for (int is_double = 0; is_double < 2; ++is_double) {
        tess_layout layout;
        imager_job job;
        make_job(is_double, &layout, &job);
        const double planes = job.plan->num_planes;
        /* new memory that takes a second, gridding next to nothing; and the reverse */
        const double bytes = job.plan->costs.touch_bytes_s;
        const imager_sums_size sums = {bytes, bytes / planes, 1, bytes};
        assert_int_equal(imager_planes_at_once(&job, &sums, 2 * bytes), 1);
        const imager_sums_size vis = {1, 1 / planes, 1e9, bytes};
        assert_int_equal(imager_planes_at_once(&job, &vis, 2 * bytes), 0);
        tess_grid_plan_destroy(job.plan);
    }
}

static void stays_within_the_room(void **state)
{
    (void)state;
    tess_layout layout;
    imager_job job;
    make_job(true, &layout, &job);
    const int planes = job.plan->num_planes;
    const double plane = 1e6;
    const imager_sums_size size = {planes * plane, plane, 1e9, 4e9};
    assert_int_equal(imager_planes_at_once(&job, &size, size.all), 0);
    for (int k = 1; k < planes; ++k) {
        const int at_once = imager_planes_at_once(&job, &size, (k + 0.5) * plane);
        assert_true(at_once >= 1 && at_once <= k);
        /* no more sets than there have to be: visibilities are dear here */
        assert_int_equal((planes + at_once - 1) / at_once, (planes + k - 1) / k);
    }
    assert_int_equal(imager_planes_at_once(&job, &size, 0), 1);
    assert_int_equal(imager_planes_at_once(&job, &size, -1), 1);
    tess_grid_plan_destroy(job.plan);
}

/* Memory that is got faster makes it worth while to hold all. */
static void goes_by_the_memory_there_is(void **state)
{
    (void)state;
    tess_layout layout;
    imager_job job;
    make_job(false, &layout, &job);
    const double planes = job.plan->num_planes, bytes = 1e8;
    const double set = imager_set_s(&job, 1e6);
    imager_sums_size size = {bytes, bytes / planes, 1e6, bytes / (3 * set)};
    assert_true(imager_planes_at_once(&job, &size, INFINITY) > 0);
    size.touch_bytes_s = bytes / (0.5 * set);
    assert_int_equal(imager_planes_at_once(&job, &size, INFINITY), 0);
    assert_true(tess_calibrate_touch(2, 0) > 1e6);
    tess_grid_plan_destroy(job.plan);
}

/* ---- the rate of new memory, on clocks that this test sets ---- */

/* While they are set, each look at a clock finds it so much later than the last. */
static struct set_clocks {
    bool is_set;
    double wall_step_s, cpu_step_s, wall_s, cpu_s;
} clocks;

int __real_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now);

int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
    const bool is_cpu = id == CLOCK_PROCESS_CPUTIME_ID;
    if (!clocks.is_set || (!is_cpu && id != CLOCK_MONOTONIC))
        return __real_clock_gettime(id, now);
    double *seconds = is_cpu ? &clocks.cpu_s : &clocks.wall_s;
    *seconds += is_cpu ? clocks.cpu_step_s : clocks.wall_step_s;
    *now = (struct timespec){(time_t)*seconds, (long)(fmod(*seconds, 1) * 1e9)};
    return 0;
}

static double touch_rate(int threads, double wall_step_s, double cpu_step_s)
{
    clocks = (struct set_clocks){true, wall_step_s, cpu_step_s, 1, 1};
    const double rate = tess_calibrate_touch(threads, 0);
    clocks.is_set = false;
    return rate;
}

static bool are_equal(double a, double b)
{
    return fabs(a - b) <= 1e-6 * fabs(b);
}

/* What else the machine does makes memory no slower: a plan and its run, which measure
 * at other times, choose the same. */
static void other_work_does_not_count(void **state)
{
    (void)state;
    const double alone = touch_rate(1, 0.25, 0.25);
    assert_true(alone > 0);
    assert_true(are_equal(touch_rate(1, 1.75, 0.25), alone));
    /* work of its own does count */
    assert_true(are_equal(touch_rate(1, 0.5, 0.5), alone / 2));
}

/* The processor's time of all threads is that of one times their number, or of as many
 * as there are cores. */
static void threads_share_the_time(void **state)
{
    (void)state;
    const double cores = (double)sysconf(_SC_NPROCESSORS_ONLN);
    const double together = fmin(4, cores);
    const double alone = touch_rate(1, 0.25, 0.25);
    const double four = touch_rate(4, 1, 0.25 * together);
    assert_true(are_equal(four, alone));
}

static void sums_are_counted(void **state)
{
    (void)state;
    tess_layout layout;
    imager_job job;
    make_job(false, &layout, &job);
    int64_t count[64] = {0};
    assert_true(job.plan->num_blocks <= 64);
    count[0] = 10;
    const imager_sums_size size = imager_sums_size_of(&job, count, 77);
    const double layer = 10.0 * tess_grid_brick_lines(job.plan) *
                         tess_grid_brick_stride(job.plan) * 8 * job.num_images;
    assert_true(size.num_vis == 77);
    assert_true(fabs(size.plane - layer) < 1);
    assert_true(size.all >= layer * job.plan->w_support &&
                size.all <= layer * job.plan->num_planes);
    tess_grid_plan_destroy(job.plan);
}

static bool takes_each(const void *context, int target, const tess_samples *samples,
                       int64_t row)
{
    (void)context;
    (void)target;
    (void)samples;
    (void)row;
    return true;
}

/* Targets that pick rows keep the values of these. A source has values of its own. */
static void counts_the_values_of_sources(void **state)
{
    (void)state;
    const tess_samples samples = {.num_vis = 1000, .num_pol = 2, .is_double = true};
    visset_asked asked = {.samples = &samples};
    tess_layout layout;
    imager_job job;
    make_job(true, &layout, &job);
    job.view = (imager_view){.num_pol = 2, .counts = takes_each};
    assert_true(visset_taken_bytes(&job, &asked) == 0);
    asked.of_sources = true;
    assert_true(visset_taken_bytes(&job, &asked) == 1000.0 * 2 * 16);
    tess_grid_plan_destroy(job.plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_is_faster),
        cmocka_unit_test(stays_within_the_room),
        cmocka_unit_test(counts_the_values_of_sources),
        cmocka_unit_test(goes_by_the_memory_there_is),
        cmocka_unit_test(other_work_does_not_count),
        cmocka_unit_test(threads_share_the_time),
        cmocka_unit_test(sums_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
