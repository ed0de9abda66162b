/** @file imager_thread_teams.h  (private to app/imager/)
 *  Teams of threads of a rank that makes outputs by itself: each team makes an output
 * of its own. The threads of a rank share small planes badly, and many small outputs
 * well.
 */
#ifndef TESS_IMAGER_THREAD_TEAMS_H
#define TESS_IMAGER_THREAD_TEAMS_H

#include "imager_teams.h"

/** Choose the number of teams for the planned job, whose communicator has the ranks
 * that make an output: the number that options force, or the fastest for which there is
 * memory. `rank_teams` teams of ranks share the outputs. `output_bytes`: images of an
 * output that are written while the next one is made. `together` says why all threads
 * work on every output, or is NULL: they need not. TESS_ERR_USAGE: the forced number is
 * impossible. The result is the same on all ranks if their memory is. Local. */
tess_status imager_thread_teams_choose(const imager_job *job,
                                       const imager_teams_need *need, int rank_teams,
                                       double output_bytes, const char *together,
                                       imager_thread_teams *teams);

/** The memory that one of these teams may use, of which all teams share what the rank
 * holds for all of them: the program, and `kept` bytes of samples [bytes]. Local. */
int64_t imager_thread_team_bytes(const imager_job *job,
                                 const imager_thread_teams *teams, double kept);

#endif
