/** @file tess_cache.h
 *  The folder that keeps between runs what was measured on this machine, and the name
 *  of the machine's processor, for which such files are valid. All Local.
 */
#ifndef TESS_CACHE_H
#define TESS_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "tess_out_file.h"

/** Find the folder: $TESS_CACHE_DIR, else $XDG_CACHE_HOME/tessera, else
 * ~/.cache/tessera. It is created if it does not exist. Returns false if no such folder
 * can be read. */
bool tess_cache_folder(char *path, size_t size);

/** Open a file of the folder for reading. Returns NULL if it does not exist, or if it
 * is a pipe or anything else that is not a regular file. */
FILE *tess_cache_read(const char *path);

/** Begin a file of the folder under a temporary name. Returns NULL if the file cannot
 * be created, or if something that is not a regular file has its name. No error is
 * recorded, because a run does not need a cache. */
FILE *tess_cache_begin(const char *path, char temp[TESS_OUT_FILE_NAME]);

/** Close the file. If it is `good`, give it its name; without `replace`, a file that
 * another process has created in the meantime stays. Returns false if the file did not
 * get its name. */
bool tess_cache_end(FILE *file, bool good, bool replace,
                    const char temp[TESS_OUT_FILE_NAME], const char *path);

/** Name of the processor, in letters, digits and '-' only; "cpu" if it is unknown. */
void tess_cache_processor(char *name, size_t size);

#endif
