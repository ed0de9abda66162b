/** @file slabs.h  (tests)
 *  Divisions of an image's rows among ranks: even ones, and one that leaves every
 * second rank without any.
 */
#ifndef TESS_SLABS_H
#define TESS_SLABS_H

#include <stdint.h>

enum { NUM_SLABS = 3 };

/** Rows [first, first + count) of `ny` for a rank of `size`, divided in way `kind`. */
static inline void slab_of(int kind, int64_t ny, int rank, int size, int64_t *first,
                           int64_t *count)
{
    int64_t begin = ny * rank / size, end = ny * (rank + 1) / size;
    if (kind == 1) { /* pairs of ranks, of which the second has all */
        const int last = rank | 1;
        begin = ny * (rank & ~1) / size;
        end = last < size ? ny * (last + 1) / size : ny;
        if (rank % 2 == 0 && last < size) end = begin;
    } else if (kind == 2) { /* the first rank has nearly all */
        const int64_t rest = size - 1 < ny ? size - 1 : ny - 1;
        begin = rank == 0 ? 0 : ny - rest + (rank - 1 < rest ? rank - 1 : rest);
        end = rank == 0 ? ny - rest : begin + (rank - 1 < rest ? 1 : 0);
    }
    *first = begin;
    *count = end - begin;
}

#endif
