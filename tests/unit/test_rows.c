/* Rows of images in host memory and, if the tested backend computes on a device, in the
 * device's memory: what is put there comes back, and a part of an image is put where it
 * belongs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "core_backend.h"
#include "tess_backend.h"
#include "tess_mem.h"
#include "tess_rows.h"

enum { NX = 11, NY = 9, THREADS = 2 };

static const tess_place *place; /* of the backend; NULL: the host's */

static int start(void **state)
{
    const tess_backend *backend;
    (void)state;
    if (tess_backend_find(test_backend(), &backend) != TESS_OK) return -1;
    static const int no_node = -1;
    if (backend->start && backend->start(&no_node, 0, 1) != TESS_OK) return -1;
    place = backend->place;
    return 0;
}

/* A value that single precision holds, and that tells its pixel. */
static double value_at(int64_t row, int64_t column)
{
    return 0.25 * (double)(row * NX + column) - 7;
}

/* The rows from 2 on, 5 of them, and their columns from 3 on, 6 of them. */
static tess_rows a_part(tess_pixel type)
{
    tess_rows rows = tess_rows_of(NX, NY, 2, 5, type);
    rows.col_first = 3;
    rows.num_cols = 6;
    return rows;
}

/* Gives rows memory of the place, and each pixel its value. */
static void fill(tess_rows *rows)
{
    tess_rows view;
    rows->place = place;
    assert_int_equal(tess_rows_alloc(rows), TESS_OK);
    assert_int_equal(tess_rows_edit(rows, false, &view), TESS_OK);
    assert_null(view.place);
    for (int64_t k = 0; k < tess_rows_count(&view); ++k)
        tess_rows_set(&view, k,
                      value_at(view.row_first + k / view.num_cols,
                               view.col_first + k % view.num_cols));
    assert_int_equal(tess_rows_put_back(rows, &view), TESS_OK);
    assert_null(view.value);
}

static void assert_filled(const tess_rows *rows)
{
    tess_rows view;
    assert_int_equal(tess_rows_view(rows, &view), TESS_OK);
    for (int64_t k = 0; k < tess_rows_count(&view); ++k) {
        const double value = value_at(view.row_first + k / view.num_cols,
                                      view.col_first + k % view.num_cols);
        const bool is_mask = view.type == TESS_PIXEL_MASK;
        assert_true(tess_rows_pixel(&view, k) == (is_mask ? value != 0 : value));
    }
    tess_rows_free(&view);
}

static void test_round_trip(void **state)
{
    (void)state;
    for (int type = 0; type < TESS_PIXEL_TYPES; ++type) {
        tess_rows rows = a_part((tess_pixel)type), copy;
        assert_int_equal(tess_rows_count(&rows), 30);
        fill(&rows);
        assert_ptr_equal(rows.place, place);
        assert_filled(&rows);
        assert_int_equal(tess_rows_copy(&rows, &copy), TESS_OK);
        assert_ptr_equal(copy.place, place);
        assert_ptr_not_equal(copy.value, rows.value);
        tess_rows_free(&rows);
        assert_filled(&copy);
        assert_int_equal(tess_rows_move(&copy, NULL), TESS_OK);
        assert_null(copy.place);
        assert_filled(&copy);
        assert_int_equal(tess_rows_move(&copy, place), TESS_OK);
        assert_ptr_equal(copy.place, place);
        assert_filled(&copy);
        tess_rows_free(&copy);
        assert_null(copy.value);
    }
}

