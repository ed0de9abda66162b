/** @file imager_stages.h  (private to app/imager/)
 *  Images of what the stages of a run have made, for --dump-stages.
 */
#ifndef TESS_IMAGER_STAGES_H
#define TESS_IMAGER_STAGES_H

#include "imager_product.h"
#include "tess_comm.h"
#include "tess_geom.h"

typedef struct tess_samples tess_samples; /* tess_samples.h */

/** Where --dump-stages puts what the stages of an output made, as images named
 *  STAGE-tINTERVAL-CHANNEL-IMAGE.stage.fits. Samples and sums are in units of the
 * scales of sample_sets. */
typedef struct imager_stages {
    tess_comm *comm;
    const char
        *folder; /**< NULL: no images are written, and the functions below do nothing */
    int64_t interval, channel;
} imager_stages;

/** Create the folder, or remove the images of an earlier run from it. TESS_ERR_IO: it
 * has such images, and `overwrite` is false. Collective. */
tess_status imager_stages_start(tess_comm *comm, const char *folder, bool overwrite);

/** Write an image of a stage. Collective. */
tess_status imager_stages_write(const imager_stages *to, const char *stage, int image,
                                const tess_geom *geom, const tess_rows *rows);

/** Begin maps of the samples that will be gridded, before a model is subtracted: Σ w
 * and Σ w|V|² of the first polarisation on a coarse uv-plane, which are the same for
 * any number of ranks. `*map` stays NULL if nothing is to be written; free it with
 * tess_free(). Collective. */
tess_status imager_map_create(const imager_stages *to, double **map);

/** Add samples to the maps, unless `map` is NULL. Local. */
void imager_map_add(const tess_geom *geom, const tess_samples *samples, double *map);

/** Sum the maps over ranks, and write them. Collective. */
tess_status imager_map_write(const imager_stages *to, const tess_geom *geom,
                             double *map);

#endif
