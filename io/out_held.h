/** @file out_held.h  (private to io/)
 *  How the writers of io/ hand their finished files to a list of held ones.
 */
#ifndef TESS_OUT_HELD_H
#define TESS_OUT_HELD_H

#include "tess_out.h"
#include "tess_out_file.h"

/** Hold a finished file; `temp` becomes "" ("" already: another rank gives it its
 *  name). `fd`, unless -1, is what this rank has written to it by, synchronised and
 *  closed when files are published. TESS_ERR_ALLOC: then both are still the caller's.
 *  Local. */
tess_status tess_held_add(tess_held_files *held, char temp[TESS_OUT_FILE_NAME],
                          const char *path, bool overwrite, int fd);

#endif
