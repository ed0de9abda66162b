/** @file image_kinds.h  (private to app/imager/run/)
 *  The kinds of images that a run makes of each output, and the order in which arrays
 * of products hold them.
 */
#ifndef TESS_IMAGE_KINDS_H
#define TESS_IMAGE_KINDS_H

#include "tess_imager.h"

typedef enum image_kind {
    IMAGE_DIRTY,
    IMAGE_PSF,
    IMAGE_FIRST_RESIDUAL, /**< of the first major iteration's model */
    IMAGE_MODEL,          /**< in Jy/pixel */
    IMAGE_RESIDUAL,       /**< of the whole model */
    IMAGE_RESTORED,       /**< model ∗ beam + residual */
    IMAGE_MASK,           /**< of --auto-multithresh: 1 where components could be */
    IMAGE_PRIMARY_BEAM,   /**< of the antennas, not cut; of facets with solutions the
                               root of their response, of a mosaic its beam */
    NUM_IMAGE_KINDS
} image_kind;

/** How many images of each kind an output has: one for each polarisation or, of PSFs,
 *  for each set of weights; 0 of a kind that is not made. Arrays hold them in the order
 *  of kinds. */
typedef struct image_kinds {
    int num[NUM_IMAGE_KINDS];
} image_kinds;

static inline bool image_is_cleaned(const tess_image_opts *opts)
{
    return opts->clean.minor.niter > 0;
}

/** Whether all channels of an interval are cleaned together, and polarisations. */
static inline bool image_joins_channels(const tess_image_opts *opts)
{
    return image_is_cleaned(opts) && opts->clean.join.channels &&
           opts->channels_out > 1;
}

static inline bool image_joins_pols(const tess_image_opts *opts)
{
    return image_is_cleaned(opts) && opts->clean.join.polarizations;
}

/** Whether the run writes columns of MeasurementSets once all images have their names.
 * It can be stopped until these are written. */
static inline bool image_writes_columns(const tess_image_opts *opts)
{
    return opts->clean.update_model || opts->beside.weights;
}

/** Whether facets have gains. */
static inline bool image_has_solutions(const tess_image_opts *opts)
{
    return opts->gridding.facets.regions &&
           tess_facet_choice_has_gains(&opts->gridding.facets);
}

/** Whether images are joined of patches with responses, and also made in true flux: of
 * facets with gains, or of pointings. */
static inline bool image_has_response(const tess_image_opts *opts)
{
    return image_has_solutions(opts) || opts->selection.joins_pointings;
}

/** Kinds that a run with these options makes. */
static inline image_kinds image_kinds_of(const tess_image_opts *opts, int num_pol,
                                         int num_psf)
{
    const int cleaned = image_is_cleaned(opts) ? num_pol : 0;
    return (image_kinds){
        {[IMAGE_DIRTY] = opts->no_dirty ? 0 : num_pol,
         [IMAGE_PSF] = num_psf,
         [IMAGE_FIRST_RESIDUAL] = opts->clean.first_residual ? cleaned : 0,
         [IMAGE_MODEL] = cleaned,
         [IMAGE_RESIDUAL] = cleaned,
         [IMAGE_RESTORED] = cleaned,
         [IMAGE_MASK] = opts->clean.multithresh.finds ? cleaned : 0,
         [IMAGE_PRIMARY_BEAM] =
             opts->beside.primary_beam.model || image_has_solutions(opts) ? num_pol
                                                                          : 0}};
}

/** Place of the first image of a kind. */
static inline int image_kinds_place(const image_kinds *kinds, image_kind kind)
{
    int place = 0;
    for (int k = 0; k < (int)kind; ++k)
        place += kinds->num[k];
    return place;
}

/** Whether a place is that of a model: without data it is 0, not blank. */
static inline bool image_kinds_is_model(const image_kinds *kinds, int place)
{
    const int first = image_kinds_place(kinds, IMAGE_MODEL);
    return place >= first && place < first + kinds->num[IMAGE_MODEL];
}

/** All images of an output. */
static inline int image_kinds_all(const image_kinds *kinds)
{
    return image_kinds_place(kinds, NUM_IMAGE_KINDS);
}

/** "dirty": the kind in names of files. */
static inline const char *image_kind_name(image_kind kind)
{
    static const char *const name[NUM_IMAGE_KINDS] = {[IMAGE_DIRTY] = "dirty",
                                                      [IMAGE_PSF] = "psf",
                                                      [IMAGE_FIRST_RESIDUAL] =
                                                          "first-residual",
                                                      [IMAGE_MODEL] = "model",
                                                      [IMAGE_RESIDUAL] = "residual",
                                                      [IMAGE_RESTORED] = "image",
                                                      [IMAGE_MASK] = "mask",
                                                      [IMAGE_PRIMARY_BEAM] = "pb"};
    return name[kind];
}

/** "dirty image": the kind in captions of previews. */
static inline const char *image_kind_caption(image_kind kind)
{
    static const char *const caption[NUM_IMAGE_KINDS] = {
        [IMAGE_DIRTY] = "dirty image",
        [IMAGE_PSF] = "point spread function",
        [IMAGE_FIRST_RESIDUAL] = "first residual",
        [IMAGE_MODEL] = "model",
        [IMAGE_RESIDUAL] = "residual",
        [IMAGE_RESTORED] = "restored image",
        [IMAGE_MASK] = "automatic mask",
        [IMAGE_PRIMARY_BEAM] = "primary beam"};
    return caption[kind];
}

#endif
