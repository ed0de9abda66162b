/* Planes scattered over the ranks in pieces: for every number of ranks that share a
 * plane the images equal plain sums over all values, and filling pieces from images is
 * the adjoint of accumulating them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core_backend.h"
#include "draw.h"
#include "planes_object.h"
#include "rank_tests.h"
#include "tess_device_comm.h"
#include "tess_geom.h"
#include "tess_mem.h"
#include "tess_planes.h"

enum { NX = 19, NY = 26, NU = 90, NV = 36, PIXELS = NX * NY };
enum {
    NUM_PIECES = 23,
    MOST_LINES = 31,
    MOST_CELLS = 24,
    NUM_PLANES = 5,
    NUM_IMAGES = 2
};

enum { TILE = 16 }; /* lines of a tile (tess_planes.h) */

static const double SCALE_RAD = 0.01, NM1_CENTER = -0.01, TWO_PI = 6.283185307179586;

static tess_comm *world;
static const tess_backend *backend;
static int rank, size;

/* A plane as all ranks know it. Pieces begin at lines of tiles, as brick sums do; piece
 * p is held by rank p % size. */
typedef struct plane {
    double w_lambda;
    int image;
    struct {
        int32_t line, num_lines, cell, num_cells;
        double value[MOST_LINES * MOST_CELLS * 2]; /* lines of MOST_CELLS */
    } piece[NUM_PIECES];
} plane;

static plane *make_planes(void)
{
    draw random = {77};
    plane *planes = calloc(NUM_PLANES, sizeof *planes);
    assert_non_null(planes);
    for (int k = 0; k < NUM_PLANES; ++k) {
        planes[k].w_lambda = 40.0 * k;
        planes[k].image = k % NUM_IMAGES;
        for (int p = 0; p < NUM_PIECES; ++p) {
            const int32_t line =
                TILE * (int32_t)draw_index(&random, (NU + TILE - 1) / TILE);
            const int32_t most = NU - line < MOST_LINES ? NU - line : MOST_LINES;
            planes[k].piece[p].line = line;
            planes[k].piece[p].num_lines = 1 + (int32_t)draw_index(&random, most);
            planes[k].piece[p].cell = (int32_t)draw_index(&random, NV); /* may wrap */
            planes[k].piece[p].num_cells = 1 + (int32_t)draw_index(&random, MOST_CELLS);
            for (int v = 0; v < MOST_LINES * MOST_CELLS * 2; ++v)
                planes[k].piece[p].value[v] = draw_normal(&random);
        }
    }
    return planes;
}

/* ---- the plain sums ---- */

/* The sum of all pieces, grid[NU][NV][2]. */
static void add_pieces(const plane *from, double (*grid)[NV][2])
{
    for (int p = 0; p < NUM_PIECES; ++p)
        for (int32_t a = 0; a < from->piece[p].num_lines; ++a)
            for (int32_t b = 0; b < from->piece[p].num_cells; ++b)
                for (int part = 0; part < 2; ++part)
                    grid[from->piece[p].line + a][(from->piece[p].cell + b) % NV]
                        [part] += from->piece[p].value[2 * (a * MOST_CELLS + b) + part];
}

/* image += Re Σ grid exp(−2πi (a i/NU + b j/NV + w (n − 1 − center))) at i, j from the
 * middle pixel. */
static void transform_plainly(const plane *from, bool do_w, double *image)
{
    static double grid[NU][NV][2];
    const tess_geom geom = {.nx = NX, .ny = NY, .scale_rad = SCALE_RAD};
    memset(grid, 0, sizeof grid);
    add_pieces(from, grid);
    for (int64_t j = 0; j < NY; ++j)
        for (int64_t i = 0; i < NX; ++i) {
            const double l = tess_geom_l(&geom, i), m = tess_geom_m(&geom, j);
            const double w_turns =
                do_w ? from->w_lambda * (tess_geom_nm1(l * l + m * m) - NM1_CENTER) : 0;
            long double sum = 0; /* of 3240 terms, whose rounding would show */
            for (int64_t a = 0; a < NU; ++a)
                for (int64_t b = 0; b < NV; ++b) {
                    /* whole turns off first: they would cost digits */
                    const double turns = (double)(a * (i - NX / 2) % NU) / NU +
                                         (double)(b * (j - NY / 2) % NV) / NV + w_turns;
                    sum += grid[a][b][0] * cos(TWO_PI * turns) +
                           grid[a][b][1] * sin(TWO_PI * turns);
                }
            image[j * NX + i] += (double)sum;
        }
}

