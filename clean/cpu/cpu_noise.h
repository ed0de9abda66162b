/** @file cpu_noise.h  (private to clean/)
 *  Noise of images that are distributed by rows.
 */
#ifndef TESS_CLEAN_CPU_NOISE_H
#define TESS_CLEAN_CPU_NOISE_H

#include "cpu_work.h"

/** The median of a slot's mean over all ranks, and 1.4826 times the median absolute
 * deviation, without NaN pixels. Collective. */
tess_status cpu_deviation(const clean_work *work, const void *rows, clean_noise *noise);

/** The root mean square of the mean over all ranks of the residuals that
 * work->room.view shows, without NaN pixels. Collective. */
tess_status cpu_rms(const clean_work *work, double *rms);

/** What is expected of weight · noise² of a channel in a slot's images, for each
 * polarisation, noise[num_pol]; 0 unless logarithms are fitted. Collective. */
tess_status cpu_channel_noise(const clean_work *work, const cpu_slot *slot,
                              double *noise);

/* ---- cpu_local_rms.c ---- */

/** Fill `factor.rows` from the rows of the mean residual; `*least` gets the smallest σ.
 * Collective. */
tess_status cpu_local_rms(clean_work *work, const void *rows, double *least);

#endif
