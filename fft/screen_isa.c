/* The w-screen loops of one instruction set; see screen.h. */
#include "screen.h"

#include <math.h>
#include <stddef.h>

#include "tess_sincos.h"

#ifndef SCREEN_TABLE /* the portable loops, and the choice for this processor */
#define SCREEN_TABLE screen_table_portable
#include "tess_isa.h"

int64_t screen_bytes(int64_t nx, double l0, bool is_double)
{
    const int64_t bytes = 2 * screen_count(nx, l0) * (is_double ? 8 : 4);
    return (bytes + 63) / 64 * 64;
}

const screen_table *screen_table_best(void)
{
    static const screen_table *const table[TESS_NUM_ISA] =
        TESS_ISA_TABLES(screen_table);
    return table[tess_isa_best()];
}
#endif

/* This many distances are worked on together. Their turns are formed in double
 * precision, because w (n − 1) may be hundreds of turns. The fraction that is left of
 * them then has the image's precision. */
enum { BLOCK = 64 };

/* Computes the fraction, in [−½, ½], of the turns w (n − 1 − center) at the distances
 * first + k from the middle. Distances are multiples of `scale`. */
static void turns_of_row(const screen_row *row, double scale, int64_t first,
                         double out[BLOCK])
{
    const double l0 = row->l0, m2 = row->m2, w = row->w_lambda;
    const double center = row->nm1_center;
    const int32_t begin = (int32_t)first;
    for (int32_t k = 0; k < BLOCK; ++k) {
        const double l = l0 + (double)(begin + k) * scale, r2 = l * l + m2;
        const double inside = r2 < 1.0 ? r2 : 1.0;
        const double nm1 = -inside / (sqrt(1.0 - inside) + 1.0);
        const double turns = w * (nm1 - center);
        out[k] = turns - tess_nearest(turns);
    }
}

static inline void sincos_single(float turns, float *sine, float *cosine)
{
    tess_sincos_turns_single(turns, sine, cosine);
}

static inline void sincos_double(double turns, double *sine, double *cosine)
{
    tess_sincos_turns(turns, sine, cosine);
}

#define SCREEN_LOOPS(REAL, SUFFIX)                                                   \
    /* distances from, from + 1, …, to c[0], s[0], … */                              \
    static void make_part_##SUFFIX(const screen_row *row, double scale, int64_t from, \
                                   int64_t count, REAL *restrict c,                  \
                                   REAL *restrict s)                                 \
    {                                                                                \
        for (int64_t first = 0; first < count; first += BLOCK) {                     \
            const int64_t n = count - first < BLOCK ? count - first : BLOCK;         \
            double turns[BLOCK];                                                     \
            turns_of_row(row, scale, from + first, turns);                           \
            for (int64_t k = 0; k < n; ++k)                                          \
                sincos_##SUFFIX((REAL)turns[k], &s[first + k], &c[first + k]);       \
        }                                                                            \
    }                                                                                \
    static void make_##SUFFIX(const screen_row *row, void *screen)                   \
    {                                                                                \
        const int64_t count = screen_count(row->nx, row->l0), half = row->nx / 2;    \
        REAL *c = screen, *s = c + count;                                            \
        const int64_t after = row->l0 == 0 ? count : row->nx - half;                 \
        make_part_##SUFFIX(row, -row->scale_rad, 0, after, c, s);                    \
        if (count > after)                                                           \
            make_part_##SUFFIX(row, row->scale_rad, 1, half, c + after, s + after);  \
    }                                                                                \
    static void accumulate_##SUFFIX(const screen_row *row, const void *line_v,       \
                                    const void *screen, void *image_v)               \
    {                                                                                \
        const int64_t half = row->nx / 2, above = row->nx - half;                    \
        const REAL *restrict line = line_v;                                          \
        REAL *restrict image = image_v;                                              \
        const REAL *restrict negative = line + 2 * (row->nu - half);                 \
        const REAL *restrict c = screen;                                             \
        const REAL *restrict s = c + screen_count(row->nx, row->l0);                 \
        const int64_t skip = row->l0 == 0 ? 0 : above - 1;                           \
        if (!row->do_w) {                                                            \
            for (int64_t k = 0; k < above; ++k) image[half + k] += line[2 * k];      \
            for (int64_t k = 0; k < half; ++k) image[k] += negative[2 * k];          \
            return;                                                                  \
        }                                                                            \
        for (int64_t k = 0; k < above; ++k)                                          \
            image[half + k] += line[2 * k] * c[k] + line[2 * k + 1] * s[k];          \
        for (int64_t k = 0; k < half; ++k)                                           \
            image[k] += negative[2 * k] * c[skip + half - k] +                       \
                        negative[2 * k + 1] * s[skip + half - k];                    \
    }                                                                                \
    static void spread_##SUFFIX(const screen_row *row, const void *image_v,          \
                                const void *screen, void *line_v)                    \
    {                                                                                \
        const int64_t half = row->nx / 2, above = row->nx - half;                    \
        const REAL *restrict image = image_v;                                        \
        REAL *restrict line = line_v;                                                \
        REAL *restrict negative = line + 2 * (row->nu - half);                       \
        const REAL *restrict c = screen;                                             \
        const REAL *restrict s = c + screen_count(row->nx, row->l0);                 \
        const int64_t skip = row->l0 == 0 ? 0 : above - 1;                           \
        const bool do_w = row->do_w;                                                 \
        for (int64_t k = 0; k < above; ++k) {                                        \
            line[2 * k] = do_w ? image[half + k] * c[k] : image[half + k];           \
            line[2 * k + 1] = do_w ? image[half + k] * s[k] : 0;                     \
        }                                                                            \
        for (int64_t k = 2 * above; k < 2 * (row->nu - half); ++k) line[k] = 0;      \
        for (int64_t k = 0; k < half; ++k) {                                         \
            negative[2 * k] = do_w ? image[k] * c[skip + half - k] : image[k];       \
            negative[2 * k + 1] = do_w ? image[k] * s[skip + half - k] : 0;          \
        }                                                                            \
    }

SCREEN_LOOPS(float, single)
SCREEN_LOOPS(double, double)

const screen_table SCREEN_TABLE = {
    .make = {make_single, make_double},
    .accumulate = {accumulate_single, accumulate_double},
    .spread = {spread_single, spread_double},
};
