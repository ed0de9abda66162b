/** @file cpu_loop.h  (private to clean/)
 *  The sub-minor loop of a scale, which finds components, and what adds them to model
 *  images.
 */
#ifndef TESS_CLEAN_CPU_LOOP_H
#define TESS_CLEAN_CPU_LOOP_H

#include "cpu_work.h"

tess_status cpu_loop(clean_work *work, clean_loop *loop, clean_components *found);

tess_status cpu_add(clean_work *work, int scale, const clean_components *merged,
                    double *const *model);

#endif
