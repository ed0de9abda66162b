/** @file imager_teams.h  (private to app/imager/)
 *  Teams of ranks that make outputs side by side. If channels are cleaned together,
 *  teams make dirty and residual images, and all ranks clean them (channel_group.h).
 */
#ifndef TESS_IMAGER_TEAMS_H
#define TESS_IMAGER_TEAMS_H

#include "imager_job.h"
#include "imager_product.h"
#include "output_table.h"
#include "tess_comm.h"
#include "tess_samples.h"

struct rank_rows;

/** Teams of threads of a rank that makes outputs by itself (imager_thread_teams.h). */
typedef struct imager_thread_teams {
    int num;             /**< outputs that a rank makes at a time; 0 or 1: one */
    int threads;         /**< threads of a team */
    double sample_bytes; /**< bytes of the samples of the largest output of a team */
    bool is_one; /**< this is said in a team of threads: it borrows what belongs to the
                    rank */
} imager_thread_teams;

/** P ranks form `num` teams of neighbours. In each round, team g makes the g-th of the
 * round's outputs. */
typedef struct imager_teams {
    tess_comm *all; /**< all ranks; borrowed */
    tess_comm
        *team; /**< this rank's team; owned; NULL if there is one team of all ranks */
    int num, members, own;
    imager_thread_teams of_threads; /**< of this rank, once they are chosen */
    bool sums_means; /**< a team sums up its own images for means over channels */
    int turns; /**< outputs that each team, of ranks or of threads, makes in a round on
                  its own; 0 and 1: one */
} imager_teams;

/** Outputs that this rank makes at a time. Local. */
static inline int imager_teams_at_once(const imager_teams *teams)
{
    return teams->of_threads.num > 1 ? teams->of_threads.num : 1;
}

/** Teams write checkpoints between rounds only: with checkpoints a round takes no
 * longer [s]. */
enum { IMAGER_CHECKPOINT_ROUND_S = 60 };

/** What the number of teams depends on. */
typedef struct imager_teams_need {
    const output_table *outputs;
    int64_t first_output; /**< the first output that is to be made; those before it are
                             done */
    double vis_bytes,
        row_bytes; /**< bytes of a sample, and of a row for each of its samples */
    bool kept;     /**< samples are kept in memory */
    bool dealt;    /**< those of the outputs of a round are, and are sent to teams */
    const char *together; /**< why all ranks work on every output, or NULL: a step of it
                               does not need all of them */
    bool cleaned;         /**< images are cleaned */
    bool joined;          /**< channels are cleaned together, by all ranks */
    bool has_room; /**< every GPU has room for the images of an output that it makes by
                      itself, and for cleaning them */
    bool checkpoints; /**< checkpoints are written */
} imager_teams_need;

/** Choose the number of teams for the planned job, whose communicator has all ranks:
 * the number that options force, or the fastest for which there is memory.
 * TESS_ERR_USAGE: the forced number is impossible. TESS_ERR_ALLOC. Apart from that the
 * result is the same on all ranks. Local. */
tess_status imager_teams_choose(const imager_job *job, const imager_teams_need *need,
                                int *num);

/** Order those of the `num` outputs from `first` on that have data, as they are dealt
 * to several teams: the longest come first, because the longest output of a round ends
 * it. order[num] gets their numbers less `first`; returns how many there are. Local. */
int imager_teams_order(const output_table *outputs, int64_t first, int num, int *order);

/** Form `num` teams; `num` divides the number of ranks. Collective. */
tess_status imager_teams_form(tess_comm *comm, int num, imager_teams *teams);
void imager_teams_free(imager_teams *teams); /**< Collective in the team. */

/** The rows that a rank keeps of means over channels, and of images that all ranks
 * clean together. Local. */
void imager_teams_mean_rows(const imager_teams *teams, int rank, int64_t ny,
                            int64_t *row_first, int64_t *num_rows);

/** Images of a round, by the rows that each rank keeps of the mean. */
typedef struct imager_round {
    int num_images;
    bool are_sums; /**< images have been multiplied by their weights */
    void *arrived[TESS_MAX_IMAGES];
    const char *next[TESS_MAX_IMAGES]; /**< the rows that are added next */
    struct rank_rows *told;            /**< [ranks] the rows that each rank had */
} imager_round;

/** Exchange the products of the round; `output` -1: this team has none. Collective. */
tess_status imager_teams_collect(const imager_teams *teams, int64_t output, int64_t ny,
                                 const imager_product *product, int num_images,
                                 imager_round *round);

/** Add the images of the next team to the means, by at most `threads` threads. Teams
 * are added in their order. Errors of tess_rows_add(). Local. */
tess_status imager_round_add(const imager_teams *teams, imager_round *round, int team,
                             int threads, imager_product *mean);
void imager_round_free(imager_round *round); /**< Local. */

/* ---- imager_teams_rows.c ---- */

/** Send the images of the first `num` teams, one each, to all ranks: rank r of P has
 *  rows [r ny / P, (r + 1) ny / P) of every image. `own`: what the
 *  job left to this rank of its team's, NULL for other teams; rows[num] get this rank's
 *  rows of every team's, bit for bit. Collective over all ranks. */
tess_status imager_teams_spread(const imager_teams *teams, const imager_job *job,
                                int num, const tess_rows *own, tess_rows *const *rows);

/** The inverse: the team g < num gets the image whose rows of this rank are rows[g], as
 *  imager_model_set() wants it in `own`; other teams get nothing. Collective over all
 *  ranks. */
tess_status imager_teams_bring(const imager_teams *teams, const imager_job *job,
                               int num, tess_rows *const *rows, tess_rows *own);

#endif
