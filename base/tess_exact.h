/** @file tess_exact.h
 *  Sums of doubles that do not depend on the order of adding: numbers are added as
 * integers, apart for each exponent (a small superaccumulator; Kulisch's long
 * accumulator in redundant form). Up to 2^36 numbers.
 */
#ifndef TESS_EXACT_H
#define TESS_EXACT_H

#include <stdint.h>
#include <string.h>

enum { TESS_EXACT_WORDS = 2 * 2048 };

/** Zero it before use. Sums of parts are added word by word. */
typedef struct tess_exact {
    int64_t
        word[TESS_EXACT_WORDS]; /**< by exponent: low 26 bits of significands, others */
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

/** The sum, rounded a few times; infinite when a number was not finite. */
double tess_exact_value(const tess_exact *sum);

#endif
