/* Finds the number of threads of a rank from the batch allocation. */
#define _GNU_SOURCE
#include "tess_threads.h"

#include <sched.h>
#include <stdlib.h>

#include "tess_mem.h"
#include "tess_processors.h"

/* A positive whole number at the start of a variable ("4,2" of nested OpenMP is 4). */
static int from_environment(const char *name)
{
    const char *text = getenv(name);
    const long value = text ? strtol(text, NULL, 10) : 0;
    return value >= 1 && value <= 65536 ? (int)value : 0;
}

int tess_threads_of_environment(void)
{
    const int found = from_environment("OMP_NUM_THREADS");
    return found ? found : from_environment("SLURM_CPUS_PER_TASK");
}

/* This rank's share: each core of its mask counts as 1 over the ranks that may use it,
 * which is right for ranks bound to cores of their own and for unbound ones. */
static double share_of_cores(const cpu_set_t *masks, int ranks, int own)
{
    double share = 0;
    for (size_t core = 0; core < CPU_SETSIZE; ++core) {
        if (!CPU_ISSET(core, &masks[own])) continue;
        int users = 0;
        for (int k = 0; k < ranks; ++k)
            users += CPU_ISSET(core, &masks[k]) ? 1 : 0;
        share += 1.0 / users;
    }
    return share;
}

/* This rank's share of the node's processors. Collective over the ranks of the node. */
static tess_status find_share(tess_comm *node, double *share)
{
    tess_status status = TESS_OK;
    const int ranks = tess_comm_size(node);
    const double limit = tess_processors_of_job() / ranks;
    cpu_set_t own;
    CPU_ZERO(&own);
    if (sched_getaffinity(0, sizeof own, &own) != 0) CPU_SET(0, &own);
    cpu_set_t *masks = tess_alloc(ranks, sizeof *masks);
    if (!masks) TESS_FAIL(TESS_ERR_ALLOC, "core masks of %d ranks", ranks);
    TESS_TRY(tess_comm_allgather(node, &own, sizeof own, masks));
    *share = share_of_cores(masks, ranks, tess_comm_rank(node));
    if (limit > 0 && *share > limit) *share = limit;
cleanup:
    tess_free(masks);
    return status;
}

tess_status tess_threads_default(tess_comm *comm, int *threads)
{
    tess_status status = TESS_OK;
    tess_comm *node = NULL;
    double share = 1;
    const int asked = from_environment("OMP_NUM_THREADS");
    const int of_task = from_environment("SLURM_CPUS_PER_TASK");
    TESS_TRY(tess_comm_node(comm, &node));
    TESS_TRY(find_share(node, &share));
    int found = asked ? asked : (int)(share + 1e-6);
    if (!asked && of_task && of_task < found) found = of_task;
    *threads = found < 1 ? 1 : found;
cleanup:
    tess_comm_free(node);
    return status;
}
