/** @file tess_threads.h
 *  Threads per rank from the batch allocation, and whether they have processors.
 */
#ifndef TESS_THREADS_H
#define TESS_THREADS_H

#include "tess_comm.h"
#include "tess_status.h"

/** Threads that each rank may use when --threads is not given: OMP_NUM_THREADS, else
 *  SLURM_CPUS_PER_TASK, but no more than this rank's share of the cores to which the
 *  ranks of its node are bound, of the control groups' quota of processor time, and of
 *  the processors of the node that Slurm gives to the job. At least 1. Collective. */
tess_status tess_threads_default(tess_comm *comm, int *threads);

/** OMP_NUM_THREADS, else SLURM_CPUS_PER_TASK, else 0. */
int tess_threads_of_environment(void);

/** Before tess_comm_start(): if the ranks of this node, each with so many threads (0:
 *  tess_threads_of_environment(), else 1), are more than the processors that they may
 *  use, have Open MPI's ranks yield their processor while they wait, by its parameter
 *  mpi_yield_when_idle in the environment. A value that is there already stays. Other
 *  MPI libraries do not read it. */
void tess_threads_yield(int threads);

#endif
