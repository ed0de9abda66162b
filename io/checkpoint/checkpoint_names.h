/** @file checkpoint_names.h  (private to io/)
 *  Names of a checkpoint's files, and which files of a folder are tessera's: the folder
 *  may hold files of others, under any names.
 */
#ifndef CHECKPOINT_NAMES_H
#define CHECKPOINT_NAMES_H

#include <stdint.h>

#include "tess_status.h"

/** A rank's file begins with the first, a text with the second, whatever the version.
 */
#define CHECKPOINT_RANK_BEGINS "tessckp"
#define CHECKPOINT_TEXT_BEGINS "tessera checkpoint "

/** Texts of the newest checkpoint and of the one before, and their names. */
typedef enum checkpoint_age { CHECKPOINT_NEWEST, CHECKPOINT_PREVIOUS } checkpoint_age;
extern const char *const checkpoint_text_names[2];

/** Path of a rank's file, or of a text: path[TESS_OUT_FILE_NAME]. TESS_ERR_IO when it
 * is too long. Local. */
tess_status checkpoint_rank_path(const char *folder, int64_t generation, int64_t rank,
                                 char *path);
tess_status checkpoint_text_path(const char *folder, checkpoint_age age, char *path);

/** Open a checkpoint's file for reading; `*fd` is -1 when there is none of this name.
 *  TESS_ERR_INPUT when the name is that of a link, a folder or a device. Local. */
tess_status checkpoint_open(const char *path, int *fd, int64_t *bytes);

/** See that a file may be given this name: there is none yet, or tessera made it.
 *  TESS_ERR_IO. Local. */
tess_status checkpoint_check_path(const char *path);

/** As checkpoint_check_path, of all names in the folder that checkpoints may need.
 *  Local. */
tess_status checkpoint_check_folder(const char *folder);

/** Remove tessera's files, but the texts and those files of ranks that belong to
 *  generation `newest` and to the one before (newest 0: all). What killed runs have
 * left goes too, what others have made stays. Local. */
void checkpoint_sweep(const char *folder, int64_t newest);

#endif