/* A view is the pixels themselves in host memory, and is not on a device. */
static void test_views(void **state)
{
    tess_rows rows = a_part(TESS_PIXEL_SINGLE), view, other;
    (void)state;
    fill(&rows);
    assert_int_equal(tess_rows_view(&rows, &view), TESS_OK);
    assert_true((view.value == rows.value) == (place == NULL));
    assert_true(view.is_borrowed == (place == NULL));
    tess_rows_free(&view);
    assert_filled(&rows);
    assert_int_equal(tess_rows_view_some(&rows, 1, 2, &view), TESS_OK);
    assert_int_equal(view.row_first, 3);
    assert_int_equal(view.num_rows, 2);
    assert_filled(&view);
    tess_rows_free(&view);
    assert_int_equal(tess_rows_view_as(&rows, TESS_PIXEL_DOUBLE, THREADS, &view),
                     TESS_OK);
    assert_int_equal(view.type, TESS_PIXEL_DOUBLE);
    assert_filled(&view);
    assert_int_equal(tess_rows_view_as(&view, TESS_PIXEL_SINGLE, THREADS, &other),
                     TESS_OK);
    assert_filled(&other);
    tess_rows_free(&other);
    tess_rows_free(&view);
    assert_int_equal(tess_rows_view_as(&rows, TESS_PIXEL_MASK, THREADS, &view),
                     TESS_ERR_INTERNAL);
    tess_rows_free(&rows);
}

static void test_some_are_changed(void **state)
{
    tess_rows rows = a_part(TESS_PIXEL_DOUBLE), view;
    double line[6];
    (void)state;
    fill(&rows);
    assert_int_equal(tess_rows_edit(&rows, true, &view), TESS_OK);
    tess_rows_set(&view, 7, 100);
    assert_int_equal(tess_rows_put_back(&rows, &view), TESS_OK);
    assert_int_equal(tess_rows_view(&rows, &view), TESS_OK);
    tess_rows_doubles(&view, 6, 6, line);
    for (int k = 0; k < 6; ++k)
        assert_true(line[k] == (k == 1 ? 100 : value_at(3, 3 + k)));
    tess_rows_free(&view);
    tess_rows_free(&rows);
}

static void test_blank_and_zero(void **state)
{
    (void)state;
    for (int type = 0; type < TESS_PIXEL_TYPES; ++type) {
        tess_rows rows = a_part((tess_pixel)type), view;
        fill(&rows);
        assert_int_equal(tess_rows_blank(&rows), TESS_OK);
        assert_int_equal(tess_rows_view(&rows, &view), TESS_OK);
        for (int64_t k = 0; k < tess_rows_count(&view); ++k) {
            const double value = tess_rows_pixel(&view, k);
            assert_true(type == TESS_PIXEL_MASK ? value == 0 : isnan(value));
        }
        tess_rows_free(&view);
        tess_rows_free(&rows);
        rows = a_part((tess_pixel)type);
        rows.place = place;
        assert_int_equal(tess_rows_alloc_zero(&rows), TESS_OK);
        assert_int_equal(tess_rows_view(&rows, &view), TESS_OK);
        for (int64_t k = 0; k < tess_rows_count(&view); ++k)
            assert_true(tess_rows_pixel(&view, k) == 0);
        tess_rows_free(&view);
        tess_rows_free(&rows);
    }
}

/* A part is added where it lies in the whole; what is beyond the sum's rows is left
 * out. */
static void test_add(void **state)
{
    static const tess_pixel types[] = {TESS_PIXEL_SINGLE, TESS_PIXEL_DOUBLE};
    (void)state;
    for (int t = 0; t < 4; ++t) {
        tess_rows part = a_part(types[t / 2]), view;
        tess_rows sum = tess_rows_of(NX, NY, 0, 6, types[t % 2]);
        fill(&part);
        fill(&sum);
        assert_int_equal(tess_rows_add(&part, 2, THREADS, &sum), TESS_OK);
        assert_int_equal(tess_rows_scale(&sum, 4, THREADS), TESS_OK);
        assert_int_equal(tess_rows_view(&sum, &view), TESS_OK);
        for (int64_t k = 0; k < tess_rows_count(&view); ++k) {
            const int64_t row = k / NX, column = k % NX;
            const bool is_in = row >= 2 && column >= 3 && column < 9;
            assert_true(tess_rows_pixel(&view, k) ==
                        4 * value_at(row, column) * (is_in ? 3 : 1));
        }
        tess_rows_free(&view);
        tess_rows_free(&sum);
        tess_rows_free(&part);
    }
}