static double *plain_images(const plane *planes, bool do_w)
{
    double *image = calloc(NUM_IMAGES * PIXELS, sizeof *image);
    assert_non_null(image);
    for (int k = 0; k < NUM_PLANES; ++k)
        transform_plainly(&planes[k], do_w, image + planes[k].image * PIXELS);
    return image;
}

/* ---- the same by tess_planes ---- */

typedef struct set_up {
    bool is_double, do_w;
    int fft_ranks, threads;
    bool reuse;
    tess_device_comm *links;
} set_up;

static tess_planes *make(const set_up *is, bool forward)
{
    int64_t slab_line[17] = {0};
    /* uneven slabs of whole tiles, one of three or more without lines */
    for (int k = 1; k < is->fft_ranks; ++k)
        slab_line[k] = NU * k * k / (is->fft_ranks * is->fft_ranks) / TILE * TILE;
    slab_line[is->fft_ranks] = NU;
    if (is->fft_ranks > 2) slab_line[2] = slab_line[1];
    const tess_planes_opts opts = {
        .nx = NX,
        .ny = NY,
        .nu = NU,
        .nv = NV,
        .scale_rad = SCALE_RAD,
        .nm1_center = NM1_CENTER,
        .do_w = is->do_w,
        .is_double = is->is_double,
        .forward = forward,
        .reuse = is->reuse,
        .num_images = NUM_IMAGES,
        /* rows live with the backend in half of the cases */
        .place = forward && is->is_double != is->reuse ? backend->place : NULL,
        .threads = is->threads,
        .fft_ranks = is->fft_ranks,
        .slab_line = slab_line,
        .links = is->links,
        .num_planes = NUM_PLANES};
    tess_planes *planes = NULL;
    assert_int_equal(tess_planes_create(world, backend->planes, &opts, &planes),
                     TESS_OK);
    assert_int_equal(tess_planes_groups(planes), size / is->fft_ranks);
    return planes;
}

/* This rank's pieces of a plane in the precision of the transform, with gaps between
 * the lines. */
typedef struct held {
    tess_piece piece[NUM_PIECES];
    int index[NUM_PIECES];
    double value[NUM_PIECES][MOST_LINES][MOST_CELLS + 3][2]; /* room for either */
} held;

static int64_t hold(const plane *from, const set_up *is, held *own)
{
    int64_t count = 0;
    memset(own->value, 0xff, sizeof own->value); /* NAN, in either precision */
    for (int p = 0; p < NUM_PIECES; ++p) {
        if (p % size != rank) continue;
        own->index[count] = p;
        own->piece[count] = (tess_piece){.line = from->piece[p].line,
                                         .num_lines = from->piece[p].num_lines,
                                         .cell = from->piece[p].cell,
                                         .num_cells = from->piece[p].num_cells,
                                         .stride = MOST_CELLS + 3,
                                         .data = own->value[count]};
        for (int v = 0; v < MOST_LINES * MOST_CELLS * 2; ++v) {
            const int a = v / (2 * MOST_CELLS), b = v / 2 % MOST_CELLS, part = v % 2;
            const int64_t at = 2 * (a * (MOST_CELLS + 3) + b) + part;
            if (is->is_double)
                ((double *)own->value[count])[at] = from->piece[p].value[v];
            else
                ((float *)own->value[count])[at] = (float)from->piece[p].value[v];
        }
        ++count;
    }
    return count;
}

