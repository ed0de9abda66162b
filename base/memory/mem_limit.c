/* Finds out how much memory the process may use. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>

#include "tess_cgroup.h"
#include "tess_mem.h"

enum { MEBI = 1048576 };

static int64_t smaller_positive(int64_t limit, int64_t candidate)
{
    return candidate > 0 && candidate < limit ? candidate : limit;
}

/* Lowers the limit to that of a control group. */
static void take_limit(const char *folder, int version, void *context)
{
    int64_t *limit = context;
    const char *name = version == 2 ? "memory.max" : "memory.limit_in_bytes";
    *limit = smaller_positive(*limit, tess_cgroup_number(folder, name, -1));
}

int64_t tess_mem_cgroup_limit_bytes(const char *root)
{
    int64_t limit = INT64_MAX;
    tess_cgroup_each(root, "memory", take_limit, &limit);
    return limit;
}

/* One variable's number of MiB, times the number in another variable. */
static int64_t slurm_limit(const char *name, const char *count_name, int64_t limit)
{
    const char *text = getenv(name);
    const char *count = count_name ? getenv(count_name) : "1";
    if (!text || !count) return limit;
    return smaller_positive(limit,
                            strtoll(text, NULL, 10) * strtoll(count, NULL, 10) * MEBI);
}

int64_t tess_mem_node_limit_bytes(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    int64_t limit = pages > 0 && page > 0 ? (int64_t)pages * page : INT64_MAX;
    limit = smaller_positive(limit, tess_mem_cgroup_limit_bytes(""));
    limit = slurm_limit("SLURM_MEM_PER_NODE", NULL, limit);
    limit = slurm_limit("SLURM_MEM_PER_CPU", "SLURM_CPUS_ON_NODE", limit);
    return slurm_limit("SLURM_MEM_PER_GPU", "SLURM_GPUS_ON_NODE", limit);
}
