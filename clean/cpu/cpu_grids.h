/** @file cpu_grids.h  (private to clean/)
 *  Images of spectra for the cpu backend. Those of large scales are made on coarser
 *  grids (clean_grids.h), row by row of this rank.
 */
#ifndef TESS_CLEAN_CPU_GRIDS_H
#define TESS_CLEAN_CPU_GRIDS_H

#include "cpu_work.h"

/** Allocate what does not depend on PSFs. NULL with one scale. TESS_ERR_ALLOC. Local.
 */
tess_status cpu_grids_create(const clean_setup *setup, cpu_grids **grids);
void cpu_grids_free(cpu_grids *grids); /**< NULL is fine. Collective. */

/** Largest memory of a rank. Local. */
double cpu_grids_bytes(const clean_setup *setup, const tess_convolve_opts *transforms);

/** Choose anew at the next begin, because PSFs have changed. Local. */
void cpu_grids_forget(cpu_grids *grids);

/** Choose a grid for each scale, unless that has been done for these PSFs. `transforms`
 *  are the options of the plan of pixels. Collective. */
tess_status cpu_grids_choose(clean_work *work, const tess_convolve_opts *transforms);

/** Make the image of a spectrum at a scale (−1: without a kernel): `take` gets this
 *  rank's rows of nx values, and may change them. Collective. */
tess_status cpu_inverse(clean_work *work, int scale, const void *spectrum,
                        tess_convolve_take *take, void *context);

/** Transforms on coarser grids so far, and seconds of them and of the interpolation.
 *  Local. */
void cpu_grids_spent(const cpu_grids *grids, double *transforms, double *seconds);

#endif
