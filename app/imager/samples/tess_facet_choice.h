/** @file tess_facet_choice.h
 *  The options of facets and of their gains.
 */
#ifndef TESS_FACET_CHOICE_H
#define TESS_FACET_CHOICE_H

#include <stdbool.h>

#include "tess_gains.h"

/** The facets of an image, and their calibration. */
typedef struct tess_facet_choice {
    const char *regions; /**< --facets FILE, or NULL: an image has none */
    int64_t number;      /**< --facets N: facets are made around so many sources;
                              0: `regions` has them */
    const char *sources; /**< --facet-sources LIST, or NULL: the peaks of a first image
                              are the sources */
    double separation_rad; /**< --facet-separation, 0: tess_facets_separation() */
    const struct tess_region *peak; /**< [num_peaks] directions of these peaks */
    int64_t num_peaks;
    bool writes;           /**< facets that are made are written beside the image */
    bool psf_per_facet;    /**< --psf-per-facet */
    const char *selected;  /**< --select-facets NAME[,NAME], or NULL: all */
    double feather;        /**< --facet-feather [pixels]; < 0: 1 % of the side of a
                                square of the image's area */
    const char *solutions; /**< --facet-solutions FILE[,FILE], h5parm; or NULL */
    bool by_set; /**< --solutions-per-observation: each of `num_sets` observations has
                      as many of the files, in their order */
    int num_sets, first_set; /**< a source's first observation is this one of them */
    const char *tables; /**< --soltabs NAME[,NAME], or NULL: as tess_solutions_opts */
    bool is_linear;     /**< --solution-interpolation linear */
    bool any_direction; /**< --any-solution-direction */
    bool updates;       /**< --facet-beam-update is given */
    tess_gain_beam_opts beam; /**< --facet-beam MODEL, --facet-beam-update TIME */
    const char *aterms;       /**< --facet-aterms FILE, or NULL */
    bool is_scalar; /**< --scalar-visibilities: Stokes parameters are formed before
                       gains     are applied, which are means of both feeds' */
} tess_facet_choice;

/** Whether facets have gains of their own. */
static inline bool tess_facet_choice_has_gains(const tess_facet_choice *choice)
{
    return choice->solutions || choice->beam.model || choice->aterms;
}

#endif
