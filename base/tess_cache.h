/** @file tess_cache.h
 *  The folder where what was found out about this machine is kept between runs, and the
 *  name of the machine's processor, which such files are for. Local.
 */
#ifndef TESS_CACHE_H
#define TESS_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/** $TESS_CACHE_DIR, else $XDG_CACHE_HOME/tessera, else ~/.cache/tessera; made when
 *  missing. False when there is none that can be read. */
bool tess_cache_folder(char *path, size_t size);

/** Name of the processor, of letters, digits and '-' alone; "cpu" when unknown. */
void tess_cache_processor(char *name, size_t size);

#endif
