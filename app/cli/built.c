/* Prints the version of the program and what it was built with. */
#include "built.h"

#include "tess_comm.h"
#include "tess_isa.h"
#include "tess_mem.h"
#include "tess_version.h"

static void print_processors(FILE *out)
{
    fprintf(out, "%-16s", "processor code");
    for (int isa = 0; isa < TESS_NUM_ISA_BUILT; ++isa)
        fprintf(out, "%s%s", isa ? ", " : "", tess_isa_name((tess_isa)isa));
    const tess_isa best = tess_isa_best();
    fprintf(out, "; here: %s\n",
            tess_isa_name(
                best < TESS_NUM_ISA_BUILT ? best : (tess_isa)(TESS_NUM_ISA_BUILT - 1)));
}

void tess_built_print(FILE *out)
{
    char mpi[256];
    tess_comm_library(mpi, sizeof mpi);
    fprintf(out, "tessera %s\nbuilt with %s\nusing %s\n", tess_version_full(),
            tess_version_compiler(), tess_version_libraries());
    fprintf(out, "%-16s%s\n", "MPI", mpi);
    fprintf(out, "%-16s%s\n", "OpenMP", tess_version_openmp());
    fprintf(out, "%-16s%s\n", "GPUs", tess_version_gpu());
    print_processors(out);
    fprintf(out, "%-16s%s\n", "fast memory", tess_fast_memory_text());
    fprintf(out, "%-16s%s\n", "MeasurementSets", tess_version_ms());
}
