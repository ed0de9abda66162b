/** @file study_device.h  (private to app/bench/gcf/strategies/)
 *  The strategies for comparison on a GPU, as plans see them. Where the build has no
 *  GPU, study_device_absent.c has none.
 */
#ifndef TESS_STUDY_DEVICE_H
#define TESS_STUDY_DEVICE_H

#include "tess_study.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A strategy that tess_gcf_grid.h does not have, in a direction; NULL: there is none.
 */
const struct gcf_device_method *study_device_method(tess_study_strategy strategy,
                                                    bool degrid);

/** The strategy of a study's plan with the probes that all strategies have. */
const struct gcf_device_method *study_device_probed(bool degrid);

/** (De)grid points and cells on the host with a study's plan: what differs from
 *  tess_gcf_grid() are probes, times of copies, and repetitions. */
gcf_run study_device_run;

#ifdef __cplusplus
}
#endif
#endif
