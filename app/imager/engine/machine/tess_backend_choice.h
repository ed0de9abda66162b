/** @file tess_backend_choice.h
 *  Chooses the backend that all ranks use.
 */
#ifndef TESS_BACKEND_CHOICE_H
#define TESS_BACKEND_CHOICE_H

#include "tess_backend.h"
#include "tess_comm.h"
#include "tess_status.h"

/** Find the backend of this name on all ranks, and take its device. "auto" is cpu if
 * any rank has no device. Collective. */
tess_status imager_backend(tess_comm *comm, const char *name,
                           const tess_backend **backend);

/** Log the backend that was chosen for this name, and what it computes on. Local. */
void imager_backend_log(const char *name, const tess_backend *backend);

#endif
