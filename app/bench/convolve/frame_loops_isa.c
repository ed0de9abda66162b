/* The table of loops over pixels of one instruction set. CMake compiles this file
 * several times, with FRAME_TABLE naming the table and the compiler's flags the
 * instructions. */
#include "frame_step.h"

#ifndef FRAME_TABLE
#define FRAME_TABLE frame_table_portable
#endif

#if defined(__AVX512F__)
enum { VECTOR_BYTES = 64, WIDE = 4 };
#elif defined(__AVX2__)
enum { VECTOR_BYTES = 32, WIDE = 2 };
#else
enum { VECTOR_BYTES = 16, WIDE = 2 };
#endif

/* LANES pixels of a row, at any address. */
typedef float vector
    __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(float)), may_alias));

/* LONG vectors of a single row hide the latency of their additions, as do WIDE vectors
 * of FRAME_ROWS rows, whose sums fill the registers. */
enum { LANES = VECTOR_BYTES / (int)sizeof(float), LONG = 8 };

#define INLINE static inline __attribute__((always_inline))

/* `vectors` × LANES pixels of one row. */
INLINE void row_of(const frame_shape *shape, const float *psf, const float *const *line,
                   int64_t at, int vectors, float *out)
{
    vector sum[LONG];
    for (int v = 0; v < vectors; ++v)
        sum[v] = (vector){0};
    for (int64_t j = 0; j < shape->ky; ++j) {
        const float *from = line[j] + at, *tap = psf + j * shape->kx;
        for (int64_t i = 0; i < shape->kx; ++i)
            for (int v = 0; v < vectors; ++v)
                sum[v] += tap[i] * *(const vector *)(from + i + v * LANES);
    }
    for (int v = 0; v < vectors; ++v)
        *(vector *)(out + at + v * LANES) = sum[v];
}

static void row(const frame_shape *shape, const float *psf, const float *const *line,
                int64_t count, float *out)
{
    int64_t at = 0;
    for (; at + LONG * LANES <= count; at += LONG * LANES)
        row_of(shape, psf, line, at, LONG, out);
    for (; at + LANES <= count; at += LANES)
        row_of(shape, psf, line, at, 1, out);
    for (; at < count; ++at) {
        float sum = 0;
        for (int64_t j = 0; j < shape->ky; ++j)
            for (int64_t i = 0; i < shape->kx; ++i)
                sum += psf[j * shape->kx + i] * line[j][at + i];
        out[at] = sum;
    }
}

/* `vectors` × LANES pixels of FRAME_ROWS rows: each value of the frame that was loaded
 * serves all of them. */
INLINE void rows_of(const frame_shape *shape, const float *spread,
                    const float *const *line, int64_t at, int vectors, float *out,
                    int64_t stride)
{
    vector sum[FRAME_ROWS][WIDE];
    const float *tap = spread;
    for (int r = 0; r < FRAME_ROWS; ++r)
        for (int v = 0; v < vectors; ++v)
            sum[r][v] = (vector){0};
    for (int64_t t = 0; t < shape->ky + FRAME_ROWS - 1; ++t) {
        const float *from = line[t] + at;
        for (int64_t i = 0; i < shape->kx; ++i, tap += FRAME_ROWS)
            for (int v = 0; v < vectors; ++v) {
                const vector value = *(const vector *)(from + i + v * LANES);
                for (int r = 0; r < FRAME_ROWS; ++r)
                    sum[r][v] += tap[r] * value;
            }
    }
    for (int r = 0; r < FRAME_ROWS; ++r)
        for (int v = 0; v < vectors; ++v)
            *(vector *)(out + r * stride + at + v * LANES) = sum[r][v];
}

static void rows(const frame_shape *shape, const float *spread,
                 const float *const *line, int64_t count, float *out, int64_t stride)
{
    int64_t at = 0;
    for (; at + WIDE * LANES <= count; at += WIDE * LANES)
        rows_of(shape, spread, line, at, WIDE, out, stride);
    for (; at + LANES <= count; at += LANES)
        rows_of(shape, spread, line, at, 1, out, stride);
    for (; at < count; ++at)
        for (int r = 0; r < FRAME_ROWS; ++r) {
            float sum = 0;
            for (int64_t t = r; t < r + shape->ky; ++t)
                for (int64_t i = 0; i < shape->kx; ++i)
                    sum +=
                        spread[(t * shape->kx + i) * FRAME_ROWS + r] * line[t][at + i];
            out[r * stride + at] = sum;
        }
}

const frame_loops FRAME_TABLE = {.row = row, .rows = rows};
