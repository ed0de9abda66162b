/** @file imager_checkpoint.h  (private to app/imager/)
 *  The checkpoints of a run of `image`.
 */
#ifndef TESS_IMAGER_CHECKPOINT_H
#define TESS_IMAGER_CHECKPOINT_H

#include "imager_bookmark.h"
#include "imager_job.h"
#include "imager_rows.h"
#include "tess_checkpoint.h"
#include "tess_comm.h"
#include "tess_imager.h"
#include "tess_profile.h"
#include "visset_keeper.h"

/** What major cycles add to a checkpoint. */
typedef struct imager_cycle {
    int num; /**< rows of images, image[num], in double precision, that lie as … */
    int64_t row_first, num_rows, nx; /**< … these */
    double *image[TESS_CHECKPOINT_MEANS];
    bool owned[TESS_CHECKPOINT_MEANS]; /**< to be freed once they are written */
    void *bytes;                       /**< [num_bytes] the same on all ranks; owned */
    int64_t num_bytes;
} imager_cycle;

/** Fill in what there is now. Local. */
typedef tess_status imager_cycle_save(void *context, imager_cycle *cycle);

/** When checkpoints were written, and must be: tess_time_now(), or seconds. */
typedef struct imager_checkpoint_times {
    double deadline_s; /**< the run has to end by then */
    double written_s;  /**< the last checkpoint was written */
    double looked_s;   /**< the clock was read last */
    double longest_s;  /**< the most that passed between two readings */
    double write_s;    /**< the most that a checkpoint took */
    double bytes_s;    /**< bytes per second at which this rank's were written */
} imager_checkpoint_times;

/** The checkpoints of a run. */
typedef struct imager_checkpoint {
    visset_keeper keeper; /**< by which the engine knows it; the first member */
    tess_comm *comm;
    const tess_checkpoint_opts *opts;
    tess_profile *profile;
    const imager_job *job;
    tess_checkpoint_state state;
    imager_bookmark bookmark;
    int64_t num_turned;            /**< blocks of it when the last one was written */
    bool resumed;                  /**< there was one to continue */
    bool sums_wait;                /**< its sums have not been taken yet */
    bool means_wait;               /**< nor its means over channels */
    bool cycle_waits;              /**< nor what major cycles had made */
    imager_cycle_save *save_cycle; /**< while an image is cleaned, or NULL */
    void *cycle_context;
    bool cycle_changed;         /**< since the last checkpoint */
    bool has_worked;            /**< something has been done since the start */
    bool unsaved;               /**< outputs are complete that no checkpoint tells of,
                                     or the last one could not be written */
    bool lacking;               /**< the last one could not be written */
    bool bookmark_lacking;      /**< the last one that was to have it is without it */
    int64_t num_done;           /**< planes done when the last one was written */
    const imager_product *mean; /**< [num_mean] means that have begun; borrowed */
    int num_mean;
    imager_checkpoint_times time;
} imager_checkpoint;

/** Make ready to write checkpoints, from SIGUSR1 and SIGTERM on too, or find the one to
 *  continue. Nothing happens without a folder. TESS_ERR_INPUT when there is one of
 *  another run, TESS_ERR_IO. Collective. */
tess_status imager_checkpoint_start(tess_comm *comm, const tess_image_opts *opts,
                                    tess_profile *profile,
                                    imager_checkpoint *checkpoint);

/** Between blocks that are read, with what has become of the last one: saves what is
 * not, and is TESS_ERR_STOPPED, when the run is to end; otherwise what has become of
 * any rank's. Collective, but where there is no folder, or NULL or zeros in place of
 * it: then nothing happens. */
tess_status imager_checkpoint_look(imager_checkpoint *checkpoint, tess_status status);

/** See that the plan is that of the sums there are, and that as many images have means
 *  over channels. Collective. */
tess_status imager_checkpoint_plan(imager_checkpoint *checkpoint, const imager_job *job,
                                   int num_means);

/** Continue with the sums of the first output that is to be made, and watch its steps.
 *  Collective. */
tess_status imager_checkpoint_begin(imager_checkpoint *checkpoint,
                                    const imager_job *job);

/** Another image of the same samples begins: none of its planes is done. NULL is fine.
 *  Local. */
void imager_checkpoint_restart(imager_checkpoint *checkpoint);

/** Take up these rows of the means over channels that had begun:
 *  mean[state.num_mean]. Local. */
tess_status imager_checkpoint_mean(const imager_checkpoint *checkpoint,
                                   int64_t row_first, int64_t num_rows,
                                   imager_product *mean);

/** An image is cleaned from here on, and `save` tells of it instead of sums; NULL: no
 *  more. Local. */
void imager_checkpoint_cycle(imager_checkpoint *checkpoint, imager_cycle_save *save,
                             void *context);

/** Cleaning has come further, and may be saved; as imager_checkpoint_look. Collective.
 */
tess_status imager_checkpoint_cleaned(imager_checkpoint *checkpoint);

/** What major cycles had made when the run was left: image `k` of their rows, this
 *  rank's of it. The state's bytes are checkpoint->state.cycle. Local. */
tess_status imager_checkpoint_cycle_rows(const imager_checkpoint *checkpoint, int k,
                                         int64_t row_first, int64_t num_rows,
                                         double *rows);

/** Have the job's visibility sets tell this checkpoint how far they come. Local. */
void imager_checkpoint_keep(imager_checkpoint *checkpoint, imager_job *job);

/** So many more outputs are complete, with the means whose last channel is among them.
 *  May end the run with TESS_ERR_STOPPED. Collective. */
tess_status imager_checkpoint_outputs(imager_checkpoint *checkpoint, int64_t count);

/** All is done. Collective. */
void imager_checkpoint_finish(imager_checkpoint *checkpoint);
void imager_checkpoint_free(imager_checkpoint *checkpoint); /**< Local. */

#endif
