/** @file image_facets.h  (private to app/imager/run/)
 *  The facets of a run's images: each is a target of the job, with its own centre and
 *  its own gains, and all are parts of one image.
 *
 *  A facet's image is Σ W ḡ1 g2 V / ΣW over √R, where R is its response: the mean of
 *  |g1 g2|² by weight. Its noise is then as without gains, and its image over √R is in
 *  true flux. R is that of a source of 1 Jy, whose visibilities have the gains, and
 *  whose image takes them (imager_product.response).
 */
#ifndef IMAGE_FACETS_H
#define IMAGE_FACETS_H

#include "facet_gains.h"
#include "image_patches.h"
#include "image_run.h"
#include "tess_facets.h"
#include "tess_held_files.h"

typedef struct image_facets {
    tess_facets facets;          /**< also those that are not selected */
    tess_facets hard;            /**< the same without slopes, for models; borrows */
    tess_facets chosen;          /**< those that are selected, which have gains; borrows
                                      edges */
    image_patches patches;       /**< the same, the targets */
    int *facet;                  /**< of each of these */
    tess_gains *sources;         /**< NULL: all gains are 1 */
    tess_pol held[TESS_MAX_POL]; /**< polarisations of samples: correlations, if there
                                      are solutions */
    int num_held;
    facet_gains gains;
    bool unlike;           /**< minor loops compare gains */
    tess_facet_work *work; /**< to find the facet of a pixel */
    tess_held_files made;  /**< the region file of facets that were made */
} image_facets;

/** What facets are made for. */
typedef struct facet_setup {
    tess_comm *comm;
    const tess_facet_choice *choice;
    tess_geom geom;      /**< pixels of the image */
    tess_source *source; /**< which is open, and not set up */
    const tess_pol *pol; /**< [num_pol] of the image */
    int num_pol, threads;
    bool
        predicts; /**< samples get all correlations of a file, if there are solutions */
    bool changes; /**< facets get gains later (image_facets_change): samples keep the
                       correlations and the origins that these need */
    bool cleans;  /**< gains are compared, for minor loops; `changes`, too */
    const char *made; /**< file for regions that are made, or NULL */
    bool overwrite;   /**< that file */
} facet_setup;

/** Samples for which gains are compared. */
typedef struct facets_compared {
    const bool *chan;     /**< [channel table] that are theirs; NULL: all */
    double time_mjd_s[2]; /**< from, to [s]; they may be infinite */
} facets_compared;

/** How alike the gains of targets are in these samples of the observations, each with
 * its own antennas, and solutions where it has some: (*likeness)[num][num], as of
 * tess_gains_likeness() and from tess_alloc(); NULL: they are alike, all of it is
 * within 1e-3 of 1. TESS_ERR_ALLOC. Collective. */
tess_status image_facets_compare(tess_comm *comm, const image_facets *facets,
                                 const tess_source *source, const facets_compared *of,
                                 double **likeness);

/** Refuse what facets do not go together with. `later`: a session cleans when it is
 * asked to. TESS_ERR_USAGE. Local. */
tess_status image_facets_check(const tess_image_opts *opts, bool later);

/** Read facets and solutions, and have the rows of samples keep where they come from.
 * Errors of tess_facets_create() and tess_facets_solutions(); TESS_ERR_USAGE: options
 * that do not go together, no facet of a name. Collective. */
tess_status image_facets_create(const facet_setup *setup, image_facets **facets);
void image_facets_free(image_facets *facets); /**< NULL is fine. Local. */

/** Warn of facets that lack some of their solutions, of predictions. Local: one rank.
 */
void image_facets_warn_of_lacks(const image_facets *facets);

/** A change of gains, which can be undone. Zeros are none. */
typedef struct facets_change {
    image_facets *facets; /**< that have other gains now; borrowed */
    image_facets before;  /**< private: their gains before */
} facets_change;

/** Give facets the gains of setup->choice in place of those that they have: `setup` is
 * otherwise that of image_facets_create(), with `changes`. Views of them have to be
 * taken again. Errors as above; TESS_ERR_USAGE: samples do not hold the correlations
 * that these gains need. On failure they keep their gains. Collective. */
tess_status image_facets_change(const facet_setup *setup, image_facets *facets,
                                facets_change *change);

/** End a change: the facets keep their new gains, or get back those that they had, and
 * the others are freed. Local. */
void image_facets_end_change(facets_change *change, bool keeps);

/** The name of the region file of facets that a run makes, freed with tess_free();
 * NULL: no memory. Local. */
char *image_facets_file(const tess_image_opts *opts);

/** Make the facets that the options ask for the targets of the run's job, once the
 * observations are open. Errors as above. Collective. */
tess_status image_facets_open(image_run *run);

/** Give the region file of facets that were made its name. Collective. */
tess_status image_facets_publish(image_run *run);

/** The view that targets take of the samples. Borrows the facets. Local. */
imager_view image_facets_view(const image_facets *facets);

/** How the pixels of a facet are weighted in the image, or those of a model that is
 * predicted with its gains: a component has the gains of the facet that it lies in,
 * also where images of neighbours are mixed. Borrows the facets. Local. */
patch_weigher image_facets_weigher(const image_facets *facets, int target,
                                   bool of_model);

/** Set weight[nx] of a row of a target's model, as an imager_part_weights whose context
 * is these facets. */
tess_status image_facets_weigh(const void *facets, int target, int64_t row,
                               double *weight);

/** The target in which a pixel y·nx + x lies, as the place of a PSF
 * (tess_clean_places.of), whose context is these facets. Local; one thread. */
int image_facets_place(void *facets, int64_t index);

/** The targets in which pixels of rows lie (tess_clean_places.rows), whose context is
 * these facets; 0 for pixels of none. TESS_ERR_ALLOC. Local. */
tess_status image_facets_places(void *facets, int64_t row_first, int64_t num_rows,
                                int threads, int16_t *place);

/** The polarisations of samples, and their number. Local. */
const tess_pol *image_held_pols(const image_run *run, int *num);

#endif
