/* Ranks that each image the rows they have read, on devices, and sum their images: the
 * image, PSF and counts of ranks that exchange visibilities on CPUs, also when some
 * ranks have nothing good; predict the rows they have read; and a failure of one is a
 * failure of all. Without a GPU its
 * emulation is tested, else all of it is skipped. */
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
#include "device_sample.h"
#include "rank_tests.h"
#include "tess_backend.h"
#include "tess_device.h"
#include "tess_device_comm.h"

enum { SKIPPED = 77 };

typedef struct fixture {
    tess_comm *comm;
    char folder[64];
} fixture;

static const fixture *at;
static int force_nccl;
static int64_t round_bytes;
static tess_weighting weighting = TESS_NATURAL;
static bool device_rows;
static int64_t niter; /* 0: images are not cleaned */

/* ---- files ---- */

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", at->folder, name);
    return path;
}

/* The last `num_flagged` groups have weights of 0. */
static void make_file(const char *name, int num_flagged)
{
    sample s = plain;
    char names[16][16];
    s.num_groups = GROUPS;
    if (tess_comm_rank(at->comm) == 0) {
        const int params = split_params(&s, names);
        make(&s, path_of(name));
        for (int g = GROUPS - num_flagged; g < GROUPS; ++g)
            for (int v = params + 2; v < group_values(&s); v += 3)
                patch(path_of(name), &s, g, v, 0);
    }
    assert_int_equal(tess_comm_barrier(at->comm), TESS_OK);
}

/* ---- images ---- */

static tess_status image(const char *name, const char *backend, double accuracy,
                         pictures *made, tess_profile *profile)
{
    const char *path = path_of(name);
    tess_image_opts opts = options(&path, 1);
    opts.take_context = made;
    opts.gridding.accuracy = accuracy;
    opts.gridding.backend = backend;
    opts.gridding.w_mode = w_mode;
    opts.gridding.projection = tables();
    opts.layout.threads = 1;
    opts.layout.forced.nccl = force_nccl;
    opts.layout.forced.device_planes = planes;
    opts.layout.forced.round_bytes = round_bytes;
    opts.layout.forced.device_rows = device_rows;
    opts.weights.weighting = weighting;
    opts.num_pol = weighting == TESS_NATURAL ? 1 : 4;
    for (int k = 0; k < opts.num_pol; ++k)
        opts.pol[k] = (tess_corr)(k + 1);
    tess_clean_opts_default(&opts.clean.minor);
    opts.clean.minor.niter = niter;
    opts.clean.minor.mgain = 0.5;
    memset(made, 0, sizeof *made);
    tess_profile_start(profile);
    return tess_imager_image(at->comm, &opts, profile);
}

/* Rows of all ranks, and their counts. */
static void gather(pictures *made, int64_t count[TESS_NUM_IGNORED + 2],
                   const tess_profile *profile)
{
    assert_int_equal(
        tess_comm_allreduce_f64(at->comm, made->pixel[0], PICTURES * PIXELS, TESS_SUM),
        TESS_OK);
    memcpy(count, profile->ignored, sizeof profile->ignored);
    count[TESS_NUM_IGNORED] = profile->visibilities;
    count[TESS_NUM_IGNORED + 1] = profile->stream.bytes > 0;
    assert_int_equal(
        tess_comm_allreduce_i64(at->comm, count, TESS_NUM_IGNORED + 2, TESS_SUM),
        TESS_OK);
}

static void compare(const char *name, double accuracy, double rounding)
{
    static pictures made[2];
    tess_profile profile[2];
    int64_t count[2][TESS_NUM_IGNORED + 2];
    for (int k = 0; k < 2; ++k) {
        assert_int_equal(
            image(name, k ? "cuda" : "cpu", accuracy, &made[k], &profile[k]), TESS_OK);
        gather(&made[k], count[k], &profile[k]);
    }
    assert_int_equal(count[0][TESS_NUM_IGNORED + 1], 0);
    assert_int_equal(count[1][TESS_NUM_IGNORED + 1], tess_comm_size(at->comm));
    assert_memory_equal(count[0], count[1],
                        (TESS_NUM_IGNORED + 1) * sizeof count[0][0]);
    assert_alike(&made[1], &made[0],
                 niter > 0                   ? 5
                 : weighting == TESS_NATURAL ? 2
                                             : 8,
                 rounding);
}

static void test_same_image(void **state)
{
    (void)state;
    for (force_nccl = 0; force_nccl < 2; ++force_nccl) {
        make_file("all.uvfits", 0);
        compare("all.uvfits", 1e-4, ROUNDING);
        compare("all.uvfits", 1e-7, 1e-12);
        make_file("few.uvfits", GROUPS - 4); /* only the first rank has good ones */
        compare("few.uvfits", 1e-4, ROUNDING);
        weighting = TESS_BRIGGS; /* densities of all ranks, of four Stokes parameters */
        compare("all.uvfits", 1e-4, ROUNDING);
        compare("few.uvfits", 1e-4, ROUNDING);
        weighting = TESS_NATURAL;
    }
}

