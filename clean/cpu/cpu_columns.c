/* Products and sums of columns of spectra. */
#include "cpu_columns.h"

#include <string.h>

#define COLUMNS(REAL, SUFFIX)                                                          \
    static void times_kernel_##SUFFIX(const void *a, const void *b, int power,         \
                                      int64_t length, void *line)                      \
    {                                                                                  \
        const REAL *restrict from = a, *restrict kernel = b;                           \
        REAL *restrict to = line;                                                      \
        for (int64_t k = 0; k < length; ++k) {                                         \
            const REAL by = power == 2 ? kernel[k] * kernel[k] : kernel[k];            \
            to[2 * k] = from[2 * k] * by;                                              \
            to[2 * k + 1] = from[2 * k + 1] * by;                                      \
        }                                                                              \
    }                                                                                  \
    static void times_part_##SUFFIX(const void *a, const void *b, int64_t count,       \
                                    double factor, void *line)                         \
    {                                                                                  \
        const REAL *restrict from = a, *restrict kernel = b, by = (REAL)factor;        \
        REAL *restrict to = line;                                                      \
        for (int64_t k = 0; k < count; ++k) {                                          \
            to[2 * k] = from[2 * k] * (kernel[k] * by);                                \
            to[2 * k + 1] = from[2 * k + 1] * (kernel[k] * by);                        \
        }                                                                              \
    }                                                                                  \
    static void times_psf_##SUFFIX(void *line, const void *psf, const void *b,         \
                                   int64_t length)                                     \
    {                                                                                  \
        const REAL *restrict p = psf, *restrict kernel = b;                            \
        REAL *restrict to = line;                                                      \
        for (int64_t k = 0; k < length; ++k) {                                         \
            const REAL by = kernel ? kernel[k] : 1;                                    \
            const REAL re = to[2 * k] * by, im = to[2 * k + 1] * by;                   \
            to[2 * k] = p ? re * p[2 * k] - im * p[2 * k + 1] : re;                    \
            to[2 * k + 1] = p ? re * p[2 * k + 1] + im * p[2 * k] : im;                \
        }                                                                              \
    }                                                                                  \
    static void less_product_##SUFFIX(const void *line, const void *psf,               \
                                      int64_t length, void *less)                      \
    {                                                                                  \
        const REAL *restrict from = line, *restrict p = psf;                           \
        REAL *restrict to = less;                                                      \
        for (int64_t k = 0; k < length; ++k) {                                         \
            const REAL re = from[2 * k], im = from[2 * k + 1];                         \
            to[2 * k] -= re * p[2 * k] - im * p[2 * k + 1];                            \
            to[2 * k + 1] -= re * p[2 * k + 1] + im * p[2 * k];                        \
        }                                                                              \
    }                                                                                  \
    static void less_##SUFFIX(const void *line, int64_t count, void *from)             \
    {                                                                                  \
        const REAL *restrict less = line;                                              \
        REAL *restrict to = from;                                                      \
        for (int64_t k = 0; k < count; ++k)                                            \
            to[k] -= less[k];                                                          \
    }                                                                                  \
    static void add_##SUFFIX(const void *line, double by, int64_t count, void *sum)    \
    {                                                                                  \
        const REAL *restrict from = line, times = (REAL)by;                            \
        REAL *restrict to = sum;                                                       \
        for (int64_t k = 0; k < count; ++k)                                            \
            to[k] += times * from[k];                                                  \
    }                                                                                  \
    static void real_parts_##SUFFIX(const void *line, int64_t count, void *to)         \
    {                                                                                  \
        const REAL *from = line;                                                       \
        for (int64_t k = 0; k < count; ++k)                                            \
            ((REAL *)to)[k] = from[2 * k];                                             \
    }
COLUMNS(float, single)
COLUMNS(double, double)

void cpu_times_kernel(const clean_work *work, const void *a, const void *b, int power,
                      int64_t column, void *line)
{
    const char *from = (const char *)a + (size_t)column * cpu_line_bytes(work);
    if (!b) {
        memcpy(line, from, cpu_line_bytes(work));
        return;
    }
    const char *kernel = (const char *)b + (size_t)column * cpu_line_bytes(work) / 2;
    (work->is_double ? times_kernel_double : times_kernel_single)(from, kernel, power,
                                                                  work->length, line);
}

void cpu_times_part(const clean_work *work, const void *a, const void *b,
                    int64_t column, const int64_t part[2], double factor, void *line)
{
    const char *from = (const char *)a + (size_t)column * cpu_line_bytes(work);
    const char *kernel = (const char *)b + (size_t)column * cpu_line_bytes(work) / 2;
    from += (size_t)part[0] * 2 * work->real_bytes;
    kernel += (size_t)part[0] * work->real_bytes;
    (work->is_double ? times_part_double : times_part_single)(from, kernel, part[1],
                                                              factor, line);
}

void cpu_column_times(const clean_work *work, const void *psf, const void *kernel,
                      void *line)
{
    (work->is_double ? times_psf_double : times_psf_single)(line, psf, kernel,
                                                            work->length);
}

void cpu_column_less_product(const clean_work *work, const void *line, const void *psf,
                             void *to)
{
    (work->is_double ? less_product_double : less_product_single)(line, psf,
                                                                  work->length, to);
}

void cpu_column_add(const clean_work *work, const void *line, double by, void *sum)
{
    (work->is_double ? add_double : add_single)(line, by, 2 * work->length, sum);
}

void cpu_column_real(const clean_work *work, const void *line, void *to)
{
    (work->is_double ? real_parts_double : real_parts_single)(line, work->length, to);
}

void cpu_less(const clean_work *work, const void *line, int64_t count, void *from)
{
    (work->is_double ? less_double : less_single)(line, count, from);
}
