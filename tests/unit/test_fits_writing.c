/* FITS images that several threads write, or a thread in the background; and disks that
 * do not take them. */
#define _GNU_SOURCE
#include <math.h>
#include <signal.h>
#include <sys/resource.h>

#include "fits_folder.h"
#include "preview_file.h"
#include "tess_held_files.h"
#include "tess_worker.h"

/* Several threads write the bytes of one: an image of three pieces, of which the last
 * one is short. The extremes and a blank pixel lie in different pieces. */
static void several_threads(void **state)
{
    const fixture *with = *state;
    const int64_t nx = 1201, ny = 1001;
    const char *name[2] = {"one.fits", "three.fits"};
    char *bytes[2];
    size_t count[2];
    float *image = calloc((size_t)(nx * ny), sizeof *image);
    for (int64_t k = 0; k < nx * ny; ++k)
        image[k] = (float)sin(1.0 + (double)k);
    image[5] = -7;
    image[600000] = NAN;
    image[nx * ny - 1] = 8;
    setenv("SOURCE_DATE_EPOCH", "1700000000", 1);
    for (int k = 0; k < 2; ++k) {
        tess_image_meta meta = sample_meta(nx, ny);
        tess_held_files held = {.threads = 1 + 2 * k};
        const char *path = in_folder(with, name[k]);
        assert_int_equal(
            tess_fits_hold(with->comm, path, &held, &meta,
                           &(tess_fits_rows){.num_rows = ny, .pixel = image}),
            TESS_OK);
        assert_int_equal(tess_held_publish(with->comm, &held), TESS_OK);
        tess_held_free(&held);
        assert_int_equal(held.threads, 1 + 2 * k);
        check_sums(path);
        bytes[k] = bytes_of(path, &count[k]);
    }
    unsetenv("SOURCE_DATE_EPOCH");
    assert_int_equal(count[0], count[1]);
    assert_memory_equal(bytes[0], bytes[1], count[0]);
    assert_true(read_number(in_folder(with, name[1]), "DATAMIN") == -7);
    assert_true(read_number(in_folder(with, name[1]), "DATAMAX") == 8);
    free(bytes[0]);
    free(bytes[1]);
    free(image);
    assert_int_equal(empty_folder(with), 2);
}

enum { STEP_SIDE = 700 };

/* A file that has begun, of pixels that stay. */
static tess_fits_writing *begin_image(const fixture *with, const char *path)
{
    static float image[STEP_SIDE * STEP_SIDE];
    const tess_image_meta meta = sample_meta(STEP_SIDE, STEP_SIDE);
    const tess_fits_rows rows = {.num_rows = STEP_SIDE, .pixel = image};
    tess_fits_writing *writing = NULL;
    for (int k = 0; k < STEP_SIDE * STEP_SIDE; ++k)
        image[k] = (float)sin(2.0 + k);
    assert_int_equal(tess_fits_begin(with->comm, path, false, &meta, &rows, &writing),
                     TESS_OK);
    return writing;
}

static void put(void *writing)
{
    tess_fits_put(writing, 2);
}

/* Two files, which another thread writes, have the bytes of one that was written at
 * once. None has its name before all are complete. */
static void written_later(void **state)
{
    const fixture *with = *state;
    const char *name[3] = {"later.fits", "last.fits", "once.fits"};
    tess_fits_writing *writing[2];
    tess_held_files held = {0};
    tess_worker *worker = tess_worker_create();
    char *bytes[3];
    size_t count[3];
    assert_non_null(worker);
    setenv("SOURCE_DATE_EPOCH", "1700000000", 1);
    for (int k = 0; k < 2; ++k)
        writing[k] = begin_image(with, in_folder(with, name[k]));
    for (int k = 0; k < 2; ++k) {
        tess_worker_start(worker, put, writing[k]);
        tess_worker_wait(worker);
        assert_int_equal(tess_fits_end(with->comm, writing[k], &held), TESS_OK);
        tess_fits_leave(true, writing[k]);
        assert_int_equal(access(in_folder(with, name[0]), F_OK), -1);
    }
    tess_worker_destroy(worker);
    assert_int_equal(tess_held_publish(with->comm, &held), TESS_OK);
    tess_held_free(&held);
    tess_fits_writing *once = begin_image(with, in_folder(with, name[2]));
    put(once);
    assert_int_equal(tess_fits_end(with->comm, once, &held), TESS_OK);
    tess_fits_leave(true, once);
    assert_int_equal(tess_held_publish(with->comm, &held), TESS_OK);
    tess_held_free(&held);
    unsetenv("SOURCE_DATE_EPOCH");
    for (int k = 0; k < 3; ++k) {
        check_sums(in_folder(with, name[k]));
        bytes[k] = bytes_of(in_folder(with, name[k]), &count[k]);
        assert_int_equal(count[k], count[0]);
        assert_memory_equal(bytes[k], bytes[0], count[0]);
    }
    for (int k = 0; k < 3; ++k)
        free(bytes[k]);
    assert_int_equal(empty_folder(with), 3);
}

/* A thread cannot write all pixels: the end of the file tells, and nothing stays. So it
 * is with a file that is left before its end. */
static void not_written_later(void **state)
{
    const fixture *with = *state;
    struct rlimit limit, small;
    tess_held_files held = {0};
    tess_fits_writing *writing = begin_image(with, in_folder(with, "small.fits"));
    tess_fits_writing *left = begin_image(with, in_folder(with, "left.fits"));
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = limit;
    small.rlim_cur = 1 << 20;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    tess_fits_put(writing, 1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    signal(SIGXFSZ, before);
    assert_int_equal(tess_fits_end(with->comm, writing, &held), TESS_ERR_IO);
    assert_non_null(strstr(tess_error_message(), "small.fits"));
    tess_error_clear();
    tess_fits_leave(true, writing);
    tess_fits_leave(true, left);
    tess_held_free(&held);
    assert_int_equal(empty_folder(with), 0);
}

/* A limit on file sizes stands in for a full disk. */
static void disk_full(void **state)
{
    const fixture *with = *state;
    tess_image_meta meta = sample_meta(64, 64);
    float image[64 * 64] = {0};
    struct rlimit old, small;
    getrlimit(RLIMIT_FSIZE, &old);
    small = old;
    small.rlim_cur = 8192;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    const tess_status fits =
        tess_fits_write(with->comm, in_folder(with, "f.fits"), false, &meta,
                        &(tess_fits_rows){.num_rows = 64, .pixel = image});
    const tess_status png =
        write_preview(with->comm, in_folder(with, "f.png"), false, &meta,
                      &(tess_fits_rows){.num_rows = 64, .pixel = image});
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(fits, TESS_ERR_IO);
    assert_int_equal(png, TESS_ERR_IO);
    tess_error_clear();
    assert_int_equal(empty_folder(with), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_threads), cmocka_unit_test(written_later),
        cmocka_unit_test(not_written_later), cmocka_unit_test(disk_full)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
