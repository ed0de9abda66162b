/** @file tess_isa.h
 *  Instruction sets for which inner loops are compiled (cmake/isa.cmake), and the
 *  choice among them on this processor.
 */
#ifndef TESS_ISA_H
#define TESS_ISA_H

/** Instruction sets. Each one contains those before it. */
typedef enum tess_isa {
    TESS_ISA_PORTABLE,
    TESS_ISA_AVX2,   /**< AVX2 and FMA */
    TESS_ISA_KNL,    /**< AVX-512F and CD; a Xeon Phi has no more */
    TESS_ISA_AVX512, /**< AVX-512F, CD, DQ and VL */
    TESS_NUM_ISA
} tess_isa;

/** The tables of functions `name`_portable, `name`_avx2 and so on, in the order of
 * tess_isa. */
#if !defined(__x86_64__) || defined(TESS_ISA_PORTABLE_ONLY)
#define TESS_ISA_TABLES(name)                                                          \
    {                                                                                  \
        &name##_portable, &name##_portable, &name##_portable, &name##_portable         \
    }
#define TESS_NUM_ISA_BUILT 1 /* how many of tess_isa are built */
#elif defined(TESS_ISA_NO_AVX512)
#define TESS_ISA_TABLES(name)                                                          \
    {                                                                                  \
        &name##_portable, &name##_avx2, &name##_avx2, &name##_avx2                     \
    }
#define TESS_NUM_ISA_BUILT (TESS_ISA_AVX2 + 1)
#elif defined(TESS_ISA_ONLY_AVX512) /* for a machine that has it; others get by */
#define TESS_ISA_TABLES(name)                                                          \
    {                                                                                  \
        &name##_portable, &name##_portable, &name##_portable, &name##_avx512           \
    }
#define TESS_NUM_ISA_BUILT TESS_NUM_ISA
#else
#define TESS_ISA_TABLES(name)                                                          \
    {                                                                                  \
        &name##_portable, &name##_avx2, &name##_knl, &name##_avx512                    \
    }
#define TESS_NUM_ISA_BUILT TESS_NUM_ISA
#endif

/** Name of an instruction set: "portable", "avx2", "knl" or "avx512". */
const char *tess_isa_name(tess_isa isa);

/** The best instruction set of this processor. The environment variable TESS_ISA=NAME
 * asks for another one, so that tests can compare them; if the processor lacks it,
 * portable is taken. */
tess_isa tess_isa_best(void);

#endif
