/** @file image_teams.h  (private to app/imager/run/)
 *  The teams of a run.
 */
#ifndef TESS_IMAGE_TEAMS_H
#define TESS_IMAGE_TEAMS_H

#include "image_run.h"

/** Form teams if that is faster, once the job is planned. From here on job.comm is the
 * team's, and so is `comm` unless all ranks clean channels together. `kept`: samples
 * are in memory, or will be. Collective. */
tess_status image_form_teams(image_run *run, bool kept);

#endif
