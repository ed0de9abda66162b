/* Logs the hosts and the batch job, and finds the memory that the job may use. */
#define _GNU_SOURCE
#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tess_forced.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_version.h"

enum { HOST_BYTES = 64, MAX_HOSTS_SHOWN = 16 };

/* Writes "2 nodes: n01 (4 ranks), n02 (4 ranks)". Consecutive ranks with the same host
 * name count as one node, because ranks of a node are usually neighbours. */
static void describe_hosts(const char *hosts, int ranks, char *text, size_t size)
{
    size_t used = 0;
    int shown = 0;
    for (int first = 0, next = 0; first < ranks && used < size; first = next) {
        const char *name = hosts + (size_t)first * HOST_BYTES;
        while (next < ranks && strcmp(name, hosts + (size_t)next * HOST_BYTES) == 0)
            ++next;
        if (shown++ == MAX_HOSTS_SHOWN) {
            snprintf(text + used, size - used, ", ...");
            break;
        }
        const int n =
            snprintf(text + used, size - used, "%s%s (%d rank%s)", first ? ", " : "",
                     name, next - first, next - first == 1 ? "" : "s");
        used += n > 0 ? (size_t)n : 0;
    }
}

static const char *batch_job(void)
{
    static const char *const names[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID",
                                        "JOB_ID"};
    for (size_t k = 0; k < sizeof names / sizeof *names; ++k) {
        const char *value = getenv(names[k]);
        if (value && *value) return value;
    }
    return NULL;
}

tess_status tess_job_log(tess_comm *comm, int threads, const char *command_line)
{
    tess_status status = TESS_OK;
    const int ranks = tess_comm_size(comm);
    char own[HOST_BYTES] = "", text[1024] = "";
    char *hosts = tess_alloc(ranks, HOST_BYTES);
    if (!hosts)
        status = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                   "names of %d hosts", ranks);
    TESS_TRY(tess_comm_agree(comm, status));
    if (gethostname(own, sizeof own - 1) != 0) snprintf(own, sizeof own, "unknown");
    TESS_TRY(tess_comm_allgather(comm, own, sizeof own, hosts));
    describe_hosts(hosts, ranks, text, sizeof text);
    tess_log_info("tessera %s on %d rank%s, %d thread%s each", tess_version_full(),
                  ranks, ranks == 1 ? "" : "s", threads, threads == 1 ? "" : "s");
    tess_log_detail("hosts: %s", text);
    if (batch_job()) tess_log_detail("batch job: %s", batch_job());
    tess_log_detail("command: %s", command_line);
    tess_forced_log();
cleanup:
    tess_free(hosts);
    return status;
}

void tess_job_log_notes(const char *const *notes)
{
    for (; notes && *notes; ++notes)
        tess_log_detail("%s", *notes);
}

tess_status tess_job_memory(tess_comm *comm, int64_t per_node, double *bytes)
{
    tess_status status = TESS_OK;
    tess_comm *node = NULL;
    TESS_TRY(tess_comm_node(comm, &node));
    const int64_t limit = tess_mem_node_limit_bytes();
    double share = (double)(per_node > 0 ? per_node : limit) / tess_comm_size(node);
    TESS_TRY(tess_comm_allreduce_f64(comm, &share, 1, TESS_SUM));
    *bytes = share;
cleanup:
    tess_comm_free(node);
    return status;
}
