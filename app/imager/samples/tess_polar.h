/** @file tess_polar.h
 *  Polarisations: what is imaged as a combination of a set's correlations, and a
 *  correlation as a combination of predicted Stokes parameters.
 */
#ifndef TESS_POLAR_H
#define TESS_POLAR_H

#include <complex.h>
#include <stdbool.h>
#include <stddef.h>

#include "tess_imager_opts.h"
#include "tess_vis.h"

/** One real image's worth of polarisation. */
typedef struct tess_pol {
    tess_corr code; /**< FITS code: Stokes, or a correlation */
    bool imaginary; /**< image −i × the correlation ("XYi") */
    bool both; /**< of a cross-hand: image its mean with the conjugate of the other */
} tess_pol;

/** code, or both parts of a cross-hand. `pol` has room for 2 × num_codes. */
int tess_pol_expand(const tess_corr *code, int num_codes, tess_pol *pol);

/** Make one complex image of XY and YX where both are among pol[num_pol]. Returns the
 *  number that is left. Local. */
int tess_pol_join_hands(tess_pol *pol, int num_pol);

/** The other cross-hand, which is the conjugate of this one in the sky; 0 for all other
 *  polarisations. Local. */
tess_corr tess_pol_conjugate(tess_corr code);

/** Whether one of pol[num_pol] has this code. Local. */
bool tess_pol_has(const tess_pol *pol, int num_pol, tess_corr code);

/** "I", "XX", "XYi". */
void tess_pol_name(const tess_pol *pol, char name[8]);

/** V_pol = coefficient[0]·V[index[0]] + coefficient[1]·V[index[1]] over the
 *  correlations of a segment; num is 1 or 2, 0 when the segment cannot make it. Its
 *  weight is the mean of those of correlations hand[num_hands] as far as they are good,
 *  or with num_hands = 0 the smallest of those that it is made of. */
typedef struct tess_pol_mix {
    int num;
    int index[2];
    double complex coefficient[2];
    int num_hands;
    int hand[2];
} tess_pol_mix;

tess_pol_mix tess_pol_mix_of(const tess_pol *pol, const tess_corr *corr, int num_corr);

/** Give the mix the mean weight of the parallel hands among the correlations of its
 *  segment; where there are none, it keeps its own. Local. */
void tess_pol_weigh_by_hands(tess_pol_mix *mix, const tess_corr *corr, int num_corr);

/** Stokes I of correlations that hold one parallel hand of XX and YY, or of RR and LL:
 *  it stands for I, as of sources without polarisation. num is 0 for all others. Local.
 */
tess_pol_mix tess_pol_hand_of(const tess_pol *pol, const tess_corr *corr, int num_corr);

/** Which of these images correlations cannot make, and what they lack, as in "U, V
 *  cannot be made from XX,YY: XY,YX are missing; --stokes IQ can be". Empty when all
 *  can be made. Local. */
void tess_pol_explain(const tess_pol *pol, int num_pol, const tess_corr *corr,
                      int num_corr, char *text, size_t size);

/** V_corr = Σ coefficient[s]·V_s over Stokes s = I, Q, U, V; `corr` any code. */
void tess_pol_from_stokes(tess_corr corr, double complex coefficient[4]);

#endif
