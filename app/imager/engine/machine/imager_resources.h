/** @file imager_resources.h  (private to app/imager/)
 *  What a rank may use of its node: a share of the memory, and meters of energy.
 */
#ifndef TESS_IMAGER_RESOURCES_H
#define TESS_IMAGER_RESOURCES_H

#include <stdint.h>

#include "tess_backend.h"
#include "tess_comm.h"
#include "tess_imager_opts.h"
#include "tess_profile.h"

/** Begin to measure energy if the profile wants it. One rank measures each GPU, and the
 * first rank of a node measures its processors. Collective. */
tess_status imager_meter(tess_comm *comm, const tess_backend *backend,
                         tess_profile *profile);

/** Memory that this rank may use [bytes]. It limits what is kept of freed arrays, too
 * (tess_keep.h). Collective. */
tess_status imager_rank_bytes(tess_comm *comm, const tess_layout *layout,
                              int64_t *bytes);

#endif
