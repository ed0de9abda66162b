/* The table of innermost loops of one instruction set. CMake compiles this file several
 * times, with TILE_TABLE naming the table and the compiler's flags the instructions. */
#include "tile_tables.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "locate.h"
#include "tess_sincos.h"

#ifndef TILE_TABLE
#define TILE_TABLE tile_table_portable
#endif

#if defined(__AVX512F__)
enum { VECTOR_BYTES = 64 };
#elif defined(__AVX2__)
enum { VECTOR_BYTES = 32 };
#else
enum { VECTOR_BYTES = 16 };
#endif

#if defined(__AVX512F__)
enum { MAX_SUMS = 24 }; /* of 32 vector registers, for sums over samples */
#else
enum { MAX_SUMS = 12 }; /* of 16 */
#endif

enum {
    MAX_PLANES = 4,    /* of a group, worked on together */
    PLACED = 256,      /* samples placed together: a vector loop over runs */
    FEW = 256,         /* samples sorted together without work memory */
    PART = 64,         /* samples whose taps are held together: about L1 */
    WHOLE = 16,        /* samples whose taps are worked out together, at most */
    RUNS_AHEAD = 12,   /* runs whose samples are prefetched */
    PLANE_SLOTS = 16,  /* of a sort key */
    SLOT_BITS = 12,    /* of positions seen last: as many as samples sorted together */
    PROBED_SHARE = 16, /* 1 sample in this many is tested */
    WORTH_SHARE = 16,  /* all are, if 1 in this many has an equal one */
    FEWEST_PROBED = 4,
    SAME = 0x8000, /* at the position of the sample before it in the order */
    NO_SAMPLE = 0xffff,
    KEYS = TESS_TILE * TESS_TILE * PLANE_SLOTS
};

/* The position that a job has reached. */
typedef struct cursor {
    const tess_run *run;
    int32_t done;                /* samples of the run */
    int64_t left;                /* samples of the job */
    const tess_run *ahead;       /* first run not prefetched */
    int64_t ahead_left;          /* samples of the job from there */
    const char *next, *next_end; /* of the next job's buffer, what is not prefetched */
    int64_t next_each;           /* bytes to prefetch of it for each position */
} cursor;

/* Touches more of the next job's buffer, little by little. All of it at once would come
 * no faster than memory yields it, while the processor waits. */
static inline void look_at_next(cursor *at, int64_t positions)
{
    if (at->next == at->next_end) return;
    const int64_t rest = at->next_end - at->next;
    const int64_t bytes =
        positions * at->next_each < rest ? positions * at->next_each : rest;
    for (int64_t k = 0; k < bytes; k += 64)
        __builtin_prefetch(at->next + k, 0, 2);
    at->next += bytes;
}

/* Grid coordinates [cells], w [wavelengths], phase [turns]. */
typedef struct coordinates {
    double u[PLACED], v[PLACED], w[PLACED], turns[PLACED];
} coordinates;

/* An axis as seen from a buffer: footprints start between 0 and `last`. */
typedef struct axis {
    double origin, period, per_period, last;
} axis;

static inline axis axis_of(double origin, int support, double period, int last)
{
    return (axis){origin + 0.5 * support, period, 1.0 / period, last};
}

/* Computes the offset of a footprint's first cell in the buffer, and where the
 * coordinate lies in the cell: y = 2 × fraction − 1. The clamp only acts when rounding
 * here and in sorting fall on different sides of a cell border. The fraction then lies
 * 1e-12 outside [0,1). Along w it also acts where all planes are touched by every
 * visibility. */
static inline int32_t axis_place(const axis *on, double coordinate, double *y)
{
    double d = coordinate - on->origin;
    d -= on->period * tess_nearest(d * on->per_period);
    const double near = tess_nearest(d);
    double start = near < d ? near + 1.0 : near;
    start = start < 0 ? 0 : start;
    start = start > on->last ? on->last : start;
    *y = 2 * (start - d) - 1;
    return (int32_t)start;
}

static inline double fraction_of_turns(double turns)
{
    return turns - tess_nearest(turns);
}

static inline void sincos_single(double turns, float *sine, float *cosine)
{
    tess_sincos_turns_single((float)turns, sine, cosine);
}

static inline void sincos_double(double turns, double *sine, double *cosine)
{
    tess_sincos_turns(turns, sine, cosine);
}

/* Returns how many planes have lines of a kernel, of `vectors` vectors each, that fit
 * into the registers together. */
