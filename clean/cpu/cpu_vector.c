/* Chooses the inner loops for this processor. */
#include "cpu_vector.h"

#include "tess_isa.h"

const cpu_vector *cpu_vector_best(void)
{
    static const cpu_vector *const table[TESS_NUM_ISA] = TESS_ISA_TABLES(cpu_vector);
    return table[tess_isa_best()];
}
