/* Convolutions of images that are distributed by rows, against direct sums: odd and
 * oblong sizes, values at the edges, any division of rows, threads; and that values do
 * not depend on ranks and threads. */
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
#include "tess_convolve.h"
#include "tess_mem.h"

static tess_comm *world;
static int rank, size;

/* An image convolved with a PSF that fills it, or a part of the plane. */
typedef struct field {
    int64_t nx, ny, row_first, columns, length;
    bool is_double;
    double *image, *psf; /* [ny][nx], on every rank */
    void *spectrum;      /* of the PSF */
    void *product;       /* of both */
    double *out;         /* this rank's rows */
    int64_t num_x;
    const double *from;
} field;

static bool give_row(void *context, int64_t row, void *line)
{
    const field *f = context;
    bool any = false;
    for (int64_t x = 0; x < f->nx; ++x) {
        const double value = f->from[(f->row_first + row) * f->nx + x];
        any = any || value != 0;
        if (f->is_double)
            ((double *)line)[x] = value;
        else
            ((float *)line)[x] = (float)value;
    }
    return any;
}

static void take_psf(void *context, int64_t column, void *line)
{
    const field *f = context;
    const size_t bytes = (size_t)f->length * (f->is_double ? 16 : 8);
    memcpy((char *)f->spectrum + (size_t)column * bytes, line, bytes);
}

static void take_image(void *context, int64_t column, void *line)
{
    const field *f = context;
    const int64_t at = 2 * column * f->length;
    for (int64_t k = 0; k < 2 * f->length; k += 2) {
        if (f->is_double) {
            const double *p = (double *)f->spectrum + at + k, *a = (double *)line + k;
            double *out = (double *)f->product + at + k;
            out[0] = a[0] * p[0] - a[1] * p[1];
            out[1] = a[0] * p[1] + a[1] * p[0];
        } else {
            const float *p = (float *)f->spectrum + at + k, *a = (float *)line + k;
            float *out = (float *)f->product + at + k;
            out[0] = a[0] * p[0] - a[1] * p[1];
            out[1] = a[0] * p[1] + a[1] * p[0];
        }
    }
}

static bool give_product(void *context, int64_t column, void *line)
{
    const field *f = context;
    const size_t bytes = (size_t)f->length * (f->is_double ? 16 : 8);
    memcpy(line, (char *)f->product + (size_t)column * bytes, bytes);
    return true;
}

static bool give_psf(void *context, int64_t column, void *line)
{
    const field *f = context;
    const size_t bytes = (size_t)f->length * (f->is_double ? 16 : 8);
    memcpy(line, (char *)f->spectrum + (size_t)column * bytes, bytes);
    return true;
}

static void take_row(void *context, int64_t row, void *line)
{
    const field *f = context;
    for (int64_t x = 0; x < f->num_x; ++x)
        f->out[row * f->num_x + x] =
            f->is_double ? ((double *)line)[x] : ((float *)line)[x];
}

static void field_fill(field *f)
{
    srand(7);
    for (int64_t k = 0; k < f->nx * f->ny; ++k) {
        f->psf[k] = rand() / (double)RAND_MAX - 0.5;
        f->image[k] = k % 11 == 0 ? rand() / (double)RAND_MAX : 0;
    }
    f->image[0] = 3; /* corners, which would wrap */
    f->image[f->nx - 1] = -2;
    f->image[f->nx * f->ny - 1] = 5;
}

/* The sum that defines it: the PSF is zero outside its pixels. */
static double direct(const field *f, int64_t x, int64_t y)
{
    double sum = 0;
    for (int64_t v = 0; v < f->ny; ++v)
        for (int64_t u = 0; u < f->nx; ++u) {
            const int64_t px = x - u + f->nx / 2, py = y - v + f->ny / 2;
            if (px < 0 || py < 0 || px >= f->nx || py >= f->ny) continue;
            sum += f->image[v * f->nx + u] * f->psf[py * f->nx + px];
        }
    return sum;
}

static void field_make(field *f, int slabs, int threads, tess_convolve **plan)
{
    int64_t rows, first;
    slab_of(slabs, f->ny, rank, size, &f->row_first, &rows);
    const tess_convolve_opts opts = {.nx = f->nx,
                                     .ny = f->ny,
                                     .row_first = f->row_first,
                                     .num_rows = rows,
                                     .is_double = f->is_double,
                                     .repeatable = true,
                                     .threads = threads};
    assert_int_equal(tess_convolve_create(world, &opts, plan), TESS_OK);
    tess_convolve_columns(*plan, &first, &f->columns, &f->length);
    f->spectrum = tess_alloc_zero(f->columns * f->length, 16);
    f->product = tess_alloc_zero(f->columns * f->length, 16);
    f->image = tess_alloc_zero(f->nx * f->ny, sizeof *f->image);
    f->psf = tess_alloc_zero(f->nx * f->ny, sizeof *f->psf);
    f->out = tess_alloc_zero(4 * f->nx * (f->ny + 1), sizeof *f->out);
    field_fill(f);
    f->from = f->psf;
    assert_int_equal(tess_convolve_forward(*plan, true, give_row, take_psf, f),
                     TESS_OK);
    f->from = f->image;
    assert_int_equal(tess_convolve_forward(*plan, false, give_row, take_image, f),
                     TESS_OK);
}