static inline __attribute__((always_inline)) int planes_at_once(const int vectors)
{
    return MAX_SUMS / vectors > MAX_PLANES ? MAX_PLANES
           : MAX_SUMS > vectors            ? MAX_SUMS / vectors
                                           : 1;
}

/* Divides `all` into as few parts as there are when none exceeds `most`, and returns
 * the first of them. The parts are about equal. */
static inline int balanced(int all, const int most)
{
    const int parts = (all + most - 1) / most;
    return (all + parts - 1) / parts;
}

/* v / range is v · share / 2^16 for v < 16. */
static inline uint32_t share_of(int range)
{
    return (uint32_t)(65536 / range + 1);
}

/* (re, im) of singles all over a vector: moved as whole numbers, which takes one load.
 */
typedef int64_t pair_vector __attribute__((vector_size(VECTOR_BYTES)));

static inline pair_vector pairs_single(const float *pair)
{
    int64_t bits;
    memcpy(&bits, pair, sizeof bits);
    return bits + (pair_vector){0};
}

typedef double two_doubles __attribute__((vector_size(16), aligned(8), may_alias));

#if defined(__AVX512F__)
#define PAIR_LANES 0, 1, 0, 1, 0, 1, 0, 1
#elif defined(__AVX2__)
#define PAIR_LANES 0, 1, 0, 1
#else
#define PAIR_LANES 0, 1
#endif
#define PAIRS_DOUBLE(pair)                                                             \
    __builtin_shufflevector(*(const two_doubles *)(pair),                              \
                            *(const two_doubles *)(pair), PAIR_LANES)

/* Sums of neighbouring pairs of `a`, then of `b`: vectors of pairs, 8 (singles) or 16
 * bytes each. Folded again and again, a vector of as many vectors' sums remains; the
 * first time singles are taken in the order that later ones undo. */
typedef double fold_vector __attribute__((vector_size(VECTOR_BYTES)));
#if defined(__AVX512F__)
#define FOLD_EVEN 0, 1, 4, 5, 8, 9, 12, 13
#define FOLD_ODD  2, 3, 6, 7, 10, 11, 14, 15
#define MIX_EVEN  0, 8, 2, 10, 4, 12, 6, 14
#define MIX_ODD   1, 9, 3, 11, 5, 13, 7, 15
#elif defined(__AVX2__)
#define FOLD_EVEN 0, 1, 4, 5
#define FOLD_ODD  2, 3, 6, 7
#define MIX_EVEN  0, 4, 2, 6
#define MIX_ODD   1, 5, 3, 7
#else
#define FOLD_EVEN 0, 1
#define FOLD_ODD  2, 3
#define MIX_EVEN  0, 2
#define MIX_ODD   1, 3
#endif
#define FOLDED(vector, a, b, even, odd)                                                \
    ((vector)__builtin_shufflevector((fold_vector)(a), (fold_vector)(b), even) +       \
     (vector)__builtin_shufflevector((fold_vector)(a), (fold_vector)(b), odd))

#define REAL        float
#define NAME(x)     x##_single
#define PAIRS(pair) pairs_single(pair)
#define TAPS        single
#define SINCOS      sincos_single
#define FOLD(first, a, b)                                                              \
    ((first) ? FOLDED(vector_single, a, b, MIX_EVEN, MIX_ODD)                          \
             : FOLDED(vector_single, a, b, FOLD_EVEN, FOLD_ODD))
#include "tile_loops.inc.h"
#undef REAL
#undef NAME
#undef PAIRS
#undef TAPS
#undef SINCOS
#undef FOLD

#define REAL              double
#define NAME(x)           x##_double
#define PAIRS(pair)       PAIRS_DOUBLE(pair)
#define TAPS              full
#define SINCOS            sincos_double
#define FOLD(first, a, b) FOLDED(vector_double, a, b, FOLD_EVEN, FOLD_ODD)
#include "tile_loops.inc.h"

#define BY_SUPPORT(f)                                                                  \
    {                                                                                  \
        NULL, NULL, NULL, NULL, f##_4, f##_5, f##_6, f##_7, f##_8, f##_9, f##_10,      \
            f##_11, f##_12, f##_13, f##_14, f##_15, f##_16                             \
    }

const tile_table TILE_TABLE = {
    .grid = {BY_SUPPORT(grid_single), BY_SUPPORT(grid_double)},
    .degrid = {BY_SUPPORT(degrid_single), BY_SUPPORT(degrid_double)},
};