/* The largest magnitude is that of finite pixels. */
static void test_sum(void **state)
{
    (void)state;
    for (int type = 0; type < TESS_PIXEL_TYPES; ++type) {
        tess_rows rows = a_part((tess_pixel)type), view;
        tess_pixel_sums sums;
        double sum = 0, largest = 0;
        fill(&rows);
        assert_int_equal(tess_rows_view(&rows, &view), TESS_OK);
        for (int64_t k = 0; k < tess_rows_count(&view); ++k) {
            sum += tess_rows_pixel(&view, k);
            largest = fmax(largest, fabs(tess_rows_pixel(&view, k)));
        }
        tess_rows_free(&view);
        assert_int_equal(tess_rows_sum(&rows, &sums), TESS_OK);
        assert_true(sums.sum == sum && sums.largest == largest && largest > 0);
        if (type != TESS_PIXEL_MASK) {
            assert_int_equal(tess_rows_edit(&rows, true, &view), TESS_OK);
            tess_rows_set(&view, 1, INFINITY);
            assert_int_equal(tess_rows_put_back(&rows, &view), TESS_OK);
            assert_int_equal(tess_rows_sum(&rows, &sums), TESS_OK);
            assert_true(isinf(sums.sum) && sums.largest == largest);
        }
        tess_rows_free(&rows);
    }
}

static void test_refusals(void **state)
{
    tess_rows part = a_part(TESS_PIXEL_SINGLE), other = part;
    tess_rows mask = a_part(TESS_PIXEL_MASK);
    (void)state;
    assert_false(tess_rows_are_whole(&part));
    assert_int_equal(tess_rows_check_whole(&part, "rows"), TESS_ERR_INTERNAL);
    fill(&part);
    fill(&mask);
    other.nx = NX + 1;
    assert_int_equal(tess_rows_add(&part, 1, 1, &other), TESS_ERR_INTERNAL);
    assert_int_equal(tess_rows_add(&part, 1, 1, &mask), TESS_ERR_INTERNAL);
    tess_rows_free(&part);
    tess_rows_free(&mask);
}

/* Rows that a rank does not have. */
static void test_none(void **state)
{
    tess_rows none = {0}, rows = tess_rows_of(NX, NY, NY, 0, TESS_PIXEL_DOUBLE), view;
    (void)state;
    rows.place = place;
    assert_int_equal(tess_rows_alloc_zero(&rows), TESS_OK);
    assert_int_equal(tess_rows_blank(&rows), TESS_OK);
    assert_int_equal(tess_rows_add(&rows, 1, THREADS, &rows), TESS_OK);
    assert_int_equal(tess_rows_view_as(&rows, TESS_PIXEL_SINGLE, THREADS, &view),
                     TESS_OK);
    assert_int_equal(tess_rows_count(&view), 0);
    tess_rows_free(&view);
    tess_rows_free(&rows);
    assert_int_equal(tess_rows_view(&none, &view), TESS_OK);
    tess_rows_free(&view);
    tess_rows_free(&none);
}

/* Pixels that belong to the caller outlive their rows. */
static void test_borrowed(void **state)
{
    const double line[2 * NX] = {1, 2, 3};
    const tess_rows like = tess_rows_of(NX, NY, 4, 2, TESS_PIXEL_DOUBLE);
    tess_rows rows = tess_rows_borrow(&like, line), view;
    (void)state;
    assert_int_equal(tess_rows_move(&rows, place), TESS_OK);
    assert_int_equal(tess_rows_view(&rows, &view), TESS_OK);
    assert_true(tess_rows_pixel(&view, 2) == 3);
    tess_rows_free(&view);
    tess_rows_free(&rows);
    assert_true(line[2] == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_some_are_changed),
        cmocka_unit_test(test_blank_and_zero),
        cmocka_unit_test(test_add),
        cmocka_unit_test(test_sum),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_borrowed),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
