/* The table of innermost loops of one instruction set. CMake compiles this file several
 * times, with GCF_TABLE naming the table and the compiler's flags the instructions. */
#include "gcf_loops.h"

#ifndef GCF_TABLE
#define GCF_TABLE gcf_table_portable
#endif

/* SINGLE and DOUBLE: a list below for as many lanes as vectors have. A block of
 * products has BLOCK_ROWS lines and as many cells as lanes: three sums for each line
 * and what is added to them fill the registers. */
#if defined(__AVX512F__)
enum { VECTOR_BYTES = 64, BLOCK_ROWS = 8, DOT_VECTORS = 4 };
#define SINGLE(list) list##_16
#define DOUBLE(list) list##_8
#elif defined(__AVX2__)
enum { VECTOR_BYTES = 32, BLOCK_ROWS = 4, DOT_VECTORS = 2 };
#define SINGLE(list) list##_8
#define DOUBLE(list) list##_4
#else
enum { VECTOR_BYTES = 16, BLOCK_ROWS = 2, DOT_VECTORS = 2 };
#define SINGLE(list) list##_4
#define DOUBLE(list) list##_2
#endif

enum { FETCH_FROM = 64 }; /* support from which taps are fetched ahead */

#define INLINE static inline __attribute__((always_inline))

/* Lanes of (re, im) pairs: both of each exchanged, and pairs reversed; of two vectors
 * of pairs: real, and imaginary parts; of a vector of real and one of imaginary parts:
 * the first, and the last pairs. */
#define SWAP_2      1, 0
#define SWAP_4      SWAP_2, 3, 2
#define SWAP_8      SWAP_4, 5, 4, 7, 6
#define SWAP_16     SWAP_8, 9, 8, 11, 10, 13, 12, 15, 14
#define REVERSE_2   0, 1
#define REVERSE_4   2, 3, REVERSE_2
#define REVERSE_8   6, 7, 4, 5, REVERSE_4
#define REVERSE_16  14, 15, 12, 13, 10, 11, 8, 9, REVERSE_8
#define EVEN_2      0, 2
#define EVEN_4      EVEN_2, 4, 6
#define EVEN_8      EVEN_4, 8, 10, 12, 14
#define EVEN_16     EVEN_8, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD_2       1, 3
#define ODD_4       ODD_2, 5, 7
#define ODD_8       ODD_4, 9, 11, 13, 15
#define ODD_16      ODD_8, 17, 19, 21, 23, 25, 27, 29, 31
#define FIRST_2     0, 2
#define FIRST_4     0, 4, 1, 5
#define FIRST_8     0, 8, 1, 9, 2, 10, 3, 11
#define FIRST_16    0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define LAST_2      1, 3
#define LAST_4      2, 6, 3, 7
#define LAST_8      4, 12, 5, 13, 6, 14, 7, 15
#define LAST_16     8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define SWAP(x)     __builtin_shufflevector(x, x, LIST(SWAP))
#define REVERSE(x)  __builtin_shufflevector(x, x, LIST(REVERSE))
#define EVEN(x, y)  __builtin_shufflevector(x, y, LIST(EVEN))
#define ODD(x, y)   __builtin_shufflevector(x, y, LIST(ODD))
#define FIRST(x, y) __builtin_shufflevector(x, y, LIST(FIRST))
#define LAST(x, y)  __builtin_shufflevector(x, y, LIST(LAST))

#define REAL    float
#define TAP     float
#define NAME(x) x##_single
#define LIST    SINGLE
#include "gcf_loops.inc.h"
#undef REAL
#undef TAP
#undef NAME
#undef LIST

#define REAL    double
#define TAP     double
#define NAME(x) x##_double
#define LIST    DOUBLE
#include "gcf_loops.inc.h"
#undef TAP
#undef NAME

#define TAPS_ALONE
#define TAP     float
#define NAME(x) x##_mixed
#include "gcf_loops.inc.h"

#define EACH(function)                                                                 \
    {                                                                                  \
        function##_single, function##_double, function##_mixed                         \
    }

const gcf_table GCF_TABLE = {
    .grid = EACH(grid_vectors),
    .degrid = EACH(degrid_vectors),
    .lanes = {LANES_single, LANES_double},
    .split_column = {split_column_single, split_column_double},
    .split_row = {split_row_single, split_row_double},
    .multiply = {multiply_single, multiply_double},
    .dot = {dot_single, dot_double},
};
