/** @file bench_gcf_published.h  (private to app/bench/)
 *  Figures that studies of gridding have published, to stand beside those measured.
 */
#ifndef TESS_BENCH_GCF_PUBLISHED_H
#define TESS_BENCH_GCF_PUBLISHED_H

#include "bench_gcf_rows.h"

/** A published figure. */
typedef struct tess_bench_gcf_published {
    const char *table;                          /**< the name of its table */
    int order;                                  /**< of the case, −1: any, or … */
    int operation, is_double, support, num_pol; /**< … of its lines, −1: any … */
    int points, size;                           /**< … and asked for, −1: any */
    double value;
    const char *unit; /**< "GFLOP/s", "ms", or "times" */
    const char *what, *source;
} tess_bench_gcf_published;

/** The figure of this number; NULL past the end. */
const tess_bench_gcf_published *tess_bench_gcf_published_at(int k);

/** The first figure that belongs to a line of a table, or NULL. */
const tess_bench_gcf_published *
tess_bench_gcf_published_for(const tess_bench_gcf_row *row);

#endif
