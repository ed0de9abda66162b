/* Convolutions that resolve the wrap-around once for a line: one pixel after the other,
 * by vectors, and by blocks that stay in cache. */
#include "frame_step.h"

#include <string.h>

#include "tess_isa.h"
#include "tess_mem.h"
#include "tess_minmax.h"
#include "tess_omp.h"
#include "tess_tile.h"

/* A block: its columns of as many rows as a PSF of StrayLight's size and FRAME_ROWS
 * rows meet take 28 KiB, which the first-level cache holds. A thread takes BAND_ROWS
 * rows at a time, a multiple of FRAME_ROWS. */
enum { BLOCK_COLUMNS = 512, BAND_ROWS = 64 };

struct frame_plan {
    frame_shape shape;
    int threads;
    float *psf, *spread;
    const float **line; /* [threads][lines] */
    int64_t lines;      /* ky + FRAME_ROWS − 1 */
};

/* The loops of this processor. */
static const frame_loops *loops_here(void)
{
    static const frame_loops *const table[TESS_NUM_ISA] = TESS_ISA_TABLES(frame_table);
    return table[tess_isa_best()];
}

/* ---- plans ---- */

static void destroy(frame_plan *plan)
{
    if (!plan) return;
    tess_free(plan->psf);
    tess_free(plan->spread);
    tess_free((void *)plan->line);
    tess_free(plan);
}

static void spread_psf(const frame_plan *plan)
{
    const int64_t kx = plan->shape.kx, ky = plan->shape.ky;
    for (int64_t t = 0; t < plan->lines; ++t)
        for (int64_t i = 0; i < kx; ++i)
            for (int64_t r = 0; r < FRAME_ROWS; ++r)
                plan->spread[(t * kx + i) * FRAME_ROWS + r] =
                    t >= r && t - r < ky ? plan->psf[(t - r) * kx + i] : 0;
}

static tess_status create(const frame_shape *shape, const float *psf, int threads,
                          frame_plan **plan_out)
{
    tess_status status = TESS_OK;
    frame_plan *plan = tess_alloc_zero(1, sizeof *plan);
    if (!plan) TESS_FAIL(TESS_ERR_ALLOC, "convolution of frames");
    plan->shape = *shape;
    plan->threads = threads;
    plan->lines = shape->ky + FRAME_ROWS - 1;
    plan->psf = tess_alloc(shape->ky * shape->kx, sizeof *plan->psf);
    plan->spread =
        tess_alloc(plan->lines * shape->kx, FRAME_ROWS * sizeof *plan->spread);
    plan->line = tess_alloc(threads * plan->lines, sizeof *plan->line);
    if (!plan->psf || !plan->spread || !plan->line)
        TESS_FAIL(TESS_ERR_ALLOC, "PSF of %lld × %lld pixels", (long long)shape->kx,
                  (long long)shape->ky);
    memcpy(plan->psf, psf, (size_t)(shape->ky * shape->kx) * sizeof *psf);
    spread_psf(plan);
    *plan_out = plan;
    plan = NULL;
cleanup:
    destroy(plan);
    return status;
}

/* ---- rows and columns ---- */

/* The pixels of a row, from column `begin` to before `end`, whose footprints may wrap:
 * line[t] is the row of the frame, from its column 0, that belongs to row t of the PSF.
 */
static void convolve_edge(const frame_shape *shape, const float *psf,
                          const float *const *line, int64_t begin, int64_t end,
                          float *out)
{
    for (int64_t x = begin; x < end; ++x) {
        float sum = 0;
        for (int64_t j = 0; j < shape->ky; ++j)
            for (int64_t i = 0; i < shape->kx; ++i)
                sum += psf[j * shape->kx + i] *
                       line[j][frame_wrap(x + i - shape->kx / 2, shape->nx)];
        out[x] = sum;
    }
}

/* The rows of the frame, each from `column`, that `count` rows of the PSF meet when the
 * first one belongs to row y of the result. */
static void find_lines(const frame_shape *shape, const float *frame, int64_t y,
                       int64_t column, int64_t count, const float **line)
{
    int64_t row = frame_wrap(y - shape->ky / 2, shape->ny);
    for (int64_t t = 0; t < count; ++t) {
        line[t] = frame + row * shape->nx + column;
        row = row + 1 < shape->ny ? row + 1 : 0;
    }
}

/* Columns whose footprints do not wrap: from here on … */
static int64_t inner_begin(const frame_shape *shape)
{
    return shape->kx / 2;
}

/* … to before this one. */
static int64_t inner_end(const frame_shape *shape)
{
    return shape->nx - (shape->kx - 1 - shape->kx / 2);
}

static void edges(const frame_plan *plan, const float *const *line, float *out)
{
    const frame_shape *shape = &plan->shape;
    convolve_edge(shape, plan->psf, line, 0, inner_begin(shape), out);
    convolve_edge(shape, plan->psf, line, inner_end(shape), shape->nx, out);
}

