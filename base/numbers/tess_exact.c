/* Adds doubles exactly, so that the sum does not depend on their order. */
#include "tess_exact.h"

#include <math.h>

double tess_exact_value(const tess_exact *sum)
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
