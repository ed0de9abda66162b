/** @file thread_teams.h  (private to app/imager/run/)
 *  Teams of threads of a rank, which make outputs side by side. Each team makes and
 *  cleans the images of one output by itself, as a run of one rank that needs no MPI.
 * In a round of one output for each team, the rank's first thread sends samples before
 * and writes files behind, because it alone may talk to other ranks. In a round of
 * several (team_work.end), teams also write files and add to means, one thread at a
 * time and in the order of the outputs.
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
} thread_team;

typedef struct thread_teams {
    image_run *run; /**< borrowed */
    int num;
    thread_team *team; /**< [num]; NULL where all threads make one output at a time */
    tess_profile ends; /**< of what ends groups while teams make others */
} thread_teams;

/** Make the teams that were chosen (run->teams.of_threads). TESS_ERR_ALLOC: callers
 * agree on it. Local. */
tess_status thread_teams_create(image_run *run, thread_teams *teams);
void thread_teams_free(thread_teams *teams); /**< Zeros are fine. Local. */

/** The run of the k-th team, or that of the rank where there are no teams. Local. */
image_run *thread_teams_run(const thread_teams *teams, int k);

/** Groups that teams make, each team one after the other. */
typedef struct team_work {
    channel_group *group; /**< [num] */
    int num;
    tess_status (*end)(void *context, int k); /**< writes the k-th group, adds it to
                           means and frees it, once the groups before it have ended; one
                           thread at a time calls this. NULL: the caller does so. Local,
                           or collective in the team of ranks */
    void *context;
} team_work;

/** Make the images of all groups. A team takes the next group as soon as it is free,
 * and its run is that of the group from then on; without teams the ranks of the run
 * make one group after the other. Fails as the first group that fails; later ones are
 * not begun then. Collective in the ranks of a group. */
tess_status thread_teams_make(thread_teams *teams, const team_work *work);

#endif
