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

/** Most stretches of time. */
enum { TESS_ORIGINS_STRETCHES = 32 };

/** Times between two pauses, in which no rows are. The intervals of a stretch follow
 * those of the stretch before it, so that a pause has no numbers. */
typedef struct tess_origins_stretch {
    double time_first_s; /**< when its first interval begins, as of the rows' times */
    int32_t interval;    /**< the number of its first interval */
    int32_t antenna;     /**< its rows have antennas from this number on */
} tess_origins_stretch;

/** What numbers of origins count. */
typedef struct tess_origins {
    int32_t num_antennas, num_intervals, num_fields;
    int32_t most_antennas; /**< of a stretch, which are neighbours; a number tells as
                                many apart */
    double interval_s;     /**< the length of all intervals */
    int32_t num_stretches;
    tess_origins_stretch stretch[TESS_ORIGINS_STRETCHES]; /**< in the order of time */
} tess_origins;

/** An origin. The order of the antennas is that of the row, whose uvw points from the
 *  one to the other. */
typedef struct tess_origin {
    int32_t antenna1, antenna2, interval, field;
} tess_origin;

/** The number of all origins, which may be more than a row's number can tell apart. */
static inline double tess_origins_count(const tess_origins *origins)
{
    return (double)origins->most_antennas * origins->most_antennas *
           origins->num_intervals * origins->num_fields;
}

/** The number of the intervals of a stretch. */
TESS_SHARED_FUNCTION int32_t tess_origins_length(const tess_origins *origins,
                                                 int32_t stretch)
{
    const tess_origins_stretch *in = &origins->stretch[stretch];
    const int32_t end =
        stretch + 1 < origins->num_stretches ? in[1].interval : origins->num_intervals;
    return end - in->interval;
}

/** The interval of a time in a stretch: its first or last one for times beyond them. */
TESS_SHARED_FUNCTION int32_t tess_origins_interval(const tess_origins *origins,
                                                   int32_t stretch, double time_s)
{
    const tess_origins_stretch *in = &origins->stretch[stretch];
    const double at = floor((time_s - in->time_first_s) / origins->interval_s);
    const int32_t last = tess_origins_length(origins, stretch) - 1;
    return in->interval + (!(at > 0) ? 0 : at < last ? (int32_t)at : last);
}

/** The number of the stretch that has an interval. */
TESS_SHARED_FUNCTION int32_t tess_origins_stretch_of(const tess_origins *origins,
                                                     int32_t interval)
{
    int32_t first = 0, end = origins->num_stretches;
    while (end - first > 1) {
        const int32_t middle = (first + end) / 2;
        if (origins->stretch[middle].interval <= interval)
            first = middle;
        else
            end = middle;
    }
    return first;
}

/** When an interval begins [s]. */
static inline double tess_origins_begin_s(const tess_origins *origins, int32_t interval)
{
    const tess_origins_stretch *in =
        &origins->stretch[tess_origins_stretch_of(origins, interval)];
    return interval == in->interval
               ? in->time_first_s /* the length of an only interval is infinite */
               : in->time_first_s + (interval - in->interval) * origins->interval_s;
}

/** The number of an origin. */
TESS_SHARED_FUNCTION int32_t tess_origin_number(const tess_origins *origins,
                                                const tess_origin *origin)
{
    const int32_t stretch = tess_origins_stretch_of(origins, origin->interval);
    const int32_t first = origins->stretch[stretch].antenna;
    return ((origin->field * origins->num_intervals + origin->interval) *
                origins->most_antennas +
            origin->antenna1 - first) *
               origins->most_antennas +
           origin->antenna2 - first;
}

/** The origin that has this number. */
TESS_SHARED_FUNCTION tess_origin tess_origin_of(const tess_origins *origins,
                                                int32_t number)
{
    const int32_t antennas = origins->most_antennas, pair = number / antennas;
    const int32_t time = pair / antennas, interval = time % origins->num_intervals;
    const int32_t stretch = tess_origins_stretch_of(origins, interval);
    const int32_t first = origins->stretch[stretch].antenna;
    const tess_origin origin = {first + pair % antennas, first + number % antennas,
                                interval, time / origins->num_intervals};
    return origin;
}

#endif
