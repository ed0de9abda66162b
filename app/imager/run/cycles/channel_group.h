/** @file channel_group.h  (private to app/imager/run/)
 *  A group of output channels that are cleaned together: all channels of an interval,
 *  or one channel alone.
 *
 *  The images of a group are made in rounds: one channel after the other by the ranks
 *  of the group, or several channels at a time, one by each team. A channel stays with
 *  its team, which has its visibility set. Between rounds all ranks of the group have
 *  every image by rows.
 */
#ifndef TESS_CHANNEL_GROUP_H
#define TESS_CHANNEL_GROUP_H

#include "image_found.h"
#include "image_kinds.h"
#include "image_run.h"
#include "sample_sets.h"
#include "visset.h"

/** Whether teams make the images of channels that all ranks clean together. Local. */
static inline bool image_shares_channels(const image_run *run)
{
    return run->teams.num > 1 && image_joins_channels(run->opts);
}

/** A channel: its samples, the images that are made of them, and those that are
 *  written. */
typedef struct group_channel {
    int64_t output;
    bool has_data;
    sample_sets data;
    tess_density *density; /**< applied to samples that are not in memory, or NULL */
    double variance[2 * TESS_MAX_POL]; /**< as of image_weighted_data() */
    double freq_hz; /**< mean frequency by weight; 0: there are no weights, and
                       majors_clean() takes the middle of the band */
    visset set;     /**< zeros if this rank does not make its images. One of several
                       channels has left the job (visset_leave) */
    imager_product made[TESS_MAX_IMAGES];    /**< dirty images and PSFs, which become
                                                products */
    imager_product product[TESS_MAX_IMAGES]; /**< all kinds, in the order of
                                                run->output.kinds */
    struct image_found found[TESS_MAX_POL];  /**< the beam; cleaning adds its results */
    tess_rows model[TESS_MAX_POL], residual[TESS_MAX_POL]; /**< while it is cleaned */
} group_channel;

typedef struct channel_group {
    image_run *run; /**< borrowed */
    int64_t first_output;
    int num_channels;       /**< 0: this team has no channel */
    group_channel *channel; /**< [num_channels]; owned */
    int *order;             /**< [num_with_data] channels with data, in the order of
                               rounds; owned */
    int num_with_data;
    int at_once;         /**< channels of a round; the last round may have fewer */
    bool wants_beam;     /**< the images of a channel alone are made for their beam */
    tess_fits_beam beam; /**< that beam; zeros without data */
    tess_rows **rows;    /**< [at_once] rows of a round's channels, for one call */
} channel_group;

/** Begin the group of these outputs. TESS_ERR_ALLOC: callers agree on it. Local. */
tess_status channel_group_create(image_run *run, int64_t first_output, int num_channels,
                                 channel_group *group);

/** Free the group, but for the rows that files are still written from. Zeros are fine.
 *  Collective. */
void channel_group_free(channel_group *group);

/** Free the density of a channel whose samples are not read any more. Local. */
void channel_group_free_density(const channel_group *group, group_channel *channel);

/** Free all that products have been made of. Collective. */
void channel_group_free_sources(channel_group *group);

/** The first channel with data; the last channel if none has. Local. */
group_channel *channel_group_first(const channel_group *group);

/** The products of a channel that get the response of its facets; NULL without
 * solutions. Local. */
imager_product *channel_group_response(const image_run *run, group_channel *channel);

/** Number of channels of the round that begins with order[first]. Local. */
int channel_group_size(const channel_group *group, int first);

/** The channel that a team makes in that round. Local. */
group_channel *channel_group_at(const channel_group *group, int first, int team);

/** The channel of that round that this rank makes with others; NULL: it makes none.
 *  Local. */
group_channel *channel_group_own(const channel_group *group, int first);

/* ---- group_images.c ---- */

/** Send the samples of outputs [first, end) of a round, as they were read, to the teams
 * of ranks that make them: the k-th of this rank's team is that of group[k], of `num`.
 *  `run` is that of the rank. Collective over all ranks. */
tess_status group_images_deal(image_run *run, channel_group *group, int num,
                              int64_t first, int64_t end);

/** Free all samples if outputs up to `end` are all of the run: their images need no
 * others. Nothing in the run of a team of threads. Local. */
void group_images_give_up(image_run *run, int64_t end);

/** Make, clean and measure the images of the group, all but primary beams; or find its
 * beam alone, if that is wanted. Collective over its ranks. */
tess_status group_images_make(channel_group *group);

/** Make primary beams with the threads of a rank's run, and write the images of the
 * group. Collective over its ranks. */
tess_status group_images_write(image_run *rank, channel_group *group);

/* ---- common_beams.c ---- */

/** With --common-beam, make the PSFs of all channels, unless these are cleaned
 * together, and find the beam of each interval. Collective over all ranks. */
tess_status common_beams_find(image_run *run);

/* ---- group_rounds.c ---- */

/** Make the groups that the checkpoint does not count as complete, round after round:
 *  one group by all ranks, or one by each team. Collective. */
tess_status group_rounds_make(image_run *run);

#endif
