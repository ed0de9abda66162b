/** @file bench_gcf_options.h  (private to app/)
 *  Options of `tessera bench gcf`, and the table that it prints.
 */
#ifndef TESS_BENCH_GCF_OPTIONS_H
#define TESS_BENCH_GCF_OPTIONS_H

#include <argp.h>

#include "bench_gcf.h"
#include "bench_list.h"

/** Lists are swept; words of operation, precision and order are numbers of the names
 *  below. */
typedef struct tess_bench_gcf_args {
    tess_bench_list operation, strategy, gcf, vis, size, pol, precision, order;
    int64_t repeat;
    int planes, oversampling;
    double field_rad, energy_s;
    bool markdown, tune, formula, normalise;
    double shrink;
    struct {
        bool operation, gcf, vis, size;
    } given;               /**< options, whose default is not the same everywhere */
    tess_bench_list study; /**< tables of tess_bench_gcf_table_name(); none: no study */
    const char *out;
    bool overwrite;
    double within_min;
    int extra;               /**< as of tess_bench_gcf_case */
    const char *intensity;   /**< --intensity, or NULL */
    tess_gcf_grid_opts opts; /**< threads: 0, none given; no strategy */
} tess_bench_gcf_args;

/** Input of the parser: tess_bench_gcf_args. */
extern const struct argp tess_bench_gcf_argp;

/** The case of one value of each list, in this order: operation, order, visibilities,
 *  size, polarisations, precision, width; with strategies, of which there are none yet.
 */
void tess_bench_gcf_case_of(const tess_bench_gcf_args *args, const double *value,
                            const tess_gcf_strategy *strategy,
                            tess_bench_gcf_case *what);
/** Its part for probes, and what they and other switches of a case are, as "atomics=cas
 *  arrays"; "" for none. */
extern const struct argp tess_bench_gcf_probes_argp;
void tess_bench_gcf_switches(const tess_bench_gcf_case *what, char *text, size_t size);

extern const char *const tess_bench_gcf_backend_name[];   /**< by tess_gcf_backend */
extern const char *const tess_bench_gcf_operation_name[]; /**< by `degrid` */
extern const char *const tess_bench_gcf_precision_name[]; /**< by `is_double` */
extern const char *const tess_bench_gcf_order_name[];     /**< by its enum */

/** Print what was found of strategy number `k` of a case as a line of the table on
 *  standard output, or (head) the names of its columns. */
void tess_bench_gcf_print(const tess_bench_gcf_case *what, int k,
                          const tess_bench_gcf_result *found, bool markdown, bool head);

#endif
