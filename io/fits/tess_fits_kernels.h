/** @file tess_fits_kernels.h
 *  W-kernels, or any convolution functions of w-projection, as a FITS image. Its axes,
 *  the first varying fastest:
 *
 *      NAXIS1 = NAXIS2 = N = GCFSUPP·GCFOVER + 1    v and u; the middle pixel is at 0
 *      NAXIS3 = planes of w ≥ 0                     even in √w or w, from 0 to GCFWMAX
 *      NAXIS4 = 2                                   real and imaginary part
 *
 *      GCFSUPP  S, cells that a kernel is wide, even
 *      GCFOVER  Q, pixels a cell, 1 to 64
 *      GCFWSPAC 'SQRT' or 'LINEAR'
 *      GCFWMAX  w of the last plane [wavelengths]
 *      GCFFLDL, GCFFLDM  field of the grid along l and m [direction cosines]: a cell is
 *               1/field wavelengths
 *
 *  u and v grow with the pixel's number [cells of 1/GCFFLDL and 1/GCFFLDM wavelengths];
 *  a kernel is the transform of what a visibility is to be multiplied with over the
 *  image, A(l,m) = Σ G(u,v) exp(−2πi(ul + vm)). W-kernels are even in u and in v; what
 *  they mean is in grid/gcf/tess_gcf.h.
 */
#ifndef TESS_FITS_KERNELS_H
#define TESS_FITS_KERNELS_H

#include <stdbool.h>

#include "tess_status.h"

typedef struct tess_fits_kernels {
    int support, oversampling, num_planes;
    bool is_linear; /**< spacing of planes */
    bool is_double; /**< BITPIX −64, else −32 */
    bool is_uneven; /**< a plane is not even in u or in v */
    double w_max_lambda, field_l, field_m;
    double *value; /**< complex [num_planes][half][half], half = S·Q/2 + 1, of u, v ≥ 0;
                        uneven: [num_planes][2 half − 1][2 half − 1], of all; owned */
} tess_fits_kernels;

/** Pixels of a quarter along each axis. */
int tess_fits_kernels_half(const tess_fits_kernels *kernels);

/** Read a file; `*kernels` is untouched on failure, else ends with
 *  tess_fits_kernels_free(). TESS_ERR_IO; TESS_ERR_INPUT for other axes, keywords that
 *  are missing or out of range, values that are not finite; TESS_ERR_ALLOC. Local. */
tess_status tess_fits_kernels_read(const char *path, tess_fits_kernels *kernels);

/** Write even kernels; the file appears when it is complete. TESS_ERR_IO, also where
 *  there is one and not `overwrite`; TESS_ERR_ALLOC. Local. */
tess_status tess_fits_kernels_write(const char *path, bool overwrite,
                                    const tess_fits_kernels *kernels);

void tess_fits_kernels_free(tess_fits_kernels *kernels);

#endif
