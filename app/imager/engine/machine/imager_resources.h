/** @file imager_resources.h  (private to app/imager/)
 *  What a rank may use: its share of a node's memory, and meters of energy.
 */
#ifndef TESS_IMAGER_RESOURCES_H
#define TESS_IMAGER_RESOURCES_H

#include <stdint.h>

#include "tess_backend.h"
#include "tess_comm.h"
#include "tess_imager_opts.h"
#include "tess_profile.h"

/** Begin to measure energy when the profile wants it: of each GPU by one of its ranks,
 *  of a node's processors by its first. Collective. */
tess_status imager_meter(tess_comm *comm, const tess_backend *backend,
                         tess_profile *profile);

/** Memory that this rank may use [bytes]. Collective. */
tess_status imager_rank_bytes(tess_comm *comm, const tess_layout *layout,
                              int64_t *bytes);

#endif
