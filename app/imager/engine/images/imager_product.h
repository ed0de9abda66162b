/** @file imager_product.h  (private to app/imager/)
 *  Finished images, whose rows are distributed over the ranks.
 */
#ifndef TESS_IMAGER_PRODUCT_H
#define TESS_IMAGER_PRODUCT_H

#include "tess_rows.h"

/** One image (dirty or PSF) of one polarisation. */
typedef struct imager_product {
    tess_rows rows;
    double sum_weights;
    double effective_vis; /**< ΣW over the largest W; NAN if unknown */
    double
        variance; /**< Σ W²/w, with statistical weights w; 0 for PSFs, NAN if unknown */
    double counted; /**< share of ΣW that the view of the target counts (imager_view);
                         1 without views */
    int64_t unsolved; /**< samples that it leaves out: a gain has no solution */
    double response;  /**< of these samples to a source of 1 Jy in this polarisation, on
                           average by weight: predicted and taken again; 1 without views
                           of models */
} imager_product;

#endif
