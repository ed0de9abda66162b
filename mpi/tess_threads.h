/** @file tess_threads.h
 *  Threads per rank from the batch allocation.
 */
#ifndef TESS_THREADS_H
#define TESS_THREADS_H

#include "tess_comm.h"
#include "tess_status.h"

/** Threads that each rank may use when --threads is not given: OMP_NUM_THREADS, else
 *  SLURM_CPUS_PER_TASK, else this rank's share of the cores to which the ranks of its
 *  node are bound, or of the control group's limit of processor time if that is less. At
 *  least 1. Collective. */
tess_status tess_threads_default(tess_comm *comm, int *threads);

#endif
