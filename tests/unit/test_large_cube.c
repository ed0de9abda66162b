/* A cube of 32,768 channels of 2048² pixels, 512 GiB, of which the disk holds a few
 * rows: its size, headers, beams and pixels. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

#include "fits_folder.h"
#include "tess_fits_cube.h"
#include "tess_mem.h"

enum { CHANNELS = 32768, SIDE = 2048 };

/* Disk space is not reserved, as on file systems that cannot do it: the file has holes.
 * Which name is called depends on _FILE_OFFSET_BITS, which packages may define. */
int __wrap_fallocate(int fd, int mode, off_t offset, off_t bytes);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    errno = EOPNOTSUPP;
    return -1;
}

int __wrap_fallocate64(int fd, int mode, off_t offset, off_t bytes);
int __wrap_fallocate64(int fd, int mode, off_t offset, off_t bytes)
{
    return __wrap_fallocate(fd, mode, offset, bytes);
}

static bool has_row(int channel)
{
    return channel % 4096 == 5 || channel == CHANNELS - 1;
}

static double major_deg(int channel)
{
    return 1e-3 + 1e-8 * channel;
}

/* The facts of a plane, and one row of some planes. */
static void write_plane(const fixture *with, int channel, tess_fits_cube *cube)
{
    static float row[SIDE];
    tess_image_meta meta = sample_meta(SIDE, SIDE);
    const tess_cube_plane plane = {.freq = channel,
                                   .meta = &meta,
                                   .row_first = SIDE - 1,
                                   .num_rows = has_row(channel),
                                   .rows = row};
    meta.beam = (tess_fits_beam){.major_rad = major_deg(channel) * TESS_RAD_PER_DEG,
                                 .minor_rad = 5e-4 * TESS_RAD_PER_DEG};
    meta.gridded.sum_weights = channel + 1;
    for (int i = 0; i < SIDE; ++i)
        row[i] = (float)channel;
    assert_int_equal(tess_fits_cube_write(with->comm, &plane, 1, cube), TESS_OK);
}

static void check_beams(const char *path)
{
    fitsfile *fits = NULL;
    int failed = 0;
    long rows = 0;
    char name[] = "BEAMS";
    float *major = malloc(CHANNELS * sizeof *major);
    fits_open_diskfile(&fits, path, READONLY, &failed);
    fits_movnam_hdu(fits, BINARY_TBL, name, 0, &failed);
    fits_get_num_rows(fits, &rows, &failed);
    assert_int_equal(rows, CHANNELS);
    fits_read_col(fits, TFLOAT, 1, 1, 1, CHANNELS, NULL, major, NULL, &failed);
    fits_close_file(fits, &failed);
    assert_int_equal(failed, 0);
    for (int c = 0; c < CHANNELS; ++c)
        assert_true(fabs(major[c] / (3600 * major_deg(c)) - 1) < 1e-6);
    free(major);
}

static void check_pixels(const char *path)
{
    static double row[SIDE];
    tess_fits_model model;
    assert_int_equal(tess_fits_open(path, &model), TESS_OK);
    assert_int_equal(model.num_freq, CHANNELS);
    assert_int_equal(model.nx, SIDE);
    for (int c = 0; c < CHANNELS; ++c) {
        if (!has_row(c)) continue;
        for (int last = 0; last < 2; ++last) {
            assert_int_equal(tess_fits_read(&model, 0, c, SIDE - 2 + last, 1,
                                            TESS_PIXEL_DOUBLE, row),
                             TESS_OK);
            assert_true(row[0] == last * c && row[SIDE - 1] == last * c);
        }
    }
}

static void large_cube(void **state)
{
    const fixture *with = *state;
    const char *path = in_folder(with, "large.fits");
    const int64_t pixels = (int64_t)SIDE * SIDE * CHANNELS;
    double *freq_hz = tess_alloc(CHANNELS, sizeof *freq_hz);
    double *width_hz = tess_alloc(CHANNELS, sizeof *width_hz);
    const tess_cube_axes axes = {.num_freq = CHANNELS,
                                 .num_stokes = 1,
                                 .freq_hz = freq_hz,
                                 .width_hz = width_hz,
                                 .stokes_step = 1};
    tess_image_meta meta = sample_meta(SIDE, SIDE);
    tess_fits_cube *cube = NULL;
    tess_held_files held = {0};
    struct stat info;
    for (int c = 0; c < CHANNELS; ++c) {
        freq_hz[c] = 1e9 + 1e4 * c;
        width_hz[c] = 1e4;
    }
    meta.cube = &axes;
    meta.freq_hz = freq_hz[0]; /* the header has those of the first plane */
    meta.bandwidth_hz = width_hz[0];
    if (tess_fits_cube_create(with->comm, path, false, &meta, 0, false, &cube) !=
        TESS_OK) {
        print_message("no file of 512 GiB: %s\n", tess_error_message());
        tess_free(freq_hz);
        tess_free(width_hz);
        skip();
    }
    for (int c = CHANNELS - 1; c >= 0; --c)
        write_plane(with, c, cube);
    assert_int_equal(tess_fits_cube_finish(with->comm, &held, cube), TESS_OK);
    assert_int_equal(tess_held_publish(with->comm, &held), TESS_OK);
    tess_fits_cube_destroy(cube);
    tess_held_free(&held);
    assert_int_equal(stat(path, &info), 0);
    assert_true(info.st_size > 4 * pixels && info.st_size < 4 * pixels + (16 << 20));
    assert_int_equal(info.st_size % 2880, 0);
    assert_true((int64_t)info.st_blocks * 512 < 64 << 20);
    assert_true(read_number(path, "NAXIS3") == CHANNELS);
    assert_true(read_number(path, "CRVAL3") == freq_hz[0]);
    assert_true(read_number(path, "DATAMAX") == CHANNELS - 1);
    check_beams(path);
    check_pixels(path);
    tess_free(freq_hz);
    tess_free(width_hz);
    assert_int_equal(empty_folder(with), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(large_cube, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
