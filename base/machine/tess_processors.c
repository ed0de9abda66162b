/* Counts the processors that a process may use: by its binding, by the quotas of its
 * control groups, and by what Slurm gives to the job. */
#define _GNU_SOURCE
#include "tess_processors.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "tess_cgroup.h"

/* The numbers at the start of a file: how many there are, at most two. "max" is none.
 */
static int numbers_in_file(const char *folder, const char *name, double value[2])
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    const int found = fscanf(file, "%lf %lf", &value[0], &value[1]);
    fclose(file);
    return found > 0 ? found : 0;
}

/* Lowers the quota to that of a control group. */
static void take_quota(const char *folder, int version, void *context)
{
    double *quota = context, value[2] = {0, 0};
    if (version == 2) {
        if (numbers_in_file(folder, "cpu.max", value) != 2) return;
    } else {
        if (numbers_in_file(folder, "cpu.cfs_period_us", value) < 1) return;
        value[1] = value[0];
        if (numbers_in_file(folder, "cpu.cfs_quota_us", value) < 1) return;
    }
    if (value[0] <= 0 || value[1] <= 0) return; /* -1: unlimited */
    const double processors = value[0] / value[1];
    if (*quota == 0 || processors < *quota) *quota = processors;
}

double tess_processors_quota(const char *root)
{
    double quota = 0;
    tess_cgroup_each(root, "cpu", take_quota, &quota);
    return quota;
}

double tess_processors_of_job(void)
{
    const double quota = tess_processors_quota("");
    const char *text = getenv("SLURM_CPUS_ON_NODE");
    const double given = text ? (double)strtol(text, NULL, 10) : 0;
    if (given <= 0) return quota;
    return quota > 0 && quota < given ? quota : given;
}

int tess_processors(void)
{
    cpu_set_t bound;
    const double job = tess_processors_of_job();
    double count = 1;
    if (sched_getaffinity(0, sizeof bound, &bound) == 0) count = CPU_COUNT(&bound);
    if (job > 0 && job < count) count = job;
    return count < 1 ? 1 : (int)(count + 1e-6);
}
