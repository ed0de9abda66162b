/** @file tess_forced.h
 *  Choices that tests and scaling studies take from the planner: the environment
 *  variable TESS_FORCE, which is not for users, and so is no option.
 */
#ifndef TESS_FORCED_H
#define TESS_FORCED_H

#include "tess_comm.h"
#include "tess_imager_opts.h"
#include "tess_status.h"

/** Read TESS_FORCE, a list KEY=VALUE,KEY=VALUE..., on rank 0, and set layout->forced of
 *  all ranks by it. TESS_ERR_USAGE on all ranks for an unknown key or a value that is
 *  not valid; the message names the variable and the key. Collective. */
tess_status tess_forced_take(tess_comm *comm, tess_layout *layout);

/** The page that lists the keys, if an error's message is about TESS_FORCE; else NULL.
 *  No --help lists them. Local. */
const char *tess_forced_page(const char *message);

/** One line of rank 0's log if the variable is set. Local. */
void tess_forced_log(void);

#endif
