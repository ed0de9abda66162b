/** @file imager_bookmark.h  (private to app/imager/)
 *  How far a rank has come in data that are being read.
 */
#ifndef TESS_IMAGER_BOOKMARK_H
#define TESS_IMAGER_BOOKMARK_H

#include "exchange.h"
#include "imager_job.h"
#include "output_table.h"
#include "sample_sets.h"
#include "tess_checkpoint.h"
#include "tess_comm.h"
#include "tess_grid.h"
#include "tess_mover.h"
#include "tess_profile.h"
#include "tess_samples.h"
#include "tess_weight.h"
#include "visset.h"
#include "visset_keeper.h"

/** What the survey of the data has found so far, beside output_table. */
typedef struct imager_survey {
    bool weights_differ; /**< the polarisations of some sample have several weights */
    bool summed;         /**< output_table_sum has been called */
} imager_survey;

/** What a bookmark has, in the order in which a run comes to it. */
typedef enum imager_section {
    IMAGER_SURVEY,  /**< outputs, and what is counted of the data */
    IMAGER_DENSITY, /**< for weights */
    IMAGER_BRICKS,  /**< counted */
    IMAGER_PASS,    /**< samples that were received, brick sums, sums of weights */
    IMAGER_NUM_SECTIONS
} imager_section;

/** Which number of a survey's check is that of the rows there are. */
enum { IMAGER_CHECK_ROWS = 4 };

/** How far this rank has come in data that are read in blocks, and what it has made of
 *  them: goes into checkpoints, for as many ranks to continue there. Samples that are
 *  kept in memory are not in it: reading them again takes no longer than reading them
 *  back. Zeros are none; so is NULL where functions say so. What it points to is
 *  borrowed. */
typedef struct imager_bookmark {
    tess_comm *comm;
    bool has[IMAGER_NUM_SECTIONS];
    int64_t next[IMAGER_NUM_SECTIONS]; /**< block or set */
    imager_check check[IMAGER_NUM_SECTIONS];
    int64_t turned;   /**< blocks so far */
    tess_mover *left; /**< what has not been taken up of the run that is continued */
    int64_t left_section; /**< that comes next there */
    imager_survey *survey;
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
} imager_bookmark;

void imager_bookmark_start(imager_bookmark *bookmark, tess_comm *comm); /**< Local. */
void imager_bookmark_free(imager_bookmark *bookmark);                   /**< Local. */

/** Open what a checkpoint has for this rank, if it is of as many. Collective. */
tess_status imager_bookmark_open(imager_bookmark *bookmark, const char *folder,
                                 const tess_checkpoint_state *state);

/** From here on the bookmark (but for the survey: or NULL) has this section, made of
 * the objects given; they become what they were where the run was left, if it had come
 * that far with the same numbers, and the next block or set is told: else 0.
 * Collective. */
tess_status imager_bookmark_survey(imager_bookmark *bookmark, const imager_check *check,
                                   imager_survey *survey, output_table *outputs,
                                   tess_profile *profile, int64_t *next_block);
tess_status imager_bookmark_density(imager_bookmark *bookmark,
                                    const imager_check *check, tess_density *density,
                                    int64_t *next_set);
tess_status imager_bookmark_bricks(imager_bookmark *bookmark, const imager_check *check,
                                   const tess_grid_plan *plan, sample_sets *data,
                                   tess_brick_list *bricks, int64_t *next_set);
tess_status imager_bookmark_pass(imager_bookmark *bookmark, const imager_check *check,
                                 imager_job *job, tess_exchange *exchange,
                                 imager_sums *sums, imager_place *place);

/** All before this block or set is in the section; NULL is fine. Local. */
void imager_bookmark_at(imager_bookmark *bookmark, imager_section section,
                        int64_t next);

/** As imager_bookmark_at, of the pass at this place. Local. */
void imager_bookmark_sent(imager_bookmark *bookmark, const imager_place *place);

/** This section and those after it are no more; NULL is fine. Local. */
void imager_bookmark_forget(imager_bookmark *bookmark, imager_section from);

/** Whether it has anything; about how many bytes. Local. */
bool imager_bookmark_is_kept(const imager_bookmark *bookmark);
double imager_bookmark_bytes(const imager_bookmark *bookmark);

/** Make it ready to be written. Collective. */
tess_status imager_bookmark_settle(imager_bookmark *bookmark);

/** Write it; of tess_checkpoint_own. Local. */
tess_status imager_bookmark_write(void *bookmark, tess_mover *mover);

#endif
