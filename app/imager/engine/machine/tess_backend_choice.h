/** @file tess_backend_choice.h
 *  The backend that all ranks take.
 */
#ifndef TESS_BACKEND_CHOICE_H
#define TESS_BACKEND_CHOICE_H

#include "tess_backend.h"
#include "tess_comm.h"
#include "tess_status.h"

/** The backend of this name on all ranks, with its device taken. "auto" is the cpu as
 *  soon as one rank has no device. Collective. */
tess_status imager_backend(tess_comm *comm, const char *name,
                           const tess_backend **backend);

/** Log which one was taken for that name and what it computes on. Local. */
void imager_backend_log(const char *name, const tess_backend *backend);

#endif
