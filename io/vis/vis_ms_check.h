/** @file vis_ms_check.h  (private to io/)
 *  Has tessera-ms-check, a process of its own, read MeasurementSets before the ranks
 * do.
 */
#ifndef VIS_MS_CHECK_H
#define VIS_MS_CHECK_H

#include "tess_vis.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Wait for each set as vis_ms_await() does, and have that process read them.
 *  TESS_ERR_INPUT when it dies while it reads one of the sets, or takes too
 *  long; the message names the set and the column. When the process cannot be started,
 *  the function logs this and returns TESS_OK. Local. */
tess_status vis_ms_check(const char *const *paths, int num_paths,
                         const tess_vis_select *select);

/** Wait until no other program writes the set or a subtable that is read of it.
 *  TESS_ERR_IO: it goes on for too long; TESS_ERR_STOPPED. Local. */
tess_status vis_ms_await(const char *path);

#ifdef __cplusplus
}
#endif
#endif
