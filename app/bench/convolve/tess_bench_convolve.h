/** @file tess_bench_convolve.h
 *  Frames convolved with a PSF, with wrap-around, in the steps by which StrayLight was
 *  made fast: T. Tsiodras' correction of stray light in frames of a satellite
 *  (github.com/ttsiodras/straylight), of 5271 × 813 pixels and a PSF of 11 × 11.
 *
 *      out[y][x] = Σ_j Σ_i psf[j][i] · frame[(y + j − ⌊ky/2⌋) mod ny]
 *                                           [(x + i − ⌊kx/2⌋) mod nx]
 *
 *  The PSF is not mirrored. Only this benchmark wraps around: images are convolved by
 *  fft/tess_convolve.h.
 */
#ifndef TESS_BENCH_CONVOLVE_H
#define TESS_BENCH_CONVOLVE_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

/** StrayLight's sizes [pixels]. */
enum {
    TESS_BENCH_FRAME_NX = 5271,
    TESS_BENCH_FRAME_NY = 813,
    TESS_BENCH_FRAME_PSF = 11
};

/** What is timed. */
typedef struct tess_bench_convolve_case {
    int64_t nx, ny; /**< of a frame */
    int64_t kx, ky; /**< of the PSF, no larger than the frame */
    int threads;    /**< the most to try */
    int repeat;     /**< frames that count, after one that warms up */
    bool device;    /**< the steps on a GPU, too; it has been started */
} tess_bench_convolve_case;

/** A line of the table. Times are medians. */
typedef struct tess_bench_convolve_row {
    const char *step, *what; /**< name, and what it does in a few words */
    int threads;             /**< 0: on the GPU */
    double setup_s;          /**< once for all frames: plans, transform of the PSF */
    double frame_s;          /**< a frame, in memory or in the GPU's memory */
    double copy_s;     /**< a frame to the GPU and the result back; 0: on the CPU */
    double difference; /**< from the literal sum, see below */
    double bound;      /**< what rounding explains */
} tess_bench_convolve_row;

/** Told of each line when it has been measured. */
typedef void tess_bench_convolve_tell(const tess_bench_convolve_row *row,
                                      void *context);

/** Make up a frame and a PSF, and time every step on them. Each result is compared with
 *  the literal sum. The difference of a sum is the largest one of a pixel, in units of
 *  Σ|psf| · max|frame|; that of a transform is the rms of all pixels, in units of
 *  Σ|psf| · rms(frame). `*enough` is the number of threads from which on more of them
 *  save less than a twentieth of a frame's time. TESS_ERR_USAGE for sizes that do not
 *  fit, TESS_ERR_INTERNAL when a difference exceeds its bound, TESS_ERR_ALLOC,
 *  TESS_ERR_RESOURCE of the GPU. Local. */
tess_status tess_bench_convolve_run(const tess_bench_convolve_case *what,
                                    tess_bench_convolve_tell *tell, void *context,
                                    int *enough);

#endif
