/** @file imager_teams_rows.h  (private to app/imager/)
 *  Rows of images between the teams that make them and all ranks: rank r of P has rows
 *  [r ny / P, (r + 1) ny / P) of every image.
 */
#ifndef TESS_IMAGER_TEAMS_ROWS_H
#define TESS_IMAGER_TEAMS_ROWS_H

#include "imager_job.h"
#include "imager_rows.h"
#include "imager_teams.h"

/** Send the images of the first `num` teams, one each, to all ranks. `own`: what the
 *  job left to this rank of its team's, NULL for other teams; rows[num] get this rank's
 *  rows of every team's, bit for bit. Collective over all ranks. */
tess_status imager_teams_spread(const imager_teams *teams, const imager_job *job,
                                int num, const imager_rows *own,
                                imager_rows *const *rows);

/** The inverse: the team g < num gets the image whose rows of this rank are rows[g], as
 *  imager_model_set() wants it in `own`; other teams get nothing. Collective over all
 *  ranks. */
tess_status imager_teams_bring(const imager_teams *teams, const imager_job *job,
                               int num, imager_rows *const *rows, imager_rows *own);

#endif
