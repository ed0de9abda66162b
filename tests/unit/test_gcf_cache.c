/* Tables of w-kernels from the cache: the same taps, other options apart, and no harm
 * from files that are cut short, damaged or another's, from folders that cannot be
 * written, and from several programs at once. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tess_gcf_grid.h"

static char folder[64];

static int make_folder(void **state)
{
    snprintf(folder, sizeof folder, "gcf-cache-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    return setenv("TESS_CACHE_DIR", folder, 1);
}

/* The only file there is; how many there are. */
static int only_file(char path[512])
{
    int count = 0;
    struct dirent *entry;
    DIR *open = opendir(folder);
    assert_non_null(open);
    while ((entry = readdir(open)) != NULL) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, 512, "%s/%s", folder, entry->d_name);
        ++count;
    }
    closedir(open);
    return count;
}

static int remove_folder(void **state)
{
    char path[512];
    chmod(folder, 0700);
    while (only_file(path) > 0)
        unlink(path);
    return rmdir(folder);
}

static tess_gcf_opts options(void)
{
    tess_gcf_opts opts;
    tess_gcf_opts_default(&opts);
    opts.field_l = opts.field_m = 0.1;
    opts.layout.num_planes = 3;
    opts.layout.w_max_lambda = 300;
    opts.layout.oversampling = 2;
    return opts;
}

static tess_gcf *table(const tess_gcf_opts *opts, bool expect_cached)
{
    tess_gcf *gcf = NULL;
    bool was_cached = !expect_cached;
    assert_int_equal(tess_gcf_create_cached(opts, &gcf, &was_cached), TESS_OK);
    assert_int_equal(was_cached, expect_cached);
    return gcf;
}

static void assert_same(const tess_gcf *a, const tess_gcf *b)
{
    assert_int_equal(a->num_values, b->num_values);
    assert_int_equal(a->max_support, b->max_support);
    for (int p = 0; p < a->layout.num_planes; ++p) {
        assert_true(a->plane[p].w_lambda == b->plane[p].w_lambda);
        assert_int_equal(a->plane[p].support, b->plane[p].support);
        assert_int_equal(a->plane[p].offset, b->plane[p].offset);
    }
    assert_memory_equal(a->data, b->data, (size_t)tess_gcf_bytes(a));
}

/* Made, kept, and read again by options of any number of threads. */
static void kept_and_read(void **state)
{
    tess_gcf_opts opts = options();
    tess_gcf *made = table(&opts, false);
    opts.layout.threads = 2;
    tess_gcf *read = table(&opts, true);
    assert_same(made, read);
    tess_gcf_destroy(made);
    tess_gcf_destroy(read);
}

/* Everything else in the options makes another table. */
static void other_options_apart(void **state)
{
    const tess_gcf_opts first = options();
    tess_gcf_destroy(table(&first, false));
    for (int k = 0; k < 10; ++k) {
        tess_gcf_opts opts = options();
        switch (k) {
        case 0:
            opts.layout.num_planes = 4;
            break;
        case 1:
            opts.layout.w_max_lambda *= 1 + 1e-15;
            break;
        case 2:
            opts.layout.spacing = TESS_GCF_LINEAR;
            break;
        case 3:
            opts.layout.oversampling = 3;
            break;
        case 4:
            opts.layout.is_double = true;
            break;
        case 5:
            opts.field_m *= 1 + 1e-15;
            break;
        case 6:
            opts.taper_support = 7;
            break;
        case 7:
            opts.padding = 1.9;
            break;
        case 8:
            opts.cut = 2e-3;
            break;
        default:
            opts.min_support = opts.max_support = 16;
        }
        tess_gcf_destroy(table(&opts, false));
        tess_gcf_destroy(table(&opts, true));
    }
    tess_gcf_destroy(table(&first, true));
}

static void spoil(const char *path, long at, int byte)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, at, SEEK_SET);
    const int was = fgetc(file);
    fseek(file, at, SEEK_SET);
    fputc(was ^ byte, file);
    fclose(file);
}

/* A byte changed anywhere, or the end missing: computed, and mended. */
static void damage_is_mended(void **state)
{
    const tess_gcf_opts opts = options();
    char path[512];
    struct stat found;
    tess_gcf *made = table(&opts, false);
    assert_int_equal(only_file(path), 1);
    assert_int_equal(stat(path, &found), 0);
    for (int k = 0; k <= 20; ++k) {
        if (k < 20)
            spoil(path, (long)(found.st_size - 1) * k / 19, 1 << k % 8);
        else
            assert_int_equal(truncate(path, found.st_size / 2), 0);
        tess_gcf *again = table(&opts, false);
        assert_same(made, again);
        tess_gcf_destroy(again);
        tess_gcf_destroy(table(&opts, true));
    }
    assert_int_equal(only_file(path), 1);
    tess_gcf_destroy(made);
}

