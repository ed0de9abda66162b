/** @file tess_spent.h
 *  What this process has spent on communication with other ranks, over all
 *  communicators: mpi/ counts it, and the profile reads it.
 */
#ifndef TESS_SPENT_H
#define TESS_SPENT_H

#include <stdint.h>

typedef struct tess_spent {
    int64_t bytes_sent;    /**< to other ranks */
    int64_t bytes_between; /**< those of them that personalised exchanges and
                                tess_comm_reduce_scatter have sent to other nodes */
    double seconds;        /**< in calls of tess_comm.h, waiting included */
} tess_spent;

/** Add to what has been spent. Local. */
void tess_spent_add(const tess_spent *more);

/** All since the start of the program. Local. */
tess_spent tess_spent_so_far(void);

#endif
