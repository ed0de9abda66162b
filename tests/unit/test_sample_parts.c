/* Samples that are parted by output are those that are chosen row by row: in memory,
 * and on scratch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "parted_spool.h"
#include "sample_parts.h"
#include "tess_mem.h"

enum { ROWS = 40, CHANNELS = 12, INTERVALS = 2, TABLE = 20, THREADS = 2 };

/* Rows of two windows: in the first, channels fall and output channel 1 has two
 * stretches; in the second, channels rise. Some channels are of no output. */
static int32_t table[TABLE] = {3, 3, 2, 1, 1, 0, 0, 1,  -1, 3,
                               0, 0, 0, 1, 1, 2, 2, -1, 3,  3};
static double begins[INTERVALS + 1] = {10, 20, 30};

static output_table outputs_of_test(void)
{
    return (output_table){.num_channels = 4,
                          .num_intervals = INTERVALS,
                          .num = 4 * INTERVALS,
                          .num_chan = TABLE,
                          .chan_output = table,
                          .interval_begin = begins};
}

/* The channels of a row: whole windows, and parts of them. */
static void channels_of(int row, int32_t *base, int32_t *num)
{
    static const int32_t bases[] = {0, 10, 10, 3};
    static const int32_t nums[] = {10, 10, 4, 2};
    *base = bases[row / 7 % 4];
    *num = nums[row / 7 % 4];
}

static void fill(tess_samples *samples, double *time)
{
    assert_int_equal(tess_samples_reserve(samples, ROWS, ROWS * CHANNELS), TESS_OK);
    for (int row = 0; row < ROWS; ++row) {
        channels_of(row, &samples->chan_base[row], &samples->num_chan[row]);
        samples->vis_first[row] = samples->num_vis;
        samples->num_vis += samples->num_chan[row];
        time[row] = row == 17 ? 5 : row < 25 ? 12 : 22;
        for (int k = 0; k < 3; ++k)
            samples->uvw_m[3 * row + k] = 3 * row + k;
        if (samples->origins) samples->origin[row] = 1000 + row;
    }
    samples->num_rows = ROWS;
    const int64_t values = samples->num_vis * 2 * samples->num_pol;
    for (int64_t k = 0; k < values; ++k)
        tess_real_set(samples->vis, samples->is_double, k, (double)k);
    for (int64_t k = 0; k < samples->num_vis * samples->num_weight; ++k)
        tess_real_set(samples->weight, samples->is_double, k, (double)(k + 1));
}

static void check_equal(const tess_samples *a, const tess_samples *b)
{
    tess_samples_part one[TESS_SAMPLES_PARTS], other[TESS_SAMPLES_PARTS];
    assert_int_equal(a->num_rows, b->num_rows);
    assert_int_equal(a->num_vis, b->num_vis);
    tess_samples_list(a, one);
    tess_samples_list(b, other);
    for (int k = 0; k < TESS_SAMPLES_PARTS; ++k) {
        assert_int_equal(one[k].bytes, other[k].bytes);
        if (one[k].bytes > 0)
            assert_memory_equal(one[k].data, other[k].data, (size_t)one[k].bytes);
    }
}

static void check_kind(bool is_double, int num_pol, int num_weight,
                       const tess_origins *origins)
{
    const output_table outputs = outputs_of_test();
    tess_samples all = {.is_double = is_double,
                        .num_pol = num_pol,
                        .num_weight = num_weight,
                        .origins = origins};
    tess_samples parted = all;
    double time[ROWS];
    sample_parts parts;
    int64_t total = 0;
    fill(&all, time);
    fill(&parted, time);
    assert_int_equal(sample_parts_make(&outputs, time, THREADS, &parted, &parts),
                     TESS_OK);
    assert_true(sample_parts_bytes(&parts) > 0);
    for (int64_t k = 0; k < outputs.num; ++k) {
        tess_samples chosen = tess_samples_like(&all), taken = tess_samples_like(&all);
        assert_int_equal(output_table_choose_rows(&outputs, k, &all, time, &chosen),
                         TESS_OK);
        assert_int_equal(sample_parts_take(&parts, &outputs, k, &parted, &taken),
                         TESS_OK);
        check_equal(&chosen, &taken);
        total += taken.num_vis;
        tess_samples_free(&chosen);
        tess_samples_free(&taken);
    }
    assert_true(total > 0 && total < all.num_vis);
    sample_parts_free(&parts);
    tess_samples_free(&all);
    tess_samples_free(&parted);
}

static void test_as_chosen(void **state)
{
    const tess_origins origins = {3, 4, 1, 3, .interval_s = 1, .num_stretches = 1};
    check_kind(false, 1, 1, NULL);
    check_kind(true, 4, 4, &origins);
    check_kind(false, 2, 1, NULL);
}

/* Appends rows [first, end) of samples to a spool. */
static void spool_rows(const tess_samples *all, const double *time, int64_t first,
                       int64_t end, parted_spool *spool)
{
    tess_samples rows = tess_samples_like(all);
    const int64_t begin = all->vis_first[first];
    const int64_t count = (end < ROWS ? all->vis_first[end] : all->num_vis) - begin;
    const int64_t element = all->is_double ? 8 : 4;
    const int64_t vis = 2 * element * all->num_pol, weight = element * all->num_weight;
    assert_int_equal(tess_samples_reserve(&rows, end - first, count), TESS_OK);
    for (int64_t k = first; k < end; ++k) {
        const int64_t at = k - first;
        memcpy(rows.uvw_m + 3 * at, all->uvw_m + 3 * k, 3 * sizeof(double));
        rows.chan_base[at] = all->chan_base[k];
        rows.num_chan[at] = all->num_chan[k];
        rows.vis_first[at] = all->vis_first[k] - begin;
        if (all->origins) rows.origin[at] = all->origin[k];
    }
    memcpy(rows.vis, (char *)all->vis + begin * vis, (size_t)(count * vis));
    memcpy(rows.weight, (char *)all->weight + begin * weight, (size_t)(count * weight));
    rows.num_rows = end - first;
    rows.num_vis = count;
    assert_int_equal(parted_spool_add(spool, time + first, THREADS, &rows), TESS_OK);
    tess_samples_free(&rows);
}

