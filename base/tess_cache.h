/** @file tess_cache.h
 *  The folder where what was found out about this machine is kept between runs, and the
 *  name of the machine's processor, which such files are for. Local.
 */
#ifndef TESS_CACHE_H
#define TESS_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "tess_out_file.h"

/** $TESS_CACHE_DIR, else $XDG_CACHE_HOME/tessera, else ~/.cache/tessera; made when
 *  missing. False when there is none that can be read. */
bool tess_cache_folder(char *path, size_t size);

/** Open a file of the folder for reading; NULL when it is not there, or is a pipe or
 *  anything else than a file. */
FILE *tess_cache_read(const char *path);

/** Begin a file of the folder, under a temporary name; NULL when it cannot be made, or
 *  when what has its name is no file. No error is recorded: caches are not needed. */
FILE *tess_cache_begin(const char *path, char temp[TESS_OUT_FILE_NAME]);

/** Close it and, when it is `good`, give it its name; unless `replace`, a file that has
 *  come there meanwhile stays. False when it has not got its name. */
bool tess_cache_end(FILE *file, bool good, bool replace,
                    const char temp[TESS_OUT_FILE_NAME], const char *path);

/** Name of the processor, of letters, digits and '-' alone; "cpu" when unknown. */
void tess_cache_processor(char *name, size_t size);

#endif
