/* Automatic masks of several thresholds, against the same steps done plainly on whole
 * images, for several divisions of rows among ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rank_tests.h"
#include "slabs.h"
#include "tess_comm.h"
#include "tess_mem.h"
#include "tess_multithresh.h"

enum { NX = 80, NY = 60, ALL = NX * NY };

static const double LEVEL = 0.2;
static const tess_clean_beam beam = {4, 3, 0.5};

static tess_comm *world;
static int rank, size;

/* ---- the images ---- */

static bool is_on_u(int x, int y)
{
    return (x == 10 || x == 20) ? y >= 5 && y < 50 : y == 49 && x > 10 && x < 20;
}

/* Noise, three sources with faint rims, a letter U of faint lines, a hole and specks.
 */
static double sky_at(int x, int y, double share)
{
    static const int source[][2] = {{40, 30}, {62, 14}, {70, 45}};
    double value = 1e-3 * ((double)((x * 7919 + y * 104729) % 1009) / 504.5 - 1) + 2e-4;
    for (int k = 0; k < 3; ++k) {
        const double r2 = (double)((x - source[k][0]) * (x - source[k][0]) +
                                   (y - source[k][1]) * (y - source[k][1]));
        value += share * 0.04 * (exp(-r2 / 6) + 0.1 * exp(-r2 / 60));
    }
    if (is_on_u(x, y)) value += 0.02;
    if ((x == 30 && y == 50) || (x == 31 && y == 51)) value += 0.03;
    if (abs(x - 50) < 3 && abs(y - 52) < 2) value -= 0.03;
    return value;
}

static void fill(double share, double *all)
{
    for (int k = 0; k < ALL; ++k)
        all[k] = sky_at(k % NX, k / NX, share);
    all[3] = (double)NAN;
}

/* ---- the same steps, plainly ---- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return count % 2 ? values[count / 2]
                     : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

/* Of pixels that are numbers and, with a mask, outside of it. */
static void noise_of(const double *value, const uint8_t *mask, double *median,
                     double *sigma)
{
    static double kept[ALL];
    int count = 0;
    for (int k = 0; k < ALL; ++k)
        if (!isnan(value[k]) && !(mask && mask[k])) kept[count++] = value[k];
    *median = median_of(kept, count);
    for (int k = 0; k < count; ++k)
        kept[k] = fabs(kept[k] - *median);
    *sigma = 1.482602218505602 * median_of(kept, count);
}

static int flood(const uint8_t *mask, int start, uint8_t *region)
{
    static int stack[4 * ALL];
    int depth = 0, count = 0;
    memset(region, 0, ALL);
    stack[depth++] = start;
    while (depth > 0) {
        const int k = stack[--depth], x = k % NX, y = k / NX;
        if (!mask[k] || region[k]) continue;
        region[k] = 1;
        ++count;
        if (x > 0) stack[depth++] = k - 1;
        if (x < NX - 1) stack[depth++] = k + 1;
        if (y > 0) stack[depth++] = k - NX;
        if (y < NY - 1) stack[depth++] = k + NX;
    }
    return count;
}

static void prune(uint8_t *mask, double least)
{
    static uint8_t region[ALL], seen[ALL];
    memset(seen, 0, ALL);
    for (int k = 0; k < ALL; ++k) {
        if (!mask[k] || seen[k]) continue;
        const bool is_small = flood(mask, k, region) < least;
        for (int i = 0; i < ALL; ++i) {
            seen[i] |= region[i];
            if (region[i] && is_small) mask[i] = 0;
        }
    }
}

static double beam_at(int east, int north)
{
    const double along =
        (east * sin(beam.angle_rad) + north * cos(beam.angle_rad)) / beam.major_px;
    const double across =
        (east * cos(beam.angle_rad) - north * sin(beam.angle_rad)) / beam.minor_px;
    return exp(-4 * log(2) * (along * along + across * across));
}

