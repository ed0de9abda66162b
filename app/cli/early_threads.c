/* Finds the number of threads before the command line is parsed: MPI must know when it
 * starts how its ranks wait, and the threads of OpenMP wait for each other in all
 * commands. */
#include "early_threads.h"

#include <stdlib.h>
#include <string.h>

#include "tess_threads.h"
#include "tess_waiting.h"

/* The number of --threads (WSClean's -j), before the command line is parsed, or 0. */
static int threads_asked(int argc, char **argv)
{
    static const char option[] = "--threads";
    const size_t length = sizeof option - 1;
    for (int k = 1; k < argc; ++k) {
        if (strncmp(argv[k], "--threads=", length + 1) == 0)
            return atoi(argv[k] + length + 1);
        if (k + 1 < argc &&
            (strcmp(argv[k], option) == 0 || strcmp(argv[k], "-j") == 0))
            return atoi(argv[k + 1]);
    }
    return 0;
}

void early_threads_yield(int argc, char **argv)
{
    tess_threads_yield(threads_asked(argc, argv));
}

tess_status early_threads_begin(tess_comm *comm, int argc, char **argv)
{
    tess_status status = TESS_OK;
    int threads = threads_asked(argc, argv);
    if (threads < 1) TESS_TRY(tess_threads_default(comm, &threads));
cleanup:
    tess_waiting_begin(threads);
    return status;
}
