/** @file vis_pick.h  (private to io/)
 *  Antennas and times of sets that casacore does not read, chosen by expressions in the
 *  plain part of MSSelection's syntax:
 *
 *      antenna  LIST       baselines of any of these antennas with any other
 *               LIST&      baselines between two of them
 *               LIST&LIST  baselines of one of the first with one of the second
 *               !...       all but these; ';' joins several
 *      time     T~T, >T, <T: [YYYY/MM/DD/]hh:mm[:ss[.s]], or YYYY-MM-DDThh:mm:ss; times
 *               without a date are of the first day
 *
 *  LIST: names or numbers from 0, separated by commas, or *.
 */
#ifndef TESS_VIS_PICK_H
#define TESS_VIS_PICK_H

#include "tess_vis.h"

typedef struct vis_pick vis_pick;

/** `first_mjd_s`: a time of the first day. `*pick` is NULL if neither antennas nor
 * times are chosen. TESS_ERR_USAGE for what cannot be read, what the set does not have,
 * and expressions of other kinds. TESS_ERR_ALLOC. Local. */
tess_status vis_pick_create(const tess_vis_expressions *by, const tess_vis_meta *meta,
                            double first_mjd_s, vis_pick **pick);
void vis_pick_destroy(vis_pick *pick); /**< NULL is fine. Local. */

/** Whether a row is chosen: indices into meta->antenna. Local. */
bool vis_pick_has(const vis_pick *pick, int antenna1, int antenna2, double time_mjd_s);

#endif
