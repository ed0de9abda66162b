/** @file cpu_vector.h  (private to clean/)
 *  Inner loops of the cpu backend, compiled from one source (cpu_vector_isa.c) for each
 *  instruction set.
 */
#ifndef TESS_CLEAN_CPU_VECTOR_H
#define TESS_CLEAN_CPU_VECTOR_H

#include <stdbool.h>
#include <stdint.h>

/** Neighbouring pixels of a row in a list of candidates. */
typedef struct cpu_run {
    int64_t first; /**< place in the list */
    int32_t count, x, y;
} cpu_run;

/** A PSF around its centre: rows −half_y to half_y of values −half_x to half_x. Beyond
 *  it is 0. */
typedef struct cpu_psf {
    const void *const *row;
    int64_t half_x, half_y;
} cpu_psf;

/** Functions by [is_double]. */
typedef struct cpu_vector {
    /** value[l] -= flux · psf(l − (x, y)) for the pixels of some runs; `value` is of
     * the whole list. */
    void (*subtract[2])(const cpu_run *run, int64_t count, const cpu_psf *psf,
                        int64_t x, int64_t y, double flux, double *value);
    /** The largest |line[k]|, or line[k] if `positive`, where allowed[k]; at least 0.
     */
    double (*largest[2])(const void *line, const uint8_t *allowed, int64_t count,
                         bool positive);
    /** The same of a list's values. */
    double (*largest_value)(const double *value, int64_t count, bool positive);
} cpu_vector;

const cpu_vector *cpu_vector_best(void);

extern const cpu_vector cpu_vector_portable;
#if defined(__x86_64__)
extern const cpu_vector cpu_vector_avx2;
extern const cpu_vector cpu_vector_knl;
extern const cpu_vector cpu_vector_avx512;
#endif

#endif
