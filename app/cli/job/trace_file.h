/** @file trace_file.h  (private to app/cli/)
 *  The traces of all ranks as one file in Chrome's trace format, which Perfetto opens.
 */
#ifndef TESS_TRACE_FILE_H
#define TESS_TRACE_FILE_H

#include "tess_comm.h"
#include "tess_profile.h"

/** Write the spans of profile->trace: a process for each rank, in it a thread for each
 *  lane; a span "run" from the start of the program holds a rank's stages. Times are
 *  microseconds since the first rank's start. The file appears under its name when it
 *  is complete. TESS_ERR_IO when it cannot be written, or is there and not `overwrite`.
 *  Collective. */
tess_status tess_trace_write(tess_comm *comm, const tess_profile *profile,
                             const char *path, bool overwrite);

#endif
