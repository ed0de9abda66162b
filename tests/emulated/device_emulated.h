/** @file device_emulated.h
 *  For the emulated kernels: whether the device still works. See device_emulated.c for
 *  how tests make one fail.
 */
#ifndef TESS_DEVICE_EMULATED_H
#define TESS_DEVICE_EMULATED_H

#include <stdbool.h>

#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One more operation is asked of the device. False when it is lost and does not do it;
 *  `*status` then is what a call that only enqueues, or one that waits, returns. */
bool device_emulated_enqueues(tess_status *status);
bool device_emulated_waits(tess_status *status);

/** Would a call that enqueues report that the device is lost? No operation. */
bool device_emulated_says_lost(void);

#ifdef __cplusplus
}
#endif
#endif
