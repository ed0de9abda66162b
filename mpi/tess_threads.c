/* Finds the number of threads of a rank from the batch allocation. */
#define _GNU_SOURCE
#include "tess_threads.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "tess_mem.h"

/* A positive whole number at the start of a variable ("4,2" of nested OpenMP is 4). */
static int from_environment(const char *name)
{
    const char *text = getenv(name);
    const long value = text ? strtol(text, NULL, 10) : 0;
    return value >= 1 && value <= 65536 ? (int)value : 0;
}

/* Number of cores whose time the control group may use; 0: unlimited. */
static double group_cores(void)
{
    double quota = 0, period = 0;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "r"); /* version 2: "max 100000" */
    if (file) {
        const int found = fscanf(file, "%lf %lf", &quota, &period);
        fclose(file);
        return found == 2 && quota > 0 && period > 0 ? quota / period : 0;
    }
    static const char *const paths[] = {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
                                        "/sys/fs/cgroup/cpu/cpu.cfs_period_us"};
    double values[2] = {0, 0};
    for (int k = 0; k < 2; ++k) {
        file = fopen(paths[k], "r");
        if (!file) return 0;
        const int found = fscanf(file, "%lf", &values[k]);
        fclose(file);
        if (found != 1 || values[k] <= 0) return 0;
    }
    return values[0] / values[1];
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

tess_status tess_threads_default(tess_comm *comm, int *threads)
{
    tess_status status = TESS_OK;
    tess_comm *node = NULL;
    cpu_set_t *masks = NULL;
    int found = from_environment("OMP_NUM_THREADS");
    if (!found) found = from_environment("SLURM_CPUS_PER_TASK");
    TESS_TRY(tess_comm_node(comm, &node));
    const int ranks = tess_comm_size(node);
    cpu_set_t own;
    CPU_ZERO(&own);
    if (sched_getaffinity(0, sizeof own, &own) != 0) CPU_SET(0, &own);
    masks = tess_alloc(ranks, sizeof *masks);
    if (!masks) TESS_FAIL(TESS_ERR_ALLOC, "core masks of %d ranks", ranks);
    TESS_TRY(tess_comm_allgather(node, &own, sizeof own, masks));
    if (!found) {
        double share = share_of_cores(masks, ranks, tess_comm_rank(node));
        const double limit = group_cores() / ranks;
        if (limit > 0 && share > limit) share = limit;
        found = (int)(share + 1e-6);
    }
    *threads = found < 1 ? 1 : found;
cleanup:
    tess_free(masks);
    tess_comm_free(node);
    return status;
}
