/** @file tess_spent.h
 *  Bytes and time that this process has spent on communication with other ranks, over
 *  all communicators. mpi/ counts them, and the profile reads them.
 */
#ifndef TESS_SPENT_H
#define TESS_SPENT_H

#include <stdint.h>

typedef struct tess_spent {
    int64_t bytes_sent;    /**< bytes sent to other ranks */
    int64_t bytes_between; /**< of these, the bytes that personalised exchanges and
                              tess_comm_reduce_scatter have sent to other nodes */
    double seconds;        /**< seconds in calls of tess_comm.h, including waiting */
} tess_spent;

/** Add to what has been spent. Local. */
void tess_spent_add(const tess_spent *more);

/** All that has been spent since the program started. Local. */
tess_spent tess_spent_so_far(void);

#endif