/* Moves the values of held pieces to memory of the backend, or back from there. All of
 * them count as values of rank 0. */
static void move_values(tess_planes *planes, held *own, int64_t count, bool back)
{
    const tess_planes_ops *ops = backend->planes;
    const int64_t num_values =
        (int64_t)sizeof own->value[0] / planes->value_bytes; /* more than there are */
    for (int64_t k = 0; k < count && ops->values_in; ++k) {
        void *part[16] = {own->value[k]};
        int64_t first[17] = {0};
        for (int r = 1; r <= size; ++r)
            first[r] = num_values;
        const rank_values from = {part, first};
        assert_int_equal(
            back
                ? ops->values_out(planes, own->piece[k].data, num_values, own->value[k])
                : ops->values_in(planes, &from, num_values, &own->piece[k].data),
            TESS_OK);
    }
}

/* Works on all planes in batches. A batch has one plane more than there are groups if
 * groups may have several planes at a time. The last batch is not full. */
static void for_each_batch(tess_planes *planes, const plane *from, const set_up *is,
                           held *own, bool forward)
{
    const int most = tess_planes_groups(planes) + 1, all = tess_planes_jobs(planes);
    const int groups = all < most ? all : most;
    tess_planes_times times = {0};
    tess_status own_status = TESS_OK;
    for (int first = 0; first < NUM_PLANES; first += groups) {
        tess_plane_job job[64] = {{0}};
        for (int g = 0; g < groups && first + g < NUM_PLANES; ++g) {
            const plane *next = &from[first + g];
            const int64_t count = hold(next, is, &own[first + g]);
            move_values(planes, &own[first + g], count, false);
            job[g] = (tess_plane_job){.active = true,
                                      .image = next->image,
                                      .w_lambda = next->w_lambda,
                                      .num_pieces = count,
                                      .piece = own[first + g].piece};
        }
        assert_int_equal(forward
                             ? tess_planes_accumulate(planes, job, &own_status, &times)
                             : tess_planes_extract(planes, job, &own_status, &times),
                         TESS_OK);
        assert_int_equal(own_status, TESS_OK);
        for (int g = 0; g < groups && first + g < NUM_PLANES; ++g)
            move_values(planes, &own[first + g], job[g].num_pieces, true);
        tess_planes_rest(planes, first % 2 == 0); /* images stay */
    }
}

static double number(const void *array, bool is_double, int64_t at)
{
    return is_double ? ((const double *)array)[at] : (double)((const float *)array)[at];
}

/* Collects the reduced rows of all ranks in one array. Each row comes from exactly one
 * rank. */
static void gather(tess_planes *planes, bool is_double, int image, double *out)
{
    int64_t rows[NY] = {0};
    tess_rows made, view;
    assert_int_equal(tess_planes_reduce(planes, image, &made), TESS_OK);
    assert_int_equal(tess_rows_view(&made, &view), TESS_OK);
    const int64_t first = view.row_first, count = view.num_rows;
    assert_true(first >= 0 && count >= 0 && first + count <= NY);
    for (int64_t k = 0; k < PIXELS; ++k)
        out[k] = 0;
    for (int64_t k = 0; k < count * NX; ++k) {
        out[first * NX + k] = number(view.value, is_double, k);
        rows[first + k / NX] = 1;
    }
    assert_int_equal(tess_comm_allreduce_f64(world, out, PIXELS, TESS_SUM), TESS_OK);
    assert_int_equal(tess_comm_allreduce_i64(world, rows, NY, TESS_SUM), TESS_OK);
    for (int j = 0; j < NY; ++j)
        assert_int_equal(rows[j], 1);
    tess_rows_free(&view);
    tess_rows_free(&made);
}

/* Rounding in units of half the last place: an FFT of N values errs by about log2 N of
 * them, which is 12 here. The screens and the sum over planes err by a few more. */
static double rounding(bool is_double)
{
    return 20 * (is_double ? 0x1p-53 : 0x1p-24);
}

