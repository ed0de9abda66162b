/* Has ranks that wait for messages leave their processor to others, where there are
 * more ranks and threads than processors. Open MPI decides this by itself only where
 * there are more ranks than it counts cores of the host: it knows nothing of threads,
 * of the quota of a control group, and of what Slurm gives to a job. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "tess_processors.h"
#include "tess_threads.h"

static const char *const YIELD = "OMPI_MCA_mpi_yield_when_idle";

/* The largest number of a list like "8(x2),7". */
static int largest(const char *text)
{
    int most = 0;
    while (text && *text) {
        const int number = (int)strtol(text, NULL, 10);
        if (number > most) most = number;
        text = strchr(text, ',');
        if (text) ++text;
    }
    return most;
}

/* Ranks on this node, by what the launcher has put into the environment. */
static int count_ranks(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "SLURM_STEP_TASKS_PER_NODE",
                                        "SLURM_TASKS_PER_NODE"};
    for (size_t k = 0; k < sizeof names / sizeof *names; ++k) {
        const int ranks = largest(getenv(names[k]));
        if (ranks > 0) return ranks;
    }
    return 1;
}

/* Whether the launcher has bound each rank to processors of its own. */
static bool bound_apart(void)
{
    const char *open_mpi = getenv("OMPI_MCA_orte_bound_at_launch");
    const char *slurm = getenv("SLURM_CPU_BIND_TYPE");
    return (open_mpi && strcmp(open_mpi, "1") == 0) ||
           (slurm && *slurm && strncmp(slurm, "none", 4) != 0);
}

static bool exceeds(int ranks, int threads)
{
    cpu_set_t bound;
    const double all = (double)ranks * threads, job = tess_processors_of_job();
    if (job > 0 && all > job) return true;
    if (sched_getaffinity(0, sizeof bound, &bound) != 0) return false;
    return (bound_apart() ? threads : all) > CPU_COUNT(&bound);
}

void tess_threads_yield(int threads)
{
    const int ranks = count_ranks();
    if (threads < 1) threads = tess_threads_of_environment();
    if (threads < 1) threads = 1; /* their share of the processors, if ranks are few */
    if (ranks > 1 && exceeds(ranks, threads)) setenv(YIELD, "1", 0);
}
