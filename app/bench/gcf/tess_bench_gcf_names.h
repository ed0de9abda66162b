/** @file tess_bench_gcf_names.h
 *  The words of `tessera bench gcf`: they are values of options, and entries of the
 *  tables that it prints.
 */
#ifndef TESS_BENCH_GCF_NAMES_H
#define TESS_BENCH_GCF_NAMES_H

#include <stddef.h>

#include "tess_bench_gcf.h"

/** Each array ends with NULL. */
extern const char *const tess_bench_gcf_backend_name[];   /**< by tess_gcf_backend */
extern const char *const tess_bench_gcf_operation_name[]; /**< by `degrid` */
extern const char *const tess_bench_gcf_precision_name[]; /**< by `is_double` */
extern const char *const tess_bench_gcf_order_name[];     /**< by its enum */
extern const char *const tess_bench_gcf_atomics_name[];   /**< by tess_study_atomics */
extern const char *const tess_bench_gcf_sort_name[];      /**< by tess_gcf_sort */
extern const char *const tess_bench_gcf_extra_name[];     /**< by `extra` of a case */

/** The tables of the field's studies. */
enum {
    TESS_BENCH_GCF_TABLE_SIZE,
    TESS_BENCH_GCF_TABLE_POINTS,
    TESS_BENCH_GCF_TABLE_IMAGE,
    TESS_BENCH_GCF_TABLE_POL,
    TESS_BENCH_GCF_TABLE_PRECISION,
    TESS_BENCH_GCF_TABLE_ATOMICS,
    TESS_BENCH_GCF_TABLE_COMPUTED,
    TESS_BENCH_GCF_TABLE_SETS,
    TESS_BENCH_GCF_NUM_TABLES
};
extern const char
    *const tess_bench_gcf_table_name[]; /**< "size"; NULL ends the array */
extern const char *const tess_bench_gcf_table_title[TESS_BENCH_GCF_NUM_TABLES];

/** The switches of a case that differ from their defaults, like "atomics=cas arrays";
 *  "" if none does. */
void tess_bench_gcf_switches(const tess_bench_gcf_case *what, char *text, size_t size);

#endif
