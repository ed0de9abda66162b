/** @file tess_waiting.h
 *  How threads of OpenMP wait for each other, at the end of a loop and for the next
 * one.
 *
 *  They look again and again whether the others have come ("spin"), for some
 *  milliseconds, and sleep after that. This is the fastest way where each thread has a
 *  processor of its own. But where other programs use the processors, too, a thread
 * that spins keeps the processor from the very thread for which it waits. So this
 * module watches how long the threads of the process wait for processors. Where they
 * do, it has them spin for some microseconds only.
 *
 *  Users who set OMP_WAIT_POLICY or GOMP_SPINCOUNT (KMP_BLOCKTIME, KMP_LIBRARY) decide
 *  it themselves: then this module does nothing.
 */
#ifndef TESS_WAITING_H
#define TESS_WAITING_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Begin to watch, until tess_waiting_end() has been called as often. Any thread may
 * call both. What has been learned is kept for the next time. A thread of this module
 * stays for a second after the last call, so a library that has this module must not be
 * unloaded. `threads` is how many the
 * work between the calls has (0: as many as there are processors); a single one waits
 * for no other. Local. */
void tess_waiting_begin(int threads);
void tess_waiting_end(void);

/** Whether threads wait for microseconds only, at present, since processors are shared.
 */
bool tess_waiting_is_short(void);

#ifdef __cplusplus
}
#endif
#endif
