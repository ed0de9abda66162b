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

/** TESS_ERR_INPUT when that process dies of one of the sets, or takes too long; the
 *  message names set and column. TESS_OK as well, and a line in the log, when the
 * process cannot be had. Local. */
tess_status vis_ms_check(const char *const *paths, int num_paths,
                         const tess_vis_select *select);

#ifdef __cplusplus
}
#endif
#endif
