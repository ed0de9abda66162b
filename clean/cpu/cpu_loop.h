/** @file cpu_loop.h  (private to clean/)
 *  The sub-minor loop of a scale, which finds components, and what adds them to model
 *  images.
 */
#ifndef TESS_CLEAN_CPU_LOOP_H
#define TESS_CLEAN_CPU_LOOP_H

#include "cpu_work.h"

/* ---- a function and a source for each algorithm; that of `list` is cpu_loop.c ---- */

#define TESS_CLEAN_CYCLE_DECLARED(name)                                                \
    tess_status cpu_cycle_##name(clean_work *work, clean_loop *loop,                   \
                                 clean_components *found);
TESS_CLEAN_CYCLES(TESS_CLEAN_CYCLE_DECLARED)
#undef TESS_CLEAN_CYCLE_DECLARED

/** At each pixel of a component, add a kernel that is multiplied by its flux, in double
 * precision: to `num` models, of the images from `first` on. TESS_ERR_ALLOC. Local. */
tess_status cpu_add_scale(const clean_setup *setup, int scale,
                          const clean_components *merged, int first, int num,
                          const tess_rows *view);

tess_status cpu_add(clean_work *work, const clean_components *merged,
                    const tess_rows *model);

#endif
