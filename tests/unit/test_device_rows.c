/* Rows of UVFITS files that a device decodes and encodes, against those that pass
 * through blocks in host memory: the same images, counts and predictions. Without a GPU
 * its emulation (TESS_CUDA=EMULATED) is tested, else all of it is skipped. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "counted_copies.h"
#include "device_read.h"
#include "device_sample.h"
#include "full_device.h"
#include "tess_backend.h"
#include "tess_backend_choice.h"
#include "tess_const.h"
#include "tess_device.h"
#include "tess_mem.h"
#include "tess_planes.h"
#include "tess_samples.h"

enum { SKIPPED = 77 };

static char folder[64];

static const char *path_of(const char *name)
{
    static char path[4][256];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/tess_test_device_rows_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

/* On tmpfs, where files are written through a mapping. */
static int make_folder_in_memory(void **state)
{
    (void)state;
    strcpy(folder, "/dev/shm/tess_test_device_rows_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static tess_comm *self(void)
{
    tess_comm *comm = NULL;
    assert_int_equal(tess_comm_self(&comm), TESS_OK);
    return comm;
}

/* ---- files ---- */

/* One of each thing that may be wrong with a sample. */
static void spoil(const char *path, const sample *s)
{
    char names[16][16];
    const int params = split_params(s, names), stride = 3 * s->num_stokes;
    patch(path, s, 1, params, NAN);                   /* re of a channel */
    patch(path, s, 2, params + stride + 1, INFINITY); /* im of the next */
    patch(path, s, 3, params + 2, NAN);               /* a weight */
    patch(path, s, 4, params + 2, 0);
    patch(path, s, 5, params + 2, INFINITY);
    patch(path, s, 6, 1, NAN);                /* VV */
    patch(path, s, 7, params + 2, -INFINITY); /* flagged, and not finite */
    patch(path, s, 7, params, NAN);
}

/* ---- images ---- */

/* Compares the `num` images and the counts of both ways. `streamed` says whether the
 * device takes rows. */
static void compare_all(tess_image_opts opts, bool streamed, int num, double rounding)
{
    static pictures made[2];
    tess_profile profile[2];
    tess_comm *comm = self();
    memset(made, 0, sizeof made);
    for (int k = 0; k < 2; ++k) {
        opts.gridding.backend = k ? "cuda" : "cpu";
        opts.take_context = &made[k];
        tess_profile_start(&profile[k]);
        assert_int_equal(tess_imager_image(comm, &opts, &profile[k]), TESS_OK);
    }
    assert_int_equal(profile[0].stream.bytes, 0);
    assert_int_equal(profile[1].stream.bytes > 0, streamed);
    assert_int_equal(profile[0].visibilities, profile[1].visibilities);
    for (int k = 0; k < TESS_NUM_IGNORED; ++k)
        assert_int_equal(profile[0].ignored[k], profile[1].ignored[k]);
    const double reach =
        profile[0].beyond_uv_lambda; /* by rotations that round alike */
    assert_true(fabs(profile[1].beyond_uv_lambda - reach) <= 1e-12 * reach);
    assert_int_equal(reach > 0, profile[0].ignored[TESS_IGNORED_BEYOND_UV] > 0);
    assert_alike(&made[1], &made[0], num, rounding);
    tess_comm_free(comm);
}

static void compare_images(tess_image_opts opts, bool streamed, double rounding)
{
    compare_all(opts, streamed, 2, rounding);
}

static const char *file_of(const sample *s, const char *name)
{
    const char *path = path_of(name);
    make(s, path);
    return path;
}

static sample many(void)
{
    sample s = plain;
    s.num_groups = GROUPS;
    return s;
}

static void test_correlations(void **state)
{
    (void)state;
    static const double first[] = {-1, -5, 1};
    for (int k = 0; k < 3; ++k) {
        sample s = many();
        s.stokes_first = first[k];
        s.stokes_step = first[k] > 0 ? 1 : -1;
        const char *path = file_of(&s, "corr.uvfits");
        spoil(path, &s);
        tess_image_opts opts = options(&path, 1);
        compare_images(opts, true, ROUNDING);
        opts.pol[0] =
            (tess_corr)first[k] - 1 + 2 * (first[k] > 0); /* the second alone */
        compare_images(opts, true, ROUNDING);
        opts.gridding.accuracy = 1e-7; /* in double */
        compare_images(opts, true, 1e-12);
    }
}

static void test_baselines(void **state)
{
    (void)state;
    static const char *const params[] = {
        "UU---SIN,VV---SIN,WW---SIN,BASELINE,DATE,DATE",
        "UU,VV,WW,ANTENNA1,ANTENNA2,SUBARRAY,DATE,DATE",
        "BASELINE,DATE,DATE,UU,VV,WW,INTTIM"};
    for (int k = 0; k < 6; ++k) {
        sample s = many();
        char names[16][16];
        s.params = params[k % 3];
        s.num_antennas = k < 3 ? 5 : k % 3 == 1 ? 12 : 300; /* wide numbers */
        s.num_subarrays = k == 3 || k == 5 ? 1 : 2;
        const char *path = file_of(&s, "base.uvfits");
        const int count = split_params(&s, names);
        for (int p = 0; p < count; ++p) { /* autocorrelations */
            if (strcmp(names[p], "BASELINE") == 0)
                patch(path, &s, 8, p,
                      s.num_antennas > 255 ? 2048 * 7 + 7 + 65536 : 11 * 257);
            if (strcmp(names[p], "ANTENNA1") == 0 || strcmp(names[p], "ANTENNA2") == 0)
                patch(path, &s, 9, p, 11);
        }
        compare_images(options(&path, 1), true, ROUNDING);
    }
}

static void test_selections(void **state)
{
    (void)state;
    sample s = many();
    const char *path = file_of(&s, "select.uvfits");
    spoil(path, &s);
    tess_image_opts opts = options(&path, 1);
    opts.selection.uv_min_lambda = 2e4;
    opts.selection.uv_max_lambda = 6e4;
    compare_images(opts, true, ROUNDING);
    opts = options(&path, 1);
    opts.scale_rad *= 3; /* many are beyond the grid */
    compare_images(opts, true, ROUNDING);
    opts = options(&path, 1);
    opts.selection.spw[0] = 1;
    opts.selection.num_spw = 1;
    opts.selection.chan_first = 1;
    opts.selection.chan_end = 3;
    compare_images(opts, true, ROUNDING);
    opts = options(&path, 1);
    opts.selection.has_center = true;
    opts.selection.center_ra_rad = 123.51 * TESS_RAD_PER_DEG;
    opts.selection.center_dec_rad = -45.24 * TESS_RAD_PER_DEG;
    compare_images(opts, true, ROUNDING);
    opts.gridding.accuracy = 1e-7;
    compare_images(opts, true, 1e-11); /* phases of 1e4 turns */
}

static void test_several(void **state)
{
    (void)state;
    sample s = many();
    const char *path[2] = {file_of(&s, "a.uvfits"), NULL};
    s.num_groups = 17;
    s.freq_hz = 1.5e9;
    s.num_chan = 2;
    path[1] = file_of(&s, "b.uvfits");
    compare_images(options(path, 2), true, ROUNDING);
    s = many();
    s.num_sources = 2;
    s.num_setups = 2;
    s.params = "UU,VV,WW,BASELINE,DATE,DATE,SOURCE,FREQSEL";
    path[0] = file_of(&s, "c.uvfits");
    tess_image_opts opts = options(path, 1);
    opts.selection.field = "SRCB";
    compare_images(opts, true, ROUNDING);
}

static void test_weights(void **state)
{
    (void)state;
    const double robust[] = {-1, 0.5};
    sample s = many();
    const char *path = file_of(&s, "weights.uvfits");
    spoil(path, &s);
    tess_image_opts opts = options(&path, 1);
    opts.weights.weighting = TESS_UNIFORM;
    compare_images(opts, true, ROUNDING);
    opts.weights.rank_filter = 1.5;
    compare_images(opts, true, ROUNDING);
    opts.weights.rank_cells = 140;
    opts.weights.taper.edge_tukey_lambda = 0.3 / opts.scale_rad;
    compare_images(opts, true, ROUNDING);
    opts.weights.taper.edge_tukey_lambda = 0;
    opts.weights.rank_filter = 0;
    opts.weights.weighting = TESS_BRIGGS;
    for (int k = 0; k < 2; ++k) {
        opts.weights.robust = robust[k];
        compare_images(opts, true, ROUNDING);
    }
    opts.gridding.accuracy = 1e-7;
    compare_images(opts, true, 1e-12);
    /* cells of factor 0, of weights that have a density for their taper's sake alone */
    opts.weights.weighting = TESS_NATURAL;
    opts.weights.taper.fwhm_rad = 8 * opts.scale_rad;
    opts.weights.taper.cuts = opts.selection.cut_cells = true;
    opts.selection.uv_min_lambda = 0.05 / opts.scale_rad;
    compare_images(opts, true, 1e-12);
    opts.selection.uvw_min_m = 50;
    compare_images(opts, true, 1e-12);
}

/* Every correlation's weight is the same in a sample, and none is a flag. */
static void even_weights(const char *path, const sample *s)
{
    char names[16][16];
    const int params = split_params(s, names);
    for (int group = 0; group < s->num_groups; ++group)
        for (int k = params + 2; k < group_values(s); k += 3)
            patch(path, s, group, k,
                  (float)(1 + (group + (k - params) / (3 * s->num_stokes)) % 5));
}

static void test_stokes(void **state)
{
    (void)state;
    static const tess_weighting weighting[] = {TESS_NATURAL, TESS_UNIFORM, TESS_BRIGGS};
    sample s = many();
    for (int even = 0; even < 2; ++even) {
        const char *path = file_of(&s, even ? "even.uvfits" : "stokes.uvfits");
        if (even)
            even_weights(path, &s);
        else
            spoil(path, &s);
        tess_image_opts opts = options(&path, 1);
        opts.num_pol = 4;
        for (int k = 0; k < 4; ++k)
            opts.pol[k] = (tess_corr)(k + 1);
        for (int w = 0; w < 3; ++w) {
            opts.weights.weighting = weighting[w];
            /* alike weights have one PSF */
            compare_all(opts, true, even ? 5 : 8, ROUNDING);
        }
        opts.weights.first_density = true;
        compare_all(opts, true, even ? 5 : 8, ROUNDING);
        opts.selection.mean_weight = true;
        compare_all(opts, true, even ? 5 : 8, ROUNDING);
        opts.selection.mean_weight = false;
        opts.gridding.accuracy = 1e-7;
        compare_all(opts, true, even ? 5 : 8, 1e-12);
    }
}

/* The samples of an image that is cleaned are made on the device, too, and stay there;
 * they go to the host if the device has no room for their residuals. */
static void test_cleaned(void **state)
{
    (void)state;
    sample s = many();
    const char *path = file_of(&s, "cleaned.uvfits");
    spoil(path, &s);
    tess_image_opts opts = options(&path, 1);
    opts.gridding.accuracy = 1e-7;
    opts.weights.weighting = TESS_BRIGGS;
    tess_clean_opts_default(&opts.clean.minor);
    opts.clean.minor.niter = 50;
    opts.clean.minor.mgain = 0.5;
    for (int full = 0; full < 2; ++full) {
        is_full = full > 0;
        compare_all(opts, true, 5, 1e-7);
    }
    is_full = false;
    opts.layout.forced.device_rows = true;
    compare_all(opts, true, 5, 1e-7);
    opts.gridding.accuracy = 1e-4;
    compare_all(opts, true, 5, 1e-4);
}

static const char *write_regions(const char *name)
{
    const char *path = path_of(name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("fk5\n"
          "polygon(123.6,-45.35,123.501,-45.35,123.499,-45.15,123.6,-45.15)\n"
          "polygon(123.501,-45.35,123.4,-45.35,123.4,-45.15,123.499,-45.15)\n",
          file);
    assert_int_equal(fclose(file), 0);
    return path;
}

/* Facets take the samples where the device has made them, with gains of 1 and with
 * those of a primary beam; the samples go to the host if the device has no room for
 * what facets take. */
static void test_facets(void **state)
{
    (void)state;
    sample s = many();
    const char *path = file_of(&s, "facets.uvfits");
    spoil(path, &s);
    tess_image_opts opts = options(&path, 1);
    opts.gridding.facets =
        (tess_facet_choice){.regions = write_regions("facets.reg"), .feather = 2};
    opts.gridding.accuracy = 1e-7;
    for (int k = 0; k < 4; ++k) {
        is_full = k % 2 > 0;
        opts.gridding.facets.beam.model = k / 2 ? "airy:25" : NULL;
        compare_all(opts, true, 2, 1e-12);
    }
    is_full = false;
    opts.gridding.accuracy = 1e-4;
    compare_all(opts, true, 2, ROUNDING);
}

/* The number of images that are copied while an image is cleaned in so many major
 * iterations. */
static int64_t images_copied(tess_image_opts opts, int64_t majors)
{
    static pictures made;
    tess_profile profile;
    tess_comm *comm = self();
    opts.take_context = &made;
    opts.gridding.backend = "cuda";
    opts.clean.nmiter = majors;
    copied.least = PIXELS * (int64_t)sizeof(float);
    copied.number = 0;
    tess_profile_start(&profile);
    assert_int_equal(tess_imager_image(comm, &opts, &profile), TESS_OK);
    tess_comm_free(comm);
    return copied.number;
}

/* Residuals, models and PSFs stay on the device between major iterations. */
static void test_no_image_is_copied(void **state)
{
    (void)state;
    sample s = many();
    const char *path = file_of(&s, "stays.uvfits");
    tess_image_opts opts = options(&path, 1);
    opts.weights.weighting = TESS_BRIGGS;
    tess_clean_opts_default(&opts.clean.minor);
    opts.clean.minor.niter = 1000;
    opts.clean.minor.mgain = 0.3;
    for (int scales = 0; scales < 2; ++scales) {
        opts.clean.minor.multiscale = scales > 0;
        const int64_t few = images_copied(opts, 1);
        assert_int_equal(few,
                         2 + 5); /* densities there and back, and what is written */
        assert_int_equal(images_copied(opts, 4), few);
    }
}

/* More rows than all buffers hold, those in memory of the host and of the device: each
 * is filled again while the device works on what others have brought. */
static void test_buffers_again(void **state)
{
    (void)state;
    sample s = many();
    s.num_places = 20;
    s.num_groups = (int)(10 * tess_device_stage_bytes() / (4 * group_values(&s)));
    const char *path = file_of(&s, "long.uvfits");
    tess_image_opts opts = options(&path, 1);
    opts.gridding.accuracy = 1e-7; /* in double, whose sums are alike */
    compare_images(opts, true, 1e-11);
    unlink(path);
}

/* What a device does not take goes through host memory. */
static void test_others(void **state)
{
    (void)state;
    sample s = many();
    s.bitpix = 16;
    s.params = "UU,VV,WW,BASELINE,DATE,DATE";
    s.bscale = 0.5;
    s.bitpix = -64;
    const char *path = file_of(&s, "wide.uvfits");
    compare_images(options(&path, 1), false, ROUNDING);
}

/* ---- a row of an antenna that nobody knows ---- */

static void test_bad_antenna(void **state)
{
    (void)state;
    const sample s = many();
    const char *path = file_of(&s, "bad.uvfits");
    tess_comm *comm = self();
    tess_source *source[2];
    tess_samples samples = {0}, blocks;
    tess_profile profile = {0};
    imager_extent extent;
    bool agree;
    const tess_layout layout = {.threads = 2};
    const tess_selection selection = {0};
    const tess_pol pol = {.code = 1};
    imager_job job = {.comm = comm, .layout = &layout, .profile = &profile};
    char said[512];
    job.geom = (tess_geom){.nx = SIZE, .ny = SIZE, .scale_rad = 1e-5};
    assert_int_equal(imager_backend(comm, "cuda", &job.backend), TESS_OK);
    for (int k = 0; k < 2; ++k) {
        assert_int_equal(tess_source_open(comm, &path, 1, &selection, &source[k]),
                         TESS_OK);
        assert_int_equal(tess_source_setup(source[k], &pol, 1, 0, false, 2, 1000),
                         TESS_OK);
    }
    patch(path, &s, GROUPS - 2, 3, 256 * 200 + 11); /* it changes after it was opened */
    assert_true(device_read_possible(&job, source[0]));
    assert_true(device_read_fits(&job, source[0], 2));
    assert_int_equal(device_read_samples(&job, source[0], &samples, &extent, &agree),
                     TESS_ERR_INPUT);
    snprintf(said, sizeof said, "%s", tess_error_message());
    assert_non_null(strstr(said, "baseline 200-11 of subarray 1"));
    tess_error_clear();
    blocks = tess_source_samples(source[1]);
    tess_source_rewind(source[1]);
    tess_status status = TESS_OK;
    for (int k = 0; k < 100 && status == TESS_OK; ++k)
        status = tess_source_next(source[1], &blocks, NULL, NULL);
    assert_int_equal(status, TESS_ERR_INPUT);
    assert_string_equal(said, tess_error_message());
    tess_error_clear();
    tess_samples_free(&blocks);
    for (int k = 0; k < 2; ++k)
        tess_source_close(source[k]);
    tess_comm_free(comm);
}

/* ---- predictions ---- */

static void compare_predictions(const char *obs, const char *model, const sample *s,
                                const tess_selection *selection, int passes,
                                double accuracy, double rounding)
{
    char host[256];
    snprintf(host, sizeof host, "%s", path_of("host.uvfits"));
    const char *path[2] = {host, path_of("device.uvfits")};
    tess_comm *comm = self();
    assert_same_predictions(comm, path, obs, model, s, selection, passes, accuracy,
                            rounding);
    tess_comm_free(comm);
}

static void test_predictions(void **state)
{
    (void)state;
    sample s = many();
    const tess_selection all = {0};
    tess_comm *comm = self();
    tess_profile profile;
    char model[300], name[256];
    const char *path = file_of(&s, "obs.uvfits");
    snprintf(name, sizeof name, "%s", path_of("model"));
    snprintf(model, sizeof model, "%s-dirty.fits", name);
    tess_image_opts opts = options(&path, 1);
    opts.take = NULL;
    opts.output = name;
    opts.gridding.backend = "cpu";
    tess_profile_start(&profile);
    assert_int_equal(tess_imager_image(comm, &opts, &profile), TESS_OK);
    spoil(path, &s);
    char obs[256];
    snprintf(obs, sizeof obs, "%s", path);
    compare_predictions(obs, model, &s, &all, 0, 1e-4, ROUNDING);
    compare_predictions(obs, model, &s, &all, 0, 1e-7, 1e-6); /* what a float keeps */
    const tess_selection some = {
        .spw = {1}, .num_spw = 1, .chan_first = 1, .chan_end = 2};
    compare_predictions(obs, model, &s, &some, 0, 1e-4, ROUNDING);
    sample t = many();
    t.num_sources = 2; /* the other field's rows are copied */
    t.stokes_first = -1;
    t.params = "UU,VV,WW,BASELINE,DATE,DATE,SOURCE";
    tess_selection turned = {.field = "SRCA", .has_center = true};
    turned.center_ra_rad = 123.5 * TESS_RAD_PER_DEG;
    turned.center_dec_rad = -45.25 * TESS_RAD_PER_DEG;
    path = file_of(&t, "fields.uvfits");
    snprintf(obs, sizeof obs, "%s", path);
    compare_predictions(obs, model, &t, &turned, 0, 1e-4, ROUNDING);
    t.num_sources = 0; /* two frequency set-ups, one after the other */
    t.num_setups = 2;
    t.params = "UU,VV,WW,BASELINE,DATE,DATE,FREQSEL";
    path = file_of(&t, "setups.uvfits");
    snprintf(obs, sizeof obs, "%s", path);
    compare_predictions(obs, model, &t, &all, 2, 1e-4, ROUNDING);
    tess_comm_free(comm);
}

/* Processors are left for other threads, once there are some. */
static void test_movers(void **state)
{
    (void)state;
    assert_int_equal(tess_device_movers(0), 1);
    for (int threads = 1; threads < 4; ++threads)
        assert_int_equal(tess_device_movers(threads), threads);
    assert_int_equal(tess_device_movers(4), 3);
    assert_int_equal(tess_device_movers(16), 12);
    assert_int_equal(tess_device_movers(64), 16);
}

int main(void)
{
    const tess_backend *backend;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_correlations), cmocka_unit_test(test_baselines),
        cmocka_unit_test(test_selections),   cmocka_unit_test(test_several),
        cmocka_unit_test(test_weights),      cmocka_unit_test(test_stokes),
        cmocka_unit_test(test_others),       cmocka_unit_test(test_bad_antenna),
        cmocka_unit_test(test_cleaned),      cmocka_unit_test(test_no_image_is_copied),
        cmocka_unit_test(test_predictions),  cmocka_unit_test(test_buffers_again),
        cmocka_unit_test(test_facets),       cmocka_unit_test(test_movers)};
    const struct CMUnitTest predictions[] = {cmocka_unit_test(test_predictions)};
    int failed = 0;
    setenv("TESS_EMULATED", "1000000000000", 0);
    if (tess_backend_find("cuda", &backend) != TESS_OK) {
        fprintf(stderr, "skipped: %s\n", tess_error_message());
        return SKIPPED;
    }
    failed += cmocka_run_group_tests(tests, make_folder, remove_folder);
    if (access("/dev/shm", W_OK) == 0)
        failed +=
            cmocka_run_group_tests(predictions, make_folder_in_memory, remove_folder);
    return failed;
}
