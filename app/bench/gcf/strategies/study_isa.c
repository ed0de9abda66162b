/* The table of loops of the strategies for comparison, of one instruction set. CMake
 * compiles this file several times, with STUDY_TABLE naming the table and the
 * compiler's flags the instructions. */
#include "study_plan.h"

#include <stdlib.h>
#include <string.h>
#include <tgmath.h>

#include "tess_const.h"

#ifndef STUDY_TABLE
#define STUDY_TABLE study_table_portable
#endif

#define INLINE static inline __attribute__((always_inline))

/* Fast functions in single precision, of operations that vectors have. e^x = 2^k·2^f,
 * the series of 2^f ending where it leaves 1.2e-7 at |f| = 1/2; 0 below 2^−126. */
INLINE float fast_exponential(float x)
{
    const float all = 1.44269504f * x, up = all > -127 ? all : -127;
    const float exponent = up < 127 ? up : 127, k = rint(exponent);
    const float f = exponent - k;
    const float power =
        1 + f * (0.693147181f +
                 f * (0.240226507f +
                      f * (0.0555041087f +
                           f * (0.00961812911f +
                                f * (0.00133335581f + f * 0.000154035304f)))));
    const int32_t bits = ((int32_t)k + 127) * (1 << 23);
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return power * scale;
}

/* (cos, sin) of up to half a turn either way: series within an eighth of a turn of the
 * nearest quarter, which leave 2.5e-8 and 3.1e-7. */
INLINE void fast_circle(float turns, float *c, float *s)
{
    const float quarter = rint(4 * turns);
    const float a = 6.28318530718f * (turns - 0.25f * quarter), a2 = a * a;
    const int32_t q = (int32_t)quarter;
    const float sine =
        a * (1 + a2 * (-1.66666667e-1f + a2 * (8.33333333e-3f + a2 * -1.98412698e-4f)));
    const float cosine =
        1 + a2 * (-0.5f +
                  a2 * (4.16666667e-2f + a2 * (-1.38888889e-3f + a2 * 2.48015873e-5f)));
    const float x = q & 1 ? sine : cosine, y = q & 1 ? cosine : sine;
    *c = (q + 1) & 2 ? -x : x;
    *s = q & 2 ? -y : y;
}

#define REAL    float
#define TAP     float
#define NAME(x) x##_single
#include "study_loops.inc.h"
#define HAS_FAST true
#include "study_computed.inc.h"
#undef HAS_FAST
#undef REAL
#undef TAP
#undef NAME

#define REAL    double
#define TAP     double
#define NAME(x) x##_double
#include "study_loops.inc.h"
#define HAS_FAST false
#include "study_computed.inc.h"
#undef HAS_FAST
#undef TAP
#undef NAME

#define TAPS_ALONE
#define TAP     float
#define NAME(x) x##_mixed
#include "study_loops.inc.h"

#define EACH(function)                                                                 \
    {                                                                                  \
        function##_single, function##_double, function##_mixed                         \
    }

#define BY_FAST(function, rest)                                                        \
    {                                                                                  \
        {function##rest##_single, function##_fast##rest##_single},                     \
        {                                                                              \
            function##rest##_double, function##_fast##rest##_double                    \
        }                                                                              \
    }

const study_table STUDY_TABLE = {
    .grid_plain = EACH(grid_plain),
    .degrid_plain = EACH(degrid_plain),
    .grid_atomic = EACH(grid_atomic),
    .grid_cube = {grid_cube_single, grid_cube_double},
    .grid_computed = BY_FAST(grid_computed, ),
    .grid_computed_atomic = BY_FAST(grid_computed, _atomic),
    .degrid_computed = BY_FAST(degrid_computed, ),
};
