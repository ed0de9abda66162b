/* What a minor loop's object does on ranks beside cleaning: states taken inside of a
 * loop and put back, restoring, masks and what is wrong with them. Images live in host
 * memory or on the device of the tested backend. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "core_backend.h"
#include "rank_tests.h"
#include "slabs.h"
#include "tess_backend.h"
#include "tess_clean.h"
#include "tess_comm.h"
#include "tess_device_comm.h"
#include "tess_mem.h"
#include "tess_row_stats.h"

enum { NX = 60, NY = 48 };

static tess_comm *world;
static int rank, size;
static const tess_place *place;   /* of the images; NULL: host memory */
static const tess_clean_ops *ops; /* of the tested backend; NULL: the cpu's */
static tess_device_comm *links;   /* of an even number of ranks with devices */

typedef struct field {
    tess_clean_images images;
    tess_clean_opts opts;
    double *psf, *residual, *model;
    tess_clean *clean;
} field;

static double psf_at(int64_t dx, int64_t dy)
{
    const double r2 = (double)(dx * dx + dy * dy);
    return exp(-r2 / 8) +
           0.1 * cos(0.7 * (double)dx + 0.4 * (double)dy) * exp(-r2 / 400) -
           0.1 * exp(-r2 / 8);
}

/* Sources of which two are at edges. */
static double sky_at(int64_t x, int64_t y)
{
    static const int source[][2] = {{0, 0}, {59, 20}, {30, 24}, {33, 26}, {12, 40}};
    double sum = 0;
    for (int k = 0; k < 5; ++k)
        sum += (1 + k) * psf_at(x - source[k][0], y - source[k][1]);
    return sum;
}

static void fill(field *f)
{
    for (int64_t r = 0; r < f->images.num_rows; ++r)
        for (int64_t x = 0; x < NX; ++x) {
            const int64_t y = f->images.row_first + r;
            f->psf[r * NX + x] = psf_at(x - NX / 2, y - NY / 2);
            f->residual[r * NX + x] = sky_at(x, y);
            f->model[r * NX + x] = 0;
        }
}

/* The field's rows of an image, where images live, with the values of an array. */
static tess_rows rows_of(const field *f, tess_pixel type, const void *array)
{
    const tess_rows like =
        tess_rows_of(NX, NY, f->images.row_first, f->images.num_rows, type);
    tess_rows rows = tess_rows_borrow(&like, array);
    assert_int_equal(tess_rows_move(&rows, place), TESS_OK);
    return rows;
}

/* Gives the array what has become of its values. */
static void take_rows(tess_rows *rows, double *array)
{
    tess_rows view;
    assert_int_equal(tess_rows_view(rows, &view), TESS_OK);
    if (view.value != array)
        for (int64_t k = 0; k < tess_rows_count(&view); ++k)
            array[k] = tess_rows_pixel(&view, k);
    tess_rows_free(&view);
    tess_rows_free(rows);
}

static tess_status set_psf(tess_clean *clean, int image, const field *f)
{
    tess_rows psf = rows_of(f, TESS_PIXEL_DOUBLE, f->psf);
    const tess_status status = tess_clean_set_psf(clean, image, &psf);
    tess_rows_free(&psf);
    return status;
}

/* A minor loop on the images of several fields. */
static tess_status minor_of(tess_clean *clean, const field *f, int num,
                            tess_clean_report *report)
{
    enum { MOST = 4 };
    tess_rows residual[MOST] = {{0}}, model[MOST] = {{0}};
    for (int k = 0; k < num; ++k) {
        residual[k] = rows_of(&f[k], TESS_PIXEL_DOUBLE, f[k].residual);
        model[k] = rows_of(&f[k], TESS_PIXEL_DOUBLE, f[k].model);
    }
    const tess_status status = tess_clean_minor(clean, residual, model, report);
    for (int k = 0; k < num; ++k) {
        take_rows(&residual[k], f[k].residual);
        take_rows(&model[k], f[k].model);
    }
    return status;
}

static void make(field *f, int slabs, bool multiscale)
{
    *f = (field){.images = {.nx = NX, .ny = NY, .num_images = 1}};
    slab_of(slabs, NY, rank, size, &f->images.row_first, &f->images.num_rows);
    tess_clean_opts_default(&f->opts);
    f->opts.method.ops = ops;
    f->opts.method.links = links;
    f->opts.niter = 2000;
    f->opts.multiscale = multiscale;
    f->opts.beam = (tess_clean_beam){.major_px = 3, .minor_px = 3};
    f->opts.is_double = f->opts.repeatable = true;
    f->opts.auto_mask = 1;
    f->psf = tess_alloc_zero(f->images.num_rows * NX, sizeof(double));
    f->residual = tess_alloc_zero(f->images.num_rows * NX, sizeof(double));
    f->model = tess_alloc_zero(f->images.num_rows * NX, sizeof(double));
    fill(f);
    assert_int_equal(tess_clean_create(world, &f->images, &f->opts, &f->clean),
                     TESS_OK);
    assert_int_equal(set_psf(f->clean, 0, f), TESS_OK);
}

