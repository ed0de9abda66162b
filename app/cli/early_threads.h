/* How ranks and threads wait, which is decided before the command line is parsed. */
#ifndef EARLY_THREADS_H
#define EARLY_THREADS_H

#include "tess_comm.h"
#include "tess_status.h"

/* Before MPI starts: ranks yield their processors if there are too few of them. */
void early_threads_yield(int argc, char **argv);

/* Calls tess_waiting_begin(), also if it fails. Collective. */
tess_status early_threads_begin(tess_comm *comm, int argc, char **argv);

#endif
