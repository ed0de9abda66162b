/** @file tess_profile_report.h
 *  The profiles of all ranks, written as JSON by --profile and summed up in lines of
 * the log that --verbose shows.
 */
#ifndef TESS_PROFILE_REPORT_H
#define TESS_PROFILE_REPORT_H

#include "tess_comm.h"
#include "tess_profile.h"
#include "tess_status.h"

/** Log a table of totals, as details (rank 0). Collective. */
tess_status tess_profile_summary(tess_comm *comm, const tess_profile *profile);

/** Write FILE.json: {"version", "ranks":[{rank, host, stages:{name:{seconds, bytes,
 *  visibilities, mpi_seconds (waiting at the end of the stage included, which `seconds`
 *  of gridding do not count)}}, peak_memory_bytes, device_bytes, image_slab_bytes,
 *  plane_slab_bytes,
 *  grid_utilisation, grid_own_seconds, join_seconds (of the fft stage: tile sums to and
 *  from grid lines; 0 on GPUs), merged_visibilities, streaming:{bytes, seconds,
 *  busy:{readers, writers, link, device}, busiest:{name ("readers", who write too,
 *  "link" or "device"), share of the seconds}, or null}, energy:{cpu_joules,
 * gpu_joules, gpu_mhz, gpu_celsius, stages:{name:{cpu_joules, gpu_joules}}}}],
 *  "totals":{visibilities, ignored:{reason:n}, without_solution (left out of facets for
 *  lack of a solution, once for each facet), seconds, communication_fraction,
 *  peak_memory_bytes, plans, transforms, checkpoints:{number, seconds, bytes} with
 *  --checkpoint, streaming, cpu_joules, gpu_joules, grid_utilisation (the mean),
 *  grid_imbalance:{predicted, measured} (the most loaded rank over the mean, less 1),
 *  merged_visibilities}, "projection_error" with --w projection}. Energy that cannot be
 *  read is null. TESS_ERR_IO when it cannot be written, or is there and not
 * `overwrite`. Collective. */
tess_status tess_profile_write(tess_comm *comm, const tess_profile *profile,
                               const char *path, bool overwrite);

#endif
