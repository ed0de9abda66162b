/** @file tess_model.h
 *  A model of the sky in memory. tess_command_model() predicts visibilities from it,
 *  and tess_image_subtract() subtracts them.
 */
#ifndef TESS_MODEL_H
#define TESS_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Everything belongs to the caller. */
typedef struct tess_model {
    int64_t nx, ny;    /**< image size [pixels] */
    int num_stokes;    /**< planes: 1 is I, 2 are I Q, 3 are I Q U, 4 are I Q U V */
    bool is_double;    /**< precision of the pixels */
    const void *pixel; /**< [num_stokes][ny][nx] Jy/pixel; row 0 is South, column 0
                          East, as in tess_image_info; pixel (⌊nx/2⌋, ⌊ny/2⌋), 0-based,
                          is the phase centre. What is not finite counts as 0 */
    const char *scale; /**< pixel size like "1.5asec", as --scale has it; NULL: that of
                            the image which the model is subtracted from */
} tess_model;

#ifdef __cplusplus
}
#endif
#endif
