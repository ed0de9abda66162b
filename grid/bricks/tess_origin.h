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

/** What numbers of origins count. */
typedef struct tess_origins {
    int32_t num_antennas, num_intervals, num_fields;
    double time_first_s, interval_s; /**< the first interval's begin and the length of
                                          all [s], as of the rows' times */
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

/** The interval of this time: the first or the last one for times beyond them. */
TESS_SHARED_FUNCTION int32_t tess_origins_interval(const tess_origins *origins,
                                                   double time_s)
{
    const double at = floor((time_s - origins->time_first_s) / origins->interval_s);
    const int32_t last = origins->num_intervals - 1;
    return !(at > 0) ? 0 : at < last ? (int32_t)at : last;
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