static void check_images(const plane *from, const set_up *is, const double *expected,
                         tess_planes *planes)
{
    held *own = calloc(NUM_PLANES, sizeof *own);
    double image[PIXELS];
    assert_non_null(own);
    for_each_batch(planes, from, is, own, true);
    for (int k = 0; k < NUM_IMAGES; ++k) {
        double difference = 0, norm = 0;
        gather(planes, is->is_double, k, image);
        for (int p = 0; p < PIXELS; ++p) {
            const double truth = expected[k * PIXELS + p];
            difference += (image[p] - truth) * (image[p] - truth);
            norm += truth * truth;
        }
        assert_true(sqrt(difference) <= rounding(is->is_double) * sqrt(norm));
    }
    free(own);
}

/* One set of images, or the same once more with the same object, cleared and with other
 * slabs. */
static void check_sets(const plane *from, set_up *is, const double *expected)
{
    for (int reuse = 0; reuse < 2; ++reuse) {
        int64_t slab_line[17] = {0};
        is->reuse = reuse;
        tess_planes *planes = make(is, true);
        check_images(from, is, expected, planes);
        for (int k = 1; k < is->fft_ranks; ++k)
            slab_line[k] = NU * k / is->fft_ranks / TILE * TILE;
        slab_line[is->fft_ranks] = NU;
        tess_planes_set_slabs(planes, slab_line);
        assert_int_equal(tess_planes_clear(planes), TESS_OK);
        check_images(from, is, expected, planes);
        tess_planes_destroy(planes);
    }
}

/* ⟨x, A g⟩ = Re⟨E x, g⟩ for images x: A g are the plain sums, E x is what the pieces
 * are filled with. The pieces' former contents must not matter. */
static void check_adjoint(const plane *from, const set_up *is, const double *plain)
{
    draw random = {5};
    tess_planes *planes = make(is, false);
    held *own = calloc(NUM_PLANES, sizeof *own);
    double model[NUM_IMAGES][PIXELS], sums[3] = {0}, image_side = 0;
    int64_t first, count;
    assert_non_null(own);
    tess_planes_rows(planes, &first, &count);
    for (int k = 0; k < NUM_IMAGES; ++k) {
        for (int p = 0; p < PIXELS; ++p) {
            model[k][p] = draw_normal(&random);
            image_side += model[k][p] * plain[k * PIXELS + p];
        }
        for (int64_t p = 0; p < count * NX; ++p)
            if (is->is_double)
                ((double *)tess_planes_image(planes, k))[p] = model[k][first * NX + p];
            else
                ((float *)tess_planes_image(planes, k))[p] =
                    (float)model[k][first * NX + p];
    }
    for_each_batch(planes, from, is, own, false);
    for (int k = 0; k < NUM_PLANES; ++k)
        for (int p = rank, held_at = 0; p < NUM_PIECES; p += size, ++held_at)
            for (int32_t a = 0; a < from[k].piece[p].num_lines; ++a)
                for (int32_t v = 0; v < 2 * (MOST_CELLS + 3); ++v) {
                    const double e = number(own[k].value[held_at], is->is_double,
                                            2 * a * (MOST_CELLS + 3) + v);
                    /* behind the cells: zeros in host memory, else undefined */
                    if (v >= 2 * from[k].piece[p].num_cells) {
                        if (!backend->start) assert_true(e == 0);
                        continue;
                    }
                    const double g = from[k].piece[p].value[2 * a * MOST_CELLS + v];
                    sums[0] += g * e;
                    sums[1] += g * g;
                    sums[2] += e * e;
                }
    assert_int_equal(tess_comm_allreduce_f64(world, sums, 3, TESS_SUM), TESS_OK);
    assert_true(fabs(sums[0] - image_side) <=
                rounding(is->is_double) * sqrt(sums[1] * sums[2]));
    free(own);
    tess_planes_destroy(planes);
}

