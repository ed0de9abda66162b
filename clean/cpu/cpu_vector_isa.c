/* The inner loops of minor cycles for one instruction set: see cpu_vector.h. A maximum
 * is taken of the bits of numbers, read as integers: positive numbers have the same
 * order as their bits, and compilers vectorise the maximum of integers. */
#include "cpu_vector.h"

#include <math.h>
#include <string.h>

#ifndef CPU_VECTOR /* the portable loops, and the choice for this processor */
#define CPU_VECTOR cpu_vector_portable
#include "tess_isa.h"

const cpu_vector *cpu_vector_best(void)
{
    static const cpu_vector *const table[TESS_NUM_ISA] = TESS_ISA_TABLES(cpu_vector);
    return table[tess_isa_best()];
}
#endif

/* Candidates are scattered over the image. Therefore the PSF at a run is prefetched
 * while this many runs before it are worked on. */
enum { RUNS_AHEAD = 16 };

/* Prefetches the PSFs at the first pixel of a run. */
static inline void fetch_psf(const cpu_psf *psf, int64_t x, int64_t y,
                             int64_t pixel_bytes, const cpu_run *run)
{
    const int64_t dx = run->x - x, dy = run->y - y;
    if (dy < -psf->half_y || dy > psf->half_y || dx < -psf->half_x || dx > psf->half_x)
        return;
    __builtin_prefetch((const char *)psf->row[dy + psf->half_y] +
                       (psf->half_x + dx) * pixel_bytes);
}

#define SUBTRACT(REAL, SUFFIX)                                                         \
    static void subtract_##SUFFIX(const cpu_run *run, int64_t count,                   \
                                  const cpu_psf *psf, const cpu_component *component,  \
                                  int layer, double *value)                            \
    {                                                                                  \
        const int64_t x = component->x, y = component->y;                              \
        const double all = component->value[layer];                                    \
        for (int64_t r = 0; r < count; ++r) {                                          \
            const int64_t dx = run[r].x - x, dy = run[r].y - y;                        \
            int64_t begin = -psf->half_x - dx, end = psf->half_x + 1 - dx;             \
            if (r + RUNS_AHEAD < count)                                                \
                fetch_psf(psf, x, y, (int64_t)sizeof(REAL), &run[r + RUNS_AHEAD]);     \
            if (dy < -psf->half_y || dy > psf->half_y) continue;                       \
            if (begin < 0) begin = 0;                                                  \
            if (end > run[r].count) end = run[r].count;                                \
            const REAL *from =                                                         \
                (const REAL *)psf->row[dy + psf->half_y] + psf->half_x + dx;           \
            double *restrict to = value + run[r].first;                                \
            const double flux =                                                        \
                component->seen ? all * component->seen[run[r].place] : all;           \
            for (int64_t k = begin; k < end; ++k)                                      \
                to[k] -= flux * (double)from[k];                                       \
        }                                                                              \
    }
SUBTRACT(float, single)
SUBTRACT(double, double)

/* The largest of `best` and the numbers by which the candidates [first, end) are
 * chosen. */
static inline double largest_sum(const double *value, const double *factor, int terms,
                                 bool positive, int64_t first, int64_t end, double best)
{
    for (int64_t k = first; k < end; ++k) {
        const double metric = factor ? value[k * terms] * factor[k] : value[k * terms];
        const double size = positive ? metric : fabs(metric);
        best = size > best ? size : best;
    }
    return best;
}

/* One function for each number of layers, so that compilers unroll the loops over
 * layers. */
#define SUBTRACT_SUMS(REAL, SUFFIX)                                                    \
    static inline __attribute__((always_inline)) double sums_##SUFFIX(                 \
        const cpu_run *run, int64_t count, const cpu_psf *psf,                         \
        const cpu_component *component, const int terms, const double *factor,         \
        bool positive, double *value)                                                  \
    {                                                                                  \
        const int psfs = terms * (terms + 1) / 2;                                      \
        const double *const flux = component->value;                                   \
        double best = 0;                                                               \
        for (int64_t r = 0; r < count; ++r) {                                          \
            const int64_t dx = run[r].x - component->x, dy = run[r].y - component->y;  \
            const int64_t all = run[r].count;                                          \
            if (r + RUNS_AHEAD < count)                                                \
                fetch_psf(psf, component->x, component->y,                             \
                          psfs *(int64_t)sizeof(REAL), &run[r + RUNS_AHEAD]);          \
            const bool reaches = dy >= -psf->half_y && dy <= psf->half_y;              \
            int64_t begin = -psf->half_x - dx, end = psf->half_x + 1 - dx;             \
            begin = begin < 0 ? 0 : begin > all ? all : begin;                         \
            end = !reaches || end < begin ? begin : end > all ? all : end;             \
            double *restrict to = value + run[r].first * terms;                        \
            const double *own = factor ? factor + run[r].first : NULL;                 \
            best = largest_sum(to, own, terms, positive, 0, begin, best);              \
            best = largest_sum(to, own, terms, positive, end, all, best);              \
            if (end <= begin) continue;                                                \
            const REAL *from = (const REAL *)psf->row[dy + psf->half_y] +              \
                               (psf->half_x + dx + begin) * psfs;                      \
            for (int64_t k = begin; k < end; ++k, from += psfs)                        \
                for (int u = 0; u < terms; ++u) {                                      \
                    double sum = 0;                                                    \
                    for (int t = 0; t < terms; ++t)                                    \
                        sum += flux[t] * (double)from[clean_layers_psf(t, u)];         \
                    to[k * terms + u] -= sum;                                          \
                }                                                                      \
            best = largest_sum(to, own, terms, positive, begin, end, best);            \
        }                                                                              \
        return best;                                                                   \
    }                                                                                  \
    static double subtract_sums_##SUFFIX(                                              \
        const cpu_run *run, int64_t count, const cpu_psf *psf,                         \
        const cpu_component *component, const double *factor, bool positive,           \
        double *value)                                                                 \
    {                                                                                  \
        const int terms = component->num_layers;                                       \
        switch (terms) {                                                               \
        case 2:                                                                        \
            return sums_##SUFFIX(run, count, psf, component, 2, factor, positive,      \
                                 value);                                               \
        case 3:                                                                        \
            return sums_##SUFFIX(run, count, psf, component, 3, factor, positive,      \
                                 value);                                               \
        case 4:                                                                        \
            return sums_##SUFFIX(run, count, psf, component, 4, factor, positive,      \
                                 value);                                               \
        default:                                                                       \
            return sums_##SUFFIX(run, count, psf, component, terms, factor, positive,  \
                                 value);                                               \
        }                                                                              \
    }