/* A model made by imaging the sample itself; also with fewer rows than ranks, and in
 * several batches, which some ranks have fewer of. Devices have whole images each, or
 * share planes. */
static void test_same_prediction(void **state)
{
    (void)state;
    const tess_selection all = {0};
    char name[128], model[160], host[128], device[128], obs[128];
    tess_profile profile;
    sample s = plain;
    make_file("all.uvfits", 0);
    snprintf(obs, sizeof obs, "%s", path_of("all.uvfits"));
    snprintf(name, sizeof name, "%s", path_of("model"));
    snprintf(model, sizeof model, "%s-dirty.fits", name);
    snprintf(host, sizeof host, "%s", path_of("host.uvfits"));
    snprintf(device, sizeof device, "%s", path_of("device.uvfits"));
    const char *const path = obs, *const out[2] = {host, device};
    tess_image_opts opts = options(&path, 1);
    opts.take = NULL;
    opts.output = name;
    opts.overwrite = true;
    opts.gridding.backend = "cpu";
    tess_profile_start(&profile);
    assert_int_equal(tess_imager_image(at->comm, &opts, &profile), TESS_OK);
    s.num_groups = GROUPS;
    for (planes = TESS_WHOLE_IMAGES; planes <= TESS_SHARED_PLANES; ++planes) {
        assert_same_predictions(at->comm, out, obs, model, &s, &all, 0, 1e-4, ROUNDING);
        assert_same_predictions(at->comm, out, obs, model, &s, &all, 2, 1e-4, ROUNDING);
        assert_same_predictions(at->comm, out, obs, model, &s, &all, 0, 1e-7, 1e-6);
    }
    planes = 0;
    w_mode = TESS_W_PROJECTION;
    assert_same_predictions(at->comm, out, obs, model, &s, &all, 0, 1e-4, ROUNDING);
    w_mode = TESS_W_STACKING;
    s.num_groups = 2;
    if (tess_comm_rank(at->comm) == 0) make(&s, obs);
    assert_int_equal(tess_comm_barrier(at->comm), TESS_OK);
    for (planes = TESS_WHOLE_IMAGES; planes <= TESS_SHARED_PLANES; ++planes)
        assert_same_predictions(at->comm, out, obs, model, &s, &all, 0, 1e-4, ROUNDING);
    planes = 0;
}

/* Lines and sums of bricks go between the devices, in few rounds or in many. */
static void test_shared_planes(void **state)
{
    (void)state;
    planes = TESS_SHARED_PLANES;
    for (int k = 0; k < 4; ++k) {
        force_nccl = k % 2;
        round_bytes = k / 2; /* 1: as few as will do */
        make_file("all.uvfits", 0);
        compare("all.uvfits", 1e-4, ROUNDING);
        compare("all.uvfits", 1e-7, 1e-12);
        make_file("few.uvfits", GROUPS - 4);
        compare("few.uvfits", 1e-4, ROUNDING);
        weighting = TESS_BRIGGS;
        compare("few.uvfits", 1e-4, ROUNDING);
        weighting = TESS_NATURAL;
    }
    w_mode = TESS_W_PROJECTION;
    compare("few.uvfits", 1e-4, ROUNDING);
    w_mode = TESS_W_STACKING;
    force_nccl = 0;
    round_bytes = 0;
    planes = 0;
}

/* Devices that have whole images each, or share planes, subtract models from what they
 * have read. */
static void test_cleaned(void **state)
{
    (void)state;
    niter = 40;
    make_file("all.uvfits", 0);
    make_file("few.uvfits", GROUPS - 4);
    for (int k = 0; k < 4; ++k) {
        planes = k % 2 ? TESS_SHARED_PLANES : TESS_WHOLE_IMAGES;
        device_rows = k / 2; /* and images live there */
        compare("all.uvfits", 1e-7, 1e-7);
        compare("few.uvfits", 1e-7, 1e-7);
    }
    device_rows = false;
    niter = 0;
    planes = 0;
}

/* ---- channels that are cleaned together ---- */

enum { CHANNELS = 6, SIDE = 128 };

static tess_status ignore(void *context, const tess_image_product *product)
{
    (void)context;
    (void)product;
    return TESS_OK;
}

/* Bytes of images that all ranks copy between host and device in so many major cycles.
 * Rows of a rank are copied at once; what else minor loops copy is less. */
