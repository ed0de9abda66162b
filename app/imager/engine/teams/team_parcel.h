/** @file team_parcel.h  (private to app/imager/)
 *  The samples of a round's outputs, as messages to the teams that make them.
 */
#ifndef TESS_TEAM_PARCEL_H
#define TESS_TEAM_PARCEL_H

#include "imager_teams.h"

/** Samples of a round's outputs on their way to teams, as messages. */
typedef struct team_parcel {
    tess_samples like;       /**< without arrays */
    char *message;           /**< that to the first team, then that to the next ... */
    int64_t bytes, capacity; /**< of all messages so far */
    int64_t *first; /**< [teams + 1] first byte of each team's message, and the end */
    int num;        /**< teams whose messages are complete */
    tess_samples before; /**< the last output of the next team */
} team_parcel;

/** Begin a parcel of samples like these, with room for so many bytes; it grows.
 * TESS_ERR_ALLOC. Local. */
tess_status team_parcel_create(const imager_teams *teams, const tess_samples *like,
                               int64_t bytes, team_parcel *parcel);

/** Bytes that an output of so many rows and samples like these adds to a parcel, at
 * most. With `again` its rows are those of the output before it of the same team, but
 * for their channels. Local. */
int64_t team_parcel_bytes_of(const tess_samples *like, int64_t num_rows,
                             int64_t num_vis, bool again);

/** Append the next output of a team, whose samples lie in the order of its rows. Takes
 * over the arrays, and zeroes `samples`. TESS_ERR_ALLOC. Local. */
tess_status team_parcel_add(team_parcel *parcel, tess_samples *samples);

/** Note that the next team has all its outputs. Local. */
void team_parcel_end_team(team_parcel *parcel);
void team_parcel_free(team_parcel *parcel); /**< Zeros are fine. Local. */

/** Send the samples of a round to the teams that make its outputs. Those of the `num`
 * outputs of this rank's team, as many as its parcels have on all ranks, arrive in
 * to[num], zeros before, in the order of the file over the team's ranks. If the
 * `status` of any rank is bad, all fail as by tess_comm_agree(). Nothing arrives after
 * a failure. Collective. */
tess_status imager_teams_send(const imager_teams *teams, tess_status status,
                              team_parcel *parcel, int num, tess_samples *to);

#endif
