/** @file imager_run.h  (private to app/imager/)
 *  One set of images from its samples.
 */
#ifndef TESS_IMAGER_RUN_H
#define TESS_IMAGER_RUN_H

#include "imager_data.h"
#include "imager_job.h"
#include "imager_rows.h"
#include "imager_stages.h"

struct tess_exact;

/** Make the images of one output with the job's plan: products[num_pol] dirty, then
 *  [num_weight] PSFs, in the order of the samples' grids. Collective. */
tess_status imager_run(imager_job *job, imager_data *data, bool psf,
                       imager_product *product, const imager_stages *stages);

/** What is summed over the samples of an output while they are gridded. */
typedef struct imager_sums {
    int num_weight;
    double weight[2 * TESS_MAX_POL];
    struct tess_exact
        *exact;  /**< [num_weight] of the same with --reproducible, or NULL */
    double *map; /**< for --dump-stages, or NULL */
} imager_sums;

/** From the sums of all planes and of the weights to the products, as imager_run; the
 *  scales of the data are undone. Collective. */
tess_status imager_finish(imager_job *job, const imager_data *data,
                          const imager_sums *sums, imager_product *product,
                          const imager_stages *stages);

#endif
