/** @file imager_stages.h  (private to app/imager/)
 *  Images of what the stages of a run have made, for --dump-stages.
 */
#ifndef TESS_IMAGER_STAGES_H
#define TESS_IMAGER_STAGES_H

#include "imager_rows.h"
#include "tess_comm.h"
#include "tess_geom.h"
#include "tess_samples.h"

/** Where --dump-stages puts what the stages of an output made, as images named
 *  STAGE-tINTERVAL-CHANNEL-IMAGE.stage.fits. Samples and sums are in units of the
 * scales of sample_sets. */
typedef struct imager_stages {
    tess_comm *comm;
    const char *folder; /**< NULL: nowhere, and all of these do nothing */
    int64_t interval, channel;
} imager_stages;

/** Make the folder, or remove the stages of an earlier run from it; without `overwrite`
 *  such are TESS_ERR_IO. Collective. */
tess_status imager_stages_start(tess_comm *comm, const char *folder, bool overwrite);

/** Write an image of a stage. Collective. */
tess_status imager_stages_write(const imager_stages *to, const char *stage, int image,
                                const tess_geom *geom, const imager_rows *rows);

/** Maps of what is about to be gridded, before a model is subtracted: Σ w and Σ w|V|²
 * of the first polarisation on a coarse uv-plane, the same for any number of ranks.
 * `*map` stays NULL when nothing is to be written; free it with tess_free().
 * Collective. */
tess_status imager_map_create(const imager_stages *to, double **map);

/** Add samples, unless `map` is NULL. Local. */
void imager_map_add(const tess_geom *geom, const tess_samples *samples, double *map);

/** Sum over ranks, and write. Collective. */
tess_status imager_map_write(const imager_stages *to, const tess_geom *geom,
                             double *map);

#endif
