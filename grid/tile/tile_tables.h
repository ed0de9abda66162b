/** @file tile_tables.h  (private to grid/)
 *  The innermost loops of each instruction set, and what their sources share.
 */
#ifndef TESS_TILE_TABLES_H
#define TESS_TILE_TABLES_H

#include "tess_tile.h"

/** Samples that the loops sort together. */
enum { TILE_SORTED = 4096 };

extern const tile_table tile_table_portable;
#if defined(__x86_64__)
extern const tile_table tile_table_avx2;
extern const tile_table tile_table_knl;
extern const tile_table tile_table_avx512;
#endif

/** Move a position (run, samples of it already passed) on by `count` samples. */
void tile_advance(const tess_brick_list *bricks, int64_t count, int64_t *run,
                  int64_t *skip);

/** Complex values in the buffer of a brick sum. */
int64_t tile_values(const tess_grid_plan *plan, const tess_brick_sum *sum, int num_pol);

#endif
