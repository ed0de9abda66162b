/** @file tess_watch.h
 *  Ends a job whose ranks wait for a rank that does not answer any more, because its
 *  node or its link is down. MPI itself waits for ever. For main.c and for what tells
 *  it about the run.
 *
 *  A thread of each rank sends beats to the other ranks, over UDP, and knows how long
 *  the rank has been inside one call of MPI. A rank that computes for hours goes on
 *  sending beats, so ranks may wait for it as long as they have to.
 */
#ifndef TESS_WATCH_H
#define TESS_WATCH_H

#include <stdbool.h>

#include "tess_comm.h"
#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Default of tess_watch_timeout(), and the least time [s]. Open MPI's launcher needs
 * 480 s to notice a lost node; its status would not say that there is a checkpoint. */
enum { TESS_WATCH_DEFAULT_S = 300, TESS_WATCH_LEAST_S = 5 };

/** Say why the run ends: tess_error_message(). `status` is TESS_ERR_STOPPED if there is
 * a checkpoint, TESS_ERR_RESOURCE otherwise. Called on one rank, `rank`, by a thread of
 * the watch. */
typedef void tess_watch_say(tess_status status, int rank, void *context);

/** End this process, whose main thread may be inside MPI for ever. Does not return.
 * Called by a thread of the watch. */
typedef void tess_watch_leave(tess_status status, void *context);

/** Watch the ranks of `comm` until tess_watch_stop(). If a rank has no socket or no
 * thread for that, the others do not judge it. Does nothing for one rank. Collective.
 */
tess_status tess_watch_start(tess_comm *comm, tess_watch_say *say,
                             tess_watch_leave *leave, void *context);

/** End the watch; without a start, nothing happens. After tess_comm_finish(), in which
 * ranks wait for each other, too. Local. */
void tess_watch_stop(void);

/** End the job when a rank has waited for others for this time [s], and a rank has not
 * been heard for this time; 0: never. TESS_ERR_USAGE: less than TESS_WATCH_LEAST_S.
 * Local; the same on all ranks. */
tess_status tess_watch_timeout(double seconds);

/** From now on a run that ends so can be continued from the checkpoint in `folder`;
 * NULL: it cannot. Local. */
void tess_watch_saved(const char *folder);

/** From now on a few seconds suffice, because the run has been told to stop. May be
 * called by a signal handler. Local. */
void tess_watch_hurry(void);

#ifdef __cplusplus
}
#endif
#endif
