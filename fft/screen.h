/** @file screen.h  (private to fft/)
 *  w-screens, fused with the last pass of the plane transform. Compiled from one source
 *  (screen_isa.c) for each instruction set.
 */
#ifndef TESS_SCREEN_H
#define TESS_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

/** A w-screen is real and imaginary parts of exp(2πi w (n − 1 − center)) along a row,
 *  in the precision of the image. n is even in l (and in m): when the middle of the row
 *  is at l = 0, the screen is [nx/2 + 1] values at distances 0, 1, … pixels from it,
 *  and both halves of a row, and its mirror row, share it. Else it is [nx] values:
 *  those of the middle and the pixels after it, then those at distances 1, 2, … before
 *  it. */
typedef struct screen_row {
    int64_t nx, nu;
    double scale_rad;
    double l0; /**< l of the row's middle */
    double m2; /**< m² of the row */
    double nm1_center;
    double w_lambda; /**< of the plane */
    bool do_w;       /**< false: there is no screen */
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

/** Values of a screen, and its bytes. */
static inline int64_t screen_count(int64_t nx, double l0)
{
    return l0 == 0 ? nx / 2 + 1 : nx;
}
int64_t screen_bytes(int64_t nx, double l0, bool is_double);

const screen_table *screen_table_best(void);

extern const screen_table screen_table_portable;
#if defined(__x86_64__)
extern const screen_table screen_table_avx2;
extern const screen_table screen_table_knl;
extern const screen_table screen_table_avx512;
#endif

#endif
