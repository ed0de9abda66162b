/** @file checkpoint_text.h  (private to io/)
 *  The text of a checkpoint: what all ranks know, and the ranks' files with their
 *  checksums.
 */
#ifndef CHECKPOINT_TEXT_H
#define CHECKPOINT_TEXT_H

#include "tess_checkpoint.h"

/** Checksum of data that follow what `sum` is of; 0 is that of nothing. All parts but
 *  the last are whole 8-byte words. Local. */
uint64_t checkpoint_checksum(uint64_t sum, const void *data, int64_t bytes);

/** The text of a state, with its checksum; from open_memstream, NULL without memory.
 *  Local. */
char *checkpoint_text(const tess_checkpoint_state *state);

/** Whether it is a checkpoint's text, and as it was written. Local. */
bool checkpoint_text_is_sound(const char *text);

#endif