/* The beam is 0 beyond REACH pixels, to 1e-15. */
static void smooth(uint8_t *mask)
{
    enum { REACH = 18 };
    static double sum[ALL];
    double largest = 0;
    memset(sum, 0, sizeof sum);
    for (int dy = -REACH; dy <= REACH; ++dy)
        for (int dx = -REACH; dx <= REACH; ++dx) {
            const double value = beam_at(-dx, dy);
            for (int k = 0; k < ALL; ++k) {
                const int x = k % NX + dx, y = k / NX + dy;
                if (mask[k] && x >= 0 && x < NX && y >= 0 && y < NY)
                    sum[y * NX + x] += value;
            }
        }
    for (int k = 0; k < ALL; ++k)
        largest = fmax(largest, sum[k]);
    for (int k = 0; k < ALL; ++k)
        mask[k] = largest > 0 && sum[k] > 0.01 * largest;
}

static void grow(uint8_t *mask, const uint8_t *within, int64_t steps)
{
    static uint8_t before[ALL];
    for (int k = 0; k < ALL; ++k)
        mask[k] = mask[k] && within[k];
    for (int64_t s = 0; s < steps; ++s) {
        memcpy(before, mask, ALL);
        for (int k = 0; k < ALL; ++k) {
            const int x = k % NX, y = k / NX;
            mask[k] = before[k] ||
                      (within[k] &&
                       ((x > 0 && before[k - 1]) || (x < NX - 1 && before[k + 1]) ||
                        (y > 0 && before[k - NX]) || (y < NY - 1 && before[k + NX])));
        }
    }
}

static void set_above(const double *value, double threshold, uint8_t *mask)
{
    for (int k = 0; k < ALL; ++k)
        mask[k] = value[k] > threshold;
}

static void add(const double *value, const uint8_t *found, uint8_t *mask)
{
    for (int k = 0; k < ALL; ++k)
        mask[k] = mask[k] || (found[k] && !isnan(value[k]));
}

/* One round on the whole image. */
static void plain_round(const double *value, const tess_multithresh_opts *opts,
                        bool is_first, uint8_t *mask)
{
    static uint8_t found[ALL], grown[ALL], within[ALL];
    const double least =
        opts->min_beam_frac * acos(-1) / (4 * log(2)) * beam.major_px * beam.minor_px;
    double median, sigma, peak = 0;
    noise_of(value, opts->fast_noise || is_first ? NULL : mask, &median, &sigma);
    for (int k = 0; k < ALL; ++k)
        if (fabs(value[k]) > peak) peak = fabs(value[k]);
    const double sidelobe = opts->sidelobe * LEVEL * peak;
    set_above(value, median + fmax(sidelobe, opts->noise * sigma), found);
    prune(found, least);
    smooth(found);
    memcpy(grown, mask, ALL);
    if (!is_first) {
        set_above(value, median + fmax(sidelobe, opts->low_noise * sigma), within);
        grow(grown, within, opts->grow_iterations);
        prune(grown, least);
        smooth(grown);
    }
    add(value, found, mask);
    add(value, grown, mask);
    for (int k = 0; k < ALL; ++k)
        found[k] = value[k] < median - fmax(sidelobe, opts->negative * sigma);
    smooth(found);
    if (opts->negative > 0) add(value, found, mask);
}

/* ---- on ranks ---- */

static tess_multithresh *make(int kind, const tess_multithresh_opts *opts,
                              tess_multithresh_image *image)
{
    tess_multithresh *mask = NULL;
    *image = (tess_multithresh_image){
        .nx = NX, .ny = NY, .beam = beam, .sidelobe_level = LEVEL, .threads = 1};
    slab_of(kind, NY, rank, size, &image->row_first, &image->num_rows);
    assert_int_equal(tess_multithresh_create(world, image, opts, &mask), TESS_OK);
    return mask;
}

static void run(tess_multithresh *mask, const tess_multithresh_image *image,
                const double *all, tess_multithresh_report *report)
{
    const tess_rows like =
        tess_rows_of(NX, NY, image->row_first, image->num_rows, TESS_PIXEL_DOUBLE);
    const tess_rows rows = tess_rows_borrow(&like, all + image->row_first * NX);
    assert_int_equal(tess_multithresh_update(mask, &rows, NULL, false, report),
                     TESS_OK);
}

