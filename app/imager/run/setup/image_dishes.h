/** @file image_dishes.h  (private to app/imager/run/)
 *  The kinds of dishes of a run's observations. The primary beam of visibilities is
 * that of a pair of kinds.
 */
#ifndef IMAGE_DISHES_H
#define IMAGE_DISHES_H

#include "image_run.h"

struct tess_primary_beam;

/** Zeroed is empty; image_dishes_free. */
typedef struct image_dishes {
    int num;                         /**< of kinds */
    struct tess_primary_beam **beam; /**< [num] */
    int *
        of_antenna; /**< the kind of each antenna of samples' origins; NULL: one kind */
} image_dishes;

/** Open the beams that --primary-beam asks for: of a mosaic, whose samples keep their
 * origins, those of unlike dishes. Errors of tess_beam_models_find() and
 * tess_primary_beam_open(). Collective. */
tess_status image_dishes_open(const image_run *run, image_dishes *dishes);
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