static void drop(field *f)
{
    tess_clean_destroy(f->clean);
    tess_free(f->psf);
    tess_free(f->residual);
    tess_free(f->model);
}

static tess_status minor(field *f, tess_clean_report *report)
{
    return minor_of(f->clean, f, 1, report);
}

typedef struct looking {
    tess_clean *clean;
    tess_clean_state state;
    int left; /* looks until the stop */
} looking;

static tess_status look(void *context, bool *stop)
{
    looking *l = context;
    if (--l->left > 0) return TESS_OK;
    *stop = true;
    return tess_clean_state_get(l->clean, &l->state);
}

/* A loop that was stopped, and went on in another object, ends with the same bits. */
static void test_state(void **state)
{
    for (int stops = 1; stops < 4; ++stops) {
        field whole, first, second;
        tess_clean_report report, expected;
        make(&whole, 0, true);
        make(&first, 0, true);
        make(&second, 0, true);
        assert_int_equal(minor(&whole, &expected), TESS_OK);
        assert_true(expected.loops > stops);
        looking l = {.clean = first.clean, .left = stops};
        tess_clean_set_calls(first.clean,
                             &(tess_clean_calls){.look = look, .context = &l});
        assert_int_equal(minor(&first, &report), TESS_OK);
        assert_int_equal(report.end, TESS_CLEAN_STOPPED);
        for (int64_t k = 0; k < first.images.num_rows * NX; ++k)
            assert_true(first.model[k] == 0);
        assert_int_equal(tess_clean_state_put(second.clean, &l.state), TESS_OK);
        assert_int_equal(minor(&second, &report), TESS_OK);
        assert_int_equal(report.iterations, expected.iterations);
        const size_t bytes = (size_t)(whole.images.num_rows * NX) * sizeof(double);
        assert_memory_equal(second.model, whole.model, bytes);
        assert_memory_equal(second.residual, whole.residual, bytes);
        --l.state.num_bytes;
        assert_int_equal(tess_clean_state_put(second.clean, &l.state), TESS_ERR_INPUT);
        tess_error_clear();
        tess_clean_state_free(&l.state);
        drop(&whole);
        drop(&first);
        drop(&second);
    }
}

/* A wide source, for which large scales are best. */
static void fill_wide(field *f)
{
    for (int64_t k = 0; k < f->images.num_rows * NX; ++k) {
        const int64_t x = k % NX, y = f->images.row_first + k / NX;
        f->residual[k] = 0;
        for (int s = 0; s < 49; ++s)
            f->residual[k] += psf_at(x - 24 - 2 * (s % 7), y - 18 - 2 * (s / 7));
    }
}

/* Linked devices share the scales, and find what the first one finds alone. */
static void test_shared_scales(void **state)
{
    field shared, alone;
    tess_clean_report report, expected;
    make(&shared, 0, true);
    make(&alone, 0, true);
    tess_clean_destroy(alone.clean);
    alone.opts.method.links = NULL;
    assert_int_equal(tess_clean_create(world, &alone.images, &alone.opts, &alone.clean),
                     TESS_OK);
    assert_int_equal(set_psf(alone.clean, 0, &alone), TESS_OK);
    fill_wide(&alone);
    fill_wide(&shared);
    assert_int_equal(minor(&alone, &expected), TESS_OK);
    assert_int_equal(minor(&shared, &report), TESS_OK);
    assert_true(expected.scale_iterations[1] + expected.scale_iterations[3] > 0);
    assert_memory_equal(report.scale_iterations, expected.scale_iterations,
                        sizeof expected.scale_iterations);
    const size_t bytes = (size_t)(alone.images.num_rows * NX) * sizeof(double);
    assert_memory_equal(shared.model, alone.model, bytes);
    assert_memory_equal(shared.residual, alone.residual, bytes);
    drop(&shared);
    drop(&alone);
}

/* Two channels whose components follow a straight line in frequency. */
enum { CHANNELS = 2 };
static const double freq_hz[CHANNELS] = {1e9, 1.2e9}, weights[CHANNELS] = {1, 3};

typedef struct joined {
    field channel[CHANNELS]; /* arrays; the first has the object */
} joined;