/* The samples of outputs [first, end), in batches [batch, batch_end) of a spool that
 * begin with row `row` of all samples. */
static void check_spooled(const parted_spool *spool, const tess_samples *all,
                          const double *time, const int64_t outputs_of[2],
                          const int64_t batches[2], int64_t row)
{
    const output_table *outputs = parted_spool_outputs(spool);
    tess_samples held = tess_samples_like(all), rest = *all;
    sample_parts parts = {0};
    rest.uvw_m += 3 * row;
    rest.chan_base += row;
    rest.num_chan += row;
    rest.vis_first += row;
    if (rest.origins) rest.origin += row;
    rest.num_rows -= row;
    assert_int_equal(parted_spool_read(spool, outputs_of[0], outputs_of[1], batches[0],
                                       batches[1], &held, &parts),
                     TESS_OK);
    for (int64_t k = outputs_of[0]; k < outputs_of[1]; ++k) {
        tess_samples chosen = tess_samples_like(all), taken = tess_samples_like(all);
        assert_int_equal(
            output_table_choose_rows(outputs, k, &rest, time + row, &chosen), TESS_OK);
        assert_int_equal(sample_parts_take(&parts, outputs, k, &held, &taken), TESS_OK);
        check_equal(&chosen, &taken);
        tess_samples_free(&chosen);
        tess_samples_free(&taken);
    }
    sample_parts_free(&parts);
    tess_samples_free(&held);
}

/* Batches on scratch, of which one has weights that agree in each sample, and is
 * written with one of them. Batches that are not there are empty. */
static void check_scratch(int num_pol, int num_weight, const tess_origins *origins)
{
    const output_table outputs = outputs_of_test();
    tess_samples all = {
        .num_pol = num_pol, .num_weight = num_weight, .origins = origins};
    double time[ROWS];
    parted_spool *spool = NULL;
    fill(&all, time);
    for (int64_t k = 0; k < all.vis_first[12] * num_weight; ++k)
        ((float *)all.weight)[k] = ((float *)all.weight)[k - k % num_weight];
    assert_int_equal(parted_spool_create("/tmp", &outputs, &spool), TESS_OK);
    spool_rows(&all, time, 0, 12, spool);
    spool_rows(&all, time, 12, 31, spool);
    spool_rows(&all, time, 31, ROWS, spool);
    assert_int_equal(parted_spool_batches(spool), 3);
    for (int64_t first = 0; first < outputs.num; first += 3) {
        const int64_t of[2] = {first,
                               first + 3 < outputs.num ? first + 3 : outputs.num};
        check_spooled(spool, &all, time, of, (int64_t[2]){0, 3}, 0);
        check_spooled(spool, &all, time, of, (int64_t[2]){2, 9}, 31);
        check_spooled(spool, &all, time, of, (int64_t[2]){7, 9}, ROWS);
    }
    parted_spool_destroy(spool);
    tess_samples_free(&all);
}

static void test_on_scratch(void **state)
{
    const tess_origins origins = {3, 4, 1, 3, .interval_s = 1, .num_stretches = 1};
    check_scratch(1, 1, NULL);
    check_scratch(4, 4, &origins);
}

/* Samples of an output lie next to one another: a block of many rows is one matrix for
 * each output channel. */
static void test_order(void **state)
{
    int32_t channel[4] = {0, 0, 1, 1};
    double begin[2] = {-INFINITY, INFINITY}, time[3] = {1, 1, 1};
    const output_table outputs = {.num_channels = 2,
                                  .num_intervals = 1,
                                  .num = 2,
                                  .num_chan = 4,
                                  .chan_output = channel,
                                  .interval_begin = begin};
    static const float expected[12] = {0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11};
    tess_samples samples = {.num_pol = 1, .num_weight = 1};
    sample_parts parts;
    assert_int_equal(tess_samples_reserve(&samples, 3, 12), TESS_OK);
    samples.num_rows = 3;
    samples.num_vis = 12;
    for (int row = 0; row < 3; ++row) {
        samples.chan_base[row] = 0;
        samples.num_chan[row] = 4;
        samples.vis_first[row] = 4 * row;
    }
    memset(samples.uvw_m, 0, 9 * sizeof *samples.uvw_m);
    for (int k = 0; k < 12; ++k) {
        ((float *)samples.weight)[k] = (float)k;
        ((float *)samples.vis)[2 * k] = ((float *)samples.vis)[2 * k + 1] = (float)k;
    }
    assert_int_equal(sample_parts_make(&outputs, time, 1, &samples, &parts), TESS_OK);
    assert_int_equal(parts.num_blocks, 1);
    for (int k = 0; k < 12; ++k) {
        assert_true(((float *)samples.weight)[k] == expected[k]);
        assert_true(((float *)samples.vis)[2 * k] == expected[k]);
    }
    sample_parts_free(&parts);
    tess_samples_free(&samples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_chosen),
                                       cmocka_unit_test(test_on_scratch),
                                       cmocka_unit_test(test_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
