/** @file tess_exact.h
 *  Sums of doubles that do not depend on the order in which they are added. Numbers are
 *  added as integers, separately for each exponent: a small superaccumulator, which is
 *  Kulisch's long accumulator in redundant form (Neal 2015, arXiv 1505.05571). A sum
 *  may have up to 2^36 numbers.
 */
#ifndef TESS_EXACT_H
#define TESS_EXACT_H

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { TESS_EXACT_WORDS = 2 * 2048 };

/** A sum. Set it to zero before use. To add two sums, add their words. */
typedef struct tess_exact {
    int64_t word[TESS_EXACT_WORDS]; /**< word 2e is the sum of the low 26 bits of the
                                       significands of exponent e, word 2e + 1 that of
                                       their other bits */
} tess_exact;

static inline void tess_exact_add(tess_exact *sum, double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int64_t exponent = bits >> 52 & 0x7ff;
    const int64_t hidden = exponent > 0 ? INT64_C(1) << 52 : 0;
    const int64_t significand = (bits & ((INT64_C(1) << 52) - 1)) | hidden;
    const int64_t low = significand & ((1 << 26) - 1), high = significand >> 26;
    sum->word[2 * exponent] += bits < 0 ? -low : low;
    sum->word[2 * exponent + 1] += bits < 0 ? -high : high;
}

/** The value of the sum, which is rounded a few times. It is infinite if a number was
 * not finite. */
static inline double tess_exact_value(const tess_exact *sum)
{
    enum { NOT_FINITE = 0x7ff, BIAS = 1075 };
    double total = 0;
    if (sum->word[2 * NOT_FINITE] != 0 || sum->word[2 * NOT_FINITE + 1] != 0)
        return INFINITY;
    for (int exponent = NOT_FINITE - 1; exponent >= 0; --exponent) {
        /* exponent 0 stands for subnormal numbers, whose unit is that of exponent 1 */
        const int scale = (exponent > 0 ? exponent : 1) - BIAS;
        total += ldexp((double)sum->word[2 * exponent + 1], scale + 26);
        total += ldexp((double)sum->word[2 * exponent], scale);
    }
    return total;
}

#endif
