/** @file tess_channel_opts.h
 *  Which channels of the data an output channel is made of: some of them, as they are,
 *  or a channel of an axis that is regular in a frame.
 */
#ifndef TESS_CHANNEL_OPTS_H
#define TESS_CHANNEL_OPTS_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_doppler.h"

/** Most frequencies of --channel-division-frequencies. */
enum { TESS_MOST_SPLITS = 512 };

/** How channels are divided into output channels: bands between given frequencies have
 *  about equal numbers of outputs each, and the outputs of a band have equal numbers of
 *  channels, or part at the largest gaps. */
typedef struct tess_channel_division {
    bool at_gaps; /**< --gap-channel-division */
    int num_splits;
    double split_hz[TESS_MOST_SPLITS]; /**< --channel-division-frequencies, ascending */
} tess_channel_division;

/** What a start or a width of output channels is counted in. */
typedef enum tess_axis_unit {
    TESS_AXIS_DEFAULT, /**< not given */
    TESS_AXIS_CHANNEL, /**< channels of the axis that would be without it */
    TESS_AXIS_HZ,
    TESS_AXIS_M_S
} tess_axis_unit;

typedef struct tess_axis_value {
    tess_axis_unit unit;
    double value;
} tess_axis_value;

/** Output channels that are regular in a frame. */
typedef struct tess_axis_opts {
    bool given;                   /**< any of the following but rest_hz */
    tess_spectral_frame frame;    /**< --frame, default topo */
    tess_axis_value start, width; /**< --start: middle of the first channel; --width */
    int64_t num_chan;             /**< --nchan; 0: to the end of the data */
    double rest_hz;               /**< --restfreq; 0: that of the observation */
    tess_velocity velocity;       /**< --velocity */
    bool nearest;                 /**< --interpolation nearest; default linear */
} tess_axis_opts;

struct tess_source;

/** Observations that were opened to count the channels of an axis, for the run that
 *  images them. */
typedef struct tess_opened_source {
    struct tess_source *source; /**< NULL: the run has taken it */
} tess_opened_source;

/** One of both. */
typedef struct tess_channel_opts {
    tess_opened_source *opened; /**< see tess_imager_take_axis; or NULL */
    tess_channel_division division;
    tess_axis_opts axis; /**< --frame, --start, --width, --nchan, --restfreq,
                              --velocity, --interpolation */
} tess_channel_opts;

#endif
