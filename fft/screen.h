/** @file screen.h  (private to fft/)
 *  w-screens, fused with the last pass of the plane transform. Compiled from one source
 *  (screen_isa.c) for each instruction set.
 */
#ifndef TESS_SCREEN_H
#define TESS_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

/** One image row: column i lies at (i − nx/2)·scale from the row's centre. */
typedef struct screen_row {
    int64_t nx, nu;
    double scale_rad;
    double m2;             /**< m² of the row */
    double nm1_center;
    double w_lambda;       /**< of the plane */
    bool do_w;
} screen_row;

typedef struct screen_table {
    /** image[i] += Re{line[(i − nx/2) mod nu] · exp(−2πi w (n − 1 − center))} */
    void (*accumulate[2])(const screen_row *row, const void *line, void *image,
                          void *scratch);
    /** line[(i − nx/2) mod nu] := image[i] · exp(+2πi w (n − 1 − center)), 0 elsewhere */
    void (*spread[2])(const screen_row *row, const void *image, void *line,
                      void *scratch);
} screen_table;

/** Bytes of scratch memory a call needs. */
int64_t screen_scratch_bytes(int64_t nx);

const screen_table *screen_table_best(void);

extern const screen_table screen_table_portable;
#if defined(__x86_64__)
extern const screen_table screen_table_avx2;
extern const screen_table screen_table_avx512;
#endif

#endif
