/* The inner loops of minor cycles for one instruction set; see cpu_vector.h. Maxima are
 * taken of the bits as whole numbers, whose order is that of positive numbers and which
 * compilers vectorise. */
#include "cpu_vector.h"

#include <string.h>

#ifndef CPU_VECTOR
#define CPU_VECTOR cpu_vector_portable
#endif

#define SUBTRACT(REAL, SUFFIX)                                                         \
    static void subtract_##SUFFIX(const cpu_run *run, int64_t count,                   \
                                  const cpu_psf *psf, int64_t x, int64_t y,            \
                                  double flux, double *value)                          \
    {                                                                                  \
        for (int64_t r = 0; r < count; ++r) {                                          \
            const int64_t dx = run[r].x - x, dy = run[r].y - y;                        \
            int64_t begin = -psf->half_x - dx, end = psf->half_x + 1 - dx;             \
            if (dy < -psf->half_y || dy > psf->half_y) continue;                       \
            if (begin < 0) begin = 0;                                                  \
            if (end > run[r].count) end = run[r].count;                                \
            const REAL *from =                                                         \
                (const REAL *)psf->row[dy + psf->half_y] + psf->half_x + dx;           \
            double *restrict to = value + run[r].first;                                \
            for (int64_t k = begin; k < end; ++k)                                      \
                to[k] -= flux * (double)from[k];                                       \
        }                                                                              \
    }
SUBTRACT(float, single)
SUBTRACT(double, double)

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

const cpu_vector CPU_VECTOR = {.subtract = {subtract_single, subtract_double},
                               .largest = {largest_single, largest_double},
                               .largest_value = largest_value};
