#include "screen.h"

#include <stdlib.h>
#include <string.h>

int64_t screen_bytes(int64_t nx, double l0, bool is_double)
{
    const int64_t bytes = 2 * screen_count(nx, l0) * (is_double ? 8 : 4);
    return (bytes + 63) / 64 * 64;
}

const screen_table *screen_table_best(void)
{
#if defined(__x86_64__)
    const char *asked = getenv("TESS_ISA");
    __builtin_cpu_init();
    if ((!asked || strcmp(asked, "avx512") == 0) && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return &screen_table_avx512;
    if ((!asked || strcmp(asked, "avx2") == 0) && __builtin_cpu_supports("avx2") &&
        __builtin_cpu_supports("fma"))
        return &screen_table_avx2;
#endif
    return &screen_table_portable;
}
