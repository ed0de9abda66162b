/** @file tess_stop.h
 *  Signals that ask a run to save a checkpoint and to end. Batch systems send SIGUSR1
 * as a warning, and may do so before the run has read its options.
 */
#ifndef TESS_STOP_H
#define TESS_STOP_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Hold SIGUSR1 back, until tess_stop_record(). A program calls this first of all:
 *  libraries that it starts, such as MPI's, may put handlers of their own in place, and
 *  would lose the signal. Local. */
void tess_stop_hold(void);

/** Record SIGUSR1 from now on, and one that has been held back. Local. */
void tess_stop_record(void);

/** From now on SIGUSR1 and SIGTERM ask the run to stop. What has been recorded counts.
 * The handler of SIGTERM calls `hurry`, which may be NULL. A second SIGTERM does what
 * it did before. Local. */
void tess_stop_catch(void (*hurry)(void));

/** Whether the run has been asked to stop. Local. */
bool tess_stop_told(void);

/** For programs whose run has no checkpoint: SIGUSR1 removes unfinished files and ends
 *  the process, as SIGTERM does after tess_out_catch_signals(). One that has been
 *  recorded does so at once. `tells`: this rank says so in a line. If SIGUSR1 was
 * ignored when the program started, it is ignored again. Local. */
void tess_stop_ends(bool tells);

#ifdef __cplusplus
}
#endif
#endif
