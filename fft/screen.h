/** @file screen.h  (private to fft/)
 *  w-screens, fused with the last pass of the plane transform. Compiled from one source
 *  (screen_isa.c) for each instruction set.
 */
#ifndef TESS_SCREEN_H
#define TESS_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

/** A w-screen is real and imaginary parts [nx/2 + 1] of exp(2πi w (n − 1 − center)) at
 *  distances 0, 1, … pixels from the middle of a row, in the precision of the image: n is
 *  even in l (and in m), so both halves of a row, and its mirror row, share it. */
typedef struct screen_row {
    int64_t nx, nu;
    double scale_rad;
    double m2;             /**< m² of the row */
    double nm1_center;
    double w_lambda;       /**< of the plane */
    bool do_w;             /**< false: there is no screen */
} screen_row;

/** Functions by [is_double]. */
typedef struct screen_table {
    /** Fill a screen. */
    void (*make[2])(const screen_row *row, void *screen);
    /** image[i] += Re{line[(i − nx/2) mod nu] · conj(screen)} */
    void (*accumulate[2])(const screen_row *row, const void *line, const void *screen,
                          void *image);
    /** line[(i − nx/2) mod nu] := image[i] · screen, 0 elsewhere */
    void (*spread[2])(const screen_row *row, const void *image, const void *screen,
                      void *line);
} screen_table;

/** Bytes of a screen. */
int64_t screen_bytes(int64_t nx, bool is_double);

const screen_table *screen_table_best(void);

extern const screen_table screen_table_portable;
#if defined(__x86_64__)
extern const screen_table screen_table_avx2;
extern const screen_table screen_table_avx512;
#endif

#endif
