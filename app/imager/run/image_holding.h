/** @file image_holding.h  (private to app/imager/run/)
 *  Where the samples of a run come from, and how long they are held.
 */
#ifndef TESS_IMAGE_HOLDING_H
#define TESS_IMAGE_HOLDING_H

#include <stdbool.h>

/* Where the samples of an image come from. */
typedef enum data_mode {
    DATA_CACHED,     /* all samples of this rank's slice are kept */
    DATA_PER_OUTPUT, /* those of one output at a time, read again for each */
    DATA_STREAMED    /* block by block, in several passes for each output */
} data_mode;

/* How long samples are held. */
typedef struct image_holding {
    bool stay;     /* they are imaged more than once: they are host memory's */
    bool together; /* and those of all outputs are held at the same time */
} image_holding;

#endif
