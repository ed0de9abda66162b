/** @file image_holding.h  (private to app/imager/run/)
 *  Where the samples of a run come from, and how long they are held.
 */
#ifndef TESS_IMAGE_HOLDING_H
#define TESS_IMAGE_HOLDING_H

#include <stdbool.h>

/* Where the samples of an image come from. */
typedef enum data_mode {
    DATA_CACHED,     /* all samples of this rank's slice are kept */
    DATA_PER_OUTPUT, /* the samples of one output at a time, read again for each output
                      */
    DATA_STREAMED /* samples are read block by block, in several passes for each output
                   */
} data_mode;

/* How long samples are held. */
typedef struct image_holding {
    bool stay;     /* samples are imaged more than once, and so held in host memory */
    bool together; /* samples of all outputs are held at the same time */
} image_holding;

#endif