static void make_joined(joined *j, int slabs)
{
    for (int c = 0; c < CHANNELS; ++c) {
        make(&j->channel[c], slabs, false);
        for (int64_t k = 0; c == 1 && k < j->channel[c].images.num_rows * NX; ++k)
            j->channel[c].residual[k] *= k % NX < 30 ? 0.7 : 1.3;
        tess_clean_destroy(j->channel[c].clean);
        j->channel[c].clean = NULL;
    }
    field *first = &j->channel[0];
    tess_clean_images images = first->images;
    images.num_images = CHANNELS;
    images.weight = weights;
    images.join = (tess_clean_join){
        .spectrum = TESS_CLEAN_POLYNOMIAL, .num_terms = 2, .freq_hz = freq_hz};
    first->opts.mgain = 0.5;
    assert_int_equal(tess_clean_create(world, &images, &first->opts, &first->clean),
                     TESS_OK);
    assert_int_equal(tess_clean_keep_components(first->clean), TESS_OK);
    for (int c = 0; c < CHANNELS; ++c)
        assert_int_equal(set_psf(first->clean, c, &j->channel[c]), TESS_OK);
}

static void drop_joined(joined *j)
{
    for (int c = 0; c < CHANNELS; ++c)
        drop(&j->channel[c]);
}

static void minor_joined(joined *j, tess_clean_report *report)
{
    assert_int_equal(minor_of(j->channel[0].clean, j->channel, CHANNELS, report),
                     TESS_OK);
}

/* Components of this rank's rows make up its models. */
static void check_components(const joined *j)
{
    const field *first = &j->channel[0];
    const int64_t pixels = first->images.num_rows * NX;
    const int64_t begin = first->images.row_first * NX;
    const double nu0 = tess_clean_reference_hz(first->clean);
    tess_clean_list list;
    int64_t used = 0;
    assert_true(fabs(nu0 - 1.15e9) < 1);
    assert_int_equal(tess_clean_components(first->clean, 0, 0, &list), TESS_OK);
    assert_int_equal(list.num_terms, 2);
    for (int64_t k = 0; k < list.count; ++k)
        for (int c = 0; c < CHANNELS; ++c) {
            const double flux =
                list.term[2 * k] + list.term[2 * k + 1] * (freq_hz[c] / nu0 - 1);
            assert_true(list.index[k] >= begin && list.index[k] < begin + pixels);
            assert_true(fabs(j->channel[c].model[list.index[k] - begin] - flux) <
                        1e-12);
        }
    for (int64_t k = 0; k < pixels; ++k)
        used += first->model[k] != 0;
    assert_int_equal(used, list.count);
    tess_clean_list_free(&list);
}

/* Those of a state that was put belong to them. */
static void test_components(void **state)
{
    joined one, other;
    tess_clean_report report;
    tess_clean_state between;
    make_joined(&one, 1);
    make_joined(&other, 1);
    minor_joined(&one, &report);
    assert_true(report.iterations > 5);
    check_components(&one);
    assert_int_equal(tess_clean_state_get(one.channel[0].clean, &between), TESS_OK);
    assert_int_equal(tess_clean_state_put(other.channel[0].clean, &between), TESS_OK);
    for (int c = 0; c < CHANNELS; ++c) {
        const size_t bytes =
            (size_t)(one.channel[c].images.num_rows * NX) * sizeof(double);
        if (bytes == 0) continue;
        memcpy(other.channel[c].model, one.channel[c].model, bytes);
        memcpy(other.channel[c].residual, one.channel[c].residual, bytes);
    }
    minor_joined(&other, &report);
    assert_true(report.iterations > 5);
    check_components(&other);
    --between.num_bytes;
    assert_int_equal(tess_clean_state_put(other.channel[0].clean, &between),
                     TESS_ERR_INPUT);
    tess_error_clear();
    tess_clean_state_free(&between);
    drop_joined(&one);
    drop_joined(&other);
}

/* Channels of one frequency tell no further term of a spectrum. */
static void test_same_frequencies(void **state)
{
    enum { SAME = 4 };
    static const double pairs_hz[SAME] = {1e9, 1e9, 1.2e9, 1.2e9};
    field f[SAME];
    tess_clean_report report;
    for (int c = 0; c < SAME; ++c) {
        make(&f[c], 0, true);
        tess_clean_destroy(f[c].clean);
        f[c].clean = NULL;
    }
    tess_clean_images images = f[0].images;
    images.num_images = SAME;
    images.join = (tess_clean_join){
        .spectrum = TESS_CLEAN_POLYNOMIAL, .num_terms = 3, .freq_hz = pairs_hz};
    assert_int_equal(tess_clean_create(world, &images, &f[0].opts, &f[0].clean),
                     TESS_OK);
    for (int c = 0; c < SAME; ++c)
        assert_int_equal(set_psf(f[0].clean, c, &f[c]), TESS_OK);
    assert_int_equal(minor_of(f[0].clean, f, SAME, &report), TESS_OK);
    assert_true(report.peak_end < report.peak_start);
    for (int64_t k = 0; k < images.num_rows * NX; ++k)
        for (int c = 0; c < SAME; ++c)
            assert_true(fabs(f[c].model[k] - f[0].model[k]) < 1e-9);
    for (int c = 0; c < SAME; ++c)
        drop(&f[c]);
}

