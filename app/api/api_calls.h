/** @file api_calls.h  (private to app/api/)
 *  Begin and end of a call of the library: its error record, its turn, and processes
 * that have been forked.
 */
#ifndef TESS_API_CALLS_H
#define TESS_API_CALLS_H

#include "tess_status.h"

/** Begin a call. Each successful begin is followed by api_call_end(). TESS_ERR_RESOURCE
 *  in a process that was forked while another thread was in a call: the locks of that
 *  thread stay closed. Local. */
tess_status api_call_begin(void);

/** End a call; returns `status`, whose message tess_last_error() then has. Local. */
tess_status api_call_end(tess_status status);

/** The log's level and file are the process's, so runs take turns. Threads
 *  wait shortly where processors are shared, until api_turn_end(). */
void api_turn_begin(void);

/** Also makes the log quiet again. */
void api_turn_end(void);

#endif
