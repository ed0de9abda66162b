/** @file majors_mask.h  (private to app/imager/run/cycles/majors*.c)
 *  Automatic masks of images that are cleaned together (tess_multithresh.h).
 */
#ifndef TESS_MAJORS_MASK_H
#define TESS_MAJORS_MASK_H

#include "image_checkpoint.h"
#include "image_run.h"
#include "tess_multithresh.h"

struct majors;
struct cleaned;

/* The automatic masks of images that are cleaned together: of each polarisation, in the
 * mean of the channels. */
typedef struct group_masks {
    tess_multithresh *found[TESS_MAX_POL];
    tess_rows region,
        user;      /* rows in host memory of where the primary beam is above
                      --pb-mask, and of the user's masks; no rows: everywhere */
    bool is_ready; /* the next minor loop has the present mask */
    uint32_t *before[TESS_MAX_POL]; /* masks before the present round, which count again
                                       if the minor loop finds nothing, or NULL */
    int64_t rounds_before[TESS_MAX_POL];
} group_masks;

/** The object that cleans a group gets its options: with --cyclefactor, minor loops end
 * where the highest sidelobe of its PSFs says. Collective. */
tess_status majors_group_opts(const struct majors *all, const struct cleaned *group,
                              tess_clean_opts *opts);

/** Begin the automatic masks of a group. `user` are rows of the user's mask in host
 *  memory, or none; the group owns them from here on. Collective. */
tess_status majors_mask_begin(const struct majors *all, struct cleaned *group,
                              tess_rows *user);

/** Before a minor loop: find the automatic masks in the residuals, and clean within
 *  them. `*is_empty`: nothing is masked. Collective. */
tess_status majors_mask_update(const struct majors *all, struct cleaned *group,
                               bool *is_empty);

/** After a minor loop: if it has found nothing at the final threshold, the masks are
 *  again those in which the last components were found. Local. */
void majors_mask_end(struct cleaned *group);

/** Number of images of the automatic masks in checkpoints. Local. */
int majors_mask_count(const struct majors *all);

/** Add them to a checkpoint, and take them from one, from its image `image` on, with
 *  the rounds of each. Local. */
tess_status majors_mask_save(const struct majors *all, image_cycle *cycle);
tess_status majors_mask_take(const struct majors *all, struct cleaned *group,
                             const int64_t *rounds, int image);

/** Make the products of a channel, which show where components could be. Collective. */
tess_status majors_mask_products(const struct majors *all, int channel);

void majors_mask_free(struct cleaned *group); /**< Local. */

/** Memory that automatic masks take on a rank with so many pixels [bytes]. Local. */
double majors_mask_bytes(const image_run *run, double pixels);

/** Take this rank's rows of an image of a checkpoint that has bits for pixels; freed by
 *  the caller. Local. */
tess_status majors_take_bits(const struct majors *all, int image, uint32_t **bits);

#endif
