/* Computes the beam of two feeds whose illumination of the aperture falls off as a
 * cosine. */
#include "beam_cosine.h"

#include <math.h>

#include "tess_const.h"

/* The power of a uniform aperture with a cosine taper falls to one half at this number
 * of half widths (Condon and Ransom 2016, Essential Radio Astronomy, section 3.2.5;
 * Mauch et al. 2020, ApJ 888, 61, equations 3 and 4). */
#define HALF_POWER 1.18896478

static double mixed(double a, double b, double share)
{
    return a + share * (b - a);
}

static double feed_power(const beam_feed *below, const beam_feed *above, double share,
                         const double place[2])
{
    double r2 = 0;
    for (int k = 0; k < 2; ++k) {
        const double squint = mixed(below->squint[k], above->squint[k], share);
        const double width = mixed(below->width[k], above->width[k], share);
        const double r = (place[k] - squint) / width;
        r2 += r * r;
    }
    const double r = HALF_POWER * sqrt(r2), rest = 1 - 4 * r * r;
    /* at r = 1/2 numerator and denominator are 0, and their ratio is π/4 */
    const double field = fabs(rest) < 1e-9 ? TESS_PI / 4 : cos(TESS_PI * r) / rest;
    return field * field;
}

double beam_cosine_power(const beam_cosine_table *table, double freq_hz, double x,
                         double y)
{
    const double amin = 60 * TESS_RAD_PER_ASEC, mhz = freq_hz * 1e-6;
    const double place[2] = {x / amin, y / amin};
    int above = 1;
    while (above < table->num - 1 && table->row[above].at_mhz < mhz)
        ++above;
    const beam_cosine_row *a = &table->row[above - 1], *b = &table->row[above];
    const double share = fmin(1, fmax(0, (mhz - a->at_mhz) / (b->at_mhz - a->at_mhz)));
    return 0.5 * (feed_power(&a->feed[0], &b->feed[0], share, place) +
                  feed_power(&a->feed[1], &b->feed[1], share, place));
}
