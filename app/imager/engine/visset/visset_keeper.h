/** @file visset_keeper.h  (private to app/imager/)
 *  A keeper saves what a visibility set has made so far, for a run that is continued
 *  later. The set reports how far it has come in data that are read in blocks, and asks
 *  how far the run had come that it continues. The functions below do nothing without a
 *  keeper.
 */
#ifndef TESS_VISSET_KEEPER_H
#define TESS_VISSET_KEEPER_H

#include "exchange.h"
#include "imager_job.h"

typedef struct sample_sets sample_sets; /* sample_sets.h */

struct imager_sums;

/** The place of a pass over data: the window of planes, the pass within the window, and
 * the set of samples that is sent next. */
typedef struct imager_place {
    int64_t window, share, next_set;
} imager_place;

/** Numbers that tell whether what was kept belongs to the same blocks, passes and
 * bricks. The first is the number of blocks or sets. */
typedef struct imager_check {
    int64_t number[8];
} imager_check;

/** Functions of a keeper. `take_bricks` and `take_pass` restore their objects to the
 * state in which the run was left, if what was kept has the same numbers. Otherwise the
 * objects stay as they are, and the place is the beginning. The keeper borrows the
 * objects until it is told to forget them. */
typedef struct visset_keeper {
    /** The set's images begin, perhaps with sums of planes that were kept. Collective.
     */
    tess_status (*begin)(struct visset_keeper *keeper, const imager_job *job);
    /** Another image of the set begins, of which no plane is done. Local. */
    void (*restart)(struct visset_keeper *keeper);
    /** Called between blocks with this rank's status. TESS_ERR_STOPPED: the run is to
     * end. Otherwise the status that ranks have agreed on. Collective. */
    tess_status (*look)(struct visset_keeper *keeper, tess_status status);
    /** Restore the counts of bricks of all sets of samples before `*next_set`.
     * Collective. */
    tess_status (*take_bricks)(struct visset_keeper *keeper, const imager_check *check,
                               const tess_grid_plan *plan, sample_sets *data,
                               tess_brick_list *bricks, int64_t *next_set);
    /** Restore samples that were received, brick sums and sums of weights. Collective.
     */
    tess_status (*take_pass)(struct visset_keeper *keeper, const imager_check *check,
                             imager_job *job, tess_exchange *exchange,
                             struct imager_sums *sums, imager_place *place);
    /** All sets before this one have been counted, or all samples before this place
     * have been sent. Local. */
    void (*counted)(struct visset_keeper *keeper, int64_t next_set);
    void (*sent)(struct visset_keeper *keeper, const imager_place *place);
    /** Forget the objects of a pass, or all objects that the keeper has borrowed.
     * Local. */
    void (*forget_pass)(struct visset_keeper *keeper);
    void (*forget)(struct visset_keeper *keeper);
} visset_keeper;

static inline tess_status visset_keeper_begin(const imager_job *job)
{
    return job->keeper ? job->keeper->begin(job->keeper, job) : TESS_OK;
}

static inline void visset_keeper_restart(const imager_job *job)
{
    if (job->keeper) job->keeper->restart(job->keeper);
}

static inline tess_status visset_keeper_look(const imager_job *job, tess_status status)
{
    return job->keeper ? job->keeper->look(job->keeper, status) : status;
}

static inline void visset_keeper_counted(const imager_job *job, int64_t next_set)
{
    if (job->keeper) job->keeper->counted(job->keeper, next_set);
}

static inline void visset_keeper_sent(const imager_job *job, const imager_place *place)
{
    if (job->keeper) job->keeper->sent(job->keeper, place);
}

static inline void visset_keeper_forget_pass(const imager_job *job)
{
    if (job->keeper) job->keeper->forget_pass(job->keeper);
}

static inline void visset_keeper_forget(const imager_job *job)
{
    if (job->keeper) job->keeper->forget(job->keeper);
}

#endif
