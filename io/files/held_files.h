/** @file held_files.h  (private to io/)
 *  How the writers of io/ hand their finished files to a list of held ones.
 */
#ifndef HELD_FILES_H
#define HELD_FILES_H

#include "tess_held_files.h"
#include "tess_out_file.h"

/** Add a finished file to the list; `temp` then becomes "". When `temp` is "" already,
 *  another rank gives the file its name. `fd` is the descriptor by which this rank
 * wrote the file, or -1; it is synchronised and closed when the files are published.
 * After TESS_ERR_ALLOC the caller still owns both. Local. */
tess_status tess_held_add(tess_held_files *held, char temp[TESS_OUT_FILE_NAME],
                          const char *path, bool overwrite, int fd);

/** A run can go on with the file that was added last: unless all files are published,
 *  it stays under its temporary name. Local. */
void tess_held_keep(tess_held_files *held);

#endif