SUBTRACT_SUMS(float, single)
SUBTRACT_SUMS(double, double)

#define LARGEST(REAL, WHOLE, SUFFIX)                                                   \
    static double largest_##SUFFIX(const void *line, const uint8_t *allowed,           \
                                   int64_t count, bool positive)                       \
    {                                                                                  \
        const REAL *from = line;                                                       \
        const WHOLE sign = (WHOLE)1 << (8 * sizeof(WHOLE) - 2);                        \
        const WHOLE keep = positive ? (WHOLE)-1 : (WHOLE)(sign - 1 + sign);            \
        WHOLE best = 0;                                                                \
        REAL value;                                                                    \
        for (int64_t k = 0; k < count; ++k) {                                          \
            WHOLE bits;                                                                \
            memcpy(&bits, &from[k], sizeof bits);                                      \
            bits = allowed[k] ? bits & keep : 0;                                       \
            best = bits > best ? bits : best;                                          \
        }                                                                              \
        memcpy(&value, &best, sizeof value);                                           \
        return (double)value;                                                          \
    }
LARGEST(float, int32_t, single)
LARGEST(double, int64_t, double)

static double largest_value(const double *value, int64_t count, bool positive)
{
    const int64_t keep = positive ? -1 : INT64_MAX;
    int64_t best = 0;
    double result;
    for (int64_t k = 0; k < count; ++k) {
        int64_t bits;
        memcpy(&bits, &value[k], sizeof bits);
        bits &= keep;
        best = bits > best ? bits : best;
    }
    memcpy(&result, &best, sizeof result);
    return result;
}

/* So many cells are refined at a time, with their pixels in the nearest cache. */
enum { CELLS_AT_A_TIME = 256 };

#define REFINE(REAL, SUFFIX)                                                           \
    static void weigh_##SUFFIX(const void *const *line, const double *weight,          \
                               int64_t count, void *out)                               \
    {                                                                                  \
        const REAL *from[CLEAN_GRID_CELLS];                                            \
        REAL *restrict to = out, by[CLEAN_GRID_CELLS];                                 \
        for (int c = 0; c < CLEAN_GRID_CELLS; ++c) {                                   \
            from[c] = line[c];                                                         \
            by[c] = (REAL)weight[c];                                                   \
        }                                                                              \
        for (int64_t k = 0; k < count; ++k) {                                          \
            REAL sum = 0;                                                              \
            for (int c = 0; c < CLEAN_GRID_CELLS; ++c)                                 \
                sum += by[c] * from[c][k];                                             \
            to[k] = sum;                                                               \
        }                                                                              \
    }                                                                                  \
    static void refine_##SUFFIX(const void *line, const double *weight, int cell,      \
                                int64_t count, void *out)                              \
    {                                                                                  \
        REAL made[CELLS_AT_A_TIME], *restrict to = out;                                \
        const void *cells[CLEAN_GRID_CELLS];                                           \
        for (int64_t first = 0; first < count; first += CELLS_AT_A_TIME) {             \
            const int64_t rest = count - first;                                        \
            const int64_t many = rest < CELLS_AT_A_TIME ? rest : CELLS_AT_A_TIME;      \
            const REAL *from = (const REAL *)line + first;                             \
            for (int64_t k = 0; k < many; ++k) /* pixels that lie on their cells */    \
                to[(first + k) * cell] = from[k + CLEAN_GRID_BEFORE];                  \
            for (int c = 0; c < CLEAN_GRID_CELLS; ++c)                                 \
                cells[c] = from + c;                                                   \
            for (int pixel = 1; pixel < cell; ++pixel) {                               \
                weigh_##SUFFIX(cells, weight + pixel * CLEAN_GRID_CELLS, many, made);  \
                for (int64_t k = 0; k < many; ++k)                                     \
                    to[(first + k) * cell + pixel] = made[k];                          \
            }                                                                          \
        }                                                                              \
    }
REFINE(float, single)
REFINE(double, double)

const cpu_vector CPU_VECTOR = {
    .subtract = {subtract_single, subtract_double},
    .subtract_sums = {subtract_sums_single, subtract_sums_double},
    .largest = {largest_single, largest_double},
    .largest_value = largest_value,
    .weigh = {weigh_single, weigh_double},
    .refine = {refine_single, refine_double}};
