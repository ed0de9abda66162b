/* Chooses the inner loops for this processor. */
#include "cpu_loops.h"

#include "tess_isa.h"

const cpu_loops *cpu_loops_best(void)
{
    static const cpu_loops *const table[TESS_NUM_ISA] = TESS_ISA_TABLES(cpu_loops);
    return table[tess_isa_best()];
}
