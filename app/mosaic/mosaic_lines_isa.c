/* The inner loops of a mosaic for one instruction set: see mosaic_lines.h. A pixel of
 * the mosaic takes six rows of eight neighbouring pixels, a vector each. */
#include "mosaic_lines.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#ifndef MOSAIC_LOOPS /* the portable loops, and the choice for this processor */
#define MOSAIC_LOOPS mosaic_loops_portable
#include "tess_isa.h"

const mosaic_loops *mosaic_loops_best(void)
{
    static const mosaic_loops *const table[TESS_NUM_ISA] =
        TESS_ISA_TABLES(mosaic_loops);
    return table[tess_isa_best()];
}
#endif

/* The pixel below a place, and how far behind it the place lies, in 0 to 1. */
typedef struct place {
    int64_t pixel;
    double between;
} place;

/* False: less than `before` pixels lie before the place, or `behind` behind it. */
static inline bool find_place(double at, int64_t before, int64_t behind, int64_t size,
                              place *found)
{
    if (!(at >= (double)before && at < (double)(size - behind))) return false;
    found->pixel = (int64_t)at;
    found->between = at - (double)found->pixel;
    return true;
}

/* Vectors of one pixel's weights, in the extension that GCC and clang have: compilers
 * do not find these vectors in loops, since the last two of their lanes are left out.
 */
typedef float lanes_single __attribute__((vector_size(MOSAIC_LANES * sizeof(float))));
typedef double lanes_both __attribute__((vector_size(MOSAIC_LANES * sizeof(double))));

#define LINES(REAL, SUFFIX, MEMBER)                                                    \
    static inline void load_##SUFFIX(const REAL *from, lanes_##MEMBER *to)             \
    {                                                                                  \
        memcpy(to, from, sizeof *to); /* at any address */                             \
    }                                                                                  \
                                                                                       \
    /* Weights between two steps of the table. */                                      \
    static inline void weigh_##SUFFIX(const REAL table[][MOSAIC_LANES],                \
                                      double between, lanes_##MEMBER *weight)          \
    {                                                                                  \
        const double at = between * MOSAIC_STEPS;                                      \
        const int step = (int)at;                                                      \
        const REAL rest = (REAL)(at - step);                                           \
        lanes_##MEMBER from, to;                                                       \
        load_##SUFFIX(table[step], &from);                                             \
        load_##SUFFIX(table[step + 1], &to);                                           \
        *weight = from + rest * (to - from);                                           \
    }                                                                                  \
                                                                                       \
    static inline double lanczos_##SUFFIX(                                             \
        const mosaic_line *line, const REAL table[][MOSAIC_LANES], double x, double y) \
    {                                                                                  \
        const int64_t before = MOSAIC_LOBES - 1, behind = MOSAIC_LOBES;                \
        lanes_##MEMBER of_x, of_y, row, sum = {0};                                     \
        REAL value = 0;                                                                \
        place px, py;                                                                  \
        if (!find_place(x, before, behind, line->nx, &px) ||                           \
            !find_place(y, before, behind, line->num_rows, &py))                       \
            return (double)NAN;                                                        \
        weigh_##SUFFIX(table, px.between, &of_x);                                      \
        weigh_##SUFFIX(table, py.between, &of_y);                                      \
        const REAL *from = (const REAL *)line->image +                                 \
                           (py.pixel - before) * line->nx + px.pixel - before;         \
        for (int j = 0; j < MOSAIC_TAPS; ++j) {                                        \
            load_##SUFFIX(from + j * line->nx, &row);                                  \
            sum += of_y[j] * row;                                                      \
        }                                                                              \
        sum *= of_x;                                                                   \
        for (int k = 0; k < MOSAIC_TAPS; ++k) /* the others may be NaN */              \
            value += sum[k];                                                           \
        return (double)value;                                                          \
    }                                                                                  \
                                                                                       \
    static inline double linear_##SUFFIX(const mosaic_line *line, const REAL *pixel,   \
                                         double x, double y)                           \
    {                                                                                  \
        place px, py;                                                                  \
        if (!find_place(x, 0, 1, line->nx, &px) ||                                     \
            !find_place(y, 0, 1, line->num_rows, &py))                                 \
            return (double)NAN;                                                        \
        const REAL *low = pixel + py.pixel * line->nx + px.pixel;                      \
        const REAL *high = low + line->nx;                                             \
        const double below =                                                           \
            (1 - px.between) * (double)low[0] + px.between * (double)low[1];           \
        const double above =                                                           \
            (1 - px.between) * (double)high[0] + px.between * (double)high[1];         \
        return (1 - py.between) * below + py.between * above;                          \
    }                                                                                  \
                                                                                       \
    static void fill_##SUFFIX(const mosaic_weights *weights, mosaic_line *line)        \
    {                                                                                  \
        for (int k = 0; k < line->count; ++k)                                          \
            line->power[k] =                                                           \
                linear_##SUFFIX(line, line->beam, line->x[k], line->y[k]);             \
        for (int k = 0; k < line->count; ++k)                                          \
            line->value[k] =                                                           \
                isnan(line->power[k]) ? (double)NAN                                    \
                : weights                                                              \
                    ? lanczos_##SUFFIX(line, weights->MEMBER, line->x[k], line->y[k])  \
                    : linear_##SUFFIX(line, line->image, line->x[k], line->y[k]);      \
    }
LINES(float, single, single)
LINES(double, double, both)

const mosaic_loops MOSAIC_LOOPS = {.fill = {fill_single, fill_double}};
