/* Of how many planes the sums are held at a time. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "imager_job.h"
#include "imager_window.h"
#include "tess_calibrate.h"
#include "tess_grid.h"

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

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The lower quartile of some rates of new memory: below it are moments in which a
 * virtual host provides pages slowly. */
static double usual_rate(void)
{
    enum { TIMES = 15 };
    double rate[TIMES];
    for (int k = 0; k < TIMES; ++k)
        rate[k] = tess_calibrate_touch(1, 0);
    qsort(rate, TIMES, sizeof *rate, ascending);
    return rate[TIMES / 4];
}

/* Processes that want the core that this one is bound to. */
static void compete(pid_t *other, int count)
{
    for (int k = 0; k < count; ++k) {
        other[k] = fork();
        assert_true(other[k] >= 0);
        for (volatile int spin = 0; other[k] == 0;)
            spin = !spin;
    }
}

/* What else the core does makes memory no slower: a plan and its run, which measure at
 * other times, choose the same. Faults of pages do cost more in caches that are shared:
 * hence a third. Six processes would leave a seventh of the time. */
static void other_work_does_not_count(void **state)
{
    (void)state;
    enum { OTHERS = 6 };
    pid_t other[OTHERS];
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    const double alone = usual_rate();
    compete(other, OTHERS);
    const double busy = usual_rate();
    for (int k = 0; k < OTHERS; ++k) {
        kill(other[k], SIGKILL);
        waitpid(other[k], NULL, 0);
    }
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    print_message("new memory: %.3g B/s alone, %.3g B/s beside others\n", alone, busy);
    assert_true(busy > alone / 3);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_is_faster),
        cmocka_unit_test(stays_within_the_room),
        cmocka_unit_test(goes_by_the_memory_there_is),
        cmocka_unit_test(other_work_does_not_count),
        cmocka_unit_test(sums_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