static void assert_same(const tess_multithresh *mask,
                        const tess_multithresh_image *image, const uint8_t *all)
{
    const uint8_t *pixel = tess_multithresh_pixels(mask);
    for (int64_t k = 0; k < image->num_rows * NX; ++k)
        assert_int_equal(pixel[k], all[image->row_first * NX + k]);
}

/* A mask that goes on from the state of another. */
static tess_multithresh *resumed(const tess_multithresh *from,
                                 const tess_multithresh_image *image,
                                 const tess_multithresh_opts *opts)
{
    tess_multithresh *mask = NULL;
    const int64_t count = image->num_rows * NX;
    uint32_t *state = tess_alloc_zero(count, sizeof *state);
    assert_non_null(state);
    for (int64_t k = 0; k < count; ++k)
        state[k] = (uint32_t)tess_multithresh_state(from, k);
    assert_int_equal(tess_multithresh_create(world, image, opts, &mask), TESS_OK);
    tess_multithresh_resume(mask, tess_multithresh_rounds(from), state);
    tess_free(state);
    return mask;
}

static void check(const tess_multithresh_opts *opts)
{
    static double first[ALL], second[ALL];
    static uint8_t plain[2][ALL];
    fill(1, first);
    fill(0.3, second);
    memset(plain, 0, sizeof plain);
    plain_round(first, opts, true, plain[0]);
    memcpy(plain[1], plain[0], ALL);
    plain_round(second, opts, false, plain[1]);
    for (int kind = 0; kind < NUM_SLABS; ++kind) {
        tess_multithresh_image image;
        tess_multithresh_report report;
        tess_multithresh *mask = make(kind, opts, &image);
        run(mask, &image, first, &report);
        assert_same(mask, &image, plain[0]);
        assert_true(report.num_pixels > 0 && report.num_regions > report.num_pruned);
        const int64_t before = report.num_pixels;
        tess_multithresh *other = resumed(mask, &image, opts);
        run(mask, &image, second, &report);
        assert_same(mask, &image, plain[1]);
        assert_true(report.num_pixels > before);
        run(other, &image, second, &report);
        assert_same(other, &image, plain[1]);
        tess_multithresh_destroy(other);
        tess_multithresh_destroy(mask);
    }
}

static void test_rounds(void **state)
{
    tess_multithresh_opts opts;
    tess_multithresh_opts_default(&opts);
    opts.sidelobe = 1.5;
    opts.negative = 5;
    check(&opts);
    opts.negative = 0;
    opts.grow_iterations = 3; /* of fewer steps than the rims are wide */
    check(&opts);
}

/* A region that ranks share counts as one: the letter U is of 99 pixels. */
static void test_regions(void **state)
{
    static double all[ALL];
    tess_multithresh_opts opts;
    tess_multithresh_opts_default(&opts);
    for (int k = 0; k < ALL; ++k)
        all[k] = is_on_u(k % NX, k / NX) ? 1 : 1e-9 * (k % 17);
    opts.sidelobe = 0;
    for (int kind = 0; kind < NUM_SLABS; ++kind)
        for (int small = 0; small < 2; ++small) {
            tess_multithresh_image image;
            tess_multithresh_report report;
            opts.min_beam_frac = (99.5 - small) / (acos(-1) / (4 * log(2)) * 12);
            tess_multithresh *mask = make(kind, &opts, &image);
            run(mask, &image, all, &report);
            assert_int_equal(report.num_regions, 1);
            assert_int_equal(report.num_pruned, 1 - small);
            assert_true((report.num_pixels > 0) == (small == 1));
            tess_multithresh_destroy(mask);
        }
}

/* Outside the mask the noise is that of the pixels there, and first of all that
 * Chauvenet's criterion leaves. A mask that is empty at the threshold of noise is
 * settled. */