static int64_t copied_in_majors(int64_t nmiter, int teams)
{
    const char *path = path_of("all.uvfits");
    const int ranks = tess_comm_size(at->comm);
    tess_profile profile;
    tess_image_opts opts = options(&path, 1);
    opts.take = ignore;
    opts.nx = opts.ny = SIDE;
    opts.gridding.backend = "cuda";
    opts.layout.threads = 1;
    opts.layout.forced.device_rows = TESS_IMAGES_THERE;
    opts.layout.forced.teams = teams;
    opts.channels_out = CHANNELS;
    tess_clean_opts_default(&opts.clean.minor);
    opts.clean.minor.niter = 1000;
    opts.clean.minor.mgain = 0.1;
    opts.clean.nmiter = nmiter;
    opts.clean.join.channels = true;
    copied.least = SIDE * SIDE * (int64_t)sizeof(float) / ranks;
    copied.bytes = 0;
    tess_profile_start(&profile);
    assert_int_equal(tess_imager_image(at->comm, &opts, &profile), TESS_OK);
    assert_int_equal(tess_comm_allreduce_i64(at->comm, &copied.bytes, 1, TESS_SUM),
                     TESS_OK);
    return copied.bytes;
}

/* Each device makes the images of whole channels, or all share their planes. Residuals,
 * PSFs and models go from device to device: further major cycles copy nothing to the
 * host, and nothing from there. */
static void test_joined_channels(void **state)
{
    (void)state;
    make_file("all.uvfits", 0);
    for (int teams = 0; teams < 2; ++teams) { /* as many as devices, or one */
        const int64_t once = copied_in_majors(1, teams);
        assert_true(once > 0); /* what is handed over */
        assert_int_equal(copied_in_majors(4, teams), once);
    }
}

/* With tables of w-kernels, too. */
static void test_projection(void **state)
{
    (void)state;
    w_mode = TESS_W_PROJECTION;
    make_file("all.uvfits", 0);
    compare("all.uvfits", 1e-4, ROUNDING);
    compare("all.uvfits", 1e-7, 1e-12);
    make_file("few.uvfits", GROUPS - 4);
    weighting = TESS_UNIFORM;
    compare("few.uvfits", 1e-4, ROUNDING);
    weighting = TESS_NATURAL;
    w_mode = TESS_W_STACKING;
}

static void test_failure(void **state)
{
    (void)state;
    static pictures made;
    tess_profile profile;
    make_file("none.uvfits", GROUPS);
    assert_int_equal(image("none.uvfits", "cuda", 1e-4, &made, &profile),
                     TESS_ERR_INPUT);
    assert_non_null(strstr(tess_error_message(), "nothing to image"));
    tess_error_clear();
}

/* The buffer that other ranks read is no room for anything else. Memory of earlier
 * connections, which are much smaller, may serve again. */
static void test_room(void **state)
{
    (void)state;
    const int64_t half = 64 << 20, before = tess_device_room();
    const tess_device_comm_opts opts = {.exchange_bytes = half,
                                        .allowed = TESS_SUM_BY_PEERS};
    tess_device_comm *links = NULL;
    assert_int_equal(tess_device_comm_create(at->comm, &opts, &links), TESS_OK);
    if (links) assert_true(before - tess_device_room() > half);
    tess_device_comm_destroy(links);
}

/* A buffer for which a device has no room is not made, and takes none. */
static void test_no_room(void **state)
{
    (void)state;
    const int64_t before = tess_device_room();
    const tess_device_comm_opts opts = {.exchange_bytes = before,
                                        .allowed = TESS_SUM_BY_PEERS};
    tess_device_comm *links = NULL;
    assert_int_equal(tess_device_comm_create(at->comm, &opts, &links), TESS_OK);
    assert_null(links);
    assert_true(tess_device_room() >= before);
}

int main(int argc, char **argv)
{
    static fixture own = {.folder = "/tmp/tess_test_device_ranks_XXXXXX"};
    const tess_backend *backend;
    setenv("TESS_EMULATED", "1000000000000", 0);
    if (tess_backend_find("cuda", &backend) != TESS_OK) {
        fprintf(stderr, "skipped: %s\n", tess_error_message());
        return SKIPPED;
    }
    if (tess_comm_start(&argc, &argv, &own.comm) != TESS_OK) return 1;
    const bool first = tess_comm_rank(own.comm) == 0;
    int failed = first && !mkdtemp(own.folder);
    at = &own;
    tess_status status = tess_comm_agree(own.comm, failed ? TESS_ERR_IO : TESS_OK);
    if (status == TESS_OK) status = tess_comm_bcast(own.comm, own.folder, 64, 0);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_image),
                                       cmocka_unit_test(test_shared_planes),
                                       cmocka_unit_test(test_same_prediction),
                                       cmocka_unit_test(test_projection),
                                       cmocka_unit_test(test_cleaned),
                                       cmocka_unit_test(test_joined_channels),
                                       cmocka_unit_test(test_failure),
                                       cmocka_unit_test(test_no_room),
                                       cmocka_unit_test(test_room)};
    if (status == TESS_OK) TEST_ON_RANKS(own.comm, tests);
    if (first) {
        char command[128];
        snprintf(command, sizeof command, "rm -rf %s", own.folder);
        if (system(command) != 0) failed = 1;
    }
    tess_comm_finish(own.comm);
    return failed || status != TESS_OK;
}
