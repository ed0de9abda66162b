/* Decodes with one instruction set; see tess_decode.h. Values are moved as words.
 * Shuffles of whole vectors turn them and deal them out. */
#define _DEFAULT_SOURCE /* be32toh */
#include "tess_decode.h"

#include <endian.h>
#include <string.h>

#include "tess_vis.h"

#ifndef DECODE_TABLE
#define DECODE_TABLE decode_table_portable
#endif

/* A single of a file or an array, at any address. */
typedef uint32_t word __attribute__((aligned(1), may_alias));

static inline float single_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void triples(const void *from, int64_t count, float *vis, float *weight)
{
    const word *restrict in = from;
    word *restrict out = (word *)vis;
    float *restrict weights = weight;
    for (int64_t k = 0; k < count; ++k) {
        out[2 * k] = be32toh(in[3 * k]);
        out[2 * k + 1] = be32toh(in[3 * k + 1]);
        const float value = single_of(be32toh(in[3 * k + 2]));
        weights[k] = value <= 0 ? TESS_WEIGHT_FLAGGED : value;
    }
}

const decode_table DECODE_TABLE = {.triples = triples};
