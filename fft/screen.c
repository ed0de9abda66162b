/* Chooses the w-screen loops for this processor, and counts the bytes that they use. */
#include "screen.h"

#include "tess_isa.h"

int64_t screen_bytes(int64_t nx, double l0, bool is_double)
{
    const int64_t bytes = 2 * screen_count(nx, l0) * (is_double ? 8 : 4);
    return (bytes + 63) / 64 * 64;
}

const screen_table *screen_table_best(void)
{
    static const screen_table *const table[TESS_NUM_ISA] =
        TESS_ISA_TABLES(screen_table);
    return table[tess_isa_best()];
}