/* What cannot be joined is refused. */
static void test_joins(void **state)
{
    field f;
    tess_clean *clean = NULL;
    make(&f, 1, false);
    tess_clean_list list;
    assert_int_equal(tess_clean_components(f.clean, 0, 0, &list), TESS_ERR_USAGE);
    const bool none[2] = {false, false};
    const double wrong[CHANNELS] = {1e9, 0};
    const tess_clean_join joins[] = {
        {.num_pol = 3},
        {.num_pol = 2, .linked = none},
        {.num_cleaned = 3},
        {.num_cleaned = 1},
        {.spectrum = TESS_CLEAN_POLYNOMIAL, .num_terms = 3, .freq_hz = freq_hz},
        {.spectrum = TESS_CLEAN_POLYNOMIAL, .num_terms = 0, .freq_hz = freq_hz},
        {.spectrum = TESS_CLEAN_POLYNOMIAL, .num_terms = 2},
        {.spectrum = TESS_CLEAN_LOG_POLYNOMIAL, .num_terms = 2, .freq_hz = wrong}};
    for (size_t k = 0; k < sizeof joins / sizeof *joins; ++k) {
        tess_clean_images images = f.images;
        images.num_images = CHANNELS;
        images.join = joins[k];
        assert_int_equal(tess_clean_create(world, &images, &f.opts, &clean),
                         TESS_ERR_USAGE);
        tess_error_clear();
    }
    tess_clean_images images = f.images;
    const double no_weight[CHANNELS] = {0, 0};
    images.num_images = CHANNELS;
    images.weight = no_weight;
    assert_int_equal(tess_clean_create(world, &images, &f.opts, &clean),
                     TESS_ERR_INPUT);
    tess_error_clear();
    drop(&f);
}

/* A residual of which a component is a negative PSF grows without end. */
static void test_divergence(void **state)
{
    field f;
    tess_clean_report report;
    make(&f, 1, false);
    for (int64_t k = 0; k < f.images.num_rows * NX; ++k) {
        const int64_t x = k % NX - NX / 2, y = k / NX + f.images.row_first - NY / 2;
        f.psf[k] = x == 0 && y == 0 ? 0.05 : psf_at(x, y);
    }
    assert_int_equal(set_psf(f.clean, 0, &f), TESS_OK);
    assert_int_equal(minor(&f, &report), TESS_OK);
    assert_int_equal(report.end, TESS_CLEAN_DIVERGED);
    assert_false(report.again);
    for (int64_t k = 0; k < f.images.num_rows * NX; ++k) {
        assert_true(f.model[k] == 0);
        assert_true(f.residual[k] == sky_at(k % NX, f.images.row_first + k / NX));
    }
    drop(&f);
}

/* A minor loop of at most so many iterations, and another one after it. */
static void test_most(void **state)
{
    field f;
    tess_clean_report report;
    tess_clean *clean = NULL;
    make(&f, 0, false);
    f.opts.method.most = 7;
    f.opts.auto_mask = 0;
    f.opts.niter = 10;
    assert_int_equal(tess_clean_create(world, &f.images, &f.opts, &clean), TESS_OK);
    assert_int_equal(set_psf(clean, 0, &f), TESS_OK);
    assert_int_equal(minor_of(clean, &f, 1, &report), TESS_OK);
    assert_int_equal(report.iterations, 7);
    assert_int_equal(report.end, TESS_CLEAN_MOST);
    assert_true(report.again);
    assert_int_equal(minor_of(clean, &f, 1, &report), TESS_OK);
    assert_int_equal(report.iterations, 3); /* of 10 in all */
    assert_int_equal(report.end, TESS_CLEAN_NITER);
    assert_false(report.again);
    tess_clean_destroy(clean);
    drop(&f);
}

