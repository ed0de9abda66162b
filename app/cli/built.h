/** @file built.h  (private to app/cli/)
 *  What `tessera --version` prints.
 */
#ifndef TESS_BUILT_H
#define TESS_BUILT_H

#include <stdio.h>

/** Version, compiler and libraries, then a line for each part that a build may have or
 *  lack. Local. */
void tess_built_print(FILE *out);

#endif
