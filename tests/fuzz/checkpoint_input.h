/** @file checkpoint_input.h  (private to tests/fuzz/)
 *  Input of the fuzzers of checkpoints: a checkpoint's text, a NUL, and the bytes of a
 *  rank's file, which all ranks have that the text names.
 */
#ifndef CHECKPOINT_INPUT_H
#define CHECKPOINT_INPUT_H

#include <stddef.h>
#include <stdint.h>

/** Make the folder, if need be, and write the input there, with checksums and lengths
 *  that are right: those who write a checkpoint to do harm compute them too. An
 *  `identity` that is not NULL replaces the input's. */
void checkpoint_input_write(const char *folder, const uint8_t *data, size_t size,
                            const char *identity);

/** The other way: write the folder's newest checkpoint of one rank as an input. */
void checkpoint_input_save(const char *folder, const char *path);

/** Remove the folder with all files in it. */
void checkpoint_input_remove(const char *folder);

/** Text of the newest checkpoint's identity, from malloc, or NULL. */
char *checkpoint_input_identity(const char *folder);

#endif
