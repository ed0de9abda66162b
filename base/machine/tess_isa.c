/* Chooses the instruction set of the inner loops for this processor. */
#include "tess_isa.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const char *tess_isa_name(tess_isa isa)
{
    static const char *const name[TESS_NUM_ISA] = {"portable", "avx2", "knl", "avx512"};
    return name[isa];
}

static bool supported(tess_isa isa)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool knl =
        avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd");
    switch (isa) {
    case TESS_ISA_AVX2:
        return avx2;
    case TESS_ISA_KNL:
        return knl;
    case TESS_ISA_AVX512:
        return knl && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
    default:
        return true;
    }
#else
    return isa == TESS_ISA_PORTABLE;
#endif
}

tess_isa tess_isa_best(void)
{
    const char *asked = getenv("TESS_ISA");
    for (int isa = TESS_NUM_ISA - 1; isa > TESS_ISA_PORTABLE; --isa) {
        const bool wanted = !asked || strcmp(asked, tess_isa_name((tess_isa)isa)) == 0;
        if (wanted && supported((tess_isa)isa)) return (tess_isa)isa;
    }
    return TESS_ISA_PORTABLE;
}
