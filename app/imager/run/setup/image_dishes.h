/** @file image_dishes.h  (private to app/imager/run/)
 *  The kinds of dishes of observations. The primary beam of visibilities is that of a
 *  pair of kinds.
 */
#ifndef IMAGE_DISHES_H
#define IMAGE_DISHES_H

#include <stdbool.h>

#include "source.h"
#include "tess_comm.h"
#include "tess_origin.h"

struct tess_primary_beam;

/** Zeroed is empty; image_dishes_free. */
typedef struct image_dishes {
    int num;                         /**< of kinds */
    struct tess_primary_beam **beam; /**< [num] */
    int *
        of_antenna; /**< the kind of each antenna of samples' origins; NULL: one kind */
} image_dishes;

/** Which beams are asked for. */
typedef struct image_dishes_of {
    tess_comm *comm;
    const tess_source *source;
    const char *model; /**< of --primary-beam */
    bool apart;        /**< each kind of dishes has its beam; samples keep their origins
                            (tess_source_keep_origins) */
} image_dishes_of;

/** Open the beams. Errors of tess_beam_models_find() and tess_primary_beam_open().
 * Collective. */
tess_status image_dishes_open(const image_dishes_of *of, image_dishes *dishes);
void image_dishes_free(image_dishes *dishes); /**< Local. */

/** Whether any of the beams turns on the sky. Local. */
bool image_dishes_turn(const image_dishes *dishes);

/** The number of pairs of kinds, also of one kind with itself. Local. */
int image_dishes_num_pairs(const image_dishes *dishes);

/** The pair of kinds of two antennas. Local. */
int image_dishes_pair(const image_dishes *dishes, const tess_origin *origin);

/** The beams of a pair; both are the same for one kind. Local. */
void image_dishes_beams(const image_dishes *dishes, int pair,
                        const struct tess_primary_beam *beam[2]);

#endif