static void field_free(field *f, tess_convolve *plan)
{
    tess_convolve_rest(plan);
    tess_convolve_destroy(plan);
    tess_free(f->spectrum);
    tess_free(f->product);
    tess_free(f->image);
    tess_free(f->psf);
    tess_free(f->out);
}

static void test_direct_sums(void **state)
{
    static const int64_t sides[][2] = {{16, 16}, {15, 22}, {33, 9}, {1, 5}, {7, 1}};
    for (int k = 0; k < 5 * NUM_SLABS * 2; ++k) {
        field f = {.nx = sides[k % 5][0], .ny = sides[k % 5][1], .is_double = k % 2};
        tess_convolve *plan = NULL;
        int64_t rows;
        field_make(&f, k / 10, 1 + k % 3, &plan);
        slab_of(k / 10, f.ny, rank, size, &f.row_first, &rows);
        f.num_x = f.nx;
        assert_int_equal(tess_convolve_inverse(plan, NULL, give_product, take_row, &f),
                         TESS_OK);
        /* values of up to 5 times some tens, summed over log2(2000) stages */
        const double slack = f.is_double ? 1e-13 : 1e-4;
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t x = 0; x < f.nx; ++x)
                assert_true(fabs(f.out[r * f.nx + x] - direct(&f, x, f.row_first + r)) <
                            slack);
        field_free(&f, plan);
    }
}

/* The PSF comes back around the origin, with zeros outside its pixels. */
static void test_part(void **state)
{
    field f = {.nx = 14, .ny = 9, .is_double = true};
    tess_convolve *plan = NULL;
    field_make(&f, 0, 2, &plan);
    const int64_t all = 12, begin = all * rank / size;
    const int64_t rows = all * (rank + 1) / size - begin;
    const tess_convolve_part part = {-9, 18, begin - 6, rows};
    f.num_x = part.num_x;
    assert_int_equal(tess_convolve_inverse(plan, &part, give_psf, take_row, &f),
                     TESS_OK);
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < part.num_x; ++c) {
            const int64_t x = c - 9 + 7, y = begin + r - 6 + 4;
            const bool inside = x >= 0 && y >= 0 && x < f.nx && y < f.ny;
            assert_true(fabs(f.out[r * f.num_x + c] -
                             (inside ? f.psf[y * f.nx + x] : 0)) < 1e-14);
        }
    field_free(&f, plan);
}

/* Exactly the same on one rank and one thread, alone. */
static void test_same_bits(void **state)
{
    for (int is_double = 0; is_double < 2; ++is_double) {
        field f = {.nx = 30, .ny = 43, .is_double = is_double};
        tess_comm *many = world, *alone = NULL;
        tess_convolve *plan = NULL, *single = NULL;
        int64_t rows;
        field_make(&f, 1, 3, &plan);
        slab_of(1, f.ny, rank, size, &f.row_first, &rows);
        f.num_x = f.nx;
        assert_int_equal(tess_convolve_inverse(plan, NULL, give_product, take_row, &f),
                         TESS_OK);
        field one = {.nx = 30, .ny = 43, .is_double = is_double, .num_x = 30};
        assert_int_equal(tess_comm_self(&alone), TESS_OK);
        const int own = rank, ranks = size;
        world = alone;
        rank = 0;
        size = 1;
        field_make(&one, 0, 1, &single);
        assert_int_equal(
            tess_convolve_inverse(single, NULL, give_product, take_row, &one), TESS_OK);
        assert_memory_equal(f.out, one.out + f.row_first * f.nx,
                            (size_t)(rows * f.nx) * sizeof *f.out);
        field_free(&one, single);
        tess_comm_free(alone);
        world = many;
        rank = own;
        size = ranks;
        field_free(&f, plan);
    }
}

int main(int argc, char **argv)
{
    if (tess_comm_start(&argc, &argv, &world) != TESS_OK) return 1;
    rank = tess_comm_rank(world);
    size = tess_comm_size(world);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_direct_sums),
                                       cmocka_unit_test(test_part),
                                       cmocka_unit_test(test_same_bits)};
    TEST_ON_RANKS(world, tests);
    tess_comm_finish(world);
    return 0;
}
