/** @file cpu_join.h  (private to clean/)
 *  What pixels are chosen by, for many neighbouring pixels at once.
 */
#ifndef TESS_CLEAN_CPU_JOIN_H
#define TESS_CLEAN_CPU_JOIN_H

#include "clean_join.h"

/** Neighbouring pixels of all images: those of image i begin at
 *  first + i · stride_bytes, or at image[i] + offset_bytes where these are apart. */
typedef struct cpu_lines {
    const void *first;
    size_t stride_bytes;
    void *const *image;
    size_t offset_bytes;
    bool is_double;
    int64_t count;
} cpu_lines;

/** joined[count] := what each pixel is chosen by (clean_search), or its mean if
 *  `linear`; `room`: [count], to work in. Local. */
void cpu_join_lines(const clean_join *join, const cpu_lines *lines, bool linear,
                    double *joined, double *room);

#endif