static void test_restore(void **state)
{
    const tess_clean_beam beam = {4, 2.5, 0.6};
    field f;
    make(&f, 1, false);
    double *image = tess_alloc_zero(f.images.num_rows * NX, sizeof *image);
    for (int64_t k = 0; k < f.images.num_rows * NX; ++k) {
        const int64_t x = k % NX, y = k / NX + f.images.row_first;
        f.model[k] = (x == 20 && y == 10 ? 2 : 0) + (x == 59 && y == 47 ? 1 : 0);
        f.residual[k] = x == 3 && y == 3 ? NAN : 0.25;
    }
    tess_rows model = rows_of(&f, TESS_PIXEL_DOUBLE, f.model);
    tess_rows residual = rows_of(&f, TESS_PIXEL_DOUBLE, f.residual);
    tess_rows restored = rows_of(&f, TESS_PIXEL_DOUBLE, image);
    assert_int_equal(
        tess_clean_restore(world, &f.opts, &beam, &model, &residual, &restored),
        TESS_OK);
    /* a part of the columns is not an image */
    restored.num_cols = NX - 1;
    assert_int_equal(
        tess_clean_restore(world, &f.opts, &beam, &model, &residual, &restored),
        TESS_ERR_USAGE);
    tess_error_clear();
    restored.num_cols = NX;
    take_rows(&restored, image);
    tess_rows_free(&model);
    tess_rows_free(&residual);
    for (int64_t k = 0; k < f.images.num_rows * NX; ++k) {
        const int64_t x = k % NX, y = k / NX + f.images.row_first;
        double sum = 0.25;
        for (int s = 0; s < 2; ++s) { /* columns grow to the West: East is −x */
            const double east = (double)((s ? 59 : 20) - x);
            const double north = (double)(y - (s ? 47 : 10));
            const double along = (east * sin(0.6) + north * cos(0.6)) / 4;
            const double across = (east * cos(0.6) - north * sin(0.6)) / 2.5;
            sum += (s ? 1 : 2) * exp(-4 * log(2) * (along * along + across * across));
        }
        if (x == 3 && y == 3)
            assert_true(isnan(image[k]));
        else
            assert_true(fabs(image[k] - sum) < 1e-13);
    }
    tess_free(image);
    drop(&f);
}

/* Pixels of a part of an image are told by their places in all of it. */
static void test_statistics(void **state)
{
    enum { FIRST = 5, COLUMNS = 20 };
    field f;
    tess_row_stats stats;
    make(&f, 1, false);
    tess_rows like =
        tess_rows_of(NX, NY, f.images.row_first, f.images.num_rows, TESS_PIXEL_SINGLE);
    like.col_first = FIRST;
    like.num_cols = COLUMNS;
    float *pixel = tess_alloc_zero(tess_rows_count(&like), sizeof *pixel);
    for (int64_t k = 0; k < tess_rows_count(&like); ++k)
        pixel[k] = (float)((like.row_first + k / COLUMNS) * NX + FIRST + k % COLUMNS);
    tess_rows rows = tess_rows_borrow(&like, pixel);
    assert_int_equal(tess_rows_move(&rows, place), TESS_OK);
    assert_int_equal(tess_row_stats_measure(world, &rows, 2, false, &stats), TESS_OK);
    assert_true(stats.count == NY * COLUMNS);
    assert_true(stats.least == FIRST && stats.least_at == stats.least);
    assert_true(stats.most == (NY - 1) * NX + FIRST + COLUMNS - 1);
    assert_true(stats.most_at == stats.most);
    rows.type = TESS_PIXEL_MASK;
    assert_int_equal(tess_row_stats_measure(world, &rows, 2, false, &stats),
                     TESS_ERR_INTERNAL);
    tess_error_clear();
    tess_rows_free(&rows);
    tess_free(pixel);
    drop(&f);
}

static tess_status set_mask(const field *f, const uint8_t *array)
{
    tess_rows mask = rows_of(f, TESS_PIXEL_MASK, array);
    const tess_status status = tess_clean_set_mask(f->clean, &mask);
    tess_rows_free(&mask);
    return status;
}

/* Rows of another part of the image are not those that are cleaned. */
static void test_other_rows(void **state)
{
    field f;
    tess_clean_report report;
    make(&f, 1, false);
    tess_rows rows = rows_of(&f, TESS_PIXEL_DOUBLE, f.residual);
    tess_rows part = rows;
    part.col_first = 1;
    part.num_cols = NX - 1;
    assert_int_equal(tess_clean_set_psf(f.clean, 0, &part), TESS_ERR_USAGE);
    tess_error_clear();
    assert_int_equal(tess_clean_minor(f.clean, &part, &rows, &report), TESS_ERR_USAGE);
    tess_error_clear();
    assert_int_equal(tess_clean_minor(f.clean, &rows, &part, &report), TESS_ERR_USAGE);
    tess_error_clear();
    tess_rows_free(&rows);
    drop(&f);
}

