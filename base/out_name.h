/** @file out_name.h  (private to base/)
 *  Names of unfinished files, which say whose they are, and how such files go.
 */
#ifndef OUT_NAME_H
#define OUT_NAME_H

#include <stdbool.h>

/** The name under which this process makes a file that is to be `path`; `attempt` tells
 *  several apart. temp[TESS_OUT_FILE_NAME]; false when it is too long. Local. */
bool out_name_make(const char *path, int attempt, char *temp);

/** Remove a file, a link, or a folder with all in it; of system calls only, so that a
 *  signal handler may call it. Local. */
void out_name_remove(int folder, const char *name);

#endif
