/** @file thread_teams.h  (private to app/imager/run/)
 *  Teams of threads of a rank, which make outputs side by side. The first thread of the
 *  rank sends samples, opens files and adds to means, because it alone may talk to
 * other ranks. Between these steps each team makes and cleans the images of one output
 * by itself, as a run of one rank that needs no MPI.
 */
#ifndef TESS_THREAD_TEAMS_H
#define TESS_THREAD_TEAMS_H

#include "channel_group.h"

/** A team of threads. */
typedef struct thread_team {
    image_run run; /**< its job, options, communicator and backlog are the team's; all
                      else is borrowed from the rank's run */
    tess_image_opts opts;
    tess_grid_plan plan;
    tess_profile profile;
    tess_comm *comm; /**< of this rank alone, without MPI; owned */
    tess_status status;
} thread_team;

typedef struct thread_teams {
    image_run *run; /**< borrowed */
    int num;
    thread_team *team; /**< [num]; NULL where all threads make one output at a time */
} thread_teams;

/** Make the teams that were chosen (run->teams.of_threads). TESS_ERR_ALLOC: callers
 * agree on it. Local. */
tess_status thread_teams_create(image_run *run, thread_teams *teams);
void thread_teams_free(thread_teams *teams); /**< Zeros are fine. Local. */

/** The run in which the k-th of the outputs of a round is made: a team's, or that of
 * the rank. Local. */
image_run *thread_teams_run(const thread_teams *teams, int k);

/** Make the images of groups[num], num ≤ teams->num, one by each team; those of a
 * single team are made by the ranks of the run. Fails as the first of them that fails.
 * Collective in the ranks of a group. */
tess_status thread_teams_make(thread_teams *teams, channel_group *groups, int num);

#endif
