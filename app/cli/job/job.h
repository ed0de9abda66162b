/** @file job.h  (private to app/cli/)
 *  Logs the version, the hosts, the batch job and the command line, and finds the
 * memory of the job.
 */
#ifndef TESS_JOB_H
#define TESS_JOB_H

#include <stdint.h>

#include "tess_comm.h"
#include "tess_status.h"

/** Log version, ranks, threads, hosts and the number of the batch job. Collective. */
tess_status tess_job_log(tess_comm *comm, int threads, const char *command_line);

/** Lines that the log file gets, and the terminal at TESS_LOG_DEBUG; NULL ends them,
 * and NULL is none. Local. */
void tess_job_log_notes(const char *const *notes);

/** Memory that all nodes of the job may use together [bytes]. If `per_node` is not 0,
 * it is the memory of each node. The result is the same on every rank. Collective. */
tess_status tess_job_memory(tess_comm *comm, int64_t per_node, double *bytes);

#endif