static void test_masks(void **state)
{
    field f;
    tess_clean_report report;
    make(&f, 1, false);
    uint8_t *mask = tess_alloc_zero(f.images.num_rows * NX, 1);
    assert_int_equal(set_mask(&f, mask), TESS_ERR_INPUT);
    tess_error_clear();
    for (int64_t k = 0; k < f.images.num_rows * NX; ++k)
        mask[k] = k / NX + f.images.row_first == 24;
    assert_int_equal(set_mask(&f, mask), TESS_OK);
    assert_int_equal(minor(&f, &report), TESS_OK);
    assert_true(report.iterations > 0 && report.flux_jy > 0);
    for (int64_t k = 0; k < f.images.num_rows * NX; ++k)
        assert_true(mask[k] || f.model[k] == 0);
    tess_free(mask);
    drop(&f);
}

static void test_options(void **state)
{
    field f;
    make(&f, 0, false);
    tess_clean *clean = NULL;
    tess_clean_opts bad = f.opts;
    bad.gain = 0;
    assert_int_equal(tess_clean_create(world, &f.images, &bad, &clean), TESS_ERR_USAGE);
    bad = f.opts;
    bad.threshold_jy = -1;
    assert_int_equal(tess_clean_create(world, &f.images, &bad, &clean), TESS_ERR_USAGE);
    bad = f.opts;
    bad.multiscale = true;
    bad.scale_px = (const double[]){0, 8, 8};
    bad.num_scales = 3;
    assert_int_equal(tess_clean_create(world, &f.images, &bad, &clean), TESS_ERR_USAGE);
    assert_null(clean);
    tess_error_clear();
    drop(&f);
}

/* The mean of channels has a spectrum of its own. Roots and squares have none: each of
 * two scales then has images of its own. */
static void test_bytes(void **state)
{
    enum { NUM_IMAGES = 8 };
    const double rows = 8.0 * NX * NY;
    tess_clean_images images = {
        .nx = NX, .ny = NY, .num_rows = NY, .num_images = NUM_IMAGES};
    tess_clean_opts opts;
    tess_clean_need mean, terms, squares, roots;
    tess_clean_opts_default(&opts);
    opts.multiscale = opts.is_double = true;
    opts.beam = (tess_clean_beam){.major_px = 3, .minor_px = 3};
    tess_clean_bytes(&images, &opts, 1, &mean);
    images.join.spectrum = TESS_CLEAN_POLYNOMIAL;
    images.join.num_terms = 2;
    tess_clean_bytes(&images, &opts, 1, &terms);
    images.join = (tess_clean_join){.squared = true};
    tess_clean_bytes(&images, &opts, 1, &squares);
    images.join = (tess_clean_join){.num_pol = 2};
    tess_clean_bytes(&images, &opts, 1, &roots);
    /* less the mean's spectrum, which is padded to 3 rows at most */
    assert_true(squares.rank_bytes - mean.rank_bytes > (NUM_IMAGES - 4) * rows);
    assert_true(squares.rank_bytes - mean.rank_bytes < NUM_IMAGES * rows);
    /* two terms stand for eight images, and have fewer spectra, too */
    assert_true(mean.rank_bytes - terms.rank_bytes > (NUM_IMAGES - 2) * rows);
    assert_true(roots.rank_bytes == squares.rank_bytes);
}

/* ---- PSFs of places ---- */

/* The PSF of the left or the right half of an image. */
static double psf_of(int half, int64_t dx, int64_t dy)
{
    const double r2 = (double)(dx * dx + dy * dy), sign = half ? -1 : 1;
    return 0.8 * exp(-r2 / 8) +
           0.1 * (1 + sign + cos(0.7 * (double)dx + sign * 0.4 * (double)dy)) *
               exp(-r2 / 60) +
           0.1 * (1 - sign) * exp(-r2 / 4);
}

static int half_of(void *context, int64_t index)
{
    (void)context;
    return index % NX >= NX / 2;
}

static void fill_halves(field *f, int half)
{
    static const int source[][2] = {{20, 20}, {28, 31}, {33, 26}, {44, 12}};
    for (int64_t k = 0; k < f->images.num_rows * NX; ++k) {
        const int64_t x = k % NX, y = f->images.row_first + k / NX;
        f->psf[k] = psf_of(half, x - NX / 2, y - NY / 2);
        f->residual[k] = 0;
        for (int s = 0; s < 4; ++s)
            f->residual[k] += (1 + s) * psf_of(half_of(NULL, source[s][0]),
                                               x - source[s][0], y - source[s][1]);
    }
}

/* Components are subtracted with the PSFs of their places, so that minor loops alone
 * leave nothing; also by the backend of processors in the place of another one. */
