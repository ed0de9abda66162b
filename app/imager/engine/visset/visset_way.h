/** @file visset_way.h  (private to app/imager/)
 *  How a visibility set will be gridded: in passes over the data or all at once, with
 *  the sums of how many planes at a time, and how a model is subtracted.
 *
 *  A run decides by the samples that it has, and `tessera plan` by those that it
 *  foresees. Both call these functions.
 */
#ifndef TESS_VISSET_WAY_H
#define TESS_VISSET_WAY_H

#include "imager_passes.h"
#include "residual.h"

/** Samples in the memory of a rank [bytes]. */
typedef struct visset_held {
    double kept;    /**< of other outputs, throughout */
    double waiting; /**< of this output as they have been read, all or a set of them, in
                       so far as they stay while bricks are gridded */
    double reading; /**< of the blocks of a file that are read meanwhile */
    double owned;   /**< of this rank's bricks, with their runs; not in passes */
} visset_held;

/** What is gridded. */
typedef struct visset_asked {
    const tess_samples *samples; /**< samples that this rank grids; only their kind and
                                    number matter */
    const tess_brick_list *bricks; /**< of these samples, or of all of this rank */
    bool less_model;               /**< residuals of the job's model */
    bool less_early; /**< residuals of a model that has a plan of its own */
    bool of_sources; /**< sources in their place, which have values of their
                        own even where targets take rows as they are */
} visset_asked;

/** How samples that are held all at once are gridded. */
typedef struct visset_way {
    residual_way residual; /**< zeros without a model */
    double bytes;          /**< memory beside the sums that are gridded into */
    int planes;            /**< planes whose sums are held at a time; 0: all */
} visset_way;

/** Memory that this rank holds beside the sums of bricks [bytes]. Local. */
double visset_beside_sums(const imager_job *job, const visset_held *held);

/** Choose how all samples of this rank's bricks are gridded at once. Collective in the
 * job's team. */
tess_status visset_choose_way(imager_job *job, const visset_held *held,
                              const visset_asked *asked, const tess_brick_list *bricks,
                              visset_way *way);

/** Choose the passes over data that do not fit into memory, with the bricks `owned` by
 * this rank. Free with imager_passes_free(). Collective in the job's team. */
tess_status visset_choose_passes(const imager_job *job, const visset_held *held,
                                 const visset_asked *asked,
                                 const tess_brick_list *owned, imager_passes *passes);

/** The samples, if the backend must take all samples of their kind at once, all samples
 * of a brick together, as far as it has room for them; NULL: it takes any number.
 * Local. */
const tess_samples *visset_limited(const imager_job *job, const tess_samples *samples);

/** Bytes that targets take of what is gridded, one after the other: values, or tracks
 * and values of their nodes, whose number is a guess. Local. */
double visset_taken_bytes(const imager_job *job, const visset_asked *asked);

#endif
