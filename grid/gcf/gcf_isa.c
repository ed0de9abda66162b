/* The table of innermost loops of one instruction set. CMake compiles this file several
 * times, with GCF_TABLE naming the table and the compiler's flags the instructions. */
#include "gcf_grid.h"

#include <string.h>

#ifndef GCF_TABLE
#define GCF_TABLE gcf_table_portable
#endif

#if defined(__AVX512F__)
enum { VECTOR_BYTES = 64, BLOCK_ROWS = 4, BLOCK_VECTORS = 3, DOT_VECTORS = 4 };
#elif defined(__AVX2__)
enum { VECTOR_BYTES = 32, BLOCK_ROWS = 2, BLOCK_VECTORS = 2, DOT_VECTORS = 2 };
#else
enum { VECTOR_BYTES = 16, BLOCK_ROWS = 2, BLOCK_VECTORS = 2, DOT_VECTORS = 2 };
#endif

enum { FETCH_FROM = 64 }; /* support from which taps are fetched ahead */

#define INLINE static inline __attribute__((always_inline))

/* Lanes of a vector of (re, im) pairs: both of each exchanged, pairs reversed, and one
 * pair all over. */
#if defined(__AVX512F__)
#define SWAP_single    1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14
#define REVERSE_single 14, 15, 12, 13, 10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1
#define SWAP_double    1, 0, 3, 2, 5, 4, 7, 6
#define REVERSE_double 6, 7, 4, 5, 2, 3, 0, 1
#elif defined(__AVX2__)
#define SWAP_single    1, 0, 3, 2, 5, 4, 7, 6
#define REVERSE_single 6, 7, 4, 5, 2, 3, 0, 1
#define SWAP_double    1, 0, 3, 2
#define REVERSE_double 2, 3, 0, 1
#else
#define SWAP_single    1, 0, 3, 2
#define REVERSE_single 2, 3, 0, 1
#define SWAP_double    1, 0
#define REVERSE_double 0, 1
#endif

#define REAL       float
#define NAME(x)    x##_single
#define SWAP(x)    __builtin_shufflevector(x, x, SWAP_single)
#define REVERSE(x) __builtin_shufflevector(x, x, REVERSE_single)
#include "gcf_loops.inc.h"
#undef REAL
#undef NAME
#undef SWAP
#undef REVERSE

#define REAL       double
#define NAME(x)    x##_double
#define SWAP(x)    __builtin_shufflevector(x, x, SWAP_double)
#define REVERSE(x) __builtin_shufflevector(x, x, REVERSE_double)
#include "gcf_loops.inc.h"

const gcf_table GCF_TABLE = {
    .grid_plain = {grid_plain_single, grid_plain_double},
    .degrid_plain = {degrid_plain_single, degrid_plain_double},
    .grid_atomic = {grid_atomic_single, grid_atomic_double},
    .grid = {grid_vectors_single, grid_vectors_double},
    .degrid = {degrid_vectors_single, degrid_vectors_double},
    .multiply = {multiply_single, multiply_double},
    .dot = {dot_single, dot_double},
};
