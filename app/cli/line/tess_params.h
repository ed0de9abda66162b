/** @file tess_params.h
 *  Parameter files: `key = value` lines with '#' comments. Keys are the long names of
 *  options; the file is expanded into arguments that stand before those of the command
 *  line, which therefore override it. Unknown and repeated keys are errors that name
 *  file and line.
 */
#ifndef TESS_PARAMS_H
#define TESS_PARAMS_H

#include <argp.h>

#include "tess_comm.h"
#include "tess_status.h"

/** Arguments after expansion. Zeroed is empty. */
typedef struct tess_params {
    int argc;
    char **argv;  /**< [argc + 1], NULL at the end; owned */
    int num_keys; /**< argv[1 .. num_keys] come from the file */
    int *line;    /**< [num_keys] their line numbers */
    char *path;   /**< the file, NULL without --config */
} tess_params;

/** Copy argv; when it has --config FILE (at most one), read it (rank 0) and expand its
 *  keys, which `argp` or its children must know. TESS_ERR_USAGE for unknown or repeated
 *  keys and malformed lines, TESS_ERR_IO when the file cannot be read. Collective. */
tess_status tess_params_expand(tess_comm *comm, const struct argp *argp, int argc,
                               char **argv, tess_params *params);

/** The same with the file's text given. Local. */
tess_status tess_params_expand_text(const struct argp *argp, const char *path,
                                    const char *text, int argc, char **argv,
                                    tess_params *params);

/** Line of the parameter file that argv[index] came from, 0 for the command line. */
int tess_params_line(const tess_params *params, int index);

void tess_params_free(tess_params *params);

#endif
