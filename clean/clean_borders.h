/** @file clean_borders.h  (private to clean/)
 *  Borders between places with gains of their own (tess_clean_places.likeness).
 *
 *  A component of place f is seen by place g as ρ_fg times its PSF. The likeness ρ_fg
 *  of their gains is the mean of ḡ_f g_g over visibilities, over √(R_f R_g). In minor
 *  loops a component changes the pixels of place g by ρ_fg · PSF.
 *
 *  It decides whether residuals become smaller. Of two components on both sides of a
 *  border that see b of one another, the data show the difference 1 − ρ b times. A
 *  minor loop that subtracts it 1 − b times leaves 1 − (1 − ρ b) / (1 − b) of it, which
 *  is below −1 where b is large and ρ small.
 *
 *  The whole PSF counts, with its sidelobes. A matrix of likeness is one of inner
 *  products, as a PSF is one of components, so that their product entry by entry has no
 *  negative eigenvalue (Schur 1911). With the main lobe alone it would have some, by
 *  which minor loops diverge.
 */
#ifndef TESS_CLEAN_BORDERS_H
#define TESS_CLEAN_BORDERS_H

#include "tess_clean.h"

/** Zeroed: there are no borders. */
typedef struct clean_borders {
    int num;
    double *likeness; /**< [num][num] */
    int16_t *place;   /**< [num_rows][nx] of this rank's pixels */
} clean_borders;

/** Find the places of this rank's pixels. TESS_ERR_ALLOC. Local. */
tess_status clean_borders_create(const tess_clean_images *images, int threads,
                                 clean_borders *borders);
void clean_borders_free(clean_borders *borders); /**< Local */

/** What places see of a component of one place, in proportion to the PSF: [num]; NULL:
 * all of it, as there are no borders. Local. */
static inline const double *clean_borders_seen(const clean_borders *borders, int place)
{
    return borders->num > 0 ? borders->likeness + (int64_t)place * borders->num : NULL;
}

#endif
