/* Ranks that each image the rows they have read, on devices, and sum their images: the
 * image, PSF and counts of ranks that exchange visibilities on CPUs, also when some
 * ranks have nothing good, and a failure of one is a failure of all. Without a GPU its
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

#include "../unit/uvfits_sample.h"
#include "tess_backend.h"
#include "tess_const.h"
#include "tess_imager.h"

enum { SIZE = 48, PIXELS = SIZE * SIZE, GROUPS = 60, SKIPPED = 77 };

/* Sums of a few hundred values in single precision, in two orders. */
static const double ROUNDING = 3e-6;

typedef struct fixture {
    tess_comm *comm;
    char folder[64];
} fixture;

static const fixture *at;
static int force_nccl;

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
        const long params = split_params(&s, names);
        const long values = s.num_complex * s.num_stokes * s.num_chan * s.num_if;
        const char none[4] = {0};
        long header = 0;
        char card[81] = "";
        make(&s, path_of(name));
        FILE *file = fopen(path_of(name), "r+b");
        assert_non_null(file);
        while (strncmp(card, "END     ", 8) != 0) {
            assert_int_equal(fread(card, 1, 80, file), 80);
            header += 80;
        }
        header = (header + 2879) / 2880 * 2880;
        for (long g = GROUPS - num_flagged; g < GROUPS; ++g)
            for (long v = 2; v < values; v += 3) {
                fseek(file, header + 4 * (g * (params + values) + params + v),
                      SEEK_SET);
                assert_int_equal(fwrite(none, 1, 4, file), 4);
            }
        fclose(file);
    }
    assert_int_equal(tess_comm_barrier(at->comm), TESS_OK);
}

/* ---- images ---- */

typedef struct pictures {
    double pixel[2][PIXELS]; /* dirty, PSF */
} pictures;

static tess_status take(void *context, const tess_image_product *product)
{
    pictures *to = context;
    double *pixel = to->pixel[strcmp(product->kind, "psf") == 0];
    for (int64_t k = 0; k < product->num_rows * SIZE; ++k)
        pixel[product->row_first * SIZE + k] =
            product->is_double ? ((const double *)product->pixel)[k]
                               : (double)((const float *)product->pixel)[k];
    return TESS_OK;
}

static tess_status image(const char *name, const char *backend, double accuracy,
                         pictures *made, tess_profile *profile)
{
    const char *path = path_of(name);
    const tess_image_opts opts = {.obs = &path,
                                  .num_obs = 1,
                                  .take = take,
                                  .take_context = made,
                                  .nx = SIZE,
                                  .ny = SIZE,
                                  .scale_rad = 1.5 * TESS_RAD_PER_DEG / 3600,
                                  .weighting = TESS_NATURAL,
                                  .num_pol = 1,
                                  .pol = {1},
                                  .gridding = {.accuracy = accuracy,
                                               .w_mode = TESS_W_STACKING,
                                               .backend = backend},
                                  .layout = {.threads = 1, .force_nccl = force_nccl},
                                  .channels_out = 1,
                                  .intervals_out = 1,
                                  .make_psf = true};
    memset(made, 0, sizeof *made);
    tess_profile_start(profile);
    return tess_imager_image(at->comm, &opts, profile);
}

/* Rows of all ranks, and their counts. */
static void gather(pictures *made, int64_t count[TESS_NUM_IGNORED + 2],
                   const tess_profile *profile)
{
    assert_int_equal(
        tess_comm_allreduce_f64(at->comm, made->pixel[0], 2 * PIXELS, TESS_SUM),
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
    for (int k = 0; k < 2; ++k) {
        double apart = 0, all = 0;
        for (int i = 0; i < PIXELS; ++i) {
            const double a = made[0].pixel[k][i], b = made[1].pixel[k][i];
            apart += (a - b) * (a - b);
            all += a * a;
        }
        assert_true(all > 0 && sqrt(apart / all) <= rounding);
    }
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
    }
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
                                       cmocka_unit_test(test_failure)};
    if (status == TESS_OK) failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (first) {
        char command[128];
        snprintf(command, sizeof command, "rm -rf %s", own.folder);
        if (system(command) != 0) failed = 1;
    }
    tess_comm_finish(own.comm);
    return failed || status != TESS_OK;
}
