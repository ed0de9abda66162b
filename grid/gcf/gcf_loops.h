/** @file gcf_loops.h  (private to grid/gcf/)
 *  The innermost loops over points and cells. They are compiled from one source
 *  (gcf_isa.c) for each instruction set, and one set is chosen at run time.
 */
#ifndef TESS_GCF_LOOPS_H
#define TESS_GCF_LOOPS_H

#include "tess_gcf_strategy.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    GCF_BLOCK_LINES = 8, /**< what products are formed in: most lines … */
    GCF_BLOCK_CELLS =
        16, /**< … and cells of a block, and zeros around a factor's taps */
    GCF_MOST_PRODUCTS = 512, /**< worked on together */
    GCF_MAX_RANK = 12
};

/** Taps of a factor to be split into real parts, imaginary parts and their sums, for as
 *  many cells together as vectors have lanes. */
typedef struct gcf_split {
    const void *taps; /**< complex [support], zeros GCF_BLOCK_CELLS around */
    int support;
    int shift; /**< of the first tap in the first block */
    bool conjugate;
    const void *vis; /**< a column's: taps are multiplied by it */
    void *out;       /**< [blocks][3][lanes] */
} gcf_split;

/** A product column[x] · row[y] of split factors. */
typedef struct gcf_product {
    const void *column, *row;
    int32_t line, end_line; /**< the column's, which begins where lanes do */
    int32_t first, end;     /**< the row's blocks of lanes */
} gcf_product;

/** A product that meets the lines in work. */
typedef struct gcf_met {
    const void *column, *row;
    int64_t first;
} gcf_met;

/** Cells, of a buffer or the grid itself, and products to be added to them. */
typedef struct gcf_product_job {
    const gcf_product *product;
    int64_t count;      /**< up to GCF_MOST_PRODUCTS */
    const gcf_job *job; /**< its lines, width and stride are meant, and its guard */
    void *cells;        /**< of one pol */
    /** work memory: [count]; for each block of cells, which of them meet it, and how
     *  many do: [width / lanes][GCF_MOST_PRODUCTS], [width / lanes] */
    gcf_met *met;
    uint16_t *list, *block_count;
} gcf_product_job;

/** A point's factors and a buffer to read it off. */
typedef struct gcf_dot_job {
    int rank, support;
    const uint16_t *half; /**< [rank] cells of a term on either side of the middle */
    bool conjugate;       /**< the kernel is (w < 0): it is then conjugated twice */
    const void *column, *row;      /**< complex [rank][·] at the first tap */
    int64_t column_step, row_step; /**< complex values from term to term */
    const void *cells;             /**< the footprint's first cell */
    int64_t stride;
    double value[2]; /**< out */
} gcf_dot_job;

/** Functions of one instruction set: of tables by precision, others by [is_double]. */
typedef struct gcf_table {
    /** vectors of cells */
    gcf_function *grid[GCF_NUM_PRECISIONS], *degrid[GCF_NUM_PRECISIONS];
    int lanes[2];
    void (*split_column[2])(const gcf_split *split, bool add);
    void (*split_row[2])(const gcf_split *split);
    void (*multiply[2])(const gcf_product_job *job);
    void (*dot[2])(gcf_dot_job *job);
} gcf_table;

extern const gcf_table gcf_table_portable;
#if defined(__x86_64__)
extern const gcf_table gcf_table_avx2;
extern const gcf_table gcf_table_knl;
extern const gcf_table gcf_table_avx512;
#endif

/** The table for this processor, see tess_isa_best(). */
const gcf_table *gcf_table_best(void);

#ifdef __cplusplus
}
#endif
#endif