static void test_places(void **state)
{
    for (int multiscale = 0; multiscale < 2; ++multiscale) {
        static const double LEAST = 2e-2;
        field f;
        tess_clean_report report;
        make(&f, 0, multiscale);
        tess_clean_destroy(f.clean);
        f.images.places =
            (tess_clean_places){.num = 2, .of = half_of, .have_psfs = true};
        f.opts.auto_mask = 0;
        f.opts.mgain = 1;
        f.opts.gain = 0.3;
        f.opts.threshold_jy = LEAST;
        assert_int_equal(tess_clean_create(world, &f.images, &f.opts, &f.clean),
                         TESS_OK);
        for (int half = 0; half < 2; ++half) {
            fill_halves(&f, half);
            tess_rows psf = rows_of(&f, TESS_PIXEL_DOUBLE, f.psf);
            assert_int_equal(tess_clean_set_psf_of(f.clean, 0, half, &psf), TESS_OK);
            tess_rows_free(&psf);
        }
        assert_int_equal(minor(&f, &report), TESS_OK);
        assert_int_equal(report.end, TESS_CLEAN_FINAL_THRESHOLD);
        for (int64_t k = 0; k < f.images.num_rows * NX; ++k)
            assert_true(fabs(f.residual[k]) < 3 * LEAST);
        drop(&f);
    }
}

/* ---- borders between places with gains of their own ---- */

static const double LIKENESS[] = {1, 0.2, 0.2, 1};
static const int BESIDE[][3] = {{28, 24, 2}, {31, 25, 3}, {12, 12, 1}, {44, 36, 1}};

static tess_status place_halves(void *context, int64_t row_first, int64_t num_rows,
                                int threads, int16_t *place)
{
    (void)context, (void)row_first, (void)threads;
    for (int64_t k = 0; k < num_rows * NX; ++k)
        place[k] = (int16_t)half_of(NULL, k);
    return TESS_OK;
}

/* What both halves see of a source in one of them. */
static double seen_of(const int *source, int64_t x, int64_t y)
{
    const int own = half_of(NULL, source[0]), other = half_of(NULL, x);
    return source[2] * psf_of(0, x - source[0], y - source[1]) *
           LIKENESS[2 * own + other];
}

static double flux_at(int64_t x, int64_t y)
{
    double sum = 0;
    for (int s = 0; s < 4; ++s)
        if (BESIDE[s][0] == x && BESIDE[s][1] == y) sum += BESIDE[s][2];
    return sum;
}

/* Two sources that are closer than a beam, but on two sides of a border: the minor loop
 * alone finds both, and nothing else. */
static void test_borders(void **state)
{
    for (int multiscale = 0; multiscale < 2; ++multiscale) {
        field f;
        tess_clean_report report;
        make(&f, 0, multiscale);
        tess_clean_destroy(f.clean);
        f.images.places = (tess_clean_places){.num = 2,
                                              .of = half_of,
                                              .have_gains = true,
                                              .likeness = LIKENESS,
                                              .rows = place_halves};
        f.opts.auto_mask = 0;
        f.opts.mgain = 1;
        f.opts.niter = 20000;
        f.opts.threshold_jy = 1e-2;
        assert_int_equal(tess_clean_create(world, &f.images, &f.opts, &f.clean),
                         TESS_OK);
        for (int64_t k = 0; k < f.images.num_rows * NX; ++k) {
            const int64_t x = k % NX, y = f.images.row_first + k / NX;
            f.psf[k] = psf_of(0, x - NX / 2, y - NY / 2);
            f.residual[k] = 0;
            for (int s = 0; s < 4; ++s)
                f.residual[k] += seen_of(BESIDE[s], x, y);
        }
        assert_int_equal(set_psf(f.clean, 0, &f), TESS_OK);
        assert_int_equal(minor(&f, &report), TESS_OK);
        assert_int_equal(report.end, TESS_CLEAN_FINAL_THRESHOLD);
        for (int64_t k = 0; k < f.images.num_rows * NX; ++k) {
            const double flux = flux_at(k % NX, f.images.row_first + k / NX);
            assert_true(fabs(f.model[k] - flux) < 0.05);
            assert_true(fabs(f.residual[k]) < 3 * f.opts.threshold_jy);
        }
        drop(&f);
    }
}

/* ---- the choice of scales ---- */

enum { NUM_SCALES = 3 };
static const double SCALES[NUM_SCALES] = {0, 8, 16};

/* The variance of the Gaussian of a scale, (3α/16)², and that of the PSF. */
static double variance_of(int scale)
{
    const double sigma = SCALES[scale] * 3 / 16;
    return sigma * sigma;
}
static const double OF_PSF = 4;

