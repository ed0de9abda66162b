/** @file predict_models.h  (private to app/imager/run/)
 *  Models that differ between output channels and intervals, for one prediction.
 */
#ifndef TESS_PREDICT_MODELS_H
#define TESS_PREDICT_MODELS_H

#include "imager_product.h"
#include "output_table.h"
#include "tess_geom.h"
#include "tess_polar.h"

typedef struct predict_models {
    const tess_pol *pol; /**< [num_pol] of the images of each output */
    int num_pol;
    tess_geom geom;
    const output_table *outputs; /**< times of intervals, and which output channels … */
    const double *freq_hz;       /**< … have these, [outputs->num_chan] */
    /** Fill the model of an output: rows[num_pol] of zeros in double precision, in
     *  Jy/pixel. Collective. */
    tess_status (*load)(void *context, int64_t output, tess_rows *rows);
    void *context;
} predict_models;

#endif
