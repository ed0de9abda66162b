/** @file image_checkpoint.h  (private to app/imager/run/)
 *  The checkpoints of a run of `image`.
 */
#ifndef TESS_IMAGE_CHECKPOINT_H
#define TESS_IMAGE_CHECKPOINT_H

#include "image_bookmark.h"
#include "imager_job.h"
#include "imager_product.h"
#include "tess_checkpoint.h"
#include "tess_comm.h"
#include "tess_imager.h"
#include "tess_profile.h"
#include "visset_keeper.h"

/** What major cycles add to a checkpoint: rows of images, and bytes that are the same
 * on all ranks. */
typedef struct image_cycle {
    int num;                                /**< of images */
    tess_rows image[TESS_CHECKPOINT_MEANS]; /**< [num] this rank's rows of each, of
                                                 double in host memory: views of others,
                                                 or rows of their own */
    void *bytes;                            /**< [num_bytes]; owned */
    int64_t num_bytes;
} image_cycle;

/** Fills in the present state of the major cycles. Local. */
typedef tess_status image_cycle_save(void *context, image_cycle *cycle);

/** Times of checkpoints: points in time as of tess_time_now(), and durations [s]. */
typedef struct image_checkpoint_times {
    double deadline_s; /**< when the run has to end */
    double written_s;  /**< when the last checkpoint was written */
    double looked_s;   /**< when the clock was last read */
    double longest_s;  /**< longest time between two readings of the clock */
    double write_s;    /**< longest time that writing a checkpoint took */
    double bytes_s;    /**< rate at which this rank writes checkpoints [bytes/s] */
} image_checkpoint_times;

/** Writes to disk what a checkpoint relies on in other files. Collective. */
typedef tess_status image_checkpoint_settle(void *context);

/** What a run makes: images of the job, or joined of images of its targets. */
typedef struct image_checkpoint_makes {
    const imager_job *job;
    const tess_geom *geom; /**< of the whole images */
    bool are_joined;       /**< no planes of targets are kept, but major cycles only */
} image_checkpoint_makes;

/** The checkpoints of a run. */
typedef struct image_checkpoint {
    visset_keeper
        keeper; /**< through which the engine calls the checkpoint; the first member */
    tess_comm *comm;
    const tess_checkpoint_opts *opts;
    tess_profile *profile;
    image_checkpoint_makes images;
    tess_checkpoint_state state;
    image_bookmark bookmark;
    int64_t num_turned; /**< number of blocks in the bookmark when the last checkpoint
                           was written */
    bool resumed;       /**< the run continues from a checkpoint */
    bool sums_wait;     /**< the sums of that checkpoint have not been taken up yet */
    bool means_wait;    /**< its means over channels have not been taken up yet */
    bool cycle_waits;   /**< the state of its major cycles has not been taken up yet */
    image_cycle_save *save_cycle; /**< set while an image is cleaned, else NULL */
    void *cycle_context;
    image_checkpoint_settle *settle; /**< called before a checkpoint is written, or
                                           NULL */
    void *settle_context;
    bool cycle_changed; /**< major cycles have advanced since the last checkpoint */
    bool has_worked;    /**< the run has advanced since it was started */
    bool unsaved; /**< outputs are complete that the last checkpoint does not count, or
                     it could not be written */
    bool lacking; /**< the last checkpoint could not be written */
    bool bookmark_lacking; /**< the last checkpoint had no room for the bookmark */
    int64_t num_done; /**< planes that were done when the last checkpoint was written */
    const imager_product *mean; /**< [num_mean] sums of the means over channels of the
                                   current interval; borrowed */
    int num_mean;
    image_checkpoint_times time;
} image_checkpoint;

/** Prepare checkpoints. From here on SIGUSR1 and SIGTERM ask for one. Finds the
 * checkpoint that the run continues from. Does nothing without a folder.
 * TESS_ERR_INPUT: the folder has a checkpoint of another run. TESS_ERR_IO. Collective.
 */
tess_status image_checkpoint_start(tess_comm *comm, const tess_image_opts *opts,
                                   tess_profile *profile, image_checkpoint *checkpoint);

/** Have `settle` called before each checkpoint from here on. Local. */
void image_checkpoint_settles(image_checkpoint *checkpoint,
                              image_checkpoint_settle *settle, void *context);

/** Look between two blocks that are read: ranks agree on `status` and on whether a
 * checkpoint is due. Saves those planes that the last checkpoint does not hold.
 * TESS_ERR_STOPPED: the run is to end, and has been saved. Returns the agreed status
 * otherwise. Returns `status` at once where `checkpoint` is NULL or zeroed or has no
 * folder. Collective. */
tess_status image_checkpoint_look(image_checkpoint *checkpoint, tess_status status);

/** Check that the job has the plan of the checkpoint's sums, and that `num_means`
 * images have means over channels. TESS_ERR_INPUT. Collective. */
tess_status image_checkpoint_plan(image_checkpoint *checkpoint,
                                  const image_checkpoint_makes *images, int num_means);

/** Take up the checkpoint's sums for the first output that is made, and watch the job's
 * steps. TESS_ERR_INPUT: the sums are of another number of planes. Collective. */
tess_status image_checkpoint_begin(image_checkpoint *checkpoint, const imager_job *job);

/** Begin another image, of which no plane is done. NULL is fine. Local. */
void image_checkpoint_restart(image_checkpoint *checkpoint);

/** Take up rows of the means over channels that the checkpoint holds, into
 * mean[state.num_mean]. Local. */
tess_status image_checkpoint_mean(const image_checkpoint *checkpoint, int64_t row_first,
                                  int64_t num_rows, imager_product *mean);

/** From here on checkpoints hold what `save` gives instead of sums of planes, until the
 * next call with NULL. Local. */
void image_checkpoint_cycle(image_checkpoint *checkpoint, image_cycle_save *save,
                            void *context);

/** Note that cleaning has advanced, and look as image_checkpoint_look does.
 * Collective. */
tess_status image_checkpoint_cleaned(image_checkpoint *checkpoint);

/** Read this rank's rows, of double, of image `k` that major cycles had saved. Their
 * bytes are in checkpoint->state.cycle. Local. */
tess_status image_checkpoint_cycle_rows(const image_checkpoint *checkpoint, int k,
                                        const tess_rows *rows);

/** Let the job's visibility sets report their progress to this checkpoint. Local. */
void image_checkpoint_keep(image_checkpoint *checkpoint, imager_job *job);

/** Note that `count` more outputs are complete, with the means whose last channel is
 * among them. TESS_ERR_STOPPED: the run is to end, and has been saved. Collective. */
tess_status image_checkpoint_outputs(image_checkpoint *checkpoint, int64_t count);

/** Save that all outputs are complete, unless the last checkpoint does: what the run
 * still does changes its observations, and a run that continues then accepts that.
 * Collective.
 */
tess_status image_checkpoint_images(image_checkpoint *checkpoint);

/** Remove the checkpoint: the run is complete. Collective. */
void image_checkpoint_finish(image_checkpoint *checkpoint);
void image_checkpoint_free(image_checkpoint *checkpoint); /**< Local. */

#endif
