/** @file image_bookmark.h  (private to app/imager/run/)
 *  How far a rank has come in data that are being read.
 */
#ifndef TESS_IMAGE_BOOKMARK_H
#define TESS_IMAGE_BOOKMARK_H

#include "exchange.h"
#include "imager_job.h"
#include "output_table.h"
#include "tess_checkpoint.h"
#include "tess_comm.h"
#include "tess_grid.h"
#include "tess_mover.h"
#include "tess_profile.h"
#include "tess_weight.h"
#include "visset.h"
#include "visset_keeper.h"

/** What the survey of the data has found so far, beside the table of outputs. */
typedef struct image_survey {
    bool weights_differ; /**< some sample has different weights for its polarisations */
    bool summed;         /**< output_table_sum has been called */
} image_survey;

/** The sections of a bookmark, in the order in which a run reaches them. */
typedef enum bookmark_section {
    BOOKMARK_SURVEY,  /**< the table of outputs, and counts of the data */
    BOOKMARK_DENSITY, /**< the density by which weights are divided */
    BOOKMARK_BRICKS,  /**< numbers of samples and runs of each brick */
    BOOKMARK_PASS,    /**< samples that were received, brick sums, sums of weights */
    BOOKMARK_NUM_SECTIONS
} bookmark_section;

/** The number of a survey's check that holds the number of rows. */
enum { BOOKMARK_CHECK_ROWS = 4 };

/** How far this rank has come in data that are read in blocks, and what it has made of
 * them. Checkpoints hold it, so that a run on as many ranks continues there. Samples
 * that are kept in memory are not part of it: reading them again takes no longer than
 * reading them from a checkpoint. A zeroed bookmark keeps nothing; so does NULL, where
 * functions allow it. All that it points to is borrowed. */
typedef struct image_bookmark {
    tess_comm *comm;
    bool has[BOOKMARK_NUM_SECTIONS];
    int64_t next[BOOKMARK_NUM_SECTIONS]; /**< the next block or set */
    imager_check check[BOOKMARK_NUM_SECTIONS];
    int64_t turned;       /**< blocks that have been read so far */
    tess_mover *left;     /**< the rest of the checkpoint that the run continues from */
    int64_t left_section; /**< the section that comes next in `left` */
    image_survey *survey;
    output_table *outputs;
    tess_profile *profile;
    tess_density *density;
    const tess_grid_plan *plan;
    sample_sets *data;
    tess_brick_list *bricks;
    imager_job *job;
    tess_exchange *exchange;
    imager_sums *sums;
    imager_place place;
} image_bookmark;

void image_bookmark_start(image_bookmark *bookmark, tess_comm *comm); /**< Local. */
void image_bookmark_free(image_bookmark *bookmark);                   /**< Local. */

/** Open the sections that a checkpoint holds of this rank, unless it was written by
 * another number of ranks. Collective. */
tess_status image_bookmark_open(image_bookmark *bookmark, const char *folder,
                                const tess_checkpoint_state *state);

/** Each of these registers a section of the bookmark, made of the objects that are
 * given. If the checkpoint that the run continues from has this section with the same
 * `check`, the objects become what they were, and the next block or set is returned;
 * otherwise it is 0. `bookmark` may be NULL, except for the survey. TESS_ERR_INPUT: the
 * section is damaged. Collective. */
tess_status image_bookmark_survey(image_bookmark *bookmark, const imager_check *check,
                                  image_survey *survey, output_table *outputs,
                                  tess_profile *profile, int64_t *next_block);
tess_status image_bookmark_density(image_bookmark *bookmark, const imager_check *check,
                                   tess_density *density, int64_t *next_set);
tess_status image_bookmark_bricks(image_bookmark *bookmark, const imager_check *check,
                                  const tess_grid_plan *plan, sample_sets *data,
                                  tess_brick_list *bricks, int64_t *next_set);
tess_status image_bookmark_pass(image_bookmark *bookmark, const imager_check *check,
                                imager_job *job, tess_exchange *exchange,
                                imager_sums *sums, imager_place *place);

/** Note that the section has everything before this block or set; NULL is fine. Local.
 */
void image_bookmark_at(image_bookmark *bookmark, bookmark_section section,
                       int64_t next);

/** As image_bookmark_at, for the pass at this place. Local. */
void image_bookmark_sent(image_bookmark *bookmark, const imager_place *place);

/** Drop this section and those after it; NULL is fine. Local. */
void image_bookmark_forget(image_bookmark *bookmark, bookmark_section from);

/** Whether the bookmark has any section. Local. */
bool image_bookmark_is_kept(const image_bookmark *bookmark);

/** Approximate size of the bookmark in a checkpoint [bytes]. Local. */
double image_bookmark_bytes(const image_bookmark *bookmark);

/** Receive what is in flight, so that the bookmark can be written. Collective. */
tess_status image_bookmark_settle(image_bookmark *bookmark);

/** Write the bookmark (tess_checkpoint_own). Local. */
tess_status image_bookmark_write(void *bookmark, tess_mover *mover);

#endif