/* No folder, or a file in its place. */
static void without_a_folder(void **state)
{
    const tess_gcf_opts opts = options();
    char path[512];
    tess_gcf_destroy(table(&opts, false));
    assert_int_equal(only_file(path), 1);
    setenv("TESS_CACHE_DIR", "/proc/none", 1);
    tess_gcf_destroy(table(&opts, false));
    setenv("TESS_CACHE_DIR", path, 1);
    tess_gcf_destroy(table(&opts, false));
    setenv("TESS_CACHE_DIR", folder, 1);
    tess_gcf_destroy(table(&opts, true));
}

static void several_at_once(void **state)
{
    enum { CHILDREN = 4 };
    const tess_gcf_opts opts = options();
    char path[512];
    for (int k = 0; k < CHILDREN; ++k)
        if (fork() == 0) {
            tess_gcf *gcf = NULL;
            bool was_cached;
            _exit(tess_gcf_create_cached(&opts, &gcf, &was_cached) != TESS_OK);
        }
    for (int k = 0; k < CHILDREN; ++k) {
        int ended = 1;
        assert_true(wait(&ended) > 0);
        assert_int_equal(ended, 0);
    }
    assert_int_equal(only_file(path), 1);
    tess_gcf_destroy(table(&opts, true));
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static bool tuned(bool degrid, bool is_double, int num_pol, int support,
                  tess_gcf_tuning *found)
{
    const tess_gcf_tuning wanted = {.degrid = degrid,
                                    .is_double = is_double,
                                    .num_pol = num_pol,
                                    .support = support};
    return tess_gcf_tuned(&wanted, found);
}

/* The nearest polarisations, then the nearest width, of the direction and precision;
 * nothing from a file that is damaged, of another program, or names what is not there.
 */
static void strategies_are_kept(void **state)
{
    const tess_gcf_tuning tuning[] = {
        {.num_pol = 1, .support = 8, .strategy = &tess_gcf_tiled, .shape = 3},
        {.num_pol = 1, .support = 64, .strategy = &tess_gcf_factored},
        {.num_pol = 4, .support = 64, .strategy = &tess_gcf_tiled},
        {.is_double = true,
         .num_pol = 1,
         .support = 64,
         .strategy = &tess_gcf_factored}};
    tess_gcf_tuning found = {.support = -1};
    char path[512];
    assert_false(tuned(false, false, 1, 8, &found));
    assert_int_equal(tess_gcf_tuning_write(tuning, 4), TESS_OK);
    assert_int_equal(only_file(path), 1);
    assert_true(tuned(false, false, 1, 16, &found));
    assert_ptr_equal(found.strategy, &tess_gcf_tiled);
    assert_int_equal(found.shape, 3);
    assert_true(tuned(false, false, 2, 500, &found));
    assert_ptr_equal(found.strategy, &tess_gcf_factored);
    assert_int_equal(found.shape, 0);
    assert_true(tuned(false, false, 3, 8, &found));
    assert_ptr_equal(found.strategy, &tess_gcf_tiled);
    assert_true(tuned(false, true, 1, 8, &found));
    assert_ptr_equal(found.strategy, &tess_gcf_factored);
    found.support = -1;
    assert_false(tuned(true, false, 1, 8, &found));
    const char *const bad[] = {"",
                               "tessera strategies 1\n32 8 tiled 1\n",
                               "tessera strategies 2\ngrid 32 1 8 tiled 0\n",
                               "tessera strategies 2\ngrid 32 1 8 fast 0 1\n",
                               "tessera strategies 2\ngrid 32 1 8 gather 0 1\n",
                               "tessera strategies 2\ngird 32 1 8 tiled 0 1\n",
                               "tessera strategies 2\ngrid 32 0 8 tiled 0 1\n",
                               "tessera strategies 2\ngrid 32 1 8 tiled 99 1\n",
                               "tessera strategies 2\ngrid 32 1 -8 tiled 0 1\n"
                               "grid 32 1 8 tiled 0 1"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; ++k) {
        write_text(path, bad[k]);
        assert_false(tuned(false, false, 1, 8, &found));
        assert_int_equal(found.support, -1);
    }
    setenv("TESS_CACHE_DIR", "/proc/none", 1);
    assert_int_equal(tess_gcf_tuning_write(tuning, 4), TESS_ERR_IO);
    setenv("TESS_CACHE_DIR", folder, 1);
}

static void wrong_options(void **state)
{
    tess_gcf_opts opts = options();
    tess_gcf *gcf = NULL;
    bool was_cached;
    opts.cut = 0;
    assert_int_equal(tess_gcf_create_cached(&opts, &gcf, &was_cached), TESS_ERR_USAGE);
    assert_null(gcf);
}

#define IN_FOLDER(test)                                                                \
    cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(strategies_are_kept), IN_FOLDER(kept_and_read),
        IN_FOLDER(other_options_apart), IN_FOLDER(damage_is_mended),
        IN_FOLDER(without_a_folder),    IN_FOLDER(several_at_once),
        IN_FOLDER(wrong_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
