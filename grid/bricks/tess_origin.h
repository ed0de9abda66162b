/** @file tess_origin.h
 *  Where the rows of samples come from: a pair of antennas, an interval of time and a
 *  field. Gains, beams and pointings depend on these three.
 *
 *  A row keeps one number. What the number means follows from a few counts that all
 *  ranks share, so that there is no table of origins to be held or sent.
 */
#ifndef TESS_ORIGIN_H
#define TESS_ORIGIN_H

#include <math.h>
#include <stdint.h>

#include "tess_shared_code.h"

/** Most stretches of time behind the first one. */
enum { TESS_ORIGINS_LATER = 31 };

/** Times behind a pause, in which no rows are: the intervals of a stretch of time
 * follow those of the stretch before it, so that a pause has no numbers. */
typedef struct tess_origins_stretch {
    double time_first_s; /**< when its first interval begins */
    int32_t interval;    /**< the number of its first interval */
} tess_origins_stretch;

/** What numbers of origins count. */
typedef struct tess_origins {
    int32_t num_antennas, num_intervals, num_fields;
    double time_first_s, interval_s; /**< the first interval's begin and the length of
                                          all [s], as of the rows' times */
    int32_t num_later;
    tess_origins_stretch later[TESS_ORIGINS_LATER]; /**< [num_later] in their order */
} tess_origins;

/** An origin. The order of the antennas is that of the row, whose uvw points from the
 *  one to the other. */
typedef struct tess_origin {
    int32_t antenna1, antenna2, interval, field;
} tess_origin;

/** The number of all origins, which may be more than a row's number can tell apart. */
static inline double tess_origins_count(const tess_origins *origins)
{
    return (double)origins->num_antennas * origins->num_antennas *
           origins->num_intervals * origins->num_fields;
}

/** The interval of this time: for times beyond those of rows, the last one before them,
 *  or the first one of all. */
TESS_SHARED_FUNCTION int32_t tess_origins_interval(const tess_origins *origins,
                                                   double time_s)
{
    tess_origins_stretch in = {origins->time_first_s, 0};
    int32_t end = origins->num_intervals;
    for (int32_t k = 0; k < origins->num_later; ++k) {
        if (!(time_s >= origins->later[k].time_first_s)) {
            end = origins->later[k].interval;
            break;
        }
        in = origins->later[k];
    }
    const double at = floor((time_s - in.time_first_s) / origins->interval_s);
    const int32_t last = end - 1 - in.interval;
    return in.interval + (!(at > 0) ? 0 : at < last ? (int32_t)at : last);
}

/** When an interval begins [s]. */
static inline double tess_origins_begin_s(const tess_origins *origins, int32_t interval)
{
    tess_origins_stretch in = {origins->time_first_s, 0};
    for (int32_t k = 0; k < origins->num_later; ++k)
        if (origins->later[k].interval <= interval) in = origins->later[k];
    return interval == in.interval
               ? in.time_first_s
               : in.time_first_s + (interval - in.interval) * origins->interval_s;
}

/** The number of an origin. */
TESS_SHARED_FUNCTION int32_t tess_origin_number(const tess_origins *origins,
                                                const tess_origin *origin)
{
    return ((origin->field * origins->num_intervals + origin->interval) *
                origins->num_antennas +
            origin->antenna1) *
               origins->num_antennas +
           origin->antenna2;
}

/** The origin that has this number. */
TESS_SHARED_FUNCTION tess_origin tess_origin_of(const tess_origins *origins,
                                                int32_t number)
{
    const int32_t antennas = origins->num_antennas, pair = number / antennas;
    const int32_t time = pair / antennas;
    const tess_origin origin = {pair % antennas, number % antennas,
                                time % origins->num_intervals,
                                time / origins->num_intervals};
    return origin;
}

#endif