static void test_all_divisors(void **state)
{
    plane *planes = make_planes();
    for (int do_w = 0; do_w < 2; ++do_w) {
        double *expected = plain_images(planes, do_w);
        for (int fft_ranks = 1; fft_ranks <= size; ++fft_ranks)
            for (int mode = 0; mode < 4; ++mode) {
                /* threads of several ranks would wait for each other's cores */
                if (size % fft_ranks != 0 || (mode >= 2 && size > 1)) continue;
                set_up is = {mode % 2, do_w, fft_ranks, 1 + mode / 2, false, NULL};
                check_sets(planes, &is, expected);
                check_adjoint(planes, &is, expected);
            }
        free(expected);
    }
    free(planes);
}

/* Devices that exchange pieces and lines by themselves, eight lines in a round or all.
 */
static void test_linked_devices(void **state)
{
    (void)state;
    if (!backend->start || size == 1) skip();
    plane *planes = make_planes();
    double *expected = plain_images(planes, true);
    for (int mode = 0; mode < 8; ++mode) {
        const bool is_double = mode % 2;
        const tess_device_comm_opts opts = {
            .exchange_bytes =
                mode / 4 ? 8 * NY * (is_double ? 16 : 8) + 256 * size + 5 : 1 << 20,
            .allowed = mode / 2 % 2 ? TESS_SUM_BY_PEERS : TESS_SUM_BY_NCCL};
        set_up is = {is_double, true, size, 1, false, NULL};
        assert_int_equal(tess_device_comm_create(world, &opts, &is.links), TESS_OK);
        if (!is.links) continue; /* no library, or ranks share a device */
        check_sets(planes, &is, expected);
        check_adjoint(planes, &is, expected);
        tess_device_comm_destroy(is.links);
    }
    free(expected);
    free(planes);
}

/* No rank has a piece of some planes, so the images of these planes are zero. */
static void test_no_pieces(void **state)
{
    const set_up is = {true, true, size, 1, false, NULL};
    tess_planes *planes = make(&is, true);
    tess_planes_times times = {0};
    tess_status own = TESS_OK;
    double image[PIXELS];
    const tess_plane_job job[64] = {{.active = true, .image = 1, .w_lambda = 3}};
    assert_int_equal(tess_planes_accumulate(planes, job, &own, &times), TESS_OK);
    assert_int_equal(tess_comm_agree(world, own), TESS_OK);
    gather(planes, true, 1, image);
    for (int p = 0; p < PIXELS; ++p)
        assert_true(image[p] == 0);
    tess_planes_destroy(planes);
}

static void test_bad_groups(void **state)
{
    const int64_t slab_line[2] = {0, NU};
    const tess_planes_opts opts = {.nx = NX,
                                   .ny = NY,
                                   .nu = NU,
                                   .nv = NV,
                                   .scale_rad = SCALE_RAD,
                                   .num_images = 1,
                                   .threads = 1,
                                   .fft_ranks = size + 1,
                                   .slab_line = slab_line};
    tess_planes *planes = NULL;
    tess_error_clear();
    assert_int_equal(tess_planes_create(world, backend->planes, &opts, &planes),
                     TESS_ERR_USAGE);
    assert_null(planes);
    tess_error_clear();
}

static bool take_device(void)
{
    const int anywhere[16] = {0};
    if (!backend->start) return true;
    if (backend->start(anywhere, rank, size) != TESS_OK) return false;
    backend->share(size);
    return true;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_divisors),
        cmocka_unit_test(test_linked_devices),
        cmocka_unit_test(test_no_pieces),
        cmocka_unit_test(test_bad_groups),
    };
    if (tess_comm_start(&argc, &argv, &world) != TESS_OK) return 1;
    if (tess_backend_find(test_backend(), &backend) != TESS_OK) return 1;
    rank = tess_comm_rank(world);
    size = tess_comm_size(world);
    if (!take_device()) return 1;
    TEST_ON_RANKS(world, tests);
    tess_comm_finish(world);
    return 0;
}
