/** @file tess_beam_models.h
 *  Which antenna of an array has which primary beam (tess_primary_beam.h): arrays of
 *  unlike dishes have several.
 */
#ifndef TESS_BEAM_MODELS_H
#define TESS_BEAM_MODELS_H

#include "tess_comm.h"
#include "tess_status.h"
#include "tess_vis.h"

/** Different models of beams, and that of each antenna. Zeroed is empty. */
typedef struct tess_beam_models {
    char **model; /**< [num], owned, with */
    int num;
    int *of_antenna; /**< [num_antennas] */
} tess_beam_models;

/** Check the text of a beam, which is a model, or "antennas:FILE": lines of a pattern
 *  of names and a model, of which the first that fits counts. TESS_ERR_USAGE: no
 *  observation could have it. Local. */
tess_status tess_beam_models_check(const char *text);

/** The file that a beam is read from, or NULL; also for a text that is NULL. Local. */
const char *tess_beam_models_file(const char *text);

/** The models of antennas. "auto" and "alma" are the beam of each antenna of ALMA by
 * its diameter. TESS_ERR_INPUT: a line of "antennas:FILE" is not valid, or no line fits
 * an antenna; TESS_ERR_IO, TESS_ERR_ALLOC. Collective. */
tess_status tess_beam_models_find(tess_comm *comm, const char *text,
                                  const tess_vis_meta *meta, tess_beam_models *models);

void tess_beam_models_free(tess_beam_models *models); /**< Local. */

#endif
