/* Chooses the loop over brick keys for the processor. */
#include "keys.h"

#include "tess_isa.h"

const key_table *key_table_best(void)
{
    static const key_table *const table[TESS_NUM_ISA] = TESS_ISA_TABLES(key_table);
    return table[tess_isa_best()];
}
