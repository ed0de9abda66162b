/** @file sim_rows.h  (private to app/simulate/)
 *  The rows that each rank predicts, block after block.
 */
#ifndef TESS_SIM_ROWS_H
#define TESS_SIM_ROWS_H

#include "tess_comm.h"
#include "tess_vis.h"

/** A rank's rows of a segment. */
typedef struct tess_sim_rows {
    int64_t first, end; /**< of the rank */
    int64_t step;       /**< rows of a block, at least 1 */
    int64_t num_blocks; /**< the same on all ranks; the last ones may be empty */
} tess_sim_rows;

/** The share of this rank. `gathered`: one rank has the blocks of all in memory, as
 *  tess_vis_gathers() tells. Local. */
tess_sim_rows tess_sim_rows_of(const tess_comm *comm, const tess_vis_segment *segment,
                               bool gathered);

#endif
