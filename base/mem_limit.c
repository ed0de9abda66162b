/* Finds out how much memory the process may use. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tess_mem.h"

enum { MEBI = 1048576 };

/* The first number in a file, or −1 if there is none: the file has "max", or does not
 * exist. */
static int64_t number_in_file(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) return -1;
    long long value = -1;
    if (fscanf(file, "%lld", &value) != 1) value = -1;
    fclose(file);
    return value;
}

static int64_t smaller_positive(int64_t limit, int64_t candidate)
{
    return candidate > 0 && candidate < limit ? candidate : limit;
}

enum { PATH_BYTES = 2048 };

/* The smallest number in files of this name in the folders from root/path up to root. A
 * container may see its own part of the hierarchy as the root: then root/path does not
 * exist, but root does. */
static int64_t limit_along(const char *root, const char *path, const char *name,
                           int64_t limit)
{
    char folder[PATH_BYTES], file[PATH_BYTES + 64];
    const size_t top = strlen(root);
    snprintf(folder, sizeof folder, "%s%s", root, path);
    for (;;) {
        snprintf(file, sizeof file, "%s/%s", folder, name);
        limit = smaller_positive(limit, number_in_file(file));
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < top) return limit;
        *slash = '\0';
    }
}

/* Read a line NUMBER:CONTROLLERS:PATH of /proc/self/cgroup. Version 2 has the number 0
 * and no controllers. The line is changed. */
static int64_t limit_of_line(const char *root, char *line, int64_t limit)
{
    char folder[PATH_BYTES];
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *path = controllers ? strchr(++controllers, ':') : NULL;
    if (!path) return limit;
    *path++ = '\0';
    if (!*controllers) {
        snprintf(folder, sizeof folder, "%s/sys/fs/cgroup", root);
        return limit_along(folder, path, "memory.max", limit);
    }
    if (strcmp(controllers, "memory") != 0) return limit;
    snprintf(folder, sizeof folder, "%s/sys/fs/cgroup/memory", root);
    return limit_along(folder, path, "memory.limit_in_bytes", limit);
}

int64_t tess_mem_cgroup_limit_bytes(const char *root)
{
    int64_t limit = INT64_MAX;
    char line[PATH_BYTES];
    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    FILE *file = fopen(line, "r");
    if (!file) return limit;
    while (fgets(line, sizeof line, file))
        limit = limit_of_line(root, line, limit);
    fclose(file);
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
