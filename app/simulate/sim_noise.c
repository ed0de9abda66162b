/* Draws thermal noise from a counter-based generator. */
#include "sim_noise.h"

#include <math.h>

#include "tess_const.h"

void tess_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t x[4] = {counter[0], counter[1], counter[2], counter[3]};
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; ++round) {
        const uint64_t a = (uint64_t)0xD2511F53u * x[0];
        const uint64_t b = (uint64_t)0xCD9E8D57u * x[2];
        const uint32_t next0 = (uint32_t)(b >> 32) ^ x[1] ^ k0;
        const uint32_t next2 = (uint32_t)(a >> 32) ^ x[3] ^ k1;
        x[0] = next0;
        x[1] = (uint32_t)b;
        x[2] = next2;
        x[3] = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < 4; ++i)
        out[i] = x[i];
}

/* 53 random bits as a number in (0, 1]; never 0, whose logarithm would be infinite. */
static double unit_interval(uint32_t high, uint32_t low)
{
    const uint64_t bits = (((uint64_t)high << 32) | low) >> 11;
    return ((double)bits + 1.0) * 0x1p-53;
}

void tess_noise_pair(uint64_t seed, int64_t row, int64_t chan, int corr, double out[2])
{
    const uint32_t counter[4] = {(uint32_t)(uint64_t)row,
                                 (uint32_t)((uint64_t)row >> 32),
                                 (uint32_t)(uint64_t)chan, (uint32_t)corr};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t word[4];
    tess_philox(counter, key, word);
    /* Box and Muller 1958. */
    const double radius = sqrt(-2.0 * log(unit_interval(word[0], word[1])));
    const double angle = TESS_TWO_PI * unit_interval(word[2], word[3]);
    out[0] = radius * cos(angle);
    out[1] = radius * sin(angle);
}
