/** @file imager_teams.h  (private to app/imager/)
 *  Ranks that make outputs side by side. Of channels that are cleaned together they
 * make dirty and residual images; all ranks clean these (channel_rounds.h).
 */
#ifndef TESS_IMAGER_TEAMS_H
#define TESS_IMAGER_TEAMS_H

#include "imager_job.h"
#include "imager_rows.h"
#include "output_table.h"
#include "tess_comm.h"
#include "tess_samples.h"

struct rank_rows;

/** Ranks that make outputs side by side: P ranks form `num` teams of neighbours, which
 *  in every round make the outputs from a first one on, team g the g-th. */
typedef struct imager_teams {
    tess_comm *all;  /**< borrowed */
    tess_comm *team; /**< of this rank; owned, NULL while there is one of all */
    int num, members, own;
} imager_teams;

/** What the number of teams depends on. */
typedef struct imager_teams_need {
    const output_table *outputs;
    int64_t first_output;        /**< to be made: those before are done */
    double vis_bytes, row_bytes; /**< of a sample, and of a row, a sample */
    bool kept;                   /**< samples are kept in memory */
    bool possible;               /**< nothing needs all ranks for every output */
    bool joined;                 /**< channels are cleaned together, by all ranks */
    bool checkpoints;            /**< are written */
} imager_teams_need;

/** Number of teams for the planned job, whose communicator has all ranks: forced, or
 *  the fastest that memory allows. TESS_ERR_USAGE for a forced one that cannot be,
 *  TESS_ERR_ALLOC. Local; but for that the same on all ranks. */
tess_status imager_teams_choose(const imager_job *job, const imager_teams_need *need,
                                int *num);

/** The outputs from `first` on, `num` of them, that have data, as they are dealt to
 *  several teams: the longest first, because the longest of a round ends it. order[num]
 *  gets their numbers less `first`; returns how many. Local. */
int imager_teams_order(const output_table *outputs, int64_t first, int num, int *order);

/** Form `num` teams, a divisor of the ranks. Collective. */
tess_status imager_teams_form(tess_comm *comm, int num, imager_teams *teams);
void imager_teams_free(imager_teams *teams); /**< Collective in the team. */

/** Send samples of the round from `first_output` on to the teams that make them; the
 *  team's own come in `to`, in the order of the file on its ranks. `from` is freed in
 *  the last round. Collective. */
tess_status imager_teams_deal(const imager_teams *teams, const output_table *outputs,
                              int64_t first_output, tess_samples *from,
                              const double *row_time, tess_samples *to);

/** The same of samples that have been chosen, and weighted, before: of_team[num] of the
 *  first teams, on every rank of one kind. They are freed. Collective. */
tess_status imager_teams_send(const imager_teams *teams, int num, tess_samples *of_team,
                              tess_samples *to);

/** Rows of means over channels that a rank keeps, and of images that all ranks clean
 *  together. Local. */
void imager_teams_mean_rows(const imager_teams *teams, int rank, int64_t ny,
                            int64_t *row_first, int64_t *num_rows);

/** Images of a round, on the ranks that keep these rows of the mean. */
typedef struct imager_round {
    int num_images;
    void *arrived[TESS_MAX_IMAGES];
    const double *next[TESS_MAX_IMAGES]; /**< what has not been added yet */
    struct rank_rows *told;              /**< [ranks] what each had */
} imager_round;

/** Take in the products of the round; `output` -1: this team has none. Collective. */
tess_status imager_teams_collect(const imager_teams *teams, int64_t output, int64_t ny,
                                 const imager_product *product, int num_images,
                                 imager_round *round);

/** Add the next team's, in order, to the means. Local. */
void imager_round_add(const imager_teams *teams, imager_round *round, int team,
                      imager_product *mean);
void imager_round_free(imager_round *round); /**< Local. */

#endif
