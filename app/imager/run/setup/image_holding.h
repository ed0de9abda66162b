/** @file image_holding.h  (private to app/imager/run/)
 *  How the samples of a run are kept.
 */
#ifndef TESS_IMAGE_HOLDING_H
#define TESS_IMAGE_HOLDING_H

#include <stdbool.h>
#include <stdint.h>

#include "parted_spool.h"

/* Where the samples of an image come from. */
typedef enum data_mode {
    DATA_CACHED,     /* all samples of this rank's slice are kept */
    DATA_PER_OUTPUT, /* the samples of as many outputs as fit, one or more; the next
                        ones are read from scratch, or data are read again for them */
    DATA_STREAMED /* samples are read block by block, in several passes for each output
                   */
} data_mode;

/* How long samples are held. */
typedef struct image_holding {
    bool stay; /* samples are held in host memory, for calls that may weigh them anew */
    bool together; /* samples of all outputs are held at the same time */
    bool again;    /* the outputs that are made now will be made once more */
    bool parts;    /* those of some outputs at a time, which scratch has parted */
    parted_spool *parted; /* samples of all outputs on scratch, or NULL */
    int64_t batch_blocks; /* blocks of the source in a batch of these */
    double reads;         /* how often data would be read again without these */
} image_holding;

/* Bytes of a row beside its samples: uvw, channels, place, time. */
#define IMAGE_ROW_BYTES 48.0
/* Share of a rank's memory that prepared samples may take before data are read again.
 */
#define IMAGE_CACHE_SHARE 0.45

#endif
