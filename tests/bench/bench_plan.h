/** @file bench_plan.h  (tests)
 *  A benchmark's set as the gridder wants it.
 */
#ifndef TESS_BENCH_PLAN_H
#define TESS_BENCH_PLAN_H

#include "bench_set.h"
#include "tess_grid.h"

/** The plan for the set's image, on the cpu backend; the caller destroys it. */
tess_status bench_plan(const bench_set *set, double accuracy, int threads,
                       tess_grid_plan **plan);

/** Samples with the set's positions and visibilities, of weight 1; `inv_lambda` is
 *  borrowed, the rest is freed with tess_samples_free. */
tess_status bench_samples(const bench_set *set, bool is_double, tess_samples *samples);

#endif
