/** @file plan_clean.h  (private to app/imager/run/)
 *  What cleaning adds to the time of a run. Nobody knows before a sky has been cleaned
 *  how many sources it has: this is a guess from the power of the visibilities and from
 *  the noise that their weights let expect.
 */
#ifndef TESS_PLAN_CLEAN_H
#define TESS_PLAN_CLEAN_H

#include "image_run.h"
#include "imager_estimate.h"
#include "run_samples.h"

typedef struct plan_clean {
    double peak_jy, noise_jy; /**< of the sources, and of an image */
    double majors;            /**< of an output; 0: nothing is cleaned */
    double iterations;        /**< of an output or, if these are joined, of all */
    double minor_s;           /**< seconds of all minor loops */
    double major_s;           /**< seconds of all residual images */
    tess_clean_need need;     /**< who runs the minor loops of an output, and their
                                   memory */
} plan_clean;

/** Guess what cleaning takes, and add it to the times of the stages. `own`: the power
 * of this rank's visibilities. `kept`: samples stay in memory between images.
 * Collective. */
tess_status plan_clean_guess(const image_run *run, const image_power *own, bool kept,
                             imager_estimate *estimate, plan_clean *guess);

#endif
