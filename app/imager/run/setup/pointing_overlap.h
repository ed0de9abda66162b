/** @file pointing_overlap.h  (private to app/imager/run/)
 *  How far a source of a mosaic is seen.
 *
 *  In the image of even noise, a source at x leaves at y the PSF of y − x times
 *  Σ W B(x) B(y) / √(P(x) P(y)), P = Σ W B², over the pointings: those that see both.
 *  Where pointings lie close to one another, this sum is the autocorrelation of the
 *  beam at y − x. No value of its transform is negative, as none of a PSF's is, and so
 *  none of that of their product: minor loops with this product as the PSF converge.
 */
#ifndef POINTING_OVERLAP_H
#define POINTING_OVERLAP_H

#include "tess_status.h"

struct tess_beam_mean;

enum { POINTING_OVERLAP_STEPS = 256 };

/** The autocorrelation of beams by distance, 1 at 0. Zeroed is empty. */
typedef struct pointing_overlap {
    double reach; /**< beyond it, beams are 0 [sine]; it is 0 from twice that on */
    double at[POINTING_OVERLAP_STEPS + 1]; /**< at equal steps up to there */
} pointing_overlap;

/** Add `weight` times that of a beam, which is 0 where it is below `limit` and beyond
 * `overlap->reach`. A beam that is not round is averaged over directions.
 * TESS_ERR_ALLOC. Local. */
tess_status pointing_overlap_add(pointing_overlap *overlap,
                                 const struct tess_beam_mean *beam, double limit,
                                 double weight);

/** The value at a distance [sine], of what has been added. Local. */
double pointing_overlap_at(const pointing_overlap *overlap, double distance);

#endif
