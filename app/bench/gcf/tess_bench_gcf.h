/** @file tess_bench_gcf.h
 *  Strategies of gridding with tables of convolution functions, timed in turns on the
 *  same points, made up on the spot.
 */
#ifndef TESS_BENCH_GCF_H
#define TESS_BENCH_GCF_H

#include "tess_bench_gcf_sets.h"
#include "tess_study.h"

/** Strategies of a case, at most: each once, and once in each of its shapes. */
enum { TESS_BENCH_GCF_MOST = TESS_STUDY_NUM_STRATEGIES + TESS_GCF_SHAPES };

typedef enum tess_bench_gcf_order {
    TESS_BENCH_GCF_RANDOM,    /**< anywhere on the grid, in any order */
    TESS_BENCH_GCF_SORTED,    /**< the same, by lines of tiles of 64 cells */
    TESS_BENCH_GCF_TRACKS,    /**< of an array with a dense middle, in order of time */
    TESS_BENCH_GCF_BASELINES, /**< the same, track after track */
    TESS_BENCH_GCF_SETS,      /**< tess_bench_gcf_sets, one after another */
    TESS_BENCH_GCF_NUM_ORDERS = TESS_BENCH_GCF_SETS + TESS_BENCH_GCF_NUM_SETS
} tess_bench_gcf_order;

typedef struct tess_bench_gcf_case {
    bool degrid, is_double;
    tess_bench_gcf_order order;
    int64_t num_points; /**< about */
    int64_t size;       /**< of the grid [cells along each axis] */
    int support;        /**< of all planes [cells] */
    int num_planes, oversampling, num_pol;
    double field_rad; /**< of the grid: w is such that kernels fill their support */
    bool is_formula;  /**< kernels of a formula, not w-kernels, … */
    int extra;        /**< … bit 0: with an extra phase, bit 1: an extra sine */
    bool normalise;   /**< taps sum to 1 */
    double energy_s;  /**< to read energy for, 0: not */
    const char *intensity;               /**< name of maps to be written, or NULL */
    bool overwrite;                      /**< may they be there already? */
    tess_study_opts opts;                /**< but strategy */
    const tess_study_strategy *strategy; /**< [num_strategies] */
    const int *shape; /**< [num_strategies] in place of that of opts; or NULL */
    int num_strategies;
    double shrink; /**< of a set: see tess_bench_gcf_set_make() */
} tess_bench_gcf_case;

/** What was found of a strategy: medians over the repetitions. */
typedef struct tess_bench_gcf_result {
    int64_t num_points;     /**< that were gridded */
    int64_t merged;         /**< and what they were merged into: gflops are theirs */
    double mean_rank;       /**< products a point; 0: none was factored */
    double sort_s, seconds; /**< placing and sorting, and the rest */
    double copy_s;          /**< on a GPU: copies to it and back, … */
    double cells_s;         /**< … of the grid alone */
    double gflops;          /**< 8 FLOP a point, cell and pol, over both; on a GPU over
                                 `seconds` alone, its kernels' */
    double busy_share;
    double difference; /**< relative L2, from the first strategy's result */
    double joules; /**< of a run, on a GPU of its kernels; NAN: cannot be read … */
    double watts;  /**< … nor this … */
    double mhz, celsius;   /**< … nor these, of the GPU */
    tess_study_box box;    /**< as of tess_gcf_report, … */
    double saved_s;        /**< … what copies took less than of a whole grid */
    int64_t points_atomic; /**< as of tess_gcf_report */
    int64_t table_bytes;   /**< of taps, or of factors */
    double all_gflops;     /**< counted on all points, those merged into others too */
    double point_cells;    /**< cells updated or read, Σ S² over the points, … */
    double study_cells;    /**< … and, of a set, those of the study: Σ (2h + 1)² */
} tess_bench_gcf_result;

/** Once to warm up, then `repeat` times, strategies in turns; result[num_strategies].
 *  A set has its own size, support, planes, oversampling and field, which are written
 * to the case. Errors as of tess_gcf_create() and gridding. Local. */
tess_status tess_bench_gcf_run(tess_bench_gcf_case *what, int repeat,
                               tess_bench_gcf_result *result);

/** Can joules be read of a backend, here and now? Local. */
bool tess_bench_gcf_has_meter(tess_gcf_backend backend);

#endif
