/* What the engine's visibility sets tell of their work goes to the checkpoint of a run
 * (visset_keeper.h). */
#include "image_checkpoint.h"

/* The keeper is the checkpoint's first member. */
static image_checkpoint *checkpoint_of(visset_keeper *keeper)
{
    return (image_checkpoint *)keeper;
}

static tess_status begin(visset_keeper *keeper, const imager_job *job)
{
    return image_checkpoint_begin(checkpoint_of(keeper), job);
}

static void restart(visset_keeper *keeper)
{
    image_checkpoint_restart(checkpoint_of(keeper));
}

static tess_status look(visset_keeper *keeper, tess_status status)
{
    return image_checkpoint_look(checkpoint_of(keeper), status);
}

static tess_status take_bricks(visset_keeper *keeper, const imager_check *check,
                               const tess_grid_plan *plan, sample_sets *data,
                               tess_brick_list *bricks, int64_t *next_set)
{
    return image_bookmark_bricks(&checkpoint_of(keeper)->bookmark, check, plan, data,
                                 bricks, next_set);
}

static tess_status take_pass(visset_keeper *keeper, const imager_check *check,
                             imager_job *job, tess_exchange *exchange,
                             imager_sums *sums, imager_place *place)
{
    image_checkpoint *checkpoint = checkpoint_of(keeper);
    if (checkpoint->images.are_joined) return TESS_OK; /* a pass is of one target */
    return image_bookmark_pass(&checkpoint->bookmark, check, job, exchange, sums,
                               place);
}

static void counted(visset_keeper *keeper, int64_t next_set)
{
    image_bookmark_at(&checkpoint_of(keeper)->bookmark, BOOKMARK_BRICKS, next_set);
}

static void sent(visset_keeper *keeper, const imager_place *place)
{
    image_bookmark_sent(&checkpoint_of(keeper)->bookmark, place);
}

static void forget_pass(visset_keeper *keeper)
{
    image_bookmark_forget(&checkpoint_of(keeper)->bookmark, BOOKMARK_PASS);
}

static void forget(visset_keeper *keeper)
{
    image_bookmark_forget(&checkpoint_of(keeper)->bookmark, BOOKMARK_BRICKS);
}

void image_checkpoint_keep(image_checkpoint *checkpoint, imager_job *job)
{
    checkpoint->keeper = (visset_keeper){.begin = begin,
                                         .restart = restart,
                                         .look = look,
                                         .take_bricks = take_bricks,
                                         .take_pass = take_pass,
                                         .counted = counted,
                                         .sent = sent,
                                         .forget_pass = forget_pass,
                                         .forget = forget};
    job->keeper = &checkpoint->keeper;
}