/* ---- a line after the other ---- */

static void plain_row(const frame_shape *shape, const float *psf,
                      const float *const *line, int64_t count, float *out)
{
    for (int64_t x = 0; x < count; ++x) {
        float sum = 0;
        for (int64_t j = 0; j < shape->ky; ++j) {
            const float *from = line[j] + x, *tap = psf + j * shape->kx;
            for (int64_t i = 0; i < shape->kx; ++i)
                sum += tap[i] * from[i];
        }
        out[x] = sum;
    }
}

/* Columns that do not wrap begin their footprints in column 0 of the frame. */
static tess_status by_lines(frame_plan *plan, const float *frame, float *out,
                            void (*inner)(const frame_shape *, const float *,
                                          const float *const *, int64_t, float *))
{
    const frame_shape *shape = &plan->shape;
    const int64_t begin = inner_begin(shape), count = inner_end(shape) - begin;
    for (int64_t y = 0; y < shape->ny; ++y) {
        float *row = out + y * shape->nx;
        find_lines(shape, frame, y, 0, shape->ky, plan->line);
        edges(plan, plan->line, row);
        inner(shape, plan->psf, plan->line, count, row + begin);
    }
    return TESS_OK;
}

static tess_status execute_lines(frame_plan *plan, const float *frame, float *out)
{
    return by_lines(plan, frame, out, plain_row);
}

static tess_status execute_simd(frame_plan *plan, const float *frame, float *out)
{
    return by_lines(plan, frame, out, loops_here()->row);
}

/* ---- blocks ---- */

/* Rows [y0, y1) and columns [column, column + count) of a frame. Columns are counted
 * from the first that does not wrap. */
typedef struct frame_box {
    int64_t y0, y1, column, count;
} frame_box;

/* Makes a box. Rows that are no group of FRAME_ROWS any more are made one by one. */
static void block(const frame_plan *plan, const frame_loops *loops, const float *frame,
                  const frame_box *box, const float **line, float *out)
{
    const frame_shape *shape = &plan->shape;
    float *to = out + box->y0 * shape->nx + inner_begin(shape) + box->column;
    int64_t y = box->y0;
    for (; y + FRAME_ROWS <= box->y1; y += FRAME_ROWS, to += FRAME_ROWS * shape->nx) {
        find_lines(shape, frame, y, box->column, plan->lines, line);
        loops->rows(shape, plan->spread, line, box->count, to, shape->nx);
    }
    for (; y < box->y1; ++y, to += shape->nx) {
        find_lines(shape, frame, y, box->column, shape->ky, line);
        loops->row(shape, plan->psf, line, box->count, to);
    }
}

/* Makes the rows [y0, y1): one block of columns after another, then both edges. */
static void band(const frame_plan *plan, const frame_loops *loops, const float *frame,
                 int64_t y0, int64_t y1, const float **line, float *out)
{
    const frame_shape *shape = &plan->shape;
    const int64_t count = inner_end(shape) - inner_begin(shape);
    for (int64_t column = 0; column < count; column += BLOCK_COLUMNS)
        block(plan, loops, frame,
              &(frame_box){y0, y1, column, tess_min_i64(BLOCK_COLUMNS, count - column)},
              line, out);
    for (int64_t y = y0; y < y1; ++y) {
        find_lines(shape, frame, y, 0, shape->ky, line);
        edges(plan, line, out + y * shape->nx);
    }
}

static tess_status execute_blocks(frame_plan *plan, const float *frame, float *out)
{
    const frame_loops *loops = loops_here();
    const int64_t ny = plan->shape.ny, bands = (ny + BAND_ROWS - 1) / BAND_ROWS;
#pragma omp parallel num_threads(plan->threads)
    {
        const float **line = plan->line + tess_omp_thread() * plan->lines;
#pragma omp for schedule(dynamic)
        for (int64_t k = 0; k < bands; ++k)
            band(plan, loops, frame, k * BAND_ROWS,
                 tess_min_i64(ny, (k + 1) * BAND_ROWS), line, out);
    }
    return TESS_OK;
}

const frame_step frame_step_lines = {.name = "lines",
                                     .what = "pointers to lines, which wrap once",
                                     .create = create,
                                     .execute = execute_lines,
                                     .destroy = destroy};

const frame_step frame_step_simd = {.name = "simd",
                                    .what = "vectors of pixels",
                                    .create = create,
                                    .execute = execute_simd,
                                    .destroy = destroy};

const frame_step frame_step_blocks = {.name = "blocks",
                                      .what = "four rows at a time, blocks in cache",
                                      .threaded = true,
                                      .create = create,
                                      .execute = execute_blocks,
                                      .destroy = destroy};
