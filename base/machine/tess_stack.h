/** @file tess_stack.h
 *  Stacks of this process under the limit of `ulimit -s`. A stack that is too small
 *  ends the process by a signal, and one that is too large keeps threads from starting;
 *  neither tells why.
 */
#ifndef TESS_STACK_H
#define TESS_STACK_H

#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Give threads that start from now on stacks of a usual size where the limit would
 * make them larger than memory may have room for, and let the stack of this thread have
 * address space for what follows. To be called by programs, in their first thread,
 * before threads and MPI start. TESS_ERR_RESOURCE: the limit is too small for this
 * process. Local. */
tess_status tess_stack_prepare(void);

#ifdef __cplusplus
}
#endif
#endif
