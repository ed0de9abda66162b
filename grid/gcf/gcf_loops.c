/* Chooses the innermost loops for the processor. */
#include "gcf_loops.h"

#include "tess_isa.h"

const gcf_table *gcf_table_best(void)
{
    static const gcf_table *const table[TESS_NUM_ISA] = TESS_ISA_TABLES(gcf_table);
    return table[tess_isa_best()];
}
