/** @file cpu_vector.h  (private to clean/)
 *  Inner loops of the cpu backend, compiled from one source (cpu_vector_isa.c) for each
 *  instruction set.
 */
#ifndef TESS_CLEAN_CPU_VECTOR_H
#define TESS_CLEAN_CPU_VECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "clean_grids.h"
#include "clean_layers.h"

/** Neighbouring pixels of a row in a list of candidates, all in one place. */
typedef struct cpu_run {
    int64_t first; /**< number in the list */
    int32_t count, x, y;
    int32_t place; /**< 0 without borders */
} cpu_run;

/** PSFs around their centre: rows −half_y to half_y of pixels −half_x to half_x. Beyond
 *  they are 0. */
typedef struct cpu_psf {
    const void *const *row; /**< one PSF, or for each pixel the values of all PSFs
                                 between layers, in their order (clean_layers_psf) */
    int64_t half_x, half_y;
} cpu_psf;

/** A component. */
typedef struct cpu_component {
    int64_t x, y;
    int num_layers;
    const double *value; /**< [num_layers] */
    const double *seen;  /**< [places] of its PSF (clean_borders_seen), or NULL: all */
} cpu_component;

/** Functions by [is_double]. */
typedef struct cpu_vector {
    /** value[l] -= flux · psf(l − (x, y)) for the pixels of some runs, with the
     * component's flux in a layer; `value` is of the whole list. */
    void (*subtract[2])(const cpu_run *run, int64_t count, const cpu_psf *psf,
                        const cpu_component *component, int layer, double *value);
    /** Subtract a component of several layers: value[l][u] -= Σ_t value_t ·
     *  psf_tu(l − (x, y)). Returns the largest |value[l][0] · factor[l]| of these
     *  runs, or value[l][0] · factor[l] if `positive`; at least 0. `value`
     * [][num_layers] and `factor` (NULL: 1) are of the whole list. */
    double (*subtract_sums[2])(const cpu_run *run, int64_t count, const cpu_psf *psf,
                               const cpu_component *component, const double *factor,
                               bool positive, double *value);
    /** The largest |line[k]|, or line[k] if `positive`, where allowed[k]; at least 0.
     */
    double (*largest[2])(const void *line, const uint8_t *allowed, int64_t count,
                         bool positive);
    /** The same of a list's values. */
    double (*largest_value)(const double *value, int64_t count, bool positive);
    /** to[k] := Σ weight[c] · line[c][k] over CLEAN_GRID_CELLS lines. */
    void (*weigh[2])(const void *const *line, const double *weight, int64_t count,
                     void *to);
    /** Make the `cell` pixels of each of `count` cells of a row, to[k · cell + pixel]
     * := Σ weight[pixel][c] · from[k + c]. */
    void (*refine[2])(const void *from, const double *weight, int cell, int64_t count,
                      void *to);
} cpu_vector;

const cpu_vector *cpu_vector_best(void);

extern const cpu_vector cpu_vector_portable;
#if defined(__x86_64__)
extern const cpu_vector cpu_vector_avx2;
extern const cpu_vector cpu_vector_knl;
extern const cpu_vector cpu_vector_avx512;
#endif

#endif
