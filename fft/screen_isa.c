/* The w-screen loops of one instruction set; see screen.h. */
#include "screen.h"

#include <math.h>
#include <stddef.h>

#include "tess_sincos.h"

#ifndef SCREEN_TABLE
#define SCREEN_TABLE screen_table_portable
#endif

/* Screen at distances k = 0..count−1 from the row's centre. n − 1 is even in l, so the two
 * halves of a row share it. Phases need double precision: w (n − 1) may be hundreds of
 * turns. */
static void screen_of_row(const screen_row *row, int64_t count, double *restrict cosine,
                          double *restrict sine)
{
    const double scale = row->scale_rad, m2 = row->m2, w = row->w_lambda;
    const double center = row->nm1_center;
    for (int64_t k = 0; k < count; ++k) {
        const double l = (double)(int32_t)k * scale, r2 = l * l + m2;
        const double inside = r2 < 1.0 ? r2 : 1.0;
        const double nm1 = -inside / (sqrt(1.0 - inside) + 1.0);
        tess_sincos_turns(w * (nm1 - center), &sine[k], &cosine[k]);
    }
}

#define SCREEN_LOOPS(REAL, SUFFIX)                                                   \
    static void accumulate_##SUFFIX(const screen_row *row, const void *line_v,       \
                                    void *image_v, void *scratch)                    \
    {                                                                                \
        const int64_t half = row->nx / 2, above = row->nx - half;                    \
        const REAL *restrict line = line_v;                                          \
        REAL *restrict image = image_v;                                              \
        const REAL *restrict negative = line + 2 * (row->nu - half);                 \
        if (!row->do_w) {                                                            \
            for (int64_t k = 0; k < above; ++k) image[half + k] += line[2 * k];      \
            for (int64_t k = 0; k < half; ++k) image[k] += negative[2 * k];          \
            return;                                                                  \
        }                                                                            \
        double *restrict c = scratch, *restrict s = c + half + 1;                    \
        screen_of_row(row, half + 1, c, s);                                          \
        for (int64_t k = 0; k < above; ++k)                                          \
            image[half + k] +=                                                       \
                line[2 * k] * (REAL)c[k] + line[2 * k + 1] * (REAL)s[k];             \
        for (int64_t k = 0; k < half; ++k)                                           \
            image[k] += negative[2 * k] * (REAL)c[half - k] +                        \
                        negative[2 * k + 1] * (REAL)s[half - k];                     \
    }                                                                                \
    static void spread_##SUFFIX(const screen_row *row, const void *image_v,          \
                                void *line_v, void *scratch)                         \
    {                                                                                \
        const int64_t half = row->nx / 2, above = row->nx - half;                    \
        const REAL *restrict image = image_v;                                        \
        REAL *restrict line = line_v;                                                \
        REAL *restrict negative = line + 2 * (row->nu - half);                       \
        double *restrict c = scratch, *restrict s = c + half + 1;                    \
        if (row->do_w)                                                               \
            screen_of_row(row, half + 1, c, s);                                      \
        else                                                                         \
            for (int64_t k = 0; k <= half; ++k) {                                    \
                c[k] = 1;                                                            \
                s[k] = 0;                                                            \
            }                                                                        \
        for (int64_t k = 0; k < above; ++k) {                                        \
            line[2 * k] = image[half + k] * (REAL)c[k];                              \
            line[2 * k + 1] = image[half + k] * (REAL)s[k];                          \
        }                                                                            \
        for (int64_t k = 2 * above; k < 2 * (row->nu - half); ++k) line[k] = 0;      \
        for (int64_t k = 0; k < half; ++k) {                                         \
            negative[2 * k] = image[k] * (REAL)c[half - k];                          \
            negative[2 * k + 1] = image[k] * (REAL)s[half - k];                      \
        }                                                                            \
    }

SCREEN_LOOPS(float, single)
SCREEN_LOOPS(double, full)

const screen_table SCREEN_TABLE = {
    .accumulate = {accumulate_single, accumulate_full},
    .spread = {spread_single, spread_full},
};
