/** @file tess_vis_caller.h
 *  Visibilities that the program holds which calls the library: a set with a name,
 *  "memory:N", in place of a path. Rows are asked for block by block.
 */
#ifndef TESS_VIS_CALLER_H
#define TESS_VIS_CALLER_H

#include "tess_vis.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Free arrays inside a meta (segments, fields, antennas) and zero it. */
void tess_vis_meta_free(tess_vis_meta *meta);

/** Arrays for rows of a window, to be filled. */
typedef struct tess_vis_caller_rows {
    int window;
    int64_t row_first, num_rows, chan_first, num_chan;
    tess_vis_block *to; /**< has room for them */
} tess_vis_caller_rows;

/** A set of the caller: one field, some windows. */
typedef struct tess_vis_caller_set {
    tess_vis_meta
        meta; /**< with a segment for each window; owned by the list of sets */
    bool (*read)(void *context, const tess_vis_caller_rows *rows); /**< false: it fails.
                            Calls come one at a time for each reader, from any thread */
    void (*release)(void *context); /**< when the set is taken off the list, or NULL */
    void *context;
} tess_vis_caller_set;

/** Put a set onto the list of the process, which takes its meta; `name` is what
 *  tess_vis_open() takes. TESS_ERR_ALLOC: then the meta has been freed. */
tess_status tess_vis_caller_add(const tess_vis_caller_set *set, char name[32]);

/** Take it off again, when no reader is open. Unknown names are fine. */
void tess_vis_caller_remove(const char *name);

/** Whether a path is a name of such a set. */
bool tess_vis_is_caller(const char *path);

#ifdef __cplusplus
}
#endif

#endif