/* A Gaussian of 1 Jy as wide as a scale, seen by a Gaussian PSF. */
static void fill_gaussian(field *f, int scale)
{
    const double variance = OF_PSF + variance_of(scale);
    for (int64_t k = 0; k < f->images.num_rows * NX; ++k) {
        const int64_t dx = k % NX - NX / 2, dy = f->images.row_first + k / NX - NY / 2;
        const double r2 = (double)(dx * dx + dy * dy);
        f->psf[k] = exp(-r2 / (2 * OF_PSF));
        f->residual[k] = OF_PSF / variance * exp(-r2 / (2 * variance));
    }
}

/* By Schwarz's inequality (R ∗ K)² / (PSF ∗ K ∗ K), the K of a source is the one that
 * fits it best. Its peak is √(PSF ∗ K ∗ K)(0) = √(p / (p + 2 v)) for variances p of the
 * PSF and v of K. Pixels and the end of K change Gaussians by 1e-3. */
static void check_fit(int scale, int num_images, tess_clean_spectrum spectrum)
{
    static const double freq_hz[] = {1e9, 1.1e9};
    field f[2];
    tess_clean_report report;
    for (int k = 0; k < 2; ++k) {
        make(&f[k], 0, true);
        fill_gaussian(&f[k], scale);
    }
    tess_clean_destroy(f[0].clean);
    f[0].images.num_images = num_images;
    f[0].images.join =
        (tess_clean_join){.spectrum = spectrum, .num_terms = 1, .freq_hz = freq_hz};
    f[0].opts.scale_px = SCALES;
    f[0].opts.num_scales = NUM_SCALES;
    f[0].opts.shape = TESS_CLEAN_GAUSSIAN;
    f[0].opts.method.scale_rule = TESS_CLEAN_BY_FIT;
    f[0].opts.niter = 1;
    f[0].opts.auto_mask = 0;
    assert_int_equal(tess_clean_create(world, &f[0].images, &f[0].opts, &f[0].clean),
                     TESS_OK);
    for (int k = 0; k < num_images; ++k)
        assert_int_equal(set_psf(f[0].clean, k, &f[k]), TESS_OK);
    assert_int_equal(minor_of(f[0].clean, f, num_images, &report), TESS_OK);
    for (int s = 0; s < NUM_SCALES; ++s)
        assert_int_equal(report.scale_iterations[s], s == scale);
    const double peak = sqrt(OF_PSF / (OF_PSF + 2 * variance_of(scale)));
    assert_true(fabs(report.peak_start / peak - 1) < 1e-2);
    drop(&f[0]);
    drop(&f[1]);
}

/* Images are alone, joined as they are, and joined as sums. */
static void test_fit(void **state)
{
    for (int s = 0; s < NUM_SCALES; ++s) {
        check_fit(s, 1, TESS_CLEAN_EACH_CHANNEL);
        check_fit(s, 2, TESS_CLEAN_EACH_CHANNEL);
        check_fit(s, 2, TESS_CLEAN_POLYNOMIAL);
    }
}

/* Images live where the tested backend computes. */
static bool find_place(void)
{
    static const int no_node[] = {-1, -1, -1, -1}; /* of most ranks of a test */
    const tess_backend *backend;
    if (tess_backend_find(test_backend(), &backend) != TESS_OK) return false;
    if (backend->start && backend->start(no_node, rank, size) != TESS_OK) return false;
    place = backend->place;
    ops = backend->clean;
    return true;
}

/* Images of two and four ranks go from device to device, in several rounds. Those of
 * three pass through host memory. */
static tess_status link_devices(void)
{
    const tess_device_comm_opts few = {.exchange_bytes = 5000 * size,
                                       .allowed = TESS_SUM_BY_PEERS | TESS_SUM_BY_NCCL};
    return place && size % 2 == 0 ? tess_device_comm_create(world, &few, &links)
                                  : TESS_OK;
}

int main(int argc, char **argv)
{
    if (tess_comm_start(&argc, &argv, &world) != TESS_OK) return 1;
    rank = tess_comm_rank(world);
    size = tess_comm_size(world);
    if (!find_place() || link_devices() != TESS_OK) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_state),         cmocka_unit_test(test_divergence),
        cmocka_unit_test(test_most),          cmocka_unit_test(test_components),
        cmocka_unit_test(test_joins),         cmocka_unit_test(test_restore),
        cmocka_unit_test(test_masks),         cmocka_unit_test(test_options),
        cmocka_unit_test(test_bytes),         cmocka_unit_test(test_same_frequencies),
        cmocka_unit_test(test_other_rows),    cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_places),        cmocka_unit_test(test_borders),
        cmocka_unit_test(test_shared_scales), cmocka_unit_test(test_fit)};
    TEST_ON_RANKS(world, tests);
    tess_device_comm_destroy(links);
    tess_comm_finish(world);
    return 0;
}