static void test_noise(void **state)
{
    static double all[ALL];
    tess_multithresh_opts opts;
    tess_multithresh_image image;
    tess_multithresh_report fast, slow;
    tess_multithresh_opts_default(&opts);
    fill(1, all);
    tess_multithresh *mask = make(0, &opts, &image);
    run(mask, &image, all, &fast);
    tess_multithresh_destroy(mask);
    opts.fast_noise = false;
    mask = make(1, &opts, &image);
    run(mask, &image, all, &slow);
    assert_true(slow.sigma < fast.sigma && slow.sigma > 0.8 * fast.sigma);
    assert_false(tess_multithresh_rounds(mask) < 0);
    tess_multithresh_destroy(mask);
    for (int k = 0; k < ALL; ++k)
        all[k] = 1e-3 * (k % 31);
    mask = make(2, &opts, &image);
    opts.sidelobe = 0;
    tess_multithresh_destroy(mask);
    mask = make(2, &opts, &image);
    run(mask, &image, all, &slow);
    assert_int_equal(slow.num_pixels, 0);
    assert_int_equal(tess_multithresh_rounds(mask), -1);
    tess_multithresh_destroy(mask);
}

/* The sidelobe level is the depth of the lowest value, or what the beam leaves. */
static void test_sidelobe(void **state)
{
    static double psf[ALL];
    double level;
    int64_t first, count;
    slab_of(0, NY, rank, size, &first, &count);
    const tess_rows like = tess_rows_of(NX, NY, first, count, TESS_PIXEL_DOUBLE);
    const tess_rows rows = tess_rows_borrow(&like, psf + first * NX);
    for (int k = 0; k < ALL; ++k) {
        const double x = k % NX - NX / 2, y = k / NX - NY / 2;
        psf[k] = 2 * exp(-4 * log(2) * (x * x + y * y) / 9);
    }
    const tess_clean_beam round = {3, 3, 0};
    psf[5 * NX + 7] = 0.5;
    assert_int_equal(tess_psf_sidelobe(world, &rows, &round, &level), TESS_OK);
    assert_float_equal(level, 0.25, 1e-12);
    psf[NY / 2 * NX + 3] = -0.7;
    assert_int_equal(tess_psf_sidelobe(world, &rows, &round, &level), TESS_OK);
    assert_float_equal(level, 0.35, 1e-12);
}

/* The main lobe is found among sidelobes. */
static void test_lobe(void **state)
{
    static double psf[ALL];
    tess_clean_beam found = {1, 1, 1};
    int64_t first, count;
    slab_of(1, NY, rank, size, &first, &count);
    const tess_rows like = tess_rows_of(NX, NY, first, count, TESS_PIXEL_DOUBLE);
    const tess_rows rows = tess_rows_borrow(&like, psf + first * NX);
    for (int k = 0; k < ALL; ++k)
        psf[k] = 3 * beam_at(NX / 2 - k % NX, k / NX - NY / 2);
    psf[5 * NX + 7] = 2;
    assert_int_equal(tess_psf_lobe(world, &rows, &found), TESS_OK);
    assert_float_equal(found.major_px, beam.major_px, 1e-9);
    assert_float_equal(found.minor_px, beam.minor_px, 1e-9);
    assert_float_equal(found.angle_rad, beam.angle_rad, 1e-9);
    memset(psf, 0, sizeof psf); /* a point is no lobe */
    psf[NY / 2 * NX + NX / 2] = 1;
    assert_int_equal(tess_psf_lobe(world, &rows, &found), TESS_OK);
    assert_float_equal(found.major_px, beam.major_px, 1e-9);
}

int main(int argc, char **argv)
{
    if (tess_comm_start(&argc, &argv, &world) != TESS_OK) return 1;
    rank = tess_comm_rank(world);
    size = tess_comm_size(world);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds), cmocka_unit_test(test_regions),
        cmocka_unit_test(test_noise), cmocka_unit_test(test_sidelobe),
        cmocka_unit_test(test_lobe)};
    TEST_ON_RANKS(world, tests);
    tess_comm_finish(world);
    return 0;
}
