/* Preloaded before MPI: an MPI whose start puts a handler of its own in place of the
 * program's for SIGUSR1, as some builds of MPI and of what they use do. */
#include <mpi.h>
#include <signal.h>

static void lose(int number)
{
    (void)number;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    const int failed = PMPI_Init_thread(argc, argv, required, provided);
    signal(SIGUSR1, lose);
    return failed;
}
